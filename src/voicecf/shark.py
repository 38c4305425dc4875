"""SHARK: k-means that learns feature weights (Shapley Reweighted k-means)."""

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
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_array,
    check_consistent_length,
    check_is_fitted,
    validate_data,
)

from voicecf.edges import edge
from voicecf.geometry.centroids import not_squarable
from voicecf.parallel import in_parallel
from voicecf.saving import Saved
from voicecf.solver.passes import (
    SPAN,
    Contest,
    Data,
    Floats,
    Labels,
    MassRows,
    Sweep,
    check_init,
    sample,
    together,
)
from voicecf.streaming.clusters import rows_for
from voicecf.table.frames import in_partitions
from voicecf.table.stream import Stream

__all__ = ["SHARK", "WeightCollapseWarning"]

# Weights are w = 1 / max(phi, FLOOR), where phi is the within-cluster spread of a feature. Part of
# the algorithm and no tolerance: another value gives other weights.
FLOOR = 1e-12
# A spread so far below FLOOR that its rounding error does not change the weight.
NEGLIGIBLE = 1e-6 * FLOOR
# Number of rows up to which spreads are always summed around the means.
FEW = 32_768


class WeightCollapseWarning(UserWarning):
    """Features without spread within the clusters have taken all the weight."""


class SHARK(
    Saved,
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
        Starting centers: "random" draws distinct rows with equal probability. With an array there
        is one restart, whatever `n_init` is.
    n_init : int, default=10
        Number of restarts. The model is the restart with the lowest inertia among those without an
        empty cluster; of restarts with the same partition, the first.
    max_iter : int, default=300
        Largest number of passes over the data in a restart.
    tol : float, default=1e-4
        A restart ends when the Frobenius norm of the move of its centers, in the units of X, is at
        most this; or sooner, when no label changes.
    random_state : int, RandomState, Generator or None, default=None
        Source of the random starting centers. An int makes the result reproducible; 42 gives the
        models of the VoICE paper.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean of each cluster.
    feature_weights_ : ndarray of shape (n_features,)
        Weight of each feature; they sum to 1.
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    inertia_ : float
        Sum of the weighted squared distances of the rows to their centers.
    n_iter_ : int
        Number of passes of the restart that became the model.
    n_features_in_ : int
        Number of features seen in fit.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had names that are all strings.

    Warns
    -----
    WeightCollapseWarning
        If features without spread within the clusters take all the weight.
    ConvergenceWarning
        If every restart ended with an empty cluster, as it must if there are fewer distinct rows
        than clusters. The model is then the restart with the fewest empty clusters.

    Notes
    -----
    A weight is a reciprocal squared length, so it depends on the units. Standardise first, unless
    the units are comparable.

    Beyond 262,144 rows starting centers are drawn from a random sample of that many.

    Where the weights collapse, restarts tie: the inertia is about 1e-12 for each feature without
    weight, and rounding decides which restart wins. Sums are therefore taken in a fixed order, and
    do not depend on the machine or its number of cores: row by row up to 262,144 rows, beyond by
    chunks of that many. Tables of a stream and partitions are chunks, too, so that another of the
    tied restarts may win there; otherwise models agree to about 1e-12.

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

    # `predict` sums w (x - m)^2 without expanding the square; see `geometry.arithmetic.Arithmetic`.
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
            Finite numbers. With a Dask DataFrame there are no `labels_`.
        y : ignored
            Present for API consistency with scikit-learn.
        sample_weight : array-like of shape (n_samples,), default=None
            Weight of each row, not negative. Rows of weight 0 are ignored. By default all are 1.

        Returns
        -------
        self : SHARK
            The fitted estimator.
        """
        if in_partitions(X) and sample_weight is None:
            fitted: Self = edge("fit_partitions")(self, X)
            return fitted
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, order="C")
        self._check_count(len(X))
        self._learn(MassRows(X, _check_mass(sample_weight, X)).present())
        self.labels_ = self._label(X)
        return self

    def _fit_stream(self, stream: Stream) -> None:
        """Learn from a stream of tables."""
        self._check_parameters()
        validate_data(self, stream.first(), dtype=np.float64)
        data = rows_for(self, stream)
        self._check_count(data.n_rows)
        self._learn(data)
        self.__dict__.pop("labels_", None)  # an earlier fit may have set them

    def _learn(self, data: Data) -> None:
        """Run all restarts over the rows, and set the fitted attributes."""
        starts = self._starts(data)
        ends = together([restart(s, self.max_iter, self.tol) for s in starts], data)
        (contest,) = data.accumulate([Contest([(end.centers, end.weights) for end in ends])])
        winner = contest.winner(full=True)
        best = ends[winner]
        if fault := not_squarable(best.centers, best.centers.dtype):
            raise ValueError(fault)
        self.cluster_centers_ = best.centers
        self.feature_weights_ = best.weights
        self.inertia_ = float(contest.inertia[winner])
        self.n_iter_ = best.n_iter
        self._n_features_out = len(best.centers)
        if n_empty := contest.n_empty(winner):
            self._warn_of_empty_clusters(data, n_empty)
        # Deviations from any row of its own show whether all rows of a cluster have one value.
        members = Sweep(best.centers, best.weights, contest.members[winner])
        (around,) = data.accumulate([members])
        self._warn_of_collapse(best, (around.around > 0).any(axis=0))

    def predict(self, X: Any) -> Labels:
        """Return the nearest center of each row.

        The distance is sum_v w_v (x_v - m_v)^2, summed in the order of the features. Ties go to
        the lowest index.

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
        """Return the weighted distance of each row to each center.

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
        table = MassRows(X, np.empty(0)).table(self.cluster_centers_, self.feature_weights_)
        in_parallel(lambda start, stop: table.distances(out, start, stop), len(X), chunk=SPAN)
        return out

    def _check_count(self, n_rows: int) -> None:
        if n_rows < self.n_clusters:
            raise ValueError(
                f"n_samples={n_rows} should be >= n_clusters={self.n_clusters}. Use fewer clusters."
            )

    def _check_rows(self, X: Any) -> Floats:
        check_is_fitted(self)
        rows: Floats = validate_data(self, X, reset=False, dtype=np.float64, order="C")
        return rows

    def _label(self, X: Floats) -> Labels:
        rows = MassRows(X, np.empty(0))
        return rows.assign(self.cluster_centers_, self.feature_weights_)[0]

    def _check_parameters(self) -> None:
        """Raise ValueError if the value of a parameter is not allowed."""
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

    def _starts(self, data: Data) -> list[Floats]:
        """Return the starting centers of each restart."""
        k, d = self.n_clusters, self.n_features_in_
        if not isinstance(self.init, str):
            return [check_init(self.init, (k, d))]
        master = _generator(self.random_state)
        seeds = [int(master.integers(0, 2**32 - 1)) for _ in range(self.n_init)]
        rows = sample(data, lambda: int(master.integers(2**63))).distinct()
        if rows.n_rows < k:  # every distinct row is a center, and some of them several times
            return [np.resize(rows.X, (k, d))]
        if self.init == "k-means++":
            return [
                kmeans_plusplus(rows.X, k, sample_weight=rows.mass, random_state=seed)[0]
                for seed in seeds
            ]
        return [
            rows.X[np.random.default_rng(seed).choice(rows.n_rows, size=k, replace=False)]
            for seed in seeds
        ]

    def _warn_of_empty_clusters(self, data: Data, n_empty: int) -> None:
        """Warn that clusters of the model have no rows."""
        rows = sample(data, lambda: 0)
        warnings.warn(
            f"{n_empty} of n_clusters={self.n_clusters} clusters have no rows, in every "
            f"restart; there are {rows.distinct().n_rows} distinct rows among {rows.n_rows}. Use "
            f"fewer clusters, or try other starting centers: a larger n_init, another random_state "
            f"or init='k-means++'.",
            ConvergenceWarning,
            stacklevel=4,
        )

    def _warn_of_collapse(self, best: RestartEnd, varies: npt.NDArray[np.bool_]) -> None:
        """Warn if some features, but not all, have no spread within the clusters."""
        constant = (best.phi <= FLOOR) | ~varies
        if not constant.any() or constant.all():
            return
        names = getattr(self, "feature_names_in_", np.arange(len(constant)))[constant].tolist()
        shown = ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")
        effective = 1 / np.sum(best.weights**2)
        warnings.warn(
            f"the weights collapsed: {len(names)} of {len(constant)} columns ({shown}) have no "
            f"spread within the clusters and take all the weight (effective number of features "
            f"{effective:.2f}). Leave such columns out, merge them (the dummies of one category), "
            f"or use KMeans.",
            WeightCollapseWarning,
            stacklevel=4,
        )


@dataclass(frozen=True)
class RestartEnd:
    """Final centers, weights and within-cluster spread of a restart, and its number of passes."""

    centers: Floats
    weights: Floats
    phi: Floats
    n_iter: int


def restart(centers: Floats, max_iter: int, tol: float) -> Generator[Any, Any, RestartEnd]:
    """Run Lloyd's algorithm from `centers` and equal weights; yields what each pass accumulates.

    If no label changes, no center moves, because sums have a fixed order. So there is no separate
    test for unchanged labels.
    """
    phi = np.ones(centers.shape[1])
    weights = _weights(phi)
    n_iter, converged = 0, False
    while n_iter < max_iter and not converged:
        sweep = yield Sweep(centers, weights, centers)
        means = sweep.means()
        spread = _spread_without_pass(sweep, means)
        if spread is None:
            spread = (yield Sweep(centers, weights, means)).around
        with np.errstate(over="ignore", invalid="ignore"):  # `_weights` raises on overflow
            phi = spread.sum(axis=0)
            converged = bool(np.linalg.norm(means - centers) <= tol)
        weights = _weights(phi)
        centers = means
        n_iter += 1
    return RestartEnd(centers, weights, phi, n_iter)


@np.errstate(over="ignore", invalid="ignore")
def _spread_without_pass(sweep: Sweep, means: Floats) -> Floats | None:
    """Return the spread around the means without another pass; None if that is not accurate.

    Steiner's formula, sum (x - m)^2 = sum (x - c)^2 - n (m - c)^2, is used unless the two terms
    cancel. Up to FEW rows the result is always None: another pass is cheap, and it gives the bits
    of the plain formula.
    """
    if sweep.n_rows <= FEW:
        return None
    shift = sweep.totals[:, None] * (means - sweep.centers) ** 2
    accurate = (shift <= sweep.around / 2) | (sweep.around <= NEGLIGIBLE)
    return sweep.around - shift if accurate.all() else None


def _weights(phi: Floats) -> Floats:
    """Return weights inversely proportional to the within-cluster spread phi of each feature."""
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
    """Return the random generator of a `random_state`, or raise."""
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
    """Return the mass of each row: its sample weight, 1 by default."""
    if sample_weight is None:
        return np.ones(len(X))
    mass: Floats = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if mass.ndim != 1:
        raise ValueError(f"sample_weight has shape {mass.shape}; pass one number per row.")
    check_consistent_length(X, mass)
    if (mass < 0).any() or not mass.any():
        raise ValueError("sample_weight must not contain negative numbers, nor zeros only.")
    return np.ascontiguousarray(mass)
