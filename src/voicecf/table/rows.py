"""Rows of the user's table: values as they came, coordinates, and what the model sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints
from voicecf.table.frames import Kind


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as they came: the user's values, coordinates, and what the model sees.

    Attributes
    ----------
    frame : narwhals frame or None
        The user's columns; None for an array.
    points : array of shape (n, d)
        Coordinates.
    seen : array of shape (n, p)
        What the model sees; the points themselves where nothing is mixed.
    kind : Kind or None
        What the frame was.
    raw : object
        What the steps before the model made, of whatever kind; None without steps.
    array : array or None
        The rows where they came as an array to a pipeline.
    """

    frame: Any
    points: Array
    seen: Array
    kind: Kind | None = None
    raw: Any = None
    array: NDArray[Any] | None = None

    @classmethod
    def unread(cls, frame: Any, array: NDArray[Any] | None, kind: Kind | None) -> Rows:
        """Return rows in the user's columns whose coordinates are not known yet."""
        empty = np.empty((0, 0))
        return cls(frame, empty, empty, kind, None, array)

    def __len__(self) -> int:
        if self.frame is not None:
            return len(self.frame)
        return len(self.points if self.array is None else self.array)

    def take(self, which: Ints) -> Rows:
        """Return some of the rows, without what the steps made of them."""
        frame = None if self.frame is None else self.frame[which]
        array = None if self.array is None else self.array[which]
        points, seen = (a[which] if len(a) else a for a in (self.points, self.seen))
        return Rows(frame, points, seen, self.kind, None, array)

    def followed_by(self, others: Rows) -> Rows:
        """Return the user's values of these rows, and of others after them."""
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


def side_of(side: Array, rows: Ints, c: int) -> Any:
    """Return one side of the bounds of a column for some rows, or for all of them."""
    if side.ndim == 1:
        return side[c]
    return side[rows if len(side) > 1 else 0, c]
