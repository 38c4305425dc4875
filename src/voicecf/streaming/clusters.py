"""The rows of a stream as a clustering takes them, and scikit-learn's KMeans learned from them."""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, validate_data

from voicecf.errors import DataError, ModelError
from voicecf.solver.passes import Batches, Contest, Data, Floats, Labels, Rows, Sweep, together
from voicecf.streaming.spreading import Fetch, spread_out
from voicecf.table.frames import table
from voicecf.table.stream import Stream


@dataclass(frozen=True)
class Numbers:
    """The rows of a stream as a model takes them, in batches; every row counts once."""

    model: Any
    stream: Stream
    dtype: Any = np.float64

    def __iter__(self) -> Iterator[Rows]:
        """Begin a pass, and yield its batches."""
        for block in self.stream:
            yield self._checked(block)

    def rows(self, block: Any) -> Rows:
        """Return a block of the source as the model takes it."""
        for step in self.stream.steps:
            block = step(block)
        return self._checked(block)

    def _checked(self, block: Any) -> Rows:
        X = validate_data(self.model, block, reset=False, dtype=self.dtype, order="C")
        X = np.require(X, np.float64, ["C", "W"])
        return Rows(X, np.ones(len(X)))

    def without_source(self) -> Numbers:
        """Return what makes rows of blocks, and cannot read any: small enough to travel."""
        return replace(self, stream=Stream(_nothing, steps=self.stream.steps))

    def data(self) -> Data:
        """Return the rows to pass over, where that is best done."""
        return Batches(self) if self.stream.place is None else self.stream.place(self)


def _nothing() -> Iterator[Any]:
    return iter(())


def fit_kmeans(kmeans: KMeans, stream: Stream) -> None:
    """Learn centers from scikit-learn's own starts, by its own rules to stop and to choose."""
    kmeans._validate_params()
    kinds = [np.float64, np.float32]
    dtype = validate_data(kmeans, stream.first(), dtype=kinds).dtype
    n, d = stream.n_rows, kmeans.n_features_in_
    if n < kmeans.n_clusters:
        raise DataError(
            f"n_samples={n} should be >= n_clusters={kmeans.n_clusters}. Ask for fewer clusters."
        )
    data, equal = Numbers(kmeans, stream, kinds).data(), np.ones(d)
    tol = kmeans.tol * float(np.mean(_variances(data, n, d))) if kmeans.tol else 0.0
    ends = together([_lloyd(s, kmeans.max_iter, tol) for s in _starts(kmeans, data, n)], data)
    (contest,) = data.accumulate([Contest([(centers, equal) for centers, _ in ends], n)])
    best = contest.winner(full=False)
    _finish(kmeans, ends[best][0].astype(dtype), n_iter=ends[best][1])
    kmeans.inertia_ = contest.inertia(best)
    if contest.n_empty(best):
        warnings.warn(
            f"{contest.n_empty(best)} of n_clusters={kmeans.n_clusters} clusters have no rows; "
            "there may be fewer distinct rows than clusters.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _variances(data: Data, n: int, d: int) -> Floats:
    """Return the variance of each column."""
    (sweep,) = data.accumulate([Sweep(np.zeros((1, d)), np.ones(d))])
    (sweep,) = data.accumulate([Sweep(sweep.means(), np.ones(d))])
    return np.asarray(sweep.around[0] / n)


def _starts(kmeans: KMeans, data: Data, n: int) -> list[Floats]:
    """Return the centers that scikit-learn would start from."""
    k, init, n_init = kmeans.n_clusters, kmeans.init, kmeans.n_init
    if callable(init):
        raise ModelError("init is a function of all rows; give k-means++, random or an array.")
    if not isinstance(init, str):
        return [check_init(init, (k, kmeans.n_features_in_))]
    if n_init == "auto":
        n_init = 1 if init == "k-means++" else 10
    random = check_random_state(kmeans.random_state)
    if init == "k-means++":
        return spread_out(data, float(n), k, [random] * n_init)
    share = np.full(n, 1.0) / float(n)
    drawn = [random.choice(n, size=k, replace=False, p=share) for _ in range(n_init)]
    (fetch,) = data.accumulate([Fetch(np.concatenate(drawn))])
    return list(fetch.rows().reshape(n_init, k, -1))


def check_init(init: Any, shape: tuple[int, int]) -> Floats:
    """Return starting centers of the user's own as an array, or raise."""
    centers: Floats = check_array(init, dtype=np.float64, order="C", copy=True, input_name="init")
    if centers.shape != shape:
        raise ValueError(
            f"init has shape {centers.shape}; n_clusters and the columns of X ask for {shape}."
        )
    return centers


def _lloyd(centers: Floats, max_iter: int, tol: float) -> Generator[Any, Any, tuple[Floats, int]]:
    """Ask for Lloyd's passes; return the centers and the number of passes."""
    equal = np.ones(centers.shape[1])
    n_iter, moved = 0, np.inf
    while n_iter < max_iter and moved > tol:
        sweep = yield Sweep(centers, equal)
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
    distance: Floats = field(default_factory=lambda: np.empty(0))
    labels: Labels = field(default_factory=lambda: np.empty(0, np.int32))
    X: Floats | None = None

    def add(self, rows: Rows) -> None:
        """Take the next batch of rows."""
        labels, closest = rows.assign(self.centers, np.ones(rows.X.shape[1]))
        X = rows.X if self.X is None else np.concatenate([self.X, rows.X])
        distance = np.concatenate([self.distance, closest])
        first = np.argsort(-distance, kind="stable")[: self.count]
        self.labels = np.concatenate([self.labels, labels])[first]
        self.X, self.distance = X[first], distance[first]

    def relocate(self, sweep: Sweep) -> None:
        """Give each empty cluster one of these rows, as scikit-learn does."""
        assert self.X is not None
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
    rows = centers if names is None else table(dict(zip(names, centers.T, strict=True)))
    shell = clone(kmeans).set_params(init=centers, n_init=1, max_iter=1, verbose=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of coinciding centers
        shell.fit(rows)
    chosen = kmeans.get_params()
    vars(kmeans).update({name: v for name, v in vars(shell).items() if name not in chosen})
    kmeans.cluster_centers_, kmeans.n_iter_ = centers, n_iter
    del kmeans.labels_
