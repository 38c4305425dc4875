"""Solve a question: build the region of each target, and find the answers of its rows there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, product
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.learned import Learned
from voicecf.parallel import in_parallel
from voicecf.rules.allowed import Allowed
from voicecf.rules.columns import column_of
from voicecf.rules.parts import values_of
from voicecf.rules.prices import PRICE
from voicecf.search.aims import Aim, ChoiceAim, fewest_changes, least_cost, shortest_prefix
from voicecf.search.branching import Search
from voicecf.search.curves import Curves
from voicecf.search.question import Question
from voicecf.solver.projection import Prefixes, Projection, UnitConstraints, project_into_cells
from voicecf.status import Status
from voicecf.table.frames import is_every, taken

Solver = Callable[[Question, Ints, Ints], Projection]
OBJECTIVES: dict[str, Callable[[Array, Ints, Aim], Projection]] = {
    "cost": least_cost,
    "prefix": shortest_prefix,
    "fewest": fewest_changes,
    PRICE: least_cost,  # of an aim with prices
}
# The objective of CFCLUST, which has its own solver in voicecf.cfclust.
PAIRWISE = "pairwise"
# From this number of pieces on, cores share out the pieces and not the rows of each piece.
PARALLEL_PIECES = 16
# Entries in a table of distances; it limits the memory, and the time until Ctrl-C is noticed.
TABLE = 1 << 22
# The largest number; bounds of pieces that are not to be tried are infinite.
LARGEST = float(np.finfo(np.float64).max)


def solve(
    question: Question,
    rows: Ints,
    targets: Ints,
    *,
    factor: float | None = None,
    locked: Any = None,
) -> Projection:
    """Find the answers for pairs of row and target: in the best piece of each target.

    Parameters
    ----------
    question : Question
    rows, targets : array of int
    factor : float, optional
        Factor on the slack that rounding in the model requires; `Question.first_factor` if left
        out.
    locked : array of shape (pairs, C), optional
        Columns that may not change; all pairs must then have the same row and target.
    """
    partition = question.learned.partition
    factor = question.first_factor if factor is None else factor
    if partition.one_each:
        return _solve_pieces(question, rows, targets, factor, locked)

    found = [Projection.unresolved(0, question.points.shape[1])]
    block = max(1, TABLE // partition.n_pieces)
    for start in range(0, len(rows), block):
        part = np.arange(start, min(start + block, len(rows)))

        def solve_pieces(which: Ints, pieces: Ints, part: Ints = part) -> Projection:
            locks = None if locked is None else locked[part[which]]
            return _solve_pieces(question, rows[part[which]], pieces, factor, locks)

        bound = _lower_bounds(question, rows[part])
        bound[question.source[rows[part]] == targets[part]] = 0.0  # of rows that move deeper
        bound[partition.label_of != targets[part][:, None]] = np.inf
        found.append(_best_pieces(question, rows[part], bound, solve_pieces)[0])
    return found[-1] if len(found) == 2 else Projection.joined(found)


def _solve_pieces(
    question: Question, rows: Ints, pieces: Ints, factor: float, locked: Any = None
) -> Projection:
    """Find the answers for pairs of row and piece."""
    if locked is not None:
        aim = aim_at(question, int(rows[0]), int(pieces[0]), factor)
        assert isinstance(aim, ChoiceAim)
        fewest = question.objective == "fewest"
        return aim.choose(question.points, rows, fewest=fewest, locked=locked)
    cells = question.learned.cells if question.allowed.is_box else None
    if cells is not None and question.objective == "cost":
        return _solve_in_cells(question, rows, pieces, cells, factor)
    return _solve_by_piece(question, rows, pieces, factor)


def _solve_in_cells(
    question: Question, rows: Ints, pieces: Ints, cells: _core.Rows, factor: float
) -> Projection:
    """Solve the pairs of all pieces at once, then what is unresolved piece by piece."""
    allowed = question.allowed
    prefixes = Prefixes.without(allowed.fixed, question.points, rows, allowed.box)
    answers = project_into_cells(
        question.points, rows, pieces, allowed.box, cells, prefixes=prefixes, factor=factor
    )
    answers.cardinality[:] = (~allowed.fixed).sum()
    close = answers.close & question.learned.repeatable  # the model judges what needs no slack
    left = np.flatnonzero((answers.status == Status.UNRESOLVED) | close)
    if left.size and factor > 0.0:
        answers.put(left, _solve_by_piece(question, rows[left], pieces[left], factor))
    return answers


def _solve_by_piece(question: Question, rows: Ints, pieces: Ints, factor: float) -> Projection:
    """Solve the pairs of one piece after the other, or of many pieces in parallel."""
    best_answers = OBJECTIVES[question.objective]
    groups = list(_by_aim(question, rows, pieces))
    if len(groups) == 1:
        aim = aim_at(question, int(rows[0]), groups[0][1], factor)
        return best_answers(question.points, rows, aim)
    answers = Projection.unresolved(len(rows), question.points.shape[1])

    def solve_group(at: int, _: int) -> None:
        which, piece = groups[at]
        aim = aim_at(question, int(rows[which[0]]), piece, factor)
        answers.put(which, best_answers(question.points, rows[which], aim))

    # The rows of a piece are shared out among the cores, unless the pieces themselves are.
    if len(groups) < PARALLEL_PIECES:
        for at in range(len(groups)):
            solve_group(at, at + 1)
    else:
        in_parallel(solve_group, len(groups), chunk=1)
    return answers


def _by_aim(question: Question, rows: Ints, pieces: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield, for each piece and size of rows, the indices of the pairs and the piece."""
    sizes = 2 * question.exponents(rows) + question.leaves_bounds(rows)
    n = question.learned.partition.n_pieces
    for which, group in _in_groups(sizes * n + pieces if sizes.any() else pieces):
        yield which, group % n


