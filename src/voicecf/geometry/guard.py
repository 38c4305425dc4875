"""The rounding guard: how far behind a constraint an answer stays so that `predict` agrees."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from voicecf.geometry.arrays import Array


@dataclass(frozen=True)
class Guard:
    """Slack that an answer needs in each of m constraints, so that rounding cannot undo it.

    A model's `predict` rounds, and so does the way from coordinates to the user's units. For the
    answer z to a row a, constraint j has to hold with at least this slack:

        constant + of_size |z| + of_square |z - origin|^2 + of_move |z - a| - behind

    Lengths are in the solver's metric, w + delta; the origin is the region's. The core has the same
    record (`Guard` in native/problem.hpp).

    Attributes
    ----------
    behind : array of shape (m,)
        How far the model's own boundary lies behind the constraint: slack that a contracted cell
        has anyway.
    constant, of_size, of_square, of_move : array of shape (m,)
    """

    behind: Array
    constant: Array
    of_size: Array
    of_square: Array
    of_move: Array

    @classmethod
    def none(cls, m: int) -> Guard:
        """Return the guard of m constraints that need no slack."""
        return cls(*np.zeros((5, m)))

    def slack(self, size: Any, distance: Any, move: Any) -> Array:
        """Return the slack that is needed at |z|, |z - origin| and |z - a|; 0 at least."""
        needed = self.constant + self.of_size * size + self.of_square * distance**2
        return np.asarray(np.maximum(needed + self.of_move * move - self.behind, 0.0))

    def times(self, factor: float) -> Guard:
        """Return the guard for a factor on all rounding errors."""
        return Guard(
            self.behind,
            factor * self.constant,
            factor * self.of_size,
            factor * self.of_square,
            factor * self.of_move,
        )

    def per_unit(self, lengths: Array) -> Guard:
        """Return the guard of constraints that are divided by lengths."""
        return Guard(*(part / lengths for part in self.table()))

    def of(self, which: Any) -> Guard:
        """Return the guard of some of the constraints."""
        return Guard(*self.table()[:, which])

    def only_where(self, kept: Any) -> Guard:
        """Return the guard with no slack where a mask is false."""
        return Guard(*np.where(kept, self.table(), 0.0))

    def followed_by(self, other: Guard) -> Guard:
        """Return the guard of these constraints and of others after them."""
        return Guard(*np.hstack([self.table(), other.table()]))

    def table(self) -> Array:
        """Return all of it, shape (5, m), in the order of the attributes."""
        return np.array([getattr(self, field.name) for field in fields(self)])
