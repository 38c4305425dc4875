"""The app's pictures: what the library computed, in the colours of the segments, as plain data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app_tables import fitted, people
from voicecf.app import charts
from voicecf.app.row import picture
from voicecf.app.row.answers import answer
from voicecf.app.row.mapping import answer_map
from voicecf.app.row.question import Question
from voicecf.app.segments import pictures
from voicecf.app.style import colour
from voicecf.plots import Plane, SegmentMap

NAMES = ("Students", "datum.x", "Retired <b>")
FIELDS = {"x", "y", "at", "row", "segment", "k", "score"}


@pytest.fixture(scope="module")
def found() -> SegmentMap:
    return answer_map(answer(fitted(), Question(3, margin=30), NAMES))


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a specification, data left out."""
    if isinstance(spec, dict):
        yield spec
        spec = [value for key, value in spec.items() if key != "datasets"]
    if isinstance(spec, list):
        for part in spec:
            yield from parts(part)


def layers(spec: dict[str, Any], kind: str) -> list[tuple[dict[str, Any], pd.DataFrame]]:
    """Return the marks of one kind, each with its data."""
    return [
        (layer, pd.DataFrame(spec["datasets"][layer["data"]["name"]]))
        for layer in spec["layer"]
        if layer["mark"]["type"] == kind
    ]


def test_a_map_shows_the_rows_and_cells_that_the_library_computed(found: SegmentMap) -> None:
    spec = picture.segment_map(found).to_dict()
    ((_, rows),) = layers(spec, "circle")
    assert np.array_equal(rows[["x", "y"]], found.points)
    assert np.array_equal(rows["row"], found.rows)
    assert rows["segment"].tolist() == [NAMES[t] for t in found.labels]
    drawn = {layer["mark"].get("fill"): corners for layer, corners in layers(spec, "line")}
    for t, corners in found.cells:
        assert np.array_equal(drawn[colour(t)][["x", "y"]], corners)


def test_a_map_shows_the_way_to_the_answer(found: SegmentMap) -> None:
    spec = picture.segment_map(found, ink=charts.DARK).to_dict()
    marks = {layer["mark"]["tooltip"]: at for layer, at in layers(spec, "point")}
    assert np.array_equal(marks["now"][["x", "y"]], [found.start])
    assert np.array_equal(marks["answer"][["x", "y"]], [found.end])
    there, further = found.way
    assert np.array_equal(there[[0, -1]], [found.start, found.end])
    assert np.array_equal(further[[0, -1]], [found.end, found.beyond])
    inked = [at for layer, at in layers(spec, "line") if layer["mark"].get("color") == "#f2f5f8"]
    assert [len(at) for at in inked] == [len(further), len(there)]


def test_a_segment_has_one_colour_in_all_pictures(found: SegmentMap) -> None:
    segments = fitted()
    rows = pictures.rows_by_segment(
        segments.prepared.frame, segments.labels, NAMES, ("age", "income")
    )
    ((circles, _),) = layers(picture.segment_map(found).to_dict(), "circle")
    for spec in (circles, rows.to_dict()):
        scale = spec["encoding"]["color"]["scale"]
        assert scale == {"domain": list(NAMES), "range": [colour(t) for t in range(3)]}


def test_names_that_begin_alike_keep_their_colours() -> None:
    segments = fitted()
    alike = tuple(f"{'Customers of the northern region, ' * 2}{t}" for t in range(3))
    spec = pictures.rows_by_segment(
        segments.prepared.frame, segments.labels, alike, ("age", "income")
    ).to_dict()
    (rows,) = spec["datasets"].values()
    assert [row["segment"] for row in rows] == [alike[t] for t in segments.labels]
    assert spec["encoding"]["color"]["scale"]["domain"] == list(alike)


def test_the_number_in_use_stands_out_and_every_number_can_be_clicked() -> None:
    spec = pictures.scores({2: 0.5, 3: 0.25, 4: 0.125}, 3).to_dict()
    bars, full = spec["layer"]
    assert bars["encoding"]["color"]["condition"]["test"] == "(datum.k === 3)"
    assert full["encoding"]["y2"] == {"value": "height"}
    (choose,) = spec["params"]
    assert choose["name"] == pictures.CHOOSE
    assert choose["select"]["fields"] == ["k"]


def test_names_from_the_data_are_never_fields_or_expressions() -> None:
    frame = people().rename(columns={"age": "datum['x']", "income": "a.b[0]:Q"})
    segments = fitted(frame)
    given = answer(segments, Question(0), NAMES)
    axes = ("datum['x']", "a.b[0]:Q")
    for drawn in (
        picture.segment_map(answer_map(given, axes), [("pairwise", np.zeros(2))]),
        pictures.rows_by_segment(segments.prepared.frame, segments.labels, NAMES, axes),
        pictures.scores({2: 0.5, 3: 0.25}, 3),
    ):
        said = list(parts(drawn.to_dict()))
        assert {part["field"] for part in said if "field" in part} <= FIELDS
        assert not [part for part in said if "expr" in part]


def test_a_map_in_a_report_takes_the_colours_of_the_text_around_it(found: SegmentMap) -> None:
    drawn = picture.map_svg(found)
    assert "Retired &lt;b&gt;" in drawn
    assert "currentColor" in drawn
    assert charts.LIGHT.text not in drawn
    assert charts.DARK.text not in drawn


def test_a_plane_holds_a_third_point() -> None:
    segments = fitted()
    cf = segments.voice.explain(segments.prepared.frame.head(1))
    third = segments.voice.learned_.origins[0] + np.arange(1.0, cf.points.shape[1] + 1)
    plane = Plane.of_move(cf, 0, also=third)
    seen = plane.project(np.vstack([third, cf.points[0]]))
    assert plane.coordinates(seen) == pytest.approx(np.vstack([third, cf.points[0]]))
