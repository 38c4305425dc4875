"""The options of the rows in one column: the rule about it, translated into coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.errors import DataError, OptionError
from voicecf.geometry.arrays import Array, Ints
from voicecf.rules.columns import affine_map, cached, coordinates_of
from voicecf.rules.multiples import EXACT, Grid, Listed, Multiples
from voicecf.rules.sides import Side
from voicecf.rules.terms import ColumnRule
from voicecf.table.column import Column
from voicecf.table.frames import is_boolean, is_missing, numbers, plain_values
from voicecf.table.rows import Rows
from voicecf.table.space import Space

Flags = NDArray[np.uint8]

# A list of options has at most this many within the observed range,
MOST_OPTIONS = 2**20
# and this many beyond either end of it at each fineness, see `_multiples_between`.
AROUND = 2**13
# An open side ends this many increments beyond the observed range.
FAR = 2**40


class Freedom(IntEnum):
    """What a column's options are: any number in bounds, a sorted grid, or levels."""

    ANY = 0
    GRID = 1
    LEVELS = 2


@dataclass(eq=False)
class Part:
    """One column of `Choices`. By default there is nothing to move to, and rows may stay.

    `limits` are None where every row may stay, `sides` are those of `Choices`.
    """

    freedom: Freedom
    lo: Array
    hi: Array
    table: Array = field(default_factory=lambda: np.empty(0))
    base: float = 0.0
    pitch: float = 0.0
    count: int = 0
    least: Ints = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    most: Ints = field(default_factory=lambda: np.full(1, -1, dtype=np.int64))
    allowed: Flags = field(default_factory=lambda: np.empty((1, 0), dtype=np.uint8))
    grid: Grid | None = None
    limits: Limits | None = None
    sides: tuple[Array, Array] = field(
        default_factory=lambda: (np.array([-np.inf]), np.array([np.inf]))
    )

    @classmethod
    def open(cls, freedom: Freedom, width: int) -> Part:
        """Return a part without bounds, for options that are listed."""
        return cls(freedom, np.full((1, width), -np.inf), np.full((1, width), np.inf))

    def set_range(self, least: Any, most: Any, filled: NDArray[np.bool_]) -> None:
        """Allow the options least to most for the rows in `filled`, and none for the others."""
        self.least = np.where(filled, least, 0).astype(np.int64)
        self.most = np.where(filled, most, -1).astype(np.int64)


