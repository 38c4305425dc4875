"""CSV files as DuckDB reads them: encoding, delimiter, header, and the line of every row."""

from __future__ import annotations

import csv
import gzip
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from glob import escape
from io import StringIO
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

from voicecf.errors import ColumnError, DataError, OptionError, listed
from voicecf.files.badrows import BadRow, Place
from voicecf.table.wording import counted

DELIMITERS = ",;\t|"
NEWLINES = ("\r\n", "\n", "\r")
# Most lines above a header that are taken for a title, and lines below a table for its foot.
TITLE, FOOT = 10, 5
TOTAL = re.compile(
    r"(grand |sub)?totals?|sum|summe|gesamt|gesamtsumme|insgesamt|somme|suma|totale|totaal", re.I
)
# A number, an amount or a date, as far as one can tell from a single cell.
VALUE = re.compile(
    r"[-+\u2212(]?\s*[$€£¥]?\s*[-+\u2212]?\d[\dEe.,'\u2019:/ T+-]*\s*([%$€£¥]|[A-Z]{3})?\)?"
)
# Share of the lines that a delimiter divides alike, below which spaces may be what separates.
REGULAR = 0.9
# Characters at the beginning from which delimiter and header are told, and lines after them: the
# first of these lines may be the end of a long header.
LOOKED_AT, SOME_LINES = 64_000, 20
# Encodings that need no transcoding, as DuckDB reads them.
UTF8 = ("utf-8", "utf8", "ascii")
WESTERN = "cp1252"
BOM = b"\xef\xbb\xbf"


# A header may be longer than the limit of Python, and is one field for all but one delimiter.
csv.field_size_limit(1 << 30)


def quoted(text: Any) -> str:
    """Return a text as a literal of SQL."""
    return "'" + str(text).replace("'", "''") + "'"


def listed_files(files: list[Path]) -> str:
    """Return files as a list of SQL, none of which is a pattern."""
    return f"[{', '.join(quoted(escape(str(file))) for file in files)}]"


