"""Sums of what comes in pieces, to the last bit what numpy makes of the whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Most numbers that are held until they are added up; no part of the result.
SPAN = 8_192


class Pairwise:
    """Sum numbers as numpy adds up contiguous ones: in pairs of halves, of halves of halves.

    Parameters
    ----------
    n : int
        How many there are to come. Where the halves end depends on it.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.solver.summing import Pairwise
    >>> numbers = np.random.default_rng(0).normal(size=100_000)
    >>> piecemeal = Pairwise(len(numbers))
    >>> for piece in np.array_split(numbers, 7):
    ...     piecemeal.add(piece)
    >>> bool(piecemeal.total() == numbers.sum())
    True
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._lengths = list(_spans(n))
        self._sums: list[Any] = []
        self._held: list[Floats] = []

    def add(self, numbers: Floats) -> None:
        """Take the next numbers; of a table, each column by itself."""
        self._held.append(np.asarray(numbers))
        ready = sum(map(len, self._held))
        if ready < self._next_length():
            return
        held, start = np.concatenate(self._held), 0
        while len(self._sums) < len(self._lengths) and start + self._next_length() <= ready:
            stop = start + self._next_length()
            self._sums.append(_contiguous(held[start:stop]))
            start = stop
        self._held = [held[start:].copy()]

    def _next_length(self) -> int:
        done = len(self._sums)
        return self._lengths[done] if done < len(self._lengths) else 1

    def total(self) -> Any:
        """Return the sum of all."""
        if len(self._sums) != len(self._lengths):
            raise RuntimeError(f"{self._n} numbers were announced, and fewer came.")
        return _folded(iter(self._sums), self._n)


class InTurn:
    """Sum rows one after the other, as numpy adds up the rows of a table.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.solver.summing import InTurn
    >>> table = np.random.default_rng(0).normal(size=(1000, 3))
    >>> piecemeal = InTurn()
    >>> for piece in np.array_split(table, 7):
    ...     piecemeal.add(piece)
    >>> bool((piecemeal.total() == table.sum(axis=0)).all())
    True
    """

    def __init__(self) -> None:
        self._total: Any = None

    def add(self, rows: Floats) -> None:
        """Take the next rows."""
        rows = np.ascontiguousarray(rows)
        if self._total is not None:
            rows = np.vstack([self._total, rows])
        self._total = rows.sum(axis=0)

    def total(self) -> Any:
        """Return the sum of all."""
        return self._total


def like(table: NDArray[Any], n: int) -> Pairwise | InTurn:
    """Return the sum that numpy would take down the columns of n rows that lie as these do.

    It goes along what is closest in memory: down a column where these are contiguous, else from
    row to row.
    """
    down, along = (abs(stride) for stride in table.strides)
    return Pairwise(n) if table.shape[1] == 1 or down < along else InTurn()


def _halves(n: int) -> tuple[int, int]:
    """Divide n numbers as numpy does: the first half in whole groups of eight."""
    half = n // 2
    half -= half % 8
    return half, n - half


def _spans(n: int) -> Iterator[int]:
    if n <= SPAN:
        yield n
        return
    for half in _halves(n):
        yield from _spans(half)


def _folded(sums: Iterator[Any], n: int) -> Any:
    if n <= SPAN:
        return next(sums)
    first, second = _halves(n)
    return _folded(sums, first) + _folded(sums, second)


def _contiguous(span: Floats) -> Any:
    """Sum a span of numbers, or each column of a table as if it stood alone."""
    if span.ndim == 1:
        return span.sum()
    return np.asfortranarray(span).sum(axis=0)
