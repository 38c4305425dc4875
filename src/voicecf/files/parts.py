"""Answers to some rows of the input, kept in a file so that they are not answered again."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import TypeVar
from zlib import crc32

import pyarrow as pa

from voicecf.files.tally import Tally

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
