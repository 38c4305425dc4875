"""The user's tables, arrays and frames of any library: reading values and writing new ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from voicecf.errors import ColumnError, DataError, listed
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.named import installed_backend

# Whole numbers up to this size are exact in double precision.
EXACT = 2**53
# Types of numpy for plain numbers and truth values.
PLAIN = {np.dtype(kind) for kind in "?bhilqBHILQfd"}
# Types of pandas for text and levels.
TEXT = ("str", "object", "category")
# Values of dates, times and durations; those of pandas are among them.
TIMES = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True)
class Kind:
    """The library of a frame and its index, so that answers can be frames of the same kind."""

    backend: Any = None
    index: Any = None

    @classmethod
    def of(cls, frame: Any) -> Kind | None:
        """Return the kind of a narwhals frame; None if there is no frame."""
        return None if frame is None else cls(frame.implementation, nw.maybe_get_index(frame))

    @cached_property
    def own_index(self) -> Any:
        """The index, unless there is none or it counts the rows: 0, 1, 2, ..."""
        if self.index is None or np.array_equal(self.index, np.arange(len(self.index))):
            return None
        return self.index


def in_partitions(X: Any) -> bool:
    """Tell whether X is a Dask DataFrame, without importing Dask."""
    return type(X).__module__.startswith("dask.dataframe")


def as_frame(X: Any) -> Any:
    """Return X as a narwhals frame, or None if it is an array; a lazy frame is an error.

    A row, as a dict or a pandas Series, and a list of dicts become a frame, too.
    """
    if isinstance(X, Mapping):
        return _frame_of_rows([X])
    if isinstance(X, list) and X and all(isinstance(row, Mapping) for row in X):
        return _frame_of_rows(X)
    if isinstance(X, (np.ndarray, list)):  # a shortcut, for speed when rows are read one by one
        return None
    try:
        frame = nw.from_native(X, pass_through=True, allow_series=True)
        names = list(frame.columns) if isinstance(frame, nw.DataFrame) else []
    except DuplicateError as error:
        raise ColumnError(f"column names must differ. {error}") from None
    if isinstance(frame, nw.LazyFrame):
        raise DataError("X is a lazy frame; call X.collect() first.")
    if isinstance(frame, nw.Series):
        return _frame_of_series(X, frame)
    if not isinstance(frame, nw.DataFrame):
        return None
    if len(set(names)) < len(names):
        twice = dict.fromkeys(n for n in names if names.count(n) > 1)
        raise ColumnError(f"column names must differ; named twice: {listed(twice)}.")
    return frame


def _frame_of_rows(rows: Sequence[Mapping[Any, Any]], backend: Any = None) -> Any:
    """Return rows, each a dict from column to value, as a frame; what one lacks is missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [plain_item(row.get(name)) for row in rows] for name in names}
    return nw.from_dict(columns, backend=backend or installed_backend())


def plain_item(value: Any) -> Any:
    """Return a numpy scalar as the Python value that it holds."""
    return value.item() if isinstance(value, np.generic) else value


def _frame_of_series(series: Any, wrapped: Any) -> Any:
    """Return a row of a pandas frame, whose index are the columns, as a frame of this one row."""
    index = nw.maybe_get_index(wrapped)
    if index is None:
        raise DataError("X is one column; for row i of a frame pass df[i:i + 1].")
    row = dict(zip(index, wrapped.to_list(), strict=True))
    frame = _frame_of_rows([row], wrapped.implementation).to_native()
    frame.index = [series.name]
    return nw.from_native(frame, eager_only=True)


def table(columns: Mapping[Any, Any], kind: Kind | None = None, schema: Any = None) -> Any:
    """Build a frame of a kind; without one, of a library that is installed."""
    plain = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    backend: Any = kind.backend if kind else installed_backend()
    if schema is not None:
        plain = {name: values.tolist() for name, values in plain.items()}
    return nw.from_dict(plain, schema=schema, backend=backend).to_native()


