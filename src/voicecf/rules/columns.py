"""Find the columns that a user names: by name, by position, or by a column of a declared block."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from voicecf.errors import ColumnError, known_column
from voicecf.geometry.region import Array

# Lists of numbers this short are remembered, and this many of them.
FEW, MOST = 1024, 512
_KNOWN: WeakKeyDictionary[Any, dict[tuple[int, bytes], Array]] = WeakKeyDictionary()


class ColumnLike(Protocol):
    """One of the user's columns, or a block of columns that he made of one."""

    @property
    def name(self) -> Any: ...  # noqa: D102
    @property
    def sources(self) -> tuple[Any, ...]: ...  # noqa: D102
    @property
    def places(self) -> NDArray[np.int64]: ...  # noqa: D102
    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def levels(self) -> tuple[Any, ...]: ...  # noqa: D102
    @property
    def ordered(self) -> bool: ...  # noqa: D102
    @property
    def whole(self) -> bool: ...  # noqa: D102
    @property
    def affine(self) -> bool: ...  # noqa: D102
    @property
    def observed(self) -> tuple[float, float]: ...  # noqa: D102


class SpaceLike(Protocol):
    """What rules need of a space: its columns, and a column's values as coordinates."""

    @property
    def columns(self) -> Sequence[ColumnLike]: ...  # noqa: D102
    @property
    def names(self) -> list[Any]: ...  # noqa: D102
    def coordinates(self, column: int, values: Any) -> Array: ...  # noqa: D102


def column_of(space: SpaceLike, name: Any, where: str) -> int:
    """Return the position in `space.columns` of the column that a user means.

    A column of a declared block stands for the block; a position counts the columns of the user's
    table; text stands for a name that is no text (files of rules have nothing else).
    """
    name = name.item() if isinstance(name, np.generic) else name
    names = list(space.names)
    if name in names:
        return names.index(name)
    sources = sources_of(space)
    if isinstance(name, int) and name not in sources:
        name = sources[known_column(name, sources, where)]
    for i, column in enumerate(space.columns):
        if name in column.sources:
            return i
    spelt = [i for i, known in enumerate(names) if str(known) == name]
    return spelt[0] if len(spelt) == 1 else known_column(name, names, where)


def columns_of(space: SpaceLike, given: Any, where: str) -> list[int]:
    """Return the positions of the columns that a user lists: one, several, or a mask of all."""
    names = listed_columns(given)
    if names and all(isinstance(name, bool) for name in names):
        sources = sources_of(space)
        if len(names) != len(sources):
            raise ColumnError(
                f"{where}: a mask of columns needs {len(sources)} entries; this one has "
                f"{len(names)}."
            )
        names = [source for source, chosen in zip(sources, names, strict=True) if chosen]
    return list(dict.fromkeys(column_of(space, name, where) for name in names))


def coordinates_of(space: SpaceLike, column: int, values: Any) -> Array:
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


def _sent(space: SpaceLike, column: int, values: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.array(space.coordinates(column, values), dtype=np.float64)[:, 0]


def sources_of(space: SpaceLike) -> list[Any]:
    """Return the columns of the user's table, in its order."""
    every = [source for column in space.columns for source in column.sources]
    return list(getattr(space, "sources", every))


def listed_columns(given: Any) -> list[Any]:
    """Read one column or several as a list of plain names."""
    if given is None:
        return []
    if isinstance(given, str) or not isinstance(given, Iterable):
        return [given]
    return [name.item() if isinstance(name, np.generic) else name for name in given]
