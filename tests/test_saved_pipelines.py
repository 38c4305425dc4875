"""Explainers of whole pipelines, saved and loaded: the same answers bit for bit, in any library."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, date, datetime

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    StandardScaler,
)

import voicecf
from voicecf import CFCLUST, SHARK, VoICE
from voicecf.errors import SavingError
from voicecf.saving import digest, save
from voicecf.table.sample_row import SampleCell, cells_of, frame_of

N = 150
RNG = np.random.default_rng(3)
GROUP = np.arange(N) % 3
SIZES = ["S", "M", "L"]
NUMBERS = {
    "income": np.exp(RNG.normal(size=N) + GROUP),
    "spend": RNG.normal(size=N) + 3 * GROUP,
    "weight": (RNG.normal(size=N) + GROUP).astype(np.float32),
    "rate": RNG.gamma(2.0, size=N) * (1 + GROUP),
    "share": RNG.uniform(size=N),
    "age": RNG.integers(18, 80, N) + 5 * GROUP,
}
TEXT = {
    "town": [["Rome", "Oslo", "Ürümqi"][i] for i in RNG.integers(0, 3, N)],
    "size": [SIZES[i] for i in RNG.integers(0, 3, N)],
}


def pandas_frame() -> pd.DataFrame:
    frame = pd.DataFrame({**NUMBERS, **TEXT}, index=[f"row {i}" for i in range(N)])
    frame["size"] = pd.Categorical(frame["size"], SIZES, ordered=True)
    frame.loc[frame.index[::7], "spend"] = np.nan
    # Nobody needs these, and no file could hold some of them.
    return frame.assign(note=[object()] * N, seen=pd.Timestamp("2020-01-01", tz="UTC"))


def polars_frame() -> pl.DataFrame:
    frame = pl.DataFrame({**NUMBERS, **TEXT}).with_columns(
        pl.col("size").cast(pl.Enum(SIZES)),
        pl.when(pl.int_range(N) % 7 == 0).then(None).otherwise(pl.col("spend")).alias("spend"),
    )
    return frame.with_columns(
        seen=pl.lit(datetime(2020, 1, 1, tzinfo=UTC)), empty=pl.lit(None), parts=[[1, 2]] * N
    )


FRAMES = {"pandas": pandas_frame, "polars": polars_frame}


def logarithm() -> FunctionTransformer:
    # Its check of the inverse looks into frames as only pandas has them.
    return FunctionTransformer(np.log1p, inverse_func=np.expm1, check_inverse=False)


def columns() -> ColumnTransformer:
    return ColumnTransformer([
        ("fill", make_pipeline(SimpleImputer(), StandardScaler()), ["spend", "weight"]),
        ("log", make_pipeline(logarithm(), StandardScaler()), ["income"]),
        ("power", PowerTransformer(), ["rate"]),
        ("even", QuantileTransformer(n_quantiles=40), ["share"]),
        ("age", MinMaxScaler(), ["age"]),
        ("town", OneHotEncoder(sparse_output=False), ["town"]),
        ("size", OrdinalEncoder(categories=[SIZES]), ["size"]),
    ])  # fmt: skip


MODELS = {
    "kmeans": lambda: make_pipeline(columns(), KMeans(3, n_init=2, random_state=0)),
    "pca": lambda: make_pipeline(columns(), PCA(5), KMeans(3, n_init=2, random_state=0)),
    "shark": lambda: make_pipeline(columns(), SHARK(3, n_init=2, random_state=0)),
}
QUESTIONS = {
    "each": {"target": "each", "limit": 50},
    "fewest": {"objective": "fewest", "limit": 50},
    "prefix": {"target": 1, "objective": "prefix", "limit": 50},
    "rules": {
        "limit": 50,
        "immutable": "rate",
        "increase_only": ["age", "size"],
        "bounds": {"income": ("-50%", "+500"), "share": (0.1, 0.9)},
        "steps": {"spend": 0.25},
        "forbidden": {"town": [("Rome", "Oslo")]},
        "costs": {"town": 2.0},
        "max_changes": 4,
        "constraints": "spend <= age",
    },
}
ARRAYS = ("points", "row", "source", "target", "status", "cost", "n_changed", "cardinality", "rho",
          "alpha", "gap")  # fmt: skip


def assert_same_frames(before, after) -> None:
    assert type(before) is type(after)
    if isinstance(before, pd.DataFrame):
        pd.testing.assert_frame_equal(before, after, check_exact=True)
    else:
        assert before.equals(after)
        assert before.schema == after.schema


def assert_same_answers(before, after) -> None:
    """Compare two batches of answers by bits."""
    assert len(before) == len(after) > 0
    for name in ARRAYS:
        a, b = getattr(before, name), getattr(after, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), name
    assert_same_frames(before.to_frame(), after.to_frame())
    assert_same_frames(before.changes(), after.changes())
    assert before.to_json() == after.to_json()  # has the text of every answer
    assert before.text(0) == after.text(0)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "saved.voicecf"


@pytest.fixture(scope="module", params=[(f, m) for f in FRAMES for m in MODELS], ids=str)
def pair(request, tmp_path_factory):
    """An explainer of a frame and what it is after saving and loading, and the frame."""
    library, model = request.param
    X = FRAMES[library]()
    voice = VoICE(MODELS[model]()).fit(X)
    path = tmp_path_factory.mktemp("saved") / "pair.voicecf"
    voice.save(path)
    return voice, VoICE.load(path), X


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_loaded_pipeline_answers_with_the_same_bits(pair, question):
    voice, loaded, X = pair
    asked = QUESTIONS[question]
    before = voice.explain(X[:12], **asked)
    assert before.feasible.any()
    assert_same_answers(before, loaded.explain(X[:12], **asked))


def test_a_loaded_pipeline_knows_the_same_coordinates(pair):
    """They are made through the row of the data that was kept."""
    voice, loaded, X = pair
    np.testing.assert_array_equal(voice.predict(X), loaded.predict(X))
    for c, column in enumerate(voice.space_.columns):
        values = column.levels or np.linspace(*column.observed, 50)
        a, b = (v.space_.coordinates(c, values) for v in (voice, loaded))
        assert a.tobytes() == b.tobytes()
        a, b = (np.asarray(v.space_.values(c, a)) for v in (voice, loaded))
        assert a.tolist() == b.tolist()


def test_a_loaded_pipeline_has_the_same_digest(pair):
    voice, loaded, X = pair
    loaded.explain(X[:2], limit=50)
    assert digest(loaded) == digest(voice)


def test_the_transformers_are_those_of_the_model_again(pair):
    _, loaded, _ = pair
    steps = [step for _, step in loaded.model_.steps]
    assert loaded.space_.steps.before[0] is steps[0]
    assert loaded.partition_.model is steps[-1]


@pytest.mark.parametrize("library", ["pandas", "polars", "array"])
def test_declared_categories_are_kept(library, path):
    X = np.column_stack([
        NUMBERS["spend"], NUMBERS["age"], *((g == GROUP).astype(float) for g in range(3))
    ])  # fmt: skip
    names = ["spend", "age", "first", "second", "third"]
    table = dict(zip(names, X.T, strict=True))
    make = {"pandas": pd.DataFrame, "polars": pl.DataFrame}
    X = make[library](table) if library in make else X
    block = names[2:] if library in make else ["x2", "x3", "x4"]
    model = make_pipeline(MinMaxScaler(), KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model, categories={"group": block}).fit(X)
    voice.save(path)
    loaded = VoICE.load(path)
    before = voice.explain(X[:20], limit=50)
    assert_same_answers(before, loaded.explain(X[:20], limit=50))


def test_declared_categories_of_a_pipeline_are_kept(path):
    X = pd.DataFrame({"spend": NUMBERS["spend"], "age": NUMBERS["age"].astype("int32")})
    X[["a", "b"]] = np.eye(3)[GROUP][:, :2]
    model = make_pipeline(StandardScaler(), PCA(3), KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model, categories={"group": ["a", "b"]}).fit(X)
    voice.save(path)
    assert_same_answers(voice.explain(X[:20], limit=50), VoICE.load(path).explain(X[:20], limit=50))


def test_the_pairwise_baseline_of_a_pipeline_is_saved_too(path):
    X = pandas_frame()[["income", "rate"]]
    pairwise = CFCLUST(make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))).fit(X)
    pairwise.save(path)
    assert_same_answers(pairwise.explain(X), CFCLUST.load(path).explain(X))


def test_an_array_of_objects_is_kept(path):
    X = np.array([NUMBERS["spend"], TEXT["town"], [object()] * N], dtype=object).T
    columns = ColumnTransformer([
        ("n", StandardScaler(), [0]), ("t", OneHotEncoder(sparse_output=False), [1])
    ])  # fmt: skip
    voice = VoICE(make_pipeline(columns, KMeans(3, n_init=2, random_state=0))).fit(X)
    voice.save(path)
    before, after = voice.explain(X[:9], limit=50), VoICE.load(path).explain(X[:9], limit=50)
    assert before.points.tobytes() == after.points.tobytes()


def test_a_lambda_in_a_step_is_refused_with_the_remedy(path):
    X = pandas_frame()[["income", "rate"]]
    halved = FunctionTransformer(lambda x: x / 2, inverse_func=lambda x: 2 * x)
    voice = VoICE(make_pipeline(halved, KMeans(3, n_init=2, random_state=0))).fit(X)
    with pytest.raises(SavingError, match=r"functiontransformer.*<lambda>'.*of numpy"):
        voice.save(path)
    assert not path.exists()


# Other installations

ANSWER = """
import sys
from importlib.machinery import PathFinder
absent = sys.argv[4].split()
class Finder:
    find_spec = staticmethod(
        lambda name, *rest: None if name in absent else PathFinder.find_spec(name, *rest))
