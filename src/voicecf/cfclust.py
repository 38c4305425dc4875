"""CFCLUST: the pairwise projection that VoICE is compared with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import ModelError, OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.explainer import Explainer
from voicecf.learned.fitting import Options, learn
from voicecf.rules.allowed import Allowed
from voicecf.rules.columns import columns_of
from voicecf.search.answering import measured, solve_pairs
from voicecf.search.answers import Answers
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status
from voicecf.table.space import Space


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
        learned = learn(X, self._own_model(X), Options())
        if learned.space.mixing is not None:
            raise ModelError(
                "CFCLUST projects what the model itself sees; a step that mixes columns (PCA, a "
                "selector) comes between that and the columns. Use VoICE."
            )
        weights = learned.clustering.weights
        if not np.allclose(weights, weights[0], rtol=1e-12, atol=0):
            raise ModelError("CFCLUST knows no feature weights; use VoICE for a weighted model.")
        self.learned_ = learned
        return self

    def explain(self, X: Any, target: Any = "nearest", *, immutable: Any = ()) -> Counterfactuals:
        """Project every row onto the bisector of its own and the target's centroid.

        Parameters and result as for `VoICE.explain`.
        """
        learned = self.learned_
        fixed = _fixed(learned.space, immutable)
        rows, source = learned.read(X)
        anything = Allowed.within(learned.space, learned.bounds)
        question = Question(learned, rows, source, anything, PAIRWISE)
        pairs = Pairs.of(target, source, learned.n_clusters)

        def project(question: Question, rows: Ints, targets: Ints) -> Answers:
            points, sources = question.points[rows], question.source[rows]
            return self._projected(points, sources, targets, fixed)

        answers, targets = solve_pairs(question, pairs, project)
        output = None
        if learned.space.steps is not None:
            output = learned.space.write(answers.points, rows, pairs.row)
        return Counterfactuals(measured(question, pairs.row, targets, answers, output))

    def _projected(self, points: Array, sources: Ints, targets: Ints, fixed: Mask) -> Answers:
        """Project points onto bisectors; coordinates that are fixed stay."""
        clustering = self.learned_.clustering
        centers = clustering.centers
        normal = centers[targets] - centers[sources]
        free = np.where(fixed, 0.0, normal)
        # On the bisector the target is half the normal away; epsilon takes off its share of that.
        short = np.einsum("ij,ij->i", normal, centers[targets] - points)
        short -= 0.5 * (1.0 - self.epsilon) * np.einsum("ij,ij->i", normal, normal)
        square = np.einsum("ij,ij->i", free, free)
        answers = Answers.blank(*points.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            answers.points[:] = points + (short / square)[:, None] * free
        answers.points[:, fixed] = points[:, fixed]
        answers.points[square == 0] = np.nan
        answers.status[:] = _judged(clustering, answers.points, targets)
        answers.rho[:] = _rho(clustering, points, answers.points, targets)
        answers.cardinality[:] = (~fixed).sum()
        answers.gap[:] = 0.0
        return answers


def _fixed(space: Space, immutable: Any) -> Mask:
    """Tell which coordinates keep their values: those that are asked to, and all but numbers."""
    columns = columns_of(space, immutable, "immutable")
    fixed = np.zeros(space.n_coordinates, dtype=np.bool_)
    for c, column in enumerate(space.columns):
        fixed[column.places] = c in columns or not column.free
    return fixed


def _judged(clustering: Clustering, points: Array, targets: Ints) -> Any:
    """Tell which points lie in their target's closed cell."""
    table = clustering.distances(points)
    own = table[np.arange(len(points)), targets]
    slack = TOLERANCE.pairwise * clustering.distances(clustering.centers).max()
    inside = own <= table.min(axis=1, initial=np.inf) + slack
    outcome = np.where(inside, Status.OPTIMAL, Status.MISSED)
    return np.where(np.isnan(own), Status.INFEASIBLE, outcome)


def _rho(clustering: Clustering, points: Array, answers: Array, targets: Ints) -> Array:
    """Return how many times as far each move may go before it leaves the target's cell."""
    rho = np.full(len(points), np.inf)
    for t in np.unique(targets):
        which = targets == t
        region = clustering.cell(int(t)).region()
        rho[which] = region.rho(points[which], answers[which])
    return rho
