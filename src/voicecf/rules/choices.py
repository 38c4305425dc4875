"""The options of each row in each column: the user's rules, translated into coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.rules.columns import cached
from voicecf.rules.multiples import Grid
from voicecf.rules.parts import ColumnRows, Flags, Freedom, Part, part_of
from voicecf.rules.rules import Rules
from voicecf.rules.terms import Terms
from voicecf.table.rows import Rows
from voicecf.table.space import Space

__all__ = ["Choices", "Freedom"]

# A number of options that no grid has.
FURTHEST = float(1 << 60)


@dataclass(frozen=True, eq=False)
class Choices:
    """The options of each of n rows in each of C columns, in coordinates.

    An array of shape (n or 1, ...) has one row if all rows of the table have the same options. An
    immutable column is ANY with ``lo == hi``, GRID with ``least > most``, or LEVELS with no level
    allowed, and `stay` is 1. ANY with ``lo > hi`` has no option at all.

    Attributes
    ----------
    fixed : bool of shape (C,)
        Columns that keep their values.
    first, member : int64 of shape (C + 1,) and (d,)
        The coordinates of column c are ``member[first[c]:first[c + 1]]``.
    freedom : int8 of shape (C,)
        `Freedom`: ANY number within bounds, one of the sorted options of a GRID, or one of the
        LEVELS of a category.
    start, table : int64 of shape (C + 1,), float64
        ``table[start[c]:start[c + 1]]`` holds the options of column c: the ascending coordinates
        of a GRID, or the coordinates of each of the LEVELS, one level after the other.
    base, pitch : float64 of shape (C,)
        A GRID with ``pitch > 0`` has no table: option l is ``base + l * pitch``. `base` is in the
        middle of the observed range, where it is precise, so that `least` is often negative. It
        does not depend on the rows, so that the options of a row have the same bits in any batch.
    count : int64 of shape (C,)
        Number of options in the column, over all rows.
    least, most : int64 of shape (n or 1, C)
        GRID: the options least to most are allowed.
    allowed : uint8 of shape (n or 1, T)
        LEVELS: whether a row may move to each level; T is the number of levels of all columns,
        column after column.
    stay : uint8 of shape (n or 1, C)
        Whether the row may keep its value.
    lo, hi : float64 of shape (n or 1, d)
        ANY: the bounds.
    changes : int
        The largest number of columns that may change.
    points : float64 of shape (n, d)
        The coordinates of the rows.
    grids : tuple of Multiples, Listed or None
        For each column the values that it is limited to, in the user's units; None for a column
        without a grid.
    sides : pair of float64 of shape (n or 1, C)
        Bounds in the user's units of the values that a row may move to; NaN if a bound depends
        on a value that the row lacks.

    Examples
    --------
    A table of one column, rooms:

    >>> import pandas as pd
    >>> from voicecf.rules import Rules
    >>> from voicecf.rules.choices import Choices
    >>> from voicecf.table.learning import learn_space
    >>> table = pd.DataFrame({"rooms": [4, 1, 9]})
    >>> space = learn_space(None, table)
    >>> rules = Rules(bounds={"rooms": (None, "+2")}, increase_only="rooms")
    >>> choices = Choices.of(space, rules, space.read(table), lo=[1.0], hi=[9.0])
    >>> lo, hi = choices.box()
    >>> lo[:, 0].tolist(), hi[:, 0].tolist()
    ([4.0, 1.0, 9.0], [6.0, 3.0, 9.0])
    """

    fixed: NDArray[np.bool_]
    first: Ints
    member: Ints
    freedom: NDArray[np.int8]
    start: Ints
    table: Array
    base: Array
    pitch: Array
    count: Ints
    least: Ints
    most: Ints
    allowed: Flags
    stay: Flags
    lo: Array
    hi: Array
    changes: int
    points: Array
    grids: tuple[Grid | None, ...]
    sides: tuple[Array, Array]

    @classmethod
    def of(
        cls,
        space: Space,
        rules: Rules,
        rows: Rows,
        lo: Any,
        hi: Any,
        box: tuple[Array, Array] | None = None,
    ) -> Choices:
        """Translate rules into the options of each row.

        Parameters
        ----------
        space : Space
        rules : Rules
        rows : Rows
        lo, hi : array of shape (C,)
            The explainer's bounds in the user's units; not used for categories.
        box : pair of arrays of shape (d,), optional
            The same bounds in coordinates, widened by rounding so that all data are inside.
        """
        terms = rules.terms(space)
        columns = [ColumnRows(space, rows, c) for c in range(len(space.columns))]
        lo, hi = np.asarray(lo, dtype=np.float64), np.asarray(hi, dtype=np.float64)
        ends = (side.tobytes() for side in (lo, hi, *(box or ())))
        key = tuple(terms.columns), *ends, *(data.boolean for data in columns)

        def part(c: int) -> Part:
            return part_of(columns[c], terms.columns[c], lo[c], hi[c], box)

        def shared() -> tuple[dict[int, Part], Choices | None]:
            rules = enumerate(terms.columns)
            known = {c: part(c) for c, rule in rules if not rule.by_row(space.columns[c])}
            whole = len(known) == len(columns)
            return known, cls._joined(terms, list(known.values())) if whole else None

        known, choices = cached(space, "choices", key, shared)
        parts = [known.get(c) or part(c) for c in range(len(columns))]
        choices = choices or cls._joined(terms, parts)
        stay = _may_stay(columns, parts)
        found = replace(choices, stay=stay, points=rows.points, changes=terms.changes)
        vars(found)["hull"] = choices.hull  # made once
        return found

    @classmethod
    def _joined(cls, terms: Terms, parts: Sequence[Part]) -> Choices:
        """Return the parts of all columns as one; rows without coordinates, which may stay."""
        places = [column.places for column in terms.space.columns]
        return cls(
            fixed=np.array([rule.fixed for rule in terms.columns], dtype=np.bool_),
            first=_starts(places),
            member=np.concatenate(places, dtype=np.int64),
            freedom=np.array([p.freedom for p in parts], dtype=np.int8),
            start=_starts([p.table for p in parts]),
            table=np.concatenate([p.table for p in parts]),
            base=np.array([p.base for p in parts]),
            pitch=np.array([p.pitch for p in parts]),
            count=np.array([p.count for p in parts], dtype=np.int64),
            least=_side_by_side([p.least[:, None] for p in parts]),
            most=_side_by_side([p.most[:, None] for p in parts]),
            allowed=_side_by_side([p.allowed for p in parts]),
            stay=np.ones((1, len(parts)), dtype=np.uint8),
            lo=_in_place([p.lo for p in parts], places),
            hi=_in_place([p.hi for p in parts], places),
            changes=len(parts),
            points=np.empty((0, sum(map(len, places)))),
            grids=tuple(p.grid for p in parts),
            sides=(
                _side_by_side([p.sides[0][:, None] for p in parts]),
                _side_by_side([p.sides[1][:, None] for p in parts]),
            ),
        )

    @property
    def discrete(self) -> bool:
        """Whether an answer needs a search: discrete options, or a limit on changes."""
        grid = (self.freedom == Freedom.GRID) & (self.least <= self.most).any(axis=0)
        return bool(grid.any() or self.allowed.any() or self.changes < len(self.freedom))

    def box(self) -> tuple[Array, Array]:
        """Return the smallest box around all options, the row's present value included.

        Returns
        -------
        lo, hi : array of shape (n or 1, d)
            ``lo > hi`` in a column without options.
        """
        lo, hi = self.hull
        stay = np.empty((len(self.stay), len(self.member)), dtype=np.bool_)
        stay[:, self.member] = np.repeat(self.stay == 1, np.diff(self.first), axis=1)
        if (stay & ((self.points < lo) | (self.points > hi))).any():
            lo = np.where(stay, np.minimum(lo, self.points), lo)
            hi = np.where(stay, np.maximum(hi, self.points), hi)
        return lo, hi

    def inside(self, lo: Array, hi: Array) -> Choices:
        """Return the choices in a box of coordinates; listed options may leave it by rounding."""
        low, high = lo - TOLERANCE.rule * np.abs(lo), hi + TOLERANCE.rule * np.abs(hi)
        number = self.member[self.first[:-1]][self.freedom == Freedom.ANY]
        low[number], high[number] = lo[number], hi[number]
        outside = ((self.points < low) | (self.points > high))[:, self.member]
        faults = np.cumsum(np.pad(outside, ((0, 0), (1, 0))), axis=1)[:, self.first]
        stay = self.stay & (faults[:, 1:] == faults[:, :-1])
        least, most, allowed = self.least.copy(), self.most.copy(), self.allowed.copy()
        levels = _starts(
            [range(n) for n in np.where(self.freedom == Freedom.LEVELS, self.count, 0)]
        )
        for c in np.flatnonzero(self.freedom != Freedom.ANY).tolist():
            at = self._places(c)
            if self.freedom[c] == Freedom.LEVELS:
                table = self._table(c)
                fits = ((table >= low[at]) & (table <= high[at])).all(axis=1)
                allowed[:, levels[c] : levels[c + 1]] &= fits
            elif np.isfinite([low[at[0]], high[at[0]]]).any():
                first, last = self._options_between(c, low[at[0]], high[at[0]])
                least[:, c], most[:, c] = (
                    np.maximum(least[:, c], first),
                    np.minimum(most[:, c], last),
                )
        lo, hi = np.maximum(self.lo, lo), np.minimum(self.hi, hi)
        return replace(self, lo=lo, hi=hi, stay=stay, least=least, most=most, allowed=allowed)

    def _options_between(self, c: int, low: float, high: float) -> tuple[int, int]:
        """Return the first and the last option of a GRID between two coordinates."""
        if self.pitch[c] > 0:
            ends = (np.array([low, high]) - self.base[c]) / self.pitch[c]
            first, last = np.clip([np.ceil(ends[0]), np.floor(ends[1])], -FURTHEST, FURTHEST)
            return int(first), int(last)
        options = self._table(c)[:, 0]
        return int(np.searchsorted(options, low)), int(np.searchsorted(options, high, "right")) - 1

    def _places(self, c: int) -> Ints:
        """Return the positions of a column's coordinates."""
        return self.member[self.first[c] : self.first[c + 1]]

    def _table(self, c: int) -> Array:
        """Return the listed options of a column, of shape (count, width)."""
        width = int(self.first[c + 1] - self.first[c])
        return self.table[self.start[c] : self.start[c + 1]].reshape(-1, width)

    def _allowed(self, c: int) -> NDArray[np.bool_]:
        """Return which levels of a column are allowed, of shape (n or 1, levels)."""
        levels = np.where(self.freedom == Freedom.LEVELS, self.count, 0)
        begin = int(levels[:c].sum())
        return np.asarray(self.allowed[:, begin : begin + int(levels[c])], dtype=np.bool_)

    def _grid(self, c: int, indices: Ints) -> Array:
        """Return the coordinates of options of a GRID."""
        if self.pitch[c] > 0:
            return np.asarray(self.base[c] + indices * self.pitch[c])
        return self._table(c)[:, 0][indices]

    @cached_property
    def hull(self) -> tuple[Array, Array]:
        """The ends of what rows may move to, (n or 1, d); inf and -inf for nothing."""
        chosen = np.flatnonzero(self.freedom != Freedom.ANY)
        if not len(chosen):
            return self.lo, self.hi
        columns = range(len(self.freedom))
        places = [self._places(c) for c in columns]
        hulls = [
            self._hull_of_options(c) if c in chosen else (self.lo[:, at], self.hi[:, at])
            for c, at in zip(columns, places, strict=True)
        ]
        lo, hi = (_in_place([hull[side] for hull in hulls], places) for side in (0, 1))
        return lo, hi

    def _hull_of_options(self, c: int) -> tuple[Array, Array]:
        """Return the ends of the options of a column that may not be any number."""
        if self.freedom[c] == Freedom.LEVELS:
            return _hull_of_levels(self._table(c), self._allowed(c))
        least, most = self.least[:, c], self.most[:, c]
        filled = least <= most
        lo, hi = np.full(len(filled), np.inf), np.full(len(filled), -np.inf)
        lo[filled], hi[filled] = self._grid(c, least[filled]), self._grid(c, most[filled])
        return lo[:, None], hi[:, None]


