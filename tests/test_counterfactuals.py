"""Answers as arrays, tables and sentences: every form says the same thing, and says it safely."""

from __future__ import annotations

import copy
import json
import pickle
import re
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from voicecf import Counterfactuals, Status, VoICE
from voicecf.output import short
from voicecf.output.digits import fewest_digits

WINE = load_wine(as_frame=True).data
IRIS = load_iris().data
NAMES = ["length", "width", "petal", "stamen"]
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(scope="module")
def voice():
    return VoICE(KMeans(3, n_init=2, random_state=0)).fit(WINE)


@pytest.fixture(scope="module")
def pairs(voice):
    return voice.explain(WINE.iloc[:20], target="each")


@pytest.fixture(scope="module")
def mixed():
    """Optimal, infeasible and already, in one batch."""
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    return voice.explain([[1.0, 5.0], [9.0, 5.0], [-3.0, 5.0]], target=1, bounds={"age": (-9, 9)})


@pytest.fixture(scope="module")
def stuck():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    return voice.explain([[1.0, 5.0], [9.0, 5.0]], bounds={"age": (-9, 1)}, target=1)


def columns_of(frame) -> dict[str, list]:
    return nw.from_native(frame, eager_only=True).to_dict(as_series=False)


ARRAYS = (
    "row", "points", "source", "target", "status", "feasible", "cost", "n_changed",
    "cardinality", "rho", "tau", "alpha", "gap", "multipliers",
)  # fmt: skip


def test_every_array_has_a_line_an_answer(pairs):
    assert len(pairs) == 40
    assert {len(getattr(pairs, name)) for name in ARRAYS} == {40}
    assert pairs.points.shape == (40, 13)
    assert pairs.multipliers.shape == (40, 3)


@pytest.mark.parametrize(
    "which",
    [
        slice(3, 9),
        slice(None, None, -2),
        [5, 1, 1],
        np.array([7, 0]),
        np.arange(40) % 3 == 0,
        pd.Series(np.arange(40) % 3 == 0),
        [],
    ],
    ids=["slice", "backwards", "list", "positions", "mask", "series", "nothing"],
)
def test_taking_some_takes_them_from_every_array(pairs, which):
    which = np.zeros(0, dtype=int) if isinstance(which, list) and not which else which
    some = pairs[which]
    at = np.arange(40)[which]
    assert len(some) == len(at)
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(some, name), getattr(pairs, name)[at], err_msg=name)
    for i, j in enumerate(at):
        assert some.text(i) == pairs.text(j)


def test_an_empty_list_takes_nothing(pairs):
    assert len(pairs[[]]) == 0


def test_one_position_is_an_answer_of_length_one_counted_from_either_end(pairs):
    assert len(pairs[3]) == 1
    np.testing.assert_array_equal(pairs[3].points, pairs.points[3:4])
    np.testing.assert_array_equal(pairs[-1].points, pairs.points[-1:])
    np.testing.assert_array_equal(pairs[np.int64(3)].points, pairs.points[3:4])


@pytest.mark.parametrize("i", [40, -41])
def test_a_position_beyond_the_answers_says_how_many_there_are(pairs, i):
    with pytest.raises(IndexError, match="40"):
        pairs[i]
    with pytest.raises(IndexError, match="40"):
        pairs.text(i)


def test_iterating_meets_every_answer_once_in_order(pairs):
    met = list(pairs)
    assert len(met) == 40
    assert [one.text(0) for one in met] == [pairs.text(i) for i in range(40)]


def test_taking_twice_is_taking_from_what_was_taken(pairs):
    twice = pairs[10:30][5:8]
    np.testing.assert_array_equal(twice.points, pairs.points[15:18])
    np.testing.assert_array_equal(twice.multipliers, pairs.multipliers[15:18])


