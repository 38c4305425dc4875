"""The rule `bounds`: the least and the largest new value of a number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import Any, ClassVar

import numpy as np

from voicecf.errors import BoundsError, OptionError
from voicecf.rules.condition import Asked, Condition, LeftOut, Member, Remedied
from voicecf.rules.edits import Edit, least_enough, least_whole_enough, number, readable
from voicecf.rules.rule import ByColumn, number_of
from voicecf.rules.sides import OPEN, read_pair, read_side
from voicecf.rules.variant import Variant
from voicecf.table.column import Column


class Bounds(ByColumn):
    """The least and the largest new value.

    A side is a number; None for open; ``...`` for the explainer's bound; or text relative to the
    row's value, ``"+500"`` or ``"-10%"`` (of its magnitude). A relative side never goes beyond the
    explainer's bound.
    """

    word = "bounds"
    takes = "dict of column to (lo, hi)"
    none = OPEN
    help = (
        "a side is a number, empty if it is open, or ... for the observed one; +500, -10%% and "
        "row-500 are relative to the row"
    )
    metavar = "C=LO:HI"
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

    def column_members(self, case: Asked, c: int) -> Iterator[Member]:
        for side in (LOW, HIGH):
            yield from side.column_members(case, c)
        yield from OWN.column_members(case, c)


class BoundsCondition(Condition):
    """Sides of a column's bounds, which are moved no further than necessary."""

    what: ClassVar[str] = "bounds"
    sides: ClassVar[tuple[int, ...]] = (0, 1)

    def relaxed(self, case: Asked, variant: Variant, member: Member) -> Variant:
        """Return the variant without a member, open bounds closed again at plausible values."""
        less, name = self.without(case, variant, member), member.column
        c = case.place(name)
        sides, after = list(sides_of(less, name)), case.bounds(c, less)
        for at, before in enumerate(case.bounds(c, variant)):
            if np.isinf(after[at]) and np.isfinite(before):
                sides[at] = _plausible_side(case, c, at, before)
        return less.with_column_rule("bounds", name, tuple(sides))

    def removal(self, case: Asked, member: Member) -> str:
        name = member.column
        c = case.place(name)
        bounds = case.bounds(c, self.relaxed(case, case.original, member))
        moved = [at for at in self.sides if np.isfinite(bounds[at])]
        if not moved:
            return f"remove the {self.what} of {name}"
        ways = " and ".join(f"{('down', 'up')[at]} to {number(bounds[at])}" for at in moved)
        beyond = (_outside_text(case, c, bounds[at]) for at in moved)
        return f"allow {name} {ways}{next(filter(None, beyond), '')}"

    def edits(
        self, case: Asked, member: Member, variant: Variant, answer: Remedied
    ) -> Iterator[Edit]:
        """Yield edits that move the violated side of the bounds no further than necessary."""
        name = member.column
        c = case.place(name)
        low, high = case.bounds(c, variant)
        value = float(answer.after(c)[0])
        if low <= value <= high:
            return
        upper = value > high

        def with_side(side: float, variant: Variant) -> Variant:
            before = sides_of(variant, name)
            sides = (before[0], side) if upper else (side, before[1])
            return variant.with_column_rule("bounds", name, sides)

        def enough(side: float) -> bool:
            return not case.impossible(with_side(side, variant))

        for side in _sides(case, c, high if upper else low, value, enough):
            direction = "up" if upper else "down"
            text = f"allow {name} {direction} to {number(side)}{_outside_text(case, c, side)}"
            yield Edit(text, partial(with_side, side))


class Low(BoundsCondition):
    """The lower bound that the user set."""

    kind = "low"
    what = "lower bound"
    sides = (0,)
    phrase: ClassVar[str] = "at least"

    def column_members(self, case: Asked, c: int) -> Iterator[Member]:
        """Yield the bound of a column, if the user set one that is in force."""
        (at,) = self.sides
        side, value = case.terms.columns[c].sides[at], case.bounds(c, case.original)[at]
        if side is None or not np.isfinite(value):
            return
        if side.relative and value == _own_bounds(case, c)[at]:
            return  # the explainer's own bound is tighter
        name = case.space.names[c]
        relative = sides_of(case.original, name)[at]
        shift = f" ({relative})" if isinstance(relative, str) else ""
        yield self.member(f"{name} must be {self.phrase} {number(value)}{shift}", name)

    def without(self, case: Asked, variant: Variant, member: Member) -> Variant:
        """Remove the side; a relative one leaves the explainer's own bound."""
        (at,) = self.sides
        sides = list(sides_of(variant, member.column))
        sides[at] = ... if isinstance(sides[at], str) else None
        return variant.with_column_rule("bounds", member.column, tuple(sides))