def _in_groups(numbers: Ints) -> Iterator[tuple[Ints, int]]:
    """Yield, for each number among these, the indices where it stands, and the number."""
    if len(numbers) and (numbers == numbers[0]).all():
        yield np.arange(len(numbers)), int(numbers[0])
        return
    # numpy sorts 16-bit integers by radix sort, which is several times faster.
    short = numbers.astype(np.uint16) if numbers.max(initial=0) < 1 << 16 else numbers
    order = np.argsort(short, kind="stable")
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    for which in np.split(order, borders) if len(order) else ():
        yield which, int(numbers[which[0]])


def aim_at(question: Question, row: int, piece: int, factor: float = 1.0) -> Aim:
    """Return the region of the answers in a piece, and the coordinates that may change.

    It is that of a row, and of all rows of the same size (see `Question.exponents` and
    `Question.leaves_bounds`).
    """
    learned = question.learned
    allowed = question.allowed_in(int(learned.partition.label_of[piece]))
    region, unit = learned.prepared(piece)
    if (allowed.factors != 1.0).any():
        inside = not question.leaves_bounds(np.array([row]))[0]
        region = _with_costs(learned, region, allowed.factors, inside)
    if len(allowed.normals) or (allowed.factors != 1.0).any():
        largest = learned.largest * 2.0 ** question.exponents(np.array([row]))
        region = with_rules(learned, region, allowed, largest, factor)
        unit = UnitConstraints.of(region, question.metric)
    if allowed.box is not learned.bounds.box:  # the region has the learned box already
        region = region.within(*learned.box(piece, *allowed.box))
    return _aim(question, piece, allowed, region, unit, factor)


