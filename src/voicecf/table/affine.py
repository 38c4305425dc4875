"""Fitted steps that are affine maps, x = A z + c: scalers, PCA, selectors, and unions of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from voicecf.errors import ModelError
from voicecf.geometry.arrays import Array, product
from voicecf.geometry.pullback import Mixing
from voicecf.table.frames import dense


@dataclass(frozen=True)
class Scale:
    """A scaler that divides each column by a number."""

    scale_: Array

    def transform(self, rows: Any) -> Array:
        """Return the quotients."""
        return dense(rows) / self.scale_

    def inverse_transform(self, rows: Array) -> Array:
        """Return the products."""
        return rows * self.scale_


SCALERS = (Scale, StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler)
MIXERS = (PCA, IncrementalPCA, TruncatedSVD, SelectorMixin)

# A transformer with its path among the steps, such as ("columns.numbers", StandardScaler()).
Named = tuple[str, Any]
# Matrix A and shift c of an affine map.
Affine = tuple[Array, Array]


def passes(transformer: Any) -> bool:
    """Tell whether a step leaves its columns as they are."""
    if transformer is None or isinstance(transformer, str):
        return True
    return isinstance(transformer, FunctionTransformer) and transformer.func is None


def flat(path: str, step: Any) -> Iterator[Named]:
    """Yield the transformers of a step in order, also those inside nested pipelines."""
    if isinstance(step, Pipeline):
        for name, inner in step.steps:
            yield from flat(f"{path}.{name}".lstrip("."), inner)
    elif step is not None and not isinstance(step, str):
        yield path, step


def parts_of(path: str, step: Any, d: int) -> list[tuple[str, Any, list[int]]]:
    """Return the parts of a FeatureUnion or ColumnTransformer, each with the columns it takes."""
    if isinstance(step, FeatureUnion):
        chosen = [(name, part, list(range(d))) for name, part in step.transformer_list]
    else:
        names = list(getattr(step, "feature_names_in_", range(d)))
        chosen = [(n, part, chosen_columns(c, names)) for n, part, c in step.transformers_]
    return [
        (f"{path}.{name}", part, columns)
        for name, part, columns in chosen
        if columns and not (isinstance(part, str) and part == "drop")
    ]


def chosen_columns(chosen: Any, names: list[Any]) -> list[int]:
    """Return the positions of the columns that a transformer of a ColumnTransformer is for.

    `chosen` is what scikit-learn allows: one name or position, a list, a slice, or a mask.
    """
    if isinstance(chosen, slice):
        start, stop = chosen.start, chosen.stop
        if isinstance(start, str) or isinstance(stop, str):  # by name, the last one included
            start = None if start is None else names.index(start)
            stop = None if stop is None else names.index(stop) + 1
        return list(range(len(names)))[slice(start, stop, chosen.step)]
    if isinstance(chosen, (str, int, np.integer)):
        chosen = [chosen]
    entries = list(chosen)
    if entries and all(isinstance(c, (bool, np.bool_)) for c in entries):
        return np.flatnonzero(entries).tolist()
    return [names.index(c) if isinstance(c, str) else int(c) % len(names) for c in entries]


def mixing_of(steps: list[Named], start: Affine, weighted: bool = False) -> Mixing:
    """Compose an affine map with the steps that follow it."""
    matrix, shift = composed(steps, start)
    return Mixing(np.ascontiguousarray(matrix), shift, weighted)


def identity(d: int) -> Affine:
    """Return the affine map that changes nothing."""
    return np.eye(d), np.zeros(d)


def composed(steps: list[Named], start: Affine) -> Affine:
    """Return the affine map of `start` followed by steps."""
    matrix, shift = start
    for path, step in steps:
        a, c = _affine(path, step, len(shift))
        matrix, shift = product(a, matrix), product(a, shift) + c
    return matrix, shift


def _affine(path: str, step: Any, d: int) -> Affine:
    """Return matrix and shift of one step's affine map."""
    if isinstance(step, (PCA, IncrementalPCA)):
        matrix = np.asarray(step.components_, dtype=np.float64)
        if step.whiten:
            eps = np.finfo(step.explained_variance_.dtype).eps
            matrix = matrix / np.maximum(np.sqrt(step.explained_variance_), eps)[:, None]
        return matrix, -product(matrix, step.mean_)
    if isinstance(step, TruncatedSVD):
        return np.asarray(step.components_, dtype=np.float64), np.zeros(len(step.components_))
    if isinstance(step, SelectorMixin):
        selected = np.flatnonzero(step.get_support())
        return np.eye(d)[selected], np.zeros(len(selected))
    if isinstance(step, SCALERS) and not getattr(step, "clip", False):
        scale, shift = _scaling(step, d)
        return np.diag(scale), shift
    if passes(step):
        return identity(d)
    if isinstance(step, (FeatureUnion, ColumnTransformer)):
        return _side_by_side(path, step, d)
    raise ModelError(
        f"step {path!r} ({type(step).__name__}) follows a step that mixes columns, or its columns "
        "go into other transformers, too, and it is not affine; only scalers, PCA, TruncatedSVD "
        "and feature selectors may stand there. Put it first, in a step of its own."
    )


def _side_by_side(path: str, step: Any, d: int) -> Affine:
    """Return the affine map of a FeatureUnion or ColumnTransformer, all parts of which are."""
    maps = []
    for name, part, columns in parts_of(path, step, d):
        maps.append(composed(list(flat(name, part)), (np.eye(d)[columns], np.zeros(len(columns)))))
    factors = getattr(step, "transformer_weights", None) or {}
    names = [name.rpartition(".")[2] for name, _, _ in parts_of(path, step, d)]
    scaled = [factors.get(name, 1.0) for name in names]
    matrix = np.concatenate([w * a for w, (a, _) in zip(scaled, maps, strict=True)])
    return matrix, np.concatenate([w * c for w, (_, c) in zip(scaled, maps, strict=True)])


def _scaling(scaler: Any, d: int) -> tuple[Array, Array]:
    """Return factor and shift of a scaler, column by column."""
    if isinstance(scaler, MinMaxScaler):
        return np.asarray(scaler.scale_, float), np.asarray(scaler.min_, float)
    scale = 1.0 / _or(getattr(scaler, "scale_", None), 1.0, d)
    centre = getattr(scaler, "mean_", None)
    if isinstance(scaler, StandardScaler) and not scaler.with_mean:
        centre = None
    if isinstance(scaler, RobustScaler):
        centre = scaler.center_
    return scale, -scale * _or(centre, 0.0, d)


def _or(values: Any, otherwise: float, d: int) -> Array:
    """Return values as an array; d times `otherwise` if there are none."""
    return np.full(d, otherwise) if values is None else np.asarray(values, dtype=np.float64)
