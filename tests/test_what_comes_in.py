"""What scikit-learn accepts is explained: transformers, missing values, rows in any form."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import special
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import IterativeImputer, KNNImputer, MissingIndicator, SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline, make_union
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
    TargetEncoder,
)

from voicecf import Status, VoICE, streaming
from voicecf.errors import ColumnError, DataError, ModelError, OptionError, SavingError


def kmeans(k=3):
    return KMeans(k, n_init=3, random_state=0)


def people(n=120, seed=0):
    """Return rows with two positive numbers, a whole number and two categories."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, n)
    return pd.DataFrame(
        {
            "income": np.exp(rng.normal(kind, 0.4)),
            "age": 30.0 + 8.0 * kind + rng.normal(0, 3.0, n),
            "visits": rng.poisson(3 + 4 * kind),
            "town": rng.choice(["Rome", "Oslo", "Bonn", "Lima"], n, p=[0.5, 0.3, 0.12, 0.08]),
            "member": rng.random(n) < 0.4,
        }
    )


def explained(pipeline, frame, rows=None, **rules):
    """Explain rows in several ways; check each answer by the pipeline's own predict."""
    voice = VoICE(pipeline, contraction=1.0).fit(frame)
    rows = frame[:4] if rows is None else rows
    for target, objective in product(("nearest", "each"), ("fewest", "cost")):
        cf = voice.explain(rows, target=target, objective=objective, **rules)
        assert cf.feasible.mean() > 0.25, cf
        assert_in_target(pipeline, cf)
    assert_written(pipeline, cf)
    return voice, cf


def assert_in_target(pipeline, cf):
    good = cf[cf.feasible]
    table = good.to_frame()
    rows = table if hasattr(pipeline, "feature_names_in_") else table.to_numpy()
    np.testing.assert_array_equal(pipeline.predict(rows), good.target)


def assert_written(pipeline, cf):
    """Check the other forms of answers: in few digits, as JSON, as a table and as sentences."""
    assert_in_target(pipeline, cf.rounded())
    answers = json.loads(cf.to_json())["answers"]
    assert [answer["feasible"] for answer in answers] == cf.feasible.tolist()
    assert len(cf.changes()) == sum(len(cf.outcome.changed(i)) for i in range(len(cf)))
    assert cf.text(0, all=True) == answers[0]["text"]
    assert cf.status[0] == Status.INFEASIBLE or cf.reason(0).text == cf.text(0)


# Functions with a known inverse

FUNCTIONS = [
    np.log, np.log2, np.log10, np.log1p, np.exp, np.expm1, np.sqrt, np.cbrt, np.square, np.arcsinh,
    np.reciprocal, np.negative, special.log1p, special.expit,
]  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_known_function_needs_no_inverse(function):
    frame = people()[["income", "age"]] / [1.0, 20.0]
    pipeline = make_pipeline(FunctionTransformer(function), StandardScaler(), kmeans()).fit(frame)
    voice = VoICE(pipeline, contraction=1.0).fit(frame)
    cf = voice.explain(frame[:4], target="each")
    assert_in_target(pipeline, cf)
    assert not any(column.listed for column in voice.space_.columns)
    with_inverse = FunctionTransformer(function, inverse_func=cf_inverse(function))
    other = make_pipeline(with_inverse, StandardScaler(), kmeans()).fit(frame)
    expected = VoICE(other, contraction=1.0).fit(frame).explain(frame[:4], target="each")
    np.testing.assert_array_equal(cf.points, expected.points)


def cf_inverse(function):
    """Return the inverse as a user would write it."""
    inverses = {
        np.log: np.exp, np.log2: np.exp2, np.log10: special.exp10, np.log1p: np.expm1,
        np.exp: np.log, np.expm1: np.log1p, np.sqrt: np.square, np.cbrt: lambda z: z**3,
        np.square: np.sqrt, np.arcsinh: np.sinh, np.reciprocal: np.reciprocal,
        np.negative: np.negative, special.log1p: special.expm1, special.expit: special.logit,
    }  # fmt: skip
    return inverses[function]