def curves_of(question: Question, *, strict: bool = False) -> Curves | None:
    """Return the curved rules of a question; None if there are none."""
    allowed, space = question.allowed, question.learned.space
    bent = question.tariff.curved if question.tariff is not None else ()
    splits = allowed.splits
    curved = () if splits is None else tuple(splits.curved)
    formulas, unions = ((), ()) if splits is None else (splits.formulas, splits.unions)
    if allowed.choices is None or not (curved or bent or formulas):
        return None
    columns = {column_of(space, name, one.text) for one in curved for name in one.coefficients}
    columns |= {c for formula in formulas for c in formula.columns}
    own = {c: values_of(space, c, question.rows) for c in columns}
    priced = frozenset(one.column for one in bent)
    own = {one.column: one.own for one in bent} | own
    identities = tuple(
        (formula, len(unions) + at, box, part.identity)
        for at, formula in enumerate(formulas)
        for box, part in enumerate(formula.parts, start=1)
    )
    return Curves(space, allowed.choices, curved, own, strict, priced, identities)


def _aim(
    question: Question,
    piece: int,
    allowed: Allowed,
    region: Region,
    unit: UnitConstraints,
    factor: float,
) -> Aim:
    """Return an aim with the question's ranking, and the choices if there are any."""
    learned, partition = question.learned, question.learned.partition
    agrees = partial(learned.agrees, int(partition.label_of[piece]))
    judge = agrees, partition.trusted, learned.repeatable
    ranked = learned.ranking[~allowed.fixed[learned.ranking]]
    prices = None if question.tariff is None else question.tariff.pair
    if allowed.choices is not None:
        curves = curves_of(question, strict=factor > 1.0)
        search = Search(
            unit, allowed.choices, question.limit, splits=allowed.splits, curves=curves,
            tariff=question.tariff,
        )  # fmt: skip
        return ChoiceAim(region, unit, ranked, *judge, factor, None, piece, prices, search)
    places = [learned.space.columns[c].places for c in ranked]
    order = np.concatenate([np.empty(0, dtype=np.int64), *places])
    cells = learned.cells if question.allowed.is_box and prices is None else None
    return Aim(region, unit, order, *judge, factor, cells, piece, prices)


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
    learned: Learned, region: Region, allowed: Allowed, largest: Array, factor: float = 1.0
) -> Region:
    """Return a region with the constraints of linear rules and of plausible answers added.

    Whole numbers often satisfy such a rule with equality. With a factor up to 1 the rule is
    therefore loosened by rounding errors. Whether an answer satisfies it is then checked in
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
    loosened = exact | (factor <= 1.0)
    offsets = np.where(loosened, offsets + rounding, offsets)
    if factor > 1.0:
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


def multipliers(
    question: Question, rows: Ints, pieces: Ints, cardinality: Ints, factors: Array
) -> Array:
    """Return the multipliers of answers in pieces; NaN for pairwise answers.

    The columns are those of `Piece.columns`. Multipliers are not stored with the answers, so the
    pairs are solved once more, with the factors on the slack that they were solved with.
    """
    partition = question.learned.partition
    columns = [partition.piece(p).columns for p in range(partition.n_pieces)]
    table = np.zeros((len(rows), 1 + max(int(of.max()) for of in columns)))
    if question.objective == PAIRWISE:
        return np.full_like(table, np.nan)
    for factor in np.unique(factors).tolist():
        same = np.flatnonzero(factors == factor)
        for at, piece in _by_aim(question, rows[same], pieces[same]):
            which = same[at]
            aim = aim_at(question, int(rows[which[0]]), piece, factor)
            found = _certified(question, aim, rows[which], cardinality[which])
            table[np.ix_(which, columns[piece])] = found[:, : len(columns[piece])]
    return table


def certificate(
    question: Question, row: int, piece: int, cardinality: int, factor: float
) -> tuple[Region, Array]:
    """Return the region that a row was sent to, and the multipliers of its constraints."""
    aim, rows = aim_at(question, row, piece, factor), np.array([row])
    multipliers = _certified(question, aim, rows, np.array([cardinality]))[0]
    lo, hi = (np.atleast_2d(side) for side in (aim.region.lo, aim.region.hi))
    lo, hi = lo[row % len(lo)].copy(), hi[row % len(hi)].copy()
    if question.objective == "prefix" and cardinality > 0:
        last = np.setdiff1d(np.arange(len(lo)), aim.order[:cardinality])
        lo[last] = hi[last] = question.points[row, last]
    return aim.region.within(lo, hi), multipliers


def _certified(question: Question, aim: Aim, rows: Ints, cardinality: Ints) -> Array:
    """Return the multipliers of all constraints of an aim, for the answers of rows."""
    if question.objective == "prefix" and question.allowed.choices is None and len(aim.order):
        counts = np.where(cardinality > 0, cardinality, len(aim.order))
        result = aim.project_prefix(question.points, rows, counts, certify=True)
    else:
        result = aim.project(question.points, rows, certify=True)
    return np.asarray(result.multipliers)


def measure(question: Question, rows: Ints, answers: Array) -> tuple[Array, Array]:
    """Return cost and energy of each answer.

    With z - a the move, the cost is sum w (z - a)^2, and the energy sum (w + delta) (z - a)^2.
    """
    n = len(rows)
    cost, energy = np.empty(n), np.empty(n)
    measures = _core.Measure(rows, question.points, answers, question.weights, question.metric)
    in_parallel(lambda a, b: measures.run(cost, energy, a, b), n)
    return cost, energy


def solve_nearest(
    question: Question, every: Ints, solver: Solver | None = None
) -> tuple[Projection, Ints]:
    """Return the best answer of every row in any other cluster, and the target it is in.

    A `solver` of pairs of row and target takes the place of `solve`; targets have one piece then.
    """
    partition = question.learned.partition
    solver = partial(_solve_pieces, factor=question.first_factor) if solver is None else solver
    block = max(1, TABLE // partition.n_pieces)
    answers = [Projection.unresolved(0, question.points.shape[1])]
    targets = [np.empty(0, dtype=np.int64)]
    for start in range(0, len(every), block):
        rows = every[start : start + block]

        def solve_pieces(which: Ints, pieces: Ints, rows: Ints = rows) -> Projection:
            return solver(question, rows[which], pieces)

        bound = _lower_bounds(question, rows)
        found, pieces = _best_pieces(question, rows, bound, solve_pieces)
        answers.append(found)
        targets.append(partition.label_of[pieces])
    if len(answers) == 2:
        return answers[1], targets[1]
    return Projection.joined(answers), np.concatenate(targets)


def _lower_bounds(question: Question, rows: Ints) -> Array:
    """Return lower bounds for the energy of an answer in each piece; infinite for the source's."""
    learned, n = question.learned, len(question.points)
    which = None if is_every(rows, n) else rows
    partition, source = learned.partition, taken(question.source, which)
    discounted = (question.allowed.factors < 1.0).any()  # then the bounds of the model do not hold
    if question.objective != "cost" or discounted or partition.n_pieces == 2:
        return np.where(partition.label_of == source[:, None], np.inf, 0.0)
    seen, mixing = taken(question.rows.seen, which), learned.space.mixing
    return partition.lower_bounds(seen, source, learned.contractions, learned.metric, mixing)


