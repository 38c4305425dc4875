"""Answers as JSON: strict, complete, and as the published schema has it."""

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from voicecf import CFCLUST, Status, VoICE
from voicecf.output.schema import JSON_SCHEMA, _texts, _value

PUBLISHED = Path(__file__).parents[1] / "docs" / "counterfactuals.schema.json"
IRIS = load_iris()
NAMES = ["sepal length", "sepal width", "petal length", "petal width"]
COLUMNS = dict(zip(NAMES, IRIS.data.T, strict=True))


def no_constant(name):
    raise AssertionError(f"{name} is no JSON")


def strict(cf, **options):
    return json.loads(cf.to_json(**options), parse_constant=no_constant)


def voice(X=IRIS.data, **options):
    return VoICE(KMeans(3, n_init=2, random_state=0), **options).fit(X)


@pytest.fixture(scope="module")
def cases():
    """Answers of every status that there is without effort."""
    fitted = voice()
    pairwise = CFCLUST(KMeans(3, n_init=2, random_state=0)).fit(IRIS.data)
    return {
        "each": fitted.explain(IRIS.data[::9], target="each"),
        "already": fitted.explain(IRIS.data[::9], target=0),
        "infeasible": fitted.explain(IRIS.data[::9], target=1, immutable=[0, 1, 2, 3]),
        "missed": pairwise.explain(IRIS.data, target="each"),
        "prefix": fitted.explain(IRIS.data[::9], objective="prefix"),
        "unbounded": VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]]).explain([[1.0, 5.0]]),
        "float32": voice(IRIS.data.astype(np.float32)).explain(IRIS.data[:3].astype(np.float32)),
        "pandas": voice(pd.DataFrame(COLUMNS)).explain(pd.DataFrame(COLUMNS).iloc[[3, 99]]),
        "polars": voice(pl.DataFrame(COLUMNS)).explain(pl.DataFrame(COLUMNS)[:5]),
        "pyarrow": voice(pa.table(COLUMNS)).explain(pa.table(COLUMNS)[:5]),
        "none": fitted.explain(IRIS.data[:0]),
        "twice": fitted.explain(IRIS.data[:4], target=1)[[2, 2, 0]],
        "numbered": voice(pd.DataFrame(IRIS.data)).explain(pd.DataFrame(IRIS.data).head()),
    }


CASES = ["each", "already", "infeasible", "missed", "prefix", "unbounded", "float32", "pandas",
         "polars", "pyarrow", "none", "twice", "numbered"]  # fmt: skip


def short_values(cf):
    """Return the values that are printed, as an array of floats."""
    return np.asarray(cf.rounded().to_frame(), dtype=np.float64)


def test_the_published_file_is_the_schema():
    assert json.loads(PUBLISHED.read_text(encoding="utf-8")) == JSON_SCHEMA, (
        "copy src/voicecf/output/counterfactuals.schema.json to docs"
    )


def test_the_schema_knows_every_status():
    answer = JSON_SCHEMA["properties"]["answers"]["items"]["properties"]
    assert answer["status"]["enum"] == [status.name.lower() for status in Status]


def test_the_schema_is_one():
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator.check_schema(JSON_SCHEMA)


@pytest.mark.parametrize("case", CASES)
def test_answers_keep_to_the_schema(cases, case):
    jsonschema = pytest.importorskip("jsonschema")
    jsonschema.Draft202012Validator(JSON_SCHEMA).validate(strict(cases[case]))


@pytest.mark.parametrize("wrong", [{"status": "fine"}, {"rho": "inf"}, {"row": None}, {"more": 1}])
def test_the_schema_refuses_what_is_wrong(cases, wrong):
    jsonschema = pytest.importorskip("jsonschema")
    document = strict(cases["each"])
    document["answers"][0].update(wrong)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(JSON_SCHEMA).validate(document)


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_the_one_in_the_arrays(cases, case):
    cf = cases[case]
    document = strict(cf)
    assert len(document["answers"]) == len(cf)
    for i, answer in enumerate(document["answers"]):
        for name in ("row", "source", "target", "rank", "cardinality", "feasible"):
            assert answer[name] == getattr(cf, name)[i]
        assert answer["n_changed"] == cf.rounded().n_changed[i]
        for name in ("cost", "rho", "tau", "alpha", "gap"):
            given, value = answer[name], getattr(cf, name)[i]
            assert (given is None and not np.isfinite(value)) or float(given) == value
        assert answer["text"] == cf.text(i)
        if answer["values"] is None:
            assert np.isnan(cf.points[i]).all()
        else:
            assert list(answer["values"]) == document["columns"]
            assert list(answer["values"].values()) == short_values(cf)[i].tolist()


