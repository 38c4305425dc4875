"""What if: columns whose values can be tried out, and the row with some of them put in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from voicecf.app.row.answers import RowAnswer

# Digits after the point that a slider takes; columns with more move in hundredths of their range.
MOST_DIGITS = 4


@dataclass(frozen=True)
class Lever:
    """A column whose value can be tried out.

    Attributes
    ----------
    column : str
    now, answer : float, int or str
        Its value in the row, and in the answer; a missing one is what the model takes it for.
    levels : tuple of str
        Of a category.
    low, high, step : float or int
        Ends of the observed range, the answer included, and what a value is moved by.
    format : str
        How a slider writes its value, as C does.
    """

    column: str
    now: Any
    answer: Any
    levels: tuple[str, ...] = ()
    low: Any = 0
    high: Any = 0
    step: Any = 1
    format: str = "%d"


def levers(given: RowAnswer) -> list[Lever]:
    """Return the columns to try out: those that the answer changes, then what matters most."""
    segments, changes = given.segments, given.card.changes
    ranked = [segments.prepared.names[i] for i in segments.voice.learned_.ranking]
    after = {change.column: change.after for change in changes}
    made = [_lever(given, name, after) for name in dict.fromkeys([*after, *ranked])]
    return [lever for lever in made if lever.levels or lever.low < lever.high]


def _lever(given: RowAnswer, name: str, after: Mapping[str, Any]) -> Lever:
    prepared = given.segments.prepared
    values = prepared.frame[name]
    now = values.iloc[given.question.row]
    if name in prepared.categories:
        now = values.mode().iloc[0] if pd.isna(now) else now
        return Lever(name, now, after.get(name, now), tuple(prepared.levels[name]))
    now = values.median() if pd.isna(now) else now
    then = after.get(name, now)
    low, high = given.segments.spans[name]
    ends = now, then, min(low, then), max(high, then)  # an answer may go further if it was let to
    if name in prepared.whole:
        now, then, low, high = (round(end) for end in ends)
        return Lever(name, now, then, (), low, high)
    now, then, low, high = (float(end) for end in ends)
    some = values.dropna().to_numpy()[:1_000]
    for digits in range(MOST_DIGITS + 1):
        if (np.round(some, digits) == some).all():
            return Lever(name, now, then, (), low, high, 10.0**-digits, f"%.{digits}f")
    return Lever(name, now, then, (), low, high, (high - low) / 100, "%.4g")


def changed_row(given: RowAnswer, values: Mapping[str, Any]) -> pd.DataFrame:
    """Return the row of an answer with some values put in."""
    frame = given.segments.prepared.frame
    row = frame.iloc[[given.question.row]].copy()
    for name, value in values.items():
        row[name] = pd.Series([value], index=row.index, dtype=frame[name].dtype)
    return row
