"""Learning from a stream: what is learned is what memory would have told, up to rounding."""

from __future__ import annotations

import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    QuantileTransformer,
    StandardScaler,
)

from voicecf import SHARK, VoICE, streaming
from voicecf.errors import ColumnError, DataError, ModelError
from voicecf.shark import WeightCollapseWarning
from voicecf.solver import passes
from voicecf.table import stream as blocks

LEARNED = ("cluster_centers_", "feature_weights_", "inertia_", "n_iter_")


CHUNK = 10_000


@pytest.fixture
def small_chunks(monkeypatch):
    """Let chunks and blocks be short, so that some rows make several."""
    monkeypatch.setattr(passes, "CHUNK", CHUNK)
    monkeypatch.setattr(blocks, "BLOCK", 2 * CHUNK)


def rows(n=5 * CHUNK + 777, d=4, k=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) + 3.0 * rng.normal(size=(k, d))[rng.integers(k, size=n)]


def divisions(n, seed=0):
    """Where a source may end its tables: at odd places, in one piece, in tiny pieces first."""
    rng = np.random.default_rng(seed)
    return [np.sort(rng.choice(n, 13, replace=False)), [], [1, 2, 3, 100, n - 1]]


def customers(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    job = rng.choice(["clerk", "chef", "pilot", "nurse"], size=n, p=[0.5, 0.3, 0.1, 0.1])
    job[-1] = "smith"  # one level comes last of all
    income = np.where(rng.random(n) < 0.1, np.nan, np.round(rng.gamma(4.0, 500.0, n), 2))
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": income,
            "visits": rng.poisson(3.0, n),
            "job": job,
            "size": rng.choice(["S", "M", "L"], n),
        }
    )


def pieces(frame, cuts):
    ends = [0, *cuts, len(frame)]
    return [frame[a:b] for a, b in pairwise(ends)]


def assert_same(one, other, names=LEARNED):
    """Compare numbers that differ by the rounding of sums at most."""
    for name in names:
        np.testing.assert_allclose(
            getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12, err_msg=name
        )


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("cuts", range(3))
def test_shark_is_the_same_however_the_rows_are_divided(init, cuts, small_chunks):
    X = rows()
    model = SHARK(3, init=init, n_init=4, random_state=1)
    parts = streaming.fit(
        SHARK(3, init=init, n_init=4, random_state=1), np.split(X, divisions(len(X))[cuts])
    )
    assert_same(model.fit(X), parts)
    np.testing.assert_array_equal(parts.predict(X), model.labels_)


@pytest.mark.parametrize("init", ["random", "k-means++"])
@pytest.mark.parametrize("kind", [SHARK, KMeans])
def test_starts_come_from_one_sample_however_the_rows_are_divided(
    kind, init, monkeypatch, small_chunks
):
    monkeypatch.setattr(passes, "SAMPLE", 500)
    X = np.round(rows(d=3), 2)  # many rows twice
    found = [
        streaming.fit(kind(3, init=init, n_init=2, max_iter=1, random_state=5), np.split(X, cuts))
        for cuts in divisions(len(X))
    ]
    if kind is SHARK:
        found.append(SHARK(3, init=init, n_init=2, max_iter=1, random_state=5).fit(X))
    for model in found[1:]:
        assert_same(found[0], model, ("cluster_centers_", "inertia_"))
    other = streaming.fit(kind(3, init=init, n_init=2, max_iter=1, random_state=6), [X])
    assert abs(other.cluster_centers_ - found[0].cluster_centers_).max() > 1e-6


