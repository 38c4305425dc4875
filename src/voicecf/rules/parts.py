"""One column of what rows may choose: the rule about it, said in its coordinates."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any
from weakref import WeakKeyDictionary

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints
from voicecf.rules.columns import coordinates_of
from voicecf.rules.constraints import affine_map
from voicecf.rules.multiples import EXACT, Grid, Listed, Multiples
from voicecf.rules.rules import ColumnRule, is_missing
from voicecf.rules.sides import Side
from voicecf.table.column import Column
from voicecf.table.rows import Rows
from voicecf.table.space import Space

Flags = NDArray[np.uint8]

MOST_OPTIONS = 2**20  # of a column within the observed range, where they have to be listed
AROUND = 2**13  # options that are listed on either side of that range, at each fineness
KEPT = 16  # lists of options that are remembered of a space
_LISTS: WeakKeyDictionary[Any, dict[Any, Listed]] = WeakKeyDictionary()
FAR = 2**40  # steps beyond the data, where a side is open
NEAR = 2**31  # options that are counted from their lower end without losing digits


class Freedom(IntEnum):
    """How a column's values are restricted."""

    ANY = 0
    GRID = 1
    LEVELS = 2


@dataclass
class Part:
    """One column of `Choices`; what is left out says: nothing to move to, and it may stay."""

    freedom: Freedom
    lo: Array
    hi: Array
    stay: Flags = field(default_factory=lambda: np.ones(1, dtype=np.uint8))
    table: Array = field(default_factory=lambda: np.empty(0))
    base: float = 0.0
    pitch: float = 0.0
    count: int = 0
    least: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    most: Ints = field(default_factory=lambda: np.full(1, -1, dtype=np.int64))
    allowed: Flags = field(default_factory=lambda: np.empty((1, 0), dtype=np.uint8))
    grid: Grid | None = None
    sides: tuple[Array, Array] = field(
        default_factory=lambda: (np.array([-np.inf]), np.array([np.inf]))
    )

    @classmethod
    def open(cls, freedom: Freedom, width: int) -> Part:
        """Return a part whose bounds are not used."""
        return cls(freedom, np.full((1, width), -np.inf), np.full((1, width), np.inf))

    def offer(self, least: Any, most: Any, some: NDArray[np.bool_]) -> None:
        """Set the options of rows that have some."""
        self.least = np.where(some, least, 0).astype(np.int64)
        self.most = np.where(some, most, -1).astype(np.int64)


@dataclass(frozen=True)
class ColumnRows:
    """One column of some rows: the user's values, and coordinates."""

    space: Space
    given: Rows
    c: int

    @property
    def column(self) -> Column:
        """The column."""
        return self.space.columns[self.c]

    @property
    def points(self) -> Array:
        """The coordinate of a number column, (n,)."""
        return self.given.points[:, self.column.places[0]]

    @cached_property
    def series(self) -> Any:
        """The column in the user's frame, by its name, or by its place if it has another one."""
        frame = self.given.frame
        return frame.get_column(self.space.frame_name(frame, self.column.sources[0]))

    @property
    def array(self) -> NDArray[Any] | None:
        """The column in an array that a pipeline transforms."""
        if self.given.array is None:
            return None
        return np.asarray(self.given.array[:, self.space.sources.index(self.column.sources[0])])

    @cached_property
    def own(self) -> Array:
        """A number column's values, NaN where missing."""
        if self.given.frame is None:
            values = self.points if self.array is None else self.array
            return np.asarray(values, dtype=np.float64)
        values = self.series.to_numpy()
        if values.dtype.kind not in "fiub":  # a library's own gaps, or nothing but gaps
            if self.series.null_count() == len(values):
                return np.full(len(values), np.nan)
            values = self.series.cast(nw.Float64).to_numpy()
        return np.asarray(values, dtype=np.float64)

    @property
    def yes_no(self) -> bool:
        """Whether the user's values are true and false."""
        return self.given.frame is not None and self.series.dtype == nw.Boolean

    def coordinates(self, values: Any) -> Array:
        """Return the coordinates of numbers; NaN for those outside of the map's domain."""
        return coordinates_of(self.space, self.c, values)

    def interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return an interval of values as one of coordinates."""
        values = np.concatenate([low, high])
        finite = np.isfinite(values)
        # What is open, or outside of the map's domain, lies beyond all coordinates.
        beyond = np.repeat([-np.inf, np.inf], [len(low), len(high)])
        beyond = beyond if self.column.rising else -beyond
        mapped = beyond.copy()
        if finite.any():
            plain = self.space.steps is None
            mapped[finite] = values[finite] if plain else self.coordinates(values[finite])
        mapped = np.where(np.isnan(mapped), beyond, mapped)
        first, second = mapped[: len(low)], mapped[len(low) :]
        return self.space.inward(*((first, second) if self.column.rising else (second, first)))

    def codes(self, table: Array, wanted: Ints) -> Ints:
        """Return the position of each row's level, -1 where it is none of the wanted ones."""
        if len(self.column.sources) == 1 and self.given.frame is not None:
            return _codes_of_values(*_series_values(self.series), self.column.levels, wanted)
        if len(self.column.sources) == 1 and self.array is not None:
            none: Any = None
            missing = (self.array != self.array) | (self.array == none)
            return _codes_of_values(self.array, missing, self.column.levels, wanted)
        points = self.given.points[:, self.column.places]
        codes = np.full(len(points), -1)
        for i in wanted:
            codes[(points == table[i]).all(axis=1)] = i
        return codes


