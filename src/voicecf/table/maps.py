"""The coordinates of a column by our own arithmetic, to spare scikit-learn's steps for one row.

What these compute is a few operations a column, but each of them checks its input first. Here are
the same operations in the same order, and `fit` finds out whether they give the same bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from voicecf.geometry.arrays import Array
from voicecf.table.column import Column
from voicecf.table.frames import is_missing, plain_values
from voicecf.table.pipeline import IMPUTERS, Steps

# From a column of the user's table, a series or an array, to its coordinates, shape (n, width).
# None if there is a value that it does not know, such as a missing one: the steps may.
Map = Callable[[Any], Array | None]
# What scalers do to a column: an operation, and the fitted attribute that it is with.
SCALING: dict[type, tuple[tuple[Any, str], ...]] = {
    StandardScaler: ((np.subtract, "mean_"), (np.divide, "scale_")),
    RobustScaler: ((np.subtract, "center_"), (np.divide, "scale_")),
    MinMaxScaler: ((np.multiply, "scale_"), (np.add, "min_")),
    MaxAbsScaler: ((np.divide, "scale_"),),
}


def own_map(steps: Steps, column: Column) -> Map | None:
    """Return the map of a column; None if it goes through a step that is not known here."""
    if column.indicator:
        return partial(_gaps, column)
    if column.kind == "category":
        levels = {level: i for i, level in enumerate(column.levels) if not is_missing(level)}
        unknown = column.binned or column.declared
        return None if unknown else partial(_levels, levels, column.options)
    operations: list[Any] = []
    wire = steps.wires[column.places[0]]
    for link in reversed(steps.links):
        if wire in link.outputs:
            at = link.outputs.index(wire)
            own = _operations(link.transformer, at)
            if own is None:
                return None
            operations, wire = own + operations, link.inputs[at]
    return partial(_numbers, operations)


def _operations(transformer: Any, at: int) -> list[Any] | None:
    """Return what a transformer does to its column `at`: functions of numpy, and their constants.

    None if that is not known. Imputers do nothing to a value that is there.
    """
    if isinstance(transformer, IMPUTERS):
        return []
    if isinstance(transformer, FunctionTransformer):
        known = isinstance(transformer.func, np.ufunc) and not transformer.kw_args
        return [(transformer.func,)] if known else None
    if type(transformer) not in SCALING or getattr(transformer, "clip", False):
        return None
    constants = {name: getattr(transformer, name) for _, name in SCALING[type(transformer)]}
    if not getattr(transformer, "with_mean", True):  # a StandardScaler has learned it all the same
        constants["mean_"] = None
    return [
        (function, np.float64(constants[name][at]))
        for function, name in SCALING[type(transformer)]
        if constants[name] is not None
    ]


def _gaps(column: Column, values: Any) -> Array:
    """Return the coordinates of a column that tells where another one has no value: it has all."""
    return np.repeat(column.options[:1], len(values), axis=0)


def _numbers(operations: list[Any], column: Any) -> Array | None:
    column = column if isinstance(column, np.ndarray) else column.to_numpy()
    if column.dtype.kind not in "iu" and column.dtype != np.float64:
        return None
    values = column.astype(np.float64)
    with np.errstate(all="ignore"):
        for function, *constant in operations:
            values = function(values, *constant)
    known = values.dtype == np.float64 and np.isfinite(values).all()
    return values[:, None] if known else None


def _levels(places: dict[Any, int], options: Array, column: Any) -> Array | None:
    values = plain_values(column)
    if not {*map(type, values)} <= {*map(type, places)}:
        return None
    at = [places.get(value, -1) for value in values]
    return None if -1 in at else np.asarray(options[at])
