"""The plainest rules, quickly read: bounds for all rows, and columns that keep their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.errors import BoundsError, ColumnError, known_column
from voicecf.geometry.region import Array


@dataclass(frozen=True)
class Box:
    """A box for the whole data and the columns that keep each row's own value.

    Attributes
    ----------
    lo, hi : array of shape (d,)
    immutable : array of shape (d,) of bool
    """

    lo: Array
    hi: Array
    immutable: NDArray[np.bool_]

    @classmethod
    def read(
        cls, names: list[Any], lo: Array, hi: Array, immutable: Any = (), bounds: Any = None
    ) -> Box:
        """Check the user's words; `lo` and `hi` hold where `bounds` says nothing."""
        fixed = np.zeros(len(names), dtype=np.bool_)
        for name in _columns(immutable, len(names)):
            fixed[known_column(name, names, "immutable")] = True
        if bounds is not None:
            if not isinstance(bounds, Mapping):
                raise BoundsError('bounds must be a dict such as {"income": (0, 90_000)}.')
            lo, hi = lo.copy(), hi.copy()
            for name, pair in bounds.items():
                i = known_column(name, names, "bounds")
                lo[i], hi[i] = check_pair(pair, f"bounds of {name!r}")
        return cls(lo, hi, fixed)

    def box(self, points: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Turn a box for all rows into one a row where some column keeps the row's own value.

        An immutable column may lie outside the bounds: it is a fact, and stays one.
        """
        if not self.immutable.any():
            return lo, hi
        return np.where(self.immutable, points, lo), np.where(self.immutable, points, hi)


def check_pair(pair: Any, where: str) -> tuple[float, float]:
    """Read one (lo, hi) pair; None is open."""
    try:
        low, high = list(pair) if not isinstance(pair, str) else [pair]
        low = -np.inf if low is None else float(low)
        high = np.inf if high is None else float(high)
    except (TypeError, ValueError):
        raise BoundsError(f"{where}: {pair!r} is no pair (lo, hi) of numbers or None.") from None
    if np.isnan(low) or np.isnan(high):
        raise BoundsError(f"{where}: NaN is no bound; use None for an open side.")
    if low > high:
        raise BoundsError(f"{where}: ({low:g}, {high:g}) is upside down; give (lo, hi).")
    if low == np.inf or high == -np.inf:
        raise BoundsError(f"{where}: no number lies at ({low:g}, {high:g}); use None where open.")
    return low, high


def check_sides(sides: Any, d: int) -> tuple[Array, Array]:
    """Read bounds of all columns: a pair of numbers or of arrays of d numbers."""
    try:
        low, high = sides
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        lo, hi = (np.broadcast_to(np.asarray(s, np.float64), (d,)).copy() for s in (low, high))
    except (TypeError, ValueError):
        raise BoundsError(
            f'bounds must be "data", None, or a pair (lo, hi) of numbers or of {d} numbers each.'
        ) from None
    for i in range(d):
        check_pair((lo[i], hi[i]), f"bounds of column {i}")
    return lo, hi


def _columns(given: Any, d: int) -> Iterable[Any]:
    """Read columns: one, several, or a mask of all."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    columns = [c.item() if isinstance(c, np.generic) else c for c in given]
    if columns and all(isinstance(c, bool) for c in columns):
        if len(columns) != d:
            raise ColumnError(f"a mask of columns needs {d} entries; this one has {len(columns)}.")
        return [i for i, chosen in enumerate(columns) if chosen]
    return columns
