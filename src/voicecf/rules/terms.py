"""What the user's rules say about the columns of a space, once they are read and checked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array
from voicecf.rules.multiples import Multiples
from voicecf.rules.sides import Side
from voicecf.table.column import Column
from voicecf.table.space import Space

if TYPE_CHECKING:
    from voicecf.rules.constraints import Constraint
    from voicecf.rules.formulas import Formula
    from voicecf.rules.together import Together


@dataclass(frozen=True)
class ColumnRule:
    """All rules about one column. Levels are given by their positions.

    Attributes
    ----------
    fixed : bool
        Whether the column keeps its value.
    direction : int
        1 if the value may only rise, -1 if it may only fall, 0 if both.
    low, high : Side or None
        The bounds; None for the explainer's.
    increment : float, "any" or None
        New values are multiples of it, or any number. None: whole numbers in a column of whole
        numbers, else any number.
    levels : tuple of int or None
        The levels that a row may move to; None for all.
    order : tuple of int or None
        The levels, lowest first; None for the column's own order.
    forbidden : tuple of (int, int)
        Transitions that are not allowed, from one level to another.
    cost : float
        Factor of the column's squared change.
    price : pair of float or None
        Money for each unit more and for each unit less, in the user's units; of a category, twice
        that for any change of level. None if it has none.
    transitions : tuple of (int, int, float)
        Money for single changes of level, from one to another; others may not be taken.
    least : float
        A number changes by at least this amount, in the user's units, or not at all.
    """

    fixed: bool = False
    direction: int = 0
    low: Side | None = None
    high: Side | None = None
    increment: float | Literal["any"] | None = None
    levels: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    forbidden: tuple[tuple[int, int], ...] = ()
    cost: float = 1.0
    price: tuple[float, float] | None = None
    transitions: tuple[tuple[int, int, float], ...] = ()
    least: float = 0.0

    def multiples(self, column: Column) -> Multiples | None:
        """Return the grid of a number column; None if it may take any number, or listed ones."""
        if self.increment is None:
            return Multiples(1.0) if column.whole and not column.listed else None
        return None if self.increment == "any" else Multiples(self.increment)

    @property
    def priced(self) -> bool:
        """Whether changes of the column have a price."""
        return self.price is not None or bool(self.transitions)

    @property
    def relative(self) -> bool:
        """Whether what is allowed depends on the row's value."""
        sides = any(s is not None and s.relative for s in self.sides)
        return self.direction != 0 or self.least > 0 or sides

    def by_row(self, column: Column) -> bool:
        """Tell whether the options in a column may differ from row to row."""
        own_value = self.fixed and column.kind == "number"
        listed = self.forbidden or self.transitions
        return bool(self.relative or listed or column.stays_missing or own_value)

    @property
    def sides(self) -> tuple[Side | None, Side | None]:
        """Lower and upper side of the bounds."""
        return self.low, self.high


@dataclass
class Terms:
    """What rules add to the problem, in the user's columns; each rule adds its part in turn.

    Attributes
    ----------
    space : Space
    columns : list of ColumnRule
        The rules about each column.
    changes : int
        The largest number of columns that may change.
    constraints : list of Constraint
        Linear rules between columns.
    unions : list of Together
        Columns that belong together.
    formulas : list of Formula
        Columns that are computed from others, those that others need first.
    """

    space: Space
    columns: list[ColumnRule]
    changes: int
    constraints: list[Constraint] = field(default_factory=list)
    unions: list[Together] = field(default_factory=list)
    formulas: list[Formula] = field(default_factory=list)

    @classmethod
    def of(cls, space: Space) -> Terms:
        """Return the terms of a question without rules."""
        return cls(space, [ColumnRule()] * len(space.columns), len(space.columns))

    def set(self, c: int, **facts: Any) -> None:
        """Set fields of the rule about a column."""
        self.columns[c] = replace(self.columns[c], **facts)

    @property
    def factors(self) -> Array:
        """The costs as a factor for each coordinate."""
        factors = np.ones(sum(len(c.places) for c in self.space.columns))
        for column, rule in zip(self.space.columns, self.columns, strict=True):
            factors[column.places] = rule.cost
        return factors
