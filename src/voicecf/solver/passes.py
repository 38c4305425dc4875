"""Passes over the rows of a table: the sums that k-means, weighted or not, needs of all rows.

A restart of k-means is a generator. It yields an accumulator, such as the sums of all clusters, and
is resumed when every row has been added to it. `together` runs several restarts in the same passes.
Rows come in batches of whole chunks, in order, and sums are taken chunk by chunk in that order. So
the result has the same bits whether the rows are one array, a file, or on several machines.
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

# Rows per job. For more rows than this it affects the last bits of the result, as squares are added
# up job by job.
CHUNK = 32_768
# Rows per batch, a multiple of CHUNK. The labels of a batch are in memory for all restarts at once.
BATCH = 8 * CHUNK


@dataclass(frozen=True)
class Rows:
    """Rows to cluster, and the mass (sample weight) of each; all of them, or a batch."""

    X: Floats
    mass: Floats

    def present(self) -> Rows:
        """Return the rows with a positive mass."""
        positive = self.mass > 0
        return self if positive.all() else Rows(self.X[positive], self.mass[positive])

    def parts(self, size: int = BATCH) -> Iterator[Rows]:
        """Yield the rows in batches of a size."""
        for start in range(0, len(self.X), size):
            span = slice(start, start + size)
            yield Rows(self.X[span], self.mass[span])

    def distinct(self) -> Rows:
        """Sort and deduplicate the rows and add up their mass; faster than numpy.unique(X, axis=0).

        Each value is replaced by its rank in the column. A row then becomes one integer, whose
        digits are its ranks. Where that integer would overflow, it is itself replaced by its rank.
        """
        key, n_keys = np.zeros(len(self.X), np.int64), 1
        for column in self.X.T:
            values = np.unique(column)
            if n_keys * len(values) >= 2**63:
                distinct = np.unique(key)
                key, n_keys = _ranks(distinct, key), len(distinct)
            key = key * len(values) + _ranks(values, column)
            n_keys *= len(values)
        _, first, of_row = np.unique(key, return_index=True, return_inverse=True)
        mass = np.bincount(of_row, weights=self.mass).astype(np.float64, copy=False)
        return Rows(self.X[first], mass)

    @cached_property
    def _assigned(self) -> tuple[Labels, Floats]:
        """Buffers for the label of each row and its squared distance to the nearest center."""
        return np.empty(len(self.X), np.int32), np.empty(len(self.X))

    def assign(self, centers: Floats, weights: Floats) -> tuple[Labels, Floats]:
        """Return the nearest center of each row and its weighted squared distance.

        The arrays are buffers, which the next assignment of these rows overwrites.
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
        """Return rows, metric and centers in the layout of the compiled core."""
        return _core.Table(self.X, self.mass, centers, weights)


def _ranks(sorted_values: Any, values: Any) -> npt.NDArray[np.int64]:
    """Return the position of each of some values in a sorted array that has them all."""
    ranks = np.empty(len(values), np.int64)

    def work(start: int, stop: int) -> None:
        ranks[start:stop] = np.searchsorted(sorted_values, values[start:stop])

    in_parallel(work, len(values), chunk=CHUNK)
    return ranks


class Accumulator(Protocol):
    """A statistic of all rows, computed batch by batch."""

    def add(self, rows: Rows) -> None:
        """Add the next batch of rows."""


class Data(Protocol):
    """Rows that can be passed over any number of times."""

    def accumulate(self, accumulators: Sequence[Accumulator]) -> Sequence[Any]:
        """Add every row, in order, to each accumulator; return them, or changed copies of them."""


@dataclass(frozen=True)
class Batches:
    """Rows in batches of whole chunks; only the last batch may end within a chunk.

    Attributes
    ----------
    batches : iterable of Rows
        Can be iterated over any number of times.
    """

    batches: Iterable[Rows]

    def accumulate(self, accumulators: Sequence[Accumulator]) -> Sequence[Any]:
        """Add every row, in order, to each accumulator; return them."""
        for rows in self.batches:
            for accumulator in accumulators:
                accumulator.add(rows)
        return accumulators


Result = TypeVar("Result")


def together(restarts: Sequence[Generator[Any, Any, Result]], data: Data) -> list[Result]:
    """Run restarts to their ends, all of them in the same passes over the data."""
    results: dict[int, Result] = {}
    filled: dict[int, Any] = dict.fromkeys(range(len(restarts)))
    while filled:
        requested = {}
        for at, accumulator in filled.items():
            try:
                requested[at] = restarts[at].send(accumulator)
            except StopIteration as end:
                results[at] = end.value
        filled = dict(zip(requested, data.accumulate(list(requested.values())), strict=True))
    return [results[at] for at in range(len(restarts))]


