"""Pipelines are explained in the columns that go into them, and their own predict is the judge."""

from __future__ import annotations

import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from voicecf import CFCLUST, SHARK, Status, VoICE, datasets
from voicecf.errors import ColumnError, DataError, ModelError, VoiceError
from voicecf.shark import WeightCollapseWarning
from voicecf.table.pipeline import Steps

CANCER = load_breast_cancer(as_frame=True).data
WINE = load_wine(as_frame=True).data
IRIS = pd.DataFrame(load_iris().data, columns=["sepal", "width", "petal", "stamen"])


def kmeans(k: int = 3) -> KMeans:
    return KMeans(k, n_init=2, random_state=0)


def shark(k: int = 3) -> SHARK:
    return SHARK(k, n_init=2, random_state=0)


def log() -> FunctionTransformer:
    return FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one")


MAPS = {
    "standard": StandardScaler,
    "min max": lambda: MinMaxScaler((-5, 5)),
    "robust": RobustScaler,
    "largest": MaxAbsScaler,
    "power": PowerTransformer,
    "log": lambda: make_pipeline(log(), StandardScaler()),
}


@cache
def frame_of(name: str) -> pd.DataFrame:
    return datasets.load(name).frame


def mixed_pipeline(frame: pd.DataFrame, numbers, model) -> Pipeline:
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    steps = [("numbers", numbers, [c for c in frame if c not in text])]
    if text:
        steps.append(("text", OneHotEncoder(sparse_output=False), text))
    return make_pipeline(ColumnTransformer(steps), model)


def assert_in_target(pipeline, cf) -> None:
    """The pipeline's own predict of the answers as the user gets them, without tolerance."""
    found = np.flatnonzero(cf.feasible)
    assert found.size
    answers = cf[found].to_frame()
    np.testing.assert_array_equal(pipeline.predict(answers), cf.target[found])


def assert_untouched(frame: pd.DataFrame, cf) -> None:
    """A column whose coordinates are those of its row has the very bits of its row."""
    answers, own = cf.to_frame(), frame.iloc[cf.row]
    assert answers.index.equals(own.index)
    start = cf.outcome.rows.points[cf.row]
    for column in cf.outcome.space.columns:
        still = (cf.points[:, column.places] == start[:, column.places]).all(axis=1)
        for name in column.sources:
            same = answers[name][still].to_numpy() == own[name][still].to_numpy()
            missing = own[name][still].isna().to_numpy()
            assert (same | missing).all()
            assert answers[name][still][missing].isna().all()


RAW = ["obesity", "german_credit", "student", "heart_failure", "wholesale"]


# Each table and each map of numbers with one contraction; with the other in the sweep.
MAPPED = [
    pytest.param(
        numbers,
        contraction,
        marks=[] if (contraction == 1.0) == (numbers in ("min max", "log")) else pytest.mark.slow,
    )
    for numbers in ("standard", "min max", "power", "log")
    for contraction in ("retain", 1.0)
]


@pytest.mark.parametrize(("numbers", "contraction"), MAPPED)
@pytest.mark.parametrize("name", RAW)
def test_answers_in_raw_columns_are_in_the_target_by_the_pipelines_own_predict(
    name, numbers, contraction
):
    # A grid of whole numbers up to 100,000 takes the search long to prove.
    frame = frame_of(name).iloc[: 30 if name == "wholesale" else 120]
    pipeline = mixed_pipeline(frame, MAPS[numbers](), kmeans())
    voice = VoICE(pipeline.fit(frame), contraction=contraction).fit(frame)
    cf = voice.explain(frame, target="each")
    assert cf.feasible.mean() > 0.5
    assert_in_target(pipeline, cf)
    assert_untouched(frame, cf)
    np.testing.assert_array_equal(voice.predict(frame), pipeline.predict(frame))


@pytest.mark.parametrize("name", ["heart_failure", "wholesale"])
@pytest.mark.parametrize("numbers", ["standard", "power", "log"])
def test_so_they_are_with_feature_weights(name, numbers):
    frame = frame_of(name).iloc[: 40 if name == "wholesale" else 299]
    pipeline = mixed_pipeline(frame, MAPS[numbers](), shark())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeightCollapseWarning)
        voice = VoICE(pipeline.fit(frame), contraction=1.0).fit(frame)
    for objective in ("cost", "prefix"):
        cf = voice.explain(frame, target="each", objective=objective)
        assert_in_target(pipeline, cf)
        assert_untouched(frame, cf)
    np.testing.assert_allclose(voice.weights_, pipeline[-1].feature_weights_, rtol=1e-12)