def columns_of(frame: Any) -> dict[Any, Any]:
    """Return the columns of a narwhals frame by name: narwhals series.

    These take long to make from pandas. There, plain numbers are arrays of their type, and text and
    levels are arrays of objects.
    """
    if not frame.implementation.is_pandas():
        return {series.name: series for series in frame.iter_columns()}
    columns = {}
    for name, series in frame.to_native().items():
        if series.dtype in PLAIN:
            columns[name] = series.to_numpy()
        elif str(series.dtype) in TEXT:
            columns[name] = series.to_numpy(dtype=object)
        else:
            columns[name] = frame.get_column(name)
    return columns


def taken(rows: Any, which: Ints | None) -> Any:
    """Return some rows of an array, frame or column; itself if they are all rows, in order."""
    return rows if which is None or is_every(which, len(rows)) else rows[which]


def is_every(which: Ints, n: int) -> bool:
    """Tell whether positions are those of all n rows, in order."""
    return len(which) == n and np.array_equal(which, np.arange(n))


def indexed(native: Any, kind: Kind | None, which: Any) -> Any:
    """Give a frame the entries `which` of its kind's index, if the kind has one (pandas)."""
    if kind is not None and kind.index is not None:
        native.index = kind.index[which]
    return native


def any_array(X: Any) -> NDArray[Any]:
    """Return X as an array of rows and columns, of any type."""
    if sparse.issparse(X):
        raise DataError("X is sparse; counterfactuals need a dense table. Pass X.toarray().")
    try:
        values = np.ma.filled(X, np.nan) if np.ma.isMaskedArray(X) else np.asarray(X)
    except (TypeError, ValueError):
        raise DataError("X is not a table: all its rows must have the same length.") from None
    if values.ndim == 1:
        raise DataError("X has one dimension; for one row pass X[None, :] or X.reshape(1, -1).")
    if values.ndim != 2:
        raise DataError(f"X has {values.ndim} dimensions; pass a table of rows and columns.")
    if values.dtype.kind == "c":
        raise DataError("X is complex; pass real numbers.")
    return values


def number_array(X: Any) -> NDArray[Any]:
    """Return X as an array of numbers; raise if it holds anything else."""
    values = any_array(X)
    return values if values.dtype.kind in "fiub" else as_numbers(values, "X")


def as_numbers(values: NDArray[Any], what: str) -> Array:
    """Return an array of objects as numbers; raise if they are none, `what` being their name."""
    try:
        if values.dtype.kind not in "mM":
            return values.astype(np.float64)
    except (TypeError, ValueError):
        pass
    raise not_numbers(what, values.ravel())


def not_numbers(what: str, values: Iterable[Any]) -> DataError:
    """Return the error about values that should be numbers, with the remedy for what they are."""
    present = [value for value in values if not is_missing(value)]
    if any(isinstance(value, TIMES) for value in present):
        remedy = "dates or times; turn them into numbers first, such as the days since a date"
    elif all(map(_is_number, present)):
        remedy = "numbers stored as text, objects or categories; convert them first: astype(float)"
    else:
        remedy = "text or objects, not numbers; encode them first (OneHotEncoder)"
    return DataError(f"{what} holds {remedy}.")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def transformed(steps: Sequence[Any], rows: Any) -> Any:
    """Return the output of fitted steps, one after the other, of any type."""
    for step in steps:
        try:
            rows = step.transform(rows)
        except (TypeError, ValueError) as error:
            raise DataError(f"{type(step).__name__} cannot transform X: {error}") from error
    return rows


