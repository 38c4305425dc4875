"""Tables as files that spreadsheets and programs open, and in which nothing is run."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import xlsxwriter
from pandas.api import types
from pyarrow import csv

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


def as_csv(frame: pd.DataFrame) -> bytes:
    r"""Write a table as CSV, such as spreadsheets read it.

    A text that a spreadsheet would compute gets an apostrophe in front; numbers stay numbers, and
    missing values stay empty.

    Examples
    --------
    >>> import pandas as pd
    >>> from voicecf.app.takeaway.tables import as_csv
    >>> as_csv(pd.DataFrame({"name": ["=1+1", "Ann"], "change": [-2.5, None]})).decode("utf-8-sig")
    '"name","change"\n"\'=1+1",-2.5\n"Ann",\n'
    """
    safe = pd.DataFrame({
        name: values if _is_number(values) else _texts(values).map(_harmless, na_action="ignore")
        for name, values in frame.items()
    })  # fmt: skip
    table = pa.Table.from_pandas(safe, preserve_index=False)
    file = BytesIO()
    csv.write_csv(table.rename_columns([_harmless(name) for name in safe]), file)
    return b"\xef\xbb\xbf" + file.getvalue()


def as_parquet(frame: pd.DataFrame) -> bytes:
    """Write a table as Parquet; columns of several types are written as text."""
    plain = pd.DataFrame({
        name: values if _is_number(values) or _is_moment(values) else _texts(values)
        for name, values in frame.items()
    })  # fmt: skip
    file = BytesIO()
    pyarrow.parquet.write_table(pa.Table.from_pandas(plain, preserve_index=False), file)
    return file.getvalue()


def as_xlsx(
    frame: pd.DataFrame, sheets: Mapping[str, pd.DataFrame] | None = None, name: str = "Rows"
) -> bytes:
    """Write tables as a workbook: a bold header that stays in sight, columns of readable width.

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
    options = {
        "constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False,
        "strings_to_numbers": False,
    }  # fmt: skip
    every = {name: frame, **(sheets or {})}
    for table in every.values():
        if len(table) > LONGEST:
            raise TableError(
                f"These are {len(table):,} lines; a sheet of Excel holds {LONGEST:,}. Take the CSV "
                "or the Parquet file, or ask for one target segment only."
            )
    with xlsxwriter.Workbook(file, options) as book:
        bold = book.add_format({"bold": True})
        for title, table in every.items():
            _write_sheet(book.add_worksheet(title), table, bold)
    return file.getvalue()


def _write_sheet(sheet: Any, table: pd.DataFrame, bold: Any) -> None:
    sheet.freeze_panes(1, 0)
    writers, columns = [], []
    for at, name in enumerate(table):
        values = table[name]
        shown = [str(name), *values.head(LOOKED_AT).dropna().map(str)]
        width = max(map(len, shown)) + 1
        sheet.set_column(at, at, min(max(width, NARROWEST), WIDEST))
        write, cells = _cells(sheet, values)
        writers.append(write)
        columns.append(cells)
    for at, name in enumerate(table):
        sheet.write_string(0, at, str(name)[:LETTERS], bold)
    # Line by line: what is written stays in memory no longer than its line.
    for line, written in enumerate(zip(*columns, strict=True), start=1):
        for at, (write, cell) in enumerate(zip(writers, written, strict=True)):
            if cell is not None:
                write(line, at, cell)


def _cells(sheet: Any, values: pd.Series) -> tuple[Callable[..., Any], list[Any]]:
    """Return what writes the cells of a column, and the cells; None for an empty one."""
    if types.is_bool_dtype(values.dtype):
        return sheet.write_boolean, _listed(values)
    if types.is_numeric_dtype(values.dtype):
        numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
        present = numbers[~np.isnan(numbers)]
        if not len(present) or np.abs(present).max() < WHOLE:
            return sheet.write_number, _listed(values)
    return sheet.write_string, [
        cell if cell is None else cell[:LETTERS] for cell in _listed(_texts(values))
    ]


def _listed(values: pd.Series) -> list[Any]:
    return [None if gap else v for v, gap in zip(values.tolist(), values.isna(), strict=True)]


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