MIXTURES = {
    "pca": (StandardScaler(), PCA(5)),
    "whitened": (StandardScaler(), PCA(5, whiten=True), StandardScaler()),
    "unscaled": (PCA(5),),
    "curves": (PowerTransformer(), PCA(6), MinMaxScaler()),
    "svd": (RobustScaler(), TruncatedSVD(4, random_state=0)),
    "variance": (MinMaxScaler(), VarianceThreshold(0.02)),
    "nested": (make_pipeline(StandardScaler(), make_pipeline(PCA(4))), RobustScaler()),
    "framed": (make_pipeline(StandardScaler(), PCA(4)).set_output(transform="pandas"),),
}


@pytest.mark.parametrize("model", [kmeans, shark])
@pytest.mark.parametrize("steps", MIXTURES)
def test_mixed_columns_are_explained_in_the_columns_that_were_mixed(steps, model):
    pipeline = make_pipeline(*MIXTURES[steps], model())
    for options in ({}, {"contraction": 1.0, "bounds": None}):
        voice = VoICE(pipeline.fit(CANCER), **options).fit(CANCER)
        cf = voice.explain(CANCER, target="each")
        assert cf.feasible.all()
        assert cf.to_frame().columns.tolist() == CANCER.columns.tolist()
        assert_in_target(pipeline, cf)
    np.testing.assert_array_equal(voice.weights_, 1 / 30)


def test_the_best_columns_are_the_only_ones_to_change():
    pipeline = make_pipeline(StandardScaler(), SelectKBest(k=6), kmeans())
    pipeline.fit(CANCER, load_breast_cancer().target)
    cf = VoICE(pipeline).fit(CANCER).explain(CANCER, target="each", plausible=None)
    assert_in_target(pipeline, cf)
    chosen = set(CANCER.columns[pipeline[1].get_support()])
    assert set(cf.changes()["feature"]) == chosen


def test_the_pulled_back_region_is_the_models_own_cell():
    pipeline = make_pipeline(StandardScaler(), PCA(5), kmeans(4)).fit(CANCER)
    voice = VoICE(pipeline, contraction=1.0, bounds=None).fit(CANCER)
    z = pipeline[0].transform(CANCER)
    labels = pipeline.predict(CANCER)
    for t in range(4):
        region = voice.region(t)
        excess = ((z - region.origin) @ region.normals.T - region.offsets).max(axis=1)
        np.testing.assert_array_equal(excess <= 0, labels == t)
        centroid = pipeline[1].transform(region.origin[None])[0]
        np.testing.assert_allclose(centroid, pipeline[-1].cluster_centers_[t], atol=1e-9)


def test_no_cheaper_answer_is_found_by_a_general_solver_behind_pca():
    from scipy.optimize import minimize

    pipeline = make_pipeline(StandardScaler(), PCA(3), kmeans()).fit(WINE)
    voice = VoICE(pipeline, contraction=1.0, bounds=None).fit(WINE)
    cf = voice.explain(WINE.iloc[:6], target="each", plausible=None)
    z = pipeline[0].transform(WINE.iloc[:6])
    m = pipeline[-1].cluster_centers_
    for i in range(len(cf)):
        a, t = z[cf.row[i]], cf.target[i]
        rivals = [j for j in range(3) if j != t]

        def nearer(u, t=t, rivals=rivals):
            x = pipeline[1].transform(u[None])[0]
            return [((x - m[j]) ** 2).sum() - ((x - m[t]) ** 2).sum() for j in rivals]

        found = minimize(
            lambda u, a=a: ((u - a) ** 2).mean(), a, method="SLSQP",
            constraints={"type": "ineq", "fun": nearer}, options={"ftol": 1e-14, "maxiter": 500},
        )  # fmt: skip
        assert found.success
        assert cf.cost[i] == pytest.approx(found.fun, rel=1e-5)


