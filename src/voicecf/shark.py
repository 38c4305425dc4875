"""SHARK: k-means that learns how much each feature counts (Shapley Reweighted k-means)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from numbers import Integral, Real
from threading import Event
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from voicecf._compile import announce, in_parallel

__all__ = ["SHARK", "WeightCollapseWarning"]

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int32]

# The least within-cluster spread that a weight is computed from: w = 1 / max(phi, FLOOR).
FLOOR = 1e-12
# A spread so far below the floor that its own rounding is of no account.
NEGLIGIBLE = 1e-6 * FLOOR
# Rows in a job. Part of the result beyond this many rows, for spreads are added job by job.
CHUNK = 32_768


class WeightCollapseWarning(UserWarning):
    """Features that do not vary within the clusters have taken all the weight."""


class SHARK(
    ClassNamePrefixFeaturesOutMixin,  # type: ignore[misc]
    TransformerMixin,  # type: ignore[misc]
    ClusterMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Feature-weighted k-means (Shapley Reweighted k-means).

    Lloyd's algorithm in the metric sum_v w_v (x_v - m_v)^2. After each pass the weight of a feature
    becomes inversely proportional to its within-cluster spread phi_v, so that features in which
    the clusters are tight count for more. There is nothing to tune beyond k-means.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, at most the number of rows.
    init : {"random", "k-means++"} or array-like of shape (n_clusters, n_features)
        Starting centers: "random" draws distinct rows, each with the same chance. An array is
        tried once, whatever `n_init` says.
    n_init : int, default=10
        Number of restarts. The one with the lowest inertia is kept among those in which no
        cluster ran empty; of restarts with the same partition, the first.
    max_iter : int, default=300
        Most passes over the data in a restart.
    tol : float, default=1e-4
        A restart ends when its centers, all together, moved by at most this Euclidean distance,
        in the units of X; or sooner, when no label changed.
    random_state : int, RandomState, Generator or None, default=None
        Source of the starting centers. An int makes the result repeatable: 42 gives the models
        of the VoICE paper.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean of each cluster.
    feature_weights_ : ndarray of shape (n_features,)
        Weight of each feature; they sum to 1.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    inertia_ : float
        Weighted squared distances of the rows to their centers, summed.
    n_iter_ : int
        Passes that the winning restart took.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had names that are all strings.

    Warns
    -----
    WeightCollapseWarning
        If some features have no spread within the clusters: these take all the weight.
    ConvergenceWarning
        If every restart ended with an empty cluster, as it must when there are fewer distinct
        rows than clusters. The model is then the restart with the fewest of them.

    Notes
    -----
    A weight is a reciprocal squared length, so a change of units changes it. Standardise first,
    unless the units are comparable.

    Where the weights collapse, different restarts tie: their inertia is about 1e-12 a feature that
    lost its weight, and which of them wins hangs on rounding. The sums here are therefore taken in
    a fixed order, row by row, and do not depend on the machine or its number of cores.

    Examples
    --------
    The first column separates two groups, the second is noise and gets little weight:

    >>> from voicecf.shark import SHARK
    >>> X = [[1.0, 5], [1.2, 1], [1.1, 9], [8.0, 2], [8.2, 8], [8.1, 5]]
    >>> model = SHARK(n_clusters=2, random_state=42).fit(X)
    >>> model.labels_.tolist()
    [0, 0, 0, 1, 1, 1]
    >>> model.feature_weights_.round(3).tolist()
    [0.999, 0.001]
    >>> model.predict([[2.0, 7.0], [7.0, 7.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: str | npt.ArrayLike = "random",
        n_init: int = 10,
        max_iter: int = 300,
        tol: float = 1e-4,
        random_state: int | np.random.RandomState | np.random.Generator | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn centers and feature weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Numbers, none missing.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. A row that counts 0 times takes no part.

        Returns
        -------
        self : SHARK
            The fitted estimator.
        """
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, order="C")
        if len(X) < self.n_clusters:
            raise ValueError(
                f"n_samples={len(X)} should be >= n_clusters={self.n_clusters}. Ask for fewer "
                f"clusters."
            )
        every = _Rows(_writable(X), _check_mass(sample_weight, X))
        rows = every.present()
        distinct = rows.distinct()
        best = self._best_restart(rows, distinct)
        self.cluster_centers_ = best.centers
        self.feature_weights_ = best.weights
        self.inertia_ = best.inertia
        self.n_iter_ = best.n_iter
        self.labels_ = best.labels if rows is every else self._label(every.X)
        self._n_features_out = len(best.centers)
        self._warn_of_empty_clusters(distinct, best)
        self._warn_of_collapse(rows, best)
        return self

    def predict(self, X: Any) -> Labels:
        """Name the nearest center of each row.

        Nearest in sum_v w_v (x_v - m_v)^2, summed in feature order; a tie goes to the lowest
        index.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the columns of fit.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Index of a cluster for each row.
        """
        return self._label(self._check_rows(X))

    def transform(self, X: Any) -> Floats:
        """Measure the weighted distance of each row to each center.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in the columns of fit.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_clusters)
            Square roots of sum_v w_v (x_v - m_v)^2.
        """
        X = self._check_rows(X)
        out = np.empty((len(X), len(self.cluster_centers_)))
        fixed = _writable(self.cluster_centers_), _writable(self.feature_weights_)
        loop = _loops().distances
        in_parallel(lambda start, stop: loop(X, *fixed, start, stop, out), len(X), chunk=CHUNK)
        return out

    def _check_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        return _writable(validate_data(self, X, reset=False, dtype=np.float64, order="C"))

    def _label(self, X: Floats) -> Labels:
        state = _Assignment.of(X)
        state.renew(X, _writable(self.cluster_centers_), _writable(self.feature_weights_))
        return state.labels

    def _check_parameters(self) -> None:
        for name in ("n_clusters", "n_init", "max_iter"):
            value = getattr(self, name)
            if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
                raise ValueError(f"{name}={value!r} must be an int of at least 1.")
        if not isinstance(self.tol, Real) or not self.tol >= 0:
            raise ValueError(f"tol={self.tol!r} must be a number of at least 0.")
        if isinstance(self.init, str) and self.init not in ("random", "k-means++"):
            raise ValueError(
                f"init={self.init!r} must be 'random', 'k-means++' or an array of centers."
            )

    def _best_restart(self, rows: _Rows, distinct: _Rows) -> _Restart:
        best: _Restart | None = None
        for centers in self._starts(distinct):
            ended = _restart(rows, centers, self.max_iter, self.tol)
            if best is None or ended.improves_on(best):
                best = ended
        assert best is not None  # there is at least one start
        return best

    def _starts(self, distinct: _Rows) -> Iterator[Floats]:
        k, n = self.n_clusters, len(distinct.X)
        if not isinstance(self.init, str):
            yield _check_init(self.init, (k, distinct.X.shape[1]))
        elif n < k:  # a center on every row, and the rest on top of them
            yield np.resize(distinct.X, (k, distinct.X.shape[1]))
        else:
            master = _generator(self.random_state)
            for _ in range(self.n_init):
                yield self._draw(distinct, seed=int(master.integers(0, 2**32 - 1)))

    def _draw(self, distinct: _Rows, seed: int) -> Floats:
        if self.init == "random":
            rng = np.random.default_rng(seed)
            return distinct.X[rng.choice(len(distinct.X), size=self.n_clusters, replace=False)]
        centers: Floats
        centers, _ = kmeans_plusplus(
            distinct.X, self.n_clusters, sample_weight=distinct.mass, random_state=seed
        )
        return centers

    def _warn_of_empty_clusters(self, distinct: _Rows, best: _Restart) -> None:
        if best.n_empty == 0:
            return
        warnings.warn(
            f"{best.n_empty} of n_clusters={self.n_clusters} clusters have no rows, in every "
            f"restart; the data have {len(distinct.X)} distinct rows. Ask for fewer clusters, or "
            f"try other starts: a larger n_init, another random_state or init='k-means++'.",
            ConvergenceWarning,
            stacklevel=3,
        )

    def _warn_of_collapse(self, rows: _Rows, best: _Restart) -> None:
        stuck = (best.phi <= FLOOR) | ~rows.varies_within(best.labels)
        if not stuck.any() or stuck.all():
            return
        names = getattr(self, "feature_names_in_", np.arange(len(stuck)))[stuck].tolist()
        shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        effective = 1 / np.sum(best.weights**2)
        warnings.warn(
            f"the weights collapsed: {len(names)} of {len(stuck)} columns ({shown}) have no spread "
            f"within the clusters and take all the weight (effective number of features "
            f"{effective:.2f}). Leave such columns out, merge them (the dummies of one category), "
            f"or use KMeans.",
            WeightCollapseWarning,
            stacklevel=3,
        )


