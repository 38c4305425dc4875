"""Answers for one target: the cheapest point, the shortest ranked prefix, the fewest changes.

A prefix that is feasible stays feasible when it grows, so r* is found by a search that doubles its
stride and then halves it, from a lower bound that the single rows give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf import _core
from voicecf.branching import branch
from voicecf.choices import Choices
from voicecf.parallel import in_parallel
from voicecf.projection import Projection, UnitRows, project, project_into_cells
from voicecf.region import Array, Region
from voicecf.status import Status

Rows = NDArray[np.int64]
# Shares of the rounding guard that are tried, with the model's own word, where all of it empties
# a region: with collapsed weights the guard is far larger than what the model really rounds.
EASED = (0.0, 0.01, 0.1)


@dataclass(frozen=True)
class Aim:
    """Where answers have to lie, and what may move to get there.

    Attributes
    ----------
    region : Region
        Rows and box.
    unit : UnitRows
        The rows, scaled.
    order : array of int
        Features that may move, the most important first.
    agrees : callable
        Whether the model puts points into the target.
    doubted : bool
        Whether every answer has to be put to it, for nothing is known of its arithmetic.
    cells : voicecf._core.Rows, optional
        Rows of all cells, where the region is one of them.
    target : int
        Which of them.
    """

    region: Region
    unit: UnitRows
    order: Rows
    agrees: Callable[[Array], NDArray[np.bool_]]
    doubted: bool = False
    cells: _core.Rows | None = None
    target: int = 0

    def project(self, points: Array, rows: Rows, *, certify: bool = False) -> Projection:
        """Project onto the region, as far behind its rows as the model's arithmetic needs."""
        if self.cells is None:
            found = project(points, self.region, rows=rows, unit=self.unit, certify=certify)
        else:
            found = self._project_into_cell(points, rows, self.cells, certify)
        self._ease(points, rows, found, certify)
        if self.doubted:
            hits = np.flatnonzero(found.status == Status.OPTIMAL)
            lost = hits[~self.agrees(found.points[hits])]
            found.status[lost] = Status.UNRESOLVED
            found.points[lost] = np.nan
        return found

    def _project_into_cell(
        self, points: Array, rows: Rows, cells: _core.Rows, certify: bool
    ) -> Projection:
        """Project by the rows of all cells: the answers of a batch of many targets, bit for bit."""
        targets, k = np.full(len(rows), self.target), len(self.unit.u) + 1
        box = self.region.lo, self.region.hi
        found = project_into_cells(points, rows, targets, box, cells, k if certify else 0)
        if not certify:
            return found
        return replace(found, multipliers=np.delete(found.multipliers, self.target, axis=1))

    def _ease(self, points: Array, rows: Rows, found: Projection, certify: bool) -> None:
        """Try less of the guard where all of it leaves nothing, and take the model's word."""
        open_ = np.flatnonzero(found.status == Status.UNRESOLVED)
        for share in EASED if open_.size else ():
            guard = self.unit.guard.copy()
            guard[1:] *= share
            eased = replace(self.unit, guard=guard)
            again = project(points, self.region, rows=rows[open_], unit=eased, certify=certify)
            hit = again.status == Status.OPTIMAL
            hit[hit] = self.agrees(again.points[hit])
            settled = hit | (again.status == Status.INFEASIBLE)
            for name in again.__dataclass_fields__:
                getattr(found, name)[open_[settled]] = getattr(again, name)[settled]
            open_ = open_[~settled]

    def allow(
        self, points: Array, rows: Rows, counts: NDArray[np.int64], *, certify: bool = False
    ) -> Projection:
        """Project with only the first `counts` features of the order free to move."""
        own, lo, hi = np.empty((3, len(rows), points.shape[1]))
        np.take(points, rows, axis=0, out=own, mode="clip")  # unchecked, so without a buffer
        sides = (np.atleast_2d(s) for s in (self.region.lo, self.region.hi))
        low, high = (s[rows] if len(s) > 1 else s for s in sides)
        batch, order = _core.Batch(own, low, high), self.order
        in_parallel(lambda a, b: _core.prefix_boxes(batch, order, counts, lo, hi, a, b), len(own))
        narrowed = replace(self, region=self.region.within(lo, hi))
        return narrowed.project(own, np.arange(len(own)), certify=certify)

    def least_prefix(self, points: Array, rows: Rows) -> NDArray[np.int64]:
        """Length that no feasible prefix is shorter than, row by row of the region."""
        floor = np.empty(len(rows), dtype=np.int64)
        lo, hi = np.atleast_2d(self.region.lo), np.atleast_2d(self.region.hi)
        batch, order = _core.Batch(points, lo, hi, rows=rows), self.order
        compiled = self.unit.compiled
        in_parallel(lambda a, b: compiled.prefix_floors(batch, order, floor, a, b), len(rows))
        return floor


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

    @property
    def found(self) -> NDArray[np.bool_]:
        """Which problems have an answer."""
        return np.asarray((self.status == Status.OPTIMAL) | (self.status == Status.STOPPED))

    @classmethod
    def of(cls, found: Projection | Answers, cardinality: NDArray[np.int64]) -> Answers:
        """Answers that one projection gives."""
        return cls(found.points, found.gap, found.reach, found.status, cardinality)

    @classmethod
    def joined(cls, parts: list[Answers]) -> Answers:
        """Return several answers as one."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def __getitem__(self, which: Any) -> Answers:
        """Return some of them."""
        return Answers(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def put(self, at: Any, others: Answers, which: Any = slice(None)) -> None:
        """Copy `others[which]` into place."""
        for name in self.__dataclass_fields__:
            getattr(self, name)[at] = getattr(others, name)[which]


@dataclass(frozen=True)
class Choosing(Aim):
    """An aim whose columns choose; `order` holds columns, not coordinates.

    Attributes
    ----------
    choices : Choices
        What each row may choose.
    limit : int
        Most boxes that are looked at for a row.
    """

    choices: Choices | None = None
    limit: int = 0

    def choose(
        self, points: Array, rows: Rows, *, fewest: bool = False, locked: Any = None
    ) -> Answers:
        """Find the best choices, as far behind the rows as the model's arithmetic needs."""
        answers = self._choose(points, rows, self.unit, fewest, locked)
        open_ = np.flatnonzero(answers.status == Status.UNRESOLVED)
        for share in EASED if open_.size else ():
            guard = self.unit.guard.copy()
            guard[1:] *= share
            held = locked if locked is None or len(locked) == 1 else locked[open_]
            again = self._choose(points, rows[open_], replace(self.unit, guard=guard), fewest, held)
            hit = again.found
            hit[hit] = self.agrees(again.points[hit])
            settled = hit | (again.status == Status.INFEASIBLE)
            answers.put(open_[settled], again, settled)
            open_ = open_[~settled]
        if self.doubted:
            hits = np.flatnonzero(answers.found)
            lost = hits[~self.agrees(answers.points[hits])]
            answers.put(lost, Answers.blank(len(lost), points.shape[1]))
        return answers

    def _choose(
        self, points: Array, rows: Rows, unit: UnitRows, fewest: bool, locked: Any
    ) -> Answers:
        assert self.choices is not None
        found = branch(
            points, rows, unit, self.choices, limit=self.limit, fewest=fewest, locked=locked
        )
        gap = np.full(len(rows), np.nan)
        hit = ~np.isnan(found.points).any(axis=1)
        gap[hit] = found.energy[hit] - found.bound[hit]
        return Answers(found.points, gap, found.reach, found.status, found.changes)

    def allow(  # type: ignore[override]
        self, points: Array, rows: Rows, counts: NDArray[np.int64], *, certify: bool = False
    ) -> Answers:
        """Choose with only the first `counts` columns of the order free to move."""
        assert self.choices is not None
        places = np.full(len(self.choices.freedom), len(self.order))
        places[self.order] = np.arange(len(self.order))
        return self.choose(points, rows, locked=places >= counts[:, None])

    def least_prefix(self, points: Array, rows: Rows) -> NDArray[np.int64]:
        """Length that no feasible prefix is shorter than: at least a column has to move."""
        return np.ones(len(rows), dtype=np.int64)


