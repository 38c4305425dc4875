"""Bounds in the user's words: pairs of sides, each a number, open, or relative to the row."""

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

RELATIVE = re.compile(r"\s*([+-])\s*((?:\d+(?:_\d+)*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")
SIDES = "a number, None (open), ... (as it was), or text relative to the row: '+500', '-10%'"
# How a file says what TOML has no value for.
KEEP, OPEN = "...", "open"


@dataclass(frozen=True)
class Side:
    """One side of a bound: a number, or a distance from the row's own value.

    Attributes
    ----------
    amount : float
    unit : "value", "shift" or "share"
        A number in the user's units; so much more than the row's own value; so many per cent of
        its size more.
    """

    amount: float
    unit: Literal["value", "shift", "share"] = "value"

    @property
    def relative(self) -> bool:
        """Whether it depends on the row."""
        return self.unit != "value"

    def at(self, own: Array | None) -> Array:
        """Return the side for each row, of which `own` are the values; one number for all."""
        if self.unit == "value" or own is None:
            return np.array([self.amount])
        if self.unit == "shift":
            return own + self.amount
        return own + self.amount * np.abs(own) / 100


def read_pair(said: Any, where: str) -> tuple[Any, Any]:
    """Read a pair of sides, as words; None where open."""
    pair = tuple(map(plain_item, said)) if is_several(said) else ()
    if len(pair) != 2:
        raise BoundsError(f"{where}: {said!r} is no pair (lo, hi). A side is {SIDES}.")
    low, high = ({KEEP: ..., OPEN: None}.get(s, s) if isinstance(s, str) else s for s in pair)
    low, high = None if low == -inf else low, None if high == inf else high
    _check_sides(read_side(low, -inf, where), read_side(high, inf, where), where)
    return low, high


def read_side(said: Any, open_end: float, where: str) -> Side | None:
    """Read one side; None where the explainer's own holds."""
    if isinstance(said, EllipsisType):
        return None
    if said is None:
        return Side(open_end)
    if isinstance(said, str):
        found = RELATIVE.fullmatch(said)
        if found is None or not isfinite(float(found[2])):
            raise BoundsError(f"{where}: {said!r} is no side. A side is {SIDES}.")
        amount = float(found[1] + found[2])
        return Side(amount, "share" if found[3] else "shift")
    number = as_float(said)
    if number is None:
        raise BoundsError(f"{where}: {said!r} is no side. A side is {SIDES}.")
    if isnan(number):
        raise BoundsError(f"{where}: NaN is no bound; use None for an open side.")
    if number == -open_end:
        raise BoundsError(f"{where}: no number lies beyond {said!r}; use None where open.")
    return Side(number)


def _check_sides(low: Side | None, high: Side | None, where: str) -> None:
    comparable = low is not None and high is not None and low.unit == high.unit
    if comparable and low.amount > high.amount:  # type: ignore[union-attr]
        low_text, high_text = (f"{s.amount:g}" for s in (low, high) if s is not None)
        raise BoundsError(f"{where}: ({low_text}, {high_text}) is upside down; give (lo, hi).")


def read_sides(sides: Any, d: int) -> tuple[Array, Array]:
    """Read bounds of all columns: a pair of numbers or of arrays of d numbers."""
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
    """Tell whether a value is a list of several."""
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes, Mapping))


def plain_item(value: Any) -> Any:
    """Return a number or text of numpy as Python's own."""
    return value.item() if isinstance(value, np.generic) else value


def as_float(value: Any) -> float | None:
    """Read a real number; None where it is none, or too large for one."""
    try:
        return float(value) if isinstance(value, Real) else None
    except OverflowError:
        return None
