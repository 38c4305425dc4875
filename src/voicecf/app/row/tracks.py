"""Tracks: where a value moves between the ends of its column, above the shape of all rows."""

from __future__ import annotations

from html import escape
from math import isnan
from weakref import WeakKeyDictionary

import numpy as np

from voicecf.app.row.changes import ShownChange
from voicecf.app.segments.segments import Segments

# Bars of a shape.
BARS = 24
# Heights of all rows' shapes, 0 to 1, by column: counted once for each clustering.
_SHAPES: WeakKeyDictionary[Segments, dict[str, tuple[float, ...]]] = WeakKeyDictionary()


def shape(segments: Segments, column: str) -> tuple[float, ...]:
    """Return how many rows there are along the range of a column, the highest bar being 1."""
    known = _SHAPES.setdefault(segments, {})
    if column not in known:
        low, high = segments.spans[column]
        values = segments.prepared.frame[column].dropna().to_numpy(dtype=np.float64)
        # A bar for each whole number, where these are few: bars between them would be empty.
        whole = column in segments.prepared.whole
        bars = min(BARS, round(high - low) + 1) if whole else BARS
        counts, _ = np.histogram(values, bars, (low, high) if high > low else None)
        known[column] = tuple((counts / counts.max()).tolist())
    return known[column]


def track(segments: Segments, change: ShownChange) -> str:
    """Draw where a number moves within its observed range; nothing for a category."""
    if isnan(change.end):
        return ""
    start, end = (100 * min(max(place, 0.0), 1.0) for place in (change.start, change.end))
    ends = "".join(
        f"<span>{escape(segments.written(change.column, end_))}</span>"
        for end_ in segments.spans[change.column]
    )
    marks = f'<em style="left:{end:.1f}%"></em>'
    if not isnan(start):
        left, width = min(start, end), abs(end - start)
        marks = (
            f'<u style="left:{left:.1f}%;width:{width:.1f}%"></u>'
            f'<s style="left:{start:.1f}%"></s>{marks}'
        )
    return (
        f'<div class="v-track">{_bars(shape(segments, change.column))}'
        f'<div class="v-line"><i></i>{marks}</div><div class="v-ends">{ends}</div></div>'
    )


def _bars(heights: tuple[float, ...]) -> str:
    """Draw bars side by side; whatever is not empty is seen."""
    made = "".join(
        f'<b style="height:{max(100 * height, 4.0 * (height > 0)):.0f}%"></b>' for height in heights
    )
    return f'<div class="v-shape">{made}</div>'
