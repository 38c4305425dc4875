"""Sources of rows that are read chunk by chunk, and the one of Parquet files."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from voicecf.errors import ColumnError, DataError, listed
from voicecf.files.badrows import BadRow

__all__ = ["Chunk", "ParquetFiles", "Source", "in_parts"]

# Rows that are read at once.
READ = 1 << 16
# Bytes at either end of a file that its fingerprint looks at.
ENDS = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Rows of one file.

    Attributes
    ----------
    table : pyarrow.Table
    rows : array of int
        Their numbers in the whole input, from 0.
    file : str
    places : array of int
        Their lines (CSV, from 1) or rows (Parquet, from 0) in the file.
    end : int
        The number of the row of the input that comes after all this.
    bad : tuple of BadRow
        What could not even be read.
    unit : str
        What places count: "line" or "row".
    """

    table: pa.Table
    rows: NDArray[np.int64]
    file: str
    places: NDArray[np.int64]
    end: int
    bad: tuple[BadRow, ...] = ()
    unit: str = "row"

    def between(self, start: int, end: int) -> Chunk:
        """Return what has numbers from `start` to before `end`."""
        a, b = np.searchsorted(self.rows, (start, end)).tolist()
        return replace(
            self,
            table=self.table.slice(a, b - a),
            rows=self.rows[a:b],
            places=self.places[a:b],
            end=min(self.end, end),
            bad=tuple(bad for bad in self.bad if start <= bad.row < end),
        )

    def without(self, cells: dict[int, tuple[str, str, str]]) -> Chunk:
        """Return the chunk without the rows of bad cells, which are told in `bad`."""
        if not cells:
            return self
        told = [
            BadRow(int(self.rows[i]), self.file, f"{self.unit} {self.places[i]}", *cell)
            for i, cell in sorted(cells.items())
        ]
        kept = np.ones(len(self.rows), dtype=np.bool_)
        kept[list(cells)] = False
        bad = tuple(sorted((*self.bad, *told), key=lambda bad: bad.row))
        return replace(
            self,
            table=self.table.filter(pa.array(kept)),
            rows=self.rows[kept],
            places=self.places[kept],
            bad=bad,
        )


class Source(ABC):
    """Rows of files; can be read several times.

    Attributes
    ----------
    files : list of Path
    schema : pyarrow.Schema
        What the rows come as.
    """

    files: list[Path]
    schema: pa.Schema

    @abstractmethod
    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Read rows, from number `start` on."""

    @property
    @abstractmethod
    def total(self) -> int | None:
        """Number of rows, or a guess of it, where there is one beforehand."""

    def __iter__(self) -> Iterator[pa.Table]:
        """Read rows as tables, as `fit` needs them."""
        return (chunk.table for chunk in self.chunks() if len(chunk.rows))

    def fingerprint(self) -> list[dict[str, Any]]:
        """Return what tells whether a file changed: size, time, and a digest of its ends."""
        return [_print_of(file) for file in self.files]

    def kinds(self) -> dict[str, str]:
        """Return the type of each column, as text."""
        return {field.name: str(field.type) for field in self.schema}


class ParquetFiles(Source):
    """Rows of Parquet files, all with the columns of the first one."""

    def __init__(self, files: list[Path]) -> None:
        self.files = files
        heads = [_opened(file) for file in files]
        self.schema = heads[0].schema_arrow.remove_metadata()
        self.counts = [head.metadata.num_rows for head in heads]
        for file, head in zip(files, heads, strict=True):
            _check_columns(head.schema_arrow.remove_metadata(), self.schema, file, files[0])

    @property
    def total(self) -> int | None:
        """Number of rows."""
        return int(sum(self.counts))

    def chunks(self, start: int = 0) -> Iterator[Chunk]:
        """Read rows, from number `start` on."""
        first = 0
        for file, count in zip(self.files, self.counts, strict=True):
            if first + count > start:
                yield from self._of_file(file, first, max(start - first, 0))
            first += count

    def _of_file(self, file: Path, first: int, skipped: int) -> Iterator[Chunk]:
        opened = _opened(file)
        groups = [opened.metadata.row_group(g).num_rows for g in range(opened.num_row_groups)]
        ends = np.cumsum(groups)
        wanted = np.flatnonzero(ends > skipped)
        at = int(ends[wanted[0]] - groups[wanted[0]])
        try:
            for batch in opened.iter_batches(READ, row_groups=wanted.tolist()):
                places = np.arange(max(at, skipped), at + batch.num_rows)
                table = pa.Table.from_batches([batch]).slice(batch.num_rows - len(places))
                at += batch.num_rows
                table = table.select(self.schema.names).cast(self.schema)
                yield Chunk(table, first + places, file.name, places, first + at)
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"{file} is damaged after row {at}: {error}.") from None


def in_parts(chunks: Iterator[Chunk], size: int, start: int = 0) -> Iterator[list[Chunk]]:
    """Cut chunks into parts of `size` numbers each, however they came; `start` begins a part."""
    part: list[Chunk] = []
    end = start + size
    for chunk in chunks:
        while chunk.end >= end:
            yield [*part, chunk.between(end - size, end)]
            part, end = [], end + size
        rest = chunk.between(end - size, end)
        if len(rest.rows) or rest.bad:
            part.append(rest)
    if part:
        yield part


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
