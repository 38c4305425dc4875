"""Saving and loading: the same object again, bit for bit, and nothing but an error otherwise."""

import errno
import json
import math
import os
import pickle
import struct
import subprocess
import sys
import zipfile
from copy import deepcopy
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from hashlib import sha256
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
import skops.io
from scipy import special
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import SelectKBest, VarianceThreshold, f_regression
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import voicecf
from hostile import resealed
from tables import files_of_at_most
from voicecf import CFCLUST, SHARK, VoICE
from voicecf.errors import SavingError, VersionWarning, VoiceError
from voicecf.learned.learned import Learned
from voicecf.saving import digest, load, load_explainer, save
from voicecf.saving.zipped import SEAL, zipped

TABLES = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved.voicecf"


def again(thing, path):
    save(thing, path)
    return load(path)


def same_bits(a, b):
    """Compare two values of any kind: types, dtypes, orders, bits of floats."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return same_bits(a.real, b.real) and same_bits(a.imag, b.imag)
    if isinstance(a, np.ndarray):
        shaped = a.dtype == b.dtype and a.shape == b.shape
        if not shaped or a.dtype.kind != "O":
            return shaped and a.tobytes() == b.tobytes()
        return same_bits(a.ravel().tolist(), b.ravel().tolist())
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    if isinstance(a, Decimal):
        return str(a) == str(b)  # NaN differs from itself
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same_bits, a, b))
    if isinstance(a, dict):
        return same_bits(list(a.items()), list(b.items()))
    if isinstance(a, (set, frozenset)):
        return sorted(map(repr, a)) == sorted(map(repr, b))
    if hasattr(a, "__dict__") and not isinstance(a, type):
        return same_bits(vars(a), vars(b))
    return a == b


# Explainers


def answers(explainer, X):
    found = [explainer.explain(X, target="each"), explainer.explain(X)]
    arrays = ("points", "source", "target", "status", "cost", "n_changed", "cardinality", "rho",
              "alpha", "gap")  # fmt: skip
    return [getattr(cf, name) for cf in found for name in arrays] + [explainer.predict(X)]


MODELS = {
    "kmeans": lambda: KMeans(3, n_init=3, random_state=0),
    "minibatch": lambda: MiniBatchKMeans(4, n_init=3, random_state=0),
    "shark": lambda: SHARK(3, n_init=3, random_state=42),
}


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_loaded_explainer_gives_the_same_bits(table, model, dtype, path):
    X = StandardScaler().fit_transform(TABLES[table]().data).astype(dtype)
    voice = VoICE(MODELS[model]()).fit(X)
    voice.save(path)
    for loaded in (VoICE.load(path), voicecf.load(path)):
        assert type(loaded) is VoICE
        assert all(map(same_bits, answers(voice, X), answers(loaded, X)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_loaded_explainer_of_frames_gives_the_same_frames(frame, path):
    iris = load_iris()
    X = frame(dict(zip(iris.feature_names, iris.data.T, strict=True)))
    voice = VoICE(SHARK(3, n_init=2, random_state=42), retain=0.9).fit(X)
    loaded = again(voice, path)
    before, after = voice.explain(X, target=1), loaded.explain(X, target=1)
    assert type(after.to_frame()) is frame
    assert before.to_frame().equals(after.to_frame())
    assert [before.text(i) for i in range(20)] == [after.text(i) for i in range(20)]
    assert list(loaded.feature_names_in_) == iris.feature_names


@pytest.mark.parametrize("options", [
    {},
    {"weights": [1.0, 3.0], "feature_names": ["age", "income"], "bounds": ([0, 0], [9.0, 8.0])},
    {"bounds": (np.zeros(2), np.full(2, np.inf)), "contraction": 0.5, "contract_bounds": True},
    {"bounds": (pd.Series([0.0, 1.0]), pd.Series([9.0, 9.0])), "ranking": np.array([1.0, 2.0])},
    {"feature_names": [0, ("a", 1)]},
])  # fmt: skip
def test_an_explainer_of_centroids_gives_the_same_bits(options, path):
    voice = VoICE.from_centers([[0.0, 1.0], [4.0, 0.1], [1 / 3, 7.0]], **options)
    loaded = again(voice, path)
    X = np.random.default_rng(0).uniform(1, 8, (40, 2))
    assert all(map(same_bits, answers(voice, X), answers(loaded, X)))
    assert same_bits(voice.space_.names, loaded.space_.names)


@pytest.mark.parametrize("names", [
    ["low", "middle", "high"], ("low", "middle", "high"), {1: "middle"}, {np.int64(2): "high"},
    np.array(["low", "middle", "high"]), np.array(["low", "middle", "high"], dtype=object),
], ids=repr)  # fmt: skip
@pytest.mark.parametrize("fitted", [True, False, "centers"])
def test_the_names_of_clusters_are_kept(names, fitted, path):
    X = load_iris().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0), names=names)
    if fitted == "centers":
        voice = VoICE.from_centers([[0.0, 1.0], [4.0, 0.1], [1.0, 7.0]], names=names)
    elif fitted:
        voice.fit(X)
    loaded = again(voice, path)
    assert same_bits(voice.names, loaded.names)
    if fitted:
        assert loaded.learned_.names == voice.learned_.names
        assert loaded.learned_.has_names


def test_the_baseline_is_saved_too(path):
    X = load_iris().data
    pairwise = CFCLUST(KMeans(3, n_init=2, random_state=0), epsilon=0.1).fit(X)
    pairwise.save(path)
    assert all(map(same_bits, answers(pairwise, X), answers(CFCLUST.load(path), X)))
    with pytest.raises(SavingError, match=r"holds a CFCLUST, no VoICE; use voicecf\.load"):
        VoICE.load(path)


def test_an_explainer_of_either_class_is_loaded_and_nothing_else(path):
    X = load_iris().data
    model = KMeans(3, n_init=2, random_state=0).fit(X)
    for explainer in (VoICE(model).fit(X), CFCLUST(model).fit(X)):
        explainer.save(path)
        assert type(load_explainer(path)) is type(explainer)
    save(model, path)
    with pytest.raises(SavingError, match=r"holds a KMeans, no explainer; use voicecf\.load"):
        load_explainer(path)


def test_the_model_is_one_object_again_and_caches_are_left_out(path):
    X = load_iris().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(X)
    voice.explain(X, plausible=None)
    assert "cells" in vars(voice.learned_)
    loaded = again(voice, path)
    assert loaded.model_ is loaded.partition_.model
    assert set(vars(loaded)) == set(vars(voice))
    assert set(vars(loaded.learned_)) == set(Learned.__dataclass_fields__)
    assert "_sklearn_version" not in vars(loaded.model_)


def test_a_loaded_explainer_can_be_fitted_saved_and_pickled_again(path, tmp_path):
    X = load_iris().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(X)
    loaded = again(voice, path)
    save(loaded, tmp_path / "second")
    assert digest(loaded) == digest(load(tmp_path / "second")) == digest(voice)
    assert all(map(same_bits, answers(voice, X), answers(pickle.loads(pickle.dumps(loaded)), X)))
    assert all(map(same_bits, answers(voice, X), answers(sklearn.clone(loaded).fit(X), X)))


def test_an_unfitted_explainer_keeps_its_parameters(path):
    voice = VoICE(KMeans(5), margin=0.1, bounds=(None, [1.0]))
    loaded = again(voice, path)
    assert repr(loaded) == repr(voice)


# Pipelines

RNG = np.random.default_rng(7)
NUMBERS = np.exp(RNG.normal(size=(120, 5)))
CLASSES = np.arange(120) % 3
FRAME = pd.DataFrame(NUMBERS, columns=list("abcde")).assign(
    town=pd.Series(["Rome", "Ürümqi", "x\n'"], dtype=object)[CLASSES].to_numpy(),
    size=pd.Categorical(np.array(["S", "M", "L", "XL"])[np.arange(120) % 4]),
    code=np.arange(120) % 5,
)
NUMERIC = {
    "standard": lambda: StandardScaler(),
    "standard without mean": lambda: StandardScaler(with_mean=False),
    "minmax": lambda: MinMaxScaler((-1, 2), clip=True),
    "robust": lambda: RobustScaler(quantile_range=(10.0, 80.0), unit_variance=True),
    "maxabs": lambda: MaxAbsScaler(),
    "yeo-johnson": lambda: PowerTransformer(),
    "box-cox": lambda: PowerTransformer("box-cox", standardize=False),
    "quantile": lambda: QuantileTransformer(n_quantiles=20, output_distribution="normal"),
    "log1p": lambda: FunctionTransformer(np.log1p, inverse_func=np.expm1),
    "sqrt by name": lambda: FunctionTransformer(
        np.sqrt, inverse_func=np.square, feature_names_out="one-to-one"
    ),
    "identity": lambda: FunctionTransformer(),
    "impute": lambda: SimpleImputer(strategy="median", add_indicator=True),
    "pca": lambda: PCA(3, random_state=0),
    "pca by share": lambda: PCA(0.9, whiten=True, svd_solver="full"),
    "pca randomized": lambda: PCA(2, svd_solver="randomized", random_state=3),
    "svd": lambda: TruncatedSVD(3, random_state=0),
    "best": lambda: SelectKBest(k=2),
    "best of regression": lambda: SelectKBest(f_regression, k=3),
    "variance": lambda: VarianceThreshold(0.5),
    "bins": lambda: KBinsDiscretizer(
        4, quantile_method="averaged_inverted_cdf", encode="onehot-dense"
    ),
    "polynomial": lambda: PolynomialFeatures(2),
    "union": lambda: FeatureUnion([("pca", PCA(2)), ("scale", StandardScaler())]),
    "kmeans": lambda: KMeans(3, n_init=2, random_state=0),
    "minibatch": lambda: MiniBatchKMeans(3, n_init=2, random_state=np.random.RandomState(0)),
    "shark": lambda: SHARK(3, n_init=2, random_state=np.random.default_rng(0)),
}
CATEGORICAL = {
    "one-hot": lambda: OneHotEncoder(sparse_output=False),
    "one-hot dropping": lambda: OneHotEncoder(
        sparse_output=False, drop="first", handle_unknown="ignore", dtype=np.float32
    ),
    "one-hot infrequent": lambda: OneHotEncoder(
        sparse_output=False, min_frequency=35, handle_unknown="infrequent_if_exist"
    ),
    "ordinal": lambda: OrdinalEncoder(),
    "ordinal with unknown": lambda: OrdinalEncoder(
        handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2
    ),
    "impute": lambda: make_pipeline(
        SimpleImputer(strategy="most_frequent"), OneHotEncoder(sparse_output=False)
    ),
}


def outputs(fitted, X):
    """What a fitted thing says of X, in every way it can."""
    found = [getattr(fitted, n)(X) for n in ("transform", "predict") if hasattr(fitted, n)]
    invertible = hasattr(fitted, "inverse_transform") and not isinstance(fitted, SimpleImputer)
    if invertible and not hasattr(fitted, "predict"):
        found.append(fitted.inverse_transform(fitted.transform(X)))
    return found


def assert_same_outputs(before, after):
    assert len(before) == len(after) > 0
    for a, b in zip(before, after, strict=True):
        assert type(a) is type(b)
        if isinstance(a, pd.DataFrame):
            assert list(a.columns) == list(b.columns)
            assert list(a.dtypes) == list(b.dtypes)
            a, b = a.to_numpy(), b.to_numpy()
        assert same_bits(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("name", NUMERIC)
def test_a_numeric_step_answers_with_the_same_bits(name, output, path):
    X = NUMBERS if output == "default" else FRAME[list("abcde")]
    # A copy, as in explainers: it has no gaps in its arrays, which products could tell.
    fitted = NUMERIC[name]().set_output(transform=output).fit(X, CLASSES)
    loaded, step = again(fitted, path), deepcopy(fitted)
    assert_same_outputs(outputs(step, X), outputs(loaded, X))
    assert repr(loaded) == repr(step) or "random_state" in repr(step)


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("name", CATEGORICAL)
def test_a_categorical_step_answers_with_the_same_bits(name, missing, path):
    X = FRAME[["town", "size"]].astype(object)
    if missing:
        X.iloc[::7, 0] = np.nan
        X.iloc[::11, 1] = np.nan if name == "impute" else None
    step = CATEGORICAL[name]().fit(X)
    assert_same_outputs([step.transform(X)], [again(step, path).transform(X)])


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("name", NUMERIC)
def test_a_numeric_step_among_columns_answers_with_the_same_bits(name, output, path):
    if name in ("best", "best of regression") or "predict" in dir(NUMERIC[name]()):
        steps = make_pipeline(StandardScaler(), NUMERIC[name]())
    else:
        steps = NUMERIC[name]()
    columns = ColumnTransformer(
        [("n", steps, list("abcde")), ("c", OneHotEncoder(sparse_output=False), ["town", "size"])],
        remainder="passthrough",
    ).set_output(transform=output)
    columns.fit(FRAME, CLASSES)
    loaded = again(columns, path)
    # A copy, as in explainers: it has no gaps in its arrays, which products could tell.
    assert_same_outputs([deepcopy(columns).transform(FRAME)], [loaded.transform(FRAME)])


@pytest.mark.parametrize("output", ["default", "pandas"])
@pytest.mark.parametrize("name", CATEGORICAL)
def test_a_categorical_step_among_columns_answers_with_the_same_bits(name, output, path):
    columns = ColumnTransformer(
        [
            ("c", CATEGORICAL[name](), make_column_selector(dtype_exclude=np.number)),
            ("n", StandardScaler(), FRAME.columns[:3]),
            ("slice", MinMaxScaler(), slice(3, 5)),
        ],
        verbose_feature_names_out=False,
    ).set_output(transform=output)
    columns.fit(FRAME)
    assert_same_outputs([columns.transform(FRAME)], [again(columns, path).transform(FRAME)])


@pytest.mark.parametrize("model", MODELS)
def test_a_nested_pipeline_predicts_the_same(model, path):
    logs = FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one")
    numeric = Pipeline([("fill", SimpleImputer()), ("log", logs), ("scale", StandardScaler())])
    columns = ColumnTransformer(
        [
            ("numeric", numeric, ["a", "b"]),
            ("power", make_pipeline(PowerTransformer(), "passthrough"), ["c"]),
            ("text", OneHotEncoder(sparse_output=False), ["town"]),
            ("gone", "drop", ["e"]),
        ],
        remainder=OrdinalEncoder(),
        transformer_weights={"text": 0.5},
    )
    pipeline = Pipeline([("columns", columns), ("pca", PCA(4)), ("cluster", MODELS[model]())])
    pipeline.fit(FRAME)
    assert_same_outputs(outputs(pipeline, FRAME), outputs(again(pipeline, path), FRAME))


@pytest.mark.parametrize("fitted_before", [False, True])
@pytest.mark.parametrize("solver", ["full", "randomized", "covariance_eigh"])
def test_components_that_are_cut_off_a_matrix_give_the_same_bits(solver, fitted_before, path):
    """PCA cuts rows off a matrix that is stored by columns; matrix products can tell."""
    X = np.random.default_rng(0).normal(size=(200, 13)) + np.arange(200)[:, None] % 3
    pca = PCA(6, svd_solver=solver, random_state=3)
    model = make_pipeline(StandardScaler(), pca, KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model.fit(X) if fitted_before else model).fit(X)
    loaded = again(voice, path)
    assert all(map(same_bits, answers(voice, X), answers(loaded, X)))
    usual = [v.explain(X, plausible=0.9) for v in (voice, loaded)]
    assert same_bits(usual[0].points, usual[1].points)
    assert same_bits(usual[0].usual, usual[1].usual)


# Values

VALUES = [
    None, True, 3, 2**80, -0.0, math.inf, math.nan, "a\0", "\ud83d", b"a\0", (1, [2.5]), {},
    {0: "a", "b": (None,), 2.5: [1]}, slice(1, None), slice("a", "c"), np.float32(0.1), np.int8(3),
    np.bool_(True), np.str_("Ürümqi"), np.datetime64("2020-01-01"), np.timedelta64(3, "s"),
    np.dtype("<f4"), np.dtype(object), np.float32, float, np.log1p, np.nan_to_num, f_regression,
    special.expit, date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 6), time(1), timedelta(1, 2, 3),
    Decimal("1.10"), np.asfortranarray(np.arange(6.0).reshape(2, 3)), np.arange(6, dtype=">i2"),
    np.array(3.5), np.zeros((0, 4), np.float32), np.array([np.nan, -np.nan, -0.0, 5e-324]),
    np.array(["a", "\U0010ffff"]), np.array([["x", None], [2.5, 3]], dtype=object),
    np.array(["2020-01-01", "NaT"], dtype="M8[ns]"), np.array([True, False]),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=map(str, range(len(VALUES))))
def test_a_value_in_an_estimator_keeps_its_type_and_bits(value, path):
    loaded = again(StandardScaler(copy=value), path).copy
    assert same_bits(value, loaded)
    if isinstance(value, np.ndarray):
        assert loaded.flags.f_contiguous == value.flags.f_contiguous


def test_random_generators_are_left_out_and_seeds_kept(path):
    parts = [np.random.RandomState(3), np.random.default_rng(3), 3, np.int64(3)]
    assert again(StandardScaler(copy=parts), path).copy == [None, None, 3, 3]


def test_columns_and_series_of_pandas_are_saved_as_arrays(path):
    columns, series = FRAME.columns[:3], pd.Series([0.5, 2.0])
    loaded = again(StandardScaler(copy=[columns, series]), path).copy
    assert loaded[0].tolist() == list("abc")
    assert same_bits(loaded[1], series.to_numpy())


def test_missing_values_of_pandas_are_kept(path):
    imputer = SimpleImputer(missing_values=pd.NA, strategy="most_frequent")
    assert again(imputer, path).missing_values is pd.NA


def test_the_head_tells_format_and_versions(path):
    save(StandardScaler().fit(NUMBERS), path)
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("voicecf.json"))
    assert head == {"format": "voicecf/explainer", "version": 5, "voicecf": voicecf.__version__,
                    "scikit-learn": sklearn.__version__}  # fmt: skip


def test_skops_is_imported_only_to_save_or_load():
    code = "import sys, voicecf; sys.exit('skops' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_file_is_one_of_skops(path):
    scaler = StandardScaler().fit(NUMBERS)
    save(scaler, path)
    assert same_bits(scaler, skops.io.load(path, trusted=[]))


@pytest.mark.parametrize("cls", [VoICE, SHARK, CFCLUST])
def test_each_class_saves_and_loads_itself(cls, path):
    X = load_iris().data
    model = SHARK(3, n_init=2) if cls is SHARK else cls(KMeans(3, n_init=2, random_state=0))
    model.fit(X).save(path)
    for loaded in (cls.load(path), voicecf.load(path)):
        assert type(loaded) is cls
        assert same_bits(loaded.predict(X), model.predict(X))


# The digest

DIGEST = (
    "import sys, numpy as np, voicecf\n"
    "from voicecf.saving import digest\n"
    "print(digest(voicecf.load(sys.argv[1])))\n"
)


def test_the_digest_is_that_of_the_content_in_every_process(path):
    columns = ColumnTransformer([
        ("n", make_pipeline(FunctionTransformer(special.log1p, inverse_func=np.expm1), PCA(2)),
         FRAME.columns[:3]), ("t", OneHotEncoder(), ["town"]),
    ])  # fmt: skip
    model = make_pipeline(columns, KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model, names={0: "first"}).fit(FRAME)
    before = digest(voice)
    voice.explain(FRAME[:3])
    voice.save(path)
    elsewhere = subprocess.run(
        [sys.executable, "-c", DIGEST, str(path)], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONHASHSEED": "7"},
    )  # fmt: skip
    assert {elsewhere.stdout.strip(), digest(voice), digest(load(path))} == {before}
    assert digest(VoICE(model, names={0: "other"}).fit(FRAME)) != before
    assert digest(VoICE(model, names={0: "first"}).fit(FRAME[1:])) != before


# What is refused


class Own(TransformerMixin, BaseEstimator):
    cluster_centers_ = np.eye(2)


def local(x):
    return x


class OwnVoice(VoICE):
    pass


@pytest.mark.parametrize(("thing", "words"), [
    (FunctionTransformer(lambda x: x), r"FunctionTransformer\.func is '.*<lambda>'.*np\.log1p"),
    (Pipeline([("mine", FunctionTransformer(local))]), r'steps\["mine"\]\[1\]\.func is .*local'),
    (FunctionTransformer(kw_args={"f": os.system}), r"\.kw_args\.f is .*system"),
    (VoICE(Own()), r"VoICE\.options\.model is .*Own', which is not safe.*from_centers"),
    (OwnVoice(KMeans()), r"OwnVoice is a class of your own"),
    (StandardScaler(copy=[Own]), r"\.copy\[0\] is .*Own"),
    (StandardScaler(copy=np.ma.array([1.0])), r"\.copy is .*MaskedArray"),
    (StandardScaler(copy=[FRAME]), r"StandardScaler.*"),
    (StandardScaler(copy={(1, 2): 3}), r"StandardScaler has a part that cannot be saved"),
    (StandardScaler(copy=open), r"\.copy is .*open"),
    (StandardScaler(copy=datetime.now().astimezone()), r"\.copy\[1\] is 'datetime\.timezone'"),
    ([1], r"a list cannot be saved; give an explainer"),
])  # fmt: skip
def test_what_could_not_be_loaded_safely_is_refused_by_its_place(thing, words, path):
    with pytest.raises(SavingError, match=words):
        save(thing, path)
    assert list(path.parent.iterdir()) == []


def test_endless_nesting_is_refused(path):
    ring: list = []
    ring.append(ring)
    deep = [1]
    for _ in range(300):
        deep = [deep]
    scaler = StandardScaler()
    scaler.copy = scaler
    for thing in (StandardScaler(copy=ring), StandardScaler(copy=deep), scaler):
        with pytest.raises(SavingError, match=r"nested|recursion"):
            save(thing, path)


def test_the_errors_are_voice_errors():
    assert issubclass(SavingError, VoiceError)


# Files


def sealed(path):
    """Give the file at path the digest that it should end in, as a deliberate editor does."""
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = bytes(SEAL)
    path.write_bytes(resealed(path.read_bytes()))


def rewritten(path, change=None, extra=None, **kwargs):
    """Write the archive at path again with its tree changed, or members added, and seal it."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    if change is not None:
        members["schema.json"] = change(members["schema.json"].decode()).encode()
    with zipfile.ZipFile(path, "w", **kwargs) as archive:
        for name, content in {**members, **(extra or {})}.items():
            if content is not None:
                archive.writestr(name, content)
    sealed(path)


