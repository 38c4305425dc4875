"""What if: a row with some values changed, the segment that it is in then, and how firmly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from voicecf.app.row.answers import RowAnswer
from voicecf.app.segments.segments import Segments
from voicecf.learned.learned import Learned

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
    low, high, step : float or int
        Ends of the observed range, the answer included, and what a value is moved by; 0 for a
        category.
    levels : tuple of str
        Of a category.
    format : str
        How a slider writes its value, as C does.
    """

    column: str
    now: Any
    answer: Any
    low: Any = 0
    high: Any = 0
    step: Any = 0
    levels: tuple[str, ...] = ()
    format: str = "%d"


@dataclass(frozen=True)
class Standing:
    """Where a row is: its segment, how far inside in spreads, and the segment beyond the border."""

    segment: int
    inside: float
    beyond: int


def levers(given: RowAnswer) -> list[Lever]:
    """Return the columns to try out: those that the answer changes, then what matters most."""
    segments = given.segments
    names = segments.prepared.names
    ranked = [names[i] for i in segments.voice.learned_.ranking]
    changed = [change.column for change in given.changes]
    after = given.rounded.to_frame().iloc[0] if given.changes else {}
    row = segments.prepared.frame.iloc[given.question.row]
    made = [_lever(segments, name, row, after) for name in dict.fromkeys([*changed, *ranked])]
    return [lever for lever in made if lever.levels or lever.low < lever.high]


def _lever(segments: Segments, name: str, row: Any, after: Any) -> Lever:
    prepared, values = segments.prepared, segments.prepared.frame[name]
    if name in prepared.categories:
        levels = tuple(sorted(values.dropna().unique()))
        usual = values.mode().iloc[0] if values.hasnans else None
        now, then = (_known(some.get(name, row[name]), usual) for some in (row, after))
        return Lever(name, now, then, levels=levels)
    usual = values.median() if values.hasnans else None
    now, then = (_known(some.get(name, row[name]), usual) for some in (row, after))
    low, high = segments.spans[name]
    low, high = min(low, then), max(high, then)  # an answer may go further if it was let to
    if name in prepared.whole:
        return Lever(name, round(now), round(then), round(low), round(high), 1)
    step, digits = _step(segments, name)
    return Lever(name, float(now), float(then), low, high, step, format=digits)


def _known(value: Any, usual: Any) -> Any:
    return usual if value is None or value != value else value


def _step(segments: Segments, name: str) -> tuple[float, str]:
    """Return the unit of the last digit that values have, or a hundredth of their range."""
    values = segments.prepared.frame[name].dropna().to_numpy()[:1_000]
    for digits in range(MOST_DIGITS + 1):
        if (np.round(values, digits) == values).all():
            return float(10.0**-digits), f"%.{digits}f"
    low, high = segments.spans[name]
    return (high - low) / 100, "%.4g"


def changed_row(given: RowAnswer, values: Mapping[str, Any]) -> pd.DataFrame:
    """Return the row of an answer with some values put in."""
    frame = given.segments.prepared.frame
    row = frame.iloc[[given.question.row]].copy()
    for name, value in values.items():
        row[name] = pd.Series([value], index=row.index, dtype=frame[name].dtype)
    return row


def place_of(segments: Segments, row: pd.DataFrame) -> Standing:
    """Tell where a row is: by the model's own predict, and the distance to the nearest border."""
    segment = int(segments.model.predict(row)[0])
    learned: Learned = segments.voice.learned_
    cell, point = segments.voice.cell(segment), learned.read(row)[0].seen[0]
    slack, lengths = cell.slack(point), np.linalg.norm(cell.normals, axis=1)
    inside = np.divide(slack, lengths, out=np.full_like(slack, np.inf), where=lengths > 0)
    nearest = int(np.argmin(inside))
    return Standing(segment, max(float(inside[nearest]), 0.0), int(cell.rivals[nearest]))