@pytest.mark.parametrize("shift", [-10.0, -2.5])
def test_the_square_of_negative_numbers_keeps_their_sign(shift):
    frame = people()[["income", "age"]] / [1.0, 20.0]
    frame["income"] += shift
    pipeline = make_pipeline(FunctionTransformer(np.square), StandardScaler(), kmeans()).fit(frame)
    voice, cf = explained(pipeline, frame)
    answers = cf[cf.feasible].to_frame()
    assert answers["income"].isin(frame["income"]).all()
    assert voice.space_.columns[0].listed


def test_an_unknown_function_still_asks_for_its_inverse():
    frame = people()[["income", "age"]]
    pipeline = make_pipeline(FunctionTransformer(lambda X: X**5), kmeans()).fit(frame)
    with pytest.raises(ModelError, match=r"inverse_func=np\.expm1"):
        VoICE(pipeline).fit(frame)


# Levels that share a code

MERGED = {
    "one-hot, frequency": OneHotEncoder(min_frequency=20, handle_unknown="ignore"),
    "one-hot, dropped": OneHotEncoder(max_categories=3, drop="first"),
    "ordinal": OrdinalEncoder(max_categories=3),
    "target": TargetEncoder(smooth=1e12),
}


@pytest.mark.parametrize("case", MERGED)
def test_levels_of_one_code_are_named_by_the_most_frequent(case):
    frame = people()
    table = make_column_transformer((MERGED[case], ["town"]), (StandardScaler(), ["age"]))
    pipeline = make_pipeline(table, kmeans()).fit(frame, frame["age"])
    _, cf = explained(pipeline, frame)
    before, after = frame["town"].iloc[cf.row].to_numpy(), cf.to_frame()["town"].to_numpy()
    codes = pipeline[0].transformers_[0][1].transform
    same = (
        dense(codes(frame.iloc[cf.row][["town"]]))
        == dense(codes(cf.to_frame()[["town"]].fillna("Rome")))
    ).all(axis=1)
    same &= cf.feasible
    assert (before[same] == after[same]).all()
    if case != "target":  # Bonn and Lima are the infrequent ones, and Bonn is the more frequent
        assert not {"Lima"} & set(after[~same])


def dense(codes):
    return codes.toarray() if hasattr(codes, "toarray") else np.asarray(codes)


def test_a_merged_level_cannot_be_asked_for_by_a_name_that_no_answer_uses():
    frame = people()
    table = make_column_transformer((MERGED["ordinal"], ["town"]), (StandardScaler(), ["age"]))
    voice = VoICE(make_pipeline(table, kmeans())).fit(frame)
    with pytest.raises(OptionError, match="'Lima' and 'Bonn' one code"):
        voice.explain(frame[:3], levels={"town": ["Lima"]})
    cf = voice.explain(frame[:30], target="each", levels={"town": ["Bonn"]})
    changes = cf.changes()
    assert set(changes["to"][changes["feature"] == "town"]) == {"Bonn"}


def test_a_merged_answer_is_the_cheapest_of_all_levels_and_numbers():
    frame = people()[["town", "visits"]]
    table = make_column_transformer(
        (OneHotEncoder(max_categories=3), ["town"]), (StandardScaler(), ["visits"])
    )
    pipeline = make_pipeline(table, kmeans()).fit(frame)
    voice = VoICE(pipeline, contraction=1.0).fit(frame)
    cf = voice.explain(frame[:6], target="each", plausible=None)
    visits = range(frame["visits"].min(), frame["visits"].max() + 1)
    every = pd.DataFrame(list(product(frame["town"].unique(), visits)), columns=list(frame))
    coordinates, labels = dense(table.transform(every)), pipeline.predict(every)
    for i in range(len(cf)):
        move = coordinates - dense(table.transform(frame.iloc[[cf.row[i]]]))
        cost = (move**2 / move.shape[1]).sum(axis=1)[labels == cf.target[i]].min()
        assert cf.cost[i] == pytest.approx(cost, rel=1e-9)


