"""SHARK: k-means that learns how much each feature counts (Shapley Reweighted k-means)."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from voicecf.parallel import in_parallel
from voicecf.solver.passes import (
    CHUNK,
    Batches,
    Contest,
    Data,
    Floats,
    Labels,
    Rows,
    Spread,
    Sweep,
    Varying,
    together,
)
from voicecf.streaming.clusters import Numbers, check_init
from voicecf.streaming.distinct import Distinct, DistinctRows, DistinctStream
from voicecf.table.frames import in_partitions
from voicecf.table.stream import Stream

__all__ = ["SHARK", "WeightCollapseWarning"]

# The least within-cluster spread that a weight is computed from: w = 1 / max(phi, FLOOR).
FLOOR = 1e-12
# A spread so far below the floor that its own rounding is of no account.
NEGLIGIBLE = 1e-6 * FLOOR


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

    # `predict` sums w (x - m)^2 as it stands, not expanded; see `geometry.cell.Arithmetic`.
    _distance_formula = "direct"

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
            Numbers, none missing; or a Dask DataFrame of them, and then there are no `labels_`.
        y : ignored
            Present for scikit-learn's sake.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts. A row that counts 0 times takes no part.

        Returns
        -------
        self : SHARK
            The fitted estimator.
        """
        if in_partitions(X) and sample_weight is None:
            from voicecf.dask import fit

            return fit(self, X)
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, order="C")
        self._check_count(len(X))
        every = Rows(X, _check_mass(sample_weight, X))
        rows = every.present()
        self._learn(Batches([rows]), len(rows.X), DistinctRows(rows.distinct()))
        self.labels_ = self._label(every.X)
        return self

    def _fit_stream(self, stream: Stream) -> None:
        """Learn from tables that come one after the other; to the bit what `fit` would learn."""
        self._check_parameters()
        validate_data(self, stream.first(), dtype=np.float64)
        rows = Numbers(self, stream)
        self._check_count(stream.n_rows)
        self._learn(rows.data(), stream.n_rows, DistinctStream(rows))
        self.__dict__.pop("labels_", None)  # of an earlier fit

    def _learn(self, data: Data, n_rows: int, distinct: Distinct) -> None:
        """Learn the model from rows that can be passed over, `n_rows` in all."""
        starts = self._starts(distinct)
        ends = together([restart(s, self.max_iter, self.tol) for s in starts], data)
        contest = Contest([(end.centers, end.weights) for end in ends], n_rows)
        (contest,) = data.answer([contest])
        winner = contest.winner(full=True)
        best = ends[winner]
        self.cluster_centers_ = best.centers
        self.feature_weights_ = best.weights
        self.inertia_ = contest.inertia(winner)
        self.n_iter_ = best.n_iter
        self._n_features_out = len(best.centers)
        self._warn_of_empty_clusters(distinct, contest.n_empty(winner))
        (varying,) = data.answer([Varying(best.centers, best.weights)])
        self._warn_of_collapse(best, varying.varies)

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
        table = Rows(X, np.empty(0)).table(self.cluster_centers_, self.feature_weights_)
        in_parallel(lambda start, stop: table.distances(out, start, stop), len(X), chunk=CHUNK)
        return out

    def _check_count(self, n_rows: int) -> None:
        if n_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={n_rows} should be >= n_clusters={self.n_clusters}. Ask for fewer "
                f"clusters."
            )

    def _check_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return rows

    def _label(self, X: Floats) -> Labels:
        rows = Rows(X, np.empty(0))
        return rows.assign(self.cluster_centers_, self.feature_weights_)[0]

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

    def _starts(self, distinct: Distinct) -> list[Floats]:
        k, d = self.n_clusters, self.n_features_in_
        if not isinstance(self.init, str):
            return [check_init(self.init, (k, d))]
        if distinct.count < k:  # a center on every row, and the rest on top of them
            return [np.resize(distinct.take(np.arange(distinct.count)), (k, d))]
        master = _generator(self.random_state)
        seeds = [int(master.integers(0, 2**32 - 1)) for _ in range(self.n_init)]
        if self.init == "k-means++":
            return distinct.spread_out(k, seeds)
        drawn = [
            np.random.default_rng(seed).choice(distinct.count, size=k, replace=False)
            for seed in seeds
        ]
        return list(distinct.take(np.concatenate(drawn)).reshape(len(seeds), k, d))

    def _warn_of_empty_clusters(self, distinct: Distinct, n_empty: int) -> None:
        if n_empty == 0:
            return
        warnings.warn(
            f"{n_empty} of n_clusters={self.n_clusters} clusters have no rows, in every "
            f"restart; the data have {distinct.count} distinct rows. Ask for fewer clusters, or "
            f"try other starts: a larger n_init, another random_state or init='k-means++'.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _warn_of_collapse(self, best: End, varies: npt.NDArray[np.bool_]) -> None:
        stuck = (best.phi <= FLOOR) | ~varies
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
            stacklevel=4,
        )


@dataclass(frozen=True)
class End:
    """Where a restart ended."""

    centers: Floats
    weights: Floats
    phi: Floats
    n_iter: int


def restart(centers: Floats, max_iter: int, tol: float) -> Generator[Any, Any, End]:
    """Ask for Lloyd's passes from `centers` and equal weights until nothing moves.

    Centers that do not move are those of labels that do not change, for sums have a fixed order.
    """
    phi = np.ones(centers.shape[1])
    weights = _weights(phi)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        sweep = yield Sweep(centers, weights)
        means = sweep.means()
        spread = _spared(sweep, means)
        if spread is None:
            spread = (yield Spread(centers, weights, means)).total
        with np.errstate(over="ignore", invalid="ignore"):  # `_weights` tells of an overflow
            phi = spread.sum(axis=0)
            converged = bool(np.linalg.norm(means - centers) <= tol)
        weights = _weights(phi)
        centers = means
        n_iter += 1
    return End(centers, weights, phi, n_iter)


@np.errstate(over="ignore", invalid="ignore")
def _spared(sweep: Sweep, means: Floats) -> Floats | None:
    """Return the spread around the means without a pass of its own; None where that is not safe.

    Steiner: sum (x - m)^2 = sum (x - c)^2 - n (m - c)^2, where it does not cancel. Few rows take
    the pass in any case, and so give the bits of the plain formula.
    """
    if sweep.n_rows <= CHUNK:
        return None
    assert sweep.around is not None
    shift = sweep.totals[:, None] * (means - sweep.centers) ** 2
    safe = (shift <= sweep.around / 2) | (sweep.around <= NEGLIGIBLE)
    return sweep.around - shift if safe.all() else None


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
    return np.ascontiguousarray(mass)
