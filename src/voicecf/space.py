"""The user's columns and the model's coordinates: frames and arrays in, the same kind out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from voicecf.errors import ColumnError, DataError, listed
from voicecf.region import Array


def is_frame(X: Any) -> bool:
    """Tell whether X is a DataFrame that narwhals reads (pandas, polars, pyarrow and others)."""
    return isinstance(nw.from_native(X, pass_through=True), nw.DataFrame)


@dataclass(frozen=True)
class Space:
    """Columns of a table of numbers: their names, and how values are stored.

    Attributes
    ----------
    names : list
        Column names; positions as text for arrays.
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
        if is_frame(X):
            names = list(nw.from_native(X, eager_only=True).columns)
            twice = sorted({str(n) for n in names if names.count(n) > 1})
            if twice:
                raise ColumnError(f"column names must differ; named twice: {listed(twice)}.")
            return cls(names, True, np.dtype(dtype))
        return cls([f"x{i}" for i in range(_array(X).shape[1])], False, np.dtype(dtype))

    def read(self, X: Any) -> NDArray[Any]:
        """Return X as an array of coordinates, checked: numbers, no gaps, the right columns."""
        if is_frame(X):
            values = self._read_frame(nw.from_native(X, eager_only=True))
        else:
            values = _array(X)
            if values.shape[1] != len(self.names):
                raise DataError(
                    f"X has {values.shape[1]} columns; the model was fitted on {len(self.names)}."
                )
        values = np.ascontiguousarray(values, dtype=self.dtype)
        self._check_finite(values)
        return values

    def _read_frame(self, frame: Any) -> NDArray[Any]:
        if self.named:
            missing = [n for n in self.names if n not in frame.columns]
            if missing:
                raise ColumnError(
                    f"X lacks {listed(missing)}; it has {listed(frame.columns)}. "
                    "The explainer needs the columns that it was fitted on."
                )
        names = self.names if self.named else list(frame.columns)
        if len(names) != len(self.names):
            raise DataError(f"X has {len(names)} columns; the model was fitted on {len(self.names)}.")
        return np.column_stack([_column(frame, name) for name in names])

    def _check_finite(self, values: NDArray[Any]) -> None:
        if np.isfinite(values.sum()) or np.isfinite(values).all():
            return
        bad = ~np.isfinite(values)
        columns = [self.names[i] for i in np.flatnonzero(bad.any(axis=0))]
        rows = np.flatnonzero(bad.any(axis=1))
        raise DataError(
            f"X has missing (NaN) or infinite values in {bad.any(axis=1).sum()} rows (first: row "
            f"{rows[0]}), columns {listed(columns)}. Impute or drop them first."
        )

    def table(self, points: NDArray[Any], like: Any = None) -> Any:
        """Return points as a frame with this space's columns."""
        return self.frame({name: points[:, i] for i, name in enumerate(self.names)}, like)

    def frame(self, columns: dict[Any, Any], like: Any = None) -> Any:
        """Build a frame of the same kind as `like`; for arrays, of a library that is installed."""
        if like is not None:
            native = nw.from_native(like, eager_only=True)
            built = nw.from_dict(_plain(columns), backend=native.implementation)
            return built.to_native()
        for backend in ("pandas", "polars", "pyarrow"):
            if find_spec(backend):
                return nw.from_dict(_plain(columns), backend=backend).to_native()
        raise ImportError("a table needs pandas, polars or pyarrow: pip install pandas")


def _plain(columns: dict[Any, Any]) -> dict[Any, Any]:
    return {name: np.ascontiguousarray(values) for name, values in columns.items()}


def _array(X: Any) -> NDArray[Any]:
    if sparse.issparse(X):
        raise DataError("X is sparse; a counterfactual is dense. Pass X.toarray().")
    values = np.asarray(X)
    if values.ndim == 1:
        raise DataError("X has one dimension; for one row pass X[None, :] or X.reshape(1, -1).")
    if values.ndim != 2:
        raise DataError(f"X has {values.ndim} dimensions; it needs rows and columns.")
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
    if not (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        raise DataError(
            f"column {name!r} holds {series.dtype}, not numbers; encode it first (OneHotEncoder)."
        )
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