def test_cost_counts_and_tolerance_are_what_their_names_say(voice, pairs):
    weights = np.full(13, 1 / 13)
    moves = pairs.points - WINE.to_numpy()[pairs.row]
    np.testing.assert_allclose(pairs.cost, moves**2 @ weights, rtol=1e-12)
    np.testing.assert_array_equal(pairs.n_changed, (moves != 0).sum(axis=1))
    np.testing.assert_array_equal(pairs.tau, pairs.rho - 1)
    np.testing.assert_array_equal(pairs.source, voice.model_.predict(WINE.iloc[:20])[pairs.row])
    np.testing.assert_array_equal(pairs.alpha, voice.alpha_[pairs.target])
    assert (pairs.cardinality == 13).all()


def test_the_gap_is_relative_so_units_do_not_change_it():
    for scale in (1e-12, 1.0, 1e12):
        X = WINE.to_numpy() * scale
        cf = VoICE(KMeans(5, n_init=1, random_state=0)).fit(X).explain(X[:40], target="each")
        assert cf.feasible.all()
        assert (abs(cf.gap) <= 1e-9).all(), scale


def test_without_an_answer_numbers_are_nan_and_the_status_says_why(stuck):
    assert stuck.status.tolist() == [Status.INFEASIBLE, Status.ALREADY]
    assert stuck.feasible.tolist() == [False, True]
    assert np.isnan(stuck.points[0]).all()
    assert np.isnan(stuck.cost[0])
    assert np.isnan(stuck.rho[0])
    assert stuck.n_changed[0] == 0


def test_feasible_is_optimal_or_already(mixed):
    assert mixed.status.tolist() == [Status.OPTIMAL, Status.ALREADY, Status.OPTIMAL]
    assert mixed.feasible.all()


# Tables.


@pytest.mark.parametrize("kind", KINDS)
def test_tables_come_back_in_the_kind_that_came_in(voice, kind):
    frame = KINDS[kind](WINE.iloc[:5].to_dict("list"))
    cf = voice.explain(frame)
    for table in (cf.to_frame(), cf.summary(), cf.changes()):
        assert type(table) is type(frame)
    answered = columns_of(cf.to_frame())
    assert list(answered) == WINE.columns.tolist()
    np.testing.assert_array_equal(np.column_stack(list(answered.values())), cf.points)


def test_arrays_come_back_as_some_frame_with_positions_as_names():
    cf = VoICE(KMeans(3, n_init=1, random_state=0)).fit(IRIS).explain(IRIS[:2])
    assert cf.to_frame().columns.tolist() == ["x0", "x1", "x2", "x3"]


def test_the_index_of_a_pandas_frame_is_kept(voice):
    frame = WINE.iloc[:4].set_axis(["ann", "bob", "cid", "dee"])
    cf = voice.explain(frame)
    assert cf.to_frame().index.tolist() == ["ann", "bob", "cid", "dee"]
    assert cf[2:].to_frame().index.tolist() == ["cid", "dee"]
    each = voice.explain(frame, target="each").to_frame()
    assert each.index.tolist() == ["ann", "ann", "bob", "bob", "cid", "cid", "dee", "dee"]


def test_the_frame_can_be_put_to_the_model_and_lands_in_the_target(voice, pairs):
    np.testing.assert_array_equal(voice.model_.predict(pairs.to_frame()), pairs.target)


def test_the_summary_has_a_line_an_answer_and_words_for_the_status(pairs, stuck):
    table = pairs.summary()
    assert len(table) == 40
    for name in ("row", "source", "target", "cost", "n_changed", "rho", "tau", "alpha"):
        np.testing.assert_array_equal(table[name].to_numpy(), getattr(pairs, name))
    assert set(table["status"]) == {"optimal"}
    assert stuck.summary()["status"].tolist() == ["infeasible", "already"]
    assert stuck.summary()["feasible"].tolist() == [False, True]


def test_changes_list_every_column_that_moved_and_none_that_did_not(pairs):
    table = pairs.changes()
    assert {"row", "target", "feature", "from", "to", "delta"} <= set(table.columns)
    X = WINE.to_numpy()
    spread = np.ptp(X, axis=0)
    expected = {
        (int(row), int(target), name, before, after)
        for row, target, z in zip(pairs.row, pairs.target, pairs.points, strict=True)
        for name, before, after, s in zip(WINE.columns, X[row], z, spread, strict=True)
        if abs(after - before) > 1e-9 * s
    }
    listed = table[["row", "target", "feature", "from", "to"]].itertuples(index=False, name=None)
    assert sorted(listed) == sorted(expected)
    np.testing.assert_allclose(table["delta"], table["to"] - table["from"], rtol=0, atol=1e-12)


