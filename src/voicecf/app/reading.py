"""From the bytes of a file to a table, or to a sentence that says what is wrong with it."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from voicecf.errors import VoiceError
from voicecf.output.wording import counted

# Bytes of an upload, and values in a table, that are still pleasant to work with.
LARGEST_MB = 200
MOST_VALUES = 20_000_000
MOST_COLUMNS = 1_000
# Text that the delimiter, the decimal mark and the header are guessed from.
LOOKED_AT = 64_000
DELIMITERS = (",", ";", "\t", "|")
PARQUET = b"PAR1"
# How files begin that people take for tables, and what to do with them instead.
OTHER_KINDS = {
    b"PK\x03\x04": "a zip archive or an Excel workbook. Save the sheet as CSV and upload that",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook. Save the sheet as CSV and upload that",
    b"\x1f\x8b": "compressed with gzip. Unpack it and upload the CSV inside",
    b"%PDF": "a PDF. Upload the table that it was made from, as CSV or Parquet",
    b"\x89PNG": "a picture, whatever its name says. Upload a CSV or Parquet file",
    b"\xff\xd8\xff": "a picture, whatever its name says. Upload a CSV or Parquet file",
    b"GIF8": "a picture, whatever its name says. Upload a CSV or Parquet file",
    b"SQLite format 3": "a database. Export one table as CSV and upload that",
}
NUMBER_WITH_COMMA = re.compile(r"^\s*-?\d{1,3}(?:\.?\d{3})*,\d+\s*$")
NUMBER = re.compile(r"^\s*-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?\s*$")


class ReadingError(VoiceError):
    """The file cannot be used; the message is a sentence for whoever uploaded it."""


@dataclass(frozen=True, eq=False)
class Table:
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
        Python that reads the same table,
    renamed : bool
        but for the names of its columns.
    """

    name: str
    frame: pd.DataFrame = field(repr=False)
    notes: tuple[str, ...]
    digest: str
    source: str = ""
    renamed: bool = False


def read_table(content: bytes, name: str) -> Table:
    r"""Read an uploaded file: CSV in most of its dialects, or Parquet. Nothing is ever unpickled.

    Parameters
    ----------
    content : bytes
    name : str
        The file's name; what the file is, its content tells.

    Raises
    ------
    ReadingError
        With a sentence that says what is wrong and what to do.

    Examples
    --------
    >>> from voicecf.app.reading import read_table
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
        raise ReadingError("This file is empty. Upload a CSV or Parquet file with a row or more.")
    for beginning, kind in OTHER_KINDS.items():
        if content.startswith(beginning):
            raise ReadingError(f"This file is {kind}.")
    reader = _read_parquet if content.startswith(PARQUET) else _read_csv
    frame, notes, source = reader(content, name)
    kept = _worth_keeping(frame)
    if len(kept) < frame.shape[1]:
        source += f".iloc[:, {kept}]"
        notes.append(f"{counted(frame.shape[1] - len(kept), 'empty column')} left out.")
    frame = frame.iloc[:, kept]
    if any(_is_blank(name) and not isinstance(name, int) for name in frame.columns):
        notes.append("Columns without a name were numbered.")
    _check_size(frame)
    names = list(_names(frame.columns))
    renamed = names != list(frame.columns)
    digest = hashlib.sha256(content).hexdigest()
    return Table(name, frame.set_axis(names, axis=1), tuple(notes), digest, source, renamed)


def _check_size(frame: pd.DataFrame) -> None:
    rows, columns = frame.shape
    if rows == 0:
        raise ReadingError("This file has column names, but no rows under them.")
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


# Parquet


def _read_parquet(content: bytes, name: str) -> tuple[pd.DataFrame, list[str], str]:
    import pyarrow
    from pyarrow import parquet

    try:
        table = parquet.read_table(io.BytesIO(content))
        frame = table.to_pandas(ignore_metadata=True)
    except (pyarrow.ArrowException, OSError, ValueError, NotImplementedError):
        raise ReadingError(
            "This file begins like Parquet, but cannot be read; it may be cut off. Write it again, "
            "or upload a CSV."
        ) from None
    return frame, [], f"pd.read_parquet({name!r})"


# CSV


def _read_csv(content: bytes, name: str) -> tuple[pd.DataFrame, list[str], str]:
    encoding = _encoding(content)
    text = content.decode(encoding)
    sample = _sample(text)
    dialect = _dialect(sample)
    options: dict[str, Any] = {"sep": dialect.delimiter}
    notes = []
    if encoding not in ("utf-8", "utf-8-sig"):
        options["encoding"] = encoding
        notes.append(f"Read as {ENCODINGS[encoding]} text.")
    if dialect.comma:
        options |= {"decimal": ",", "thousands": "."}
        notes.append("Numbers are written with a decimal comma.")
    if not dialect.header:
        options["header"] = None
        notes.append("The first line holds numbers, not names: columns were numbered.")
    frame = _parsed(text, options, dialect)
    if dialect.header and _twice(sample, dialect.delimiter):
        notes.append("Some columns had the same name; a number was added.")
    spelt = "".join(f", {k}={v!r}" for k, v in options.items() if (k, v) != ("sep", ","))
    return frame, notes, f"pd.read_csv({name!r}{spelt})"


ENCODINGS = {"utf-16": "UTF-16", "cp1252": "Western European (Windows)"}


def _encoding(content: bytes) -> str:
    """Tell how the text is encoded, or refuse what is no text."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if b"\x00" in content[:LOOKED_AT] or content[:1] == b"\x80":
        raise ReadingError(
            "This file holds no text, so it is no CSV, and it is no Parquet either. Upload one of "
            "these two."
        )
    encoding = "utf-8-sig" if content.startswith(b"\xef\xbb\xbf") else "utf-8"
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        encoding = "cp1252"
    try:
        content.decode(encoding)
    except UnicodeDecodeError:
        raise ReadingError(
            "The text of this file is neither UTF-8 nor Western European. Save it again as UTF-8."
        ) from None
    return encoding