def test_without_mixing_a_pipeline_is_its_model_on_transformed_rows():
    pipeline = make_pipeline(StandardScaler(), kmeans()).fit(WINE)
    z = pipeline[0].transform(WINE)
    through = VoICE(pipeline).fit(WINE).explain(WINE, target="each")
    bare = VoICE(pipeline[-1]).fit(z).explain(z, target="each")
    np.testing.assert_allclose(through.points, bare.points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(through.cost, bare.cost, rtol=1e-9)
    answers = pipeline[0].transform(through.to_frame())
    np.testing.assert_array_equal(answers, through.points)


# Ways to choose columns, and kinds of output.

SELECTORS = {
    "names": ["sepal", "petal"],
    "positions": [0, 2],
    "negative": [-4, -2],
    "mask": [True, False, True, False],
    "slice": slice(0, 3, 2),
    "slice of names": slice("sepal", "sepal"),
    "pattern": make_column_selector(pattern="al$"),
    "callable": lambda X: ["sepal", "petal"],
}


@pytest.mark.parametrize("output", ["default", "pandas", "polars"])
@pytest.mark.parametrize("chosen", SELECTORS)
def test_columns_may_be_chosen_in_any_way_and_handed_on_as_anything(chosen, output):
    columns = ColumnTransformer(
        [("a", StandardScaler(), SELECTORS[chosen])],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    pipeline = make_pipeline(columns, RobustScaler(), kmeans()).set_output(transform=output)
    cf = VoICE(pipeline.fit(IRIS)).fit(IRIS).explain(IRIS, target="each")
    assert_in_target(pipeline, cf)
    assert sorted(cf.outcome.space.names) == sorted(IRIS.columns)


def test_one_column_chosen_by_its_bare_name_is_followed():
    upright = FunctionTransformer(
        lambda s: np.asarray(s, dtype=float).reshape(-1, 1),
        inverse_func=lambda z: z,
        check_inverse=False,
    )
    columns = ColumnTransformer([("a", upright, "sepal")], remainder="passthrough")
    pipeline = make_pipeline(columns, kmeans())
    assert_in_target(pipeline, VoICE(pipeline.fit(IRIS)).fit(IRIS).explain(IRIS, target="each"))


@pytest.mark.parametrize("remainder", ["drop", "passthrough", StandardScaler()])
def test_what_remains_is_dropped_kept_or_scaled(remainder):
    columns = ColumnTransformer([("a", StandardScaler(), ["petal", "sepal"])], remainder=remainder)
    pipeline = make_pipeline(columns, kmeans())
    cf = VoICE(pipeline.fit(IRIS)).fit(IRIS).explain(IRIS, target="each")
    assert_in_target(pipeline, cf)
    if remainder == "drop":
        assert cf.outcome.space.names == ["sepal", "petal"]
        pd.testing.assert_frame_equal(
            cf.to_frame()[["width", "stamen"]], IRIS[["width", "stamen"]].iloc[cf.row]
        )
        VoICE(pipeline.fit(IRIS)).fit(IRIS).explain(IRIS[["sepal", "petal"]])


def test_steps_that_pass_everything_are_no_steps():
    pipeline = Pipeline([("a", "passthrough"), ("b", FunctionTransformer()), ("c", kmeans())])
    assert_in_target(pipeline, VoICE(pipeline.fit(IRIS)).fit(IRIS).explain(IRIS, target="each"))
    alone = Pipeline([("only", kmeans())])
    assert_in_target(alone, VoICE(alone.fit(IRIS)).fit(IRIS).explain(IRIS, target="each"))


def test_a_map_that_falls_is_undone_as_well():
    turned = FunctionTransformer(np.negative, inverse_func=np.negative)
    pipeline = make_pipeline(turned, StandardScaler(), kmeans())
    voice = VoICE(pipeline.fit(IRIS)).fit(IRIS)
    cf = voice.explain(IRIS, target="each", bounds={"petal": (1.5, 5.5), "width": (None, 4.0)})
    assert_in_target(pipeline, cf)
    answers = cf[np.flatnonzero(cf.feasible)].to_frame()
    assert answers["petal"].between(1.5, 5.5).all()
    assert answers["width"].between(2.0, 4.0).all()
    assert (answers["sepal"] >= IRIS["sepal"].min()).all()


# Bounds and immutable columns, by name and in the user's units.


@pytest.mark.parametrize("numbers", MAPS)
def test_bounds_hold_in_the_users_units_to_the_last_bit(numbers):
    pipeline = make_pipeline(MAPS[numbers](), kmeans())
    voice = VoICE(pipeline.fit(IRIS), contraction=1.0).fit(IRIS)
    np.testing.assert_array_equal(voice.lo_, IRIS.min())
    np.testing.assert_array_equal(voice.hi_, IRIS.max())
    given = {"sepal": (4.7, 5.9), "petal": (None, 4.1), "stamen": (0.3, None)}
    for bounds in (None, given):
        cf = voice.explain(IRIS, target="each", bounds=bounds)
        assert_in_target(pipeline, cf)
        answers = cf[np.flatnonzero(cf.feasible)].to_frame()
        for c, name in enumerate(IRIS):
            low, high = (bounds or {}).get(name, (voice.lo_[c], voice.hi_[c]))
            assert low is None or (answers[name] >= low).all()
            assert high is None or (answers[name] <= high).all()


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas, np.asarray])
@pytest.mark.parametrize("steps", ["standard", "power"])
def test_rows_are_answered_alike_alone_and_beside_rows_without_an_answer(kind, steps):
    wine = kind(WINE)
    voice = VoICE(make_pipeline(MAPS[steps](), kmeans())).fit(wine)
    words = {"target": 0, "immutable": voice.feature_names_in_[:11].tolist()}
    cf = voice.explain(wine, **words)
    assert 90 < cf.feasible.sum() < 100
    for i in range(0, 178, 9):
        alone = voice.explain(wine[i : i + 1], **words)
        for name in ("points", "status", "cost", "rho", "n_changed"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(cf, name)[i])
    values = np.asarray(cf.to_frame(), dtype=np.float64)
    assert np.isnan(values[~cf.feasible]).all()
    landed = kind(pd.DataFrame(values[cf.feasible], columns=WINE.columns))
    np.testing.assert_array_equal(voice.model_.predict(landed), 0)


