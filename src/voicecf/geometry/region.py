"""A region: linear rows and a box. Everything that a user can ask for is said as one."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Region:
    """The points z with ``rows @ (z - origin) <= offsets`` and ``lo <= z <= hi``.

    Parameters
    ----------
    rows : array of shape (m, d)
        Normals of the half-spaces, of any length; a zero row asks ``0 <= offset``.
    offsets : array of shape (m,)
        Right-hand sides.
    lo, hi : array of shape (d,) or (n, d), or a number
        The box; infinite where open, equal where a coordinate is fixed. With n rows it is one box
        a point.
    origin : array of shape (d,) or a number
        Where the rows are measured from. A centroid as origin keeps the digits of data that lie
        far from zero.
    guard : array of shape (5, m), optional
        How far behind each row an answer must stay so that a model's own arithmetic agrees; see
        `voicecf.geometry.cell.Cell.region`.

    Examples
    --------
    >>> from voicecf.geometry.region import Region
    >>> half_plane = Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0)
    >>> half_plane.contains([[0.2, 0.7], [0.8, 0.7]])
    array([ True, False])
    """

    rows: Array
    offsets: Array
    lo: Array = field(default_factory=lambda: np.asarray(-np.inf))
    hi: Array = field(default_factory=lambda: np.asarray(np.inf))
    origin: Array = field(default_factory=lambda: np.asarray(0.0))
    guard: Array | None = None

    def __post_init__(self) -> None:
        rows = np.atleast_2d(_numbers("rows", self.rows, None)).copy()
        m, d = rows.shape
        offsets = _numbers("offsets", self.offsets, (m,)).copy()
        endless = np.isinf(offsets)  # a row that always holds, or never
        rows[endless], offsets[endless] = 0.0, np.where(offsets[endless] > 0, 0.0, -1.0)
        shaped = {
            "rows": rows,
            "offsets": offsets,
            "origin": _numbers("origin", self.origin, (d,)),
            "lo": _box_side("lo", self.lo, d),
            "hi": _box_side("hi", self.hi, d),
        }
        for name, value in shaped.items():
            object.__setattr__(self, name, value)

    @property
    def n_features(self) -> int:
        """Number of coordinates."""
        return int(self.rows.shape[1])

    def within(self, lo: Any, hi: Any) -> Region:
        """Return the same rows, which need no second check, with another box."""
        region = copy(self)
        for name, side in (("lo", lo), ("hi", hi)):
            object.__setattr__(region, name, _box_side(name, side, self.n_features))
        return region

    def taking(self, which: NDArray[np.int64]) -> Region:
        """Return the region of only some of the rows."""
        guard = None if self.guard is None else self.guard[:, which]
        rows, offsets = self.rows[which], self.offsets[which]
        return Region(rows, offsets, self.lo, self.hi, self.origin, guard)

    def contains(self, points: Any, slack: float = 0.0) -> NDArray[np.bool_]:
        """Tell which points satisfy rows and box; `slack` loosens the rows."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        inside = ((points >= self.lo) & (points <= self.hi)).all(axis=1)
        held = ((points - self.origin) @ self.rows.T <= self.offsets + slack).all(axis=1)
        return np.asarray(inside & held)


def _numbers(name: str, given: Any, shape: tuple[int, ...] | None) -> Array:
    """Read one part of a region, or raise with its name."""
    try:
        values = np.asarray(given, dtype=np.float64)
        values = values if shape is None else np.broadcast_to(values, shape)
    except (TypeError, ValueError):
        wanted = "an array of numbers" if shape is None else f"numbers of shape {shape}"
        raise ValueError(f"{name} of a region must be {wanted}; got {str(given)[:60]}.") from None
    if np.isnan(values).any():
        raise ValueError(f"a region needs numbers: {name} holds NaN.")
    return values


def _box_side(name: str, side: Any, d: int) -> Array:
    many = np.ndim(side) == 2
    return np.ascontiguousarray(_numbers(name, side, (len(side), d) if many else (d,)))
