"""Grids of values that a column keeps to: multiples of a step, or a list of values."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array

EXACT = 2.0**52  # whole numbers up to here, and their neighbours, are exact


@dataclass(frozen=True)
class Multiples:
    """All multiples of a step, anchored at 0, each the number nearest to its decimal.

    Examples
    --------
    >>> from voicecf.rules.multiples import Multiples
    >>> Multiples(0.1).at([3])
    array([0.3])
    >>> Multiples(50).inside([120.0], [260.0])
    (array([3]), array([5]))
    """

    step: float

    def at(self, k: Any) -> Array:
        """Return k times the step."""
        k = np.asarray(k, dtype=np.float64)
        with np.errstate(over="ignore"):
            plain = np.asarray(k * self.step)
            if self._written is None:
                return plain
            numerator, denominator = self._written
            product = k * numerator
            return np.asarray(np.where(np.abs(product) <= EXACT, product / denominator, plain))

    def inside(self, low: Any, high: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the first and the last k whose multiples lie in finite bounds, none beyond."""
        return self._first(low), -self._first(-np.asarray(high, dtype=np.float64))

    @cached_property
    def _written(self) -> tuple[int, int] | None:
        """The decimal as a fraction, so that a multiple is rounded only once, at its division."""
        ratio = Fraction(repr(float(self.step))).as_integer_ratio()
        return ratio if max(ratio) <= EXACT else None

    def nearest(self, values: Any) -> Array:
        """Return the multiple nearest to each value."""
        return self.at(np.rint(np.asarray(values, dtype=np.float64) / self.step))

    def values_at(self, coordinates: Array, values: Array) -> Array:
        """Return the multiple nearest to each value; see `Listed.values_at`."""
        return self.nearest(values)

    def _first(self, low: Any) -> NDArray[np.int64]:
        low = np.asarray(low, dtype=np.float64)
        with np.errstate(over="ignore"):
            k = np.clip(np.ceil(low / self.step), -EXACT, EXACT)
        # The quotient is rounded: the next one may be inside too, or this one outside.
        k = np.where(self.at(k - 1) >= low, k - 1, k)
        return np.asarray(np.where(self.at(k) < low, k + 1, k), dtype=np.int64)


@dataclass(frozen=True)
class Listed:
    """Values that are listed with their coordinates, so that none is ever computed back.

    Attributes
    ----------
    values : array of shape (m,)
        In the user's units.
    coordinates : array of shape (m,)
        What the model's steps make of them, ascending.
    """

    values: Array
    coordinates: Array

    def values_at(self, coordinates: Array, values: Array) -> Array:
        """Return the listed value whose coordinate is nearest; `values` play no part."""
        if not len(self.values):
            return values
        after = np.searchsorted(self.coordinates, coordinates).clip(1, len(self.values) - 1)
        after = after if len(self.values) > 1 else np.zeros_like(after)
        before = np.maximum(after - 1, 0)
        nearer = coordinates - self.coordinates[before] <= self.coordinates[after] - coordinates
        return np.asarray(self.values[np.where(nearer, before, after)])


Grid = Multiples | Listed