class High(Low):
    """The upper bound that the user set."""

    kind = "high"
    what = "upper bound"
    sides = (1,)
    phrase = "at most"


class OwnBounds(BoundsCondition):
    """The explainer's own bounds of a column."""

    kind = "range"
    left_out = LeftOut.OWN_BOUNDS

    def column_members(self, case: Asked, c: int) -> Iterator[Member]:
        """Yield the explainer's bounds of a column where they hold."""
        values = _own_bounds(case, c)
        low, high = (
            number(value) if (side is None or side.relative) and np.isfinite(value) else ""
            for side, value in zip(case.terms.columns[c].sides, values, strict=True)
        )
        observed = values == case.space.columns[c].observed
        if low and high:
            origin = "the range of the data" if observed else "the explainer's bounds"
            text = f"between {low} and {high} ({origin})"
        elif low:
            origin = "the smallest value in the data" if observed else "the explainer's lower bound"
            text = f"at least {low} ({origin})"
        elif high:
            origin = "the largest value in the data" if observed else "the explainer's upper bound"
            text = f"at most {high} ({origin})"
        else:
            return
        name = case.space.names[c]
        yield self.member(f"{name} must be {text}", name)

    def without(self, case: Asked, variant: Variant, member: Member) -> Variant:
        """Remove the explainer's own bounds; bounds relative to the row become numbers."""
        name = member.column
        own = np.array([case.own_number(case.place(name))])
        sides = list(sides_of(variant, name))
        for at, side in enumerate(sides):
            found = read_side(side, (-inf, inf)[at], "bounds")
            if found is None:
                sides[at] = None
            elif found.relative and np.isfinite(own[0]):
                sides[at] = float(found.at(own)[0])
        return variant.with_column_rule("bounds", name, tuple(sides))


LOW, HIGH, OWN = Low(), High(), OwnBounds()


def sides_of(variant: Variant, name: Any) -> tuple[Any, Any]:
    """Return the bounds of a column as the user gave them; an ellipsis where not given."""
    low, high = variant.rules.bounds.get(name, (..., ...))
    return low, high


def _own_bounds(case: Asked, c: int) -> tuple[float, float]:
    """Return the explainer's own bounds of a column."""
    return float(case.learned.bounds.lo[c]), float(case.learned.bounds.hi[c])


def _plausible_side(case: Asked, c: int, at: int, bound: float) -> float | None:
    """Return the widest plausible bound, or the present one if that is wider."""
    widest = _plausible_bounds(case, c)[at]
    if widest is None:
        return None
    return max(widest, bound) if at else min(widest, bound)


def _plausible_bounds(case: Asked, c: int) -> tuple[float | None, float | None]:
    """Return the observed range, widened on either side by its width; None if nothing was observed.

    A range of one sign is not widened past zero, and the row's own value is always inside.
    """
    low, high = case.space.columns[c].observed
    if not np.isfinite(high - low):
        return None, None
    width = high - low or max(abs(low), 1.0)
    least = max(low - width, 0.0) if low >= 0 else low - width
    most = min(high + width, 0.0) if high <= 0 else high + width
    own = case.own_number(c)
    return float(np.fmin(least, own)), float(np.fmax(most, own))


def _outside_text(case: Asked, c: int, side: float) -> str:
    """Say that a bound lies outside the observed range, where it does."""
    low, high = case.space.columns[c].observed
    if low <= side <= high:
        return ""
    return f", outside the observed range of {number(low)} to {number(high)}"


def _sides(
    case: Asked, c: int, bound: float, value: float, enough: Callable[[float], bool]
) -> Iterator[float]:
    """Yield bounds that are likely to be enough, from the present one towards a value."""
    multiples = case.multiples(c)
    if multiples is not None and np.isfinite(bound):
        ends = np.rint(np.array([bound, value]) / multiples.increment)
        least = least_whole_enough(lambda k: enough(float(multiples.at(k))), *ends)
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
