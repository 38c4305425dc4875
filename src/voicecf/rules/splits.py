"""Rules that no single box describes, in the terms of `Choices`, so that a search can divide boxes.

They are: a least change, columns that belong together, linear rules between columns whose maps are
curves, and columns that are computed from others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.rules.choices import Choices
from voicecf.rules.columns import column_of
from voicecf.rules.constraints import Constraint
from voicecf.rules.formulas import Formula
from voicecf.rules.multiples import Listed
from voicecf.rules.parts import ColumnRows, Freedom, values_of
from voicecf.rules.terms import Terms
from voicecf.rules.together import Together
from voicecf.table.rows import Rows
from voicecf.table.space import Space

# A bound this close to an option of an evenly spaced grid, in pitches, is that option.
SAME = 1e-6
# Options are counted in 64 bits; no grid has this many.
MOST = 2**53
# The largest number.
LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True, eq=False)
class Intervals:
    """Intervals of a number column: in coordinates and, for a GRID, as ranges of options.

    Attributes
    ----------
    lo, hi : array of shape (m,)
        Ends in coordinates; those of the first and last option for a GRID. ``lo > hi`` if empty.
    first, last : array of shape (m,)
        Options of a GRID; 0 and -1 if empty.
    """

    lo: Array
    hi: Array
    first: Ints
    last: Ints

    @classmethod
    def none(cls, m: int) -> Intervals:
        """Return m empty intervals."""
        zeros = np.zeros(m, dtype=np.int64)
        return cls(np.full(m, np.inf), np.full(m, -np.inf), zeros, zeros - 1)

    @classmethod
    def every(cls, m: int) -> Intervals:
        """Return m intervals without ends."""
        most = np.full(m, MOST)
        return cls(np.full(m, -np.inf), np.full(m, np.inf), -most, most)

    @classmethod
    def of(cls, data: ColumnRows, choices: Choices, low: Array, high: Array) -> Intervals:
        """Translate intervals in the user's units."""
        none = cls.none(len(low))
        ends = data.column.limits  # no coordinate can be inverted beyond them
        low, high = np.maximum(low, ends[0]), np.minimum(high, ends[1])
        if choices.freedom[data.c] == Freedom.ANY:
            lo, hi = data.interval(np.minimum(low, ends[1]), np.maximum(high, ends[0]))
            empty = low > high
            lo, hi = np.where(empty, np.inf, lo), np.where(empty, -np.inf, hi)
            return cls(lo, hi, none.first, none.last)
        grid, pitch = choices.grids[data.c], choices.pitch[data.c]
        if isinstance(grid, Listed) and len(grid.values):
            first, last = grid.inside(low, high)
        elif pitch > 0:
            lo, hi = data.interval(low, high)
            first = np.ceil((lo - choices.base[data.c]) / pitch - SAME).clip(-MOST, MOST)
            last = np.floor((hi - choices.base[data.c]) / pitch + SAME).clip(-MOST, MOST)
        else:
            return none
        first, last = first.astype(np.int64), last.astype(np.int64)
        filled = first <= last
        lo, hi = none.lo, none.hi
        lo[filled] = choices._grid(data.c, first[filled])
        hi[filled] = choices._grid(data.c, last[filled])
        return cls(lo, hi, np.where(filled, first, 0), np.where(filled, last, -1))


@dataclass(frozen=True, eq=False)
class LeastChange:
    """The least change of a column: around its own value a row may not move to anything.

    Attributes
    ----------
    column : int
    amount : float
        In the user's units.
    gap : pair of arrays of shape (n,)
        Each row's coordinates on either side of what it may not move to; infinite if there are
        none.
    hole : pair of arrays of shape (n,)
        The same as options of a GRID.
    """

    column: int
    amount: float
    gap: tuple[Array, Array]
    hole: tuple[Ints, Ints]

    @classmethod
    def of(cls, data: ColumnRows, choices: Choices, amount: float) -> LeastChange:
        """Translate the least change of a column."""
        own = np.nan_to_num(data.values)  # a row whose value is missing may not move
        endless = np.full(len(own), np.inf)
        below = Intervals.of(data, choices, -endless, own - amount)
        above = Intervals.of(data, choices, own + amount, endless)
        below, above = (below, above) if data.column.rising else (above, below)
        last = np.where(below.first <= below.last, below.last, -MOST)
        first = np.where(above.first <= above.last, above.first, MOST)
        return cls(data.c, amount, (below.hi, above.lo), (last, first))

    def holds(self, before: Array, after: Array) -> Mask:
        """Tell which values changed by at least the amount, or not at all."""
        still = (after == before) | np.isnan(before)
        far = (after <= before - self.amount) | (after >= before + self.amount)
        return np.asarray(still | far)


