"""Scalers, encoders and imputers learned from a stream, table by table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    StandardScaler,
)
from sklearn.utils.validation import check_is_fitted

from voicecf.errors import DataError, ModelError
from voicecf.geometry.named import named_rows
from voicecf.table.affine import positions
from voicecf.table.frames import Kind, as_frame, table
from voicecf.table.stream import Stream

LEARNED = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, OneHotEncoder, OrdinalEncoder, SimpleImputer, "
    "FunctionTransformer and ColumnTransformer"
)


def learn_steps(steps: Any, stream: Stream, path: str = "") -> Stream:
    """Fit the steps of a pipeline on a stream; return the stream of what they make."""
    for name, step in steps:
        if _is_estimator(step):
            _learn(step, stream, f"{path}{name}")
            stream = stream.through(partial(_transformed, step))
    return stream


def _learn(step: Any, stream: Stream, path: str) -> None:
    """Fit a step on a stream; one of another kind has to be fitted already."""
    if type(step) in KINDS:
        KINDS[type(step)](step, stream, path)
        return
    try:
        check_is_fitted(step)
    except NotFittedError:
        raise ModelError(
            f"step {path!r} ({type(step).__name__}) cannot be learned from a stream; what can: "
            f"{LEARNED}. Fit this step on a sample first: a fitted one is used as it is."
        ) from None


def _is_estimator(step: Any) -> bool:
    return step is not None and not isinstance(step, str)


def _transformed(step: Any, block: Any) -> Any:
    try:
        made = step.transform(block)
        return made.toarray() if sparse.issparse(made) else made
    except ValueError as error:
        raise DataError(f"{type(step).__name__} does not take these rows: {error}") from error


def _fit_pipeline(pipeline: Pipeline, stream: Stream, path: str) -> None:
    learn_steps(pipeline.steps, stream, f"{path}.")


def _fit_on_first(step: Any, stream: Stream, path: str) -> None:
    step.fit(stream.first())


def _fit_by_parts(step: Any, stream: Stream, path: str) -> None:
    """Fit a scaler on the first table, and go on with its own `partial_fit`."""
    for at, block in enumerate(stream):
        (step.partial_fit if at else step.fit)(block)


def _fit_encoder(encoder: Any, stream: Stream, path: str) -> None:
    """Fit an encoder on rows that together show every level; on all, if it counts levels."""
    if encoder.min_frequency is not None or encoder.max_categories is not None:
        encoder.fit(_joined(list(stream)))
        return
    shown: list[Any] = []
    for block in stream:
        shown = [_showing_levels(_joined([*shown, _showing_levels(block)]))]
    encoder.fit(shown[0])


def _showing_levels(block: Any) -> Any:
    """Return the rows in which some column shows a level for the first time."""
    frame = as_frame(block)
    if frame is None:
        named = as_frame(named_rows(block, [str(at) for at in range(block.shape[1])]))
        return block[_first_shown(named)]
    return frame[_first_shown(frame)].to_native()


def _first_shown(frame: Any) -> NDArray[np.int64]:
    new = [frame[name].is_first_distinct().to_numpy() for name in frame.columns]
    return np.flatnonzero(np.any(new, axis=0))


def _joined(tables: list[Any]) -> Any:
    """Return arrays or frames as one table of the user's kind."""
    if isinstance(tables[0], np.ndarray):
        return np.concatenate(tables)
    try:
        return nw.concat([as_frame(table) for table in tables], how="vertical").to_native()
    except Exception as error:  # each library has its own errors
        raise DataError(
            f"the source's tables cannot be joined: {error} All must have columns of the same "
            "types."
        ) from error


def _fit_imputer(imputer: SimpleImputer, stream: Stream, path: str) -> None:
    """Fit an imputer on two rows in place of all: what fills gaps, and where there are gaps."""
    if callable(imputer.strategy):
        raise ModelError(
            f"step {path!r} fills in by a function of all values, which a stream does not hold; "
            "use strategy='mean', 'median', 'most_frequent' or 'constant'."
        )
    total: Any = 0.0
    count, gaps = np.array(0), np.array(False)
    values_of: defaultdict[int, Counter[Any]] = defaultdict(Counter)
    for block in stream:
        values, missing = _values_of(imputer, block)
        gaps, count = gaps | missing.any(axis=0), count + (~missing).sum(axis=0)
        if imputer.strategy == "mean":
            total = total + np.where(missing, 0.0, values).sum(axis=0)
            continue
        for at, (column, gone) in enumerate(zip(values.T, missing.T, strict=True)):
            some = column[~gone]
            values_of[at].update((some[:1] if imputer.strategy == "constant" else some).tolist())
    if imputer.strategy == "mean":
        fill = [total[at] / n if n else imputer.missing_values for at, n in enumerate(count)]
    else:
        pick = _median if imputer.strategy == "median" else _most_frequent
        fill = [pick(values_of[at]) if n else imputer.missing_values for at, n in enumerate(count)]
    with_gaps = np.where(gaps, np.array(imputer.missing_values, values.dtype), fill)
    imputer.fit(_like(stream.first(), np.array([fill, with_gaps], values.dtype)))


