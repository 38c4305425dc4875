"""Convex polygons, clipped by half-planes."""

from __future__ import annotations

import numpy as np

from voicecf.geometry.arrays import Array

EMPTY = np.empty((0, 2))
# A corner this far out, relative to the polygon, is on the line.
ON_THE_LINE = 1e-14
# Parts of an edge that is to be bent.
PARTS = 96


def rectangle(lo: Array, hi: Array) -> Array:
    """Return the corners of a rectangle, anticlockwise."""
    return np.array([[lo[0], lo[1]], [hi[0], lo[1]], [hi[0], hi[1]], [lo[0], hi[1]]])


def clipped(polygon: Array, normals: Array, offsets: Array) -> Array:
    """Return the part of a convex polygon with ``normals @ p <= offsets``.

    Cuts with the half-plane that is broken most, until none is: most of many never cut.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.plots.polygons import clipped, rectangle
    >>> square = rectangle(np.zeros(2), np.ones(2))
    >>> clipped(square, np.array([[1.0, 0.0]]), np.array([0.25])).tolist()
    [[0.0, 0.0], [0.25, 0.0], [0.25, 1.0], [0.0, 1.0]]
    """
    lengths = np.linalg.norm(normals, axis=1)
    flat = lengths == 0
    if (offsets[flat] < 0).any():
        return EMPTY
    normals, offsets = (part[~flat] for part in (normals, offsets))
    normals, offsets = normals / lengths[~flat, None], offsets / lengths[~flat]
    least = ON_THE_LINE * np.abs(polygon).max(initial=0.0)
    open_ = np.ones(len(normals), dtype=bool)
    while len(polygon) and open_.any():
        over = np.where(open_, (polygon @ normals.T - offsets).max(axis=0), -np.inf)
        worst = int(np.argmax(over))
        if over[worst] <= least:
            break
        polygon = _cut(polygon, polygon @ normals[worst] - offsets[worst])
        open_[worst] = False
    return polygon if len(polygon) >= 3 else EMPTY


def _cut(polygon: Array, over: Array) -> Array:
    """Return what of a polygon lies where `over`, given at its corners, is not positive."""
    following, after = np.roll(polygon, -1, axis=0), np.roll(over, -1)
    crosses = np.sign(over) * np.sign(after) < 0
    with np.errstate(divide="ignore", invalid="ignore"):
        share = over / (over - after)
        crossings = polygon + share[:, None] * (following - polygon)
    return np.stack([polygon, crossings], axis=1)[np.stack([over <= 0, crosses], axis=1)]


def densified(polygon: Array, parts: int = PARTS) -> Array:
    """Return the same polygon with many points on each edge, to be bent."""
    following = np.roll(polygon, -1, axis=0)
    return line(polygon, following, parts).reshape(-1, 2)


def line(start: Array, end: Array, parts: int = PARTS) -> Array:
    """Return points from starts, shape (m, 2), towards ends, these left out: (m, parts, 2)."""
    shares = np.arange(parts)[None, :, None] / parts
    return np.asarray(start[:, None] + shares * (end - start)[:, None])
