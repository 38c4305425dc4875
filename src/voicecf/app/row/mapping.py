"""Which slice of the segments to draw for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf import Counterfactuals
from voicecf.app.charts import FORMAT, UNGROUPED, Tip
from voicecf.app.data.preparing import Prepared
from voicecf.app.method.pairwise import MethodComparison
from voicecf.app.row.answers import RowAnswer
from voicecf.app.segments.segments import Segments
from voicecf.plots import Plane, SegmentMap
from voicecf.table.wording import PARTED, counted, joined, legible

# Rows that a map shows; columns that a note or a tip names besides the axes.
POINTS, NAMED = 1_500, 3
# What a page calls the plane that holds a row and its answer.
BEST = "Best view"


def answer_map(answer: RowAnswer, axes: tuple[str, ...] | None = None) -> SegmentMap:
    """Return the map of an answer.

    Parameters
    ----------
    answer : RowAnswer
    axes : tuple of str or None
        Two columns; none of them for the best view; None for what the answer changes most.
    """
    found = answer.found
    pair = usual_axes(answer) if axes is None else axes
    if len(pair) != 2:
        return _cut(found, 0, Plane.most_telling(found), answer.segments.prepared.frame)
    plane = Plane.through(found, 0, *pair)
    drawn = _cut(found, 0, plane, answer.segments.prepared.frame)
    return replace(drawn, note=_note(answer, pair))


def usual_axes(answer: RowAnswer) -> tuple[str, ...]:
    """Return two columns of numbers that change, or else matter, most; nothing without two."""
    columns = drawable(answer.segments)
    changed = [change.column for change in answer.changes if change.column in columns]
    pair = tuple(dict.fromkeys([*changed, *columns]))[:2]
    return pair if len(pair) == 2 else ()


def _note(answer: RowAnswer, pair: tuple[str, ...]) -> str:
    """Say what an area of the map is, and what it leaves out."""
    called = answer.called
    if len(answer.segments.prepared.names) == 2:
        return f"Areas: the segment that {called} would be in with other values."
    area = f"Areas: the segment that {called} would be in with these two values, all else as it is."
    hidden = [change.column for change in answer.changes if change.column not in pair]
    if not hidden:
        return area
    shown = joined(hidden if len(hidden) <= NAMED else [counted(len(hidden), "other column")])
    if len(hidden) == len(answer.changes):
        return f"{area} The answer only changes {shown}, as “{BEST}” shows."
    return f"{area} The answer also changes {shown}, so it may be drawn in another area."


def tips(answer: RowAnswer, drawn: SegmentMap) -> list[Tip]:
    """Return what is told about the rows of a map: name, segment, axes, what the answer changes."""
    prepared, rows = answer.segments.prepared, drawn.rows
    changed = [change.column for change in answer.changes][:NAMED]
    made = [
        Tip("Row", _called(prepared, rows)),
        Tip("Segment", [answer.names[t] for t in drawn.labels.tolist()]),
    ]
    for name in dict.fromkeys([*_columns(answer, drawn), *changed]):
        values = prepared.frame[name].to_numpy()[rows].tolist()
        made.append(Tip(name, values, number_format(answer.segments, name)))
    return made


def _called(prepared: Prepared, rows: NDArray[np.int64]) -> list[str]:
    """Name many rows, as `Prepared.called` does one."""
    numbers = [f"Row {row + 1:,}" for row in prepared.rows[rows].tolist()]
    if prepared.identity is None:
        return numbers
    own = prepared.aside[prepared.identity].iloc[rows]
    return [f"{number} ({name})" for number, name in zip(numbers, own, strict=True)]


def formats(answer: RowAnswer, drawn: SegmentMap) -> list[str]:
    """Return how numbers at the axes of a map are written."""
    columns = _columns(answer, drawn)
    return [number_format(answer.segments, name) for name in columns] or [FORMAT, FORMAT]


def _columns(answer: RowAnswer, drawn: SegmentMap) -> list[str]:
    """Return the columns that the axes of a map are, if they are."""
    called = {legible(name): name for name in answer.segments.prepared.names}
    return [called[label] for label in drawn.axis_labels] if drawn.of_columns else []


def number_format(segments: Segments, column: str) -> str:
    """Return how a picture writes the numbers of a column; nothing for a category."""
    if column not in segments.prepared.numbers:
        return ""
    return FORMAT if max(map(abs, segments.spans[column])) >= PARTED else UNGROUPED


def miss_map(
    compared: MethodComparison, i: int, names: Sequence[str]
) -> tuple[SegmentMap, NDArray[Any]]:
    """Return the plane that holds a row, its pairwise answer and the exact one, and the pairwise.

    All three lie in the plane, so that what is seen is exact.
    """
    found, pairwise = compared.exact, compared.pairwise.points[i]
    plane = Plane.of_move(found, i, also=pairwise)
    labels = ("Along the exact change: 0 is the row, 1 its answer", "Across it")
    picture = _cut(found, i, plane, compared.points)
    return replace(picture, axis_labels=labels, names=list(names)), plane.project(pairwise[None])[0]


def drawable(segments: Segments) -> list[str]:
    """Return the columns that an axis can show, what matters most first."""
    ranked = segments.voice.learned_.ranking
    names = [segments.prepared.names[i] for i in ranked]
    return [name for name in names if name in segments.prepared.numbers]


def _cut(found: Counterfactuals, i: int, plane: Plane, rows: Any) -> SegmentMap:
    learned = found.outcome.learned
    picture = SegmentMap.from_voice(learned, rows, plane, found, i, POINTS)
    return replace(picture, names=list(learned.names))  # in full: they tell segments apart
