"""The user's rules, in the user's columns, units and levels: what may change, and how."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from types import EllipsisType
from typing import Any, Literal, Self

import numpy as np

from voicecf.errors import BoundsError, ColumnError, OptionError, likely, listed
from voicecf.geometry.arrays import Array
from voicecf.rules.columns import column_of, columns_of, level_position, listed_columns
from voicecf.rules.constraints import Constraint, read_constraints
from voicecf.rules.sides import (
    KEEP,
    OPEN,
    Side,
    as_float,
    is_several,
    plain_item,
    read_pair,
    read_side,
)
from voicecf.rules.together import Together, as_entries, read_together
from voicecf.table.column import Column
from voicecf.table.space import Space

# What a TOML file has in `steps` in place of None: the column may take any number.
ANY_NUMBER = "any"


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
    least: float = 0.0

    @property
    def relative(self) -> bool:
        """Whether what is allowed depends on the row's value."""
        sides = any(s is not None and s.relative for s in self.sides)
        return self.direction != 0 or self.least > 0 or sides

    @property
    def sides(self) -> tuple[Side | None, Side | None]:
        """Lower and upper side of the bounds."""
        return self.low, self.high


@dataclass(frozen=True)
class Rules:
    """What a counterfactual may change, and how. Every rule is optional.

    Columns are given by name, or by position for arrays; a column of a declared block stands for
    the block.

    Parameters
    ----------
    immutable : column or list of columns
        Columns that keep their values.
    mutable : column or list of columns
        The only columns that may change: all others keep their values, as if they were listed in
        `immutable`.
    increase_only, decrease_only : column or list of columns
        Columns that may only rise, or only fall: numbers, and categories that have an order.
    bounds : dict of column to (lo, hi)
        A side is a number; None for open; ``...`` for the explainer's bound; or text relative to
        the row's value, ``"+500"`` or ``"-10%"`` (of its magnitude). A relative side never goes
        beyond the explainer's bound.
    steps : dict of column to number or None
        New values are multiples of this number; None allows any number, also in a column of whole
        numbers. If the pipeline maps the column by a function that is not affine, such as a
        logarithm, up to a million multiples are considered; of more, only those of ten, a
        hundred, ... times the number.
    levels : dict of column to list
        The levels of a category that a row may move to. A row may always keep its level.
    order : dict of column to list
        The levels of a category, lowest first. Levels that are left out have no place in the
        order: under increase_only or decrease_only there is no move from or to them.
    forbidden : dict of column to list of (from, to)
        Transitions between levels that are not allowed.
    costs : dict of column to number
        Factor of the column's squared change.
    least : dict of column to number
        A number changes by at least this amount or not at all, in the user's units; one that is
        missing stays missing.
    max_changes : int
        The largest number of columns that may change.
    constraints : str or list of str
        Linear rules between number columns, such as ``"fresh + 2*frozen <= 60000"``. < and > are
        strict: whole numbers differ by 1, others by a billionth of the rule's terms.
    together : list, str or frame
        Columns that belong together; an answer satisfies every rule of the list. A rule is text,
        ``"if visits == 0 then money == 0"`` or ``"visits == 0 and money == 0 or visits >= 1"``,
        with comparisons such as ``town == Oslo``, ``2 <= rooms <= 3`` and ``rooms in [1, 2]``; a
        list of dicts, each a box, ``[{"visits": 0, "money": 0}, {"visits": (1, None)}]``; or a
        frame whose rows are the only combinations allowed, ``df[["town", "region"]]``. In a column
        that may take any number, < and > keep a thousandth of the observed range away.
    plausible : float in (0, 1)
        Answers stay within what this share of the target's members show: they are not more extreme
        along any principal direction of the members.

    Examples
    --------
    >>> from voicecf.rules import Rules
    >>> rules = Rules(immutable="age", bounds={"income": (None, "+10%")}, max_changes=3)
    >>> rules.to_dict()
    {'immutable': ['age'], 'bounds': {'income': ['open', '+10%']}, 'max_changes': 3}
    >>> Rules.from_dict(rules.to_dict()) == rules
    True
    """

    immutable: Any = ()
    mutable: Any = None
    increase_only: Any = ()
    decrease_only: Any = ()
    bounds: Mapping[Any, Any] = field(default_factory=dict)
    steps: Mapping[Any, Any] = field(default_factory=dict)
    levels: Mapping[Any, Any] = field(default_factory=dict)
    order: Mapping[Any, Any] = field(default_factory=dict)
    forbidden: Mapping[Any, Any] = field(default_factory=dict)
    costs: Mapping[Any, Any] = field(default_factory=dict)
    least: Mapping[Any, Any] = field(default_factory=dict)
    max_changes: int | None = None
    constraints: Any = ()
    together: Any = ()
    plausible: float | None = None

    def __post_init__(self) -> None:
        """Bring values to one form, so that rules compare equal; check all but the columns."""
        for word in ("immutable", "increase_only", "decrease_only"):
            object.__setattr__(self, word, tuple(listed_columns(getattr(self, word))))
        object.__setattr__(self, "mutable", _mutable(self.mutable))
        for word, read in READERS.items():
            object.__setattr__(self, word, _by_column(word, getattr(self, word), read))
        object.__setattr__(self, "max_changes", _max_changes(self.max_changes))
        object.__setattr__(self, "plausible", _plausible(self.plausible))
        texts = self.constraints
        texts = () if texts is None else (texts,) if isinstance(texts, str) else texts
        object.__setattr__(self, "constraints", tuple(texts) if is_several(texts) else (texts,))
        object.__setattr__(self, "together", as_entries(self.together))

    @classmethod
    def read(cls, space: Space, **words: Any) -> Self:
        """Read rules, and check them against the columns of a space."""
        rules = cls.from_dict(words)
        rules.check(space)
        return rules

    @classmethod
    def from_dict(cls, words: Mapping[str, Any]) -> Self:
        """Read rules from a dict, such as that of a TOML or JSON file."""
        if not isinstance(words, Mapping):
            raise OptionError(
                f'rules must be a dict such as {{"immutable": ["age"]}}; got {words!r}.'
            )
        known = [f.name for f in fields(cls)]
        for word in words:
            if word not in known:
                raise OptionError(f"unknown rule {word!r}; {likely(word, known, len(known))}")
        return cls(**words)

    def to_dict(self) -> dict[str, Any]:
        """Return the rules that are set, in types that TOML and JSON have."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {word: _plain(value) for word, value in values.items() if value not in UNSET}
        for word, text in (("bounds", OPEN), ("steps", ANY_NUMBER), ("together", OPEN)):
            if word in plain:
                plain[word] = _without_none(plain[word], text)
        return plain

    def check(self, space: Space) -> None:
        """Raise if a rule does not fit the columns of a space."""
        self.of_columns(space)
        self.linear(space)
        self.unions(space)

    def unions(self, space: Space) -> tuple[Together, ...]:
        """Return the rules about columns that belong together."""
        return read_together(self.together, space)

    def linear(self, space: Space) -> tuple[Constraint, ...]:
        """Return the linear rules between columns."""
        return read_constraints(self.constraints, space)

    def factors(self, space: Space) -> Array:
        """Return the costs as a factor for each coordinate."""
        factors = np.ones(sum(len(c.places) for c in space.columns))
        for name, cost in self.costs.items():
            factors[space.columns[column_of(space, name, "costs")].places] = cost
        return factors

    def locked(self, space: Space) -> list[int]:
        """Return the positions of the columns that keep their values.

        They are those that `immutable` lists and, where `mutable` is given, all that it does not.
        """
        immutable = columns_of(space, self.immutable, "immutable")
        if self.mutable is None:
            return immutable
        mutable = columns_of(space, self.mutable, "mutable")
        both = [space.names[c] for c in mutable if c in immutable]
        if both:
            raise OptionError(
                f"{listed(both)} is listed in mutable and in immutable; columns that mutable does "
                "not list keep their values anyway, so give mutable alone."
            )
        return [c for c in range(len(space.columns)) if c not in mutable]

    def of_columns(self, space: Space) -> list[ColumnRule]:
        """Return the rules about each column of a space, checked."""
        facts: list[dict[str, Any]] = [{} for _ in space.columns]
        for c in self.locked(space):
            facts[c]["fixed"] = True
        for word, direction in DIRECTIONS.items():
            for c in columns_of(space, getattr(self, word), word):
                _check_agreement(space.columns[c], facts[c].get("direction", direction), direction)
                facts[c]["direction"] = direction
        for word, read in CHECKS.items():
            for c, value in self._by_column(word, space).items():
                facts[c] |= read(value, space.columns[c])
        rules = [ColumnRule(**of_column) for of_column in facts]
        for column, rule in zip(space.columns, rules, strict=True):
            _check_direction(column, rule)
        return rules

    def _by_column(self, word: str, space: Space) -> dict[int, Any]:
        """Return the values of a rule by the positions of columns; refuse a column named twice."""
        by_position: dict[int, Any] = {}
        for name, value in getattr(self, word).items():
            c = column_of(space, name, word)
            if c in by_position:
                raise ColumnError(
                    f"column {space.columns[c].name!r} is named twice in {word}; name it once."
                )
            by_position[c] = value
        return by_position


# Checks of a rule's value that need no table. A `word` is the name of a rule, such as "bounds".


def _by_column(word: str, values: Any, read: Callable[[Any, str], Any]) -> dict[Any, Any]:
    """Check a dict of values by column."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        error = BoundsError if word == "bounds" else OptionError
        raise error(f"{word} must be a dict such as {{{EXAMPLES[word]}}}; got {values!r}.")
    return {plain_item(name): read(value, f"{word} of {name!r}") for name, value in values.items()}