def with_array(path, content):
    """Put other bytes in the place of an array, under the name that they must have then."""
    old, new = array_of(path), f"{sha256(content).hexdigest()}.npy"
    rewritten(path, lambda text: text.replace(old, new), {old: None, new: content})


@pytest.fixture
def saved(path):
    save(StandardScaler().fit(NUMBERS), path)
    return path


def array_of(path):
    """The name of an array in a file."""
    with zipfile.ZipFile(path) as archive:
        return next(name for name in archive.namelist() if name.endswith(".npy"))


def with_head(path, **changes):
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("voicecf.json"))
    rewritten(path, extra={"voicecf.json": json.dumps({**head, **changes})})


def test_another_scikit_learn_warns_with_both_versions_and_goes_on(saved):
    with_head(saved, **{"scikit-learn": "0.9.9"})
    with pytest.warns(VersionWarning, match=rf"0\.9\.9; this is {sklearn.__version__}"):
        loaded = load(saved)
    assert loaded.n_features_in_ == 5


@pytest.mark.parametrize("version", [1, 4, 6, "5", None])
def test_another_format_version_is_an_error_with_the_remedy(saved, version):
    with_head(saved, version=version)
    with pytest.raises(SavingError, match=rf"format {version}, written by voicecf .* save again"):
        load(saved)


