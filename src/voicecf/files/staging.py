"""Whatever DuckDB reads, brought into one Parquet file: CSV, JSON, databases and queries."""

from __future__ import annotations

import errno
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import duckdb

from voicecf.errors import DataError, known_column
from voicecf.files.badrows import BadRow
from voicecf.files.folder import read_json
from voicecf.files.kinds import Deciding, Notation
from voicecf.files.text import CsvText, quoted
from voicecf.saving.whole import write_whole

# Rows at the beginning of CSV files by which the kinds of columns are decided. If a later row
# contradicts, they are decided by all rows.
HEAD = 1 << 16
COPY = "(format parquet, compression snappy, row_group_size 131072)"


@dataclass(frozen=True)
class Reading:
    """How CSV files are to be read; what is None is found out.

    Attributes
    ----------
    delimiter : str, optional
        One character.
    decimal : str
        "." or "," for all columns; "auto" finds it out for each.
    encoding : str, optional
        Any that Python knows.
    kinds : dict of str to str
        What columns hold: "text", "number", "number with decimal comma", "money in $", "per cent",
        "date, day first" and so on; "int64" or "double" for numbers however they are written. Of
        columns that are not named, it is found out.
    gaps : dict of str to list of str
        Texts that stand for no value, by column, such as ``{"income": ["-999"]}``.
    sheet : str, optional
        The sheet of a workbook; else the one with the most cells.

    Examples
    --------
    >>> from voicecf.files import Reading
    >>> Reading(decimal=",", gaps={"income": ["-999"]}).gaps
    {'income': ['-999']}
    """

    delimiter: str | None = None
    decimal: str = "auto"
    encoding: str | None = None
    kinds: dict[str, str] = field(default_factory=dict)
    gaps: dict[str, list[str]] = field(default_factory=dict)
    sheet: str | None = None


@dataclass(frozen=True)
class Staged:
    """What is known about a table besides its values.

    A table that is no Parquet file is brought into one, with columns c0, c1, ... and, if it was
    CSV, `fault`.

    Attributes
    ----------
    names : list of str
        The user's names of the columns.
    notes : list of str
        What was understood beyond what the input says.
    rejected : list of BadRow
        Lines that are no rows.
    encoding : str or None
        Of CSV files, if it was found out.
    empty : list of str
        Columns without any value.
    words : list of str
        What the columns of CSV files were read as, in the words of `Reading.kinds`.
    """

    names: list[str]
    notes: list[str] = field(default_factory=list)
    rejected: list[BadRow] = field(default_factory=list)
    encoding: str | None = None
    empty: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)

    def save(self, folder: Path) -> None:
        """Put it down beside the Parquet file: from then on the table is known to be whole."""
        write_whole(folder / "input.json", json.dumps(asdict(self)).encode())

    @classmethod
    def saved(cls, folder: Path) -> Staged | None:
        """Return what was put down in a folder, if anything was."""
        found = read_json(folder / "input.json")
        if found is None:
            return None
        return cls(**{**found, "rejected": [BadRow(**bad) for bad in found["rejected"]]})


@contextmanager
def connected(folder: Path, database: Path | None = None, progress: bool = False) -> Iterator[Any]:
    """Connect to DuckDB: in memory, spilling to a folder, with a database of the user's open.

    With `progress`, DuckDB draws on a terminal how far a query is that takes seconds.
    """
    config: dict[str, Any] = {
        "memory_limit": "2GB",
        "temp_directory": str(folder / "spill"),
        "autoinstall_known_extensions": False,
        "TimeZone": "UTC",
    }
    connection = duckdb.connect(config=config)
    try:
        connection.execute(f"set enable_progress_bar = {progress and sys.stdout.isatty()}")
        if database is not None:
            connection.execute(f"attach {quoted(database)} as given (read_only)")
            connection.execute("use given")
        yield connection
    except RuntimeError as error:  # what DuckDB makes of Ctrl-C
        if "interrupted" in str(error):
            raise KeyboardInterrupt from None
        raise
    except duckdb.OutOfMemoryException:
        raise DataError("the input does not fit into memory; leave out columns.") from None
    except duckdb.Error as error:
        if "No space left" in str(error):
            raise OSError(errno.ENOSPC, "No space left on device") from None
        raise DataError(_sentence(error)) from None
    finally:
        connection.close()


@contextmanager
def opened_files(connection: Any) -> Iterator[list[Path]]:
    """Collect the files that queries open, by whatever name; they are there when it is left."""
    found: list[Path] = []
    connection.execute("set enable_logging = true; set logging_level = 'trace'")
    yield found
    connection.execute("set enable_logging = false")
    messages = connection.execute(
        "select distinct message from duckdb_logs "
        """where type = 'FileSystem' and message like '%"op":"OPEN"%'"""
    ).fetchall()
    for (message,) in messages:  # {"fs":"LocalFileSystem","path":"in.csv","op":"OPEN"}, unescaped
        found.append(Path(message.partition('"path":"')[2].rpartition('","op":')[0]))