@dataclass
class CsvFile:
    """A CSV file: how it is laid out, and how DuckDB reads it.

    Attributes
    ----------
    file : Path
    encoding : str
    copy : Path
        Where it is written again if it is not in UTF-8.
    delimiter : str
    skip : int
        Lines above the header.
    names : list of str
        As the header has them, or numbered where there is none.
    header : bool
        Whether there is a header.
    newline : str
        What ends a line.
    spaces : int
        If not 0, values are separated by so many spaces or more, which are read as tabs.
    foot : list of list of str
        Lines below the table: totals and notes.
    """

    file: Path
    encoding: str
    copy: Path
    delimiter: str
    skip: int
    names: list[str]
    header: bool
    newline: str
    spaces: int
    foot: list[list[str]]

    @classmethod
    def of(cls, file: Path, encoding: str, copy: Path, delimiter: str | None) -> CsvFile:
        """Look at the beginning of a file, and at its end."""
        with opened(file, encoding) as text:
            sample = text.read(LOOKED_AT) + "".join(islice(text, SOME_LINES))
        lines = list(StringIO(sample, newline=""))
        if not any(line.strip() for line in lines):
            raise DataError(f"{file.name} is empty; its first line must name the columns.")
        delimiter, spaces = (delimiter, 0) if delimiter else _delimiter(lines)
        lines = list(tabbed(lines, spaces))
        skip, first, below = _first_record(lines, delimiter)
        header = _is_header(first, below)
        if skip and not header:
            raise DataError(
                f"{file.name}, line {skip + 1}: numbers, and no names of columns above them. Give "
                "every column a name in the first line."
            )
        if len(first) == 1 and len(first[0]) > 200:
            raise DataError(
                f"{file.name} does not look like a table: no comma, semicolon, tab or bar "
                "separates values in its lines, nor do spaces divide all of them alike."
            )
        if len(first) == 1:
            _check_spaces(file, lines)
        names = first if header else [f"column {i}" for i in range(1, len(first) + 1)]
        last = tabbed(_last_lines(file, encoding), spaces)
        foot = _foot(last, delimiter, len(names), below) if len(below) > 1 else []
        newline = _newline(lines, delimiter)
        return cls(file, encoding, copy, delimiter, skip, names, header, newline, spaces, foot)

    @cached_property
    def path(self) -> Path:
        """The file in UTF-8: the user's own, or a copy."""
        if self.encoding.lower() in UTF8 and not self.spaces:
            return self.file
        try:
            with (
                opened(self.file, self.encoding) as text,
                self.copy.open("w", encoding="utf-8", newline="") as out,
            ):
                if self.spaces:
                    out.writelines(tabbed(text, self.spaces))
                shutil.copyfileobj(text, out, 1 << 22)
        except UnicodeError:
            raise wrong_encoding(self.file, self.encoding) from None
        return self.copy

    def sql(self) -> str:
        """Return SQL that reads the rows; DuckDB puts lines that are none into a table."""
        columns = ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(self.names)))
        filled = " or ".join(f"c{i} is not null" for i in range(len(self.names)))
        return (
            f"select * from read_csv({quoted(escape(str(self.path)))}, columns={{{columns}}}, "
            f"delim={quoted(self.delimiter)}, quote='\"', escape='\"', "
            f"new_line={self.newline!r}, header={self.header}, skip={self.skip}, "
            f"auto_detect=false, allow_quoted_nulls=false, store_rejects=true) "
            f"where ({filled}){_above(self.foot)}"
        )

    def places(self) -> Iterator[Place]:
        """Read the file again, and yield the line of every row, and of lines that are none."""
        with opened(self.file, self.encoding) as text:
            reader = csv.reader(tabbed(text, self.spaces), delimiter=self.delimiter)
            end, header = 0, self.header
            for record in reader:
                line, end = end + 1, reader.line_num
                if line <= self.skip or not any(record) or record in self.foot:
                    continue
                if not header:
                    yield self.file.name, f"line {line}"
                header = False

    def rejected(self, errors: list[tuple[str, int, str, str]]) -> list[BadRow]:
        """Return the lines that DuckDB rejected; an error is a path, position, kind and text."""
        here = sorted(error[1:] for error in errors if error[0] == str(self.path))
        lines = _lines(self.path, self.newline, [at for at, *_ in here])
        found: dict[int, BadRow] = {}
        for (_, *fault), line in zip(here, lines, strict=True):
            found.setdefault(line, BadRow(None, self.file.name, f"line {line}", _why(*fault)))
        return list(found.values())


def _delimiter(lines: list[str]) -> tuple[str, int]:
    """Find what separates values: a delimiter, or a tab for so many spaces or more."""
    scores = {mark: _regularity(lines, mark) for mark in DELIMITERS}
    best = max(DELIMITERS, key=lambda mark: scores[mark])
    if scores[best][0] < REGULAR and sum(bool(line.strip()) for line in lines) > 1:
        for spaces in (2, 1):
            if _regularity(list(tabbed(lines, spaces)), "\t")[0] == 1:
                return "\t", spaces
    return best, 0


def _check_spaces(file: Path, lines: list[str]) -> None:
    """Refuse lines that spaces divide, but not all alike: nobody can tell what belongs where."""
    widths = [len(re.split(r"[ \t]{2,}", line.strip())) for line in lines]
    counts = Counter(width for line, width in zip(lines, widths, strict=True) if line.strip())
    usual, often = counts.most_common(1)[0]
    if usual > 1 and often < counts.total():
        odd = next(i for i, line in enumerate(lines) if line.strip() and widths[i] != usual)
        raise DataError(
            f"{file.name}, line {odd + 1}: spaces divide it into {widths[odd]} where other lines "
            f"have {usual} values. Separate values with commas, semicolons or tabs."
        )


