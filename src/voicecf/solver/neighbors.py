"""Find the clusters whose Voronoi cells share a facet with a cell, without the full diagram.

Relative to its center, a cell is the set of y with ``polar @ y <= 1``, one constraint per rival:
its unit normal (in the weighted metric) over its distance. A rival r is a neighbour if the other
constraints alone allow ``polar[r] @ y > 1`` for some y.

The search keeps the set of neighbours known so far and tests one rival after the other against
their constraints alone [Clarkson 1994]. It maximises ``polar[r] @ y`` subject to them. If the
maximum is at most 1, rival r is no neighbour, whatever the other constraints are. If it is larger,
the ray from the centroid through the maximiser leaves the cell through a facet of a neighbour that
was not known. The maximum is computed by projections, with the solver that computes answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.partition import Piece
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.solver.projection import UnitConstraints, project
from voicecf.status import Status

FACET = TOLERANCE.facet
# Rays that find the first neighbours, per coordinate: towards the nearest rivals, and random ones.
RAYS_TO_RIVALS, RANDOM_RAYS = 64, 64
# Rivals that are tested at a time, nearest first; the neighbours they reveal help to test the next.
ROUND = 256
# Lengths of the moves by which a linear function is maximised, one after the other.
MOVES = (2.0, 16.0, 256.0, 4096.0, 65536.0)
# Constraints per coordinate from which a bounding box of the cell is computed, and the largest
# number of coordinates for which that saves time.
BOX_CONSTRAINTS, BOX_COORDINATES = 32, 8
# Entries in a table of rays and constraints; it limits the memory.
TABLE = 1 << 22


@dataclass(frozen=True)
class Neighborhood:
    """The clusters around a cell.

    Attributes
    ----------
    facets : array of int
        Clusters whose cell shares a facet with this one, ascending.
    touching : array of int
        Clusters whose constraint touches the cell, up to rounding, but in less than a facet. The
        constraints of all other clusters are implied by these two sets.
    """

    facets: Ints
    touching: Ints

    @cached_property
    def rivals(self) -> Ints:
        """Clusters whose constraints together define the cell, ascending."""
        return np.sort(np.concatenate([self.facets, self.touching]))


def neighborhood(piece: Piece) -> Neighborhood:
    """Find the clusters around a piece, a Voronoi cell for example.

    A rival is a neighbour if the cell without its constraint would extend beyond that constraint,
    along a ray from the centroid, by more than 1e-9 of the distance. Constraints that touch the
    cell in less than a facet, as those of diagonal centroids of a grid, therefore do not count. Of
    clusters whose centroids coincide only the first has a cell, as ties go to the lowest index. The
    others have no neighbours and are nobody's neighbour.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.geometry.cell import Cell
    >>> from voicecf.solver.neighbors import neighborhood
    >>> in_line = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> neighborhood(Cell(in_line, np.array([1.0]), target=1)).facets
    array([0, 2])
    """
    rivals, normals, distances = _distinct_rows(piece)
    if not len(rivals):
        return Neighborhood(rivals, rivals)
    if rivals.min() < 0:
        raise OptionError("neighbors are known only where each border belongs to two clusters.")
    offsets = distances / distances[0]
    near = _FacetSearch(normals, offsets).not_outside_box()
    facets, touching = _FacetSearch(normals[near], offsets[near]).run()
    return Neighborhood(np.sort(rivals[near[facets]]), np.sort(rivals[near[touching]]))


def _distinct_rows(piece: Piece) -> tuple[Ints, Array, Array]:
    """Return the rivals with a cell of their own, nearest first.

    Also the unit normals of the constraints against them, in the weighted metric, and the distances
    from the center to these. If the piece is empty, no rivals are returned.
    """
    weighted = piece.weights > 0
    normals = piece.normals[:, weighted] / np.sqrt(piece.weights[weighted])
    lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    distinct = lengths > 0
    lengths[~distinct] = 1.0
    normals, distances = normals / lengths[:, None], piece.offsets / lengths
    order = np.argsort(distances, kind="stable")
    if piece.loses_ties[~distinct].any():  # all points lie on a border, and are the other side's
        order = order[:0]
    rivals, normals, distances = piece.rivals[order], normals[order], distances[order]
    distinct = distinct[order]
    # Only constraints at equal distances can coincide. The sort is stable, so that `unique` returns
    # the one against the rival with the lowest index.
    same = np.diff(distances, prepend=-1.0) == 0
    tied = np.flatnonzero(distinct & (same | np.append(same[1:], False)))
    if tied.size:
        _, first = np.unique(normals[tied] + 0.0, axis=0, return_index=True)
        distinct[np.delete(tied, first)] = False
    return rivals[distinct], normals[distinct], distances[distinct]


class _FacetSearch:
    """Find which constraints of a cell have a facet.

    Constraints are ``normals @ y <= offsets`` with unit normals and ascending offsets, the first of
    which is 1. `known` is a mask of the constraints that are known to have a facet.
    """

    def __init__(self, normals: Array, offsets: Array) -> None:
        self.normals, self.offsets = normals, offsets
        self.polar = normals / offsets[:, None]
        self.known = np.zeros(len(offsets), dtype=np.bool_)
        self.random = np.random.default_rng(0)

    def not_outside_box(self) -> Ints:
        """Return the constraints that a bounding box of the cell does not rule out.

        The box is computed from the nearest constraints, whether they have a facet or not. In many
        dimensions it would rule out none, so all constraints are returned.
        """
        m, d = self.normals.shape
        nearest = BOX_CONSTRAINTS * d
        if d > BOX_COORDINATES or m <= nearest:
            return np.arange(m)
        near = _FacetSearch(self.normals[:nearest], self.offsets[:nearest])
        near.shoot_rays()
        lo, hi = near.box()
        with np.errstate(invalid="ignore"):
            ends = np.where(self.polar > 0, self.polar * hi, self.polar * lo)
        highest = np.where(self.polar == 0, 0.0, ends).sum(axis=1)
        return np.flatnonzero(highest >= 1.0 - TOLERANCE.outside_box)

    def run(self) -> tuple[Ints, Ints]:
        """Return the constraints that have a facet, and those that touch the cell without one."""
        self.shoot_rays()
        candidates = np.flatnonzero(~self.known)
        touching = []
        while candidates.size:
            now, later = candidates[:ROUND], candidates[ROUND:]
            value, points = self._maximise(self.normals[now], self.offsets[now], 1.0 + FACET)
            exceeded = value > 1.0 + FACET
            touching.append(now[~exceeded & (value >= 1.0 - FACET)])
            before = int(self.known.sum())
            self._add_facets_towards(points[exceeded])
            again = now[exceeded]
            if self.known.sum() == before:  # rounding hides the facets that these rays go through
                touching.append(again)
                again = again[:0]
            candidates = np.concatenate([again[~self.known[again]], later[~self.known[later]]])
        return np.flatnonzero(self.known), np.concatenate([[], *touching]).astype(np.int64)

    def shoot_rays(self) -> None:
        """Add the facets that rays from the centroid hit first, where no other one is as near."""
        d = self.normals.shape[1]
        scattered = self.random.normal(size=(RANDOM_RAYS * d, d))
        rays = np.concatenate([self.normals[: RAYS_TO_RIVALS * d], scattered])
        for values in self._inverse_distances(rays):
            first = values.argmax(axis=1)
            top = values[np.arange(len(values)), first]
            alone = (values >= (top * (1.0 - 4.0 * FACET))[:, None]).sum(axis=1) == 1
            self.known[first[(top > 0) & alone]] = True

    def _inverse_distances(self, rays: Array) -> Iterator[Array]:
        """Yield, for blocks of rays, the inverse distance at which each constraint is hit.

        The largest value of a ray belongs to the constraint that it hits first; a constraint with a
        value of at most 0 is never hit.
        """
        block = max(1, TABLE // len(self.polar))
        return (rays[i : i + block] @ self.polar.T for i in range(0, len(rays), block))

    def box(self) -> tuple[Array, Array]:
        """Return a bounding box of the known constraints, infinite where they have no bound."""
        d = self.normals.shape[1]
        axes = np.concatenate([np.eye(d), -np.eye(d)])
        highest, _ = self._maximise(axes, np.ones(2 * d), np.inf)
        return -highest[d:], highest[:d]

    def _maximise(self, directions: Array, units: Array, enough: float) -> tuple[Array, Array]:
        """Maximise linear functions subject to the known constraints.

        Each iteration moves along the direction and projects back onto the known constraints. If
        the point does not change, it is a maximiser; this takes finitely many iterations
        [Rockafellar 1976]. What is left after the last is maximised by a linear program.

        Parameters
        ----------
        directions : array of shape (n, d)
        units : array of shape (n,)
            The functions are ``directions @ y / units``.
        enough : float
            A function that exceeds this value is not maximised any further.

        Returns
        -------
        values : array of shape (n,)
        points : array of shape (n, d)
            Where the values are attained.
        """
        points, value = np.zeros_like(directions), np.zeros(len(directions))
        region = Region(self.normals[self.known], self.offsets[self.known])
        constraints, open_ = UnitConstraints.of(region, 1.0), np.arange(len(directions))
        for length in MOVES if len(constraints.normals) else ():
            ahead = points[open_] + (length * units[open_])[:, None] * directions[open_]
            projected = project(ahead, region, unit=constraints, certify=False)
            optimal = projected.status == Status.OPTIMAL
            still = optimal & _unchanged(projected.points, points[open_])
            at = open_[optimal]
            points[at] = projected.points[optimal]
            value[at] = np.einsum("ij,ij->i", points[at], directions[at]) / units[at]
            open_ = open_[~still & (value[open_] <= enough)]
            if not open_.size:
                break
        for i in open_:
            value[i], points[i] = self._linear_program(directions[i], units[i], enough)
        return value, points

    def _linear_program(self, direction: Array, unit: float, enough: float) -> tuple[float, Array]:
        """Maximise one function, up to twice `enough`, by a linear program.

        Without a limit, or if the program fails, the value is infinite and the point is the
        direction itself.
        """
        if enough == np.inf:
            return np.inf, direction
        most = 2.0 * enough * unit
        normals = np.concatenate([self.polar[self.known], direction[None] / most])
        offsets = np.ones(len(normals))
        result = linprog(-direction, normals, offsets, bounds=(None, None), method="highs")
        if result.status != 0:
            return np.inf, direction
        return float(direction @ result.x) / unit, np.asarray(result.x)

    def _add_facets_towards(self, points: Array) -> None:
        """Add the facets that the rays from the centroid through points hit first."""
        for block in self._inverse_distances(points):
            for values in block:
                self.known[self._first_hit(values)] = True

    def _first_hit(self, values: Array) -> int:
        """Return the constraint that a ray hits first; ties are resolved by tilting the ray."""
        tied = np.flatnonzero(values >= values.max() * (1.0 - 0.25 * FACET))
        for _ in range(8):
            if len(tied) == 1:
                break
            polar = self.polar[tied]
            tilted = polar @ self.random.normal(size=polar.shape[1])
            tied = tied[tilted >= tilted.max() - FACET * np.abs(polar).max()]
        return int(tied[0])


def _unchanged(points: Array, before: Array) -> NDArray[np.bool_]:
    """Return a mask of the points that have not moved, up to rounding."""
    with np.errstate(invalid="ignore"):
        moved = np.abs(points - before).max(axis=1)
    smallest = TOLERANCE.standstill * np.maximum(1.0, np.abs(before).max(axis=1))
    return np.asarray(moved <= smallest)
