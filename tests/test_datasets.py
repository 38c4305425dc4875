"""The datasets are the paper's to the digit, and come with the package: nothing else is needed."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from hashlib import sha256
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from voicecf.datasets import load, names
from voicecf.datasets.sources import CATALOGUE
from voicecf.errors import OptionError
from voicecf.paper.published import titles

DATA = files("voicecf.datasets") / "data"
# n, d, k, k-means inertia, ARI, as the paper's protocol gives them.
PRINTED = {
    "iris": (150, 4, 3, 140.9658, 0.6201),
    "wine": (178, 13, 3, 1277.9285, 0.8975),
    "penguins": (342, 4, 3, 379.3925, 0.7928),
    "breast_cancer": (569, 30, 2, 11595.5266, 0.6536),
    "wholesale": (440, 6, 3, 1608.4311, 0.0281),
    "diabetes": (253_680, 20, 3, 4221626.0355, 0.1486),
    "obesity": (2111, 22, 7, 29808.3867, 0.1010),
    "german_credit": (1000, 48, 2, 45797.9262, 0.0001),
    "heart_failure": (299, 12, 2, 3201.1206, -0.0037),
    "student": (649, 39, 5, 21476.4530, 0.0267),
}
TEXT = ["obesity", "student", "german_credit"]


@pytest.mark.parametrize("name", PRINTED)
def test_shape_inertia_and_ari_are_the_printed_ones(name):
    n, d, k, inertia, ari = PRINTED[name]
    dataset = load(name)
    model = KMeans(n_clusters=k, n_init=10, random_state=42, max_iter=300, tol=1e-4)
    with threadpool_limits(1):
        labels = model.fit(dataset.standardised()).labels_
    assert (*dataset.X.shape, dataset.k) == (n, d, k)
    assert round(model.inertia_, 4) == inertia
    assert round(adjusted_rand_score(dataset.label, labels), 4) == ari


def test_diabetes_has_its_rows_and_classes():
    dataset = load("diabetes")
    assert np.bincount(dataset.label).tolist() == [213_703, 4_631, 35_346]
    assert dataset.label_names == ("0", "1", "2")
    assert "BMI" not in dataset.feature_names
    assert dataset.X.sum() == 8_972_814
    assert set(dataset.frame.dtypes) == {np.dtype("int8")}


@pytest.mark.parametrize("name", PRINTED)
def test_frame_and_matrix_have_the_same_rows_and_no_label(name):
    dataset = load(name)
    numbers = list(dataset.frame.select_dtypes("number").columns)
    assert len(dataset.frame) == len(dataset.X) == len(dataset.label)
    assert dataset.frame.index.equals(pd.RangeIndex(len(dataset.X)))
    assert list(dataset.frame) == list(dataset.columns)
    assert list(dataset.feature_names[: len(numbers)]) == numbers
    np.testing.assert_array_equal(dataset.X[:, : len(numbers)], dataset.frame[numbers])
    assert sorted(dataset.blocks) == sorted(set(dataset.frame.columns) - set(numbers))
    assert set(dataset.label) == set(range(dataset.k))
    assert dataset.X.dtype == np.float64
    assert dataset.X.flags.c_contiguous


FILES = {
    "penguins": ("penguins.csv", ["species", "island", "sex", "year"]),
    "wholesale": ("wholesale_customers.csv", ["Region", "Channel"]),
    "obesity": ("obesity.csv", ["NObeyesdad", "Weight"]),
    "heart_failure": ("heart_failure.csv", ["DEATH_EVENT"]),
    "student": ("student_por.csv", ["derived_pseudo_classifier", "G1", "G2", "G3"]),
}


@pytest.mark.parametrize("name", FILES)
def test_the_frame_is_what_pandas_reads_from_the_file(name):
    file, (label, *excluded) = FILES[name]
    with (DATA / file).open("rb") as stream:
        table = pd.read_csv(stream, keep_default_na=False, na_values=["NA"])
    table = table.drop(columns=excluded).dropna().reset_index(drop=True)
    classes = pd.Categorical(table.pop(label))
    dataset = load(name)
    pd.testing.assert_frame_equal(dataset.frame, table, check_exact=True)
    np.testing.assert_array_equal(dataset.label, classes.codes)
    assert dataset.label_names == tuple(map(str, classes.categories))


@pytest.mark.parametrize("name", TEXT)
def test_encoding_is_that_of_pandas(name):
    dataset = load(name)
    encoded = pd.get_dummies(dataset.frame, drop_first=True)
    assert list(encoded.columns) == list(dataset.feature_names)
    np.testing.assert_array_equal(encoded.to_numpy(float), dataset.X)


@pytest.mark.parametrize("name", TEXT)
def test_blocks_say_which_level_a_row_has(name):
    dataset = load(name)
    for column, block in dataset.blocks.items():
        levels = [dataset.feature_names[j].removeprefix(f"{column}_") for j in block]
        hot = dataset.X[:, block]
        assert hot.sum(axis=1).max() == 1
        values = dataset.frame[column].astype(str).to_numpy()
        np.testing.assert_array_equal(hot, values[:, None] == np.array(levels))


def test_german_credit_is_the_file_and_reads_as_its_attributes():
    dataset = load("german_credit")
    header, *rows = csv.reader((DATA / "german_credit.csv").read_text().splitlines())
    assert list(dataset.feature_names) == header[1:]
    np.testing.assert_array_equal(dataset.X, np.array(rows, float)[:, 1:])
    np.testing.assert_array_equal(dataset.label, np.array(rows, int)[:, 0])
    assert dataset.frame.shape == (1000, 20)
    assert len(dataset.blocks) == 13
    # The second applicant: the first two of these are levels without a column.
    second = dataset.frame.iloc[1]
    assert second["checking_status"] == "0<=X<200"
    assert second["personal_status"] == "female div/dep/mar"
    assert second["purpose"] == "radio/tv"
    # A category whose first level is the one without a column, so that encoding leaves it out.
    assert list(dataset.frame["housing"].cat.categories) == ["for free", "own", "rent"]


def test_the_word_no_is_a_level_and_not_a_gap():
    frame = load("obesity").frame
    assert set(frame["CALC"]) == {"no", "Sometimes", "Frequently", "Always"}


def test_names_and_titles_are_the_papers_in_its_order():
    assert [CATALOGUE[name].title for name in names()] == titles("datasets")
    assert names() == list(PRINTED)


@pytest.mark.parametrize("cell", [(34, 3, 0.1), (37, 1, 3.1), (37, 2, 1.5)])
def test_iris_has_the_archives_cells(cell):
    row, column, value = cell
    assert load("iris").X[row, column] == value


def test_a_dataset_is_fresh_and_prints_short():
    first = load("iris")
    first.X[:] = 0
    assert load("iris").X.any()
    assert len(repr(first)) < 200


@pytest.mark.parametrize(
    ("given", "likely"),
    [
        ("irsi", "iris"),
        ("German Credit", "german_credit"),
        ("breast-cancer", "breast_cancer"),
        ("Palmer Penguins", "penguins"),
    ],
)
def test_a_misspelt_name_gets_the_likely_one(given, likely):
    with pytest.raises(OptionError, match=f"did you mean '{likely}'"):
        load(given)


@pytest.mark.parametrize("given", ["zzzz", None, 3, ["iris"]])
def test_an_unknown_name_gets_the_list(given):
    with pytest.raises(OptionError, match=r"'iris', 'wine', .*'student'"):
        load(given)


BARE = """
import hashlib, json, socket, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("pandas", "pyarrow", "polars"):
            raise ModuleNotFoundError(name)