def test_columns_without_weight_that_had_to_move_are_listed_too():
    # Column b is outside its bounds and has no weight; a has none either and stays.
    voice = VoICE.from_centers(
        [[0.0, 0.0, 0.0], [0.0, 0.0, 4.0]], weights=[0, 0, 1], feature_names=["a", "b", "c"],
        bounds=(-9.0, 9.0),
    )  # fmt: skip
    cf = voice.explain([[1.0, 20.0, 1.0]], target=1)
    np.testing.assert_allclose(cf.points, [[1.0, 9.0, 2.0]], rtol=1e-9)
    assert sorted(cf.changes()["feature"]) == ["b", "c"]
    assert "b falls from 20 to 9" in cf.text(0)
    assert "a " not in cf.text(0).partition(" if ")[2].partition(";")[0].replace("rises", "")


def test_nothing_changed_is_an_empty_table_with_the_same_types():
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(WINE)
    for kind in (pd.DataFrame, pl.DataFrame, pa.table):
        frame = kind(WINE.iloc[:3].to_dict("list"))
        some, none = voice.explain(frame).changes(), voice.explain(frame)[:0].changes()
        assert len(none) == 0
        schemas = [dict(nw.from_native(t, eager_only=True).schema) for t in (some, none)]
        assert schemas[0] == schemas[1]


# Sentences.


def test_a_sentence_names_row_clusters_changes_and_tolerance(voice):
    cf = voice.explain(WINE, target=2)[17]
    text = cf.text(0)
    source = voice.model_.predict(WINE)[17]
    changes = r"[\w/]+ (rises|falls) from -?[\d.]+ to -?[\d.]+"
    form = (
        rf"Row 17 moves from cluster {source} to 2 if ({changes}(, | and ))+(\d+ smaller ones)?"
        rf"({changes})?; up to ([\d.]+) times this change still lands in cluster 2\."
    )
    found = re.fullmatch(form, text)
    assert found, text
    times, row = float(found.groups()[-1]), WINE.to_numpy()[[17]]
    assert 0.9 * cf.rho[0] <= times <= 1.02 * cf.rho[0]
    most = row + times * (cf.rounded().points - row)
    assert voice.model_.predict(pd.DataFrame(most, columns=WINE.columns)) == 2


def test_a_sentence_tells_up_from_down_with_digits_that_show_it(pairs):
    seen = 0
    for i in range(len(pairs)):
        for name, verb, before, after in re.findall(
            r"([\w/]+) (rises|falls) from (-?[\d.]+) to (-?[\d.]+)", pairs.text(i, all=True)
        ):
            c = WINE.columns.get_loc(name)
            a, z = WINE.iloc[pairs.row[i], c], pairs.points[i, c]
            assert (verb == "rises") == (z > a)
            after = after.rstrip(".")
            step = abs(z - a)
            assert float(before) == a
            assert abs(float(after) - z) <= 0.0101 * step
            seen += 1
    assert seen > 100


def test_the_doctest_sentence_is_the_simplest():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    assert voice.explain([[1.0, 5.0]]).text(0) == (
        "Row 0 moves from cluster 0 to 1 if age rises from 1 to 2.01; however much larger, the "
        "same change still lands in cluster 1."
    )


def test_two_changes_are_joined_by_and():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 2.0]], feature_names=["age", "income"])
    text = voice.explain([[0.0, 0.0]]).text(0)
    assert "if age rises from 0 to 2.01 and income rises from 0 to 1.01;" in text