def _hull_of_levels(table: Array, allowed: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Return lower and upper ends of the allowed levels of each row.

    They are computed once for each distinct set of allowed levels.
    """
    packed = np.ascontiguousarray(np.packbits(allowed, axis=1))
    keys = packed.view(f"V{packed.shape[1]}")[:, 0]
    _, firsts, inverse = np.unique(keys, return_index=True, return_inverse=True)
    lo = [np.min(table[allowed[r]], axis=0, initial=np.inf) for r in firsts]
    hi = [np.max(table[allowed[r]], axis=0, initial=-np.inf) for r in firsts]
    none = np.empty((0, table.shape[1]))  # without rows there is nothing to stack
    return np.vstack([none, *lo])[inverse], np.vstack([none, *hi])[inverse]


def _may_stay(columns: Sequence[ColumnRows], parts: Sequence[Part]) -> Flags:
    """Tell, (n or 1, C), which rows may keep their values."""
    stay = np.ones((len(columns[0].rows.points), len(parts)), dtype=np.uint8)
    for c, part in enumerate(parts):
        if part.limits is not None:
            # Values that are read anew are let go of at once: many columns need no memory for all.
            stay[:, c] = part.limits.stay(replace(columns[c]))
    return stay[:1] if stay.all() else stay


def _starts(parts: Sequence[Any]) -> Ints:
    """Return where each part begins once all are concatenated, and where the last one ends."""
    return np.array([0, *accumulate(len(p) for p in parts)], dtype=np.int64)


def _side_by_side(parts: Sequence[Any]) -> Any:
    """Join arrays of shape (n or 1, width): the result has n rows if one of them has."""
    n = max((len(p) for p in parts if len(p) != 1), default=1)
    if n != 1:
        parts = [np.broadcast_to(p, (n, p.shape[1])) for p in parts]
    return np.concatenate(parts, axis=1)


def _in_place(parts: Sequence[Array], places: Sequence[Ints]) -> Array:
    """Write parts of shape (n or 1, width) to their coordinates of one array, (n or 1, d)."""
    n = max((len(p) for p in parts if len(p) != 1), default=1)
    shared = np.empty((min(n, 1), sum(len(w) for w in places)))
    shared[:, np.concatenate(places)] = np.concatenate([p[: min(n, 1)] for p in parts], axis=1)
    if n <= 1:
        return shared
    # Copy shared columns row by row: writing them one column at a time is slow with many columns.
    whole = np.repeat(shared, n, axis=0)
    for part, where in zip(parts, places, strict=True):
        if len(part) == n:
            whole[:, where] = part
    return whole
