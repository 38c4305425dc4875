"""The map of an answer, drawn by altair: on a page, or as SVG in a report."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from voicecf.app import charts
from voicecf.app.charts import INHERITED, LIGHT, Ink
from voicecf.app.style import colour
from voicecf.plots import SegmentMap

# The selection by which a row is picked.
PICK = "pick"
# Pixels: the height of a map; a map in a report.
MAP, REPORT = 430, (640, 380)


def segment_map(
    found: SegmentMap, marks: Sequence[tuple[str, NDArray[Any]]] = (), *, ink: Ink = LIGHT
) -> alt.LayerChart:
    """Draw the cells where a plane cuts them, rows that can be clicked, and an answer.

    Parameters
    ----------
    found : SegmentMap
    marks : sequence of (str, array of shape (2,))
        Further points, with what to call them.
    ink : Ink
    """
    cells = [
        charts.line(
            corners, tooltip=found.names[t], fill=colour(t), fillOpacity=0.13, stroke=colour(t),
            strokeOpacity=0.45, strokeWidth=1, interpolate="linear-closed",
        )
        for t, corners in found.cells
    ]  # fmt: skip
    # Clicks on dots alone: cells and ends have no row.
    pick = alt.selection_point(name=PICK, fields=["row"], on="@rows_marks:click", clear=False)
    rows = charts.dots(
        found.points, found.labels, found.names, found.axis_labels * found.of_columns
    )
    rows.data["row"], rows.name = found.rows, "rows"
    layers = [*cells, *_region(found), rows.add_params(pick), *_move(found, marks, ink)]
    scales = [alt.Scale(domain=ends, nice=False) for ends in np.transpose(found.viewport).tolist()]
    return charts.plain(alt.layer(*layers).encode(*charts.sides(found.axis_labels, scales)), MAP)


def map_svg(found: SegmentMap) -> str:
    """Draw the map as SVG in the colours of the text around it: it loads and runs nothing."""
    width, height = REPORT
    drawn = segment_map(found, ink=INHERITED).properties(width=width, height=height)
    labels = {"labelColor": INHERITED.text, "labelFontSize": 12}
    titles = {"titleColor": INHERITED.text, "titleFontSize": 13, "titleFontWeight": 500}
    file = StringIO()
    drawn.configure(
        background="transparent", aria=False, view={"stroke": None}, legend=labels,
        axis={"grid": False, **labels, **titles},
    ).save(file, format="svg")  # fmt: skip
    return file.getvalue()


def _region(found: SegmentMap) -> list[alt.Chart]:
    """Draw the part of the target that is firmly inside, if that is asked for."""
    if found.contracted is None or found.target is None or (found.alpha or 0.0) >= 0.999:
        return []
    outline = found.outline(found.contracted)
    return [charts.line(outline, color=colour(found.target), strokeDash=[5, 4], strokeWidth=1.6)]


def _move(
    found: SegmentMap, marks: Sequence[tuple[str, NDArray[Any]]], ink: Ink
) -> list[alt.Chart]:
    """Draw the row, its answer and the way between; names beside them."""
    if found.start is None:
        return []
    layers, ends = [], [("now", found.start, "circle", ink.paper)]
    if found.end is not None:
        there, further = found.way
        layers += [
            charts.line(further, color=ink.text, strokeDash=[1, 4]),
            charts.line(there, color=ink.text),
        ]
        ends.append(("answer", found.end, "diamond", ink.text))
    for name, place in marks:
        way = np.array([found.start, place])
        layers.append(charts.line(way, color=ink.miss, strokeDash=[6, 4]))
        ends.append((name, place, "cross", ink.miss))
    low, high = found.viewport
    for name, place, shape, fill in ends:
        dot = alt.Chart(charts.placed(place[None]))
        # Text to the left of a point that is near the right end, where there is no room.
        side = -1 if (place - low)[0] > 0.85 * (high - low)[0] else 1
        text = dot.encode(text=alt.value(name))
        how: dict[str, Any] = {"dx": 11 * side, "dy": -11, "fontSize": 13, "fontWeight": 600}
        how["align"] = "left" if side > 0 else "right"
        layers += [
            dot.mark_point(size=190, filled=True, shape=shape, fill=fill, stroke=ink.text,
                           strokeWidth=2, opacity=1, clip=True, tooltip=name),
            text.mark_text(color=ink.paper, stroke=ink.paper, strokeWidth=4, **how),
            text.mark_text(color=ink.text, **how),
        ]  # fmt: skip
    return layers
