"""CSV files: delimiters, types, and the line of every row that cannot be read."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from numpy.typing import NDArray

from voicecf.errors import ColumnError, DataError, OptionError, listed
from voicecf.files.badrows import SHOWN, BadRow
from voicecf.files.reading import Chunk, Source

__all__ = ["CsvFiles"]

DELIMITERS = ",;\t|"
# What stands for no value in a column of numbers.
GAPS = ["", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "-", "?"]
# Rows at the beginning that tell numbers from text, and the share of numbers that makes a column
# one of numbers with some bad rows in it, rather than one of text.
HEAD, MOSTLY = 1 << 16, 0.95
BLOCK = 1 << 22
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
PADDED = r"^[+-]?0\d"


class CsvFiles(Source):
    """Rows of CSV files, all with the columns of the first one.

    Parameters
    ----------
    files : list of Path
    delimiter : str, optional
        Told from the first line if left out: one of comma, semicolon, tab and bar.
    decimal : str
        "." or ",".
    encoding : str
    kinds : dict of str to str, optional
        The type of each column: "int64", "double" or "string". If left out, the first rows tell
        numbers from text, and all rows tell whole numbers from others.
    categories : list of str
        Columns that are text, whatever they look like.
    """

    def __init__(
        self,
        files: list[Path],
        *,
        delimiter: str | None = None,
        decimal: str = ".",
        encoding: str = "utf-8",
        kinds: dict[str, str] | None = None,
        categories: Any = (),
    ) -> None:
        self.files, self.decimal, self.encoding = files, decimal, encoding
        self.delimiter = delimiter or self._sniffed(files[0])
        if len(self.delimiter) != 1 or self.delimiter == decimal:
            raise OptionError(
                f"--delimiter {self.delimiter!r} must be one character, and not the decimal point."
            )
        self.names = self._header(files[0])
        for file in files[1:]:
            _check_header(self._header(file), self.names, file, files[0])
        self.schema = pa.schema([(name, pa.string()) for name in self.names])
        if kinds is None:
            kinds = self._told(list(categories))
        self.schema = pa.schema([(name, _TYPES[kinds.get(name, "string")]) for name in self.names])

    @property
    def total(self) -> int | None:
        """A guess, from how many lines there are in the first bytes; None if compressed."""
        if any(file.suffix == ".gz" for file in self.files):
            return None
        with self.files[0].open("rb") as opened:
            head = opened.read(BLOCK)
        lines = head.count(b"\n") + (not head.endswith(b"\n"))
        sizes = sum(file.stat().st_size for file in self.files)
        return max(round(sizes / max(len(head), 1) * lines) - len(self.files), 1)

    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Read rows, from number `start` on."""
        first = 0
        for file in self.files:
            for part in self._records(file):
                end = first + part.end
                if end > start:
                    yield self._typed(part, file, first).between(start, end)
            first = end

    def _typed(self, part: _Records, file: Path, first: int) -> Chunk:
        """Give strings their types; what has none of its column's goes to the bad rows."""
        columns: list[Any] = []
        cells: dict[int, tuple[str, str, str]] = {}
        for name, strings in zip(self.names, part.strings.columns, strict=True):
            values, wrong = _converted(strings, self.schema.field(name).type, self.decimal)
            columns.append(values)
            for i, why in wrong.items():
                text = str(strings[i].as_py())
                cells.setdefault(i, (name, text[:SHOWN], f"{text[:SHOWN]!r} {why}"))
        table = pa.Table.from_arrays(columns, schema=self.schema)
        numbers = part.numbers + first
        bad = tuple(
            BadRow(record + first, file.name, f"line {line}", "", text[:SHOWN], why)
            for record, line, text, why in part.bad
        )
        chunk = Chunk(table, numbers, file.name, part.lines, first + part.end, bad, "line")
        return chunk.without(cells)

    def _records(self, file: Path) -> Iterator[_Records]:
        """Read a file as strings, and tell the number and line of each record."""
        faults = _Faults()
        reader = self._reader(file, faults)
        at, line, batch = 0, self._header_lines(file) + 1, None
        while True:
            try:
                batch = None if reader is None else reader.read_next_batch()
            except StopIteration:
                batch = None
            except (pa.ArrowInvalid, UnicodeDecodeError) as error:
                raise DataError(_unreadable(file, at, self.encoding, error)) from None
            part = _Records.of(batch, self.names, faults, at, line)
            at, line = part.end, part.next_line
            yield part.without_blank()
            if batch is None:
                return

    def _reader(self, file: Path, faults: _Faults) -> Any:
        strings = {name: pa.string() for name in self.names}
        try:
            return pacsv.open_csv(
                pa.input_stream(str(file)),
                # One thread: only then is the number of a bad record known.
                pacsv.ReadOptions(block_size=BLOCK, use_threads=False, encoding=self.encoding),
                pacsv.ParseOptions(
                    delimiter=self.delimiter, newlines_in_values=True, ignore_empty_lines=False,
                    invalid_row_handler=faults.note,
                ),
                pacsv.ConvertOptions(
                    column_types=strings, strings_can_be_null=True, null_values=[""],
                    quoted_strings_can_be_null=False,
                ),
            )  # fmt: skip
        except (pa.ArrowInvalid, UnicodeDecodeError) as error:
            if "Empty CSV" in str(error):
                return None
            raise DataError(_unreadable(file, 0, self.encoding, error)) from None

    def _opened(self, file: Path) -> TextIO:
        encoding = "utf-8-sig" if self.encoding.lower() in ("utf-8", "utf8") else self.encoding
        try:
            if file.suffix == ".gz":
                return gzip.open(file, "rt", encoding=encoding, newline="")
            return file.open(encoding=encoding, newline="")
        except LookupError:
            raise OptionError(f"--encoding {self.encoding} is not known; try latin-1.") from None

    def _sniffed(self, file: Path) -> str:
        """Tell the delimiter by what the first line has most of, quotes aside."""
        with self._opened(file) as opened:
            try:
                line = opened.readline(BLOCK)
            except UnicodeDecodeError as error:
                raise DataError(_unreadable(file, 0, self.encoding, error)) from None
        bare = "".join(line.split('"')[::2])
        return max(DELIMITERS, key=bare.count) if any(d in bare for d in DELIMITERS) else ","

    def _header(self, file: Path) -> list[str]:
        with self._opened(file) as opened:
            try:
                names = next(csv.reader(opened, delimiter=self.delimiter), [])
            except UnicodeDecodeError as error:
                raise DataError(_unreadable(file, 0, self.encoding, error)) from None
        if not names:
            raise DataError(f"{file} is empty; its first line must name the columns.")
        twice = dict.fromkeys(name for name in names if names.count(name) > 1)
        if twice:
            raise ColumnError(f"{file}: column names must differ; named twice: {listed(twice)}.")
        return names

    def _header_lines(self, file: Path) -> int:
        return 1 + sum(name.count("\n") for name in self._header(file))

    def _told(self, categories: list[str]) -> dict[str, str]:
        """Tell the types: numbers or text by the first rows, whole or not by all of them."""
        head = self._head()
        numbers = [
            name
            for name in self.names
            if name not in categories and _is_number(head[name], self.decimal)
        ]
        whole = set(numbers)
        for file in self.files:
            for part in self._records(file):
                whole -= {n for n in whole if not _all_whole(part.strings[n])}
        return {name: "int64" if name in whole else "double" for name in numbers}

    def _head(self) -> pa.Table:
        parts = (part.strings for file in self.files for part in self._records(file))
        found, rows = [], 0
        for strings in islice(parts, 64):
            found.append(strings)
            rows += strings.num_rows
            if rows >= HEAD:
                break
        return pa.concat_tables(found).slice(0, HEAD)


