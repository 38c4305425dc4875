"""What may change, and how: the user's rules, in the user's own columns, units and levels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import inf, isfinite
from types import EllipsisType
from typing import Any, Literal, Self

import numpy as np

from voicecf.errors import BoundsError, ColumnError, OptionError, likely, listed
from voicecf.geometry.arrays import Array
from voicecf.rules.columns import column_of, columns_of, listed_columns
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
from voicecf.table.column import Column
from voicecf.table.space import Space

# How a file says that a column may be any number, for which TOML has no value.
ANY_NUMBER = "any"


@dataclass(frozen=True)
class ColumnRule:
    """All that the user said of one column.

    Attributes
    ----------
    fixed : bool
        Whether it keeps its value.
    direction : int
        1: it may only rise; -1: only fall; 0: both.
    low, high : Side or None
        Its bounds; None keeps the explainer's own.
    step : float, "any" or None
        Its values are multiples of it; any number; as the column is.
    levels : tuple of int or None
        Levels that it may move to; None: all.
    order : tuple of int or None
        Levels, lowest first; None: as the column is.
    forbidden : tuple of (int, int)
        Transitions that it may not make, from and to.
    cost : float
        Factor on its squared change.
    """

    fixed: bool = False
    direction: int = 0
    low: Side | None = None
    high: Side | None = None
    step: float | Literal["any"] | None = None
    levels: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    forbidden: tuple[tuple[int, int], ...] = ()
    cost: float = 1.0

    @property
    def relative(self) -> bool:
        """Whether what may be chosen depends on the row's own value."""
        return self.direction != 0 or any(s is not None and s.relative for s in self.sides)

    @property
    def sides(self) -> tuple[Side | None, Side | None]:
        """Both sides of its bounds."""
        return self.low, self.high


@dataclass(frozen=True)
class Rules:
    """What a counterfactual may change, in the user's words. Every word is optional.

    Columns are given by name, or by position for arrays; a column of a declared block stands for
    the block.

    Parameters
    ----------
    immutable : column or list of columns
        They keep their values, whatever these are.
    increase_only, decrease_only : column or list of columns
        Numbers, and categories that have an order.
    bounds : dict of column to (lo, hi)
        A side is a number; None for open; ``...``, the explainer's own; or text relative to the
        row's own value, ``"+500"`` or ``"-10%"`` (of its size), beside which the explainer's own
        side holds too.
    steps : dict of column to number or None
        Values are multiples of it; None allows any number, also in a column of whole numbers.
        Behind a map that is not affine up to a million values of a column are looked at; of more
        than that, multiples of ten, a hundred, ... times the step.
    levels : dict of column to list
        The levels of a category that may be moved to. Its own level may always stay.
    order : dict of column to list
        Levels of a category, lowest first. Levels that are left out have no place in the order:
        a direction allows no move from or to them.
    forbidden : dict of column to list of (from, to)
        Transitions that may not be made.
    costs : dict of column to number
        Factor on the column's squared change.
    max_changes : int
        Most columns that may change.
    constraints : str or list of str
        Linear rules between number columns, see `voicecf.rules.constraints`.

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
    increase_only: Any = ()
    decrease_only: Any = ()
    bounds: Mapping[Any, Any] = field(default_factory=dict)
    steps: Mapping[Any, Any] = field(default_factory=dict)
    levels: Mapping[Any, Any] = field(default_factory=dict)
    order: Mapping[Any, Any] = field(default_factory=dict)
    forbidden: Mapping[Any, Any] = field(default_factory=dict)
    costs: Mapping[Any, Any] = field(default_factory=dict)
    max_changes: int | None = None
    constraints: Any = ()

    def __post_init__(self) -> None:
        """Bring the words to one form, so that equal rules are equal; check what needs no space."""
        for word in ("immutable", "increase_only", "decrease_only"):
            object.__setattr__(self, word, tuple(listed_columns(getattr(self, word))))
        for word, read in READERS.items():
            object.__setattr__(self, word, _by_column(word, getattr(self, word), read))
        object.__setattr__(self, "max_changes", _whole_changes(self.max_changes))
        texts = self.constraints
        texts = () if texts is None else (texts,) if isinstance(texts, str) else texts
        object.__setattr__(self, "constraints", tuple(texts) if is_several(texts) else (texts,))

    @classmethod
    def read(cls, space: Space, **words: Any) -> Self:
        """Read the user's words and check them against the columns of a space."""
        rules = cls.from_dict(words)
        rules.check(space)
        return rules

    @classmethod
    def from_dict(cls, words: Mapping[str, Any]) -> Self:
        """Read rules from a dict, such as a TOML or JSON file holds."""
        if not isinstance(words, Mapping):
            raise OptionError(f'rules must be a dict such as {{"immutable": ["age"]}}: {words!r}.')
        known = [f.name for f in fields(cls)]
        for word in words:
            if word not in known:
                raise OptionError(f"unknown rule {word!r}; {likely(word, known)}")
        return cls(**words)

    def to_dict(self) -> dict[str, Any]:
        """Return the words that were said, in types that TOML and JSON hold."""
        said = {f.name: getattr(self, f.name) for f in fields(self)}
        plain = {word: _plain(value) for word, value in said.items() if value not in ((), {}, None)}
        for word, blank in (("bounds", OPEN), ("steps", ANY_NUMBER)):
            if word in plain:
                plain[word] = {name: _filled(v, blank) for name, v in plain[word].items()}
        return plain

    def check(self, space: Space) -> None:
        """Raise where a rule does not fit the columns of a space."""
        self.of_columns(space)
        self.linear(space)

    def linear(self, space: Space) -> tuple[Constraint, ...]:
        """Return the rules between columns."""
        return read_constraints(self.constraints, space)

    def factors(self, space: Space) -> Array:
        """Return the costs as a factor for each coordinate."""
        factors = np.ones(sum(len(c.places) for c in space.columns))
        for name, cost in self.costs.items():
            factors[space.columns[column_of(space, name, "costs")].places] = cost
        return factors

    def of_columns(self, space: Space) -> list[ColumnRule]:
        """Return what was said of each column of a space, checked."""
        told: list[dict[str, Any]] = [{} for _ in space.columns]
        for word, (key, value) in LISTS.items():
            for i in columns_of(space, getattr(self, word), word):
                _check_agreement(space.columns[i], told[i].get(key, value), value)
                told[i][key] = value
        for word, read in CHECKS.items():
            for i, said in self._by_place(word, space).items():
                told[i] |= read(said, space.columns[i])
        rules = [ColumnRule(**facts) for facts in told]
        for column, rule in zip(space.columns, rules, strict=True):
            _check_direction(column, rule)
        return rules

    def _by_place(self, word: str, space: Space) -> dict[int, Any]:
        """Return what one word says, by the column's place; a block may be named only once."""
        by_place: dict[int, Any] = {}
        for name, said in getattr(self, word).items():
            i = column_of(space, name, word)
            if i in by_place:
                raise ColumnError(
                    f"column {space.columns[i].name!r} is named twice in {word}; say it once."
                )
            by_place[i] = said
        return by_place