@dataclass(frozen=True)
class Dialect:
    """How a CSV is written: what separates values, decimal commas, and whether names come first."""

    delimiter: str
    comma: bool
    header: bool


def _sample(text: str) -> list[str]:
    """Return the first lines, the last one whole."""
    lines = text[:LOOKED_AT].splitlines()
    if len(text) > LOOKED_AT and len(lines) > 1:
        lines = lines[:-1]
    return [line for line in lines if line.strip()]


def _dialect(lines: list[str]) -> Dialect:
    delimiter = max(DELIMITERS, key=lambda mark: _regularity(lines, mark))
    rows = list(csv.reader(lines, delimiter=delimiter))
    if max(map(len, rows)) < 2 and len(rows[0][0]) > 200:
        raise ReadingError(
            "This does not look like a table: no comma, semicolon, tab or bar separates values in "
            "its lines. Upload a CSV or Parquet file."
        )
    cells = [cell for row in rows[1:] for cell in row if cell.strip()]
    comma = delimiter != "," and any(NUMBER_WITH_COMMA.match(cell) for cell in cells)
    header = not all(NUMBER.match(cell) for cell in rows[0])
    return Dialect(delimiter, comma, header)


def _regularity(lines: list[str], mark: str) -> tuple[float, int]:
    """Score a delimiter: the share of lines that it divides alike, and into how many values."""
    counts = Counter(len(row) for row in csv.reader(lines, delimiter=mark))
    width, often = max(counts.items(), key=lambda item: (item[0] > 1, item[1]))
    return (often / len(lines), width) if width > 1 else (0.0, 1)


def _parsed(text: str, options: dict[str, Any], dialect: Dialect) -> pd.DataFrame:
    reading = {key: value for key, value in options.items() if key != "encoding"}
    try:
        return pd.read_csv(io.StringIO(text), **reading, index_col=False, low_memory=False)
    except pd.errors.ParserError as error:
        found = re.search(r"Expected (\d+) fields in line (\d+), saw (\d+)", str(error))
        if found:
            raise ReadingError(
                f"Line {int(found[2]):,} of this file has {found[3]} values where the lines before "
                f"have {found[1]}. A text that holds a {_mark(dialect)} has to stand in quotes."
            ) from None
    except (pd.errors.EmptyDataError, ValueError, OverflowError):
        pass
    raise ReadingError(
        "This file cannot be read as a table: a quote is opened and never closed, or it is cut off."
    )


def _mark(dialect: Dialect) -> str:
    return {",": "comma", ";": "semicolon", "\t": "tab", "|": "bar"}[dialect.delimiter]


def _twice(lines: list[str], delimiter: str) -> bool:
    names = next(csv.reader(lines, delimiter=delimiter))
    return len(set(names)) < len(names)


# Names


def _worth_keeping(frame: pd.DataFrame) -> list[int]:
    """Return the places of columns that hold a name or a value."""
    names = enumerate(frame.columns)
    return [i for i, name in names if not (_is_blank(name) and frame.iloc[:, i].isna().all())]


def _is_blank(name: Any) -> bool:
    text = str(name)
    return isinstance(name, int) or not text.strip() or bool(re.fullmatch(r"Unnamed: \d+", text))


def _names(given: Any) -> Iterator[str]:
    seen: set[str] = set()
    for place, name in enumerate(given, start=1):
        text = f"column {place}" if _is_blank(name) else str(name).strip()
        unique, turn = text, 2
        while unique in seen:
            unique, turn = f"{text} ({turn})", turn + 1
        seen.add(unique)
        yield unique
