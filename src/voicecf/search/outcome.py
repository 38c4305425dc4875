"""The answers for pairs of row and target, in coordinates and in the user's columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import Allowed
from voicecf.rules.plausible import shares_of
from voicecf.search.question import Question
from voicecf.solver.projection import has_answer
from voicecf.status import Status
from voicecf.table.frames import is_every, taken
from voicecf.table.rows import Rows, without_values
from voicecf.table.space import Space

# Attributes that are arrays with one entry per answer.
ARRAYS = (
    "row", "target", "points", "status", "cost", "cardinality", "rho", "gap", "rank", "factor",
    "step",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """Answers to a question, at least one per pair of row and target; see `Counterfactuals`.

    Attributes
    ----------
    question : Question
    row, target : array of shape (n,)
    points : array of shape (n, d)
    status, cost, cardinality, rho, gap, rank : array of shape (n,)
    factor : array of shape (n,)
        Factor on the slack for rounding that each pair was solved with.
    step : array of shape (n,)
        Position of the rules that each pair was solved with, in `Question.ladder`.
    output : Rows or None
        The answers in the user's columns; None if these are the coordinates themselves.
    """

    question: Question
    row: Ints
    target: Ints
    points: NDArray[Any]
    status: NDArray[np.int8]
    cost: Array
    cardinality: Ints
    rho: Array
    gap: Array
    rank: Ints
    factor: Array
    step: NDArray[np.int8]
    output: Rows | None = None

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which: Any) -> Outcome:
        """Return the answers at a slice, mask or indices."""
        which = np.arange(len(self))[which]
        output = None if self.output is None else self.output.take(which)
        arrays = {name: getattr(self, name)[which] for name in ARRAYS}
        return replace(self, output=output, **arrays)

    def put(self, at: Ints, others: Outcome) -> None:
        """Overwrite the answers `at` these positions by others; `output` stays as it is."""
        for name in ARRAYS:
            getattr(self, name)[at] = getattr(others, name)

    def parts(self) -> Iterator[tuple[Ints, Outcome]]:
        """Yield the answers by step: their positions, and they with the question of that step."""
        for step in np.unique(self.step).tolist() or [0]:
            which = np.flatnonzero(self.step == step)
            part = self if len(which) == len(self) else self[which]
            yield which, replace(part, question=self.question.at(step))

    def by_step(self, follow: Callable[[Outcome], tuple[Ints, Outcome]]) -> Outcome:
        """Return the answers that follow from those of each step.

        `follow` returns, besides the answers, the position of the one that each follows from.
        """
        found = []
        for which, part in self.parts():
            at, others = follow(part)
            others.step[:] = part.step[:1]
            found.append((which[at], others))
        return replace(Outcome.joined(found), question=self.question)

    @classmethod
    def joined(cls, parts: Sequence[tuple[Ints, Outcome]]) -> Outcome:
        """Return the answers of several outcomes, sorted by the positions given with each."""
        (_, first), *rest = parts
        if not rest:
            return first
        arrays: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for _, part in parts]) for name in ARRAYS
        }
        output = first.output
        for _, part in rest:
            if output is not None and part.output is not None:
                output = output.followed_by(part.output)
        order = np.argsort(np.concatenate([at for at, _ in parts]), kind="stable")
        return replace(first, output=output, **arrays)[order]

    def holds(self, which: Ints, changed: Rows) -> Mask:
        """Tell which of some answers, changed and read again, satisfy the user's rules.

        Those of single steps are not the user's.
        """
        return self.question.holds(self.row[which], self.target[which], changed)

    def question_of(self, i: int) -> Question:
        """Return the question that answer i was solved for."""
        return self.question.at(int(self.step[i]))

    def followed_by(self, others: Outcome, after: Ints) -> Outcome:
        """Return these answers, each followed by its alternatives.

        `after` has for each of `others` the index of the answer that it is an alternative to.
        """
        ranked = replace(others, rank=_ranks(after))
        return Outcome.joined([(np.arange(len(self)), self), (after, ranked)])

    @property
    def learned(self) -> Learned:
        """What `fit` learned."""
        return self.question.learned

    @property
    def allowed(self) -> Allowed:
        """The changes that were allowed for each row."""
        return self.question.allowed

    @property
    def weights(self) -> Array:
        """Weights of the coordinates in the cost, times the user's cost factors."""
        return self.question.weights

    @property
    def space(self) -> Space:
        """The user's columns, and their conversion to coordinates."""
        return self.learned.space

    @property
    def rows(self) -> Rows:
        """All rows of the question, before any change."""
        return self.question.rows

    @property
    def source(self) -> Ints:
        """Cluster of the row of each answer, before the change."""
        return self.question.source[self.row]

    @property
    def feasible(self) -> Mask:
        """Mask of the pairs with an answer in the target."""
        return np.asarray(has_answer(self.status) | (self.status == Status.ALREADY))

    @cached_property
    def piece(self) -> Ints:
        """Piece of the target that each answer lies in; its first where there is no answer."""
        seen = self.learned.seen(self.points.astype(np.float64, copy=False))
        return self.learned.partition.pieces_at(seen, self.target)

    @cached_property
    def missing(self) -> Mask:
        """Mask of the pairs without an answer."""
        return without_values(self.points)

    @cached_property
    def usual(self) -> Array:
        """Share of the target's members that are as extreme as each answer; see `Members.usual`."""
        usual, feasible = np.full(len(self), np.nan), self.feasible
        if self.learned.members is not None:
            members = self.learned.members_of(self.allowed.fixed)
            for target in np.unique(self.target[feasible]).tolist():
                which = np.flatnonzero(feasible & (self.target == target))
                usual[which] = members.usual(target, self.points[which])
        return usual

    @cached_property
    def share(self) -> Array:
        """Share of the target's members that each answer stays within; NaN without such a rule."""
        moved = self.feasible & (self.status != Status.ALREADY)
        return np.where(moved, shares_of(self.question.ladder)[self.step], np.nan)

    @cached_property
    def moves(self) -> Array:
        """Difference of each answer to its row, in coordinates, shape (n, d)."""
        return np.asarray(self.points - taken(self.rows.points, self._which))

    @cached_property
    def price(self) -> Array:
        """Price of each answer, in the user's money; NaN if the objective is not the price."""
        return self.question.price(self.row, self.points.astype(np.float64, copy=False))

    @cached_property
    def _which(self) -> Ints | None:
        """The row of each answer; None if the answers are for all rows, in order."""
        return None if is_every(self.row, len(self.rows)) else self.row

    @cached_property
    def changes(self) -> Mask:
        """Mask of the columns whose values differ in the user's table, shape (n, C)."""
        if self.output is None:
            return self.space.changed(self.moves, 0.0)
        found = np.empty((len(self.space.columns), len(self)), dtype=np.bool_)
        for c, column in enumerate(self.space.columns):
            if column.kind == "number":
                before, after = self.before(c), self.after(c)
                found[c] = (before != after) & ~(np.isnan(before) & np.isnan(after))
            else:
                found[c] = (self.moves[:, column.places] != 0.0).any(axis=1)
        return found.T & ~self.missing[:, None]

    @cached_property
    def n_changed(self) -> Ints:
        """Number of columns that each answer changes."""
        return np.asarray(self.changes.sum(axis=1))

    def changed(self, i: int) -> Ints:
        """Return the columns that answer i changes, the costliest first."""
        columns = np.flatnonzero(self.changes[i])
        cost = self.weights * self.moves[i] ** 2
        costs = [cost[self.space.columns[c].places].sum() for c in columns]
        return columns[np.argsort(-np.asarray(costs), kind="stable")]

    def before(self, c: int) -> NDArray[Any]:
        """Return the values of a column before the change, in the user's units."""
        return self.space.table_values(c, self.rows, self._which)

    def after(self, c: int) -> NDArray[Any]:
        """Return the values of a column after the change, in the user's units."""
        column = self.space.columns[c]
        if column.declared:
            return self.space.levels_at(c, self.points)
        if self.output is None:
            return np.asarray(self.points[:, column.places[0]])
        values = self.space.table_values(c, self.output)
        values[self.missing] = None if values.dtype == object else np.nan
        return values

    @cached_property
    def values(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Values of all columns before and after the change, in the user's units."""
        columns = range(len(self.space.columns))
        return [self.before(c) for c in columns], [self.after(c) for c in columns]

    @cached_property
    def deltas(self) -> Array:
        """Change of each column in the user's units, shape (n, C); NaN for categories."""
        if self.space.is_plain:
            return self.moves
        deltas = np.full((len(self), len(self.space.columns)), np.nan)
        for c, column in enumerate(self.space.columns):
            if column.numeric:
                deltas[:, c] = self.values[1][c] - self.values[0][c]
        return deltas


def _ranks(after: Ints) -> Ints:
    """Return the position, from 1 on, of each element in its run of equal integers."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(after)) + 1, [len(after)]])
    return np.concatenate([np.arange(1, n + 1) for n in np.diff(starts)])
