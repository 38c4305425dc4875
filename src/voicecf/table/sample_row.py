"""A row of a frame, stored as plain values from which the frame can be built again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

LIBRARIES = ("pandas", "polars", "pyarrow")
# Types that can be saved to a file.
PLAIN = (bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, np.datetime64,
         np.timedelta64, np.str_, np.bytes_)  # fmt: skip


@dataclass(frozen=True)
class SampleCell:
    """The value of one column in a row, with the column's type.

    Attributes
    ----------
    name : object
        The column's name.
    value : object
        None if it is missing. In a pandas column of objects a missing value stays as it is.
    type : str
        The column's type as narwhals names it, such as ``Float32``.
    native : str
        The type as pandas names it, such as ``Int64`` or ``category``; empty for other libraries.
    levels : tuple
        The levels of a categorical type that lists them.
    ordered : bool
        Whether the levels are in a meaningful order.
    """

    name: Any
    value: Any
    type: str
    native: str = ""
    levels: tuple[Any, ...] = ()
    ordered: bool = False

    @classmethod
    def of(cls, series: Any, needed: bool) -> SampleCell:
        """Read a series of length 1.

        A value that is not `needed` and not plain becomes None, in a column of text.
        """
        native = series.to_native()
        pandas_type = str(native.dtype) if series.implementation.is_pandas() else ""
        dated = isinstance(series.dtype, (nw.Datetime, nw.Date, nw.Duration))
        zoned = getattr(series.dtype, "time_zone", None) is not None
        (value,) = series.to_numpy() if dated and not zoned else series.to_list()
        if pandas_type != "object" and series.null_count():
            value = None
        if not (needed or is_plain(value)):
            return cls(series.name, None, "String", "object" if pandas_type else "")
        kind = type(series.dtype).__name__
        if pandas_type == "category":
            levels = tuple(native.cat.categories.tolist())
            return cls(series.name, value, kind, pandas_type, levels, bool(native.cat.ordered))
        levels = tuple(series.dtype.categories) if isinstance(series.dtype, nw.Enum) else ()
        return cls(series.name, value, kind, pandas_type, levels)

    def series(self, library: Any) -> Any:
        """Build a series of the column's type, or of the nearest type that the library has."""
        for build in (self._pandas_series, self._narwhals_series):
            try:
                return build(library)
            except Exception:  # each library has its own errors for a type that it lacks
                continue
        return nw.new_series(self.name, [self.value], backend=library)

    def _pandas_series(self, library: Any) -> Any:
        """Build a series of the pandas type; raise if there is none."""
        if library != "pandas" or not self.native:
            raise LookupError
        series = nw.new_series(self.name, [self.value], nw.Object, backend="pandas").to_native()
        if self.native == "category":
            series = series.astype("category").cat.set_categories(
                list(self.levels), ordered=self.ordered
            )
        return nw.from_native(series.astype(self.native), series_only=True)

    def _narwhals_series(self, library: Any) -> Any:
        """Build a series of the narwhals type; raise if the library lacks it."""
        if isinstance(self.value, np.generic):  # a date of numpy, whose type includes the unit
            return nw.new_series(self.name, np.array([self.value]), backend=library)
        dtype_class = getattr(nw, self.type)
        dtype = dtype_class(self.levels) if dtype_class is nw.Enum else dtype_class()
        if self.value is None and library == "pandas" and dtype.is_integer():
            dtype = nw.Float64()  # integers of numpy cannot be missing
        return nw.new_series(self.name, [self.value], backend=library).cast(dtype)


def cells_of(frame: Any, needed: set[Any]) -> list[SampleCell]:
    """Store a narwhals frame of one row; in other than the needed columns only plain values.

    Examples
    --------
    >>> import narwhals.stable.v2 as nw
    >>> import polars as pl
    >>> from voicecf.table.sample_row import cells_of
    >>> frame = nw.from_native(pl.DataFrame({"age": [30], "town": ["Rome"]}))
    >>> [(cell.value, cell.type) for cell in cells_of(frame, {"age"})]
    [(30, 'Int64'), ('Rome', 'String')]
    """
    return [SampleCell.of(frame.get_column(name), name in needed) for name in frame.columns]


def frame_of(cells: list[SampleCell], library: str) -> Any:
    """Return stored cells as a narwhals frame, of another library if theirs is not installed."""
    installed = [known for known in LIBRARIES if find_spec(known)]
    if not installed:
        raise ImportError(
            "this explainer was fitted on a frame and needs pandas, polars or pyarrow: "
            "pip install pandas"
        )
    library = library if library in installed else installed[0]
    columns = {cell.name: cell.series(library) for cell in cells}
    return nw.from_dict(columns)  # with a backend it would convert some types


def plain_row(array: NDArray[Any], needed: list[int]) -> NDArray[Any]:
    """Return an array of one row; values neither needed nor plain become None."""
    row = array.copy()
    if row.dtype == object:
        for c in set(range(row.shape[1])) - set(needed):
            row[0, c] = row[0, c] if is_plain(row[0, c]) else None
    return row


def is_plain(value: Any) -> bool:
    """Tell whether a value can be saved: None, numbers, text, and times without a time zone."""
    if getattr(value, "tzinfo", None) is not None:
        return False
    return value is None or type(value) in PLAIN or isinstance(value, (np.number, np.bool_))
