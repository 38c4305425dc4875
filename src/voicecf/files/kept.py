"""Parts of answers, kept in the work folder until all are done: whole or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import pyarrow as pa

from voicecf.files.badrows import BadRow
from voicecf.files.tally import Tally

__all__ = ["KeptParts", "Part"]

# Key of the schema's metadata under which counts and bad rows of a part stand.
FACTS = b"voicecf"


@dataclass
class Part:
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
        """Write the part as an Arrow file."""
        facts = {"tally": asdict(self.tally), "bad": [asdict(bad) for bad in self.bad]}
        schema = self.batch.schema.with_metadata({FACTS: json.dumps(facts).encode()})
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, schema) as file:
            file.write_batch(self.batch.replace_schema_metadata(schema.metadata))

    @classmethod
    def from_file(cls, path: Path) -> Part:
        """Read a part, without copying the answers."""
        with pa.ipc.open_file(pa.memory_map(str(path))) as file:
            facts = json.loads(file.schema.metadata[FACTS])
            batch = file.get_batch(0).replace_schema_metadata(None)
        return cls(batch, Tally(**facts["tally"]), [BadRow(**bad) for bad in facts["bad"]])


class KeptParts:
    """The parts in a work folder, from the first one to the last that is whole.

    The system writes them to the disk when it likes: waiting for it takes as long as answering. If
    the machine itself fails, parts that were not there yet lack their end, and are made again.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "parts"
        self.folder.mkdir(exist_ok=True)
        self.count = 0
        while _is_whole(self._path(self.count)):
            self.count += 1

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}.arrow"

    def __iter__(self) -> Iterator[Part]:
        return (Part.from_file(self._path(number)) for number in range(self.count))

    def add(self, part: Part) -> Part:
        """Keep one more part, and return it."""
        half = self.folder / "half"
        part.write(half)
        half.replace(self._path(self.count))
        self.count += 1
        return part


def _is_whole(path: Path) -> bool:
    try:
        with pa.ipc.open_file(pa.memory_map(str(path))) as file:
            return FACTS in file.schema.metadata
    except (FileNotFoundError, pa.ArrowInvalid):
        return False
