"""Passes over the rows: what k-means, weighted or not, has to know of all of them.

A restart is a generator. It yields a wish, something to be summed over every row, and goes on when
the wish has seen them all; `together` lets any number of restarts go on in the same passes. Rows
come in batches of whole chunks, in order, and every sum is taken chunk by chunk in that order. So
it does not matter whether the rows are one array, come from a file or lie on other machines.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Event
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

import voicecf._core as _core
from voicecf.parallel import in_parallel
from voicecf.solver.summing import Pairwise

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]

# Rows in a job. Part of the result beyond this many rows, for squares are added job by job.
CHUNK = 32_768
# Rows whose labels are held for all restarts at once; whole chunks.
BATCH = 8 * CHUNK


@dataclass(frozen=True)
class Rows:
    """Rows to cluster, and the mass of each; all of them, or a batch."""

    X: Floats
    mass: Floats

    def present(self) -> Rows:
        """Leave out the rows without mass."""
        there = self.mass > 0
        return self if there.all() else Rows(self.X[there], self.mass[there])

    def parts(self, size: int = BATCH) -> Iterator[Rows]:
        """Divide the rows."""
        for start in range(0, len(self.X), size):
            span = slice(start, start + size)
            yield Rows(self.X[span], self.mass[span])

    def distinct(self) -> Rows:
        """Sort and deduplicate the rows, adding up their mass: numpy.unique(X, axis=0), faster.

        Each column becomes the ranks of its values. A row is then one integer, its ranks being
        the digits, as long as that fits; when it no longer does, the integers are ranked too.
        """
        key, n_keys = np.zeros(len(self.X), np.int64), 1
        for column in self.X.T:
            values = np.unique(column)
            if n_keys * len(values) >= 2**63:
                known = np.unique(key)
                key, n_keys = np.searchsorted(known, key), len(known)
            key = key * len(values) + np.searchsorted(values, column)
            n_keys *= len(values)
        _, first, of_row = np.unique(key, return_index=True, return_inverse=True)
        mass = np.bincount(of_row, weights=self.mass).astype(np.float64, copy=False)
        return Rows(self.X[first], mass)

    @cached_property
    def _assigned(self) -> tuple[Labels, Floats]:
        return np.empty(len(self.X), np.int32), np.empty(len(self.X))

    def assign(self, centers: Floats, weights: Floats) -> tuple[Labels, Floats]:
        """Return the nearest center of each row and its weighted squared distance.

        They lie in buffers that the next assignment of these rows overwrites.
        """
        labels, closest = self._assigned
        table = self.table(centers, weights)
        in_parallel(
            lambda start, stop: table.nearest(labels, closest, start, stop),
            len(self.X),
            chunk=CHUNK,
        )
        return labels, closest

    def table(self, centers: Floats, weights: Floats) -> _core.Table:
        """Return rows, metric and centers as the compiled core reads them."""
        return _core.Table(self.X, self.mass, centers, weights)


class Wish(Protocol):
    """Something to be summed over all rows."""

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""


class Data(Protocol):
    """Rows that can be passed over as often as wanted."""

    def answer(self, wishes: Sequence[Wish]) -> Sequence[Any]:
        """Let wishes see every row, in order; return them, or what became of them."""


@dataclass(frozen=True)
class Batches:
    """Rows in batches of whole chunks, the last one excepted.

    Attributes
    ----------
    batches : iterable of Rows
        As often as wanted.
    """

    batches: Iterable[Rows]

    def answer(self, wishes: Sequence[Wish]) -> Sequence[Any]:
        """Let wishes see every row, in order."""
        for rows in self.batches:
            for wish in wishes:
                wish.add(rows)
        return wishes


Ended = TypeVar("Ended")


def together(restarts: Sequence[Generator[Any, Any, Ended]], data: Data) -> list[Ended]:
    """Run restarts to their ends, all of them in the same passes over the data."""
    ended: dict[int, Ended] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(restarts)))
    while answers:
        wishes = {}
        for at, answer in answers.items():
            try:
                wishes[at] = restarts[at].send(answer)
            except StopIteration as end:
                ended[at] = end.value
        answers = dict(zip(wishes, data.answer(list(wishes.values())), strict=True))
    return [ended[at] for at in range(len(restarts))]


class _Queue:
    """Makes jobs take their turn in order, and lets everyone through if one of them fails."""

    def __init__(self, n: int) -> None:
        self._left = [Event() for _ in range(n)]

    def __enter__(self) -> None: ...

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            for event in self._left:
                event.set()

    def wait_for_turn(self, place: int) -> None:
        if place > 0:
            self._left[place - 1].wait()

    def leave(self, place: int) -> None:
        self._left[place].set()


@dataclass
class Sweep:
    """Assign every row to the nearest center, and sum up the clusters.

    Attributes
    ----------
    centers, weights : array
        The metric is sum_v w_v (x_v - m_v)^2.
    sums : array of shape (k, d)
        Rows of each cluster, times their mass, added one by one.
    totals : array of shape (k,)
        Mass of each cluster.
    around : array of shape (k, d)
        Squared deviations from the centers.
    n_rows : int
        Rows seen.
    """

    centers: Floats
    weights: Floats
    sums: Floats = field(init=False)
    totals: Floats = field(init=False)
    around: Floats | None = field(init=False, default=None)
    n_rows: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.sums = np.zeros_like(self.centers)
        self.totals = np.zeros(len(self.centers))

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        X, table = rows.X, rows.table(self.centers, self.weights)
        labels, closest = rows._assigned
        queue = _Queue(-(-len(X) // CHUNK))

        def work(start: int, stop: int) -> Floats:
            around = np.zeros_like(self.centers)
            with queue:
                table.sweep(labels, closest, around, start, stop)
                # Rows are added one by one in their order, as numpy adds them: where weights
                # collapse, the rounding of these sums is all that tells one restart from another.
                queue.wait_for_turn(start // CHUNK)
                table.add_up(labels, self.sums, self.totals, start, stop)
                queue.leave(start // CHUNK)
            return around

        self.around = _added(self.around, in_parallel(work, len(X), chunk=CHUNK))
        self.n_rows += len(X)

    def means(self) -> Floats:
        """Return the mean of each cluster; an empty one stays where it is."""
        filled = self.totals > 0
        means = self.centers.copy()
        means[filled] = self.sums[filled] / self.totals[filled, None]
        return means


@dataclass
class Spread:
    """Sum squared deviations of every row from the mean of the cluster that it is in.

    Attributes
    ----------
    centers, weights : array
        What tells the clusters.
    means : array of shape (k, d)
    total : array of shape (k, d)
        The sums.
    """

    centers: Floats
    weights: Floats
    means: Floats
    total: Floats | None = field(init=False, default=None)

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        labels, _ = rows.assign(self.centers, self.weights)
        table = rows.table(self.means, self.weights)

        def work(start: int, stop: int) -> Floats:
            out = np.zeros_like(self.means)
            table.spread(labels, out, start, stop)
            return out

        self.total = _added(self.total, in_parallel(work, len(rows.X), chunk=CHUNK))


def _added(total: Floats | None, parts: Sequence[Floats]) -> Floats | None:
    """Add what the jobs returned to a total, from first to last, whoever ran them."""
    for part in parts:
        if total is None:
            total = part
        else:
            total += part
    return total


@dataclass
class Contest:
    """Compare where restarts ended: inertia, empty clusters, and which are the same partition.

    Attributes
    ----------
    ends : list of (centers, weights)
    n_rows : int
        How many rows there are to come; numpy's sum of so many is what inertias are.
    filled : array of shape (restarts, k)
        Which clusters have rows.
    """

    ends: list[tuple[Floats, Floats]]
    n_rows: int
    filled: npt.NDArray[np.bool_] = field(init=False)
    _inertia: list[Pairwise] = field(init=False)
    _matches: dict[tuple[int, int], Labels] = field(init=False)

    def __post_init__(self) -> None:
        n, k = len(self.ends), len(self.ends[0][0])
        self.filled = np.zeros((n, k), np.bool_)
        self._inertia = [Pairwise(self.n_rows) for _ in range(n)]
        self._matches = {(a, b): np.full(k, -1, np.int32) for a in range(n) for b in range(a)}

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        for part in rows.parts():
            labels = []
            for at, end in enumerate(self.ends):
                assigned, closest = part.assign(*end)
                self._inertia[at].add(part.mass * closest)
                self.filled[at, assigned] = True
                labels.append(assigned.copy() if len(self.ends) > 1 else assigned)
            self._match(labels)

    def _match(self, labels: list[Labels]) -> None:
        """Follow each pair of partitions as long as the one's clusters tell the other's."""
        for (a, b), match in list(self._matches.items()):
            new = match[labels[a]] < 0
            match[labels[a][new]] = labels[b][new]
            if (match[labels[a]] != labels[b]).any():
                del self._matches[a, b]

    def inertia(self, at: int) -> float:
        """Return the weighted squared distances of the rows to their centers, summed."""
        return float(self._inertia[at].total())

    def n_empty(self, at: int) -> int:
        """Return the number of clusters without rows."""
        return int(np.count_nonzero(~self.filled[at]))

    def winner(self, *, full: bool) -> int:
        """Return the restart with the lowest inertia; with `full`, of those with fewest empty ones.

        The same partition again is no improvement: its inertia differs in the last bits only, and
        these should not decide how the clusters are numbered.
        """
        best = 0
        for at in range(1, len(self.ends)):
            fewer = self.n_empty(best) - self.n_empty(at) if full else 0
            same = (at, best) in self._matches
            better = self.inertia(at) < self.inertia(best) and not same
            if fewer > 0 or (fewer == 0 and better):
                best = at
        return best


@dataclass
class Varying:
    """Tell for each feature whether some cluster holds two values of it."""

    centers: Floats
    weights: Floats
    varies: npt.NDArray[np.bool_] = field(init=False)
    _sample: Floats = field(init=False)
    _sampled: npt.NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        k, d = self.centers.shape
        self.varies = np.zeros(d, np.bool_)
        self._sample, self._sampled = np.empty((k, d)), np.zeros(k, np.bool_)

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        labels, _ = rows.assign(self.centers, self.weights)
        present, first = np.unique(labels, return_index=True)
        new = ~self._sampled[present]
        self._sample[present[new]] = rows.X[first[new]]
        self._sampled[present] = True
        for start in range(0, len(labels), CHUNK):
            span = slice(start, start + CHUNK)
            self.varies |= (rows.X[span] != self._sample[labels[span]]).any(axis=0)
