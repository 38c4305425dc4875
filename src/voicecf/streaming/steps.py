"""Scalers, encoders and imputers learned from a stream, each as it is learned in memory."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import partial
from typing import Any

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
from sklearn.utils.validation import check_is_fitted, validate_data

from voicecf.errors import DataError, ModelError
from voicecf.solver.summing import Pairwise, Sequential, summation_like
from voicecf.table.affine import chosen_columns
from voicecf.table.frames import as_frame
from voicecf.table.stream import Stream, joined

LEARNED = (
    "StandardScaler, MinMaxScaler, MaxAbsScaler, OneHotEncoder, OrdinalEncoder, SimpleImputer, "
    "FunctionTransformer and ColumnTransformer"
)


def learn(step: Any, stream: Stream, path: str) -> Any:
    """Fit a step on a stream; return it, or one that was fitted before and cannot be.

    What goes into the sums of a scaler is added in the order in which numpy would add up all rows
    at once, so that nothing differs from memory in any bit.
    """
    if step is None or isinstance(step, str):
        return step
    for kind, how in KINDS.items():
        if type(step) is kind:
            return how(step, stream, path) or step
    try:
        check_is_fitted(step)
    except NotFittedError:
        raise ModelError(
            f"step {path!r} ({type(step).__name__}) cannot be learned from a stream; what can: "
            f"{LEARNED}. Fit this step on a sample first: a fitted one is used as it is."
        ) from None
    return step


def transformed(step: Any, stream: Stream) -> Stream:
    """Return the stream of what a fitted step makes."""
    if step is None or isinstance(step, str):
        return stream
    return stream.through(partial(_sent, step))


def _sent(step: Any, block: Any) -> Any:
    try:
        return step.transform(block)
    except ValueError as error:
        raise DataError(f"{type(step).__name__} does not take these rows: {error}") from error


def _fit_pipeline(pipeline: Pipeline, stream: Stream, path: str) -> None:
    for at, (name, step) in enumerate(pipeline.steps):
        step = learn(step, stream, f"{path}.{name}")
        pipeline.steps[at] = (name, step)
        stream = transformed(step, stream)


def _fit_on_first(step: Any, stream: Stream, path: str) -> None:
    step.fit(stream.first())


def _fit_by_parts(step: Any, stream: Stream, path: str) -> None:
    """Fit what is the same in parts: extremes, that is, and counts."""
    for at, block in enumerate(stream):
        (step.partial_fit if at else step.fit)(block)


def _fit_standard(scaler: StandardScaler, stream: Stream, path: str) -> None:
    """Learn means and variances in the two passes that scikit-learn's own formula takes."""
    first = stream.first()
    scaler.fit(first)
    if sparse.issparse(first) or not (scaler.with_mean or scaler.with_std):
        return _fit_by_parts(scaler, stream, path)
    tables = stream.through(partial(_as_floats, scaler))
    if _as_floats(scaler, first).dtype != np.float64:  # summed in buffers of unknown borders
        return _fit_by_parts(scaler, stream, path)
    n = stream.n_rows
    total, count = _sums(tables, n, [lambda X: X, lambda X: (~np.isnan(X)).astype(np.float64)])
    mean = total / count
    correction, squares = _sums(tables, n, [lambda X: X - mean, lambda X: (X - mean) ** 2])
    var = (squares - correction**2 / count) / count
    seen = count[0] if np.ptp(count) == 0 else count
    scaler.mean_, scaler.n_samples_seen_ = mean, np.asarray(seen, np.int64)[()]
    scaler.var_ = var if scaler.with_std else None
    scaler.scale_ = _scale(mean, var, seen) if scaler.with_std else None
    return None


def _as_floats(step: Any, block: Any) -> NDArray[Any]:
    kinds = [np.float64, np.float32]
    made = validate_data(step, block, reset=False, dtype=kinds, ensure_all_finite="allow-nan")
    return np.asarray(made)


def _scale(mean: NDArray[Any], var: NDArray[Any], count: Any) -> NDArray[Any]:
    """Return standard deviations; 1 where rounding is all that a column varies by."""
    eps = np.finfo(np.float64).eps
    constant = var <= count * eps * var + (count * mean * eps) ** 2
    return np.where(constant, 1.0, np.sqrt(var))


