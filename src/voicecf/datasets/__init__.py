"""The ten datasets of the paper, shipped with the package."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.preprocessing import StandardScaler

from voicecf.datasets.invented import customers
from voicecf.datasets.sources import CATALOGUE, Category, Columns
from voicecf.errors import OptionError, likely

__all__ = ["Dataset", "customers", "load", "names"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """A dataset as its user sees it, and as the paper encodes it.

    Attributes
    ----------
    name : str
        What `load` calls it.
    title : str
        What the paper's tables call it.
    columns : dict of str to array of shape (n,) or Category
        The original columns, without the label and what the paper leaves out.
    label : int array of shape (n,)
        The known classes, which clusterings are compared with. They are no part of `columns`,
        `frame` or `X`.
    label_names : tuple of str
        What the codes in `label` stand for.
    X : array of shape (n, d)
        The paper's encoding, not standardised: numbers first, then one column for each level of a
        category but the first.
    feature_names : tuple of str
        The columns of `X`.
    blocks : dict of str to list of int
        For each category in `columns`, its positions in `X`.

    Examples
    --------
    >>> from voicecf.datasets import load
    >>> wine = load("wine")
    >>> wine.X.shape, wine.k
    ((178, 13), 3)
    """

    name: str
    title: str
    columns: Columns = field(repr=False)
    label: npt.NDArray[np.int64] = field(repr=False)
    label_names: tuple[str, ...]
    X: Floats = field(repr=False)
    feature_names: tuple[str, ...] = field(repr=False)
    blocks: dict[str, list[int]] = field(repr=False)

    @property
    def k(self) -> int:
        """Number of classes, and of the paper's clusters."""
        return len(self.label_names)

    @cached_property
    def frame(self) -> Any:
        """The columns as a pandas.DataFrame of n rows; row i is row i of `X`. Needs pandas."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError(
                "Dataset.frame needs pandas: pip install pandas. Without it, use columns or X."
            ) from error
        return pandas.DataFrame({
            name: pandas.Categorical.from_codes(*column) if isinstance(column, Category) else column
            for name, column in self.columns.items()
        })  # fmt: skip

    def standardised(self) -> Floats:
        """Return X with mean 0 and variance 1 in every column, as all of the paper's tables use it.

        Standardised column by column, as pandas hands them over. Row by row the last bits come
        out differently, and the weights that SHARK learns from German Credit depend on them.

        Returns
        -------
        array of shape (n, d)
        """
        return np.ascontiguousarray(StandardScaler().fit_transform(np.asfortranarray(self.X)))


def names() -> list[str]:
    """Name the datasets, in the order of the paper.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from voicecf.datasets import names
    >>> names()[:3]
    ['iris', 'wine', 'penguins']
    """
    return list(CATALOGUE)


def load(name: str) -> Dataset:
    """Load one of the paper's ten datasets.

    Iris, Wine and Breast Cancer come with scikit-learn, the others with this package; the file
    README.md in its folder `datasets/data` tells the origin and licence of each.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> from voicecf.datasets import load
    >>> iris = load("iris")
    >>> iris.X.shape, iris.k, iris.label_names
    ((150, 4), 3, ('setosa', 'versicolor', 'virginica'))
    """
    if not isinstance(name, str) or name not in CATALOGUE:
        raise OptionError(f"unknown dataset {name!r}; {likely(name, CATALOGUE, 10)}")
    source = CATALOGUE[name]
    columns = source.read()
    classes = Category.of(columns.pop(source.label))
    levels = classes.levels
    return Dataset(name, source.title, columns, classes.codes, levels, *_encoded(columns))


def _encoded(columns: Columns) -> tuple[Floats, tuple[str, ...], dict[str, list[int]]]:
    """Return X, its column names, and the positions of each category's columns."""
    hot, categories = {}, {}
    for name, column in columns.items():
        if isinstance(column, Category) or column.dtype.kind not in "if":
            categories[name] = Category.of(column)
        else:
            hot[name] = column.astype(np.float64)
    blocks = {}
    for name, (codes, levels) in categories.items():
        blocks[name] = list(range(len(hot), len(hot) + len(levels) - 1))
        named = enumerate(levels[1:], start=1)
        hot |= {f"{name}_{level}": (codes == code).astype(np.float64) for code, level in named}
    return np.column_stack(list(hot.values())), tuple(hot), blocks
