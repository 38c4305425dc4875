"""Answers as sentences, tables and JSON, in few digits; and how numbers and lists are written."""

from voicecf.table.wording import (
    compact,
    counted,
    exact,
    figure,
    joined,
    legible,
    opening,
    shortened,
)

__all__ = [
    "compact",
    "counted",
    "exact",
    "figure",
    "joined",
    "legible",
    "opening",
    "shortened",
]
