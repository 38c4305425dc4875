"""The rule `costs`: how dear the change of a column is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from voicecf.errors import OptionError
from voicecf.rules.prices import PRICE
from voicecf.rules.rule import ByColumn, several

if TYPE_CHECKING:
    from voicecf.rules.allowed import Allowed


class Costs(ByColumn):
    """Factor of the column's squared change."""

    word = "costs"
    takes = "dict of column to number"
    help = "multiply the squared change of a column in the cost"
    arguments = several("C=FACTOR")
    example = '"income": 2.0'
    command_example = "--costs income=2"
    field = "cost"
    meaning = "it multiplies the squared change. Use immutable for no change"

    def check_question(self, learned: Any, allowed: Allowed, objective: str) -> None:
        if objective == PRICE:
            raise OptionError(
                'costs multiply squared changes, which objective="price" does not look at: give '
                "prices instead, or leave out costs."
            )
