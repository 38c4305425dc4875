"""Several answers for one row: other columns instead, and cost against the number of changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Ints, Mask
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.search.answering import verified
from voicecf.search.answers import Answers
from voicecf.search.outcome import Outcome
from voicecf.search.question import Question
from voicecf.search.solving import measure, solve
from voicecf.status import Status


def with_alternatives(first: Outcome, most: int) -> Outcome:
    """Add up to `most` further answers to each that was found."""
    question = first.question
    if question.objective == "prefix":
        raise OptionError('alternatives go with objective="cost" or "fewest", not "prefix".')
    learned = question.learned

    def ask(row: int, target: int, locked: Mask) -> tuple[Answers, Any, Any]:
        rows, targets = np.full(len(locked), row), np.full(len(locked), target)
        answers = solve(question, rows, targets, locked=locked)
        _, energy, _ = measure(question, rows, answers.points)
        moves = answers.points - question.points[rows]
        few = answers.cardinality if question.objective == "fewest" else np.zeros(len(rows))
        keys = list(zip(few.tolist(), energy.tolist(), strict=True))
        return answers, keys, learned.space.changed(moves, learned.smallest_change)

    search = Alternatives(ask, len(learned.space.columns))
    places, parts = [], []
    for i in np.flatnonzero(first.feasible & (first.status != Status.ALREADY)):
        found = search.of(int(first.row[i]), int(first.target[i]), most + 1)[1:]
        places += [i] * len(found)
        parts += found
    if not parts:
        return first
    at = np.array(places)
    rest = verified(question, first.row[at], first.target[at], Answers.joined(parts))
    return first.followed_by(rest, at)


@dataclass(order=True)
class Branch:
    """The best answer of a row with some columns locked, to be taken in the order of its key."""

    key: tuple[float, ...]
    turn: int
    locked: frozenset[int] = field(compare=False)
    changed: frozenset[int] = field(compare=False)
    place: int = field(compare=False)


class Alternatives:
    """Find answers with distinct sets of changed columns, best first.

    Each further answer leaves alone at least one column of every answer before it; among those it
    is the best. So a search over sets of locked columns: whoever differs from an answer locks one
    of its columns.

    Parameters
    ----------
    ask : callable
        Answers a row with columns locked: ``ask(row, target, locked)``, an answer a row of the mask
        `locked`, and their keys (least first) and changed columns.
    width : int
        Number of columns.
    """

    def __init__(self, ask: Callable[[int, int, Mask], tuple[Any, Any, Any]], width: int) -> None:
        self.ask = ask
        self.width = width

    def of(self, row: int, target: int, most: int) -> list[Answers]:
        """Return up to `most` answers of a row, each as one of its own."""
        found: list[Answers] = []
        sets: list[frozenset[int]] = []
        open_: list[Branch] = []
        kept: list[Answers] = []
        seen = {frozenset[int]()}
        self._add(row, target, [frozenset()], open_, kept)
        while open_ and len(found) < most:
            best = heappop(open_)
            # Not yet different from an earlier answer: it has all the columns of that one.
            same = next((one for one in sets if one <= best.changed), None)
            if same is None:
                found.append(kept[best.place])
                sets.append(best.changed)
            if len(found) < most:
                others = {best.locked | {c} for c in (same or best.changed)} - seen
                seen |= others
                self._add(row, target, sorted(others, key=sorted), open_, kept)
        return found

    def _add(
        self, row: int, target: int, locks: list[frozenset[int]], open_: list[Branch],
        kept: list[Answers],
    ) -> None:  # fmt: skip
        """Answer with each set of columns locked, and queue what was found."""
        if not locks:
            return
        mask = np.zeros((len(locks), self.width), dtype=np.bool_)
        for i, lock in enumerate(locks):
            mask[i, list(lock)] = True
        answers, keys, changed = self.ask(row, target, mask)
        for i in np.flatnonzero(answers.found).tolist():
            columns = frozenset(np.flatnonzero(changed[i]).tolist())
            kept.append(answers[[i]])
            heappush(open_, Branch(keys[i], len(kept), locks[i], columns, len(kept) - 1))


def tradeoff(question: Question, first: Outcome) -> Outcome:
    """Find the least cost with at most 1, 2, ... changes, until more changes save nothing.

    Parameters
    ----------
    question : Question
        Its columns choose.
    first : Outcome
        Which rows go where; those that are in their target already are left out.

    Returns
    -------
    Outcome
        `cardinality` is the number of changes allowed.
    """
    ways = np.flatnonzero(first.status != Status.ALREADY)
    pairs, targets = first.row[ways], first.target[ways]

    def ask(which: Ints, changes: int) -> Answers:
        return solve(question.with_changes(changes), pairs[which], targets[which])

    def energy(which: Ints, answers: Answers) -> Any:
        return measure(question, pairs[which], answers.points)[1]

    width = len(question.learned.space.columns)
    open_ = np.arange(len(ways))
    free = ask(open_, width)
    least = np.where(free.found, energy(open_, free), np.inf)
    open_ = open_[free.found]
    rows, parts = [np.flatnonzero(~free.found)], [free[~free.found]]
    changes = 0
    while open_.size:
        changes += 1
        some = ask(open_, changes)
        some.cardinality[:] = changes
        rows.append(open_[some.found])
        parts.append(some[some.found])
        done = some.found & (energy(open_, some) <= least[open_] * (1 + TOLERANCE.cheaper))
        open_ = open_[~done & (changes < width)]
    every = np.concatenate(rows)
    order = np.argsort(every, kind="stable")
    every = every[order]
    return verified(question, pairs[every], targets[every], Answers.joined(parts)[order])