def test_an_immutable_column_keeps_its_bits():
    pipeline = make_pipeline(PowerTransformer(), PCA(3), kmeans())
    voice = VoICE(pipeline.fit(WINE)).fit(WINE)
    cf = voice.explain(WINE, target="each", immutable=["alcohol", "hue"])
    assert_in_target(pipeline, cf)
    pd.testing.assert_frame_equal(
        cf.to_frame()[["alcohol", "hue"]], WINE[["alcohol", "hue"]].iloc[cf.row]
    )


def test_a_category_has_no_bounds():
    pipeline, frame = jobs()
    with pytest.raises(ColumnError, match=r"'job'.*levels"):
        VoICE(pipeline).fit(frame).explain(frame, bounds={"job": (0, 1)})


# Categories, gaps and unknown levels.


def job_frame(n: int = 120) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["admin", "clerk", "nurse"], n),
            "income": rng.uniform(1e3, 9e4, n),
        },
        index=[f"row {i}" for i in range(n)],
    )


def jobs(encoder=None, frame=None, model=None):
    frame = job_frame() if frame is None else frame
    columns = ColumnTransformer(
        [
            ("age", make_pipeline(SimpleImputer(), MinMaxScaler()), ["age"]),
            ("income", make_pipeline(SimpleImputer(), MinMaxScaler((0, 20))), ["income"]),
            (
                "text",
                OneHotEncoder(handle_unknown="ignore") if encoder is None else encoder,
                ["job"],
            ),
        ]
    )
    return make_pipeline(columns, kmeans() if model is None else model), frame


ENCODERS = {
    "all": OneHotEncoder(),
    "dropped": OneHotEncoder(drop="first"),
    "dense": OneHotEncoder(sparse_output=False),
    "unknown": OneHotEncoder(handle_unknown="ignore"),
    "ordinal": OrdinalEncoder(),
    "scaled": make_pipeline(OneHotEncoder(drop="first", sparse_output=False), StandardScaler()),
    "imputed": make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
}


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_category_has_its_levels_and_their_coordinates(encoder):
    pipeline, frame = jobs(ENCODERS[encoder])
    voice = VoICE(pipeline.fit(frame)).fit(frame)
    job = voice.space_.columns[1]
    assert (job.name, job.kind, job.levels) == ("job", "category", ("admin", "clerk", "nurse"))
    assert job.ordered == (encoder == "ordinal")
    made = pipeline[:-1].transform(frame)
    made = np.asarray(made.todense()) if hasattr(made, "todense") else made
    np.testing.assert_array_equal(voice.space_.coordinates(1, frame["job"]), made[:, job.places])
    assert voice.space_.values(1, made[:, job.places]).tolist() == frame["job"].tolist()
    assert_in_target(pipeline, voice.explain(frame, target="each"))


