"""Answers part by part: kept, so that they are not found again, and written as the user wants."""

from __future__ import annotations

import json
import shutil
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from voicecf.files.entry import PREFIX
from voicecf.files.tally import Tally
from voicecf.saving.whole import flush

# Key of the schema's metadata under which counts and bad rows of a part stand.
FACTS = b"voicecf"
# Bytes before a part, which begin with its checksum; so many that Arrow's buffers stay aligned.
SEAL = 64

Item = TypeVar("Item")
Made = TypeVar("Made")


def in_order(
    make: Callable[[Item], Made], items: Iterable[Item], threads: int
) -> Generator[Made, None, None]:
    """Make something of each item, in several threads; yield what is made in the order of items."""
    pool, coming = ThreadPoolExecutor(threads), deque()  # type: ignore[var-annotated]
    try:
        for item in items:
            coming.append(pool.submit(make, item))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass
class AnsweredPart:
    """Answers to some rows of the input.

    The system writes parts to the disk when it likes: waiting for it takes as long as answering. If
    the machine itself fails, parts that were not there yet lack their end, and are made again.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    tally : Tally
    bad : list of (int, str)
        The numbers of rows without an answer, ascending, and why they have none.
    """

    batch: pa.RecordBatch
    tally: Tally
    bad: list[tuple[int, str]]

    def put(self, folder: Path, number: int) -> None:
        """Keep the part in a folder, whole or not at all."""
        half = folder / "half"
        self.write(half)
        half.replace(_path(folder, number))

    def write(self, path: Path) -> None:
        """Write the part as an Arrow file, behind its checksum."""
        facts = {"tally": asdict(self.tally), "bad": self.bad}
        schema = self.batch.schema.with_metadata({FACTS: json.dumps(facts).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as file:
            file.write_batch(self.batch.replace_schema_metadata(schema.metadata))
        content = sink.getvalue()
        with path.open("wb") as opened:
            opened.write(_seal(content))
            opened.write(content)

    @classmethod
    def read(cls, folder: Path, number: int) -> AnsweredPart | None:
        """Return a part that was kept in a folder; None if it is damaged."""
        whole = pa.py_buffer(_path(folder, number).read_bytes())
        content = whole[SEAL:]
        if whole[:SEAL].to_pybytes() != _seal(content):
            return None
        with pa.ipc.open_file(content) as file:
            facts = json.loads(file.schema.metadata[FACTS])
            batch = file.get_batch(0).replace_schema_metadata(None)
        return cls(batch, Tally(**facts["tally"]), [(row, why) for row, why in facts["bad"]])


def count_parts(folder: Path) -> int:
    """Count the parts in a folder, from the first one on, up to one that is not there."""
    return next(number for number in count() if not _path(folder, number).exists())


def _path(folder: Path, number: int) -> Path:
    return folder / f"part-{number:05d}.arrow"


def _seal(content: pa.Buffer) -> bytes:
    """Return the checksum of a part; a cryptographic one would take as long as writing it."""
    return b"%08x" % crc32(content) + b"\0" * (SEAL - 8)


class Writer:
    """Writes parts of one schema, one after the other.

    Parameters
    ----------
    path : Path
        The file or folder to write, in place of one that was not completed.
    schema : pyarrow.Schema
    kind : "parquet", "csv" or "tsv"
    several : bool
        Whether the path is a folder, with a file for each part: part-00000.parquet and so on.
    """

    def __init__(self, path: Path, schema: pa.Schema, kind: str, several: bool) -> None:
        self.path, self.schema, self.kind, self.several = path, schema, kind, several
        self.count = 0
        if path.is_dir():
            shutil.rmtree(path)
        if several:
            path.mkdir()
        self.file = None if several else self._opened(path)

    def _opened(self, path: Path) -> Any:
        if self.kind == "parquet":
            # A dictionary of numbers that do not repeat is as long as they are, and takes most of
            # the time.
            repeated = [
                field.name
                for field in self.schema
                if not pa.types.is_floating(field.type) and field.name != PREFIX + "row"
            ]
            return pq.ParquetWriter(
                path, self.schema, use_dictionary=repeated, compression="snappy"
            )
        options = pacsv.WriteOptions(delimiter="\t" if self.kind == "tsv" else ",")
        return pacsv.CSVWriter(path, self.schema, write_options=options)

    def write(self, part: pa.RecordBatch) -> None:
        """Write a part: a row group, some lines, or a file."""
        file = self.file or self._opened(self.path / f"part-{self.count:05d}.{self.kind}")
        if part.num_rows:
            file.write_batch(part)
        self.count += 1
        if self.several:
            file.close()

    def close(self) -> None:
        """Complete what was written, and put it on the disk."""
        if self.several and not self.count:
            self.write(pa.RecordBatch.from_pylist([], schema=self.schema))
        if self.file is not None:
            self.file.close()
        for path in sorted(self.path.iterdir()) if self.several else [self.path]:
            flush(path)