@pytest.mark.parametrize(("d", "named"), [(6, 6), (7, 4), (9, 4)])
def test_a_sentence_names_up_to_six_changes_and_of_more_four(d, named):
    cf = VoICE.from_centers([np.zeros(d), np.ones(d)]).explain([np.zeros(d)])
    assert cf.text(0).count("rises") == named
    assert (f" and {d - 4} smaller ones" in cf.text(0)) == (d > 6)
    assert cf.text(0, all=True).count("rises") == d
    assert cf.text(0) in repr(cf)


def test_a_summary_has_the_names_of_clusters():
    voice = VoICE.from_centers([[0.0], [4.0]], names=["loyal", "lapsed"])
    line = voice.explain([[1.0]], target="lapsed").summary().iloc[0]
    assert (line["source"], line["target"]) == ("loyal", "lapsed")


def test_all_sentences_are_those_of_single_answers_and_of_parts(hired, pairs, mixed, stuck):
    for cf in (hired, pairs, mixed, stuck):
        texts = cf.texts()
        assert texts == [cf.text(i) for i in range(len(cf))]
        assert texts == [one.text(0) for one in Counterfactuals(cf.outcome)]
        assert texts[::2] == cf[::2].texts() == Counterfactuals(cf.outcome[::2]).texts()
        answers = json.loads(cf.to_json())["answers"]
        assert texts == cf.rounded().texts()
        assert cf.texts(all=True) == [answer["text"] for answer in answers]
        assert cf[:0].texts() == []


def test_an_answer_is_rounded_once(hired, monkeypatch):
    cf, rounds = Counterfactuals(hired.outcome), []

    def counted(answers):
        rounds.extend(answers.row.tolist())
        return fewest_digits(answers)

    monkeypatch.setattr(short, "fewest_digits", counted)
    some = cf[[1, 2]]
    some.texts(), repr(some), some.to_json(), cf.table(), cf[2].rounded(), cf.rounded().text(1)
    assert sorted(rounds) == sorted(cf.row.tolist())


def test_digits_that_the_steps_refuse_are_not_taken(monkeypatch):
    X = WINE.iloc[:5]
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model).fit(WINE)
    cf = voice.explain(X, target=(voice.predict(X) + 1) % 3)
    assert cf.outcome.space.has_maps

    def too_few(answers):
        before = np.column_stack(answers.values[0])
        values = np.column_stack(answers.values[1])
        return fewest_digits(answers)._replace(values=0.9 * before + 0.1 * values)

    monkeypatch.setattr(short, "fewest_digits", too_few)
    pd.testing.assert_frame_equal(cf.rounded().to_frame(), cf.to_frame())


def test_a_row_that_stays_and_a_row_that_is_stuck_say_so(mixed, stuck):
    assert mixed.text(1) == "Row 1 is in cluster 1 already; nothing has to change."
    assert stuck.text(0).startswith("Row 0 cannot move from cluster 0 to 1. No allowed change")
    assert "widen their bounds" in stuck.text(0)


@pytest.mark.parametrize(
    ("status", "start"),
    [
        (Status.INFEASIBLE, "Row 0 cannot move from cluster 0 to 1. "),
        (Status.UNRESOLVED, "It is not known whether row 0 can move from cluster 0 to 1. "),
        (Status.MISSED, "Row 0 does not move from cluster 0 to 1. "),
    ],
)
def test_only_what_is_proven_impossible_is_called_so(stuck, status, start):
    codes = np.full(len(stuck), status, dtype=np.int8)
    text = Counterfactuals(replace(stuck.outcome, status=codes)).text(0)
    assert text == f"{start}{status.diagnosis}"


def test_a_change_has_no_limit_only_if_every_multiple_lands():
    voice = VoICE.from_centers([[0.0], [4.0]], feature_names=["age"])
    text = voice.explain([[1.0]], target=1, bounds={"age": (0, 1e8)}).text(0)
    assert text.endswith("; up to 1,000,000 times this change still lands in cluster 1.")