@pytest.mark.parametrize("case", ["one-hot, frequency", "one-hot, dropped", "ordinal"])
def test_a_stream_merges_the_levels_that_a_table_merges(case):
    frame = people()[["town", "age"]]
    frame.loc[::9, "town"] = np.nan
    if case == "ordinal":
        frame = frame.dropna()
    table = make_column_transformer((MERGED[case], ["town"]), (StandardScaler(), ["age"]))
    models = [clone(make_pipeline(table, kmeans(2))) for _ in range(2)]
    in_memory = VoICE(models[0]).fit(frame)
    parts = [frame[i : i + 25] for i in range(0, len(frame), 25)]
    streamed = streaming.fit(VoICE(models[1]), parts)
    tables = [dense(voice.model_[0].transform(frame)) for voice in (streamed, in_memory)]
    np.testing.assert_array_equal(*tables)
    columns = [voice.space_.columns[0] for voice in (streamed, in_memory)]
    assert str(columns[0].levels) == str(columns[1].levels)
    np.testing.assert_array_equal(columns[0].options, columns[1].options)
    cf = streamed.explain(frame[:10], target="each")
    np.testing.assert_array_equal(
        streamed.model_.predict(cf[cf.feasible].to_frame()), cf.target[cf.feasible]
    )


# Numbers coded by bins

BINNED = {
    "one-hot": KBinsDiscretizer(4, encode="onehot", quantile_method="averaged_inverted_cdf"),
    "dense": KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"),
    "ordinal": KBinsDiscretizer(4, encode="ordinal", strategy="kmeans"),
    "two": make_pipeline(SimpleImputer(), StandardScaler(), Binarizer()),
}


@pytest.mark.parametrize(
    ("case", "kind"),
    [("one-hot", "pandas"), ("dense", "polars"), ("ordinal", "array"), ("two", "pandas")],
)
def test_an_answer_moves_to_a_typical_number_of_a_bin(case, kind):
    frame = people()[["visits", "age", "income"]]
    data = {"pandas": frame, "polars": pl.DataFrame(frame), "array": frame.to_numpy()}[kind]
    table = ColumnTransformer(
        [("bins", BINNED[case], [0, 1]), ("scale", StandardScaler(), [2])], sparse_threshold=0
    )
    pipeline = make_pipeline(table, kmeans()).fit(data)
    _, cf = explained(pipeline, data, increase_only=[0])
    after = cf[cf.feasible].to_frame()
    before = frame.iloc[cf[cf.feasible].row]
    bins = pipeline[0].transformers_[0][1]
    names = list(frame) if kind != "array" else ["x0", "x1", "x2"]
    new = np.column_stack([np.asarray(after[name]) for name in names])
    if kind == "pandas":
        assert after["visits"].dtype == frame["visits"].dtype
    for c, name in enumerate(list(frame)[:2]):
        moved = new[:, c] != before[name].to_numpy()
        assert np.isin(new[moved, c], frame[name]).all()
    assert (new[:, :2] != before.iloc[:, :2]).any(axis=None)
    assert (new[:, 0] >= before["visits"]).all()
    new_frame = pd.DataFrame(new[:, :2], columns=list(frame)[:2])
    taken = new_frame if kind == "pandas" else new_frame.to_numpy()
    old = before.iloc[:, :2] if kind == "pandas" else before.iloc[:, :2].to_numpy()
    if kind == "polars":
        return
    codes = dense(bins.transform(taken)), dense(bins.transform(old))
    unmoved = (codes[0] == codes[1]).all(axis=1)
    np.testing.assert_array_equal(new[unmoved, :2], before.iloc[unmoved, :2])


def test_the_typical_number_of_a_bin_is_its_median():
    frame = pd.DataFrame({"visits": [1, 2, 2, 2, 9, 20, 21, 22, 30, 31], "age": np.arange(10.0)})
    bins = KBinsDiscretizer(2, encode="ordinal", strategy="uniform")
    table = make_column_transformer((bins, ["visits"]), (StandardScaler(), ["age"]))
    voice = VoICE(make_pipeline(table, kmeans(2))).fit(frame)
    assert voice.space_.columns[0].levels == (2, 22)
    assert voice.space_.columns[0].whole


# Missing values that the model sees


