"""Counterfactuals: the answers to a batch of rows, as arrays, tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np

from voicecf.edges import edge
from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.region import Region
from voicecf.output import schema, tables
from voicecf.output.sentences import Sentences, cost_in_words
from voicecf.output.short import Short
from voicecf.reasons.case import CONTRACTION, cost_without
from voicecf.reasons.ranges import ranges_of
from voicecf.reasons.reasons import Reason, reason_of
from voicecf.search.outcome import Outcome
from voicecf.search.solving import PAIRWISE, certificate, multipliers
from voicecf.status import Status
from voicecf.table.frames import Kind
from voicecf.table.wording import counted, figure


class Counterfactuals:
    """Counterfactuals: an answer for each row, or for each pair of row and target.

    `VoICE.explain` returns them. Rows without an answer have a `status` that says why. A slice, a
    mask or a list of positions gives some of the answers: ``cf[cf.feasible]``.

    Attributes
    ----------
    points : array of shape (n, d)
        The changed rows in coordinates: after the scalers and encoders of a pipeline, but before a
        step that mixes columns; for a model without a pipeline, the columns themselves. NaN where
        there is no answer. `to_frame` returns them in the user's columns.
    row : array of shape (n,)
        Which row of the input each answer belongs to.
    source, target : array of shape (n,)
        Cluster before and after; -1 if it is not known, because the row cannot be read. Of a
        classifier, the position in `classes_`.
    status : array of shape (n,)
        `Status` codes; ``Status(code).diagnosis`` explains one.
    cost : array of shape (n,)
        The paper's D_w: weighted mean of the squared changes of the coordinates, with the model's
        weights, which sum to 1, times the factors of the rule `costs`. An optimal answer is the
        cheapest in the contracted cell of its target; without contraction, the cheapest that lands.
    price : array of shape (n,)
        What each change costs in money, with ``objective="price"``; see the property.
    n_changed : array of shape (n,)
        Number of columns whose values differ between the row and `to_frame`; a category counts as
        one.
    cardinality : array of shape (n,)
        Number of columns that were allowed to change: r* for ``objective="prefix"``.
    rho, tau : array of shape (n,)
        rho is the largest multiple of the move that stays in the region, tau is rho - 1.
    alpha : array of shape (n,)
        Contraction of the target's cell.
    gap : array of shape (n,)
        How much cheaper another answer could be at most, relative to the cost; 0 is proof.
    usual : array of shape (n,)
        Share of the target's members that are at least as extreme as the answer; see the property.
    robustness_cost : array of shape (n,)
        What contraction adds to the cost; see the property.
    plausible : array of shape (n,)
        Share of the target's members that the answer stays within, by the rule `plausible`.
    rank : array of shape (n,)
        0 for the best answer of a row and target, 1, 2, ... for its alternatives.
    multipliers : array of shape (n, k)
        Certificates of optimality or infeasibility; see the property.
    outcome : Outcome
        The record behind these attributes, which plots read.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> cf = voice.explain([[1.0, 5.0], [3.0, 5.0]], target=1)
    >>> cf
    2 counterfactuals: 1 optimal, 1 already
    median cost 0.5, median number of changes 1
    cost: weighted mean squared change, in units of the model's columns; the cheapest change that \
lands in the target
      Row 0 moves from cluster 0 to 1 if age rises from 1 to 2.01; however much larger, the same \