def test_a_change_that_is_at_its_limit_may_hardly_be_larger():
    voice = VoICE.from_centers([[0.0], [4.0]], feature_names=["age"])
    cf = voice.explain([[9.0]], target=0, bounds={"age": (1.0, 1.0)})
    assert cf.rho[0] == 1
    assert (
        cf.text(0)
        == "Row 0 moves from cluster 1 to 0 if age falls from 9 to 1; this change can hardly be "
        "larger."
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (1234567.0, 2234567.0, "from 1234567 to 2240000"),
        (1e-7, 2e-7, "from 1e-07 to 2.01e-07"),
        (0.0, 1e20, "from 0 to 1.01e+20"),
    ],
)
def test_numbers_are_written_so_that_people_read_them(before, after, words):
    voice = VoICE.from_centers([[before], [2 * after - before]], feature_names=["x"])
    text = voice.explain([[before]], target=1).text(0)
    assert words in text, text


# Showing.


def test_repr_counts_outcomes_and_shows_the_first_sentences(pairs, mixed):
    shown = repr(pairs)
    assert shown.startswith("40 counterfactuals: 40 optimal")
    assert all(pairs.text(i) in shown for i in range(3))
    assert "37 more" in shown
    assert mixed.text(0) in repr(mixed)
    assert repr(mixed).startswith("3 counterfactuals: 2 optimal, 1 already")
    assert repr(mixed[:0]) == "0 counterfactuals: none"


def test_one_is_singular(pairs):
    assert repr(pairs[0]).startswith("1 counterfactual: ")


HOSTILE = ["<script>alert('x')</script>", "", "a\nb", "x" * 5000]


@pytest.fixture(scope="module")
def hostile():
    frame = pd.DataFrame(IRIS, columns=HOSTILE)
    return VoICE(KMeans(3, n_init=1, random_state=0)).fit(frame).explain(frame.iloc[:2])


def test_html_escapes_what_column_names_smuggle_in(hostile):
    html = hostile._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "2 counterfactuals" in html


def test_a_line_break_in_a_name_breaks_no_line(hostile):
    assert "\n" not in hostile.text(0)
    assert len(repr(hostile).splitlines()) == 5
    assert hostile._repr_html_().count("<li>") == 4


def test_a_name_without_letters_can_be_told_from_the_words_around_it(hostile):
    assert re.search(r"(['\"])\1 (rises|falls)", hostile.text(0))


def test_tables_keep_hostile_names_as_they_are(hostile):
    assert hostile.to_frame().columns.tolist() == HOSTILE
    assert set(hostile.changes()["feature"]) <= set(HOSTILE)


def test_names_that_are_no_text_can_be_shown():
    frame = pd.DataFrame(IRIS, columns=[10, 20, 30, 40])
    cf = VoICE(KMeans(3, n_init=1, random_state=0)).fit(frame).explain(frame.iloc[:2])
    assert "30 rises from" in cf.text(0)
    assert set(cf.changes()["feature"]) == {10, 20, 30, 40}
    assert "30 rises" in cf._repr_html_()


# Answers are values: what happens to X, the explainer or a copy later does not change them.


@pytest.mark.parametrize("steps", [[], [StandardScaler()], [FunctionTransformer()]])
def test_answers_do_not_change_when_the_data_do(steps):
    X = IRIS.copy()
    model = KMeans(3, n_init=1, random_state=0)
    voice = VoICE(make_pipeline(*steps, model) if steps else model).fit(X)
    cf, same = voice.explain(X[:5]), voice.explain(IRIS[:5])
    X[:] = 0.0
    assert cf.text(0) == same.text(0)
    np.testing.assert_array_equal(cf.multipliers, same.multipliers)


def test_answers_do_not_change_when_the_explainer_is_fitted_again():
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(IRIS)
    multipliers = voice.explain(IRIS[:5]).multipliers
    late = voice.explain(IRIS[:5])
    voice.set_params(contraction=0.1).fit(IRIS)
    np.testing.assert_array_equal(late.multipliers, multipliers)


def test_answers_survive_pickle_and_copy(pairs):
    for other in (pickle.loads(pickle.dumps(pairs)), copy.deepcopy(pairs), copy.copy(pairs)):
        np.testing.assert_array_equal(other.points, pairs.points)
        np.testing.assert_array_equal(other.multipliers, pairs.multipliers)
        assert other.text(0) == pairs.text(0)


