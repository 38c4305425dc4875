"""Types of columns: whatever the precision or the library, rows are read, and answers land."""

from __future__ import annotations

import re

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler

from voicecf import Region, Status, VoICE, project
from voicecf.errors import DataError, OptionError
from voicecf.files import explain_batches

KINDS = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "array": lambda frame: frame.to_numpy(),
    "nullable": lambda frame: frame.convert_dtypes(),
}


def kmeans(k=3):
    return KMeans(k, n_init=2, random_state=0)


def scaled():
    return make_pipeline(StandardScaler(), kmeans())


def by_column():
    chosen = (StandardScaler(), ["a", "b"]), (MinMaxScaler(), ["c"])
    return make_pipeline(make_column_transformer(*chosen), kmeans())


MODELS = {"bare": kmeans, "scaled": scaled, "by column": by_column}


def numbers(dtype=np.float64, n=60):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(n, 3)) + 3 * rng.integers(3, size=(n, 1))
    return pd.DataFrame(values.astype(np.float32).astype(dtype), columns=["a", "b", "c"])


# Precision


@pytest.mark.parametrize("asked", [np.float32, np.float64])
@pytest.mark.parametrize("fitted", [np.float32, np.float64])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", MODELS)
def test_rows_of_any_precision_are_explained_by_a_model_of_any_precision(
    model, kind, fitted, asked
):
    voice = VoICE(MODELS[model]()).fit(numbers(fitted))
    rows = KINDS[kind](numbers(asked)[:5])
    cf = voice.explain(rows, immutable=["a"], target="each")
    found = cf[cf.feasible]
    assert len(found)
    np.testing.assert_array_equal(voice.predict(found.to_frame()), found.target)
    kept = nw.from_native(found.to_frame()).get_column("a").to_numpy()
    np.testing.assert_array_equal(kept, numbers(asked)["a"].to_numpy()[found.row])


@pytest.mark.parametrize("kind", ["pandas", "array"])
def test_single_precision_asked_of_double_precision_is_answered_as_in_double(kind):
    voice = VoICE(scaled()).fit(KINDS[kind](numbers()))
    wide = voice.explain(KINDS[kind](numbers()[:8]))
    narrow = voice.explain(KINDS[kind](numbers(np.float32)[:8]))
    np.testing.assert_array_equal(narrow.points, wide.points)
    assert (narrow.status == Status.OPTIMAL).all()
    np.testing.assert_array_equal(voice.predict(narrow.to_frame()), narrow.target)


def test_the_pipeline_itself_can_read_answers_to_rows_of_less_precision():
    pipeline = scaled().fit(numbers())
    cf = VoICE(pipeline).fit(numbers()).explain(numbers(np.float32)[:8], immutable=["a"])
    found = cf[cf.feasible]
    np.testing.assert_array_equal(pipeline.predict(found.to_frame()), found.target)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_an_infeasible_row_leaves_the_types_of_the_others_alone(kind):
    frame = numbers()
    voice = VoICE(kmeans()).fit(KINDS[kind](frame))
    far = {name: (frame[name][0], frame[name][0]) for name in frame.columns}
    rows = KINDS[kind](frame[:4])
    cf = voice.explain(rows, target=voice.predict(rows)[[1, 1, 1, 1]], bounds=far)
    assert not cf.feasible.all()
    answers = nw.from_native(cf.to_frame())
    assert set(answers.schema.values()) == {nw.Float64()}
    every = voice.explain(rows, immutable=["a", "b", "c"])
    assert not every.feasible.any()
    assert set(nw.from_native(every.to_frame()).schema.values()) == {nw.Float64()}


# pyarrow

TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@pytest.mark.parametrize("text", TEXTS, ids=str)
def test_a_table_of_pyarrow_keeps_its_types_where_an_alternative_changes_text(text):
    rng = np.random.default_rng(0)
    job = pa.array(np.array(["chef", "clerk", "pilot"])[rng.integers(3, size=80)].tolist())
    a, b = rng.normal(size=(2, 80))
    table = pa.table({"a": a, "b": b, "job": job.cast(text)})
    steps = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["job"]))
    voice = VoICE(make_pipeline(steps, kmeans(4))).fit(table)
    cf = voice.explain(table[:12], alternatives=3)
    assert cf.rank.max() > 0
    assert "job" in set(nw.from_native(cf.changes()).get_column("feature").to_list())
    found = cf.to_frame()
    assert found.schema.names == table.schema.names
    assert found.schema.types == table.schema.types
    np.testing.assert_array_equal(voice.predict(found), cf.target)


# No rows

