"""Columns of the user's table that the model does not know, such as ids and notes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from voicecf.errors import ColumnError, likely
from voicecf.geometry.arrays import Ints
from voicecf.table.frames import as_frame
from voicecf.table.rows import Rows

if TYPE_CHECKING:
    from voicecf.table.space import Space


@dataclass(frozen=True, eq=False)
class Extra:
    """Columns of the user's table that the model does not know.

    Attributes
    ----------
    columns : dict of object to narwhals series
        These columns, by name, and that of the ids, which the pipeline may drop.
    names : list
        All columns of the user's table, in its order.
    id : object
        The column with the ids of the rows; None if there is none.
    """

    columns: dict[Any, Any]
    names: list[Any]
    id: Any = None

    def beside(self, frame: Any, which: Ints) -> Any:
        """Return a narwhals frame with these columns of the rows `which`, in the user's order."""
        frame = frame.with_columns(*(series[which] for series in self.columns.values()))
        columns = list(frame.columns)
        return frame[:, [columns.index(name) for name in self.names if name in columns]]


def read_with_extra(
    space: Space, X: Any, id: Any = None, errors: Literal["status", "raise"] = "raise"
) -> Rows:
    """Read a table, and keep the columns that the model does not know.

    Parameters
    ----------
    space : Space
    X : frame or array
    id : column, optional
        The column with the ids of the rows.
    errors : "status" or "raise"
        What becomes of rows that cannot be read; see `Space.read`.
    """
    frame = as_frame(X)
    if frame is None:
        if id is not None:
            raise ColumnError(f"id={id!r} names a column, and X is an array; pass a frame.")
        return space.read(X, errors)
    names, known = list(frame.columns), frame
    if id is not None:
        _check_id(space, id, names)
        known = frame if space.named else frame.drop(id)
    rows = space.read(known, errors)
    read = list(rows.frame.columns)
    if read == names and id is None:
        return rows
    # Copies: answers must not change if the user changes the frame later.
    unknown = [at for at, name in enumerate(names) if name not in read or name == id]
    copies = frame[:, unknown].iter_columns() if unknown else ()
    columns = {series.name: series for series in copies}
    return rows.but(extra=Extra(columns, names, id))


def _check_id(space: Space, id: Any, names: list[Any]) -> None:
    """Raise if the column of ids is not there, or is a column of the model."""
    if id not in names:
        raise ColumnError(f"unknown column {id!r} in id; {likely(id, names)}")
    if space.named and any(id in column.sources for column in space.columns):
        raise ColumnError(
            f"id={id!r} is a column that the model uses; give a column that only names the rows."
        )
