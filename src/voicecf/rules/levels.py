"""The rules `levels`, `order` and `forbidden`: which levels of a category may become which."""

from __future__ import annotations

import csv
from typing import Any

from voicecf.errors import OptionError, listed
from voicecf.rules.columns import level_position
from voicecf.rules.condition import Edit, Edits, Member, Members, Situation, Variant
from voicecf.rules.rule import ByColumn, several
from voicecf.rules.sides import is_several
from voicecf.table.column import Column
from voicecf.table.frames import is_missing, plain_item
from voicecf.table.wording import joined, level


class Levels(ByColumn):
    """The levels of a category that a row may move to. A row may always keep its level."""

    word = kind = "levels"
    takes = "dict of column to list"
    help = "the levels that a category may change to"
    arguments = several("C=A,B")
    example = '"job": ["admin", "clerk"]'
    command_example = "--levels job=clerk,chef"
    column_kind = "category"
    instead = "bounds and steps"

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        levels = tuple(map(plain_item, value)) if is_several(value) else (plain_item(value),)
        if not levels:
            raise OptionError(
                f"{where} is empty; list a level, or say immutable to allow no change."
            )
        return levels

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        positions = tuple(level_position(level, column, self.word) for level in value)
        for at in set(positions) - set(column.destinations):
            same = next(
                i for i in column.destinations if (column.options[i] == column.options[at]).all()
            )
            raise OptionError(
                f"levels of {column.name!r}: the encoder gives {column.levels[at]!r} and "
                f"{column.levels[same]!r} one code, and an answer names the latter; list it "
                "instead."
            )
        return {"levels": positions}

    @classmethod
    def parse(cls, text: str, where: str) -> list[str]:
        return next(csv.reader([text]), [])

    def column_members(self, case: Situation, c: int) -> Members:
        column, allowed = case.space.columns[c], case.terms.columns[c].levels
        if allowed is not None:
            levels = joined([level(column.levels[i]) for i in allowed], "or")
            removal = f"allow every level of {column.name}"
            text = f"{column.name} may only become {levels}"
            yield self.member(text, column.name, removal=removal)

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        name = member.column
        new = answer.after(case.place(name))[0]

        def allow(variant: Variant) -> Variant:
            return variant.with_column_rule("levels", name, (*variant.rules.levels[name], new))

        yield Edit(f"allow {name} to become {level(new)}", allow)


class Order(Levels):
    """The levels of a category, lowest first.

    Levels that are left out have no place in the order: under increase_only or decrease_only there
    is no move from or to them.
    """

    word = "order"
    help = "the levels of a category, lowest first"
    example = '"size": ["small", "large"]'
    command_example = "--order size=small,medium,large"
    instead = "increase_only or decrease_only alone"

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        levels = super().entry(value, where)
        twice = [level for i, level in enumerate(levels) if level in levels[:i]]
        if len(levels) < 2 or twice:
            fault = f"names {listed(twice)} twice" if twice else "needs two levels or more"
            raise OptionError(f"{where} {fault}; list each level once, lowest first.")
        return levels

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        return {"order": tuple(level_position(level, column, self.word) for level in value)}

    def column_members(self, case: Situation, c: int) -> Members:
        return iter(())  # it says what a direction means


class Forbidden(ByColumn):
    """Transitions between levels that are not allowed."""

    word = kind = "forbidden"
    takes = "dict of column to list of (from, to)"
    help = "a category may not change from A to B"
    arguments = several("C=A>B")
    example = '"job": [("student", "retired")]'
    command_example = '--forbidden "job=student>chef"'
    column_kind = "category"
    instead = "bounds and steps"

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        pairs = list(value) if is_several(value) else []
        if len(pairs) == 2 and not any(map(is_several, pairs)):
            pairs = [pairs]  # a single pair (from, to)
        if not pairs or not all(is_several(pair) and len(list(pair)) == 2 for pair in pairs):
            raise OptionError(
                f'{where} is {value!r}; give pairs (from, to), such as [("student", "retired")].'
            )
        return tuple((plain_item(start), plain_item(end)) for start, end in pairs)

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        word = self.word
        positions = (
            (level_position(start, column, word, True), level_position(end, column, word))
            for start, end in value
        )
        return {"forbidden": tuple(positions)}

    @classmethod
    def parse(cls, text: str, where: str) -> list[list[str]]:
        start, arrow, end = text.partition(">")
        if not arrow:
            raise OptionError(f"{where}: use COLUMN=FROM>TO, such as {cls.command_example}.")
        return [[start.strip(), end.strip()]]

    @classmethod
    def joined(cls, before: Any, now: Any) -> Any:
        return [*before, *now]

    def column_members(self, case: Situation, c: int) -> Members:
        column, own = case.space.columns[c], case.own_level(c)
        pairs, positions = self.value.get(column.name, ()), case.terms.columns[c].forbidden
        for pair, (start, end) in zip(pairs, positions, strict=True):
            before, after = column.levels[start], column.levels[end]
            if before == own or (is_missing(before) and is_missing(own)):
                change = f"from {level(before)} to {level(after)}"
                facts = {"detail": pair, "removal": f"allow {column.name} to change {change}"}
                yield self.member(f"{column.name} may not change {change}", column.name, **facts)

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        pairs = variant.rules.forbidden.get(member.column, ())
        left = tuple(pair for pair in pairs if pair != member.detail)
        return variant.with_column_rule("forbidden", member.column, left or None)
