"""The paper's measures of counterfactuals and of clusterings.

Of counterfactuals: validity, feasibility, cost, changed features, r*, tau. Of clusterings:
contraction, weight concentration, agreement with known classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.metrics import adjusted_rand_score

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.models import partition_of

# The paper's threshold, in the units of X: a smaller move of a feature does not count as a change.
CHANGED = 1e-9
# A one-hot block with fewer effective features than this is dominated by a single dummy.
SEVERAL = 1.5


def adjusted_rand_index(labels: Any, reference: Any) -> float:
    """Return the adjusted Rand index of clusters and known classes: 1 if equal, 0 by chance.

    Parameters
    ----------
    labels : array of shape (n,)
        Clusters.
    reference : array of shape (n,)
        Known classes.

    Returns
    -------
    float

    Examples
    --------
    >>> from voicecf.diagnostics import adjusted_rand_index
    >>> adjusted_rand_index([1, 1, 0, 0], ["a", "a", "b", "b"])
    1.0
    """
    return float(adjusted_rand_score(reference, labels))


def validity(points: Any, model: Any, target: Any) -> float:
    """Share of points that the model itself assigns to the cluster that was asked for.

    Parameters
    ----------
    points : array of shape (n, d)
        Counterfactuals. A row with NaN has no answer and counts as not valid.
    model : estimator
        Fitted, with `cluster_centers_`.
    target : int or array of shape (n,)
        Target cluster of all points, or of each point.

    Returns
    -------
    float
        Between 0 and 1; NaN if there are no points.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from voicecf.diagnostics import validity
    >>> model = KMeans(2, n_init=1, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]])
    >>> validity([[2.0], [7.0]], model, target=model.predict([[0.0]])[0])
    0.5
    """
    points = as_rows(points)
    if len(points) == 0:
        return float("nan")
    answered = np.isfinite(points).all(axis=1)
    labels = partition_of(model).labels(np.ascontiguousarray(points[answered]))
    wanted = np.broadcast_to(np.asarray(target), len(points))[answered]
    return float((labels == wanted).sum() / len(points))


def intervention_cost(factual: Any, points: Any, weights: Any = None) -> Array:
    """Weighted squared distance of each move: the paper's D_w.

    Parameters
    ----------
    factual, points : array of shape (n, d)
        Rows before and after.
    weights : array of shape (d,), optional
        Feature weights, scaled to sum to 1; equal if left out.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from voicecf.diagnostics import intervention_cost
    >>> intervention_cost([[0.0, 0.0]], [[3.0, 1.0]], weights=[3, 1])
    array([7.])
    """
    moves = as_rows(points) - as_rows(factual)
    d = moves.shape[1]
    w = np.ones(d) if weights is None else np.asarray(weights, dtype=np.float64)
    return np.asarray(moves**2 @ (w / w.sum()))


def changed_features(factual: Any, points: Any, tolerance: Any = CHANGED) -> Ints:
    """Count the features that each answer changes.

    Parameters
    ----------
    factual, points : array of shape (n, d)
        Rows before and after.
    tolerance : float or array of shape (d,)
        A move no larger than this does not count as a change.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from voicecf.diagnostics import changed_features
    >>> changed_features([[0.0, 0.0]], [[3.0, 1e-12]])
    array([1])
    """
    return np.asarray((np.abs(as_rows(points) - as_rows(factual)) > tolerance).sum(axis=1))


def as_rows(points: Any) -> Array:
    """Return points as rows of doubles; one point is one row."""
    return np.atleast_2d(np.asarray(points, dtype=np.float64))


@dataclass(frozen=True)
class Evaluation:
    """Averages over n counterfactuals. Means are over the feasible ones; NaN if there are none.

    Attributes
    ----------
    n : int
        Number of answers that were asked for.
    n_feasible : int
        Number of answers that were found.
    cost : float
        Mean of D_w.
    changed : float
        Mean number of changed features.
    changed_share : float
        `changed` as a share of all features.
    r_star : float
        Mean number of features that were allowed to change: r* for shortest prefixes.
    r_star_over_d : float
        `r_star` as a share of all features.
    single_feature : float
        Share of all n answers for which one feature suffices.
    tau : float
        Mean directional tolerance; infinite if that of some answer is.
    """

    n: int
    n_feasible: int
    cost: float
    changed: float
    changed_share: float
    r_star: float
    r_star_over_d: float
    single_feature: float
    tau: float

    @property
    def feasibility(self) -> float:
        """Share of answers found."""
        return self.n_feasible / self.n if self.n else float("nan")

    @classmethod
    def of(cls, cf: Counterfactuals) -> Evaluation:
        """Evaluate the answers of an explainer.

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> from sklearn.datasets import load_iris
        >>> from voicecf import VoICE
        >>> from voicecf.diagnostics import Evaluation
        >>> X = load_iris().data
        >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
        >>> found = Evaluation.of(voice.explain(X, target="each", objective="prefix"))
        >>> found.feasibility, round(found.r_star, 2)
        (1.0, 2.49)
        """
        return evaluate(
            cf.outcome.rows.points[cf.row],
            cf.points,
            feasible=cf.feasible,
            weights=cf.outcome.weights,
            cardinality=cf.cardinality,
            tau=cf.tau,
        )


def evaluate(
    factual: Any,
    points: Any,
    *,
    feasible: Any = None,
    weights: Any = None,
    cardinality: Any = None,
    tau: Any = None,
) -> Evaluation:
    """Evaluate answers from any source.

    Parameters
    ----------
    factual, points : array of shape (n, d)
        Rows before and after.
    feasible : array of bool of shape (n,), optional
        Which answers count; those without NaN if left out.
    weights : array of shape (d,), optional
        Feature weights of the cost; equal if left out.
    cardinality : array of shape (n,), optional
        Number of features that were allowed to change; the changed ones if left out.
    tau : array of shape (n,), optional
        Directional tolerances.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> from voicecf.diagnostics import evaluate
    >>> found = evaluate([[0.0, 0.0], [0.0, 4.0]], [[2.0, 0.0], [float("nan")] * 2])
    >>> found.feasibility, found.cost, found.changed, found.single_feature
    (0.5, 2.0, 1.0, 0.5)
    """
    factual, points = as_rows(factual), as_rows(points)
    n, d = points.shape
    found = np.isfinite(points).all(axis=1)
    found = found if feasible is None else found & np.asarray(feasible, dtype=np.bool_)
    changed = changed_features(factual[found], points[found])
    allowed = changed if cardinality is None else np.asarray(cardinality)[found]
    return Evaluation(
        n=n,
        n_feasible=int(found.sum()),
        cost=_mean(intervention_cost(factual[found], points[found], weights)),
        changed=_mean(changed),
        changed_share=_mean(changed) / d,
        r_star=_mean(allowed),
        r_star_over_d=_mean(allowed) / d,
        single_feature=float((allowed == 1).sum() / n) if n else float("nan"),
        tau=_mean([] if tau is None else np.asarray(tau)[found]),
    )


def _mean(values: Any) -> float:
    return float(np.mean(values)) if len(values) else float("nan")


@dataclass(frozen=True)
class ContractionSummary:
    """How far each cell can be contracted towards its centroid without losing a member.

    Attributes
    ----------
    alpha : array of shape (k,)
        Largest score among the members: alpha*_t. NaN for a cluster without members.
    median_score : array of shape (k,)
        Median score of the members.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.diagnostics import ContractionSummary
    >>> ContractionSummary(np.array([0.9, 0.7]), np.array([0.5, 0.4])).minimum
    0.7
    """

    alpha: Array
    median_score: Array

    @property
    def minimum(self) -> float:
        """Least alpha*_t."""
        return float(np.nanmin(self.alpha))

    @property
    def median(self) -> float:
        """Median of alpha*_t over the clusters."""
        return float(np.nanmedian(self.alpha))

    @property
    def maximum(self) -> float:
        """Largest alpha*_t."""
        return float(np.nanmax(self.alpha))

    @property
    def score(self) -> float:
        """Median over the clusters of `median_score`: small if members lie near their centroids."""
        return float(np.nanmedian(self.median_score))


def contraction_summary(
    model: Any,
    X: Any,
    *,
    labels: Any = None,
    bounds: tuple[Any, Any] | None = None,
    floor: float = 0.0,
) -> ContractionSummary:
    """Summarise the point-wise contraction scores of a clustering's members.

    Parameters
    ----------
    model : estimator
        Fitted, with `cluster_centers_` and, if weighted, `feature_weights_`.
    X : array of shape (n, d)
        The data that was clustered.
    labels : array of shape (n,), optional
        Clusters of the rows; what the model predicts if left out.
    bounds : (lo, hi), optional
        Bounds that are contracted along with the cell. With the observed range as bounds, alpha is
        1 wherever a member has the smallest or largest value of a column.
    floor : float
        Constraints of the cell with an offset of at most this are left out. 0 leaves out coinciding
        centroids only, and does not depend on the scale of the weights.

    Returns
    -------
    ContractionSummary

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from voicecf.diagnostics import contraction_summary
    >>> X = [[0.0], [1.0], [8.0], [9.0]]
    >>> summary = contraction_summary(KMeans(2, n_init=1, random_state=0).fit(X), X)
    >>> summary.alpha
    array([0.125, 0.125])
    """
    X = as_rows(X)
    partition = partition_of(model)
    labels = partition.labels(X) if labels is None else np.asarray(labels)
    box = None
    if bounds is not None:
        lo, hi = (np.broadcast_to(np.asarray(side, np.float64), X.shape[1]) for side in bounds)
        box = lo, hi
    pieces, scores = partition.pieces_at(X, labels), np.empty(len(X))
    for p in np.unique(pieces).tolist():
        scores[pieces == p] = partition.piece(p).scores(X[pieces == p], box=box, floor=floor)
    alpha, median = np.full((2, partition.n_clusters), np.nan)
    for t in np.unique(labels):
        alpha[t], median[t] = scores[labels == t].max(), np.median(scores[labels == t])
    return ContractionSummary(alpha, median)


@dataclass(frozen=True)
class WeightConcentration:
    """How strongly the weights of a clustering are concentrated on few features.

    Attributes
    ----------
    max_weight : float
        Largest weight; weights sum to 1.
    effective : float
        Effective number of features, 1 / sum w^2: d for equal weights, 1 if one feature has
        all the weight.
    top2_mass : float
        Sum of the two largest weights.
    dominant : str
        The column with the most weight; the weights of its one-hot features are added up.
    kind : "feature", "dummy" or "block"
        Whether its weight lies on a feature of its own, on one dummy of a category, or on several.

    Examples
    --------
    >>> from voicecf.diagnostics import weight_concentration
    >>> weight_concentration([0.5, 0.25, 0.25], ["age", "income", "visits"]).dominant
    'age'
    """

    max_weight: float
    effective: float
    top2_mass: float
    dominant: str
    kind: Literal["feature", "dummy", "block"]

    @property
    def label(self) -> str:
        """The dominant column with its kind: "age", "job dummy" or "job block"."""
        return self.dominant if self.kind == "feature" else f"{self.dominant} {self.kind}"


def weight_concentration(
    weights: Any,
    names: Sequence[str] | None = None,
    blocks: Mapping[str, Iterable[int]] | None = None,
) -> WeightConcentration:
    """Measure how concentrated feature weights are, and on which column.

    Parameters
    ----------
    weights : array of shape (d,)
        Feature weights, none negative.
    names : sequence of d str, optional
        Names of the features; x0, x1, ... if left out.
    blocks : dict of str to list of int, optional
        For each category, the positions of its one-hot features.

    Returns
    -------
    WeightConcentration

    Examples
    --------
    >>> from voicecf.diagnostics import weight_concentration
    >>> found = weight_concentration([4, 3, 3], ["age", "job_a", "job_b"], {"job": [1, 2]})
    >>> found.max_weight, round(found.effective, 2), found.label
    (0.4, 2.94, 'job block')
    """
    w = np.asarray(weights, dtype=np.float64)
    if w.ndim != 1 or (w < 0).any() or not w.sum() > 0:
        raise DataError(
            "weights must be one number for each feature, none negative and not all zero."
        )
    w = w / w.sum()
    names = [f"x{i}" for i in range(len(w))] if names is None else [str(name) for name in names]
    columns = {name: list(positions) for name, positions in (blocks or {}).items()}
    taken = {i for positions in columns.values() for i in positions}
    singles = {name: [i] for i, name in enumerate(names) if i not in taken}
    every = columns | singles
    dominant = max(every, key=lambda name: w[every[name]].sum())  # the first of equals
    kind: Literal["feature", "dummy", "block"] = "feature"
    if dominant in columns:
        shares = w[columns[dominant]] / w[columns[dominant]].sum()
        kind = "block" if 1 / np.sum(shares**2) >= SEVERAL else "dummy"
    return WeightConcentration(
        max_weight=float(w.max()),
        effective=float(1 / np.sum(w**2)),
        top2_mass=float(np.sort(w)[-2:].sum()),
        dominant=dominant,
        kind=kind,
    )
