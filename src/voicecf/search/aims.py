"""Answers for one target: the cheapest point, the shortest ranked prefix, the fewest changes.

A prefix that is feasible stays feasible when it grows, so r* is found by a search that doubles its
stride and then halves it, from a lower bound that single constraints give.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.region import Region
from voicecf.parallel import in_parallel
from voicecf.rules.choices import Choices
from voicecf.search.answers import Answers, is_found, put
from voicecf.search.branching import branch
from voicecf.solver.projection import (
    Prefixes,
    Projection,
    UnitConstraints,
    project,
    project_into_cells,
)
from voicecf.status import Status

# Shares of the rounding guard that are tried, with the model's own word, where all of it empties
# a region: with collapsed weights the guard is far larger than what the model really rounds.
EASED = (0.0, 0.01, 0.1)


@dataclass(frozen=True)
class Aim:
    """Where answers have to lie, and what may move to get there.

    Attributes
    ----------
    region : Region
        Constraints and box.
    unit : UnitConstraints
        The constraints, scaled.
    order : array of int
        Coordinates that may move, the most important first.
    agrees : callable
        Whether the model puts points into the target.
    doubted : bool
        Whether every answer has to be put to it, for nothing is known of its arithmetic.
    cells : voicecf._core.Rows, optional
        Constraints of all cells, where the region is one of them.
    target : int
        Which of them.
    """

    region: Region
    unit: UnitConstraints
    order: Ints
    agrees: Callable[[Array], Mask]
    doubted: bool = False
    cells: _core.Rows | None = None
    target: int = 0

    def project(
        self, points: Array, rows: Ints, prefixes: Prefixes | None = None, *, certify: bool = False
    ) -> Projection:
        """Project onto the region, with the slack that the model's arithmetic needs."""
        found = self._project(points, rows, prefixes, certify)

        def again(open_: Ints, share: float) -> Projection:
            eased = replace(self, unit=self.unit.guarded(share), cells=None)
            some = None if prefixes is None else prefixes.of(open_)
            return eased._project(points, rows[open_], some, certify)

        self._take_the_models_word(found, again)
        return found

    def _project(
        self, points: Array, rows: Ints, prefixes: Prefixes | None, certify: bool
    ) -> Projection:
        """Project; by the constraints of all cells, for the same bits as in a batch of targets."""
        if self.cells is None:
            return project(
                points, self.region, rows=rows, unit=self.unit, prefixes=prefixes, certify=certify
            )
        targets, k = np.full(len(rows), self.target), len(self.unit.normals) + 1
        box = self.region.lo, self.region.hi
        found = project_into_cells(
            points, rows, targets, box, self.cells,
            prefixes=prefixes, n_clusters=k if certify else 0,
        )  # fmt: skip
        if not certify:
            return found
        return replace(found, multipliers=np.delete(found.multipliers, self.target, axis=1))

    def _take_the_models_word(self, found: Any, again: Callable[[Ints, float], Any]) -> None:
        """Try less of the guard where all of it leaves nothing; ask the model if it is doubted.

        `again` solves some of the problems once more with a share of the guard.
        """
        open_ = np.flatnonzero(found.status == Status.UNRESOLVED)
        for share in EASED if open_.size else ():
            other = again(open_, share)
            hit = is_found(other.status)
            hit[hit] = self.agrees(other.points[hit])
            settled = hit | (other.status == Status.INFEASIBLE)
            put(found, open_[settled], other, settled)
            open_ = open_[~settled]
        if self.doubted:
            hits = np.flatnonzero(is_found(found.status))
            lost = hits[~self.agrees(found.points[hits])]
            found.status[lost], found.points[lost] = Status.UNRESOLVED, np.nan

    def allow(self, points: Array, rows: Ints, counts: Ints, *, certify: bool = False) -> Any:
        """Project with only the first `counts` coordinates of the order free to move."""
        ranks = np.full(points.shape[1], len(self.order))
        ranks[self.order] = np.arange(len(self.order))
        return self.project(points, rows, Prefixes(ranks, counts), certify=certify)

    def least_prefix(self, points: Array, rows: Ints) -> Ints:
        """Return lengths that no feasible prefix is shorter than, constraint by constraint."""
        floor = np.empty(len(rows), dtype=np.int64)
        lo, hi = np.atleast_2d(self.region.lo), np.atleast_2d(self.region.hi)
        batch, order = _core.Batch(points, lo, hi, rows=rows), self.order
        compiled = self.unit.compiled
        in_parallel(lambda a, b: compiled.prefix_floors(batch, order, floor, a, b), len(rows))
        return floor


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
        self, points: Array, rows: Ints, *, fewest: bool = False, locked: Any = None
    ) -> Answers:
        """Find the best choices, with the slack that the model's arithmetic needs."""

        def again(open_: Ints, share: float) -> Answers:
            some = locked if locked is None or len(locked) == 1 else locked[open_]
            return self._choose(points, rows[open_], self.unit.guarded(share), fewest, some)

        answers = self._choose(points, rows, self.unit, fewest, locked)
        self._take_the_models_word(answers, again)
        return answers

    def _choose(
        self, points: Array, rows: Ints, unit: UnitConstraints, fewest: bool, locked: Any
    ) -> Answers:
        assert self.choices is not None
        found = branch(
            points, rows, unit, self.choices, limit=self.limit, fewest=fewest, locked=locked
        )
        gap = np.full(len(rows), np.nan)
        hit = ~np.isnan(found.points).any(axis=1)
        gap[hit] = found.energy[hit] - found.bound[hit]
        return Answers(found.points, gap, found.rho, found.status, found.changes)

    def allow(self, points: Array, rows: Ints, counts: Ints, *, certify: bool = False) -> Answers:
        """Choose with only the first `counts` columns of the order free to move."""
        assert self.choices is not None
        places = np.full(len(self.choices.freedom), len(self.order))
        places[self.order] = np.arange(len(self.order))
        return self.choose(points, rows, locked=places >= counts[:, None])

    def least_prefix(self, points: Array, rows: Ints) -> Ints:
        """Return lengths that no feasible prefix is shorter than: at least a column moves."""
        return np.ones(len(rows), dtype=np.int64)


def least_cost(points: Array, rows: Ints, aim: Aim) -> Answers:
    """Find the cheapest point of the region; everything in the order may move."""
    if isinstance(aim, Choosing):
        answers = aim.choose(points, rows)
        answers.cardinality[:] = np.minimum(answers.cardinality, len(aim.order))
        return answers
    return Answers.of(aim.project(points, rows), np.full(len(rows), len(aim.order)))


def fewest_changes(points: Array, rows: Ints, aim: Aim) -> Answers:
    """Find the fewest columns whose change reaches the region, and their cheapest point."""
    assert isinstance(aim, Choosing)
    return aim.choose(points, rows, fewest=True)


def shortest_prefix(points: Array, rows: Ints, aim: Aim) -> Answers:
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
        fits = is_found(found.status)
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
