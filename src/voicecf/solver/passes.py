"""Passes over the rows of a table: the sums that k-means, weighted or not, needs of all rows.

An accumulator adds up rows, and can be merged with another one. The rows of a pass are divided into
chunks, each chunk fills accumulators of its own, and these are merged in the order of the chunks.
So the rows may be one array, tables of a stream, or on several machines: results differ by the
rounding of sums only, and for the same chunks they have the same bits whatever computes them.

A restart of k-means is a generator. It yields an accumulator, such as the sums of all clusters, and
is resumed when every row has been added to it. `together` runs several restarts in the same passes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_array

import voicecf._core as _core
from voicecf.parallel import in_parallel

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]

# Rows per chunk. Up to this many rows sums are those of numpy, row by row; for more, it affects the
# last bits of the result. Diabetes, the largest table of the paper, has fewer rows: its restarts
# tie, and the last bits decide which one wins.
CHUNK = 262_144
# Starting centers are drawn from all rows, or from a sample of this many.
SAMPLE = 262_144
# Rows per job where nothing is summed.
SPAN = 32_768


@dataclass(frozen=True)
class MassRows:
    """Rows to cluster and the mass (sample weight) of each: all of them, or a part.

    Attributes
    ----------
    X : array of shape (n, d)
    mass : array of shape (n,)
    first : int
        Position of the first of them among all rows.
    """

    X: Floats
    mass: Floats
    first: int = 0

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.X)

    def present(self) -> MassRows:
        """Return the rows with a positive mass."""
        positive = self.mass > 0
        return self if positive.all() else MassRows(self.X[positive], self.mass[positive])

    def part(self, start: int, stop: int) -> MassRows:
        """Return some of the rows."""
        return MassRows(self.X[start:stop], self.mass[start:stop], self.first + start)

    def distinct(self) -> MassRows:
        """Sort and deduplicate the rows, as numpy.unique(X, axis=0) does, and add up their mass."""
        for used in (1, self.X.shape[1]):  # often the first column tells all rows apart
            order = np.lexsort(self.X.T[:used][::-1])
            X = self.X[order]
            new = np.append(True, (X[1:, :used] != X[:-1, :used]).any(axis=1))
            if new.all():
                break
        mass = np.bincount(np.cumsum(new) - 1, weights=self.mass[order])
        return MassRows(X[new], mass.astype(np.float64, copy=False))

    def assign(self, centers: Floats, weights: Floats) -> tuple[Labels, Floats]:
        """Return the nearest center of each row and its weighted squared distance."""
        labels, closest = np.empty(len(self.X), np.int32), np.empty(len(self.X))
        table = self.table(centers, weights)
        in_parallel(
            lambda start, stop: table.nearest(labels, closest, start, stop),
            len(self.X),
            chunk=SPAN,
        )
        return labels, closest

    def table(self, centers: Floats, weights: Floats) -> _core.Table:
        """Return rows, metric and centers in the layout of the compiled core."""
        return _core.Table(self.X, self.mass, centers, weights)

    def accumulate(self, accumulators: Sequence[Accumulator]) -> list[Any]:
        """Return copies of empty accumulators to which all rows were added."""
        chunks = [self.part(start, start + CHUNK) for start in range(0, self.n_rows, CHUNK)]
        n = len(accumulators)

        def work(job: int, _: int) -> Any:
            filled: Any = replace(accumulators[job % n])  # type: ignore[type-var]
            filled.add(chunks[job // n])
            return filled

        filled = in_parallel(work, len(chunks) * n, chunk=1)
        return merged(filled[start : start + n] for start in range(0, len(filled), n))


class Accumulator(Protocol):
    """A statistic of rows; a dataclass, whose `replace` is an empty copy."""

    def add(self, rows: MassRows) -> None:
        """Add rows, if no others were added."""

    def merge(self, other: Any) -> None:
        """Add the rows of another accumulator, which come after those of this one."""


class Data(Protocol):
    """Rows that can be passed over any number of times: in memory, a stream, or on a cluster."""

    @property
    def n_rows(self) -> int:
        """Number of rows."""

    def accumulate(self, accumulators: Sequence[Accumulator]) -> list[Any]:
        """Return copies of empty accumulators to which all rows were added."""


def merged(parts: Iterable[list[Any]]) -> list[Any]:
    """Merge the accumulators of parts, each a list of them, in the order of the parts."""
    total: list[Any] = []
    for filled in parts:
        for accumulator, other in zip(total, filled, strict=False):
            accumulator.merge(other)
        total = total or filled
    return total


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
        found = data.accumulate(list(requested.values())) if requested else []
        filled = dict(zip(requested, found, strict=True))
    return [results[at] for at in range(len(restarts))]


@dataclass
class Sweep:
    """Assign every row to the nearest center, and add up the rows of each cluster.

    Attributes
    ----------
    centers, weights : array
        The metric is sum_v w_v (x_v - m_v)^2.
    origins : array of shape (k, d)
        A point for each cluster.
    sums : array of shape (k, d)
        Sum of the rows of each cluster times their mass, added one by one.
    totals : array of shape (k,)
        Mass of each cluster.
    around : array of shape (k, d)
        Sum of the squared deviations of the rows of each cluster from its origin.
    n_rows : int
        Number of rows that were added.
    """

    centers: Floats
    weights: Floats
    origins: Floats
    sums: Floats = field(init=False)
    totals: Floats = field(init=False)
    around: Floats = field(init=False)
    n_rows: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.sums, self.around = np.zeros_like(self.centers), np.zeros_like(self.centers)
        self.totals = np.zeros(len(self.centers))

    def add(self, rows: MassRows) -> None:
        """Add rows, if no others were added."""
        table = rows.table(self.centers, self.weights)
        table.sweep(self.origins, self.sums, self.totals, self.around)
        self.n_rows = rows.n_rows

    def merge(self, other: Sweep) -> None:
        """Add the rows of another accumulator, which come after those of this one."""
        with np.errstate(over="ignore", invalid="ignore"):
            self.sums += other.sums
            self.totals += other.totals
            self.around += other.around
        self.n_rows += other.n_rows

    def means(self) -> Floats:
        """Return the mean of each cluster; for an empty cluster, its center."""
        filled = self.totals > 0
        means = self.centers.copy()
        means[filled] = self.sums[filled] / self.totals[filled, None]
        return means


@dataclass
class Contest:
    """Compare the final models of restarts: inertia, empty clusters, and equal partitions.

    Attributes
    ----------
    ends : list of (centers, weights)
        One per restart.
    inertia : array of shape (restarts,)
        Weighted squared distances of the rows to their centers, summed.
    filled : array of shape (restarts, k)
        Which clusters have rows.
    members : array of shape (restarts, k, d)
        A row of each cluster that has rows.
    """

    ends: list[tuple[Floats, Floats]]
    inertia: Floats = field(init=False)
    filled: npt.NDArray[np.bool_] = field(init=False)
    members: Floats = field(init=False)
    # `_matches[a, b]` maps clusters of restart a to those of restart b, -1 where not yet known.
    # Pairs of restarts whose partitions differ are dropped.
    _matches: dict[tuple[int, int], Labels] = field(init=False)

    def __post_init__(self) -> None:
        n, (k, d) = len(self.ends), self.ends[0][0].shape
        self.inertia = np.zeros(n)
        self.filled, self.members = np.zeros((n, k), np.bool_), np.zeros((n, k, d))
        self._matches = {(a, b): np.full(k, -1, np.int32) for a in range(n) for b in range(a)}

    def add(self, rows: MassRows) -> None:
        """Add rows, if no others were added."""
        labels = []
        for at, end in enumerate(self.ends):
            assigned, closest = rows.assign(*end)
            self.inertia[at] = (rows.mass * closest).sum()
            last = np.full(len(self.filled[at]), -1)
            last[assigned] = np.arange(len(assigned))
            self.filled[at] = last >= 0
            self.members[at] = rows.X[last]
            labels.append(assigned)
        for (a, b), match in list(self._matches.items()):
            match[labels[a]] = labels[b]
            if (match[labels[a]] != labels[b]).any():
                del self._matches[a, b]

    def merge(self, other: Contest) -> None:
        """Add the rows of another accumulator, which come after those of this one."""
        self.inertia += other.inertia
        self.members = np.where(self.filled[:, :, None], self.members, other.members)
        self.filled |= other.filled
        for pair, match in list(self._matches.items()):
            later = other._matches.get(pair)
            if later is None or ((match != later) & (match >= 0) & (later >= 0)).any():
                del self._matches[pair]
            else:
                np.maximum(match, later, out=match)

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
            better = self.inertia[at] < self.inertia[best] and not same
            if fewer > 0 or (fewer == 0 and better):
                best = at
        return best


@dataclass
class Fetch:
    """Fetch rows by their positions, which ascend."""

    positions: npt.NDArray[np.int64]
    X: list[Floats] = field(init=False, default_factory=list)
    mass: list[Floats] = field(init=False, default_factory=list)

    def add(self, rows: MassRows) -> None:
        """Add rows, if no others were added."""
        start, stop = np.searchsorted(self.positions, [rows.first, rows.first + rows.n_rows])
        self.positions = self.positions[start:stop]
        here = self.positions - rows.first
        self.X, self.mass = [rows.X[here]], [rows.mass[here]]

    def merge(self, other: Fetch) -> None:
        """Add the rows of another accumulator, which come after those of this one."""
        self.X += other.X
        self.mass += other.mass


def sample(data: Data, draw_seed: Callable[[], int]) -> MassRows:
    """Return the rows to draw starting centers from: all, or SAMPLE of them drawn at random.

    A seed is drawn only if needed. Positions depend on it and the number of rows alone, so that the
    sample is the same in memory, in a stream and on a cluster.
    """
    n = data.n_rows
    positions = np.arange(n)
    if n > SAMPLE:
        random = np.random.default_rng(draw_seed())
        positions = np.sort(random.choice(n, SAMPLE, replace=False, shuffle=False))
    (fetch,) = data.accumulate([Fetch(positions)])
    return MassRows(np.concatenate(fetch.X), np.concatenate(fetch.mass))


def check_init(init: Any, shape: tuple[int, int]) -> Floats:
    """Return starting centers of the user's own as an array, or raise."""
    centers: Floats = check_array(init, dtype=np.float64, order="C", copy=True, input_name="init")
    if centers.shape != shape:
        raise ValueError(
            f"init has shape {centers.shape}; n_clusters and the columns of X ask for {shape}."
        )
    return centers
