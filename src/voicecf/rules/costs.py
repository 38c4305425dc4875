"""The rule `costs`: how dear the change of a column is."""

from __future__ import annotations

from voicecf.rules.rule import ByColumn, several


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