def _sums(
    tables: Stream, n: int, of: list[Callable[[NDArray[Any]], NDArray[Any]]]
) -> list[NDArray[Any]]:
    """Sum functions of a table's columns in one pass, gaps left out."""
    sums: list[Pairwise | Sequential] = []
    for X in tables:
        sums = sums or [summation_like(X, n) for _ in of]
        for total, function in zip(sums, of, strict=True):
            made = function(X)
            total.add(np.where(np.isnan(made), 0.0, made))
    return [np.asarray(total.total()) for total in sums]


def _fit_encoder(encoder: Any, stream: Stream, path: str) -> None:
    """Fit an encoder on rows that together show every level."""
    rows = joined(list(_showing_all(stream)))
    if encoder.min_frequency is None and encoder.max_categories is None:
        encoder.fit(rows)
        return
    own, counts, n = encoder._fit_infrequent_category_mapping, _level_counts(stream), stream.n_rows

    def of_all_rows(n_samples: int, category_counts: Any, missing_indices: Any) -> None:
        """Merge infrequent levels by their counts in all rows, not in those shown."""
        levels = [categories.tolist() for categories in encoder.categories_]
        found = [
            np.array([count[_key(level)] for level in of_column])
            for count, of_column in zip(counts, levels, strict=True)
        ]
        own(n, found, missing_indices)

    encoder._fit_infrequent_category_mapping = of_all_rows
    try:
        encoder.fit(rows)
    finally:
        del encoder._fit_infrequent_category_mapping


def _level_counts(stream: Stream) -> list[Counter[Any]]:
    """Count the levels of each column."""
    counts: list[Counter[Any]] = []
    for block in stream:
        frame = as_frame(block)
        counts = counts or [Counter() for _ in range(block.shape[1])]
        for at, count in enumerate(counts):
            values = _column(block if frame is None else frame, at)
            count.update(map(_key, values))
    return counts


def _showing_all(stream: Stream) -> Iterator[Any]:
    """Yield the rows of blocks in which some column shows a level for the first time."""
    known: dict[int, set[Any]] = {}
    for block in stream:
        frame, rows = as_frame(block), set()
        for at in range(block.shape[1]):
            seen = known.setdefault(at, set())
            values = _levels(block if frame is None else frame, at)
            if new := values.keys() - seen:
                seen |= new
                rows |= {values[level] for level in new}
        if rows:
            picked = sorted(rows)
            yield block[picked] if frame is None else frame[picked]


def _levels(table: Any, at: int) -> dict[Any, int]:
    """Return the levels of a column and a row of each; gaps of a kind are one level."""
    values = _column(table, at)
    rows = dict(zip(reversed(values), range(len(values) - 1, -1, -1), strict=True))
    gaps = [level for level in rows if level != level]
    for level in gaps:
        rows[_key(level)] = rows.pop(level)
    return rows


def _column(table: Any, at: int) -> list[Any]:
    """Return the values of a column."""
    if isinstance(table, np.ndarray):
        return table[:, at].tolist()  # type: ignore[no-any-return]
    return table.get_column(table.columns[at]).to_list()  # type: ignore[no-any-return]


def _key(level: Any) -> Any:
    """Return what stands for a level in a dict, where NaN would not be found again."""
    return ("voicecf: nan", type(level)) if level != level else level


def _fit_imputer(imputer: SimpleImputer, stream: Stream, path: str) -> None:
    """Learn what gaps are filled with."""
    if callable(imputer.strategy):
        raise ModelError(
            f"step {path!r} fills in by a function of all values, which a stream does not hold; "
            "use strategy='mean', 'median', 'most_frequent' or 'constant'."
        )
    with warnings.catch_warnings():  # of gaps only, perhaps, in the first block
        warnings.simplefilter("ignore")
        imputer.fit(stream.first())
    missing = partial(_values_of, imputer)
    if imputer.strategy == "mean":
        found = _means(stream.through(missing), stream.n_rows)
    else:
        found = _filled_in(imputer, _counted(stream.through(missing)))
    empty = 0 if imputer.keep_empty_features else np.nan
    held = [empty if value is None else value for value in found]
    kind = object if imputer.statistics_.dtype == object else np.float64
    imputer.statistics_ = np.array(held, dtype=kind)


