"""A rule: one word of the user's about what may change. Each has a class, in a file of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isfinite
from types import EllipsisType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from voicecf.errors import ColumnError, OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.rules.columns import column_of, columns_of, listed_columns
from voicecf.rules.condition import Condition, Member, Members, Situation, Variant
from voicecf.rules.sides import KEEP, as_number
from voicecf.rules.terms import Terms
from voicecf.table.column import Column
from voicecf.table.frames import plain_item
from voicecf.table.rows import Rows
from voicecf.table.space import Space

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed


class Moved(Protocol):
    """An answer, one of whose columns is moved as far as the rules allow, as rules see it."""

    case: Any
    space: Space
    point: Array

    @property
    def changed_row(self) -> Rows:
        """The answer in the user's columns, one row."""

    @property
    def numbers(self) -> dict[Any, float]:
        """The answer's numbers, in the user's units, by column."""

    def number(self, c: int) -> float:
        """Return the answer's value of a number column."""


@dataclass(frozen=True)
class Rule(Condition):
    """What the user says with one word, and everything that the library knows of that word.

    The docstring of a rule is its paragraph in the documentation of `Rules` and `VoICE.explain`. A
    new rule is a subclass, listed in `voicecf.rules.rules`.

    Attributes
    ----------
    value : object
        What the user said, as `read` returned it.
    word : str
        The keyword.
    takes : str
        The type of the value, for the documentation.
    nothing : object
        The value of a rule that is not set.
    default : object
        What holds where the user says nothing, as the user would say it.
    none : str or None
        What a TOML file has in place of None.
    help, arguments : str, dict
        The text of the command's option, and other arguments of `add_argument`.
    flag : str
        The option's name; the word itself if left out.
    by_target : bool
        Whether it adds constraints that depend on the target.
    """

    value: Any
    word: ClassVar[str]
    takes: ClassVar[str]
    nothing: ClassVar[Any] = None
    default: ClassVar[Any] = None
    none: ClassVar[str | None] = None
    help: ClassVar[str]
    arguments: ClassVar[dict[str, Any]] = {}
    flag: ClassVar[str] = ""
    by_target: ClassVar[bool] = False

    # Reading.

    @classmethod
    def read(cls, value: Any) -> Any:
        """Return a value in the one form in which rules are compared; raise if it is wrong."""
        return cls.nothing if value is None else cls.checked(value)

    @classmethod
    def checked(cls, value: Any) -> Any:
        """Return a value that is not None in one form; raise if it is wrong."""
        raise NotImplementedError

    @property
    def is_set(self) -> bool:
        """Whether the user set the rule."""
        return bool(self.value != self.nothing)

    @property
    def contractible(self) -> bool:
        """Whether it is a box, the same for all rows, which can be contracted with the cell."""
        return False

    def plain(self) -> Any:
        """Return the value in types that TOML and JSON have."""
        return _plain(self.value, self.none)

    def named(self, space: Space) -> Any:
        """Return the value with each column by its own name."""
        return self.value

    # The command's option.

    @classmethod
    def option(cls) -> tuple[str, dict[str, Any]]:
        """Return the name of the command's option, and the arguments of `add_argument`."""
        flag = cls.flag or f"--{cls.word.replace('_', '-')}"
        return flag, {"dest": cls.word, "help": cls.help, **cls.arguments}

    @classmethod
    def parsed(cls, arguments: Any) -> Any:
        """Return the value that the arguments of the command's option say."""
        return arguments

    def ladder(self, learned: Any, objective: str) -> tuple[Any, ...]:
        """Return the values that are tried one after the other, until there is an answer."""
        return (self.value,)

    # What it adds to the problem.

    def add(self, terms: Terms) -> None:
        """Check the value against the columns, and add to the terms what it says of them."""

    def check(self, terms: Terms) -> None:
        """Check the rule against what all rules have added."""

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        """Raise if no question about these rows can be answered under this rule."""

    def in_target(self, allowed: Allowed, learned: Any, target: int) -> Allowed:
        """Return what is allowed in a target."""
        return allowed

    def exact_values(self, learned: Any) -> dict[int, Array]:
        """Return values of some columns, in the user's units, that answers have exactly."""
        return {}

    def holds(self, allowed: Allowed, learned: Any, targets: Ints, points: Array) -> Mask:
        """Tell which points satisfy what the rule asks of answers in their targets."""
        return np.ones(len(points), dtype=np.bool_)

    def missed(self, learned: Any, target: int, box: tuple[Array, Array]) -> str:
        """Say what no answer of a row is; `box` has the coordinates within its reach."""
        raise NotImplementedError

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return variant.with_rules(**{self.word: None})

    def ends(self, answer: Moved, c: int, direction: int) -> Iterator[float]:
        """Yield values beyond which an answer would break the rule, one column moved up or down."""
        return iter(())


