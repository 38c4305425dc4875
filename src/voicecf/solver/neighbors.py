"""Which clusters share a facet with a cell, found around the cell and not by a full diagram.

Seen from its centroid, a cell is the set of y with ``polar @ y <= 1``, one row a rival: the rival's
difference to the centroid (in the weighted metric) over half its squared length. A rival is a
neighbour where the other rows alone would let ``polar[r] @ y`` pass 1. Few rows are ever asked at
once [Clarkson 1994]: a rival is judged by the neighbours that are known so far. Where these let it
pass, the ray through the point of the passing meets a neighbour that was not known; where they do
not, no further row has to be looked at. The judge is the projection that answers are made with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.cell import Cell
from voicecf.geometry.region import Region
from voicecf.solver.projection import UnitConstraints, project
from voicecf.status import Status

# A row is passed if by more than this share of the way from the centroid to it.
TIE = 1e-9
# Rays towards the nearest rivals, and in no particular direction, for each coordinate.
AIMED, SCATTERED = 64, 64
# Rivals that are judged at a time, nearest first; what they find helps to judge the next.
ROUND = 256
# Steps of a climb, and what counts as standing still.
STRIDES, STILL = (2.0, 16.0, 256.0, 4096.0, 65536.0), 1e-10
# Rows for each coordinate that a box is made from, and the most coordinates for which it pays.
NEAR, BOXED = 32, 8
# Numbers in a table of rays and rows.
TABLE = 1 << 22


@dataclass(frozen=True)
class Neighborhood:
    """What surrounds a cell.

    Attributes
    ----------
    facets : array of int
        Clusters whose cell shares a facet with it, ascending.
    touching : array of int
        Clusters whose row the cell touches without having a facet there, or might by rounding.
        No other row can ever matter to the cell.
    """

    facets: Ints
    touching: Ints

    @cached_property
    def rivals(self) -> Ints:
        """All whose rows make up the cell, ascending."""
        return np.sort(np.concatenate([self.facets, self.touching]))


def neighborhood(cell: Cell) -> Neighborhood:
    """Find what surrounds a cell.

    A rival is a neighbour if the cell without its row would reach past it, along some ray from the
    centroid, by more than 1e-9 of the way. Rows that meet the cell in less than a facet, as those
    of diagonal centroids of a grid do, are therefore none. Of clusters that coincide only the first
    has a cell, as ties go to the lowest index: the others have no neighbours and are none.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.geometry.cell import Cell
    >>> from voicecf.solver.neighbors import neighborhood
    >>> in_line = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> neighborhood(Cell(in_line, np.array([1.0]), target=1)).facets
    array([0, 2])
    """
    rivals, shifts, away = _apart(cell)
    if not len(rivals):
        return Neighborhood(rivals, rivals)
    normals, offsets = shifts / away[:, None], away / away[0]
    near = _Search(normals, offsets).in_sight()
    facets, touching = _Search(normals[near], offsets[near]).run()
    return Neighborhood(np.sort(rivals[near[facets]]), np.sort(rivals[near[touching]]))


def _apart(cell: Cell) -> tuple[Ints, Array, Array]:
    """Rivals that do not coincide, nearest first; their differences to the centroid; how far.

    None, where the cell itself is another's.
    """
    counted = cell.weights > 0
    scale = np.sqrt(cell.weights[counted])
    shifts = scale * (cell.centers[cell.rivals][:, counted] - cell.center[counted])
    away = np.sqrt(np.einsum("ij,ij->i", shifts, shifts))
    order = np.argsort(away, kind="stable")
    rivals, shifts, away = cell.rivals[order], shifts[order], away[order]
    kept = away > 0
    if (rivals[~kept] < cell.target).any():
        kept[:] = False
    same = np.diff(away, prepend=-1.0) == 0
    alike = np.flatnonzero(kept & (same | np.append(same[1:], False)))
    if alike.size:  # as far as another; the first of equal ones is of the lowest index
        _, first = np.unique(shifts[alike] + 0.0, axis=0, return_index=True)
        kept[np.delete(alike, first)] = False
    return rivals[kept], shifts[kept], away[kept]


class _Search:
    """One cell's search; rows are unit normals at offsets that ascend, the first is 1."""

    def __init__(self, normals: Array, offsets: Array) -> None:
        self.normals, self.offsets = normals, offsets
        self.polar = normals / offsets[:, None]
        self.known = np.zeros(len(offsets), dtype=np.bool_)
        self.draw = np.random.default_rng(0)

    def in_sight(self) -> Ints:
        """Rows that a box around the cell does not rule out; in many dimensions it rules out none.

        The box is that of rows close by, whether they are facets or not.
        """
        m, d = self.normals.shape
        if d > BOXED or m <= NEAR * d:
            return np.arange(m)
        near = _Search(self.normals[: NEAR * d], self.offsets[: NEAR * d])
        near.shoot_around()
        lo, hi = near.box()
        with np.errstate(invalid="ignore"):
            ends = np.where(self.polar > 0, self.polar * hi, self.polar * lo)
        reach = np.where(self.polar == 0, 0.0, ends).sum(axis=1)
        return np.flatnonzero(reach >= 1.0 - 1e-6)

    def run(self) -> tuple[Ints, Ints]:
        """Return the rows of facets, and those that touch."""
        self.shoot_around()
        open_ = np.flatnonzero(~self.known)
        touching = []
        while open_.size:
            now, later = open_[:ROUND], open_[ROUND:]
            value, points = self._highest(self.normals[now], self.offsets[now], 1.0 + TIE)
            passed = value > 1.0 + TIE
            touching.append(now[~passed & (value >= 1.0 - TIE)])
            self._meet(points[passed])
            rest = now[passed]
            open_ = np.concatenate([rest[~self.known[rest]], later[~self.known[later]]])
        return np.flatnonzero(self.known), np.concatenate([[], *touching]).astype(np.int64)

    def shoot_around(self) -> None:
        """Learn facets from rays whose first row is clear."""
        d = self.normals.shape[1]
        scattered = self.draw.normal(size=(SCATTERED * d, d))
        rays = np.concatenate([self.normals[: AIMED * d], scattered])
        for values in self._along(rays):
            first = values.argmax(axis=1)
            top = values[np.arange(len(values)), first]
            alone = (values >= (top * (1.0 - 4.0 * TIE))[:, None]).sum(axis=1) == 1
            self.known[first[(top > 0) & alone]] = True

    def _along(self, rays: Array) -> Iterator[Array]:
        """How soon each ray meets each row, by blocks: the larger, the sooner."""
        block = max(1, TABLE // len(self.polar))
        return (rays[i : i + block] @ self.polar.T for i in range(0, len(rays), block))

    def box(self) -> tuple[Array, Array]:
        """Return a box around the known rows, infinite where no side was found."""
        d = self.normals.shape[1]
        axes = np.concatenate([np.eye(d), -np.eye(d)])
        highest, _ = self._highest(axes, np.ones(2 * d), np.inf)
        return -highest[d:], highest[:d]

    def _highest(self, upwards: Array, unit: Array, enough: float) -> tuple[Array, Array]:
        """How high the known rows let directions rise, in units of their own, and where.

        From `enough` on it does not matter how high. A climb goes a step upwards and back to the
        nearest point of the cell. Where that leads nowhere new, no point is higher; for a linear
        function this takes finitely many steps [Rockafellar 1976].
        """
        points, value = np.zeros_like(upwards), np.zeros(len(upwards))
        region = Region(self.normals[self.known], self.offsets[self.known])
        rows, open_ = UnitConstraints.of(region, 1.0), np.arange(len(upwards))
        for step in STRIDES if len(rows.normals) else ():
            ahead = points[open_] + (step * unit[open_])[:, None] * upwards[open_]
            found = project(ahead, region, unit=rows, certify=False)
            sure = found.status == Status.OPTIMAL
            still = sure & _as_before(found.points, points[open_])
            at = open_[sure]
            points[at] = found.points[sure]
            value[at] = np.einsum("ij,ij->i", points[at], upwards[at]) / unit[at]
            open_ = open_[~still & (value[open_] <= enough)]
            if not open_.size:
                break
        for i in open_:
            value[i], points[i] = self._programmed(upwards[i], unit[i], enough)
        return value, points

    def _programmed(self, upwards: Array, unit: float, enough: float) -> tuple[float, Array]:
        """Judge one direction by a linear program, where the climb has not ended."""
        if enough == np.inf:
            return np.inf, upwards
        most = 2.0 * enough * unit
        rows = np.concatenate([self.polar[self.known], upwards[None] / most])
        found = linprog(-upwards, rows, np.ones(len(rows)), bounds=(None, None), method="highs")
        if found.status != 0:  # not judged: as if it passed, and its own ray tells
            return np.inf, upwards
        return float(upwards @ found.x) / unit, np.asarray(found.x)

    def _meet(self, points: Array) -> None:
        """Learn the facets that rays through points outside of the known rows meet first."""
        for block in self._along(points):
            for values in block:
                self.known[self._foremost(values)] = True

    def _foremost(self, values: Array) -> int:
        """Return the row that a ray meets first; of several met at once, by tilting the ray."""
        tied = np.flatnonzero(values >= values.max() * (1.0 - 0.25 * TIE))
        for _ in range(8):
            if len(tied) == 1:
                break
            polar = self.polar[tied]
            tilted = polar @ self.draw.normal(size=polar.shape[1])
            tied = tied[tilted >= tilted.max() - TIE * np.abs(polar).max()]
        return int(tied[0])


def _as_before(points: Array, before: Array) -> NDArray[np.bool_]:
    """Tell which points are where they were."""
    with np.errstate(invalid="ignore"):
        gone = np.abs(points - before).max(axis=1)
    return np.asarray(gone <= STILL * np.maximum(1.0, np.abs(before).max(axis=1)))
