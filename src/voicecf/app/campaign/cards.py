"""What a run says as HTML, for the page and the report."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from voicecf.app import blocks
from voicecf.app.campaign.plan import Campaign, Run
from voicecf.app.campaign.summary import (
    NAMED,
    Summary,
    asked_in_words,
)
from voicecf.app.effort import ABOUT_SPREADS, SPREADS, effort_text
from voicecf.app.row.question import Objective, in_short
from voicecf.app.words import percent
from voicecf.output import figure, joined


def facts(said: Summary, left_out: int = 0, each: bool = False, things: str = "rows") -> str:
    """Write how many can move, and what it takes.

    Parameters
    ----------
    said : Summary
    left_out : int
        Rows of the table that have no segment, because they miss a value.
    each : bool
        Whether every other segment was asked for: then one is enough.
    things : str
        What rows are called.
    """
    counts = said.counts
    open_ = counts.asked - counts.already - counts.waiting
    share = f" ({percent(counts.movable / open_)})" if open_ else ""
    usual = "columns change, usually"
    items = [
        (f"{counts.asked:,}", f"{things} asked about"),
        (f"{counts.movable:,}{share}", "can move to one or more" if each else "can move"),
        (f"{counts.impossible:,}", "cannot"),
        (f"{counts.already:,}", "there already"),
        (
            effort_text(said.effort, said.unit),
            "effort of the easiest" if each else "effort, usually",
        ),
        (_columns(said), "column changes, usually" if said.columns == 1 else usual),
    ]
    if left_out:
        items.append((f"{left_out:,}", "left out: they miss a value"))
    if counts.waiting:
        items.insert(1, (f"{counts.waiting:,}", "not answered yet"))
    return blocks.facts(items)


def _columns(said: Summary) -> str:
    return figure(said.columns) if said.counts.movable else "\N{EN DASH}"


def about_effort(said: Summary) -> str:
    """Explain what efforts are counted in."""
    if said.unit == SPREADS:
        return blocks.paragraph(ABOUT_SPREADS)
    return blocks.paragraph("Efforts add up price times change over the columns that change.")


def pairs_table(said: Summary, names: Sequence[str]) -> pd.DataFrame:
    """Return a line for each pair of segments, those with most rows that can move first."""
    lines = [
        (
            names[pair.source], names[pair.target], pair.asked, pair.movable,
            effort_text(pair.effort, said.unit), pair.columns,
            "; ".join(f"{x.phrase} ({percent(x.share)})" for x in pair.levers[:NAMED]),
        )
        for pair in sorted(said.pairs, key=lambda pair: -pair.movable)
    ]  # fmt: skip
    heads = ["From", "To", "Asked", "Can move", "Effort, usually", "Columns, usually", "Used most"]
    return pd.DataFrame(lines, columns=heads)


def table_of(listed: pd.DataFrame) -> str:
    """Write a table for a report."""
    rows = [
        [figure(v) if isinstance(v, float) else str(v) for v in line]
        for line in listed.itertuples(index=False, name=None)
    ]
    return f'<div class="v-easiest">{blocks.table(list(listed), rows)}</div>'


def comparison(
    runs: Sequence[Run], said: Sequence[Summary], names: Sequence[Sequence[str]],
    asked: Campaign,
) -> str:  # fmt: skip
    """Write runs side by side; `asked` has the budget."""
    lines: list[list[str]] = [["Asked"], ["Rules and prices"], ["Rows asked"], ["Can move"],
                              ["Cannot"], ["Effort, usually"], ["Columns, usually"],
                              ["Used most"]]  # fmt: skip
    budget = asked.budget
    if budget is not None:
        lines.append([f"Rows for {effort_text(budget, asked.unit)}"])
    for run, one, called in zip(runs, said, names, strict=True):
        counts = one.counts
        open_ = counts.asked - counts.already - counts.waiting
        share = f" ({percent(counts.movable / open_)})" if open_ else ""
        cells = [
            asked_in_words(run.campaign, called),
            conditions(run.campaign),
            f"{counts.asked:,}",
            f"{counts.movable:,}{share}",
            f"{counts.impossible:,}",
            effort_text(one.effort, one.unit),
            _columns(one),
            "; ".join(f"{x.phrase} ({percent(x.share)})" for x in one.levers[:NAMED]),
        ]
        if budget is not None:
            known = one.unit == asked.unit
            cells.append(f"{one.affordable(budget):,}" if known else "\N{EN DASH}")
        for line, cell in zip(lines, cells, strict=True):
            line.append(cell)
    table = blocks.table(["", *(run.name for run in runs)], lines)
    return f'<div class="v-compared">{table}</div>'


def conditions(campaign: Campaign) -> str:
    """Say in a line what may not change, and what counts."""
    parts = in_short(campaign.allowed)
    parts += [f"margin {campaign.margin} %"] if campaign.margin else []
    parts += ["least effort"] if campaign.objective is Objective.LEAST else []
    priced = [price.column for price in campaign.prices]
    parts += [f"prices for {joined(priced)}"] if priced else []
    return "; ".join(parts) or "everything may change"