def _best_pieces(
    question: Question, rows: Ints, bound: Array, solve_pieces: Callable[[Ints, Ints], Projection]
) -> tuple[Projection, Ints]:
    """Return the best answer of each row in one of several pieces, and the piece it is in.

    A row is infeasible only if it is so in all pieces. Where a piece was not searched to the end,
    the answer in another one is no optimum if that piece might have a better one, which its gap
    then tells.

    Parameters
    ----------
    question : Question
    rows : array of shape (n,)
    bound : array of shape (n, p)
        Lower bounds for the energy of an answer in each piece, infinite for pieces that are left
        out. Pieces are tried in their order; once a bound exceeds the best answer so far, no
        further piece can be better. It is overwritten.
    solve_pieces : callable
        ``solve_pieces(which, pieces)`` solves for one piece for each of some rows.
    """
    open_, tried = np.arange(len(rows)), bound.argmin(axis=1)
    best = _Best.of(question, rows, tried, solve_pieces(open_, tried))
    while True:
        bound[np.arange(len(open_)), tried] = np.inf
        highest = np.minimum(best.energy[open_] * (1 + TOLERANCE.cheaper), LARGEST)
        promising = (bound <= highest[:, None]).any(axis=1)
        if not promising.any():
            return best.proven(question), best.piece
        bound, open_ = bound[promising], open_[promising]
        tried = bound.argmin(axis=1)
        best.improve(open_, _Best.of(question, rows[open_], tried, solve_pieces(open_, tried)))


