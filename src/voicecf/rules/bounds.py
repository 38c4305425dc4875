"""The rule `bounds`: the least and the largest new value of a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any

import numpy as np

from voicecf.errors import BoundsError, OptionError
from voicecf.rules.condition import Edit, Edits, LeftOut, Member, Members, Situation, Variant
from voicecf.rules.edits import least_enough, number, readable
from voicecf.rules.rule import ByColumn, number_of, several
from voicecf.rules.sides import OPEN, read_pair, read_side
from voicecf.table.column import Column

# The sides that a kind of member is about: 0 is the lower one.
SIDES_OF = {"low": (0,), "high": (1,), "range": (0, 1)}


class Bounds(ByColumn):
    """The least and the largest new value.

    A side is a number; None for open; ``...`` for the explainer's bound; or text relative to the
    row's value, ``"+500"`` or ``"-10%"`` (of its magnitude). A relative side never goes beyond the
    explainer's bound.
    """

    word = kind = "bounds"
    takes = "dict of column to (lo, hi)"
    none = OPEN
    help = (
        "a side is a number, empty if it is open, or ... for the observed one; +500, -10%% and "
        "row-500 are relative to the row"
    )
    arguments = several("C=LO:HI")
    example = '"income": (0, 90_000)'
    command_example = '--bounds income=0:90000 or --bounds "income=-10%:+500"'
    column_kind = "number"
    instead = "levels"
    error = BoundsError

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        return read_pair(value, where)

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        where = f"bounds of {column.name!r}"
        return {"low": read_side(value[0], -inf, where), "high": read_side(value[1], inf, where)}

    @property
    def contractible(self) -> bool:
        return not any(isinstance(side, str) for pair in self.value.values() for side in pair)

    @classmethod
    def parse(cls, text: str, where: str) -> list[Any]:
        sides = text.split(":")
        if len(sides) != 2:
            raise OptionError(f"{where}: use COLUMN=LO:HI, such as {cls.command_example}.")
        return [_parsed_side(side.strip(), where) for side in sides]

    def column_members(self, case: Situation, c: int) -> Members:
        """Yield the user's bounds of a column that are in force, then the explainer's own."""
        name, sides, own_bounds = case.space.names[c], case.terms.columns[c].sides, _own(case, c)
        for at, value in enumerate(case.bounds(c, case.original)):
            side, phrase = sides[at], ("at least", "at most")[at]
            if side is None or not np.isfinite(value):
                continue
            if side.relative and value == own_bounds[at]:
                continue  # the explainer's own bound is tighter
            relative = case.original.sides(name)[at]
            shift = f" ({relative})" if isinstance(relative, str) else ""
            text = f"{name} must be {phrase} {number(value, case.space.columns[c])}{shift}"
            yield self.member(text, name, kind=("low", "high")[at])
        text = _range_text(case, c)
        if text:
            left_out = LeftOut.OWN_BOUNDS
            yield self.member(f"{name} must be {text}", name, kind="range", left_out=left_out)

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        """Remove a side, or the explainer's own bounds.

        A relative side leaves the explainer's bound; without that, it becomes a number.
        """
        sides = list(variant.sides(member.column))
        if member.kind != "range":
            at = SIDES_OF[member.kind][0]
            sides[at] = ... if isinstance(sides[at], str) else None
            return variant.with_column_rule("bounds", member.column, tuple(sides))
        own = np.array([case.own_number(case.place(member.column))])
        for at, side in enumerate(sides):
            found = read_side(side, (-inf, inf)[at], "bounds")
            if found is None:
                sides[at] = None
            elif found.relative and np.isfinite(own[0]):
                sides[at] = float(found.at(own)[0])
        return variant.with_column_rule("bounds", member.column, tuple(sides))

    def relaxed(self, case: Situation, variant: Variant, member: Member) -> Variant:
        """Return the variant without a member, open bounds closed again at plausible values."""
        less, name = self.without(case, variant, member), member.column
        c = case.place(name)
        sides, after = list(less.sides(name)), case.bounds(c, less)
        for at, before in enumerate(case.bounds(c, variant)):
            if np.isinf(after[at]) and np.isfinite(before):
                sides[at] = _plausible_side(case, c, at, before)
        return less.with_column_rule("bounds", name, tuple(sides))

    def removal(self, case: Situation, member: Member) -> str:
        name = member.column
        c = case.place(name)
        bounds = case.bounds(c, self.relaxed(case, case.original, member))
        moved = [at for at in SIDES_OF[member.kind] if np.isfinite(bounds[at])]
        if not moved:
            side = {"low": "lower bound", "high": "upper bound"}.get(member.kind, "bounds")
            return f"remove the {side} of {name}"
        column = case.space.columns[c]
        ways = " and ".join(f"{('down', 'up')[at]} to {number(bounds[at], column)}" for at in moved)
        beyond = (_outside_text(case, c, bounds[at]) for at in moved)
        return f"allow {name} {ways}{next(filter(None, beyond), '')}"

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        """Yield edits that move the violated side of the bounds no further than necessary."""
        name = member.column
        c = case.place(name)
        low, high = case.bounds(c, variant)
        value = float(answer.after(c)[0])
        if low <= value <= high:
            return
        upper = value > high

        def with_side(side: float, variant: Variant) -> Variant:
            before = variant.sides(name)
            sides = (before[0], side) if upper else (side, before[1])
            return variant.with_column_rule("bounds", name, sides)

        def enough(side: float) -> bool:
            return not case.impossible(with_side(side, variant))

        for side in _sides(case, c, high if upper else low, value, enough):
            direction = "up" if upper else "down"
            end = f"{number(side, case.space.columns[c])}{_outside_text(case, c, side)}"
            yield Edit(f"allow {name} {direction} to {end}", partial(with_side, side))


def _range_text(case: Situation, c: int) -> str:
    """Describe the explainer's own bounds where they hold; an empty text where none does."""
    values, column = _own(case, c), case.space.columns[c]
    low, high = (
        number(value, column) if (side is None or side.relative) and np.isfinite(value) else ""
        for side, value in zip(case.terms.columns[c].sides, values, strict=True)
    )
    observed = values == column.observed
    if low and high:
        origin = "the range of the data" if observed else "the explainer's bounds"
        return f"between {low} and {high} ({origin})"
    if low:
        origin = "the smallest value in the data" if observed else "the explainer's lower bound"
        return f"at least {low} ({origin})"
    origin = "the largest value in the data" if observed else "the explainer's upper bound"
    return f"at most {high} ({origin})" if high else ""


