"""How answers are written: one Parquet or CSV file, or a folder of them, part by part."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from voicecf.files.entry import PREFIX
from voicecf.saving.whole import flush


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
