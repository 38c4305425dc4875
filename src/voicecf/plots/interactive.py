"""A map that answers to the pointer, drawn by altair: for notebooks, pages and reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.geometry.arrays import Array
from voicecf.plots.theme import Theme
from voicecf.table.wording import PARTED, shortened

if TYPE_CHECKING:
    import altair as alt

    from voicecf.plots.segments import SegmentMap

REMEDY = 'a map to point at needs altair: pip install "voicecf[app]"'
# The selection by which a row is picked.
PICK = "pick"
# Letters of an axis' title; how numbers are written, and years.
TITLE, FORMAT, UNGROUPED = 70, ",.5~r", ".5~r"
# How strongly a row is drawn: in the area of its own cluster, in that of another.
SEEN, FAINT = 0.8, 0.22
# A miss: red on light and on dark.
MISS = "#d9482b"


def chart_of(
    found: SegmentMap, theme: Theme, told: Any, marks: Sequence[tuple[str, Any]], height: int
) -> alt.LayerChart:
    """Draw a map; see `SegmentMap.chart`. Names of the data are titles, never fields."""
    try:
        import altair as alt
    except ImportError:
        raise ImportError(REMEDY) from None
    cells = [
        _line(
            corners, tooltip=found.names[t], fill=theme.color(t), fillOpacity=0.13,
            stroke=theme.color(t), strokeOpacity=0.45, strokeWidth=1, interpolate="linear-closed",
        )
        for t, corners in found.cells
    ]  # fmt: skip
    # Clicks on dots alone: cells and ends have no row.
    pick = alt.selection_point(name=PICK, fields=["row"], on="@rows_marks:click", clear=False)
    layers = [*cells, _rows(found, theme, told).add_params(pick), *_region(found, theme)]
    layers += _move(found, marks, theme)
    drawn: alt.LayerChart = alt.layer(*layers).encode(*_sides(found))
    drawn = drawn.properties(height=height).configure_view(stroke=None)
    return drawn.configure_axis(grid=False)  # type: ignore[no-any-return]


def number_format(values: Any) -> str:
    """Return how numbers of a column are written: thousands apart unless they may be years."""
    numbers = np.abs(np.asarray(values, dtype=np.float64))
    return FORMAT if np.max(numbers[np.isfinite(numbers)], initial=0.0) >= PARTED else UNGROUPED


def _sides(found: SegmentMap) -> list[Any]:
    """Return both axes, with their titles and how their numbers are written."""
    import altair as alt

    made = []
    ends = np.array(found.viewport).T
    for side, field, name, span in zip((alt.X, alt.Y), "xy", found.axis_labels, ends, strict=True):
        axis = alt.Axis(
            tickCount=6, labelPadding=6, format=number_format(span), domain=False, ticks=False
        )
        scale = alt.Scale(domain=span.tolist(), nice=False, zero=False)
        made.append(side(f"{field}:Q", title=shortened(name, TITLE), scale=scale, axis=axis))
    return made


def _rows(found: SegmentMap, theme: Theme, told: Any) -> alt.Chart:
    """Draw rows in the colours of their clusters, faintly in the areas of others."""
    import altair as alt

    columns = {} if told is None else {str(name): told[name].tolist() for name in told}
    columns = columns or {"Segment": [found.names[t] for t in found.labels.tolist()]}
    data = _placed(
        found.points, segment=found.labels, row=found.rows, off=found.drawn_in != found.labels,
        **{f"t{i}": values for i, values in enumerate(columns.values())},
    )  # fmt: skip
    tips = []
    for i, (name, values) in enumerate(columns.items()):
        numbers = all(isinstance(value, (int, float)) for value in values)
        how: dict[str, Any] = {"format": number_format(values)} if numbers else {}
        tips.append(
            alt.Tooltip(f"t{i}:{'Q' if numbers else 'N'}", title=shortened(name, TITLE), **how)
        )
    # By number, so that clusters differ whatever they are called.
    k = len(found.names)
    scale = alt.Scale(domain=list(range(k)), range=[theme.color(t) for t in range(k)])
    seen = alt.Scale(domain=[False, True], range=[SEEN, FAINT])
    drawn: alt.Chart = alt.Chart(data, name="rows").mark_circle(size=34).encode(
        color=alt.Color("segment:N", scale=scale, legend=None), tooltip=tips,
        opacity=alt.Opacity("off:N", scale=seen, legend=None),
    )  # fmt: skip
    return drawn


def _region(found: SegmentMap, theme: Theme) -> list[alt.Chart]:
    """Draw the part of the target that is firmly inside, if that is asked for."""
    if found.contracted is None or found.target is None or (found.alpha or 0.0) >= 0.999:
        return []
    outline = found.outline(found.contracted)
    return [_line(outline, color=theme.color(found.target), strokeDash=[5, 4], strokeWidth=1.6)]


def _move(found: SegmentMap, marks: Sequence[tuple[str, Any]], theme: Theme) -> list[alt.Chart]:
    """Draw the row, its answer and the way between; names beside them."""
    import altair as alt

    if found.start is None:
        return []
    layers, ends = [], [("now", found.start, "circle", theme.paper)]
    if found.end is not None:
        there, further = found.way
        layers += [
            _line(further, color=theme.ink, strokeDash=[1, 4]), _line(there, color=theme.ink)
        ]  # fmt: skip
        ends.append(("answer", found.end, "diamond", theme.ink))
    for name, place in marks:
        layers.append(_line(np.array([found.start, place]), color=MISS, strokeDash=[6, 4]))
        ends.append((name, place, "cross", MISS))
    lowest = int(np.argmin([place[1] for _, place, _, _ in ends]))
    for i, (name, place, shape, fill) in enumerate(ends):
        dot = alt.Chart(_placed(place[None]))
        text = dot.encode(text=alt.value(name))
        how = _beside(found, place, below=i == lowest and len(ends) > 1)
        layers += [
            dot.mark_point(size=190, filled=True, shape=shape, fill=fill, stroke=theme.ink,
                           strokeWidth=2, opacity=1, clip=True, tooltip=name),
            text.mark_text(color=theme.paper, stroke=theme.paper, strokeWidth=4, **how),
            text.mark_text(color=theme.ink, **how),
        ]  # fmt: skip
    return layers


def _beside(found: SegmentMap, place: Array, below: bool) -> dict[str, Any]:
    """Return where to write beside a point, inside the picture: below the lowest, above others.

    So what is written at two points is never in the same place, however near they are.
    """
    low, high = found.viewport
    right = (place - low)[0] < 0.75 * (high - low)[0]
    return {
        "dx": 11 if right else -11, "dy": 12 if below else -12, "baseline": "middle",
        "align": "left" if right else "right", "fontSize": 13, "fontWeight": 600,
    }  # fmt: skip


def _line(places: Array, **how: Any) -> alt.Chart:
    """Draw a line through points in their order, interrupted where one is missing."""
    import altair as alt

    data = _placed(places, at=range(len(places)))
    drawn: alt.Chart = alt.Chart(data).mark_line(clip=True, **{"strokeWidth": 2.2, **how})
    return drawn.encode(order="at:Q")


def _placed(places: Array, **more: Any) -> Any:
    """Return points as a table with columns x and y, and more columns."""
    import pandas as pd

    return pd.DataFrame({"x": places[:, 0], "y": places[:, 1], **more})
