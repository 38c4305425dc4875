"""How often pairwise projections miss their target, and by how much.

The pairwise projection (CFCLUST's) takes only the row's own and the target's centroid into account,
so it may end in a third cluster. One pass over the scores of all rows finds these cases; a
projection onto the whole cell gives the cost of repairing them.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from operator import add
from typing import Any

import numpy as np

from voicecf.diagnostics.measures import as_rows
from voicecf.errors import DataError, ModelError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.centroids import Centroids
from voicecf.geometry.models import partition_of
from voicecf.parallel import in_parallel
from voicecf.solver.projection import project
from voicecf.table.frames import number_array

# A point is still valid if another centroid is nearer by at most this, in squared distance.
SLACK = 1e-8
# Number of rows whose pairs are in memory at once.
BLOCK = 1 << 16


def repair_cost(pairwise: Any, valid: Any) -> Array:
    """Squared distance from pairwise answers to the valid ones for the same rows and targets.

    Parameters
    ----------
    pairwise, valid : array of shape (n, d)

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from voicecf.diagnostics import repair_cost
    >>> repair_cost([[1.0, 0.0]], [[1.0, 2.0]])
    array([4.])
    """
    return np.asarray(((as_rows(valid) - as_rows(pairwise)) ** 2).sum(axis=1))


def relative_underestimation(pairwise_cost: Any, full_cost: Any) -> Array:
    """Share of the true cost by which a pairwise answer underestimates it; 0 if that cost is 0.

    Parameters
    ----------
    pairwise_cost, full_cost : array of shape (n,)
        Cost of the pairwise answer, and of the one that lands in the target.

    Returns
    -------
    array of shape (n,)

    Examples
    --------
    >>> from voicecf.diagnostics import relative_underestimation
    >>> relative_underestimation([3.0, 0.0], [4.0, 0.0])
    array([0.25, 0.  ])
    """
    pairwise, full = (np.asarray(c, dtype=np.float64) for c in (pairwise_cost, full_cost))
    missing = full - pairwise
    return np.divide(missing, full, out=np.zeros_like(missing), where=full > 0)


@dataclass(frozen=True)
class PairwiseComparison:
    """How often pairwise projections end in their target, and the cost of repairing the others.

    Comparisons can be added, to pool several models or datasets.

    Attributes
    ----------
    comparisons : int
        Number of pairs of a row and another cluster.
    valid : int
        Number of pairwise points that lie in their target.
    repaired : int
        Number of invalid ones whose projection onto the whole cell lies in the target.
    repair : float
        Sum of the squared distances from the invalid pairwise points to that projection.
    underestimation : float
        Sum of the shares of the true cost that the invalid pairwise points underestimate.

    Examples
    --------
    >>> from voicecf.diagnostics import PairwiseComparison
    >>> both = PairwiseComparison(10, 8, 2) + PairwiseComparison(30, 27, 3)
    >>> both.comparisons, both.valid
    (40, 35)
    """

    comparisons: int = 0
    valid: int = 0
    repaired: int = 0
    repair: float = 0.0
    underestimation: float = 0.0

    def __add__(self, other: PairwiseComparison) -> PairwiseComparison:
        return PairwiseComparison(*map(add, astuple(self), astuple(other)))

    @property
    def invalid(self) -> int:
        """Number of pairwise points that lie in a third cluster."""
        return self.comparisons - self.valid

    @property
    def validity(self) -> float:
        """Share of pairwise points that are valid."""
        return self.valid / self.comparisons if self.comparisons else float("nan")

    @property
    def exact_validity(self) -> float:
        """Share of projections onto the whole cell that are valid."""
        found = self.valid + self.repaired
        return found / self.comparisons if self.comparisons else float("nan")

    @property
    def repair_cost(self) -> float:
        """Mean repair cost of the invalid points; 0 if there are none."""
        return self.repair / self.invalid if self.invalid else 0.0

    @property
    def relative_underestimation(self) -> float:
        """Mean share of the true cost that invalid points underestimate; 0 if there are none."""
        return self.underestimation / self.invalid if self.invalid else 0.0


def compare_pairwise(
    model: Any, X: Any, *, labels: Any = None, slack: float = SLACK, block: int = BLOCK
) -> PairwiseComparison:
    """Compare the pairwise projection of every row to every other cluster with the full one.

    The pairwise projection (CFCLUST's) goes to the bisector of the row's own and the target's
    centroid. With more than two clusters it may end in a third one; only these cases are projected
    onto the whole cell.

    Parameters
    ----------
    model : estimator
        Fitted, with `cluster_centers_`; feature weights are ignored.
    X : array of shape (n, d)
        Rows in the model's coordinates.
    labels : array of shape (n,), optional
        Clusters of the rows; what the model predicts if left out.
    slack : float
        A point is valid if its squared distance to the target's centroid is at most every other
        one plus this.
    block : int
        Number of rows whose pairs are in memory at once; the result does not depend on it, up to
        rounding.

    Returns
    -------
    PairwiseComparison

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_wine
    >>> from voicecf.diagnostics import compare_pairwise
    >>> X = load_wine().data
    >>> found = compare_pairwise(KMeans(3, n_init=10, random_state=0).fit(X), X)
    >>> found.comparisons, found.validity < 1, found.exact_validity
    (356, True, 1.0)
    """
    X = np.ascontiguousarray(number_array(X), dtype=np.float64)
    centroids = partition_of(model)
    if not isinstance(centroids, Centroids):
        raise ModelError("compare_pairwise needs a model with centroids, such as KMeans.")
    labels = centroids.labels(X) if labels is None else labels
    labels = np.ascontiguousarray(labels, dtype=np.int64)
    if labels.shape != (len(X),) or not np.isin(labels, np.arange(len(centroids.centers))).all():
        raise DataError("labels must have a cluster of the model for each row of X.")
    pairs = _Pairs(np.asarray(centroids.centers), slack)
    unweighted, k = Centroids.from_centers(centroids.centers), len(pairs.centers)
    found = PairwiseComparison()
    for first in range(0, len(X), block):
        missed = pairs.misses(X[first : first + block], labels[first : first + block])
        n = len(missed) * (k - 1)
        of_block = PairwiseComparison(comparisons=n, valid=n)
        for t in np.flatnonzero(missed.any(axis=0)).tolist():
            rows = first + np.flatnonzero(missed[:, t])
            answers = project(X, unweighted.piece(t).region(), rows=rows, certify=False).points
            moves = pairs.moves(X[rows], labels[rows], t)
            costs = (moves**2).sum(axis=1), ((answers - X[rows]) ** 2).sum(axis=1)
            of_block += PairwiseComparison(
                0, -len(rows), int(pairs.holds(answers, t).sum()),
                float(repair_cost(X[rows] + moves, answers).sum()),
                float(relative_underestimation(*costs).sum()),
            )  # fmt: skip
        found += of_block
    return found


class _Pairs:
    """Pairwise points of rows, by their scores: |m_j|^2 - 2 a . m_j, around the mean centroid.

    With s the row's own cluster and t the target, the pairwise point is a + c (m_t - m_s), where
    both scores are equal.
    """

    def __init__(self, centers: Array, slack: float) -> None:
        self.origin, self.slack = centers.mean(axis=0), slack
        self.centers = centers - self.origin
        self.gram = np.einsum("id,jd->ij", self.centers, self.centers)
        squares = self.gram.diagonal()
        self.apart = squares[:, None] - 2.0 * self.gram + squares

    def scores(self, X: Array) -> Array:
        """Return the score of each centroid for each row; the nearest one has the lowest."""
        products = np.einsum("nd,jd->nj", X - self.origin, self.centers)
        return np.asarray(self.gram.diagonal() - 2.0 * products)

    def steps(self, scores: Array, labels: Ints, t: int) -> Array:
        """Return the multiples c of m_t - m_s; 0 where the centroids coincide."""
        ahead, apart = scores[:, t] - scores[np.arange(len(scores)), labels], self.apart[labels, t]
        steps = np.zeros(len(scores))
        np.divide(ahead, 2.0 * apart, out=steps, where=apart > 0.0)
        return steps

    def moves(self, X: Array, labels: Ints, t: int) -> Array:
        """Return the moves to the pairwise points for a target."""
        steps = self.steps(self.scores(X), labels, t)
        return np.asarray(steps[:, None] * (self.centers[t] - self.centers[labels]))

    def misses(self, X: Array, labels: Ints) -> Mask:
        """Return for each row and target whether a third centroid is nearer to the point."""
        scores = self.scores(X)
        missed = np.zeros(scores.shape, dtype=np.bool_)

        def look(t: int, _: int) -> None:
            steps = self.steps(scores, labels, t)
            there = scores - 2.0 * steps[:, None] * (self.gram[t] - self.gram[labels])
            own = there[:, t].copy()
            there[:, t] = there[np.arange(len(there)), labels] = np.inf
            missed[:, t] = (own > there.min(axis=1) + self.slack) & (labels != t)

        in_parallel(look, len(self.centers), chunk=1)
        return missed

    def holds(self, points: Array, t: int) -> Mask:
        """Return which points are in a cluster, up to the slack."""
        scores = self.scores(points)
        return np.asarray(scores[:, t] <= scores.min(axis=1) + self.slack)