@cache
def _loops() -> Any:
    """Import the compiled loops, and numba with them, when something must run."""
    from voicecf import _lloyd

    announce(_lloyd.__file__, _lloyd.nearest)
    return _lloyd


@dataclass(frozen=True)
class _Assignment:
    """The nearest center of each row and its weighted squared distance, in buffers for reuse."""

    labels: Labels
    closest: Floats

    @classmethod
    def of(cls, X: Floats) -> _Assignment:
        return cls(np.full(len(X), -1, np.int32), np.empty(len(X)))

    def renew(self, X: Floats, centers: Floats, weights: Floats) -> None:
        """Assign every row anew."""
        loop = _loops().nearest

        def work(start: int, stop: int) -> None:
            loop(X, centers, weights, start, stop, self.labels, self.closest)

        in_parallel(work, len(X), chunk=CHUNK)


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


@dataclass(frozen=True)
class _Rows:
    """The rows to cluster, and the mass of each."""

    X: Floats
    mass: Floats

    def present(self) -> _Rows:
        """Leave out the rows without mass."""
        there = self.mass > 0
        return self if there.all() else _Rows(self.X[there], self.mass[there])

    def distinct(self) -> _Rows:
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
        return _Rows(self.X[first], mass)

    def spread(self, labels: Labels, means: Floats) -> Floats:
        """Sum squared deviations from the cluster means, a row for each cluster."""
        loop = _loops().spread

        def work(start: int, stop: int) -> Floats:
            out = np.zeros_like(means)
            loop(self.X, self.mass, labels, start, stop, means, out)
            return out

        return _add_in_order(in_parallel(work, len(self.X), chunk=CHUNK))

    def varies_within(self, labels: Labels) -> npt.NDArray[np.bool_]:
        """Tell for each feature whether some cluster holds two values of it."""
        present, first = np.unique(labels, return_index=True)
        sample = np.empty((present[-1] + 1, self.X.shape[1]))
        sample[present] = self.X[first]
        varies = np.zeros(self.X.shape[1], np.bool_)
        _loops().mark_varying(self.X, labels, sample, varies)
        return varies


