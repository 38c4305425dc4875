"""How far each changed column of an answer may go, the others held, and what limits it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Mask, product
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.output.calling import cluster_name
from voicecf.output.digits import BELOW, FEW, decimal, is_continuous
from voicecf.output.values import typed_cells, typed_table
from voicecf.reasons.case import Case
from voicecf.rules.multiples import Multiples
from voicecf.rules.plausible import Plausible
from voicecf.rules.rule import Rule
from voicecf.search.outcome import Outcome
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status
from voicecf.table.frames import Cells, is_missing
from voicecf.table.rows import Rows
from voicecf.table.space import Space
from voicecf.table.units import CENTS, has_cents
from voicecf.table.wording import joined, level

__all__ = ["TEXTS", "ranges_of", "short_ranges"]

# Columns of the table that are text.
TEXTS = ("binds_low", "binds_high", "other_levels")
# What limits a range at a number that the user knows, and would not find again if it were rounded.
KNOWN = ("data range", "bound")
# Shares of the way from the end of a range back to the answer, tried until the model agrees.
INWARD = np.concatenate([[0.0], 2.0 ** np.arange(-52.0, 1.0, 2.0)])
# Number of multiples, from the end of a range inwards, that the model is asked about at once.
TRIED = 64


@dataclass(frozen=True)
class End:
    """One end of a range, in the user's units, and what limits it."""

    value: float
    binds: str


def ranges_of(outcome: Outcome, i: int) -> Any:
    """Return the table of `Counterfactuals.ranges`."""
    lines, changed = _lines(outcome, i), outcome.changed(i)
    for line in lines:
        line["other_levels"] = ", ".join(map(str, line["other_levels"]))
    types = {"column": str, "low": float, "high": float} | dict.fromkeys(TEXTS, str)
    columns = {
        name: (np.array([line[name] for line in lines], dtype=object), {kind})
        for name, kind in types.items()
    }
    cells = typed_cells(outcome, np.full(len(changed), i), changed)
    return typed_table({"column": columns["column"], **cells, **columns}, outcome.rows.kind)


def short_ranges(outcome: Outcome, i: int) -> list[dict[str, Any]]:
    """Return the lines of `Counterfactuals.ranges` for reading, ends of ranges rounded inwards.

    A bound and the end of the data keep their own digits: up to six of them, money to the cent.
    """
    lines = _lines(outcome, i)
    for line, c in zip(lines, outcome.changed(i).tolist(), strict=True):
        line["other_levels"] = joined([*map(level, line["other_levels"])], "or")
        if is_continuous(outcome, c):
            value = float(outcome.values[1][c][i])
            cents = has_cents(outcome.space.columns[c])
            for name, direction in (("low", 1.0), ("high", -1.0)):
                known = line[f"binds_{name}"] in KNOWN
                line[name] = _inwards(line[name], value, direction, cents=cents, known=known)
    return lines


def _lines(outcome: Outcome, i: int) -> list[dict[str, Any]]:
    """Return a line for each changed column of an answer."""
    if outcome.question.objective == PAIRWISE:
        raise OptionError("ranges are available for answers of VoICE only, not of CFCLUST.")
    if not outcome.feasible[i]:
        status = Status(int(outcome.status[i])).name.lower()
        raise OptionError(f"answer {i} is {status}, so it has no ranges; see reason({i}).")
    answer = _Answer(outcome, i)
    return [answer.line(c) for c in outcome.changed(i).tolist()]


def _word(rule: Rule) -> str:
    """Return what a rule is called where it limits a range; users know `plausible` by its name."""
    return "plausible" if isinstance(rule, Plausible) else "rule"


def _inwards(end: float, value: float, direction: float, *, cents: bool, known: bool) -> float:
    """Round the end of a range towards a value in it, to the cent if that is not beyond it.

    It gets as many digits as its distance from the value asks for; one that is known, its own.
    """
    if not np.isfinite(end) or end == value:
        return end
    place = int(np.floor(np.log10(abs(end - value)))) - BELOW
    if known:
        size = int(np.floor(np.log10(abs(end)))) if end else 0
        place = min(place, size + 1 - FEW, -CENTS)
        if decimal(end, place) == end:
            return end
    rounded = float(decimal(end, max(place, -CENTS), direction))
    if cents and (value - rounded) * direction >= 0:
        return rounded
    return float(decimal(end, place, direction))


