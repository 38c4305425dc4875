"""Why a row has no answer, and the cheapest ways to make one possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import partial
from html import escape
from typing import Any

import numpy as np

from voicecf.output.digits import rounded
from voicecf.output.sentences import sentence
from voicecf.output.wording import joined
from voicecf.reasons.case import Case, Draft, Member, number
from voicecf.rules.constraints import Constraint, read_constraints
from voicecf.search.outcome import Outcome
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status

__all__ = ["Member", "Reason", "Relaxation", "reason_of"]

# Of the way from a bound to what is needed: how exactly that is found, and what may be added to
# make a number readable.
CLOSE, READABLE = 0.01, 0.1
# Rules of a conflict whose partners are looked for when none is enough by itself.
PARTNERS = 3


@dataclass(frozen=True)
class Relaxation:
    """A change of the rules that makes a row's answer possible; it was solved again to see that.

    Attributes
    ----------
    text : str
        What to do, in a few words.
    cost : float
        Of the answer that there is then.
    words : dict or None
        Rules to give to `explain` in place of the old ones; None where only the contraction is
        another.
    contraction : float or None
        Where the explainer has to contract less: ``VoICE(..., contraction=...)``.
    members : tuple of Member
        What is relaxed.
    """

    text: str
    cost: float
    words: dict[str, Any] | None
    contraction: float | None
    members: tuple[Member, ...]

    def __str__(self) -> str:
        return f"{self.text} (cost {self.cost:.3g})"


@dataclass(frozen=True)
class Reason:
    """Why a row has no answer.

    Attributes
    ----------
    row, source, target : int
    conflict : list of Member
        Rules and rivals that cannot be satisfied together; without any one of them they can. (A
        column that is unlocked still keeps to its bounds and steps.) Empty where there is an
        answer.
    relaxations : list of Relaxation
        What would make an answer possible, cheapest first: single changes; where none is enough
        by itself, pairs.
    sentence : str
        What is said where there is no conflict.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> cf = voice.explain([[1.0, 5.0]], target=1, bounds={"age": (0, 1.5)})
    >>> reason = cf.reason(0)
    >>> [(member.kind, member.column, member.cluster) for member in reason.conflict]
    [('high', 'age', None), ('cluster', None, 0)]
    >>> print(reason.relaxations[0])
    allow age up to 2.01 (cost 0.5)
    >>> reason.relaxations[0].words
    {'bounds': {'age': (0, 2.01)}}
    """

    row: int
    source: int
    target: int
    conflict: list[Member]
    relaxations: list[Relaxation]
    sentence: str = ""

    @property
    def text(self) -> str:
        """The reason and the remedies, in plain words."""
        return self.sentence or f"{self._because()} {self._remedy()}"

    def __str__(self) -> str:
        return self.text

    def _because(self) -> str:
        move = f"move from cluster {self.source} to {self.target}"
        if self.source == self.target:
            move = f"get deeper into cluster {self.target}"
        return f"Row {self.row} cannot {move}: {joined(phrases(self.conflict), 'and')}."

    def _remedy(self) -> str:
        if not self.relaxations:
            if all(m.kind == "cluster" for m in self.conflict):
                return "No rule stands in the way: the other clusters leave no room for it."
            return "No believable change of one or two of these rules is enough."
        ways = joined([str(way) for way in self.relaxations], "or")
        if len(self.relaxations[0].members) > 1:
            return f"No single change of the rules is enough; it can if you {ways}."
        return f"It can if you {ways}."

    def _repr_html_(self) -> str:
        if not self.conflict:
            return f"<p>{escape(self.text)}</p>"
        parts = [f"<p>{escape(self._because())}</p>"]
        for head, lines in (
            ("Conflict", [m.text for m in self.conflict]),
            ("What would make it possible", [str(way) for way in self.relaxations]),
        ):
            items = "".join(f"<li>{escape(line)}</li>" for line in lines) or "<li>nothing</li>"
            parts.append(f"<p><strong>{head}</strong></p><ul>{items}</ul>")
        return f"<div>{''.join(parts)}</div>"


def phrases(conflict: list[Member]) -> list[str]:
    """Return what members say; those that say the same of several columns or clusters as one."""
    still = [str(member.column) for member in conflict if member.kind == "immutable"]
    close = [str(member.cluster) for member in conflict if member.kind == "cluster"]
    said = [f"{joined(still, 'and')} may not change"] if still else []
    said += [m.text for m in conflict if m.kind not in ("immutable", "cluster")]
    if close:
        many = len(close) > 1
        verb = "s {} are" if many else " {} is"
        said.append(f"cluster{verb.format(joined(close, 'and'))} always nearer")
    return said


def reason_of(outcome: Outcome, i: int) -> Reason:
    """Find out why answer i is infeasible; see `Counterfactuals.reason`."""
    row, source, target = (int(a[i]) for a in (outcome.row, outcome.source, outcome.target))

    def only(text: str) -> Reason:
        return Reason(row, source, target, [], [], text)

    if outcome.status[i] != Status.INFEASIBLE:
        return only(f"Row {row} is not infeasible: {sentence(rounded(outcome[[i]]), 0)}")
    if outcome.question.objective == PAIRWISE:
        return only("Only VoICE knows reasons; ask it instead of CFCLUST.")
    case = Case(outcome.question, row, target)
    if not case.impossible(case.draft):
        return only(f"Row {row} has no answer by a hair: rounding decides. Loosen any rule a bit.")
    conflict = case.minimal(case.draft)
    return Reason(row, source, target, conflict, relaxations(case, conflict))


def relaxations(case: Case, conflict: list[Member]) -> list[Relaxation]:
    """Find single changes that suffice, cheapest first; where there are none, the cheapest pair.

    Only members of the conflict come into question: whatever else is changed leaves it a conflict.
    """
    rules = [member for member in conflict if member.kind != "cluster"]
    found = [way for member in rules for way in _single(case, member)]
    if not found:
        pairs = [way for member in rules[:PARTNERS] for way in _pairs(case, member)]
        found = sorted(pairs, key=lambda way: way.cost)[:1]
    return sorted(found, key=lambda way: way.cost)


@dataclass(frozen=True)
class Edit:
    """A change of a draft, and how to say it."""

    text: str
    apply: Callable[[Draft], Draft]


def _single(case: Case, member: Member) -> Iterator[Relaxation]:
    edit = _edit(case, member, case.draft)
    if edit is not None:
        yield from _checked(case, edit.text, edit.apply(case.draft), (member,))


def _pairs(case: Case, first: Member) -> Iterator[Relaxation]:
    """Yield what suffices together with a relaxation of `first`."""
    open_ = case.without(case.draft, first)
    if not case.impossible(open_):
        return
    for second in case.minimal(open_):
        if second.kind == "cluster":
            continue
        other = _edit(case, second, open_)
        if other is None:
            continue
        one = _edit(case, first, other.apply(case.draft))
        if one is not None:
            both = one.apply(other.apply(case.draft))
            yield from _checked(case, f"{one.text} and {other.text}", both, (first, second))


def _checked(
    case: Case, text: str, draft: Draft, members: tuple[Member, ...]
) -> Iterator[Relaxation]:
    """Ask the relaxed question, and offer it only if it has an answer."""
    found = case.answer(draft)
    if found is not None:
        words = None if draft.words == case.draft.words else case.told(draft)
        yield Relaxation(text, float(found.cost[0]), words, draft.alpha, members)


def _edit(case: Case, member: Member, draft: Draft) -> Edit | None:
    """Return the least change of a member that is enough; None if leaving it out is not."""
    open_ = case.relaxed(draft, member)
    free = None if case.impossible(open_) else case.answer(open_)
    if free is None:
        return None
    for edit in (*_EDITS.get(member.kind, _plain)(case, member, draft, free),):
        if case.answer(edit.apply(draft)) is not None:
            return edit
    return _left_out(case, member)


def _left_out(case: Case, member: Member) -> Edit:
    name = member.column
    texts = {
        "immutable": f"unlock {name}",
        "step": f"allow any number for {name}",
        "levels": f"allow every level of {name}",
        "constraint": f"drop '{member.text}'",
        "max_changes": "allow any number of changes",
        "contraction": f"use the whole cell: {_contraction_text(case, 1.0)}",
    }
    if member.kind == "forbidden":
        text = f"allow {member.text.replace(' may not go ', ' to go ')}"
    elif member.kind == "direction":
        text = f"let {name} {'fall' if member.text.endswith('rise') else 'rise'} too"
    elif member.kind in texts:
        text = texts[member.kind]
    else:
        c = case.space.names.index(name)
        low, high = (number(side) for side in case.bounds(c, case.relaxed(case.draft, member)))
        text = f"allow {name} from {low} to {high}"
    return Edit(text, lambda draft: case.relaxed(draft, member))


# The least that is enough, kind by kind: edits to try, the most modest first.


def _plain(case: Case, member: Member, draft: Draft, free: Outcome) -> Iterator[Edit]:
    yield _left_out(case, member)


def _step_edits(case: Case, member: Member, draft: Draft, free: Any) -> Iterator[Edit]:
    name = member.column
    if case.space.columns[case.space.names.index(name)].whole and name in draft.words["steps"]:
        yield Edit(
            f"allow any whole number for {name}", lambda draft: draft.of_column("steps", name, None)
        )


def _level_edits(case: Case, member: Member, draft: Draft, free: Any) -> Iterator[Edit]:
    name = member.column
    level = free.after(case.space.names.index(name))[0]

    def allow(draft: Draft) -> Draft:
        return draft.of_column("levels", name, (*draft.words["levels"][name], level))

    yield Edit(f"allow {name} to become {level}", allow)


def _count_edits(case: Case, member: Member, draft: Draft, free: Any) -> Iterator[Edit]:
    few = case.answer(case.without(draft, member), objective="fewest")
    least = draft.words["max_changes"] + 1
    for most in range(least if few is None else max(least, int(few.n_changed[0])), least + 3):
        yield Edit(f"allow {most} changes", partial(Draft.saying, max_changes=most))


def _contraction_edits(case: Case, member: Member, draft: Draft, free: Any) -> Iterator[Edit]:
    def less(alpha: float) -> Draft:
        return replace(draft, alpha=alpha)

    enough = _least(lambda alpha: not case.impossible(less(alpha)), case.alpha, 1.0)
    for digits in (2, 3, 4):
        alpha = min(float(np.ceil(enough * 10**digits) / 10**digits), 1.0)
        if alpha < 1.0:
            text = f"contract less: {_contraction_text(case, alpha)}"
            yield Edit(text, partial(replace, alpha=alpha))


def _contraction_text(case: Case, alpha: float) -> str:
    margin = case.learned.margin
    also = f", margin={1.0 - alpha:.4g}" if margin > 1.0 - alpha else ""
    return f"VoICE(..., contraction={alpha:g}{also})"


def _bound_edits(case: Case, member: Member, draft: Draft, free: Any) -> Iterator[Edit]:
    """Move the side of the bounds that is in the way as far as it has to."""
    name = member.column
    c = case.space.names.index(name)
    low, high = case.bounds(c, draft)
    value = float(free.after(c)[0])
    upper = value > high
    if low <= value <= high:
        return
    word = "up" if upper else "down"

    def to(side: float, draft: Draft) -> Draft:
        before = draft.sides(name)
        return draft.of_column("bounds", name, (before[0], side) if upper else (side, before[1]))

    for side in _sides(case, c, draft, high if upper else low, value, to):
        text = f"allow {name} {word} to {number(side)}{_beyond(case, c, side)}"
        yield Edit(text, partial(to, side))


def _beyond(case: Case, c: int, side: float) -> str:
    """Say that a bound lies beyond what was seen, where it does."""
    low, high = case.space.columns[c].observed
    if low <= side <= high:
        return ""
    return f", beyond the {number(low)} to {number(high)} that were seen"


def _sides(
    case: Case,
    c: int,
    draft: Draft,
    bound: float,
    value: float,
    to: Callable[[float, Draft], Draft],
) -> Iterator[float]:
    """Yield sides that are likely to be enough, least first, from a bound to a value."""

    def enough(side: float) -> bool:
        return not case.impossible(to(side, draft))

    multiples = case.multiples(c)
    if multiples is not None and np.isfinite(bound):
        ends = np.rint(np.array([bound, value]) / multiples.step)
        least = _least_whole(lambda k: enough(float(multiples.at(k))), *ends)
        yield readable(float(multiples.at(least)), bound)
    elif np.isfinite(bound):
        yield readable(_least(enough, bound, value), bound)
        yield readable(value, bound)
    yield value


def _constraint_edits(case: Case, member: Member, draft: Draft, free: Any) -> Iterator[Edit]:
    """Loosen the one comparison of a text that is in the way."""
    rows = read_constraints(member.detail, case.space)
    after = {
        case.space.names[c]: float(free.after(c)[0])
        for c, column in enumerate(case.space.columns)
        if column.kind == "number"
    }
    broken = [row for row in rows if not row.holds(after)]
    if len(broken) != 1 or not all(map(_can_be_written, rows)):
        return
    row = broken[0]
    others = [_written(other) for other in rows if other is not row]

    def to(limit: float, draft: Draft) -> Draft:
        texts = [text for text in draft.words["constraints"] if text != member.detail]
        return draft.saying(constraints=[*texts, *others, _written(replace(row, limit=limit))])

    reached = float(sum(f * after[name] for name, f in row.coefficients.items()))
    limit = _least(lambda limit: not case.impossible(to(limit, draft)), row.limit, reached)
    for side in (readable(limit, row.limit), readable(reached, row.limit)):
        text = f"loosen '{member.text}' to '{_written(replace(row, limit=side))}'"
        yield Edit(text, partial(to, side))


_EDITS: dict[str, Callable[[Case, Member, Draft, Any], Iterator[Edit]]] = {
    "range": _bound_edits,
    "low": _bound_edits,
    "high": _bound_edits,
    "step": _step_edits,
    "levels": _level_edits,
    "max_changes": _count_edits,
    "contraction": _contraction_edits,
    "constraint": _constraint_edits,
}


def _least(enough: Callable[[float], bool], bound: float, known: float) -> float:
    """Find what is just enough, between a bound that is not and a value that is known to be."""
    below, above = bound, known
    while abs(above - below) > CLOSE * abs(above - bound):
        middle = below + (above - below) / 2
        if middle in (below, above):
            break
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def _least_whole(enough: Callable[[float], bool], bound: float, known: float) -> float:
    """Find the whole number that is just enough."""
    below, above = bound, known
    while abs(above - below) > max(1.0, CLOSE * abs(above - bound)):
        middle = np.rint(below + (above - below) / 2)
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def readable(value: float, bound: float) -> float:
    """Round a value away from a bound, to as few digits as hardly widen what lies between.

    Examples
    --------
    >>> from voicecf.reasons.reasons import readable
    >>> readable(61137.2, 60000.0), readable(-0.01234, 0.0)
    (61200.0, -0.013)
    """
    room = READABLE * abs(value - bound)
    if room == 0 or not np.isfinite(room):
        return value
    way = ROUND_CEILING if value > bound else ROUND_FLOOR
    place = Decimal(1).scaleb(int(np.floor(np.log10(room))))
    rounded = float((Decimal(value) / place).to_integral_value(way) * place)
    return rounded if abs(rounded - bound) >= abs(value - bound) else value


def _can_be_written(row: Constraint) -> bool:
    return not any("`" in str(name) for name in row.coefficients)


def _written(row: Constraint) -> str:
    """Write a constraint as the user would: columns on the left, a number on the right."""
    flip = all(factor < 0 for factor in row.coefficients.values())
    terms = ""
    for name, factor in row.coefficients.items():
        factor = -factor if flip else factor
        sign = "-" if factor < 0 else "+"
        times = "" if abs(factor) == 1 else f"{_digits(abs(factor))}*"
        terms += f" {sign} {times}{_quoted(str(name))}"
    left = terms[3:] if terms.startswith(" + ") else f"-{terms[3:]}"
    return f"{left} {'>=' if flip else '<='} {_digits(-row.limit if flip else row.limit)}"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value == np.rint(value) and abs(value) < 1e15 else repr(float(value))