STR = {"__class__": "str", "__module__": "builtins"}


def json_node(value):
    return {**STR, "__loader__": "JsonNode", "content": json.dumps(value)}


def list_node(*nodes, kind="list"):
    loader = f"{kind.capitalize()}Node"
    head = {"__class__": kind, "__module__": "builtins", "__loader__": loader}
    return {**head, "content": list(nodes)}


def with_root(node):
    """Return a change of a file's text: another tree."""
    return lambda text: json.dumps({"protocol": json.loads(text)["protocol"], **node})


KINDS = ("ObjectNode", "FunctionNode", "TypeNode", "ConstructorFromReduceNode", "ListNode",
         "DictNode", "DefaultDictNode", "SetNode", "TupleNode", "NdArrayNode", "PartialNode",
         "MethodNode", "OperatorFuncNode", "RandomStateNode", "RandomGeneratorNode", "ReduceNode",
         "LossNode", "TreeNode", "CachedNode", "BytesNode", "SparseMatrixNode")  # fmt: skip


@pytest.mark.parametrize("name", [
    "os.system", "subprocess.Popen", "builtins.eval", "voicecf.__main__.main",
    "voicecf.cli.command.main", "voicecf.saving.saving.os", "voicecf.voice.VoICE", "voicecf", ".",
    "sklearn.preprocessing.os", "sklearn.linear_model._base.LinearRegression",
    "voicecf.nowhere.A", "sklearn.svm._classes.SVC", "sklearn.tree._tree.Tree",
    "voicecf.errors.SavingError", "../evil", "numpy.load", "builtins.range", "builtins.map",
])  # fmt: skip
def test_a_file_that_names_anything_else_is_refused(saved, name):
    content = saved.read_bytes()
    module, _, short = name.rpartition(".")
    load(saved)
    before = set(sys.modules)
    for kind in KINDS:
        node = {"__class__": short, "__module__": module, "__loader__": kind}
        node.update(content=list_node(json_node("echo")), type="numpy", file="0.npy")
        saved.write_bytes(content)
        rewritten(saved, with_root(node))
        with pytest.raises(SavingError, match="not safe to load"):
            load(saved)
    assert set(sys.modules) == before


