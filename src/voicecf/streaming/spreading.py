"""k-means++ on rows that are passed over: the draws of scikit-learn, two passes a center."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from voicecf.solver.passes import Data, Floats, Rows, together


@dataclass
class Fetch:
    """Fetch rows by position."""

    positions: npt.NDArray[np.int64]
    found: dict[int, Floats] = field(default_factory=dict)
    _seen: int = 0

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        stop = self._seen + len(rows.X)
        for at in np.flatnonzero((self.positions >= self._seen) & (self.positions < stop)):
            self.found[int(at)] = rows.X[self.positions[at] - self._seen].copy()
        self._seen = stop

    def rows(self) -> Floats:
        """Return the rows in the order of their positions."""
        return np.array([self.found[at] for at in range(len(self.positions))])


@dataclass
class Running:
    """Add up a number of each row in turn, and fetch the rows where the sum passes some marks.

    Attributes
    ----------
    centers : array of shape (c, d) or None
        The number is a row's mass times its squared distance to the nearest of these; without
        them its share of `scale`, the mass.
    marks : array
        Sums to look out for.
    after : bool
        Whether the sum has to exceed a mark, not only to reach it.
    scale : float
        What masses, and the sums of their shares, are divided by.
    """

    centers: Floats | None
    marks: Floats
    after: bool = False
    scale: tuple[float, float] = (1.0, 1.0)
    total: float = 0.0
    found: dict[int, Floats] = field(default_factory=dict)
    _last: Floats | None = None

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        if self.centers is None:
            numbers = rows.mass / self.scale[0]
        else:
            _, closest = rows.assign(self.centers, np.ones(rows.X.shape[1]))
            numbers = rows.mass * closest
        sums = np.cumsum(np.concatenate([[self.total], numbers]))[1:]
        side: Any = "right" if self.after else "left"
        places = np.searchsorted(sums / self.scale[1], self.marks, side)
        for at in np.flatnonzero(places < len(sums)):
            self.found.setdefault(int(at), rows.X[places[at]].copy())
        self.total, self._last = float(sums[-1]), rows.X[-1].copy()

    def rows(self) -> Floats:
        """Return a row for each mark; the last one where rounding left a mark beyond all."""
        return np.array([self.found.get(at, self._last) for at in range(len(self.marks))])


@dataclass
class Potential:
    """Sum squared distances to the nearest center, were each of some candidates one more."""

    centers: Floats
    candidates: Floats
    total: Floats = field(init=False)

    def __post_init__(self) -> None:
        self.total = np.zeros(len(self.candidates))

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        equal = np.ones(rows.X.shape[1])
        closest = np.full(len(rows.X), np.inf)
        if len(self.centers):
            closest = rows.assign(self.centers, equal)[1].copy()
        for at in range(len(self.candidates)):
            _, distance = rows.assign(self.candidates[at : at + 1], equal)
            self.total[at] += np.minimum(closest, distance) @ rows.mass


def spread_out(
    data: Data, total: float, k: int, randoms: list[np.random.RandomState]
) -> list[Floats]:
    """Draw k centers for each generator, far from one another, as scikit-learn's k-means++ does.

    Parameters
    ----------
    data : Data
    total : float
        Mass of all rows.
    k : int
    randoms : list of RandomState
        They may be one and the same, which then draws for one after the other.
    """
    trials = 2 + int(np.log(k))
    draws = [(r.random_sample(), r.random_sample((k - 1, trials))) for r in randoms]
    return together([_spreading(total, *draw) for draw in draws], data)


def _spreading(total: float, first: float, rest: Floats) -> Generator[Any, Any, Floats]:
    """Ask for the passes that find one set of centers."""
    shares = yield Running(None, np.empty(0), scale=(total, 1.0))
    found = yield Running(None, np.array([first]), True, scale=(total, shares.total))
    centers: Floats = found.rows()
    potential = float((yield Potential(np.empty_like(centers[:0]), centers)).total[0])
    for draws in rest:
        candidates = (yield Running(centers, draws * potential)).rows()
        totals = (yield Potential(centers, candidates)).total
        best = int(np.argmin(totals))
        potential = float(totals[best])
        centers = np.vstack([centers, candidates[best]])
    return centers
