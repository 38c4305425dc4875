"""The rule `least`: a number changes by at least this amount, or not at all."""

from __future__ import annotations

from collections.abc import Iterator

from voicecf.rules.condition import LeftOut, Members, Situation
from voicecf.rules.edits import number
from voicecf.rules.rule import ByColumn, Moved, several


class Least(ByColumn):
    """A number changes by at least this amount or not at all, in the user's units.

    One that is missing stays missing.
    """

    word = kind = "least"
    left_out = LeftOut.LEAST
    takes = "dict of column to number"
    help = "a column changes by at least this amount or not at all"
    arguments = several("C=AMOUNT")
    example = '"income": 100'
    command_example = "--least income=100"
    column_kind = "number"
    instead = "levels or forbidden"
    field = "least"
    meaning = "the column changes by at least this amount or not at all"

    def column_members(self, case: Situation, c: int) -> Members:
        least, name = case.terms.columns[c].least, case.space.names[c]
        if least > 0:
            amount = number(least, case.space.columns[c])
            text = f"{name} must change by at least {amount} or not at all"
            yield self.member(text, name, removal=f"allow {name} to change by less")

    def ends(self, answer: Moved, c: int, direction: int) -> Iterator[float]:
        """Yield the value at which the change becomes as small as it may be."""
        own, least = answer.case.own_number(c), answer.case.terms.columns[c].least
        if least > 0 and (own - answer.number(c)) * direction > 0:
            yield own - direction * least
