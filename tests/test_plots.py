"""What the displays hand over, judged by the model's own predict and by numpy."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from html import escape

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

from voicecf import CFCLUST, SHARK, Status, VoICE
from voicecf.errors import ColumnError, DataError, OptionError
from voicecf.plots import (
    ChangeCard,
    ContractionScores,
    Plane,
    SegmentMap,
    Tradeoff,
    Transitions,
    Weights,
)

WINES = load_wine(as_frame=True).data


def kmeans(k: int = 3) -> KMeans:
    return KMeans(k, n_init=3, random_state=0)


def customers(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(7)
    group = rng.integers(3, size=n)
    return pd.DataFrame({
        "age": 24 + 13 * group + rng.integers(-5, 6, n),
        "visits": rng.poisson(np.array([6, 3, 1])[group]),
        "income": np.round(1_700 + 800 * group + rng.normal(0, 220, n), -1),
        "job": np.choose(group, ["student", rng.choice(["clerk", "chef"], n), "retired"]),
    })  # fmt: skip


def customers_pipeline():
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    encode = make_column_transformer(
        (numbers, ["age", "visits", "income"]), (OneHotEncoder(), ["job"])
    )
    return make_pipeline(encode, kmeans())


LOG = FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one")
MODELS = {
    "bare": lambda: kmeans(),
    "scaled": lambda: make_pipeline(StandardScaler(), kmeans()),
    "weighted": lambda: make_pipeline(StandardScaler(), SHARK(4, random_state=0)),
    "many": lambda: make_pipeline(StandardScaler(), kmeans(20)),
    "mixed": lambda: make_pipeline(StandardScaler(), PCA(4), kmeans(5)),
    "log": lambda: make_pipeline(LOG, StandardScaler(), kmeans(5)),
    "power": lambda: make_pipeline(PowerTransformer(), kmeans(5)),
    "quantile": lambda: make_pipeline(QuantileTransformer(n_quantiles=20), kmeans(5)),
}
CURVED = ("log", "power", "quantile")


@cache
def wines_by(name: str) -> VoICE:
    return VoICE(MODELS[name]()).fit(WINES)


@cache
def customers_voice() -> VoICE:
    return VoICE(customers_pipeline()).fit(customers())


# Judges.


def inside(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Tell which points a polygon holds: a ray to the right crosses its edges an odd number."""
    x, y = points.T
    odd = np.zeros(len(points), dtype=bool)
    for (x0, y0), (x1, y1) in zip(polygon, np.roll(polygon, -1, axis=0), strict=True):
        if y0 == y1:
            continue
        crosses = (y0 > y) != (y1 > y)
        odd ^= crosses & (x < x0 + (y - y0) / (y1 - y0) * (x1 - x0))
    return odd