sys.meta_path[sys.meta_path.index(PathFinder)] = Finder
import numpy as np, voicecf
voice = voicecf.load(sys.argv[1])
X = np.load(sys.argv[2], allow_pickle=True)
names = voice.space_.names if voice.space_.named else None
if names:
    import importlib
    library = importlib.import_module(sys.argv[5])
    X = library.DataFrame({name: X[:, i].astype(float) for i, name in enumerate(names)})
cf = voice.explain(X, limit=50)
np.save(sys.argv[3], cf.points)
assert not set(absent) & set(sys.modules)
"""


def answered_elsewhere(path, X, tmp_path, without: str, library: str = "-") -> np.ndarray:
    """Load and explain in another process, in which some libraries are not installed."""
    given, out = tmp_path / "X.npy", tmp_path / "out.npy"
    np.save(given, X)
    ended = subprocess.run(
        [sys.executable, "-c", ANSWER, str(path), str(given), str(out), without, library],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return np.load(out)


def test_a_pipeline_of_arrays_needs_no_library_of_frames(path, tmp_path):
    X = np.column_stack([NUMBERS["age"], NUMBERS["income"], NUMBERS["spend"]])
    model = make_pipeline(PowerTransformer(), PCA(2), KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model).fit(X)
    voice.save(path)
    found = answered_elsewhere(path, X[:9], tmp_path, "pandas polars pyarrow")
    assert found.tobytes() == voice.explain(X[:9], limit=50).points.tobytes()


@pytest.mark.parametrize(("fitted", "other"), [("pandas", "polars"), ("polars", "pandas")])
def test_a_pipeline_of_one_library_answers_where_only_another_is(fitted, other, path, tmp_path):
    table = {"age": NUMBERS["age"], "income": NUMBERS["income"], "weight": NUMBERS["weight"]}
    X = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[fitted](table)
    model = make_pipeline(
        ColumnTransformer(
            [("a", MinMaxScaler(), ["age", "weight"]), ("b", logarithm(), ["income"])]
        ),
        KMeans(3, n_init=2, random_state=0),
    )
    voice = VoICE(model).fit(X)
    voice.save(path)
    rows = np.column_stack(list(table.values()))[:9]
    asked = type(X)({name: rows[:, i] for i, name in enumerate(table)})
    found = answered_elsewhere(path, rows, tmp_path, f"{fitted} pyarrow", other)
    before = voice.explain(asked, limit=50)
    assert found.tobytes() == before.points.tobytes()


# The row that is kept

CELLS = {
    "whole": [3], "small": np.array([3], np.int8), "real": [0.1], "gap": [np.nan],
    "single": np.array([0.1], np.float32), "text": ["Ürümqi\0"], "truth": [True],
    "day": np.array(["2020-01-02"], "M8[ns]"), "moment": np.array([1], "M8[ns]"),
    "span": np.array([7], "m8[ns]"), "nothing": [None],
}  # fmt: skip
OF_PANDAS = {
    "nullable": pd.array([2**60 + 1], dtype="Int64"),
    "nullable gap": pd.array([None], dtype="Int64"),
    "Float32": pd.array([0.1], dtype="Float32"),
    "boolean": pd.array([None], dtype="boolean"),
    "string": pd.array([None], dtype="string"),
    "str": pd.array([np.nan], dtype="str"),
    "category": pd.Categorical(["b"], ["c", "b", "a"]),
    "ordered": pd.Categorical([2], [3, 2], ordered=True),
    "category gap": pd.Categorical([None], ["a"]),
    "objects": np.array([None], dtype=object),
    "nan": np.array([np.nan], dtype=object),
    "number": np.array([5], dtype=object),
    "date": np.array([date(2020, 1, 2)], dtype=object),
}
OF_POLARS = {
    "enum": pl.Series(["b"], dtype=pl.Enum(["c", "b"])),
    "categorical": pl.Series(["b"], dtype=pl.Categorical),
    "UInt16": pl.Series([9], dtype=pl.UInt16),
    "gap of Int8": pl.Series([None], dtype=pl.Int8),
    "NaN": pl.Series([np.nan]),
    "date": pl.Series([date(2020, 1, 2)]),
    "bytes": pl.Series([b"\0x"]),
}


@pytest.mark.parametrize(("library", "frame"), [
    ("pandas", pd.DataFrame({**CELLS, **OF_PANDAS})),
    ("polars", pl.DataFrame({**CELLS, **OF_POLARS})),
    ("pyarrow", pa.table(CELLS)),
    ("pandas", pd.DataFrame([[1, "a"]], columns=[0, ("b", 1)])),
], ids=["pandas", "polars", "pyarrow", "odd names"])  # fmt: skip
def test_a_sample_row_is_the_same_frame_again(library, frame, path):
    row = cells_of(nw.from_native(frame, eager_only=True), set())
    save(StandardScaler(copy=[vars(cell) for cell in row]), path)
    cells = voicecf.load(path).copy
    made = frame_of([SampleCell(**cell) for cell in cells], library).to_native()
    if library == "pandas":
        pd.testing.assert_frame_equal(made, frame, check_exact=True, check_column_type=False)
    else:
        rows = (f.to_dicts() if library == "polars" else f.to_pylist() for f in (made, frame))
        assert made.schema == frame.schema
        assert len(set(map(repr, rows))) == 1