def test_comparing_two_answers_is_no_error(voice, pairs):
    assert (pairs == voice.explain(WINE.iloc[:20], target="each")) in (True, False)
    assert (pairs == "something else") is False


def test_a_row_that_stays_has_no_force_on_it():
    # Its certificate is that of not moving: all multipliers are zero.
    voice = VoICE(KMeans(3, n_init=1, random_state=0), retain=0.5).fit(IRIS)
    cf = voice.explain(IRIS, target=voice.predict(IRIS))
    assert (cf.status == Status.ALREADY).all()
    np.testing.assert_array_equal(cf.multipliers, 0.0)


def test_every_status_explains_itself():
    for status in Status:
        assert status.diagnosis.endswith(".")
        assert len(status.diagnosis) > 30


# Categories.


@pytest.fixture(scope="module")
def hired():
    """Answers of which the first changes a category too, as a discrete search would find it."""
    frame = pd.DataFrame(
        {
            "age": [20.0, 21.0, 22.0, 60.0, 61.0, 62.0],
            "job": ["<b>admin", "clerk", "<b>admin", "clerk", "clerk", "<b>admin"],
        }
    )
    columns = ColumnTransformer([("n", "passthrough", ["age"]), ("c", OneHotEncoder(), ["job"])])
    voice = VoICE(make_pipeline(columns, KMeans(2, n_init=1, random_state=0))).fit(frame)
    cf = voice.explain(frame)
    points = cf.points.copy()
    points[0, 1:] = points[0, :0:-1]
    output = voice.space_.write(points, cf.outcome.rows, cf.row)
    return Counterfactuals(replace(cf.outcome, points=points, output=output))


def test_a_category_changes_from_level_to_level(hired):
    assert 'job changes from "<b>admin" to "clerk"' in hired.text(0)
    assert "age rises from 20 to" in hired.text(0)
    assert "job" not in hired.text(1)
    assert hired.to_frame()["job"].tolist() == [
        "clerk",
        "clerk",
        "<b>admin",
        "clerk",
        "clerk",
        "<b>admin",
    ]
    assert "<b>" not in hired._repr_html_()
    assert "&lt;b&gt;admin" in hired._repr_html_()


def test_a_table_of_changes_has_numbers_and_levels_and_no_delta_for_levels(hired):
    changes = hired.changes()
    line = changes[changes["feature"] == "job"]
    assert line[["row", "from", "to"]].to_numpy().tolist() == [[0, "<b>admin", "clerk"]]
    assert line["delta"].isna().all()
    ages = changes[changes["feature"] == "age"]
    assert ages["from"].tolist() == [20, 21, 22, 60, 61, 62]
    np.testing.assert_array_equal(ages["to"].astype(float), hired.to_frame()["age"])
    np.testing.assert_allclose(ages["delta"], ages["to"].astype(float) - ages["from"].astype(float))


def test_the_rows_as_they_came_are_kept_in_the_users_own_values(hired):
    assert hired.factual["job"].tolist()[:2] == ["<b>admin", "clerk"]
    assert hired[0].factual["age"].tolist() == [20.0, 21.0, 22.0, 60.0, 61.0, 62.0]


def test_answers_of_a_pipeline_survive_slicing_and_pickle(hired):
    again = pickle.loads(pickle.dumps(hired))
    pd.testing.assert_frame_equal(again.to_frame(), hired.to_frame())
    pd.testing.assert_frame_equal(hired[[4, 0]].to_frame(), hired.to_frame().iloc[[4, 0]])
    assert hired[[4, 0]].text(1) == hired.text(0)
    assert hired.multipliers.shape == (6, 2)


def test_a_frame_that_is_changed_leaves_the_answers_as_they_are(hired):
    before = hired.to_frame()
    changed = hired.to_frame()
    changed["age"] = -1.0
    changed.loc[0, "job"] = "pope"
    pd.testing.assert_frame_equal(hired.to_frame(), before)
