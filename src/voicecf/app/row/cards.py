"""Answers about one row as HTML, for pages and reports."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from voicecf.app import blocks
from voicecf.app.row.answers import Obstacle, RowAnswer
from voicecf.app.row.changes import shape
from voicecf.app.row.whatif import Standing
from voicecf.app.style import colour
from voicecf.plots.markup import changes_html
from voicecf.table.wording import figure


def answer_card(answer: RowAnswer) -> str:
    """Write the answer: from where to where, in a sentence, and how sure it is."""
    source, target = (int(a[0]) for a in (answer.found.source, answer.found.target))
    parts = [f"<span>{escape(answer.called)}</span>", blocks.chip(answer.source, source)]
    if answer.possible or answer.question.target is not None:
        parts += ["<span>to</span>", blocks.chip(answer.target, target)]
    kind = "v-yes" if answer.possible else "v-no"
    remarks = {"v-remark": answer.remark, "v-rim": answer.rim}
    told = "".join(f'<p class="{how}">{escape(text)}</p>' for how, text in remarks.items() if text)
    return (
        f'<div class="v-card {kind}" style="--c:{colour(target)}">'
        f'<div class="v-move">{"".join(parts)}</div>'
        f'<p class="v-lead">{escape(answer.sentence)}</p>{told}</div>'
    )


def obstacle_text(obstacle: Obstacle) -> str:
    """Write why there is no answer."""
    return f'<p class="v-remark">{escape(obstacle.sentence)}</p>'


def change_card(answer: RowAnswer) -> str:
    """Write what changes, a line a column, above the shape of all rows."""
    if not answer.changes:
        return ""
    numbers = [change.column for change in answer.changes if change.is_number]
    shapes = {column: shape(answer.segments, column) for column in numbers}
    return changes_html(answer.changes, colour(int(answer.found.target[0])), shapes)


def place_text(place: Standing, names: Sequence[str]) -> str:
    """Write which segment a row is in, how firmly, and which one is next."""
    here, there = (blocks.chip(names[t], t) for t in (place.segment, place.beyond))
    inside = f"{figure(place.inside, 2)} spreads inside"
    return (
        f'<div class="v-place" role="status"><span>{inside}</span>{here}'
        f"<span>next to</span>{there}</div>"
    )
