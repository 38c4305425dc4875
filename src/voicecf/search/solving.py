"""Solve a question: build the region of each target, and find the answers of its rows there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, product
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.learned import Learned
from voicecf.parallel import in_parallel
from voicecf.rules.allowed import Allowed
from voicecf.rules.columns import column_of
from voicecf.rules.splits import values_of
from voicecf.search.aims import Aim, ChoiceAim, fewest_changes, least_cost, shortest_prefix
from voicecf.search.answers import Answers
from voicecf.search.curves import Curves
from voicecf.search.question import Pairs, Question
from voicecf.solver.projection import UnitConstraints, project_into_cells
from voicecf.status import Status

Solver = Callable[[Question, Ints, Ints], Answers]
OBJECTIVES: dict[str, Callable[[Array, Ints, Aim], Answers]] = {
    "cost": least_cost,
    "prefix": shortest_prefix,
    "fewest": fewest_changes,
}
# The objective of CFCLUST, which has its own solver in voicecf.cfclust.
PAIRWISE = "pairwise"
# From this number of targets on, cores share out the targets and not the rows of each target.
PARALLEL_TARGETS = 16
# Entries in a table of distances; it limits the memory, and the time until Ctrl-C is noticed.
TABLE = 1 << 22


def solve(
    question: Question, rows: Ints, targets: Ints, *, guard_factor: float = 1.0, locked: Any = None
) -> Answers:
    """Find the answers for pairs of row and target.

    Parameters
    ----------
    question : Question
    rows, targets : array of int
    guard_factor : float
        Factor on the rounding guard. It is larger than 1 for pairs whose first answer the model
        assigned to another cluster.
    locked : array of shape (pairs, C), optional
        Columns that may not change; all pairs must then have the same row and target.
    """
    if locked is not None:
        aim = aim_at(question, int(rows[0]), int(targets[0]), guard_factor)
        assert isinstance(aim, ChoiceAim)
        fewest = question.objective == "fewest"
        return aim.choose(question.points, rows, fewest=fewest, locked=locked)
    cells = question.learned.cells if _in_plain_cells(question, guard_factor) else None
    if cells is not None and question.objective == "cost":
        return _solve_in_cells(question, rows, targets, cells)
    return _solve_by_target(question, rows, targets, guard_factor)


def _in_plain_cells(question: Question, guard_factor: float) -> bool:
    """Return True if the region of an answer is the cell and a box, with the ordinary guard."""
    return guard_factor == 1.0 and question.allowed.is_box


def _solve_in_cells(question: Question, rows: Ints, targets: Ints, cells: _core.Rows) -> Answers:
    """Solve the pairs of all targets at once, then what is unresolved target by target."""
    allowed = question.allowed
    projection = project_into_cells(question.points, rows, targets, allowed.box, cells)
    answers = Answers.of(projection, np.full(len(rows), int((~allowed.fixed).sum())))
    left = np.flatnonzero(projection.status == Status.UNRESOLVED)
    if left.size:
        answers.put(left, _solve_by_target(question, rows[left], targets[left], 1.0))
    return answers


def _solve_by_target(question: Question, rows: Ints, targets: Ints, guard_factor: float) -> Answers:
    """Solve the pairs of one target after the other, or of many targets in parallel."""
    best_answers = OBJECTIVES[question.objective]
    groups = list(_by_aim(question, rows, targets))
    if len(groups) == 1:
        aim = aim_at(question, int(rows[0]), groups[0][1], guard_factor)
        return best_answers(question.points, rows, aim)
    answers = Answers.blank(len(rows), question.points.shape[1])

    def solve_group(at: int, _: int) -> None:
        which, target = groups[at]
        aim = aim_at(question, int(rows[which[0]]), target, guard_factor)
        answers.put(which, best_answers(question.points, rows[which], aim))

    # A target's rows are shared out among the cores, unless the targets themselves are.
    if len(groups) < PARALLEL_TARGETS:
        for at in range(len(groups)):
            solve_group(at, at + 1)
    else:
        in_parallel(solve_group, len(groups), chunk=1)
    return answers


def _by_aim(question: Question, rows: Ints, targets: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield, for each target and size of rows, the indices of the pairs and the target."""
    sizes = 2 * question.exponents(rows) + question.leaves_bounds(rows)
    k = question.learned.n_clusters
    for which, group in _in_groups(sizes * k + targets if sizes.any() else targets):
        yield which, group % k


