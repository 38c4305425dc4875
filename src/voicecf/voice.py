"""VoICE: fit to a clustering and its data, then explain rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from numbers import Integral
from typing import Any, Literal, Self, Unpack
from warnings import warn

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.edges import edge
from voicecf.errors import DataError, OptionError, RankingWarning, known_option, likely
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.centroids import Centroids
from voicecf.geometry.partition import Partition, Piece
from voicecf.geometry.region import Region
from voicecf.geometry.scores import Scores
from voicecf.learned import Learned
from voicecf.learned.explainer import Explainer
from voicecf.learned.fitting import NO_NAMES, Options, learn, learn_from_partition
from voicecf.parallel import Running
from voicecf.rules.allowed import NO_RULES, Allowed, as_rules
from voicecf.rules.prices import PRICE, Prices
from voicecf.rules.rules import RULES, Rules, RuleWords, takes_rules
from voicecf.search.alternatives import tradeoff, with_alternatives
from voicecf.search.answering import answer
from voicecf.search.one_pass import answer_in_one_pass
from voicecf.search.question import LIMIT, Pairs, Question, read_target
from voicecf.search.solving import OBJECTIVES
from voicecf.table.frames import in_partitions, table
from voicecf.table.model import fitted_copy
from voicecf.table.rows import Rows
from voicecf.table.stream import Stream


class VoICE(Explainer):
    """Counterfactual explanations of a model with straight edges: a clustering or a classifier.

    For a row of a table and a target cluster, `explain` finds the cheapest allowed change into the
    contracted cell of the target, with a certificate that no change into it is cheaper. The model's
    own predict puts every answer into its target. By default cells are contracted as far as their
    members allow, so that answers do not end at the border; with ``contraction=1.0`` the answer is
    the cheapest change that lands.

    Parameters
    ----------
    model : estimator
        An estimator with `cluster_centers_` and, if it is weighted, `feature_weights_`, a linear
        classifier, a decision tree or another model with straight edges, or a Pipeline that ends in
        one. Classifiers are told by what their `predict` returns. If it is not fitted, `fit` fits a
        copy of it. A pipeline is explained in the columns that go into it. The cost is measured in
        the output of its scalers and encoders, with the model's weights; if a later step mixes
        columns (PCA, a selector), all coordinates before that step have equal weights.
        If a column goes into several transformers, they must be affine, and its weight is that of
        the column in the model's distance.
        A missing value is read as the value that the imputer fills in, and stays missing unless its
        column changes; where the model is told that it is missing (``add_indicator=True``), it
        stays missing. A number whose transformer cannot be inverted between the observed values
        takes one of these values. A number that is coded by bins becomes the median of the observed
        numbers in its new bin; of levels with one code, an answer names the most frequent. Where
        the bin or the code does not change, a row keeps its value.
    contraction : "retain" or float in (0, 1]
        How far the cell of each cluster is contracted towards its centroid, so that answers do not
        end at its border: by the smallest factor with which it still holds a share `retain` of its
        members, or by a fixed factor. 1 is no contraction.
    retain : float in (0, 1]
        Share of a cluster's members that its contracted cell still holds.
    contract_bounds : bool
        Whether the bounds are contracted along with the cell. The paper's text does so; its
        printed numbers do not.
    bounds : (lo, hi), "data" or None
        Bounds of the columns for all answers: the observed range, none, or the given ones.
    ranking : "weights", "columns" or array of shape (columns,)
        Order of the columns for ``objective="prefix"``: by weight, highest first; as in the table;
        or by the given scores, highest first. If a step mixes columns, weights are taken through
        it. Equal weights rank no column before another: then the columns are taken as in the table,
        and `explain` warns of that once.
    delta : float
        Small weight that is added to every feature in the metric, so that the answer is unique.
    margin : float in [0, 1)
        Least distance of an answer from the boundary with a rival, as a share of the way from the
        boundary to the centroid. With 0 it is what rounding in the model's own predict needs.
    categories : dict, optional
        Columns of zeros and ones that together encode a category, by the name of the category:
        ``{"job": ["job_admin", "job_clerk"]}``. Encoders in the pipeline need no entry.
    names : list of str or dict of int to str, optional
        Names of the clusters, of all or of some: ``{0: "loyal", 1: "lapsed"}``; of a classifier by
        label. Sentences, cards and plots print them, and wherever a cluster is given, its name will
        do.
    units : dict of column to str, optional
        What the numbers of columns are of: ``{"basket": "€", "weight": "kg"}``. Sentences, cards,
        plots and JSON have them. Signs of money stand before a number ("€55.80"), all others after
        it ("55.80 EUR", "3 kg", "12.5 %"). Money, by a sign or a code such as EUR, is told to the
        cent where an answer of whole cents lands, unless the column has whole numbers.
    **unknown
        Words that are none of these are refused, with where they belong.

    Attributes
    ----------
    model_ : estimator
        The explainer's own fitted copy of the model.
    alpha_ : array of shape (k,)
        Contraction of each cell.
    lo_, hi_ : array of shape (columns,)
        Bounds of the columns, in the user's units; infinite for categories.
    weights_ : array of shape (d,)
        Weights of the coordinates in the cost.
    derived_ : dict of str to str
        Number columns that are the sum, difference, product or ratio of two others, to the digits
        of the table, in 99 % of the rows: what `explain` takes as ``derived=voice.derived_``, all
        or some of it. Answers keep to it only if it is passed. It is empty for fewer than 20 rows,
        more than 60 number columns, streams, and explainers without data.
    learned_ : Learned
        Everything that `fit` learned.

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

    # What `fit` had learned when equal weights were last warned of: one warning for each fit.
    _ranking_warned_of: Learned | None = None

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
        names: Any = None,
        units: Any = None,
        **unknown: Any,
    ) -> None:
        for word in unknown:
            raise _unknown_option(word)
        self.model = model
        self.contraction = contraction
        self.retain = retain
        self.contract_bounds = contract_bounds
        self.bounds = bounds
        self.ranking = ranking
        self.delta = delta
        self.margin = margin
        self.categories = categories
        self.names = names
        self.units = units

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the bounds and the contraction of each cell; fit the model if it is not fitted.

        The estimator `model` itself does not change: `model_` is a copy of it, fitted on X if it
        was not fitted yet. Later changes of the original have no effect on answers.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            The data that was clustered, or that the classifier is for. A Dask DataFrame is read
            partition by partition.
        y : array of shape (n,), optional
            The labels that a classifier learns from; not needed if it is fitted already.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> from voicecf import VoICE
        >>> X = [[0.0], [1.0], [8.0], [9.0]]
        >>> voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
        >>> voice.lo_, voice.hi_, voice.alpha_
        (array([0.]), array([9.]), array([0.125, 0.125]))
        """
        options = self._options()
        if in_partitions(X):
            if y is not None:
                raise DataError(
                    "y is for rows in memory: fit the classifier first, and then "
                    "VoICE(classifier).fit(X) on the Dask DataFrame."
                )
            fitted: Self = edge("fit_partitions")(self, X)
            return fitted
        self.learned_ = learn(X, self._own_model(X, y), options)
        return self

    def _fit_stream(self, stream: Stream) -> Self:
        """Learn from rows that come in blocks and can be read several times."""
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
        """Return an explainer for given centroids; no data and no model are needed.

        Parameters
        ----------
        centers : array of shape (k, d)
            The centroids, in the units of the rows to explain.
        weights : array of shape (d,), optional
            Feature weights; equal if left out.
        bounds : None or (lo, hi)
            The least and the largest values of all answers; no bounds if left out.
        feature_names : list, optional
            Names of the columns, for rules and sentences.
        **options
            Other options of the constructor. The contraction is 1 if left out.

        Returns
        -------
        VoICE
            Ready to explain.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 5.0]]).points.round(6)
        array([[2., 5.]])
        """
        partition = Centroids.from_centers(centers, weights)
        return cls._from_numbers(partition, bounds, feature_names, options, "from_centers")

    @classmethod
    def from_scores(
        cls,
        A: Any,
        b: Any,
        *,
        classes: Any = None,
        bounds: Any = None,
        feature_names: Any = None,
        **options: Any,
    ) -> VoICE:
        """Return an explainer for affine scores: the label of a row z is the highest of A z + b.

        It is for linear models of other libraries. The first of equal scores wins. Cells are
        contracted towards a point as far inside as possible.

        Parameters
        ----------
        A : array of shape (k, d)
            The slopes of each score, in the units of the rows to explain.
        b : array of shape (k,)
            The constants.
        classes : list, optional
            What the labels are called, k of them; 0 to k - 1 if left out.
        bounds : None or (lo, hi)
            The least and the largest values of all answers; no bounds if left out.
        feature_names : list, optional
            Names of the columns, for rules and sentences.
        **options
            Other options of the constructor. The contraction is 1 if left out.

        Returns
        -------
        VoICE
            Ready to explain.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_scores([[0.0, 0.0], [1.0, 0.0]], [0.0, -2.0], classes=["no", "yes"])
        >>> voice.explain([[1.0, 5.0]], target="yes").points.round(6)
        array([[2., 5.]])
        """
        partition = Scores.of_scores(A, b)
        if classes is not None:
            labels = tuple(np.asarray(classes).tolist())
            if len(set(labels)) != partition.n_clusters or len(labels) != partition.n_clusters:
                raise OptionError(
                    f"classes={classes!r} must be {partition.n_clusters} different labels, one for "
                    "each score."
                )
            partition = replace(partition, classes=labels)
        return cls._from_numbers(partition, bounds, feature_names, options, "from_scores")

    @classmethod
    def _from_numbers(
        cls, partition: Partition, bounds: Any, feature_names: Any, options: Any, how: str
    ) -> VoICE:
        """Return an explainer of a partition without data; `how` is what the user has called."""
        voice = cls(None, bounds=bounds, **{"contraction": 1.0, **options})
        chosen = voice._options()
        if isinstance(bounds, str) or voice.contraction == "retain":
            raise OptionError(
                f"{how} has no data to learn from: give bounds as (lo, hi) or None, and "
                "contraction as a number."
            )
        if voice.categories is not None:
            raise OptionError(f"{how} has no data to read categories from; use fit.")
        names = None if feature_names is None else list(feature_names)
        voice.learned_ = learn_from_partition(partition, names, chosen)
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

    @property
    def derived_(self) -> dict[str, str]:
        """Columns that are computed from two others in the data, and how."""
        return dict(self.learned_.derived)

    @takes_rules
    def explain(
        self,
        X: Any,
        target: Any = "nearest",
        *,
        objective: Literal["cost", "prefix", "fewest", "price"] = "cost",
        deepen: bool = False,
        alternatives: int = 0,
        rules: Rules | dict[str, Any] | None = None,
        limit: int = LIMIT,
        id: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        errors: Literal["status", "raise"] = "status",
        **words: Unpack[RuleWords],
    ) -> Counterfactuals:
        """Find, for every row, the cheapest allowed change into the target's contracted cell.

        The cost is the weighted mean of the squared changes, in the output of the pipeline's
        scalers and encoders, with the model's weights. With ``VoICE(model, contraction=1.0)`` it is
        the cheapest change that lands in the target; the default contraction asks for more, so that
        answers do not end at the border, and costs more.

        Parameters
        ----------
        X : array or frame of shape (n, d)
            Rows to explain. For a Dask DataFrame the result is one, too: see
            `voicecf.dask.explain`.
        target : int or str, list or array of them, "nearest" or "each"
            One cluster for all rows, by number or by name, or what the model's predict returns; a
            cluster for each row; for each row the other cluster that is cheapest to move to; or all
            other clusters, which gives an answer for each pair of row and target, targets
            ascending.
        objective : str
            "cost" minimises the cost. "prefix" lets only the first columns of the ranking change,
            as few of them as suffice. "fewest" minimises the number of changed columns, then the
            cost. "price" minimises the money that the changes cost: see `prices`; without them,
            each unit of a coordinate costs 1, also of a level's. Among answers of one price it
            takes that of least cost. With ``target="nearest"`` the target is chosen by the same
            criterion, then by cost.
        deepen : bool
            Whether a row that is in its target already moves into the contracted cell.
        alternatives : int
            Number of further answers for each row, best first (`rank` 1, 2, ...). Each leaves at
            least one column unchanged that each answer before it changes.
        **words
            Every rule is a keyword of its own: see `voicecf.Rules`.
        rules : Rules or dict, optional
            The keywords from `immutable` to `plausible` as one value; see `voicecf.Rules`.
        limit : int
            Largest number of boxes that the search over whole numbers, categories and subsets of
            columns examines for one row and target; 20,000 by default. If the search reaches it,
            the answer has ``Status.STOPPED``, and its `gap` tells how much better another could be.
        id : column, optional
            Column of X that names the rows, in sentences, tables and plots. The model must not use
            it. If left out, the index of a pandas frame names them, unless it is 0, 1, 2, ...
        n_jobs : int, optional
            Number of threads; -1 is all cores. By default it is the environment variable
            ``OMP_NUM_THREADS`` or, if that is not set, all cores. Answers do not depend on it.
        progress : bool, optional
            Whether a bar shows the number of rows done. By default there is one on a terminal and
            in a notebook, if the call takes longer than two seconds.
        errors : "status" or "raise"
            What becomes of a row that cannot be read, because a value is missing, infinite or an
            unknown level: the answer has ``Status.UNREADABLE``, no point and the source -1, and its
            `text` names the column and the value; or `DataError` is raised.

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
        _check_no_option(words)
        rules = as_rules(rules, **words)
        known_option(objective, OBJECTIVES, "objective")
        running = Running(n_jobs, progress)
        known_option(errors, ("status", "raise"), "errors")
        _check_count(alternatives, "alternatives", 0)
        _check_count(limit, "limit", 1)
        if in_partitions(X):
            return edge("explain_partitions")(  # type: ignore[no-any-return]
                self, X, target=target, objective=objective, deepen=deepen,
                alternatives=alternatives, rules=rules, limit=limit, id=id, n_jobs=n_jobs,
            )  # fmt: skip
        learned = self.learned_
        plain = rules.ladder(learned, objective) == (NO_RULES,) and objective == "cost"
        plain = plain and not (deepen or alternatives)
        nearest_or_each = isinstance(target, str) and target in NO_NAMES
        if objective == "prefix":
            self._warn_of_equal_weights()
        with running:
            if plain and not nearest_or_each and learned.cells is not None:
                return Counterfactuals(answer_in_one_pass(learned, rules, X, target, id, errors))
            searched = objective == "fewest" or alternatives > 0
            rows = learned.read(X, id, errors)
            question = self._question(*rows, rules, objective, int(limit), searched)
            pairs = Pairs.of(target, question.source, learned)
            found = answer(question, pairs, deepen=deepen)
            if alternatives:
                found = with_alternatives(found, alternatives)
            return Counterfactuals(found)

    def _warn_of_equal_weights(self) -> None:
        """Warn, once, that a ranking by weight is the order of the columns."""
        learned = self.learned_
        if not learned.ranks_equally or self._ranking_warned_of is learned:
            return
        self._ranking_warned_of = learned
        warn(
            "all weights are equal, so they rank no column before another: columns are taken in "
            "the table's order. Give a score for each column, the highest for the first to change, "
            'with VoICE(model, ranking=[...]), or accept the order with ranking="columns".',
            RankingWarning,
            stacklevel=3,
        )

    def _question(
        self, rows: Rows, source: Ints, rules: Rules, objective: str, limit: int, searched: bool
    ) -> Question:
        """Read rules into coordinates."""
        learned = self.learned_
        allowed = Allowed.of(learned.space, rules, rows, learned.bounds, searched=searched)
        if learned.contract_bounds and not allowed.contractible:
            raise OptionError(
                "contract_bounds=True excludes whole numbers, categories, bounds relative to the "
                "row, and rules other than immutable, mutable and bounds; use "
                "contract_bounds=False."
            )
        for rule in rules.active():
            rule.check_question(learned, allowed, objective)
        return Question(learned, rows, source, allowed, objective, limit)

    @takes_rules
    def tradeoff(
        self,
        X: Any,
        target: Any = "nearest",
        *,
        rules: Rules | dict[str, Any] | None = None,
        limit: int = LIMIT,
        id: Any = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
        **words: Unpack[RuleWords],
    ) -> Counterfactuals:
        """Find the least cost, or price, with at most 1, 2, 3, ... changed columns.

        The parameters are those of `explain`; ``target="nearest"`` is the target of least cost. For
        each row there are several answers, one for each number of columns that may change
        (`cardinality`): from the fewest that suffice to the number beyond which the cost no longer
        falls. Rows that are in their target already have no answer. With `prices` it is the least
        price, as with ``objective="price"``.

        Returns
        -------
        Counterfactuals

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 1.0]])
        >>> voice.tradeoff([[0.0, 0.0]], target=1).cost.round(3).tolist()
        [2.258, 2.125]
        """
        _check_no_option(words)
        rules = as_rules(rules, **words)
        _check_count(limit, "limit", 1)
        with Running(n_jobs, progress):
            rows = self.learned_.read(X, id)
            objective = "cost" if rules.prices == Prices.nothing else PRICE
            question = self._question(*rows, rules, objective, int(limit), searched=True)
            pairs = Pairs.of(target, question.source, self.learned_)
            return Counterfactuals(tradeoff(answer(question, pairs)))

    def cell(self, target: int | str) -> Piece:
        """Return the weighted Voronoi cell of a cluster, given by number or by name.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
        >>> voice.cell(1).rivals
        array([0, 2])
        """
        return self.partition_.piece(self._piece(target))

    def region(self, target: int | str) -> Region:
        """Return the region that answers lie in: the contracted cell of a cluster, within bounds.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], bounds=(0, 9))
        >>> region = voice.region(1)
        >>> region.normals.shape, region.lo, region.hi
        ((1, 2), array([0., 0.]), array([9., 9.]))
        """
        return self.learned_.region(self._piece(target))

    def standing(self, X: Any) -> Any:
        """Tell where rows stand between the cells: how far inside, and which cluster is next.

        Parameters
        ----------
        X : frame or array

        Returns
        -------
        frame
            A line a row, with columns cluster, inside and next: its cluster, the distance straight
            to the nearest border, in the coordinates that the model clusters, and the cluster
            beyond that border. It is of the kind of frame that X is; pandas for an array. Clusters
            of several pieces, as of a tree of cuts, have no such distance: TargetError.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.standing([[1.0, 5.0], [3.5, 0.0]])
           cluster  inside  next
        0        0     1.0     1
        1        1     1.5     0
        """
        rows, labels = self.learned_.read(X)
        inside, rivals = np.full(len(labels), np.nan), np.full(len(labels), -1)
        for cluster in np.unique(labels[labels >= 0]).tolist():
            piece, which = (
                self.partition_.piece(self._piece(cluster)),
                np.flatnonzero(labels == cluster),
            )
            lengths = np.linalg.norm(piece.normals, axis=1)
            slack = piece.slack(rows.seen[which])
            away = np.divide(slack, lengths, out=np.full_like(slack, np.inf), where=lengths > 0)
            nearest = away.argmin(axis=1)
            inside[which] = np.maximum(away[np.arange(len(which)), nearest], 0.0)
            rivals[which] = piece.rivals[nearest]
        return table({"cluster": labels, "inside": inside, "next": rivals}, rows.kind)

    def neighbors(self, target: int | str) -> Ints:
        """Return the clusters whose cells share a facet with a cluster's cell, ascending.

        The cells are those of the model, in its weighted metric and in the space that it clusters,
        after a scaler or a PCA. Bounds and contraction have no effect.

        A cluster is a neighbour if the cell would extend beyond their common boundary without it,
        along some ray from the centroid, by more than 1e-9 of the distance. Cells that touch in
        less than a facet, such as diagonal cells of a grid, are no neighbours. Of clusters with the
        same centroid only the first has a cell, as ties go to the lowest index; the others have no
        neighbours.

        In few dimensions a cell has few neighbours, whatever the number of clusters: about 6 in
        two, 15 in three. In 20 dimensions nearly all clusters are neighbours, and finding them
        takes a fraction of a second with 1,000 clusters, seconds with 5,000.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
        >>> voice.neighbors(0)
        array([1, 3])
        """
        return self.learned_.neighborhood(self._cluster(target)).facets.copy()

    def _cluster(self, target: Any) -> int:
        return int(read_target(target, 1, self.learned_)[0])

    def _piece(self, target: Any) -> int:
        return self.learned_.only_piece(self._cluster(target))


def _unknown_option(word: str) -> OptionError:
    """Return the error about a word that is no option of VoICE; rules belong to `explain`."""
    options = Options.__dataclass_fields__
    if word in RULES or word in (VoICE.explain.__kwdefaults__ or ()):
        return OptionError(
            f"{word} is no option of VoICE(model): say it with each question, "
            f"voice.explain(X, {word}=...)."
        )
    return OptionError(f"unknown option {word!r}; {likely(word, options, len(options))}")


def _check_no_option(words: Iterable[str]) -> None:
    """Refuse the options of VoICE among the words of a question."""
    for word in words:
        if word in Options.__dataclass_fields__ and word not in RULES:
            raise OptionError(
                f"{word} is no word of explain, since it holds for all questions: give it to "
                f"VoICE(model, {word}=...) before fit."
            )


def _check_count(value: Any, where: str, least: int) -> None:
    whole = type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
    if not whole or value < least:
        raise OptionError(f"{where}={value!r} is not allowed; use a whole number, {least} or more.")
