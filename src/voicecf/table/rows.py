"""Rows of the user's table: the user's values, coordinates, and the input of the model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.table.frames import Kind, columns_of

if TYPE_CHECKING:
    from voicecf.table.extra import Extra


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of the user's table.

    Attributes
    ----------
    frame : narwhals frame or None
        The user's values; None if the rows came as an array.
    points : array of shape (n, d)
        Coordinates.
    seen : array of shape (n, p)
        The input of the model: the points, or what steps such as PCA make of them.
    kind : Kind or None
        The library of the frame and its index.
    array : array or None
        The user's values, if the rows came as an array.
    extra : Extra or None
        Columns of the user's table that the model does not know, and the order of all columns;
        None if there is nothing to know about them.
    faults : dict of int to str
        Rows that cannot be read, and why. Here they are replaced by a row that can be read.
    original : Rows or None
        The rows as they came, if some of them are replaced.
    """

    frame: Any
    points: Array
    seen: Array
    kind: Kind | None = None
    array: NDArray[Any] | None = None
    extra: Extra | None = None
    faults: dict[int, str] = field(default_factory=dict)
    original: Rows | None = None

    @classmethod
    def unread(cls, frame: Any, array: NDArray[Any] | None, kind: Kind | None) -> Rows:
        """Return rows whose coordinates are not computed yet."""
        empty = np.empty((0, 0))
        return cls(frame, empty, empty, kind, array)

    def __len__(self) -> int:
        if self.frame is not None:
            return len(self.frame)
        return len(self.points if self.array is None else self.array)

    @property
    def native(self) -> Any:
        """The user's values: a frame of the user's library, or an array."""
        return self.array if self.frame is None else self.frame.to_native()

    @property
    def own_ids(self) -> Any:
        """The user's id column, or an index other than 0, 1, 2, ...; None if there is neither."""
        if self.extra is not None and self.extra.id is not None:
            return self.extra.columns[self.extra.id]
        return None if self.kind is None else self.kind.own_index

    def ids(self, which: Ints) -> Any:
        """Return the ids of some rows as a narwhals series "id"; None if rows have only positions.

        See `own_ids`.
        """
        ids = self.own_ids
        if ids is None:
            return None
        if isinstance(ids, nw.Series):
            return ids[which].alias("id")
        series = ids[which].to_series(name="id").reset_index(drop=True)
        return nw.from_native(series, series_only=True)

    def but(self, **facts: Any) -> Rows:
        """Return the same values with other facts; columns that were made are not made again."""
        rows = replace(self, **facts)
        if "columns" in vars(self):
            vars(rows)["columns"] = self.columns
        return rows

    @cached_property
    def columns(self) -> dict[Any, Any]:
        """The columns of the frame by name: see `columns_of`."""
        return columns_of(self.frame)

    def column(self, name: Any) -> Any:
        """Return a column of the frame: an array of numbers, or a narwhals series."""
        column = self.columns[name]
        text = isinstance(column, np.ndarray) and column.dtype == object
        return self.frame.get_column(name) if text else column

    def take(self, which: Ints) -> Rows:
        """Return some of the rows."""
        frame = None if self.frame is None else self.frame[which]
        array = None if self.array is None else self.array[which]
        points, seen = (a[which] if len(a) else a for a in (self.points, self.seen))
        return Rows(frame, points, seen, self.kind, array)

    def followed_by(self, others: Rows) -> Rows:
        """Return these rows with the user's values of others appended; coordinates are not."""
        frame, array = self.frame, self.array
        if frame is not None:
            schema = frame.schema
            rest = others.frame.with_columns(
                others.frame.get_column(name).cast(dtype)
                for name, dtype in others.frame.schema.items()
                if dtype != schema[name]
            )
            frame = nw.concat([frame, rest], how="vertical")
        if array is not None and others.array is not None:
            array = np.concatenate([array, others.array])
        return replace(self, frame=frame, array=array)


def without_values(points: NDArray[Any]) -> Mask:
    """Return a mask of the points that have a NaN."""
    # The sum of a row is NaN if one of its values is; this is several times faster than `any`.
    return np.asarray(np.isnan(np.einsum("ij->i", points, dtype=np.float64)))


def side_of(side: Array, which: Ints, c: int) -> Any:
    """Return the lower or upper bounds of column c for some rows.

    `side` has shape (columns,) or (n or 1, columns).
    """
    if side.ndim == 1:
        return side[c]
    return side[0 if len(side) == 1 else which, c]