def _own(case: Situation, c: int) -> tuple[float, float]:
    """Return the explainer's own bounds of a column."""
    return float(case.learned.bounds.lo[c]), float(case.learned.bounds.hi[c])


def _plausible_side(case: Situation, c: int, at: int, bound: float) -> float | None:
    """Return an end of the observed range, widened by its width; None if nothing was observed.

    A range of one sign is not widened past zero. The row's own value and the present bound are
    always inside.
    """
    low, high = case.space.columns[c].observed
    if not np.isfinite(high - low):
        return None
    width, own = high - low or max(abs(low), 1.0), case.own_number(c)
    if at:
        most = min(high + width, 0.0) if high <= 0 else high + width
        return max(float(np.fmax(most, own)), bound)
    least = max(low - width, 0.0) if low >= 0 else low - width
    return min(float(np.fmin(least, own)), bound)


def _outside_text(case: Situation, c: int, side: float) -> str:
    """Say that a bound lies outside the observed range, where it does."""
    column = case.space.columns[c]
    low, high = column.observed
    if low <= side <= high:
        return ""
    return f", outside the observed range of {number(low, column)} to {number(high, column)}"


def _sides(
    case: Situation, c: int, bound: float, value: float, enough: Callable[[float], bool]
) -> Iterator[float]:
    """Yield bounds that are likely to be enough, from the present one towards a value."""
    multiples = case.multiples(c)
    if multiples is not None and np.isfinite(bound):
        first, last = np.rint(np.array([bound, value]) / multiples.increment)
        least = least_enough(lambda k: enough(float(multiples.at(k))), first, last, whole=True)
        yield readable(float(multiples.at(least)), bound)
    elif np.isfinite(bound):
        yield readable(least_enough(enough, bound, value), bound)
        yield readable(value, bound)
    yield value


def _parsed_side(text: str, where: str) -> Any:
    if text in ("", OPEN):
        return OPEN
    if text == "..." or text.startswith("+") or text.endswith("%"):
        return text
    if text.startswith("row"):
        return text.removeprefix("row").strip() or "+0"
    return number_of(text, where)
