"""The app's pictures: what the library computed, in the colours of the segments, as plain data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans

from app_tables import fitted, people
from voicecf import CFCLUST, Status, VoICE
from voicecf.app import charts
from voicecf.app.row.answers import answer, answer_map
from voicecf.app.row.page import map_legend
from voicecf.app.row.question import Objective, RowQuestion
from voicecf.app.segments import pictures
from voicecf.app.style import DAY, INHERITED, NIGHT, colour
from voicecf.plots import DARK, LIGHT, Plane, SegmentMap

NAMES = ("Students", "datum.x", "Retired <b>")
FIELDS = {"x", "y", "at", "row", "segment", "off", "k", "score"}


@pytest.fixture(scope="module")
def found() -> SegmentMap:
    return answer_map(answer(fitted(), RowQuestion(3, margin=30), NAMES))[0]


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
    spec = found.chart(DAY).to_dict()
    ((_, rows),) = layers(spec, "circle")
    assert np.array_equal(rows[["x", "y"]], found.points)
    assert np.array_equal(rows["row"], found.rows)
    assert np.array_equal(rows["segment"], found.labels)
    assert np.array_equal(rows["off"], found.labels != found.drawn_in)
    drawn = {layer["mark"].get("fill"): corners for layer, corners in layers(spec, "line")}
    for t, corners in found.cells:
        assert np.array_equal(drawn[colour(t)][["x", "y"]], corners)


def test_a_map_shows_the_way_to_the_answer(found: SegmentMap) -> None:
    spec = found.chart(NIGHT).to_dict()
    marks = {layer["mark"]["tooltip"]: at for layer, at in layers(spec, "point")}
    assert np.array_equal(marks["now"][["x", "y"]], [found.start])
    assert np.array_equal(marks["answer"][["x", "y"]], [found.end])
    there, further = found.way
    assert np.array_equal(there[[0, -1]], [found.start, found.end])
    assert np.array_equal(further[[0, -1]], [found.end, found.beyond])
    inked = [at for layer, at in layers(spec, "line") if layer["mark"].get("color") == DARK.ink]
    assert [len(at) for at in inked] == [len(further), len(there)]


def test_a_segment_has_one_colour_in_all_pictures(found: SegmentMap) -> None:
    ((circles, _),) = layers(found.chart(DAY).to_dict(), "circle")
    scale = circles["encoding"]["color"]["scale"]
    assert scale == {"domain": [0, 1, 2], "range": [colour(t) for t in range(3)]}
    segments = fitted()
    rows = pictures.rows_by_segment(
        segments.prepared.frame[["age", "income"]], segments.labels, NAMES
    ).to_dict()
    assert rows["encoding"]["color"]["scale"] == scale
    (drawn,) = rows["datasets"].values()
    assert [row["segment"] for row in drawn] == segments.labels.tolist()
    told = map_legend(found, NAMES)
    for t, name in enumerate(NAMES):
        assert f'style="--c:{colour(t)}"></span>{escape(name)}</span>' in told


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
    given = answer(segments, RowQuestion(0), NAMES)
    axes = ("datum['x']", "a.b[0]:Q")
    shown, told = answer_map(given, axes)
    for drawn in (
        shown.chart(told=told, marks=[("pairwise", np.zeros(2))]),
        pictures.scores({2: 0.5, 3: 0.25}, 3),
        pictures.rows_by_segment(segments.prepared.frame[[*axes]], segments.labels, NAMES),
    ):
        said = list(parts(drawn.to_dict()))
        fields = {part["field"] for part in said if "field" in part}
        assert {field for field in fields if not re.fullmatch(r"t\d", field)} <= FIELDS
        assert not [part for part in said if "expr" in part]


def test_a_map_shows_the_best_view_or_two_columns() -> None:
    segments = fitted()
    given = answer(segments, RowQuestion(0), NAMES)
    assert answer_map(given, ("visits", "age"))[0].axis_labels == ("visits", "age")
    locked = {"immutable": ["job", "visits"]}
    two = answer(segments, RowQuestion(0, objective=Objective.LEAST, allowed=locked), NAMES)
    assert set(answer_map(two)[0].axis_labels) == {"age", "income"}
    least = answer(segments, RowQuestion(0, 0, objective=Objective.LEAST, margin=50), NAMES)
    assert len(least.card.changes) > 2
    assert not answer_map(least)[0].of_columns


def test_rows_in_the_area_of_another_segment_are_faint_and_said_to_be() -> None:
    segments = fitted()
    given = answer(segments, RowQuestion(0), NAMES)
    shown, _ = answer_map(given, ("age", "visits"))
    frame = segments.prepared.frame
    moved = frame.iloc[np.zeros(len(shown.rows), dtype=int)].reset_index(drop=True)
    for column in shown.axis_labels:  # the row, with what two columns are in the others
        moved[column] = frame[column].to_numpy()[shown.rows]
    drawn_in = segments.model.predict(moved)
    assert np.array_equal(shown.drawn_in, drawn_in)
    assert (drawn_in != shown.labels).any()
    assert "Faint dots" in map_legend(shown, NAMES)
    alone = fitted(people()[["age", "visits"]])
    flat, _ = answer_map(answer(alone, RowQuestion(0), NAMES))
    assert np.array_equal(flat.drawn_in, alone.labels[flat.rows])
    assert "Faint dots" not in map_legend(flat, NAMES)


def test_a_tip_tells_name_segment_axes_and_what_changes() -> None:
    segments = fitted()
    given = answer(segments, RowQuestion(0), NAMES)
    shown, told = answer_map(given, ("income", "visits"))
    changed = [change.column for change in given.card.changes]
    assert list(told) == ["Row", "Segment", *dict.fromkeys(["income", "visits", *changed])]
    assert told["Row"].tolist()[3:4] == segments.prepared.called(shown.rows[3:4])
    assert told["income"].tolist() == segments.prepared.frame["income"][shown.rows].tolist()


@pytest.mark.parametrize("end", [(0.0, 0.0), (0.5, 0.001), (-0.99, 0.0), (0.99, 0.99)])
@pytest.mark.parametrize("start", [(0.0, 0.0), (0.98, -0.98), (-0.98, 0.98)])
def test_what_is_written_at_points_is_apart_and_inside(found: SegmentMap, start, end) -> None:
    low, high = (np.array(side) for side in ((-1.0, -1.0), (1.0, 1.0)))
    ends = {"now": np.array(start), "answer": np.array(end)}
    shown = replace(
        found, viewport=(low, high), start=ends["now"], end=ends["answer"],
        trail=np.array([start, end]), beyond=ends["answer"],
    )  # fmt: skip
    width, height = 300, 430
    boxes = {}
    for layer, at in layers(shown.chart().to_dict(), "text"):
        mark, name = layer["mark"], layer["encoding"]["text"]["value"]
        x = (at["x"][0] + 1) / 2 * width + mark["dx"]
        y = (1 - at["y"][0]) / 2 * height + mark["dy"]
        wide = 8 * len(name)
        left = x if mark["align"] == "left" else x - wide
        boxes[name] = (left, left + wide, y - 7, y + 7)
        assert left >= 0
        assert left + wide <= width
    (l1, r1, t1, b1), (l2, r2, t2, b2) = boxes["now"], boxes["answer"]
    assert r1 <= l2 or r2 <= l1 or b1 <= t2 or b2 <= t1


def test_a_map_in_a_report_takes_the_colours_of_the_text_around_it(found: SegmentMap) -> None:
    drawn = map_legend(found, NAMES) + charts.svg(found.chart(INHERITED), 640, 380)
    assert "Retired &lt;b&gt;" in drawn
    assert "currentColor" in drawn
    assert LIGHT.ink not in drawn
    assert DARK.ink not in drawn


def test_a_plane_holds_a_third_point() -> None:
    segments = fitted()
    cf = segments.voice.explain(segments.prepared.frame.head(1))
    third = segments.voice.learned_.origins[0] + np.arange(1.0, cf.points.shape[1] + 1)
    plane = Plane.of_move(cf, 0, also=third)
    seen = plane.project(np.vstack([third, cf.points[0]]))
    assert plane.coordinates(seen) == pytest.approx(np.vstack([third, cf.points[0]]))


def test_a_map_shows_a_miss_in_the_cell_that_it_lands_in() -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(size=(120, 4)) + 3 * np.eye(4)[np.arange(120) % 4]
    model = KMeans(4, n_init=4, random_state=0).fit(values)
    exact = VoICE(model, contraction=1.0, bounds=None).fit(values).explain(values, target="each")
    pairwise = CFCLUST(model).fit(values).explain(values, target="each")
    misses = np.flatnonzero(pairwise.status == Status.MISSED)
    assert len(misses) > 5
    for i in misses[:5].tolist():
        plane = Plane.of_move(exact, i, also=pairwise.points[i])
        place = plane.project(pairwise.points[[i]])[0]
        shown = SegmentMap.from_voice(VoICE(model).fit(values), values, plane, exact, i)
        inside = [t for t, corners in shown.cells if holds(corners, place)]
        assert model.predict(pairwise.points[[i]])[0] in inside
        assert pairwise.target[i] not in inside


def holds(corners: np.ndarray, point: np.ndarray) -> bool:
    """Whether a convex polygon holds a point."""
    edges = np.roll(corners, -1, axis=0) - corners
    away = point - corners
    cross = edges[:, 0] * away[:, 1] - edges[:, 1] * away[:, 0]
    return bool((cross >= -1e-9).all() or (cross <= 1e-9).all())
