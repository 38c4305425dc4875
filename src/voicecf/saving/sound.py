"""Checks of estimators from a file whose compiled code believes any shape and position."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from numbers import Number
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OneHotEncoder

from voicecf.errors import SavingError
from voicecf.saving.archive import MOST_NODES


def need(holds: Any, what: str) -> None:
    """Raise SavingError unless something holds."""
    if not holds:
        raise SavingError(f"its {what:.80} does not fit the rest. Fit and save again.")


def check_estimators(value: Any) -> None:
    """Raise SavingError if compiled code could misread memory for an estimator in a value.

    Other wrong values are errors of scikit-learn when they are used.
    """
    for estimator in _within(value):
        for name in vars(estimator):
            need(not hasattr(type(estimator), name), f"{type(estimator).__name__}.{name}")
        if "cluster_centers_" in vars(estimator):
            _check_centers(estimator)
        if isinstance(estimator, OneHotEncoder) and "categories_" in vars(estimator):
            _check_codes(estimator)


def check_counts(model: Any) -> None:
    """Raise SavingError if a step has more levels, bins or columns than a file may have parts.

    Explainers follow each of them.
    """
    for step in _within(model):
        columns = [part[2] for part in vars(step).get("transformers_", ())]
        levels = [
            part for name in ("categories_", "bin_edges_") for part in vars(step).get(name, ())
        ]
        arrays = [*columns, *levels]
        count = sum(array.size for array in arrays if isinstance(array, np.ndarray))
        if count > MOST_NODES:
            raise SavingError(
                f"{type(step).__name__} has {count:,} levels, bins or columns; at most "
                f"{MOST_NODES:,} are loaded."
            )


def _within(value: Any) -> Iterator[Any]:
    """Yield all estimators in a value."""
    if isinstance(value, BaseEstimator):
        yield value
        value = vars(value)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, np.ndarray) and value.dtype == object:
        value = value.ravel().tolist()
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _within(part)


def _check_centers(model: Any) -> None:
    """Check that centroids are as wide as the rows that `predict` takes."""
    centers, d = model.cluster_centers_, model.n_features_in_
    weights = getattr(model, "feature_weights_", centers[0])
    for array, shape in ((centers, (len(centers), d)), (weights, (d,))):
        need(type(array) is np.ndarray and array.shape == shape, "cluster_centers_")
        need(array.dtype in (np.float64, np.float32) and np.isfinite(array).all(), "centers")
    if hasattr(model, "_n_threads"):
        model._n_threads = max(1, min(int(model._n_threads), os.cpu_count() or 1))


def _check_codes(encoder: Any) -> None:
    """Check that the code of every level is one of the encoder's columns."""
    none = [None] * len(encoder.categories_)
    groups = encoder._default_to_infrequent_mappings if encoder._infrequent_enabled else none
    dropped = none if encoder._drop_idx_after_grouping is None else encoder._drop_idx_after_grouping
    columns = zip(encoder.categories_, groups, dropped, encoder._n_features_outs, strict=True)
    for levels, group, drop, width in columns:
        codes = np.arange(len(levels)) if group is None else np.asarray(group)
        within = width + (drop is not None)
        sound = codes.shape == (len(levels),) and codes.dtype.kind == "i" and _searchable(levels)
        need(sound and (codes >= 0).all() and (codes < within).all(), "OneHotEncoder")
        need(within <= len(levels) and (drop is None or 0 <= drop < within), "OneHotEncoder")


def _searchable(levels: Any) -> bool:
    """Tell whether bisection, which scikit-learn uses for numbers, finds no level past the last."""
    if levels.dtype != object:
        return levels.dtype.kind not in "biuf" or np.array_equal(np.sort(levels), levels, True)
    # Text among the numbers ends the search with an error.
    numbers: list[Any] = [level for level in levels.tolist() if isinstance(level, Number)]
    return all(a <= b or b != b for a, b in pairwise(numbers))
