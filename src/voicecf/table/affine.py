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
    return isinstance(transformer, FunctionTransformer) and transformer.func is None


def flat(path: str, step: Any) -> Iterator[Named]:
    """Yield the transformers of a step in order, also those inside nested pipelines."""
    if isinstance(step, Pipeline):
        for name, inner in step.steps:
            yield from flat(f"{path}.{name}".lstrip("."), inner)
    elif step is not None and not isinstance(step, str):
        yield path, step


@dataclass(frozen=True)
class Branch:
    """Columns that pass through steps of their own, next to those of other parts.

    Attributes
    ----------
    columns : list of int
        Positions of the columns.
    steps : list of (path, transformer)
    factor : float
        Weight of the part, which multiplies its output.
    """

    columns: list[int]
    steps: list[Named]
    factor: float = 1.0


def parts_of(path: str, step: Any, d: int) -> list[Branch]:
    """Return the parts of a FeatureUnion or ColumnTransformer."""
    if isinstance(step, FeatureUnion):
        chosen = [(name, part, list(range(d))) for name, part in step.transformer_list]
    else:
        chosen = [(name, part, positions(step, name)) for name, part, _ in step.transformers_]
    factors = step.transformer_weights or {}
    return [
        Branch(columns, list(flat(f"{path}.{name}", part)), factors.get(name, 1.0))
        for name, part, columns in chosen
        if columns and not (isinstance(part, str) and part == "drop")
    ]


def positions(step: ColumnTransformer, name: str) -> list[int]:
    """Return the positions of the columns that a part of a fitted ColumnTransformer is for."""
    return [int(at) for at in step._transformer_to_input_indices[name]]


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
        return side_by_side(parts_of(path, step, d), d)
    raise ModelError(
        f"step {path!r} ({type(step).__name__}) follows a step that mixes columns, or its columns "
        "go into other transformers, too, and it is not affine; only scalers, PCA, TruncatedSVD "
        "and feature selectors may stand there. Put it first, in a step of its own."
    )


def side_by_side(parts: list[Branch], d: int) -> Affine:
    """Return the affine map from d columns to the outputs of parts, all of which are affine."""
    maps = []
    for part in parts:
        start = np.eye(d)[part.columns], np.zeros(len(part.columns))
        matrix, shift = composed(part.steps, start)
        maps.append((part.factor * matrix, part.factor * shift))
    return np.concatenate([a for a, _ in maps]), np.concatenate([c for _, c in maps])


def _scaling(scaler: Any, d: int) -> tuple[Array, Array]:
    """Return factor and shift of a scaler, column by column."""
    if isinstance(scaler, MinMaxScaler):
        return np.asarray(scaler.scale_, float), np.asarray(scaler.min_, float)
    # None stands for no scaling, or no centering; StandardScaler learns a mean even without use.
    centre = getattr(scaler, "center_", getattr(scaler, "mean_", None))
    if centre is None or not getattr(scaler, "with_mean", True):
        centre = np.zeros(d)
    scale = 1.0 / np.asarray(np.ones(d) if scaler.scale_ is None else scaler.scale_, float)
    return scale, -scale * np.asarray(centre, float)