_TYPES = {"int64": pa.int64(), "double": pa.float64(), "string": pa.string()}


@dataclass
class _Faults:
    """Records with too many or too few fields, as the parser met them."""

    found: list[tuple[int, str, str]] = field(default_factory=list)

    def note(self, row: Any) -> str:
        """Keep one; called by the parser."""
        why = f"{row.actual_columns} fields where there are {row.expected_columns} columns"
        self.found.append((row.number - 2, row.text, why))
        return "skip"


@dataclass(frozen=True)
class _Records:
    """Some records of a file as strings.

    Attributes
    ----------
    strings : pyarrow.Table
    numbers, lines : array of int
        Of each record: its number in the file, from 0, and its line, from 1.
    end, next_line : int
        Of the record that comes next.
    bad : list of (number, line, text, why)
    """

    strings: pa.Table
    numbers: NDArray[np.int64]
    lines: NDArray[np.int64]
    end: int
    next_line: int
    bad: list[tuple[int, int, str, str]]

    @classmethod
    def of(cls, batch: Any, names: list[str], faults: _Faults, at: int, line: int) -> _Records:
        """Count records from `at` on, around those that the parser left out.

        Without a batch the file is at its end, and only such records are left.
        """
        count = 0 if batch is None else batch.num_rows
        lost = np.array([number for number, _, _ in faults.found], dtype=np.int64)
        numbers = np.setdiff1d(np.arange(at, at + count + len(lost)), lost)[:count]
        end = int(numbers[-1]) + 1 if count else at
        if batch is None:
            end = max(end, int(lost.max(initial=at - 1)) + 1)
        ours = [fault for fault in faults.found if fault[0] < end]
        faults.found = [fault for fault in faults.found if fault[0] >= end]
        height = np.ones(end - at, dtype=np.int64)
        if count:
            height[numbers - at] += _newlines(batch)
        for number, text, _ in ours:
            height[number - at] += text.count("\n")
        lines = line + np.concatenate([[0], np.cumsum(height)])
        bad = [(number, int(lines[number - at]), text, why) for number, text, why in ours]
        batches = [] if batch is None else [batch]
        table = pa.Table.from_batches(batches, pa.schema([(name, pa.string()) for name in names]))
        return cls(table, numbers, lines[numbers - at], end, int(lines[-1]), bad)

    def without_blank(self) -> _Records:
        """Return the records without blank lines."""
        blank = np.ones(len(self.numbers), dtype=np.bool_)
        for column in self.strings.columns:
            blank &= np.asarray(column.is_null(), dtype=np.bool_)
            if not blank.any():
                return self
        kept = ~blank
        table = self.strings.filter(pa.array(kept))
        return _Records(
            table, self.numbers[kept], self.lines[kept], self.end, self.next_line, self.bad
        )