SYSTEM = {"__class__": "system", "__module__": "os", "content": list_node(json_node("echo"))}
HOSTILE = [
    *({**SYSTEM, "__loader__": kind, "key_types": list_node()} for kind in KINDS),
    {**json_node(0), "content": "[" * 100_000},
    {**json_node(0), "content": "9" * 10_000},
    {**json_node(0), "__id__": 1},
    {**json_node(0), "__loader__": []},
    {"__id__": 10**6}, {}, [], None, "text",
]  # fmt: skip


def places_of(node):
    """Yield every container and key of a tree at which there is a node."""
    for key, part in node.items() if isinstance(node, dict) else enumerate(node):
        if isinstance(part, dict) and "__loader__" in part:
            yield node, key
        if isinstance(part, (dict, list)):
            yield from places_of(part)


def test_hundreds_of_hostile_files_are_each_refused_in_words(path):
    columns = ColumnTransformer([
        ("n", StandardScaler(), list("abc")), ("t", OneHotEncoder(sparse_output=False), ["town"])
    ])  # fmt: skip
    VoICE(make_pipeline(columns, KMeans(3, n_init=2, random_state=0))).fit(FRAME).save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    count = len(list(places_of(json.loads(members["schema.json"]))))
    modules = set(sys.modules)
    for i, at in enumerate(np.linspace(0, count - 1, 240, dtype=int)):
        tree = json.loads(members["schema.json"])
        node, key = list(places_of(tree))[at]
        node[key] = HOSTILE[i % len(HOSTILE)]
        path.write_bytes(zipped({**members, "schema.json": json.dumps(tree).encode()}))
        with pytest.raises(SavingError, match=r"cannot load .*: .{10}"):
            load(path)
    assert set(sys.modules) == modules


