"""What was found for pairs of row and target, in coordinates and in the user's columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.search.question import Question
from voicecf.status import Status
from voicecf.table.rows import Rows
from voicecf.table.space import Space

# What there is one of for every answer.
ARRAYS = (
    "row", "target", "points", "status", "cost", "n_changed", "cardinality", "rho", "gap", "rank",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Outcome:
    """Answers to a question, one a pair of row and target; see `Counterfactuals`.

    Attributes
    ----------
    question : Question
    row, target : array of shape (n,)
    points : array of shape (n, d)
    status, cost, n_changed, cardinality, rho, gap, rank : array of shape (n,)
    output : Rows or None
        The changed rows in the user's columns; None where these are the coordinates.
    smallest : array of shape (d,) or None
        Moves of a coordinate up to this count as none; as was learned, if None.
    """

    question: Question
    row: Ints
    target: Ints
    points: NDArray[Any]
    status: NDArray[np.int8]
    cost: Array
    n_changed: Ints
    cardinality: Ints
    rho: Array
    gap: Array
    rank: Ints
    output: Rows | None = None
    smallest: Array | None = None

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which: Any) -> Outcome:
        """Return some of the answers: a slice, a mask or positions."""
        which = np.arange(len(self))[which]
        output = None if self.output is None else self.output.take(which)
        arrays = {name: getattr(self, name)[which] for name in ARRAYS}
        return replace(self, output=output, **arrays)

    def followed_by(self, others: Outcome, after: Ints) -> Outcome:
        """Return these answers, each followed by those of `others` that come after it."""
        both: dict[str, Any] = {
            n: np.concatenate([getattr(self, n), getattr(others, n)]) for n in ARRAYS
        }
        both["rank"] = np.concatenate([np.zeros(len(self), dtype=np.int64), _turns(after)])
        output = self.output
        if output is not None and others.output is not None:
            output = output.followed_by(others.output)
        joined = replace(self, output=output, **both)
        return joined[np.argsort(np.concatenate([np.arange(len(self)), after]), kind="stable")]

    @property
    def space(self) -> Space:
        """The columns, and where they are among the coordinates."""
        return self.question.learned.space

    @property
    def rows(self) -> Rows:
        """All rows of the question, as they came."""
        return self.question.rows

    @property
    def source(self) -> Ints:
        """Cluster before the change."""
        return self.question.source[self.row]

    @property
    def feasible(self) -> Mask:
        """Whether there is an answer, in the target, for each pair."""
        answered = (Status.OPTIMAL, Status.ALREADY, Status.STOPPED)
        return np.isin(self.status, np.array(answered, dtype=np.int8))

    @property
    def missing(self) -> Mask:
        """Which pairs have no changed row to show."""
        return np.asarray(np.isnan(self.points).any(axis=1))

    @cached_property
    def moves(self) -> Array:
        """Change of each coordinate, shape (n, d)."""
        return np.asarray(self.points - self.question.points[self.row])

    @cached_property
    def changes(self) -> Mask:
        """Which columns change, shape (n, C)."""
        known = self.question.learned.smallest_change
        return self.space.changed(self.moves, known if self.smallest is None else self.smallest)

    def changed(self, i: int) -> Ints:
        """Return the columns that answer i changes, the costliest first."""
        moved = np.flatnonzero(self.changes[i])
        price = self.question.weights * self.moves[i] ** 2
        costs = [price[self.space.columns[c].places].sum() for c in moved]
        return moved[np.argsort(-np.asarray(costs), kind="stable")]

    def before(self, c: int) -> NDArray[Any]:
        """Return the values of a column, as its user knows them, before the change."""
        return self.space.table_values(c, self.rows, self.row)

    def after(self, c: int) -> NDArray[Any]:
        """Return the values of a column, as its user knows them, after the change."""
        column = self.space.columns[c]
        if column.declared:
            return self.space.levels_at(c, self.points)
        if self.output is None:
            return np.asarray(self.points[:, column.places[0]])
        values = self.space.table_values(c, self.output, np.arange(len(self)))
        values[self.missing] = None if values.dtype == object else np.nan
        return values

    @cached_property
    def values(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Before and after of all columns."""
        columns = range(len(self.space.columns))
        return [self.before(c) for c in columns], [self.after(c) for c in columns]

    @cached_property
    def deltas(self) -> Array:
        """Change of each column in its own units, shape (n, C); NaN for a category."""
        if self.space.is_plain:
            return self.moves
        made = np.full((len(self), len(self.space.columns)), np.nan)
        for c, column in enumerate(self.space.columns):
            if column.kind == "number":
                made[:, c] = self.values[1][c] - self.values[0][c]
        return made


def _turns(after: Ints) -> Ints:
    """Count 1, 2, ... along runs of equal numbers."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(after)) + 1, [len(after)]])
    return np.concatenate([np.arange(1, n + 1) for n in np.diff(starts)])
