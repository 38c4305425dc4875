"""Answers for one target: the cheapest point, and the shortest ranked prefix.

A prefix that is feasible stays feasible when it grows, so r* is found by a search that doubles its
stride and then halves it, from a lower bound that the single rows give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf._compile import in_parallel
from voicecf.projection import Projection, UnitRows, project
from voicecf.region import Array, Region
from voicecf.status import Status

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Answers:
    """Answers to n problems; `cardinality` is the number of features that were allowed to move."""

    points: Array
    gap: Array
    reach: Array
    status: NDArray[np.int8]
    cardinality: NDArray[np.int64]

    @classmethod
    def blank(cls, n: int, d: int) -> Answers:
        """Room for n answers, all unresolved."""
        return cls(
            np.full((n, d), np.nan),
            np.full(n, np.nan),
            np.full(n, np.nan),
            np.full(n, Status.UNRESOLVED, dtype=np.int8),
            np.zeros(n, dtype=np.int64),
        )

    def put(self, at: Any, others: Answers, which: Any = slice(None)) -> None:
        """Copy `others[which]` into place."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[at] = getattr(others, name)[which]


def _answers(projection: Projection, cardinality: NDArray[np.int64]) -> Answers:
    return Answers(
        projection.points, projection.gap, projection.reach, projection.status, cardinality
    )


def least_cost(points: Array, rows: Rows, region: Region, unit: UnitRows, order: Rows) -> Answers:
    """Find the cheapest point of the region; every feature of `order` may move."""
    found = project(points, region, rows=rows, unit=unit, certify=False)
    return _answers(found, np.full(len(rows), len(order)))


def shortest_prefix(points: Array, rows: Rows, region: Region, unit: UnitRows, order: Rows) -> Answers:
    """Find the shortest prefix of `order` that reaches the region, and its cheapest point."""
    if len(order) == 0:
        return least_cost(points, rows, region, unit, order)
    floor = _prefix_floor(points, rows, region, unit, order)
    hopeless = floor > len(order)
    below = np.where(hopeless, 0, floor - 1)  # known to be infeasible
    above = np.full(len(rows), len(order) + 1)  # least known to be feasible
    probe = np.where(hopeless, len(order), floor)
    answers = Answers.blank(len(rows), points.shape[1])
    answers.cardinality[:] = len(order)
    stride = np.ones(len(rows), dtype=np.int64)
    open_ = np.arange(len(rows))
    while open_.size:
        found = allow_prefix(points, rows[open_], region, unit, order, probe[open_])
        fits = found.status == Status.OPTIMAL
        kept = fits | (probe[open_] == len(order))
        answers.put(open_[kept], _answers(found, probe[open_]), kept)
        above[open_[fits]] = probe[open_[fits]]
        below[open_[~fits]] = probe[open_[~fits]]
        stride[open_[~fits]] *= 2
        open_ = open_[(above[open_] - below[open_] > 1) & (below[open_] < len(order))]
        known = above[open_] <= len(order)
        ahead = np.minimum(below[open_] + stride[open_], len(order))
        probe[open_] = np.where(known, (below[open_] + above[open_]) // 2, ahead)
    return answers


def allow_prefix(
    points: Array,
    rows: Rows,
    region: Region,
    unit: UnitRows,
    order: Rows,
    counts: NDArray[np.int64],
    *,
    certify: bool = False,
) -> Projection:
    """Project with only the first `counts` features of the order free to move."""
    from voicecf import _cells

    own = points[rows]
    sides = [np.atleast_2d(s) for s in (region.lo, region.hi)]
    sides = [s[rows] if len(s) > 1 else s for s in sides]
    lo, hi = np.empty_like(own), np.empty_like(own)
    in_parallel(
        lambda a, b: _cells.prefix_box_chunk(a, b, own, *sides, order, counts, lo, hi), len(own)
    )
    return project(own, region.within(lo, hi), unit=unit, certify=certify)


def _prefix_floor(
    points: Array, rows: Rows, region: Region, unit: UnitRows, order: Rows
) -> NDArray[np.int64]:
    from voicecf import _cells

    floor = np.empty(len(rows), dtype=np.int64)
    lo, hi = np.atleast_2d(region.lo), np.atleast_2d(region.hi)
    in_parallel(
        lambda a, b: _cells.prefix_floor_chunk(
            a, b, rows, points, lo, hi, order, unit.origin, unit.u, unit.offsets, unit.scale, floor
        ),
        len(rows),
    )
    return floor
