"""Project points onto a region in a diagonal metric: batches in, answers with certificates out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf._compile import announce, in_parallel
from voicecf.memory import empty
from voicecf.region import Array, Region
from voicecf.status import Status

# More rows than this are solved by cuts.
FEW_ROWS = 48
# Points whose box binds that are handed to a core at a time: they are few, and take long.
FEW_LEFT = 256


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
        return cls(empty((n, d)), np.zeros((n, m)), empty(n), empty(n), empty(n, dtype=np.int8))


@dataclass(frozen=True)
class UnitRows:
    """A region's rows, scaled so that a slack is a distance in the metric.

    Where there are many, `single` holds them transposed, in single precision and in the row's own
    `unit`, about one over its offset. Where there are few, `gram` holds their products, `across`
    the rows for coordinates as they are (by twos, columns by fours) and `along` what their
    multipliers do to these: see `_open`.
    """

    u: Array
    unit: Array
    single: NDArray[np.float32]
    scale: Array
    norms: Array
    offsets: Array
    origin: Array
    guard: Array
    gram: Array
    across: Array
    along: Array

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
        offsets = region.offsets / norms
        many = len(u) > FEW_ROWS
        typical = np.abs(offsets).mean() if many else 0.0
        unit = 1.0 / np.maximum(np.abs(offsets), 0.1 * typical) if typical > 0 else np.ones(len(u))
        return cls(
            u=u,
            unit=unit,
            single=np.ascontiguousarray((u * unit[:, None]).T if many else u[:0].T, np.float32),
            scale=np.ascontiguousarray(scale),
            norms=norms,
            offsets=offsets,
            origin=np.array(region.origin),
            guard=np.ascontiguousarray(guard / norms),
            gram=u[:0] if many else np.einsum("ji,ki->jk", u, u),
            across=padded(u[:0] if many else u * scale, 2, 4),
            along=u[:0] if many else -(u / scale),
        )


@dataclass(frozen=True)
class Stack:
    """Rows of several regions that differ in nothing but these, as `_open` reads them.

    Every array but `metric` has an entry a region.
    """

    offsets: Array
    origins: Array
    guards: Array
    grams: Array
    across: Array
    along: Array
    metric: Array
    aways: Array
    norms: Array

    @classmethod
    def of(cls, units: list[UnitRows]) -> Stack:
        """Stack rows that were scaled for the same metric."""
        scale = units[0].scale

        def stacked(name: str) -> Array:
            return np.stack([getattr(unit, name) for unit in units])

        return cls(
            offsets=stacked("offsets"),
            origins=stacked("origin"),
            guards=stacked("guard"),
            grams=stacked("gram"),
            across=stacked("across"),
            along=stacked("along"),
            metric=scale**2,
            aways=np.sqrt(((scale * stacked("origin")) ** 2).sum(axis=1)),
            norms=stacked("norms"),
        )

    @property
    def geometry(self) -> tuple[Array, ...]:
        """What the compiled loop takes, in its order."""
        return tuple(vars(self).values())


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
    binding: bool = False,
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
    binding : bool
        Whether it is known that the answers without a box are none.

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
    points = writable(np.atleast_2d(np.asarray(points, dtype=np.float64)))
    unit = UnitRows.of(region, metric) if unit is None else unit
    rows = np.arange(len(points)) if rows is None else np.asarray(rows, dtype=np.int64)
    m, d = unit.u.shape
    if into is None or places is None:
        _check(points, rows, region, d)
        into, places = Projection.blank(len(rows), d, m if certify else 0), np.arange(len(rows))
    problem = (
        rows, places, points, writable(np.atleast_2d(region.lo)),
        writable(np.atleast_2d(region.hi)), unit.offsets, unit.origin, unit.u, unit.scale,
        unit.guard, into.points, into.multipliers, into.gap, into.reach, into.status,
    )  # fmt: skip
    if binding or not m:
        into.status[places] = Status.UNRESOLVED
    _solve(problem, unit, len(rows), lambda: into.status[places], binding or not m)
    missed = places[into.status[places] != Status.OPTIMAL]
    into.points[missed], into.gap[missed], into.reach[missed] = np.nan, np.nan, np.nan
    if certify:
        with np.errstate(over="ignore"):
            into.multipliers[places] /= unit.norms
    return into


def padded(a: Array, *multiples: int) -> Array:
    """Add zeros up to a multiple of some number in each direction."""
    shape = [-(-size // by) * by for size, by in zip(a.shape, multiples, strict=True)]
    wide = np.zeros(shape)
    wide[tuple(map(slice, a.shape))] = a
    return wide


def writable(values: Array) -> Array:
    """Return values as compiled code knows them: for read-only ones it would compile anew."""
    return np.require(values, requirements=["C", "W", "O"] if not values.flags.writeable else ["C"])


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


def _alone(unit: UnitRows) -> tuple[Any, ...]:
    """One region for `_open.open_chunk`, and nothing to tell but its answers."""
    none, nowhere = np.empty(0), np.empty(0, dtype=np.int64)
    stack = Stack.of([unit])
    nothing = (0.0, -1.0, none, none, np.empty((0, 0)), nowhere, none, nowhere)
    return nowhere, *stack.geometry, *nothing


def _solve(
    problem: tuple[Any, ...],
    unit: UnitRows,
    n: int,
    status: Callable[[], NDArray[np.int8]],
    binding: bool,
) -> None:
    """Answer as if there were no box, what that misses by Newton, the rest by the safe phase."""
    m, d = unit.u.shape
    chunk = int(np.clip(4_000_000 // (1 + m * d) // 64 * 64, 64, 4096))
    if m > FEW_ROWS:
        from voicecf import _cuts

        announce(_cuts.__file__, _cuts.cuts_chunk)
        many = (*problem, unit.single, unit.unit)
        in_parallel(lambda a, b: _cuts.cuts_chunk(a, b, *many), n, chunk=chunk)
    else:
        if not binding:
            from voicecf import _open

            announce(_open.__file__, _open.open_chunk)
            free = (*problem[:5], *problem[10:], *_alone(unit))
            in_parallel(lambda a, b: _open.open_chunk(a, b, *free), n, chunk=chunk)
        left = np.flatnonzero(status() == Status.UNRESOLVED)
        if left.size:
            from voicecf import _kernel

            announce(_kernel.__file__, _kernel.project_chunk)
            rest = (problem[0][left], problem[1][left], *problem[2:])
            in_parallel(lambda a, b: _kernel.project_chunk(a, b, *rest), len(left), chunk=FEW_LEFT)
    hard = np.flatnonzero(status() == Status.UNRESOLVED)
    if hard.size:
        from voicecf import _active_set

        announce(_active_set.__file__, _active_set.settle_chunk)
        in_parallel(
            lambda a, b: _active_set.settle_chunk(a, b, hard, *problem), len(hard), chunk=64
        )