# Words: one a column, before any space is known.


def _by_column(word: str, given: Any, read: Callable[[Any, str], Any]) -> dict[Any, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        error = BoundsError if word == "bounds" else OptionError
        raise error(f"{word} must be a dict such as {{{EXAMPLES[word]}}}; got {given!r}.")
    return {plain_item(name): read(said, f"{word} of {name!r}") for name, said in given.items()}


def _step(said: Any, where: str) -> float | None:
    if said is None or (isinstance(said, str) and said == ANY_NUMBER):
        return None
    return _positive(said, where, "multiples of it are allowed, and None for any number")


def _cost(said: Any, where: str) -> float:
    return _positive(said, where, "it multiplies the squared change; use immutable for no change")


def _positive(said: Any, where: str, meaning: str) -> float:
    number = None if isinstance(said, bool) else as_float(plain_item(said))
    if number is None or not (isfinite(number) and number > 0):
        raise OptionError(f"{where} is {said!r}; it must be a number above 0: {meaning}.")
    return number


def _level_list(said: Any, where: str) -> tuple[Any, ...]:
    levels = tuple(map(plain_item, said)) if is_several(said) else (plain_item(said),)
    if not levels:
        raise OptionError(f"{where} lists none; to allow no change, say immutable.")
    return levels


def _order(said: Any, where: str) -> tuple[Any, ...]:
    levels = _level_list(said, where)
    twice = [level for i, level in enumerate(levels) if level in levels[:i]]
    if len(levels) < 2 or twice:
        fault = f"names {listed(twice)} twice" if twice else "needs two levels or more"
        raise OptionError(f"{where} {fault}; list each level once, lowest first.")
    return levels


def _transitions(said: Any, where: str) -> tuple[tuple[Any, Any], ...]:
    pairs = list(said) if is_several(said) else []
    if len(pairs) == 2 and not any(map(is_several, pairs)):
        pairs = [pairs]  # one transition
    if not pairs or not all(is_several(pair) and len(list(pair)) == 2 for pair in pairs):
        raise OptionError(f'{where}: give pairs (from, to), such as [("student", "retired")].')
    return tuple((plain_item(start), plain_item(end)) for start, end in pairs)


def _whole_changes(said: Any) -> int | None:
    if said is None:
        return None
    number = None if isinstance(said, bool) else as_float(plain_item(said))
    if number is None or not (number >= 1 and number.is_integer()):
        raise OptionError(f"max_changes={said!r} must be a whole number, 1 or more, or None.")
    return int(number)


# Words against a column.


def _bound_rule(said: tuple[Any, Any], column: Column) -> dict[str, Any]:
    _check_kind(column, "bounds", "number", "levels")
    where = f"bounds of {column.name!r}"
    return {"low": read_side(said[0], -inf, where), "high": read_side(said[1], inf, where)}


def _step_rule(said: float | None, column: Column) -> dict[str, Any]:
    _check_kind(column, "steps", "number", "levels")
    return {"step": ANY_NUMBER if said is None else said}


def _level_rule(said: tuple[Any, ...], column: Column) -> dict[str, Any]:
    _check_kind(column, "levels", "category", "bounds and steps")
    return {"levels": tuple(_level(level, column, "levels") for level in said)}


def _order_rule(said: tuple[Any, ...], column: Column) -> dict[str, Any]:
    _check_kind(column, "order", "category", "increase_only or decrease_only alone")
    return {"order": tuple(_level(level, column, "order") for level in said)}


def _forbidden_rule(said: tuple[tuple[Any, Any], ...], column: Column) -> dict[str, Any]:
    _check_kind(column, "forbidden", "category", "bounds and steps")
    pairs = (
        (_level(a, column, "forbidden", True), _level(b, column, "forbidden")) for a, b in said
    )
    return {"forbidden": tuple(pairs)}


def _cost_rule(said: float, column: Column) -> dict[str, Any]:
    return {"cost": said}


def _check_kind(column: Column, word: str, kind: str, instead: str) -> None:
    if column.kind != kind:
        wanted = "number columns" if kind == "number" else "categories"
        raise ColumnError(
            f"{word} are for {wanted}; column {column.name!r} is a {column.kind}. Use {instead}."
        )


def _level(level: Any, column: Column, word: str, missing: bool = False) -> int:
    """Return the position of a level; with `missing`, also of one that is missing."""
    where = f"{word} of {column.name!r}"
    if is_missing(level):
        gaps = [i for i, known in enumerate(column.levels) if is_missing(known)]
        if missing and gaps:
            return gaps[0]
        raise OptionError(f"{where}: a missing value is no level that a row may move to.")
    if level in column.levels:
        return column.levels.index(level)
    spelt = [i for i, known in enumerate(column.levels) if str(known) == level]
    if len(spelt) == 1:
        return spelt[0]
    known = [known for known in column.levels if not is_missing(known)]
    raise OptionError(f"unknown level {level!r} in {where}; {likely(level, known)}")


def _check_agreement(column: Column, before: Any, now: Any) -> None:
    if before != now:
        raise OptionError(
            f"column {column.name!r} is in increase_only and in decrease_only, so that it cannot "
            f"change; say immutable=[{column.name!r}] if that is meant."
        )


def _check_direction(column: Column, rule: ColumnRule) -> None:
    """Refuse directions without an order, and bounds that ask for the opposite of a direction."""
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
            f"{word} and bounds of column {column.name!r} contradict each other: no value lies on "
            "both sides of the row's own. Drop one of them."
        )


