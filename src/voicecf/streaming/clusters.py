"""The rows of a stream as a clustering takes them, and scikit-learn's KMeans learned from them."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from voicecf.errors import DataError, ModelError
from voicecf.geometry.named import named_rows
from voicecf.solver.passes import (
    Accumulator,
    Contest,
    Data,
    Floats,
    Labels,
    MassRows,
    Sweep,
    check_init,
    merged,
    sample,
    together,
)
from voicecf.table.stream import Stream


@dataclass(frozen=True)
class Tables:
    """Rows that come one table after the other, from a stream of Rows."""

    stream: Stream

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.stream.n_rows

    def accumulate(self, accumulators: Sequence[Accumulator]) -> list[Any]:
        """Return copies of empty accumulators to which all rows were added."""
        return merged(rows.accumulate(accumulators) for rows in self._placed())

    def _placed(self) -> Iterator[MassRows]:
        """Begin a pass, and yield its tables, each with its position."""
        first = 0
        for rows in self.stream:
            yield replace(rows, first=first)
            first += rows.n_rows


def rows_for(model: Any, stream: Stream, dtype: Any = np.float64) -> Data:
    """Return the rows of a stream as a model takes them, where passes over them are best made."""
    rows = stream.through(partial(_numbers, model, dtype))
    return Tables(rows) if stream.place is None else stream.place(rows.steps)


def _numbers(model: Any, dtype: Any, block: Any) -> MassRows:
    """Return a block as a model takes it; every row counts once."""
    X = validate_data(model, block, reset=False, dtype=dtype, order="C")
    return MassRows(np.require(X, np.float64, ["C", "W"]), np.ones(len(X)))


def fit_kmeans(kmeans: KMeans, stream: Stream) -> None:
    """Learn centers from scikit-learn's own starts, by its own rules to stop and to choose."""
    kmeans._validate_params()
    kinds = [np.float64, np.float32]
    dtype = validate_data(kmeans, stream.first(), dtype=kinds).dtype
    data, equal = rows_for(kmeans, stream, kinds), np.ones(kmeans.n_features_in_)
    if data.n_rows < kmeans.n_clusters:
        raise DataError(
            f"n_samples={data.n_rows} should be >= n_clusters={kmeans.n_clusters}. Ask for fewer "
            "clusters."
        )
    tol = kmeans.tol * float(np.mean(_variances(data, equal))) if kmeans.tol else 0.0
    starts = _starts(kmeans, data, dtype)
    ends = together([_lloyd(start, kmeans.max_iter, tol) for start in starts], data)
    (contest,) = data.accumulate([Contest([(centers, equal) for centers, _ in ends])])
    best = contest.winner(full=False)
    _finish(kmeans, ends[best][0].astype(dtype), n_iter=ends[best][1])
    kmeans.inertia_ = float(contest.inertia[best])
    if contest.n_empty(best):
        warnings.warn(
            f"{contest.n_empty(best)} of n_clusters={kmeans.n_clusters} clusters have no rows; "
            "there may be fewer distinct rows than clusters.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _variances(data: Data, equal: Floats) -> Floats:
    """Return the variance of each column."""
    middle = np.zeros((1, len(equal)))
    for _ in range(2):  # in the second pass around the mean, which keeps all digits
        (sweep,) = data.accumulate([Sweep(middle, equal, middle)])
        middle = sweep.means()
    return np.asarray(sweep.around[0] / data.n_rows)


def _starts(kmeans: KMeans, data: Data, dtype: Any) -> list[Floats]:
    """Return the centers that scikit-learn would start from with the rows of a sample."""
    k, init, n_init = kmeans.n_clusters, kmeans.init, kmeans.n_init
    if callable(init):
        raise ModelError("init is a function of all rows; give k-means++, random or an array.")
    if not isinstance(init, str):
        return [check_init(init, (k, kmeans.n_features_in_))]
    if n_init == "auto":
        n_init = 1 if init == "k-means++" else 10
    random = check_random_state(kmeans.random_state)
    rows = sample(data, lambda: random.randint(2**31)).X
    centered = (rows - rows.mean(axis=0)).astype(dtype)
    share = np.full(len(rows), 1.0 / len(rows))
    drawn = [
        kmeans_plusplus(centered, k, random_state=random)[1]
        if init == "k-means++"
        else random.choice(len(rows), size=k, replace=False, p=share)
        for _ in range(n_init)
    ]
    return [rows[positions] for positions in drawn]


def _lloyd(centers: Floats, max_iter: int, tol: float) -> Generator[Any, Any, tuple[Floats, int]]:
    """Ask for Lloyd's passes; return the centers and the number of passes."""
    equal = np.ones(centers.shape[1])
    n_iter, moved = 0, np.inf
    while n_iter < max_iter and moved > tol:
        sweep = yield Sweep(centers, equal, centers)
        if not sweep.totals.all():
            far = yield Farthest(centers, int(np.count_nonzero(sweep.totals == 0)))
            far.relocate(sweep)
        means = sweep.means()
        moved = float(((means - centers) ** 2).sum())
        centers = means
        n_iter += 1
    return centers, n_iter


@dataclass
class Farthest:
    """Find the rows that are farthest from their centers, for clusters that have none."""

    centers: Floats
    count: int
    distance: Floats = field(init=False)
    labels: Labels = field(init=False)
    X: Floats = field(init=False)

    def add(self, rows: MassRows) -> None:
        """Add rows, if no others were added."""
        labels, closest = rows.assign(self.centers, np.ones(rows.X.shape[1]))
        self._keep(closest, labels, rows.X)

    def merge(self, other: Farthest) -> None:
        """Add the rows of another accumulator, which come after those of this one."""
        self._keep(
            np.concatenate([self.distance, other.distance]),
            np.concatenate([self.labels, other.labels]),
            np.concatenate([self.X, other.X]),
        )

    def _keep(self, distance: Floats, labels: Labels, X: Floats) -> None:
        first = np.argsort(-distance, kind="stable")[: self.count]
        self.distance, self.labels, self.X = distance[first], labels[first], X[first]

    def relocate(self, sweep: Sweep) -> None:
        """Give each empty cluster one of these rows, as scikit-learn does."""
        if self.distance.max() == 0:  # more clusters than distinct rows
            return
        for empty, row, label in zip(
            np.flatnonzero(sweep.totals == 0), self.X, self.labels, strict=False
        ):
            sweep.sums[label] -= row
            sweep.sums[empty] = row
            sweep.totals[label] -= 1.0
            sweep.totals[empty] = 1.0


def _finish(kmeans: KMeans, centers: Floats, n_iter: int) -> None:
    """Make a fitted model of the centers: scikit-learn fits a copy on them, which sets the rest."""
    names = getattr(kmeans, "feature_names_in_", None)
    rows = centers if names is None else named_rows(centers, names)
    shell = clone(kmeans).set_params(init=centers, n_init=1, max_iter=1, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of coinciding centers
        shell.fit(rows)
    chosen = kmeans.get_params()
    vars(kmeans).update({name: v for name, v in vars(shell).items() if name not in chosen})
    kmeans.cluster_centers_, kmeans.n_iter_ = centers, n_iter
    del kmeans.labels_
