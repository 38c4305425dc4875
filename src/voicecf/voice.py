"""VoICE: fit to a clustering and its data, then explain rows."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Literal, Self

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import OptionError, known_option
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.cell import Cell
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.region import Region
from voicecf.learned.explainer import Explainer
from voicecf.learned.fitting import Options, learn, learn_from_centers
from voicecf.rules.allowed import NO_RULES, Allowed, as_rules
from voicecf.rules.rules import Rules
from voicecf.search.alternatives import tradeoff, with_alternatives
from voicecf.search.answering import answer
from voicecf.search.one_pass import answer_in_one_pass
from voicecf.search.question import LIMIT, Pairs, Question, read_target
from voicecf.search.solving import OBJECTIVES
from voicecf.table.frames import in_partitions
from voicecf.table.model import fitted_copy
from voicecf.table.stream import Stream


class VoICE(Explainer):
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
    weights_ : array of shape (d,)
        Weights of the coordinates in the cost.
    learned_ : Learned
        All that was learned, in one value.

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
        options = self._options()
        if in_partitions(X):
            from voicecf import dask

            return dask.fit(self, X)
        self.learned_ = learn(X, self._own_model(X), options)
        return self

    def _fit_stream(self, stream: Stream) -> Self:
        """Learn from rows that come in blocks, as often as wanted."""
        from voicecf.streaming.fitting import fit_model

        options = self._options()
        model = fitted_copy(self.model, lambda model: fit_model(model, stream))
        self.learned_ = learn(stream, model, options)
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
        chosen = voice._options()
        if isinstance(bounds, str) or voice.contraction == "retain":
            raise OptionError(
                "from_centers has no data: give bounds as (lo, hi), contraction as a number."
            )
        if voice.categories is not None:
            raise OptionError("from_centers has no data to read categories from; use fit.")
        clustering = Clustering.from_centers(centers, weights)
        names = None if feature_names is None else list(feature_names)
        voice.learned_ = learn_from_centers(clustering, names, chosen)
        return voice

    def _options(self) -> Options:
        """Return the checked options."""
        options = Options(**{name: getattr(self, name) for name in Options.__dataclass_fields__})
        options.check()
        return options

    @property
    def lo_(self) -> Array:
        """Lower bounds of the columns, in the user's units."""
        return self.learned_.bounds.lo

    @property
    def hi_(self) -> Array:
        """Upper bounds of the columns, in the user's units."""
        return self.learned_.bounds.hi

    def explain(
        self,
        X: Any,
        target: Any = "nearest",
        *,
        objective: Literal["cost", "prefix", "fewest"] = "cost",
        deepen: bool = False,
        alternatives: int = 0,
        immutable: Any = None,
        increase_only: Any = None,
        decrease_only: Any = None,
        bounds: Any = None,
        steps: Any = None,
        levels: Any = None,
        order: Any = None,
        forbidden: Any = None,
        costs: Any = None,
        max_changes: int | None = None,
        constraints: Any = None,
        rules: Rules | dict[str, Any] | None = None,
        limit: int = LIMIT,
        **unknown: Any,
    ) -> Counterfactuals:
        """Find, for every row, the cheapest allowed change that lands in the target.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            A Dask DataFrame is answered by one: see `voicecf.dask.explain`.
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
        immutable : column or list of columns, optional
            They keep their values, whatever these are.
        increase_only, decrease_only : column or list of columns, optional
            Numbers, and categories that have an order.
        bounds : dict of column to (lo, hi), optional
            A side is a number; None for open; ``...``, the explainer's own; or text relative to
            the row's own value, ``"+500"`` or ``"-10%"``.
        steps : dict of column to number or None, optional
            Values are multiples of it; None allows any number. Columns of whole numbers stay whole
            unless this says otherwise.
        levels : dict of column to list, optional
            The levels of a category that may be moved to.
        order : dict of column to list, optional
            Levels of a category, lowest first.
        forbidden : dict of column to list of (from, to), optional
            Transitions of a category that may not be made.
        costs : dict of column to number, optional
            Factor on the column's squared change.
        max_changes : int, optional
            Most columns that may change.
        constraints : str or list of str, optional
            Linear rules between number columns, such as ``"fresh + 2*frozen <= 60000"``.
        rules : Rules or dict, optional
            All of these in one value, in place of them; see `voicecf.Rules`.
        limit : int
            Most boxes that the search over whole numbers, categories and few columns looks at for
            a row and target. An answer that it cut short has ``Status.STOPPED`` and tells its gap.

        Returns
        -------
        Counterfactuals

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 4.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 1.0]], target=1, immutable="age").points.round(6)
        array([[1., 3.]])
        """
        said = as_rules(
            rules,
            immutable=immutable,
            increase_only=increase_only,
            decrease_only=decrease_only,
            bounds=bounds,
            steps=steps,
            levels=levels,
            order=order,
            forbidden=forbidden,
            costs=costs,
            max_changes=max_changes,
            constraints=constraints,
            **unknown,
        )
        known_option(objective, OBJECTIVES, "objective")
        _check_count(alternatives, "alternatives", 0)
        _check_count(limit, "limit", 1)
        if in_partitions(X):
            from voicecf import dask

            asked = {"objective": objective, "deepen": deepen, "limit": limit, "rules": said}
            asked |= {"target": target, "alternatives": alternatives}
            return dask.explain(self, X, **asked)  # type: ignore[no-any-return]
        learned = self.learned_
        plain = objective == "cost" and said is NO_RULES and not (deepen or alternatives)
        if plain and not isinstance(target, str) and learned.cells is not None:
            return Counterfactuals(answer_in_one_pass(learned, X, target))
        searched = objective == "fewest" or alternatives > 0
        question = self._question(X, said, objective, int(limit), searched)
        pairs = Pairs.of(target, question.source, learned.n_clusters)
        found = answer(question, pairs, deepen=deepen)
        if alternatives:
            found = with_alternatives(found, alternatives)
        return Counterfactuals(found)

    def _question(
        self, X: Any, rules: Rules, objective: str, limit: int, searched: bool
    ) -> Question:
        """Read rows and rules: the user's table and words become coordinates."""
        learned = self.learned_
        rows, source = learned.read(X)
        allowed = Allowed.of(learned.space, rules, rows, learned.bounds, searched=searched)
        if learned.contract_bounds and not allowed.contractible:
            raise OptionError(
                "contract_bounds shrinks a box, and there is none for whole numbers, categories or "
                "rules beyond immutable and bounds; use contract_bounds=False."
            )
        return Question(learned, rows, source, allowed, objective, limit)

    def tradeoff(
        self,
        X: Any,
        target: Any = "nearest",
        *,
        immutable: Any = None,
        increase_only: Any = None,
        decrease_only: Any = None,
        bounds: Any = None,
        steps: Any = None,
        levels: Any = None,
        order: Any = None,
        forbidden: Any = None,
        costs: Any = None,
        max_changes: int | None = None,
        constraints: Any = None,
        rules: Rules | dict[str, Any] | None = None,
        limit: int = LIMIT,
        **unknown: Any,
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
        said = as_rules(
            rules,
            immutable=immutable,
            increase_only=increase_only,
            decrease_only=decrease_only,
            bounds=bounds,
            steps=steps,
            levels=levels,
            order=order,
            forbidden=forbidden,
            costs=costs,
            max_changes=max_changes,
            constraints=constraints,
            **unknown,
        )
        _check_count(limit, "limit", 1)
        question = self._question(X, said, "cost", int(limit), searched=True)
        pairs = Pairs.of(target, question.source, self.learned_.n_clusters)
        return Counterfactuals(tradeoff(question, answer(question, pairs)))

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        return self.learned_.cell(self._cluster(target))

    def region(self, target: int) -> Region:
        """Return what an answer has to lie in: cell, contraction and box together."""
        return self.learned_.region(self._cluster(target))

    def neighbors(self, target: int) -> Ints:
        """Return the clusters whose cells share a facet with a cluster's cell, ascending.

        Cells are those of the model, in its weighted metric and in the space that it sees: behind
        a scaler, a PCA. Bounds and contraction play no part.

        A rival is a neighbour if the cell without it would reach past their boundary, along some
        ray from the centroid, by more than 1e-9 of the way. Cells that meet in less than a facet,
        as diagonal ones of a grid do, are no neighbours. Of clusters whose centroids coincide only
        the first has a cell, as ties go to the lowest index: the others have no neighbours and are
        nobody's.

        In few dimensions a cell has few neighbours, whatever the number of clusters: about 6 in
        two, 15 in three. In 20 dimensions nearly all clusters are neighbours, and finding them
        takes a second with 1,000 clusters, half a minute or more with 5,000.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
        >>> voice.neighbors(0)
        array([1, 3])
        """
        return self.learned_.neighborhood(self._cluster(target)).facets.copy()

    def _cluster(self, target: Any) -> int:
        return int(read_target(target, 1, self.learned_.n_clusters)[0])


def _check_count(value: Any, where: str, least: int) -> None:
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not whole or value < least:
        raise OptionError(f"{where}={value!r} must be a whole number, {least} or more.")
