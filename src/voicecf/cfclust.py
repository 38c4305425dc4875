"""CFCLUST: the pairwise projection that VoICE is compared with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import ModelError, OptionError
from voicecf.explainer import Explainer, Question
from voicecf.geometry.region import Array
from voicecf.search.aims import Answers, Rows
from voicecf.status import Status
from voicecf.table.space import Given

# How much further than the nearest centroid the target's may be, in units of their distances,
# before a point on the boundary counts as outside.
BOUNDARY = 1e-9


class CFCLUST(Explainer):
    """Pairwise counterfactuals for k-means (Vardakas, Karra, Pitoura and Likas, 2025).

    A row is projected onto the bisector of its own and the target's centroid, moved towards the
    target by `epsilon`; other clusters are not looked at. So with more than two clusters the answer
    may lie in a third: its status is then `Status.MISSED`.

    Parameters
    ----------
    model : estimator
        An unweighted nearest-centroid model; fitted, or `fit` fits a copy of it.
    epsilon : float in [0, 1]
        How far beyond the bisector the answer lies: 0 on it, 1 on the parallel plane through the
        target's centroid.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from voicecf import CFCLUST
    >>> X = load_iris().data
    >>> cf = CFCLUST(KMeans(3, n_init=10, random_state=0)).fit(X).explain(X, target="each")
    >>> int((~cf.feasible).sum()) > 0
    True
    """

    def __init__(self, model: Any, *, epsilon: float = 0.0) -> None:
        self.model = model
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any = None) -> Self:
        """Read the model and the columns; fits a copy of the model unless it is fitted."""
        if not (isinstance(self.epsilon, (int, float)) and 0 <= self.epsilon <= 1):
            raise OptionError(f"epsilon={self.epsilon!r} must be a number in [0, 1].")
        self._read_model(X, self._own_model(X))
        if self.space_.mixing is not None:
            raise ModelError(
                "CFCLUST projects what the model itself sees; a step that mixes columns (PCA, a "
                "selector) comes between that and the columns. Use VoICE."
            )
        weights = self.clustering_.weights
        if not np.allclose(weights, weights[0], rtol=1e-12, atol=0):
            raise ModelError("CFCLUST knows no feature weights; use VoICE for a weighted model.")
        self.alpha_ = np.ones(self.clustering_.n_clusters)
        return self

    def explain(self, X: Any, target: Any = "nearest", *, immutable: Any = ()) -> Counterfactuals:
        """Project every row onto the bisector of its own and the target's centroid.

        Parameters and result as for `VoICE.explain`.
        """
        whole = np.full(len(self._fitted_space().names), np.inf)
        return self._explain(self._plain_question(X, -whole, whole, immutable), target)

    def _settle(
        self, question: Question, rows: Rows, targets: Rows, answers: Answers
    ) -> Given | None:
        """Write answers in the user's columns, wherever the pipeline sees them."""
        return self.space_.write(answers.points, question.given, rows)

    def _answer(self, question: Question, rows: Rows, targets: Rows) -> Answers:
        points, centers = question.points[rows], self.clustering_.centers
        normal = centers[targets] - centers[question.source[rows]]
        free = np.where(question.box.immutable, 0.0, normal)
        # On the bisector the target is half the normal away; epsilon takes off its share of that.
        short = np.einsum("ij,ij->i", normal, centers[targets] - points)
        short -= 0.5 * (1.0 - self.epsilon) * np.einsum("ij,ij->i", normal, normal)
        square = np.einsum("ij,ij->i", free, free)
        answers = Answers.blank(*points.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            answers.points[:] = points + (short / square)[:, None] * free
        answers.points[:, question.box.immutable] = points[:, question.box.immutable]
        answers.points[square == 0] = np.nan
        answers.status[:] = self._judge(answers.points, targets)
        answers.reach[:] = self._reach(points, answers.points, targets)
        answers.cardinality[:] = (~question.box.immutable).sum()
        answers.gap[:] = 0.0
        return answers

    def _judge(self, points: Array, targets: Rows) -> Any:
        """Tell which points lie in their target's closed cell."""
        table = self.clustering_.distances(points)
        own = table[np.arange(len(points)), targets]
        slack = BOUNDARY * self.clustering_.distances(self.clustering_.centers).max()
        inside = own <= table.min(axis=1, initial=np.inf) + slack
        outcome = np.where(inside, Status.OPTIMAL, Status.MISSED)
        return np.where(np.isnan(own), Status.INFEASIBLE, outcome)

    def _reach(self, points: Array, answers: Array, targets: Rows) -> Array:
        """How many times as far the move may go before it leaves the target's cell."""
        reach = np.full(len(points), np.inf)
        for t in np.unique(targets):
            cell, which = self.clustering_.cell(int(t)), targets == t
            rise = (answers[which] - points[which]) @ cell.rows.T
            room = cell.offsets - (points[which] - cell.center) @ cell.rows.T
            with np.errstate(divide="ignore", invalid="ignore"):
                limits = np.where(rise > 0, room / rise, np.inf)
            reach[which] = np.maximum(limits.min(axis=1, initial=np.inf), 1.0)
        return reach

    def _multipliers(
        self, question: Question, rows: Rows, targets: Rows, cardinality: Rows
    ) -> Array:
        """Return NaN: a pairwise answer has no certificate."""
        return np.full((len(rows), self.clustering_.n_clusters), np.nan)
