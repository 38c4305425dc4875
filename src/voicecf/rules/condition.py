"""A condition: what an answer has to respect, and what is said and tried where it is in the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from voicecf.geometry.arrays import Array
from voicecf.rules.columns import columns_of
from voicecf.rules.multiples import Multiples
from voicecf.rules.parts import ColumnRows, Limits
from voicecf.rules.sides import read_side
from voicecf.rules.terms import ColumnRule, Terms
from voicecf.table.rows import Rows
from voicecf.table.space import Space

if TYPE_CHECKING:
    from voicecf.rules.rules import Rules


@dataclass(frozen=True)
class Variant:
    """The rules, the rivals and the contraction that one solve takes into account.

    Attributes
    ----------
    rules : Rules
        Each column by its own name; `mutable` is said by `immutable`. See `Rules.named`.
    ignored_rivals : frozenset of int
        Clusters that the answer may be nearer to than to its target.
    alpha : float or None
        Contraction of the target's cell; the explainer's own if None.
    """

    rules: Rules
    ignored_rivals: frozenset[int] = frozenset()
    alpha: float | None = None

    def with_rules(self, **words: Any) -> Variant:
        """Return the variant with some rules replaced."""
        return replace(self, rules=replace(self.rules, **words))

    def with_column_rule(self, word: str, name: Any, value: Any) -> Variant:
        """Return the variant with the rule of one column replaced; None removes it."""
        others = {n: v for n, v in getattr(self.rules, word).items() if n != name}
        return self.with_rules(**{word: others if value is None else {**others, name: value}})

    def without(self, word: str, entry: Any) -> Variant:
        """Return the variant with an entry removed from a rule that is a list."""
        return self.with_rules(**{word: [e for e in getattr(self.rules, word) if e != entry]})

    def sides(self, name: Any) -> tuple[Any, Any]:
        """Return the bounds of a column as the user gave them; an ellipsis where not given."""
        low, high = self.rules.bounds.get(name, (..., ...))
        return low, high


class Situation(ABC):
    """One row and its target, as conditions see it.

    Attributes
    ----------
    learned : Learned
    rules : Rules
        What the user asked for.
    original : Variant
        The same, with each column by its own name.
    rows : Rows
        The row.
    target : int
    """

    def __init__(self, learned: Any, rules: Rules, rows: Rows, target: int) -> None:
        self.learned, self.rules, self.rows, self.target = learned, rules, rows, target
        self.space: Space = learned.space
        self.original = Variant(rules.named(self.space))

    @cached_property
    def terms(self) -> Terms:
        """What the user's rules say of the columns."""
        return self.original.rules.terms(self.space)

    @property
    def mutable(self) -> list[Any]:
        """The only columns that may change; empty if the user did not list them."""
        return [self.space.names[c] for c in columns_of(self.space, self.rules.mutable, "mutable")]

    def place(self, name: Any) -> int:
        """Return the position of a column."""
        return self.space.names.index(name)

    def own_number(self, c: int) -> float:
        """Return the row's value of a number column, NaN where it is missing."""
        return float(self.space.numbers_of(self.rows, self.space.columns[c])[0])

    def own_level(self, c: int) -> Any:
        """Return the row's level of a category."""
        return self.space.table_values(c, self.rows, np.zeros(1, dtype=np.int64))[0]

    def multiples(self, c: int) -> Multiples | None:
        """Return the multiples that a column is restricted to; None if it takes any number."""
        return self.terms.columns[c].multiples(self.space.columns[c])

    def bounds(self, c: int, variant: Variant) -> tuple[float, float]:
        """Return the bounds of a column in the user's units, directions not included."""
        low, high = variant.sides(self.space.names[c])
        rule = ColumnRule(low=read_side(low, -inf, "bounds"), high=read_side(high, inf, "bounds"))
        own = self.learned.bounds
        limits = Limits.of(ColumnRows(self.space, self.rows, c), rule, own.lo[c], own.hi[c])
        return float(limits.low[0]), float(limits.high[0])

    @abstractmethod
    def within_reach(self) -> tuple[Array, Array]:
        """Return the least and the largest coordinates that rules allow the row in its target."""

    @abstractmethod
    def impossible(self, variant: Variant) -> bool:
        """Tell whether it is proven that no point satisfies a variant."""

    @abstractmethod
    def answer(self, variant: Variant, objective: str | None = None) -> Any:
        """Solve a variant as `explain` would; None if it has no answer."""


class LeftOut(IntEnum):
    """The order in which members are left out while a conflict is sought.

    First how usual the answer has to be and what the user did not ask for, then clusters, then the
    user's rules. So a conflict names the user's own rules wherever these suffice.
    """

    USUAL = 0
    CONTRACTION = 1
    OWN_BOUNDS = 2
    RIVALS = 3
    STEPS = 4
    LEAST = 5
    RULES = 6
    LOCKS = 7


@dataclass(frozen=True)
class Member:
    """One rule, bound or rival that an answer has to respect.

    Attributes
    ----------
    text : str
        A phrase such as ``"age may not change"``.
    kind : str
        "immutable", "direction", "low" and "high" (the user's bounds), "range" (the explainer's
        own), "step", "least", "levels", "forbidden", "max_changes", "constraint", "together",
        "plausible",
        "contraction", or "cluster": a rival that always wins.
    column : object
        The column that it is about; None if it is not about one column.
    cluster : int or None
        The rival, for kind "cluster"; -1 for any of several.
    detail : object
        A rule about several columns as the user gave it, the pair (from, to) of a forbidden
        transition, or, for a column that `mutable` does not list, those that it lists.
    removal : str
        What the user does to leave it out; empty if the condition has to work it out.
    condition : Condition
        What it belongs to.
    left_out : LeftOut
        When it is left out while a conflict is sought.
    """

    text: str
    kind: str
    column: Any = None
    cluster: int | None = None
    detail: Any = field(default=None, repr=False)
    removal: str = field(default="", kw_only=True, repr=False, compare=False)
    condition: Condition = field(kw_only=True, repr=False, compare=False)
    left_out: LeftOut = field(kw_only=True, repr=False, compare=False)


@dataclass(frozen=True)
class Edit:
    """A change of a variant, and the text that describes it."""

    text: str
    apply: Callable[[Variant], Variant]


Members = Iterator[Member]
Edits = Iterator[Edit]


class Condition(ABC):
    """A rule of the user's, or what the explainer itself asks for: the contraction, the rivals.

    Attributes
    ----------
    kind : str
        The kind of its members.
    left_out : LeftOut
        When its members are left out while a conflict is sought.
    """

    kind: ClassVar[str]
    left_out: ClassVar[LeftOut] = LeftOut.RULES

    def members(self, case: Situation) -> Members:
        """Yield what an answer has to respect, in the parts that can be in the way one by one."""
        return iter(())

    def member(self, text: str, column: Any = None, **others: Any) -> Member:
        """Return one of the members."""
        facts = {"kind": self.kind, "left_out": self.left_out, **others}
        return Member(text, column=column, condition=self, **facts)

    @abstractmethod
    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        """Return a variant without one of the members."""

    def relaxed(self, case: Situation, variant: Variant, member: Member) -> Variant:
        """Return a variant without a member, as it may be proposed to the user."""
        return self.without(case, variant, member)

    def removal(self, case: Situation, member: Member) -> str:
        """Say what the user does to leave out a member."""
        return member.removal or f"drop the rule '{member.text}'"

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        """Yield changes that may be enough, the smallest first; `answer` is that without it."""
        return iter(())