@dataclass(frozen=True)
class Limits:
    """Where a number column may go, in the user's units.

    Attributes
    ----------
    low, high : array of shape (n or 1,)
        Bounds, without the direction.
    ends : tuple of float
        How far the column's map can be followed.
    own : array of shape (n,)
        The rows' values, NaN where missing.
    locked : array of shape (n or 1,) of bool
        Rows whose value is missing though a rule is relative to it.
    """

    low: Array
    high: Array
    ends: tuple[float, float]
    own: Array
    locked: NDArray[np.bool_]

    @classmethod
    def of(cls, rows: ColumnRows, rule: ColumnRule, lo: float, hi: float) -> Limits:
        """Read the bounds of each row; `lo` and `hi` hold where the rule says nothing."""
        lo, hi = -np.inf if np.isnan(lo) else lo, np.inf if np.isnan(hi) else hi
        low, high = (
            _side(side, rows.own, learned, tighter)
            for side, learned, tighter in ((rule.low, lo, np.fmax), (rule.high, hi, np.fmin))
        )
        if rows.yes_no:
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
        locked = np.isnan(rows.own) if rule.relative else np.zeros(1, dtype=np.bool_)
        return cls(low, high, rows.column.limits, rows.own, locked)

    def moves(self, direction: int = 0) -> tuple[Array, Array]:
        """Return from where to where a row may move, seen from its own value."""
        low, high = np.maximum(self.low, self.ends[0]), np.minimum(self.high, self.ends[1])
        if direction > 0:
            low = np.maximum(low, self.own)
        elif direction < 0:
            high = np.minimum(high, self.own)
        return low, high

    def stay(self, rows: ColumnRows) -> Flags:
        """Tell which rows may keep their values: those whose values break no bound."""
        broken = (self.own < self.low) | (self.own > self.high)
        missing = np.isnan(self.own) & ~self.locked
        if missing.any():  # what the pipeline puts in its place has to be within the bounds
            lo, hi = rows.interval(*self.moves())
            broken |= missing & ((rows.points < lo) | (rows.points > hi))
        stay = (~broken | self.locked).astype(np.uint8)
        return stay[:1] if stay.all() else stay


def _side(side: Side | None, own: Array, learned: float, tighter: Any) -> Array:
    """Return one side of a column's bounds for each row.

    A number replaces the explainer's own side; what is relative to the row can only be tighter.
    """
    if side is None:
        return np.array([learned])
    return np.asarray(tighter(side.at(own), learned)) if side.relative else side.at(own)


def part_of(
    rows: ColumnRows, rule: ColumnRule, lo: float, hi: float, box: tuple[Array, Array] | None
) -> Part:
    """Say the rule about one column.

    The explainer's own bounds are `lo` and `hi` in the user's units, `box` in coordinates.
    """
    column = rows.column
    if column.kind == "category":
        return _levels(rows, rule)
    step = rule.step if rule.step is not None else 1.0 if column.whole else "any"
    multiples = None if step == "any" else Multiples(step)
    listed = column.listed
    if rule.fixed:
        return _kept(rows) if multiples is None and not listed else Part.open(Freedom.GRID, 1)
    limits = Limits.of(rows, rule, lo, hi)
    if listed:
        values = np.array(listed, dtype=np.float64)
        if rule.step is not None and multiples is not None:
            values = values[multiples.nearest(values) == values]
        part = _tabled(rows, rule, limits, _with_coordinates(rows, values))
    elif multiples is None:
        part = _any(rows, rule, limits, box)
    elif column.affine:
        part = _spaced(rows, rule, limits, multiples)
    else:
        part = _tabled(rows, rule, limits, _listed_multiples(rows, rule, limits, multiples))
    part.stay = limits.stay(rows)
    part.sides = limits.moves(rule.direction)
    return part