def test_a_sample_is_drawn_from_all_rows(monkeypatch, small_chunks):
    monkeypatch.setattr(passes, "SAMPLE", 2_000)
    X = np.arange(6.0 * CHUNK)[:, None]
    drawn = passes.sample(passes.MassRows(X, X[:, 0] + 1.0), lambda: 3)
    assert len(np.unique(drawn.X)) == 2_000
    np.testing.assert_array_equal(drawn.mass, drawn.X[:, 0] + 1.0)
    counts, _ = np.histogram(drawn.X, 5, (0.0, len(X)))
    assert (abs(counts - 400) < 100).all()  # 5.6 standard deviations


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"init": "k-means++", "n_init": 3},
        {"init": "random", "n_init": 3},
        {"init": "array", "n_init": 1},
        {"init": "lost", "n_init": 1},
        {"tol": 0.0, "n_init": 2},
    ],
    ids=lambda options: "-".join(map(str, options.values())) or "default",
)
def test_kmeans_starts_moves_and_stops_as_scikit_learn_does(options, small_chunks):
    X = rows(k=4, seed=2)
    # A center that no row is near has to be relocated.
    arrays = {"array": X[:4].copy(), "lost": np.vstack([X[:3], np.full(4, 1e3)])}
    options = {name: arrays.get(value, value) for name, value in options.items()}
    whole = KMeans(4, random_state=3, algorithm="lloyd", **options).fit(X)
    parts = streaming.fit(KMeans(4, random_state=3, **options), np.array_split(X, 5))
    np.testing.assert_allclose(parts.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
    assert parts.inertia_ == pytest.approx(whole.inertia_, rel=1e-12)
    assert parts.n_iter_ == whole.n_iter_
    np.testing.assert_array_equal(parts.predict(X), whole.labels_)


def test_kmeans_keeps_single_precision_and_names():
    frame = pd.DataFrame(rows(500), columns=list("abcd")).astype(np.float32)
    whole = KMeans(3, n_init=2, random_state=0).fit(frame)
    parts = streaming.fit(KMeans(3, n_init=2, random_state=0), pieces(frame, [100, 333]))
    assert parts.cluster_centers_.dtype == np.float32
    assert parts.feature_names_in_.tolist() == list("abcd")
    np.testing.assert_allclose(parts.cluster_centers_, whole.cluster_centers_, rtol=1e-4)
    np.testing.assert_array_equal(parts.predict(frame), whole.labels_)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("width", [1, 3])
def test_scalers_learn_what_they_learn_in_memory(order, gaps, width, small_chunks):
    X = rows(CHUNK + 4_321, d=width) * 10.0 ** np.arange(width)
    X[:, -1] = 7.25 if width > 1 else X[:, -1]  # a constant column
    if gaps:
        X[5::11, 0] = np.nan
    X = np.asarray(X, order=order)
    for scaler in (StandardScaler(), StandardScaler(with_mean=False), MinMaxScaler()):
        whole, parts = type(scaler)(**scaler.get_params()).fit(X), scaler
        model = make_pipeline(parts, SimpleImputer(), SHARK(2, n_init=1, random_state=0))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", WeightCollapseWarning)
            streaming.fit(model, pieces(X, divisions(len(X))[0]))
        for name in ("mean_", "var_", "scale_", "min_", "n_samples_seen_"):
            if getattr(whole, name, None) is not None:
                assert_same(parts, whole, (name,))


@pytest.mark.parametrize("strategy", ["mean", "median", "most_frequent", "constant"])
def test_imputers_fill_in_what_memory_would(strategy, small_chunks):
    frame = customers(5_000)[["income", "visits"]].astype(float)
    frame["empty"] = np.nan
    for kept in (True, False):
        whole = SimpleImputer(strategy=strategy, keep_empty_features=kept)
        parts = SimpleImputer(strategy=strategy, keep_empty_features=kept)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", (UserWarning, WeightCollapseWarning))
            whole.fit(frame)
            model = make_pipeline(parts, SHARK(2, n_init=1, random_state=0))
            streaming.fit(model, pieces(frame, [7, 2_500]))
        assert parts.statistics_.dtype == whole.statistics_.dtype
        told, expected = parts.statistics_.astype(float), whole.statistics_.astype(float)
        np.testing.assert_allclose(told, expected, rtol=1e-14)


def test_an_imputer_marks_gaps_that_only_a_later_table_has():
    frame = customers(300)[["age", "income", "visits"]].astype(float)
    frame.loc[:99, "income"] = 1.0
    frame.loc[150, "visits"] = np.nan
    whole, parts = SimpleImputer(add_indicator=True).fit(frame), SimpleImputer(add_indicator=True)
    streaming.fit(
        make_pipeline(parts, KMeans(2, n_init=1, random_state=0)), pieces(frame, [100, 200])
    )
    np.testing.assert_allclose(parts.transform(frame), whole.transform(frame), rtol=1e-14)
    assert parts.get_feature_names_out().tolist() == whole.get_feature_names_out().tolist()


def test_encoders_find_the_levels_of_arrays_in_all_tables():
    texts = np.array([["b", "x"], ["a", "x"], ["b", np.nan], ["c", "y"]], dtype=object)
    numbers = np.array([[3.0], [np.nan], [1.0], [3.0], [np.nan], [2.0]])
    for X in (np.repeat(texts, 5, axis=0), np.repeat(numbers, 5, axis=0)):
        whole = OneHotEncoder(sparse_output=False).fit(X)
        parts = OneHotEncoder(sparse_output=False)
        streaming.fit(make_pipeline(parts, KMeans(2, n_init=1, random_state=0)), pieces(X, [1, 9]))
        for found, expected in zip(parts.categories_, whole.categories_, strict=True):
            assert found.dtype == expected.dtype
            assert found.astype(str).tolist() == expected.astype(str).tolist()


def encoder():
    return make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income"]),
        (MaxAbsScaler(), ["visits"]),
        (OneHotEncoder(), ["job"]),
        (OrdinalEncoder(), ["size"]),
        remainder="passthrough",
    )


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_a_whole_pipeline_learns_the_same_from_tables_of_any_kind(kind):
    frame = customers()
    whole = make_pipeline(encoder(), SHARK(3, n_init=3, random_state=0)).fit(frame)
    source = [kind(part) for part in pieces(frame.reset_index(drop=True), [1, 700, 1_500])]
    parts = streaming.fit(make_pipeline(encoder(), SHARK(3, n_init=3, random_state=0)), source)
    np.testing.assert_array_equal(
        parts[0].get_feature_names_out(), whole[0].get_feature_names_out()
    )
    assert parts[0].sparse_output_ == whole[0].sparse_output_
    made = parts[0].transform(frame)
    np.testing.assert_allclose(made, whole[0].transform(frame), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(parts[-1].cluster_centers_, whole[-1].cluster_centers_, rtol=1e-9)
    np.testing.assert_array_equal(parts.predict(frame), whole.predict(frame))


@pytest.mark.parametrize("retain", [1.0, 0.9])
@pytest.mark.parametrize("contract_bounds", [False, True])
def test_an_explainer_learns_the_same_ranges_and_contraction(retain, contract_bounds, small_chunks):
    X = rows()
    options = {"retain": retain, "contract_bounds": contract_bounds}
    whole = VoICE(SHARK(3, n_init=2, random_state=0), **options).fit(X)
    voice = VoICE(SHARK(3, n_init=2, random_state=0), **options)
    parts = streaming.fit(voice, np.split(X, divisions(len(X))[0]))
    assert_same(whole.learned_, parts.learned_, ("alpha", "spread", "weights", "ranking"))
    assert_same(whole.learned_.bounds, parts.learned_.bounds, ("lo", "hi", "box"))


def test_an_explainer_of_a_pipeline_gives_the_same_answers(small_chunks):
    frame = customers(CHUNK + 2_000)
    frame["log"] = np.exp(rows(len(frame), d=1)[:, 0].round(1))
    curve = FunctionTransformer(np.log, inverse_func=np.exp, feature_names_out="one-to-one")

    def voice():
        steps = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), ["age", "income", "visits"]),
            (curve, ["log"]),
            (OneHotEncoder(), ["job", "size"]),
        )
        return VoICE(make_pipeline(steps, KMeans(3, n_init=1, random_state=0)))

    whole = voice().fit(frame)
    fitted = VoICE(whole.model_)
    for parts in (
        streaming.fit(fitted, pieces(frame, [10, 20_000])),
        streaming.fit(voice(), lambda: iter(pieces(frame, [10, 20_000]))),
    ):
        exact = parts is fitted
        assert_near = np.testing.assert_array_equal if exact else np.testing.assert_allclose
        for name in ("alpha", "spread"):
            assert_near(getattr(parts.learned_, name), getattr(whole.learned_, name))
        for name in ("lo_", "hi_"):
            assert_near(getattr(parts, name), getattr(whole, name))
        assert [c.levels for c in parts.space_.columns] == [c.levels for c in whole.space_.columns]
        assert [c.whole for c in parts.space_.columns] == [c.whole for c in whole.space_.columns]
        some = frame.sample(20, random_state=0)
        expected, told = whole.explain(some), parts.explain(some)
        np.testing.assert_allclose(told.cost, expected.cost, rtol=1e-9)
        assert (parts.model_.predict(told.to_frame()[frame.columns]) == told.target).all()