def test_levels_are_written_and_the_pipeline_sees_them():
    pipeline, frame = jobs()
    space = VoICE(pipeline).fit(frame).space_
    given = space.read(frame)
    points, job = given.points.copy(), space.columns[1]
    points[:, job.places] = job.options[(np.arange(len(frame)) + 1) % 3]
    written = space.write(points, given, np.arange(len(frame))).frame.to_native()
    expected = np.array(job.levels)[(np.arange(len(frame)) + 1) % 3]
    assert written["job"].tolist() == expected.tolist()
    assert written["job"].dtype == frame["job"].dtype
    pd.testing.assert_frame_equal(written[["age", "income"]], frame[["age", "income"]])


def test_a_missing_value_is_read_as_what_the_imputer_fills_in_and_stays_missing_unless_changed():
    pipeline, frame = jobs()
    frame = frame.astype({"age": float})
    frame.iloc[::7, 0] = np.nan
    frame.iloc[::11, 2] = np.nan
    voice = VoICE(pipeline.fit(frame)).fit(frame)
    cf = voice.explain(frame, target="each", immutable=["age"])
    assert_in_target(pipeline, cf)
    assert_untouched(frame, cf)
    gaps = frame["age"].isna().to_numpy()[cf.row]
    assert gaps[cf.feasible].any()
    assert cf.to_frame()["age"].isna()[gaps].all()
    free = voice.explain(frame, target="each")
    assert_in_target(pipeline, free)
    moved = [i for i in range(len(free)) if "which is missing, becomes" in free.text(i)]
    assert moved
    assert not np.isnan(free.to_frame()[["age", "income"]].iloc[moved].to_numpy()).all()


def test_an_unknown_level_that_the_encoder_takes_stays_and_one_that_it_refuses_is_named():
    pipeline, frame = jobs()
    voice = VoICE(pipeline.fit(frame)).fit(frame)
    new = frame.assign(job="astronaut")
    cf = voice.explain(new, target="each")
    assert_in_target(pipeline, cf)
    assert (cf.to_frame()["job"][cf.feasible] == "astronaut").all()
    strict, _ = jobs(OneHotEncoder())
    with pytest.raises(DataError, match="astronaut"):
        VoICE(strict).fit(frame).explain(new, errors="raise")


def test_gaps_without_an_imputer_are_named():
    pipeline = make_pipeline(StandardScaler(), kmeans()).fit(IRIS)
    voice = VoICE(pipeline).fit(IRIS)
    gap = IRIS.copy()
    gap.iloc[3, 2] = np.nan
    with pytest.raises(DataError, match=r"row 3 .*: petal has no value.*SimpleImputer"):
        voice.explain(gap, errors="raise")


def test_a_fitted_pipeline_names_what_it_cannot_transform_in_the_data_of_fit():
    gap = IRIS.copy()
    gap.iloc[3, 2] = np.nan
    with pytest.raises(DataError, match=r"first: row 3\), columns 'petal'"):
        VoICE(make_pipeline(StandardScaler(), kmeans()).fit(IRIS)).fit(gap)
    strict, frame = jobs(OneHotEncoder())
    with pytest.raises(DataError, match="astronaut"):
        VoICE(strict.fit(frame)).fit(frame.assign(job="astronaut"))


# Kinds of frames.


def as_kind(frame: pd.DataFrame, kind: str):
    plain = frame.reset_index(drop=True)
    return {"pandas": lambda: frame, "polars": lambda: pl.from_pandas(plain),
            "pyarrow": lambda: pa.Table.from_pandas(plain)}[kind]()  # fmt: skip


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_the_answer_is_of_the_kind_that_came_in_and_types_are_kept(kind):
    pipeline, frame = jobs()
    voice = VoICE(pipeline.fit(frame)).fit(frame)
    given = as_kind(frame.iloc[:9], kind)
    cf = voice.explain(given, target="each", immutable=["age"])
    answers = cf.to_frame()
    assert type(answers) is type(given)
    one = answers if kind == "pandas" else answers.to_pandas()
    np.testing.assert_array_equal(pipeline.predict(one[cf.feasible]), cf.target[cf.feasible])
    assert one["job"][cf.feasible].tolist() == frame["job"].iloc[cf.row[cf.feasible]].tolist()
    if kind == "pandas":
        assert answers.index.tolist() == np.repeat(given.index, 2).tolist()
    for name in ("age", "job"):
        assert answers[name].type == given[name].type if kind == "pyarrow" else (
            answers[name].dtype == given[name].dtype
        )  # fmt: skip


