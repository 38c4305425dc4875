"""The picture of a campaign: how many rows a budget moves."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from voicecf.app import charts
from voicecf.app.campaign.summary import Summary
from voicecf.app.charts import BARE
from voicecf.app.effort import effort_text
from voicecf.app.style import ACCENT, INHERITED
from voicecf.plots import Theme

# Pixels of the picture, and of its width in a file.
HEIGHT, WIDTH = 260, 680


def budget_curve(said: Summary, budget: float | None, theme: Theme) -> alt.LayerChart:
    """Draw how many rows can be moved by budget, the easiest first; the budget is marked."""
    budgets, rows = said.curve()
    data = pd.DataFrame({"budget": budgets, "rows": rows})
    axis = alt.Axis(tickCount=5, labelPadding=6, **BARE)
    base = alt.Chart(data).encode(
        alt.X("budget:Q", title=f"Budget ({said.unit})", axis=axis),
        alt.Y("rows:Q", title="Rows that it moves", axis=axis),
    )
    told = [
        alt.Tooltip("budget:Q", title=f"Budget ({said.unit})", format=charts.FORMAT),
        alt.Tooltip("rows:Q", title="Rows", format=",d"),
    ]
    near = alt.selection_point(
        nearest=True, on="pointerover", encodings=["x"], empty=False, clear="pointerout"
    )
    shown = alt.condition(near, alt.value(1), alt.value(0))
    layers = [
        base.mark_area(opacity=0.14, color=ACCENT),
        base.mark_line(color=ACCENT, strokeWidth=2.4),
        base.mark_point(filled=True, size=70, color=ACCENT)
        .encode(opacity=shown, tooltip=told)
        .add_params(near),
    ]
    if budget is not None:
        layers += _mark(said, budget, theme)
    return charts.plain(alt.LayerChart(layer=layers), HEIGHT)


def _mark(said: Summary, budget: float, theme: Theme) -> list[alt.Chart]:
    """Mark the budget; one beyond what all rows take stands at the end."""
    most = float(said.spent[-1]) if len(said.spent) else 0.0
    n = said.affordable(budget)
    place = pd.DataFrame({"budget": [min(budget, most)], "rows": [n]})
    text = f"{n:,} for {effort_text(budget, said.unit)}"
    late = budget > 0.55 * most
    spot = alt.Chart(place).encode(x="budget:Q", y="rows:Q")
    how: dict[str, Any] = {
        "align": "right" if late else "left",
        "dx": -10 if late else 10,
        "fontSize": 13,
    }
    return [
        alt.Chart(place).mark_rule(color=theme.ink, strokeDash=[4, 4]).encode(x="budget:Q"),
        spot.mark_point(filled=True, size=110, color=theme.ink, opacity=1, tooltip=text),
        spot.mark_text(
            text=text, color=theme.ink, fontWeight=600, dy=-10 if late else 14, **how
        ),
    ]  # fmt: skip


def budget_svg(said: Summary, budget: float | None) -> str:
    """Draw the same as an image that takes the colours of the text around it."""
    return charts.svg(budget_curve(said, budget, INHERITED), WIDTH, HEIGHT)
