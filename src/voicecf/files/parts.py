"""Where answers go: one file or a folder of files, a part at a time, whole or not at all."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from voicecf.files.folder import Appended, OutputError, write_whole
from voicecf.files.footers import joined

__all__ = ["CsvFile", "Folder", "Form", "ParquetFile", "Sink", "form_of"]

MAGIC = b"PAR1"
# Bytes after the footer of a Parquet file: its length and the magic.
TAIL = 8


class Sink(ABC):
    """Takes parts one after the other, and says of each what a later run has to know.

    Parameters
    ----------
    folder : Path
        The work folder.
    schema : pyarrow.Schema
    """

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self.folder, self.schema = folder, schema

    @abstractmethod
    def resume(self, done: list[dict[str, Any]]) -> None:
        """Go on after parts that are on the disk, of which `add` said this."""

    @abstractmethod
    def add(self, part: pa.RecordBatch) -> dict[str, Any]:
        """Put a part on the disk, and tell about it."""

    @abstractmethod
    def finish(self) -> Path:
        """Complete the result and return where it is."""


class ParquetFile(Sink):
    """One Parquet file, a row group a part.

    Each part is encoded as a file of its own, of which the data go to the end of what is there and
    the footer to the journal. Joining is a matter of writing one footer, and nothing is written
    twice.
    """

    def resume(self, done: list[dict[str, Any]]) -> None:
        """Cut the data back to what is known, and read the footers."""
        self.data = Appended(self.folder / "data.parquet")
        self.data.cut(done[-1]["bytes"] if done else 0)
        self.footers = [(base64.b64decode(entry["footer"]), entry["shift"]) for entry in done]

    def add(self, part: pa.RecordBatch) -> dict[str, Any]:
        """Add a row group."""
        encoded = memoryview(parquet_bytes(part))
        size = int.from_bytes(encoded[-TAIL : -len(MAGIC)], "little")
        data, footer = encoded[: -TAIL - size], bytes(encoded[-TAIL - size : -TAIL])
        shift = self.data.length - len(MAGIC) if self.data.length else 0
        self.data.add(data[len(MAGIC) :] if shift else data)
        self.footers.append((footer, shift))
        text = base64.b64encode(footer).decode("ascii")
        return {"bytes": self.data.length, "footer": text, "shift": shift}

    def finish(self) -> Path:
        """Write the footer of all row groups."""
        if not self.footers:
            self.add(_no_rows(self.schema))
        footer = joined(self.footers)
        self.data.add(footer + len(footer).to_bytes(TAIL - len(MAGIC), "little") + MAGIC)
        return self.data.path


class CsvFile(Sink):
    """One CSV file."""

    delimiter = ","

    def resume(self, done: list[dict[str, Any]]) -> None:
        """Cut the data back to what is known."""
        self.data = Appended(self.folder / "data.csv")
        self.data.cut(done[-1]["bytes"] if done else 0)

    def add(self, part: pa.RecordBatch) -> dict[str, Any]:
        """Add lines; the first ones with the names of the columns."""
        self.data.add(csv_bytes(part, not self.data.length, self.delimiter))
        return {"bytes": self.data.length}

    def finish(self) -> Path:
        """Return the file; the names of the columns, where there are no rows."""
        if not self.data.length:
            self.add(_no_rows(self.schema))
        return self.data.path


class TsvFile(CsvFile):
    """One file with tabs between its columns."""

    delimiter = "\t"


class Folder(Sink):
    """A folder of files, one a part: part-00000.parquet and so on."""

    suffix, encode = "parquet", staticmethod(lambda part: parquet_bytes(part))

    def resume(self, done: list[dict[str, Any]]) -> None:
        """Check that the parts are there, whole."""
        self.parts = self.folder / "parts"
        self.parts.mkdir(exist_ok=True)
        for number, entry in enumerate(done):
            path = self._path(number)
            if not path.exists() or path.stat().st_size != entry["bytes"]:
                raise OutputError(f"{path} is gone or was changed; start again with --restart.")
        self.count = len(done)

    def _path(self, number: int) -> Path:
        return self.parts / f"part-{number:05d}.{self.suffix}"

    def add(self, part: pa.RecordBatch) -> dict[str, Any]:
        """Write a file."""
        encoded = self.encode(part)
        write_whole(self._path(self.count), encoded)
        self.count += 1
        return {"bytes": len(encoded)}

    def finish(self) -> Path:
        """Return the folder; with one empty part, where there are no rows."""
        if not self.count:
            self.add(_no_rows(self.schema))
        wanted = {self._path(number) for number in range(self.count)}
        for path in set(self.parts.iterdir()) - wanted:
            path.unlink()  # of a part that was not put down as done
        return self.parts


class CsvFolder(Folder):
    """A folder of CSV files."""

    suffix, encode = "csv", staticmethod(lambda part: csv_bytes(part, True))


Form = type[Sink]


def form_of(output: Path, form: str | None) -> Form:
    """Return how an output is written, by the end of its name: .parquet, .csv, or a folder."""
    name = output.name.lower()
    if name.endswith((".parquet", ".pq")):
        return ParquetFile
    if name.endswith((".csv", ".tsv")):
        return CsvFile if name.endswith(".csv") else TsvFile
    return CsvFolder if form == "csv" else Folder


def parquet_bytes(part: pa.RecordBatch) -> pa.Buffer:
    """Return a part as a Parquet file."""
    # A dictionary of measured numbers is as long as they are, and takes most of the time.
    repeated = [field.name for field in part.schema if not pa.types.is_floating(field.type)]
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, part.schema, use_dictionary=repeated, compression="snappy") as file:
        if part.num_rows:
            file.write_batch(part, row_group_size=part.num_rows)
    return sink.getvalue()


def csv_bytes(part: pa.RecordBatch, header: bool, delimiter: str = ",") -> pa.Buffer:
    """Return a part as lines of CSV."""
    sink = pa.BufferOutputStream()
    pacsv.write_csv(part, sink, pacsv.WriteOptions(include_header=header, delimiter=delimiter))
    return sink.getvalue()


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)
