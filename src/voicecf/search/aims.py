"""Answers for one target: the cheapest point, the shortest ranked prefix, the fewest changes.

A prefix is the first r columns in the order of importance, and only they may change. A prefix that
is longer than a feasible one is feasible, so a galloping search finds the shortest length r*: it
starts from a lower bound that single constraints imply, doubles its stride until a prefix is
feasible, and then bisects.
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
from voicecf.search.branching import Search, branch
from voicecf.search.confirming import LESS, confirm
from voicecf.solver.projection import (
    Prefixes,
    Projection,
    UnitConstraints,
    project,
    project_into_cells,
)
from voicecf.status import Status


@dataclass(frozen=True)
class Aim:
    """The region of the answers for one target, and the coordinates that may change.

    Attributes
    ----------
    region : Region
        Constraints and box.
    unit : UnitConstraints
        The constraints, scaled to unit normals.
    order : array of int
        Coordinates that may change, the most important first.
    agrees : callable
        Returns a mask of the points that the model assigns to the target.
    trusted : bool
        False if every answer has to be checked with `agrees`, because the model's arithmetic is not
        known.
    factor : float
        Factor on the slack that rounding in the model requires.
    repeatable : bool
        True if the model's `predict` assigns a point alike in any batch, so that asking it is
        proof. Where the slack leaves nothing of the region, answers then need none.
    cells : voicecf._core.Rows, optional
        Constraints of all pieces, if the region is one of these pieces and the box.
    piece : int
        Index of that piece.
    prices : pair of arrays of shape (d,), optional
        Prices of each coordinate's unit more and less, if the least price is asked for.
    """

    region: Region
    unit: UnitConstraints
    order: Ints
    agrees: Callable[[Array], Mask]
    trusted: bool = True
    repeatable: bool = False
    factor: float = 1.0
    cells: _core.Rows | None = None
    piece: int = 0
    prices: tuple[Array, Array] | None = None

    def project(
        self, points: Array, rows: Ints, prefixes: Prefixes | None = None, *, certify: bool = False
    ) -> Projection:
        """Project points onto the region, with the slack that rounding in the model requires."""
        projection = self._project(points, rows, prefixes, certify)

        def again(which: Ints, factor: float) -> Projection:
            # With another slack the constraints of all pieces give no answer of the same bits.
            other = replace(self, factor=factor, cells=None)
            return other._project(points, rows[which], prefixes and prefixes.of(which), certify)

        self._confirm(projection, again)
        return projection

    def _confirm(self, results: Projection, again: Callable[[Ints, float], Projection]) -> None:
        """Solve with less slack what has no answer with all of it, and ask the model about answers.

        With collapsed weights the slack is far larger than the model's actual rounding errors. An
        answer that has too little of it all the same is farther away than one without.
        """

        def refused() -> Mask:
            asked = results.answered & (results.close if self.trusted else True)
            wrong: Mask = results.status == Status.UNRESOLVED
            which = np.flatnonzero(asked)
            if which.size:
                wrong[which] = ~self.agrees(results.points[which])
            return wrong

        if self.repeatable:
            if self.factor > 0.0:
                results.status[results.close] = Status.UNRESOLVED
            if results.close.any() or (results.status == Status.UNRESOLVED).any():
                confirm(results, refused, again, [f for f in LESS if f != self.factor])
        elif not self.trusted:
            confirm(results, refused, again, ())

    def _project(
        self, points: Array, rows: Ints, prefixes: Prefixes | None, certify: bool
    ) -> Projection:
        """Project points onto the region, with this factor.

        If there are the constraints of all pieces, they are used, so that the result has the same
        bits as in a batch of several targets.
        """
        if self.cells is None:
            return project(
                points, self.region, rows=rows, unit=self.unit, prefixes=prefixes,
                prices=self.prices, factor=self.factor, certify=certify,
            )  # fmt: skip
        pieces, k = np.full(len(rows), self.piece), len(self.unit.normals) + 1
        box = self.region.lo, self.region.hi
        projection = project_into_cells(
            points, rows, pieces, box, self.cells,
            prefixes=prefixes, factor=self.factor, n_clusters=k if certify else 0,
        )  # fmt: skip
        if not certify:
            return projection
        multipliers = np.delete(projection.multipliers, self.piece, axis=1)
        return replace(projection, multipliers=multipliers)

    def project_prefix(
        self, points: Array, rows: Ints, counts: Ints, *, certify: bool = False
    ) -> Any:
        """Project with only the first coordinates of the order free to change.

        `counts` has the number of these coordinates for each of `rows`.
        """
        ranks = np.full(points.shape[1], len(self.order))
        ranks[self.order] = np.arange(len(self.order))
        return self.project(points, rows, Prefixes(ranks, counts), certify=certify)

    def least_prefix(self, points: Array, rows: Ints) -> Ints:
        """Return lower bounds for the length of a feasible prefix, from single constraints."""
        floor = np.empty(len(rows), dtype=np.int64)
        lo, hi = np.atleast_2d(self.region.lo), np.atleast_2d(self.region.hi)
        batch, order = _core.Batch(points, lo, hi, rows=rows), self.order
        compiled = self.unit.compiled
        in_parallel(lambda a, b: compiled.prefix_floors(batch, order, floor, a, b), len(rows))
        return floor


@dataclass(frozen=True)
class ChoiceAim(Aim):
    """An aim with discrete choices: whole numbers, categories, or which columns change.

    Here `order` has columns, not coordinates.

    Attributes
    ----------
    search : Search
        The choices, and what else branch and bound has to respect; `factor` is that of the aim.
    """

    search: Search | None = None

    def choose(
        self, points: Array, rows: Ints, *, fewest: bool = False, locked: Any = None
    ) -> Projection:
        """Find the best choices, with the slack that rounding in the model requires.

        Parameters
        ----------
        points : array of shape (n, d)
        rows : array of int
            Indices of the points to answer.
        fewest : bool
            If True, change as few columns as possible, and only then at least cost.
        locked : array of shape (len(rows) or 1, C), optional
            Columns that may not change.
        """
        answers = self._choose(points, rows, fewest, locked)

        def again(which: Ints, factor: float) -> Projection:
            locks = locked if locked is None or len(locked) == 1 else locked[which]
            return replace(self, factor=factor)._choose(points, rows[which], fewest, locks)

        self._confirm(answers, again)
        return answers

    def _choose(self, points: Array, rows: Ints, fewest: bool, locked: Any) -> Projection:
        """Find the best choices, with this factor."""
        assert self.search is not None
        search = replace(self.search, fewest=fewest, factor=self.factor)
        return branch(search, points, rows, locked)

    def project_prefix(
        self, points: Array, rows: Ints, counts: Ints, *, certify: bool = False
    ) -> Projection:
        """Choose with only the first `counts` columns of the order free to change."""
        assert self.search is not None
        places = np.full(len(self.search.choices.freedom), len(self.order))
        places[self.order] = np.arange(len(self.order))
        return self.choose(points, rows, locked=places >= counts[:, None])

    def least_prefix(self, points: Array, rows: Ints) -> Ints:
        """Return lower bounds for the length of a feasible prefix: one column has to change."""
        return np.ones(len(rows), dtype=np.int64)


def least_cost(points: Array, rows: Ints, aim: Aim) -> Projection:
    """Find the cheapest point of the region, in money if the aim has prices.

    All coordinates of the order may change.
    """
    if isinstance(aim, ChoiceAim):
        answers = aim.choose(points, rows)
        answers.cardinality[:] = np.minimum(answers.cardinality, len(aim.order))
        return answers
    fixed = np.ones(points.shape[1], dtype=np.bool_)
    fixed[aim.order] = False
    box = aim.region.lo, aim.region.hi
    answers = aim.project(points, rows, Prefixes.without(fixed, points, rows, box))
    answers.cardinality[:] = len(aim.order)
    return answers


def fewest_changes(points: Array, rows: Ints, aim: Aim) -> Projection:
    """Find the smallest number of changed columns that is feasible, and its cheapest point."""
    assert isinstance(aim, ChoiceAim)
    return aim.choose(points, rows, fewest=True)


def shortest_prefix(points: Array, rows: Ints, aim: Aim) -> Projection:
    """Find the shortest feasible prefix of the order, and its cheapest point."""
    longest = len(aim.order)
    if longest == 0:
        return least_cost(points, rows, aim)
    floor = aim.least_prefix(points, rows)
    infeasible = floor > longest
    below = np.where(infeasible, 0, floor - 1)  # longest prefix known to be infeasible
    above = np.full(len(rows), longest + 1)  # shortest prefix known to be feasible
    probe = np.where(infeasible, longest, floor)
    stride = np.ones(len(rows), dtype=np.int64)
    open_, answers = np.arange(len(rows)), None
    while open_.size:
        results = aim.project_prefix(points, rows[open_], probe[open_])
        results.cardinality[:] = probe[open_]
        feasible = results.answered
        if answers is None:  # all problems are open in the first turn, and no copy is needed
            answers = results
        else:
            # The result of the longest prefix is the answer even if that is "infeasible".
            final = feasible | (probe[open_] == longest)
            answers.put(open_[final], results, final)
        above[open_[feasible]] = probe[open_[feasible]]
        below[open_[~feasible]] = probe[open_[~feasible]]
        stride[open_[~feasible]] *= 2
        open_ = open_[(above[open_] - below[open_] > 1) & (below[open_] < longest)]
        bounded = above[open_] <= longest
        ahead = np.minimum(below[open_] + stride[open_], longest)
        probe[open_] = np.where(bounded, (below[open_] + above[open_]) // 2, ahead)
    return Projection.unresolved(0, points.shape[1]) if answers is None else answers
