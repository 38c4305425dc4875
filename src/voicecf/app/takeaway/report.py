"""The current answer as one HTML file that needs nothing else: to keep, to print, to send."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from voicecf import __version__
from voicecf.app import blocks, charts
from voicecf.app.data.reading import ReadTable
from voicecf.app.row.answers import RowAnswer, answer_map, difference, ways_out
from voicecf.app.row.page import answer_card, map_legend
from voicecf.app.row.question import GOALS, in_words
from voicecf.app.segments import cards as segment_cards
from voicecf.app.segments.segments import Segments
from voicecf.app.style import BLOCKS, INHERITED, REPORT, colour
from voicecf.output import counted
from voicecf.reasons import Reason

# Pixels of the map: width, height.
MAP = (640, 380)


def html_report(
    table: ReadTable,
    given: RowAnswer,
    script: str,
    *,
    axes: Sequence[str] = (),
    others: Sequence[RowAnswer] = (),
    reason: Reason | None = None,
) -> str:
    """Write the report.

    Parameters
    ----------
    table : ReadTable
    given : RowAnswer
    script : str
        The Python that gives the same answer.
    axes : sequence of str
        Two columns that the map shows; the best view if there are none.
    others : sequence of RowAnswer
        Other ways.
    reason : Reason, optional
        Why there is no answer, if there is none.

    Returns
    -------
    str
        One HTML document; it loads nothing and runs nothing.
    """
    segments, asked = given.segments, given.question
    lines = [f"Looked for: {GOALS[asked.objective].lower()}."]
    if asked.margin:
        lines.append(f"Safety margin: {asked.margin} % of the way to the segment's centre.")
    ways = ways_out(given, reason) if reason is not None else []
    why = blocks.paragraph(f"In the way: {reason.because}.") if reason and reason.because else ""
    why += "<p>It would be possible to:</p>" * bool(ways) + bullets([way.text for way in ways])
    parts = [
        "<h1>What would have to change?</h1>",
        answer_card(given),
        blocks.paragraph(
            f"{table.name}: {counted(len(segments.prepared.frame), 'row')}, {segments.k} segments."
        ),
        why,
        section("What changes", given.card.html(INHERITED)),
        _picture(given, axes),
        section("Other ways", bullets([f"{difference(given, one)}." for one in others])),
        section("What was asked", bullets([*lines, *in_words(asked.allowed)])),
        section("The segments", segments_in_cards(segments, given.names)),
        section("The same in Python", f"<pre>{escape(script)}</pre>"),
    ]
    return document(given.found.text(0).partition(".")[0], parts)


def _picture(given: RowAnswer, axes: Sequence[str]) -> str:
    shown, _ = answer_map(given, axes)
    made = map_legend(shown, given.names) + charts.svg(shown.chart(INHERITED), *MAP)
    title = escape(f"Map of the segments: {shown.title}")
    drawn = f'<div role="img" aria-label="{title}">{made}</div>'
    return section("On the map", f"<figure>{drawn}{blocks.paragraph(shown.note)}</figure>")


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


def bullets(lines: Sequence[str]) -> str:
    """Write a list; nothing if it is empty."""
    return "" if not lines else f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>"


def segments_in_cards(segments: Segments, names: Sequence[str]) -> str:
    """Write what is typical of each segment."""
    cards = "".join(
        f'<div class="v-card" style="--c:{colour(t)}">{blocks.chip(name, t)}'
        f"{segment_cards.profile_card(profile, t)}</div>"
        for t, (name, profile) in enumerate(zip(names, segments.profiles, strict=True))
    )
    return f'<div class="v-segments">{cards}</div>'