change still lands in cluster 1.
      Row 1 is in cluster 1 already; nothing has to change.
    """

    def __init__(self, outcome: Outcome, part_of: tuple[Short, Ints] | None = None) -> None:
        self.outcome, self._part_of = outcome, part_of
        self.row, self.target = outcome.row, outcome.target
        self.points, self.status, self.cost = outcome.points, outcome.status, outcome.cost
        self.cardinality, self.rank = outcome.cardinality, outcome.rank
        self.rho, self.gap = outcome.rho, outcome.gap

    @cached_property
    def source(self) -> Ints:
        """Cluster before the change."""
        return self.outcome.source

    @property
    def price(self) -> Array:
        """What each change costs in money: the sum of price times change, in the user's units.

        With ``objective="price"``, of which an optimal answer is the least. Without `prices` each
        unit of a coordinate costs 1. NaN for other objectives, and where there is no answer.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 4.0]], feature_names=["visits", "basket"])
        >>> prices = {"visits": (4, 2), "basket": 0.5}
        >>> cf = voice.explain([[1.0, 1.0]], target=1, objective="price", prices=prices)
        >>> cf.points.round(6), cf.price.round(6)
        (array([[1., 3.]]), array([1.]))
        """
        return self.outcome.price

    @property
    def n_changed(self) -> Ints:
        """Number of columns that changed."""
        return self.outcome.n_changed

    @cached_property
    def alpha(self) -> Array:
        """Contraction of the target's cell; NaN if the row has no target."""
        alpha = self.outcome.learned.alpha[self.target]
        return np.where(self.target < 0, np.nan, alpha)

    @property
    def kind(self) -> Kind | None:
        """The kind of frame that the rows came in; None for an array."""
        return self.outcome.rows.kind

    @property
    def factual(self) -> Any:
        """All rows that were explained, unchanged: an array for a bare model, else as they came."""
        space, rows = self.outcome.space, self.outcome.rows
        if rows.original is not None:
            return rows.original.native
        return rows.points.astype(space.dtype, copy=False) if space.steps is None else rows.native

    @property
    def feasible(self) -> Mask:
        """Whether each answer exists and lies in its target."""
        return self.outcome.feasible

    @property
    def tau(self) -> Array:
        """Directional tolerance, rho - 1."""
        return self.rho - 1.0

    @cached_property
    def multipliers(self) -> Array:
        """Lagrange multipliers of the rival clusters, shape (n, k): certificates of the answers.

        They belong to the constraints of ``voice.region(target)``, for half the
        squared move in the metric w + delta; `certificate` has those of rules, too. For an
        infeasible row of numbers they are the Farkas
        vector: the sum of the constraints with these weights, which an answer would make at most 0,
        is positive everywhere in the allowed box. Where whole numbers, categories or other choices
        were searched, the search itself is the proof. They are computed on first access. NaN for
        `CFCLUST`, whose answers have no certificate.
        """
        readable = np.flatnonzero(self.status != Status.UNREADABLE)
        tables = [
            (which, multipliers(p.question, p.row, p.piece, p.cardinality, p.factor))
            for which, p in self.outcome[readable].parts()
        ]
        found = np.full((len(self), tables[0][1].shape[1]), np.nan)
        for which, table in tables:
            found[readable[which]] = table
        stays = (self.status == Status.ALREADY) | (self.status == Status.MISSED)
        return np.where(stays[:, None], 0.0, found)

    def certificate(self, i: int) -> tuple[Region, Array]:
        """Return all constraints that answer i had to meet, and their multipliers.

        The constraints are those of the cell, contracted, of the share of the members that the
        answer stays within, and of linear rules; the box is that of bounds and rules. They are in
        coordinates. With these anyone can check that no point of the region is cheaper, or that
        there is none. Where whole numbers, categories or few columns were searched, the search
        itself is the proof, and there is nothing to return.

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> from sklearn.datasets import load_iris
        >>> from voicecf import VoICE
        >>> X = load_iris().data
        >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
        >>> cf = voice.explain(X[:1], target=2)
        >>> region, multipliers = cf.certificate(0)
        >>> bool(region.contains(cf.points, slack=1e-9)[0]), len(region.normals) == len(multipliers)
        (True, True)
        """
        found = self.outcome
        question = found.question_of(i)
        if question.objective == PAIRWISE or question.allowed.choices is not None:
            raise OptionError(
                "only answers of VoICE whose columns may take any number have multipliers; where "
                "whole numbers, categories or few columns are searched, the search is the proof: "
                "see gap."
            )
        if found.status[i] == Status.UNREADABLE:
            raise OptionError(f"answer {i} is for a row that cannot be read: see text({i}).")
        row, piece = int(found.row[i]), int(found.piece[i])
        return certificate(question, row, piece, int(found.cardinality[i]), float(found.factor[i]))

    @cached_property
    def usual(self) -> Array:
        """How usual each answer is: the share of its target's members that are as extreme or more.

        Extremeness is the largest distance from the members' mean along one of their principal
        directions, in standard deviations. A share near 0 means that the answer lies at the rim of
        the members, where hardly any row of the data is. NaN where there is no answer, and if the
        explainer was not fitted to data.

        Examples
        --------
        >>> from sklearn.cluster import KMeans
        >>> from sklearn.datasets import load_iris
        >>> from voicecf import VoICE
        >>> X = load_iris().data
        >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
        >>> voice.explain(X[:1], target=2, plausible=None).usual.round(2)
        array([0.])
        """
        return self.outcome.usual

    @property
    def plausible(self) -> Array:
        """Share of the target's members that each answer stays within, by the rule `plausible`.

        With ``plausible="auto"`` it is the first share that had an answer. NaN where the rule does
        not hold: it was not given, no share had an answer, or nothing had to change.
        """
        return self.outcome.share

    def cost_without(self, word: str) -> Array:
        """Return what each answer would cost without one of the rules, shape (n,).

        The same rows and targets are solved again, all at once. NaN where there is no answer even
        then. For an alternative, and for the limits of `tradeoff`, it is the cost of the best
        answer.

        Parameters
        ----------
        word : str
            "contraction", for answers anywhere in the target's cell, or a rule: "immutable",
            "bounds", "plausible", ... Without "bounds", the explainer's own bounds still hold.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 4.0]], feature_names=["age", "income"])
        >>> cf = voice.explain([[1.0, 1.0]], target=1, immutable="age")
        >>> cf.cost.round(6), cf.cost_without("immutable").round(6)
        (array([2.]), array([1.]))
        """
        return cost_without(self.outcome, word)

    @cached_property
    def robustness_cost(self) -> Array:
        """What contraction adds to the cost of each answer; 0 for rows that stay.

        It is ``cost - cost_without("contraction")``: the price of keeping off the border.
        It can be negative if the objective is not the cost.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], contraction=0.5)
        >>> voice.explain([[1.0, 5.0], [3.0, 5.0]], target=1).robustness_cost.round(6)
        array([1.5, 0. ])
        """
        return self.cost - self.cost_without(CONTRACTION)

    @property
    def deltas(self) -> Array:
        """Change of each column in its own units, shape (n, columns); NaN for a category."""
        return self.outcome.deltas

    def __len__(self) -> int:
        return len(self.row)

    def __reduce__(self) -> Any:
        # A part is pickled without the batch that it is of.
        return Counterfactuals, (self.outcome,)

    def __getitem__(self, which: Any) -> Counterfactuals:
        """Return some of the answers: by a slice, a mask, positions, or one position."""
        if isinstance(which, (int, np.integer)):
            which = [self._at(which)]
        short, positions = self._in_batch
        return Counterfactuals(self.outcome[which], (short, positions[which]))

    def __iter__(self) -> Iterator[Counterfactuals]:
        return (self[i] for i in range(len(self)))

    def _at(self, i: Any) -> int:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no answer {i}: there are {len(self)}, counted from 0.")
        return int(i) % len(self)

    def to_frame(self) -> Any:
        """Return the changed rows, in the columns and the kind of frame that were explained.

        Values have all of their digits; `rounded` gives short ones. A row without an answer has
        missing values.

        Examples
        --------
        >>> import pandas as pd
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> people = pd.DataFrame({"age": [1.0], "income": [5.0]})
        >>> voice.explain(people, target=1).rounded().to_frame()
            age  income
        0  2.01     5.0
        """
        return tables.changed_rows(self.outcome)

    def to_json(self, indent: int | None = None) -> str:
        """Return the answers as strict JSON that follows `voicecf.output.schema.JSON_SCHEMA`.

        Values are in the user's columns, units and types, with the digits of `rounded`; a missing
        value is null.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; everything in one line if left out.

        Examples
        --------
        >>> import json
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> answer = json.loads(voice.explain([[1.0, 5.0]], target=1).to_json())["answers"][0]
        >>> answer["status"], answer["values"]
        ('optimal', {'age': 2.01, 'income': 5.0})
        """
        return schema.json_of(self._rounded, indent)

    def summary(self) -> Any:
        """Return a table with one line for each answer: clusters, status, cost, tolerance.

        Clusters are told by name, if they have names.
        It is of the kind of frame that was explained; pandas for an array. `table` has the changed
        values as well.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> table = voice.explain([[1.0, 5.0]], target=1).summary()
        >>> table[["row", "source", "target", "status", "n_changed"]]
           row  source  target   status  n_changed
        0    0       0       1  optimal          1
        """
        return tables.summary(self.outcome, {name: getattr(self, name) for name in tables.MEASURES})

    def table(self) -> Any:
        """Return a table with one line for each answer, to be read by people.

        Its columns are id (or row, if rows have no ids), source, target (by name, if clusters have
        names), rank (if there are alternatives), status, cost, price (if that is the objective),
        gap (if a search reached its limit) and n_changed, and, for each column that some answer
        changes, its values before and after, such as "age: from" and "age: to", missing where an
        answer does not change it. They are the values of `rounded`, in the types of the user's
        table.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers(
        ...     [[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"], names=["loyal", "lapsed"]
        ... )
        >>> voice.explain([[1.0, 5.0]], target="lapsed").table().drop(columns="cost")
           row source  target   status  n_changed  age: from  age: to
        0    0  loyal  lapsed  optimal          1        1.0     2.01
        """
        return tables.one_line_each(self._rounded)

    def changes(self) -> Any:
        """Return a table with one line for each changed column of each answer.

        Its columns are row (after id, if rows have ids), target, feature, from, to and delta, and
        unit if columns have units. The
        costliest change of an answer comes first. Values have the types of the user's table:
        columns of whole numbers have whole numbers, categories their levels.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 5.0]], target=1).rounded().changes()
           row  target feature  from    to  delta
        0    0       1     age   1.0  2.01   1.01
        """
        return tables.changes(self.outcome)

    def rounded(self) -> Counterfactuals:
        """Return the same answers in few digits, rounded such that each still lands in its target.

        A changed number gets as few digits as possible: with all changes typed in, the model's own
        predict still puts the row into the target, and bounds and rules hold. If no short number
        does that, it keeps all of its digits. Changes of up to 1/1000 of a column's observed range
        are left out where the row lands without them; `n_changed` counts those that are left.
        Sentences, cards, JSON and the app print these values. Cost, rho and gap are still those of
        the exact answers.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 5.0]], target=1).rounded().points
        array([[2.01, 5.  ]])
        """
        return Counterfactuals(self._rounded, self._in_batch)

    @cached_property
    def _in_batch(self) -> tuple[Short, Ints]:
        """The rounded answers of the batch that these are a part of, and their positions in it."""
        return self._part_of or (Short(self.outcome), np.arange(len(self)))

    @cached_property
    def _rounded(self) -> Outcome:
        short, positions = self._in_batch
        return short[positions]

    def text(self, i: int, *, all: bool = False) -> str:
        """Describe answer i in a sentence, with the values of `rounded`.

        A value before the change that has more than six digits is rounded, too: the change is then
        true to a hundredth, and what is said of its multiples holds from either value. `changes`
        has it in full.
        Of more than six changes it names the four that cost most, and counts the others. With
        ``all=True`` it names every change: typed in, all of them together land in the target.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> print(voice.explain([[1.0, 5.0]], target=1, bounds={"age": (0, 2.01)}).text(0))
        Row 0 moves from cluster 0 to 1 if age rises from 1 to 2.01; this change can hardly be \
larger.
        """
        short, positions = self._in_batch
        return short.text(positions[self._at(i)], all=all)

    def texts(self, *, all: bool = False) -> list[str]:
        """Describe all answers, each in the sentence of `text`; `all` is that of `text`, too.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> cf = voice.explain([[1.0, 5.0], [3.0, 5.0]], target=1, bounds={"age": (0, 2.01)})
        >>> for text in cf.texts():
        ...     print(text)
        Row 0 moves from cluster 0 to 1 if age rises from 1 to 2.01; this change can hardly be \
larger.
        Row 1 is in cluster 1 already; nothing has to change.
        """
        sentences = Sentences(self._rounded)
        return [sentences.text(i, all=all) for i in range(len(self))]

    def reason(self, i: int) -> Reason:
        """Find out why a row has no answer, and which changes of the rules would make one possible.

        This solves the question many times, for a minimal conflict of rules and rival clusters; see
        `voicecf.reasons.Reason`. If answer i is not infeasible, the reason is its `text`.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> reason = voice.explain([[1.0, 5.0]], target=1, immutable="age").reason(0)
        >>> [member.text for member in reason.conflict]
        ['age may not change', 'cluster 0 is always nearer']
        >>> print(reason.relaxations[0])
        unlock age (cost 0.5)
        """
        return reason_of(self.outcome, self._at(i))

    def ranges(self, i: int) -> Any:
        """Return a table of how far each changed column of answer i may go, the others held.

        There is one line for each changed column, the costliest first. The answer stays in its
        target's cell (contracted, if the explainer contracts) and within the rules as long as the
        column lies between low and high, in the user's units. What limits it there is in binds_low
        and binds_high: a cluster, by its name or as "cluster 3", "bound", "rule", "plausible",
        "step" or "data range", or "open" if nothing does. For a category, other_levels
        lists the other levels that are valid as well.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> table = voice.explain([[1.0, 5.0]], target=1, bounds={"age": (0, 9)}).ranges(0)
        >>> round(float(table["low"][0]), 9), table["binds_low"][0]
        (2.0, 'cluster 0')
        >>> float(table["high"][0]), table["binds_high"][0]
        (9.0, 'bound')
        """
        return ranges_of(self.outcome, self._at(i))

    def plot(
        self,
        i: int = 0,
        kind: Literal["card", "map"] = "card",
        *,
        data: Any = None,
        plane: Any = None,
        ax: Any = None,
        theme: Any = "light",
    ) -> Any:
        """Draw answer i with matplotlib: a card of its changes, or a map of the segments around it.

        Parameters
        ----------
        i : int
            Which answer.
        kind : "card" or "map"
            See `voicecf.plots.ChangeCard` and `voicecf.plots.SegmentMap`.
        data : frame or array, optional
            Rows to draw on a map, in addition to the cells, the row and its answer.
        plane : Plane or pair of columns, optional
            The plane that a map shows; ``Plane.most_telling(cf, i)`` if left out.
        ax : matplotlib Axes, optional
        theme : "light" or "dark"

        Returns
        -------
        matplotlib Axes
            ``ax.figure.savefig("answer.svg")`` writes it.
        """
        return edge("draw")(self, self._at(i), kind, data, plane).plot(ax, theme)

    def __repr__(self) -> str:
        names = [Status(s).name.lower() for s in self.status]
        counts = {name: names.count(name) for name in dict.fromkeys(names)}
        statuses = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        lines = [f"{counted(len(self), 'counterfactual')}: {statuses}"]
        moved = self.feasible & (self.status != Status.ALREADY)
        if moved.any():
            cost, changed = self.cost[moved], self.n_changed[moved]
            typical, changes = (figure(float(np.median(some)), 4) for some in (cost, changed))
            lines.append(f"median cost {typical}, median number of changes {changes}")
            lines.append(cost_in_words(self.outcome))
        short, positions = self._in_batch
        first = Sentences(short[positions[:3]])
        lines += [f"  {first.text(i)}" for i in range(len(first.outcome))]
        if len(self) > 3:
            lines.append(f"  ... and {len(self) - 3} more; see .summary(), .changes(), .to_frame()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *body = repr(self).split("\n")
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in body)
        return f"<div><strong>{escape(head)}</strong><ul>{items}</ul></div>"
