"""The rule `prices`: what each unit of a column's change costs in money."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from voicecf.errors import ColumnError, OptionError
from voicecf.rules.condition import LeftOut, Member, Members, Situation, Variant
from voicecf.rules.rule import ByColumn, number_of, several
from voicecf.rules.sides import as_number, is_several
from voicecf.rules.terms import Terms
from voicecf.table.column import Column

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed

# The objective that prices are for.
PRICE = "price"


class Prices(ByColumn):
    """Money for each unit of the column's change, for ``objective="price"``.

    A number, or a pair: for each unit more, and for each unit less. A price of 0 is free. Columns
    without a price keep their values.
    """

    word = kind = "prices"
    left_out = LeftOut.LOCKS
    takes = "dict of column to number or (more, less)"
    help = "price of each unit more and less, for --objective price; others may not change"
    arguments = several("C=PRICE")
    example = '"basket": 0.5, "visits": (4, 2)'
    command_example = "--prices basket=0.5 visits=4,2"
    field = "price"
    column_kind = "number"
    instead = "immutable"
    contractible = True

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        sides = tuple(value) if is_several(value) else (value, value)
        prices = tuple(number for side in sides if (number := as_number(side)) is not None)
        if not (len(sides) == len(prices) == 2 and all(isfinite(p) and p >= 0 for p in prices)):
            raise OptionError(
                f"{where} is {value!r}; it must be a number, 0 or above, or a pair of them: for "
                "each unit more, and for each unit less."
            )
        return prices

    @classmethod
    def parse(cls, text: str, where: str) -> Any:
        parts = [number_of(part, where) for part in text.split(",")]
        return parts[0] if len(parts) == 1 else parts

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        if column.curved:
            raise ColumnError(
                f"column {column.name!r} in prices: the pipeline does not scale it linearly, so "
                "that its units have no constant price. Leave it out, or scale it linearly."
            )
        return super().facts(value, column)

    def add(self, terms: Terms) -> None:
        super().add(terms)
        for c, rule in enumerate(terms.columns):
            if rule.price is None:
                terms.set(c, fixed=True)

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        if objective != PRICE:
            raise OptionError(
                'prices are for objective="price", the answer of least money; add it, or leave out '
                "prices. To make changes of a column dearer in the cost, use costs."
            )

    def members(self, case: Situation) -> Members:
        columns = zip(case.space.columns, case.terms.columns, strict=True)
        for column, rule in columns if self.is_set else ():
            if rule.price is None and column.kind == "number" and not column.curved:
                name = column.name
                yield self.member(f"{name} has no price", name, removal=f"give {name} a price")

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        """Make a column without a price free, so that it may change."""
        return variant.with_column_rule(self.word, member.column, 0.0)
