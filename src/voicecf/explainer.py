"""What every explainer does: read model, data and question, and hand over the answer."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from voicecf import _core
from voicecf.blocks import Stream
from voicecf.box import Box
from voicecf.choices import Choices
from voicecf.clustering import Clustering, divided, own_model
from voicecf.constraints import Constraint, pull_back
from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, ModelError, TargetError
from voicecf.learning import Givens
from voicecf.parallel import in_parallel
from voicecf.pullback import origins
from voicecf.region import Array
from voicecf.rules import Rules
from voicecf.saving import LIMIT, load, save
from voicecf.search import Answers, Rows
from voicecf.space import Given, Space
from voicecf.status import Status
from voicecf.summing import like
from voicecf.tolerance import TOLERANCE

# By how much the guard grows, turn by turn, where a pipeline sees an answer outside its target.
CAUTION = (8.0, 64.0, 512.0, 4096.0)


@dataclass(frozen=True)
class Question:
    """Rows to explain, and what is asked of them.

    Attributes
    ----------
    points : array of shape (n, d)
        Coordinates.
    source : array of shape (n,)
        The cluster that each row is in.
    box : Box
        What may change, and how far, coordinate by coordinate.
    given : Given
        The rows as they came.
    objective : str
        What the answer is the best of.
    bounds : pair of arrays
        Of the columns, in the user's units.
    caution : float
        Factor on the guard against rounding.
    terms : Terms, optional
        What rules ask beyond a box.
    """

    points: Array
    source: Rows
    box: Box
    given: Given
    objective: str = "cost"
    bounds: tuple[Array, Array] | None = None
    caution: float = 1.0
    terms: Terms | None = None

    @property
    def grids(self) -> Any:
        """Values that the columns keep to, where they do."""
        return None if self.terms is None else self.terms.choices.grids


@dataclass(frozen=True)
class Terms:
    """What rules ask beyond a box.

    Attributes
    ----------
    rules : Rules
        The user's words.
    choices : Choices
        What each row may choose.
    constraints : tuple of Constraint
        Rules between columns, in the user's units, and
    rows, offsets : array of shape (m, d), (m,)
        the same in coordinates.
    factors : array of shape (d,)
        Costs, a factor a coordinate.
    limit : int
        Most boxes to look at for a row.
    """

    rules: Rules
    choices: Choices
    constraints: tuple[Constraint, ...]
    rows: Array
    offsets: Array
    factors: Array
    limit: int

    @classmethod
    def of(
        cls, space: Space, rules: Rules, given: Given, lo: Array, hi: Array, limit: int
    ) -> Terms:
        """Say rules for some rows in coordinates; `lo` and `hi` hold where they say nothing."""
        rules.check(space)
        constraints = rules.linear(space)
        return cls(
            rules,
            Choices.of(space, rules, given, lo, hi),
            constraints,
            *pull_back(constraints, space),
            rules.factors(space),
            limit,
        )


class Explainer(BaseEstimator):  # type: ignore[misc]
    """Base of the explainers; a subclass answers given pairs of row and target.

    It provides `_answer(question, rows, targets)` and `_multipliers(question, rows, targets,
    cardinality)`, and sets `alpha_` and `spread_` when it is fitted.
    """

    model: Any
    model_: Any
    clustering_: Clustering
    space_: Space
    weights_: Array
    origins_: Array
    alpha_: Array
    spread_: Array

    def _own_model(self, X: Any) -> Any:
        """Return the explainer's own copy of the model, fitted on X unless it came fitted."""
        self._check_table(X)
        return own_model(self.model, lambda model: model.fit(X))

    def _read_model(self, X: Any, model: Any, categories: Any = None) -> Givens:
        """Learn clustering and columns; the data as coordinates and as the model sees them."""
        stream = X if isinstance(X, Stream) else Stream.table(X)
        self.model_ = model
        steps, model = divided(model)
        clustering = Clustering.of(model)
        known = getattr(model, "feature_names_in_", None)
        space = Space.of(steps, stream, clustering.dtype, categories, known)
        self.__dict__.pop("_kept", None)
        self.clustering_, self.space_ = clustering, space
        self.weights_, self.origins_ = clustering.weights, clustering.centers
        data = Givens(space, stream)
        middle = self._survey(data)
        if space.mixing is not None:
            self.weights_ = np.full(space.n_coordinates, 1.0 / space.n_coordinates)
            self.origins_ = origins(space.mixing, clustering.centers, middle)
        return data

    def _check_table(self, X: Any) -> None:
        """Refuse what cannot be read before the model sees it: our words are clearer."""
        if not isinstance(self.model, Pipeline):
            Space.of(None, X)
        if Stream.table(X).n_rows == 0:
            raise DataError("X has no rows; bounds and contraction are learned from data.")

    def _survey(self, data: Givens) -> Array:
        """Check all rows, learn how far they spread, and return their mean."""
        low, high, off, total = np.inf, -np.inf, 0, None
        for given in data:
            width, wanted = given.seen.shape[1], self.clustering_.centers.shape[1]
            if width != wanted:
                raise DataError(f"X has {width} columns; the model was fitted on {wanted}.")
            nearest, doubtful = self.clustering_.nearest(given.seen)
            off += int(((self._labels(given) != nearest) & ~doubtful).sum())
            low = np.minimum(low, given.points.min(axis=0))
            high = np.maximum(high, given.points.max(axis=0))
            total = total or like(given.points, data.n_rows)
            total.add(given.points)
        if off:
            raise ModelError(
                f"{type(self.clustering_.model).__name__}.predict puts {off} of {data.n_rows} "
                "rows into another cluster than that of the nearest centroid; only "
                "nearest-centroid models have Voronoi cells. Use KMeans or SHARK."
            )
        assert total is not None
        self.spread_ = np.asarray(high - low)
        return np.asarray(total.total() / data.n_rows)

    def _labels(self, given: Given) -> Rows:
        """Assign rows as the model's own predict does, of what its own steps hand to it."""
        model = self.clustering_.model
        if given.raw is None or not hasattr(model, "predict"):
            return self.clustering_.labels(given.seen)
        return np.asarray(model.predict(given.raw), dtype=np.int64)

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
        return self._labels(self._fitted_space().read(X))

    def _box(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Turn bounds of columns into a box of coordinates."""
        return self.space_.box(lo, hi)

    def save(self, path: Any) -> None:
        """Write this explainer to one plain file, without pickle; see `voicecf.saving.save`."""
        save(self, path)

    @classmethod
    def load(cls, path: Any, *, limit: int = LIMIT) -> Self:
        """Read an explainer that was saved; no code in the file is run. See `voicecf.load`."""
        return load(path, limit=limit, expected=cls)

    def _plain_question(
        self, X: Any, lo: Array, hi: Array, immutable: Any = (), bounds: Any = None
    ) -> Question:
        """Read rows and the plainest of rules: a box, and columns that keep their values."""
        space = self._fitted_space()
        said = Box.read(space.names, lo, hi, immutable, bounds)
        fixed = said.immutable
        if not space.is_plain:
            fixed = np.zeros(space.n_coordinates, dtype=np.bool_)
            for column, still in zip(space.columns, said.immutable, strict=True):
                fixed[column.places] = still or not column.free
        box = Box(*space.inward(*self._box(said.lo, said.hi)), fixed)
        given, source = self._read(X)
        return Question(given.points, source, box, given, bounds=(said.lo, said.hi))

    def _read(self, X: Any) -> tuple[Given, Rows]:
        """Read rows, and tell which cluster each is in."""
        given = self._fitted_space().read(X)
        source = self._labels(given)
        # What the steps made has been seen, and may be large.
        return (given if given.raw is None else replace(given, raw=None)), source

    def _explain(self, question: Question, target: Any, deepen: bool = False) -> Counterfactuals:
        points, source = question.points, question.source
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
        return self._told(question, rows, targets, answers)

    def _told(
        self, question: Question, rows: Rows, targets: Rows, answers: Answers
    ) -> Counterfactuals:
        """Hand answers over, in the user's columns where they differ from coordinates."""
        written = None
        if self.space_.steps is not None or question.terms is not None:
            written = self._settle(question, rows, targets, answers)
        return self._result(question, rows, targets, answers, written)

    def _settle(
        self, question: Question, rows: Rows, targets: Rows, answers: Answers
    ) -> Given | None:
        """Write answers in the user's columns and take the model's word for where they lie.

        What it sees outside its target is answered again, further behind the rows of the region.
        """
        wanted = answers.points.copy()
        for caution in (*CAUTION, None):
            written, lost = self._put_to_the_model(question, rows, targets, wanted, answers)
            if lost.size == 0:
                return written
            if caution is None:
                break
            again = self._answer(replace(question, caution=caution), rows[lost], targets[lost])
            answers.put(lost, again)
            wanted[lost] = again.points
        blank = Answers.blank(len(lost), wanted.shape[1])
        blank.cardinality[:] = answers.cardinality[lost]
        answers.put(lost, blank)
        wanted[lost] = np.nan
        return self._written(question, rows, wanted)

    def _written(self, question: Question, rows: Rows, points: Array) -> Given | None:
        """Write answers in the user's columns; None where these are the coordinates themselves."""
        if self.space_.steps is None:
            return None
        lo, hi = question.bounds or (None, None)
        return self.space_.write(points, question.given, rows, lo, hi, question.grids)

    def _put_to_the_model(
        self, question: Question, rows: Rows, targets: Rows, wanted: Array, answers: Answers
    ) -> tuple[Given | None, Rows]:
        """Write answers, read them again; keep what was read, and tell which went astray."""
        written = self._written(question, rows, wanted)
        found = np.flatnonzero(~np.isnan(wanted).any(axis=1))
        if written is None:
            points = self._on_steps(question, rows[found], wanted[found])
            again = Given(None, points, points)
        else:
            again = self.space_.read_again(written, found)
        still = wanted[found] == question.points[rows[found]]
        answers.points[found] = np.where(still, wanted[found], again.points)
        astray = self._labels(again) != targets[found]
        for constraint in question.terms.constraints if question.terms else ():
            astray |= ~constraint.holds(self.space_.user_numbers(again))
        return written, found[astray & answers.found[found]]

    def _on_steps(self, question: Question, rows: Rows, points: Array) -> Array:
        """Put columns that keep to a grid, and moved, on its values, as the user writes them."""
        points = points.astype(self.space_.dtype).astype(np.float64)
        for c, grid in enumerate(question.grids or ()):
            if grid is not None:
                at = self.space_.columns[c].places[0]
                moved = points[:, at] != question.points[rows, at]
                points[moved, at] = grid.values_at(points[moved, at], points[moved, at])
        return points

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
        _, energy, _ = self._measure(question, rows, answers.points)
        few = question.objective != "cost"
        length, failed = answers.cardinality if few else np.zeros(len(rows)), ~answers.found
        order = np.lexsort((targets, energy, length, failed, rows))
        best = order[:: self.clustering_.n_clusters - 1]
        kept = Answers.blank(*question.points.shape)
        kept.put(slice(None), answers, best)
        return kept, targets[best]

    def _measure(self, question: Question, rows: Rows, answers: Array) -> tuple[Array, Array, Rows]:
        """Cost in the weights, energy in the metric, number of changed columns."""
        n = len(rows)
        cost, energy, changed = np.empty(n), np.empty(n), np.empty(n, dtype=np.int64)
        weights = self._weights(question)
        metric = weights + getattr(self, "delta", 0.0)
        least = TOLERANCE.changed * self.spread_
        measure = _core.Measure(rows, question.points, answers, weights, metric, least)
        in_parallel(lambda a, b: measure.run(cost, energy, changed, a, b), n)
        return cost, energy, changed

    def _weights(self, question: Question) -> Array:
        """Weights of the coordinates, with the user's costs."""
        return self.weights_ if question.terms is None else self.weights_ * question.terms.factors

    def _result(
        self, question: Question, rows: Rows, targets: Rows, answers: Answers, written: Given | None
    ) -> Counterfactuals:
        single = self.space_.steps is None and self.space_.dtype != np.float64
        answered = answers.points.astype(self.space_.dtype) if single else answers.points
        doubles = answered.astype(np.float64, copy=False)
        cost, energy, changed = self._measure(question, rows, doubles)
        least = TOLERANCE.changed * self.spread_
        if not self.space_.is_plain:
            moves = doubles - question.points[rows]
            changed = self.space_.changed(moves, least).sum(axis=1)
        measured = cost, relative(answers.gap, energy), changed
        return self._told_as(
            question, rows, targets, replace(answers, points=answered), measured, written
        )

    def _told_as(
        self, question: Question, rows: Rows | None, targets: Rows, answers: Answers, measured: Any,
        written: Given | None = None,
    ) -> Counterfactuals:  # fmt: skip
        """Hand over answers with their cost, relative gap and number of changes.

        Without `rows` there is one answer for each row, in order.
        """
        cost, gap, changed = measured
        place = np.arange(len(targets))
        return Counterfactuals(
            space=self.space_,
            given=question.given,
            written=written,
            place=place,
            weights=self._weights(question),
            least=TOLERANCE.changed * self.spread_,
            row=place if rows is None else rows,
            points=answers.points,
            source=question.source if rows is None else question.source[rows],
            target=targets,
            status=answers.status,
            cost=cost,
            n_changed=changed,
            cardinality=answers.cardinality,
            rho=answers.reach,
            alpha=self.alpha_[targets],
            gap=gap,
            rank=np.zeros(len(targets), dtype=np.int64),
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


def relative(gap: Array, energy: Array) -> Array:
    """Return a duality gap relative to half the energy, where there is any."""
    return np.asarray(2.0 * gap / np.where(energy > 0, energy, 1.0))


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
    if given.size and not (given.min() >= 0 and given.max() < k):
        wrong = given[(given < 0) | (given >= k)][0]
        raise TargetError(
            f"target={wrong} names no cluster: this model has 0 to {k - 1}. See voice.predict(X)."
        )
    return np.array(np.broadcast_to(given, (n,)), dtype=np.int64, order="C")
