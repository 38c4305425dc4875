"""How far each changed column of an answer may go while the others stay, and what is in the way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.errors import OptionError
from voicecf.geometry.region import Array
from voicecf.reasons.case import Case
from voicecf.rules.multiples import Multiples
from voicecf.rules.rules import is_missing
from voicecf.status import Status
from voicecf.table.frames import Cells, table
from voicecf.table.space import Given, Space

if TYPE_CHECKING:
    from voicecf.counterfactuals import Counterfactuals

__all__ = ["ranges_of"]

# Ever larger shares of the way back from an end to the answer, tried until the model agrees.
INWARD = np.concatenate([[0.0], 2.0 ** np.arange(-52.0, 1.0, 2.0)])
# Steps back from an end that are put to the model at once.
TRIED = 64


@dataclass(frozen=True)
class End:
    """One end of a range, in the user's units, and what binds there."""

    value: float
    binds: str


def ranges_of(answers: Counterfactuals, i: int) -> Any:
    """Return the table of `Counterfactuals.ranges`."""
    from voicecf.voice import VoICE

    explainer = getattr(answers.certify, "explainer", None)
    if not isinstance(explainer, VoICE):
        raise OptionError(f"ranges are known of VoICE only, not of {type(explainer).__name__}.")
    status = Status(int(answers.status[i]))
    if status not in (Status.OPTIMAL, Status.STOPPED, Status.ALREADY):
        raise OptionError(
            f"answer {i} is {status.name.lower()}, so it has no ranges; see reason({i})."
        )
    question = answers.certify.question  # type: ignore[attr-defined]
    case = Case(explainer, question, int(answers.row[i]), int(answers.target[i]))
    return _Answer(case, answers, i).table()


