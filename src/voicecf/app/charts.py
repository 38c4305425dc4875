"""Pictures as vega-lite, drawn by the browser. Names of columns are titles here, never fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.columns import short
from voicecf.app.style import ACCENT, QUIET, colour
from voicecf.plots import SegmentMap

Spec = dict[str, Any]
# The selection by which a row is picked.
PICK = "pick"
HEIGHT = 430
# What moves are drawn with and on: ink, paper and the colour of a miss, light and dark.
Ink = tuple[str, str, str]
INK: tuple[Ink, Ink] = (("#16202a", "#ffffff", "#c23b22"), ("#f2f5f8", "#12171c", "#ff8066"))


def segment_map(
    found: SegmentMap,
    names: Sequence[str],
    marks: Sequence[tuple[str, NDArray[Any]]] = (),
    *,
    dark: bool = False,
) -> Spec:
    """Draw the cells where a plane cuts them, rows that can be clicked, and an answer.

    Parameters
    ----------
    found : SegmentMap
    names : sequence of str
        Of the segments.
    marks : sequence of (str, array of shape (2,))
        Further points, with what to call them.
    dark : bool
        Whether the page is dark.
    """
    ink = INK[dark]
    layers = [_cells(found), *_outline(found), _points(found, names), *_move(found, marks, ink)]
    return _spec(layers)


def _spec(layers: list[Spec]) -> Spec:
    return {
        "height": HEIGHT,
        "layer": layers,
        "config": {"view": {"stroke": None}, "axis": {"grid": False, "titleFontWeight": 500}},
        "resolve": {"scale": {"color": "shared"}},
        "usermeta": {"embedOptions": {"actions": False}},
        "padding": {"left": 4, "right": 8, "top": 6, "bottom": 4},
        "autosize": {"type": "fit", "contains": "padding"},
    }


def _axes(found: SegmentMap) -> dict[str, Spec]:
    low, high = found.viewport
    labels = [short(label, 70) for label in found.axis_labels]
    return {
        side: {
            "field": side, "type": "quantitative", "title": label,
            "scale": {"domain": [float(low[i]), float(high[i])], "nice": False, "zero": False},
            "axis": {"tickCount": 6, "domain": False, "ticks": False, "labelPadding": 6},
        }
        for i, (side, label) in enumerate(zip("xy", labels, strict=True))
    }  # fmt: skip


def _colours(k: int, names: Sequence[str], legend: bool = False) -> Spec:
    shown = {"orient": "top", "title": None, "symbolType": "circle", "symbolOpacity": 1}
    return {
        "field": "segment", "type": "nominal", "legend": shown if legend else None,
        "scale": {"domain": [short(n, 30) for n in names], "range": [colour(t) for t in range(k)]},
    }  # fmt: skip


def _cells(found: SegmentMap) -> Spec:
    """Draw the cells as filled paths, a cell's corners in order."""
    values = [
        {"x": float(x), "y": float(y), "cell": int(t), "at": i, "tint": colour(t)}
        for t, corners in found.cells
        for i, (x, y) in enumerate(corners)
    ]
    return {
        "data": {"values": values},
        "mark": {"type": "line", "filled": True, "fillOpacity": 0.13, "strokeWidth": 1,
                 "strokeOpacity": 0.45, "clip": True, "interpolate": "linear-closed"},
        "encoding": {
            **_axes(found), "order": {"field": "at", "type": "quantitative"},
            "detail": {"field": "cell"},
            "fill": {"field": "tint", "type": "nominal", "scale": None, "legend": None},
            "stroke": {"field": "tint", "type": "nominal", "scale": None, "legend": None},
        },
    }  # fmt: skip


def _outline(found: SegmentMap) -> list[Spec]:
    """Draw the part of the target that is firmly inside, if that is asked for."""
    corners = found.contracted
    if corners is None or len(corners) < 3 or found.alpha is None or found.alpha >= 0.999:
        return []
    values = [{"x": float(x), "y": float(y), "at": i} for i, (x, y) in enumerate(corners)]
    return [{
        "data": {"values": values},
        "mark": {"type": "line", "interpolate": "linear-closed", "strokeDash": [5, 4],
                 "strokeWidth": 1.6, "color": colour(found.target or 0), "clip": True},
        "encoding": {**_axes(found), "order": {"field": "at", "type": "quantitative"}},
    }]  # fmt: skip


def _points(found: SegmentMap, names: Sequence[str]) -> Spec:
    values = pd.DataFrame({
        "x": found.points[:, 0], "y": found.points[:, 1], "row": found.rows,
        "segment": [short(names[t], 30) for t in found.labels],
    })  # fmt: skip
    return {
        "data": {"values": values.dropna().to_dict("records")},
        "params": [
            {"name": PICK, "select": {"type": "point", "fields": ["row"], "clear": False}}
        ],
        "mark": {"type": "circle", "size": 34, "opacity": 0.62, "clip": True, "cursor": "pointer"},
        "encoding": {
            **_axes(found), "color": _colours(found.n_clusters, names, legend=True),
            "tooltip": [{"field": "segment", "title": "Segment"}],
        },
    }  # fmt: skip