def _kept(rows: ColumnRows) -> Part:
    own = rows.points[:, None]
    return Part(Freedom.ANY, own, own)


def _any(
    rows: ColumnRows, rule: ColumnRule, limits: Limits, box: tuple[Array, Array] | None
) -> Part:
    """Return an interval of coordinates: any number."""
    lo, hi = rows.interval(*limits.moves())
    rising, at = rows.column.rising, rows.column.places
    if box is not None and not rows.yes_no:
        # Sides that no rule is about: as they were learned, with the data on the border inside.
        low, high = (rule.low, rule.high) if rising else (rule.high, rule.low)
        lo, hi = box[0][at] if low is None else lo, box[1][at] if high is None else hi
    if rule.direction:
        # The row's own bits, not a value on its way there and back.
        if (rule.direction > 0) == rising:
            lo = np.maximum(lo, rows.points)
        else:
            hi = np.minimum(hi, rows.points)
    if limits.locked.any():
        lo = np.where(limits.locked, rows.points, lo)
        hi = np.where(limits.locked, rows.points, hi)
    return Part(Freedom.ANY, lo[:, None], hi[:, None])


def _spaced(rows: ColumnRows, rule: ColumnRule, limits: Limits, multiples: Multiples) -> Part:
    """Return multiples of a step under an affine map: evenly spaced, none has to be listed."""
    part = Part.open(Freedom.GRID, 1)
    part.grid = multiples
    first, last, amid = _multiples_inside(rows.column, rule, limits, multiples)
    some = (first <= last) & ~limits.locked
    if not some.any():
        return part
    lowest, highest = (int(np.broadcast_to(k, some.shape)[some].min()) for k in (first, -last))
    highest = -highest
    scale, _ = affine_map(rows.space, rows.c)
    part.count = highest - lowest + 1
    anchor = amid if part.count > NEAR else lowest if scale > 0 else highest
    part.base = float(rows.coordinates(multiples.at([anchor]))[0])
    part.pitch = abs(scale) * multiples.step
    least, most = (first - anchor, last - anchor) if scale > 0 else (anchor - last, anchor - first)
    part.offer(least, most, some)
    return part


def _multiples_inside(
    column: Column, rule: ColumnRule, limits: Limits, multiples: Multiples
) -> tuple[Ints, Ints, int]:
    """Return the first and last multiple for each row, and one amid the data."""
    observed = np.nan_to_num(np.array(column.observed), posinf=0.0, neginf=0.0)
    if np.abs(observed).max() / multiples.step > EXACT:
        raise OptionError(
            f"steps of {column.name!r}: {multiples.step:g} is finer than the digits of numbers "
            f"such as {np.abs(observed).max():g}. Give a larger step, or None for any number."
        )
    begin, end = np.rint(observed / multiples.step)
    low, high = limits.moves(rule.direction)
    low = np.where(np.isneginf(low), multiples.at(begin - FAR), low)
    high = np.where(np.isposinf(high), multiples.at(end + FAR), high)
    # A locked row has no bounds; it is asked for none of the multiples that it gets here.
    first, last = multiples.inside(np.nan_to_num(low), np.nan_to_num(high))
    return first, last, int(np.rint((begin + end) / 2))


def _tabled(rows: ColumnRows, rule: ColumnRule, limits: Limits, grid: Listed) -> Part:
    """Return a list of options."""
    part = Part.open(Freedom.GRID, 1)
    part.grid = grid
    if not len(grid.values):
        return part
    low, high = limits.moves(rule.direction)
    falls = grid.values[-1] < grid.values[0]
    values = grid.values[::-1] if falls else grid.values
    least = np.searchsorted(values, low, side="left")
    most = np.searchsorted(values, high, side="right") - 1
    if falls:
        least, most = len(values) - 1 - most, len(values) - 1 - least
    part.table, part.count = grid.coordinates, len(values)
    part.offer(least, most, (least <= most) & ~limits.locked)
    return part


def _with_coordinates(rows: ColumnRows, values: Array) -> Listed:
    """Return ascending values with their coordinates; those outside of the map are left out."""
    table = rows.coordinates(values) if len(values) else np.empty(0)
    inside = np.isfinite(table)
    values, table = values[inside], table[inside]
    turned = len(table) and table[-1] < table[0]
    return Listed(values[::-1], table[::-1]) if turned else Listed(values, table)