def no_network(*_, **__):
    raise OSError("no network here")

sys.meta_path.insert(0, Blocked())
socket.socket.connect = socket.getaddrinfo = no_network
"""


BARE_RUN = """
from voicecf.cli.command import main
from voicecf.datasets import load, names

def digests(dataset):
    return [hashlib.sha256(part.tobytes()).hexdigest() for part in (dataset.X, dataset.label)]

try:
    error = load("student").frame
except ImportError as found:
    error = str(found)
print(json.dumps([{name: digests(load(name)) for name in names()}, error]))
raise SystemExit(main(["reproduce", "--dataset", "wholesale", "--table", "parsimony", "--check"]))
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Return what a process prints that has no pandas, network, environment or home."""
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", BARE + BARE_RUN],
        cwd=tmp_path_factory.mktemp("bare"), env={}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    first, _, rest = run.stdout.partition("\n")
    return *json.loads(first), rest


def digests(dataset):
    return [sha256(part.tobytes()).hexdigest() for part in (dataset.X, dataset.label)]


def test_loading_needs_neither_pandas_nor_network_nor_environment(bare):
    assert bare[0] == {name: digests(load(name)) for name in names()}


def test_only_the_frame_needs_pandas_and_says_so(bare):
    assert "Dataset.frame needs pandas: pip install pandas." in bare[1]


def test_the_paper_is_reproduced_without_pandas_or_network(bare):
    assert "4 of 4 printed cells are the same." in bare[2]


@pytest.mark.parametrize("name", PRINTED)
def test_origin_licence_and_citation_of_every_dataset_are_told(name):
    page = (DATA / "README.md").read_text(encoding="utf-8")
    (section,) = [s for s in page.split("\n## ") if s.startswith(f"{CATALOGUE[name].title}\n")]
    for word in ("File", "Size", "Origin", "DOI", "Licence", "Citation"):
        assert f"\n- {word}: " in section
    assert "CC" in section.partition("\n- Licence: ")[2].splitlines()[0]


def test_every_file_of_the_package_is_described():
    page = (DATA / "README.md").read_text(encoding="utf-8")
    shipped = {file.name for file in DATA.iterdir()} - {"README.md"}
    assert len(shipped) == 7
    assert {name for name in shipped if f"- File: `{name}`" in page} == shipped