def tabbed(lines: Iterable[str], spaces: int) -> Iterator[str]:
    r"""Yield lines with a tab for so many spaces or more, but for those in quotes.

    Examples
    --------
    >>> from voicecf.files.text import tabbed
    >>> list(tabbed(["  31   New York  \n"], 2))
    ['31\tNew York\n']
    """
    runs = re.compile(rf'("(?:[^"]|"")*")|[ \t]{{{spaces},}}')
    for line in lines:
        if spaces:
            text = line.rstrip("\r\n")
            inner = runs.sub(lambda run: run[1] or "\t", text.strip())
            line = inner + line[len(text) :]
        yield line


def _regularity(lines: list[str], delimiter: str) -> tuple[float, int]:
    """Score a delimiter: the share of records that it divides alike, and into how many values."""
    counts = Counter(len(row) for row in csv.reader(lines, delimiter=delimiter) if row)
    width, often = max(counts.items(), key=lambda item: (item[0] > 1, item[1]))
    return (often / sum(counts.values()), width) if width > 1 else (0.0, 1)


def _first_record(lines: list[str], delimiter: str) -> tuple[int, list[str], list[list[str]]]:
    """Return how many lines are above the header, the header, and the records below it."""
    reader, before, records = csv.reader(lines, delimiter=delimiter), 0, []
    for record in reader:
        if any(cell.strip() for cell in record):
            records.append((before, record))
        before = reader.line_num
    counts = Counter(len(record) for _, record in records)
    width = max(counts, key=lambda width: (counts[width], width))
    titles = 0
    while titles < min(TITLE, len(records) - 1) and _is_title(records[titles][1], width):
        titles += 1
    if titles and _is_title(records[titles][1], width):
        titles = 0
    below = [record for _, record in records[titles + 1 :]]
    nameless = titles and not _is_header(records[titles][1], below)
    if nameless and len(records[titles - 1][1]) == width:  # a header with most names missing
        titles -= 1
    return *records[titles], [record for _, record in records[titles + 1 :]]


def _is_title(record: list[str], width: int) -> bool:
    """Tell whether a line above a table is a title: half empty, or with a value and not full."""
    filled = [cell for cell in record if cell.strip()]
    if width == 1 or len(filled) == width or not record[0].strip():
        return False
    return 2 * len(filled) <= width or any(map(_is_value, filled))


def _is_header(first: list[str], below: list[list[str]]) -> bool:
    """Tell whether the first record names the columns, rather than being a row like the others."""
    values = {i for i, cell in enumerate(first) if _is_value(cell)}
    texts = {i for i, cell in enumerate(first) if cell.strip()} - values
    if not values and not texts:
        return False
    rows = [record for record in below if len(record) == len(first)]
    if not values or not rows:
        return bool(texts)
    cells = {i: [row[i] for row in rows if row[i].strip()] for i in range(len(first))}
    of_values = {i for i, column in cells.items() if column and all(map(_is_value, column))}
    if texts and (texts & of_values or not values <= of_values):
        return True
    # Numbers may be names: years above values of another kind, or columns that are counted.
    numbers = [_whole(first[i]) for i in sorted(values)]
    counted = len(numbers) > 1 and all(a + 1 == b for a, b in pairwise(numbers))
    years = all(1900 <= n <= 2100 for n in numbers)
    below_too = all(1900 <= _whole(cell) <= 2100 for i in values for cell in cells[i])
    return (counted and (years or bool(texts))) or (bool(texts) and years and not below_too)


def _whole(cell: str) -> int:
    """Return a whole number, or -1 if a cell holds none."""
    return int(cell) if cell.strip().isdecimal() else -1


def _last_lines(file: Path, encoding: str) -> list[str]:
    """Return lines at the end of a file, the first of which may be cut off."""
    if file.suffix == ".gz":
        return []  # all of it would have to be unpacked
    with file.open("rb") as raw:
        raw.seek(max(file.stat().st_size - LOOKED_AT, 0))
        return raw.read().decode(encoding, "replace").splitlines()


