"""Find the columns that a user names: by name, by position, or by a column of a declared block."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from voicecf.errors import ColumnError, known_column
from voicecf.geometry.arrays import Array
from voicecf.table.space import Space

# Lists of numbers this short are remembered, and this many of them.
FEW, MOST = 1024, 512
_KNOWN: WeakKeyDictionary[Any, dict[tuple[int, bytes], Array]] = WeakKeyDictionary()


def column_of(space: Space, name: Any, where: str) -> int:
    """Return the position in `space.columns` of the column that a user means.

    A column of a declared block stands for the block; a position counts the columns of the user's
    table; text stands for a name that is no text (files of rules have nothing else).
    """
    name = name.item() if isinstance(name, np.generic) else name
    names = list(space.names)
    if name in names:
        return names.index(name)
    if isinstance(name, int) and name not in space.sources:
        name = space.sources[known_column(name, space.sources, where)]
    for i, column in enumerate(space.columns):
        if name in column.sources:
            return i
    return known_column(name, names, where)


def columns_of(space: Space, given: Any, where: str) -> list[int]:
    """Return the positions of the columns that a user lists: one, several, or a mask of all."""
    names = listed_columns(given)
    if names and all(isinstance(name, bool) for name in names):
        if len(names) != len(space.sources):
            raise ColumnError(
                f"{where}: a mask of columns needs {len(space.sources)} entries; this one has "
                f"{len(names)}."
            )
        names = [source for source, chosen in zip(space.sources, names, strict=True) if chosen]
    return list(dict.fromkeys(column_of(space, name, where) for name in names))


def coordinates_of(space: Space, column: int, values: Any) -> Array:
    """Return the coordinates of numbers, (n,); NaN outside of the map's domain.

    A pipeline takes its time, and rules ask for the same few bounds row after row: those are
    remembered for as long as the space lives.
    """
    values = np.asarray(values, dtype=np.float64)
    if len(values) > FEW:
        return _sent(space, column, values)
    known = _KNOWN.setdefault(space, {})
    key = column, values.tobytes()
    if key not in known:
        if len(known) >= MOST:
            known.clear()
        known[key] = _sent(space, column, values)
        known[key].flags.writeable = False
    return known[key]


def _sent(space: Space, column: int, values: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.array(space.coordinates(column, values), dtype=np.float64)[:, 0]


def listed_columns(given: Any) -> list[Any]:
    """Read one column or several as a list of plain names."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return [name.item() if isinstance(name, np.generic) else name for name in given]
