"""Checks of estimators from a file, of which compiled code would believe anything."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.preprocessing import OneHotEncoder

from voicecf.errors import SavingError


def check_estimators(value: Any) -> None:
    """Raise SavingError if an estimator anywhere in a value could make compiled code misread.

    Other wrong values are errors of scikit-learn when they are used.
    """
    if isinstance(value, BaseEstimator):
        check_estimators(vars(value))
        if "cluster_centers_" in vars(value):
            _check_centers(value)
        if isinstance(value, OneHotEncoder) and "categories_" in vars(value):
            _check_codes(value)
    elif isinstance(value, (dict, list, tuple, np.ndarray)):
        objects = value.ravel() if isinstance(value, np.ndarray) and value.dtype == object else ()
        parts = value.values() if isinstance(value, dict) else value
        for part in objects if isinstance(value, np.ndarray) else parts:
            check_estimators(part)


def need(holds: Any, what: str) -> None:
    """Raise SavingError unless something holds."""
    if not holds:
        raise SavingError(f"its {what:.80} does not fit the rest. Fit and save again.")


def _check_centers(model: Any) -> None:
    """Check that centroids are as wide as the rows that `predict` takes."""
    centers, d = model.cluster_centers_, model.n_features_in_
    weights = getattr(model, "feature_weights_", np.ones(d))
    for array, shape in ((centers, (len(centers), d)), (weights, (d,))):
        need(type(array) is np.ndarray and array.shape == shape, "cluster_centers_")
        need(array.dtype in (np.float64, np.float32) and np.isfinite(array).all(), "centers")
    if hasattr(model, "_n_threads"):
        model._n_threads = max(1, min(int(model._n_threads), os.cpu_count() or 1))


def _check_codes(encoder: Any) -> None:
    """Check that the code of every level is one of the encoder's columns."""
    counts = [len(levels) for levels in encoder.categories_]
    groups = getattr(encoder, "_default_to_infrequent_mappings", None) or [None] * len(counts)
    dropped = encoder._drop_idx_after_grouping
    drops = [None] * len(counts) if dropped is None else list(dropped)
    columns = zip(counts, groups, drops, encoder._n_features_outs, strict=True)
    for count, group, drop, width in columns:
        codes = np.arange(count) if group is None else np.asarray(group)
        within = width + (drop is not None)
        need(codes.shape == (count,) and codes.dtype.kind == "i", "OneHotEncoder")
        need((codes >= 0).all() and (codes < within).all(), "OneHotEncoder")
        need(drop is None or 0 <= drop < within, "OneHotEncoder")
