"""The rounding guard: the slack an answer keeps in each constraint so that `predict` agrees."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from voicecf.geometry.arrays import Array


@dataclass(frozen=True)
class Guard:
    """Slack that an answer needs in each of m constraints so that rounding cannot violate it.

    A model's `predict` rounds, and so does the conversion from coordinates to the user's units. If
    z is the answer for a row a, each constraint has to hold with at least this slack:

        constant + of_size |z| + of_square |z - origin|^2 + of_move |z - a| - behind

    Lengths are measured in the solver's metric, w + delta; the origin is the region's. The compiled
    core has the same record (`Guard` in native/problem.hpp).

    Attributes
    ----------
    behind : array of shape (m,)
        How far the model's own boundary lies behind the constraint. In a contracted cell every
        answer has this slack anyway.
    share : array of shape (m,)
        The most slack that a constraint can give, as a share of |z - origin|. An answer that needs
        more is unresolved. Infinite for constraints that are not the model's.
    constant, of_size, of_square, of_move : array of shape (m,)
        Coefficients of the formula above.
    """

    behind: Array
    share: Array
    constant: Array
    of_size: Array
    of_square: Array
    of_move: Array

    @classmethod
    def none(cls, m: int) -> Guard:
        """Return the guard of m constraints that need no slack."""
        none = np.zeros(m)
        return cls(none, np.full(m, np.inf), none, none, none, none)

    def slack(self, size: Any, distance: Any, move: Any) -> Array:
        """Return the slack needed for given |z|, |z - origin| and |z - a|; never negative."""
        return np.asarray(np.maximum(self._needed(size, distance, move) - self.behind, 0.0))

    def _needed(self, size: Any, distance: Any, move: Any) -> Array:
        """Return the slack needed at the model's own boundary."""
        needed = self.constant + self.of_size * size + self.of_square * distance**2
        return np.asarray(needed + self.of_move * move)

    def constant_within(self, size: float, distance: float, move: float) -> Guard:
        """Return a constant guard that is enough for lengths up to these."""
        none = np.zeros_like(self.behind)
        needed = self._needed(size, distance, move)
        return Guard(self.behind, self.share, needed, none, none, none)

    def per_unit(self, lengths: Array) -> Guard:
        """Return the guard of the same constraints, each divided by a length."""
        return Guard(*(part / lengths for part in self.table()))

    def only_where(self, mask: Any) -> Guard:
        """Return the guard with no slack for constraints where the mask is False."""
        return Guard(*np.where(mask, self.table(), 0.0))

    def followed_by(self, other: Guard) -> Guard:
        """Return the guard of these constraints followed by those of another guard."""
        return Guard(*np.hstack([self.table(), other.table()]))

    def table(self) -> Array:
        """Return the attributes, in their order, as an array of shape (6, m)."""
        return np.array([getattr(self, field.name) for field in fields(self)])
