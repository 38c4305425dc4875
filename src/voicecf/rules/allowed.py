"""What each row may become: the user's rules, translated into the model's coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.rules.choices import Choices
from voicecf.rules.constraints import Constraint, pull_back
from voicecf.rules.formulas import Formula
from voicecf.rules.parts import values_of
from voicecf.rules.rules import RULES, Rules
from voicecf.rules.splits import Splits
from voicecf.table.rows import Rows
from voicecf.table.space import Space

BY_DEFAULT, NO_RULES = Rules(), Rules(**dict.fromkeys(RULES))
# Rules that hold though nothing is said of them.
HOLDING = {word for word, rule in RULES.items() if rule.default is not None}


def as_rules(rules: Rules | Mapping[str, Any] | None, **keywords: Any) -> Rules:
    """Return rules that were passed as one value or as keywords.

    Keywords of None are left out, but for those that switch off what holds by default.
    """
    words = {
        word: value for word, value in keywords.items() if value is not None or word in HOLDING
    }
    if rules is None and not words:
        return BY_DEFAULT
    if rules is None:
        return NO_RULES if words == dict.fromkeys(HOLDING) else Rules.from_dict(words)
    if words:
        raise OptionError(
            f"give rules=... or single rules such as {next(iter(words))}=..., not both."
        )
    return rules if isinstance(rules, Rules) else Rules.from_dict(rules)


def is_continuous(space: Space, allowed: Allowed, c: int) -> bool:
    """Tell whether a column may take any number in its bounds."""
    return space.columns[c].free and (allowed.grids is None or allowed.grids[c] is None)


@dataclass(frozen=True)
class DefaultBounds:
    """The explainer's bounds, which hold for every column whose bounds no rule sets.

    Attributes
    ----------
    lo, hi : array of shape (C,)
        In the user's units; infinite for categories.
    box : pair of arrays of shape (d,)
        The same bounds in coordinates.
    """

    lo: Array
    hi: Array
    box: tuple[Array, Array]


@dataclass(frozen=True)
class Allowed:
    """What each of n rows may become.

    Attributes
    ----------
    rules : Rules
        The user's rules.
    box : pair of arrays of shape (d,) or (n or 1, d)
        Lower and upper bounds of an answer, in coordinates.
    fixed : array of shape (C,)
        Columns that keep their values.
    choices : Choices or None
        The options of each column; None where the box alone describes what is allowed.
    constraints : tuple of Constraint
        Linear rules between columns, in the user's units.
    normals, offsets : array of shape (m, d), (m,)
        The same linear rules in coordinates, ``normals @ z <= offsets``.
    factors : array of shape (d,)
        The factor of each coordinate in the cost.
    sides : pair of arrays of shape (C,) or (n or 1, C)
        Lower and upper bounds in the user's units.
    grids : tuple or None
        For each column the values that it is limited to, in the user's units; None if no column
        is limited to a grid.
    splits : Splits or None
        Rules that no single box and no row describes; None if there are none.
    """

    rules: Rules
    box: tuple[Array, Array]
    fixed: Mask
    choices: Choices | None
    constraints: tuple[Constraint, ...]
    normals: Array
    offsets: Array
    factors: Array
    sides: tuple[Array, Array]
    grids: tuple[Any, ...] | None
    splits: Splits | None = None

    @classmethod
    def of(
        cls,
        space: Space,
        rules: Rules,
        rows: Rows,
        bounds: DefaultBounds,
        *,
        searched: bool = False,
    ) -> Allowed:
        """Translate rules into coordinates, for each row.

        Parameters
        ----------
        space : Space
        rules : Rules
        rows : Rows
        bounds : DefaultBounds
        searched : bool
            Whether a search over the columns follows, which needs the choices of every column even
            where a box would describe them.
        """
        if space.continuous and not searched and all(rule.by_target for rule in rules.active()):
            return cls.within(space, bounds, rules)
        terms = rules.terms(space)
        choices = Choices.of(space, rules, rows, bounds.lo, bounds.hi, bounds.box)
        affine = [one for one in terms.constraints if one.is_affine(space)]
        curved = [one for one in terms.constraints if one not in affine]
        columns = zip(space.columns, terms.columns, strict=True)
        bent = any(column.curved and rule.price is not None for column, rule in columns)
        splits = Splits.of(terms, rows, choices, curved)
        return cls(
            rules,
            choices.box(),
            choices.fixed,
            choices if searched or bent or choices.discrete or splits is not None else None,
            tuple(terms.constraints),
            *pull_back(affine, space),
            terms.factors,
            choices.sides,
            choices.grids,
            splits,
        )

    @classmethod
    def within(cls, space: Space, bounds: DefaultBounds, rules: Rules) -> Allowed:
        """Allow every number within the explainer's bounds: no rules of columns, no choices."""
        d = space.n_coordinates
        none = np.zeros(len(space.columns), dtype=np.bool_)
        return cls(
            rules, bounds.box, none, None, (), np.empty((0, d)), np.empty(0), np.ones(d),
            (bounds.lo, bounds.hi), None,
        )  # fmt: skip

    def holds(self, space: Space, rows: Rows, which: Ints, changed: Rows) -> Mask:
        """Tell which changed rows satisfy the rules between columns and the least changes.

        Parameters
        ----------
        space : Space
        rows : Rows
            All rows before the change.
        which : array of shape (n,)
            Position in `rows` of each changed row.
        changed : Rows
            In the user's columns.
        """
        holds = np.ones(len(which), dtype=np.bool_)
        if self.constraints:
            numbers = space.user_numbers(changed)
            for constraint in self.constraints:
                holds &= constraint.holds(numbers)
        if self.splits is None:
            return holds
        for union in self.splits.unions:
            holds &= union.holds({c: values_of(space, c, changed) for c in union.columns})
        for least in self.splits.least:
            before = values_of(space, least.column, rows)[which]
            holds &= least.holds(before, values_of(space, least.column, changed))
        for formula in self.formulas:
            before, after = (
                {c: values_of(space, c, some) for c in formula.columns} for some in (rows, changed)
            )
            holds &= formula.holds({c: values[which] for c, values in before.items()}, after)
        return holds

    @property
    def ends(self) -> dict[int, Array]:
        """The ends of boxes that columns which belong together may lie in, ascending."""
        if self.splits is None:
            return {}
        found: dict[int, list[Array]] = {}
        for rule in self.splits.unions:
            for at, c in enumerate(rule.columns):
                if c not in rule.levels:
                    found.setdefault(c, []).extend([rule.low[:, at], rule.high[:, at]])
        ends = {c: np.unique(np.concatenate(sides)) for c, sides in found.items()}
        finite = {c: values[np.isfinite(values)] for c, values in ends.items()}
        return {c: values for c, values in finite.items() if len(values)}

    @property
    def least(self) -> dict[int, float]:
        """The least change, in the user's units, of the columns that have one."""
        splits = self.splits
        return {} if splits is None else {one.column: one.amount for one in splits.least}

    @property
    def formulas(self) -> tuple[Formula, ...]:
        """Columns that are computed from others, in the order of their computation."""
        return () if self.splits is None else self.splits.formulas

    @property
    def any_number(self) -> set[int]:
        """The columns of numbers that may change, and are limited to no grid."""
        grids = self.grids or (None,) * len(self.fixed)
        return {c for c, grid in enumerate(grids) if grid is None and not self.fixed[c]}

    @property
    def contractible(self) -> bool:
        """Whether the bounds can be contracted: they are numbers, the same for all rows."""
        return self.choices is None and all(rule.contractible for rule in self.rules.active())

    @property
    def is_box(self) -> bool:
        """Whether a box alone describes what is allowed: no choices, linear rules or costs."""
        return self.choices is None and not self.linear and bool((self.factors == 1.0).all())

    @property
    def linear(self) -> bool:
        """Whether constraints on the coordinates are added to the region of a target."""
        return len(self.normals) > 0 or any(rule.by_target for rule in self.rules.active())

    def with_constraints(self, normals: Array, offsets: Array) -> Allowed:
        """Add constraints on the coordinates, ``normals @ z <= offsets``."""
        return replace(
            self,
            normals=np.vstack([self.normals, normals]),
            offsets=np.concatenate([self.offsets, offsets]),
        )

    def inside(self, lo: Array, hi: Array) -> Allowed:
        """Return what of it lies in a box of coordinates."""
        if not np.isfinite([lo, hi]).any():
            return self
        if self.choices is None:
            box = np.maximum(self.box[0], lo), np.minimum(self.box[1], hi)
            return replace(self, box=box)
        choices = self.choices.inside(lo, hi)
        return replace(self, choices=choices, box=choices.box())
