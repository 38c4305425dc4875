"""A condition: what an answer has to respect, and what is said and tried where it is in the way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, ClassVar, Protocol

from voicecf.geometry.arrays import Array, Ints
from voicecf.rules.edits import Edit
from voicecf.rules.multiples import Multiples
from voicecf.rules.terms import Terms
from voicecf.rules.variant import Variant
from voicecf.table.space import Space


class LeftOut(IntEnum):
    """The order in which conditions are left out while a conflict is sought.

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


class Remedied(Protocol):
    """An answer of one row, as conditions see it."""

    @property
    def n_changed(self) -> Ints:
        """Number of changed columns, shape (1,)."""

    def after(self, c: int) -> Any:
        """Return the answer's value of a column, shape (1,)."""


class Asked(Protocol):
    """One row and its target, as conditions see it."""

    original: Variant
    learned: Any
    target: int

    @property
    def space(self) -> Space:
        """The columns."""

    @property
    def terms(self) -> Terms:
        """What the user's rules say of the columns."""

    @property
    def mutable(self) -> list[int]:
        """Positions of the only columns that may change; empty if the user did not list them."""

    def place(self, name: Any) -> int:
        """Return the position of a column."""

    def own_number(self, c: int) -> float:
        """Return the row's value of a number column, NaN where it is missing."""

    def own_level(self, c: int) -> Any:
        """Return the row's level of a category."""

    def multiples(self, c: int) -> Multiples | None:
        """Return the multiples that a column is restricted to; None if it takes any number."""

    def bounds(self, c: int, variant: Variant) -> tuple[float, float]:
        """Return the bounds of a column in the user's units, directions not included."""

    def within_reach(self) -> tuple[Array, Array]:
        """Return the least and the largest coordinates that rules allow the row in its target."""

    def impossible(self, variant: Variant) -> bool:
        """Tell whether it is proven that no point satisfies a variant."""

    def answer(self, variant: Variant, objective: str | None = None) -> Remedied | None:
        """Solve a variant; None if it has no answer."""


class Condition(ABC):
    """A rule of the user's, the explainer's own bounds, the contraction, or the rivals.

    Attributes
    ----------
    kind : str
        The kind of its members.
    left_out : LeftOut
        When its members are left out while a conflict is sought.
    """

    kind: ClassVar[str]
    left_out: ClassVar[LeftOut] = LeftOut.RULES

    def members(self, case: Asked) -> Iterator[Member]:
        """Yield what an answer has to respect, in the parts that can be in the way one by one."""
        return iter(())

    @abstractmethod
    def without(self, case: Asked, variant: Variant, member: Member) -> Variant:
        """Return a variant without one of the members."""

    def relaxed(self, case: Asked, variant: Variant, member: Member) -> Variant:
        """Return a variant without a member, as it may be proposed to the user."""
        return self.without(case, variant, member)

    def removal(self, case: Asked, member: Member) -> str:
        """Say what the user does to leave out a member."""
        return f"drop the rule '{member.text}'"

    def edits(
        self, case: Asked, member: Member, variant: Variant, answer: Remedied
    ) -> Iterator[Edit]:
        """Yield changes that may be enough, the smallest first; `answer` is that without it."""
        return iter(())

    def member(self, text: str, column: Any = None, **others: Any) -> Member:
        """Return one of the members."""
        return Member(text, self.kind, column, **others, condition=self)


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
    condition : Condition
        What it belongs to.
    """

    text: str
    kind: str
    column: Any = None
    cluster: int | None = None
    detail: Any = field(default=None, repr=False)
    condition: Condition = field(kw_only=True, repr=False, compare=False)