def gappy(n=120):
    frame = people(n)[["income", "age", "visits"]].astype({"visits": float})
    rng = np.random.default_rng(1)
    return frame.mask(rng.random(frame.shape) < 0.15)


INDICATED = {
    "imputer": make_pipeline(SimpleImputer(add_indicator=True), StandardScaler()),
    "union": make_pipeline(
        make_union(SimpleImputer(), MissingIndicator()), StandardScaler(), PCA(4)
    ),
    "neighbours": make_pipeline(KNNImputer(add_indicator=True), StandardScaler()),
}


@pytest.mark.parametrize("case", INDICATED)
def test_a_missing_value_stays_missing_where_the_model_knows_that_it_is(case):
    frame = gappy()
    pipeline = make_pipeline(INDICATED[case], kmeans()).fit(frame)
    full = frame.dropna()[:6]
    rows = full if case == "neighbours" else pd.concat([full, frame[frame.isna().any(axis=1)][:6]])
    _, cf = explained(pipeline, frame, rows)
    good = cf[cf.feasible]
    np.testing.assert_array_equal(good.to_frame().isna(), rows.iloc[good.row].isna())
    with_gaps = rows.iloc[good.row].isna().any(axis=1).to_numpy()
    assert with_gaps.any() == (case != "neighbours")
    assert (good.n_changed[with_gaps] > 0).all()


def test_a_missing_level_stays_missing_where_the_model_knows_that_it_is():
    frame = people()
    frame.loc[::5, "town"] = np.nan
    levels = make_pipeline(
        SimpleImputer(strategy="most_frequent", add_indicator=True), OneHotEncoder()
    )
    table = make_column_transformer((levels, ["town"]), (StandardScaler(), ["age", "income"]))
    pipeline = make_pipeline(table, kmeans()).fit(frame)
    _, cf = explained(pipeline, frame, frame[:11])
    good = cf[cf.feasible]
    missing = frame["town"].iloc[good.row].isna().to_numpy()
    np.testing.assert_array_equal(good.to_frame()["town"].isna(), missing)
    assert missing.any()


# Columns that go into several transformers