WORDS = [
    {"immutable": [0]}, {"mutable": [1]}, {"increase_only": [1]}, {"bounds": {0: ("-1", "+1")}},
    {"immutable": [0], "objective": "fewest"}, {"immutable": [0], "alternatives": 2},
    {"immutable": [0], "target": "each"},
]  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=str)
def test_no_rows_have_no_answers_whatever_the_rules(words):
    rows = numbers().to_numpy()
    cf = VoICE(kmeans()).fit(rows).explain(rows[:0], **words)
    assert len(cf) == 0
    assert nw.from_native(cf.to_frame()).shape == (0, 3)


def test_no_rows_of_levels_have_no_answers_either():
    frame = numbers().assign(job=["chef", "clerk"] * 30)
    steps = make_column_transformer((StandardScaler(), ["a", "b"]), (OneHotEncoder(), ["job"]))
    voice = VoICE(make_pipeline(steps, kmeans())).fit(frame)
    assert len(voice.explain(frame[:0], forbidden={"job": ("chef", "clerk")})) == 0
    assert len(voice.tradeoff(frame[:0], target=1, immutable=["job"])) == 0


# Whole numbers that double precision cannot tell apart


def large():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.integers(2**60, 2**61, 60), "b": rng.normal(size=60)})


def test_whole_numbers_beyond_double_precision_are_refused_with_what_to_do():
    voice = VoICE(kmeans()).fit(large())
    with pytest.raises(DataError, match=r"column 'a' has whole numbers up to .*2\*\*52") as caught:
        voice.explain(large()[:3])
    assert "immutable=['a']" in str(caught.value)
    assert "steps={'a': None}" in str(caught.value)
    with pytest.raises(OptionError, match=r"steps of 'a': 1 is finer"):
        voice.explain(large()[:3], steps={"a": 1})


@pytest.mark.parametrize("steps", [None, 10**12])
def test_what_the_error_about_large_whole_numbers_advises_works(steps):
    voice = VoICE(kmeans()).fit(large())
    cf = voice.explain(large()[:5], steps={"a": steps})
    assert cf.feasible.all()
    np.testing.assert_array_equal(voice.predict(cf.to_frame()), cf.target)
    locked = voice.explain(large()[:5], immutable=["a"], target=voice.predict(large()[:5]))
    pd.testing.assert_frame_equal(locked.to_frame(), large()[:5])


# What is no number has the remedy for what it is

ROW = numbers()[:3]
NO_NUMBERS = {
    "dates": (ROW.assign(a=pd.Timestamp("2020-02-02")), "'a' holds dates.*days since"),
    "dates of polars": (
        pl.from_pandas(ROW.assign(a=pd.Timestamp("2020-02-02"))), "'a' holds dates.*days since"
    ),
    "durations": (ROW.assign(a=pd.Timedelta("2h")), "'a' holds dates or times.*numbers"),
    "dates in an array": (np.full((2, 3), "2020-02-02", "datetime64[D]"), "X holds dates"),
    "dates among objects": (np.array([[pd.Timestamp(0), 1, 2]], object), "X holds dates"),
    "objects": (ROW.astype({"a": object}), "'a' holds numbers stored as.*astype"),
    "numbers as text": (ROW.assign(a=["1", "2.5", "3"]), "'a' holds numbers stored as.*astype"),
    "text": (ROW.assign(a=["1", "two", "3"]), "'a' holds text.*OneHotEncoder"),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_NUMBERS)
def test_a_column_of_no_numbers_is_refused_with_its_own_remedy(case):
    rows, words = NO_NUMBERS[case]
    voice = VoICE(kmeans()).fit(numbers())
    for errors in ("status", "raise"):
        with pytest.raises(DataError) as caught:
            voice.explain(rows, errors=errors)
        assert re.search(words, str(caught.value)), str(caught.value)


# project

HALF = Region([[1.0]], [0.5])
NO_PROJECTION = {
    "points of text": (lambda: project("x", HALF), "points must be numbers; got 'x'"),
    "ragged points": (lambda: project([[1.0], [1.0, 2.0]], HALF), "points must be numbers"),
    "text for a region": (lambda: project([[1.0]], "x"), "region='x' is no Region"),
    "no region": (lambda: project([[1.0]], None), r"region=None is no Region; use Region\("),
    "metric of text": (lambda: project([[1.0]], HALF, metric="x"), "metric must be numbers"),
}


@pytest.mark.parametrize("case", NO_PROJECTION)
def test_project_says_which_of_its_arguments_is_wrong(case):
    call, words = NO_PROJECTION[case]
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("model", ["bare", "scaled"])
@pytest.mark.parametrize("fitted", [np.float32, np.float64])
def test_answers_in_batches_have_the_digits_that_the_model_reads(model, fitted):
    voice = VoICE(MODELS[model]()).fit(numbers(fitted))
    asked = pa.Table.from_pandas(numbers(np.float32), preserve_index=False)
    found = pa.Table.from_batches(explain_batches(voice, [asked], target=1))
    found = found.filter(found["voicecf_feasible"])
    assert len(found)
    assert (voice.predict(found.select(["a", "b", "c"])) == 1).all()
