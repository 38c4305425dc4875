"""Answers about one row as HTML, for pages and reports."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isnan

from voicecf.app import blocks
from voicecf.app.row.answers import Answer, Change, Obstacle, Reach
from voicecf.app.style import colour
from voicecf.output.wording import shortened


def answer_card(answer: Answer) -> str:
    """Write the answer: from where to where, in a sentence, and how sure it is."""
    source, target = (int(a[0]) for a in (answer.found.source, answer.found.target))
    parts = [f"<span>{escape(answer.called)}</span>", blocks.chip(answer.source, source)]
    if answer.possible or answer.question.target is not None:
        parts += ["<span>to</span>", blocks.chip(answer.target, target)]
    kind = "v-yes" if answer.possible else "v-no"
    remark = f'<p class="v-remark">{escape(answer.remark)}</p>' if answer.remark else ""
    return (
        f'<div class="v-card {kind}" style="--c:{colour(target)}">'
        f'<div class="v-move">{"".join(parts)}</div>'
        f'<p class="v-lead">{escape(answer.sentence)}</p>{remark}</div>'
    )


def obstacle_text(obstacle: Obstacle) -> str:
    """Write why there is no answer."""
    return f'<p class="v-remark">{escape(obstacle.sentence)}</p>'


def change_card(answer: Answer) -> str:
    """Write what changes, a line a column: from, to, by how much, and where in the range."""
    if not answer.changes:
        return ""
    heads = ("Column", "From and to", "Change", "Within what was seen")
    head = "".join(
        f'<div class="v-h{" v-wide" * (i > 1)}">{text}</div>' for i, text in enumerate(heads)
    )
    lines = "".join(_change_line(change) for change in answer.changes)
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


def _change_line(change: Change) -> str:
    name = escape(shortened(change.column, 60))
    before, after = escape(shortened(change.before, 40)), escape(shortened(change.after, 40))
    return (
        f'<div class="v-name">{name}</div>'
        f'<div class="v-num">{before} <span class="v-soft">to</span> <b>{after}</b></div>'
        f'<div class="v-num v-wide">{escape(change.delta)}</div>'
        f'<div class="v-wide">{_track(change)}</div>'
    )


def _track(change: Change) -> str:
    """Draw where a number moves within its observed range."""
    if isnan(change.start) or isnan(change.end):
        return ""
    start, end = (100 * min(max(place, 0.0), 1.0) for place in (change.start, change.end))
    left, width = min(start, end), abs(end - start)
    return (
        f'<div class="v-track"><i></i><u style="left:{left:.1f}%;width:{width:.1f}%"></u>'
        f'<s style="left:{start:.1f}%"></s><em style="left:{end:.1f}%"></em></div>'
    )