@pytest.mark.parametrize("case", CASES)
def test_changes_lead_from_the_row_to_its_values(cases, case):
    cf = cases[case]
    document = strict(cf)
    for i, answer in enumerate(document["answers"]):
        assert len(answer["changes"]) == answer["n_changed"]
        for change in answer["changes"]:
            at = document["columns"].index(change["column"])
            assert change["to"] == answer["values"][change["column"]] == short_values(cf)[i, at]
            assert change["from"] == cf.factual[cf.row[i], at]
            assert change["delta"] == pytest.approx(change["to"] - change["from"], rel=1e-11)
            assert change["to"] == pytest.approx(cf.points[i, at], abs=0.011 * abs(change["delta"]))


def test_every_status_but_unresolved_is_among_these_cases(cases):
    found = {answer["status"] for cf in cases.values() for answer in strict(cf)["answers"]}
    assert found == {"optimal", "already", "infeasible", "missed"}


def test_infinity_is_a_word_and_what_is_missing_is_null(cases):
    assert strict(cases["unbounded"])["answers"][0]["rho"] == "Infinity"
    away = [a for a in strict(cases["infeasible"])["answers"] if a["status"] == "infeasible"]
    assert away
    assert all(a["values"] is None and a["changes"] == [] for a in away)


def test_indent_only_changes_the_spaces(cases):
    plain, wide = cases["each"].to_json(), cases["each"].to_json(indent=2)
    assert "\n" not in plain
    assert "\n  " in wide
    assert json.loads(plain) == json.loads(wide)


def test_names_that_are_no_text_become_text(cases):
    assert strict(cases["numbered"])["columns"] == ["0", "1", "2", "3"]


@pytest.mark.parametrize(("names", "texts"), [
    ([1, "1", 1.5, None], ["1 (int)", "1", "1.5", "None"]),
    (["1", 1, "1 (int)"], ["1", "1 (int) (int)", "1 (int)"]),
    ([("a", 1), ("a", "1"), ""], ["('a', 1)", "('a', '1')", ""]),
])  # fmt: skip
def test_texts_of_names_differ_as_the_names_do(names, texts):
    assert list(_texts(names).values()) == texts


@pytest.mark.parametrize(("value", "written"), [
    (True, True), (np.bool_(False), False), (3, 3), (np.int64(3), 3), (2**70, 2**70),
    (0.1, 0.1), (np.float32(0.1), float(np.float32(0.1))), (np.nan, None), (None, None),
    (np.inf, "Infinity"), (-np.inf, "-Infinity"), (pd.NA, None), (pd.NaT, None),
    ("text", "text"), (np.str_("text"), "text"), (date(2020, 1, 2), "2020-01-02"),
    (pd.Timestamp("2020-01-02"), "2020-01-02T00:00:00"), (Decimal("1.10"), "1.10"),
    (("a", 1), "('a', 1)"),
    (np.datetime64("2020-01-02"), "2020-01-02"),
])  # fmt: skip
def test_levels_of_any_type_are_written(value, written):
    assert _value(value) == written
    assert type(_value(value)) is type(written)
    json.dumps(_value(value), allow_nan=False)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_pipelines_are_written_in_the_users_units_and_types(library):
    jsonschema = pytest.importorskip("jsonschema")
    rng, n = np.random.default_rng(0), 90
    table = {
        "age": rng.integers(20, 60, n), "income": rng.normal(size=n) + np.arange(n) % 3 * 4,
        "member": rng.integers(0, 2, n).astype(bool), "town": [["a", "b"][i % 2] for i in range(n)],
    }  # fmt: skip
    X = {"pandas": pd.DataFrame, "polars": pl.DataFrame}[library](table)
    numbers = make_pipeline(SimpleImputer(), StandardScaler())
    columns = ColumnTransformer([
        ("n", numbers, ["age", "income"]), ("m", OrdinalEncoder(), ["member"]),
        ("t", OneHotEncoder(sparse_output=False), ["town"]),
    ])  # fmt: skip
    model = make_pipeline(columns, KMeans(3, n_init=2, random_state=0))
    cf = VoICE(model).fit(X).explain(X[:9], limit=50)
    document = json.loads(cf.to_json(indent=1), parse_constant=no_constant)
    jsonschema.Draft202012Validator(JSON_SCHEMA).validate(document)
    types = {"age": int, "income": float, "member": bool, "town": str}
    for answer in document["answers"]:
        if answer["values"] is not None:
            assert {name: type(v) for name, v in answer["values"].items()} == types
        for change in answer["changes"]:
            assert change["to"] == answer["values"][change["column"]]
            assert change["from"] == table[change["column"]][answer["row"]]
            assert type(change["from"]) is type(change["to"]) is types[change["column"]]


@pytest.mark.parametrize("names", [[("a", 1), ("a", 2), ("b", 1), ("b", 2)], [0.5, None, 7, "x"]])
def test_changes_name_odd_columns_as_they_are(names):
    X = pd.DataFrame(IRIS.data, columns=pd.Index(names, tupleize_cols=False, dtype=object))
    cf = VoICE.from_centers(IRIS.data[[0, 70, 120]], feature_names=names).explain(X[:9])
    features = list(cf.changes()["feature"])
    assert len(features) == cf.n_changed.sum() > 0
    assert all(any(f is n or f == n for n in names) for f in features)