def test_a_pipeline_of_polars_frames_is_explained_in_them():
    pipeline, frame = jobs()
    given = as_kind(frame, "polars")
    voice = VoICE(pipeline.fit(given)).fit(given)
    cf = voice.explain(given, target="each")
    found = cf[np.flatnonzero(cf.feasible)]
    assert len(found) > 100
    np.testing.assert_array_equal(pipeline.predict(found.to_frame()), found.target)


@pytest.mark.parametrize(
    "types",
    [
        {"job": "category"},
        {"job": pd.CategoricalDtype(["clerk", "admin", "nurse", "pilot"], ordered=True)},
        {"job": "object"},
        {"job": "string"},
        {"age": "Int64", "income": "Float64"},
        {"age": "int8", "income": "float32"},
    ],
    ids=str,
)
def test_types_of_pandas_survive(types):
    pipeline, frame = jobs()
    frame = frame.astype(types)
    voice = VoICE(pipeline.fit(frame)).fit(frame)
    cf = voice.explain(frame, target="each", immutable=["age"])
    assert_in_target(pipeline, cf)
    found = cf[np.flatnonzero(cf.feasible)]
    frame = frame.iloc[found.row]
    again = voice.explain(frame, target=found.target, immutable=["age"])
    assert again.feasible.all()
    assert again.to_frame().dtypes.equals(frame.dtypes)


def test_a_column_of_truth_values_is_a_number_or_a_category_and_stays_one():
    frame = job_frame().assign(member=lambda f: f["age"] > 50)
    for encoder in ("passthrough", OneHotEncoder()):
        columns = ColumnTransformer(
            [("n", StandardScaler(), ["age", "income"]), ("m", encoder, ["member"])]
        )
        pipeline = make_pipeline(columns, kmeans())
        voice = VoICE(pipeline.fit(frame)).fit(frame)
        cf = voice.explain(frame, target="each", immutable=["member"])
        assert_in_target(pipeline, cf)
        assert cf.to_frame()["member"].dtype == bool


def test_arrays_go_through_pipelines_too():
    values = IRIS.to_numpy()
    pipeline = make_pipeline(StandardScaler(), PCA(3), kmeans()).fit(values)
    for data in (values, IRIS):
        cf = VoICE(pipeline).fit(data).explain(data, target="each")
        assert cf.feasible.all()
        np.testing.assert_array_equal(pipeline.predict(cf.to_frame().to_numpy()), cf.target)
    named = make_pipeline(StandardScaler(), kmeans()).fit(IRIS)
    cf = VoICE(named).fit(values).explain(values, target="each")
    np.testing.assert_array_equal(named.predict(cf.to_frame()), cf.target)


def test_arrays_of_objects_keep_their_text():
    _, frame = jobs()
    values = frame.to_numpy(dtype=object)
    columns = ColumnTransformer([("n", StandardScaler(), [0, 2]), ("c", OneHotEncoder(), [1])])
    pipeline = make_pipeline(columns, kmeans()).fit(values)
    cf = VoICE(pipeline).fit(values).explain(values, target="each")
    cf = cf[np.flatnonzero(cf.feasible)]
    answers = cf.to_frame()
    assert answers["x1"].tolist() == values[cf.row, 1].tolist()
    np.testing.assert_array_equal(pipeline.predict(answers.to_numpy(dtype=object)), cf.target)


def test_single_precision_goes_through():
    frame = IRIS.astype(np.float32)
    for steps in ((StandardScaler(),), (StandardScaler(), PCA(3))):
        pipeline = make_pipeline(*steps, kmeans())
        cf = VoICE(pipeline.fit(frame), contraction=1.0).fit(frame).explain(frame, target="each")
        assert cf.feasible.mean() > 0.9
        assert_in_target(pipeline, cf)


def test_no_rows_give_no_answers():
    pipeline, frame = jobs()
    cf = VoICE(pipeline).fit(frame).explain(frame.iloc[:0])
    assert len(cf) == 0
    assert cf.to_frame().columns.tolist() == frame.columns.tolist()


def test_a_row_by_itself_is_answered_like_in_a_batch():
    pipeline, frame = jobs()
    voice = VoICE(pipeline).fit(frame)
    cf = voice.explain(frame.iloc[:20], target="each")
    for i in range(20):
        one = voice.explain(frame.iloc[[i]], target="each")
        pd.testing.assert_frame_equal(one.to_frame(), cf[cf.row == i].to_frame(), rtol=1e-12)


