"""What the user names as input: files, a folder, a pattern, a database or a query."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from glob import glob
from os.path import exists, isdir, isfile
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, mkdtemp
from typing import Any
from weakref import finalize

from voicecf.errors import DataError, OptionError
from voicecf.files.badrows import Place
from voicecf.files.staging import (
    Reading,
    Staged,
    connected,
    opened_files,
    stage_csv,
    stage_query,
)
from voicecf.files.table import Table
from voicecf.files.text import CsvText, listed_files
from voicecf.files.workbook import write_sheet
from voicecf.saving.whole import flush

# Kinds of files by the ends of their names.
ENDINGS = {
    "csv": (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz"),
    "excel": (".xlsx", ".xlsm", ".xls", ".ods"),
    "parquet": (".parquet", ".pq"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz"),
    "database": (".duckdb", ".ddb"),
}
# Bytes at either end of a file that tell whether it changed.
ENDS = 1 << 16
# A text or a name in a query, which may be that of a file.
QUOTED = re.compile("""'([^']*)'|"([^"]*)\"""")


def open_source(given: Any = None, *, sql: str | None = None, **reading: Any) -> Source:
    """Name an input: a file, a folder, a pattern such as ``sales/*.csv``, or a query.

    Parameters
    ----------
    given : path, optional
        CSV, Excel, Parquet or JSON files, or a DuckDB database with one table.
    sql : str, optional
        A query of DuckDB, such as ``select * from 'sales/*.parquet' where year > 2020``. Tables of
        the database that is given can be named.
    **reading
        How CSV files are read: `delimiter`, `decimal`, `encoding`, `kinds`, `gaps`, and which
        `sheet` of a workbook; see `Reading`.

    Examples
    --------
    >>> from voicecf.files import open_source
    >>> table = open_source(sql="select range as age, 'a' as name from range(3)").table()
    >>> table.n_rows, table.schema.names
    (3, ['age', 'name'])
    """
    if given is None and sql is None:
        raise OptionError("an input is missing: give a file or a folder, or a query with --sql.")
    files, kind = ([], "query") if given is None else _files(given)
    if sql is not None and kind not in ("query", "database"):
        raise OptionError(
            f"{given} and --sql are two inputs; name the file in the query: "
            f"--sql \"select * from '{given}'\"."
        )
    folder = Path(given) if given is not None and Path(given).is_dir() else None
    source = Source(files, kind, sql, folder, Reading(**reading))
    for name in (*map(str, files), *source.quoted()):
        if exists(name) and not (isfile(name) or isdir(name)):  # it can be read only once
            raise DataError(f"{name} is a pipe or a device; write what it gives to a file first.")
    return source


@dataclass(frozen=True)
class Look:
    """An input as it is at some moment.

    Attributes
    ----------
    prints : list of dict
        What tells whether the input changed.
    files : list of Path
        Files that are read, those that a query opens or names included.
    """

    prints: list[dict[str, Any]]
    files: list[Path]