def from_edges(polygon: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Distance of each point from the edges of a polygon."""
    ends = np.roll(polygon, -1, axis=0)
    best = np.full(len(points), np.inf)
    for a, b in zip(polygon, ends, strict=True):
        length = ((b - a) ** 2).sum()
        share = np.clip((points - a) @ (b - a) / length, 0, 1) if length else np.zeros(len(points))
        best = np.minimum(best, np.linalg.norm(points - a - share[:, None] * (b - a), axis=1))
    return best


def random_points(found: SegmentMap, n: int = 1500) -> np.ndarray:
    return np.random.default_rng(3).uniform(*found.viewport, size=(n, 2))


def clusters_drawn(found: SegmentMap, points: np.ndarray, away: float) -> np.ndarray:
    """Cluster of the only polygon that holds each point; -1 closer than `away` to an edge."""
    low, high = found.viewport
    scaled = (points - low) / (high - low)
    held, near = np.zeros((2, len(points)), dtype=np.int64)
    label = np.full(len(points), -1)
    for cluster, corners in found.cells:
        corners = (corners - low) / (high - low)
        holds = inside(corners, scaled)
        held += holds
        near |= from_edges(corners, scaled) < away
        label[holds] = cluster
    clear = near == 0
    assert clear.mean() > 0.9
    assert (held[clear] == 1).all()  # the cells leave no gap and do not overlap
    return np.where(clear, label, -1)


def assert_predicted(found: SegmentMap, plane: Plane, voice: VoICE, away: float = 1e-9) -> None:
    points = random_points(found)
    drawn = clusters_drawn(found, points, away)
    known = drawn >= 0
    np.testing.assert_array_equal(voice.predict(plane.rows(points[known])), drawn[known])


# Maps.


@pytest.mark.parametrize("name", MODELS)
def test_cells_of_two_columns_are_what_predict_says(name):
    voice = wines_by(name)
    away = 2e-3 if name in CURVED else 1e-9  # bent edges are drawn as many short ones
    seen = set()
    for row in (0, 70, 150):
        for pair in (("alcohol", "proline"), ("flavanoids", "hue")):
            plane = Plane.of_columns(voice, WINES.iloc[[row]], *pair)
            found = SegmentMap.from_voice(voice, WINES, plane)
            assert_predicted(found, plane, voice, away)
            seen |= {cluster for cluster, _ in found.cells}
    assert len(seen) > 1


@pytest.mark.parametrize("name", ["bare", "scaled", "weighted", "many", "mixed"])
def test_cells_of_a_move_are_what_predict_says(name):
    voice = wines_by(name)
    cf = voice.explain(WINES.iloc[[0, 100]], target="each")
    for i in (0, 1, len(cf) - 1):
        plane = Plane.of_move(cf, i)
        found = SegmentMap.from_voice(voice, WINES, plane, cf, i)
        assert_predicted(found, plane, voice)


def test_cells_are_exact_beside_categories_and_whole_numbers():
    voice, table = customers_voice(), customers()
    plane = Plane.of_columns(voice, table.iloc[[5]], "age", "income")
    assert_predicted(SegmentMap.from_voice(voice, table, plane), plane, voice)


def test_a_move_across_categories_is_cut_as_the_model_has_it():
    voice, table = customers_voice(), customers()
    cf = voice.explain(table.head(3), target="each")
    plane = Plane.of_move(cf, 0)
    found = SegmentMap.from_voice(voice, table, plane, cf, 0)
    points = random_points(found)
    drawn = clusters_drawn(found, points, 1e-9)
    made = plane.coordinates(points)  # between categories there are no rows of the table
    known = drawn >= 0
    np.testing.assert_array_equal(voice.model_[-1].predict(made)[known], drawn[known])


def test_coinciding_centroids_leave_no_cell_twice():
    voice = VoICE.from_centers([[0.0, 0], [4, 1], [4, 1], [2, 9]])
    plane = Plane.of_columns(voice, [[1.0, 1.0]], 0, 1)
    found = SegmentMap.from_voice(voice, None, plane)
    assert [cluster for cluster, _ in found.cells] == [0, 1, 3]
    assert_predicted(found, plane, voice)


def test_columns_without_weight_leave_one_cell():
    voice = VoICE.from_centers([[0.0, 0, 0], [1, 1, 4]], weights=[0, 0, 1])
    found = SegmentMap.from_voice(voice, None, Plane.of_columns(voice, [[0.0, 0, 1]], 0, 1))
    assert [cluster for cluster, _ in found.cells] == [0]


def test_one_column_has_a_map():
    X = np.array([[0.0], [1.0], [8.0], [9.0]])
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
    cf = voice.explain(X)
    plane = Plane.most_telling(cf, 0)
    found = SegmentMap.from_voice(voice, X, plane, cf, 0)
    assert sorted(cluster for cluster, _ in found.cells) == [0, 1]
    assert_predicted(found, plane, voice)


@pytest.mark.parametrize("name", ["bare", "weighted"])
def test_the_contracted_cell_is_the_cell_shrunk_to_its_centroid(name):
    voice = wines_by(name)
    cf = voice.explain(WINES.iloc[[0, 100]], target="each")
    plane = Plane.of_move(cf, 1)
    found = SegmentMap.from_voice(voice, WINES, plane, cf, 1)
    points = random_points(found)
    size = found.viewport[1] - found.viewport[0]
    clear = from_edges(found.contracted / size, points / size) > 1e-9
    z, centre = plane.coordinates(points), voice.partition_.centers[found.target]
    grown = centre + (z - centre) / voice.alpha_[found.target]
    model = voice.partition_.model
    within = model.predict(grown if name == "weighted" else voice.space_.table(grown))
    shrunk = inside(found.contracted, points)
    np.testing.assert_array_equal((within == found.target)[clear], shrunk[clear])
    assert shrunk.any()


def test_the_box_is_the_rectangle_of_bounds_and_rules():
    voice = wines_by("scaled")
    row = WINES.iloc[[0]]
    words = {"bounds": {"alcohol": (12.0, 15.0)}, "increase_only": ["proline"]}
    cf = voice.explain(row, target=0, **words)
    plane = Plane.of_columns(voice, row, "alcohol", "proline")
    box = SegmentMap.from_voice(voice, WINES, plane, cf, 0).box
    own, most = float(row["proline"].iloc[0]), WINES["proline"].max()
    right = WINES["alcohol"].max() * 1.05  # the bound is beyond the picture
    np.testing.assert_allclose(box.min(axis=0), [12.0, own], rtol=1e-12)
    np.testing.assert_allclose(box[:, 1].max(), most, rtol=1e-12)
    assert box[:, 0].max() <= right


def test_start_end_and_beyond_lie_on_the_move():
    X = load_iris().data[:, :2]
    voice = VoICE(kmeans()).fit(X)
    cf = voice.explain(X[:20], target="each")
    for i in range(len(cf)):
        if not cf.feasible[i]:
            continue
        plane = Plane.of_columns(voice, X[cf.row[i]], 0, 1)
        found = SegmentMap.from_voice(voice, X, plane, cf, i)
        row = X[cf.row[i]]
        np.testing.assert_allclose(found.start, row)
        np.testing.assert_allclose(found.end, cf.points[i])
        low, high = found.viewport
        full = row + cf.rho[i] * (cf.points[i] - row)
        if ((full >= low) & (full <= high)).all():
            np.testing.assert_allclose(found.beyond, full, rtol=1e-9)
        else:  # clipped: on the frame, and in the same direction
            way, move = found.beyond - row, cf.points[i] - row
            assert abs(way[0] * move[1] - way[1] * move[0]) < 1e-9
            assert np.isclose([*(found.beyond - low), *(found.beyond - high)], 0, atol=1e-9).any()


def test_rows_are_where_their_columns_say():
    voice = wines_by("power")
    plane = Plane.of_columns(voice, WINES.iloc[[0]], "alcohol", "proline")
    found = SegmentMap.from_voice(voice, WINES, plane, max_points=50)
    picked = WINES.iloc[found.rows]
    assert len(picked) == 50
    np.testing.assert_allclose(found.points, picked[["alcohol", "proline"]], rtol=1e-6)
    np.testing.assert_array_equal(found.labels, voice.predict(picked))
    assert list(found.table().columns) == ["row", "x", "y", "cluster"]


def test_without_data_there_are_cells_and_the_answer():
    voice = wines_by("bare")
    cf = voice.explain(WINES.head(1), target="each")
    found = SegmentMap.from_voice(voice, None, Plane.most_telling(cf, 0), cf, 0)
    assert found.points.shape == (0, 2)
    assert len(found.cells) > 0
    low, high = found.viewport
    for place in (found.start, found.end):
        assert ((place > low) & (place < high)).all()


def test_a_map_tells_what_it_does_not_show():
    voice = wines_by("scaled")
    cf = voice.explain(WINES.head(1), target="each")
    plane = Plane.of_columns(voice, WINES.head(1), "ash", "hue", name="row 0")
    note = SegmentMap.from_voice(voice, WINES, plane, cf, 0).note
    assert note.startswith("Exact where the other columns are as in row 0")
    assert "also changes" in note
    assert SegmentMap.from_voice(voice, WINES, Plane.of_move(cf, 0), cf, 0).note.startswith(
        "A projection:"
    )


# Planes.


@pytest.mark.parametrize("objective", ["cost", "prefix"])
@pytest.mark.parametrize("name", ["bare", "scaled", "mixed", "log"])
def test_the_most_telling_plane_holds_the_row_and_its_answer(name, objective):
    cf = wines_by(name).explain(WINES.iloc[::40], target="each", objective=objective)
    for i in np.flatnonzero(cf.feasible):
        plane = Plane.most_telling(cf, i)
        for z in (cf.outcome.rows.points[cf.row[i]], cf.points[i]):
            seen = plane.project(z[None])
            back = plane.origin + seen @ plane.directions
            np.testing.assert_allclose(back[0], z, rtol=1e-7, atol=1e-7)
        if cf.n_changed[i] <= 2:
            changed = set(cf[i].changes()["feature"])
            assert plane.of_two_columns
            assert changed <= set(plane.axis_labels)


def test_what_may_not_change_is_no_part_of_the_second_direction_if_it_can_be_helped():
    voice = wines_by("scaled")
    cf = voice.explain(WINES.iloc[[100]], target="each", immutable=["proline", "hue"])
    plane = Plane.of_move(cf, int(np.flatnonzero(cf.feasible)[0]))
    assert plane.second[[WINES.columns.get_loc(c) for c in ("proline", "hue")]].tolist() == [0, 0]


def test_an_infeasible_row_has_a_plane_towards_its_target():
    voice = wines_by("scaled")
    cf = voice.explain(WINES.head(1), target=0, immutable=list(WINES.columns[:-1]))
    assert not cf.feasible[0]
    found = SegmentMap.from_voice(voice, WINES, Plane.most_telling(cf, 0), cf, 0)
    assert 0 in [cluster for cluster, _ in found.cells]
    assert found.end is None
    assert found.title == "Row 0 cannot move from cluster 2 to 0"


def test_a_category_is_no_axis():
    with pytest.raises(ColumnError, match=r"'job' is a category.*'age', 'visits', 'income'"):
        Plane.of_columns(customers_voice(), customers().head(1), "age", "job")


def test_a_plane_needs_two_columns_and_one_row():
    voice = customers_voice()
    with pytest.raises(ColumnError, match="given twice"):
        Plane.of_columns(voice, customers().head(1), "age", "age")
    with pytest.raises(DataError, match="one row; 2 were given"):
        Plane.of_columns(voice, customers().head(2), "age", "visits")


# Cards.


def test_a_card_has_what_the_answer_and_its_ranges_have():
    voice, table = customers_voice(), customers()
    cf = voice.explain(table.head(6), target="each")
    for i in np.flatnonzero(cf.feasible):
        short = cf[i].rounded()
        card, ranges = ChangeCard.from_counterfactuals(cf, i), short.ranges(0)
        made = card.table()
        assert made["column"].tolist() == cf[i].changes()["feature"].tolist()
        assert (made["low"].isna() | (made["low"] >= ranges["low"])).all()
        assert (made["high"].isna() | (made["high"] <= ranges["high"])).all()
        assert (made["low"].isna() | (made["low"] <= made["high"])).all()
        np.testing.assert_array_equal(made["binds_high"], ranges["binds_high"])
        before, after = table.iloc[[cf.row[i]]], short.to_frame()
        for change in card.changes:
            assert change.before == before[change.column].iloc[0]
            assert change.after == after[change.column].iloc[0]
            if change.is_number:
                column = table[change.column]
                assert change.observed == (column.min(), column.max())
        assert sum(change.share for change in card.changes) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize(
    ("least", "bound", "unit", "said"),
    [
        (1.51, None, "€", "may be €1.51 (end of the data) to €"),
        (1.51, None, "kg", "may be 1.51 kg (end of the data) to "),
        (-1234.56, None, "€", "may be -€1234.56 (end of the data) to €"),
        (1.514567, None, "€", "may be €1.52 (end of the data) to €"),
        (0.12345678, None, "kg", "may be 0.123457 kg (end of the data) to "),
        (1.51, 1.789, "€", "may be €1.789 (your bound) to €"),
    ],
)
def test_a_card_tells_the_end_of_the_data_and_a_bound_in_their_own_digits(
    least, bound, unit, said
):  # fmt: skip
    x = np.array([least, *np.linspace(200, 320, 30), *np.linspace(600, 700, 30)])
    model = KMeans(2, n_init=3, random_state=0)
    voice = VoICE(model, units={"x": unit}).fit(pd.DataFrame({"x": x}))
    bounds = {} if bound is None else {"x": (bound, None)}
    cf = voice.explain(pd.DataFrame({"x": [650.0]}), plausible=None, bounds=bounds)
    (change,) = ChangeCard.from_counterfactuals(cf).changes
    assert change.range_text.startswith(said)
    assert change.low >= max(least, bound or least)


def test_a_missing_value_is_said_to_be_missing():
    table = customers().astype({"age": float})
    voice = VoICE(customers_pipeline()).fit(table)
    one = table.head(1).assign(age=np.nan)
    card = ChangeCard.from_counterfactuals(voice.explain(one, target="each"), 0)
    age = next(change for change in card.changes if change.column == "age")
    assert age.texts[0] == "missing"


def test_a_card_without_an_answer_says_why():
    cf = customers_voice().explain(
        customers().head(1), 2, immutable=["age", "income", "job"], bounds={"visits": (..., "+2")}
    )
    card = ChangeCard.from_counterfactuals(cf, 0)
    assert card.changes == []
    assert card.title == "Row 0 cannot move from cluster 1 to 2."
    assert "may not change" in card.reason
    assert "unlock" in card.reason
    assert len(card.table()) == 0


def test_a_row_that_is_there_already_has_an_empty_card():
    voice, one = customers_voice(), customers().head(1)
    cf = voice.explain(one, target=int(voice.predict(one)[0]))
    card = ChangeCard.from_counterfactuals(cf, 0)
    assert card.status == Status.ALREADY
    assert card.title == "Row 0 is in cluster 1 already; nothing has to change."


def test_answers_of_other_explainers_have_cards_without_ranges_and_maps():
    cf = CFCLUST(kmeans()).fit(WINES).explain(WINES.head(2), target="each")
    card = ChangeCard.from_counterfactuals(cf, 0)
    assert np.isnan([change.low for change in card.changes]).all()
    found = SegmentMap.from_voice(cf.outcome.learned, WINES, Plane.most_telling(cf, 0), cf, 0)
    assert len(found.cells) > 0


def test_a_card_in_a_notebook_has_every_change_and_range_and_escapes_names():
    table = customers().rename(columns={"income": "<b>income</b>"})
    encode = make_column_transformer(
        (StandardScaler(), ["age", "visits", "<b>income</b>"]), (OneHotEncoder(), ["job"])
    )
    voice = VoICE(make_pipeline(encode, kmeans()), names=["<i>", "b", "c"]).fit(table)
    cf = voice.explain(table.head(3), target="each")
    for i in range(len(cf)):
        card = ChangeCard.from_counterfactuals(cf, i)
        written = card._repr_html_()
        assert escape(card.title) in written
        assert "<b>income" not in written
        assert "<i>" not in written
        for change in card.changes:
            for text in (change.column, *change.shown, change.delta):
                assert escape(text) in written
            if change.is_number:
                ends = (change.low, change.high)
                assert all(f"{change.text_of(end)} (" in written for end in ends)


def test_a_card_comes_in_the_kind_of_frame_that_was_given():
    polars = pytest.importorskip("polars")
    voice = customers_voice()
    cf = voice.explain(polars.DataFrame(customers().head(1).to_dict("list")), target="each")
    assert isinstance(ChangeCard.from_counterfactuals(cf, 0).table(), polars.DataFrame)


# Sums.


@pytest.mark.parametrize("name", ["bare", "weighted"])
def test_transitions_are_medians_by_pair(name):
    voice = wines_by(name)
    cf = voice.explain(WINES, target="each", immutable=["proline", "alcohol", "flavanoids"])
    found = Transitions.from_counterfactuals(cf)
    k = len(found.cost)
    for source in range(k):
        for target in range(k):
            asked = (cf.source == source) & (cf.target == target)
            kept = asked & cf.feasible
            assert found.count[source, target] == asked.sum()
            if source == target:
                assert np.isnan(found.feasible[source, target])
                continue
            assert found.feasible[source, target] == kept.sum() / asked.sum()
            for made, values in ((found.cost, cf.cost), (found.changes, cf.n_changed)):
                expected = np.median(values[kept]) if kept.any() else np.nan
                np.testing.assert_equal(made[source, target], expected)
    assert len(found.table()) == k * (k - 1)


def test_shares_of_columns_are_their_part_of_the_cost():
    voice = wines_by("bare")
    cf = voice.explain(WINES, target="each")
    found = Transitions.from_counterfactuals(cf)
    moved = cf.changes()
    moved["cost"] = moved["delta"] ** 2 / WINES.shape[1]
    for target in range(3):
        mine = moved[moved["target"] == target]
        expected = mine.groupby("feature")["cost"].sum() / mine["cost"].sum()
        got = dict(zip(found.columns, found.shares[target], strict=True))
        for column, share in expected.items():
            assert got[column] == pytest.approx(share, rel=1e-9, abs=1e-12)


def test_alternatives_do_not_count_in_transitions():
    voice, some = wines_by("scaled"), WINES.head(3)
    plain = Transitions.from_counterfactuals(voice.explain(some, target="each"))
    more = Transitions.from_counterfactuals(voice.explain(some, target="each", alternatives=1))
    np.testing.assert_array_equal(plain.count, more.count)


def test_no_answers_make_no_transitions():
    cf = wines_by("bare").explain(WINES.head(1), target="each")[:0]
    with pytest.raises(DataError, match='target="each"'):
        Transitions.from_counterfactuals(cf)


def test_weights_are_the_models_by_column():
    model = SHARK(3, random_state=0).fit(WINES)
    found = Weights.from_voice(VoICE(model).fit(WINES))
    order = np.argsort(-model.feature_weights_, kind="stable")
    assert found.columns == [WINES.columns[c] for c in order]
    np.testing.assert_allclose(found.weights, model.feature_weights_[order])
    assert found.effective == pytest.approx(1 / (model.feature_weights_**2).sum())


def test_a_category_weighs_what_its_features_weigh_together():
    found = Weights.from_voice(customers_voice())
    by_name = dict(zip(found.columns, found.weights, strict=True))
    assert by_name["job"] == pytest.approx(4 / 7)
    assert found.effective == pytest.approx(7)


def test_scores_say_from_where_on_a_contracted_cell_holds_a_row():
    voice = wines_by("bare")
    found = ContractionScores.from_voice(voice, WINES)
    np.testing.assert_array_equal(found.labels, voice.predict(WINES))
    centers = voice.partition_.centers[found.labels]
    for grown, stays in ((0.999, True), (1.001, False)):
        some = found.scores > 0.05
        share = found.scores[some, None] / grown
        tried = centers[some] + (WINES.to_numpy()[some] - centers[some]) / share
        held = voice.model_.predict(pd.DataFrame(tried, columns=WINES.columns))
        assert ((held == found.labels[some]) == stays).all()
    for t in range(3):
        assert found.scores[found.labels == t].max() == pytest.approx(found.alpha[t])


def test_a_tradeoff_is_of_one_row():
    voice = wines_by("scaled")
    cf = voice.tradeoff(WINES.head(2), target=1)
    with pytest.raises(OptionError, match=r"cf\[\(cf.row == 0\) & \(cf.target == 1\)\]"):
        Tradeoff.from_counterfactuals(cf)
    found = Tradeoff.from_counterfactuals(cf[cf.row == 0])
    assert (np.diff(found.cost) <= 0).all()
    assert [len(names) for names in found.columns] == found.changes.tolist()
    assert found.cost[-1] == pytest.approx(voice.explain(WINES.head(1), 1).cost[0], rel=1e-6)


def test_displays_are_computed_without_matplotlib():
    code = (
        "import sys; import voicecf; assert 'voicecf.plots' not in sys.modules\n"
        "from voicecf import VoICE; from voicecf.plots import *\n"
        "voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]])\n"
        "cf = voice.explain([[1.0, 5.0]], target=1)\n"
        "SegmentMap.from_voice(voice, None, Plane.most_telling(cf, 0), cf, 0)\n"
        "ChangeCard.from_counterfactuals(cf, 0); Transitions.from_counterfactuals(cf)\n"
        "print([name for name in sys.modules if name.startswith('matplotlib')])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("step", "shift"),
    [
        (FunctionTransformer(np.log), 0.0), (FunctionTransformer(np.log1p), 1.0),
        (FunctionTransformer(np.log10), 0.0), (FunctionTransformer(np.sqrt), np.nan),
        (StandardScaler(), np.nan),
    ],
)  # fmt: skip
def test_a_column_behind_a_logarithm_has_a_track_on_a_log_scale(step, shift):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"paid": np.exp(rng.normal(5, 2, 200)), "age": rng.normal(50, 9, 200)})
    frame.loc[0, "paid"] = 0.0 if shift == 1 else 0.2
    columns = make_column_transformer((step, ["paid"]), (StandardScaler(), ["age"]))
    model = make_pipeline(columns, StandardScaler(), KMeans(3, n_init=3, random_state=0))
    cf = VoICE(model).fit(frame).explain(frame.head(9), target="each")
    cards = [ChangeCard.from_counterfactuals(cf, i) for i in np.flatnonzero(cf.feasible)]
    changes = [change for card in cards for change in card.changes]
    for change in (change for change in changes if change.column == "paid"):
        np.testing.assert_equal(change.shift, shift)
        places = [change.place(value) for value in (9.0, 99.0, 999.0)]
        even = np.isclose(*np.diff(places), rtol=0.08)
        assert even == (not np.isnan(shift))
        assert {"100", "1,000"} <= {text for _, text in change.ticks} if even else not change.ticks
        assert all(change.observed[0] < value < change.observed[1] for value, _ in change.ticks)
        assert change.place(change.observed[0]) < 0.01
        assert change.place(change.observed[1]) > 0.99
    assert all(np.isnan(change.shift) for change in changes if change.column == "age")
    assert {"paid", "age"} <= {change.column for change in changes}
    assert ("log scale" in cards[0]._repr_html_()) == (not np.isnan(shift))
