"""What each row may become: rules in the user's words, said in coordinates."""

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


def said_rules(rules: Rules | Mapping[str, Any] | None, **words: Any) -> Rules:
    """Return the rules of a question, given in one value or in single words; None says nothing."""
    said = {word: value for word, value in words.items() if value is not None}
    if rules is None:
        return Rules.from_dict(said) if said else NO_RULES
    if said:
        raise OptionError(f"give rules, or words such as {next(iter(said))!r}, not both.")
    return rules if isinstance(rules, Rules) else Rules.from_dict(rules)


@dataclass(frozen=True)
class OwnBounds:
    """The explainer's own bounds, which hold where no rule is about them.

    Attributes
    ----------
    lo, hi : array of shape (C,)
        In the user's units; infinite for categories.
    box : pair of arrays of shape (d,)
        In coordinates.
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
        The user's words.
    box : pair of arrays of shape (d,) or (n or 1, d)
        Within which an answer lies, in coordinates.
    fixed : array of shape (C,)
        Columns that keep their values.
    choices : Choices or None
        What each column may be; None where the box says it all.
    constraints : tuple of Constraint
        Rules between columns, in the user's units, and
    normals, offsets : array of shape (m, d), (m,)
        the same in coordinates.
    factors : array of shape (d,)
        Costs, a factor a coordinate.
    sides : pair of arrays of shape (C,) or (n or 1, C)
        Bounds in the user's units.
    grids : tuple or None
        Values that columns keep to, in the user's units; None where there are none.
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
        cls, space: Space, rules: Rules, rows: Rows, bounds: OwnBounds, *, searched: bool = False
    ) -> Allowed:
        """Say rules for some rows in coordinates.

        Parameters
        ----------
        space : Space
        rules : Rules
        rows : Rows
        bounds : OwnBounds
        searched : bool
            Whether a search over the columns is to follow, even if the box says it all.
        """
        if rules is NO_RULES and space.continuous and not searched:
            return cls.within(space, bounds)
        choices = Choices.of(space, rules, rows, bounds.lo, bounds.hi, bounds.box)
        constraints = rules.linear(space)
        return cls(
            rules,
            choices.box(),
            np.array([rule.fixed for rule in rules.of_columns(space)], dtype=np.bool_),
            choices if searched or choices.discrete else None,
            constraints,
            *pull_back(constraints, space),
            rules.factors(space),
            choices.sides,
            choices.grids,
        )

    @classmethod
    def within(cls, space: Space, bounds: OwnBounds) -> Allowed:
        """Return what is allowed where any number within the bounds is: no rules, no choices."""
        d = space.n_coordinates
        none = np.zeros(len(space.columns), dtype=np.bool_)
        return cls(
            NO_RULES, bounds.box, none, None, (), np.empty((0, d)), np.empty(0), np.ones(d),
            (bounds.lo, bounds.hi), None,
        )  # fmt: skip

    @property
    def contractible(self) -> bool:
        """Whether bounds can be contracted: a box in numbers, the same for all rows."""
        words = set(self.rules.to_dict())
        relative = any(
            isinstance(side, str) for pair in self.rules.bounds.values() for side in pair
        )
        return self.choices is None and words <= {"immutable", "bounds"} and not relative

    @property
    def is_box(self) -> bool:
        """Whether a box says it all, at the model's own weights: no choices, rules or costs."""
        return self.choices is None and not len(self.normals) and bool((self.factors == 1.0).all())
