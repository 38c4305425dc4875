"""What every explainer does: read model, data and question, and hand over the answer."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from voicecf._compile import in_parallel
from voicecf.clustering import Clustering, fitted
from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, ModelError, TargetError
from voicecf.region import Array
from voicecf.rules import Rules
from voicecf.search import Answers, Rows
from voicecf.space import Space, kind_of
from voicecf.status import Status
from voicecf.tolerance import TOLERANCE


@dataclass(frozen=True)
class Question:
    """Rows to explain, and what is asked of them.

    Attributes
    ----------
    points : array of shape (n, d)
    source : array of shape (n,)
        The cluster that each row is in.
    rules : Rules
        What may change, and how far.
    objective : str
        What the answer is the best of.
    """

    points: Array
    source: Rows
    rules: Rules
    objective: str = "cost"


class Explainer(BaseEstimator):  # type: ignore[misc]
    """Base of the explainers; a subclass answers given pairs of row and target.

    It provides `_answer(question, rows, targets)` and `_multipliers(question, rows, targets,
    cardinality)`, and sets `alpha_` and `spread_` when it is fitted.
    """

    model: Any
    clustering_: Clustering
    space_: Space
    alpha_: Array
    spread_: Array

    def _read_model(self, X: Any) -> Array:
        """Learn clustering and columns; the data as coordinates."""
        space = Space.of(X)
        if len(space.read(X)) == 0:  # before the model sees it: our words are clearer
            raise DataError("X has no rows; bounds and contraction are learned from data.")
        clustering = Clustering.of(fitted(self.model, X))
        known = getattr(clustering.model, "feature_names_in_", None)
        names = list(known) if space.named and known is not None else space.names
        self.__dict__.pop("_kept", None)
        self.clustering_ = clustering
        self.space_ = Space(names, space.named, clustering.dtype)
        width = clustering.centers.shape[1]
        if len(names) != width:
            raise DataError(f"X has {len(names)} columns; the model was fitted on {width}.")
        points = self.space_.read(X).astype(np.float64)
        self._check_nearest(points)
        return points

    def _check_nearest(self, points: Array) -> None:
        nearest, doubtful = self.clustering_.nearest(points)
        off = (self.clustering_.labels(points) != nearest) & ~doubtful
        if off.any():
            raise ModelError(
                f"{type(self.model).__name__}.predict puts {off.sum()} of {len(off)} rows into "
                "another cluster than that of the nearest centroid; only nearest-centroid models "
                "have Voronoi cells. Use KMeans or SHARK."
            )

    def _fitted_space(self) -> Space:
        if not hasattr(self, "space_"):
            name = type(self).__name__
            raise NotFittedError(f"this {name} is not fitted yet; call {name}(model).fit(X) first.")
        return self.space_

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self._fitted_space().names)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns."""
        return np.asarray(self._fitted_space().names, dtype=object)

    def predict(self, X: Any) -> Rows:
        """Assign rows to clusters, as the model's own predict does."""
        points = self._fitted_space().read(X).astype(np.float64, copy=False)
        return self.clustering_.labels(points)

    def _explain(
        self, X: Any, target: Any, rules: Rules, objective: str = "cost", deepen: bool = False
    ) -> Counterfactuals:
        given = self._fitted_space().read(X)
        points = given.astype(np.float64, copy=False)
        source = self.clustering_.labels(points)
        question = Question(points, source, rules, objective)
        k = self.clustering_.n_clusters
        if isinstance(target, str) and target in ("nearest", "each"):
            if target == "nearest":
                rows = np.arange(len(points))
                answers, targets = self._nearest(question)
            else:
                rows, targets = every_other(source, k)
                answers = self._answer(question, rows, targets)
        else:
            rows = np.arange(len(points))
            targets = check_target(target, len(points), k)
            answers = self._unless_there(question, targets, deepen)
        return self._result(X, given, question, rows, targets, answers)

    def _unless_there(self, question: Question, targets: Rows, deepen: bool) -> Answers:
        """Answer rows that are not in their target yet; leave the others where they are."""
        points, there = question.points, question.source == targets
        if deepen or not there.any():
            answers = self._answer(question, np.arange(len(points)), targets)
        else:
            away = np.flatnonzero(~there)
            answers = Answers.blank(*points.shape)
            answers.put(away, self._answer(question, away, targets[away]))
            answers.points[there] = points[there]
            answers.gap[there] = 0.0
        if there.any():
            still = there & (answers.points == points).all(axis=1)
            answers.status[still] = Status.ALREADY
            answers.reach[still] = np.inf
            answers.cardinality[still] = 0
        return answers

    def _nearest(self, question: Question) -> tuple[Answers, Rows]:
        """Answer every pair and keep the best of each row; ties go to the lower cluster."""
        rows, targets = every_other(question.source, self.clustering_.n_clusters)
        answers = self._answer(question, rows, targets)
        _, energy, _ = self._measure(question.points, rows, answers.points)
        failed = answers.status != Status.OPTIMAL
        length = answers.cardinality if question.objective == "prefix" else np.zeros(len(rows))
        order = np.lexsort((targets, energy, length, failed, rows))
        best = order[:: self.clustering_.n_clusters - 1]
        kept = Answers.blank(*question.points.shape)
        kept.put(slice(None), answers, best)
        return kept, targets[best]

    def _measure(self, points: Array, rows: Rows, answers: Array) -> tuple[Array, Array, Rows]:
        """Cost in the weights, energy in the metric, number of changed columns."""
        from voicecf import _cells

        n = len(rows)
        cost, energy, changed = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        weights = self.clustering_.weights
        metric = weights + getattr(self, "delta", 0.0)
        least = TOLERANCE.changed * self.spread_
        in_parallel(
            lambda a, b: _cells.measure_chunk(
                a, b, rows, points, answers, weights, metric, least, cost, energy, changed
            ),
            n,
        )
        return cost, energy, changed

    def _result(
        self, X: Any, given: Any, question: Question, rows: Rows, targets: Rows, answers: Answers
    ) -> Counterfactuals:
        answered = answers.points.astype(given.dtype, copy=False)
        cost, energy, changed = self._measure(
            question.points, rows, answered.astype(np.float64, copy=False)
        )
        np.copyto(energy, 1.0, where=~(energy > 0))
        gap = answers.gap / energy
        gap *= 2.0
        return Counterfactuals(
            space=self.space_,
            kind=kind_of(X),
            factual=given,
            weights=self.clustering_.weights,
            least=TOLERANCE.changed * self.spread_,
            row=rows,
            points=answered,
            source=question.source[rows],
            target=targets,
            status=answers.status,
            cost=cost,
            n_changed=changed,
            cardinality=answers.cardinality,
            rho=answers.reach,
            alpha=self.alpha_[targets],
            gap=gap,
            certify=Certifier(copy(self), question),
        )

    def _answer(self, question: Question, rows: Rows, targets: Rows) -> Answers:
        raise NotImplementedError

    def _multipliers(
        self, question: Question, rows: Rows, targets: Rows, cardinality: Rows
    ) -> Array:
        raise NotImplementedError


