"""Project points onto a region in a diagonal metric: batches in, answers with certificates out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf import _core
from voicecf.parallel import even_chunk, in_parallel
from voicecf.region import Array, Region
from voicecf.status import Status

# More rows than this are priced in single precision.
FEW_ROWS = _core.FEW_ROWS


@dataclass(frozen=True)
class Projection:
    """Answers to a batch of n projections onto a region of m rows.

    Attributes
    ----------
    points : array of shape (n, d)
        The nearest points; NaN where there is none.
    multipliers : array of shape (n, m)
        Of the rows, for 1/2 sum q (z - a)^2. Where a point is infeasible: the Farkas vector, which
        says that this sum of rows, each to be negative, is positive all over the box.
    gap : array of shape (n,)
        Duality gap of 1/2 sum q (z - a)^2.
    reach : array of shape (n,)
        The largest multiple of the move that stays in the region, at least 1 (the paper's rho).
    status : array of shape (n,)
        A `Status` a point.
    """

    points: Array
    multipliers: Array
    gap: Array
    reach: Array
    status: NDArray[np.int8]

    @classmethod
    def blank(cls, n: int, d: int, m: int = 0) -> Projection:
        """Room for n answers, with m multipliers each; nothing in it means anything yet."""
        return cls(
            np.empty((n, d)), np.zeros((n, m)), np.empty(n), np.empty(n), np.empty(n, np.int8)
        )


@dataclass(frozen=True)
class UnitRows:
    """A region's rows, scaled so that a slack is a distance in the metric.

    Attributes
    ----------
    u : array of shape (m, d)
        Unit rows.
    scale : array of shape (d,)
        Square root of the metric.
    norms : array of shape (m,)
        Lengths that the rows had.
    offsets : array of shape (m,)
    origin : array of shape (d,)
    guard : array of shape (5, m)
        See `voicecf.region.Region`.
    """

    u: Array
    scale: Array
    norms: Array
    offsets: Array
    origin: Array
    guard: Array

    @classmethod
    def of(cls, region: Region, metric: Any) -> UnitRows:
        """Scale the rows of `region` for the metric q (positive, shape (d,))."""
        given = np.asarray(metric, dtype=np.float64)
        fits = given.shape in ((), region.origin.shape)
        if not (fits and np.isfinite(given).all() and (given > 0).all()):
            raise ValueError("the metric must be positive and finite in every coordinate.")
        scale = np.sqrt(np.broadcast_to(given, region.origin.shape))
        u = region.rows / scale
        norms = np.sqrt(np.einsum("ij,ij->i", u, u))
        if not (norms > 1e-140).all():  # zero rows, and rows whose squares underflow
            largest = np.abs(u).max(axis=1, initial=0.0)
            largest[largest == 0.0] = 1.0
            norms = largest * np.linalg.norm(u / largest[:, None], axis=1)
            norms[norms == 0.0] = 1.0
        u /= norms[:, None]
        guard = np.zeros((5, len(u))) if region.guard is None else region.guard
        return cls(
            u=u,
            scale=np.ascontiguousarray(scale),
            norms=norms,
            offsets=region.offsets / norms,
            origin=np.array(region.origin),
            guard=np.ascontiguousarray(guard / norms),
        )

    @cached_property
    def compiled(self) -> _core.Rows:
        """The rows as the compiled core reads them."""
        return _core.Rows.listed(self.u, self.offsets, self.origin, self.scale, self.guard)

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def project(
    points: Any,
    region: Region,
    metric: Any = 1.0,
    *,
    rows: NDArray[np.int64] | None = None,
    unit: UnitRows | None = None,
    certify: bool = True,
    into: Projection | None = None,
    places: NDArray[np.int64] | None = None,
) -> Projection:
    """Find the nearest point of a region for each of a batch of points.

    Parameters
    ----------
    points : array of shape (n, d)
    region : Region
        Rows and box; the box may be one a point.
    metric : array of shape (d,) or a number
        Positive weights q of the squared distance.
    rows : array of int, optional
        Which points to project, in this order; a point may come several times. All by default.
    unit : UnitRows, optional
        ``UnitRows.of(region, metric)``, where it is known already.
    certify : bool
        Whether to return the multipliers, which take a number a row and answer. Without, they
        have no columns.
    into, places : Projection, array of int, optional
        Where to write the answers, and at which positions, instead of a new Projection. The
        caller then vouches for points, rows and boxes.

    Returns
    -------
    Projection

    Examples
    --------
    >>> from voicecf.projection import project
    >>> from voicecf.region import Region
    >>> project([[2.0, 0.5]], Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0)).points
    array([[0.5, 0.5]])
    """
    points = np.ascontiguousarray(np.atleast_2d(np.asarray(points, dtype=np.float64)))
    unit = UnitRows.of(region, metric) if unit is None else unit
    rows = np.arange(len(points)) if rows is None else np.asarray(rows, dtype=np.int64)
    m, d = unit.u.shape
    if into is None or places is None:
        _check(points, rows, region, d)
        into, places = Projection.blank(len(rows), d, m if certify else 0), np.arange(len(rows))
    batch = _core.Batch(
        points, np.atleast_2d(region.lo), np.atleast_2d(region.hi), rows=rows, places=places
    )
    results = _results(into)
    compiled = unit.compiled
    in_parallel(
        lambda a, b: compiled.project(batch, results, a, b),
        len(rows),
        chunk=even_chunk(len(rows), 64),
    )
    if certify:
        with np.errstate(over="ignore"):
            into.multipliers[places] /= unit.norms
    return into


def project_into_cells(
    points: Array,
    rows: NDArray[np.int64],
    targets: NDArray[np.int64],
    box: tuple[Array, Array],
    clusters: _core.Rows,
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
    n_clusters : int
        How many there are, if multipliers are asked for: these have a column a cluster.
    """
    found = Projection.blank(len(rows), points.shape[1], n_clusters)
    lo, hi = map(np.atleast_2d, box)
    batch, results = _core.Batch(points, lo, hi, rows=rows, targets=targets), _results(found)
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
    source: NDArray[np.int64]
    found: Projection
    cost: Array
    n_changed: NDArray[np.int64]

    @classmethod
    def over(
        cls,
        values: Array,
        copied: bool,
        targets: NDArray[np.int64],
        box: tuple[Array, Array],
        clusters: _core.Rows,
        least: Array,
    ) -> Pass:
        """Answer rows, each for its own target; the user's own array is to be `copied`.

        A column that moves by no more than its entry in `least` has not changed.
        """
        n, d = values.shape
        # Two pieces of memory instead of eight: an allocator gives many back to the system and has
        # to fetch them anew for the next batch, which costs as much as the answers.
        own, points = np.empty((2, n, d)) if copied else (values, np.empty((n, d)))
        gap, reach, cost, source, changed = np.empty((5, n))
        found = Projection(points, np.empty((n, 0)), gap, reach, np.empty(n, np.int8))
        done = cls(own, source.view(np.int64), found, cost, changed.view(np.int64))
        lo, hi = map(np.atleast_2d, box)
        batch = _core.Batch(values, lo, hi, targets=targets)
        results = _results(done.found)
        results.tell(done.source, done.cost, done.n_changed, least, own if copied else None)
        in_parallel(lambda a, b: clusters.project(batch, results, a, b), n, chunk=even_chunk(n))
        return done

    def stay(self, rows: NDArray[np.int64]) -> None:
        """Leave rows where they are: they are in their target already."""
        found = self.found
        found.points[rows], found.status[rows] = self.points[rows], Status.ALREADY
        found.gap[rows], found.reach[rows] = 0.0, np.inf
        self.cost[rows], self.n_changed[rows] = 0.0, 0


def _results(into: Projection) -> _core.Results:
    return _core.Results(into.points, into.multipliers, into.gap, into.reach, into.status)


def _check(points: Array, rows: NDArray[np.int64], region: Region, d: int) -> None:
    if points.shape[1] != d:
        raise ValueError(f"points have {points.shape[1]} coordinates, the region has {d}.")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(points)):
        raise ValueError(f"rows must be positions of the {len(points)} points.")
    for side in (region.lo, region.hi):
        if side.ndim == 2 and len(side) not in (1, len(points)):
            raise ValueError(f"the region has {len(side)} boxes for {len(points)} points.")
    if not np.isfinite(points).all():
        raise ValueError("points must be finite numbers.")
