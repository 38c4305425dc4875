"""Which slice of the segments to draw for an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from voicecf import Counterfactuals
from voicecf.app.method.pairwise import Comparison
from voicecf.app.row.answers import Answer
from voicecf.app.segments.segments import Segments
from voicecf.plots import Plane, SegmentMap

# Rows that a map shows.
POINTS = 1_500


def answer_map(answer: Answer, axes: tuple[str, str] | None = None) -> SegmentMap:
    """Return the map of an answer: in two columns of the user's choice, or in the best view."""
    found = _named(answer.found, answer.names)
    plane = Plane.most_telling(found) if axes is None else Plane.through(found, 0, *axes)
    return _cut(found, 0, plane, answer.segments.prepared.frame)


def miss_map(compared: Comparison, i: int, names: Sequence[str]) -> tuple[SegmentMap, NDArray[Any]]:
    """Return the plane that holds a row, its pairwise answer and the exact one, and the pairwise.

    All three lie in the plane, so that what is seen is exact.
    """
    found, pairwise = _named(compared.exact, names), compared.pairwise.points[i]
    plane = Plane.of_move(found, i, also=pairwise)
    labels = ("Along the exact change: 0 is the row, 1 its answer", "Across it")
    picture = replace(_cut(found, i, plane, compared.points), axis_labels=labels)
    return picture, plane.project(pairwise[None])[0]


def drawable(segments: Segments) -> list[str]:
    """Return the columns that an axis can show, the most telling first."""
    ranked = segments.voice.learned_.ranking
    names = [segments.prepared.names[i] for i in ranked]
    return [name for name in names if name in segments.prepared.numbers]


def _named(found: Counterfactuals, names: Sequence[str]) -> Counterfactuals:
    """Return answers that call the segments as the page does."""
    question = found.outcome.question
    learned = replace(question.learned, names=tuple(names))
    return Counterfactuals(replace(found.outcome, question=replace(question, learned=learned)))


def _cut(found: Counterfactuals, i: int, plane: Plane, rows: Any) -> SegmentMap:
    learned = found.outcome.question.learned
    picture = SegmentMap.from_voice(learned, rows, plane, found, i, POINTS)
    return replace(picture, names=list(learned.names))  # in full: they tell segments apart
