"""What each row may become: the user's rules, translated into the model's coordinates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Mask
from voicecf.rules.choices import Choices
from voicecf.rules.constraints import Constraint, pull_back
from voicecf.rules.rules import Rules
from voicecf.table.rows import Rows
from voicecf.table.space import Space

NO_RULES = Rules()


def as_rules(rules: Rules | Mapping[str, Any] | None, **keywords: Any) -> Rules:
    """Return rules that were passed as one value or as keywords; keywords of None are left out."""
    words = {word: value for word, value in keywords.items() if value is not None}
    if rules is None:
        return Rules.from_dict(words) if words else NO_RULES
    if words:
        raise OptionError(
            f"give rules=... or single rules such as {next(iter(words))}=..., not both."
        )
    rules = rules if isinstance(rules, Rules) else Rules.from_dict(rules)
    return NO_RULES if rules == NO_RULES else rules


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
        if rules is NO_RULES and space.continuous and not searched:
            return cls.within(space, bounds)
        choices = Choices.of(space, rules, rows, bounds.lo, bounds.hi, bounds.box)
        constraints = rules.linear(space)
        return cls(
            rules,
            choices.box(),
            choices.fixed,
            choices if searched or choices.discrete else None,
            constraints,
            *pull_back(constraints, space),
            rules.factors(space),
            choices.sides,
            choices.grids,
        )

    @classmethod
    def within(cls, space: Space, bounds: DefaultBounds) -> Allowed:
        """Allow every number within the explainer's bounds: no rules and no choices."""
        d = space.n_coordinates
        none = np.zeros(len(space.columns), dtype=np.bool_)
        return cls(
            NO_RULES, bounds.box, none, None, (), np.empty((0, d)), np.empty(0), np.ones(d),
            (bounds.lo, bounds.hi), None,
        )  # fmt: skip

    @property
    def contractible(self) -> bool:
        """Whether the bounds can be contracted: they are numbers, the same for all rows."""
        words = set(self.rules.to_dict())
        relative = any(
            isinstance(side, str) for pair in self.rules.bounds.values() for side in pair
        )
        return self.choices is None and words <= {"immutable", "bounds"} and not relative

    @property
    def is_box(self) -> bool:
        """Whether a box alone describes what is allowed: no choices, linear rules or costs."""
        linear = len(self.normals) or self.rules.plausible is not None
        return self.choices is None and not linear and bool((self.factors == 1.0).all())