def _listed_multiples(
    rows: ColumnRows, rule: ColumnRule, limits: Limits, multiples: Multiples
) -> Listed:
    """Return the multiples that some row may choose; what was listed last is remembered."""
    lows, highs = limits.moves(rule.direction)
    low, high = float(np.fmin.reduce(lows)), float(np.fmax.reduce(highs))
    if not low <= high:  # or all rows are locked
        return Listed(np.empty(0), np.empty(0))
    known, key = _LISTS.setdefault(rows.space, {}), (rows.c, low, high, multiples.step)
    if key not in known:
        if len(known) >= KEPT:
            known.pop(next(iter(known)))
        values = _multiples_between(low, high, rows.column.observed, multiples)
        known[key] = _with_coordinates(rows, values)
    return known[key]


def _multiples_between(
    low: float, high: float, observed: tuple[float, float], multiples: Multiples
) -> Array:
    """Return multiples between two bounds, ascending.

    All of them, if they are not too many to be listed. Else those of ten, a hundred, ... times the
    step: the finest that can be listed within the observed range, and ten times coarser in every
    stretch beyond it that is ten times as wide.
    """
    begin, end = np.clip(observed, low, high)
    low, high = max(low, begin - FAR * multiples.step), min(high, end + FAR * multiples.step)
    factor = 1
    while not (end - begin) / (factor * multiples.step) < MOST_OPTIONS:
        factor *= 10
    found = []
    while True:
        around = AROUND * factor * multiples.step
        first, last = max(low, begin - around), min(high, end + around)
        begin_k, end_k = (int(k) for k in multiples.inside(first, last))
        found.append(np.arange(-(-begin_k // factor) * factor, end_k + 1, factor))
        if first == low and last == high:
            every = found[0] if len(found) == 1 else np.unique(np.concatenate(found))
            return multiples.at(every)
        factor *= 10


def _levels(rows: ColumnRows, rule: ColumnRule) -> Part:
    """Return a table of the levels, and which of them may be moved to."""
    column = rows.column
    part = Part.open(Freedom.LEVELS, len(column.places))
    found = rows.space.coordinates(rows.c, list(column.levels))
    table = np.ascontiguousarray(found, dtype=np.float64)
    part.table, part.count = table.reshape(-1), len(table)
    moves = _moves(column, rule)
    # Levels from which one may go where one may from any unknown one need not be told apart.
    special = np.flatnonzero((moves[:-1] != moves[-1]).any(axis=1))
    part.allowed = moves[rows.codes(table, special)] if len(special) else moves[-1:]
    return part


def _moves(column: Column, rule: ColumnRule) -> Flags:
    """Return from which level (the last row: from none that is known) one may go to which."""
    count = len(column.levels)
    moves = np.zeros((count + 1, count), dtype=np.uint8)
    if rule.fixed:
        return moves
    known = [i for i, level in enumerate(column.levels) if not is_missing(level)]
    moves[:, known if rule.levels is None else list(rule.levels)] = 1
    for start, end in rule.forbidden:
        moves[start, end] = 0
    if rule.direction:
        moves &= _along(rule.order or tuple(known), count, rule.direction)
    return moves


def _along(order: tuple[int, ...], count: int, direction: int) -> Flags:
    """Return moves along an order; a level without a place in it allows none."""
    rank = np.full(count + 1, np.nan)
    rank[list(order)] = np.arange(len(order))
    forward = (rank[None, :count] - rank[:, None]) * direction >= 0
    return np.asarray(forward, dtype=np.uint8)


def _series_values(series: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a series that can be compared, and which are missing."""
    missing = series.is_null()
    if series.dtype.is_float():
        missing = missing | series.is_nan().fill_null(True)
    missing = np.asarray(missing.to_numpy(), dtype=np.bool_)
    values = series.to_numpy()
    if values.dtype == object and missing.any():
        values = np.where(missing, None, values)  # libraries' own gaps cannot be compared
    return values, missing


def _codes_of_values(
    values: NDArray[Any], missing: NDArray[np.bool_], levels: tuple[Any, ...], wanted: Ints
) -> Ints:
    """Return the position of each value among the wanted levels, -1 where it is none of them."""
    codes = np.full(len(values), -1)
    for i in wanted:
        codes[missing if is_missing(levels[i]) else values == levels[i]] = i
    return codes