@dataclass(frozen=True)
class _Restart:
    """Where a restart ended."""

    centers: Floats
    weights: Floats
    phi: Floats
    labels: Labels
    inertia: float
    n_iter: int

    @property
    def n_empty(self) -> int:
        return len(self.centers) - int(np.count_nonzero(np.bincount(self.labels)))

    def improves_on(self, other: _Restart) -> bool:
        """Compare empty clusters, then inertia; the same partition again is no improvement.

        Its inertia differs in the last bits only, and these should not decide how the clusters
        are numbered.
        """
        if self.n_empty != other.n_empty:
            return self.n_empty < other.n_empty
        return self.inertia < other.inertia and not self._same_partition(other)

    def _same_partition(self, other: _Restart) -> bool:
        k = len(self.centers)
        pairs = np.bincount(self.labels.astype(np.int64) * k + other.labels)
        return int(np.count_nonzero(pairs)) == k - self.n_empty


@np.errstate(over="ignore", invalid="ignore")  # `_weights` tells of an overflow
def _restart(rows: _Rows, centers: Floats, max_iter: int, tol: float) -> _Restart:
    """Run Lloyd's passes from `centers` and equal weights until nothing moves."""
    phi = np.ones(rows.X.shape[1])
    weights = _weights(phi)
    state = _Assignment.of(rows.X)
    n_iter, settled = 0, False
    while n_iter < max_iter and not settled:
        means, phi, changed = _pass(rows, state, centers, weights)
        weights = _weights(phi)
        settled = changed == 0 or bool(np.linalg.norm(means - centers) <= tol)
        centers = means
        n_iter += 1
    state.renew(rows.X, centers, weights)
    inertia = float(np.sum(rows.mass * state.closest))
    return _Restart(centers, weights, phi, state.labels, inertia, n_iter)


