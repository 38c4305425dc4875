"""Columns' own maps: the bits of scikit-learn's steps, which one row then passes only once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

import voicecf
from voicecf import Status, VoICE
from voicecf.table.pipeline import Steps

NUMBERS = {
    "standard": StandardScaler(),
    "uncentred": StandardScaler(with_mean=False),
    "unscaled": StandardScaler(with_std=False),
    "minmax": MinMaxScaler((-1, 3)),
    "robust": RobustScaler(),
    "robust, uncentred": RobustScaler(with_centering=False),
    "largest": MaxAbsScaler(),
    "logs": make_pipeline(FunctionTransformer(np.log1p), StandardScaler()),
    "roots of what is filled in": make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True), FunctionTransformer(np.sqrt)
    ),
    "twice": make_pipeline(StandardScaler(), MinMaxScaler()),
}


def table(n: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({
        "age": rng.integers(18, 80, n), "money": rng.lognormal(3, 1, n).round(2),
        "score": rng.gamma(2.0, 3.0, n), "town": rng.choice(["Oslo", "Rome", "Lima"], n),
        "member": rng.random(n) < 0.5, "size": rng.choice(["S", "M", "L"], n),
    })  # fmt: skip


def explainer(numbers=None, data=None, last=()) -> VoICE:
    columns = ColumnTransformer([
        ("numbers", StandardScaler() if numbers is None else numbers, ["age", "money", "score"]),
        ("levels", OneHotEncoder(drop="if_binary"), ["town", "member"]),
        ("sizes", OrdinalEncoder(categories=[["S", "M", "L"]]), ["size"]),
    ])  # fmt: skip
    model = make_pipeline(columns, *last, KMeans(3, n_init=1, random_state=0))
    return VoICE(model).fit(table() if data is None else data)


@pytest.fixture
def passes(monkeypatch) -> list[int]:
    """Return the number of rows in each pass through the steps."""
    found: list[int] = []
    forward = Steps.forward

    def counted(self, rows):
        found.append(len(rows))
        return forward(self, rows)

    monkeypatch.setattr(Steps, "forward", counted)
    return found


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("name", NUMBERS)
def test_rows_are_read_with_the_bits_of_the_steps(name, kind, passes):
    voice, rows = explainer(NUMBERS[name]), table(500, seed=1)
    expected = voice.model_[:-1].transform(rows)
    passes.clear()
    read = voice.space_.read(kind(rows))
    assert passes == []
    np.testing.assert_array_equal(read.points, expected)
    np.testing.assert_array_equal(voice.predict(kind(rows)), voice.model_.predict(rows))


def test_arrays_are_read_with_the_bits_of_the_steps(passes):
    X, more = (table(seed=s)[["age", "money", "score"]].to_numpy() for s in (0, 1))
    voice = VoICE(make_pipeline(NUMBERS["logs"], KMeans(3, n_init=1, random_state=0))).fit(X)
    expected = voice.model_[:-1].transform(more)
    passes.clear()
    np.testing.assert_array_equal(voice.space_.read(more).points, expected)
    assert passes == []


@pytest.mark.parametrize("n", [1, 40])
@pytest.mark.parametrize(
    "words", [{}, {"immutable": "age"}, {"bounds": {"money": ("-40%", "+60%")}}]
)
def test_an_answer_passes_the_steps_once_and_lands(n, words, passes):
    voice, rows = explainer(NUMBERS["logs"]), table(200, seed=1)
    rows = rows[voice.predict(rows) != 1][:n].reset_index(drop=True)
    passes.clear()
    cf = voice.explain(rows, 1, **words, plausible=None)
    assert passes == [n]
    moved = cf.status == Status.OPTIMAL
    np.testing.assert_array_equal(voice.model_.predict(cf.to_frame()[moved]), cf.target[moved])
    alone = voice.explain(rows[-1:], 1, **words, plausible=None)
    assert alone.points.tobytes() == cf.points[-1:].tobytes()


@pytest.mark.parametrize(
    ("column", "value"), [("town", "Mars"), ("money", np.nan), ("money", -3.0), ("size", None)]
)
@pytest.mark.filterwarnings("ignore:invalid value encountered in log1p")
def test_a_value_that_is_not_known_is_left_to_the_steps(column, value, passes):
    voice, rows = explainer(NUMBERS["logs"]), table(3, seed=1).astype({column: object})
    rows.loc[1, column] = value
    rows = rows.astype({"money": float})
    passes.clear()
    cf = voice.explain(rows, 1)
    assert passes != []
    assert (cf.status == Status.UNREADABLE).tolist() == [False, True, False]
    assert column in cf.text(1)


@pytest.mark.parametrize(
    "numbers",
    [
        PowerTransformer(),
        KBinsDiscretizer(4, encode="ordinal"),
        MinMaxScaler(clip=True),
        FunctionTransformer(lambda values: values * 2, inverse_func=lambda values: values / 2),
        FunctionTransformer(
            np.frompyfunc(float, 1, 1), inverse_func=np.asarray, check_inverse=False
        ),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_steps_without_own_maps_read_rows_themselves(numbers, passes):
    voice = explainer(numbers)
    assert not voice.space_.has_maps
    passes.clear()
    voice.space_.read(table(3, seed=1))
    assert 3 in passes


def test_steps_that_compute_in_single_precision_read_rows_themselves():
    X = table()[["money", "score"]].to_numpy(dtype=np.float32)
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(3, n_init=1, random_state=0))).fit(X)
    assert not voice.space_.has_maps
    np.testing.assert_array_equal(voice.predict(X), voice.model_.predict(X))


def test_a_map_with_other_bits_is_not_taken(monkeypatch):
    class Rounded(StandardScaler):
        def transform(self, X, copy=None):
            return super().transform(X, copy) * (1 + 2**-52)

    from voicecf.table import maps

    monkeypatch.setitem(maps.SCALING, Rounded, maps.SCALING[StandardScaler])
    voice = explainer(Rounded())
    own = {column.name: column.own_map for column in voice.space_.columns}
    assert own["town"]
    assert own["size"]
    assert not own["money"]
    assert not voice.space_.has_maps


def test_the_input_of_a_model_behind_pca_is_that_of_the_steps(passes):
    voice, rows = explainer(last=(PCA(2, random_state=0),)), table(20, seed=1)
    passes.clear()
    np.testing.assert_array_equal(voice.space_.read(rows).seen, voice.model_[:-1].transform(rows))
    assert passes == [20]


def test_what_fit_has_found_is_saved(tmp_path, passes):
    voice, rows = explainer(NUMBERS["logs"]), table(5, seed=1)
    voice.save(tmp_path / "segments.voicecf")
    again = voicecf.load(tmp_path / "segments.voicecf")
    passes.clear()
    cf = again.explain(rows, 1)
    assert passes == [5]
    assert cf.points.tobytes() == voice.explain(rows, 1).points.tobytes()


def test_no_rows_of_a_declared_category_have_no_sentences():
    coded = pd.get_dummies(table()[["town"]], dtype=float).assign(money=table()["money"])
    towns = {"town": [name for name in coded if name != "money"]}
    voice = VoICE(KMeans(3, n_init=1, random_state=0), categories=towns).fit(coded)
    nothing = voice.explain(coded[:0], 1)
    assert nothing.texts() == []
    assert len(nothing.changes()) == len(nothing.table()) == 0
