"""Rows that cannot be answered: where they are, what is in them, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from voicecf.errors import DataError
from voicecf.table.space import Space

if TYPE_CHECKING:
    from voicecf.learned.explainer import Explainer

__all__ = ["BadRow", "BadRowError", "Check"]

HEADER = "row,file,place,column,value,why\n"
# How much of a value is shown.
SHOWN = 60
# Cells whose reading is remembered.
REMEMBERED = 10_000


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be answered.

    Attributes
    ----------
    row : int
        Its number in the whole input, from 0.
    file : str
    place : str
        "line 17" of a CSV file, "row 16" (from 0) of a Parquet file.
    column, value : str
        The first cell that is wrong; empty where the row itself is.
    why : str
    """

    row: int
    file: str
    place: str
    column: str
    value: str
    why: str

    def __str__(self) -> str:
        cell = f", column {self.column!r}" if self.column else ""
        return f"{self.file}, {self.place}{cell}: {self.why}"

    @property
    def missing(self) -> bool:
        """Whether all that is wrong is that a value is missing."""
        return self.why == MISSING

    def line(self) -> str:
        """Return it as a line of CSV."""
        return ",".join(_quoted(str(part)) for part in astuple(self)) + "\n"


class BadRowError(DataError):
    """A row cannot be answered, and bad rows are fatal."""

    def __init__(self, bad: BadRow) -> None:
        super().__init__(
            f"{bad}. Mend it, or leave such rows out with --bad-rows skip (they are listed)."
        )
        self.bad = bad


MISSING = "a value is missing (--missing fill fills it in, --missing drop leaves the row out)"
INFINITE = "{value} is infinite"
UNKNOWN = "{value} is no level that the explainer knows"


@dataclass
class Check:
    """Finds cells that an explainer cannot read.

    Attributes
    ----------
    numbers : list of str
        Columns that hold numbers.
    levels : dict of str to pyarrow array
        The levels of columns that are categories; None where any will do.
    reads : function of a table of one row to bool
        Whether a suspicious row can be read after all: an imputer fills the gap, or an encoder
        takes a level for none of its own.
    """

    numbers: list[str]
    levels: dict[str, Any]
    reads: Callable[[pa.Table], bool]

    def __post_init__(self) -> None:
        """Remember what was found out about suspicious cells, and a row that has none."""
        self.known: dict[tuple[str, Any], bool] = {}
        self.sound: pa.Table | None = None

    @classmethod
    def of(cls, voice: Explainer, names: list[str]) -> Check:
        """Return the check of what a fitted explainer can read of a table with some columns."""
        space, numbers = voice.space_, []
        levels: dict[str, Any] = {}
        for column in space.columns:
            for source in column.sources:
                name = _name(space, names, source)
                if column.numeric or column.declared:
                    numbers.append(name)
                else:
                    levels[name] = _levels(column.levels)
        return cls(numbers, levels, lambda row: _reads(voice, row))

    def cells(self, table: pa.Table) -> dict[int, tuple[str, str, str]]:
        """Return column, value and reason of the first bad cell of each bad row."""
        found: dict[int, tuple[str, str, str]] = {}
        suspected = list(self._suspects(table))
        if suspected:
            self._keep_sound_row(table, [mask for _, mask, _ in suspected])
        for name, mask, why in suspected:
            rows = np.flatnonzero(mask).tolist()
            values = table[name].take(pa.array(rows, pa.int64())).to_pylist()
            for i, value in zip(rows, values, strict=True):
                if i not in found and not self._taken(table, i, name, value):
                    text = "" if value is None else str(value)[:SHOWN]
                    found[i] = name, text, why.format(value=repr(value)[:SHOWN])
        return found

    def _suspects(self, table: pa.Table) -> Iterator[tuple[str, NDArray[np.bool_], str]]:
        for name in self.numbers:
            column = table[name]
            if column.null_count:
                yield name, _mask(column.is_null()), MISSING
            if pa.types.is_floating(column.type) and not _all_finite(column):
                yield name, _mask(pc.fill_null(pc.is_nan(column), False)), MISSING
                yield name, _mask(pc.fill_null(pc.is_inf(column), False)), INFINITE
        for name, levels in self.levels.items():
            column = table[name]
            if column.null_count:
                yield name, _mask(column.is_null()), MISSING
            if levels is not None:
                yield name, _mask(column.is_valid()) & ~_among(_plain(column), levels), UNKNOWN

    def _keep_sound_row(self, table: pa.Table, masks: list[NDArray[np.bool_]]) -> None:
        if self.sound is None:
            sound = np.flatnonzero(~np.logical_or.reduce(masks))
            self.sound = table.slice(int(sound[0]), 1) if len(sound) else None

    def _taken(self, table: pa.Table, i: int, name: str, value: Any) -> bool:
        """Tell whether a cell is read after all: by itself, in a row without other faults."""
        key = name, None if value is None or value != value else value
        if key not in self.known:
            if len(self.known) > REMEMBERED:
                self.known.clear()
            row = table.slice(i, 1)
            if self.sound is not None:
                place = table.column_names.index(name)
                row = self.sound.set_column(place, table.schema.field(place), row[name])
            self.known[key] = self.reads(row)
        return self.known[key]


def _reads(voice: Explainer, row: pa.Table) -> bool:
    try:
        voice.predict(row)
    except ValueError:
        return False
    return True


def _all_finite(column: Any) -> bool:
    with np.errstate(all="ignore"):
        return all(np.isfinite(np.asarray(chunk.drop_null()).sum()) for chunk in column.chunks)


def _levels(levels: tuple[Any, ...]) -> Any:
    known = [level for level in levels if level is not None and level == level]
    try:
        return pa.array(known)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return None


def _among(column: Any, levels: Any) -> NDArray[np.bool_]:
    """Tell which values are among some levels; where types do not compare, none is."""
    try:
        return _mask(pc.is_in(column, value_set=levels.cast(column.type)))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return np.zeros(len(column), dtype=np.bool_)


def _name(space: Space, names: list[str], source: Any) -> str:
    return str(source) if space.named else names[space.sources.index(source)]


def _plain(column: Any) -> Any:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _mask(values: Any) -> NDArray[np.bool_]:
    return np.asarray(values, dtype=np.bool_)


def _quoted(text: str) -> str:
    plain = not any(mark in text for mark in ',"\n\r')
    return text if plain else '"' + text.replace('"', '""') + '"'