def _values_of(imputer: SimpleImputer, block: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Return the values of a block, and where there are none."""
    frame = as_frame(block)
    values = np.asarray(block) if frame is None else frame.to_numpy()
    if values.dtype.kind in "iub" and imputer.statistics_.dtype != object:
        values = values.astype(np.float64)
    if imputer.missing_values is None:
        return values, np.vectorize(lambda v: v is None, otypes=[bool])(values)
    if imputer.missing_values != imputer.missing_values:
        return values, np.asarray(values != values)
    return values, np.asarray(values == imputer.missing_values)


def _means(tables: Stream, n: int) -> list[Any]:
    total: Any = None
    for values, gone in tables:
        values = values.astype(np.float64, copy=False)
        if total is None:
            total, count = summation_like(values, n), np.zeros(values.shape[1])
        total.add(np.where(gone, 0.0, values))
        count += (~gone).sum(axis=0)
    return [s / c if c else None for s, c in zip(total.total(), count, strict=True)]


def _counted(tables: Stream) -> list[Counter[Any]]:
    """Count the values of each column."""
    counts: list[Counter[Any]] = []
    for values, gone in tables:
        counts = counts or [Counter() for _ in range(values.shape[1])]
        for at, counter in enumerate(counts):
            counter.update(values[~gone[:, at], at].tolist())
    return counts


def _filled_in(imputer: SimpleImputer, counts: list[Counter[Any]]) -> list[Any]:
    if imputer.strategy == "constant":
        constants = [value for value in imputer.statistics_.tolist() if value == value]
        fill = constants[0] if constants else imputer.fill_value
        return [fill if counter or imputer.keep_empty_features else None for counter in counts]
    pick = _most_frequent if imputer.strategy == "most_frequent" else _median
    return [pick(counter) if counter else None for counter in counts]


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
    names = list(getattr(probe, "feature_names_in_", range(first.shape[1])))
    learned = {}
    for name, _, chosen in probe.transformers_:
        part = deepcopy(own.get(name, columns.remainder))
        if _is_estimator(part) and len(chosen_columns(chosen, names)):
            picked = stream.through(partial(_picked, chosen_columns(chosen, names)))
            learned[name] = learn(part, picked, f"{path}.{name}")
    _assemble(columns, learned, first)
    if columns.sparse_output_ or any(sparse.issparse(part) for part in _made(columns, first)):
        columns.sparse_output_ = _density(columns, stream) < columns.sparse_threshold


def _is_estimator(part: Any) -> bool:
    return part is not None and not isinstance(part, str)


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


def _made(columns: ColumnTransformer, block: Any) -> list[Any]:
    """Return what each part makes of a block."""
    names = list(getattr(columns, "feature_names_in_", range(block.shape[1])))
    made = []
    for _, part, chosen in columns.transformers_:
        positions = chosen_columns(chosen, names)
        if positions and not (isinstance(part, str) and part == "drop"):
            rows = _picked(positions, block)
            made.append(rows if isinstance(part, str) else part.transform(rows))
    return made


def _density(columns: ColumnTransformer, stream: Stream) -> float:
    """Return the share of numbers that are not zeros left out."""
    held = total = 0
    for block in stream:
        for part in _made(columns, block):
            held += part.nnz if sparse.issparse(part) else int(np.prod(part.shape))
            total += int(np.prod(part.shape))
    return held / total if total else 1.0


KINDS: dict[type, Callable[[Any, Stream, str], None]] = {
    Pipeline: _fit_pipeline,
    ColumnTransformer: _fit_columns,
    StandardScaler: _fit_standard,
    MinMaxScaler: _fit_by_parts,
    MaxAbsScaler: _fit_by_parts,
    OneHotEncoder: _fit_encoder,
    OrdinalEncoder: _fit_encoder,
    SimpleImputer: _fit_imputer,
    FunctionTransformer: _fit_on_first,
}
