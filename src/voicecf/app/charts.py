"""Pictures, drawn by altair: on a page, or as SVG in a report. Names are titles, never fields."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from typing import Any, NamedTuple, TypeVar

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.style import ACCENT, QUIET, colour
from voicecf.output.wording import shortened
from voicecf.plots import SegmentMap

# The selection by which a row is picked.
PICK = "pick"
# Pixels: heights of a map, of rows by two columns, of scores; a map in a report.
MAP, ROWS, SCORES, REPORT = 430, 360, 170, (640, 380)
# Pixels that a legend has on a telephone, and those of a letter.
NARROW, LETTER = 300, 8
# Letters of an axis' title.
TITLE = 70
# Rows that a picture of two columns shows.
MOST = 1_500
# Numbers in tooltips: thousands apart, five digits.
FORMAT = ",.5~r"
Drawn = TypeVar("Drawn", alt.Chart, alt.LayerChart)
BARE: dict[str, Any] = {"domain": False, "ticks": False}


class Ink(NamedTuple):
    """What moves are drawn with and on, and the colour of a miss."""

    text: str
    paper: str
    miss: str


LIGHT = Ink("#16202a", "#ffffff", "#c23b22")
DARK = Ink("#f2f5f8", "#12171c", "#ff8066")
# The reader's own colours, whichever they are.
INHERITED = Ink("currentColor", "Canvas", "#c23b22")


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
        _line(corners, tooltip=found.names[t], fill=colour(t), fillOpacity=0.13, stroke=colour(t),
              strokeOpacity=0.45, strokeWidth=1, interpolate="linear-closed")
        for t, corners in found.cells
    ]  # fmt: skip
    # Clicks on dots alone: cells and ends have no row.
    pick = alt.selection_point(name=PICK, fields=["row"], on="@rows_marks:click", clear=False)
    rows = _dots(found.points, found.labels, found.names, found.axis_labels * found.of_columns)
    rows.data["row"], rows.name = found.rows, "rows"
    layers = [*cells, *_region(found), rows.add_params(pick), *_move(found, marks, ink)]
    scales = [alt.Scale(domain=ends, nice=False) for ends in np.transpose(found.viewport).tolist()]
    return _plain(alt.layer(*layers).encode(*_sides(found.axis_labels, scales)), MAP)


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


def rows_by_segment(
    frame: pd.DataFrame, labels: NDArray[np.int64], names: Sequence[str], axes: tuple[str, str]
) -> alt.Chart:
    """Draw rows by two columns, coloured by segment."""
    some = np.unique(np.linspace(0, len(frame) - 1, min(MOST, len(frame))).astype(int))
    places = np.column_stack([frame[name].to_numpy(dtype=np.float64)[some] for name in axes])
    drawn = _dots(places, labels[some], names, axes)
    return _plain(drawn.encode(*_sides(axes, [alt.Scale(zero=False, padding=8)] * 2)), ROWS)


def scores(values: dict[int, float], chosen: int) -> alt.Chart:
    """Draw how far apart segments are, by their number."""
    is_chosen = alt.datum.k == chosen
    data = pd.DataFrame({"k": list(values), "score": list(values.values())})
    drawn: alt.Chart = alt.Chart(data).mark_bar(cornerRadiusEnd=3).encode(
        alt.X("k:O", title="Number of segments", axis=alt.Axis(labelAngle=0, **BARE)),
        alt.Y("score:Q", title=None, axis=alt.Axis(tickCount=3, grid=True, **BARE)),
        color=alt.condition(is_chosen, alt.value(ACCENT), alt.value(QUIET)),
        opacity=alt.condition(is_chosen, alt.value(1.0), alt.value(0.45)),
        tooltip=[
            alt.Tooltip("k:O", title="Segments"),
            alt.Tooltip("score:Q", title="Silhouette", format=".3f"),
        ],
    )  # fmt: skip
    return _plain(drawn, SCORES)


def _plain(drawn: Drawn, height: int) -> Drawn:
    """Draw no frame and no grid."""
    bare: Drawn = drawn.properties(height=height).configure_view(stroke=None)
    return bare.configure_axis(grid=False)  # type: ignore[no-any-return]


def _sides(names: Sequence[str], scales: Sequence[alt.Scale]) -> list[Any]:
    """Return both axes, with their titles."""
    axis = alt.Axis(tickCount=6, labelPadding=6, **BARE)
    return [
        side(f"{field}:Q", title=shortened(name, TITLE), scale=scale, axis=axis)
        for side, field, name, scale in zip((alt.X, alt.Y), "xy", names, scales, strict=True)
    ]


def _dots(
    places: NDArray[Any], labels: NDArray[np.int64], names: Sequence[str], axes: Sequence[str]
) -> alt.Chart:
    """Draw rows in the colours of their segments; tooltips tell these, and values of `axes`."""
    data = _placed(places, segment=[names[t] for t in labels])
    scale = alt.Scale(domain=list(names), range=[colour(t) for t in range(len(names))])
    across = max(1, NARROW // (LETTER * max(map(len, names)) + 3 * LETTER))
    legend = alt.Legend(
        orient="top", title=None, symbolType="circle", symbolOpacity=1, columns=across,
        labelLimit=NARROW,
    )  # fmt: skip
    told = [alt.Tooltip("segment:N", title="Segment")]
    told += [
        alt.Tooltip(f"{field}:Q", title=shortened(name, TITLE), format=FORMAT)
        for field, name in zip("xy", axes, strict=False)
    ]
    drawn: alt.Chart = alt.Chart(data).mark_circle(size=34, opacity=0.62)
    colours = alt.Color("segment:N", scale=scale, legend=legend)
    return drawn.encode(color=colours, tooltip=told)


def _region(found: SegmentMap) -> list[alt.Chart]:
    """Draw the part of the target that is firmly inside, if that is asked for."""
    if found.contracted is None or found.target is None or (found.alpha or 0.0) >= 0.999:
        return []
    outline = found.outline(found.contracted)
    return [_line(outline, color=colour(found.target), strokeDash=[5, 4], strokeWidth=1.6)]


def _move(
    found: SegmentMap, marks: Sequence[tuple[str, NDArray[Any]]], ink: Ink
) -> list[alt.Chart]:
    """Draw the row, its answer and the way between; names beside them."""
    if found.start is None:
        return []
    layers, ends = [], [("now", found.start, "circle", ink.paper)]
    if found.end is not None:
        there, further = found.way
        layers += [_line(further, color=ink.text, strokeDash=[1, 4]), _line(there, color=ink.text)]
        ends.append(("answer", found.end, "diamond", ink.text))
    for name, place in marks:
        way = np.array([found.start, place])
        layers.append(_line(way, color=ink.miss, strokeDash=[6, 4]))
        ends.append((name, place, "cross", ink.miss))
    low, high = found.viewport
    for name, place, shape, fill in ends:
        dot = alt.Chart(_placed(place[None]))
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


def _line(places: NDArray[Any], **how: Any) -> alt.Chart:
    """Draw a line through points in their order, interrupted where one is missing."""
    data = _placed(places, at=range(len(places)))
    drawn: alt.Chart = alt.Chart(data).mark_line(clip=True, **{"strokeWidth": 2.2, **how})
    return drawn.encode(order="at:Q")


def _placed(places: NDArray[Any], **more: Any) -> pd.DataFrame:
    return pd.DataFrame({"x": places[:, 0], "y": places[:, 1], **more})