def test_an_explainer_with_declared_categories_checks_every_table(small_chunks):
    X = pd.DataFrame({"size": rows(CHUNK + 100, d=1)[:, 0], "red": 1.0, "blue": 0.0})
    voice = VoICE(KMeans(2, n_init=1, random_state=0), categories={"colour": ["red", "blue"]})
    X.loc[X.index % 2 == 0, ["red", "blue"]] = [0.0, 1.0]
    streaming.fit(voice, pieces(X, [50]))
    assert voice.space_.columns[1].levels == ("red", "blue")
    X.loc[CHUNK + 50, "blue"] = 0.5
    with pytest.raises(DataError, match=f"row {CHUNK + 50} has 0.5 in 'blue'"):
        streaming.fit(voice, pieces(X, [50]))


def test_a_mixing_step_that_is_fitted_already_is_used_as_it_is(small_chunks):
    X = rows()
    pca = PCA(2, random_state=0).fit(X[:1_000])
    voice = VoICE(make_pipeline(pca, KMeans(3, n_init=1, random_state=0)))
    streaming.fit(voice, np.array_split(X, 3))
    expected = VoICE(voice.model_).fit(X)
    assert_same(voice, expected, ("alpha_", "lo_", "hi_"))
    assert_same(voice.learned_, expected.learned_, ("origins",))


