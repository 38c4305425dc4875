"""Counterfactuals: the answers to a batch of rows, as arrays, tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.region import Array
from voicecf.output.wording import exact, joined
from voicecf.status import Status
from voicecf.table.frames import Kind, emptied, indexed, table, typed
from voicecf.table.space import Given, Space

if TYPE_CHECKING:
    from voicecf.reasons.reasons import Reason

Rows = NDArray[np.int64]
# How many changes a line of a printout names; `text` names all of them.
NAMED = 6
# How many times as far is as good as any distance.
FAR = 1e6
# What there is one of for every answer.
ARRAYS = ("row", "place", "points", "source", "target", "status", "cost", "n_changed",
          "cardinality", "rho", "alpha", "gap", "rank")  # fmt: skip
_FLOATS = {np.dtype(np.float64): nw.Float64, np.dtype(np.float32): nw.Float32}


@dataclass(frozen=True, repr=False, eq=False)
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
        How many times as far the same move may go before it leaves the region, and that less 1.
    alpha : array of shape (n,)
        Contraction of the target's cell.
    gap : array of shape (n,)
        Duality gap of the certificate, relative to the size of the move in the solver's metric.
    rank : array of shape (n,)
        0 for the best answer of a row and target, 1, 2, ... for its alternatives.
    multipliers : array of shape (n, k)
        The certificate; see the property.
    """

    space: Space
    given: Given
    written: Given | None
    place: Rows
    weights: Array
    least: Array
    row: Rows
    points: NDArray[Any]
    source: Rows
    target: Rows
    status: NDArray[np.int8]
    cost: Array
    n_changed: Rows
    cardinality: Rows
    rho: Array
    alpha: Array
    gap: Array
    rank: Rows
    certify: Callable[[Rows, Rows, Rows], Array]

    @property
    def kind(self) -> Kind | None:
        """What the rows came as."""
        return self.given.kind

    @property
    def factual(self) -> Any:
        """The rows as they came, all of them: as the model's numbers, or as given to a pipeline."""
        if self.space.steps is None:
            return self.given.points.astype(self.space.dtype, copy=False)
        return self.given.array if self.given.frame is None else self.given.frame.to_native()

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Whether there is an answer, in the target, for each row."""
        answered = (Status.OPTIMAL, Status.ALREADY, Status.STOPPED)
        return np.isin(self.status, np.array(answered, dtype=np.int8))

    @property
    def tau(self) -> Array:
        """Directional tolerance, rho - 1."""
        return self.rho - 1.0

    @cached_property
    def multipliers(self) -> Array:
        """Certificates, shape (n, k): how hard each rival cluster presses on the answer.

        They are Lagrange multipliers of the rows of ``voice.region(target)``, for half the squared
        move in the metric w + delta. Where a row is infeasible they are the Farkas vector: this sum
        of rows, each to be negative, is positive all over the allowed box. Solved again on first
        access, which gives the same digits.
        """
        stays = (self.status == Status.ALREADY) | (self.status == Status.MISSED)
        found = self.certify(self.row, self.target, self.cardinality)
        return np.where(stays[:, None], 0.0, found)

    def __len__(self) -> int:
        return len(self.row)

    def __getitem__(self, which: Any) -> Counterfactuals:
        """Return some of the answers: a slice, a mask, positions, or one position."""
        if isinstance(which, (int, np.integer)):
            which = [self._at(which)]
        return replace(self, **{name: getattr(self, name)[which] for name in ARRAYS})

    def followed_by(self, others: Counterfactuals, after: Rows) -> Counterfactuals:
        """Return these answers, each followed by those of `others` that come after it."""
        both: dict[str, Any] = {
            n: np.concatenate([getattr(self, n), getattr(others, n)]) for n in ARRAYS
        }
        order = np.argsort(np.concatenate([np.arange(len(self)), after]), kind="stable")
        both["place"][len(self) :] += 0 if self.written is None else self.written.rows
        turn = np.concatenate([np.zeros(len(self), dtype=np.int64), _turns(after)])
        both["rank"] = turn
        written = self.written
        if written is not None and others.written is not None:
            written = written.followed_by(others.written)
        sorted_: dict[str, Any] = {n: both[n][order] for n in ARRAYS}
        return replace(self, written=written, **sorted_)

    def _at(self, i: Any) -> int:
        if not -len(self) <= i < len(self):
            raise IndexError(f"there is no answer {i}: there are {len(self)}, counted from 0.")
        return int(i) % len(self)

    def __iter__(self) -> Iterator[Counterfactuals]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def _moves(self) -> Array:
        """Change of each coordinate, shape (n, d)."""
        return np.asarray(self.points - self.given.points[self.row])

    @cached_property
    def deltas(self) -> Array:
        """Change of each column in its own units, shape (n, columns); NaN for a category."""
        if self.space.is_plain:
            return self._moves
        made = np.full((len(self), len(self.space.columns)), np.nan)
        for c, column in enumerate(self.space.columns):
            if column.kind == "number":
                made[:, c] = self._after(c) - self._before(c)
        return made

    def _before(self, c: int) -> NDArray[Any]:
        """Values of a column, as its user knows them, before the change."""
        return self.space.shown(c, self.given, self.row)

    def _after(self, c: int) -> NDArray[Any]:
        """Values of a column, as its user knows them, after the change."""
        column = self.space.columns[c]
        if column.declared:
            return self.space.levels_at(c, self.points)
        if self.written is None:
            return np.asarray(self.points[:, column.places[0]])
        values = self.space.shown(c, self.written, self.place)
        values[self._lost] = None if values.dtype == object else np.nan
        return values

    @property
    def _lost(self) -> NDArray[np.bool_]:
        """Which rows have no changed row to show."""
        return np.asarray(np.isnan(self.points).any(axis=1))

    @cached_property
    def _values(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Before and after of all columns."""
        columns = range(len(self.space.columns))
        return [self._before(c) for c in columns], [self._after(c) for c in columns]

    @cached_property
    def _changes(self) -> NDArray[np.bool_]:
        return self.space.changed(self._moves, self.least)

    def _changed(self, i: int) -> Rows:
        """Columns that answer i changes, the costliest first."""
        moved = np.flatnonzero(self._changes[i])
        price = self.weights * self._moves[i] ** 2
        moves = [price[self.space.columns[c].places].sum() for c in moved]
        return moved[np.argsort(-np.asarray(moves), kind="stable")]

    def to_frame(self) -> Any:
        """Return the changed rows in the columns, and the kind of frame, that came in.

        A row without an answer holds nothing.
        """
        if self.given.array is self.given.points and self.space.steps is None:
            return self.space.table(self.points)
        written, place = self.written, self.place
        if written is None:
            doubles = self.points.astype(np.float64, copy=False)
            written, place = self.space.write(doubles, self.given, self.row), np.arange(len(self))
        if written.frame is not None:
            frame = written.frame[place]
        else:
            assert written.array is not None
            columns = dict(zip(self.space.sources, typed(written.array[place]), strict=True))
            frame = nw.from_native(table(columns), eager_only=True)
        names = [self.space.frame_name(frame, s) for c in self.space.columns for s in c.sources]
        return indexed(emptied(frame, names, self._lost).to_native(), self.kind, self.row)

    def to_json(self, indent: int | None = None) -> str:
        """Write the answers as strict JSON, as `voicecf.output.schema.JSON_SCHEMA` has it.

        Values are in the user's columns, units and types, and as short as `rounded` makes them;
        what is missing is null.

        Parameters
        ----------
        indent : int, optional
            Spaces for each level; everything in one line if left out.
        """
        from voicecf.output.schema import as_json

        return as_json(self, indent=indent)

    def summary(self) -> Any:
        """Return a table with a line an answer: clusters, status, cost, tolerance."""
        columns = ("row", "source", "target", "feasible", "cost", "n_changed", "cardinality",
                   "rho", "tau", "alpha", "gap", "rank")  # fmt: skip
        found = {name: getattr(self, name) for name in columns}
        found["status"] = np.array([Status(s).name.lower() for s in self.status], dtype=str)
        return table(found, self.kind)

    def changes(self) -> Any:
        """Return a long table, a line a changed column: row, target, feature, from, to, delta."""
        moved = [self._changed(i) for i in range(len(self))]
        answer = np.repeat(np.arange(len(self)), [len(m) for m in moved])
        feature = np.concatenate([*moved, np.empty(0, dtype=np.int64)]).astype(np.int64)
        names = [self.space.names[f] for f in feature]
        textual = all(isinstance(name, str) for name in self.space.names)
        columns = {
            "row": self.row[answer],
            "target": self.target[answer],
            "feature": np.array(names, dtype=str) if textual else _objects(names),
            **self._cells(answer, feature),
            "delta": self.deltas[answer, feature],
        }
        schema = {"row": nw.Int64, "target": nw.Int64, "feature": nw.String}
        for name in ("from", "to", "delta"):
            schema[name] = _FLOATS.get(columns[name].dtype, nw.String)
        return table(columns, self.kind, schema if textual else None)

    def _cells(self, answer: Rows, feature: Rows) -> dict[str, NDArray[Any]]:
        """Values before and after of cells; as text if some column is a category."""
        if self.space.is_plain:
            before = self.given.points.astype(self.points.dtype, copy=False)
            return {
                "from": before[self.row[answer], feature], "to": self.points[answer, feature],
            }  # fmt: skip
        numeric = all(column.kind == "number" for column in self.space.columns)
        cells = {}
        for name, values in zip(("from", "to"), self._values, strict=True):
            picked = [values[f][a] for a, f in zip(answer, feature, strict=True)]
            written = picked if numeric else [_as_text(value) for value in picked]
            cells[name] = np.array(written, dtype=np.float64 if numeric else object)
        return cells

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
        from voicecf.output.digits import rounded

        return rounded(self)

    def text(self, i: int) -> str:
        """Say answer i in plain words.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> print(voice.explain([[1.0, 5.0]], target=1, bounds={"age": (0, 2.01)}).text(0))
        Row 0 moves from cluster 0 to 1 if age rises from 1 to 2.01; it can go no further.
        """
        return self[self._at(i)].rounded()._sentence(0)

    def _sentence(self, i: int) -> str:
        """Say answer i with the digits that it has; `text` says it rounded."""
        row, source, target = self.row[i], self.source[i], self.target[i]
        status = Status(self.status[i])
        if status == Status.ALREADY:
            return f"Row {row} is in cluster {target} already; nothing has to change."
        if not self.feasible[i]:
            return f"Row {row} cannot move from cluster {source} to {target}: {status.diagnosis}"
        if self.n_changed[i] == 0:
            return (
                f"Row {row} lies on the border of clusters {source} and {target}: a touch moves it."
            )
        verb = "stays in" if source == target else f"moves from cluster {source} to"
        where = f"cluster {target}, deeper" if source == target else f"{target}"
        moved = joined([self._phrase(i, f) for f in self._changed(i)])
        return f"Row {row} {verb} {where} if {moved}; it can go {self._reach(i)}."

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
        ['age may not change', 'cluster 0 is too close']
        >>> print(reason.relaxations[0])
        unlock age (cost 0.5)
        """
        from voicecf.reasons.reasons import reason_of

        return reason_of(self, self._at(i))

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
        from voicecf.reasons.ranges import ranges_of

        return ranges_of(self, self._at(i))

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

    def _phrase(self, i: int, c: int) -> str:
        name = _legible(self.space.names[c])
        before, after = (values[c][i] for values in self._values)
        if self.space.columns[c].kind == "category":
            return f"{name} changes from {_level_text(before)} to {_level_text(after)}"
        truth = self.space.is_truth(c, self.given)
        if np.isnan(before):
            return f"{name}, which is missing, is {bool(after) if truth else exact(after)}"
        if truth:
            return f"{name} changes from {bool(before)} to {bool(after)}"
        verb = "rises" if after > before else "falls"
        return f"{name} {verb} from {exact(before)} to {exact(after)}"

    def _reach(self, i: int) -> str:
        rho = self.rho[i]
        if rho > FAR:
            return "any distance that way"
        return f"{rho:.2g} times as far before it leaves" if rho >= 1.05 else "no further"

    def _counts(self) -> str:
        names = [Status(s).name.lower() for s in self.status]
        found = {name: names.count(name) for name in dict.fromkeys(names)}
        return ", ".join(f"{count} {name}" for name, count in found.items()) or "none"

    def __repr__(self) -> str:
        lines = [f"{len(self)} counterfactual{'s' * (len(self) != 1)}: {self._counts()}"]
        if self.feasible.any():
            cost, changed = self.cost[self.feasible], self.n_changed[self.feasible]
            lines.append(
                f"median cost {np.median(cost):.4g}, median changes {np.median(changed):g}"
            )
        lines += [f"  {line}" for line in self[:3].rounded()._lines()]
        if len(self) > 3:
            lines.append(f"  ... and {len(self) - 3} more; see .summary(), .changes(), .to_frame()")
        return "\n".join(lines)

    def _lines(self) -> Iterator[str]:
        """Yield a sentence for each answer; of one with many changes, how many they are."""
        for i in range(len(self)):
            if self.feasible[i] and self.n_changed[i] > NAMED:
                move = f"moves from cluster {self.source[i]} to {self.target[i]}"
                yield f"Row {self.row[i]} {move} by {self.n_changed[i]} changes: see .text({i})"
            else:
                yield self._sentence(i)

    def _repr_html_(self) -> str:
        head, *body = repr(self).split("\n")
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in body)
        return f"<div><strong>{escape(head)}</strong><ul>{items}</ul></div>"


def _turns(after: Rows) -> Rows:
    """Count 1, 2, ... along runs of equal numbers."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(after)) + 1, [len(after)]])
    return np.concatenate([np.arange(1, n + 1) for n in np.diff(starts)])


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return values as an array, each as it is; numpy would look into tuples."""
    made = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        made[i] = value
    return made


def _legible(name: Any) -> str:
    """Write a column's name so that it is seen to be one."""
    text = str(name)
    return text if text.strip() and text.isprintable() else repr(text)


def _level_text(level: Any) -> str:
    return "missing" if level is None or level != level else _legible(level)


def _as_text(value: Any) -> str | None:
    """Write a value for a table of text; None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return (
            f"{value:.0f}" if value == np.rint(value) and abs(value) < 1e15 else repr(float(value))
        )
    return str(value)