@dataclass(frozen=True)
class _Best:
    """The best answer of each row so far.

    Attributes
    ----------
    answers : Projection
    piece : array of shape (n,)
        The piece that each answer is in.
    energy : array of shape (n,)
        Its energy; infinite without an answer.
    value : array of shape (n,)
        What the objective minimises before the energy: the number of columns that may change, or
        the price; infinite without an answer.
    unsure : array of shape (n,)
        Lower bound for half the energy, or the price, of an answer in pieces that were not searched
        to the end.
    """

    answers: Projection
    piece: Ints
    energy: Array
    value: Array
    unsure: Array

    @classmethod
    def of(cls, question: Question, rows: Ints, pieces: Ints, answers: Projection) -> _Best:
        """Measure the answers in one piece for each row."""
        _, energy = measure(question, rows, answers.points)
        value = np.zeros(len(rows))
        if question.objective in ("prefix", "fewest"):
            value = answers.cardinality.astype(np.float64)
        elif question.tariff is not None:
            value = np.nan_to_num(question.price(rows, answers.points), nan=np.inf)
        stopped, unsure = answers.status == Status.STOPPED, np.full(len(rows), np.inf)
        if question.allowed.choices is not None:  # else rounding leaves no answer there
            unsure[answers.status == Status.UNRESOLVED] = 0.0
        best = 0.5 * energy if question.tariff is None else value
        unsure[stopped] = (best - answers.gap)[stopped]
        return cls(answers, pieces, np.nan_to_num(energy, nan=np.inf), value, unsure)

    def improve(self, at: Ints, others: _Best) -> None:
        """Replace the answers `at` these positions by others where those are better."""
        better = np.zeros(len(at), dtype=np.bool_)
        for one, other in zip(self._keys(at), others._keys(slice(None)), strict=True):
            better = (other < one) | ((other == one) & better)
        self.answers.put(at[better], others.answers, better)
        for name in ("piece", "energy", "value"):
            getattr(self, name)[at[better]] = getattr(others, name)[better]
        self.unsure[at] = np.minimum(self.unsure[at], others.unsure)

    def _keys(self, at: Any) -> tuple[Any, ...]:
        """Return what decides which answer is better, the least first; the last decides first."""
        answers = self.answers
        infeasible = answers.status[at] == Status.INFEASIBLE
        unanswered = ~answers.answered[at]
        return self.piece[at], self.energy[at], self.value[at], infeasible, unanswered

    def proven(self, question: Question) -> Projection:
        """Return the answers; no optimum where a piece that is not searched may have a better."""
        answers, half = self.answers, 0.5 * self.energy
        if question.tariff is not None:
            half = self.value
        few = question.objective in ("prefix", "fewest")
        better = np.isfinite(self.unsure) if few else self.unsure < half
        open_ = np.flatnonzero(answers.answered & better)
        answers.status[open_] = Status.STOPPED
        answers.gap[open_] = np.maximum(answers.gap[open_], half[open_] - self.unsure[open_])
        return answers