def _values_of(imputer: SimpleImputer, block: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a block, and where they are missing."""
    frame = as_frame(block)
    values = np.asarray(block) if frame is None else frame.to_numpy()
    if values.dtype.kind in "iub" or imputer.strategy in ("mean", "median"):
        values = values.astype(np.float64)
    if imputer.missing_values is None:
        return values, np.vectorize(lambda v: v is None, otypes=[bool])(values)
    if imputer.missing_values != imputer.missing_values:
        return values, np.asarray(values != values)
    return values, np.asarray(values == imputer.missing_values)


def _like(block: Any, values: NDArray[Any]) -> Any:
    """Return values as a table of the kind of a block, with its names."""
    frame = as_frame(block)
    if frame is None:
        return values
    return table(dict(zip(frame.columns, values.T, strict=True)), Kind.of(frame))


def _most_frequent(counter: Counter[Any]) -> Any:
    most = max(counter.values())
    return min(value for value, count in counter.items() if count == most)


def _median(counter: Counter[Any]) -> float:
    values = np.array(sorted(counter))
    upto = np.cumsum([counter[value] for value in values.tolist()])
    low, high = np.searchsorted(upto, [(upto[-1] - 1) // 2, upto[-1] // 2], side="right")
    return float(np.mean(values[[low, high]]))


def _fit_columns(columns: ColumnTransformer, stream: Stream, path: str) -> None:
    """Learn each part of a ColumnTransformer from its columns.

    Fitted on the first block it tells who takes which columns. Then it is fitted once more with
    the parts as they were learned, frozen, so that it knows what they make.
    """
    first = stream.first()
    own = {name: step for name, step, _ in columns.transformers}
    probe = clone(columns).set_params(transformers=_blank(columns.transformers))
    probe.remainder = "passthrough" if _is_estimator(columns.remainder) else columns.remainder
    probe.fit(first)
    learned = {}
    for name, _, _ in probe.transformers_:
        part, chosen = deepcopy(own.get(name, columns.remainder)), positions(probe, name)
        if _is_estimator(part) and chosen:
            _learn(part, stream.through(partial(_picked, chosen)), f"{path}.{name}")
            learned[name] = part
    _assemble(columns, learned, first)


def _blank(transformers: Any) -> list[Any]:
    """Return the transformers with every estimator replaced by one that changes nothing."""
    return [
        (name, "passthrough" if _is_estimator(step) else step, chosen)
        for name, step, chosen in transformers
    ]


def _picked(positions: list[int], block: Any) -> Any:
    frame = as_frame(block)
    return block[:, positions] if frame is None else frame[:, positions].to_native()


def _assemble(columns: ColumnTransformer, learned: dict[str, Any], first: Any) -> None:
    """Fit a ColumnTransformer on the first block without fitting its parts."""
    original = columns.transformers, columns.remainder
    frozen = {name: FrozenEstimator(part) for name, part in learned.items()}
    columns.transformers = [(n, frozen.get(n, part), chosen) for n, part, chosen in original[0]]
    columns.remainder = frozen.get("remainder", original[1])
    try:
        columns.fit(first)
    finally:
        columns.transformers, columns.remainder = original
    columns.transformers_ = [
        (name, part.estimator if isinstance(part, FrozenEstimator) else part, chosen)
        for name, part, chosen in columns.transformers_
    ]


KINDS: dict[type, Callable[[Any, Stream, str], None]] = {
    Pipeline: _fit_pipeline,
    ColumnTransformer: _fit_columns,
    StandardScaler: _fit_by_parts,
    MinMaxScaler: _fit_by_parts,
    MaxAbsScaler: _fit_by_parts,
    OneHotEncoder: _fit_encoder,
    OrdinalEncoder: _fit_encoder,
    SimpleImputer: _fit_imputer,
    FunctionTransformer: _fit_on_first,
}
