"""The rule `max_changes`: how many columns may change."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

from voicecf.errors import OptionError
from voicecf.rules.condition import Edit, Edits, Member, Members, Situation, Variant
from voicecf.rules.rule import Rule
from voicecf.rules.sides import as_number
from voicecf.rules.terms import Terms
from voicecf.table.wording import counted


class MaxChanges(Rule):
    """The largest number of columns that may change."""

    word = kind = "max_changes"
    takes = "int"
    help = "largest number of columns that may change"
    arguments: ClassVar[dict[str, Any]] = {"type": int}

    @classmethod
    def checked(cls, value: Any) -> Any:
        number = as_number(value)
        if number is None or not (number >= 1 and number.is_integer()):
            raise OptionError(f"max_changes={value!r} must be a whole number, 1 or more, or None.")
        return int(number)

    def add(self, terms: Terms) -> None:
        terms.changes = min(self.value, terms.changes)

    def members(self, case: Situation) -> Members:
        if self.is_set:
            removal = "allow any number of columns to change"
            most = counted(self.value, "column")
            yield self.member(f"at most {most} may change", removal=removal)

    def edits(self, case: Situation, member: Member, variant: Variant, answer: Any) -> Edits:
        fewest = case.answer(self.without(case, variant, member), objective="fewest")
        assert variant.rules.max_changes is not None
        more = variant.rules.max_changes + 1
        start = more if fewest is None else max(more, int(fewest.n_changed[0]))
        for most in range(start, more + 3):
            text = f"allow {most} columns to change"
            yield Edit(text, partial(Variant.with_rules, max_changes=most))