def test_memory_does_not_grow_with_the_rows():
    centers, n = 4.0 * np.eye(4)[:3], 32_768

    def source(n_tables):
        def tables():
            for seed in range(n_tables):
                rng = np.random.default_rng(seed)
                yield rng.normal(size=(n, 4)) + centers[rng.integers(3, size=n)]

        return tables

    peaks = []
    for n_tables in (3, 12):
        voice = VoICE(SHARK(3, init=centers, max_iter=5))
        streaming.fit(voice, source(3))  # compile first
        tracemalloc.start()
        streaming.fit(VoICE(SHARK(3, init=centers, max_iter=5)), source(n_tables))
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Nine more tables take less than one table does: what is kept of their members' extremes.
    assert peaks[1] - peaks[0] < centers.itemsize * n * 4


def test_progress_tells_pass_and_rows():
    told = []
    X = rows(1_000)
    streaming.fit(
        SHARK(2, n_init=1, random_state=0), [X[:300], X[300:]], progress=lambda *at: told.append(at)
    )
    assert [at for at, _ in told[::2]] == [at for at, _ in told[1::2]]
    assert [at for at, _ in told[::2]] == list(range(1, len(told) // 2 + 1))
    assert [n for _, n in told] == [300, 1_000] * (len(told) // 2)


def test_record_batches_and_parquet_files_are_sources(tmp_path):
    import pyarrow.parquet as pq

    frame = pd.DataFrame(rows(3_000), columns=list("abcd"))
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "rows.parquet", row_group_size=700)
    whole = SHARK(3, n_init=2, random_state=0).fit(frame)
    batches = pa.Table.from_pandas(frame).to_batches(max_chunksize=999)
    for source in (batches, pq.ParquetFile(tmp_path / "rows.parquet")):
        assert_same(whole, streaming.fit(SHARK(3, n_init=2, random_state=0), source))


def test_tables_that_differ_in_the_type_of_a_number_are_joined():
    frame = customers(400)[["age", "visits"]]
    source = [frame[:100], frame[100:].astype(float)]
    for kind in (pd.DataFrame, pl.from_pandas):
        parts = streaming.fit(VoICE(KMeans(2, random_state=0)), [kind(part) for part in source])
        assert not any(column.whole for column in parts.space_.columns)
        assert parts.lo_.tolist() == frame.min().tolist()


def test_a_cluster_without_rows_is_told_of():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 20, axis=0)
    with pytest.warns(ConvergenceWarning, match="2 distinct rows"):
        streaming.fit(SHARK(3, n_init=1, random_state=0), [X[:9], X[9:]])


def test_what_can_be_read_once_is_refused_with_the_remedy():
    with pytest.raises(DataError, match="pass a function that opens it again"):
        streaming.fit(SHARK(2), (part for part in [rows(100)]))


def test_a_source_that_runs_dry_is_told_of():
    once = iter([rows(100)])
    with pytest.raises(DataError, match=r"no rows|100 rows in the first pass and 0 in pass"):
        streaming.fit(SHARK(2), lambda: once)


def test_a_step_that_needs_all_rows_is_refused_with_the_remedy():
    with pytest.raises(ModelError, match="Fit this step on a sample first"):
        streaming.fit(make_pipeline(QuantileTransformer(), SHARK(2)), [rows(100)])
    fitted = QuantileTransformer(n_quantiles=50).fit(rows(100))
    model = streaming.fit(make_pipeline(fitted, SHARK(2, n_init=1)), [rows(100)])
    assert model[0] is fitted


@pytest.mark.parametrize(
    ("model", "source", "error", "words"),
    [
        (MiniBatchKMeans(2), [rows(50)], ModelError, "MiniBatchKMeans cannot be learned"),
        (SHARK(2), [], DataError, "no rows"),
        (SHARK(2), 7, DataError, "int is not a source of tables"),
        (SHARK(2), [rows(9), rows(9, d=3)], DataError, "4 and 3 columns"),
        (SHARK(2), [rows(9), pd.DataFrame(rows(9))], DataError, "mixes frames and arrays"),
        (KMeans(50), [rows(9)], DataError, "n_samples=9 should be >= n_clusters=50"),
        (KMeans(2, init=lambda *_: 0), [rows(9)], ModelError, "init is a function"),
        (
            SHARK(2),
            [customers(9)[["age", "visits"]], customers(9)[["age"]]],
            ColumnError,
            "lacks 'visits'",
        ),
    ],
)
def test_what_cannot_be_learned_is_refused_with_words(model, source, error, words):
    with pytest.raises(error, match=words):
        streaming.fit(model, source)