def least_cost(points: Array, rows: Rows, aim: Aim) -> Answers:
    """Find the cheapest point of the region; every feature of the order may move."""
    if isinstance(aim, Choosing):
        answers = aim.choose(points, rows)
        answers.cardinality[:] = np.minimum(answers.cardinality, len(aim.order))
        return answers
    return Answers.of(aim.project(points, rows), np.full(len(rows), len(aim.order)))


def fewest_changes(points: Array, rows: Rows, aim: Aim) -> Answers:
    """Find the fewest columns whose change reaches the region, and their cheapest point."""
    assert isinstance(aim, Choosing)
    return aim.choose(points, rows, fewest=True)


def shortest_prefix(points: Array, rows: Rows, aim: Aim) -> Answers:
    """Find the shortest prefix of the order that reaches the region, and its cheapest point."""
    longest = len(aim.order)
    if longest == 0:
        return least_cost(points, rows, aim)
    floor = aim.least_prefix(points, rows)
    hopeless = floor > longest
    below = np.where(hopeless, 0, floor - 1)  # known to be infeasible
    above = np.full(len(rows), longest + 1)  # least known to be feasible
    probe = np.where(hopeless, longest, floor)
    stride = np.ones(len(rows), dtype=np.int64)
    answers = Answers.blank(len(rows), points.shape[1])
    answers.cardinality[:] = longest
    open_ = np.arange(len(rows))
    while open_.size:
        found = aim.allow(points, rows[open_], probe[open_])
        fits = (found.status == Status.OPTIMAL) | (found.status == Status.STOPPED)
        kept = fits | (probe[open_] == longest)
        answers.put(open_[kept], Answers.of(found, probe[open_]), kept)
        above[open_[fits]] = probe[open_[fits]]
        below[open_[~fits]] = probe[open_[~fits]]
        stride[open_[~fits]] *= 2
        open_ = open_[(above[open_] - below[open_] > 1) & (below[open_] < longest)]
        known = above[open_] <= longest
        ahead = np.minimum(below[open_] + stride[open_], longest)
        probe[open_] = np.where(known, (below[open_] + above[open_]) // 2, ahead)
    return answers
