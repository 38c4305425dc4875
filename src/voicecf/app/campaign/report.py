"""A run as one HTML file that needs nothing else: to keep, to print, to send."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import pandas as pd

from voicecf.app import blocks
from voicecf.app.campaign import cards, pictures
from voicecf.app.campaign.plan import Campaign, Run
from voicecf.app.campaign.summary import Summary, asked_in_words
from voicecf.app.effort import effort_text
from voicecf.app.row.question import GOALS, in_words
from voicecf.app.segments.segments import Segments
from voicecf.app.takeaway.report import (
    bullets,
    document,
    section,
    segments_in_cards,
)
from voicecf.output import figure

# Rows that are listed, and pairs of segments that have a card.
LISTED, PAIRS = 20, 24


def campaign_report(
    run: Run,
    names: Sequence[str],
    said: Summary,
    listed: pd.DataFrame,
    *,
    table: str,
    campaign: Campaign,
    segments: Segments | None = None,
    script: str = "",
    things: str = "rows",
) -> str:
    """Write the report.

    Parameters
    ----------
    run : Run
    names : sequence of str
        Of the segments.
    said : Summary
    listed : pandas.DataFrame
        The easiest rows.
    table : str
        What the visitor's table is called.
    campaign : Campaign
        For prices and budget, which may be later than the run's.
    segments : Segments, optional
        Those of the run, unless they have changed since.
    script : str
        The Python that gives the same numbers.
    things : str
        What rows are called.

    Returns
    -------
    str
        One HTML document; it loads nothing and runs nothing.
    """
    title = f"Campaign: {asked_in_words(run.campaign, names)}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        blocks.lead(conclusion(said, things)),
        blocks.paragraph(f"{table}. {run.name}, {run.when:%d %B %Y, %H:%M}."),
        cards.facts(said, segments.prepared.left_out if segments else 0, run.campaign.each, things),
        cards.about_effort(said),
        section("From where to where", cards.table_of(cards.pairs_table(said, names)[:PAIRS])),
        _budget(said, campaign.budget, things),
        section("The easiest to move", cards.table_of(listed) if len(listed) else ""),
        section("What was asked", _asked(run.campaign, campaign)),
        section("The segments", _segments(segments, names)),
        section("The same in Python", f"<pre>{escape(script)}</pre>" if script else ""),
    ]
    return document(title, parts)


def conclusion(said: Summary, things: str) -> str:
    """Say in a sentence what came out."""
    counts = said.counts
    if not counts.movable:
        return f"None of the {counts.asked:,} {things} that were asked about can move so."
    often = f", most often by {said.levers[0].phrase}" if said.levers else ""
    usual, every = (effort_text(v, said.unit) for v in (said.effort, float(said.spent[-1])))
    return (
        f"{counts.movable:,} of the {counts.asked:,} {things} that were asked about can move"
        f"{often}; it usually takes {usual} each, and {every} for all of them."
    )


def _budget(said: Summary, budget: float | None, things: str) -> str:
    if not len(said.spent):
        return ""
    everyone = effort_text(float(said.spent[-1]), said.unit)
    text = f"All {len(said.spent):,} {things} that can move take {everyone} together."
    if budget is not None:
        n = said.affordable(budget)
        text = f"{effort_text(budget, said.unit)} moves {n:,} {things}. {text}"
    curve = pictures.budget_svg(said, budget, things)
    drawn = f'<div role="img" aria-label="{escape(text)}">{curve}</div>'
    return section("How far a budget goes", f"{blocks.paragraph(text)}<figure>{drawn}</figure>")


def _asked(asked: Campaign, campaign: Campaign) -> str:
    lines = [f"Looked for: {GOALS[asked.objective].lower()}."]
    if asked.margin:
        lines.append(f"Safety margin: {asked.margin} % of the way to the segment's centre.")
    lines += in_words(asked.allowed)
    return bullets([*lines, *prices_in_words(campaign)])


def prices_in_words(campaign: Campaign) -> list[str]:
    """Say what changes cost, a sentence a column."""
    lines = []
    for price in campaign.prices:
        text = f"{price.column}: {figure(price.rise)} {campaign.unit} for each unit or switch"
        if price.fall is not None and price.fall != price.rise:
            text += f", {figure(price.fall)} {campaign.unit} for each unit less"
        lines.append(f"{text}.")
    if campaign.prices:
        free = "may change at no cost" if campaign.free else "stay as they are"
        lines.append(f"Columns without a price {free}.")
    return lines


def _segments(segments: Segments | None, names: Sequence[str]) -> str:
    if segments is None:
        chips = "".join(blocks.chip(name, t) for t, name in enumerate(names))
        return f'<div class="v-move">{chips}</div>{blocks.paragraph("They have changed since.")}'
    return segments_in_cards(segments, names)