def dense(output: Any) -> Array:
    """Return the output of a step, a sparse matrix, frame or array, as an array of numbers."""
    if sparse.issparse(output):
        output = output.toarray()
    elif not isinstance(output, np.ndarray):
        output = nw.from_native(output, eager_only=True).to_numpy()
    try:
        return np.asarray(output, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        raise DataError(
            "the steps before the model leave text or dates in the data; encode text "
            "(OneHotEncoder), turn dates into numbers, or drop the columns."
        ) from None


def is_missing(value: Any) -> bool:
    """Tell whether a value is missing: None, NaN, or pandas.NA."""
    if value is None:
        return True
    # NaN differs from itself, and comparing pandas.NA gives no boolean.
    same = value == value
    return not isinstance(same, (bool, np.bool_)) or not same


def objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return values as an array of objects; np.array would convert some, and split tuples."""
    return np.fromiter(values, dtype=object, count=len(values))


def plain_values(column: Any) -> list[Any]:
    """Return the values of a column, a narwhals series or an array."""
    return list(column.tolist() if isinstance(column, np.ndarray) else column.to_list())


def numbers(column: Any, name: Any = None) -> Array:
    """Return a column as floats, NaN where missing; raise if it is not numeric.

    It is a narwhals series, or an array, which errors call `name`.
    """
    if isinstance(column, np.ndarray):
        return as_numbers(column, f"column {name!r}")
    series, dtype = column, column.dtype
    if dtype.is_float():
        return np.asarray(series.to_numpy(), dtype=np.float64)
    nulls = series.null_count()
    if nulls == len(series):  # the type is unknown if all values are missing
        return np.full(len(series), np.nan)
    if not (dtype.is_numeric() or dtype == nw.Boolean):
        raise not_numbers(f"column {series.name!r}", series.to_list())
    if dtype.is_integer() and not nulls:
        # Not cast: some libraries refuse to cast integers beyond 2**53.
        return np.asarray(series.to_numpy()).astype(np.float64)
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def is_boolean(column: Any) -> bool:
    """Tell whether a column, a series or an array, has truth values by its type."""
    return bool(column.dtype == (np.bool_ if isinstance(column, np.ndarray) else nw.Boolean))


def is_single(column: Any) -> bool:
    """Tell whether a column, a series or an array, has numbers of single precision."""
    return bool(column.dtype == (np.float32 if isinstance(column, np.ndarray) else nw.Float32))


def is_whole(column: Any) -> bool:
    """Tell whether a column, a series or an array, has integers or booleans by its type."""
    if isinstance(column, np.ndarray):
        return column.dtype.kind in "iub" or all(isinstance(v, (int, np.integer)) for v in column)
    return bool(column.dtype.is_integer() or column.dtype == nw.Boolean)


@dataclass(frozen=True)
class Cells:
    """New values for some rows of a column.

    Attributes
    ----------
    rows : array of int
        Positions of the rows.
    values : sequence
        One value for each row: numbers, or levels of a category.
    """

    rows: Ints
    values: Sequence[Any] | NDArray[Any]

    def as_array(self) -> NDArray[Any]:
        """Return the values as an array; levels as objects, so that numpy converts none."""
        return self.values if isinstance(self.values, np.ndarray) else objects(self.values)


def frame_with_cells(frame: Any, changes: Mapping[Any, Cells]) -> Any:
    """Return a narwhals frame with new values in some cells; all other cells keep their bits.

    Types stay: an integer column becomes one of floats only if a new value is not a whole
    number, and a categorical column keeps its categories.
    """
    changes = {name: cells for name, cells in changes.items() if len(cells.rows)}
    if not changes or not frame.implementation.is_pandas():
        return frame.with_columns(
            _series_with_cells(frame.get_column(name), cells) for name, cells in changes.items()
        )
    native = frame.to_native().copy(deep=False)  # narwhals would join all columns anew
    for name, cells in changes.items():
        column = _pandas_with_cells(native[name], cells.rows, cells.as_array())
        if column is None:
            column = _series_with_cells(frame.get_column(name), cells).to_native()
            column = column.set_axis(native.index)
        native.isetitem(native.columns.get_loc(name), column)
    return nw.from_native(native, eager_only=True)


def _series_with_cells(series: Any, cells: Cells) -> Any:
    values = cells.as_array()
    if values.dtype != object and series.dtype == nw.String:
        # Only missing values, which may have any type: now the column holds numbers.
        gaps: list[None] = [None] * len(series)
        series = nw.new_series(series.name, gaps, nw.Float64, backend=series.implementation)
    if values.dtype.kind == "f" and (series.dtype.is_integer() or series.dtype == nw.Boolean):
        whole = _as_whole(values, series.dtype == nw.Boolean)
        series, values = (series.cast(nw.Float64), values) if whole is None else (series, whole)
    if series.implementation.is_pyarrow():
        return _arrow_with_cells(series, cells.rows, values)
    return _any_with_cells(series, cells.rows, values)


def _any_with_cells(series: Any, rows: Ints, values: NDArray[Any]) -> Any:
    """Write values of any type into a column of any library."""
    new_values: Any = values.tolist() if values.dtype == object else values
    if series.dtype == nw.Boolean and values.dtype == object:
        # Encoders know the levels of booleans with gaps as numbers.
        new_values = [bool(v) if v in (0, 1) else v for v in new_values]
        # Scattered into a numpy array of booleans, None would become False.
        return _rebuilt(series, rows, new_values)
    try:
        enum = series.implementation.is_polars() and isinstance(series.dtype, nw.Enum)
        # Typed, since a list of a million numbers takes a second, and polars up to 1.31 writes null
        # for text in a column of levels.
        if enum or values.dtype != object:
            new_values = nw.new_series("", new_values, series.dtype, backend=series.implementation)
        return series.scatter(rows, new_values)
    except Exception:  # each library has its own errors for types that it cannot write to
        return _rebuilt(series, rows, values.tolist())


def _arrow_with_cells(series: Any, rows: Ints, values: NDArray[Any]) -> Any:
    """Write into a column of Arrow, which keeps its own type of text or categories.

    Arrow has no scatter, and the substitute of narwhals takes many times as long as a copy of
    numbers or of a mask.
    """
    floats = series.dtype.is_float() and values.dtype.kind == "f"
    integers = series.dtype == nw.Int64 and values.dtype == np.int64
    if (floats or integers) and not series.null_count():
        column = np.array(series.to_numpy())
        column[rows] = values
        return nw.new_series(series.name, column, series.dtype, backend=series.implementation)
    simple = series.dtype.is_numeric() or series.dtype in (nw.String, nw.Boolean)
    if simple and len(values) and all(value is None for value in values):
        unchanged = np.ones(len(series), dtype=np.bool_)
        unchanged[rows] = False
        backend: Any = series.implementation
        missing = nw.new_series("", [None] * len(series), series.dtype, backend=backend)
        return series.zip_with(nw.new_series("", unchanged, backend=backend), missing)
    if values.dtype != object:
        return _any_with_cells(series, rows, values)
    # Levels that pandas has as NaN are null in Arrow.
    levels = Cells(rows, [None if is_missing(value) else value for value in values]).as_array()
    changed = _any_with_cells(series, rows, levels)
    try:
        native = changed.to_native().cast(series.to_native().type)
    except Exception:  # the type does not take the new values
        return changed
    return nw.from_native(native, series_only=True).alias(series.name)


def _pandas_with_cells(native: Any, rows: Ints, values: NDArray[Any]) -> Any:
    """Return a pandas column with new values; None if it cannot hold them, or is of another type.

    The type stays, and so does None in a column of objects, where encoders tell it from NaN. Other
    types have a missing value of their own, which is written if all new values are missing.
    """
    dtype, name = native.dtype, str(native.dtype)
    if name != "object" and all(value is None for value in values):
        return native.mask(np.isin(np.arange(len(native)), rows))
    if name == "category" and values.dtype == object:
        place = {level: code for code, level in enumerate(dtype.categories)}
        new, codes = [place.get(value, -1) for value in values], native.array.codes.copy()
        codes[rows] = new
        return None if -1 in new else native.array.from_codes(codes, dtype=dtype, validate=False)
    if values.dtype.kind == "f" and dtype in PLAIN and dtype.kind != "f":
        whole = _as_whole(values, dtype.kind == "b")
        native, values = (native.astype(float), values) if whole is None else (native, whole)
    if native.dtype != values.dtype and not (values.dtype == object and name in ("str", "boolean")):
        return None
    column = native.to_numpy(dtype=values.dtype, copy=True)
    if name == "boolean":
        values = np.array([None if is_missing(v) else bool(v) for v in values], dtype=object)
    column[rows] = values
    same = native.dtype in PLAIN  # as that of the array
    return column if same else type(native)(column, index=native.index, dtype=native.dtype)


def _as_whole(values: NDArray[Any], boolean: bool) -> NDArray[Any] | None:
    """Return floats as integers, or as truth values; None if they are none."""
    if boolean:
        return values.astype(bool) if np.isin(values, (0.0, 1.0)).all() else None
    whole = (values == np.rint(values)).all() and (np.abs(values) < 2.0**62).all()
    return values.astype(np.int64) if whole else None


def _rebuilt(series: Any, rows: Ints, values: list[Any]) -> Any:
    """Write into a column by way of a list; the column keeps its type if that takes the values."""
    column = series.to_list()
    for row, value in zip(rows.tolist(), values, strict=True):
        column[row] = value
    if not (series.dtype == nw.Boolean and None in values):
        try:
            return nw.new_series(series.name, column, series.dtype, backend=series.implementation)
        except Exception:  # the type does not take the new values
            pass
    return nw.new_series(series.name, column, backend=series.implementation)


def widened(frame: Any, names: Sequence[Any]) -> Any:
    """Return a frame in which the named columns of single precision have double precision."""
    single = [name for name in names if frame.get_column(name).dtype == nw.Float32]
    return frame.with_columns(frame.get_column(name).cast(nw.Float64) for name in single)


def emptied(frame: Any, names: Sequence[Any], missing: NDArray[np.bool_]) -> Any:
    """Return a narwhals frame in which the named columns of the missing rows have no value.

    Integers and booleans get a type that allows missing values, if their library has one, so that
    the other rows keep their digits.
    """
    rows, names = np.flatnonzero(missing), list(dict.fromkeys(names))
    if not len(rows):
        return frame
    whole = [name for name in names if is_whole(frame.get_column(name))]
    frame = frame.with_columns(nw.maybe_convert_dtypes(frame.get_column(name)) for name in whole)
    return frame_with_cells(frame, {name: Cells(rows, [None] * len(rows)) for name in names})


def array_with_cells(array: NDArray[Any], changes: Mapping[int, Cells]) -> NDArray[Any]:
    """Return an array with new values in some cells; all other cells keep their digits."""
    new_values = [cells.as_array() for cells in changes.values() if len(cells.rows)]
    whole = all(v.dtype.kind == "f" and (v == np.rint(v)).all() for v in new_values)
    keeps_type = array.dtype.kind in "fO" or (array.dtype.kind in "iu" and whole)
    changed = array.copy() if keeps_type else array.astype(_type_with_fractions(array))
    for c, cells in changes.items():
        changed[cells.rows, c] = cells.as_array()
    return changed


def _type_with_fractions(array: NDArray[Any]) -> Any:
    """Return a type for fractions that also holds the values of an array exactly."""
    if array.dtype.kind not in "iub":
        return object
    large = array.size and max(abs(int(array.max())), abs(int(array.min()))) > EXACT
    return object if large else np.float64


def typed(array: Any) -> list[NDArray[Any]]:
    """Return the columns of an array; objects that are all numbers become integers or floats."""
    columns = []
    for values in array.T:
        if values.dtype == object:
            for dtype in (np.int64, np.float64):
                try:
                    converted = values.astype(dtype)
                except (TypeError, ValueError, OverflowError):
                    continue
                if dtype == np.float64 or (converted == values).all():
                    values = converted
                    break
        columns.append(values)
    return columns
