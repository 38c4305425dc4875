"""The Python that gives a run's numbers again."""

from __future__ import annotations

from voicecf.app.campaign import runs
from voicecf.app.campaign.plan import Campaign
from voicecf.app.data.reading import ReadTable
from voicecf.app.effort import usual_prices
from voicecf.app.segments.segments import Segments
from voicecf.app.takeaway.code import asked, explainer, literal, opening


def script(table: ReadTable, segments: Segments, campaign: Campaign, by: Campaign) -> str:
    """Write the script.

    Parameters
    ----------
    table : ReadTable
        Where the rows come from.
    segments : Segments
    campaign : Campaign
        What was asked, and the budget.
    by : Campaign
        Whose prices efforts are counted by.
    """
    imports, rows, model = opening(table, segments)
    if "import pandas" not in imports:
        imports = f"import pandas as pd\n{imports}"
    parts = [
        '"""Who can be moved, and at what effort?"""',
        f"import numpy as np\n{imports}",
        rows,
        model,
        explainer(segments, campaign.margin),
        _asking(segments, campaign),
        _effort(segments, by),
        _result(campaign, by),
    ]
    return "\n\n".join(parts) + "\n"


def _asking(segments: Segments, campaign: Campaign) -> str:
    chosen = "rows"
    if campaign.sources:
        chosen = f"rows[np.isin(voice.predict(rows), {list(campaign.sources)})]"
    call = asked("asked", runs.asked(campaign, segments))
    return "\n".join([
        f"asked = {chosen}",
        f"answers = {call}.rounded()",
        "already = answers.source == answers.target",
        "moves = answers.feasible & ~already",
    ])  # fmt: skip


def _effort(segments: Segments, by: Campaign) -> str:
    """Write the sum over columns of price times change."""
    prepared, rates = segments.prepared, by.rates(usual_prices(segments))
    lines = [
        "# What it takes: for each column its price times its change.",
        "before = asked.iloc[answers.row].reset_index(drop=True)",
        "after = answers.to_frame().reset_index(drop=True)",
        "effort = np.zeros(len(answers))",
    ]
    if prepared.numbers:
        prices = {name: rates.get(name, (0.0, 0.0)) for name in prepared.numbers}
        old = "before[name]"
        if prepared.filled:
            old = "before[name].fillna(rows[name].median())"
        lines += [
            f"rise_and_fall = {literal(prices, 16)}",
            "for name, (rise, fall) in rise_and_fall.items():",
            f"    change = (after[name] - {old}).astype(float).fillna(0.0)",
            "    effort += np.where(change > 0, change * rise, -change * fall)",
        ]
    if prepared.categories:
        switches = {name: rates.get(name, (0.0, 0.0))[0] for name in prepared.categories}
        lines += [
            f"switch = {literal(switches, 9)}",
            "for name, price in switch.items():",
            '    changed = before[name].fillna("") != after[name].fillna("")',
            "    effort += changed.to_numpy() * price",
        ]
    return "\n".join(lines)


def _result(campaign: Campaign, by: Campaign) -> str:
    lines = [
        "# Each row by its easiest answer.",
        "easiest = pd.Series(effort[moves]).groupby(answers.row[moves]).min().sort_values()",
        'print(f"{len(asked)} rows asked")',
        'print(f"{len(easiest)} can move")',
        "there = np.setdiff1d(answers.row[already], easiest.index)",
        'print(f"{len(there)} are there already")',
        f'print(f"median effort {{easiest.median():.6g}}", {literal(by.unit, 0)})',
    ]
    if campaign.budget is not None:
        lines += [
            f"budget = {campaign.budget!r}",
            "enough = int((easiest.cumsum() <= budget * (1 + 1e-9)).sum())",
            'print(f"{enough} for the budget")',
        ]
    return "\n".join(lines)