MIXED = {
    "union": make_union(StandardScaler(), MinMaxScaler()),
    "union with pca": make_pipeline(StandardScaler(), make_union(PCA(2), "passthrough")),
    "weights": FeatureUnion(
        [("a", StandardScaler()), ("b", TruncatedSVD(2))], transformer_weights={"a": 3.0}
    ),
    "twice": ColumnTransformer(
        [("a", StandardScaler(), ["income", "age"]), ("b", MinMaxScaler(), ["age", "visits"])]
    ),
    "inner pca": ColumnTransformer(
        [
            ("towns", OneHotEncoder(), ["town"]),
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler(), PCA(2)),
             ["income", "age", "visits"]),
        ]
    ),
    "inner selector": make_pipeline(
        make_column_transformer(
            (make_pipeline(FunctionTransformer(np.log1p), VarianceThreshold(0.1)), [0, 1]),
            ("passthrough", ["visits"]),
        ),
        StandardScaler(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MIXED)
def test_a_column_may_go_into_several_affine_transformers(case):
    frame = people()
    frame = frame if case == "inner pca" else frame[["income", "age", "visits"]]
    pipeline = make_pipeline(MIXED[case], kmeans()).fit(frame)
    voice, _ = explained(pipeline, frame)
    x = dense(pipeline[0].transform(frame))
    rows = voice.space_.read(frame)
    np.testing.assert_allclose(voice.space_.mixing(rows.points), x, rtol=1e-9, atol=1e-9)


def test_a_repeated_scaler_costs_as_much_as_the_scaler_alone():
    frame = people()[["income", "age"]]
    once = make_pipeline(StandardScaler(), kmeans()).fit(frame)
    twice = make_pipeline(make_union(StandardScaler(), StandardScaler()), kmeans()).fit(frame)
    np.testing.assert_array_equal(once.predict(frame), twice.predict(frame))
    found = [VoICE(p).fit(frame).explain(frame[:20], target="each") for p in (once, twice)]
    np.testing.assert_allclose(found[0].cost, found[1].cost, rtol=1e-6)
    np.testing.assert_allclose(found[0].to_frame(), found[1].to_frame(), rtol=1e-6)


# Encoders that look at a target


@pytest.mark.parametrize("several", [False, True])
def test_a_level_may_be_coded_by_the_target_that_it_had(several):
    frame = people()
    target = frame["visits"] % 3 if several else frame["age"]
    kind = "multiclass" if several else "continuous"
    table = make_column_transformer(
        (TargetEncoder(target_type=kind), ["town", "member"]),
        (StandardScaler(), ["income"]),
    )
    pipeline = make_pipeline(table, StandardScaler(), kmeans()).fit(frame, target)
    voice, _ = explained(pipeline, frame)
    width = 3 if several else 1
    assert [len(column.places) for column in voice.space_.columns] == [1, width, width]


# Missing values in text and booleans


def with_gaps(kind, column="town"):
    frame = people().astype({column: object})
    frame.loc[::4, column] = None
    if kind == "polars":
        return pl.DataFrame(frame)
    return frame.astype({column: kind})


FILLED = make_pipeline(
    SimpleImputer(strategy="most_frequent", missing_values=None), OneHotEncoder()
)
GAPS = {
    "objects": ("object", OneHotEncoder()),
    "objects, ordinal": ("object", OrdinalEncoder()),
    "text": ("str", OneHotEncoder()),
    "levels": ("category", OneHotEncoder()),
    "polars": ("polars", OneHotEncoder()),
    "objects, imputed": ("object", FILLED),
    "text, imputed": (
        "str", make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
    ),
    "polars, imputed": ("polars", FILLED),
}  # fmt: skip


@pytest.mark.parametrize("case", GAPS)
def test_a_missing_level_is_read_as_the_encoder_reads_it(case):
    kind, encoder = GAPS[case]
    frame = with_gaps(kind)
    columns = ["town"] if "imputed" in case else ["town", "member"]
    table = make_column_transformer((encoder, columns), (StandardScaler(), ["age"]))
    pipeline = make_pipeline(table, kmeans()).fit(frame)
    explained(pipeline, frame)


def test_a_nullable_boolean_and_a_category_share_an_encoder():
    frame = with_gaps("boolean", "member").astype({"town": "category"})
    table = make_column_transformer(
        (OneHotEncoder(), ["town", "member"]), (StandardScaler(), ["age"])
    )
    pipeline = make_pipeline(table, kmeans()).fit(frame)
    _, cf = explained(pipeline, frame)
    assert cf.to_frame().dtypes.to_dict() == frame.dtypes.to_dict()


# Rows in any form


@pytest.mark.parametrize("form", ["dict", "dicts", "series", "polars"])
def test_a_row_may_be_a_dict_or_a_series(form):
    frame = people()
    table = make_column_transformer(
        (OneHotEncoder(), ["town", "member"]), (StandardScaler(), ["age", "visits"])
    )
    pipeline = make_pipeline(table, kmeans()).fit(frame)
    voice = VoICE(pipeline).fit(frame)
    row, n = frame.iloc[3], 2 if form == "dicts" else 1
    given = {
        "dict": row.to_dict(),
        "dicts": [frame.iloc[i].to_dict() for i in (3, 4)],
        "series": row,
        "polars": pl.DataFrame(frame).row(3, named=True),
    }[form]
    np.testing.assert_array_equal(voice.predict(given), pipeline.predict(frame[3 : 3 + n]))
    cf, expected = voice.explain(given), voice.explain(frame[3 : 3 + n])
    np.testing.assert_array_equal(cf.points, expected.points)
    assert cf.text(0).split(" moves ")[1] == expected.text(0).split(" moves ")[1]
    np.testing.assert_array_equal(pipeline.predict(cf.to_frame()), cf.target)
    if form == "series":
        assert cf.to_frame().index.tolist() == [3]


def test_a_bare_model_takes_a_dict_too():
    frame = people()[["age", "income"]]
    voice = VoICE(kmeans()).fit(frame)
    assert voice.predict({"income": frame["income"][0], "age": frame["age"][0]}) == voice.predict(
        frame[:1]
    )


# Rows that cannot be read


def mixed_pipeline(frame):
    table = make_column_transformer(
        (OneHotEncoder(), ["town"]),
        (StandardScaler(), ["age", "visits"]),
        (make_pipeline(FunctionTransformer(np.log), StandardScaler()), ["income"]),
    )
    return make_pipeline(table, kmeans()).fit(frame)


FAULTS = {
    1: ("town", "Kiel", "Row 1 cannot be read: town has the level 'Kiel', which is not known from"),
    2: ("age", np.nan, "Row 2 cannot be read: age has no value"),
    3: ("visits", np.inf, "Row 3 cannot be read: visits is inf"),
    4: ("income", -3.0, "Row 4 cannot be read: income is -3, which the steps"),
    5: ("town", None, "Row 5 cannot be read: town has no value"),
}


@pytest.mark.parametrize("objective", ["cost", "fewest"])
@pytest.mark.parametrize("target", ["nearest", "each", 1])
def test_a_row_that_cannot_be_read_has_a_status_of_its_own(objective, target):
    frame = people().drop(columns="member")
    voice = VoICE(mixed_pipeline(frame), contraction=1.0).fit(frame)
    rows = frame[:8].astype({"visits": float})
    for row, (column, value, _) in FAULTS.items():
        rows.loc[row, column] = value
    options = {"target": target, "objective": objective, "increase_only": "age"}
    cf = voice.explain(rows, **options)
    sound = ~np.isin(cf.row, list(FAULTS))
    alone = voice.explain(frame.iloc[[0, 6, 7]].astype({"visits": float}), **options)
    np.testing.assert_array_equal(cf.points[sound], alone.points)
    np.testing.assert_array_equal(cf.status[sound], alone.status)
    assert (cf.status[~sound] == Status.UNREADABLE).all()
    assert not cf.feasible[~sound].any()
    assert (cf.source[~sound] == -1).all()
    assert np.isnan(cf.points[~sound]).all()
    assert np.isnan(cf.multipliers[~sound]).all()
    for i in np.flatnonzero(~sound).tolist():
        assert cf.text(i).startswith(FAULTS[int(cf.row[i])][2])
    first = int(np.flatnonzero(~sound)[0])
    assert cf.reason(first).text == cf.text(first)
    assert cf.to_frame()[~sound].isna().all(axis=None)
    assert json.loads(cf.to_json())["answers"][first]["values"] is None
    pd.testing.assert_frame_equal(cf.factual, rows)
    with pytest.raises(DataError):
        voice.explain(rows, errors="raise", **options)
    with pytest.raises(DataError):
        voice.predict(rows)


def texts(rows):
    """Return a polars frame in which a column of gaps is one of texts."""
    frame = pl.DataFrame(rows)
    return frame.with_columns(frame.select(pl.col(pl.Null).cast(pl.String)))


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, texts])
@pytest.mark.parametrize("gap", ["visits", "town"])
def test_one_row_with_a_gap_says_so(kind, gap):
    """As JSON brings it: a column of a single None has no type, or one that says nothing."""
    frame = people()
    encode = make_column_transformer(
        (StandardScaler(), ["income", "age", "visits"]), (OneHotEncoder(), ["town", "member"])
    )
    voice = VoICE(make_pipeline(encode, kmeans())).fit(frame)
    row = {**frame.iloc[0].to_dict(), gap: None}
    cf = voice.explain(kind([row]))
    assert cf.text(0).startswith(f"Row 0 cannot be read: {gap} has no value.")


