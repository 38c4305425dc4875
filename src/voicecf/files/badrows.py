"""Rows that cannot be answered: where they are and why."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc

from voicecf.errors import DataError

MISSING = "{name} has no value (--missing fill fills it in, --missing drop leaves the row out)"
INFINITE = "{name} is not a finite number"

# Where a row is: the name of a file, and a line or a row of it.
Place = tuple[str, str]


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be answered.

    Attributes
    ----------
    row : int or None
        Its number in the table, from 0; None for a line that is no row at all.
    file : str
    place : str
        "line 17" of a CSV file, "row 16" (from 0) of another.
    why : str
    """

    row: int | None
    file: str
    place: str
    why: str

    def __str__(self) -> str:
        return f"{self.file}, {self.place}: {self.why}"


class BadRowError(DataError):
    """A row cannot be answered, and bad rows are fatal."""

    def __init__(self, bad: BadRow) -> None:
        super().__init__(
            f"{str(bad).rstrip('.')}. Correct it, or leave such rows out with --bad-rows skip "
            "(they are listed)."
        )


def unusable(table: Any, names: Sequence[str], first: int) -> dict[int, str]:
    """Return the rows of a pyarrow table with a missing or infinite value in some columns, and why.

    What is missing is told before what is infinite. `first` is the number of the first row.
    """
    found: dict[int, str] = {}
    numbers = [name for name in names if str(table[name].type) in ("float", "double", "halffloat")]
    gaps = [(MISSING, name, table[name].is_null(nan_is_null=True)) for name in names]
    infinite = [(INFINITE, n, pc.fill_null(pc.is_inf(table[n]), False)) for n in numbers]
    for why, name, mask in (*gaps, *infinite):
        for row in np.flatnonzero(np.asarray(mask)).tolist():
            found.setdefault(first + row, why.format(name=name))
    return found


@contextmanager
def listing(path: Path, bad: Iterable[BadRow]) -> Iterator[Callable[[Iterable[BadRow]], None]]:
    """List bad rows in a CSV file: those given, and those that the function is called with."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(BadRow)])
        writer.writerows(map(astuple, bad))
        yield lambda more: writer.writerows(map(astuple, more))
