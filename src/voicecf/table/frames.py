"""Tables of the user's: frames of any library and arrays, read, picked from and written to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from voicecf.errors import ColumnError, DataError, listed
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.named import installed_backend

# Whole numbers up to here are exact as floats.
EXACT = 2**53


@dataclass(frozen=True)
class Kind:
    """What a frame was, so that answers can be of the same kind: its library and its index."""

    backend: Any = None
    index: Any = None

    @classmethod
    def of(cls, frame: Any) -> Kind | None:
        """Return the kind of a narwhals frame; None where there is none."""
        return None if frame is None else cls(frame.implementation, nw.maybe_get_index(frame))


def in_partitions(X: Any) -> bool:
    """Tell whether X is a Dask DataFrame, without importing Dask."""
    return type(X).__module__.startswith("dask.dataframe")


def as_frame(X: Any) -> Any:
    """Return X as a narwhals frame, or None where it is an array; a lazy frame is an error."""
    if isinstance(X, (np.ndarray, list)):  # the quick way out for a row at a time
        return None
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
    except DuplicateError as error:
        raise ColumnError(f"column names must differ. {error}") from None
    if isinstance(frame, nw.LazyFrame):
        raise DataError("X is a lazy frame; call X.collect() first.")
    if isinstance(frame, nw.Series):
        raise DataError(
            "X is one column or row; for row i of a frame pass df.iloc[[i]] or df[i:i + 1]."
        )
    if not isinstance(frame, nw.DataFrame):
        return None
    try:
        names = list(frame.columns)
    except DuplicateError as error:
        raise ColumnError(f"column names must differ. {error}") from None
    if len(set(names)) < len(names):
        twice = dict.fromkeys(n for n in names if names.count(n) > 1)
        raise ColumnError(f"column names must differ; named twice: {listed(twice)}.")
    return frame


def kind_of(X: Any) -> Kind | None:
    """Return the kind of a frame; None for an array."""
    return Kind.of(as_frame(X))


def table(columns: Mapping[Any, Any], kind: Kind | None = None, schema: Any = None) -> Any:
    """Build a frame of a kind; without one, of a library that is installed."""
    plain = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    backend: Any = kind.backend if kind else installed_backend()
    if schema is not None:
        plain = {name: values.tolist() for name, values in plain.items()}
    return nw.from_dict(plain, schema=schema, backend=backend).to_native()


def indexed(native: Any, kind: Kind | None, rows: Any) -> Any:
    """Return a frame with the index of the rows that it came from, where its kind has one."""
    if kind is not None and kind.index is not None:
        native.index = kind.index[rows]
    return native


def any_array(X: Any) -> NDArray[Any]:
    """Return X as an array of rows and columns, of whatever type."""
    if sparse.issparse(X):
        raise DataError("X is sparse; a counterfactual is dense. Pass X.toarray().")
    try:
        values = np.ma.filled(X, np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
    except (TypeError, ValueError):
        raise DataError("X is no table: its rows must have the same length.") from None
    if values.ndim == 1:
        raise DataError("X has one dimension; for one row pass X[None, :] or X.reshape(1, -1).")
    if values.ndim != 2:
        raise DataError(f"X has {values.ndim} dimensions; it needs rows and columns.")
    if values.dtype.kind == "c":
        raise DataError("X is complex; a counterfactual needs real numbers.")
    return values


def number_array(X: Any) -> NDArray[Any]:
    """Return X as an array of numbers, or raise."""
    values = any_array(X)
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError(
                "X holds text or objects; encode them as numbers first (OneHotEncoder)."
            ) from None
    return values


def numbers(frame: Any, name: Any) -> Array:
    """Return a column of a frame as numbers, NaN where one is missing, or raise."""
    return series_numbers(frame.get_column(name))


def series_numbers(series: Any) -> Array:
    """Return a column as numbers, NaN where one is missing, or raise."""
    if series.null_count() == len(series):  # of no type, if nothing is in it
        return np.full(len(series), np.nan)
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise DataError(
            f"column {series.name!r} holds {series.dtype}, not numbers; encode it first "
            "(OneHotEncoder)."
        )
    if series.dtype.is_integer() and not series.null_count():
        return np.asarray(series.to_numpy()).astype(np.float64)  # also those beyond 2**53
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def is_whole(frame: Any, name: Any) -> bool:
    """Tell whether a column is of whole numbers or truth values by its type."""
    dtype = frame.get_column(name).dtype
    return bool(dtype.is_integer() or dtype == nw.Boolean)


@dataclass(frozen=True)
class Cells:
    """New values for some rows of a column.

    Attributes
    ----------
    rows : array of int
    values : sequence
        One a row; numbers, or levels of a category.
    """

    rows: Ints
    values: Sequence[Any] | NDArray[Any]

    def as_array(self) -> NDArray[Any]:
        """Return the values as an array; levels as objects, each as it is."""
        if isinstance(self.values, np.ndarray):
            return self.values
        made = np.empty(len(self.values), dtype=object)
        made[:] = self.values
        return made


def written(frame: Any, changes: Mapping[Any, Cells]) -> Any:
    """Return a narwhals frame with new values in some cells; all other cells keep their bits.

    Types are kept: an integer column turns into one of floats only where a new value is no whole
    number, a category keeps its categories.
    """
    columns = [
        _placed(frame.get_column(name), cells) for name, cells in changes.items() if len(cells.rows)
    ]
    return frame.with_columns(*columns) if columns else frame


def _placed(series: Any, cells: Cells) -> Any:
    values = cells.as_array()
    if values.dtype.kind == "f" and (series.dtype.is_integer() or series.dtype == nw.Boolean):
        series, values = _of_numbers(series, values)
    if series.implementation.is_pyarrow():
        placed = _placed_in_arrow(series, cells.rows, values)
        if placed is not None:
            return placed
    news: Any = values.tolist() if values.dtype == object else values
    if series.dtype == nw.Boolean and values.dtype == object:
        return _rebuilt(series, cells.rows, news)  # a bool of numpy would take a gap for False
    try:
        if values.dtype != object:  # a list of a million numbers takes a second
            news = nw.new_series("", values, series.dtype, backend=series.implementation)
        return series.scatter(cells.rows, news)
    except Exception:  # each library has errors of its own for a type that it cannot write to
        return _rebuilt(series, cells.rows, values.tolist())


def _placed_in_arrow(series: Any, rows: Ints, values: NDArray[Any]) -> Any:
    """Write numbers, or nothing, into a column of Arrow's; None where that needs another way.

    Arrow has no scatter, and what stands in for it takes many times as long as a copy.
    """
    floats = series.dtype.is_float() and values.dtype.kind == "f"
    whole_ones = series.dtype == nw.Int64 and values.dtype == np.int64
    if (floats or whole_ones) and not series.null_count():
        whole = np.array(series.to_numpy())
        whole[rows] = values
        return nw.new_series(series.name, whole, series.dtype, backend=series.implementation)
    flat = series.dtype.is_numeric() or series.dtype in (nw.String, nw.Boolean)
    if flat and len(values) and all(value is None for value in values):
        kept = np.ones(len(series), dtype=np.bool_)
        kept[rows] = False
        backend: Any = series.implementation
        nothing = nw.new_series("", [None] * len(series), series.dtype, backend=backend)
        return series.zip_with(nw.new_series("", kept, backend=backend), nothing)
    return None


def _of_numbers(series: Any, values: NDArray[Any]) -> tuple[Any, NDArray[Any]]:
    """Make room for numbers in a column of whole ones, of its own type if they all are whole."""
    if series.dtype == nw.Boolean:
        truth = np.isin(values, (0.0, 1.0)).all()
        return (series, values.astype(bool)) if truth else (series.cast(nw.Float64), values)
    if (values == np.rint(values)).all() and (np.abs(values) < 2.0**62).all():
        return series, values.astype(np.int64)
    return series.cast(nw.Float64), values


def _rebuilt(series: Any, rows: Ints, values: list[Any]) -> Any:
    """Write into a column by way of a list, and give it its type back if it takes it."""
    whole = series.to_list()
    for row, value in zip(rows.tolist(), values, strict=True):
        whole[row] = value
    make = nw.new_series
    if series.dtype == nw.Boolean and None in values:
        return make(series.name, whole, backend=series.implementation)
    try:
        return make(series.name, whole, series.dtype, backend=series.implementation)
    except Exception:
        return make(series.name, whole, backend=series.implementation)


def widened(frame: Any, names: Sequence[Any]) -> Any:
    """Return a frame in which some columns hold doubles, where they held single precision."""
    single = [name for name in names if frame.get_column(name).dtype == nw.Float32]
    return frame.with_columns(frame.get_column(name).cast(nw.Float64) for name in single)


def emptied(frame: Any, names: Sequence[Any], lost: NDArray[np.bool_]) -> Any:
    """Return a narwhals frame in which some columns of the lost rows hold nothing.

    Whole numbers and truth values get a type that has room for gaps, where their library has one,
    so that those of other rows keep their digits.
    """
    rows = np.flatnonzero(lost)
    if not len(rows):
        return frame
    whole = [name for name in names if is_whole(frame, name)]
    frame = frame.with_columns(nw.maybe_convert_dtypes(frame.get_column(name)) for name in whole)
    return written(frame, {name: Cells(rows, [None] * len(rows)) for name in names})


def written_array(array: NDArray[Any], changes: Mapping[int, Cells]) -> NDArray[Any]:
    """Return an array with new values in some cells; all other cells keep their digits."""
    news = [cells.as_array() for cells in changes.values() if len(cells.rows)]
    whole = all(v.dtype.kind == "f" and (v == np.rint(v)).all() for v in news)
    keeps = array.dtype.kind in "fO" or (array.dtype.kind in "iu" and whole)
    made = array.copy() if keeps else array.astype(_roomy(array))
    for at, cells in changes.items():
        made[cells.rows, at] = cells.as_array()
    return made


def _roomy(array: NDArray[Any]) -> Any:
    """Return a type that holds fractions beside what an array holds."""
    if array.dtype.kind not in "iub":
        return object
    large = array.size and max(abs(int(array.max())), abs(int(array.min()))) > EXACT
    return object if large else np.float64


def typed(array: Any) -> list[NDArray[Any]]:
    """Return the columns of an array, numbers as numbers where they are kept as objects."""
    columns = []
    for values in array.T:
        if values.dtype == object:
            for dtype in (np.int64, np.float64):
                try:
                    made = values.astype(dtype)
                except (TypeError, ValueError, OverflowError):
                    continue
                if dtype == np.float64 or (made == values).all():
                    values = made
                    break
        columns.append(values)
    return columns
