"""The rule `steps`: the multiples that new values of a number are restricted to."""

from __future__ import annotations

from typing import Any

from voicecf.rules.condition import Edit, Edits, LeftOut, Member, Members, Situation, Variant
from voicecf.rules.edits import number
from voicecf.rules.rule import ByColumn, number_of, several
from voicecf.table.column import Column

# What a TOML file has in place of None: the column may take any number.
ANY_NUMBER = "any"


class Increments(ByColumn):
    """New values are multiples of this number.

    None allows any number, also in a column of whole numbers, whose step is 1 if left out. If the
    pipeline maps the column by a function that is not affine, such as a logarithm, up to a million
    multiples are considered; of more, only those of ten, a hundred, ... times the number.
    """

    word = "steps"
    kind = "step"
    left_out = LeftOut.STEPS
    takes = "dict of column to number or None"
    none = ANY_NUMBER
    help = "new values are multiples of STEP; any allows all numbers"
    arguments = several("C=STEP")
    example = '"visits": 1'
    command_example = "--steps visits=1"
    column_kind = "number"
    instead = "levels"
    meaning = "new values are multiples of it. Use None to allow any number"

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        if value is None or (isinstance(value, str) and value == ANY_NUMBER):
            return None
        return super().entry(value, where)

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        return {"increment": ANY_NUMBER if value is None else value}

    @classmethod
    def parse(cls, text: str, where: str) -> Any:
        return text if text == ANY_NUMBER else number_of(text, where)

    def column_members(self, case: Situation, c: int) -> Members:
        multiples = case.multiples(c)
        if multiples is not None:
            whole = multiples.increment == 1
            column, name = case.space.columns[c], case.space.names[c]
            multiple = f"a multiple of {number(multiples.increment, column)}"
            text = "a whole number" if whole else multiple
            removal = f"allow any number for {name}"
            yield self.member(f"{name} must be {text}", name, removal=removal)

    def without(self, case: Situation, variant: Variant, member: Member) -> Variant:
        return variant.with_rules(steps={**variant.rules.steps, member.column: None})

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        name = member.column
        if case.space.columns[case.place(name)].whole and name in variant.rules.steps:
            text = f"allow any whole number for {name}"
            yield Edit(text, lambda variant: variant.with_column_rule("steps", name, None))
