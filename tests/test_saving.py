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
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from io import BytesIO

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
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
from voicecf import CFCLUST, SHARK, Region, Status, VoICE
from voicecf.errors import OptionError, SavingError, VersionWarning, VoiceError
from voicecf.geometry.cell import Arithmetic
from voicecf.geometry.pullback import Mixing
from voicecf.learned.learned import Learned
from voicecf.saving import load, load_explainer, save
from voicecf.table.sample_row import SampleCell

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
    voice.explain(X)
    assert "cells" in vars(voice.learned_)
    loaded = again(voice, path)
    assert loaded.model_ is loaded.clustering_.model
    assert set(vars(loaded)) == set(vars(voice))
    assert set(vars(loaded.learned_)) == set(Learned.__dataclass_fields__)
    assert "_sklearn_version" not in vars(loaded.model_)


def test_a_loaded_explainer_can_be_fitted_saved_and_pickled_again(path, tmp_path):
    X = load_iris().data
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(X)
    loaded = again(voice, path)
    save(loaded, tmp_path / "second")
    assert path.read_bytes() == (tmp_path / "second").read_bytes()
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
    step = NUMERIC[name]().set_output(transform=output).fit(X, CLASSES)
    loaded = again(step, path)
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
    assert_same_outputs([columns.transform(FRAME)], [again(columns, path).transform(FRAME)])


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


def test_selected_components_lie_in_memory_as_they_did(path):
    """PCA cuts rows off a matrix that is stored by columns; matrix products can tell."""
    pca = PCA(2, svd_solver="randomized", random_state=3).fit(NUMBERS)
    assert not pca.components_.flags.forc
    assert again(pca, path).components_.strides == pca.components_.strides


def test_gaps_in_memory_are_kept_only_while_they_are_small(path):
    table = np.arange(12.0).reshape(3, 4)
    wide = np.zeros(2**26 + 1)[:: 2**25]  # three numbers in half a gigabyte
    views = [table[:, 1:3], table[::2, ::2].T, table[::-1], np.broadcast_to(table, (2, 3, 4)), wide]
    loaded = again(views, path)
    assert all(map(same_bits, views, loaded))
    assert [a.strides for a in loaded[:2]] == [a.strides for a in views[:2]]
    assert loaded[-1].strides == (8,)
    rewritten(path, lambda text: text.replace('"strides": [32, 8]', f'"strides": [{2**40}, 8]'))
    with pytest.raises(SavingError, match="more memory"):
        load(path)


def test_pandas_missing_values_are_kept(path):
    imputer = SimpleImputer(missing_values=pd.NA, strategy="most_frequent")
    assert again(imputer, path).missing_values is pd.NA


# The tree

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**20000), 2**20000),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.text(),
    st.text(st.characters()),
    st.lists(st.sampled_from("\ud83d\ude00a\0")).map("".join),
    st.binary(),
    st.complex_numbers(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.decimals(),
    st.sampled_from(list(Status)),
    st.sampled_from([np.float32, np.number, np.str_, object, str, float, bool]),
    st.sampled_from([np.log1p, np.sqrt, np.nan_to_num, f_regression]),
    st.sampled_from(["<f4", ">i8", "|O", "<U7", "<M8[ns]", "|b1", "|S3"]).map(np.dtype),
    st.builds(slice, *[st.none() | st.integers()] * 3),
    st.builds(range, st.integers(), st.integers()),
    st.text().map(np.str_),
    st.binary().map(np.bytes_),
    st.sampled_from([np.int8(-3), np.uint64(2**64 - 1), np.bool_(True), np.float16(0.1)]),
    st.sampled_from([np.datetime64("2020-01-01"), np.datetime64("NaT"), np.timedelta64(3, "s")]),
    st.sampled_from([np.complex64(1 - 2j), np.longdouble(1) / 3]),
)
DTYPES = st.one_of(
    hnp.scalar_dtypes(),
    hnp.unicode_string_dtypes(max_len=4),
    hnp.byte_string_dtypes(max_len=4),
)
ARRAYS = st.one_of(
    hnp.arrays(DTYPES, hnp.array_shapes(min_dims=0, min_side=0, max_side=3)),
    hnp.arrays(DTYPES, hnp.array_shapes(min_dims=2, max_dims=3, max_side=3)).map(np.transpose),
    st.lists(SCALARS, max_size=4).map(lambda parts: as_objects(parts)),
)