def _newlines(batch: Any) -> NDArray[np.int64]:
    """Count the line breaks within each record."""
    found = np.zeros(batch.num_rows, dtype=np.int64)
    for column in batch.columns:
        counts = pc.count_substring(column, "\n")
        if pc.max(counts).as_py():
            found += np.asarray(pc.fill_null(counts, 0))
    return found


def _converted(strings: Any, kind: Any, decimal: str) -> tuple[Any, dict[int, str]]:
    """Return a column of strings with its type, and why some of them have none such."""
    if pa.types.is_string(kind):
        return strings, {}
    strings = _trimmed(strings, decimal)
    try:
        return strings.cast(kind), {}
    except pa.ArrowInvalid:
        return _converted_one_by_one(strings, kind)


def _converted_one_by_one(strings: Any, kind: Any) -> tuple[Any, dict[int, str]]:
    strings = strings.combine_chunks() if isinstance(strings, pa.ChunkedArray) else strings
    usual = pc.match_substring_regex(strings, NUMBER)
    plus = pc.starts_with(strings, "+")
    usual = pc.fill_null(pc.and_(usual, pc.invert(plus)), True)
    values = pc.if_else(usual, strings, pa.scalar(None, pa.string())).cast(pa.float64())
    numbers = np.array(values.to_numpy(zero_copy_only=False))
    missing = np.asarray(strings.is_null(), dtype=np.bool_)
    wrong: dict[int, str] = {}
    for i in np.flatnonzero(~np.asarray(usual, dtype=np.bool_)).tolist():
        try:
            numbers[i] = _number(strings[i].as_py())
        except ValueError:
            wrong[i] = "is no number"
    if pa.types.is_integer(kind):
        whole = (numbers == np.rint(numbers)) & (np.abs(numbers) < 2.0**63)
        for i in np.flatnonzero(~missing & ~whole).tolist():
            wrong.setdefault(i, "is no whole number")
    gaps = missing.copy()
    gaps[list(wrong)] = True
    numbers[gaps] = 0.0
    return pa.array(numbers.astype(kind.to_pandas_dtype()), mask=gaps), wrong


def _number(text: str) -> float:
    if "_" in text:
        raise ValueError
    return float(text)


def _trimmed(strings: Any, decimal: str) -> Any:
    """Return numbers without blanks around them, with a point, and null where there is none."""
    strings = pc.utf8_trim_whitespace(strings)
    if decimal != ".":
        strings = pc.replace_substring(strings, decimal, ".")
    gaps = pc.is_in(strings, value_set=pa.array(GAPS))
    return pc.if_else(gaps, pa.scalar(None, pa.string()), strings)


def _is_number(strings: Any, decimal: str) -> bool:
    """Tell whether a column is of numbers, perhaps with some bad rows in it."""
    strings = _trimmed(strings, decimal).drop_null()
    if not len(strings):
        return False
    if pc.any(pc.match_substring_regex(strings, PADDED)).as_py():
        return False  # 00713 is a code
    fits = pc.sum(pc.match_substring_regex(strings, NUMBER)).as_py()
    return bool(fits >= MOSTLY * len(strings))


def _all_whole(strings: Any) -> bool:
    trimmed = _trimmed(strings, ".")
    try:
        trimmed.cast(pa.int64())
    except pa.ArrowInvalid:
        return not pc.any(pc.match_substring_regex(trimmed, r"[.eE,]|\d{19}")).as_py()
    return True


def _check_header(names: list[str], wanted: list[str], file: Path, first: Path) -> None:
    if names != wanted:
        raise ColumnError(
            f"{file} has the columns {listed(names)}, {first} has {listed(wanted)}; all files need "
            "the same, in the same order."
        )


def _unreadable(file: Path, record: int, encoding: str, error: Exception) -> str:
    text = str(error)
    if isinstance(error, UnicodeDecodeError) or "UTF8" in text or "decode" in text:
        return (
            f"{file} is not encoded as {encoding}, after line {record + 1} or so; say how it is, "
            "such as --encoding latin-1."
        )
    return f"{file} cannot be read after line {record + 1} or so: {text}."
