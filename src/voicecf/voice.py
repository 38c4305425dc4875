"""VoICE: fit to a clustering and its data, then explain rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from types import EllipsisType
from typing import Any, Literal, Self

import numpy as np

from voicecf.box import Box
from voicecf.clustering import Clustering
from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, OptionError, known_option
from voicecf.explainer import Question, Terms, check_target, relative
from voicecf.frames import in_partitions
from voicecf.projection import Pass
from voicecf.region import Array
from voicecf.rules import Rules
from voicecf.search import Answers, Rows
from voicecf.solving import OBJECTIVES, Solving
from voicecf.space import Given, Space
from voicecf.status import Status
from voicecf.tolerance import TOLERANCE
from voicecf.variants import Alternatives, tradeoff

# Boxes that a search looks at for a row and target before it is cut short.
LIMIT = 20_000


class VoICE(Solving):
    """Counterfactuals for a nearest-centroid clustering, exact and certified.

    Parameters
    ----------
    model : estimator
        Anything with `cluster_centers_` and, if weighted, `feature_weights_`, or a Pipeline that
        ends in one; fitted, or `fit` fits a copy of it. A pipeline is explained in the columns that
        go into it. Cost is measured in what comes out of its scalers and encoders, with the model's
        weights; where a later step mixes columns (PCA, a selector), every coordinate before it
        weighs the same.
        A missing value is read as what the imputer fills in, and stays missing unless its column
        changes. Categories, and numbers whose map cannot be undone, stay as they are.
    contraction : "retain" or float in (0, 1]
        How far each cell shrinks towards its centroid: to the smallest share that still holds
        `retain` of its members, or by a fixed factor.
    retain : float in (0, 1]
        Share of the members that a contracted cell keeps.
    contract_bounds : bool
        Whether the bounds shrink along with the cell (as the paper's text has it) or stay (as its
        numbers have it).
    bounds : "data", None or (lo, hi)
        Box for all answers: the observed range, none, or given.
    ranking : "weights", "columns" or array of shape (columns,)
        Order of columns for `objective="prefix"`: highest weight (through the mixing, if there is
        one), column order, highest score.
    delta : float
        Small weight added to every feature in the metric, so that the answer is unique.
    margin : float in [0, 1)
        Least share of the way from a rival's boundary to the centroid that answers keep. The
        default 0 keeps what rounding in the model's own predict needs, and no more.
    categories : dict, optional
        Columns of zeros and ones that code one category, by its name:
        ``{"job": ["job_admin", "job_clerk"]}``. What an encoder of the pipeline makes is known.

    Attributes
    ----------
    model_ : estimator
        The explainer's own fitted copy of the model, which answers are put to.
    alpha_ : array of shape (k,)
        Contraction of each cell.
    lo_, hi_ : array of shape (columns,)
        Bounds of the columns, in the user's units; infinite for categories.
    box_ : pair of arrays of shape (d,)
        The same for the coordinates.
    weights_ : array of shape (d,)
        Weights of the coordinates in cost and metric.
    origins_ : array of shape (k, d)
        Coordinates that the model sees at, or close to, its centroids.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from voicecf import VoICE
    >>> X = load_iris().data
    >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
    >>> cf = voice.explain(X[:2], target=2)
    >>> bool((voice.predict(cf.points) == 2).all())
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        contraction: Literal["retain"] | float = "retain",
        retain: float = 1.0,
        contract_bounds: bool = False,
        bounds: Any = "data",
        ranking: Any = "weights",
        delta: float = 1e-9,
        margin: float = 0.0,
        categories: Any = None,
    ) -> None:
        self.model = model
        self.contraction = contraction
        self.retain = retain
        self.contract_bounds = contract_bounds
        self.bounds = bounds
        self.ranking = ranking
        self.delta = delta
        self.margin = margin
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the box and the contraction of each cell; fits the model unless it is fitted.

        The model that was given is left as it is: `model_` is a copy of it, fitted on X if it came
        unfitted. What becomes of the original later changes no answer.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The data that was clustered; a Dask DataFrame is learned from partition by partition.
        y : ignored
        """
        self._check_options()
        if in_partitions(X):
            from voicecf.distributed import fit

            return fit(self, X)
        return self._learn(X, self._own_model(X))

    def _learn(self, X: Any, model: Any) -> Self:
        """Learn from data, in memory or as a stream, with a fitted model."""
        data = self._read_model(X, model, self.categories)
        self._set_box(data)
        self._set_contraction(data)
        self._set_order()
        return self

    @classmethod
    def from_centers(
        cls,
        centers: Any,
        *,
        weights: Any = None,
        bounds: Any = None,
        feature_names: Any = None,
        **options: Any,
    ) -> VoICE:
        """Explain a clustering of which only the centroids are known; no data is needed.

        Parameters
        ----------
        centers : array of shape (k, d)
        weights : array of shape (d,), optional
            Feature weights; equal if left out.
        bounds : None or (lo, hi)
        feature_names : list, optional
        **options
            As of the constructor. The contraction is 1 unless given.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 5.0]]).points.round(6)
        array([[2., 5.]])
        """
        voice = cls(None, bounds=bounds, **{"contraction": 1.0, **options})
        voice._check_options()
        if isinstance(bounds, str) or voice.contraction == "retain":
            raise OptionError(
                "from_centers has no data: give bounds as (lo, hi), contraction as a number."
            )
        voice.clustering_ = Clustering.from_centers(centers, weights)
        d = voice.clustering_.centers.shape[1]
        names = [f"x{i}" for i in range(d)] if feature_names is None else list(feature_names)
        if len(set(map(str, names))) != d:
            raise DataError(f"feature_names must be {d} different names, one a column of centers.")
        if voice.categories is not None:
            raise OptionError("from_centers has no data to read categories from; use fit.")
        voice.space_ = Space.plain(names, feature_names is not None)
        voice.weights_ = voice.clustering_.weights
        voice.origins_ = voice.clustering_.centers
        voice.spread_ = np.ptp(voice.clustering_.centers, axis=0)
        voice._set_box(None)
        voice.alpha_ = np.full(voice.clustering_.n_clusters, float(voice.contraction))
        voice._set_order()
        return voice

    def _check_options(self) -> None:
        if isinstance(self.contraction, str):
            known_option(self.contraction, ("retain",), "contraction")
        else:
            _check_share(self.contraction, "contraction")
        _check_share(self.retain, "retain")
        if isinstance(self.bounds, str):
            known_option(self.bounds, ("data",), "bounds")
        if isinstance(self.ranking, str):
            known_option(self.ranking, ("weights", "columns"), "ranking")
        if not (_is_number(self.delta) and 0 < self.delta < np.inf):
            raise OptionError(f"delta={self.delta!r} must be a positive number, such as 1e-9.")
        if not (_is_number(self.margin) and 0 <= self.margin < 1):
            raise OptionError(f"margin={self.margin!r} must be in [0, 1).")

    def explain(
        self,
        X: Any,
        target: Any = "nearest",
        *,
        objective: Literal["cost", "prefix", "fewest"] = "cost",
        deepen: bool = False,
        alternatives: int = 0,
        rules: Rules | dict[str, Any] | None = None,
        limit: int = LIMIT,
        **words: Any,
    ) -> Counterfactuals:
        """Find, for every row, the cheapest allowed change that lands in the target.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            A Dask DataFrame is answered by one: see `voicecf.distributed.explain`.
        target : int, array of int, "nearest" or "each"
            A cluster for all rows, one for each row, the cheapest other cluster, or every other
            cluster (an answer a pair, targets ascending).
        objective : "cost", "prefix" or "fewest"
            Least cost, the shortest prefix of the ranked columns that suffices, or as few changed
            columns as possible and then least cost. With "nearest", the target with the shortest
            prefix or the fewest changes, then the least cost.
        deepen : bool
            Whether a row that is in its target already moves on into the contracted cell.
        alternatives : int
            How many further answers to give for each row, best first (`rank` 1, 2, ...): each
            leaves alone at least one column that each answer before it changes.
        rules : Rules or dict, optional
            What may change, and how; or say its words right here:
        **words
            `immutable`, `increase_only`, `decrease_only`, `bounds`, `steps`, `levels`, `order`,
            `forbidden`, `costs`, `max_changes`, `constraints`, as of `voicecf.Rules`. Columns of
            whole numbers stay whole unless `steps` says otherwise.
        limit : int
            Most boxes that the search over whole numbers, categories and few columns looks at for
            a row and target. An answer that it cut short has ``Status.STOPPED`` and tells its gap.

        Returns
        -------
        Counterfactuals
        """
        known_option(objective, OBJECTIVES, "objective")
        _check_count(alternatives, "alternatives", 0)
        _check_count(limit, "limit", 1)
        if in_partitions(X):
            from voicecf import distributed

            said = {"objective": objective, "deepen": deepen, "rules": rules, "limit": limit}
            said |= {"target": target, "alternatives": alternatives, **words}
            return distributed.explain(self, X, **said)  # type: ignore[no-any-return]
        several = alternatives > 0
        plain = objective == "cost" and not (several or deepen or words or isinstance(target, str))
        self._fitted_space()
        if plain and rules is None and self._cells() is not None:
            return self._in_one_pass(X, target)
        question = self._question(X, objective, rules, words, limit, choosing=several)
        first = self._explain(question, target, deepen)
        return self._with_alternatives(question, first, alternatives) if several else first

    def _in_one_pass(self, X: Any, target: Any) -> Counterfactuals:
        """Answer the plainest question: numbers, a target a row, the box as it was learned."""
        space, clustering, cells = self.space_, self.clustering_, self._cells()
        assert cells is not None
        given = None
        if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2:
            space._check_width(X.shape[1])
            values = np.ascontiguousarray(X)
        else:
            given = space.read(X)
            values = np.ascontiguousarray(given.points)
        targets = check_target(target, len(values), clustering.n_clusters)
        least = TOLERANCE.changed * self.spread_
        told = Pass.over(values, given is None, targets, self.box_, cells, least)
        self._ask_the_model(told, targets)
        found, own = told.found, told.points
        given = Given(None, own, own, array=own) if given is None else given
        box = Box(*self.box_, np.zeros(space.n_coordinates, dtype=np.bool_))
        question = Question(own, told.source, box, given, "cost", (self.lo_, self.hi_))
        cardinality = np.full(len(own), space.n_coordinates)
        cardinality[found.status == Status.ALREADY] = 0
        answers = Answers.of(found, cardinality)
        left = np.flatnonzero(found.status == Status.UNRESOLVED)
        if left.size:
            rest = self._answer_by_target(question, left, targets[left])
            answers.put(left, rest)
            cost, energy, changed = self._measure(question, left, rest.points)
            told.cost[left], told.n_changed[left] = cost, changed
            found.gap[left] = relative(rest.gap, energy)
        measured = told.cost, found.gap, told.n_changed
        return self._told_as(question, None, targets, answers, measured)

    def _ask_the_model(self, told: Pass, targets: Rows) -> None:
        """Settle the clusters that rounding leaves in doubt."""
        asked = np.flatnonzero(told.source < 0)
        if asked.size == 0:
            return
        if not np.isfinite(told.points[asked]).all():
            self.space_._check_finite(told.points)
        told.source[asked] = self.clustering_.labels(told.points[asked])
        there = asked[told.source[asked] == targets[asked]]
        told.stay(there)

    def tradeoff(
        self,
        X: Any,
        target: Any = "nearest",
        *,
        rules: Rules | dict[str, Any] | None = None,
        limit: int = LIMIT,
        **words: Any,
    ) -> Counterfactuals:
        """Find the least cost with at most 1, 2, 3, ... changed columns.

        Parameters as for `explain`; with "nearest", the target is the one of least cost. For each
        row there is an answer for every number of changes (`cardinality`) from the fewest that
        suffice up to the number from which on more changes save nothing; rows that are in their
        target already are left out.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 1.0]])
        >>> voice.tradeoff([[0.0, 0.0]], target=1).cost.round(3).tolist()
        [2.258, 2.125]
        """
        _check_count(limit, "limit", 1)
        question = self._question(X, "cost", rules, words, limit, choosing=True)
        first = self._explain(question, target)
        there = first.status == Status.ALREADY
        ways = np.flatnonzero(~there)
        pairs, targets = first.row, first.target

        def ask(which: Rows, changes: int) -> Answers:
            few = self._limited(question, changes)
            return self._answer(few, pairs[ways[which]], targets[ways[which]])

        def energy(which: Rows, answers: Answers) -> Array:
            return self._measure(question, pairs[ways[which]], answers.points)[1]

        found, answers = tradeoff(ask, energy, len(ways), len(self.space_.columns))
        return self._told(question, pairs[ways[found]], targets[ways[found]], answers)

    def _limited(self, question: Question, changes: int) -> Question:
        """Return a question with fewer changes allowed."""
        assert question.terms is not None
        choices = question.terms.choices
        few = replace(choices, changes=min(changes, choices.changes))
        return replace(question, terms=replace(question.terms, choices=few))

    def _with_alternatives(
        self, question: Question, first: Counterfactuals, alternatives: int
    ) -> Counterfactuals:
        """Add further answers to those that were found first."""
        if question.objective == "prefix":
            raise OptionError('alternatives go with objective="cost" or "fewest", not "prefix".')
        least = TOLERANCE.changed * self.spread_

        def ask(row: int, target: int, locked: Any) -> tuple[Answers, Any, Any]:
            rows, targets = np.full(len(locked), row), np.full(len(locked), target)
            answers = self._answer(question, rows, targets, locked)
            _, energy, _ = self._measure(question, rows, answers.points)
            moves = answers.points - question.points[rows]
            few = answers.cardinality if question.objective == "fewest" else np.zeros(len(rows))
            keys = list(zip(few.tolist(), energy.tolist(), strict=True))
            return answers, keys, self.space_.changed(moves, least)

        search = Alternatives(ask, len(self.space_.columns))
        places, parts = [], []
        for i in np.flatnonzero(first.feasible & (first.status != Status.ALREADY)):
            found = search.of(int(first.row[i]), int(first.target[i]), alternatives + 1)[1:]
            places += [i] * len(found)
            parts += found
        if not parts:
            return first
        at = np.array(places)
        rest = self._told(question, first.row[at], first.target[at], Answers.joined(parts))
        return first.followed_by(rest, at)

    def _question(
        self,
        X: Any,
        objective: str,
        rules: Rules | dict[str, Any] | None,
        words: dict[str, Any],
        limit: int,
        choosing: bool = False,
    ) -> Question:
        """Read rows and rules: the plainest ones as a box, all others column by column."""
        space = self._fitted_space()
        plain = rules is None and space.continuous and objective != "fewest" and not choosing
        if plain and not words:  # the quick way in, for a row at a time
            given, source = self._read(X)
            box = Box(*self.box_, np.zeros(space.n_coordinates, dtype=np.bool_))
            return Question(given.points, source, box, given, objective, (self.lo_, self.hi_))
        if plain and _plain_words(words):
            question = self._plain_question(X, self.lo_, self.hi_, **words)
            return replace(question, objective=objective)
        if rules is not None and words:
            raise OptionError(f"give rules, or words such as {next(iter(words))!r}, not both.")
        if self.contract_bounds:
            raise OptionError(
                "contract_bounds shrinks a box, and there is none for whole numbers, categories or "
                "rules beyond immutable and bounds; use contract_bounds=False."
            )
        rules = rules if isinstance(rules, Rules) else Rules.from_dict(words or rules or {})
        rules.check(space)
        given, source = self._read(X)
        terms = Terms.of(space, rules, given, self.lo_, self.hi_, int(limit))
        box = Box(*terms.choices.box(), np.zeros(space.n_coordinates, dtype=np.bool_))
        return Question(
            given.points, source, box, given, objective, terms.choices.sides, terms=terms
        )


def _check_count(value: Any, where: str, least: int) -> None:
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not whole or value < least:
        raise OptionError(f"{where}={value!r} must be a whole number, {least} or more.")


def _plain_words(words: dict[str, Any]) -> bool:
    """Tell whether all that is said are columns to keep and bounds in numbers."""
    if not words.keys() <= {"immutable", "bounds"}:
        return False
    bounds = words.get("bounds")
    pairs = bounds.values() if isinstance(bounds, Mapping) else ()
    return not any(
        isinstance(side, (str, EllipsisType)) for pair in pairs if isinstance(pair, (tuple, list))
        for side in pair
    )  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_share(value: Any, where: str) -> None:
    if not (_is_number(value) and 0 < value <= 1):
        raise OptionError(f"{where}={value!r} must be a number in (0, 1].")
