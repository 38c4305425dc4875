"""Sum numbers that come in pieces, with the same bits as numpy's sum of the whole array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Most numbers that are buffered before they are added up. It does not affect the result.
SPAN = 8_192


class Pairwise:
    """Sum numbers by pairwise summation, as numpy does for a contiguous array.

    The sum of an array is the sum of its first half plus the sum of its second half, and so on
    recursively.

    Parameters
    ----------
    n : int
        How many numbers will be added in all; it determines where the halves end.

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
        self._buffer: list[Floats] = []

    def add(self, numbers: Floats) -> None:
        """Add the next numbers; those of a table by columns, each to a sum of its own."""
        self._buffer.append(np.asarray(numbers))
        ready = sum(map(len, self._buffer))
        if ready < self._next_length():
            return
        buffered, start = np.concatenate(self._buffer), 0
        while len(self._sums) < len(self._lengths) and start + self._next_length() <= ready:
            stop = start + self._next_length()
            self._sums.append(_contiguous_sum(buffered[start:stop]))
            start = stop
        self._buffer = [buffered[start:].copy()]

    def _next_length(self) -> int:
        """Return the length of the next span; 1 if all spans are complete."""
        done = len(self._sums)
        return self._lengths[done] if done < len(self._lengths) else 1

    def total(self) -> Any:
        """Return the sum of all numbers."""
        if len(self._sums) != len(self._lengths):
            raise RuntimeError(f"fewer numbers were added than the {self._n} that were announced.")
        return _sum_of_halves(iter(self._sums), self._n)


class Sequential:
    """Sum the rows of a table one after the other, as numpy does for a C-contiguous table.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.solver.summing import Sequential
    >>> table = np.random.default_rng(0).normal(size=(1000, 3))
    >>> piecemeal = Sequential()
    >>> for piece in np.array_split(table, 7):
    ...     piecemeal.add(piece)
    >>> bool((piecemeal.total() == table.sum(axis=0)).all())
    True
    """

    def __init__(self) -> None:
        self._total: Any = None

    def add(self, rows: Floats) -> None:
        """Add the next rows."""
        rows = np.ascontiguousarray(rows)
        if self._total is not None:
            rows = np.vstack([self._total, rows])
        self._total = rows.sum(axis=0)

    def total(self) -> Any:
        """Return the sum of all rows."""
        return self._total


def summation_like(table: NDArray[Any], n: int) -> Pairwise | Sequential:
    """Return the summation that numpy uses for the columns of n rows with this memory layout.

    numpy adds up neighbours in memory first: pairwise down a column if columns are contiguous, else
    row after row.
    """
    down, along = (abs(stride) for stride in table.strides)
    return Pairwise(n) if table.shape[1] == 1 or down < along else Sequential()


def _halves(n: int) -> tuple[int, int]:
    """Split n numbers as numpy does: the length of the first half is a multiple of eight."""
    half = n // 2
    half -= half % 8
    return half, n - half


def _spans(n: int) -> Iterator[int]:
    """Yield the lengths of the spans that n numbers are split into, each of at most SPAN."""
    if n <= SPAN:
        yield n
        return
    for half in _halves(n):
        yield from _spans(half)


def _sum_of_halves(sums: Iterator[Any], n: int) -> Any:
    """Add up the sums of the spans of n numbers, half by half."""
    if n <= SPAN:
        return next(sums)
    first, second = _halves(n)
    return _sum_of_halves(sums, first) + _sum_of_halves(sums, second)


def _contiguous_sum(span: Floats) -> Any:
    """Sum numbers, or each column of a table, as numpy sums a contiguous array."""
    if span.ndim == 1:
        return span.sum()
    return np.asfortranarray(span).sum(axis=0)
