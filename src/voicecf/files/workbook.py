"""Sheets of Excel and OpenDocument workbooks, written as CSV so that all tables are read alike."""

from __future__ import annotations

import csv
from datetime import date, datetime, time, timedelta
from pathlib import Path
from typing import Any

from voicecf.errors import DataError, OptionError, likely

# What an Excel file that needs a password holds, whatever its name says.
LOCKED = "EncryptedPackage".encode("utf-16-le")


def write_sheet(file: Path, sheet: str | None, output: Path) -> str:
    """Write a sheet as CSV, line by line where it has rows, and return what to tell the user.

    Parameters
    ----------
    file : Path
        .xlsx, .xls or .ods.
    sheet : str, optional
        Its name; else the one with the most cells is taken.
    output : Path
    """
    book = _opened(file)
    if sheet is not None and sheet not in book.sheet_names:
        raise OptionError(f"{file.name} has no sheet {sheet!r}; {likely(sheet, book.sheet_names)}")
    try:
        sheets = [
            book.get_sheet_by_name(name)
            for name in (book.sheet_names if sheet is None else [sheet])
        ]
    except Exception as error:  # calamine has one for each part of a file that may be damaged
        raise DataError(_damaged(file, error)) from None
    largest = max(sheets, key=lambda one: one.height * one.width, default=None)
    if largest is None or not largest.height:
        raise DataError(f"{file.name} has no cells; save the workbook with a table in it.")
    part = output.with_name(output.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as text:
        writer = csv.writer(text, lineterminator="\n")
        for row in largest.to_python(skip_empty_area=False):
            writer.writerow(map(_cell, row))
    part.replace(output)
    if len(book.sheet_names) == 1:
        return ""
    return f"the sheet {largest.name!r} was read, of {len(book.sheet_names)} sheets"


def sheet_names(file: Path) -> tuple[str, ...]:
    """Return what the sheets of a workbook are called.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import xlsxwriter
    >>> from voicecf.files import sheet_names
    >>> with TemporaryDirectory() as folder:
    ...     with xlsxwriter.Workbook(f"{folder}/sales.xlsx") as book:
    ...         _ = book.add_worksheet("2024"), book.add_worksheet("2025")
    ...     sheet_names(Path(folder) / "sales.xlsx")
    ('2024', '2025')
    """
    return tuple(_opened(file).sheet_names)


def _opened(file: Path) -> Any:
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise ImportError("workbooks need python-calamine: pip install 'voicecf[files]'") from None
    try:
        return CalamineWorkbook.from_path(file)
    except (CalamineError, OSError) as error:
        if LOCKED in file.read_bytes():
            raise DataError(
                f"{file.name} is locked with a password. Save it without one, or save the sheet "
                "as CSV."
            ) from None
        raise DataError(_damaged(file, error)) from None


def _damaged(file: Path, error: Exception) -> str:
    cause = str(error).rstrip(".")
    return f"{file.name} is no workbook, or a damaged one ({cause}). Save it again, or as CSV."


def _cell(value: Any) -> str:
    """Write a value so that it is read again as it was: dates as ISO has them, numbers in full."""
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    if isinstance(value, (date, datetime, time)):
        return value.isoformat()
    if isinstance(value, timedelta):
        return str(value.total_seconds())
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value).lower() if isinstance(value, bool) else str(value)
