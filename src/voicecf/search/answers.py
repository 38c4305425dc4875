"""Answers to a batch of problems; a problem is a row and its target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.parallel import in_parallel
from voicecf.solver.projection import Projection
from voicecf.status import Status

# Rows that are copied or filled at a time.
CHUNK = 1 << 16


@dataclass(frozen=True)
class Answers:
    """Answers to n problems.

    Attributes
    ----------
    points : array of shape (n, d)
        Coordinates; NaN where there is no answer.
    gap : array of shape (n,)
        Duality gap of the objective, half the squared length of the move in the metric.
    rho : array of shape (n,)
        The largest multiple of the move that is still an answer.
    status : array of shape (n,)
    cardinality : array of shape (n,)
        Number of columns that were allowed to change.
    """

    points: Array
    gap: Array
    rho: Array
    status: NDArray[np.int8]
    cardinality: Ints

    @classmethod
    def blank(cls, n: int, d: int) -> Answers:
        """Return n answers that are all unresolved, to be filled in."""
        points = np.empty((n, d))
        in_parallel(lambda a, b: points[a:b].fill(np.nan), n, chunk=CHUNK)
        return cls(
            points,
            np.full(n, np.nan),
            np.full(n, np.nan),
            np.full(n, Status.UNRESOLVED, dtype=np.int8),
            np.zeros(n, dtype=np.int64),
        )

    @classmethod
    def of(cls, results: Projection | Answers, cardinality: Ints) -> Answers:
        """Return the results of a projection or a search with another cardinality."""
        return cls(results.points, results.gap, results.rho, results.status, cardinality)

    @classmethod
    def joined(cls, parts: list[Answers]) -> Answers:
        """Return the answers of all parts, one part after the other."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def answered(self) -> Mask:
        """Mask of the problems that have an answer."""
        return has_answer(self.status)

    def __getitem__(self, which: Any) -> Answers:
        """Return the answers at a mask, slice or indices."""
        return Answers(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def put(self, at: Ints, others: Answers, which: Mask | None = None) -> None:
        """Overwrite the answers `at` these positions by others, or by some of them."""
        put(self, at, others, which)


def has_answer(status: NDArray[np.int8]) -> Mask:
    """Return a mask of the statuses that come with an answer: optimal, or cut short."""
    return np.asarray((status == Status.OPTIMAL) | (status == Status.STOPPED))


def put(into: Any, at: Ints, others: Any, which: Mask | None = None) -> None:
    """Overwrite entries `at` of all arrays of a record by those, or some, of another record's."""
    chosen = None if which is None else np.flatnonzero(which)

    def copy(a: int, b: int) -> None:
        entries: Any = slice(a, b) if chosen is None else chosen[a:b]
        for name in into.__dataclass_fields__:
            getattr(into, name)[at[a:b]] = getattr(others, name)[entries]

    in_parallel(copy, len(at), chunk=CHUNK)