# Maps that cannot be undone between the observed values.


def test_a_map_with_steps_lists_the_observed_values():
    frame = frame_of("student")[["age", "absences"]]
    pipeline = make_pipeline(QuantileTransformer(n_quantiles=50), kmeans()).fit(frame)
    columns = VoICE(pipeline).fit(frame).space_.columns
    assert columns[0].listed == tuple(sorted(set(frame["age"])))
    assert not columns[0].free


def test_a_map_without_steps_lists_nothing_and_is_answered():
    pipeline = make_pipeline(QuantileTransformer(n_quantiles=100), kmeans())
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 3)), columns=list("abc"))
    voice = VoICE(pipeline.fit(frame), contraction=1.0).fit(frame)
    assert all(column.listed == () for column in voice.space_.columns)
    cf = voice.explain(frame, target="each", bounds={"a": (None, None)})
    assert_in_target(pipeline, cf)
    answers = cf[np.flatnonzero(cf.feasible)].to_frame()
    assert answers["a"].between(frame["a"].min(), frame["a"].max()).all()


def test_a_clipped_scale_is_followed_as_far_as_it_goes():
    pipeline = make_pipeline(MinMaxScaler(clip=True), kmeans()).fit(IRIS.iloc[:120])
    voice = VoICE(pipeline, bounds=None).fit(IRIS.iloc[:120])
    cf = voice.explain(IRIS, target="each")
    assert_in_target(pipeline, cf)


# What is not understood says so by its name.

