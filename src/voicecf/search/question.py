"""A question: rows, what they may become, which row is to go where, and what is best."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voicecf.errors import TargetError
from voicecf.geometry.arrays import Array, Ints
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import Allowed
from voicecf.table.rows import Rows

# Boxes that a search looks at for a row and target before it is cut short.
LIMIT = 20_000


@dataclass(frozen=True, eq=False)
class Question:
    """Rows to explain, and what is asked of them.

    Attributes
    ----------
    learned : Learned
    rows : Rows
        As they came.
    source : array of shape (n,)
        The cluster that each row is in.
    allowed : Allowed
        What each row may become.
    objective : "cost", "prefix" or "fewest"
    limit : int
        Most boxes that a search looks at for a row and target.
    """

    learned: Learned
    rows: Rows
    source: Ints
    allowed: Allowed
    objective: str = "cost"
    limit: int = LIMIT

    @property
    def points(self) -> Array:
        """Coordinates of the rows."""
        return self.rows.points

    @property
    def weights(self) -> Array:
        """Weights of the coordinates, with the user's costs."""
        return self.learned.weights * self.allowed.factors

    @property
    def metric(self) -> Array:
        """What the solver minimises the squared move in."""
        return self.weights + self.learned.delta

    def with_changes(self, most: int) -> Question:
        """Return the question with at most so many changed columns."""
        choices = self.allowed.choices
        assert choices is not None
        few = replace(choices, changes=min(most, choices.changes))
        return replace(self, allowed=replace(self.allowed, choices=few))


@dataclass(frozen=True)
class Pairs:
    """Which row is to go where.

    Attributes
    ----------
    row : array of shape (n,)
    target : array of shape (n,) or None
        None: the cheapest of all other clusters.
    """

    row: Ints
    target: Ints | None

    @classmethod
    def of(cls, target: Any, source: Ints, k: int) -> Pairs:
        """Read what the user calls a target: a cluster, one a row, "nearest" or "each"."""
        every = np.arange(len(source))
        if isinstance(target, str) and target == "nearest":
            return cls(every, None)
        if isinstance(target, str) and target == "each":
            return cls.each(source, k)
        return cls(every, read_target(target, len(source), k))

    @classmethod
    def each(cls, source: Ints, k: int) -> Pairs:
        """Pair each row with every cluster but its own, ascending."""
        others = np.tile(np.arange(k - 1), (len(source), 1))
        others += others >= source[:, None]
        return cls(np.repeat(np.arange(len(source)), k - 1), others.ravel())


def read_target(target: Any, n: int, k: int) -> Ints:
    """Return one cluster a row, or raise with the clusters there are."""
    try:
        given = np.asarray(target)
    except ValueError:
        given = np.empty(0)
    if n == 0 and given.size == 0 and given.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n,)):
        raise TargetError(
            f"target={str(target)[:60]!r} is not known; use a cluster (0 to {k - 1}), an array of "
            f'{n} of them, "nearest" or "each".'
        )
    if given.size and not (given.min() >= 0 and given.max() < k):
        wrong = given[(given < 0) | (given >= k)][0]
        raise TargetError(
            f"target={wrong} names no cluster: this model has 0 to {k - 1}. See voice.predict(X)."
        )
    return np.array(np.broadcast_to(given, (n,)), dtype=np.int64, order="C")
