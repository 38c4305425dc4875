"""The picture of a campaign: how many rows a budget moves."""

from __future__ import annotations

import altair as alt
import pandas as pd

from voicecf.app import charts
from voicecf.app.campaign.summary import Summary
from voicecf.app.charts import BARE
from voicecf.app.effort import effort_text
from voicecf.app.style import ACCENT, INHERITED
from voicecf.output import opening
from voicecf.plots import Theme

# Pixels of the picture, and of its width in a file.
HEIGHT, WIDTH = 260, 680


def budget_curve(
    said: Summary, budget: float | None, theme: Theme, things: str = "rows"
) -> alt.LayerChart:
    """Draw how many rows can be moved by budget, the easiest first; the budget is marked."""
    budgets, rows = said.curve()
    base = alt.Chart(pd.DataFrame({"budget": budgets, "rows": rows})).encode(
        alt.X("budget:Q", title=f"Budget ({said.unit})", axis=alt.Axis(tickCount=5, **BARE)),
        alt.Y(
            "rows:Q", title=f"{opening(things)} that it moves", axis=alt.Axis(tickCount=5, **BARE)
        ),
        tooltip=[
            alt.Tooltip("budget:Q", title=f"Budget ({said.unit})", format=charts.FORMAT),
            alt.Tooltip("rows:Q", title=opening(things), format=",d"),
        ],
    )
    layers = [base.mark_area(opacity=0.14, color=ACCENT, line={"color": ACCENT})]
    if budget is not None and len(said.spent):
        most = float(said.spent[-1])
        place = pd.DataFrame({"budget": [min(budget, most)], "rows": [said.affordable(budget)]})
        text = f"{said.affordable(budget):,} for {effort_text(budget, said.unit)}"
        late = budget > 0.55 * most
        spot = alt.Chart(place).encode(x="budget:Q", y="rows:Q")
        layers += [
            spot.mark_point(filled=True, size=110, color=theme.ink, opacity=1, tooltip=text),
            spot.mark_text(
                text=text, color=theme.ink, fontWeight=600, fontSize=13,
                align="right" if late else "left", dx=-10 if late else 10, dy=14,
            ),
        ]  # fmt: skip
    return charts.plain(alt.LayerChart(layer=layers), HEIGHT)


def budget_svg(said: Summary, budget: float | None, things: str = "rows") -> str:
    """Draw the same as an image that takes the colours of the text around it."""
    return charts.svg(budget_curve(said, budget, INHERITED, things), WIDTH, HEIGHT)
