"""The rules, bounds and rivals that an answer has to respect, each with a text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from voicecf.output.calling import cluster_name
from voicecf.output.sentences import as_usual
from voicecf.output.wording import counted, figure, joined, level
from voicecf.reasons.case import Case
from voicecf.table.frames import is_missing

Kind = Literal[
    "plausible", "contraction", "range", "step", "cluster", "low", "high", "direction", "levels",
    "forbidden", "least", "max_changes", "constraint", "together", "immutable",
]  # fmt: skip


@dataclass(frozen=True)
class Member:
    """One rule, bound or rival that an answer has to respect.

    Attributes
    ----------
    text : str
        A phrase such as ``"age may not change"``.
    kind : str
        "immutable", "direction", "low" and "high" (the user's bounds), "range" (the explainer's
        own), "step", "least", "levels", "forbidden", "max_changes", "constraint", "together",
        "plausible",
        "contraction", or "cluster": a rival that always wins.
    column : object
        The column that it is about; None if it is not about one column.
    cluster : int or None
        The rival, for kind "cluster"; -1 for any of several.
    detail : object
        A rule about several columns as the user gave it, the pair (from, to) of a forbidden
        transition, or, for a column that `mutable` does not list, those that it lists.
    """

    text: str
    kind: Kind
    column: Any = None
    cluster: int | None = None
    detail: Any = field(default=None, repr=False)


def members_of(case: Case) -> list[Member]:
    """Return everything that an answer to the original question has to respect."""
    found = [m for c in range(len(case.space.columns)) for m in _column_members(case, c)]
    rules = case.original.rules
    if rules["max_changes"] is not None:
        most = rules["max_changes"]
        found.append(Member(f"at most {counted(most, 'column')} may change", "max_changes"))
    for text in dict.fromkeys(rules["constraints"]):
        found.append(Member(text.strip(), "constraint", detail=text))
    for entry, rule in zip(rules["together"], case.unions, strict=True):
        found.append(Member(f"'{rule.text}' must hold", "together", detail=entry))
    if rules["plausible"] is not None:
        whose = as_usual(case.question, case.row, case.target)
        found.append(Member(f"the answer must be as usual as {whose}", "plausible"))
    if case.alpha < 1.0:
        where = f"the answer must lie well inside {cluster_name(case.learned, case.target)}"
        found.append(Member(f"{where} (contraction {figure(case.alpha)})", "contraction"))
    for rival in case.rivals:
        text = f"{cluster_name(case.learned, rival)} is always {case.learned.partition.wins}"
        found.append(Member(text, "cluster", cluster=rival))
    return found


def _column_members(case: Case, c: int) -> Iterator[Member]:
    rule, name = case.column_rules[c], case.space.names[c]
    if rule.fixed:
        # Its other rules are no members: they still hold once it is unlocked, as in `explain`.
        mutable = tuple(case.space.names[at] for at in case.mutable)
        yield Member(f"{name} may not change", "immutable", name, detail=mutable)
        return
    if rule.direction:
        verb = "rise" if rule.direction > 0 else "fall"
        yield Member(f"{name} may only {verb}", "direction", name)
    if case.space.columns[c].kind == "category":
        yield from _category_members(case, c)
    else:
        yield from _number_members(case, c)


def _number_members(case: Case, c: int) -> Iterator[Member]:
    name = case.space.names[c]
    yield from _bound_members(case, c)
    range_text = _range_text(case, c)
    if range_text:
        yield Member(f"{name} must be {range_text}", "range", name)
    multiples = case.multiples(c)
    if multiples is not None:
        whole = multiples.increment == 1
        text = "a whole number" if whole else f"a multiple of {number(multiples.increment)}"
        yield Member(f"{name} must be {text}", "step", name)
    least = case.column_rules[c].least
    if least > 0:
        text = f"{name} must change by at least {number(least)} or not at all"
        yield Member(text, "least", name)


def _bound_members(case: Case, c: int) -> Iterator[Member]:
    """Yield the bounds that the user set, lower first."""
    name, sides = case.space.names[c], case.column_rules[c].sides
    values, own_bounds = case.bounds(c, case.original), _own_bounds(case, c)
    kinds: tuple[Kind, Kind] = ("low", "high")
    for at, (kind, phrase) in enumerate(zip(kinds, ("at least", "at most"), strict=True)):
        side, value = sides[at], values[at]
        if side is None or not np.isfinite(value):
            continue
        if side.relative and value == own_bounds[at]:
            continue  # the explainer's own bound is tighter
        relative = case.original.sides(name)[at]
        shift = f" ({relative})" if isinstance(relative, str) else ""
        yield Member(f"{name} must be {phrase} {number(value)}{shift}", kind, name)


def _own_bounds(case: Case, c: int) -> tuple[float, float]:
    """Return the explainer's own bounds of a column."""
    return float(case.learned.bounds.lo[c]), float(case.learned.bounds.hi[c])


def _range_text(case: Case, c: int) -> str:
    """Describe the explainer's own bounds where they hold; an empty text where none does."""
    values = _own_bounds(case, c)
    low, high = (
        number(value) if (side is None or side.relative) and np.isfinite(value) else ""
        for side, value in zip(case.column_rules[c].sides, values, strict=True)
    )
    observed = values == case.space.columns[c].observed
    if low and high:
        origin = "the range of the data" if observed else "the explainer's bounds"
        return f"between {low} and {high} ({origin})"
    if low:
        origin = "the smallest value in the data" if observed else "the explainer's lower bound"
        return f"at least {low} ({origin})"
    origin = "the largest value in the data" if observed else "the explainer's upper bound"
    return f"at most {high} ({origin})" if high else ""


def _category_members(case: Case, c: int) -> Iterator[Member]:
    rule, column = case.column_rules[c], case.space.columns[c]
    if rule.levels is not None:
        levels = joined([level(column.levels[i]) for i in rule.levels], "or")
        yield Member(f"{column.name} may only become {levels}", "levels", column.name)
    own = case.own_level(c)
    pairs = case.original.rules["forbidden"].get(column.name, ())
    for pair, (start, end) in zip(pairs, rule.forbidden, strict=True):
        before, after = column.levels[start], column.levels[end]
        if before == own or (is_missing(before) and is_missing(own)):
            change = f"from {'missing' if is_missing(before) else before} to {after}"
            text = f"{column.name} may not change {change}"
            yield Member(text, "forbidden", column.name, detail=pair)


def number(value: float) -> str:
    """Format a bound: with six digits, enough to type it in again.

    Examples
    --------
    >>> from voicecf.reasons.member import number
    >>> number(61200.0), number(0.1234567)
    ('61,200', '0.123457')
    """
    return figure(value, 6)
