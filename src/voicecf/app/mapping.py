"""Which slice of the segments to draw for an answer, and what to call its axes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from voicecf.app.answers import Answer
from voicecf.app.pairwise import Comparison
from voicecf.app.segments import Segments
from voicecf.plots import Plane, SegmentMap

# Rows that a map shows.
POINTS = 1_500


def answer_map(answer: Answer, axes: tuple[str, str] | None = None) -> SegmentMap:
    """Return the map of an answer: in two columns of the user's choice, or in the best view."""
    segments, asked = answer.segments, answer.question
    voice, frame = segments.firmly(asked.margin), segments.prepared.frame
    if axes is None:
        plane = Plane.most_telling(answer.found, 0)
    else:
        plane = Plane.of_columns(voice, frame.iloc[[asked.row]], *axes)
    found = SegmentMap.from_voice(voice, frame, plane, answer.found, 0, max_points=POINTS)
    return _in_words(found, answer.names)


def _in_words(found: SegmentMap, names: Sequence[str]) -> SegmentMap:
    """Name segments and the row as the page does; the names of columns stay as they are."""
    labels = found.axis_labels
    if labels[0].startswith("along the move"):
        labels = (_worded(labels[0], names), labels[1])
        labels = (_sentence(labels[0]), labels[1].replace("across it", "Across it", 1))
    return replace(found, axis_labels=labels, note=_worded(found.note, names))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _worded(text: str, names: Sequence[str]) -> str:
    text = re.sub(r"\b[Rr]ow \d+\b", "the row", text)
    text = re.sub(r"\bcluster (\d+)\b", lambda m: names[int(m[1])], text)
    return re.sub(r"\bcluster\b", "segment", text)


def drawable(segments: Segments) -> list[str]:
    """Return the columns that an axis can show, the most telling first."""
    ranked = segments.voice.learned_.ranking
    names = [segments.prepared.names[i] for i in ranked]
    return [name for name in names if name in segments.prepared.numbers]


def miss_map(
    compared: Comparison, i: int, names: Sequence[str]
) -> tuple[SegmentMap, np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """Return the plane that holds a row, its pairwise answer and the exact one, and the pairwise.

    All three lie in the plane, so that what is seen is exact.
    """
    plane = Plane.of_move(compared.exact, i)
    start, pairwise = plane.origin, compared.pairwise.points[i]
    first = plane.first
    away = pairwise - start
    second = away - (away @ first) / (first @ first) * first
    if np.linalg.norm(second) > 1e-9 * np.linalg.norm(first):
        second *= np.linalg.norm(first) / np.linalg.norm(second)
        dual = np.array([first, second]) / (first @ first)
        plane = replace(plane, second=second, dual=dual)
    found = SegmentMap.from_voice(
        compared.voice, compared.points, plane, compared.exact, i, max_points=POINTS
    )
    labels = ("Along the exact change: 0 is the row, 1 its answer", "Across it")
    return replace(_in_words(found, names), axis_labels=labels), plane.project(pairwise[None])[0]
