"""Answers about one row as HTML, for pages and reports."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from voicecf.app import blocks
from voicecf.app.row.answers import Obstacle, Reach, RowAnswer
from voicecf.app.row.changes import ShownChange
from voicecf.app.row.tracks import track
from voicecf.app.row.whatif import Standing
from voicecf.app.style import colour
from voicecf.output.wording import figure, shortened


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
    """Write what changes, a line a column: from, to, by how much, and where in the range."""
    if not answer.changes:
        return ""
    heads = {"Column": "", "From and to": "", "Change": " v-by", "Among all rows": " v-where"}
    head = "".join(f'<div class="v-h{kind}">{text}</div>' for text, kind in heads.items())
    lines = "".join(_change_line(answer, change) for change in answer.changes)
    target = colour(int(answer.found.target[0]))
    return f'<div class="v-changes" style="--c:{target}">{head}{lines}</div>'


def reach_table(reaches: Sequence[Reach]) -> str:
    """Write between which values each changed column may lie, and what comes beyond."""
    rows = []
    for reach in reaches:
        sides = [(reach.low, reach.below), (reach.high, reach.above)]
        told = [f"{value} ({why})" if why else value for value, why in sides]
        rows.append([shortened(reach.column, 60), *told])
    return blocks.table(("Column", "From", "To"), rows)


def _change_line(answer: RowAnswer, change: ShownChange) -> str:
    name = escape(shortened(change.column, 60))
    before, after = escape(shortened(change.before, 40)), escape(shortened(change.after, 40))
    return (
        f'<div class="v-name">{name}</div>'
        f'<div class="v-num">{before} <span class="v-soft">to</span> <b>{after}</b></div>'
        f'<div class="v-num v-by">{escape(change.delta)}</div>'
        f'<div class="v-where">{track(answer.segments, change)}</div>'
    )


def place_text(place: Standing, names: Sequence[str]) -> str:
    """Write which segment a row is in, how firmly, and which one is next."""
    here, there = (blocks.chip(names[t], t) for t in (place.segment, place.beyond))
    inside = f"{figure(place.inside, 2)} spreads inside"
    return (
        f'<div class="v-place" role="status"><span>{inside}</span>{here}'
        f"<span>next to</span>{there}</div>"
    )


def legend(names: Sequence[str], note: str = "") -> str:
    """Write which colour a segment has, by its number; lines wrap, however many there are."""
    made = "".join(
        f'<span><span class="v-dot" style="--c:{colour(t)}"></span>{escape(name)}</span>'
        for t, name in enumerate(names)
    )
    return f'<div class="v-legend">{made}</div>{blocks.paragraph(note) if note else ""}'
