"""The rule `max_changes`: how many columns may change."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from voicecf.errors import OptionError
from voicecf.rules.condition import Asked, Member, Remedied
from voicecf.rules.edits import Edit
from voicecf.rules.rule import Rule
from voicecf.rules.sides import as_float, plain_item
from voicecf.rules.terms import Terms
from voicecf.rules.variant import Variant
from voicecf.table.wording import counted


class MaxChanges(Rule):
    """The largest number of columns that may change."""

    word = "max_changes"
    kind = "max_changes"
    takes = "int"
    help = "largest number of columns that may change"

    @classmethod
    def checked(cls, value: Any) -> Any:
        number = None if isinstance(value, bool) else as_float(plain_item(value))
        if number is None or not (number >= 1 and number.is_integer()):
            raise OptionError(f"max_changes={value!r} must be a whole number, 1 or more, or None.")
        return int(number)

    @classmethod
    def option(cls) -> tuple[str, dict[str, Any]]:
        flag, arguments = super().option()
        return flag, {**arguments, "type": int}

    def add(self, terms: Terms) -> None:
        if self.said:
            terms.changes = min(self.value, terms.changes)

    def members(self, case: Asked) -> Iterator[Member]:
        if self.said:
            yield self.member(f"at most {counted(self.value, 'column')} may change")

    def without(self, case: Asked, variant: Variant, member: Member) -> Variant:
        return variant.with_rules(max_changes=None)

    def removal(self, case: Asked, member: Member) -> str:
        return "allow any number of columns to change"

    def edits(
        self, case: Asked, member: Member, variant: Variant, answer: Remedied
    ) -> Iterator[Edit]:
        fewest = case.answer(self.without(case, variant, member), objective="fewest")
        assert variant.rules.max_changes is not None
        more = variant.rules.max_changes + 1
        start = more if fewest is None else max(more, int(fewest.n_changed[0]))
        for most in range(start, more + 3):
            text = f"allow {most} columns to change"
            yield Edit(text, partial(Variant.with_rules, max_changes=most))
