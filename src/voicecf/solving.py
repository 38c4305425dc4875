"""Put questions to the solver: targets, rules and objectives become aims, aims become answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from voicecf.explainer import Question, Terms
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.region import Array, Region
from voicecf.learned import TABLE, Learned
from voicecf.parallel import in_parallel
from voicecf.search.aims import (
    Aim,
    Answers,
    Choosing,
    Rows,
    fewest_changes,
    least_cost,
    shortest_prefix,
)
from voicecf.solver.projection import UnitRows, project_into_cells
from voicecf.status import Status

OBJECTIVES = {"cost": least_cost, "prefix": shortest_prefix, "fewest": fewest_changes}
# Targets from which on each is answered by one core alone.
GROUPS = 16


class Solving(Learned):
    """Answers, certificates and the cheapest target of a question."""

    def _aims(
        self, question: Question, targets: Rows
    ) -> Iterator[tuple[Rows, Callable[[], tuple[int, Aim]]]]:
        """Group problems by target: which problems, and how to make their aim when it is needed."""
        rules, terms = question.box, question.terms
        ranked = self.order_[~rules.immutable[self.order_]] if terms is None else self.ranked_
        shared = rules.box(question.points, rules.lo, rules.hi)
        # The box that was learned is in the region already, checked.
        learned = shared[0] is self.box_[0] and shared[1] is self.box_[1]

        def placed(target: int, region: Region, unit: UnitRows) -> Aim:
            if question.caution != 1.0:
                guard = unit.guard.copy()
                guard[1:] *= question.caution
                unit = replace(unit, guard=guard)
            box = shared
            if self.contract_bounds:
                box = rules.box(question.points, *self._contract_box(target, rules.lo, rules.hi))
            agrees = partial(self._agrees, target)
            doubted = not self.clustering_.trusted
            plain = terms is None and question.caution == 1.0
            cells = self._cells() if plain else None
            narrowed = region if learned else region.within(*box)
            return Aim(narrowed, unit, ranked, agrees, doubted, cells, target)

        def whole(target: int) -> Aim:
            region, unit = self._prepared(target)
            if terms is None:
                return placed(target, region, unit)
            region, unit = self._with_terms(region, unit, terms, question.points, question.caution)
            plain = placed(target, region, unit)
            return Choosing(**vars(plain), choices=terms.choices, limit=terms.limit)

        def aim(target: int) -> tuple[int, Aim]:
            return target, whole(target)

        if len(targets) and (targets == targets[0]).all():
            yield np.arange(len(targets)), partial(aim, int(targets[0]))
            return
        # Short integers are sorted by radix, which takes a fraction of the time.
        short = targets.astype(np.uint16) if len(self.alpha_) <= 1 << 16 else targets
        order = np.argsort(short, kind="stable")
        borders = np.flatnonzero(np.diff(targets[order])) + 1
        for which in np.split(order, borders) if len(order) else ():
            yield which, partial(aim, int(targets[which[0]]))

    def _with_terms(
        self, region: Region, unit: UnitRows, terms: Terms, points: Array, caution: float = 1.0
    ) -> tuple[Region, UnitRows]:
        """Add rules between columns to a region, and costs to its metric.

        Whole numbers often meet such a rule exactly, so it holds to rounding at first; the user's
        own units have the last word, and where they see it broken it gets a guard.
        """
        if not len(terms.rows) and (terms.factors == 1.0).all():
            return region, unit
        metric = self.weights_ * terms.factors + self.delta
        guard = np.zeros((5, len(terms.rows)))
        largest = np.abs(points).max(axis=0, initial=1.0)
        rounding = np.abs(terms.offsets) + np.abs(terms.rows) @ largest
        rounding *= 16.0 * np.finfo(np.float64).eps
        offsets = terms.offsets - terms.rows @ region.origin
        if caution == 1.0:
            offsets = offsets + rounding
        else:
            guard[1] = np.abs(terms.rows) @ self.space_.slop + rounding
        assert region.guard is not None
        joined = Region(
            np.vstack([region.rows, terms.rows]),
            np.concatenate([region.offsets, offsets]),
            origin=region.origin,
            guard=np.hstack([region.guard, guard]),
        )
        return joined, UnitRows.of(joined, metric)

    def _agrees(self, target: int, points: Array) -> NDArray[np.bool_]:
        """Tell which coordinates the model puts into a cluster."""
        mixing = self.space_.mixing
        return self.clustering_.agrees(target, points if mixing is None else mixing(points))

    def _answer(self, question: Question, rows: Rows, targets: Rows, locked: Any = None) -> Answers:
        plain = question.objective == "cost" and question.terms is None and question.caution == 1.0
        if plain and self._cells() is not None:
            return self._answer_in_cells(question, rows, targets)
        return self._answer_by_target(question, rows, targets, locked)

    def _answer_in_cells(self, question: Question, rows: Rows, targets: Rows) -> Answers:
        """Answer problems of any targets at once; by target what the rounding guard leaves open."""
        rules, cells = question.box, self._cells()
        assert cells is not None
        box = rules.box(question.points, rules.lo, rules.hi)
        found = project_into_cells(question.points, rows, targets, box, cells)
        moving = int((~rules.immutable).sum())
        answers = Answers.of(found, np.full(len(rows), moving))
        left = np.flatnonzero(found.status == Status.UNRESOLVED)
        if left.size:
            answers.put(left, self._answer_by_target(question, rows[left], targets[left]))
        return answers

    def _answer_by_target(
        self, question: Question, rows: Rows, targets: Rows, locked: Any = None
    ) -> Answers:
        solve = OBJECTIVES[question.objective]
        groups = list(self._aims(question, targets))
        if locked is not None:  # columns that each problem may not change, of one target
            _, aim = groups[0][1]()
            assert isinstance(aim, Choosing)
            fewest = question.objective == "fewest"
            return aim.choose(question.points, rows, fewest=fewest, locked=locked)
        if len(groups) == 1:
            return solve(question.points, rows, groups[0][1]()[1])
        answers = Answers.blank(len(rows), question.points.shape[1])

        def answer_group(at: int, _: int) -> None:
            which, aim = groups[at]
            answers.put(which, solve(question.points, rows[which], aim()[1]))

        # Few groups are divided among the cores within, many are divided themselves.
        if len(groups) < GROUPS:
            for at in range(len(groups)):
                answer_group(at, at + 1)
        else:
            in_parallel(answer_group, len(groups), chunk=1)
        return answers

    def _multipliers(
        self, question: Question, rows: Rows, targets: Rows, cardinality: Rows
    ) -> Array:
        """Solve again for the certificates, a column a cluster."""
        table = np.zeros((len(rows), self.clustering_.n_clusters))
        for which, make in self._aims(question, targets):
            target, aim = make()
            if question.objective == "prefix" and question.terms is None and len(aim.order):
                counts = np.where(cardinality[which] > 0, cardinality[which], len(aim.order))
                found = aim.allow(question.points, rows[which], counts, certify=True)
            else:
                found = aim.project(question.points, rows[which], certify=True)
            rivals = self.clustering_.cell(target).rivals
            table[np.ix_(which, rivals)] = found.multipliers[:, : len(rivals)]
        return table

    def _nearest(self, question: Question) -> tuple[Answers, Rows]:
        """Find the cheapest other cluster, trying targets in the order of a lower bound.

        The row of target against source alone costs at least its distance; once that exceeds the
        best answer, no further target can win.
        """
        costs = question.terms is not None and (question.terms.factors < 1.0).any()
        if question.objective != "cost" or costs or self.clustering_.n_clusters == 2:
            return super()._nearest(question)
        n = len(question.points)
        best, targets = Answers.blank(*question.points.shape), np.zeros(n, dtype=np.int64)
        block = max(1, TABLE // self.clustering_.n_clusters)
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            bound = self._lower_bounds(question, rows)
            order = np.argsort(bound, axis=1, kind="stable")
            energy = np.full(len(rows), np.inf)
            open_ = np.arange(len(rows))
            for turn in range(self.clustering_.n_clusters - 1):
                tried = order[open_, turn]
                open_ = open_[bound[open_, tried] <= energy[open_] * (1 + 1e-9)]
                if open_.size == 0:
                    break
                self._try(question, rows, open_, order[open_, turn], energy, best, targets)
        return best, targets

    def _try(
        self, question: Question, rows: Rows, open_: Rows, tried: Rows, energy: Array,
        best: Answers, targets: Rows,
    ) -> None:  # fmt: skip
        """Answer one more target for the open rows, and keep it where it is better."""
        found = self._answer(question, rows[open_], tried)
        _, cost, _ = self._measure(question, rows[open_], found.points)
        cost[~found.found] = np.inf
        held = energy[open_]
        first = best.status[rows[open_]] == Status.UNRESOLVED
        tie = (cost == held) & np.isfinite(cost) & (tried < targets[rows[open_]])
        better = (cost < held) | tie | (first & ~np.isfinite(held))
        best.put(rows[open_[better]], found, better)
        targets[rows[open_[better]]] = tried[better]
        energy[open_] = np.minimum(held, cost)

    @np.errstate(all="ignore")
    def _lower_bounds(self, question: Question, rows: Rows) -> Array:
        """Least energy of each target by the row against the source alone; inf for the source."""
        clustering, own = self.clustering_, np.arange(len(rows))
        table = clustering.distances(question.given.seen[rows])
        sources, source = np.unique(question.source[rows], return_inverse=True)
        centers = clustering.centers[sources]
        spread = clustering.distances(centers)[source]
        lengths = self._pair_lengths(sources)[source]
        here = table[own, question.source[rows]][:, None]
        alpha = np.minimum(self.alpha_, 1.0 - self.margin)
        excess = 0.5 * (table - here) + 0.5 * (1.0 - alpha) * spread
        excess -= clustering.arithmetic.growth(table.shape[1]) * (table + here + spread)
        bound = np.maximum(excess, 0.0) ** 2 / lengths * (1 - 1e-9)
        bound[~np.isfinite(bound)] = 0.0
        bound[own, question.source[rows]] = np.inf
        return np.asarray(bound)

    def _pair_lengths(self, sources: Rows) -> Array:
        """Squared lengths, in the metric, of the rows of every target against some sources."""
        clustering, mixing = self.clustering_, self.space_.mixing
        if mixing is not None:
            ends = clustering.weights * clustering.centers @ mixing.matrix
            ends /= np.sqrt(self.weights_ + self.delta)
            return np.asarray(cdist(ends[sources], ends, "sqeuclidean"))
        stretch = clustering.weights**2 / (clustering.weights + self.delta)
        unit = Clustering.from_centers(clustering.centers, stretch)
        return np.asarray(unit.distances(clustering.centers[sources]) * stretch.sum())
