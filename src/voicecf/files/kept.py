"""Parts of answers, kept in the work folder until all are done: whole or not at all."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from zlib import crc32

import pyarrow as pa

from voicecf.files.badrows import BadRow
from voicecf.files.tally import Tally

__all__ = ["KeptPart", "KeptParts"]

# Key of the schema's metadata under which counts and bad rows of a part stand.
FACTS = b"voicecf"
# Bytes before a part, which begin with its checksum; so many that Arrow's buffers stay aligned.
SEAL = 64


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


class KeptParts:
    """The parts in a work folder, from the first one on.

    The system writes them to the disk when it likes: waiting for it takes as long as answering. If
    the machine itself fails, parts that were not there yet lack their end, and are made again.

    Parameters
    ----------
    folder : Path
    most : int
        Number of parts that all rows make.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self.folder = folder / "parts"
        self.folder.mkdir(exist_ok=True)
        self.count = 0
        while self.count < most and self._path(self.count).exists():
            self.count += 1

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.arrow"

    def read(self, number: int) -> KeptPart | None:
        """Return a part; None if it is damaged."""
        return KeptPart.from_file(self._path(number))

    def put(self, part: KeptPart, number: int) -> KeptPart:
        """Keep a part in its place, and return it."""
        half = self.folder / "half"
        part.write(half)
        half.replace(self._path(number))
        return part

    def add(self, part: KeptPart) -> KeptPart:
        """Keep one more part, and return it."""
        self.put(part, self.count)
        self.count += 1
        return part


def _seal(content: pa.Buffer) -> bytes:
    """Return the checksum of a part; a cryptographic one would take as long as writing it."""
    return b"%08x" % crc32(content) + b"\0" * (SEAL - 8)