@pytest.mark.parametrize("kind", ["array", "pandas", "polars", "Int64"])
@pytest.mark.parametrize("options", [{"target": 1}, {"target": "each", "objective": "fewest"}])
def test_a_number_that_is_missing_is_the_fault_of_its_row_alone(kind, options):
    frame = people()[["age", "income", "visits"]].astype(float)
    voice = VoICE(kmeans()).fit(frame)
    rows = frame[:6].copy()
    rows.iloc[2, 1], rows.iloc[4, 2] = np.nan, np.nan if kind == "Int64" else -np.inf
    given = {
        "array": rows.to_numpy(), "pandas": rows, "polars": pl.DataFrame(rows),
        "Int64": rows.convert_dtypes(),
    }[kind]  # fmt: skip
    cf = voice.explain(given, **options)
    sound = ~np.isin(cf.row, [2, 4])
    alone = voice.explain(frame.iloc[[0, 1, 3, 5]], **options)
    np.testing.assert_array_equal(cf.points[sound], alone.points)
    np.testing.assert_array_equal(cf.cost[sound], alone.cost)
    assert (cf.status[~sound] == Status.UNREADABLE).all()
    texts = {cf.text(int(i)) for i in np.flatnonzero(~sound)}
    assert any(text.startswith("Row 2 cannot be read: income has no value.") for text in texts)
    assert any(text.startswith("Row 4 cannot be read: visits") for text in texts)
    with pytest.raises(DataError, match="row 2"):
        voice.explain(given, errors="raise", **options)
    answers = cf.to_frame()
    answers = answers.to_pandas() if kind == "polars" else answers
    assert answers[~sound].isna().all(axis=None)