def _move(found: SegmentMap, marks: Sequence[tuple[str, NDArray[Any]]], ink: Ink) -> list[Spec]:
    """Draw the row, its answer and the way between; names beside them."""
    if found.start is None:
        return []
    ends: list[tuple[str, Any, str]] = [("now", found.start, "row")]
    layers = []
    if found.end is not None:
        ends.append(("answer", found.end, "answer"))
        if found.beyond is not None:
            layers.append(_line(found, found.end, found.beyond, ink[0], dash=[1, 4]))
        layers.append(_line(found, found.start, found.end, ink[0]))
    for name, place in marks:
        ends.append((name, place, "mark"))
        layers.append(_line(found, found.start, place, ink[2], dash=[6, 4]))
    values = [
        {"x": float(at[0]), "y": float(at[1]), "name": name, "kind": kind}
        for name, at, kind in ends
    ]
    shapes = {"domain": ["row", "answer", "mark"], "range": ["circle", "diamond", "cross"]}
    fills = {"domain": ["row", "answer", "mark"], "range": [ink[1], ink[0], ink[2]]}
    base = {"data": {"values": values}, "encoding": _axes(found)}
    layers.append({
        **base,
        "mark": {"type": "point", "size": 190, "filled": True, "stroke": ink[0],
                 "strokeWidth": 2, "opacity": 1, "clip": True},
        "encoding": {
            **_axes(found),
            "shape": {"field": "kind", "scale": shapes, "legend": None},
            "fill": {"field": "kind", "scale": fills, "legend": None},
        },
    })  # fmt: skip
    for halo in (True, False):
        text: Spec = {"type": "text", "dx": 11, "dy": -11, "align": "left", "fontSize": 13,
                      "fontWeight": 600, "color": ink[0]}  # fmt: skip
        if halo:
            text |= {"stroke": ink[1], "strokeWidth": 4, "strokeOpacity": 0.85}
        layers.append({
            **base, "mark": text,
            "encoding": {**_axes(found), "text": {"field": "name", "type": "nominal"}},
        })  # fmt: skip
    return layers


def _line(found: SegmentMap, start: Any, end: Any, tint: str, dash: Sequence[int] = (1, 0)) -> Spec:
    values = [{"x": float(p[0]), "y": float(p[1]), "at": i} for i, p in enumerate((start, end))]
    mark = {"type": "line", "color": tint, "strokeWidth": 2.2,
            "clip": True, "strokeDash": list(dash)}  # fmt: skip
    return {
        "data": {"values": values}, "mark": mark,
        "encoding": {**_axes(found), "order": {"field": "at", "type": "quantitative"}},
    }  # fmt: skip


def scores(values: dict[int, float], chosen: int) -> Spec:
    """Draw how far apart segments are, by their number."""
    data = [{"k": k, "score": round(v, 3), "chosen": k == chosen} for k, v in values.items()]
    return {
        "height": 170,
        "data": {"values": data},
        "mark": {"type": "bar", "cornerRadiusEnd": 3, "width": {"band": 0.62}},
        "encoding": {
            "x": {"field": "k", "type": "ordinal", "title": "Number of segments",
                  "axis": {"labelAngle": 0, "ticks": False, "domain": False}},
            "y": {"field": "score", "type": "quantitative", "title": None,
                  "axis": {"tickCount": 3, "grid": True, "domain": False, "ticks": False}},
            "color": {"condition": {"test": "datum.chosen", "value": ACCENT}, "value": QUIET},
            "opacity": {"condition": {"test": "datum.chosen", "value": 1}, "value": 0.45},
            "tooltip": [{"field": "k", "title": "Segments"},
                        {"field": "score", "title": "Silhouette"}],
        },
        "config": {"view": {"stroke": None}},
    }  # fmt: skip


def scatter(
    frame: pd.DataFrame, labels: NDArray[np.int64], names: Sequence[str], x: str, y: str,
    most: int = 1500,
) -> Spec:  # fmt: skip
    """Draw rows by two columns, coloured by segment."""
    rows = np.unique(np.linspace(0, len(frame) - 1, min(most, len(frame))).astype(int))
    values = pd.DataFrame({
        "x": frame[x].to_numpy()[rows], "y": frame[y].to_numpy()[rows],
        "segment": [short(names[t], 30) for t in labels[rows]],
    })  # fmt: skip
    axis = {"grid": False, "tickCount": 6, "domain": False, "ticks": False}
    sides = {
        side: {"field": side, "type": "quantitative", "title": short(name, 60), "axis": axis,
               "scale": {"zero": False}}
        for side, name in (("x", x), ("y", y))
    }  # fmt: skip
    return {
        "height": 360,
        "data": {"values": values.dropna().to_dict("records")},
        "mark": {"type": "circle", "size": 36, "opacity": 0.6},
        "encoding": {
            **sides, "color": _colours(len(names), names, legend=True),
            "tooltip": [{"field": "segment", "title": "Segment"}],
        },
        "config": {"view": {"stroke": None}},
    }  # fmt: skip
