"""Rows answered part by part, in their order; a part that is kept is not answered again."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count as numbers
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar
from zlib import crc32

import pyarrow as pa

from voicecf.files.badrows import BadRow
from voicecf.files.tally import Tally

# Key of the schema's metadata under which counts and bad rows of a part stand.
FACTS = b"voicecf"
# Bytes before a part, which begin with its checksum; so many that Arrow's buffers stay aligned.
SEAL = 64

T = TypeVar("T")
Part = TypeVar("Part")


class ResumableJob(Generic[Part]):
    """Rows answered part by part, from the row on at which an earlier run stopped.

    Iterated over, it yields the parts; `done` and `total` count rows meanwhile.

    Parameters
    ----------
    rows : range
        Numbers of the rows that are still to be answered.
    size : int
        Rows that make a part.
    answer : callable
        Makes a part of some rows, given as a range.
    threads : int
        Parts that are answered at once; 0 answers a part when it is asked for.

    Examples
    --------
    >>> from voicecf.files.parts import ResumableJob
    >>> job = ResumableJob(range(2, 7), 3, list)
    >>> [(part, job.done, job.total) for part in job]
    [([2, 3, 4], 5, 7), ([5, 6], 7, 7)]
    """

    def __init__(
        self, rows: range, size: int, answer: Callable[[range], Part], threads: int = 0
    ) -> None:
        self.rows, self.size, self.answer, self.threads = rows, size, answer, threads
        self.done, self.total = rows.start, rows.stop

    def __iter__(self) -> Generator[Part, None, None]:
        """Answer the rows, and yield the parts in their order."""
        starts = range(0, len(self.rows), self.size)
        every = (self.rows[start : start + self.size] for start in starts)
        with closing(in_order(self.answer, every, self.threads)) as parts:
            for part in parts:
                self.done = min(self.done + self.size, self.total)
                yield part


def in_order(
    make: Callable[[T], Part], items: Iterable[T], threads: int
) -> Generator[Part, None, None]:
    """Make something of each item, in several threads; yield what is made in the order of items."""
    if not threads:
        yield from map(make, items)
        return
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


class Walk(Generic[T]):
    """Items by their number, for several threads: quick if they are asked for in their order.

    Parameters
    ----------
    begin : callable
        Returns an iterator over the items from a number on.
    """

    def __init__(self, begin: Callable[[int], Iterator[T]]) -> None:
        self.begin, self.at, self.lock = begin, -1, Lock()

    def __getitem__(self, number: int) -> T:
        with self.lock:
            if number != self.at:
                if number < self.at or self.at < 0:
                    self.items, self.at = self.begin(number), number - 1
                while self.at < number:
                    self.item, self.at = next(self.items), self.at + 1
            return self.item


@dataclass
class KeptPart:
    """Answers to some rows of the input.

    Attributes
    ----------
    batch : pyarrow.RecordBatch
    tally : Tally
    bad : list of BadRow
        Rows without an answer.
    """

    batch: pa.RecordBatch
    tally: Tally
    bad: list[BadRow]

    def write(self, path: Path) -> None:
        """Write the part as an Arrow file, behind its checksum."""
        facts = {"tally": asdict(self.tally), "bad": [asdict(bad) for bad in self.bad]}
        schema = self.batch.schema.with_metadata({FACTS: json.dumps(facts).encode()})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema) as file:
            file.write_batch(self.batch.replace_schema_metadata(schema.metadata))
        content = sink.getvalue()
        with path.open("wb") as opened:
            opened.write(_seal(content))
            opened.write(content)

    @classmethod
    def from_file(cls, path: Path) -> KeptPart | None:
        """Read a part; None if the file is not what was written."""
        whole = pa.py_buffer(path.read_bytes())
        content = whole[SEAL:]
        if whole[:SEAL].to_pybytes() != _seal(content):
            return None
        with pa.ipc.open_file(content) as file:
            facts = json.loads(file.schema.metadata[FACTS])
            batch = file.get_batch(0).replace_schema_metadata(None)
        return cls(batch, Tally(**facts["tally"]), [BadRow(**bad) for bad in facts["bad"]])


@dataclass(frozen=True)
class KeptParts:
    """The parts in a work folder.

    The system writes them to the disk when it likes: waiting for it takes as long as answering. If
    the machine itself fails, parts that were not there yet lack their end, and are made again.
    """

    folder: Path

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.arrow"

    @property
    def count(self) -> int:
        """Number of parts from the first one on that are there."""
        return next(i for i in numbers() if not self._path(i).exists())

    def read(self, number: int) -> KeptPart | None:
        """Return a part; None if it is damaged."""
        return KeptPart.from_file(self._path(number))

    def put(self, number: int, part: KeptPart) -> None:
        """Keep a part, whole or not at all."""
        half = self.folder / "half"
        part.write(half)
        half.replace(self._path(number))


def _seal(content: pa.Buffer) -> bytes:
    """Return the checksum of a part; a cryptographic one would take as long as writing it."""
    return b"%08x" % crc32(content) + b"\0" * (SEAL - 8)
