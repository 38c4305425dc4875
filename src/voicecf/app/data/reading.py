"""From the bytes of a file to a table, or to a sentence that says what is wrong with it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from voicecf.errors import VoiceError
from voicecf.files import Reading, Understood, open_source, sheet_names, understood
from voicecf.output import counted, opening

# Bytes of an upload, and values in a table, that are still pleasant to work with.
LARGEST_MB = 200
MOST_VALUES = 20_000_000
MOST_COLUMNS = 1_000
# Rows that are looked at, at once, for values that are no numbers.
AT_ONCE = 1 << 16
# How files begin, and the ends of their names, whatever they are called.
KINDS = {b"PAR1": ".parquet", b"PK\x03\x04": ".xlsx", b"\xd0\xcf\x11\xe0": ".xls"}
WORKBOOKS = (".xlsx", ".xls", ".ods")
OPEN_DOCUMENT = b"application/vnd.oasis.opendocument.spreadsheet"
ENDINGS = {
    ".csv": (".csv", ".tsv", ".txt"),
    ".parquet": (".parquet", ".pq"),
    ".xlsx": (".xlsx", ".xlsm"),
    ".xls": (".xls",),
    ".ods": (".ods",),
}
# How files begin that people take for tables, and what to do with them instead.
OTHER_KINDS = {
    b"\x1f\x8b": "compressed with gzip. Unpack it and upload the CSV inside",
    b"%PDF": "a PDF. Upload the table that it was made from, as CSV or Parquet",
    b"\x89PNG": "a picture, whatever its name says. Upload a CSV or Parquet file",
    b"\xff\xd8\xff": "a picture, whatever its name says. Upload a CSV or Parquet file",
    b"GIF8": "a picture, whatever its name says. Upload a CSV or Parquet file",
    b"SQLite format 3": "a database. Export one table as CSV and upload that",
    b"{": "JSON. Save the table as CSV, or use the command, which reads JSON",
    b"[{": "JSON. Save the table as CSV, or use the command, which reads JSON",
    b"<": "a web page or XML, whatever its name says. Save the table as Excel or CSV",
}


# What cells from the clipboard are called.
PASTED = "pasted table"


class ReadingError(VoiceError):
    """The file cannot be used; the message is a sentence for whoever uploaded it."""


@dataclass(frozen=True, eq=False)
class ReadTable:
    """A table that was read.

    Attributes
    ----------
    name : str
        What to call it: the file's name.
    frame : pandas.DataFrame
        Its rows; every column has a name of its own.
    notes : tuple of str
        What was understood or mended on the way, in sentences.
    digest : str
        Tells tables apart, so that they need not be compared.
    source : str
        Python that reads the same table.
    understood : tuple of Understood
        What each column was read as, beside what stands in the file.
    sheets : tuple of str
        The sheets of a workbook.
    dialect : (str, str)
        What parts the cells of a CSV file, and whole numbers from fractions.
    """

    name: str
    frame: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...]
    digest: str
    source: str = ""
    understood: tuple[Understood, ...] = ()
    sheets: tuple[str, ...] = ()
    dialect: tuple[str, str] = (",", ".")


def read_table(content: bytes, name: str, reading: Reading | None = None) -> ReadTable:
    r"""Read an uploaded file: CSV in most of its dialects, Excel, or Parquet; never a pickle.

    Parameters
    ----------
    content : bytes
    name : str
        The file's name; what the file is, its content tells.
    reading : Reading, optional
        What the user says about it: kinds of columns, texts that stand for no value.

    Raises
    ------
    ReadingError
        With a sentence that says what is wrong and what to do.

    Examples
    --------
    >>> from voicecf.app.data.reading import read_table
    >>> table = read_table(b"age;income\n31;2.500,5\n45;1.800,0\n", "people.csv")
    >>> table.frame["income"].tolist()
    [2500.5, 1800.0]
    """
    if len(content) > LARGEST_MB << 20:
        raise ReadingError(
            f"This file has {len(content) / 2**20:,.0f} MB; the app takes up to {LARGEST_MB} MB. "
            "Take a sample of its rows, or use the library, which has no such limit."
        )
    if not content.strip():
        raise ReadingError(
            "This file is empty. Upload a CSV, Excel or Parquet file with a row or more."
        )
    for beginning, kind in OTHER_KINDS.items():
        if content.startswith(beginning):
            raise ReadingError(f"This file is {kind}.")
    reading = reading or Reading()
    kind = _ending(content)
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"file{kind}"
        path.write_bytes(content)
        frame, notes, columns, delimiter = _read(path, reading)
        sheets = sheet_names(path) if kind in WORKBOOKS else ()
    source = _source(name if name.lower().endswith(ENDINGS[kind]) else name + kind, reading)
    filled = [i for i in range(frame.shape[1]) if not _is_empty(frame, i)]
    if len(filled) < frame.shape[1]:
        source += f".iloc[:, {filled}]"
        notes.append(f"{counted(frame.shape[1] - len(filled), 'empty column')} left out.")
    frame = frame.iloc[:, filled]
    _check_size(frame)
    digest = hashlib.sha256(content + repr(reading).encode()).hexdigest()
    columns = tuple(columns[i] for i in filled)
    comma = any("decimal comma" in column.kind for column in columns)
    dialect = (";" if comma and delimiter == "," else delimiter, "," if comma else ".")
    return ReadTable(name, frame, tuple(notes), digest, source, columns, sheets, dialect)


def _ending(content: bytes) -> str:
    """Return the kind of a file, as the end of a name."""
    if OPEN_DOCUMENT in content[:200]:
        return ".ods"
    return next((end for start, end in KINDS.items() if content.startswith(start)), ".csv")


def _source(name: str, reading: Reading) -> str:
    """Return Python that reads the same table."""
    said = [
        f", {part.name}={value!r}"
        for part in fields(reading)
        if (value := getattr(reading, part.name)) != getattr(Reading(), part.name)
    ]
    return f"open_source({name!r}{''.join(said)}).table().to_pandas(blank=True)"


def _read(
    path: Path, reading: Reading
) -> tuple[pd.DataFrame, list[str], tuple[Understood, ...], str]:
    """Read a file as the command does; what the command would refuse is refused here."""
    try:
        source = open_source(path, **{f.name: getattr(reading, f.name) for f in fields(reading)})
        work = path.with_suffix(".work")
        work.mkdir()
        table = source.table(work)
        columns = understood(source, table, work)
        delimiter = source.csv(work).first.delimiter if source.kind == "csv" else ","
    except VoiceError as error:
        raise ReadingError(_sentence(str(error), path)) from None
    if table.rejected:
        bad = table.rejected[0]
        remedy = "Complete the line, or delete it if it is a note"
        if "where there are" not in bad.why:
            remedy = "A text that holds a delimiter or a quote has to stand in quotes"
        raise ReadingError(f"{bad.place.capitalize()} of this file has {bad.why}. {remedy}.")
    wrong = sum(len(chunk.wrong) for chunk in table.parts(AT_ONCE))
    notes = [f"{opening(note)}." for note in table.notes]
    if wrong:
        rows = "1 row has a value" if wrong == 1 else f"{wrong:,} rows have values"
        notes.append(f"{rows} of another kind than the column, left blank.")
    return table.to_pandas(blank=True), notes, columns, delimiter


def _sentence(text: str, path: Path) -> str:
    """Return what the reader says, about an uploaded file rather than options of a command."""
    if path.suffix == ".parquet":
        return (
            "This file begins like Parquet, but cannot be read; it may be cut off. Write it again, "
            "or upload a CSV."
        )
    text = text.replace(str(path), "this file").replace(path.name, "this file")
    return opening(text)


def _is_empty(frame: pd.DataFrame, i: int) -> bool:
    return bool(re.fullmatch(r"column \d+", frame.columns[i])) and bool(
        frame.iloc[:, i].isna().all()
    )


def _check_size(frame: pd.DataFrame) -> None:
    rows, columns = frame.shape
    if rows == 0:
        raise ReadingError("This file has column names, but no rows under them that hold a value.")
    if columns > MOST_COLUMNS:
        raise ReadingError(
            f"This table has {columns:,} columns; the app takes up to {MOST_COLUMNS:,}. Leave out "
            "those that do not describe a segment."
        )
    if rows * columns > MOST_VALUES:
        raise ReadingError(
            f"This table has {rows:,} rows and {columns:,} columns, {rows * columns:,} values; the "
            f"app takes up to {MOST_VALUES:,}. Take a sample of its rows."
        )
