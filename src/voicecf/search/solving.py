"""Solve a question: pairs of row and target become aims, aims become answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.learned import Learned
from voicecf.parallel import in_parallel
from voicecf.rules.allowed import Allowed
from voicecf.search.aims import Aim, Choosing, fewest_changes, least_cost, shortest_prefix
from voicecf.search.answers import Answers
from voicecf.search.question import Pairs, Question
from voicecf.solver.projection import UnitConstraints, project_into_cells
from voicecf.status import Status

Solver = Callable[[Question, Ints, Ints], Answers]
OBJECTIVES: dict[str, Callable[[Array, Ints, Aim], Answers]] = {
    "cost": least_cost,
    "prefix": shortest_prefix,
    "fewest": fewest_changes,
}
# The objective of CFCLUST, which is solved there.
PAIRWISE = "pairwise"
# Targets from which on each is answered by one core alone.
GROUPS = 16
# Numbers in the tables of distances that are made at once.
TABLE = 1 << 25


def solve(
    question: Question, rows: Ints, targets: Ints, *, caution: float = 1.0, locked: Any = None
) -> Answers:
    """Answer pairs of row and target.

    Parameters
    ----------
    question : Question
    rows, targets : array of int
    caution : float
        Factor on the rounding guard, for pairs whose answer the model saw outside its target.
    locked : array of shape (pairs, C), optional
        Columns that a problem may not change, all problems having one target.
    """
    if locked is not None:
        aim = aim_at(question, int(targets[0]), caution)
        assert isinstance(aim, Choosing)
        fewest = question.objective == "fewest"
        return aim.choose(question.points, rows, fewest=fewest, locked=locked)
    cells = question.learned.cells
    if cells is not None and question.objective == "cost" and _in_plain_cells(question, caution):
        return _solve_in_cells(question, rows, targets, cells)
    return _solve_by_target(question, rows, targets, caution)


def _in_plain_cells(question: Question, caution: float) -> bool:
    return caution == 1.0 and question.allowed.is_box


def _solve_in_cells(question: Question, rows: Ints, targets: Ints, cells: _core.Rows) -> Answers:
    """Answer problems of any targets at once; by target what the rounding guard leaves open."""
    allowed = question.allowed
    found = project_into_cells(question.points, rows, targets, allowed.box, cells)
    answers = Answers.of(found, np.full(len(rows), int((~allowed.fixed).sum())))
    left = np.flatnonzero(found.status == Status.UNRESOLVED)
    if left.size:
        answers.put(left, _solve_by_target(question, rows[left], targets[left], 1.0))
    return answers


def _solve_by_target(question: Question, rows: Ints, targets: Ints, caution: float) -> Answers:
    best_of = OBJECTIVES[question.objective]
    groups = list(_by_target(targets))
    answers = Answers.blank(len(rows), question.points.shape[1])

    def solve_group(at: int, _: int) -> None:
        which, target = groups[at]
        aim = aim_at(question, target, caution)
        answers.put(which, best_of(question.points, rows[which], aim))

    # Few groups are divided among the cores within, many are divided themselves.
    if len(groups) < GROUPS:
        for at in range(len(groups)):
            solve_group(at, at + 1)
    else:
        in_parallel(solve_group, len(groups), chunk=1)
    return answers


def _by_target(targets: Ints) -> Iterator[tuple[Ints, int]]:
    """Group problems by target: which problems, and their target."""
    if len(targets) and (targets == targets[0]).all():
        yield np.arange(len(targets)), int(targets[0])
        return
    # Short integers are sorted by radix, which takes a fraction of the time.
    short = targets.astype(np.uint16) if targets.max(initial=0) < 1 << 16 else targets
    order = np.argsort(short, kind="stable")
    borders = np.flatnonzero(np.diff(targets[order])) + 1
    for which in np.split(order, borders) if len(order) else ():
        yield which, int(targets[which[0]])


def aim_at(question: Question, target: int, caution: float = 1.0) -> Aim:
    """Return where answers for a target have to lie, and what may move to get there."""
    learned, allowed = question.learned, question.allowed
    region, unit = learned.prepared(target)
    if len(allowed.normals) or (allowed.factors != 1.0).any():
        region = with_rules(learned, region, allowed, question.points, caution)
        unit = UnitConstraints.of(region, question.metric)
    if allowed.box is not learned.bounds.box:  # which is in the region already, checked
        region = region.within(*learned.box(target, *allowed.box))
    cells = learned.cells if _in_plain_cells(question, caution) else None
    return _aim(question, target, region, unit.guarded(caution), cells)


def _aim(
    question: Question,
    target: int,
    region: Region,
    unit: UnitConstraints,
    cells: _core.Rows | None,
) -> Aim:
    learned, allowed = question.learned, question.allowed
    agrees, doubted = partial(learned.agrees, target), not learned.clustering.trusted
    ranked = learned.ranking[~allowed.fixed[learned.ranking]]
    if allowed.choices is not None:
        return Choosing(
            region, unit, ranked, agrees, doubted, choices=allowed.choices, limit=question.limit
        )
    places = [learned.space.columns[c].places for c in ranked]
    order = np.concatenate([np.empty(0, dtype=np.int64), *places])
    return Aim(region, unit, order, agrees, doubted, cells, target)


def with_rules(
    learned: Learned, region: Region, allowed: Allowed, points: Array, caution: float = 1.0
) -> Region:
    """Add rules between columns to a region.

    Whole numbers often meet such a rule exactly, so it holds to rounding at first; the user's own
    units have the last word, and where they see it broken it gets a guard.
    """
    normals, guard = allowed.normals, Guard.none(len(allowed.normals))
    largest = np.abs(points).max(axis=0, initial=1.0)
    rounding = TOLERANCE.rule * (np.abs(allowed.offsets) + np.abs(normals) @ largest)
    offsets = allowed.offsets - normals @ region.origin
    if caution == 1.0:
        offsets = offsets + rounding
    else:
        lost = np.abs(normals) @ learned.space.round_trip_error + rounding
        guard = replace(guard, constant=lost)
    assert region.guard is not None
    return Region(
        np.vstack([region.normals, normals]),
        np.concatenate([region.offsets, offsets]),
        lo=region.lo,
        hi=region.hi,
        origin=region.origin,
        guard=region.guard.followed_by(guard),
    )


def multipliers(question: Question, rows: Ints, targets: Ints, cardinality: Ints) -> Array:
    """Solve again for the certificates, a column a cluster; a pairwise answer has none."""
    table = np.zeros((len(rows), question.learned.n_clusters))
    if question.objective == PAIRWISE:
        return np.full_like(table, np.nan)
    prefix = question.objective == "prefix" and question.allowed.choices is None
    for which, target in _by_target(targets):
        aim = aim_at(question, target)
        if prefix and len(aim.order):
            counts = np.where(cardinality[which] > 0, cardinality[which], len(aim.order))
            found = aim.allow(question.points, rows[which], counts, certify=True)
        else:
            found = aim.project(question.points, rows[which], certify=True)
        rivals = question.learned.cell(target).rivals
        table[np.ix_(which, rivals)] = found.multipliers[:, : len(rivals)]
    return table


def measure(question: Question, rows: Ints, answers: Array) -> tuple[Array, Array, Ints]:
    """Return cost in the weights, energy in the metric, and the number of changed coordinates."""
    n = len(rows)
    cost, energy, changed = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    smallest = question.learned.smallest_change
    of = _core.Measure(rows, question.points, answers, question.weights, question.metric, smallest)
    in_parallel(lambda a, b: of.run(cost, energy, changed, a, b), n)
    return cost, energy, changed


# The cheapest of all targets.


def solve_nearest(question: Question, solver: Solver = solve) -> tuple[Answers, Ints]:
    """Find the best other cluster of every row, and the answer there."""
    cheaper = (question.allowed.factors < 1.0).any()
    if question.objective != "cost" or cheaper or question.learned.n_clusters == 2:
        return _best_of_all(question, solver)
    return _best_by_lower_bounds(question)


def _best_of_all(question: Question, solver: Solver) -> tuple[Answers, Ints]:
    """Answer every pair and keep the best of each row; ties go to the lower cluster."""
    k = question.learned.n_clusters
    pairs = Pairs.each(question.source, k)
    assert pairs.target is not None
    answers = solver(question, pairs.row, pairs.target)
    _, energy, _ = measure(question, pairs.row, answers.points)
    few = question.objective in ("prefix", "fewest")
    length = answers.cardinality if few else np.zeros(len(pairs.row))
    order = np.lexsort((pairs.target, energy, length, ~answers.found, pairs.row))
    best = order[:: k - 1]
    return answers[best], pairs.target[best]


def _best_by_lower_bounds(question: Question) -> tuple[Answers, Ints]:
    """Try targets in the order of a lower bound.

    The constraint of target against source alone costs at least its distance; once that exceeds
    the best answer, no further target can win.
    """
    n, k = len(question.points), question.learned.n_clusters
    best = _Best.blank(*question.points.shape)
    block = max(1, TABLE // k)
    for start in range(0, n, block):
        rows = np.arange(start, min(start + block, n))
        bound = _lower_bounds(question, rows)
        order = np.argsort(bound, axis=1, kind="stable")
        open_ = np.arange(len(rows))
        for turn in range(k - 1):
            least = bound[open_, order[open_, turn]]
            open_ = open_[least <= best.energy[rows[open_]] * (1 + TOLERANCE.cheaper)]
            if open_.size == 0:
                break
            best.improve(question, rows[open_], order[open_, turn])
    return best.answers, best.target


@dataclass(frozen=True)
class _Best:
    """The best answer of each row so far, its target, and its energy."""

    answers: Answers
    target: Ints
    energy: Array

    @classmethod
    def blank(cls, n: int, d: int) -> _Best:
        return cls(Answers.blank(n, d), np.zeros(n, dtype=np.int64), np.full(n, np.inf))

    def improve(self, question: Question, rows: Ints, tried: Ints) -> None:
        """Answer one more target for some rows, and keep it where it is better."""
        found = solve(question, rows, tried)
        _, energy, _ = measure(question, rows, found.points)
        energy[~found.found] = np.inf
        known = self.energy[rows]
        first = self.answers.status[rows] == Status.UNRESOLVED
        tie = (energy == known) & np.isfinite(energy) & (tried < self.target[rows])
        better = (energy < known) | tie | (first & ~np.isfinite(known))
        self.answers.put(rows[better], found, better)
        self.target[rows[better]] = tried[better]
        self.energy[rows] = np.minimum(known, energy)


@np.errstate(all="ignore")
def _lower_bounds(question: Question, rows: Ints) -> Array:
    """Least energy of each target by its constraint against the source; inf for the source."""
    learned, own = question.learned, np.arange(len(rows))
    clustering, source = learned.clustering, question.source[rows]
    table = clustering.distances(question.rows.seen[rows])
    sources, place = np.unique(source, return_inverse=True)
    spread = clustering.distances(clustering.centers[sources])[place]
    lengths = _pair_lengths(learned, sources)[place]
    here = table[own, source][:, None]
    alpha = np.minimum(learned.alpha, 1.0 - learned.margin)
    excess = 0.5 * (table - here) + 0.5 * (1.0 - alpha) * spread
    excess -= clustering.arithmetic.growth(table.shape[1]) * (table + here + spread)
    bound = np.maximum(excess, 0.0) ** 2 / lengths * (1 - TOLERANCE.cheaper)
    bound[~np.isfinite(bound)] = 0.0
    bound[own, source] = np.inf
    return np.asarray(bound)


def _pair_lengths(learned: Learned, sources: Ints) -> Array:
    """Squared lengths, in the metric, of the normals of every target against some sources."""
    clustering, mixing = learned.clustering, learned.space.mixing
    if mixing is not None:
        ends = clustering.weights * clustering.centers @ mixing.matrix
        ends /= np.sqrt(learned.metric)
        return np.asarray(cdist(ends[sources], ends, "sqeuclidean"))
    stretch = clustering.weights**2 / (clustering.weights + learned.delta)
    unit = Clustering.from_centers(clustering.centers, stretch)
    return np.asarray(unit.distances(clustering.centers[sources]) * stretch.sum())