def test_a_member_that_lies_about_its_size_is_refused(saved):
    bomb = {array_of(saved): bytes(1 << 25)}
    rewritten(saved, extra=bomb, compression=zipfile.ZIP_DEFLATED)
    content = saved.read_bytes().replace(struct.pack("<L", 1 << 25), struct.pack("<L", 168))
    saved.write_bytes(resealed(content))
    with pytest.raises(SavingError, match="cannot load"):
        load(saved)


def test_too_many_members_are_refused(saved):
    rewritten(saved, extra={f"{i}.bin": b"" for i in range(5_000)})
    with pytest.raises(SavingError, match="more than 4,096 members"):
        load(saved)


def test_what_is_too_large_is_neither_saved_nor_loaded(path, monkeypatch):
    large = StandardScaler(copy=np.zeros(1_000_000))
    save(large, path)
    assert path.stat().st_size < 20_000
    monkeypatch.setattr("voicecf.saving.zipped.MOST_BYTES", 4_000_000)
    for call in (lambda: save(large, path), lambda: load(path)):
        with pytest.raises(SavingError, match=r"has 8\.0 MB, and at most 4\.0 are loaded"):
            call()


def test_what_has_too_many_parts_is_neither_saved_nor_loaded(path, monkeypatch):
    many = StandardScaler(copy=list(range(1_000)))
    save(many, path)
    monkeypatch.setattr("voicecf.saving.archive.MOST_NODES", 500)
    for call in (lambda: save(many, path), lambda: load(path)):
        with pytest.raises(SavingError, match=r"has 1,0\d\d parts, .* at most 500"):
            call()