def as_objects(parts):
    found = np.empty(len(parts), dtype=object)
    for i, part in enumerate(parts):
        found[i] = part
    return found


HASHABLE = st.one_of(st.none(), st.integers(), st.text(), st.binary(), st.dates())
TREES = st.recursive(
    SCALARS | ARRAYS,
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.lists(parts, max_size=3).map(tuple),
        st.dictionaries(HASHABLE | st.tuples(HASHABLE), parts, max_size=3),
        st.sets(HASHABLE, max_size=3),
        st.frozensets(HASHABLE, max_size=3),
        st.builds(Arithmetic, parts, parts),
        st.builds(SampleCell, parts, parts, st.text(), levels=st.tuples(parts)),
        st.builds(Mixing, parts, parts),
        st.builds(StandardScaler, copy=parts),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(TREES)
def test_any_tree_comes_back_with_its_types_and_bits(tmp_path_factory, tree):
    path = tmp_path_factory.getbasetemp() / "tree.voicecf"
    assert same_bits(tree, again(tree, path))


@pytest.mark.parametrize("array", [
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(6.0).reshape(2, 3),
    np.arange(6, dtype=">i2"),
    np.array(3.5),
    np.zeros((0, 4), np.float32),
    np.array([np.nan, -np.nan, -0.0, np.inf, 5e-324]),
    np.array(["a", "\U0010ffff", ""]),
    np.array([["x", None], [np.nan, 3]], dtype=object),
    np.array(["2020-01-01", "NaT"], dtype="M8[ns]"),
])  # fmt: skip
def test_arrays_keep_dtype_shape_order_and_bits(array, path):
    loaded = again(array, path)
    assert same_bits(array, loaded)
    assert loaded.flags.f_contiguous == array.flags.f_contiguous
    assert loaded.flags.c_contiguous == array.flags.c_contiguous
    assert loaded.flags.writeable


@pytest.mark.parametrize("text", [np.str_("a\0"), np.str_("\0"), np.bytes_(b"a\0"), "\0", "a\0"])
def test_zeros_at_the_end_of_text_are_kept(text, path):
    assert len(again(text, path)) == len(text)
    assert same_bits(text, again(text, path))


def test_read_only_arrays_stay_so(path):
    array = np.arange(3.0)
    array.flags.writeable = False
    assert not again([array], path)[0].flags.writeable


def test_what_was_one_object_is_one_again_even_in_a_ring(path):
    scaler, array = StandardScaler(), np.arange(3.0)
    scaler.copy, scaler.mean_ = scaler, array
    loaded = again({"first": scaler, "second": (scaler, array)}, path)
    assert loaded["first"] is loaded["second"][0] is loaded["first"].copy
    assert loaded["first"].mean_ is loaded["second"][1]


def test_a_plain_nan_is_the_nan_that_scikit_learn_knows(path):
    assert again([math.nan], path)[0] is np.nan


def test_random_generators_are_left_out_and_seeds_kept(path):
    parts = [np.random.RandomState(3), np.random.default_rng(3), 3, np.int64(3)]
    assert again(parts, path) == [None, None, 3, 3]


def test_bound_methods_and_cached_values_are_left_out(path):
    region = Region(np.eye(2), np.ones(2), np.zeros(2), np.ones(2))
    scaler = StandardScaler()
    scaler.shortcut = scaler.fit
    loaded = again([scaler, region], path)
    assert "shortcut" not in vars(loaded[0])
    assert same_bits(vars(region), vars(loaded[1]))


def test_a_loaded_file_is_plain(path):
    save(StandardScaler().fit(NUMBERS), path)
    with zipfile.ZipFile(path) as archive:
        head = json.loads(archive.read("explainer.json"))
        arrays = [n for n in archive.namelist() if n != "explainer.json"]
        assert all(np.load(BytesIO(archive.read(n)), allow_pickle=False).size for n in arrays)
        assert all(i.compress_type == zipfile.ZIP_DEFLATED for i in archive.infolist())
    assert head["format"] == "voicecf/explainer"
    assert head["scikit-learn"] == sklearn.__version__
    assert head["voicecf"] == voicecf.__version__
    assert head["root"]["class"] == "sklearn.preprocessing.StandardScaler"


# What is refused


class Own(TransformerMixin, BaseEstimator):
    cluster_centers_ = np.eye(2)


@dataclass
class OwnValue:
    a: int = 1


def local(x):
    return x


@pytest.mark.parametrize(("thing", "words"), [
    (FunctionTransformer(lambda x: x), r"FunctionTransformer\.func is the function '<lambda>'"),
    (make_pipeline(FunctionTransformer(local)), r"Pipeline\.steps\[0\]\[1\]\.func .*\(np\.log1p"),
    (FunctionTransformer(kw_args={"f": os.system}), r"\.kw_args\['f'\] is the function 'system'"),
    (VoICE(Own()), r"VoICE\.model is a .*Own, which is not known.*from_centers"),
    ([OwnValue()], r"list\[0\] is a .*OwnValue"),
    ({3: Own}, r"dict\[3\] is a Own"),
    (np.ma.array([1.0]), r"MaskedArray is a MaskedArray"),
    (np.zeros(2, dtype=[("a", "f8")]), r"ndarray is a ndarray of .*astype"),
    ([FRAME], r"list\[0\] is a pandas.*DataFrame"),
    ([open], r"list\[0\] is the function 'open'"),
    (datetime.now().astimezone(), r"datetime is a datetime\.datetime"),
])  # fmt: skip
def test_what_could_not_be_loaded_safely_is_refused_by_its_place(thing, words, path):
    with pytest.raises(SavingError, match=words):
        save(thing, path)
    assert list(path.parent.iterdir()) == []


def test_endless_nesting_is_refused(path):
    ring: list = []
    ring.append(ring)
    deep = [1]
    for _ in range(5000):
        deep = [deep]
    for thing in (ring, deep):
        with pytest.raises(SavingError, match="nested"):
            save(thing, path)


def test_the_errors_are_voice_errors():
    assert issubclass(SavingError, VoiceError)


# Files


def rewritten(path, change=None, extra=None, **kwargs):
    """Write the archive at path again with its tree changed, or members added."""
    with zipfile.ZipFile(path) as archive:
        members = {n: archive.read(n) for n in archive.namelist()}
    if change is not None:
        members["explainer.json"] = change(members["explainer.json"].decode()).encode()
    with zipfile.ZipFile(path, "w", **kwargs) as archive:
        for name, content in {**members, **(extra or {})}.items():
            if content is not None:
                archive.writestr(name, content)


@pytest.fixture
def saved(path):
    save(StandardScaler().fit(NUMBERS), path)
    return path


def test_another_scikit_learn_warns_with_both_versions_and_goes_on(saved):
    rewritten(saved, lambda text: text.replace(f'"{sklearn.__version__}"', '"0.9.9"'))
    with pytest.warns(VersionWarning, match=rf"0\.9\.9; this is {sklearn.__version__}"):
        loaded = load(saved)
    assert loaded.n_features_in_ == 5


@pytest.mark.parametrize("version", ["1.1", "2.0", "0.9", ""])
def test_another_format_version_is_an_error_with_the_remedy(saved, version):
    rewritten(saved, lambda text: text.replace('"version": "1.0"', f'"version": "{version}"'))
    with pytest.raises(SavingError, match=rf"format {version}, written by voicecf .* save again"):
        load(saved)


NAMED = '"sklearn.preprocessing.StandardScaler"'


@pytest.mark.parametrize("name", [
    "os.system", "subprocess.Popen", "builtins.eval", "voicecf.__main__.main",
    "voicecf.cli.command.main", "voicecf.saving.saving.os", "voicecf.voice.np",
    "voicecf.learned.explainer.BaseEstimator", "voicecf", "",
    "sklearn.preprocessing.os", "sklearn.linear_model.LinearRegression", "voicecf.nowhere.A",
    "voicecf.status.Status", "voicecf.errors.SavingError", "../evil", "numpy.load",
])  # fmt: skip
@pytest.mark.parametrize("kind", ["object", "function", "type", "enum"])
def test_a_file_that_names_anything_else_is_refused(saved, name, kind):
    node = {"is": kind, "id": 0, "class": name, "name": name, "state": {}}
    rewritten(saved, lambda text: json.dumps({**json.loads(text), "root": node}))
    before = set(sys.modules)
    with pytest.raises(SavingError):
        load(saved)
    assert {m.split(".")[0] for m in set(sys.modules) - before} <= {"voicecf"}


@pytest.mark.parametrize("text", [
    "", "[]", "null", "{}", "NaN", '{"format": "voicecf/explainer"}', "[" * 100_000,
    '{"a":' * 100_000, "\xff", '{"format": "voicecf/explainer", "version": "1.0"}', "9" * 10_000,
])  # fmt: skip
def test_any_other_tree_is_an_error(saved, text):
    rewritten(saved, lambda _: text)
    with pytest.raises(SavingError, match="cannot load"):
        load(saved)


NODES = st.recursive(
    st.none() | st.integers() | st.text(max_size=3) | st.floats(allow_nan=False),
    lambda parts: st.one_of(
        st.lists(parts, max_size=3),
        st.fixed_dictionaries(
            {"is": st.sampled_from([
                "tuple", "set", "dict", "array", "objects", "object", "same", "slice", "range",
                "complex", "timedelta", "int", "float", "text", "bytes", "date", "datetime", "time",
                "decimal", "numpy text", "numpy bytes", "scalar", "dtype", "type", "function",
                "enum", "pandas.NA", "other",
            ])},
            optional={
                "items": parts | st.lists(st.tuples(parts, parts), max_size=2),
                "hex": st.sampled_from(["00", "0x3", "zz", "0000000000000000"]) | parts,
                "value": st.sampled_from(["nan", "7ff8000000000001"]) | parts,
                "text": st.sampled_from(["2020-01-01", "1e999", "25:00"]) | parts,
                "dtype": st.sampled_from(["<f8", "|O", "<U1", "f8,O", "<M8", "|S0"]) | parts,
                "file": st.sampled_from(["arrays/0.npy", "explainer.json", "/etc/passwd"]) | parts,
                "shape": st.sampled_from([[1], [], [-1], [0, 10**30]]) | parts,
                "class": st.sampled_from(["voicecf.table.space.Space", "voicecf.status.Status"])
                | parts,
                "name": st.sampled_from(["numpy.log", "OPTIMAL", "numpy.float64"]) | parts,
                "id": st.integers(0, 1) | parts,
                "state": st.dictionaries(st.text(max_size=3), parts, max_size=2) | parts,
            },
        ),
    ),
    max_leaves=6,
)  # fmt: skip


@settings(max_examples=400, deadline=None)
@given(NODES)
def test_a_tree_made_of_nonsense_is_read_or_refused(tmp_path_factory, node):
    path = tmp_path_factory.getbasetemp() / "nonsense.voicecf"
    save(StandardScaler().fit(NUMBERS), path)
    rewritten(path, lambda text: json.dumps({**json.loads(text), "root": node}))
    with pytest.raises(SavingError):
        load(path)  # if it is sense, then not all arrays are named


@pytest.mark.parametrize("extra", [
    {"evil.py": b"x"}, {"arrays/99.npy": b"x"}, {"../evil": b""}, {"arrays/0.npy": None},
    {"explainer.json": None}, {"arrays/0.npy": b"x"}, {"arrays/0.npy": b""},
])  # fmt: skip
def test_members_other_than_the_tree_names_are_refused(saved, extra):
    rewritten(saved, extra=extra)
    with pytest.raises(SavingError):
        load(saved)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_twice_is_refused(saved):
    with zipfile.ZipFile(saved, "a") as archive:
        archive.writestr("explainer.json", "{}")
    with pytest.raises(SavingError, match="none of voicecf's"):
        load(saved)


@pytest.mark.parametrize("array", [
    np.array([print], dtype=object), np.zeros(2, dtype="f8,i4"), np.zeros(3, dtype="V4"),
    np.array([2, 255], np.uint8).view(np.bool_), np.array([2**31], np.uint32).view("<U1"),
])  # fmt: skip
def test_arrays_that_would_run_or_mislead_are_refused(saved, array):
    stream = BytesIO()
    np.save(stream, array, allow_pickle=True)
    rewritten(saved, extra={"arrays/0.npy": stream.getvalue()})
    with pytest.raises(SavingError, match="array"):
        load(saved)


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(4,)", "(-5,)", "(6,)", "(0, 10**30)", "5"])
def test_an_array_whose_length_is_a_lie_is_refused(saved, shape):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + header.encode() + bytes(40)
    rewritten(saved, extra={"arrays/0.npy": content})
    with pytest.raises(SavingError):
        load(saved)


def test_what_unpacks_to_too_much_is_refused_before_it_is_unpacked(path):
    save(np.zeros(1_000_000), path)
    assert path.stat().st_size < 20_000
    with pytest.raises(SavingError, match=r"may take 80\d+ bytes.*pass limit=80\d+"):
        load(path, limit=1_000_000)
    assert load(path, limit=9_000_000).size == 1_000_000


def test_a_long_tree_counts_for_what_its_parsing_takes(path):
    save([[]] * 100_000, path)
    with pytest.raises(SavingError, match="limit"):
        load(path, limit=1_000_000)


@pytest.mark.parametrize("limit", [0, -1, "1", None, 1.5])
def test_the_limit_is_a_number_of_bytes(saved, limit):
    with pytest.raises(OptionError, match="limit"):
        load(saved, limit=limit)


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


# Small, so that the fuzz meets every field of the archive often.
TARGET = [1.5, "text", (None,), {"a": np.arange(3)}, StandardScaler(), np.array(["x", None])]


def loads_or_refuses(path, content):
    path.write_bytes(content)
    try:
        loaded = load(path)
    except SavingError:
        return
    assert same_bits(TARGET, loaded)


def test_every_truncated_file_is_refused(path):
    save(TARGET, path)
    content = path.read_bytes()
    for length in range(len(content)):
        path.write_bytes(content[:length])
        with pytest.raises(SavingError):
            load(path)


def test_every_flipped_bit_is_refused_or_harmless(path):
    save(TARGET, path)
    content = path.read_bytes()
    for at in range(len(content)):
        for bit in range(8):
            flipped = bytearray(content)
            flipped[at] ^= 1 << bit
            loads_or_refuses(path, bytes(flipped))


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_every_damage_is_refused_or_harmless(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.voicecf"
    save(TARGET, path)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(start + 40, len(content))))
        content[start:stop] = data.draw(st.binary(max_size=40))
    loads_or_refuses(path, bytes(content))


