"""Several answers for one row: other columns instead, and cost against the number of changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.search.aims import Answers, Rows

Mask = NDArray[np.bool_]


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


def tradeoff(
    ask: Callable[[Rows, int], Answers], energy: Callable[[Rows, Answers], Any], n: int, width: int
) -> tuple[Rows, Answers]:
    """Find the least cost with at most 1, 2, ... changes, until more changes save nothing.

    Parameters
    ----------
    ask : callable
        ``ask(rows, changes)`` answers rows with so many changes at most.
    energy : callable
        ``energy(rows, answers)`` is what is minimised.
    n, width : int
        Number of rows and of columns.

    Returns
    -------
    rows : array of int
        The row of each answer, ascending, and
    answers : Answers
        the answers, `cardinality` the number of changes allowed.
    """
    open_ = np.arange(n)
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
        done = some.found & (energy(open_, some) <= least[open_] * (1 + 1e-9))
        open_ = open_[~done & (changes < width)]
    every = np.concatenate(rows)
    order = np.argsort(every, kind="stable")
    return every[order], Answers.joined(parts)[order]