def _in_groups(targets: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield, for each number among these, the indices where it stands, and the number."""
    if len(targets) and (targets == targets[0]).all():
        yield np.arange(len(targets)), int(targets[0])
        return
    # numpy sorts 16-bit integers by radix sort, which is several times faster.
    short = targets.astype(np.uint16) if targets.max(initial=0) < 1 << 16 else targets
    order = np.argsort(short, kind="stable")
    borders = np.flatnonzero(np.diff(targets[order])) + 1
    for which in np.split(order, borders) if len(order) else ():
        yield which, int(targets[which[0]])


def aim_at(question: Question, row: int, target: int, guard_factor: float = 1.0) -> Aim:
    """Return the region of the answers for a target, and the coordinates that may change.

    It is that of a row, and of all rows of the same size (see `Question.exponents` and
    `Question.leaves_bounds`).
    """
    learned, allowed = question.learned, question.allowed_in(target)
    region, unit = learned.prepared(target)
    if (allowed.factors != 1.0).any():
        inside = not question.leaves_bounds(np.array([row]))[0]
        region = _with_costs(learned, region, allowed.factors, inside)
    if len(allowed.normals) or (allowed.factors != 1.0).any():
        largest = learned.largest * 2.0 ** question.exponents(np.array([row]))
        region = with_rules(learned, region, allowed, largest, guard_factor)
        unit = UnitConstraints.of(region, question.metric)
    if allowed.box is not learned.bounds.box:  # the region has the learned box already
        region = region.within(*learned.box(target, *allowed.box))
    cells = learned.cells if _in_plain_cells(question, guard_factor) else None
    aim = _aim(question, target, allowed, region, unit.guarded(guard_factor), cells)
    if not isinstance(aim, ChoiceAim) or allowed.splits is None:
        return aim
    curves = _curves(question, strict=guard_factor != 1.0)
    return replace(aim, splits=allowed.splits, curves=curves, smallest=learned.smallest_change)


def _curves(question: Question, *, strict: bool) -> Curves | None:
    """Return the curved rules of a question; None if there are none."""
    allowed, space = question.allowed, question.learned.space
    assert allowed.splits is not None
    assert allowed.choices is not None
    curved = allowed.splits.curved
    if not curved:
        return None
    columns = {column_of(space, name, one.text) for one in curved for name in one.coefficients}
    own = {c: values_of(space, c, question.rows) for c in columns}
    return Curves(space, allowed.choices, curved, own, strict)


def _aim(
    question: Question,
    target: int,
    allowed: Allowed,
    region: Region,
    unit: UnitConstraints,
    cells: _core.Rows | None,
) -> Aim:
    """Return an aim with the question's ranking, and the choices if there are any."""
    learned = question.learned
    judge = partial(learned.agrees, target), not learned.clustering.trusted, learned.repeatable
    ranked = learned.ranking[~allowed.fixed[learned.ranking]]
    if allowed.choices is not None:
        return ChoiceAim(
            region, unit, ranked, *judge, choices=allowed.choices, limit=question.limit
        )
    places = [learned.space.columns[c].places for c in ranked]
    order = np.concatenate([np.empty(0, dtype=np.int64), *places])
    return Aim(region, unit, order, *judge, cells, target)


def _with_costs(learned: Learned, region: Region, factors: Array, inside: bool) -> Region:
    """Return a region whose guard is enough in the metric with costs.

    The guard of a region knows lengths in the learned metric, which costs distort. Of answers that
    are `inside` the learned bounds they are bounded by these. Others are at most as long as in the
    metric with costs, divided by the root of the least factor.
    """
    guard = region.guard
    assert guard is not None
    lo, hi = learned.bounds.box
    longer = 1.0 / np.sqrt(min(factors.min(), 1.0))
    if inside:
        sides = np.abs(lo), np.abs(lo - region.origin), hi - lo
        others = np.abs(hi), np.abs(hi - region.origin), hi - lo
        longest = (np.maximum(*pair) for pair in zip(sides, others, strict=True))
        guard = guard.constant_within(
            *(float(np.sqrt((learned.metric * v**2).sum())) for v in longest)
        )
    guard = replace(
        guard,
        share=guard.share * longer,
        of_size=guard.of_size * longer,
        of_square=guard.of_square * longer**2,
        of_move=guard.of_move * longer,
    )
    return replace(region, guard=guard)


def with_rules(
    learned: Learned, region: Region, allowed: Allowed, largest: Array, guard_factor: float = 1.0
) -> Region:
    """Return a region with the constraints of linear rules and of plausible answers added.

    Whole numbers often satisfy such a rule with equality. With the ordinary guard (factor 1) the
    rule is therefore loosened by rounding errors. Whether an answer satisfies it is then checked in
    the user's units, and if not, it is solved again with a larger factor: then a rule about numbers
    that are not listed is not loosened and has a guard of its own. Rounding errors are in
    proportion to `largest`, a bound for each coordinate of the rows.
    """
    normals, guard = allowed.normals, Guard.none(len(allowed.normals))
    sizes = np.abs(normals)
    rounding = TOLERANCE.rule * (np.abs(allowed.offsets) + product(sizes, largest))
    offsets = allowed.offsets - product(normals, region.origin)
    space = learned.space
    options = np.zeros(space.n_coordinates, dtype=np.bool_)  # coordinates of listed values
    for c, column in enumerate(space.columns):
        listed = allowed.grids is not None and allowed.grids[c] is not None
        options[column.places] = listed or column.kind == "category"
    exact = ~(normals[:, ~options] != 0.0).any(axis=1)
    loosened = exact | (guard_factor == 1.0)
    offsets = np.where(loosened, offsets + rounding, offsets)
    if guard_factor != 1.0:
        # A model in single precision is given answers that are rounded to it.
        rounded = space.round_trip_error + 0.5 * np.finfo(space.dtype).eps * largest
        errors = product(sizes, rounded) + rounding
        guard = replace(guard, constant=np.where(exact, 0.0, errors))
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
    """Return the multipliers of the answers, one column per cluster; NaN for pairwise answers.

    They are not stored with the answers, so the pairs are solved once more.
    """
    table = np.zeros((len(rows), question.learned.n_clusters))
    if question.objective == PAIRWISE:
        return np.full_like(table, np.nan)
    prefix = question.objective == "prefix" and question.allowed.choices is None
    for which, target in _by_aim(question, rows, targets):
        aim = aim_at(question, int(rows[which[0]]), target)
        if prefix and len(aim.order):
            counts = np.where(cardinality[which] > 0, cardinality[which], len(aim.order))
            result = aim.project_prefix(question.points, rows[which], counts, certify=True)
        else:
            result = aim.project(question.points, rows[which], certify=True)
        rivals = question.learned.cell(target).rivals
        table[np.ix_(which, rivals)] = result.multipliers[:, : len(rivals)]
    return table


def measure(question: Question, rows: Ints, answers: Array) -> tuple[Array, Array]:
    """Return cost and energy of each answer.

    With z - a the move, the cost is sum w (z - a)^2, and the energy sum (w + delta) (z - a)^2.
    """
    n = len(rows)
    cost, energy, changed = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
    smallest = np.zeros(answers.shape[1])
    weights, metric = question.weights, question.metric
    measures = _core.Measure(rows, question.points, answers, weights, metric, smallest)
    in_parallel(lambda a, b: measures.run(cost, energy, changed, a, b), n)
    return cost, energy


def solve_nearest(question: Question, solver: Solver = solve) -> tuple[Answers, Ints]:
    """Return the best answer of every row in any other cluster, and the target it is in."""
    discounted = (question.allowed.factors < 1.0).any()  # then the lower bounds do not hold
    if question.objective != "cost" or discounted or question.learned.n_clusters == 2:
        return _best_of_all(question, solver)
    return _best_by_lower_bounds(question)


def _best_of_all(question: Question, solver: Solver) -> tuple[Answers, Ints]:
    """Solve every pair and return the best answer of each row; ties go to the lower cluster."""
    k = question.learned.n_clusters
    pairs = Pairs.each(question.source, k)
    assert pairs.target is not None
    answers = solver(question, pairs.row, pairs.target)
    _, energy = measure(question, pairs.row, answers.points)
    few = question.objective in ("prefix", "fewest")
    length = answers.cardinality if few else np.zeros(len(pairs.row))
    order = np.lexsort((pairs.target, energy, length, ~answers.answered, pairs.row))
    best = order[:: k - 1]
    return answers[best], pairs.target[best]


def _best_by_lower_bounds(question: Question) -> tuple[Answers, Ints]:
    """Try the targets of each row in the order of a lower bound for their cost.

    An answer in a target has to satisfy the constraint of target against source, so it costs at
    least the distance to that half-space. Once this exceeds the best answer so far, no further
    target can be better.
    """
    n, k = len(question.points), question.learned.n_clusters
    block = max(1, TABLE // k)
    best = [_best_of_block(question, a, min(a + block, n)) for a in range(0, n, block)]
    if len(best) == 1:
        return best[0].answers, best[0].target
    targets = [np.empty(0, dtype=np.int64), *(part.target for part in best)]
    answers = [Answers.blank(0, question.points.shape[1]), *(part.answers for part in best)]
    return Answers.joined(answers), np.concatenate(targets)


def _best_of_block(question: Question, start: int, stop: int) -> _Best:
    """Return the best answers of a range of rows."""
    bound, open_ = _lower_bounds(question, start, stop), np.arange(stop - start)
    tried = bound.argmin(axis=1)
    best = _Best.of(question, start + open_, tried)
    for _ in range(question.learned.n_clusters - 2):
        bound[np.arange(len(open_)), tried] = np.inf
        highest = best.energy[open_] * (1 + TOLERANCE.cheaper)
        promising = (bound <= highest[:, None]).any(axis=1)
        if not promising.any():
            break
        bound, open_ = bound[promising], open_[promising]
        tried = bound.argmin(axis=1)
        best.improve(open_, _Best.of(question, start + open_, tried))
    return best


@dataclass(frozen=True)
class _Best:
    """The best answer of each row so far, its target, and its energy."""

    answers: Answers
    target: Ints
    energy: Array

    @classmethod
    def of(cls, question: Question, rows: Ints, targets: Ints) -> _Best:
        """Solve one target for each row."""
        answers = solve(question, rows, targets)
        _, energy = measure(question, rows, answers.points)
        energy[~answers.answered] = np.inf
        return cls(answers, targets, energy)

    def improve(self, at: Ints, others: _Best) -> None:
        """Replace the answers `at` these positions by others where those are better."""
        energy, best = others.energy, self.energy[at]
        unresolved = self.answers.status[at] == Status.UNRESOLVED
        tie = (energy == best) & np.isfinite(energy) & (others.target < self.target[at])
        better = (energy < best) | tie | (unresolved & ~np.isfinite(best))
        self.answers.put(at[better], others.answers, better)
        self.target[at[better]] = others.target[better]
        self.energy[at] = np.minimum(best, energy)


@np.errstate(all="ignore")
def _lower_bounds(question: Question, start: int, stop: int) -> Array:
    """Return lower bounds for the energy of an answer in each cluster; infinite for the source.

    The bound of a target is the energy of the projection onto its constraint against the source.
    """
    learned, seen = question.learned, question.rows.seen[start:stop]
    clustering, source = learned.clustering, question.source[start:stop]
    sources = np.flatnonzero(np.bincount(source, minlength=learned.n_clusters))
    place = np.empty(learned.n_clusters, dtype=np.int64)
    place[sources] = np.arange(len(sources))
    growth = clustering.arithmetic.growth(seen.shape[1])
    between = clustering.distances(clustering.centers[sources])
    between *= 0.5 * (1.0 - learned.contractions) - growth
    lengths = _pair_lengths(learned, sources)
    bound = np.empty((len(seen), learned.n_clusters))

    def fill(a: int, b: int) -> None:
        own, at, part = np.arange(b - a), place[source[a:b]], bound[a:b]
        distances = clustering.distances(seen[a:b])
        to_source = distances[own, source[a:b]][:, None]
        with np.errstate(all="ignore"):  # each thread has its own
            # By how much rows violate the constraint of target against source, less rounding.
            # `take` is several times faster here than an index.
            excess = (0.5 - growth) * distances - (0.5 + growth) * to_source
            excess = np.maximum(excess + between.take(at, axis=0), 0.0)
            part[:] = excess**2 / lengths.take(at, axis=0) * (1 - TOLERANCE.cheaper)
        part[~np.isfinite(part)] = 0.0
        part[own, source[a:b]] = np.inf

    in_parallel(fill, len(seen))
    return bound


def _pair_lengths(learned: Learned, sources: Ints) -> Array:
    """Return the squared lengths, in the metric, of the normals of all targets against sources."""
    clustering, mixing = learned.clustering, learned.space.mixing
    if mixing is not None:
        pulled = clustering.weights * clustering.centers @ mixing.matrix
        pulled /= np.sqrt(learned.metric)
        return np.asarray(cdist(pulled[sources], pulled, "sqeuclidean"))
    weights = clustering.weights**2 / (clustering.weights + learned.delta)
    reweighted = Clustering.from_centers(clustering.centers, weights)
    return np.asarray(reweighted.distances(clustering.centers[sources]) * weights.sum())
