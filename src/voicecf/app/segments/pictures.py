"""Pictures of segments, drawn by altair."""

from __future__ import annotations

import altair as alt
import pandas as pd

from voicecf.app import charts
from voicecf.app.charts import BARE
from voicecf.app.style import ACCENT, QUIET

# Pixels.
SCORES = 200
# The selection by which a number of segments is chosen.
CHOOSE = "choose"


def scores(values: dict[int, float], chosen: int) -> alt.LayerChart:
    """Draw how far apart segments are, by their number; a click anywhere above one chooses it."""
    is_chosen = alt.datum.k == chosen
    data = pd.DataFrame({"k": list(values), "score": list(values.values())})
    number = alt.X("k:O", title="Number of segments", axis=alt.Axis(labelAngle=0, **BARE))
    told = [
        alt.Tooltip("k:O", title="Segments"),
        alt.Tooltip("score:Q", title="How far apart, 0 to 1", format=".2f"),
    ]
    drawn: alt.Chart = alt.Chart(data).mark_bar(cornerRadiusEnd=3).encode(
        number,
        alt.Y("score:Q", title=None, axis=alt.Axis(tickCount=3, grid=True, **BARE)),
        color=alt.condition(is_chosen, alt.value(ACCENT), alt.value(QUIET)),
        opacity=alt.condition(is_chosen, alt.value(1.0), alt.value(0.45)),
    )  # fmt: skip
    choose = alt.selection_point(name=CHOOSE, fields=["k"], clear=False)
    # Low bars are hard to hit, so that all of the height takes clicks.
    full: alt.Chart = alt.Chart(data).mark_bar(opacity=0, cursor="pointer").encode(
        number, y=alt.value(0), y2=alt.value("height"), tooltip=told
    )  # fmt: skip
    full = full.add_params(choose)
    return charts.plain(alt.LayerChart(layer=[drawn, full]), SCORES)
