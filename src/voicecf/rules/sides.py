"""Bounds as the user gives them: pairs of sides, each a number, open, or relative to the row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import inf, isfinite, isnan
from numbers import Real
from types import EllipsisType
from typing import Any, Literal

import numpy as np

from voicecf.errors import BoundsError
from voicecf.geometry.arrays import Array
from voicecf.table.frames import plain_item

RELATIVE = re.compile(r"\s*([+-])\s*((?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
SIDES = (
    "a number, None (open), ... (the explainer's bound), or text relative to the row's value: "
    "'+500', '-10%'"
)
# What a TOML file has in place of Python's ... and None.
KEEP, OPEN = "...", "open"


@dataclass(frozen=True)
class Side:
    """One side of a bound: a number, or an amount relative to the row's value.

    Attributes
    ----------
    amount : float
    unit : "value", "shift" or "share"
        The bound is the amount, in the user's units ("value"); the row's value plus the amount
        ("shift"); or the row's value plus that many per cent of its magnitude ("share").
    """

    amount: float
    unit: Literal["value", "shift", "share"] = "value"

    @property
    def relative(self) -> bool:
        """Whether the side depends on the row's value."""
        return self.unit != "value"

    def at(self, values: Array) -> Array:
        """Return the side for rows of these values; one number if it is the same for all rows."""
        if self.unit == "value":
            return np.array([self.amount])
        if self.unit == "shift":
            return values + self.amount
        return values + self.amount * np.abs(values) / 100


def read_pair(bounds: Any, where: str) -> tuple[Any, Any]:
    """Check a pair of sides and return it in one form: None for open, ``...`` for "..."."""
    pair = tuple(map(plain_item, bounds)) if is_several(bounds) else ()
    if len(pair) != 2:
        raise BoundsError(f"{where}: {bounds!r} is not a pair (lo, hi). A side is {SIDES}.")
    low, high = ({KEEP: ..., OPEN: None}.get(s, s) if isinstance(s, str) else s for s in pair)
    low, high = None if low == -inf else low, None if high == inf else high
    _check_sides(read_side(low, -inf, where), read_side(high, inf, where), where)
    return low, high


def read_side(side: Any, open_end: float, where: str) -> Side | None:
    """Read one side; None for ``...``, which leaves the explainer's bound in place."""
    if isinstance(side, EllipsisType):
        return None
    if side is None:
        return Side(open_end)
    if isinstance(side, str):
        match = RELATIVE.fullmatch(side)
        if match is None or not isfinite(float(match[2])):
            raise BoundsError(f"{where}: {side!r} is not a side. A side is {SIDES}.")
        sign, amount, percent = match.groups()
        return Side(float(sign + amount), "share" if percent else "shift")
    number = as_float(side)
    if number is None:
        raise BoundsError(f"{where}: {side!r} is not a side. A side is {SIDES}.")
    if isnan(number):
        raise BoundsError(f"{where}: NaN is not a bound; use None for an open side.")
    if number == -open_end:
        raise BoundsError(f"{where}: no number lies beyond {side!r}; use None for an open side.")
    return Side(number)


def _check_sides(low: Side | None, high: Side | None, where: str) -> None:
    """Refuse a lower side above the upper one; sides of different units cannot be compared."""
    if low is None or high is None or low.unit != high.unit:
        return
    if low.amount > high.amount:
        raise BoundsError(
            f"{where}: ({low.amount:g}, {high.amount:g}) is upside down; give (lo, hi), lo first."
        )


def read_sides(sides: Any, d: int) -> tuple[Array, Array]:
    """Read bounds of all d columns: a pair of numbers, or of arrays of d numbers."""
    try:
        low, high = sides
        low, high = -inf if low is None else low, inf if high is None else high
        lo, hi = (np.broadcast_to(np.asarray(s, np.float64), (d,)).copy() for s in (low, high))
    except (TypeError, ValueError):
        raise BoundsError(
            f'bounds must be "data", None, or a pair (lo, hi) of numbers or of {d} numbers each.'
        ) from None
    for i in range(d):
        read_pair((lo[i], hi[i]), f"bounds of column {i}")
    return lo, hi


def is_several(value: Any) -> bool:
    """Tell whether a value is a collection of values; text and dicts are not."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def as_number(value: Any) -> float | None:
    """Return a real number as a float; None if it is not one, a truth value, or too large."""
    value = plain_item(value)
    return None if isinstance(value, bool) else as_float(value)


def as_float(value: Any) -> float | None:
    """Return a real number or a truth value as a float; None if it is neither, or too large."""
    try:
        return float(value) if isinstance(value, Real) else None
    except OverflowError:
        return None
