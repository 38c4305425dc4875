"""Project points onto a region in a diagonal metric: batches in, answers with certificates out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.parallel import even_chunk, in_parallel
from voicecf.status import Status

# More constraints than this are priced in single precision.
FEW_ROWS = _core.FEW_ROWS


@dataclass(frozen=True)
class Projection:
    """Answers to a batch of n projections onto a region of m constraints.

    Attributes
    ----------
    points : array of shape (n, d)
        The nearest points; NaN where there is none.
    multipliers : array of shape (n, m)
        Of the constraints, for 1/2 sum q (z - a)^2. Where a point is infeasible: the Farkas vector,
        whose sum of constraints, each of which is to be at most 0, is positive all over the box.
    gap : array of shape (n,)
        Duality gap of 1/2 sum q (z - a)^2.
    rho : array of shape (n,)
        The largest multiple of the move that stays in the region, at least 1.
    status : array of shape (n,)
        A `Status` a point.
    """

    points: Array
    multipliers: Array
    gap: Array
    rho: Array
    status: NDArray[np.int8]

    @classmethod
    def blank(cls, n: int, d: int, m: int = 0) -> Projection:
        """Room for n answers, with m multipliers each; nothing in it means anything yet."""
        return cls(
            np.empty((n, d)), np.zeros((n, m)), np.empty(n), np.empty(n), np.empty(n, np.int8)
        )


@dataclass(frozen=True)
class Prefixes:
    """Which coordinates of each of n problems may move: those whose rank is below its count.

    Attributes
    ----------
    ranks : array of shape (d,)
    counts : array of shape (n,)
    """

    ranks: Ints
    counts: Ints

    def of(self, which: Ints) -> Prefixes:
        """Return those of some of the problems."""
        return Prefixes(self.ranks, self.counts[which])


@dataclass(frozen=True)
class UnitConstraints:
    """A region's constraints, scaled so that a slack is a distance in the metric.

    Attributes
    ----------
    normals : array of shape (m, d)
        Unit normals.
    scale : array of shape (d,)
        Square root of the metric.
    lengths : array of shape (m,)
        Lengths that the normals had.
    offsets : array of shape (m,)
    origin : array of shape (d,)
    guard : Guard
    """

    normals: Array
    scale: Array
    lengths: Array
    offsets: Array
    origin: Array
    guard: Guard

    @classmethod
    def of(cls, region: Region, metric: Any) -> UnitConstraints:
        """Scale the constraints of a region; normals of zero stay zero."""
        given = np.asarray(metric, dtype=np.float64)
        fits = given.shape in ((), region.origin.shape)
        if not (fits and np.isfinite(given).all() and (given > 0).all()):
            raise ValueError("the metric must be positive and finite in every coordinate.")
        scale = np.sqrt(np.broadcast_to(given, region.origin.shape))
        u = region.normals / scale
        lengths = np.sqrt(np.einsum("ij,ij->i", u, u))
        if not (lengths > 1e-140).all():  # zeros, and normals whose squares underflow
            largest = np.abs(u).max(axis=1, initial=0.0)
            largest[largest == 0.0] = 1.0
            lengths = largest * np.linalg.norm(u / largest[:, None], axis=1)
            lengths[lengths == 0.0] = 1.0
        u /= lengths[:, None]
        guard = Guard.none(len(u)) if region.guard is None else region.guard
        return cls(
            normals=u,
            scale=np.ascontiguousarray(scale),
            lengths=lengths,
            offsets=region.offsets / lengths,
            origin=np.array(region.origin),
            guard=guard.per_unit(lengths),
        )

    def guarded(self, factor: float) -> UnitConstraints:
        """Return the constraints with a factor on all rounding errors of the guard."""
        return self if factor == 1.0 else replace(self, guard=self.guard.times(factor))

    @cached_property
    def compiled(self) -> _core.Rows:
        """The constraints as the compiled core reads them."""
        return self.in_order(slice(None))

    def in_order(self, order: Any) -> _core.Rows:
        """Return the constraints for the compiled core, coordinates in another order."""
        normals, guard = np.ascontiguousarray(self.normals[:, order]), self.guard.table()
        return _core.Rows.listed(
            normals, self.offsets, self.origin[order], self.scale[order], guard
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def project(
    points: Any,
    region: Region,
    metric: Any = 1.0,
    *,
    rows: Ints | None = None,
    unit: UnitConstraints | None = None,
    prefixes: Prefixes | None = None,
    certify: bool = True,
) -> Projection:
    """Find the nearest point of a region for each of a batch of points.

    Parameters
    ----------
    points : array of shape (n, d)
    region : Region
        Constraints and box; the box may be one a point.
    metric : array of shape (d,) or a number
        Positive weights q of the squared distance.
    rows : array of int, optional
        Which points to project, in this order; a point may come several times. All by default.
    unit : UnitConstraints, optional
        ``UnitConstraints.of(region, metric)``, where it is known already.
    prefixes : Prefixes, optional
        Which coordinates may move, where these are not all.
    certify : bool
        Whether to return the multipliers, a number a constraint and point. Without, they have no
        columns.

    Returns
    -------
    Projection

    Examples
    --------
    >>> from voicecf.solver.projection import project
    >>> from voicecf.geometry.region import Region
    >>> project([[2.0, 0.5]], Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0)).points
    array([[0.5, 0.5]])
    """
    points = np.ascontiguousarray(np.atleast_2d(np.asarray(points, dtype=np.float64)))
    unit = UnitConstraints.of(region, metric) if unit is None else unit
    rows = np.arange(len(points)) if rows is None else np.asarray(rows, dtype=np.int64)
    m, d = unit.normals.shape
    _check(points, rows, region, d)
    found = Projection.blank(len(rows), d, m if certify else 0)
    lo, hi = np.atleast_2d(region.lo), np.atleast_2d(region.hi)
    batch, results = _batch(points, (lo, hi), rows, prefixes), _results(found)
    compiled = unit.compiled
    in_parallel(
        lambda a, b: compiled.project(batch, results, a, b),
        len(rows),
        chunk=even_chunk(len(rows), 64),
    )
    if certify:
        with np.errstate(over="ignore"):
            found.multipliers[:] /= unit.lengths
    return found


def project_into_cells(
    points: Array,
    rows: Ints,
    targets: Ints,
    box: tuple[Array, Array],
    clusters: _core.Rows,
    *,
    prefixes: Prefixes | None = None,
    n_clusters: int = 0,
) -> Projection:
    """Project points onto the cells of clusters, each onto that of its own target.

    Parameters
    ----------
    points : array of shape (n, d)
    rows : array of int
        Which points, in this order.
    targets : array of int
        A cluster for each of these.
    box : pair of arrays of shape (d,) or (n, d)
    clusters : voicecf._core.Rows
        All cells, contracted.
    prefixes : Prefixes, optional
        Which coordinates may move, where these are not all.
    n_clusters : int
        How many there are, if multipliers are asked for: these have a column a cluster.
    """
    found = Projection.blank(len(rows), points.shape[1], n_clusters)
    lo, hi = map(np.atleast_2d, box)
    batch, results = _batch(points, (lo, hi), rows, prefixes, targets), _results(found)
    in_parallel(
        lambda a, b: clusters.project(batch, results, a, b),
        len(rows),
        chunk=even_chunk(len(rows)),
    )
    return found


@dataclass(frozen=True)
class Pass:
    """Rows that were copied, assigned, answered and measured in one pass over memory.

    Attributes
    ----------
    points : array of shape (n, d)
        The rows themselves, copied.
    source : array of shape (n,)
        The cluster of each; -1 where the model has to be asked.
    found : Projection
        Answers, without multipliers. The gap is relative to half the energy.
    cost, n_changed : array of shape (n,)
    """

    points: Array
    source: Ints
    found: Projection
    cost: Array
    n_changed: Ints

    @classmethod
    def over(
        cls,
        values: Array,
        copied: bool,
        targets: Ints,
        box: tuple[Array, Array],
        clusters: _core.Rows,
        least: Array,
    ) -> Pass:
        """Answer rows, each for its own target; the user's own array is to be `copied`.

        A column that moves by no more than its entry in `least` has not changed.
        """
        n, d = values.shape
        # Two pieces of memory instead of eight: the allocator gives many back to the system and has
        # to fetch them anew for the next batch, which costs as much as the answers.
        own, points = np.empty((2, n, d)) if copied else (values, np.empty((n, d)))
        gap, rho, cost, source, changed = np.empty((5, n))
        found = Projection(points, np.empty((n, 0)), gap, rho, np.empty(n, np.int8))
        done = cls(own, source.view(np.int64), found, cost, changed.view(np.int64))
        lo, hi = map(np.atleast_2d, box)
        batch = _core.Batch(values, lo, hi, targets=targets)
        results = _results(done.found)
        results.tell(done.source, done.cost, done.n_changed, least, own if copied else None)
        in_parallel(lambda a, b: clusters.project(batch, results, a, b), n, chunk=even_chunk(n))
        return done

    def stay(self, rows: Ints) -> None:
        """Leave rows where they are: they are in their target already."""
        found = self.found
        found.points[rows], found.status[rows] = self.points[rows], Status.ALREADY
        found.gap[rows], found.rho[rows] = 0.0, np.inf
        self.cost[rows], self.n_changed[rows] = 0.0, 0


def _batch(
    points: Array,
    box: tuple[Array, Array],
    rows: Ints,
    prefixes: Prefixes | None,
    targets: Ints | None = None,
) -> _core.Batch:
    batch = _core.Batch(points, *box, rows=rows, targets=targets)
    if prefixes is not None:
        batch.limit(prefixes.ranks, prefixes.counts)
    return batch


def _results(into: Projection) -> _core.Results:
    return _core.Results(into.points, into.multipliers, into.gap, into.rho, into.status)


def _check(points: Array, rows: Ints, region: Region, d: int) -> None:
    if points.shape[1] != d:
        raise ValueError(f"points have {points.shape[1]} coordinates, the region has {d}.")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(points)):
        raise ValueError(f"rows must be positions of the {len(points)} points.")
    for side in (region.lo, region.hi):
        if side.ndim == 2 and len(side) not in (1, len(points)):
            raise ValueError(f"the region has {len(side)} boxes for {len(points)} points.")
    if not np.isfinite(points).all():
        raise ValueError("points must be finite numbers.")