def _foot(
    lines: Iterable[str], delimiter: str, width: int, rows: list[list[str]]
) -> list[list[str]]:
    """Return the records below a table, as wide as it: totals, and notes in the first column."""
    found: list[list[str]] = []
    for line in reversed(list(lines)):
        record = next(csv.reader([line], delimiter=delimiter), [])
        filled = [cell.strip() for cell in record if cell.strip()]
        if not filled:
            continue
        total = _is_total(record, filled, rows)
        note = width > 2 and len(filled) == 1 and record[0] and not _is_value(filled[0])
        if len(found) == FOOT or len(record) != width or not (total or note):
            break
        found.append(record)
    return found


def _is_total(record: list[str], filled: list[str], rows: list[list[str]]) -> bool:
    """Tell whether a line is called a total, and has empty cells or the sum of others."""
    if not TOTAL.fullmatch(filled[0].rstrip(": ")) or not any(map(_is_value, filled[1:])):
        return False
    if len(filled) < len(record):
        return True
    others = [row for row in rows if len(row) == len(record) and row != record]
    return any(
        _is_value(cell) and abs(sum(_amount(row[i]) for row in others) - _amount(cell)) < 0.01
        for i, cell in enumerate(record)
    )


def _amount(cell: str) -> float:
    """Return about what a number says, whatever signs it has; 0 for what is none."""
    whole, _, fraction = re.sub(r"[^\d.,-]", "", cell).replace(",", ".").rpartition(".")
    digits = whole.replace(".", "") + ("." * (len(fraction) != 3)) + fraction
    return float(digits) if re.fullmatch(r"-?\d*\.?\d+", digits) else 0.0


def _newline(lines: list[str], delimiter: str) -> str:
    """Return what ends the records, which may hold other line breaks in quotes."""
    reader = csv.reader(lines, delimiter=delimiter)
    ends = Counter(
        end for _ in reader for end in NEWLINES if lines[reader.line_num - 1].endswith(end)
    )
    return max(NEWLINES, key=lambda end: ends[end])


def _is_value(text: str) -> bool:
    """Tell whether a cell holds a number, an amount or a date, rather than a name."""
    return bool(VALUE.fullmatch(text.strip()))


def opened(file: Path, encoding: str) -> Any:
    """Open a text file, compressed or not."""
    encoding = "utf-8-sig" if encoding.lower() in UTF8 else encoding
    try:
        if file.suffix == ".gz":
            return gzip.open(file, "rt", encoding=encoding, newline="")
        return file.open(encoding=encoding, newline="")
    except LookupError:
        raise OptionError(f"--encoding {encoding} is not known; try latin-1.") from None


