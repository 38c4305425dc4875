"""Tables as files that spreadsheets and programs open, and in which nothing is run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from pandas.api import types

from voicecf.errors import VoiceError

# Lines of a sheet under its header, letters of a cell, and the largest whole number that a
# spreadsheet keeps all digits of.
LONGEST, LETTERS, WHOLE = 1_048_575, 32_767, 10**15
# What browsers are told that a workbook is.
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
# How a text begins that a spreadsheet would compute, unless it is a number.
FORMULA = re.compile(r"(?![+-]?\d+([.,]\d+)?\Z)[=+\-@\t\r]")
# Lines that the width of a column is chosen by, and widths in letters.
LOOKED_AT, NARROWEST, WIDEST = 200, 8, 48


class TableError(VoiceError):
    """A table does not fit into the file that was asked for."""


def as_csv(frame: pd.DataFrame, delimiter: str = ",", decimal: str = ".") -> bytes:
    r"""Write a table as CSV, such as spreadsheets read it.

    A text that a spreadsheet would compute gets an apostrophe in front; numbers stay numbers, and
    missing values stay empty.

    Examples
    --------
    >>> import pandas as pd
    >>> from voicecf.app.takeaway.tables import as_csv
    >>> frame = pd.DataFrame({"name": ["=1+1", "Ann"], "change": [-2.5, None]})
    >>> as_csv(frame, ";", ",").decode("utf-8-sig")
    "name;change\r\n'=1+1;-2,5\r\nAnn;\r\n"
    """
    safe = {
        _harmless(name): values if _is_number(values) else _texts(values).map(_harmless, "ignore")
        for name, values in frame.items()
    }
    text = pd.DataFrame(safe).to_csv(
        index=False, sep=delimiter, decimal=decimal, lineterminator="\r\n"
    )
    return str(text).encode("utf-8-sig")


def as_parquet(frame: pd.DataFrame) -> bytes:
    """Write a table as Parquet; columns of several types are written as text."""
    file = BytesIO()
    plain = {n: v if _is_number(v) or _is_moment(v) else _texts(v) for n, v in frame.items()}
    pd.DataFrame(plain).to_parquet(file, index=False)
    return file.getvalue()


def as_xlsx(
    frame: pd.DataFrame, sheets: Mapping[str, pd.DataFrame] | None = None, name: str = "Rows"
) -> bytes:
    """Write tables as a workbook: a filter and a header that stays in sight, dates as dates.

    Texts are texts, whatever they begin with: there are no formulas and no links.

    Parameters
    ----------
    frame : pandas.DataFrame
        The first sheet.
    sheets : dict of str to pandas.DataFrame, optional
        Further sheets, by name.
    name : str
        The first sheet's name.

    Raises
    ------
    TableError
        If a table is longer than a sheet can be.
    """
    file = BytesIO()
    options = dict.fromkeys(["strings_to_formulas", "strings_to_urls", "strings_to_numbers"], False)
    how: dict[str, Any] = {"engine_kwargs": {"options": options}, "datetime_format": "yyyy-mm-dd"}
    with pd.ExcelWriter(file, engine="xlsxwriter", **how) as book:
        for title, table in {name: frame, **(sheets or {})}.items():
            if len(table) > LONGEST:
                raise TableError(
                    f"These are {len(table):,} lines; a sheet of Excel holds {LONGEST:,}. Take the "
                    "CSV or the Parquet file, or ask for one target segment only."
                )
            cells = pd.DataFrame({str(n)[:LETTERS]: _cells(v) for n, v in table.items()})
            cells.to_excel(book, sheet_name=title, index=False, freeze_panes=(1, 0))
            sheet = book.sheets[title]
            sheet.autofilter(0, 0, len(cells), max(cells.shape[1] - 1, 0))
            for at, column in enumerate(cells):
                widths = [len(column), *cells[column].head(LOOKED_AT).dropna().astype(str).map(len)]
                sheet.set_column(at, at, min(max(*widths, NARROWEST) + 3, WIDEST))
    return file.getvalue()


def _cells(values: pd.Series) -> pd.Series:
    """Return a column as a sheet can hold it: numbers, truth values, dates, or else texts."""
    if types.is_bool_dtype(values.dtype) or (_is_moment(values) and values.dt.tz is None):
        return values
    if _is_number(values):
        numbers = np.abs(values.to_numpy(dtype=np.float64, na_value=np.nan))
        if not np.isinf(numbers).any() and np.nanmax(numbers, initial=0.0) < WHOLE:
            return values
    return _texts(values).str[:LETTERS]


def _is_number(values: pd.Series) -> bool:
    return bool(types.is_numeric_dtype(values.dtype))


def _is_moment(values: pd.Series) -> bool:
    return bool(types.is_datetime64_any_dtype(values.dtype))


def _texts(values: pd.Series) -> pd.Series:
    """Return a column as texts, dates without a time; what is missing stays missing."""
    if _is_moment(values) and (values.dropna() == values.dropna().dt.normalize()).all():
        return values.dt.strftime("%Y-%m-%d").astype("string")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas asks for a type where all values are missing
        texts = values.astype(object).where(values.notna(), None)
    return texts.map(str, na_action="ignore").astype("string")


def _harmless(text: Any) -> str:
    text = str(text)
    return f"'{text}" if FORMULA.match(text) else text