class _Queue:
    """Let n jobs pass one after the other, in order; if one fails, all others may pass at once."""

    def __init__(self, n: int) -> None:
        self._passed = [Event() for _ in range(n)]

    def __enter__(self) -> None: ...

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if failure is not None:
            for event in self._passed:
                event.set()

    def wait_for_turn(self, place: int) -> None:
        if place > 0:
            self._passed[place - 1].wait()

    def leave(self, place: int) -> None:
        self._passed[place].set()


@dataclass
class Sweep:
    """Assign every row to the nearest center, and add up the rows of each cluster.

    Attributes
    ----------
    centers, weights : array
        The metric is sum_v w_v (x_v - m_v)^2.
    sums : array of shape (k, d)
        Sum of the rows of each cluster times their mass, added one by one.
    totals : array of shape (k,)
        Mass of each cluster.
    around : array of shape (k, d)
        Sum of the squared deviations of the rows of each cluster from its center.
    n_rows : int
        Number of rows that were added.
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
        """Add the next batch of rows."""
        X, table = rows.X, rows.table(self.centers, self.weights)
        labels, closest = rows._assigned
        queue = _Queue(-(-len(X) // CHUNK))

        def work(start: int, stop: int) -> Floats:
            around = np.zeros_like(self.centers)
            with queue:
                table.sweep(labels, closest, around, start, stop)
                # Rows are added one by one, in their order, as numpy does. Where weights collapse,
                # the inertias of restarts differ by the rounding of these sums only.
                queue.wait_for_turn(start // CHUNK)
                table.add_up(labels, self.sums, self.totals, start, stop)
                queue.leave(start // CHUNK)
            return around

        self.around = _added(self.around, in_parallel(work, len(X), chunk=CHUNK))
        self.n_rows += len(X)

    def means(self) -> Floats:
        """Return the mean of each cluster; for an empty cluster, its center."""
        filled = self.totals > 0
        means = self.centers.copy()
        means[filled] = self.sums[filled] / self.totals[filled, None]
        return means


@dataclass
class Spread:
    """Add up the squared deviations of the rows of each cluster from its mean.

    Attributes
    ----------
    centers, weights : array
        They determine the cluster of each row.
    means : array of shape (k, d)
    total : array of shape (k, d)
        The sums of squared deviations.
    """

    centers: Floats
    weights: Floats
    means: Floats
    total: Floats | None = field(init=False, default=None)

    def add(self, rows: Rows) -> None:
        """Add the next batch of rows."""
        labels, _ = rows.assign(self.centers, self.weights)
        table = rows.table(self.means, self.weights)

        def work(start: int, stop: int) -> Floats:
            out = np.zeros_like(self.means)
            table.spread(labels, out, start, stop)
            return out

        self.total = _added(self.total, in_parallel(work, len(rows.X), chunk=CHUNK))


def _added(total: Floats | None, parts: Sequence[Floats]) -> Floats | None:
    """Add the results of all jobs to a total, in the order of the jobs."""
    for part in parts:
        if total is None:
            total = part
        else:
            total += part
    return total


@dataclass
class Contest:
    """Compare the final models of restarts: inertia, empty clusters, and equal partitions.

    Attributes
    ----------
    ends : list of (centers, weights)
        One per restart.
    n_rows : int
        How many rows will be added in all. An inertia has the bits of numpy's sum of so many.
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
        """Add the next batch of rows."""
        for part in rows.parts():
            labels = []
            for at, end in enumerate(self.ends):
                assigned, closest = part.assign(*end)
                self._inertia[at].add(part.mass * closest)
                self.filled[at, assigned] = True
                labels.append(assigned.copy() if len(self.ends) > 1 else assigned)
            self._match(labels)

    def _match(self, labels: list[Labels]) -> None:
        """Drop the pairs of restarts whose partitions differ.

        `_matches[a, b]` maps clusters of restart a to those of restart b, -1 where not yet known.
        """
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
        """Return the restart with the lowest inertia.

        With `full`, only restarts with the fewest empty clusters are compared. Of restarts with the
        same partition the first wins: their inertias differ by rounding only, which should not
        decide how the clusters are numbered.
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
    """Find the features that vary within a cluster.

    Attributes
    ----------
    centers, weights : array
        They determine the cluster of each row.
    varies : array of shape (d,)
        True where two rows of one cluster have different values.
    """

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
        """Add the next batch of rows."""
        labels, _ = rows.assign(self.centers, self.weights)
        present, first = np.unique(labels, return_index=True)
        new = ~self._sampled[present]
        self._sample[present[new]] = rows.X[first[new]]
        self._sampled[present] = True
        for start in range(0, len(labels), CHUNK):
            span = slice(start, start + CHUNK)
            self.varies |= (rows.X[span] != self._sample[labels[span]]).any(axis=0)