def _mutable(columns: Any) -> tuple[Any, ...] | None:
    if columns is None:
        return None
    names = tuple(listed_columns(columns))
    if not names or all(name is False for name in names):
        raise OptionError(
            f"mutable={columns!r} lists no column, so that nothing could change; list the columns "
            "that may change, or leave mutable out if all may."
        )
    return names


def _increment(value: Any, where: str) -> float | None:
    if value is None or (isinstance(value, str) and value == ANY_NUMBER):
        return None
    return _positive(value, where, "new values are multiples of it. Use None to allow any number")


def _cost(value: Any, where: str) -> float:
    return _positive(value, where, "it multiplies the squared change. Use immutable for no change")


def _least(value: Any, where: str) -> float:
    return _positive(value, where, "the column changes by at least this amount or not at all")


def _positive(value: Any, where: str, meaning: str) -> float:
    number = None if isinstance(value, bool) else as_float(plain_item(value))
    if number is None or not (isfinite(number) and number > 0):
        raise OptionError(f"{where} is {value!r}; it must be a number above 0: {meaning}.")
    return number


def _levels(value: Any, where: str) -> tuple[Any, ...]:
    levels = tuple(map(plain_item, value)) if is_several(value) else (plain_item(value),)
    if not levels:
        raise OptionError(f"{where} is empty; list a level, or say immutable to allow no change.")
    return levels


