"""The rule `costs`: how dear the change of a column is."""

from __future__ import annotations

from typing import Any

from voicecf.rules.rule import ByColumn, positive
from voicecf.table.column import Column


class Costs(ByColumn):
    """Factor of the column's squared change."""

    word = "costs"
    takes = "dict of column to number"
    help = "multiply the squared change of a column in the cost"
    metavar = "C=FACTOR"
    example = '"income": 2.0'
    command_example = "--costs income=2"

    @classmethod
    def entry(cls, value: Any, where: str) -> Any:
        meaning = "it multiplies the squared change. Use immutable for no change"
        return positive(value, where, meaning)

    def facts(self, value: Any, column: Column) -> dict[str, Any]:
        return {"cost": value}
