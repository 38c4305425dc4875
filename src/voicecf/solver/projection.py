"""Project a batch of points onto a region in a diagonal metric, with certificates."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.errors import DataError, OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import SHORT_NORMAL
from voicecf.parallel import even_chunk, in_parallel
from voicecf.status import Status

# Results that are copied or filled at a time.
COPIED = 1 << 16
# How many numbers a batch has whose memory is used again. The allocator itself reuses smaller
# blocks; larger ones are returned to the system.
REUSED = range(1 << 20, 1 << 23)

# Memory of the last batch whose results are all gone.
_spare: deque[Array] = deque(maxlen=1)


@dataclass(frozen=True)
class Projection:
    """Results of n problems: projections onto regions with m constraints, or searches over them.

    Attributes
    ----------
    points : array of shape (n, d)
        The nearest points of the region; NaN where none was found.
    multipliers : array of shape (n, m)
        Lagrange multipliers of the constraints for the objective 1/2 sum q (z - a)^2. Where the
        region is empty, a Farkas vector: the sum of ``normals @ (z - origin) - offsets`` with these
        weights is positive for all z in the box. No columns where they were not asked for.
    gap : array of shape (n,)
        Duality gap of that objective.
    rho : array of shape (n,)
        The largest multiple of the move that stays in the region, at least 1.
    status : array of shape (n,)
        A `Status` per point.
    cardinality : array of shape (n,)
        Number of coordinates, or of columns where these are searched, that were allowed to change.
    close : array of shape (n,)
        Whether an answer has less slack than rounding in the model may need, so that only the
        model itself can say whether it is in its target.

    Examples
    --------
    >>> from voicecf import Region, project
    >>> found = project([[2.0, 3.0]], Region([[1.0, 0.0]], [0.5]))
    >>> found.points, found.gap
    (array([[0.5, 3. ]]), array([0.]))
    """

    points: Array
    multipliers: Array
    gap: Array
    rho: Array
    status: NDArray[np.int8]
    cardinality: Ints
    close: Mask

    @classmethod
    def empty(cls, n: int, d: int, m: int = 0, block: Array | None = None) -> Projection:
        """Return arrays for n results with m multipliers each, which are not filled in yet.

        Their numbers lie in one block of memory, of n * (d + 2), whose pages are touched first by
        the threads that fill them.
        """
        block = np.empty(n * (d + 2)) if block is None else block
        gap, rho = block[n * d :].reshape(2, n)
        return cls(
            block[: n * d].reshape(n, d), np.zeros((n, m)), gap, rho, np.empty(n, np.int8),
            np.full(n, d), np.empty(n, np.bool_),
        )  # fmt: skip

    @classmethod
    def unresolved(cls, n: int, d: int) -> Projection:
        """Return n results that are all unresolved, to be filled in."""
        points = np.empty((n, d))
        in_parallel(lambda a, b: points[a:b].fill(np.nan), n, chunk=COPIED)
        return cls(
            points, np.empty((n, 0)), np.full(n, np.nan), np.full(n, np.nan),
            np.full(n, Status.UNRESOLVED, dtype=np.int8), np.zeros(n, dtype=np.int64),
            np.zeros(n, dtype=np.bool_),
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: list[Projection]) -> Projection:
        """Return the results of all parts, one part after the other."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def answered(self) -> Mask:
        """Mask of the problems that have an answer."""
        return has_answer(self.status)

    def __getitem__(self, which: Any) -> Projection:
        """Return the results at a mask, slice or indices."""
        return Projection(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def put(self, at: Ints, others: Projection, which: Mask | None = None) -> None:
        """Overwrite the results `at` these positions by others, or by some of them."""
        chosen = None if which is None else np.flatnonzero(which)

        def copy(a: int, b: int) -> None:
            entries: Any = slice(a, b) if chosen is None else chosen[a:b]
            for name in self.__dataclass_fields__:
                getattr(self, name)[at[a:b]] = getattr(others, name)[entries]

        in_parallel(copy, len(at), chunk=COPIED)


def has_answer(status: NDArray[np.int8]) -> Mask:
    """Return a mask of the statuses that come with an answer: optimal, or cut short."""
    return np.asarray((status == Status.OPTIMAL) | (status == Status.STOPPED))


@dataclass(frozen=True)
class Prefixes:
    """The coordinates that may change in each of n problems: those whose rank is below its count.

    Attributes
    ----------
    ranks : array of shape (d,)
        Position of each coordinate in the order of importance; from 0 on.
    counts : array of shape (n,)
        Number of coordinates that may change in each problem.
    """

    ranks: Ints
    counts: Ints

    @classmethod
    def without(
        cls, fixed: Mask, points: Array, rows: Ints, box: tuple[Array, Array]
    ) -> Prefixes | None:
        """Return all but the fixed coordinates; None if there are none, or a box asks for others.

        A box that excludes the own value of a row makes its problem infeasible, which a coordinate
        that may not change would hide.
        """
        at = np.flatnonzero(fixed)
        own = points[np.ix_(rows, at)]
        sides = (np.atleast_2d(side) for side in box)
        held = all((side[:, at][0 if len(side) == 1 else rows] == own).all() for side in sides)
        return cls(fixed.astype(np.int64), np.ones_like(rows)) if at.size and held else None

    def of(self, which: Ints) -> Prefixes:
        """Return the prefixes of the problems at these indices."""
        return Prefixes(self.ranks, self.counts[which])


@dataclass(frozen=True)
class UnitConstraints:
    """A region's constraints, scaled to unit normals so that a slack is a distance in the metric.

    Attributes
    ----------
    normals : array of shape (m, d)
        Unit normals; zero for normals that were zero.
    scale : array of shape (d,)
        Square root of the metric.
    lengths : array of shape (m,)
        Lengths of the normals before scaling; 1 for normals of zero.
    offsets : array of shape (m,)
        Right-hand sides, divided by the lengths.
    origin : array of shape (d,)
        The region's.
    guard : Guard
        The region's, divided by the lengths.
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
        q = _numbers(metric, "metric")
        fits = q.shape in ((), region.origin.shape)
        if not (fits and np.isfinite(q).all() and (q > 0).all()):
            raise ValueError("the metric must be positive and finite in every coordinate.")
        scale = np.sqrt(np.broadcast_to(q, region.origin.shape))
        normals = region.normals / scale
        lengths = _lengths(normals)
        normals /= lengths[:, None]
        guard = Guard.none(len(normals)) if region.guard is None else region.guard
        return cls(
            normals=normals,
            scale=np.ascontiguousarray(scale),
            lengths=lengths,
            offsets=region.offsets / lengths,
            origin=np.array(region.origin),
            guard=guard.per_unit(lengths),
        )

    def with_room(self, more: int) -> UnitConstraints:
        """Return the constraints followed by some that always hold, 0 <= 0."""
        zeros = np.zeros(more)
        return replace(
            self,
            normals=np.vstack([self.normals, np.zeros((more, self.normals.shape[1]))]),
            lengths=np.concatenate([self.lengths, zeros + 1.0]),
            offsets=np.concatenate([self.offsets, zeros]),
            guard=self.guard.followed_by(Guard.none(more)),
        )

    @cached_property
    def compiled(self) -> _core.Rows:
        """The constraints in the layout of the compiled core."""
        return self.in_order(slice(None))

    def in_order(self, order: Any) -> _core.Rows:
        """Return the constraints for the compiled core, with the coordinates in another order."""
        normals, guard = np.ascontiguousarray(self.normals[:, order]), self.guard.table()
        return _core.Rows.listed(
            normals, self.offsets, self.origin[order], self.scale[order], guard
        )

    def __getstate__(self) -> dict[str, Any]:
        # The cached `compiled` is left out; it is computed again when needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _lengths(normals: Array) -> Array:
    """Return the lengths of normals, also of those whose squares underflow; 1 for zero normals."""
    lengths = np.sqrt(np.einsum("ij,ij->i", normals, normals))
    if (lengths > SHORT_NORMAL).all():
        return np.asarray(lengths)
    largest = np.abs(normals).max(axis=1, initial=0.0)
    largest[largest == 0.0] = 1.0
    lengths = largest * np.linalg.norm(normals / largest[:, None], axis=1)
    lengths[lengths == 0.0] = 1.0
    return np.asarray(lengths)


def project(
    points: Any,
    region: Region,
    metric: Any = 1.0,
    *,
    rows: Ints | None = None,
    unit: UnitConstraints | None = None,
    prefixes: Prefixes | None = None,
    prices: tuple[Array, Array] | None = None,
    factor: float = 1.0,
    certify: bool = True,
) -> Projection:
    """Find the nearest point of a region for each of a batch of points.

    With `prices`, find the point of least price, and among points of one price the nearest.

    Parameters
    ----------
    points : array of shape (n, d)
    region : Region
        Constraints and box; there may be one box per point.
    metric : array of shape (d,) or a number
        Positive weights q of the squared distance.
    rows : array of int, optional
        Indices of the points to project, in this order; an index may occur several times. All
        points by default; only then they are checked to be finite.
    unit : UnitConstraints, optional
        ``UnitConstraints.of(region, metric)``, if it has been computed already.
    prefixes : Prefixes, optional
        The coordinates that may change; all by default.
    prices : pair of arrays of shape (d,), optional
        What each coordinate costs per unit more, and per unit less. Multipliers and gap are then
        those of the price.
    factor : float
        Factor on the slack of the region's guard.
    certify : bool
        If False, no multipliers are returned: the array has no columns.

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
    if not isinstance(region, Region):
        raise OptionError(f"region={region!r} is no Region; use Region(...) or voice.region(0).")
    points = np.ascontiguousarray(np.atleast_2d(_numbers(points, "points")))
    unit = UnitConstraints.of(region, metric) if unit is None else unit
    if rows is None and not np.isfinite(points).all():
        raise DataError("points must be finite numbers.")
    rows = np.arange(len(points)) if rows is None else np.asarray(rows, dtype=np.int64)
    m, d = unit.normals.shape
    _check(points, rows, region, d)
    projection = Projection.empty(len(rows), d, m if certify else 0)
    lo, hi = np.atleast_2d(region.lo), np.atleast_2d(region.hi)
    batch = _core.Batch(points, lo, hi, rows=rows, factor=factor)
    if prefixes is not None:
        batch.limit(prefixes.ranks, prefixes.counts)
    if prices is not None:
        batch.price(*(np.ascontiguousarray(side, dtype=np.float64) for side in prices))
    results, compiled = _results(projection), unit.compiled
    in_parallel(
        lambda a, b: compiled.project(batch, results, a, b),
        len(rows),
        chunk=even_chunk(len(rows), 64),
        rows=True,
    )
    if certify:
        with np.errstate(over="ignore"):
            projection.multipliers[:] /= unit.lengths
    return projection


def project_into_cells(
    points: Array,
    rows: Ints,
    targets: Ints,
    box: tuple[Array, Array],
    clusters: _core.Rows,
    *,
    prefixes: Prefixes | None = None,
    factor: float = 1.0,
    n_clusters: int = 0,
) -> Projection:
    """Project points onto the cells of clusters, each point onto the cell of its own target.

    Parameters
    ----------
    points : array of shape (n, d)
    rows : array of int
        Indices of the points to project, in this order.
    targets : array of int
        The target cluster for each of `rows`.
    box : pair of arrays of shape (d,) or (n, d)
        Lower and upper bounds.
    clusters : voicecf._core.Rows
        Constraints of all cells, contracted.
    prefixes : Prefixes, optional
        The coordinates that may change; all by default.
    factor : float
        Factor on the slack that rounding in the model requires.
    n_clusters : int
        Number of columns of the multipliers: k, one per cluster, or 0 to leave them out.
    """
    projection = Projection.empty(len(rows), points.shape[1], n_clusters)
    lo, hi = map(np.atleast_2d, box)
    batch = _core.Batch(points, lo, hi, rows=rows, targets=targets, factor=factor)
    if prefixes is not None:
        batch.limit(prefixes.ranks, prefixes.counts)
    results = _results(projection)
    in_parallel(
        lambda a, b: clusters.project(batch, results, a, b),
        len(rows),
        chunk=even_chunk(len(rows)),
        rows=True,
    )
    return projection


def assign_and_project(
    values: Array, targets: Ints, box: tuple[Array, Array], clusters: _core.Rows, *, copied: bool
) -> tuple[Array, Ints, Projection, Array]:
    """Copy, assign, project and measure rows in one pass over memory.

    Parameters
    ----------
    values : array of shape (n, d)
        The rows.
    targets : array of shape (n,)
        The target of each.
    box : pair of arrays
        Lower and upper bounds.
    clusters : voicecf._core.Rows
        Constraints of all cells, contracted.
    copied : bool
        True if `values` is the user's own array, so that the result needs a copy of it.

    Returns
    -------
    points : array of shape (n, d)
        The rows, as coordinates.
    source : array of shape (n,)
        The cluster of each row; -1 where rounding could decide and the model has to be asked.
    projection : Projection
        Without multipliers. The gap is relative to half the energy.
    cost : array of shape (n,)
    """
    n, d = values.shape
    block = _memory(n * (d + 4 + d * copied))
    answers, others = np.split(block, [n * (d + 2)])
    projection = Projection.empty(n, d, block=answers)
    cost, source = others[: 2 * n].reshape(2, n)
    rows, whole = others[2 * n :].reshape(n, d) if copied else values, source.view(np.int64)
    lo, hi = map(np.atleast_2d, box)
    batch = _core.Batch(values, lo, hi, targets=targets)
    results = _results(projection)
    results.tell(whole, cost, rows if copied else None)
    in_parallel(
        lambda a, b: clusters.project(batch, results, a, b), n, chunk=even_chunk(n), rows=True
    )
    return rows, whole, projection, cost


def _memory(size: int) -> Array:
    """Return an array of `size` numbers, in memory of an earlier batch if there is any.

    The system clears memory that is new to a process, which takes as long as the projections.
    """
    if size not in REUSED:
        return np.empty(size)
    try:
        memory = _spare.pop()
    except IndexError:
        memory = np.empty(0)
    if len(memory) < size:
        memory = np.empty(size)
    # Every view of this array refers to it, and not to the memory: when it ends, none is left.
    block: Array = np.asarray(memory[:size].data)
    finalize(block, _spare.append, memory).atexit = False
    return block


def _numbers(values: Any, name: str) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers; got {str(values)[:60]!r}.") from None


def _results(p: Projection) -> _core.Results:
    """Return the arrays of a projection for the compiled core to fill in."""
    return _core.Results(p.points, p.multipliers, p.gap, p.rho, p.status, p.close)


def _check(points: Array, rows: Ints, region: Region, d: int) -> None:
    """Raise ValueError if points, rows and box do not fit together."""
    if points.shape[1] != d:
        raise ValueError(f"points have {points.shape[1]} coordinates, the region has {d}.")
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(points)):
        raise ValueError(f"rows must be indices into the {len(points)} points.")
    for side in (region.lo, region.hi):
        if side.ndim == 2 and len(side) not in (1, len(points)):
            raise ValueError(f"the region has {len(side)} boxes for {len(points)} points.")