class _Answer:
    """One answer, whose columns are moved one at a time."""

    def __init__(self, case: Case, answers: Counterfactuals, i: int) -> None:
        self.case, self.answers, self.i = case, answers, i
        self.space: Space = case.space
        self.point = answers.points[i].astype(np.float64)
        self.written = self._as_written()
        self.target = case.target

    def _as_written(self) -> Given:
        """Return the answer as its user has it, one row."""
        answers, empty = self.answers, np.empty((0, 0))
        if answers.written is not None:
            place = int(answers.place[self.i])
            frame, array = answers.written.frame, answers.written.array
            frame = None if frame is None else frame[[place]]
            return Given(
                frame, empty, empty, answers.kind, None, None if array is None else array[[place]]
            )
        return self.space.write(self.point[None], answers.given, answers.row[[self.i]])

    def table(self) -> Any:
        """Return a line a changed column."""
        answers, i = self.answers, self.i
        changed = answers._changed(i)
        lines = [self._line(int(c)) for c in changed]
        names = [self.space.names[c] for c in changed]
        textual = all(isinstance(name, str) for name in self.space.names)
        columns = {
            "column": np.array(names, dtype=object),
            **answers._cells(np.full(len(changed), i), changed),
            "low": np.array([low.value for low, _, _ in lines], dtype=np.float64),
            "high": np.array([high.value for _, high, _ in lines], dtype=np.float64),
            "binds_low": np.array([low.binds for low, _, _ in lines], dtype=object),
            "binds_high": np.array([high.binds for _, high, _ in lines], dtype=object),
            "other_levels": np.array([levels for _, _, levels in lines], dtype=object),
        }
        schema: dict[str, Any] = dict.fromkeys(columns, nw.String)
        for name in ("from", "to"):
            schema[name] = nw.Float64 if columns[name].dtype.kind == "f" else nw.String
        schema["low"] = schema["high"] = nw.Float64
        if not textual:
            columns["column"] = np.array([str(name) for name in names], dtype=object)
        return table(columns, answers.kind, schema)

    def _line(self, c: int) -> tuple[End, End, str]:
        if self.space.columns[c].kind == "category":
            nowhere = End(np.nan, "")
            return nowhere, nowhere, ", ".join(str(level) for level in self._levels(c))
        if self.space.columns[c].listed:
            return *self._listed(c), ""
        return self._end(c, -1), self._end(c, 1), ""

    # What the model says of the answer with one column replaced.

    def _valid(self, c: int, values: Any) -> NDArray[np.bool_]:
        """Tell which values of a column keep the answer in its target and within the rules."""
        given = self._read(c, values)
        inside = self.case.explainer._labels(given) == self.target
        room = (given.points - self._region.origin) @ self._region.rows.T - self._region.offsets
        inside &= (room <= self._rounding).all(axis=1)
        for constraint in self._constraints:
            inside &= constraint.holds(self.space.user_numbers(given))
        return np.asarray(inside)

    def _read(self, c: int, values: Any) -> Given:
        """Read the answer again with other values in one column."""
        column, n = self.space.columns[c], len(values)
        every = np.arange(n)
        if column.declared:
            cells = {
                source: Cells(every, np.array([float(v == source) for v in values]))
                for source in column.sources
            }
        elif column.kind == "category":
            cells = {column.sources[0]: Cells(every, list(values))}
        else:
            cells = {column.sources[0]: Cells(every, np.asarray(values, dtype=np.float64))}
        frame, array = self.space.with_cells(self.written, np.zeros(n, dtype=np.int64), cells)
        empty = np.empty((0, 0))
        made = Given(frame, empty, empty, self.written.kind, None, array)
        return self.space.read_again(made, every)

    @cached_property
    def _region(self) -> Any:
        region, _ = self.case.explainer._prepared(self.target)
        return region

    @cached_property
    def _rounding(self) -> Array:
        """How much of a row is rounding: a share of its terms at the answer, and the guard."""
        rows = self._region.rows
        terms = np.abs(rows) @ (np.abs(self.point) + np.abs(self._region.origin) + self.space.slop)
        eps = 64.0 * np.finfo(np.float64).eps
        return np.asarray(eps * terms + np.abs(rows) @ self.space.slop)

    @cached_property
    def _constraints(self) -> tuple[Any, ...]:
        terms = self.answers.certify.question.terms  # type: ignore[attr-defined]
        return () if terms is None else terms.constraints

    @cached_property
    def _values(self) -> dict[Any, float]:
        """The answer's numbers, in the user's units, by column."""
        names = enumerate(self.space.columns)
        return {o.name: float(self._value(c)) for c, o in names if o.kind == "number"}

    def _value(self, c: int) -> float:
        return float(self.answers._values[1][c][self.i])

    # Categories, and numbers that come as a list.

    def _levels(self, c: int) -> list[Any]:
        """Return the other levels that would do."""
        column, now = self.space.columns[c], self.answers._values[1][c][self.i]
        terms = self.answers.certify.question.terms  # type: ignore[attr-defined]
        row = int(self.answers.row[self.i])
        allowed = terms.choices._allowed(c)
        allowed = allowed[row if len(allowed) > 1 else 0]
        own = self.answers._values[0][c][self.i]
        known = [
            level
            for level, may in zip(column.levels, allowed, strict=True)
            if not is_missing(level) and level != now and (may or level == own)
        ]
        valid = self._valid(c, known) if known else ()
        return [level for level, fits in zip(known, valid, strict=True) if fits]

    def _listed(self, c: int) -> tuple[End, End]:
        """Return the run of listed values around the answer's that would do."""
        value, listed = self._value(c), np.array(self.space.columns[c].listed)
        sides = [self._side(c, way) for way in (-1, 1)]
        inside = (listed >= sides[0].value) & (listed <= sides[1].value)
        valid = inside.copy()
        valid[inside] = self._valid(c, listed[inside])
        ends = []
        for way, run in ((-1, listed < value), (1, listed > value)):
            at, end = np.flatnonzero(run)[::way], End(value, "step")
            for k in at:
                if not valid[k]:
                    end = End(
                        end.value, sides[way > 0].binds if not inside[k] else self._rival(c, k)
                    )
                    break
                end = End(float(listed[k]), "step")
            ends.append(end)
        return ends[0], ends[1]

    def _rival(self, c: int, k: int) -> str:
        """Name what a listed value breaks first."""
        given = self._read(c, [self.space.columns[c].listed[k]])
        room = (given.points - self._region.origin) @ self._region.rows.T - self._region.offsets
        worst = int(np.argmax(room[0] - self._rounding))
        if room[0, worst] <= self._rounding[worst] and self._constraints:
            return "rule"
        return f"cluster {self.case.explainer.cell(self.target).rivals[worst]}"

    # Numbers.

    def _end(self, c: int, way: int) -> End:
        """Return how far a number may go down (way -1) or up (1)."""
        value = self._value(c)
        ends = [self._side(c, way), *self._cell_ends(c, way), *self._constraint_ends(c, way)]
        end = min(ends, key=lambda end: end.value * way)
        end = End(max(end.value * way, value * way) * way, end.binds)
        if np.isinf(end.value):
            return end
        multiples = self.case.multiples(c)
        if multiples is None:
            return End(self._agreed(c, value, end.value), end.binds)
        return End(self._agreed_multiple(c, value, end.value, multiples), end.binds)

    def _side(self, c: int, way: int) -> End:
        """Return the bound of a column: the row's own value, the user's, the data's, none."""
        case, rule, at = self.case, self.case.rules[c], int(way > 0)
        bound, side = case.bounds(c, case.draft)[at], rule.sides[at]
        ends = [
            End(bound, "open" if np.isinf(bound) else "data range" if side is None else "bound")
        ]
        ends.append(End(self._shrunk(c, at), ends[0].binds))
        if rule.direction == -way:
            ends.append(End(case.own(c), "rule"))
        limit = self.space.columns[c].limits[at]
        ends.append(End(limit, "data range" if np.isfinite(limit) else "open"))
        if self.space.is_truth(c, case.given):
            ends.append(End(float(at), "step"))
        return min(ends, key=lambda end: end.value * way)

    def _shrunk(self, c: int, at: int) -> float:
        """Return a bound that was contracted along with the cell."""
        explainer, open_ = self.case.explainer, (-np.inf, np.inf)[at]
        if not explainer.contract_bounds:
            return open_
        box = self.answers.certify.question.box  # type: ignore[attr-defined]
        sides = explainer._contract_box(self.target, box.lo, box.hi)
        column = self.space.columns[c]
        side = sides[at if column.rising else 1 - at][column.places[0]]
        return float(self.space.values(c, [[side]])[0]) if np.isfinite(side) else open_

    def _cell_ends(self, c: int, way: int) -> Iterator[End]:
        """Yield where each rival's row is met, the other columns held."""
        column, region = self.space.columns[c], self._region
        at = column.places[0]
        along = way if column.rising else -way
        slope = region.rows[:, at] * along
        room = np.maximum(region.offsets - region.rows @ (self.point - region.origin), 0.0)
        met = np.flatnonzero(slope > 0)
        steps = [
            max(room[j] - self._guard(j, at, along * room[j] / slope[j]), 0.0) / slope[j]
            for j in met.tolist()
        ]
        places = self.point[at] + along * np.array(steps)
        values = self.space.values(c, places[:, None]) if met.size else ()
        for rival, value in zip(
            self.case.explainer.cell(self.target).rivals[met], values, strict=True
        ):
            # Where there is no way back from a coordinate, the map ends before it.
            yield End(way * np.inf if np.isnan(value) else float(value), f"cluster {rival}")

    def _guard(self, row: int, at: int, step: float) -> float:
        """How far behind a row the model's own rounding asks to stay, in whatever batch it is."""
        guard, scale = self._region.guard[:, row], np.sqrt(self.case.explainer.weights_)
        end = self.point.copy()
        end[at] += step
        away, move = end - self._region.origin, end - self.case.given.points[0]
        size, length, far = (np.linalg.norm(scale * v) for v in (end, away, move))
        needed = guard[1] + guard[2] * size + guard[3] * length**2 + guard[4] * far
        return float(max(needed - guard[0], 0.0))

    def _constraint_ends(self, c: int, way: int) -> Iterator[End]:
        name, value = self.space.names[c], self._value(c)
        for constraint in self._constraints:
            factor = constraint.coefficients.get(name, 0.0) * way
            if factor > 0:
                used = sum(f * self._values[n] for n, f in constraint.coefficients.items())
                yield End(value + way * max(constraint.limit - used, 0.0) / factor, "rule")

    def _agreed(self, c: int, value: float, end: float) -> float:
        """Return the furthest number, from an end back to the answer's value, that is valid."""
        tried = end + (value - end) * INWARD
        size = max(abs(end), abs(value)) * np.finfo(np.float64).eps
        tried = np.where(end > value, np.maximum(tried - size * (INWARD > 0), value), tried)
        tried = np.where(end < value, np.minimum(tried + size * (INWARD > 0), value), tried)
        if self.space.steps is None and self.space.dtype != np.float64:
            tried = tried.astype(self.space.dtype).astype(np.float64)
            tried = np.clip(tried, min(end, value), max(end, value))
        valid = np.flatnonzero(self._valid(c, tried))
        return float(tried[valid[0]]) if valid.size else value

    def _agreed_multiple(self, c: int, value: float, end: float, multiples: Multiples) -> float:
        """Return the furthest multiple, from an end back to the answer's value, that is valid."""
        begin, past = multiples.inside([min(end, value)], [max(end, value)])
        first, last = int(begin[0]), int(past[0])
        steps = np.arange(TRIED)
        places = last - steps if end > value else first + steps
        tried = multiples.at(places[(places >= first) & (places <= last)])
        if not len(tried):
            return value
        valid = np.flatnonzero(self._valid(c, tried))
        return float(tried[valid[0]]) if valid.size else value
