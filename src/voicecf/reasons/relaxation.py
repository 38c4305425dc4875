"""Relaxations: the smallest changes of the rules that make an answer possible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from voicecf.reasons.case import Case
from voicecf.reasons.conflict import minimal_conflict, without
from voicecf.rules.condition import Edit, Member, Variant
from voicecf.table.wording import figure

# If no single rule is enough, partners are sought for this many rules of the conflict.
PARTNERS = 3


@dataclass(frozen=True)
class Relaxation:
    """A change of the rules with which the row has an answer, as solving it again has shown.

    Attributes
    ----------
    text : str
        What to do, such as ``"unlock age"``.
    cost : float
        Cost of the answer that the row has then.
    words : dict or None
        Keywords for `explain` in place of the old ones; None if only the contraction changes.
    contraction : float or None
        Contraction for a new explainer, ``VoICE(..., contraction=...)``; None if it stays.
    members : tuple of Member
        The rules that are relaxed.
    """

    text: str
    cost: float
    words: dict[str, Any] | None
    contraction: float | None
    members: tuple[Member, ...]

    def __str__(self) -> str:
        return f"{self.text} (cost {figure(self.cost)})"


def relaxations(case: Case, conflict: list[Member]) -> list[Relaxation]:
    """Find single changes that suffice, cheapest first; if there are none, the cheapest pair.

    Only members of the conflict are changed: without any change of these the conflict remains.
    """
    rules = [member for member in conflict if member.kind != "cluster"]
    found = [one for member in rules for one in _singles(case, member)]
    if not found:
        pairs = [one for member in rules[:PARTNERS] for one in _pairs(case, member)]
        found = sorted(pairs, key=lambda relaxation: relaxation.cost)[:1]
    return sorted(found, key=lambda relaxation: relaxation.cost)


def _singles(case: Case, member: Member) -> Iterator[Relaxation]:
    edit = smallest_edit(case, member, case.original)
    if edit is not None:
        yield from _solved(case, edit.text, edit.apply(case.original), (member,))


def _pairs(case: Case, first: Member) -> Iterator[Relaxation]:
    """Yield relaxations of `first` and one other member that suffice together."""
    less = without(case, case.original, first)
    if not case.impossible(less):
        return
    for second in minimal_conflict(case, less):
        if second.kind == "cluster":
            continue
        other = smallest_edit(case, second, less)
        if other is None:
            continue
        one = smallest_edit(case, first, other.apply(case.original))
        if one is not None:
            both = one.apply(other.apply(case.original))
            yield from _solved(case, f"{one.text} and {other.text}", both, (first, second))


def _solved(
    case: Case, text: str, variant: Variant, members: tuple[Member, ...]
) -> Iterator[Relaxation]:
    """Solve a variant, and yield it as a relaxation if it has an answer."""
    found = case.answer(variant)
    if found is not None:
        same_rules = variant.rules == case.original.rules
        words = None if same_rules else case.explain_keywords(variant)
        yield Relaxation(text, float(found.cost[0]), words, variant.alpha, members)


def smallest_edit(case: Case, member: Member, variant: Variant) -> Edit | None:
    """Return the smallest change of a member that is enough; None if even removing it is not."""
    condition = member.condition
    less = condition.relaxed(case, variant, member)
    answer = None if case.impossible(less) else case.answer(less)
    if answer is None:
        return None
    for edit in condition.edits(case, member, variant, answer):
        if case.answer(edit.apply(variant)) is not None:
            return edit
    removal = condition.removal(case, member)
    return Edit(removal, lambda variant: condition.relaxed(case, variant, member))