@dataclass(frozen=True)
class Certifier:
    """Solves again, for the multipliers; a value, so that answers can be pickled."""

    explainer: Explainer
    question: Question

    def __call__(self, rows: Rows, targets: Rows, cardinality: Rows) -> Array:
        """Return multipliers, a column a cluster."""
        return self.explainer._multipliers(self.question, rows, targets, cardinality)


def every_other(source: Rows, k: int) -> tuple[Rows, Rows]:
    """Pair each row with every cluster but its own, ascending."""
    others = np.tile(np.arange(k - 1), (len(source), 1))
    others += others >= source[:, None]
    return np.repeat(np.arange(len(source)), k - 1), others.ravel()


def check_target(target: Any, n: int, k: int) -> Rows:
    """Return one cluster a row, or raise with the clusters there are."""
    try:
        given = np.asarray(target)
    except ValueError:
        given = np.empty(0)
    if n == 0 and given.size == 0 and given.ndim == 1:
        return np.empty(0, dtype=np.int64)
    if given.dtype.kind not in "iu" or given.shape not in ((), (n,)):
        raise TargetError(
            f"target={str(target)[:60]!r} is not known; use a cluster (0 to {k - 1}), an array of "
            f'{n} of them, "nearest" or "each".'
        )
    for wrong in np.atleast_1d(given)[(np.atleast_1d(given) < 0) | (np.atleast_1d(given) >= k)]:
        raise TargetError(
            f"target={wrong} names no cluster: this model has 0 to {k - 1}. See voice.predict(X)."
        )
    return np.broadcast_to(given.astype(np.int64), (n,)).copy()
