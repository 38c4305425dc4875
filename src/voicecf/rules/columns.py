"""Look up columns that the user names: by name, position, or a column of a declared block."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from voicecf.errors import ColumnError, OptionError, known_column, likely
from voicecf.geometry.arrays import Array
from voicecf.table.column import Column
from voicecf.table.frames import is_missing, plain_item
from voicecf.table.space import Space

# Coordinates are cached for lists of up to MOST_VALUES values, and MOST_LISTS lists of a space.
MOST_VALUES, MOST_LISTS = 1024, 512
_CACHES: WeakKeyDictionary[Any, dict[str, dict[Any, Any]]] = WeakKeyDictionary()
Made = TypeVar("Made")


def cached(space: Space, what: str, key: Any, make: Callable[[], Made], most: int = 16) -> Made:
    """Return what `make` returns, or has returned for the same key: the last `most` are cached."""
    cache = _CACHES.setdefault(space, {}).setdefault(what, {})
    found: Made | None = cache.get(key)
    if found is None:
        found = cache[key] = make()
        for oldest in list(cache)[:-most]:
            cache.pop(oldest, None)
    return found


def column_of(space: Space, name: Any, where: str) -> int:
    """Return the position in `space.columns` of the column that a user means.

    A column of a declared block stands for the block. A position counts the columns of the user's
    table. Text also matches a name that is not text, such as 10, because rules that are read from
    a file have only text for names.
    """
    name, names = plain_item(name), list(space.names)
    if name in names:
        return names.index(name)
    if isinstance(name, int) and name not in space.sources:
        name = space.sources[known_column(name, space.sources, where)]
    for i, column in enumerate(space.columns):
        if name in column.sources:
            return i
    if name in space.sources:
        raise ColumnError(
            f"column {name!r} in {where} is not used by the model, so it never changes; leave it "
            "out."
        )
    return known_column(name, names, where)


def columns_of(space: Space, columns: Any, where: str) -> list[int]:
    """Return the positions of the columns that a user lists: one, several, or a mask of all.

    A column that the model does not use never changes, and may be listed as immutable.
    """
    names = listed_columns(columns)
    if names and all(isinstance(name, bool) for name in names):
        if len(names) != len(space.sources):
            raise ColumnError(
                f"{where}: a mask of columns needs {len(space.sources)} entries, one for each "
                f"column; this one has {len(names)}."
            )
        names = [source for source, chosen in zip(space.sources, names, strict=True) if chosen]
    if where == "immutable":
        used = {source for column in space.columns for source in column.sources}
        names = [name for name in names if name in used or name not in space.sources]
    return list(dict.fromkeys(column_of(space, name, where) for name in names))


def coordinates_of(space: Space, column: int, values: Any) -> Array:
    """Return the coordinates of values of a number column, (n,); NaN outside the map's domain.

    A pipeline is slow, and rules ask for the same few bounds with every row that is explained:
    short lists are cached as long as the space exists.
    """
    values = np.asarray(values, dtype=np.float64)

    def computed() -> Array:
        with np.errstate(all="ignore"):
            return np.array(space.coordinates(column, values), dtype=np.float64)[:, 0]

    if len(values) > MOST_VALUES:
        return computed()
    return cached(space, "coordinates", (column, values.tobytes()), computed, MOST_LISTS)


def affine_map(space: Space, column: int) -> tuple[float, float]:
    """Return scale and shift of an affine number column: coordinate = scale * value + shift.

    The shift is the coordinate of 0. The scale is the slope between a value below all data and one
    above: their coordinates are far apart, so that no digits cancel in their difference, whether
    the pipeline subtracts first (StandardScaler) or last (MinMaxScaler).
    """
    low, high = space.columns[column].observed
    largest = max(abs(low), abs(high))
    above = 2.0 ** np.ceil(np.log2(largest)) * 2 if 0 < largest < np.inf else 1.0
    below = -above
    if space.columns[column].whole and 0 <= low <= high <= 1:
        below, above = 0.0, 1.0  # a boolean column has no other values
    shift, z_below, z_above = coordinates_of(space, column, [0.0, below, above]).tolist()
    return (z_above - z_below) / (above - below), shift


def listed_columns(columns: Any) -> list[Any]:
    """Return one column or several as a list of names that are plain Python values."""
    if columns is None:
        return []
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        return [columns]
    return [plain_item(name) for name in columns]


def level_position(level: Any, column: Column, word: str, missing: bool = False) -> int:
    """Return the position of a level among a column's; a missing value only if `missing`."""
    where = f"{word} of {column.name!r}"
    if is_missing(level):
        gaps = [i for i, known in enumerate(column.levels) if is_missing(known)]
        if missing and gaps:
            return gaps[0]
        raise OptionError(f"{where}: a missing value is not a level that a row may move to.")
    if level in column.levels:
        return column.levels.index(level)
    # Rules that are read from a file may have text where the column has numbers.
    number = {"true": 1.0, "false": 0.0}.get(str(level).lower(), level)
    same = [i for i, known in enumerate(column.levels) if _same_level(known, level, number)]
    if len(same) == 1:
        return same[0]
    known = [known for known in column.levels if not is_missing(known)]
    raise OptionError(f"unknown level {level!r} in {where}; {likely(level, known)}")


def _same_level(known: Any, text: Any, number: Any) -> bool:
    """Tell whether a level is what a text says: the same text, number or truth value."""
    if str(known) == text:
        return True
    try:
        return not isinstance(known, str) and float(known) == float(number)
    except (TypeError, ValueError):
        return False