def encoding_of(file: Path, chosen: str | None) -> str:
    """Return the encoding that a file says or seems to have."""
    try:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rb") as raw:
            head = raw.read(LOOKED_AT)
    except (EOFError, gzip.BadGzipFile):
        raise DataError(f"{file.name} is no gzip file, or damaged; unpack it.") from None
    if chosen is not None:
        return chosen
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    if head.startswith(BOM):  # DuckDB does not see a quote behind it
        return "utf-8-sig"
    if b"\x00" in head:
        raise DataError(f"{file.name} holds no text, so it is no CSV file.")
    try:
        head[: head.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError:
        return WESTERN
    return "utf-8"


class CsvText:
    """CSV files, all with the columns of the first one, as text columns c0, c1, ... of DuckDB.

    Parameters
    ----------
    paths : list of Path
    folder : Path
        Where files in other encodings than UTF-8 are written again.
    delimiter, encoding : str, optional
        Told from the files if left out.
    known : list of str
        What is known about the files already, to be told with the rest.
    """

    def __init__(
        self, paths: list[Path], folder: Path, delimiter: str | None, encoding: str | None,
        known: Sequence[str] = (),
    ) -> None:  # fmt: skip
        if delimiter is not None and len(delimiter) != 1:
            raise OptionError(f"--delimiter {delimiter!r} must be one character.")
        self.known, self.folder, self.chosen, self.delimiter = known, folder, encoding, delimiter
        self.files: list[CsvFile] = []
        for i, path in enumerate(paths):
            used, copy = encoding_of(path, encoding), folder / f"input.{i}.csv"
            try:
                self.files.append(CsvFile.of(path, used, copy, delimiter))
            except UnicodeError:
                raise wrong_encoding(path, used) from None
            _check_header(self.files[-1], self.first)
        self.names = list(_unique(self.first.names))

    @property
    def first(self) -> CsvFile:
        """The first file; others may have other delimiters or ends of lines."""
        return self.files[0]

    @property
    def encodings(self) -> list[str]:
        """The encodings of the files, each once."""
        return list(dict.fromkeys(file.encoding for file in self.files))

    def in_western_encoding(self) -> CsvText:
        """Return the same files, read as Western European text; raise if the user chose another."""
        if self.chosen is not None or WESTERN in self.encodings:
            raise wrong_encoding(self.first.file, self.first.encoding)
        paths = [file.file for file in self.files]
        return CsvText(paths, self.folder, self.delimiter, WESTERN)

    def notes(self) -> Iterator[str]:
        """Tell what was understood beyond what the files say."""
        yield from self.known
        if WESTERN in self.encodings and self.chosen != WESTERN:
            yield "the text is not UTF-8 and was read as Western European (--encoding cp1252)"
        if self.first.skip:
            yield f"{counted(self.first.skip, 'line')} above the header left out"
        for file in self.files:
            for record in reversed(file.foot):
                yield f"{' '.join(filter(None, record))!r} below the table left out"
        if not self.first.header:
            yield "the first line holds numbers, not names: the columns were numbered"
        elif self.names != [name.strip() for name in self.first.names]:
            yield "some columns have no name, or that of another one: they got a number"

    def sql(self) -> str:
        """Return SQL that reads the rows of all files."""
        return f"({' union all '.join(file.sql() for file in self.files)})"


def _above(foot: list[list[str]]) -> str:
    """Return SQL that tells rows from the lines below a table."""
    tests = []
    for record in foot:
        cells = [
            f"c{i} is not distinct from {quoted(cell)}" for i, cell in enumerate(record) if cell
        ]
        tests.append(f" and not ({' and '.join(cells)})")
    return "".join(tests)


def _lines(path: Path, newline: str, positions: list[int]) -> Iterator[int]:
    """Yield the line of ascending positions: DuckDB counts records, which may be longer."""
    line, at = 1, 0
    with (gzip.open if path.suffix == ".gz" else open)(path, "rb") as file:
        for position in positions:
            while at < position and (block := file.read(min(position - at, 1 << 22))):
                line, at = line + block.count(newline[-1].encode()), at + len(block)
            yield line


def _why(kind: str, text: str) -> str:
    expected, _, found = text.removeprefix("Expected Number of Columns: ").partition(" Found: ")
    if kind == "MISSING COLUMNS":
        return f"{counted(int(found), 'value')} where there are {expected} columns"
    if kind == "TOO MANY COLUMNS":
        return f"more values than the {expected} columns"
    if kind == "UNQUOTED VALUE":
        return "a quote is opened and never closed, or something follows a closing quote"
    return text.splitlines()[0].rstrip(".")


def _unique(names: list[str]) -> Iterator[str]:
    """Yield the names, with a number where one is empty or there twice."""
    seen: set[str] = set()
    for place, name in enumerate(names, start=1):
        text = name.strip() or f"column {place}"
        unique, turn = text, 2
        while unique in seen:
            unique, turn = f"{text} ({turn})", turn + 1
        seen.add(unique)
        yield unique


def _check_header(file: CsvFile, first: CsvFile) -> None:
    if file.names != first.names:
        raise ColumnError(
            f"{file.file.name} has the columns {listed(file.names)}, {first.file.name} has "
            f"{listed(first.names)}; all files need the same, in the same order."
        )


def wrong_encoding(file: Path, encoding: str) -> DataError:
    """Return the error that a file is in another encoding."""
    return DataError(
        f"{file.name} is not encoded as {encoding}; give its encoding, such as --encoding latin-1."
    )
