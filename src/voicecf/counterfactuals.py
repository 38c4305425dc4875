"""Counterfactuals: the answers to a batch of rows, as arrays, tables and sentences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from html import escape
from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.output import schema, sentences, tables
from voicecf.output.digits import rounded
from voicecf.reasons.ranges import ranges_of
from voicecf.reasons.reasons import Reason, reason_of
from voicecf.search.outcome import Outcome
from voicecf.search.solving import multipliers
from voicecf.status import Status
from voicecf.table.frames import Kind


class Counterfactuals:
    """One answer a row, or a pair of row and target.

    Attributes
    ----------
    points : array of shape (n, d)
        The changed rows in coordinates: what a pipeline makes of them just before it mixes columns,
        the rows themselves for a bare model. NaN where there is no answer. `to_frame` has them in
        the user's columns.
    row : array of shape (n,)
        Which row of the input each answer belongs to.
    source, target : array of shape (n,)
        Cluster before and after.
    status : array of shape (n,)
        A `Status` each; ``Status(code).diagnosis`` says it in words.
    cost : array of shape (n,)
        The paper's D_w: weighted squared distance of the move, weights summing to 1.
    n_changed : array of shape (n,)
        Columns that move by more than 1e-9 of their observed range; a category counts as one.
    cardinality : array of shape (n,)
        Columns that were allowed to move: r* for ``objective="prefix"``.
    rho, tau : array of shape (n,)
        The largest multiple of the move that stays in the region, and that less 1.
    alpha : array of shape (n,)
        Contraction of the target's cell.
    gap : array of shape (n,)
        Duality gap of the certificate, relative to the size of the move in the solver's metric.
    rank : array of shape (n,)
        0 for the best answer of a row and target, 1, 2, ... for its alternatives.
    multipliers : array of shape (n, k)
        The certificate; see the property.
    outcome : Outcome
        The record that all of this is read from, for plots and other views.
    """

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome
        self.row, self.target = outcome.row, outcome.target
        self.points, self.status, self.cost = outcome.points, outcome.status, outcome.cost
        self.n_changed, self.cardinality = outcome.n_changed, outcome.cardinality
        self.rho, self.gap, self.rank = outcome.rho, outcome.gap, outcome.rank

    @cached_property
    def source(self) -> Ints:
        """Cluster before the change."""
        return self.outcome.source

    @cached_property
    def alpha(self) -> Array:
        """Contraction of the target's cell."""
        return self.outcome.question.learned.alpha[self.target]

    @property
    def kind(self) -> Kind | None:
        """What the rows came as."""
        return self.outcome.rows.kind

    @property
    def factual(self) -> Any:
        """The rows as they came, all of them: as the model's numbers, or as given to a pipeline."""
        space, rows = self.outcome.space, self.outcome.rows
        if space.steps is None:
            return rows.points.astype(space.dtype, copy=False)
        return rows.array if rows.frame is None else rows.frame.to_native()

    @property
    def feasible(self) -> Mask:
        """Whether there is an answer, in the target, for each row."""
        return self.outcome.feasible

    @property
    def tau(self) -> Array:
        """Directional tolerance, rho - 1."""
        return self.rho - 1.0

    @cached_property
    def multipliers(self) -> Array:
        """Certificates, shape (n, k): how hard each rival cluster presses on the answer.

        They are Lagrange multipliers of the constraints of ``voice.region(target)``, for half the
        squared move in the metric w + delta. Where a row is infeasible they are the Farkas vector:
        this sum of constraints, each of which is to be at most 0, is positive all over the allowed
        box. Solved again on first access, which gives the same digits. NaN for `CFCLUST`, whose
        answers have no certificate.
        """
        stays = (self.status == Status.ALREADY) | (self.status == Status.MISSED)
        question = self.outcome.question
        found = multipliers(question, self.row, self.target, self.cardinality)
        return np.where(stays[:, None], 0.0, found)

    @property
    def deltas(self) -> Array:
        """Change of each column in its own units, shape (n, C); NaN for a category."""
        return self.outcome.deltas

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which: Any) -> Counterfactuals:
        """Return some of the answers: a slice, a mask, positions, or one position."""
        if isinstance(which, (int, np.integer)):
            which = [self._at(which)]
        return Counterfactuals(self.outcome[which])

    def __iter__(self) -> Iterator[Counterfactuals]:
        return (self[i] for i in range(len(self)))

    def _at(self, i: Any) -> int:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no answer {i}: there are {len(self)}, counted from 0.")
        return int(i) % len(self)

    def to_frame(self) -> Any:
        """Return the changed rows in the columns, and the kind of frame, that came in.

        A row without an answer holds nothing.
        """
        return tables.changed_rows(self.outcome)

    def to_json(self, indent: int | None = None) -> str:
        """Write the answers as strict JSON, as `voicecf.output.schema.JSON_SCHEMA` has it.

        Values are in the user's columns, units and types, and as short as `rounded` makes them;
        what is missing is null.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; everything in one line if left out.
        """
        return schema.as_json(self.outcome, indent=indent)

    def summary(self) -> Any:
        """Return a table with a line an answer: clusters, status, cost, tolerance."""
        columns = ("row", "source", "target", "feasible", "cost", "n_changed", "cardinality",
                   "rho", "tau", "alpha", "gap", "rank")  # fmt: skip
        found = {name: getattr(self, name) for name in columns}
        found["status"] = np.array([Status(s).name.lower() for s in self.status], dtype=str)
        return tables.table(found, self.kind)

    def changes(self) -> Any:
        """Return a long table, a line a changed column: row, target, feature, from, to, delta."""
        return tables.changes(self.outcome)

    def rounded(self) -> Counterfactuals:
        """Return the same answers in few digits, rounded so that each still lands.

        A changed number gets as few digits as it can have while the row with all of its changes
        typed in is in the target by the model's own predict, and within bounds and rules; where no
        short number lands, it keeps all of its digits. Sentences, cards, JSON and the app print
        these. Cost, rho and gap are those of the exact answers.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 5.0]], target=1).rounded().points
        array([[2.01, 5.  ]])
        """
        return Counterfactuals(rounded(self.outcome))

    def text(self, i: int) -> str:
        """Say answer i in plain words.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> print(voice.explain([[1.0, 5.0]], target=1, bounds={"age": (0, 2.01)}).text(0))
        Row 0 moves from cluster 0 to 1 if age rises from 1 to 2.01; it may not be larger.
        """
        return sentences.sentence(rounded(self.outcome[[self._at(i)]]), 0)

    def reason(self, i: int) -> Reason:
        """Tell why answer i is infeasible, and what would make one possible.

        Solves again, many times, for a minimal conflict of rules and rivals; see
        `voicecf.reasons.Reason`. Where the row has an answer, it says so.

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

        A line a changed column, the costliest first: column, from, to; low and high, between which
        it may lie in the user's units while the answer stays in its target (contracted, if it is)
        and within the rules; binds_low and binds_high, what is in the way there ("cluster 3",
        "bound", "rule", "step", "data range", or "open"); for a category other_levels, those that
        would do as well.

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
            Rows to draw on a map; without it there are the cells, the row and its answer.
        plane : Plane or pair of columns, optional
            What a map is a map of; ``Plane.most_telling(cf, i)`` if left out.
        ax : matplotlib Axes, optional
        theme : "light" or "dark"

        Returns
        -------
        matplotlib Axes
            ``ax.figure.savefig("answer.svg")`` writes it.
        """
        from voicecf.plots.drawn import drawn

        return drawn(self, self._at(i), kind, data, plane).plot(ax, theme)

    def __repr__(self) -> str:
        names = [Status(s).name.lower() for s in self.status]
        counts = {name: names.count(name) for name in dict.fromkeys(names)}
        told = ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"
        lines = [f"{len(self)} counterfactual{'s' * (len(self) != 1)}: {told}"]
        if self.feasible.any():
            cost, changed = self.cost[self.feasible], self.n_changed[self.feasible]
            lines.append(
                f"median cost {np.median(cost):.4g}, median changes {np.median(changed):g}"
            )
        lines += [f"  {line}" for line in sentences.lines(rounded(self.outcome[:3]))]
        if len(self) > 3:
            lines.append(f"  ... and {len(self) - 3} more; see .summary(), .changes(), .to_frame()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *body = repr(self).split("\n")
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in body)
        return f"<div><strong>{escape(head)}</strong><ul>{items}</ul></div>"