# Writing


def test_an_error_while_writing_leaves_the_old_file_and_no_other(saved, monkeypatch):
    before = saved.read_bytes()

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    for name in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(OSError, match="No space"):
                save([1], saved)
    with monkeypatch.context() as patch:
        patch.setattr("voicecf.saving.saving.npy.write_array", full)
        with pytest.raises(OSError, match="No space"):
            save([np.arange(3)], saved)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_killed_process_leaves_the_old_file(saved):
    before = saved.read_bytes()
    program = (
        "import os, sys, numpy as np, voicecf.saving.saving as saving\n"
        "saving.npy.write_array = lambda *a, **k: os.kill(os.getpid(), 9)\n"
        "saving.save([np.arange(3)], sys.argv[1])\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(saved)], check=False)
    assert ended.returncode == -9
    assert saved.read_bytes() == before


def test_a_file_that_cannot_grow_leaves_the_old_one_and_no_other(saved):
    """The system itself stops the writing half-way, as a full disk does."""
    pytest.importorskip("resource")
    before = saved.read_bytes()
    program = (
        "import resource, sys, numpy as np, voicecf.saving.saving as saving\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))\n"
        "try:\n"
        "    saving.save(np.random.default_rng(0).normal(size=100_000), sys.argv[1])\n"
        "except OSError as error:\n"
        "    sys.exit(error.errno)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(saved)], check=False)
    assert ended.returncode == errno.EFBIG
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_device_is_not_replaced_by_a_file(path):
    os.mkfifo(path)
    with pytest.raises(SavingError, match="folder or a device"):
        save([1], path)
    assert path.is_fifo()


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(SavingError, match="give the path of a file"):
        save([1], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_links_and_permissions_are_kept(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    save([1], real)
    real.chmod(0o640)
    link.symlink_to(real)
    save([2], str(link))
    assert link.is_symlink()
    assert load(os.fsencode(real)) == [2]
    assert real.stat().st_mode & 0o777 == 0o640


def test_the_same_object_gives_the_same_bytes(tmp_path):
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(load_iris().data)
    voice.save(tmp_path / "a")
    voice.save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


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


def test_dates_and_decimals_are_examples_of_levels(path):
    levels = [date(2020, 1, 2), datetime(2020, 1, 2, 3, 4, 5, 6), time(1), timedelta(1, 2, 3)]
    assert same_bits([*levels, Decimal("1.10")], again([*levels, Decimal("1.10")], path))