@dataclass(frozen=True)
class ColumnRows:
    """One column of the rows: the user's values, and coordinates."""

    space: Space
    rows: Rows
    c: int

    @property
    def column(self) -> Column:
        """The column."""
        return self.space.columns[self.c]

    @property
    def points(self) -> Array:
        """The coordinates of a number column, (n,)."""
        return self.rows.points[:, self.column.places[0]]

    @property
    def series(self) -> Any:
        """The column in the user's table: a narwhals series, or a column of an array."""
        return self.space.user_column(self.rows, self.column.sources[0])

    @cached_property
    def values(self) -> Array:
        """The user's values of a number column, NaN where missing."""
        return numbers(self.series, self.column.name)

    @property
    def boolean(self) -> bool:
        """Whether the user's values of a number column are booleans."""
        known = self.column.kind == "number" and self.rows.frame is not None
        return known and is_boolean(self.series)

    def coordinates(self, values: Any) -> Array:
        """Return the coordinates of numbers; NaN for those outside the map's domain."""
        return coordinates_of(self.space, self.c, values)

    def interval(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return the intervals of coordinates that belong to intervals of values."""
        values = np.concatenate([low, high])
        finite = np.isfinite(values)
        # Ends that are open, or outside the map's domain, become infinite coordinates.
        beyond = np.repeat([-np.inf, np.inf], [len(low), len(high)])
        beyond = beyond if self.column.rising else -beyond
        mapped = beyond.copy()
        if finite.any():
            plain = self.space.steps is None
            mapped[finite] = values[finite] if plain else self.coordinates(values[finite])
        mapped = np.where(np.isnan(mapped), beyond, mapped)
        first, second = mapped[: len(low)], mapped[len(low) :]
        return self.space.inward(*((first, second) if self.column.rising else (second, first)))

    def codes(self, table: Array) -> Ints:
        """Return the position of each row's level, -1 where it is unknown."""
        column = self.column
        if not (column.declared or column.binned):
            values = plain_values(self.series)
            gaps = [i for i, level in enumerate(column.levels) if is_missing(level)]
            return level_codes(column, values, missing=gaps[0] if gaps else -1)
        points = self.rows.points[:, column.places]
        codes = np.full(len(points), -1)
        for i in range(len(table)):
            codes[(points == table[i]).all(axis=1)] = i
        return codes


@dataclass(frozen=True)
class Limits:
    """The bounds of a number column for each row, in the user's units.

    Attributes
    ----------
    low, high : array of shape (n or 1,)
        The bounds, regardless of increase_only and decrease_only.
    locked : array of shape (n or 1,) of bool
        Rows that cannot move, because their value is missing, and a rule is relative to it or the
        model knows that it is missing.
    sides : pair of arrays of shape (n or 1,)
        The lowest and the highest value that each row may move to.
    """

    low: Array
    high: Array
    locked: NDArray[np.bool_]
    sides: tuple[Array, Array]

    @classmethod
    def of(cls, data: ColumnRows, rule: ColumnRule, lo: float, hi: float) -> Limits:
        """Return the bounds of each row; those of the explainer are `lo` and `hi`."""
        lo, hi = -np.inf if np.isnan(lo) else lo, np.inf if np.isnan(hi) else hi
        low, high = _side(rule.low, data, lo, np.fmax), _side(rule.high, data, hi, np.fmin)
        if data.boolean:
            low, high = np.maximum(low, 0.0), np.minimum(high, 1.0)
        locked = np.zeros(1, dtype=np.bool_)
        if rule.relative or data.column.stays_missing:
            locked = np.isnan(data.values)
        lowest, highest = _invertible(data.column, low, high)
        if rule.direction > 0:
            lowest = np.maximum(lowest, data.values)
        elif rule.direction < 0:
            highest = np.minimum(highest, data.values)
        return cls(low, high, locked, (lowest, highest))

    def interval(self, data: ColumnRows) -> tuple[Array, Array]:
        """Return the bounds in coordinates, regardless of increase_only and decrease_only."""
        return data.interval(*_invertible(data.column, self.low, self.high))

    def stay(self, data: ColumnRows) -> NDArray[np.bool_]:
        """Tell which rows may keep their values: those within the bounds, and locked ones."""
        values = data.values
        inside = ((values >= self.low) & (values <= self.high)) | self.locked
        if not inside.all() and np.isnan(values).any():
            # The value that the pipeline imputes has to be within the bounds.
            lo, hi = self.interval(data)
            inside |= np.isnan(values) & (data.points >= lo) & (data.points <= hi)
        return np.asarray(inside)


def _side(side: Side | None, data: ColumnRows, default: float, tighter: Any) -> Array:
    """Return one side of a column's bounds for each row.

    A number replaces the explainer's bound, `default`; a side relative to the row's value can
    only be tighter than it.
    """
    if side is None or not side.relative:
        return np.array([default if side is None else side.amount])
    return np.asarray(tighter(side.at(data.values), default))


def _invertible(column: Column, low: Array, high: Array) -> tuple[Array, Array]:
    """Return the part of intervals within which a column's map can be inverted."""
    least, most = column.limits
    return np.maximum(low, least), np.minimum(high, most)


def part_of(
    data: ColumnRows, rule: ColumnRule, lo: float, hi: float, box: tuple[Array, Array] | None
) -> Part:
    """Return the options of the rows in one column.

    The explainer's bounds are `lo` and `hi` in the user's units, `box` in coordinates.
    """
    column = data.column
    if column.kind == "category":
        return _levels(data, rule)
    multiples = rule.multiples(column)
    if rule.fixed:
        interval = multiples is None and not column.listed
        return _fixed(data) if interval else Part.open(Freedom.GRID, 1)
    limits = Limits.of(data, rule, lo, hi)
    if column.listed:
        values = np.array(column.listed, dtype=np.float64)
        if multiples is not None:
            values = values[multiples.nearest(values) == values]
        part = _from_list(limits, _with_coordinates(data, values))
    elif multiples is None:
        part = _any_number(data, rule, limits, box)
    elif column.affine:
        part = _evenly_spaced(data, rule, limits, multiples)
    else:
        part = _from_list(limits, _listed_multiples(data, limits, multiples))
    part.limits, part.sides = limits, limits.sides
    return part


def _fixed(data: ColumnRows) -> Part:
    """Return an interval that holds only the row's coordinate."""
    present = data.points[:, None]
    return Part(Freedom.ANY, present, present)


def _any_number(
    data: ColumnRows, rule: ColumnRule, limits: Limits, box: tuple[Array, Array] | None
) -> Part:
    """Return an interval of coordinates for each row."""
    rising, at = data.column.rising, data.column.places
    low, high = (rule.low, rule.high) if rising else (rule.high, rule.low)
    if box is None or data.boolean:
        lo, hi = limits.interval(data)
    elif low is None and high is None:
        lo, hi = box[0][at], box[1][at]
    else:
        # A side without a rule is that of the explainer's box, which has all data inside.
        lo, hi = limits.interval(data)
        lo, hi = box[0][at] if low is None else lo, box[1][at] if high is None else hi
    if rule.direction:
        # The coordinate itself: computed from the row's value, it might differ by rounding.
        if (rule.direction > 0) == rising:
            lo = np.maximum(lo, data.points)
        else:
            hi = np.minimum(hi, data.points)
    if limits.locked.any():
        lo = np.where(limits.locked, data.points, lo)
        hi = np.where(limits.locked, data.points, hi)
    return Part(Freedom.ANY, lo[:, None], hi[:, None])


def _evenly_spaced(
    data: ColumnRows, rule: ColumnRule, limits: Limits, multiples: Multiples
) -> Part:
    """Return multiples under an affine map: evenly spaced, so they need not be listed."""
    part = Part.open(Freedom.GRID, 1)
    part.grid = multiples
    first, last, middle = _multiples_inside(data.column, rule, limits, multiples)
    filled = (first <= last) & ~limits.locked
    if not filled.any():
        return part
    lowest = int(np.broadcast_to(first, filled.shape)[filled].min())
    highest = int(np.broadcast_to(last, filled.shape)[filled].max())
    scale, _ = affine_map(data.space, data.c)
    part.count = highest - lowest + 1
    part.base = float(data.coordinates(multiples.at([middle]))[0])
    part.pitch = abs(scale) * multiples.increment
    least, most = (first - middle, last - middle) if scale > 0 else (middle - last, middle - first)
    part.set_range(least, most, filled)
    return part


def _multiples_inside(
    column: Column, rule: ColumnRule, limits: Limits, multiples: Multiples
) -> tuple[Ints, Ints, int]:
    """Return the first and last allowed k of each row, and one in the middle of the data."""
    observed = np.nan_to_num(np.array(column.observed), posinf=0.0, neginf=0.0)
    if np.abs(observed).max() / multiples.increment > EXACT:
        raise _too_large(column, rule, multiples.increment, np.abs(observed).max())
    begin, end = np.rint(observed / multiples.increment)
    low, high = limits.sides
    low = np.where(np.isneginf(low), multiples.at(begin - FAR), low)
    high = np.where(np.isposinf(high), multiples.at(end + FAR), high)
    # The bounds of a locked row are NaN; any number will do, as the row gets no options.
    first, last = multiples.inside(np.nan_to_num(low), np.nan_to_num(high))
    return first, last, int(np.rint((begin + end) / 2))


def _too_large(
    column: Column, rule: ColumnRule, increment: float, largest: float
) -> OptionError | DataError:
    """Return the error about multiples that double precision cannot tell apart."""
    name = column.name
    if rule.increment is not None:
        return OptionError(
            f"steps of {name!r}: {increment:g} is finer than the digits of numbers such as "
            f"{largest:g}. Give a larger number, or None for any number."
        )
    return DataError(
        f"column {name!r} has whole numbers up to {largest:g}; above 2**52 ({EXACT:g}) the model "
        "cannot tell a number from the next, as it computes in double precision. Subtract or "
        f"divide before fit; or lock the column, immutable=[{name!r}], if it is an id; or allow "
        f"any number, steps={{{name!r}: None}}."
    )


def _from_list(limits: Limits, grid: Listed) -> Part:
    """Return listed values as options."""
    part = Part.open(Freedom.GRID, 1)
    part.grid = grid
    if not len(grid.values):
        return part
    least, most = grid.inside(*limits.sides)
    part.table, part.count = grid.coordinates, len(grid.values)
    part.set_range(least, most, (least <= most) & ~limits.locked)
    return part


def _with_coordinates(data: ColumnRows, values: Array) -> Listed:
    """Return ascending values with their coordinates; values outside the domain are left out."""
    z = data.coordinates(values) if len(values) else np.empty(0)
    inside = np.isfinite(z)
    values, z = values[inside], z[inside]
    falls = len(z) and z[-1] < z[0]
    return Listed(values[::-1], z[::-1]) if falls else Listed(values, z)


def _listed_multiples(data: ColumnRows, limits: Limits, multiples: Multiples) -> Listed:
    """Return the multiples that at least one row may choose; recent lists are cached."""
    lows, highs = limits.sides
    low, high = float(np.fmin.reduce(lows)), float(np.fmax.reduce(highs))
    if not low <= high:  # also if all rows are locked, so that both are NaN
        return Listed(np.empty(0), np.empty(0))

    def make() -> Listed:
        values = _multiples_between(low, high, data.column.observed, multiples)
        return _with_coordinates(data, values)

    return cached(data.space, "lists", (data.c, low, high, multiples.increment), make)


def _multiples_between(
    low: float, high: float, observed: tuple[float, float], multiples: Multiples
) -> Array:
    """Return multiples between two bounds, ascending.

    All of them, if there are not too many. Else multiples of ten, a hundred, ... times the
    increment: within the observed range of the smallest of these that gives at most MOST_OPTIONS,
    and AROUND on either side; then AROUND of ten times that, and so on up to the bounds.
    """
    begin, end = np.clip(observed, low, high)
    farthest = FAR * multiples.increment
    low, high = max(low, begin - farthest), min(high, end + farthest)
    factor = 1
    while not (end - begin) / (factor * multiples.increment) < MOST_OPTIONS:
        factor *= 10
    ks = np.empty(0, dtype=np.int64)
    while True:
        around = AROUND * factor * multiples.increment
        first, last = max(low, begin - around), min(high, end + around)
        begin_k, end_k = (int(k) for k in multiples.inside(first, last))
        wider = np.arange(-(-begin_k // factor) * factor, end_k + 1, factor)
        if len(ks):
            wider = np.concatenate([wider[wider < ks[0]], ks, wider[wider > ks[-1]]])
        ks = wider
        if first == low and last == high:
            return multiples.at(ks)
        factor *= 10


def _levels(data: ColumnRows, rule: ColumnRule) -> Part:
    """Return the coordinates of the levels, and which of them each row may move to."""
    column = data.column
    part = Part.open(Freedom.LEVELS, len(column.places))
    coordinates = data.space.coordinates(data.c, list(column.levels))
    table = np.ascontiguousarray(coordinates, dtype=np.float64)
    part.table, part.count = table.reshape(-1), len(table)
    transitions = _transitions(column, rule)
    # Levels need to be recognized only if some have other transitions than an unknown level.
    alike = (transitions == transitions[-1]).all()
    part.allowed = transitions[-1:] if alike else transitions[data.codes(table)]
    return part


def _transitions(column: Column, rule: ColumnRule) -> Flags:
    """Return the allowed transitions: entry [i, j] is 1 if level i may become level j.

    The last line, i = -1, is for rows whose level is unknown.
    """
    count = len(column.levels)
    allowed = np.zeros((count + 1, count), dtype=np.uint8)
    if rule.fixed or column.indicator:
        return allowed
    known = [i for i, level in enumerate(column.levels) if not is_missing(level)]
    allowed[:, column.destinations if rule.levels is None else list(rule.levels)] = 1
    if column.stays_missing:
        allowed[-1] = 0
    for start, end in rule.forbidden:
        allowed[start, end] = 0
    if rule.transitions:
        priced = np.zeros_like(allowed)
        for start, end, _ in rule.transitions:
            priced[start, end] = 1
        allowed &= priced
    if rule.direction:
        allowed &= _along(rule.order or tuple(known), count, rule.direction)
    return allowed


def _along(order: tuple[int, ...], count: int, direction: int) -> Flags:
    """Return the transitions along an order; none from or to levels that it leaves out."""
    rank = np.full(count + 1, np.nan)
    rank[list(order)] = np.arange(len(order))
    forward = (rank[None, :count] - rank[:, None]) * direction >= 0
    return np.asarray(forward, dtype=np.uint8)


def values_of(space: Space, c: int, rows: Rows) -> Any:
    """Return the values of a column: numbers, or positions of levels (-1 if unknown)."""
    column = space.columns[c]
    if column.numeric:
        return space.numbers_of(rows, column)
    return level_codes(column, space.table_values(c, rows).tolist())


def level_codes(column: Column, values: Sequence[Any], missing: int = -1) -> Ints:
    """Return the positions of levels of a category: -1 for unknown ones, `missing` for gaps."""
    known = {level: i for i, level in enumerate(column.levels) if not is_missing(level)}
    code = {v: missing if is_missing(v) else known.get(v, -1) for v in set(values)}
    return np.fromiter(map(code.__getitem__, values), dtype=np.int64, count=len(values))