@dataclass(frozen=True)
class Source:
    """An input, which can be read any number of times.

    Attributes
    ----------
    files : list of Path
        In the order in which they are read; none for a query.
    kind : str
        "csv", "excel", "parquet", "json", "database" or "query".
    sql : str or None
    folder : Path or None
        The folder that is given, if it is one.
    reading : Reading

    Examples
    --------
    >>> from voicecf.files import open_source
    >>> open_source(sql="select 1 as age").kind
    'query'
    """

    files: list[Path]
    kind: str
    sql: str | None = None
    folder: Path | None = None
    reading: Reading = field(default_factory=Reading)

    def named(self) -> list[Path]:
        """Return the files that are read, with those that a query names.

        A query may open others, too: see `Look`.
        """
        logs = [Path(f"{file}.wal") for file in self.files if self.kind == "database"]
        found = [Path(name) for text in self.quoted() for name in glob(text, recursive=True)]
        return [*self.files, *logs, *(path for path in found if path.is_file())]

    def quoted(self) -> list[str]:
        """Return the texts and names in quotes of a query, any of which may name files."""
        return [either for pair in QUOTED.findall(self.sql or "") for either in pair if either]

    def look(self) -> Look:
        """Look at the input: what it is now, and which files are read.

        Of files it takes size, time, and a digest of both ends. Of a query or a database it takes
        the number of rows, and a sum over digests of them, which does not depend on their order.
        """
        prints = [_print_of(file) for file in self.files]
        if self.kind not in ("query", "database"):
            return Look(prints, self.named())
        database = self.files[0] if self.kind == "database" else None
        with TemporaryDirectory() as folder, connected(Path(folder), database) as connection:
            rows = f"({self._query(connection)})"
            with opened_files(connection) as opened:
                facts = connection.execute(
                    f"select count(*), sum(hash(t)) from {rows} t"
                ).fetchone()
        prints.append({"rows": facts[0], "digest": str(facts[1])})
        return Look(prints, [*self.named(), *opened])

    def is_still(self, look: Look) -> bool:
        """Return True if the files are what they were; a query is not run again."""
        return look.prints[: len(self.files)] == [_print_of(file) for file in self.files]

    def table(self, folder: Path | None = None, progress: bool = False) -> Table:
        """Return the rows, brought into a Parquet file in a folder unless they are in such files.

        A file that is there already, from a run that was interrupted, is used again. With
        `progress`, a bar shows how far it is, on a terminal.
        """
        if self.kind == "parquet" and not self._is_partitioned():
            return Table.of(self.files)
        if folder is not None:
            return self._staged(folder, progress)
        temporary = Path(mkdtemp(prefix="voicecf-"))
        try:
            table = self._staged(temporary, progress)
        except BaseException:
            rmtree(temporary, ignore_errors=True)
            raise
        finalize(table, rmtree, temporary, ignore_errors=True)
        return table

    def _is_partitioned(self) -> bool:
        """Tell whether folders within the given one name a column: year=2024."""
        within = [file.relative_to(self.folder).parent for file in self.files if self.folder]
        return any("=" in str(path) for path in within)

    def _staged(self, folder: Path, progress: bool) -> Table:
        path = folder / "input.parquet"
        staged = Staged.saved(folder) or self._stage(folder, path, progress)
        return Table.of([path], staged, partial(self._find, folder, staged))

    def _stage(self, folder: Path, path: Path, progress: bool) -> Staged:
        database = self.files[0] if self.kind == "database" else None
        with connected(folder, database, progress) as connection:
            if self.is_text:
                staged = stage_csv(connection, self.csv(folder), self.reading, path)
            else:
                staged = stage_query(connection, self._query(connection), path)
        for copy in folder.glob("input.*.csv"):
            copy.unlink()
        flush(path)
        staged.save(folder)
        return staged

    @property
    def is_text(self) -> bool:
        """True if values are texts that have to be understood."""
        return self.kind in ("csv", "excel")

    def csv(self, folder: Path, encoding: str | None = None) -> CsvText:
        """Return the files as CSV text; sheets of workbooks are written as such into a folder."""
        reading = self.reading
        if self.kind == "csv":
            return CsvText(self.files, folder, reading.delimiter, encoding or reading.encoding)
        sheets, notes = [], []
        for i, file in enumerate(self.files):
            sheets.append(folder / f"input.{i}" / file.name)
            if not sheets[-1].exists():
                sheets[-1].parent.mkdir(exist_ok=True)
                notes.append(write_sheet(file, reading.sheet, sheets[-1]))
        return CsvText(sheets, folder, ",", "utf-8", [note for note in notes if note])

    def _query(self, connection: Any) -> str:
        """Return SQL of the rows, if they are not in CSV files."""
        files = listed_files(self.files)
        if self.sql is not None:
            connection.extract_statements(
                self.sql
            )  # it is whole: no bracket ends what is around it
            return self.sql.strip().rstrip(";") + "\n"  # it may end in a comment
        if self.kind == "database":
            return f"select * from {_only_table(connection, self.files[0])}"
        if self.kind == "json":
            return f"select * from read_json_auto({files})"
        return f"select * from read_parquet({files}, hive_partitioning=true)"

    def _find(self, folder: Path, staged: Staged) -> Callable[[int], Place]:
        """Return a function that tells where rows were, if it is asked for them in their order."""
        name = self.files[0].name if len(self.files) == 1 else "the input"
        if not self.is_text:
            return lambda row: (name, f"row {row}")
        lines = enumerate(self._lines(folder, staged))
        return lambda row: next(line for number, line in lines if number == row)

    def _lines(self, folder: Path, staged: Staged) -> Iterator[Place]:
        """Read CSV files again, and yield the line of every row."""
        rejected = {(bad.file, bad.place) for bad in staged.rejected}
        for file in self.csv(folder, staged.encoding).files:
            yield from (line for line in file.places() if line not in rejected)


def _only_table(connection: Any, file: Path) -> str:
    found = connection.execute(
        "select table_schema, table_name from information_schema.tables "
        "where table_catalog = 'given' order by all"
    ).fetchall()
    tables = [".".join(_identifier(part) for part in name if part != "main") for name in found]
    if len(tables) != 1:
        example = (
            f" Choose one with --sql, such as --sql 'select * from {tables[0]}'." if tables else ""
        )
        raise DataError(f"{file.name} holds {len(tables)} tables: {', '.join(tables)}.{example}")
    return tables[0]


def _identifier(name: str) -> str:
    """Return a name as SQL has it."""
    return name if name.isidentifier() else '"' + name.replace('"', '""') + '"'


def _files(given: Any) -> tuple[list[Path], str]:
    """Return the files that are meant, in the order of their names, and their kind."""
    path = Path(given)
    if path.is_file():
        files = [path]
    elif path.is_dir():
        every = sorted(p for p in path.rglob("*") if p.is_file())
        files = [p for p in every if not _hidden(p.relative_to(path)) and _kind(p)]
        if not files:
            raise DataError(f"there is no CSV, Excel, Parquet or JSON file in the folder {path}.")
    else:
        files = sorted(Path(name) for name in glob(str(given), recursive=True))
        if not files:
            raise DataError(f"there is no file or folder {given}.")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise DataError(f"{given} holds files of several kinds; give one kind.")
    (kind,) = kinds
    if kind is None:
        raise DataError(
            f"{given} is no CSV, Excel, Parquet, JSON or DuckDB file by its name; rename it, to "
            "end in .csv for example."
        )
    return files, kind


def _kind(file: Path) -> str | None:
    name = file.name.lower()
    return next((kind for kind, ends in ENDINGS.items() if name.endswith(ends)), None)


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)


def _print_of(file: Path) -> dict[str, Any]:
    facts = file.stat()
    with file.open("rb") as opened:
        digest = hashlib.sha256(opened.read(ENDS))
        opened.seek(max(facts.st_size - ENDS, 0))
        digest.update(opened.read(ENDS))
    return {
        "file": file.name,
        "bytes": facts.st_size,
        "modified": facts.st_mtime_ns,
        "ends": digest.hexdigest(),
    }
