"""The rules `increase_only` and `decrease_only`: columns that change in one direction."""

from __future__ import annotations

from typing import ClassVar

from voicecf.errors import ColumnError, OptionError, listed
from voicecf.rules.condition import Members, Situation
from voicecf.rules.rule import ColumnList
from voicecf.rules.terms import Terms


class OneDirection(ColumnList):
    """Columns that may go in one direction only: 1 is up, -1 is down."""

    kind = "direction"
    direction: ClassVar[int]
    verb: ClassVar[str]
    opposite: ClassVar[str]

    def add(self, terms: Terms) -> None:
        for c in self.columns(terms.space):
            if terms.columns[c].direction == -self.direction:
                name = terms.space.names[c]
                raise OptionError(
                    f"column {name!r} is in increase_only and in decrease_only, so it could not "
                    f"change; say immutable=[{name!r}] if it may not change."
                )
            terms.set(c, direction=self.direction)

    def check(self, terms: Terms) -> None:
        """Refuse levels without an order, and bounds on the other side of the row."""
        for c in self.columns(terms.space):
            column, rule = terms.space.columns[c], terms.columns[c]
            if column.kind == "category" and not (column.ordered or rule.order):
                raise ColumnError(
                    f"{self.word}: the levels of column {column.name!r} have no order; give one, "
                    f"lowest first: order={{{column.name!r}: [{listed(column.levels, 3)}]}}."
                )
            against = rule.high if self.direction > 0 else rule.low
            if against is not None and against.relative and against.amount * self.direction < 0:
                raise OptionError(
                    f"{self.word} and bounds of column {column.name!r} contradict each other: one "
                    "allows only values above the row's, the other only values below. Drop one of "
                    "them."
                )

    def members(self, case: Situation) -> Members:
        for name, rule in zip(case.space.names, case.terms.columns, strict=True):
            if rule.direction == self.direction and not rule.fixed:
                removal = f"allow {name} to {self.opposite}"
                yield self.member(f"{name} may only {self.verb}", name, removal=removal)


class IncreaseOnly(OneDirection):
    """Columns that may only rise: numbers, and categories that have an order."""

    word = "increase_only"
    direction, verb, opposite = 1, "rise", "fall"
    help = "columns that may only rise"


class DecreaseOnly(OneDirection):
    """Columns that may only fall: numbers, and categories that have an order."""

    word = "decrease_only"
    direction, verb, opposite = -1, "fall", "rise"
    help = "columns that may only fall"
