"""The rule `prices`: what each unit of a column's change costs in money."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any

from voicecf.errors import OptionError
from voicecf.rules.columns import level_position
from voicecf.rules.condition import LeftOut, Member, Members, Situation, Variant
from voicecf.rules.rule import ByColumn, number_of, several
from voicecf.rules.sides import as_number, is_several
from voicecf.rules.terms import Terms
from voicecf.table.column import Column
from voicecf.table.frames import plain_item

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed

# The objective that prices are for.
PRICE = "price"


class Prices(ByColumn):
    """Money for each unit of the column's change, for ``objective="price"``.

    A number, or a pair: for each unit more, and for each unit less. For a category, a number for
    any change of its level, or a dict of (from, to) to a number; changes that it does not name may
    not be taken. A price of 0 is free. Columns without a price keep their values.
    """

    word = kind = "prices"
    left_out = LeftOut.LOCKS
    takes = "dict of column to number, (more, less) or dict of (from, to) to number"
    help = (
        "price of each unit more and less, or of a change of level, for --objective price; other "
        "columns may not change"
    )
    arguments = several("C=PRICE")
    example = '"basket": 0.5, "visits": (4, 2), "plan": {("basic", "pro"): 25}'
    command_example = "--prices basket=0.5 visits=4,2 'plan=basic>pro:25'"
    field = "price"
    contractible = True

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        if isinstance(value, Mapping):
            pairs = [list(key) if is_several(key) else [key] for key in value]
            value = [(*p, price) for p, price in zip(pairs, value.values(), strict=True)]
        sides = tuple(value) if is_several(value) else (value, value)
        if sides and all(map(is_several, sides)):
            return cls._transitions([list(side) for side in sides], where)
        prices = tuple(price for side in sides if (price := cls._price(side)) is not None)
        if not len(sides) == len(prices) == 2:
            raise OptionError(
                f"{where} is {value!r}; it must be a number, 0 or above, or a pair of them: for "
                "each unit more, and for each unit less. For a category give a number for any "
                'change of level, or a dict such as {("basic", "pro"): 25}.'
            )
        return prices

    @classmethod
    def _price(cls, value: Any) -> float | None:
        """Return a price; None if a value is none."""
        number = as_number(value)
        return number if number is not None and isfinite(number) and number >= 0 else None

    @classmethod
    def _transitions(cls, triples: list[list[Any]], where: str) -> Any:
        """Return changes of level and their prices in one form; raise if they are wrong."""
        found: dict[tuple[Any, Any], float] = {}
        for triple in triples:
            price = cls._price(triple[-1]) if len(triple) == 3 else None
            if price is None:
                raise OptionError(
                    f"{where} has {tuple(triple)!r}; give a price, 0 or above, for each change of "
                    'level, such as {("basic", "pro"): 25}.'
                )
            change = plain_item(triple[0]), plain_item(triple[1])
            if change in found:
                raise OptionError(
                    f"{where} names the change from {change[0]!r} to {change[1]!r} twice; name it "
                    "once."
                )
            found[change] = price
        return tuple((*change, price) for change, price in found.items())

    @classmethod
    def parse(cls, text: str, where: str) -> Any:
        if ">" in text:
            change, colon, price = text.rpartition(":")
            start, _, end = change.partition(">")
            if not colon:
                raise OptionError(f"{where}: use COLUMN=FROM>TO:PRICE, such as plan=basic>pro:25.")
            return [[start.strip(), end.strip(), number_of(price, where)]]
        parts = [number_of(part, where) for part in text.split(",")]
        return parts[0] if len(parts) == 1 else parts

    @classmethod
    def joined(cls, before: Any, now: Any) -> Any:
        both = [is_several(value) and is_several(value[0]) for value in (before, now)]
        return [*before, *now] if all(both) else now

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        listed = is_several(value[0])
        if column.kind != "category" and listed:
            raise OptionError(
                f"prices of {column.name!r}: changes from one level to another are for categories, "
                "and this is a number column. Give a number, or a pair: for each unit more, and "
                "for each unit less."
            )
        if column.kind == "category" and not listed and value[0] != value[1]:
            raise OptionError(
                f"prices of {column.name!r} is {value!r}; a category has no units more or less. "
                'Give a number for any change of level, or a dict such as {("basic", "pro"): 25}.'
            )
        if not listed:
            return super().facts(value, column)
        triples = (
            (level_position(start, column, self.word, True),
             level_position(end, column, self.word), price)
            for start, end, price in value
        )  # fmt: skip
        return {"transitions": tuple(triples)}

    def add(self, terms: Terms) -> None:
        super().add(terms)
        for c, rule in enumerate(terms.columns):
            if not rule.priced:
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
            name = column.name
            if not rule.priced:
                yield self.member(f"{name} has no price", name, removal=f"give {name} a price")
            elif rule.transitions:
                text = f"other changes of {name} than prices names"
                yield self.member(f"{text} have no price", name, removal=f"give {text} a price")

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        """Make all changes of a column free that may not be taken for want of a price."""
        return variant.with_column_rule(self.word, member.column, 0.0)
