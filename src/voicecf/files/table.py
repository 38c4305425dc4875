"""Tables in Parquet files, read part by part and any number of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from voicecf.errors import ColumnError, DataError, listed
from voicecf.files.badrows import BadRow, BadRowError, Place
from voicecf.files.kinds import Notation, notation_of
from voicecf.files.staging import Staged

# Rows that are read at once.
READ = 1 << 16
# What goes without saying.
PLAIN = ("text", "number", "date")


@dataclass(frozen=True)
class Chunk:
    """Rows that follow one another.

    Attributes
    ----------
    table : pyarrow.Table
    first : int
        The number of the first row in the whole table, from 0.
    wrong : dict of int to str
        The numbers of rows with a value that is not of the kind of its column, and what is wrong.
    """

    table: pa.Table
    first: int
    wrong: dict[int, str] = field(default_factory=dict)

    def without(self, rows: Any) -> tuple[pa.Table, Any]:
        """Return the table without rows of some numbers, and the numbers of those that are left."""
        left = np.ones(self.table.num_rows, dtype=np.bool_)
        left[[row - self.first for row in rows]] = False
        table = self.table if left.all() else self.table.filter(pa.array(left))
        return table, self.first + np.flatnonzero(left)


@dataclass(frozen=True, kw_only=True)
class Table(Staged):
    """Rows in Parquet files, all with the columns of the first one, and what is known about them.

    Attributes
    ----------
    files : list of Path
    schema : pyarrow.Schema
        The user's columns.
    counts : list of int
        Rows of each file.
    find : callable
        Returns a function that tells the place of rows, if it is asked for them in their order.
    stored : list of str
        The names that the columns have in the files.
    """

    files: list[Path]
    schema: pa.Schema
    counts: list[int]
    find: Callable[[], Callable[[int], Place]]
    stored: list[str]

    @classmethod
    def of(
        cls,
        files: list[Path],
        known: Staged | None = None,
        find: Callable[[], Callable[[int], Place]] | None = None,
    ) -> Table:
        """Open the user's own Parquet files, or one that was made of another input."""
        heads = [_opened(file) for file in files]
        stored = heads[0].schema_arrow.remove_metadata()
        for file, head in zip(files, heads, strict=True):
            _check_columns(head.schema_arrow.remove_metadata(), stored, file, files[0])
        known = known or Staged(stored.names)
        kinds = [_without_decimal(kind) for kind in stored.types]
        schema = pa.schema(zip(known.names, kinds, strict=False))
        counts = [head.metadata.num_rows for head in heads]
        return cls(
            **vars(known), files=files, schema=schema, counts=counts, stored=stored.names,
            find=find or (lambda: partial(_row_of, files, counts)),
        )  # fmt: skip

    @property
    def readings(self) -> list[str]:
        """What columns were read as, if it is neither plain numbers, ISO dates nor text."""
        names: dict[str, list[str]] = {}
        for name, word in zip(self.schema.names, self.words, strict=False):
            if word not in PLAIN:
                names.setdefault(word, []).append(name)
        return [f"read as {word}: {listed(columns)}" for word, columns in names.items()]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(self.counts)

    def __iter__(self) -> Iterator[pa.Table]:
        """Read the rows as tables."""
        return (chunk.table for chunk in self.parts(READ))

    def to_pandas(self, *, blank: bool = False) -> Any:
        """Return all rows as a DataFrame of pandas.

        Parameters
        ----------
        blank : bool
            Whether values that are not of the kind of their column are left blank. By default they
            raise, as lines that are no rows always do.
        """
        if self.rejected:
            raise BadRowError(self.rejected[0])
        tables = [self.schema.empty_table()]
        for chunk in self.parts(READ):
            tables.append(chunk.table)
            if not blank:
                self.refuse(chunk.wrong)
        return pa.concat_tables(tables).to_pandas(ignore_metadata=True, date_as_object=False)

    def parts(self, size: int, start: int = 0) -> Iterator[Chunk]:
        """Read the rows from number `start` on, `size` at a time, however the files divide them."""
        held: list[pa.Table] = []
        rows = 0
        for table in self._tables(start):
            while rows + table.num_rows >= size:
                held.append(table.slice(0, size - rows))
                yield self._chunk(held, start)
                table, held, rows, start = table.slice(size - rows), [], 0, start + size
            if table.num_rows:
                held.append(table)
                rows += table.num_rows
        if held:
            yield self._chunk(held, start)

    def _chunk(self, tables: list[pa.Table], first: int) -> Chunk:
        table = pa.concat_tables(tables).combine_chunks()
        wrong: dict[int, str] = {}
        if self.words and table["fault"].null_count < table.num_rows:
            faults = enumerate(table["fault"].to_pylist(), start=first)
            wrong = {row: self._why(fault) for row, fault in faults if fault is not None}
        columns = [
            column if column.type == kind else column.cast(kind)
            for column, kind in zip(table.columns, self.schema.types, strict=False)
        ]
        return Chunk(pa.Table.from_arrays(columns, schema=self.schema), first, wrong)

    def _why(self, fault: str) -> str:
        """Say what is wrong with a value: the number of its column, and its text."""
        column, _, text = fault.partition(" ")
        return self.notation(int(column)).why(self.names[int(column)], text)

    def notation(self, i: int) -> Notation:
        """Return how the values of a column of CSV files are written."""
        kind = self.schema.types[i]
        narrow = pa.types.is_integer(kind) or pa.types.is_date(kind)
        return replace(notation_of(self.words[i]), narrow=narrow)

    def refuse(self, bad: Mapping[int, str]) -> None:
        """Raise for the first of some bad rows, which are numbers and reasons, if there are any."""
        if bad:
            row = min(bad)
            raise BadRowError(self.places()(row, bad[row]))

    def places(self) -> Callable[[int, str], BadRow]:
        """Return a function that tells where bad rows are, if it is asked for them in their order.

        It is called with the number of a row, and the reason. It reads CSV files again.
        """
        place_of = self.find()
        return lambda row, why: BadRow(row, *place_of(row), why)

    def _tables(self, start: int) -> Iterator[pa.Table]:
        """Read the rows from number `start` on, in tables of various lengths."""
        for file, count in zip(self.files, self.counts, strict=True):
            if start < count:
                yield from self._of_file(file, max(start, 0))
            start -= count

    def _of_file(self, file: Path, start: int) -> Iterator[pa.Table]:
        opened = _opened(file)
        groups = [opened.metadata.row_group(g).num_rows for g in range(opened.num_row_groups)]
        ends = np.cumsum(groups)
        wanted = np.flatnonzero(ends > start)
        skipped = start - int(ends[wanted[0]] - groups[wanted[0]])
        try:
            for batch in opened.iter_batches(READ, row_groups=wanted.tolist()):
                table = pa.Table.from_batches([batch]).slice(skipped)
                skipped = max(skipped - batch.num_rows, 0)
                yield table.select(self.stored)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{file} is damaged: {error}.") from None


