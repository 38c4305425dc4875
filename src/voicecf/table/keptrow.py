"""A row of a frame as plain values, and the frame again: in the library it came from, if it can."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

LIBRARIES = ("pandas", "polars", "pyarrow")
PLAIN = (bool, int, float, str, bytes, date, datetime, time, timedelta, Decimal, np.datetime64,
         np.timedelta64, np.str_, np.bytes_)  # fmt: skip


@dataclass(frozen=True)
class KeptCell:
    """The value of one column.

    Attributes
    ----------
    name : object
    value : object
        None where it is missing, unless the column holds objects: these are kept as they are.
    type : str
        Its type in the words of narwhals, such as ``Float32``.
    native : str
        In the words of pandas, such as ``Int64`` or ``category``; empty for other libraries.
    levels : tuple
        Of a category whose levels are known, in their order.
    ordered : bool
        Whether they have one.
    """

    name: Any
    value: Any
    type: str
    native: str = ""
    levels: tuple[Any, ...] = ()
    ordered: bool = False

    @classmethod
    def of(cls, series: Any, needed: bool) -> KeptCell:
        """Read a column of one row; what nobody needs may be lost if it is not plain."""
        native = series.to_native()
        word = str(native.dtype) if series.implementation.is_pandas() else ""
        dated = isinstance(series.dtype, (nw.Datetime, nw.Date, nw.Duration))
        (value,) = series.to_numpy() if dated and _is_zoneless(series) else series.to_list()
        if word != "object" and series.null_count():
            value = None
        if not (needed or is_plain(value)):
            value = None
        kind = type(series.dtype).__name__
        if word == "category":
            levels = tuple(native.cat.categories.tolist())
            return cls(series.name, value, kind, word, levels, bool(native.cat.ordered))
        levels = tuple(series.dtype.categories) if isinstance(series.dtype, nw.Enum) else ()
        return cls(series.name, value, kind, word, levels)

    def series(self, library: Any) -> Any:
        """Build the column again; of the nearest type that the library has, if not of its own."""
        for make in (self._of_pandas, self._typed):
            try:
                return make(library)
            except Exception:  # each library has errors of its own for a type that it lacks
                continue
        return nw.new_series(self.name, [self.value], backend=library)

    def _of_pandas(self, library: Any) -> Any:
        if library != "pandas" or not self.native:
            raise LookupError
        made = nw.new_series(self.name, [self.value], nw.Object, backend="pandas").to_native()
        if self.native == "category":
            made = made.astype("category").cat.set_categories(
                list(self.levels), ordered=self.ordered
            )
        return nw.from_native(made.astype(self.native), series_only=True)

    def _typed(self, library: Any) -> Any:
        if isinstance(self.value, np.generic):  # a date, which knows its unit
            return nw.new_series(self.name, np.array([self.value]), backend=library)
        known = getattr(nw, self.type)
        dtype = known(self.levels) if known is nw.Enum else known()
        if self.value is None and library == "pandas" and dtype.is_integer():
            dtype = nw.Float64()  # there is no whole number that says that it is missing
        return nw.new_series(self.name, [self.value], backend=library).cast(dtype)


@dataclass(frozen=True)
class KeptRow:
    """One row of a frame.

    Attributes
    ----------
    cells : list of KeptCell
    library : str
        What it was a frame of.
    """

    cells: list[KeptCell]
    library: str

    @classmethod
    def of(cls, frame: Any, needed: set[Any]) -> KeptRow:
        """Keep a narwhals frame of one row; only the columns needed must be kept whole.

        Examples
        --------
        >>> import narwhals.stable.v2 as nw
        >>> import polars as pl
        >>> from voicecf.table.keptrow import KeptRow
        >>> frame = nw.from_native(pl.DataFrame({"age": [30], "town": ["Rome"]}))
        >>> [(cell.value, cell.type) for cell in KeptRow.of(frame, {"age"}).cells]
        [(30, 'Int64'), ('Rome', 'String')]
        """
        cells = [KeptCell.of(frame.get_column(name), name in needed) for name in frame.columns]
        kept = cls(cells, str(frame.implementation.value))
        vars(kept)["frame"] = frame  # until it is saved, it need not be built
        return kept

    @cached_property
    def frame(self) -> Any:
        """The narwhals frame."""
        installed = [library for library in LIBRARIES if find_spec(library)]
        if not installed:
            raise ImportError(
                "this explainer was fitted on a frame and needs pandas, polars or pyarrow: "
                "pip install pandas"
            )
        library = self.library if self.library in installed else installed[0]
        columns = {cell.name: cell.series(library) for cell in self.cells}
        return nw.from_dict(columns)  # naming a backend would lose types


def plain_row(array: NDArray[Any], needed: list[int]) -> NDArray[Any]:
    """Return the first row of an array; objects that nobody needs may be lost."""
    kept = array[:1].copy()
    if kept.dtype == object:
        for i in set(range(kept.shape[1])) - set(needed):
            kept[0, i] = kept[0, i] if is_plain(kept[0, i]) else None
    return kept


def is_plain(value: Any) -> bool:
    """Tell whether a value can be saved: numbers, text, dates without a zone and their like."""
    if getattr(value, "tzinfo", None) is not None:
        return False
    return value is None or type(value) in PLAIN or isinstance(value, (np.number, np.bool_))


def _is_zoneless(series: Any) -> bool:
    return getattr(series.dtype, "time_zone", None) is None
