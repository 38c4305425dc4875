"""Which files are meant by a path, and the source that reads them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from voicecf.errors import DataError
from voicecf.files.csvfiles import CsvFiles
from voicecf.files.reading import ParquetFiles, Source

__all__ = ["check_apart", "input_files", "open_source"]

# Endings of the names of files that are read.
CSV, PARQUET = (".csv", ".tsv", ".csv.gz", ".tsv.gz"), (".parquet", ".pq")


def open_source(given: Any, **options: Any) -> Source:
    """Open a CSV or Parquet file, or a folder of them.

    Parameters
    ----------
    given : path
    **options
        Of CSV files: `delimiter`, `decimal`, `encoding`, `kinds` and `categories`, see `CsvFiles`.
    """
    files, kind = input_files(Path(given))
    if kind == "parquet":
        return ParquetFiles(files)
    return CsvFiles(files, **options)


def input_files(given: Path) -> tuple[list[Path], str]:
    """Return the files that are meant, in the order of their names, and their kind."""
    if not given.exists():
        raise DataError(f"there is no file or folder {given}.")
    if given.is_file():
        files = [given]
    else:
        every = sorted(p for p in given.rglob("*") if p.is_file())
        files = [p for p in every if not _hidden(p.relative_to(given)) and _kind(p)]
        if not files:
            raise DataError(f"there is no CSV or Parquet file in the folder {given}.")
    kinds = {_kind(file) for file in files}
    if len(kinds) > 1:
        raise DataError(f"the folder {given} holds both CSV and Parquet files; give one kind.")
    (kind,) = kinds
    if kind is None:
        raise DataError(
            f"{given} is neither CSV nor Parquet by its name; rename it to end in .csv or .parquet."
        )
    return files, kind


def check_apart(files: list[Path], output: Path) -> None:
    """Refuse an output that is the input, or would become part of it."""
    for file in files:
        if output.absolute() in (file.absolute(), *file.absolute().parents):
            raise DataError(f"the output {output} would replace the input {file}; give another.")
    inside = {file.absolute().parent for file in files} if len(files) > 1 else set()
    if inside & set(output.absolute().parents):
        raise DataError(f"the output {output} lies within the folder of the input; give another.")


def _kind(file: Path) -> str | None:
    name = file.name.lower()
    return "csv" if name.endswith(CSV) else "parquet" if name.endswith(PARQUET) else None


def _hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)
