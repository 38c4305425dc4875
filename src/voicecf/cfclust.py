"""CFCLUST: the pairwise projection that VoICE is compared with."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import ModelError, OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.centroids import Centroids
from voicecf.geometry.partition import Piece
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.explainer import Explainer
from voicecf.learned.fitting import Options, learn
from voicecf.rules.allowed import NO_RULES, Allowed
from voicecf.rules.rules import Rules
from voicecf.search.answering import measured, solve_pairs
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import PAIRWISE
from voicecf.solver.projection import Projection
from voicecf.status import Status
from voicecf.table.space import Space


class CFCLUST(Explainer):
    """Pairwise counterfactuals for k-means (Vardakas, Karra, Pitoura and Likas, 2025).

    A row is projected onto the bisector of its own and the target's centroid, shifted towards the
    target by `epsilon`. Other clusters are ignored, so that with more than two clusters the answer
    may lie in a third one; its status is then `Status.MISSED`. Answers have no certificate.

    Parameters
    ----------
    model : estimator
        An unweighted nearest-centroid model, or a Pipeline that ends in one. If it is not fitted,
        `fit` fits a copy of it.
    epsilon : float in [0, 1]
        How far beyond the bisector the answer lies: 0 is on the bisector, 1 on the parallel plane
        through the target's centroid.

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
        """Learn the columns and the centroids; fit a copy of the model if it is not fitted.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The data that was clustered.
        y : ignored

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> from voicecf import CFCLUST
        >>> X = [[0.0], [1.0], [8.0], [9.0]]
        >>> cfclust = CFCLUST(KMeans(2, n_init=1, random_state=0)).fit(X)
        >>> len(cfclust.explain(X))
        4
        """
        if not (isinstance(self.epsilon, (int, float)) and 0 <= self.epsilon <= 1):
            raise OptionError(f"epsilon={self.epsilon!r} is not allowed; use a number in [0, 1].")
        learned = learn(X, self._own_model(X), Options())
        if not isinstance(learned.partition, Centroids):
            raise ModelError("CFCLUST needs a model with centroids, such as KMeans; use VoICE.")
        if learned.space.mixing is not None:
            raise ModelError(
                "CFCLUST does not work with a step that mixes columns (PCA, a feature selector); "
                "use VoICE for this pipeline."
            )
        weights = learned.partition.weights
        if not np.allclose(weights, weights[0], rtol=1e-12, atol=0):
            raise ModelError(
                "CFCLUST does not work with feature weights; use VoICE for a weighted model."
            )
        self.learned_ = learned
        return self

    def explain(
        self, X: Any, target: Any = "nearest", *, immutable: Any = None, mutable: Any = None
    ) -> Counterfactuals:
        """Project every row onto the bisector of its own and the target's centroid.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        target : int, array of int, "nearest" or "each"
            See `VoICE.explain`.
        immutable : column or list of columns, optional
            Columns that may not change. Categories never change.
        mutable : column or list of columns, optional
            The only columns that may change.

        Returns
        -------
        Counterfactuals

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> from voicecf import CFCLUST
        >>> X = [[0.0], [1.0], [8.0], [9.0]]
        >>> cfclust = CFCLUST(KMeans(2, n_init=1, random_state=0)).fit(X)
        >>> cfclust.explain([[0.0]]).points
        array([[4.5]])
        """
        learned = self.learned_
        fixed = _fixed_coordinates(learned.space, Rules(immutable, mutable))
        rows, source = learned.read(X)
        no_rules = Allowed.within(learned.space, learned.bounds, NO_RULES)
        question = Question(learned, rows, source, no_rules, PAIRWISE)
        pairs = Pairs.of(target, source, learned)

        def project(question: Question, rows: Ints, targets: Ints) -> Projection:
            points, sources = question.points[rows], question.source[rows]
            return self._projected(points, sources, targets, fixed)

        answers, targets = solve_pairs(question, pairs, project)
        output = None
        if learned.space.steps is not None:
            output = learned.space.write(answers.points, rows, pairs.row)
        return Counterfactuals(measured(question, pairs.row, targets, answers, output))

    def _projected(self, points: Array, sources: Ints, targets: Ints, fixed: Mask) -> Projection:
        """Project points onto shifted bisectors; fixed coordinates keep their values."""
        partition = self.learned_.partition
        pieces = [partition.piece(t) for t in range(partition.n_clusters)]
        tolerance = TOLERANCE.pairwise * max(piece.offsets.max() for piece in pieces)
        answers = Projection.unresolved(*points.shape)
        for t in np.unique(targets).tolist():
            which = np.flatnonzero(targets == t)
            moved = self._onto_bisectors(pieces[t], points[which], sources[which], fixed)
            answers.points[which] = moved
            answers.status[which] = _statuses(pieces[t], moved, tolerance)
            answers.rho[which] = pieces[t].region().rho(points[which], moved)
        answers.cardinality[:] = (~fixed).sum()
        answers.gap[:] = 0.0
        return answers

    def _onto_bisectors(self, piece: Piece, points: Array, sources: Ints, fixed: Mask) -> Array:
        """Move points along the free coordinates until g . (z - m) = (1 - epsilon) h.

        g and h are those of the constraint of the target's cell against the source.
        """
        against = np.searchsorted(piece.rivals, sources)
        normal = piece.normals[against]
        direction = np.where(fixed, 0.0, normal)
        excess = np.einsum("ij,ij->i", normal, points - piece.center)
        excess -= (1.0 - self.epsilon) * piece.offsets[against]
        square = np.einsum("ij,ij->i", direction, direction)
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = points - (excess / square)[:, None] * direction
        moved[:, fixed] = points[:, fixed]
        moved[square == 0] = np.nan
        return np.asarray(moved)


def _fixed_coordinates(space: Space, rules: Rules) -> Mask:
    """Tell which coordinates keep their values: locked columns and all that take no number."""
    columns = rules.locked(space)
    fixed = np.zeros(space.n_coordinates, dtype=np.bool_)
    for c, column in enumerate(space.columns):
        fixed[column.places] = c in columns or not column.free or column.stays_missing
    return fixed


def _statuses(piece: Piece, points: Array, tolerance: float) -> Any:
    """Return the status of each point: in its target's closed cell, outside it, or none (NaN)."""
    inside = piece.slack(points).min(axis=1) >= -tolerance
    status = np.where(inside, Status.OPTIMAL, Status.MISSED)
    return np.where(np.isnan(points).any(axis=1), Status.INFEASIBLE, status)