def _order(value: Any, where: str) -> tuple[Any, ...]:
    levels = _levels(value, where)
    twice = [level for i, level in enumerate(levels) if level in levels[:i]]
    if len(levels) < 2 or twice:
        fault = f"names {listed(twice)} twice" if twice else "needs two levels or more"
        raise OptionError(f"{where} {fault}; list each level once, lowest first.")
    return levels


def _transitions(value: Any, where: str) -> tuple[tuple[Any, Any], ...]:
    pairs = list(value) if is_several(value) else []
    if len(pairs) == 2 and not any(map(is_several, pairs)):
        pairs = [pairs]  # a single pair (from, to)
    if not pairs or not all(is_several(pair) and len(list(pair)) == 2 for pair in pairs):
        raise OptionError(
            f'{where} is {value!r}; give pairs (from, to), such as [("student", "retired")].'
        )
    return tuple((plain_item(start), plain_item(end)) for start, end in pairs)


def _max_changes(value: Any) -> int | None:
    if value is None:
        return None
    number = None if isinstance(value, bool) else as_float(plain_item(value))
    if number is None or not (number >= 1 and number.is_integer()):
        raise OptionError(f"max_changes={value!r} must be a whole number, 1 or more, or None.")
    return int(number)


def _plausible(value: Any) -> float | None:
    if value is None:
        return None
    number = None if isinstance(value, bool) else as_float(plain_item(value))
    if number is None or not 0 < number < 1:
        raise OptionError(f"plausible={value!r} must be a share above 0 and below 1, such as 0.95.")
    return number


# Checks of a rule's value against the column that it is about; they return fields of ColumnRule.


def _bound_rule(pair: tuple[Any, Any], column: Column) -> dict[str, Any]:
    _check_kind(column, "bounds", "number", "levels")
    where = f"bounds of {column.name!r}"
    return {"low": read_side(pair[0], -inf, where), "high": read_side(pair[1], inf, where)}


def _increment_rule(increment: float | None, column: Column) -> dict[str, Any]:
    _check_kind(column, "steps", "number", "levels")
    return {"increment": ANY_NUMBER if increment is None else increment}


