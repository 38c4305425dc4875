"""A model where a plane cuts it: cells, rows, and an answer, in the units of the plane's axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError
from voicecf.geometry.arrays import Array, Ints
from voicecf.learned.learned import Learned
from voicecf.plots.plane import Plane, allowed_box, end_of
from voicecf.plots.polygons import clipped, densified, line, rectangle
from voicecf.table.frames import any_array, as_frame

# Room around what is drawn, as a share of its size.
MARGIN = 0.05
# Width over height of a map whose axes have one unit.
SHAPE = 1.25


class Scene:
    """A model and the plane that cuts it."""

    def __init__(self, learned: Learned, plane: Plane) -> None:
        self.learned, self.plane = learned, plane
        mixing = learned.space.mixing
        # What the model sees of the plane: x = x0 + u x1 + v x2.
        self.base, self.directions = plane.origin, plane.directions
        if mixing is not None:
            self.base = mixing(plane.origin[None])[0]
            self.directions = plane.directions @ mixing.matrix.T
        self.curved = not all(plane.space.columns[c].affine for c in plane.columns)

    def rows(self, X: Any, most: int) -> tuple[Ints, Array, Ints]:
        """Read some rows: their positions, where they are seen, their clusters."""
        if X is None:
            return np.empty(0, dtype=np.int64), np.empty((0, 2)), np.empty(0, dtype=np.int64)
        if most < 1:
            raise DataError(f"max_points={most} must be 1 or more.")
        frame = as_frame(X)
        rows = any_array(X) if frame is None else frame
        n = len(rows)
        picked = np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))
        some = rows[picked] if frame is None else rows[picked.tolist()].to_native()
        read, labels = self.learned.read(some)
        return picked, self.plane.project(read.points), labels

    def cells_at(self, points: Array) -> Ints:
        """Return the cluster whose cell each place of the plane, given as (u, v), is in."""
        if not len(points):
            return np.empty(0, dtype=np.int64)
        return self.learned.partition.labels(self.base + points @ self.directions)

    def viewport(self, seen: Array, alone: bool) -> tuple[Array, Array]:
        """Return the ends of the axes, in their units, around what is seen."""
        shown = self.plane.to_units(seen)
        if alone:
            shown = np.vstack([shown, self._expected(shown)])
        low, high = np.nanmin(shown, axis=0), np.nanmax(shown, axis=0)
        size = high - low
        size = np.where(size > 0, size, np.maximum(np.abs(low), 1.0))
        if not self.plane.of_two_columns:
            # Both axes have one unit; a picture that keeps angles should not be a thin strip.
            wanted = np.maximum(size, size[::-1] * np.array([SHAPE, 1 / SHAPE]))
            low, high, size = low - (wanted - size) / 2, high + (wanted - size) / 2, wanted
        least, most = self.plane.limits()
        return np.maximum(low - MARGIN * size, least), np.minimum(high + MARGIN * size, most)

    def _expected(self, shown: Array) -> Array:
        """Return points between which there is something to see, where no data is given."""
        corners = [self.plane.to_units(self.plane.project(self.learned.origins))]
        if self.plane.of_two_columns:
            for side in self.learned.bounds.box:
                corner = self.plane.project(np.where(np.isfinite(side), side, np.nan)[None])
                corners.append(self.plane.to_units(corner))
        found = np.vstack([shown, *corners])
        # Without data it is not known how far to look: half as far again as there is something.
        size = 0.25 * np.nan_to_num(np.nanmax(found, axis=0) - np.nanmin(found, axis=0))
        return np.vstack([np.nanmin(found, axis=0) - size, np.nanmax(found, axis=0) + size])

    def frame(self, low: Array, high: Array) -> Array:
        """Return the viewport in (u, v), a rectangle there as well."""
        ends = self.plane.from_units(np.array([low, high]))
        return rectangle(ends.min(axis=0), ends.max(axis=0))

    def cells(self, frame: Array) -> list[tuple[int, Array]]:
        """Return the slices of all pieces that the plane cuts, in (u, v), and their clusters."""
        labels = self.learned.partition.label_of.tolist()
        slices = [(label, self.cell(p, frame)) for p, label in enumerate(labels)]
        return [(label, cell) for label, cell in slices if len(cell)]

    def cell(self, p: int, frame: Array, alpha: float = 1.0) -> Array:
        """Return the slice of a piece in (u, v).

        A row g . (x - m) <= h of the piece is g . x1 u + g . x2 v <= h - g . (x0 - m) in the plane.
        """
        piece = self.learned.partition.piece(p)
        region = piece.region(alpha)
        normals = region.normals @ self.directions.T
        offsets = region.offsets - region.normals @ (self.base - region.origin)
        # All of the plane lies on a border: the model decides whose it is.
        tied = ~normals.any(axis=1) & (offsets == 0) & piece.loses_ties
        return clipped(frame, normals, np.where(tied, -1.0, offsets))

    def box(self, lo: Array, hi: Array, frame: Array) -> Array:
        """Return the slice of a box of coordinates in (u, v)."""
        turn, origin = self.plane.directions.T, self.plane.origin
        normals = np.vstack([turn, -turn])
        offsets = np.concatenate([hi - origin, origin - lo])
        # What the plane does not move is as it is: a fact, which no bound takes back.
        binds = np.isfinite(offsets) & normals.any(axis=1)
        return clipped(frame, normals[binds], offsets[binds])

    def bent(self, polygon: Array) -> Array:
        """Return a polygon in the units of the axes."""
        return self.plane.to_units(densified(polygon) if self.curved else polygon)

    def ends(self, one: Counterfactuals) -> list[Array]:
        """Return where the row of an answer is seen, and the answer, if there is one."""
        start, end = one.outcome.rows.points[one.row], end_of(one)
        points = [start] if end is None else [start, end[None]]
        return list(self.plane.project(np.vstack(points)))

    def answer(self, one: Counterfactuals, frame: Array) -> dict[str, Any]:
        """Return what is to be seen of an answer."""
        target = int(one.target[0])
        alpha = self.learned.alpha_of(target)
        start, *end = self.ends(one)
        found: dict[str, Any] = {
            "target": target, "source": int(one.source[0]), "alpha": alpha,
            "contracted": self.bent(self.cell(int(one.outcome.piece[0]), frame, alpha)),
            "box": self.bent(self.box(*allowed_box(one), frame)),
            "start": self.plane.to_units(start[None])[0],
        }  # fmt: skip
        if not end or not (end[0] != start).any():
            return found
        stops = np.array([start, end[0], _as_far(start, end[0], float(one.rho[0]), frame)])
        _, shown, beyond = self.plane.to_units(stops)
        if self.curved:
            stops = np.vstack([line(stops[:-1], stops[1:]).reshape(-1, 2), stops[-1:]])
        return {**found, "end": shown, "beyond": beyond, "trail": self.plane.to_units(stops)}


def _as_far(start: Array, end: Array, rho: float, frame: Array) -> Array:
    """Return the point rho times as far as the end, or where the way leaves the viewport."""
    move = end - start
    low, high = frame.min(axis=0), frame.max(axis=0)
    with np.errstate(all="ignore"):
        exits = np.where(move > 0, (high - start) / move, (low - start) / move)
    furthest = max(float(np.min(exits[move != 0])), 1.0)
    return np.asarray(start + min(max(rho, 1.0), furthest) * move)