def is_missing(level: Any) -> bool:
    """Tell whether a level stands for no value: None, NaN, or what is not even equal to itself."""
    if level is None:
        return True
    same = level == level
    return not isinstance(same, (bool, np.bool_)) or not same


# Plain values.


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(said) for name, said in value.items()}
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return KEEP if isinstance(value, EllipsisType) else value


def _filled(value: Any, blank: str) -> Any:
    if isinstance(value, list):
        return [_filled(part, blank) for part in value]
    return blank if value is None else value


LISTS: dict[str, tuple[str, Any]] = {
    "immutable": ("fixed", True),
    "increase_only": ("direction", 1),
    "decrease_only": ("direction", -1),
}
READERS: dict[str, Callable[[Any, str], Any]] = {
    "bounds": read_pair,
    "steps": _step,
    "levels": _level_list,
    "order": _order,
    "forbidden": _transitions,
    "costs": _cost,
}
EXAMPLES = {
    "bounds": '"income": (0, 90_000)',
    "steps": '"visits": 1',
    "levels": '"job": ["admin", "clerk"]',
    "order": '"size": ["small", "large"]',
    "forbidden": '"job": [("student", "retired")]',
    "costs": '"income": 2.0',
}
CHECKS: dict[str, Callable[[Any, Column], dict[str, Any]]] = {
    "bounds": _bound_rule,
    "steps": _step_rule,
    "levels": _level_rule,
    "order": _order_rule,
    "forbidden": _forbidden_rule,
    "costs": _cost_rule,
}