def several(metavar: str) -> dict[str, str]:
    """Return the arguments of an option that takes several values, and can be repeated."""
    return {"nargs": "+", "action": "extend", "metavar": metavar}


class ColumnList(Rule):
    """A rule that lists columns."""

    takes = "column or list of columns"
    nothing: ClassVar[Any] = ()
    arguments = several("COLUMN")

    @classmethod
    def checked(cls, value: Any) -> Any:
        return tuple(listed_columns(value))

    def columns(self, space: Space) -> list[int]:
        """Return the positions of the columns."""
        return columns_of(space, self.value, self.word)

    def named(self, space: Space) -> Any:
        return [space.names[c] for c in self.columns(space)]

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return variant.without(self.word, member.column)


class ByColumn(Rule):
    """A rule that is a dict of values by column: numbers above 0, if a subclass says nothing else.

    Attributes
    ----------
    example, command_example : str
        An entry of the dict, and an option of the command, for error messages.
    field : str
        The field of `ColumnRule` that has the value.
    meaning : str
        What the number is for.
    column_kind : "number", "category" or None
        The columns that it can be given for; None for all.
    instead : str
        What to use for other columns.
    """

    nothing: ClassVar[Any] = {}
    example: ClassVar[str]
    command_example: ClassVar[str]
    field: ClassVar[str]
    meaning: ClassVar[str]
    column_kind: ClassVar[str | None] = None
    instead: ClassVar[str] = ""
    error: ClassVar[type[Exception]] = OptionError

    @classmethod
    def checked(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise cls.error(f"{cls.word} must be a dict such as {{{cls.example}}}; got {value!r}.")
        return {
            plain_item(name): cls.entry(part, f"{cls.word} of {name!r}")
            for name, part in value.items()
        }

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        """Return the value of one column in one form; raise if it is wrong."""
        number = as_number(value)
        if number is None or not (isfinite(number) and number > 0):
            raise OptionError(f"{where} is {value!r}; it must be a number above 0: {cls.meaning}.")
        return number

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        """Return fields of `ColumnRule`; raise if the value does not fit the column."""
        return {self.field: value}

    def add(self, terms: Terms) -> None:
        found: set[int] = set()
        for name, value in self.value.items():
            c = column_of(terms.space, name, self.word)
            column = terms.space.columns[c]
            if c in found:
                raise ColumnError(
                    f"column {column.name!r} is named twice in {self.word}; name it once."
                )
            self._check_kind(column)
            terms.set(c, **self.facts(value, column))
            found.add(c)

    def _check_kind(self, column: Column) -> None:
        if self.column_kind not in (None, column.kind):
            wanted = "number columns" if self.column_kind == "number" else "categories"
            actual = "coded by bins" if column.binned else f"a {column.kind}"
            raise ColumnError(
                f"{self.word} can be given for {wanted} only; column {column.name!r} is {actual}. "
                f"Use {self.instead}."
            )

    def named(self, space: Space) -> Any:
        return {
            space.names[column_of(space, name, self.word)]: value
            for name, value in self.value.items()
        }

    @classmethod
    def parsed(cls, arguments: Any) -> Any:
        by_column: dict[str, Any] = {}
        for text in arguments:
            name, equals, value = text.rpartition("=")
            if not equals or not name:
                raise OptionError(
                    f"--{cls.word} {text}: use COLUMN=..., such as {cls.command_example}."
                )
            found = cls.parse(value, f"--{cls.word} {text}")
            by_column[name] = cls.joined(by_column[name], found) if name in by_column else found
        return by_column

    @classmethod
    def parse(cls, text: str, where: str) -> Any:
        """Parse what follows ``COLUMN=`` in the command's option: a number."""
        return number_of(text, where)

    @classmethod
    def joined(cls, before: Any, now: Any) -> Any:
        """Return the value of a column that the command names twice: the last one."""
        return now

    def members(self, case: Situation) -> Members:
        for c, rule in enumerate(case.terms.columns):
            # The rules of a locked column are no members: they still hold once it is unlocked.
            if not rule.fixed and self.column_kind in (None, case.space.columns[c].kind):
                yield from self.column_members(case, c)

    def column_members(self, case: Situation, c: int) -> Members:
        """Yield the members about a column."""
        return iter(())

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return variant.with_column_rule(self.word, member.column, None)


def number_of(text: Any, where: str) -> float:
    """Parse a number of the command line; a whole one becomes an int."""
    try:
        found = float(text)
    except ValueError:
        raise OptionError(f"{where}: {text!r} is not a number.") from None
    return int(found) if found.is_integer() else found


def _plain(value: Any, none: str | None) -> Any:
    if isinstance(value, Mapping):
        return {str(name): _plain(part, none) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_plain(part, none) for part in value]
    if value is None:
        return none
    return KEEP if isinstance(value, EllipsisType) else value
