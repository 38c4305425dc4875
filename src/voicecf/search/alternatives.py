"""Several answers for one row: alternatives, and the trade-off of cost and number of changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import heappop, heappush
from itertools import count
from typing import Any

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Ints, Mask
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.parallel import counted
from voicecf.search.answering import verified
from voicecf.search.outcome import Outcome
from voicecf.search.solving import measure, solve
from voicecf.solver.projection import Projection
from voicecf.status import Status


def with_alternatives(first: Outcome, most: int) -> Outcome:
    """Add up to `most` alternatives to each answer of an outcome."""
    if first.question.objective == "prefix":
        raise OptionError('alternatives need objective="cost", "fewest" or "price", not "prefix".')
    return first.by_step(partial(_with_alternatives, most=most))


def _with_alternatives(first: Outcome, most: int) -> tuple[Ints, Outcome]:
    """Add alternatives; return also the position of the answer that each belongs to."""
    question, learned, every = first.question, first.learned, np.arange(len(first))

    def solve_locked(
        row: int, target: int, locked: Mask, factor: float | None = None
    ) -> Projection:
        rows, targets = np.full(len(locked), row), np.full(len(locked), target)
        return solve(question, rows, targets, factor=factor, locked=locked)

    def ask(row: int, target: int, locked: Mask) -> tuple[Projection, Any, Any]:
        answers, rows = solve_locked(row, target, locked), np.full(len(locked), row)
        _, energy = measure(question, rows, answers.points)
        moves = answers.points - question.points[rows]
        first = np.zeros(len(rows))
        if question.objective == "fewest":
            first = answers.cardinality.astype(np.float64)
        elif question.tariff is not None:
            first = question.price(rows, answers.points)
        keys = list(zip(first.tolist(), energy.tolist(), strict=True))
        return answers, keys, learned.space.changed(moves, learned.smallest_change)

    search = Alternatives(ask, len(learned.space.columns))
    after, parts = [], []
    moved = np.flatnonzero(first.feasible & (first.status != Status.ALREADY))
    for i in counted(moved.tolist()):
        others = search.of(int(first.row[i]), int(first.target[i]), most + 1)[1:]
        after += [i] * len(others)
        parts += others
    if not parts:
        return every, first
    at, locks = np.array(after), np.concatenate([search.mask([part.locked]) for part in parts])
    rows, targets = first.row[at], first.target[at]

    def again(which: Ints, factor: float) -> Projection:
        each = ((int(rows[i]), int(targets[i]), locks[[i]]) for i in which)
        return Projection.joined([solve_locked(*problem, factor) for problem in each])

    answers = Projection.joined([part.answer for part in parts])
    further = verified(question, rows, targets, answers, again)
    return np.sort(np.concatenate([every, at])), first.followed_by(further, at)


@dataclass(order=True)
class Alternative:
    """The best answer of a row with some columns locked; the heap is sorted by `key`.

    Attributes
    ----------
    key : tuple of float
        Objective of the answer, least first.
    turn : int
        Number of the branch; it decides between equal keys.
    locked, changed : frozenset of int
        Columns that may not change, and columns that the answer changes.
    answer : Projection
        The answer itself, one alone.
    """

    key: tuple[float, ...]
    turn: int
    locked: frozenset[int] = field(compare=False)
    changed: frozenset[int] = field(compare=False)
    answer: Projection = field(compare=False)


class Alternatives:
    """Find answers with distinct sets of changed columns, best first.

    Each answer is the best one that, for every answer before it, leaves at least one of the columns
    that it changes unchanged. So this is a search over sets of locked columns: from each answer it
    branches by locking one of the columns that the answer changes.

    Parameters
    ----------
    ask : callable
        ``ask(row, target, locked)`` solves the problem once for each line of the mask `locked`,
        which marks columns that may not change. It returns the answers, their keys (least first),
        and a mask of the columns that each changes.
    width : int
        Number of columns.
    """

    def __init__(self, ask: Callable[[int, int, Mask], tuple[Any, Any, Any]], width: int) -> None:
        self.ask = ask
        self.width = width

    def of(self, row: int, target: int, most: int) -> list[Alternative]:
        """Return the best answer and its alternatives, up to `most` in all, best first."""
        alternatives: list[Alternative] = []
        column_sets: list[frozenset[int]] = []
        open_: list[Alternative] = []
        turns = count()
        seen = {frozenset[int]()}
        self._add(row, target, [frozenset()], open_, turns)
        while open_ and len(alternatives) < most:
            best = heappop(open_)
            # An answer that changes all the columns of an earlier one is no alternative to it.
            earlier = next((columns for columns in column_sets if columns <= best.changed), None)
            if earlier is None:
                alternatives.append(best)
                column_sets.append(best.changed)
            if len(alternatives) < most:
                locks = {best.locked | {c} for c in (earlier or best.changed)} - seen
                seen |= locks
                self._add(row, target, sorted(locks, key=sorted), open_, turns)
        return alternatives

    def mask(self, locks: list[frozenset[int]]) -> Mask:
        """Return sets of locked columns, a line each."""
        mask = np.zeros((len(locks), self.width), dtype=np.bool_)
        for i, lock in enumerate(locks):
            mask[i, list(lock)] = True
        return mask

    def _add(
        self, row: int, target: int, locks: list[frozenset[int]], open_: list[Alternative],
        turns: Iterator[int],
    ) -> None:  # fmt: skip
        """Solve with each set of columns locked, and queue a branch for each answer."""
        if not locks:
            return
        solved, keys, changed = self.ask(row, target, self.mask(locks))
        for i in np.flatnonzero(solved.answered).tolist():
            columns = frozenset(np.flatnonzero(changed[i]).tolist())
            heappush(open_, Alternative(keys[i], next(turns), locks[i], columns, solved[[i]]))


def tradeoff(first: Outcome) -> Outcome:
    """Find the least cost, or price, with at most 1, 2, ... changes, until more save none.

    Parameters
    ----------
    first : Outcome
        The pairs of row and target, of a question with discrete choices. Rows that are in their
        target already are left out.

    Returns
    -------
    Outcome
        `cardinality` is the number of columns that were allowed to change.
    """
    return first.by_step(_tradeoff)


def _tradeoff(first: Outcome) -> tuple[Ints, Outcome]:
    """Find the trade-off of rows; return also the position of the pair that each belongs to."""
    question = first.question
    away = np.flatnonzero(first.status != Status.ALREADY)
    rows, targets = first.row[away], first.target[away]

    def ask(pairs: Ints, changes: int, factor: float | None = None) -> Projection:
        few = question.with_changes(changes)
        return solve(few, rows[pairs], targets[pairs], factor=factor)

    def energy(pairs: Ints, answers: Projection) -> Any:
        if question.tariff is not None:
            return question.price(rows[pairs], answers.points)
        return measure(question, rows[pairs], answers.points)[1]

    width = len(question.learned.space.columns)
    open_ = np.arange(len(away))
    unlimited = ask(open_, width)
    least = np.where(unlimited.answered, energy(open_, unlimited), np.inf)
    open_ = open_[unlimited.answered]
    pairs, parts = [np.flatnonzero(~unlimited.answered)], [unlimited[~unlimited.answered]]
    changes = 0
    while open_.size:
        changes += 1
        limited = ask(open_, changes)
        limited.cardinality[:] = changes
        pairs.append(open_[limited.answered])
        parts.append(limited[limited.answered])
        cheapest = energy(open_, limited) <= least[open_] * (1 + TOLERANCE.cheaper)
        open_ = open_[~(limited.answered & cheapest) & (changes < width)]
    pair_of = np.concatenate(pairs)
    order = np.argsort(pair_of, kind="stable")
    sorted_pairs = pair_of[order]
    answers = Projection.joined(parts)[order]
    allowed = np.where(answers.answered, answers.cardinality, width)

    def again(which: Ints, factor: float) -> Projection:
        found = Projection.unresolved(len(which), answers.points.shape[1])
        for changes in np.unique(allowed[which]).tolist():
            at = np.flatnonzero(allowed[which] == changes)
            found.put(at, ask(sorted_pairs[which[at]], changes, factor))
        found.cardinality[:] = allowed[which]
        return found

    found = verified(question, rows[sorted_pairs], targets[sorted_pairs], answers, again)
    return away[sorted_pairs], found
