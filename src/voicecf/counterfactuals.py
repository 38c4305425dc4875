"""Counterfactuals: the answers to a batch of rows, as arrays, tables and sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.region import Array
from voicecf.space import Kind, Space, table
from voicecf.status import Status

Rows = NDArray[np.int64]
# How many changes a sentence names before it counts the rest.
NAMED = 6
# How much of a column's name it shows.
LONGEST = 60


@dataclass(frozen=True, repr=False, eq=False)
class Counterfactuals:
    """One answer a row, or a pair of row and target.

    Attributes
    ----------
    points : array of shape (n, d)
        The changed rows; NaN where there is no answer.
    row : array of shape (n,)
        Which row of the input each answer belongs to.
    source, target : array of shape (n,)
        Cluster before and after.
    status : array of shape (n,)
        A `Status` each; ``Status(code).diagnosis`` says it in words.
    cost : array of shape (n,)
        The paper's D_w: weighted squared distance of the move, weights summing to 1.
    n_changed : array of shape (n,)
        Columns that move by more than 1e-9 of their observed range.
    cardinality : array of shape (n,)
        Columns that were allowed to move: r* for ``objective="prefix"``.
    rho, tau : array of shape (n,)
        How many times as far the same move may go before it leaves the region, and that less 1.
    alpha : array of shape (n,)
        Contraction of the target's cell.
    gap : array of shape (n,)
        Duality gap of the certificate, relative to the size of the move in the solver's metric.
    multipliers : array of shape (n, k)
        The certificate; see the property.
    """

    space: Space
    kind: Kind | None
    factual: NDArray[Any]
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
    certify: Callable[[Rows, Rows, Rows], Array]

    @property
    def feasible(self) -> NDArray[np.bool_]:
        """Whether there is an answer, in the target, for each row."""
        return np.asarray((self.status == Status.OPTIMAL) | (self.status == Status.ALREADY))

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
        arrays = ("row", "points", "source", "target", "status", "cost", "n_changed",
                  "cardinality", "rho", "alpha", "gap")  # fmt: skip
        return replace(self, **{name: getattr(self, name)[which] for name in arrays})

    def _at(self, i: Any) -> int:
        if not -len(self) <= i < len(self):
            raise IndexError(
                f"there is no answer {i}: positions go from 0 to {len(self)} less one."
            )
        return int(i) % len(self)

    def __iter__(self) -> Iterator[Counterfactuals]:
        return (self[i] for i in range(len(self)))

    @cached_property
    def deltas(self) -> Array:
        """Change of each column, shape (n, d)."""
        return np.asarray(self.points - self.factual[self.row])

    def _changed(self, i: int) -> Rows:
        """Columns that answer i changes, the costliest first."""
        moved = np.flatnonzero(np.abs(self.deltas[i]) > self.least)
        moves = self.weights[moved] * self.deltas[i, moved] ** 2
        return moved[np.argsort(-moves, kind="stable")]

    def to_frame(self) -> Any:
        """Return the changed rows in the columns, and the kind of frame, that came in."""
        return self.space.table(self.points, self.kind, self.row)

    def summary(self) -> Any:
        """Return a table with a line an answer: clusters, status, cost, tolerance."""
        columns = ("row", "source", "target", "feasible", "cost", "n_changed", "cardinality",
                   "rho", "tau", "alpha", "gap")  # fmt: skip
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
        floats = nw.Float64 if self.points.dtype == np.float64 else nw.Float32
        schema = {"row": nw.Int64, "target": nw.Int64, "feature": nw.String}
        return table(
            {
                "row": self.row[answer],
                "target": self.target[answer],
                "feature": np.array(names, dtype=str if textual else None),
                "from": self.factual[self.row[answer], feature],
                "to": self.points[answer, feature],
                "delta": self.deltas[answer, feature],
            },
            self.kind,
            schema | dict.fromkeys(("from", "to", "delta"), floats) if textual else None,
        )

    def text(self, i: int) -> str:
        """Say answer i in plain words.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
        >>> voice.explain([[1.0, 5.0]], target=1).text(0)
        'Row 0 moves from cluster 0 to 1 if age rises from 1 to 2; it can go any distance that way.'
        """
        i = self._at(i)
        row, source, target = self.row[i], self.source[i], self.target[i]
        status = Status(self.status[i])
        if status == Status.ALREADY:
            return f"Row {row} is in cluster {target} already; nothing has to change."
        if not self.feasible[i]:
            return f"Row {row} cannot move from cluster {source} to {target}: {status.diagnosis}"
        moved = [self._phrase(i, f) for f in self._changed(i)]
        if not moved:
            return (
                f"Row {row} lies on the border of clusters {source} and {target}: a touch moves it."
            )
        verb = "stays in" if source == target else f"moves from cluster {source} to"
        where = f"cluster {target}, deeper" if source == target else f"{target}"
        return f"Row {row} {verb} {where} if {_joined(moved)}; it can go {self._reach(i)}."

    def _phrase(self, i: int, feature: int) -> str:
        before, after = self.factual[self.row[i], feature], self.points[i, feature]
        verb = "rises" if after > before else "falls"
        start, end = _readable(float(before), float(after))
        return f"{_legible(self.space.names[feature])} {verb} from {start} to {end}"

    def _reach(self, i: int) -> str:
        rho = self.rho[i]
        if np.isinf(rho):
            return "any distance that way"
        return f"{rho:.2g} times as far before it leaves" if rho >= 1.005 else "no further"

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
        lines += [f"  {self.text(i)}" for i in range(min(3, len(self)))]
        if len(self) > 3:
            lines.append(f"  ... and {len(self) - 3} more; see .summary(), .changes(), .to_frame()")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        head, *body = repr(self).split("\n")
        items = "".join(f"<li>{escape(line.strip())}</li>" for line in body)
        return f"<div><strong>{escape(head)}</strong><ul>{items}</ul></div>"


def _legible(name: Any) -> str:
    """Write a column's name so that it fits into a line and is seen to be one."""
    text = str(name)
    text = text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
    return text if text.strip() and text.isprintable() else repr(text)


def _joined(phrases: list[str]) -> str:
    if len(phrases) > NAMED:
        rest = len(phrases) - NAMED
        phrases = [*phrases[:NAMED], f"{rest} smaller change{'s' if rest > 1 else ''}"]
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def _readable(before: float, after: float) -> tuple[str, str]:
    """Write two numbers with as many digits as it takes to see their difference to one percent."""
    size = max(abs(before), abs(after))
    digits = 3 + max(0, int(np.floor(np.log10(size / abs(after - before))))) if size else 3
    return tuple(_plain_number(v, min(digits, 17)) for v in (before, after))  # type: ignore[return-value]


def _plain_number(value: float, digits: int) -> str:
    text = f"{value:.{digits}g}"
    if "e" in text and 1e-4 <= abs(value) < 1e15:
        text = f"{value:.0f}"
    return text