REFUSED = {
    "union": (FeatureUnion([("a", StandardScaler()), ("b", PowerTransformer())]),
              r"featureunion\.b.*PowerTransformer.*not affine"),
    "polynomial": (PolynomialFeatures(), "'polynomialfeatures'.*PolynomialFeatures.*what works"),
    "normalizer": (Normalizer(), "Normalizer.*StandardScaler"),
    "no inverse": (FunctionTransformer(np.sinc), "inverse_func=np.expm1"),
    "indicator": (SimpleImputer(missing_values=0.2, add_indicator=True), "missing_values=np.nan"),
    "curve after": (make_pipeline(PCA(2), PowerTransformer()), "PowerTransformer.*not affine"),
    "clip after": (make_pipeline(PCA(2), MinMaxScaler(clip=True)), "MinMaxScaler.*not affine"),
    "twice": (ColumnTransformer([("a", StandardScaler(), ["sepal", "petal"]),
                                 ("b", KBinsDiscretizer(), ["petal"])]),
              r"columntransformer\.b.*KBinsDiscretizer.*not affine"),
    "scaled first": (make_pipeline(StandardScaler(), OneHotEncoder(sparse_output=False)),
                     "onehotencoder.*'sepal'"),
    "crossed": (FunctionTransformer(lambda X: np.cumsum(X, axis=1),
                                    inverse_func=lambda Z: np.diff(Z, axis=1, prepend=0)),
                "other columns"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_understood_is_refused_by_name_with_a_way_out(case):
    step, words = REFUSED[case]
    pipeline = make_pipeline(step, kmeans()).fit(IRIS)
    with pytest.raises(ModelError) as caught:
        VoICE(pipeline).fit(IRIS)
    assert re.search(words, str(caught.value), re.DOTALL), str(caught.value)
    assert len(str(caught.value)) < 500


def test_a_pipeline_without_a_clustering_is_refused():
    with pytest.raises(ModelError, match=r"PCA.*cluster_centers_"):
        VoICE(make_pipeline(StandardScaler(), PCA(2))).fit(IRIS)


def test_text_that_no_step_encodes_is_named():
    frame = job_frame()
    columns = ColumnTransformer([("n", StandardScaler(), ["age"])], remainder="passthrough")
    with pytest.raises((VoiceError, ValueError), match=r"admin|clerk|nurse|text|string"):
        VoICE(make_pipeline(columns, kmeans())).fit(frame)


def test_the_pairwise_baseline_takes_scaled_columns_and_refuses_mixed_ones():
    pipeline = make_pipeline(StandardScaler(), kmeans()).fit(WINE)
    z = pipeline[0].transform(WINE)
    through = CFCLUST(pipeline).fit(WINE).explain(WINE, target="each")
    bare = CFCLUST(pipeline[-1]).fit(z).explain(z, target="each")
    np.testing.assert_array_equal(through.status, bare.status)
    answers = pipeline[0].transform(through.to_frame())
    np.testing.assert_allclose(answers, bare.points, rtol=1e-9, atol=1e-12)
    with pytest.raises(ModelError, match=r"mixes columns.*VoICE"):
        CFCLUST(make_pipeline(StandardScaler(), PCA(2), kmeans())).fit(WINE)


def test_the_traced_map_is_the_pipelines_own_to_rounding():
    pipeline = make_pipeline(StandardScaler(), PCA(4, whiten=True), RobustScaler()).fit(WINE)
    steps = Steps.of(pipeline, list(WINE))
    z = pipeline[0].transform(WINE)
    np.testing.assert_allclose(steps.mixing(z), pipeline.transform(WINE), rtol=1e-9, atol=1e-9)
    back = steps.backward(z)
    for i, name in enumerate(WINE):
        np.testing.assert_allclose(back[i], WINE[name], rtol=1e-12)


def test_what_the_pipeline_puts_elsewhere_is_never_called_an_answer():
    class Contrary(KMeans):
        """Its predict turns against whatever is close to a border."""

        def predict(self, X):
            gaps = np.sort(self.transform(X), axis=1)
            labels = super().predict(X)
            return np.where(gaps[:, 1] - gaps[:, 0] < 1e-3, (labels + 1) % 3, labels)

    pipeline = make_pipeline(StandardScaler(), Contrary(3, n_init=1, random_state=0))
    cf = VoICE(pipeline, contraction=1.0).fit(IRIS).explain(IRIS, target="each", plausible=None)
    assert (cf.status == Status.UNRESOLVED).any()
    assert np.isnan(cf.points[~cf.feasible]).all()
    if cf.feasible.any():
        assert_in_target(pipeline, cf)


# Blocks that the user declares.


def blocks(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    job = rng.integers(0, 3, n)
    return pd.DataFrame(
        {"income": rng.uniform(0, 20, n), "admin": (job == 0) * 1, "clerk": (job == 1) * 1}
    )


CENTRED = RobustScaler(with_scaling=False)


@pytest.mark.parametrize("steps", [(), (CENTRED,), (CENTRED, PCA(2))])
def test_a_declared_block_counts_as_one_column_and_is_known_by_its_name(steps):
    frame = blocks()
    pipeline = make_pipeline(*steps, kmeans()) if steps else kmeans()
    voice = VoICE(pipeline.fit(frame), categories={"job": ["admin", "clerk"]}, contraction=1.0).fit(
        frame
    )
    assert voice.feature_names_in_.tolist() == ["income", "job"]
    made = pipeline[0].transform(frame) if steps else frame.to_numpy()
    levels = np.array(["admin", "clerk", "(none)"])[
        np.where(frame["admin"] == 1, 0, np.where(frame["clerk"] == 1, 1, 2))
    ]
    np.testing.assert_array_equal(voice.space_.coordinates(1, levels), made[:, 1:])
    cf = voice.explain(frame, target="each", immutable=["job"])
    assert_in_target(pipeline, cf)
    assert_untouched(frame, cf)
    assert cf.n_changed.max() == 1
    assert set(cf.changes()["feature"]) == {"income"}


FRAMES = {
    "polars categorical": lambda f: pl.from_pandas(f).with_columns(
        pl.col("job").cast(pl.Categorical)
    ),
    "polars enum": lambda f: pl.from_pandas(f).with_columns(
        pl.col("job").cast(pl.Enum(["admin", "clerk", "nurse"]))
    ),
    "pyarrow dictionary": lambda f: pa.table(
        {
            c: pa.array(f[c].tolist()).dictionary_encode() if c == "job" else f[c].to_numpy()
            for c in f
        }
    ),
    "pandas categorical": lambda f: f.astype({"job": "category"}),
    "pandas boolean": lambda f: f.astype({"age": "Int16", "job": "string"}),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_levels_can_be_written_into_every_kind_of_column(kind):
    pipeline, frame = jobs()
    frame = frame.reset_index(drop=True)
    space = VoICE(pipeline).fit(frame).space_
    native = FRAMES[kind](frame.iloc[:9])
    given = space.read(native)
    points, job = given.points.copy(), space.columns[1]
    points[:, job.places] = job.options[np.arange(9) % 3]
    written = space.write(points, given, np.arange(9))
    assert written.frame.get_column("job").to_list() == ["admin", "clerk", "nurse"] * 3
    assert written.frame.schema == given.frame.schema
    np.testing.assert_array_equal(space.read_again(written).points, points)
