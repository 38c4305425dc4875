"""A region: linear constraints and a box. Everything that a user can ask for becomes one."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, product
from voicecf.geometry.guard import Guard


@dataclass(frozen=True)
class Region:
    """The points z with ``normals @ (z - origin) <= offsets`` and ``lo <= z <= hi``.

    Parameters
    ----------
    normals : array of shape (m, d)
        One per constraint, of any length; a zero normal means the constraint ``0 <= offset``.
    offsets : array of shape (m,)
        Right-hand sides.
    lo : array of shape (d,) or (n, d), or a number
        The lower sides of the box: infinite where there is no bound. Shape (n, d) is one box per
        point.
    hi : array of shape (d,) or (n, d), or a number
        The upper sides: equal to the lower where a coordinate is fixed.
    origin : array of shape (d,) or a number
        Point that is subtracted before the constraints are evaluated. A centroid as origin avoids
        cancellation for data that lie far from zero.
    guard : Guard, optional
        Slack that an answer needs so that the model's own `predict` agrees. By default none.

    Examples
    --------
    >>> from voicecf.geometry.region import Region
    >>> half_plane = Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0)
    >>> half_plane.contains([[0.2, 0.7], [0.8, 0.7]])
    array([ True, False])
    """

    normals: Array
    offsets: Array
    # Numbers become arrays in __post_init__.
    lo: Array = -np.inf  # type: ignore[assignment]
    hi: Array = np.inf  # type: ignore[assignment]
    origin: Array = 0.0  # type: ignore[assignment]
    guard: Guard | None = None

    def __post_init__(self) -> None:
        normals = np.atleast_2d(_numbers("normals", self.normals, None)).copy()
        m, d = normals.shape
        offsets = _numbers("offsets", self.offsets, (m,)).copy()
        # An infinite offset always or never holds: the same as 0 <= 0 or 0 <= -1.
        infinite = np.isinf(offsets)
        normals[infinite], offsets[infinite] = 0.0, np.where(offsets[infinite] > 0, 0.0, -1.0)
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
        """Return the region with another box; the constraints are not checked again."""
        region = copy(self)
        for name, side in (("lo", lo), ("hi", hi)):
            object.__setattr__(region, name, _box_side(name, side, self.n_features))
        return region

    def contains(self, points: Any, slack: float = 0.0) -> NDArray[np.bool_]:
        """Return a mask of points in the box that violate no constraint by more than `slack`."""
        points = np.atleast_2d(np.asarray(points, dtype=np.float64))
        in_box = ((points >= self.lo) & (points <= self.hi)).all(axis=1)
        used = product(points - self.origin, self.normals.T)
        return np.asarray(in_box & (used <= self.offsets + slack).all(axis=1))

    def rho(self, points: Any, answers: Any) -> Array:
        """Return for each move its largest multiple that stays in the region, at least 1.

        Parameters
        ----------
        points, answers : array of shape (n, d)
            Before and after the moves.
        """
        moves = answers - points
        rise = np.hstack([product(moves, self.normals.T), moves, -moves])
        slack = self.offsets - product(points - self.origin, self.normals.T)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.hstack([slack, self.hi - points, points - self.lo])
            limits = np.where(rise > 0, room / rise, np.inf)
        return np.asarray(np.maximum(limits.min(axis=1, initial=np.inf), 1.0))


def _numbers(name: str, value: Any, shape: tuple[int, ...] | None) -> Array:
    """Return a parameter of a region as floats of a shape, or raise an error that names it."""
    try:
        values = np.asarray(value, dtype=np.float64)
        values = values if shape is None else np.broadcast_to(values, shape)
    except (TypeError, ValueError):
        wanted = "an array of numbers" if shape is None else f"numbers of shape {shape}"
        raise ValueError(f"{name} of a region must be {wanted}; got {str(value)[:60]}.") from None
    if np.isnan(values).any():
        raise ValueError(f"{name} of a region must not contain NaN.")
    return values


def _box_side(name: str, side: Any, d: int) -> Array:
    """Return one side of the box, shape (d,), or (n, d) with one box per point."""
    shape = (len(side), d) if np.ndim(side) == 2 else (d,)
    return np.ascontiguousarray(_numbers(name, side, shape))