def _row_of(files: list[Path], counts: list[int], row: int) -> Place:
    """Return the file of a row of the whole table, and its number there."""
    ends = np.cumsum(counts)
    at = int(np.searchsorted(ends, row, side="right"))
    return files[at].name, f"row {row - (ends[at] - counts[at])}"


def _without_decimal(kind: Any) -> Any:
    """Return the type in which a column is handed on: floats for what scikit-learn has not."""
    return pa.float64() if pa.types.is_decimal(kind) else kind


def _opened(file: Path) -> pq.ParquetFile:
    try:
        # A buffer a column instead of whole row groups, which may be as large as the file.
        return pq.ParquetFile(file, pre_buffer=False, buffer_size=1 << 20)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"{file} is no Parquet file, or damaged: {error}.") from None


def _check_columns(schema: pa.Schema, wanted: pa.Schema, file: Path, first: Path) -> None:
    """Refuse a file whose columns are not those of the first one."""
    twice = [name for name in schema.names if schema.names.count(name) > 1]
    if twice:
        raise ColumnError(f"{file}: column names must differ; named twice: {listed(set(twice))}.")
    lacking = [name for name in wanted.names if name not in schema.names]
    if lacking or len(schema.names) != len(wanted.names):
        more = [name for name in schema.names if name not in wanted.names]
        what = f"lacks {listed(lacking)}" if lacking else f"also has {listed(more)}"
        raise ColumnError(f"{file} {what}, unlike {first}; all files need the same columns.")
    for name in wanted.names:
        kinds = schema.field(name).type, wanted.field(name).type
        if kinds[0] != kinds[1]:
            raise ColumnError(
                f"{file}: column {name!r} is of type {kinds[0]}, in {first} it is {kinds[1]}; all "
                "files need the same types."
            )