@dataclass(frozen=True, eq=False)
class Boxes:
    """The boxes of rules about columns that belong together, in the terms of `Choices`.

    A place is a column in a rule. It has one side of every box of the rule; boxes of a rule are
    ordered so that neighbours are close.

    Attributes
    ----------
    places : int64 of shape (P, 4)
        Rule, column, number of boxes, and 1 if own values are positions of levels.
    ends : float64 of shape (E, 4)
        The sides of one place after another: ends in the user's units, infinite for categories, and
        in coordinates.
    options : int64 of shape (E, 2)
        The first and the last option of a GRID.
    starts, levels : int64 of shape (E + 1,), int64
        ``levels[starts[e]:starts[e + 1]]`` are the levels that side e allows in a column that is a
        category, or coded by bins.
    own : float64 of shape (n, P)
        The rows' own values of the columns: numbers, or positions of levels.
    """

    places: Ints
    ends: Array
    options: Ints
    starts: Ints
    levels: Ints
    own: Array

    @classmethod
    def of(cls, terms: Terms, rows: Rows, choices: Choices) -> Boxes | None:
        """Translate the rules of a question; None if there are none."""
        places, ends, options, masks, own = [], [], [], [], []
        for at, rule in enumerate(terms.unions):
            order = rule.box_order()
            for j, c in enumerate(rule.columns):
                data, coded = ColumnRows(terms.space, rows, c), c in rule.levels
                low, high = rule.low[order, j], rule.high[order, j]
                sides = Intervals.none(len(order))
                mask = np.zeros((len(order), 0), dtype=np.bool_)
                if coded:
                    mask = rule.levels[c][order]
                elif data.column.binned:
                    numbers = np.array(data.column.levels, dtype=float)
                    mask = rule.holds_in(j, numbers).T[order]
                else:
                    sides = Intervals.of(data, choices, low, high)
                places.append([at, c, len(order), coded])
                ends.append(np.column_stack([low, high, sides.lo, sides.hi]))
                options.append(np.column_stack([sides.first, sides.last]))
                masks.append(mask)
                own.append(values_of(terms.space, c, rows))
        for at, formula in enumerate(terms.formulas, start=len(terms.unions)):
            for c, table, values in _cases(formula, terms, rows, choices):
                places.append([at, c, len(table), 0])
                ends.append(table[:, :4])
                options.append(table[:, 4:].astype(np.int64))
                masks.append(np.zeros((len(table), 0), dtype=np.bool_))
                own.append(values)
        if not places:
            return None
        listed = np.concatenate([mask.sum(axis=1) for mask in masks])
        return cls(
            np.array(places, dtype=np.int64),
            np.concatenate(ends),
            np.concatenate(options),
            np.concatenate([[0], np.cumsum(listed)]),
            np.concatenate([np.nonzero(mask)[1] for mask in masks]),
            np.column_stack(own).astype(np.float64),
        )


def _cases(
    formula: Formula, terms: Terms, rows: Rows, choices: Choices
) -> Iterator[tuple[int, Array, Array]]:
    """Yield each place of a formula: its column, its sides in all boxes, and the own values.

    In the first box all columns keep their values, which is for rows that contradict the formula;
    there is another one for each of its parts.
    """
    space, m = terms.space, len(formula.parts)
    own = {c: values_of(space, c, rows) for c in formula.columns}
    stays = np.array([[-np.inf, np.inf, np.inf, -np.inf, 0, -1]])
    for c, values in own.items():
        data = ColumnRows(space, rows, c)
        pairs = [part.box.get(c, (-LARGEST, np.inf)) for part in formula.parts]
        low, high = np.array(pairs).reshape(m, 2).T
        limited = np.array([c in part.box for part in formula.parts], dtype=np.bool_)
        inside = Intervals.of(data, choices, np.where(limited, low, -np.inf), high)
        every = Intervals.every(m)
        sides = [
            np.where(limited, getattr(inside, name), getattr(every, name))
            for name in ("lo", "hi", "first", "last")
        ]
        parts = np.column_stack([low, high, *sides])
        # A missing value lies in no part.
        yield c, np.vstack([stays, parts]), np.where(np.isnan(values), -np.inf, values)
    agrees = formula.agrees(own)
    every = Intervals.every(m)
    parts = np.column_stack([
        np.full(m, -np.inf), np.full(m, np.inf), every.lo, every.hi, every.first, every.last
    ])  # fmt: skip
    marker = np.array([[1.0, 1.0, np.inf, -np.inf, 0, -1]])
    yield formula.made, np.vstack([marker, parts]), np.where(agrees, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class Splits:
    """The rules of a question that no single box describes.

    Attributes
    ----------
    least : tuple of LeastChange
    unions : tuple of Together
        Rules about columns that belong together.
    boxes : Boxes or None
        Their boxes.
    curved : tuple of Constraint
        Linear rules between columns of which at least one is mapped by a curve.
    formulas : tuple of Formula
        Columns that are computed from others.
    """

    least: tuple[LeastChange, ...]
    unions: tuple[Together, ...]
    boxes: Boxes | None
    curved: tuple[Constraint, ...]
    formulas: tuple[Formula, ...] = ()

    def gaps(self, n: int, columns: int) -> tuple[Array, Ints]:
        """Return what n rows may not move to, of shape (n, 2 * columns): numbers and options."""
        gaps, holes = np.zeros((n, columns, 2)), np.zeros((n, columns, 2), dtype=np.int64)
        for one in self.least:
            gaps[:, one.column] = np.column_stack(one.gap)
            holes[:, one.column] = np.column_stack(one.hole)
        return gaps.reshape(n, -1), holes.reshape(n, -1)

    def columns(self, space: Space) -> set[int]:
        """Return the columns of the rules about several columns."""
        curved = {
            column_of(space, name, one.text) for one in self.curved for name in one.coefficients
        }
        joined = [rule.columns for rule in self.unions] + [one.columns for one in self.formulas]
        return curved.union(*joined)

    @classmethod
    def of(cls, terms: Terms, rows: Rows, choices: Choices, curved: Any) -> Splits | None:
        """Translate the rules of a question; None if there are none of this kind."""
        space = terms.space
        some = terms.unions or terms.formulas or curved
        if not (some or any(rule.least > 0 for rule in terms.columns)):
            return None
        least = tuple(
            LeastChange.of(ColumnRows(space, rows, c), choices, rule.least)
            for c, rule in enumerate(terms.columns)
            if rule.least > 0 and not rule.fixed
        )
        boxes = Boxes.of(terms, rows, choices)
        return cls(least, tuple(terms.unions), boxes, tuple(curved), tuple(terms.formulas))
