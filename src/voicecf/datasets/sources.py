"""Where the columns of each dataset come from: files of this package, or scikit-learn."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn import datasets as bundled

Values = npt.NDArray[Any]

DATA = files("voicecf.datasets") / "data"


class Category(NamedTuple):
    """A column of levels in an order of their own: row i has `levels[codes[i]]`."""

    codes: npt.NDArray[np.int64]
    levels: tuple[str, ...]

    @classmethod
    def of(cls, column: Values | Category) -> Category:
        """Return a column as a category; what is none gets its distinct values as sorted levels."""
        if isinstance(column, Category):
            return column
        levels, codes = np.unique(column, return_inverse=True)
        return cls(codes.astype(np.int64), tuple(str(level) for level in levels))


Columns = dict[str, Values | Category]


@dataclass(frozen=True)
class DatasetSource:
    """Where a dataset comes from.

    Attributes
    ----------
    title : str
        What the paper calls it.
    origin : str or callable
        A file of this package, CSV or numpy arrays, or a function that returns the columns.
    label : str
        The column of the known classes.
    excluded : tuple of str
        Columns of the file that are left out.
    """

    title: str
    origin: str | Callable[[], Columns]
    label: str = "target"
    excluded: tuple[str, ...] = ()

    def read(self) -> Columns:
        """Return the columns, the label among them, without rows that have a gap."""
        if not isinstance(self.origin, str):
            return self.origin()
        read = _arrays if self.origin.endswith(".npz") else _text_file
        return read(self.origin, self.excluded)


def _shipped(bunch: Callable[[], Any]) -> Columns:
    """Return a dataset of scikit-learn's, its classes in the column `target`."""
    data = bunch()
    columns: Columns = {str(n): c for n, c in zip(data.feature_names, data.data.T, strict=True)}
    levels = tuple(str(level) for level in data.target_names)
    columns["target"] = Category(data.target.astype(np.int64), levels)
    return columns


def _uci_iris() -> Any:
    """Return the paper's Iris: UCI's, which differs from Fisher's in three cells."""
    iris = bundled.load_iris()
    for row, column, value in [(34, 3, 0.1), (37, 1, 3.1), (37, 2, 1.5)]:
        iris.data[row, column] = value
    return iris


def _text_file(file: str, excluded: Collection[str] = ()) -> Columns:
    """Read a CSV file without the excluded columns, then without the rows that have a gap."""
    header, *rows = csv.reader((DATA / file).read_text(encoding="utf-8").splitlines())
    named = zip(header, zip(*rows, strict=True), strict=True)
    cells = {name: np.array(column) for name, column in named if name not in excluded}
    # Only NA is a gap: Obesity's "no" is a level.
    whole = np.all([column != "NA" for column in cells.values()], axis=0)
    return {name: _parsed(column)[whole] for name, column in cells.items()}


def _parsed(cells: Values) -> Values:
    """Return cells as whole numbers, else as numbers (NaN for a gap), else as the text they are."""
    for number in (np.int64, np.float64):
        with suppress(ValueError):
            return np.where(cells == "NA", "nan", cells).astype(number)
    return cells


def _arrays(file: str, excluded: Collection[str]) -> Columns:
    """Read a file of numpy arrays, one a column, without the excluded columns."""
    with (DATA / file).open("rb") as stream, np.load(stream) as arrays:
        return {name: arrays[name] for name in arrays.files if name not in excluded}


# German Credit's attributes in the order of the archive, with their levels; a number has none. The
# file's one-hot form leaves out the first level named here and has a column for each of the others.
GERMAN: dict[str, tuple[str, ...]] = {
    "checking_status": ("0<=X<200", "<0", ">=200", "no checking"),
    "duration": (),
    "credit_history": (
        "all paid", "critical/other existing credit", "delayed previously", "existing paid",
        "no credits/all paid",
    ),
    "purpose": (
        "domestic appliance", "new car", "used car", "business", "education",
        "furniture/equipment", "other", "radio/tv", "repairs", "retraining",
    ),
    "credit_amount": (),
    "savings_status": ("100<=X<500", "500<=X<1000", "<100", ">=1000", "no known savings"),
    "employment": ("1<=X<4", "4<=X<7", "<1", ">=7", "unemployed"),
    "installment_commitment": (),
    "personal_status": ("female div/dep/mar", "male div/sep", "male mar/wid", "male single"),
    "other_parties": ("co applicant", "guarantor", "none"),
    "residence_since": (),
    "property_magnitude": ("life insurance", "no known property", "real estate", "car"),
    "age": (),
    "other_payment_plans": ("bank", "none", "stores"),
    "housing": ("for free", "own", "rent"),
    "existing_credits": (),
    "job": (
        "high qualif/self emp/mgmt", "unemp/unskilled non res", "unskilled resident", "skilled",
    ),
    "num_dependents": (),
    "own_telephone": ("none", "yes"),
    "foreign_worker": ("no", "yes"),
}  # fmt: skip


def _german() -> Columns:
    """Return the 20 attributes instead of the file's one-hot columns, as a lender knows them.

    The levels are in the order of `GERMAN`, so that encoding them gives the file's columns back.
    """
    coded: Any = _text_file("german_credit.csv")
    columns: Columns = {"default": coded["default"]}
    for name, levels in GERMAN.items():
        hot = [coded[f"{name}_{level}"] for level in levels[1:]]
        codes = sum(code * column for code, column in enumerate(hot, start=1))
        columns[name] = Category(codes, levels) if levels else coded[name]
    return columns


CATALOGUE = {
    "iris": DatasetSource("Iris", partial(_shipped, _uci_iris)),
    "wine": DatasetSource("Wine", partial(_shipped, bundled.load_wine)),
    "penguins": DatasetSource(
        "Palmer Penguins", "penguins.csv", "species", excluded=("island", "sex", "year")
    ),
    "breast_cancer": DatasetSource("Breast Cancer", partial(_shipped, bundled.load_breast_cancer)),
    "wholesale": DatasetSource(
        "Wholesale Customers", "wholesale_customers.csv", "Region", excluded=("Channel",)
    ),
    "diabetes": DatasetSource("Diabetes", "diabetes.npz", "Diabetes_012", excluded=("BMI",)),
    "obesity": DatasetSource("Obesity", "obesity.csv", "NObeyesdad", excluded=("Weight",)),
    "german_credit": DatasetSource("German Credit", _german, "default"),
    "heart_failure": DatasetSource("Heart Failure", "heart_failure.csv", "DEATH_EVENT"),
    "student": DatasetSource(
        "Student Performance", "student_por.csv", "derived_pseudo_classifier",
        excluded=("G1", "G2", "G3"),
    ),
}  # fmt: skip
