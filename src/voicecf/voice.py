"""VoICE: fit to a clustering and its data, then explain rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from types import EllipsisType
from typing import Any, Literal, Self
from warnings import warn

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from voicecf._compile import in_parallel
from voicecf.box import Box, check_sides
from voicecf.cell import Cell
from voicecf.clustering import Clustering
from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import DataError, EmptyClusterWarning, OptionError, known_option
from voicecf.explainer import Explainer, Question, Terms, check_target, relative
from voicecf.frames import in_partitions
from voicecf.learning import Givens
from voicecf.neighbors import Neighborhood, neighborhood, pays
from voicecf.onepass import Passed, fits, one_pass
from voicecf.projection import Projection, Stack, UnitRows
from voicecf.pullback import loosened, pulled_back
from voicecf.region import Array, Region
from voicecf.rules import Rules
from voicecf.search import (
    Aim,
    Answers,
    Choosing,
    Local,
    Rows,
    fewest_changes,
    least_cost,
    shortest_prefix,
)
from voicecf.space import Given, Space
from voicecf.status import Status
from voicecf.tolerance import TOLERANCE
from voicecf.variants import Alternatives, tradeoff

OBJECTIVES = {"cost": least_cost, "prefix": shortest_prefix, "fewest": fewest_changes}
# The least share of a cell that a contraction learned from data leaves.
LEAST_ALPHA = 0.01
# Numbers that are kept or made at once: scaled rows of targets, tables of distances.
TABLE = 1 << 25
# Boxes that a search looks at for a row and target before it is cut short.
LIMIT = 20_000
# Targets from which on each is answered by one core alone.
GROUPS = 16


class VoICE(Explainer):
    """Counterfactuals for a nearest-centroid clustering, exact and certified.

    Parameters
    ----------
    model : estimator
        Anything with `cluster_centers_` and, if weighted, `feature_weights_`, or a Pipeline that
        ends in one; fitted, or `fit` fits it. A pipeline is explained in the columns that go into
        it. Cost is measured in what comes out of its scalers and encoders, with the model's
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
        data = self._read_model(X, self.categories)
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

    def _set_box(self, data: Givens | None) -> None:
        """Learn bounds of columns, and of coordinates."""
        columns = self.space_.columns
        d = len(columns)
        if self.bounds is None:
            self.lo_, self.hi_ = np.full(d, -np.inf), np.full(d, np.inf)
        elif isinstance(self.bounds, str):
            observed = np.array([column.observed for column in columns])
            self.lo_, self.hi_ = observed[:, 0].copy(), observed[:, 1].copy()
        else:
            self.lo_, self.hi_ = check_sides(self.bounds, d)
        self.box_ = self.space_.box(self.lo_, self.hi_)
        if data is not None and not self.space_.is_plain:
            around = [_around(given.points, *self.box_) for given in data]
            lows, highs = zip(*around, strict=True)
            self.box_ = np.min(lows, axis=0), np.max(highs, axis=0)
        self.box_ = self.space_.inward(*self.box_)

    def _box(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Turn bounds of columns into a box of coordinates; most are those that were learned."""
        new = (lo != self.lo_) | (hi != self.hi_)
        if not new.any():
            return self.box_
        sides = self.space_.box(lo, hi)
        for column, other in zip(self.space_.columns, new, strict=True):
            if not other:
                for side, learned in zip(sides, self.box_, strict=True):
                    side[column.places] = learned[column.places]
        return sides

    def _set_contraction(self, data: Givens) -> None:
        k = self.clustering_.n_clusters
        self.alpha_ = np.ones(k)
        if self.contraction != "retain":
            self.alpha_[:] = self.contraction
            return
        scores: list[list[Array]] = [[] for _ in range(k)]
        for given in data:
            labels = self._labels(given)
            for t in np.unique(labels):
                found = self._scores(int(t), given, labels == t)
                scores[t].append(found if self.retain < 1 else found.max(keepdims=True))
        for t in np.flatnonzero([len(found) > 0 for found in scores]):
            found = np.sort(np.concatenate(scores[t]))
            kept = found[max(int(np.ceil(self.retain * len(found) - 1e-9)), 1) - 1]
            self.alpha_[t] = max(kept, LEAST_ALPHA)
        if empty := [t for t in range(k) if not scores[t]]:
            warn(
                f"clusters {empty} have no rows in X; their cells are not contracted.",
                EmptyClusterWarning,
                stacklevel=3,
            )

    def _scores(self, target: int, given: Given, members: NDArray[np.bool_]) -> Array:
        """How much of its cell each member of a cluster needs, 0 to 1."""
        scores = self.clustering_.cell(target).scores(given.seen[members])
        if self.contract_bounds:
            scores = np.maximum(scores, self._box_scores(target, given.points[members]))
        return scores

    def _box_scores(self, target: int, points: Array) -> Array:
        """How much of the box each point needs if it shrinks towards the origin, 0 to 1."""
        rowless = Cell(self.origins_[[target]], self.weights_, 0)
        return rowless.scores(points, box=self.box_)

    def _set_order(self) -> None:
        columns = self.space_.columns
        d = len(columns)
        if isinstance(self.ranking, str):
            share = (
                self._importance() if self.ranking == "weights" else np.zeros_like(self.weights_)
            )
            scores = np.array([share[column.places].sum() for column in columns])
        else:
            try:
                scores = np.asarray(self.ranking, dtype=np.float64)
            except (TypeError, ValueError):
                scores = np.empty(0)
            if scores.shape != (d,) or np.isnan(scores).any():
                raise OptionError(f"ranking must be {d} scores, one a column, highest first.")
        self.ranked_ = np.argsort(-scores, kind="stable")
        self.order_ = np.concatenate([columns[c].places for c in self.ranked_])

    def _importance(self) -> Array:
        """Weight that the model gives each coordinate, through the mixing if there is one."""
        if self.space_.mixing is None:
            return self.weights_
        return np.asarray(self.clustering_.weights @ self.space_.mixing.matrix**2)

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        self._fitted_space()
        return self.clustering_.cell(int(check_target(target, 1, self.clustering_.n_clusters)[0]))

    def neighbors(self, target: int) -> Rows:
        """Return the clusters whose cells share a facet with a cluster's cell, ascending.

        Cells are those of the model, in its weighted metric and in the space that it sees: behind
        a scaler, a PCA. Bounds and contraction play no part.

        A rival is a neighbour if the cell without its row would reach past it, along some ray from
        the centroid, by more than 1e-9 of the way. Cells that meet in less than a facet, as
        diagonal ones of a grid do, are no neighbours. Of clusters whose centroids coincide only the
        first has a cell, as ties go to the lowest index: the others have no neighbours and are
        nobody's.

        In few dimensions a cell has few neighbours, whatever the number of clusters: about 6 in
        two, 15 in three. From 500 clusters on in up to three dimensions, `explain` with one
        cluster as target finds them first, and then looks at no other rows. In 20 dimensions
        nearly all clusters are neighbours, and finding them takes a second with 1,000 clusters,
        half a minute or more with 5,000.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
        >>> voice.neighbors(0)
        array([1, 3])
        """
        return self._neighborhood(self.cell(target).target).facets.copy()

    def _neighborhood(self, target: int) -> Neighborhood:
        """Find what surrounds a cell, and keep it for later calls."""
        kept: dict[Any, Any] = self.__dict__.setdefault("_kept", {})
        around: dict[int, Neighborhood] = kept.setdefault("around", {})
        if target not in around:
            around[target] = neighborhood(self.clustering_.cell(target))
        return around[target]

    def region(self, target: int) -> Region:
        """Return what an answer has to lie in: cell, contraction and box together."""
        region, _ = self._prepared(self.cell(target).target)
        return region

    def _prepared(self, target: int) -> tuple[Region, UnitRows]:
        """Region and scaled rows of a target, kept for later calls."""
        kept: dict[Any, Any] = self.__dict__.setdefault("_kept", {})
        if target not in kept:
            if len(kept) * self.clustering_.centers.size > TABLE:
                around = kept.get("around", {})  # small, and dear to find
                kept.clear()
                kept["around"] = around
            kept[target] = self._prepare(target)
        prepared: tuple[Region, UnitRows] = kept[target]
        return prepared

    def _prepared_around(self, target: int) -> tuple[Rows, Region, UnitRows]:
        """Which rows make up a target's cell, and region and scaled rows with only these."""
        region, _ = self._prepared(target)
        kept: dict[Any, Any] = self.__dict__["_kept"]
        found: tuple[Rows, Region, UnitRows] | None = kept.get(("around", target))
        if found is None:
            rivals = self._neighborhood(target).rivals
            rows = np.searchsorted(self.clustering_.cell(target).rivals, rivals)
            few = region.taking(rows)
            found = kept["around", target] = rows, few, UnitRows.of(few, self.weights_ + self.delta)
        return found

    def _stack(self) -> Stack | None:
        """Scaled rows of all targets, for one pass over memory; None where that does not fit."""
        kept: dict[Any, Any] = self.__dict__.setdefault("_kept", {})
        if "stack" not in kept:
            clustering, space = self.clustering_, self.space_
            plain = space.continuous and space.is_plain and space.dtype == np.float64
            plain = plain and space.steps is None and not self.contract_bounds
            stack = None
            if plain and fits(clustering, TABLE):
                targets = range(clustering.n_clusters)
                stack = Stack.of([self._prepared(target)[1] for target in targets])
            self.__dict__["_kept"]["stack"] = stack
        found: Stack | None = self.__dict__["_kept"]["stack"]
        return found

    def _prepare(self, target: int) -> tuple[Region, UnitRows]:
        alpha = min(float(self.alpha_[target]), 1.0 - self.margin)
        cell = self.clustering_.cell(target)
        region = cell.region(alpha, delta=self.delta, arithmetic=self.clustering_.arithmetic)
        metric = self.weights_ + self.delta
        if self.space_.mixing is not None:
            region = pulled_back(
                region, self.space_.mixing, self.origins_[target],
                self.clustering_.weights + self.delta, metric, self.clustering_.arithmetic,
            )  # fmt: skip
        if self.space_.steps is not None:
            region = loosened(region, self.space_.slop)
        region = region.within(*self._contract_box(target, *self.box_))
        return region, UnitRows.of(region, metric)

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in super().__getstate__().items() if name != "_kept"}

    def _contract_box(self, target: int, lo: Array, hi: Array) -> tuple[Array, Array]:
        if not self.contract_bounds:
            return lo, hi
        center, alpha = self.origins_[target], self.alpha_[target]
        shrunk = center + alpha * (lo - center), center + alpha * (hi - center)
        return np.maximum(lo, shrunk[0]), np.minimum(hi, shrunk[1])

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
        if plain and rules is None and self._stack() is not None:
            return self._in_one_pass(X, target)
        question = self._question(X, objective, rules, words, limit, choosing=several)
        question = replace(question, one_target=isinstance(target, Integral))
        first = self._explain(question, target, deepen)
        return self._with_alternatives(question, first, alternatives) if several else first

    def _in_one_pass(self, X: Any, target: Any) -> Counterfactuals:
        """Answer the plainest question: numbers, a target a row, the box as it was learned."""
        space, clustering, stack = self.space_, self.clustering_, self._stack()
        assert stack is not None
        if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2:
            space._check_width(X.shape[1])
            values, own = X, np.empty(X.shape)
            given = Given(None, own, own, array=own)
        else:
            given = space.read(X)
            values = own = given.points
        targets = check_target(target, len(values), clustering.n_clusters)
        least = TOLERANCE.changed * self.spread_
        told = one_pass(values, own, targets, stack, self.box_, clustering, least)
        self._ask_the_model(told, targets)
        found = told.found
        box = Box(*self.box_, np.zeros(space.n_coordinates, dtype=np.bool_))
        question = Question(own, told.source, box, given, "cost", (self.lo_, self.hi_))
        cardinality = np.full(len(own), space.n_coordinates)
        cardinality[found.status == Status.ALREADY] = 0
        answers = Answers.of(found, cardinality)
        left = np.flatnonzero(found.status == Status.UNRESOLVED)
        if left.size:
            rest = self._answer(replace(question, binding=True), left, targets[left])
            answers.put(left, rest)
            cost, energy, changed = self._measure(question, left, rest.points)
            told.cost[left], told.n_changed[left] = cost, changed
            found.gap[left] = relative(rest.gap, energy)
        measured = told.cost, found.gap, told.n_changed
        return self._told_as(question, np.arange(len(own)), targets, answers, measured)

    def _ask_the_model(self, told: Passed, targets: Rows) -> None:
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

    def _aims(
        self, question: Question, targets: Rows
    ) -> Iterator[tuple[Rows, Callable[[], tuple[int, Aim]]]]:
        """Group problems by target: which problems, and how to make their aim when it is needed."""
        rules, terms = question.box, question.terms
        ranked = self.order_[~rules.immutable[self.order_]] if terms is None else self.ranked_
        shared = rules.box(question.points, rules.lo, rules.hi)
        # The box that was learned is in the region already, checked.
        learned = shared[0] is self.box_[0] and shared[1] is self.box_[1]

        def placed(target: int, region: Region, unit: UnitRows) -> Aim:
            if question.caution != 1.0:
                guard = unit.guard.copy()
                guard[1:] *= question.caution
                unit = replace(unit, guard=guard)
            box = shared
            if self.contract_bounds:
                box = rules.box(question.points, *self._contract_box(target, rules.lo, rules.hi))
            agrees = partial(self._agrees, target)
            doubted, binding = not self.clustering_.trusted, question.binding
            return Aim(
                region if learned else region.within(*box), unit, ranked, agrees, doubted, binding
            )

        def whole(target: int) -> Aim:
            region, unit = self._prepared(target)
            if terms is None:
                return placed(target, region, unit)
            region, unit = self._with_terms(region, unit, terms, question.points, question.caution)
            plain = placed(target, region, unit)
            return Choosing(**vars(plain), choices=terms.choices, limit=terms.limit)

        def aim(target: int) -> tuple[int, Aim]:
            plain = question.one_target and terms is None
            if not (plain and pays(self.clustering_.cell(target))):
                return target, whole(target)
            kept, region, unit = self._prepared_around(target)
            if not len(kept):  # a cluster that coincides with another has no cell
                return target, whole(target)
            near = replace(placed(target, region, unit), doubted=False)
            return target, Local(**vars(near), kept=kept, whole=partial(whole, target))

        if len(targets) and (targets == targets[0]).all():
            yield np.arange(len(targets)), partial(aim, int(targets[0]))
            return
        # Short integers are sorted by radix, which takes a fraction of the time.
        short = targets.astype(np.uint16) if len(self.alpha_) <= 1 << 16 else targets
        order = np.argsort(short, kind="stable")
        borders = np.flatnonzero(np.diff(targets[order])) + 1
        for which in np.split(order, borders) if len(order) else ():
            yield which, partial(aim, int(targets[which[0]]))

    def _with_terms(
        self, region: Region, unit: UnitRows, terms: Terms, points: Array, caution: float = 1.0
    ) -> tuple[Region, UnitRows]:
        """Add rules between columns to a region, and costs to its metric.

        Whole numbers often meet such a rule exactly, so it holds to rounding at first; the user's
        own units have the last word, and where they see it broken it gets a guard.
        """
        if not len(terms.rows) and (terms.factors == 1.0).all():
            return region, unit
        metric = self.weights_ * terms.factors + self.delta
        guard = np.zeros((5, len(terms.rows)))
        largest = np.abs(points).max(axis=0, initial=1.0)
        rounding = np.abs(terms.offsets) + np.abs(terms.rows) @ largest
        rounding *= 16.0 * np.finfo(np.float64).eps
        offsets = terms.offsets - terms.rows @ region.origin
        if caution == 1.0:
            offsets = offsets + rounding
        else:
            guard[1] = np.abs(terms.rows) @ self.space_.slop + rounding
        assert region.guard is not None
        joined = Region(
            np.vstack([region.rows, terms.rows]),
            np.concatenate([region.offsets, offsets]),
            origin=region.origin,
            guard=np.hstack([region.guard, guard]),
        )
        return joined, UnitRows.of(joined, metric)

    def _agrees(self, target: int, points: Array) -> NDArray[np.bool_]:
        """Tell which coordinates the model puts into a cluster."""
        mixing = self.space_.mixing
        return self.clustering_.agrees(target, points if mixing is None else mixing(points))

    def _answer(self, question: Question, rows: Rows, targets: Rows, locked: Any = None) -> Answers:
        solve = OBJECTIVES[question.objective]
        groups = list(self._aims(question, targets))
        if locked is not None:  # columns that each problem may not change, of one target
            _, aim = groups[0][1]()
            assert isinstance(aim, Choosing)
            fewest = question.objective == "fewest"
            return aim.choose(question.points, rows, fewest=fewest, locked=locked)
        if len(groups) == 1:
            return solve(question.points, rows, groups[0][1]()[1])
        projected = question.objective == "cost" and question.terms is None
        if projected:  # the most asked for: answers go straight into place
            found = Projection.blank(len(rows), question.points.shape[1])
            moving = int((~question.box.immutable).sum())
            answers = Answers.of(found, np.full(len(rows), moving))
        else:
            answers = Answers.blank(len(rows), question.points.shape[1])

        def answer_group(at: int, _: int) -> None:
            which, aim = groups[at]
            if projected:
                aim()[1].project(question.points, rows[which], into=found, places=which)
            else:
                answers.put(which, solve(question.points, rows[which], aim()[1]))

        # Few groups are divided among the cores within, many are divided themselves.
        if len(groups) < GROUPS:
            for at in range(len(groups)):
                answer_group(at, at + 1)
        else:
            in_parallel(answer_group, len(groups), chunk=1)
        return answers

    def _multipliers(
        self, question: Question, rows: Rows, targets: Rows, cardinality: Rows
    ) -> Array:
        """Solve again for the certificates, a column a cluster."""
        table = np.zeros((len(rows), self.clustering_.n_clusters))
        for which, make in self._aims(question, targets):
            target, aim = make()
            if question.objective == "prefix" and question.terms is None and len(aim.order):
                counts = np.where(cardinality[which] > 0, cardinality[which], len(aim.order))
                found = aim.allow(question.points, rows[which], counts, certify=True)
            else:
                found = aim.project(question.points, rows[which], certify=True)
            rivals = self.clustering_.cell(target).rivals
            table[np.ix_(which, rivals)] = found.multipliers[:, : len(rivals)]
        return table

    def _nearest(self, question: Question) -> tuple[Answers, Rows]:
        """Find the cheapest other cluster, trying targets in the order of a lower bound.

        The row of target against source alone costs at least its distance; once that exceeds the
        best answer, no further target can win.
        """
        costs = question.terms is not None and (question.terms.factors < 1.0).any()
        if question.objective != "cost" or costs or self.clustering_.n_clusters == 2:
            return super()._nearest(question)
        n = len(question.points)
        best, targets = Answers.blank(*question.points.shape), np.zeros(n, dtype=np.int64)
        block = max(1, TABLE // self.clustering_.n_clusters)
        for start in range(0, n, block):
            rows = np.arange(start, min(start + block, n))
            bound = self._lower_bounds(question, rows)
            order = np.argsort(bound, axis=1, kind="stable")
            energy = np.full(len(rows), np.inf)
            open_ = np.arange(len(rows))
            for turn in range(self.clustering_.n_clusters - 1):
                tried = order[open_, turn]
                open_ = open_[bound[open_, tried] <= energy[open_] * (1 + 1e-9)]
                if open_.size == 0:
                    break
                self._try(question, rows, open_, order[open_, turn], energy, best, targets)
        return best, targets

    def _try(
        self, question: Question, rows: Rows, open_: Rows, tried: Rows, energy: Array,
        best: Answers, targets: Rows,
    ) -> None:  # fmt: skip
        """Answer one more target for the open rows, and keep it where it is better."""
        found = self._answer(question, rows[open_], tried)
        _, cost, _ = self._measure(question, rows[open_], found.points)
        cost[~found.found] = np.inf
        held = energy[open_]
        first = best.status[rows[open_]] == Status.UNRESOLVED
        tie = (cost == held) & np.isfinite(cost) & (tried < targets[rows[open_]])
        better = (cost < held) | tie | (first & ~np.isfinite(held))
        best.put(rows[open_[better]], found, better)
        targets[rows[open_[better]]] = tried[better]
        energy[open_] = np.minimum(held, cost)

    @np.errstate(all="ignore")
    def _lower_bounds(self, question: Question, rows: Rows) -> Array:
        """Least energy of each target by the row against the source alone; inf for the source."""
        clustering, own = self.clustering_, np.arange(len(rows))
        table = clustering.distances(question.given.seen[rows])
        sources, source = np.unique(question.source[rows], return_inverse=True)
        centers = clustering.centers[sources]
        spread = clustering.distances(centers)[source]
        lengths = self._pair_lengths(sources)[source]
        here = table[own, question.source[rows]][:, None]
        alpha = np.minimum(self.alpha_, 1.0 - self.margin)
        excess = 0.5 * (table - here) + 0.5 * (1.0 - alpha) * spread
        excess -= clustering.arithmetic.growth(table.shape[1]) * (table + here + spread)
        bound = np.maximum(excess, 0.0) ** 2 / lengths * (1 - 1e-9)
        bound[~np.isfinite(bound)] = 0.0
        bound[own, question.source[rows]] = np.inf
        return np.asarray(bound)

    def _pair_lengths(self, sources: Rows) -> Array:
        """Squared lengths, in the metric, of the rows of every target against some sources."""
        clustering, mixing = self.clustering_, self.space_.mixing
        if mixing is not None:
            ends = clustering.weights * clustering.centers @ mixing.matrix
            ends /= np.sqrt(self.weights_ + self.delta)
            return np.asarray(cdist(ends[sources], ends, "sqeuclidean"))
        stretch = clustering.weights**2 / (clustering.weights + self.delta)
        unit = Clustering.from_centers(clustering.centers, stretch)
        return np.asarray(unit.distances(clustering.centers[sources]) * stretch.sum())


def _around(points: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Widen a box by rounding, so that data on its border are inside."""
    near = 8.0 * np.finfo(np.float64).eps
    with np.errstate(invalid="ignore"):
        low = np.where(np.abs(points - lo) <= near * np.abs(lo), points, np.inf).min(axis=0)
        high = np.where(np.abs(points - hi) <= near * np.abs(hi), points, -np.inf).max(axis=0)
    return np.minimum(lo, low), np.maximum(hi, high)


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