@pytest.mark.parametrize("imputer", [KNNImputer(), IterativeImputer(max_iter=2, tol=1.0)])
def test_a_value_filled_in_from_other_columns_is_the_fault_of_its_row(imputer):
    frame = gappy()
    pipeline = make_pipeline(imputer, StandardScaler(), kmeans()).fit(frame)
    full, holed = frame.dropna()[:3], frame[frame.isna().any(axis=1)][:2]
    rows = pd.concat([full, holed])
    voice, _ = explained(pipeline, frame, rows)
    cf = voice.explain(rows)
    assert cf.status.tolist()[3:] == [Status.UNREADABLE] * 2
    assert "depends on other columns" in cf.text(3)
    np.testing.assert_array_equal(voice.predict(rows), pipeline.predict(rows))
    with pytest.raises(DataError, match="depends on other columns"):
        voice.explain(rows, errors="raise")


def test_another_error_of_the_pipeline_is_still_raised():
    def strict(X):
        if len(X) == 3:
            raise ValueError("three rows are too few")
        return X

    frame = people()[["age", "income"]]
    step = FunctionTransformer(strict, inverse_func=strict)
    voice = VoICE(make_pipeline(step, StandardScaler(), kmeans()).fit(frame)).fit(frame)
    with pytest.raises(DataError, match="three rows are too few"):
        voice.explain(frame[:3])


SAVED = {
    "merged": make_column_transformer((MERGED["ordinal"], ["town"]), (StandardScaler(), ["age"])),
    "bins": make_column_transformer((BINNED["one-hot"], ["visits"]), (StandardScaler(), ["age"])),
    "union": make_pipeline(FunctionTransformer(), MIXED["twice"]),
    "pca": MIXED["inner pca"],
    "indicator": make_column_transformer(
        (SimpleImputer(add_indicator=True), ["age", "visits"]),
        (FunctionTransformer(np.log1p), ["income"]),
    ),
}


@pytest.mark.parametrize("case", SAVED)
def test_what_comes_in_can_be_saved(case, tmp_path):
    frame = people().astype({"visits": float})
    if case == "indicator":
        frame.loc[5:10, "visits"] = np.nan
    voice = VoICE(make_pipeline(SAVED[case], kmeans())).fit(frame)
    voice.save(tmp_path / "voice")
    again = VoICE.load(tmp_path / "voice")
    expected = voice.explain(frame[:3], target="each")
    np.testing.assert_array_equal(again.explain(frame[:3], target="each").points, expected.points)


def test_a_column_that_the_model_does_not_use_may_be_locked_and_nothing_else():
    frame = pd.DataFrame({"a": [0.0, 0.1, 4.0, 4.1], "note": [1, 2, 3, 4]})
    only_a = ColumnTransformer([("a", "passthrough", ["a"])])
    voice = VoICE(make_pipeline(only_a, kmeans(2))).fit(frame)
    rows = frame.head(1)
    locked = voice.explain(rows, immutable=frame.columns.difference(["a"]))
    assert locked.to_frame().equals(voice.explain(rows).to_frame())
    with pytest.raises(ColumnError, match="'note' in increase_only is not used by the model"):
        voice.explain(rows, increase_only="note")