def _sentence(error: Exception) -> str:
    if "invalid state" in str(error):
        return (
            "a CSV file has lines that end in different ways (Windows and Unix), or a quote in the "
            "middle of a value. Write it again in one way."
        )
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind, _, text = lines[0].partition(": ")
    return f"DuckDB cannot read the input: {text or kind}".rstrip(".") + "."


def stage_query(connection: Any, sql: str, output: Path) -> Staged:
    """Write the rows of a query."""
    described = connection.execute(f"describe select * from ({sql})").fetchall()
    columns = [f"c{i}" for i in range(len(described))]
    # DuckDB rounds to the nearest float, Arrow does not.
    values = [
        f"cast({c} as double) as {c}" if str(kind).startswith("DECIMAL") else c
        for c, (_, kind, *_) in zip(columns, described, strict=True)
    ]
    rows = f"({sql}) as t({', '.join(columns)})"
    _copy(connection, f"select {', '.join(values)} from {rows}", output)
    return Staged([name for name, *_ in described])


def rows_of(csv: CsvText, reading: Reading) -> str:
    """Return SQL of the rows of CSV files as texts, null where the user says that there is none."""
    replaced = []
    for name, marks in reading.gaps.items():
        known_column(name, csv.names, "gaps")
        c = f"c{csv.names.index(name)}"
        listed = ", ".join(quoted(mark.strip()) for mark in marks)
        replaced.append(f"case when trim({c}) in ({listed}) then null else {c} end as {c}")
    rows = csv.sql()
    return f"(select * replace ({', '.join(replaced)}) from {rows})" if replaced else rows


def stage_csv(connection: Any, csv: CsvText, reading: Reading, output: Path) -> Staged:
    """Write the rows of CSV files, with numbers as numbers, and dates as dates.

    A value that is of another kind than its column makes a bad row: the column `fault` has the
    number of its column, a space, and the value as it stands in the file.
    """
    rows = rows_of(csv, reading)
    delimiter = csv.first.delimiter
    deciding = Deciding(connection, csv.names, reading.kinds, delimiter, reading.decimal)
    connection.execute(f"create or replace temp table head as from {rows} limit {HEAD}")
    kinds, seen = deciding.kinds("head")
    if not seen or _stage(connection, rows, kinds, output):
        by_head, (kinds, _) = kinds, deciding.kinds(rows)
        if not seen or kinds != by_head:
            _stage(connection, rows, kinds, output)
    errors = _rejects(connection)
    if any(kind == "INVALID ENCODING" for _, _, kind, _ in errors):
        return stage_csv(connection, csv.in_western_encoding(), reading, output)
    return Staged(
        csv.names,
        list(csv.notes()),
        [bad for file in csv.files for bad in file.rejected(errors)],
        csv.encodings[0] if len(csv.encodings) == 1 else None,
        [csv.names[i] for i in deciding.empty],
        [kind.word for kind in kinds],
    )


def _stage(connection: Any, rows: str, kinds: list[Notation], output: Path) -> bool:
    """Write the rows with columns of some kinds; tell whether there are values of other kinds."""
    read = [i for i, kind in enumerate(kinds) if not kind.is_text]
    values = [f"c{i}" if kind.is_text else f"n{i} as c{i}" for i, kind in enumerate(kinds)]
    converted = "".join(f", {kinds[i].value(f'c{i}')} as n{i}" for i in read)
    wrong = " ".join(
        f"when {kinds[i].is_wrong(f'c{i}', f'n{i}')} then '{i} ' || c{i}" for i in read
    )
    fault = f"case {wrong} end" if wrong else "cast(null as varchar)"
    connection.execute("drop table if exists reject_errors; drop table if exists reject_scans")
    converted_rows = f"(select *{converted} from {rows})"
    select = f"select {', '.join(values)}, {fault} as fault from {converted_rows}"
    _copy(connection, select, output)
    (found,) = connection.execute(
        f"select count(fault) from read_parquet({quoted(output)})"
    ).fetchone()
    return bool(found)


def _copy(connection: Any, select: str, output: Path) -> None:
    connection.execute(f"copy ({select}) to {quoted(output)} {COPY}")


def _rejects(connection: Any) -> list[tuple[str, int, str, str]]:
    """Return file, position, kind and text of what DuckDB could not read."""
    with suppress(duckdb.CatalogException):
        return connection.execute(  # type: ignore[no-any-return]
            "select file_path, line_byte_position, error_type, error_message from reject_errors "
            "join reject_scans using (scan_id, file_id) order by scan_id, file_id, line"
        ).fetchall()
    return []
