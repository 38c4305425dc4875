"""Pictures of segments, drawn by altair."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app import charts
from voicecf.app.charts import BARE
from voicecf.app.style import ACCENT, QUIET, colour

# Pixels.
ROWS, SCORES = 360, 200
# The selection by which a number of segments is chosen.
CHOOSE = "choose"


def rows_by_segment(
    rows: pd.DataFrame, labels: NDArray[np.int64], names: Sequence[str]
) -> alt.Chart:
    """Draw rows by two columns, coloured by segment."""
    x, y = rows
    told = [names[t] for t in labels]
    data = pd.DataFrame({"x": rows[x].to_numpy(), "y": rows[y].to_numpy(), "t0": told})
    # By number, so that segments differ whatever they are called.
    k = range(len(names))
    scale = alt.Scale(domain=list(k), range=[colour(t) for t in k])
    sides = [
        side(f"{at}:Q", title=name, scale=alt.Scale(zero=False, padding=8), axis=alt.Axis(**BARE))
        for side, at, name in ((alt.X, "x", x), (alt.Y, "y", y))
    ]
    drawn: alt.Chart = alt.Chart(data.assign(segment=labels)).mark_circle(size=34, opacity=0.62)
    return charts.plain(drawn, ROWS).encode(
        *sides, color=alt.Color("segment:N", scale=scale, legend=None),
        tooltip=[alt.Tooltip("t0:N", title="Segment")],
    )  # fmt: skip


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
