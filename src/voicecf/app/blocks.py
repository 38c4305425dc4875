"""Pieces of pages and reports as HTML. Whatever comes from the data is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from math import isnan
from typing import Any

from voicecf.app.answers import Answer, Change, Obstacle, Reach
from voicecf.app.segments import Profile
from voicecf.app.style import ACCENT, colour
from voicecf.app.words import percent
from voicecf.output.wording import counted, shortened

# Columns of which a card tells what is typical.
TRAITS = 4


def chip(name: str, segment: int) -> str:
    """Write a segment's name with its colour."""
    dot = f'<span class="v-dot" style="--c:{colour(segment)}"></span>'
    return f'<span class="v-chip">{dot}{escape(name)}</span>'


def answer_card(answer: Answer) -> str:
    """Write the answer: from where to where, in a sentence, and how sure it is."""
    source, target = (int(a[0]) for a in (answer.found.source, answer.found.target))
    parts = [f"<span>{escape(answer.called)}</span>", chip(answer.source, source)]
    if answer.possible or answer.question.target is not None:
        parts += ["<span>to</span>", chip(answer.target, target)]
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
    return table(("Column", "From", "To"), rows)


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


def facts(items: Iterable[tuple[str, str]]) -> str:
    """Write a few figures side by side: value and label."""
    made = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(label)}</span></div>" for value, label in items
    )
    return f'<div class="v-facts">{made}</div>'


def profile_card(profile: Profile, segment: int) -> str:
    """Write what is typical of a segment."""
    share = f'<div class="v-share"><i style="width:{100 * profile.share:.1f}%"></i></div>'
    size = f"{counted(profile.size, 'row')}, {percent(profile.share)}"
    lines = "".join(
        f"<span>{escape(shortened(trait.column, 34))}</span>"
        f'<span class="v-val">{escape(shortened(trait.typical, 28))}</span>'
        f'<span class="v-all">{escape(trait.direction)}; all rows: {escape(trait.overall)}</span>'
        for trait in profile.traits[:TRAITS]
    )
    return (
        f'<div style="--c:{colour(segment)}"><span class="v-soft">{size}</span>{share}'
        f'<div class="v-traits">{lines}</div></div>'
    )


def bars(items: Sequence[tuple[str, float, str]], tint: str = ACCENT) -> str:
    """Draw bars with names and values; the longest fills its place."""
    longest = max((value for _, value, _ in items), default=0.0) or 1.0
    lines = "".join(
        f"<span>{escape(shortened(name, 40))}</span>"
        f'<span class="v-bar"><i style="width:{100 * value / longest:.1f}%"></i></span>'
        f'<span class="v-val">{escape(text)}</span>'
        for name, value, text in items
    )
    return f'<div class="v-bars" style="--c:{tint}">{lines}</div>'


def matrix(
    names: Sequence[str], values: Any, texts: Any, *, corner: str = "", tint: str = ACCENT
) -> str:
    """Write a table of segments by segments, shaded by value (0 to 1)."""
    head = "".join(f"<th>{escape(shortened(name, 24))}</th>" for name in names)
    rows = []
    for i, name in enumerate(names):
        cells = "".join(_shaded(values[i][j], texts[i][j], tint) for j in range(len(names)))
        rows.append(f"<tr><th>{escape(shortened(name, 24))}</th>{cells}</tr>")
    return (
        f'<div class="v-scroll"><table class="v-grid"><tr><th class="v-soft">{escape(corner)}</th>'
        f"{head}</tr>{''.join(rows)}</table></div>"
    )


def _shaded(value: float, texts: tuple[str, str], tint: str) -> str:
    first, second = texts
    if not first:
        return "<td></td>"
    strength = 6 + 60 * min(max(float(value), 0.0), 1.0)
    back = f"background:color-mix(in srgb,{tint} {strength:.0f}%,transparent)"
    return f'<td style="{back}">{escape(first)}<small>{escape(second)}</small></td>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], differs: str = "") -> str:
    """Write a plain table; cells that hold `differs` stand out."""
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(_cell(text, differs) for text in row)}</tr>" for row in rows)
    return f'<div class="v-scroll"><table class="v-table"><tr>{head}</tr>{body}</table></div>'


def _cell(text: str, differs: str) -> str:
    mark = ' class="v-differs"' if differs and differs in text else ""
    return f"<td{mark}>{escape(text)}</td>"


def paragraph(text: str) -> str:
    """Write a quiet line of text."""
    return f'<p class="v-remark">{escape(text)}</p>'


def notice(text: str) -> str:
    """Write something that the user should know before going on."""
    return f'<div class="v-card v-no" role="status"><p class="v-lead">{escape(text)}</p></div>'


def heading(text: str, below: str = "") -> str:
    """Write a heading that comes from the data, and a line under it."""
    return f"<h2>{escape(text)}</h2>{paragraph(below) if below else ''}"