def _pass(
    rows: _Rows, state: _Assignment, centers: Floats, weights: Floats
) -> tuple[Floats, Floats, int]:
    """Assign every row; return the new means, their spread phi and the count of new labels."""
    sums, totals, around, changed = _sweep(rows, state, centers, weights)
    filled = totals > 0
    means = centers.copy()  # an empty cluster stays where it is
    means[filled] = sums[filled] / totals[filled, None]
    # Steiner: sum (x - m)^2 = sum (x - c)^2 - n (m - c)^2. It spares a second sweep where it does
    # not cancel. Few rows take the sweep in any case, and so give the bits of the plain formula.
    shift = totals[:, None] * (means - centers) ** 2
    safe = (shift <= around / 2) | (around <= NEGLIGIBLE)
    if len(rows.X) > CHUNK and safe.all():
        spread = around - shift
    else:
        spread = rows.spread(state.labels, means)
    return means, spread.sum(axis=0), changed


def _sweep(
    rows: _Rows, state: _Assignment, centers: Floats, weights: Floats
) -> tuple[Floats, Floats, Floats, int]:
    """Assign every row; return sums, masses and squares around `centers`, and new labels."""
    X, mass, labels = rows.X, rows.mass, state.labels
    sums, totals = np.zeros_like(centers), np.zeros(len(centers))
    loops, queue = _loops(), _Queue(-(-len(X) // CHUNK))

    def work(start: int, stop: int) -> tuple[int, Floats]:
        around = np.zeros_like(centers)
        with queue:
            changed = loops.nearest_and_spread(
                X, mass, centers, weights, start, stop, labels, state.closest, around
            )
            # Rows are added one by one in their order, as numpy adds them: where weights collapse,
            # the rounding of these sums is all that tells one restart from another.
            queue.wait_for_turn(start // CHUNK)
            loops.add_up(X, mass, labels, start, stop, sums, totals)
            queue.leave(start // CHUNK)
        return changed, around

    changes, parts = zip(*in_parallel(work, len(X), chunk=CHUNK), strict=True)
    return sums, totals, _add_in_order(parts), sum(changes)


def _add_in_order(parts: Sequence[Floats]) -> Floats:
    """Add up what the jobs returned, from first to last, whoever ran them."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def _weights(phi: Floats) -> Floats:
    """Weigh each feature by the reciprocal of its within-cluster spread."""
    if not np.isfinite(phi).all():
        at = np.flatnonzero(~np.isfinite(phi)).tolist()
        raise ValueError(
            f"the values in column {at} are too large to be squared. Scale them, for example with "
            f"StandardScaler."
        )
    weights: Floats = 1 / np.maximum(phi, FLOOR)
    weights /= weights.sum()
    return weights


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**32, dtype=np.uint64)
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r} must be None, an int of at least 0, a RandomState or "
            f"a Generator."
        ) from error


def _check_init(init: Any, shape: tuple[int, int]) -> Floats:
    centers: Floats = check_array(init, dtype=np.float64, order="C", copy=True, input_name="init")
    if centers.shape != shape:
        raise ValueError(
            f"init has shape {centers.shape}; n_clusters and the columns of X ask for {shape}."
        )
    return centers


def _check_mass(sample_weight: Any, X: Floats) -> Floats:
    if sample_weight is None:
        return np.ones(len(X))
    mass: Floats = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if mass.ndim != 1:
        raise ValueError(f"sample_weight has shape {mass.shape}; give one number for each row.")
    check_consistent_length(X, mass)
    if (mass < 0).any() or not mass.any():
        raise ValueError("sample_weight must hold no negative number, and not only zeros.")
    return _writable(mass)


def _writable(array: Floats) -> Floats:
    """Copy a read-only array: numba would compile every loop anew for its type."""
    return np.require(array, requirements=["C", "W"])