class _Answer:
    """One answer, whose columns are moved one at a time."""

    def __init__(self, outcome: Outcome, i: int) -> None:
        self.outcome, self.i = outcome, i
        self.target, self.piece = int(outcome.target[i]), int(outcome.piece[i])
        self.case = Case(outcome.question_of(i), int(outcome.row[i]), self.target)
        self.learned = outcome.learned
        self.space: Space = outcome.space
        self.point = outcome.points[i].astype(np.float64)
        self._region = self.learned.region(self.piece)
        self._rivals = self.learned.partition.piece(self.piece).rivals

    @cached_property
    def changed_row(self) -> Rows:
        """The answer in the user's columns, one row."""
        if self.outcome.output is not None:
            return self.outcome.output.take(np.array([self.i]))
        return self.space.write(self.point[None], self.outcome.rows, self.outcome.row[[self.i]])

    def line(self, c: int) -> dict[str, Any]:
        """Return how far a column may go, and what limits it."""
        column, levels = self.space.columns[c], list[Any]()
        if column.kind == "category":
            low = high = End(np.nan, "")
            levels = self._levels(c)
        elif column.listed:
            low, high = self._listed(c)
        else:
            low, high = self._end(c, -1), self._end(c, 1)
        ends = {"low": float(low.value), "high": float(high.value)}
        others = zip(TEXTS, (low.binds, high.binds, levels), strict=True)
        return {"column": str(self.space.names[c]), **ends, **dict(others)}

    # What the model says of the answer with one column replaced.

    def _valid(self, c: int, values: Any) -> Mask:
        """Tell which values of a column keep the answer in its target and within the rules."""
        rows = self._read(c, values)
        valid = self.learned.labels(rows) == self.target
        valid &= (self._excess(rows) <= self._rounding).all(axis=1)
        which, targets = np.full((2, len(values)), [[self.case.row], [self.target]])
        return np.asarray(valid & self.case.question.holds(which, targets, rows))

    def _excess(self, rows: Rows) -> Array:
        """Return G z - h, positive where a constraint of the region is violated, shape (n, m)."""
        region = self._region
        return product(rows.points - region.origin, region.normals.T) - region.offsets

    def _read(self, c: int, values: Any) -> Rows:
        """Read the answer again with other values in one column."""
        column, n = self.space.columns[c], len(values)
        every = np.arange(n)
        cells = {column.sources[0]: Cells(every, values)}
        if column.declared:
            hot = {name: np.array([float(v == name) for v in values]) for name in column.sources}
            cells = {name: Cells(every, is_level) for name, is_level in hot.items()}
        return self.space.read_again(
            self.space.with_cells(self.changed_row, np.zeros(n, dtype=np.int64), cells)
        )

    @cached_property
    def _rounding(self) -> Array:
        """Violation of each constraint that rounding alone may cause."""
        sizes, error = np.abs(self._region.normals), self.space.round_trip_error
        terms = product(sizes, np.abs(self.point) + np.abs(self._region.origin) + error)
        return np.asarray(TOLERANCE.range_end * terms + product(sizes, error))

    @cached_property
    def numbers(self) -> dict[Any, float]:
        """The answer's numbers, in the user's units, by column."""
        columns = enumerate(self.space.columns)
        return {column.name: self.number(c) for c, column in columns if column.kind == "number"}

    def number(self, c: int) -> float:
        """Return the answer's value of a number column."""
        return float(self.outcome.values[1][c][self.i])

    # Categories, and numbers that are restricted to a list of values.

    def _levels(self, c: int) -> list[Any]:
        """Return the other levels of a category that keep the answer valid."""
        column, now = self.space.columns[c], self.outcome.values[1][c][self.i]
        own, choices = self.outcome.values[0][c][self.i], self.outcome.allowed.choices
        assert choices is not None
        allowed = choices._allowed(c)
        known = [
            other
            for other, may in zip(column.levels, allowed[self.case.row % len(allowed)], strict=True)
            if not is_missing(other) and other != now and (may or other == own)
        ]
        return list(compress(known, self._valid(c, known))) if known else []

    def _listed(self, c: int) -> tuple[End, End]:
        """Return the ends of the run of valid listed values around the answer's."""
        value, listed = self.number(c), np.array(self.space.columns[c].listed)
        sides = [self._side(c, direction) for direction in (-1, 1)]
        inside = (listed >= sides[0].value) & (listed <= sides[1].value)
        valid = inside.copy()
        valid[inside] = self._valid(c, listed[inside])
        ends = []
        for direction, run in ((-1, listed < value), (1, listed > value)):
            at, end = np.flatnonzero(run)[::direction], End(value, "step")
            for k in at:
                if not valid[k]:
                    binds = self._rival(c, k) if inside[k] else sides[direction > 0].binds
                    end = End(end.value, binds)
                    break
                end = End(float(listed[k]), "step")
            ends.append(end)
        return ends[0], ends[1]

    def _rival(self, c: int, k: int) -> str:
        """Name the constraint that a listed value violates most: a cluster, or a rule."""
        excess = self._excess(self._read(c, np.array([self.space.columns[c].listed[k]])))[0]
        worst = int(np.argmax(excess - self._rounding))
        allowed = self.case.question.allowed
        has_rules = allowed.constraints or allowed.linear
        if excess[worst] <= self._rounding[worst] and has_rules:
            return "rule"
        return cluster_name(self.learned, self._rivals[worst])

    # Numbers.

    def _end(self, c: int, direction: int) -> End:
        """Return how far a number may fall (direction -1) or rise (direction 1)."""
        value, rules = self.number(c), self.case.question.allowed.rules.active()
        ends = [
            self._side(c, direction),
            *self._cell_ends(c, direction),
            *(End(end, _word(rule)) for rule in rules for end in rule.ends(self, c, direction)),
        ]
        end = min(ends, key=lambda end: end.value * direction)
        end = End(max(end.value * direction, value * direction) * direction, end.binds)
        if np.isinf(end.value):
            return end
        multiples = self.case.multiples(c)
        if multiples is None:
            return End(self._agreed(c, value, end.value), end.binds)
        return End(self._agreed_multiple(c, value, end.value, multiples), end.binds)

    def _side(self, c: int, direction: int) -> End:
        """Return the tightest bound of a column: the user's, the explainer's, or a direction."""
        case, rule, at = self.case, self.case.terms.columns[c], int(direction > 0)
        bound, side = case.bounds(c, case.original)[at], rule.sides[at]
        ends = [
            End(bound, "open" if np.isinf(bound) else "data range" if side is None else "bound")
        ]
        ends.append(End(self._shrunk(c, at), ends[0].binds))
        if rule.direction == -direction:
            ends.append(End(case.own_number(c), "rule"))
        limit = self.space.columns[c].limits[at]
        ends.append(End(limit, "data range" if np.isfinite(limit) else "open"))
        if self.space.is_boolean(c, case.rows):
            ends.append(End(float(at), "step"))
        return min(ends, key=lambda end: end.value * direction)

    def _shrunk(self, c: int, at: int) -> float:
        """Return the bound that was contracted along with the cell; infinite if it was not."""
        column, infinite = self.space.columns[c], (-np.inf, np.inf)[at]
        if not self.learned.contract_bounds:
            return infinite
        side = self.case.box(self.piece)[at if column.rising else 1 - at][column.places[0]]
        return float(self.space.values(c, [[side]])[0]) if np.isfinite(side) else infinite

    def _cell_ends(self, c: int, direction: int) -> Iterator[End]:
        """Yield the value at which each rival begins to win."""
        column, region = self.space.columns[c], self._region
        at = column.places[0]
        along = direction if column.rising else -direction
        slope = region.normals[:, at] * along
        used = product(region.normals, self.point - region.origin)
        room = np.maximum(region.offsets - used, 0.0)
        met = np.flatnonzero(slope > 0)
        steps = [
            max(room[j] - self._guard(j, at, along * room[j] / slope[j]), 0.0) / slope[j]
            for j in met.tolist()
        ]
        places = self.point[at] + along * np.array(steps)
        values = self.space.values(c, places[:, None]) if met.size else ()
        for rival, value in zip(self._rivals[met], values, strict=True):
            # NaN: the pipeline maps no value of the column to that coordinate, so none reaches it.
            name = cluster_name(self.learned, rival)
            yield End(direction * np.inf if np.isnan(value) else float(value), name)

    def _guard(self, j: int, at: int, step: float) -> float:
        """Return the slack that rounding needs at constraint j, one coordinate moved by `step`."""
        scale = np.sqrt(self.learned.metric)
        end = self.point.copy()
        end[at] += step
        away, move = end - self._region.origin, end - self.case.rows.points[0]
        size, distance, length = (np.sqrt(((scale * v) ** 2).sum()) for v in (end, away, move))
        assert self._region.guard is not None
        return float(self._region.guard.slack(size, distance, length)[j])

    def _agreed(self, c: int, value: float, end: float) -> float:
        """Return the furthest number, from an end back to the answer's value, that is valid."""
        eps = max(abs(end), abs(value)) * np.finfo(np.float64).eps
        candidates = end + (value - end) * INWARD + np.sign(value - end) * eps * (INWARD > 0)
        if self.space.steps is None and self.space.dtype != np.float64:
            candidates = candidates.astype(self.space.dtype).astype(np.float64)
        return self._first_valid(c, value, np.clip(candidates, min(end, value), max(end, value)))

    def _agreed_multiple(self, c: int, value: float, end: float, multiples: Multiples) -> float:
        """Return the furthest multiple, from an end back to the answer's value, that is valid."""
        begin, past = multiples.inside([min(end, value)], [max(end, value)])
        first, last = int(begin[0]), int(past[0])
        steps = np.arange(TRIED)
        places = last - steps if end > value else first + steps
        places = places[(places >= first) & (places <= last)]
        return self._first_valid(c, value, multiples.at(places))

    def _first_valid(self, c: int, value: float, candidates: Array) -> float:
        """Return the first valid candidate; the answer's own value if there is none."""
        valid = candidates[self._valid(c, candidates)] if len(candidates) else candidates
        return float(valid[0]) if len(valid) else value
