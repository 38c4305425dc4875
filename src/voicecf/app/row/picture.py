"""The map of an answer, drawn by altair: on a page, or as SVG in a report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
from numpy.typing import NDArray

from voicecf.app import blocks, charts
from voicecf.app.charts import INHERITED, MISS, Tip
from voicecf.app.style import colour
from voicecf.app.words import percent
from voicecf.plots import LIGHT, SegmentMap, Theme

# The selection by which a row is picked.
PICK = "pick"
# Pixels: the height of a map; a map in a report.
MAP, REPORT = 430, (640, 380)
# How strongly a row is drawn: in the area of its own segment, in that of another.
SEEN, FAINT = 0.8, 0.22


def segment_map(
    found: SegmentMap,
    marks: Sequence[tuple[str, NDArray[Any]]] = (),
    *,
    tips: Sequence[Tip] = (),
    formats: Sequence[str] = (charts.FORMAT, charts.FORMAT),
    theme: Theme = LIGHT,
) -> alt.LayerChart:
    """Draw the cells where a plane cuts them, rows that can be clicked, and an answer.

    Parameters
    ----------
    found : SegmentMap
    marks : sequence of (str, array of shape (2,))
        Further points, with what to call them.
    tips : sequence of Tip
        What is told about the rows; their segments if there is none.
    formats : pair of str
        How numbers at the axes are written.
    theme : Theme
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
    rows = _rows(found, tips).add_params(pick)
    layers = [*cells, *_region(found), rows, *_move(found, marks, theme)]
    scales = [alt.Scale(domain=ends, nice=False) for ends in np.transpose(found.viewport).tolist()]
    sides = charts.sides(found.axis_labels, scales, formats)
    return charts.plain(alt.layer(*layers).encode(*sides), MAP)


def _rows(found: SegmentMap, tips: Sequence[Tip]) -> alt.Chart:
    """Draw rows in the colours of their segments, faintly in the areas of others."""
    off = found.drawn_in != found.labels
    tips = tips or [Tip("Segment", [found.names[t] for t in found.labels.tolist()])]
    drawn = charts.dots(found.points, found.labels, len(found.names), tips, off=off, row=found.rows)
    seen = alt.Scale(domain=[False, True], range=[SEEN, FAINT])
    return drawn.encode(opacity=alt.Opacity("off:N", scale=seen, legend=None))


def legend(found: SegmentMap) -> str:
    """Write which colour a segment has, and what faint dots are if there are any."""
    off = float((found.drawn_in != found.labels).mean()) if len(found.labels) else 0.0
    faint = (
        f"Faint dots ({percent(off)}): rows of another segment than the area they are drawn in; "
        "they differ in what is not shown."
    )
    return blocks.legend(found.names) + (blocks.paragraph(faint) if off else "")


def map_html(found: SegmentMap, formats: Sequence[str]) -> str:
    """Draw the map and its legend in the colours of the text around: nothing is loaded or run."""
    drawn = segment_map(found, formats=formats, theme=INHERITED)
    return legend(found) + charts.svg(drawn, *REPORT)


def _region(found: SegmentMap) -> list[alt.Chart]:
    """Draw the part of the target that is firmly inside, if that is asked for."""
    if found.contracted is None or found.target is None or (found.alpha or 0.0) >= 0.999:
        return []
    outline = found.outline(found.contracted)
    return [charts.line(outline, color=colour(found.target), strokeDash=[5, 4], strokeWidth=1.6)]


def _move(
    found: SegmentMap, marks: Sequence[tuple[str, NDArray[Any]]], theme: Theme
) -> list[alt.Chart]:
    """Draw the row, its answer and the way between; names beside them."""
    if found.start is None:
        return []
    layers, ends = [], [("now", found.start, "circle", theme.paper)]
    if found.end is not None:
        there, further = found.way
        layers += [
            charts.line(further, color=theme.ink, strokeDash=[1, 4]),
            charts.line(there, color=theme.ink),
        ]
        ends.append(("answer", found.end, "diamond", theme.ink))
    for name, place in marks:
        way = np.array([found.start, place])
        layers.append(charts.line(way, color=MISS, strokeDash=[6, 4]))
        ends.append((name, place, "cross", MISS))
    lowest = int(np.argmin([place[1] for _, place, _, _ in ends]))
    for i, (name, place, shape, fill) in enumerate(ends):
        dot = alt.Chart(charts.placed(place[None]))
        text = dot.encode(text=alt.value(name))
        how = _beside(found, place, below=i == lowest and len(ends) > 1)
        layers += [
            dot.mark_point(size=190, filled=True, shape=shape, fill=fill, stroke=theme.ink,
                           strokeWidth=2, opacity=1, clip=True, tooltip=name),
            text.mark_text(color=theme.paper, stroke=theme.paper, strokeWidth=4, **how),
            text.mark_text(color=theme.ink, **how),
        ]  # fmt: skip
    return layers


def _beside(found: SegmentMap, place: NDArray[Any], below: bool) -> dict[str, Any]:
    """Return where to write beside a point, inside the picture: below the lowest, above others.

    So what is written at two points is never in the same place, however near they are.
    """
    low, high = found.viewport
    right = (place - low)[0] < 0.75 * (high - low)[0]
    return {
        "dx": 11 if right else -11, "dy": 12 if below else -12, "baseline": "middle",
        "align": "left" if right else "right", "fontSize": 13, "fontWeight": 600,
    }  # fmt: skip
