"""Answers to a batch of problems, a problem being a row and a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.solver.projection import Projection
from voicecf.status import Status


@dataclass(frozen=True)
class Answers:
    """Answers to n problems.

    Attributes
    ----------
    points : array of shape (n, d)
        Coordinates; NaN where there is no answer.
    gap : array of shape (n,)
        Duality gap of half the squared move in the metric.
    rho : array of shape (n,)
        How many times as far the same move may go.
    status : array of shape (n,)
    cardinality : array of shape (n,)
        Number of columns that were allowed to move.
    """

    points: Array
    gap: Array
    rho: Array
    status: NDArray[np.int8]
    cardinality: Ints

    @classmethod
    def blank(cls, n: int, d: int) -> Answers:
        """Return room for n answers, all unresolved."""
        return cls(
            np.full((n, d), np.nan),
            np.full(n, np.nan),
            np.full(n, np.nan),
            np.full(n, Status.UNRESOLVED, dtype=np.int8),
            np.zeros(n, dtype=np.int64),
        )

    @classmethod
    def of(cls, found: Projection | Answers, cardinality: Ints) -> Answers:
        """Return answers that one projection gives."""
        return cls(found.points, found.gap, found.rho, found.status, cardinality)

    @classmethod
    def joined(cls, parts: list[Answers]) -> Answers:
        """Return several answers as one."""
        names = cls.__dataclass_fields__
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    @property
    def found(self) -> Mask:
        """Which problems have an answer."""
        return is_found(self.status)

    def __getitem__(self, which: Any) -> Answers:
        """Return some of them."""
        return Answers(*(getattr(self, name)[which] for name in self.__dataclass_fields__))

    def put(self, at: Any, others: Answers, which: Any = slice(None)) -> None:
        """Copy `others[which]` into place."""
        put(self, at, others, which)


def is_found(status: NDArray[np.int8]) -> Mask:
    """Tell which outcomes are an answer that was found."""
    return np.asarray((status == Status.OPTIMAL) | (status == Status.STOPPED))


def put(into: Any, at: Any, others: Any, which: Any = slice(None)) -> None:
    """Copy some of a record's arrays into places of another one."""
    for name in into.__dataclass_fields__:
        getattr(into, name)[at] = getattr(others, name)[which]
