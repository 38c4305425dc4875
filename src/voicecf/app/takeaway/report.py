"""The current answer as one HTML file that needs nothing else: to keep, to print, to send."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from voicecf import __version__
from voicecf.app import blocks
from voicecf.app.data.reading import ReadTable
from voicecf.app.row import cards, mapping
from voicecf.app.row import picture as pictures
from voicecf.app.row.answers import Obstacle, RowAnswer, difference
from voicecf.app.row.question import Objective, UserRules
from voicecf.app.segments import cards as segment_cards
from voicecf.app.segments.segments import Segments
from voicecf.app.style import BLOCKS, REPORT, colour
from voicecf.app.words import in_column
from voicecf.plots import SegmentMap
from voicecf.table.wording import counted, figure, joined

GOALS = {
    Objective.COST: "the least change overall",
    Objective.FEWEST: "the fewest columns, then the least change",
    Objective.PREFIX: "as few of the columns that matter most as will do",
}


def html_report(
    table: ReadTable,
    answer: RowAnswer,
    picture: SegmentMap | None,
    script: str,
    *,
    others: Sequence[RowAnswer] = (),
    obstacle: Obstacle | None = None,
) -> str:
    """Write the report.

    Parameters
    ----------
    table : ReadTable
    answer : RowAnswer
    picture : SegmentMap or None
        The map.
    script : str
        The Python that gives the same answer.
    others : sequence of Answer
        Other ways.
    obstacle : Obstacle, optional
        Why there is no answer, if there is none.

    Returns
    -------
    str
        One HTML document; it loads nothing and runs nothing.
    """
    rows = len(answer.segments.prepared.frame)
    parts = [
        "<h1>What would have to change?</h1>",
        blocks.paragraph(f"{table.name}: {counted(rows, 'row')}, {answer.segments.k} segments."),
        "<h2>The answer</h2>",
        cards.answer_card(answer),
        _why_not(obstacle),
        section("What changes", cards.change_card(answer)),
        _picture(answer, picture),
        _other_ways(answer, others),
        section("What was asked", _asked(answer)),
        section("The segments", segments_in_cards(answer.segments, answer.names)),
        section("The same in Python", f"<pre>{escape(script)}</pre>"),
    ]
    return document(f"{answer.called}: {answer.source} to {answer.target}", parts)


def document(title: str, parts: Sequence[str]) -> str:
    """Write a page of HTML that loads nothing and runs nothing."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'; img-src data:\">"
        f"<title>{escape(title)}</title><style>{REPORT}{BLOCKS}</style></head>"
        f"<body>{''.join(parts)}"
        f'<footer class="v-soft">Made by voicecf {escape(__version__)}. Nothing in this file is '
        "loaded from elsewhere.</footer></body></html>\n"
    )


def section(title: str, content: str) -> str:
    """Write a part with a heading; nothing if it is empty."""
    return f"<h2>{escape(title)}</h2>{content}" if content else ""


def _why_not(obstacle: Obstacle | None) -> str:
    if obstacle is None:
        return ""
    ways = "".join(f"<li>{escape(way.text)}</li>" for way in obstacle.ways)
    text = cards.obstacle_text(obstacle)
    return text + (f"<p>It would be possible to:</p><ul>{ways}</ul>" if ways else "")


def _picture(answer: RowAnswer, picture: SegmentMap | None) -> str:
    if picture is None:
        return ""
    title = escape(f"Map of the segments: {picture.title}")
    made = pictures.map_html(picture, mapping.formats(answer, picture))
    drawn = f'<div role="img" aria-label="{title}">{made}</div>'
    return section("On the map", f"<figure>{drawn}{blocks.paragraph(picture.note)}</figure>")


def _other_ways(answer: RowAnswer, others: Sequence[RowAnswer]) -> str:
    items = "".join(f"<li>{escape(difference(answer, one))}.</li>" for one in others)
    return section("Other ways", f"<ul>{items}</ul>") if items else ""


def _asked(answer: RowAnswer) -> str:
    asked = answer.question
    lines = [f"Looked for: {GOALS[asked.objective]}."]
    if asked.margin:
        lines.append(f"Safety margin: {asked.margin} % of the way to the segment's centre.")
    return bullets([*lines, *rules_in_words(asked.allowed)])


def rules_in_words(allowed: UserRules) -> list[str]:
    """Say what may change, a sentence a rule."""
    lines = []
    for names, what in (
        (allowed.locked, "may not change"),
        (allowed.rising, "may only rise"),
        (allowed.falling, "may only fall"),
    ):
        lines += [f"{name} {what}." for name in names]
    for limit in allowed.ranges:
        largest = max(abs(side) for side in (limit.low or 0.0, limit.high or 0.0))
        low, high = (in_column(figure(side or 0.0), largest) for side in (limit.low, limit.high))
        sides = [f"at least {low}"] if limit.low is not None else []
        sides += [f"at most {high}"] if limit.high is not None else []
        sides += [f"in steps of {figure(limit.step)}"] if limit.step is not None else []
        sides += [f"by {figure(limit.least)} or more"] if limit.least is not None else []
        lines.append(f"{limit.column}: {joined(sides)}.")
    lines += [f"{name} may become {joined(levels, 'or')}." for name, levels in allowed.levels]
    if allowed.most is not None:
        lines.append(f"At most {counted(allowed.most, 'column')} may change.")
    lines += ["Only values that go together in the segment."] * allowed.together
    return lines


def bullets(lines: Sequence[str]) -> str:
    """Write a list."""
    return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def segments_in_cards(segments: Segments, names: Sequence[str]) -> str:
    """Write what is typical of each segment."""
    cards = "".join(
        f'<div class="v-card" style="--c:{colour(t)}">{blocks.chip(name, t)}'
        f"{segment_cards.profile_card(profile, t)}</div>"
        for t, (name, profile) in enumerate(zip(names, segments.profiles, strict=True))
    )
    return f'<div class="v-segments">{cards}</div>'
