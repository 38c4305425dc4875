"""A region: linear constraints and a box. Everything that a user can ask for is said as one."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array
from voicecf.geometry.guard import Guard


@dataclass(frozen=True)
class Region:
    """The points z with ``normals @ (z - origin) <= offsets`` and ``lo <= z <= hi``.

    Parameters
    ----------
    normals : array of shape (m, d)
        One a constraint, of any length; a zero normal asks ``0 <= offset``.
    offsets : array of shape (m,)
        Right-hand sides.
    lo, hi : array of shape (d,) or (n, d), or a number
        The box; infinite where open, equal where a coordinate is fixed. With n rows it is one box
        a point.
    origin : array of shape (d,) or a number
        Where the constraints are measured from. A centroid as origin keeps the digits of data that
        lie far from zero.
    guard : Guard, optional
        Slack that an answer needs so that the model's own `predict` agrees; none if left out.

    Examples
    --------
    >>> from voicecf.geometry.region import Region
    >>> half_plane = Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0)
    >>> half_plane.contains([[0.2, 0.7], [0.8, 0.7]])
    array([ True, False])
    """

    normals: Array
    offsets: Array
    lo: Array = field(default_factory=lambda: np.asarray(-np.inf))
    hi: Array = field(default_factory=lambda: np.asarray(np.inf))
    origin: Array = field(default_factory=lambda: np.asarray(0.0))
    guard: Guard | None = None

    def __post_init__(self) -> None:
        normals = np.atleast_2d(_numbers("normals", self.normals, None)).copy()
        m, d = normals.shape
        offsets = _numbers("offsets", self.offsets, (m,)).copy()
        endless = np.isinf(offsets)  # a constraint that always holds, or never
        normals[endless], offsets[endless] = 0.0, np.where(offsets[endless] > 0, 0.0, -1.0)
        shaped = {
            "normals": normals,
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
        return int(self.normals.shape[1])

    def within(self, lo: Any, hi: Any) -> Region:
        """Return the same constraints, which need no second check, with another box."""
        region = copy(self)
        for name, side in (("lo", lo), ("hi", hi)):
            object.__setattr__(region, name, _box_side(name, side, self.n_features))
        return region

    def taking(self, which: NDArray[np.int64]) -> Region:
        """Return the region of only some of the constraints."""
        guard = None if self.guard is None else self.guard.of(which)
        normals, offsets = self.normals[which], self.offsets[which]
        return Region(normals, offsets, self.lo, self.hi, self.origin, guard)

    def contains(self, points: Any, slack: float = 0.0) -> NDArray[np.bool_]:
        """Tell which points satisfy constraints and box; `slack` loosens the constraints."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        inside = ((points >= self.lo) & (points <= self.hi)).all(axis=1)
        held = ((points - self.origin) @ self.normals.T <= self.offsets + slack).all(axis=1)
        return np.asarray(inside & held)

    def rho(self, points: Any, answers: Any) -> Array:
        """Return the largest multiples of moves that stay in the region; 1 at least.

        Parameters
        ----------
        points, answers : array of shape (n, d)
            Before and after the moves.
        """
        moves = answers - points
        rise = np.hstack([moves @ self.normals.T, moves, -moves])
        slack = self.offsets - (points - self.origin) @ self.normals.T
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.hstack([slack, self.hi - points, points - self.lo])
            limits = np.where(rise > 0, room / rise, np.inf)
        return np.asarray(np.maximum(limits.min(axis=1, initial=np.inf), 1.0))


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