class Own(BaseEstimator, TransformerMixin):
    """A transformer of a user's own; a subclass has the function and its inverse."""

    def fit(self, X, y=None):
        self.n_features_in_ = np.asarray(X).shape[1]
        return self

    def transform(self, X):
        return self.there(np.asarray(X, dtype=float))

    def inverse_transform(self, X):
        return self.back(np.asarray(X, dtype=float))


class Cubes(Own):
    there, back = (
        staticmethod(lambda x: x + x**3),
        staticmethod(
            lambda y: (
                np.cbrt(y / 2 + np.sqrt(y**2 / 4 + 1 / 27))
                + np.cbrt(y / 2 - np.sqrt(y**2 / 4 + 1 / 27))
            )
        ),
    )


class Falls(Own):
    there, back = staticmethod(lambda x: -np.arcsinh(x)), staticmethod(lambda y: np.sinh(-y))


class Squares(Own):
    there, back = staticmethod(np.square), staticmethod(np.sqrt)


class WrongWayBack(Own):
    there, back = staticmethod(np.exp), staticmethod(lambda y: np.log(y) + 1)


class Fails(Own):
    there, back = staticmethod(np.exp), staticmethod(lambda y: y.to_numpy())


class Narrow(Own):
    there, back = staticmethod(np.exp), staticmethod(lambda y: np.log(y)[:, 0])


class RowSums(Own):
    there = staticmethod(lambda x: x / (1 + np.abs(x).sum(axis=1, keepdims=True)))
    back = staticmethod(lambda y: y)


class OneWay(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


def two_columns() -> pd.DataFrame:
    return pd.DataFrame(np.random.default_rng(0).normal(0, 2, (120, 2)), columns=["a", "b"])


@pytest.mark.parametrize("own", [Cubes(), Falls()])
def test_a_monotone_transformer_of_ones_own_is_followed(own, tmp_path):
    frame = two_columns()
    model = make_pipeline(own, StandardScaler(), KMeans(3, n_init=3, random_state=0))
    voice = VoICE(model).fit(frame)
    assert not any(column.listed or column.affine for column in voice.space_.columns)
    cf = voice.explain(frame, target="each", immutable="a")
    found = cf.to_frame()[cf.feasible]
    assert cf.feasible.sum() > 20
    np.testing.assert_array_equal(voice.model_.predict(found), cf.target[cf.feasible])
    assert (found["a"].to_numpy() == frame["a"].to_numpy()[cf.row[cf.feasible]]).all()
    typed = cf.rounded().to_frame()[cf.feasible]
    np.testing.assert_array_equal(voice.model_.predict(typed), cf.target[cf.feasible])
    with pytest.raises(SavingError, match=rf"{type(own).__name__}.*not safe to load"):
        voice.save(tmp_path / "own.voicecf")


@pytest.mark.parametrize(
    ("own", "says"),
    [
        (Squares(), r"step 'squares' \(Squares\) neither rises nor falls .* column 'a'"),
        (WrongWayBack(), r"\(WrongWayBack\): inverse_transform does not lead back .* column 'a'"),
        (Fails(), r"\(Fails\): inverse_transform raised AttributeError.* of the same shape"),
        (Narrow(), r"\(Narrow\): inverse_transform returned an array of shape"),
        (RowSums(), "column 'a' depends on other columns too; .* of your own, must treat each"),
        (OneWay(), r"\(OneWay\) has no inverse_transform, .*; give it one"),
        (Normalizer(), r"\(Normalizer\) is not supported; what works: StandardScaler"),
    ],
)
def test_a_transformer_that_cannot_be_followed_is_refused_with_the_reason(own, says):
    model = make_pipeline(own, StandardScaler(), KMeans(3, n_init=3, random_state=0))
    with pytest.raises(ModelError, match=says):
        VoICE(model).fit(two_columns())