def _level_rule(levels: tuple[Any, ...], column: Column) -> dict[str, Any]:
    _check_kind(column, "levels", "category", "bounds and steps")
    positions = tuple(level_position(level, column, "levels") for level in levels)
    for at in set(positions) - set(column.destinations):
        same = next(
            i for i in column.destinations if (column.options[i] == column.options[at]).all()
        )
        raise OptionError(
            f"levels of {column.name!r}: the encoder gives {column.levels[at]!r} and "
            f"{column.levels[same]!r} one code, and an answer names the latter; list it instead."
        )
    return {"levels": positions}


def _order_rule(levels: tuple[Any, ...], column: Column) -> dict[str, Any]:
    _check_kind(column, "order", "category", "increase_only or decrease_only alone")
    return {"order": tuple(level_position(level, column, "order") for level in levels)}


def _forbidden_rule(pairs: tuple[tuple[Any, Any], ...], column: Column) -> dict[str, Any]:
    _check_kind(column, "forbidden", "category", "bounds and steps")
    positions = (
        (level_position(start, column, "forbidden", True), level_position(end, column, "forbidden"))
        for start, end in pairs
    )
    return {"forbidden": tuple(positions)}


def _cost_rule(cost: float, column: Column) -> dict[str, Any]:
    return {"cost": cost}


def _least_rule(amount: float, column: Column) -> dict[str, Any]:
    _check_kind(column, "least", "number", "levels or forbidden")
    return {"least": amount}


def _check_kind(column: Column, word: str, kind: str, instead: str) -> None:
    if column.kind != kind:
        wanted = "number columns" if kind == "number" else "categories"
        given = "coded by bins" if column.binned else f"a {column.kind}"
        raise ColumnError(
            f"{word} can be given for {wanted} only; column {column.name!r} is {given}. "
            f"Use {instead}."
        )


def _check_agreement(column: Column, before: Any, now: Any) -> None:
    if before != now:
        raise OptionError(
            f"column {column.name!r} is in increase_only and in decrease_only, so it could not "
            f"change; say immutable=[{column.name!r}] if it may not change."
        )


def _check_direction(column: Column, rule: ColumnRule) -> None:
    """Refuse a direction of levels without an order, and bounds on the other side of the row."""
    if rule.direction == 0:
        return
    word = "increase_only" if rule.direction > 0 else "decrease_only"
    if column.kind == "category" and not (column.ordered or rule.order):
        raise ColumnError(
            f"{word}: the levels of column {column.name!r} have no order; give one, lowest first: "
            f"order={{{column.name!r}: [{listed(column.levels, 3)}]}}."
        )
    against = rule.high if rule.direction > 0 else rule.low
    if against is not None and against.relative and against.amount * rule.direction < 0:
        raise OptionError(
            f"{word} and bounds of column {column.name!r} contradict each other: one allows only "
            "values above the row's, the other only values below. Drop one of them."
        )


# Values that TOML and JSON have.


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return KEEP if isinstance(value, EllipsisType) else value


def _without_none(value: Any, text: str) -> Any:
    """Replace None by text, also inside lists and dicts."""
    if isinstance(value, dict):
        return {name: _without_none(part, text) for name, part in value.items()}
    if isinstance(value, list):
        return [_without_none(part, text) for part in value]
    return text if value is None else value


# Values of a rule that is not set.
UNSET: tuple[Any, ...] = ((), {}, None)
# Rules that list columns with a direction.
DIRECTIONS = {"increase_only": 1, "decrease_only": -1}
# Rules that are dicts by column: the check of a value before any table is known.
READERS: dict[str, Callable[[Any, str], Any]] = {
    "bounds": read_pair,
    "steps": _increment,
    "levels": _levels,
    "order": _order,
    "forbidden": _transitions,
    "costs": _cost,
    "least": _least,
}
EXAMPLES = {
    "bounds": '"income": (0, 90_000)',
    "steps": '"visits": 1',
    "levels": '"job": ["admin", "clerk"]',
    "order": '"size": ["small", "large"]',
    "forbidden": '"job": [("student", "retired")]',
    "costs": '"income": 2.0',
    "least": '"income": 100',
}
# The same rules: the check of a value against its column.
CHECKS: dict[str, Callable[[Any, Column], dict[str, Any]]] = {
    "bounds": _bound_rule,
    "steps": _increment_rule,
    "levels": _level_rule,
    "order": _order_rule,
    "forbidden": _forbidden_rule,
    "costs": _cost_rule,
    "least": _least_rule,
}
