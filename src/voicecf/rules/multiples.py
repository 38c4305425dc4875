"""Grids, the values that a column is limited to: multiples of an increment, or a list."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array

# Whole numbers up to this size, and their neighbours, are exact in double precision.
EXACT = 2.0**52


@dataclass(frozen=True)
class Multiples:
    """All multiples of an increment, 0 included.

    A multiple is the float nearest to its decimal value: 3 times 0.1 is 0.3.

    Examples
    --------
    >>> from voicecf.rules.multiples import Multiples
    >>> Multiples(0.1).at([3])
    array([0.3])
    >>> Multiples(50).inside([120.0], [260.0])
    (array([3]), array([5]))
    """

    increment: float

    def at(self, k: Any) -> Array:
        """Return k times the increment."""
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(over="ignore"):
            plain = np.asarray(k * self.increment)
            if self._fraction is None:
                return plain
            numerator, denominator = self._fraction
            product = k * numerator
            return np.asarray(np.where(np.abs(product) <= EXACT, product / denominator, plain))

    def inside(self, low: Any, high: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the smallest and the largest k whose multiples lie within finite bounds."""
        return self._first(low), -self._first(-np.asarray(high, dtype=np.float64))

    @cached_property
    def _fraction(self) -> tuple[int, int] | None:
        """Numerator and denominator of the increment's decimal; None if they are not exact.

        With them a multiple is rounded only once, in the division.
        """
        ratio = Fraction(repr(float(self.increment))).as_integer_ratio()
        return ratio if max(ratio) <= EXACT else None

    def nearest(self, values: Any) -> Array:
        """Return the multiple nearest to each value."""
        return self.at(np.rint(np.asarray(values, dtype=np.float64) / self.increment))

    def values_at(self, coordinates: Array, values: Array) -> Array:
        """Return the multiple nearest to each value; called like `Listed.values_at`."""
        return self.nearest(values)

    def _first(self, low: Any) -> NDArray[np.int64]:
        """Return the smallest k whose multiple is at least `low`."""
        low = np.asarray(low, dtype=np.float64)
        with np.errstate(over="ignore"):
            k = np.clip(np.ceil(low / self.increment), -EXACT, EXACT)
        # The quotient is rounded, so k may be one too large or one too small.
        k = np.where(self.at(k - 1) >= low, k - 1, k)
        return np.asarray(np.where(self.at(k) < low, k + 1, k), dtype=np.int64)


@dataclass(frozen=True)
class Listed:
    """A list of values and their coordinates.

    A coordinate is looked up in the list, so the inverse of the column's map is never needed.

    Attributes
    ----------
    values : array of shape (m,)
        In the user's units.
    coordinates : array of shape (m,)
        Their coordinates, ascending.
    """

    values: Array
    coordinates: Array

    def inside(self, low: Any, high: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the positions of the first and last value within bounds, in the order listed."""
        falls = self.values[-1] < self.values[0]
        values = self.values[::-1] if falls else self.values
        first = np.searchsorted(values, low, side="left")
        last = np.searchsorted(values, high, side="right") - 1
        if falls:
            first, last = len(values) - 1 - last, len(values) - 1 - first
        return np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64)

    def values_at(self, coordinates: Array, values: Array) -> Array:
        """Return the listed values whose coordinates are nearest; `values` if the list is empty."""
        if not len(self.values):
            return values
        after = np.searchsorted(self.coordinates, coordinates).clip(1, len(self.values) - 1)
        before = np.maximum(after - 1, 0)
        nearer = coordinates - self.coordinates[before] <= self.coordinates[after] - coordinates
        return np.asarray(self.values[np.where(nearer, before, after)])


Grid = Multiples | Listed
