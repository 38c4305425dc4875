"""The user's columns and the model's coordinates: frames and arrays in, the same kind out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray
from scipy import sparse

from voicecf._compile import in_parallel
from voicecf.errors import ColumnError, DataError, listed
from voicecf.region import Array


@dataclass(frozen=True)
class Kind:
    """What a frame was, so that answers can be of the same kind: its library and its index."""

    backend: Any = None
    index: Any = None


@dataclass(frozen=True)
class Space:
    """Columns of a table of numbers: their names, and how values are stored.

    Attributes
    ----------
    names : list
        Column names; x0, x1, ... for arrays.
    named : bool
        Whether the names came with the data.
    dtype : numpy dtype
        What the model computes with; answers come back in it.
    """

    names: list[Any]
    named: bool
    dtype: np.dtype[Any]

    @classmethod
    def of(cls, X: Any, dtype: Any = np.float64) -> Space:
        """Learn the columns of a frame or an array."""
        frame = as_frame(X)
        if frame is not None:
            return cls(list(frame.columns), True, np.dtype(dtype))
        return cls([f"x{i}" for i in range(_array(X).shape[1])], False, np.dtype(dtype))

    def read(self, X: Any) -> NDArray[Any]:
        """Return X as a new array of coordinates, checked: numbers, no gaps, the right columns."""
        frame = as_frame(X)
        values = _array(X) if frame is None else self._pick(frame)
        if values.shape[1] != len(self.names):
            raise DataError(
                f"X has {values.shape[1]} columns; the model was fitted on {len(self.names)}."
            )
        own = np.empty(values.shape, dtype=self.dtype)
        finite: list[bool] = in_parallel(lambda a, b: _copy(values, own, a, b), len(own))
        if not all(finite):
            self._check_finite(own)
        return own

    def _pick(self, frame: Any) -> NDArray[Any]:
        """Return this space's columns of a frame, in its own order."""
        names = list(frame.columns)
        if self.named:
            missing = [n for n in self.names if n not in names]
            if missing:
                raise ColumnError(
                    f"X lacks {listed(missing)}; it has {listed(names)}. The explainer needs the "
                    "columns that it was fitted on."
                )
            names = self.names
        if not names:
            raise DataError("X has no columns.")
        return np.column_stack([_column(frame, name) for name in names])

    def _check_finite(self, values: NDArray[Any]) -> None:
        bad = ~np.isfinite(values)
        if bad.any():
            columns = [self.names[i] for i in np.flatnonzero(bad.any(axis=0))]
            rows = np.flatnonzero(bad.any(axis=1))
            raise DataError(
                f"X has missing (NaN) or infinite values in {len(rows)} rows (first: row "
                f"{rows[0]}), columns {listed(columns)}. Impute or drop them first."
            )

    def inward(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Round bounds inwards to numbers that this space can hold."""
        if self.dtype == np.float64:
            return lo, hi
        low, high = lo.astype(self.dtype), hi.astype(self.dtype)
        low = np.where(low < lo, np.nextafter(low, np.array(np.inf, self.dtype)), low)
        high = np.where(high > hi, np.nextafter(high, np.array(-np.inf, self.dtype)), high)
        return low.astype(np.float64), high.astype(np.float64)

    def table(self, points: NDArray[Any], kind: Kind | None = None, rows: Any = None) -> Any:
        """Return points as a frame with this space's columns; `rows` pick from the index."""
        columns = {name: points[:, i] for i, name in enumerate(self.names)}
        built = table(columns, kind)
        if kind is not None and kind.index is not None:
            built.index = kind.index[rows]
        return built


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
    frame = as_frame(X)
    return None if frame is None else Kind(frame.implementation, nw.maybe_get_index(frame))


def table(columns: dict[Any, Any], kind: Kind | None = None, schema: Any = None) -> Any:
    """Build a frame of a kind; without one, of a library that is installed."""
    plain = {name: np.ascontiguousarray(values) for name, values in columns.items()}
    backend: Any = kind.backend if kind else _installed()
    if schema is not None:
        plain = {name: values.tolist() for name, values in plain.items()}
    return nw.from_dict(plain, schema=schema, backend=backend).to_native()


def _installed() -> str:
    for backend in ("pandas", "polars", "pyarrow"):
        if find_spec(backend):
            return backend
    raise ImportError("a table needs pandas, polars or pyarrow: pip install pandas")


def _copy(values: NDArray[Any], own: NDArray[Any], start: int, stop: int) -> bool:
    """Copy a span of rows, and tell whether all of them are certainly finite."""
    with np.errstate(all="ignore"):
        own[start:stop] = values[start:stop]
        return bool(np.isfinite(own[start:stop].sum()))  # quicker than a look at each


def _array(X: Any) -> NDArray[Any]:
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
    if values.dtype.kind not in "fiub":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError):
            raise DataError(
                "X holds text or objects; encode them as numbers first (OneHotEncoder)."
            ) from None
    return values


def _column(frame: Any, name: Any) -> Array:
    series = frame.get_column(name)
    if series.null_count() == len(series):  # of no type, if nothing is in it
        return np.full(len(series), np.nan)
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise DataError(
            f"column {name!r} holds {series.dtype}, not numbers; encode it first (OneHotEncoder)."
        )
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