@pytest.mark.parametrize("text", [
    "", "[]", "null", "{}", "NaN", "[" * 100_000, '{"a":' * 100_000, "\xff", "9" * 10_000,
    '{"protocol": 2}', '{"protocol": 99}',
])  # fmt: skip
def test_any_other_tree_is_an_error(saved, text):
    rewritten(saved, lambda _: text)
    with pytest.raises(SavingError, match="cannot load"):
        load(saved)


@pytest.mark.parametrize("head", ["", "[]", "{}", "null", "{", '{"format": "voicecf/explainer"}'])
def test_any_other_head_is_an_error(saved, head):
    rewritten(saved, extra={"voicecf.json": head})
    with pytest.raises(SavingError, match="cannot load"):
        load(saved)


@pytest.mark.parametrize("content", [None, b"", b"x", b"PK\x03\x04"])
def test_a_lost_or_broken_array_is_refused(saved, content):
    rewritten(saved, extra={array_of(saved): content})
    with pytest.raises(SavingError):
        load(saved)
    if content is not None:
        with_array(saved, content)
        with pytest.raises(SavingError):
            load(saved)


@pytest.mark.parametrize("member", ["schema.json", "voicecf.json"])
def test_a_file_without_tree_or_head_is_refused(saved, member):
    rewritten(saved, extra={member: None})
    with pytest.raises(SavingError, match="none of voicecf's"):
        load(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused(saved):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("schema.json", "{}")
    sealed(saved)
    with pytest.raises(SavingError, match=r"two members 'schema\.json'"):
        load(saved)


@pytest.mark.parametrize("array", [
    np.array([print], dtype=object), np.zeros(2, dtype="f8,i4"), np.zeros(3, dtype="V4"),
    np.array([2, 255], np.uint8).view(np.bool_), np.array([2**31], np.uint32).view("<U1"),
])  # fmt: skip
def test_arrays_that_would_run_or_mislead_are_refused(saved, array):
    stream = BytesIO()
    np.save(stream, array, allow_pickle=True)
    with_array(saved, stream.getvalue())
    with pytest.raises(SavingError, match="array"):
        load(saved)


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-5,)", "(6,)", "(0, 10**30)", "5"])
def test_an_array_whose_length_is_a_lie_is_refused(saved, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + bytes(40)
    with_array(saved, content)
    with pytest.raises(SavingError):
        load(saved)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_ways_of_packing_are_refused(saved, method):
    rewritten(saved, compression=method)
    with pytest.raises(SavingError, match="packed"):
        load(saved)


@pytest.mark.parametrize("content", [b"", b"P", b"PK\x03\x04", b"GIF89a" * 99, bytes(1000)])
def test_any_other_file_is_an_error(path, content):
    path.write_bytes(content)
    with pytest.raises(SavingError, match="cannot load"):
        load(path)


def test_a_pickle_is_not_loaded(path):
    path.write_bytes(pickle.dumps(StandardScaler()))
    with pytest.raises(SavingError, match="no file of voicecf"):
        load(path)


def test_an_absent_file_is_told_by_the_system(path):
    with pytest.raises(FileNotFoundError):
        load(path)


# Small, so that the damage meets every field of the archive.
TARGET = StandardScaler(copy=[1.5, "text", (None,), {"a": np.arange(3)}, np.array(["x", None])])


def test_every_truncated_file_is_refused(path):
    save(TARGET, path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(SavingError):
            load(path)


def test_every_damaged_byte_is_refused(path):
    save(TARGET, path)
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    damaged = []
    for at in range(len(content)):
        flipped = bytearray(content)
        flipped[at] ^= 1 << int(rng.integers(8))
        damaged.append(bytes(flipped))
    for _ in range(200):
        start, size = rng.integers(len(content)), rng.integers(1, 40)
        damaged.append(content[:start] + rng.bytes(size) + content[start:])
        damaged.append(content[:start] + content[start + size :])
    for other in damaged:
        path.write_bytes(other)
        with pytest.raises(SavingError, match=r"cannot load .*: .{10}"):
            load(path)


def test_an_edited_array_is_refused_even_if_the_file_is_sealed_again(saved):
    with zipfile.ZipFile(saved) as archive:
        content = bytearray(archive.read(array_of(saved)))
    content[-1] ^= 1
    rewritten(saved, extra={array_of(saved): bytes(content)})
    with pytest.raises(SavingError, match="one of its arrays was changed"):
        load(saved)


# Writing


def test_an_error_while_writing_leaves_the_old_file_and_no_other(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for module, name in ((os, "fsync"), (Path, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, full)
            with pytest.raises(OSError, match="No space"):
                save(StandardScaler(), saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_killed_process_leaves_the_old_file(saved):
    before = saved.read_bytes()
    program = (
        "import os, sys, voicecf.saving as saving\n"
        "from sklearn.preprocessing import StandardScaler\n"
        "os.fsync = lambda *a: os.kill(os.getpid(), 9)\n"
        "saving.save(StandardScaler(), sys.argv[1])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(saved)], check=False)
    assert ended.returncode == -9
    assert saved.read_bytes() == before


def test_a_file_that_cannot_grow_leaves_the_old_one_and_no_other(saved):
    """The system itself stops the writing half-way, as a full disk does."""
    before = saved.read_bytes()
    scaler = StandardScaler(copy=np.random.default_rng(0).normal(size=100_000))
    with files_of_at_most(50_000), pytest.raises(OSError, match="too large") as stopped:
        save(scaler, saved)
    assert stopped.value.errno == errno.EFBIG
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_device_is_not_replaced_by_a_file(path):
    os.mkfifo(path)
    with pytest.raises(SavingError, match="folder or a device"):
        save(StandardScaler(), path)
    assert path.is_fifo()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(SavingError, match="give the path of a file"):
        save(StandardScaler(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_links_and_permissions_are_kept(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    save(StandardScaler(), real)
    real.chmod(0o640)
    link.symlink_to(real)
    save(StandardScaler(copy=2), str(link))
    assert link.is_symlink()
    assert load(os.fsencode(real)).copy == 2
    assert real.stat().st_mode & 0o777 == 0o640


def test_a_loaded_explainer_answers_the_same_in_another_process(path, tmp_path):
    X = load_iris().data
    voice = VoICE(SHARK(3, n_init=2, random_state=42)).fit(X)
    voice.save(path)
    program = (
        "import sys, numpy as np, voicecf\n"
        "voice = voicecf.load(sys.argv[1])\n"
        "np.save(sys.argv[2], voice.explain(np.load(sys.argv[3])).points)\n"
    )
    np.save(tmp_path / "X.npy", X)
    out = tmp_path / "out.npy"
    subprocess.run(
        [sys.executable, "-c", program, str(path), str(out), str(tmp_path / "X.npy")], check=True
    )
    assert same_bits(np.load(out), voice.explain(X).points)
