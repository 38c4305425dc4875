"""What changes cost in money: prices of coordinates, and of levels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from voicecf.geometry.arrays import Array, Ints, product
from voicecf.rules.columns import affine_map
from voicecf.rules.parts import ColumnRows, values_of
from voicecf.rules.terms import ColumnRule
from voicecf.table.rows import Rows
from voicecf.table.space import Space

if TYPE_CHECKING:
    from voicecf.rules.terms import Terms


@dataclass(frozen=True, eq=False)
class Levelled:
    """What a category's levels cost.

    Attributes
    ----------
    places : array of int
        Coordinates of the column.
    table : array of shape (levels, width)
        Coordinates of the levels.
    fees : array of shape (n or 1, levels)
        What a row pays for each level.
    """

    places: Ints
    table: Array
    fees: Array

    def of(self, before: Array, after: Array, rows: Ints) -> Array:
        """Return what moves cost: the fee of the level that each ends at, 0 where none moves."""
        after = after[:, self.places]
        moved = (after != before[:, self.places]).any(axis=1)
        prices = np.zeros(len(after))
        far = np.abs(after[moved][:, None, :] - self.table).sum(axis=2)
        level = far.argmin(axis=1) if len(far) else np.empty(0, dtype=np.int64)
        line = np.zeros(len(after), dtype=np.int64) if len(self.fees) == 1 else rows
        prices[moved] = self.fees[line[moved], level]
        prices[np.isnan(after).any(axis=1)] = np.nan
        return prices


@dataclass(frozen=True, eq=False)
class Tariff:
    """What changes cost in money: a sum over columns.

    Attributes
    ----------
    up, down : array of shape (d,)
        What each coordinate costs per unit more, and per unit less; 0 for those of categories.
    levelled : tuple of Levelled
        The categories, in the order of the columns.
    curved : tuple of Curved
        Columns behind curves that have a price; `up` and `down` are then those of the user's units.
    """

    up: Array
    down: Array
    levelled: tuple[Levelled, ...]
    curved: tuple[Curved, ...] = ()

    @classmethod
    def of(cls, terms: Terms, rows: Rows) -> Tariff:
        """Return the prices that rules say; 1 for each unit of a coordinate if they say none."""
        space, said = terms.space, any(rule.priced for rule in terms.columns)
        up, down = np.zeros((2, space.n_coordinates))
        levelled, curved = [], []
        for c, (column, rule) in enumerate(zip(space.columns, terms.columns, strict=True)):
            if column.kind == "category":
                fees, table = _fees(ColumnRows(space, rows, c), rule, said)
                levelled.append(Levelled(column.places, table, fees))
            elif not said:
                up[column.places] = down[column.places] = 1.0
            elif rule.price is not None:
                at = column.places[0]
                up[at], down[at] = _of_coordinate(space, c, rule.price)
                if column.curved:
                    curved.append(Curved.of(space, rows, c))
        return cls(up, down, tuple(levelled), tuple(curved))

    @property
    def pair(self) -> tuple[Array, Array]:
        """Prices of coordinates, up and down."""
        return self.up, self.down

    @property
    def fees(self) -> Array:
        """What a row pays for each level of all categories, (n or 1, T)."""
        parts = [one.fees for one in self.levelled]
        n = max((len(part) for part in parts), default=1)
        wide = [np.broadcast_to(part, (n, part.shape[1])) for part in parts]
        return np.ascontiguousarray(np.concatenate([np.empty((n, 0)), *wide], axis=1))

    def price(self, before: Array, after: Array, rows: Ints) -> Array:
        """Return what moves cost; `rows` are the positions of the rows that move."""
        moves = after - before
        bent = [one.place for one in self.curved]
        up, down = self.pair
        moves[:, bent] = np.sign(moves[:, bent]) * np.hstack(
            [np.empty((len(moves), 0)), *(one.moves(after, rows) for one in self.curved)]
        )
        price = product(np.maximum(moves, 0.0), up) + product(np.maximum(-moves, 0.0), down)
        for one in self.levelled:
            price = price + one.of(before, after, rows)
        return np.asarray(price)


@dataclass(frozen=True, eq=False)
class Curved:
    """A column behind a curve.

    Attributes
    ----------
    space : Space
    column, place : int
        Its position, and that of its coordinate.
    own : array of shape (n,)
        The rows' own values, those that the pipeline fills in included.
    """

    space: Space
    column: int
    place: int
    own: Array

    @classmethod
    def of(cls, space: Space, rows: Rows, c: int) -> Curved:
        """Read a column's own values."""
        place = int(space.columns[c].places[0])
        own = np.array(values_of(space, c, rows), dtype=np.float64)
        filled = np.isnan(own)
        own[filled] = space.values(c, rows.points[filled, place][:, None]).ravel()
        return cls(space, c, place, own)

    def moves(self, after: Array, rows: Ints) -> Array:
        """Return how far values change, shape (len(after), 1)."""
        z = after[:, self.place]
        found, known = np.full(len(z), np.nan), ~np.isnan(z)
        found[known] = self.space.values(self.column, z[known][:, None]).ravel()
        return np.abs(found - self.own[rows])[:, None]


def _of_coordinate(space: Space, c: int, price: tuple[float, float]) -> tuple[float, float]:
    """Return what a coordinate costs per unit more and less: it is z = scale * u + shift.

    Behind a curve it is what the user's units cost on either side of the coordinate.
    """
    column = space.columns[c]
    scale = (1.0 if column.rising else -1.0) if column.curved else affine_map(space, c)[0]
    more, less = price if scale > 0 else price[::-1]  # a falling map swaps them
    return more / abs(scale), less / abs(scale)


def _fees(data: ColumnRows, rule: ColumnRule, said: bool) -> tuple[Array, Array]:
    """Return what rows pay for each level of a category, and the coordinates of the levels.

    Without any prices a level costs what its coordinates do, one by one.
    """
    column = data.column
    table = np.asarray(data.space.coordinates(data.c, list(column.levels)), dtype=np.float64)
    table = table.reshape(len(column.levels), -1)
    if not said:
        points = data.rows.points[:, column.places]
        return np.abs(table - points[:, None, :]).sum(axis=2).reshape(len(points), -1), table
    if not rule.transitions:
        return np.full((1, len(table)), 0.0 if rule.price is None else rule.price[0]), table
    fees = np.zeros((len(table) + 1, len(table)))
    for start, end, price in rule.transitions:
        fees[start, end] = price
    return fees[data.codes(table)], table
