"""Rows that cannot be read: which value is at fault, and what to do about it.

The causes are found in the table. A value that looks wrong, because it is missing, infinite or an
unknown level, is at fault if the steps cannot read it in a row that is fine otherwise.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.errors import DataError
from voicecf.table.column import Column
from voicecf.table.frames import Cells, is_missing, numbers, plain_values
from voicecf.table.rows import Rows

if TYPE_CHECKING:
    from voicecf.table.space import Space

MISSING = "{name} has no value. Fill it in, or put a SimpleImputer into the pipeline."
INFINITE = "{name} is {value}, which is not a finite number. Correct it."
UNKNOWN = (
    "{name} has the level {value!r}, which is not known from the data of fit. Correct it, or let "
    "the encoder accept unknown levels (handle_unknown)."
)
OUTSIDE = "{name} is {value:g}, which the steps before the model cannot transform. Correct it."
DEPENDENT = (
    "{name} has no value, and the one that the pipeline fills in depends on other columns, so it "
    "would change with them. Fill it in first."
)


def with_faults(space: Space, rows: Rows, error: DataError | None) -> Rows:
    """Read rows of which some cannot be read, and replace these by a row of the data.

    Parameters
    ----------
    space : Space
    rows : Rows
        Not read yet, unless they can be read.
    error : DataError or None
        Why the rows cannot be read all together; it is raised again if the table does not show a
        cause. None if they can be read.

    Returns
    -------
    Rows
        With `faults`, and the rows as they came in `original`.
    """
    faults = _dependent(space, rows)
    if error is None:
        return replace(rows, faults=faults, original=rows) if faults else rows
    faults = {**_wrong_values(space, rows), **faults}
    if not faults and space.steps is None:
        raise error
    readable = _with_readable_values(space, rows, faults)
    outside = {} if space.steps is None else _outside(space, readable)
    faults = {**outside, **faults}
    if not faults:
        raise error
    read = space.read_again(_with_readable_values(space, readable, outside))
    return replace(read, faults=faults, original=rows.take(np.arange(len(rows))))  # a copy


def _dependent(space: Space, rows: Rows) -> dict[int, str]:
    """Return the rows with a missing value that is filled in from other columns."""
    faults: dict[int, str] = {}
    for i in [] if space.steps is None else space.steps.filled:
        source = space.sources[i]
        for row in np.flatnonzero(
            [is_missing(value) for value in plain_values(space.user_column(rows, source))]
        ):
            faults.setdefault(int(row), DEPENDENT.format(name=source))
    return faults


def _wrong_values(space: Space, rows: Rows) -> dict[int, str]:
    """Return the rows with a value that cannot be read."""
    faults: dict[int, str] = {}
    for column in space.columns:
        for source in [] if column.indicator else column.sources:
            is_read: dict[Any, bool] = {}
            for row, value, why in _suspects(space, rows, column, source):
                # An encoder may know one kind of missing value, such as NaN, but not None.
                kind = why, type(value), value if why is INFINITE else None
                if kind not in is_read:
                    is_read[kind] = _is_read(space, rows.take(np.array([row])), source)
                if not is_read[kind]:
                    faults.setdefault(row, why.format(name=source, value=value))
    return faults


def _suspects(
    space: Space, rows: Rows, column: Column, source: Any
) -> Iterator[tuple[int, Any, str]]:
    """Yield values that may be at fault: the row, the value, and the cause."""
    user_column = space.user_column(rows, source)
    if column.numeric or column.declared:
        values = numbers(user_column, source)
        for row in np.flatnonzero(~np.isfinite(values)).tolist():
            yield row, float(values[row]), MISSING if np.isnan(values[row]) else INFINITE
        return
    known = {level for level in column.levels if not is_missing(level)}
    for row, value in enumerate(plain_values(user_column)):
        if is_missing(value) or value not in known:
            yield row, value, MISSING if is_missing(value) else UNKNOWN


def _is_read(space: Space, row: Rows, source: Any) -> bool:
    """Tell whether the steps read the value of a source, if all others of its row are fine."""
    if space.steps is None:
        return False
    row = _with_readable_values(space, row, [0], {source})
    try:
        points = space.points_of(row)
    except DataError:
        return False
    return bool(np.isfinite(points).all())


def _outside(space: Space, rows: Rows) -> dict[int, str]:
    """Return the rows with a number that the steps map to none, such as the log of -1."""
    with np.errstate(all="ignore"):
        points = space.points_of(rows)
    faults: dict[int, str] = {}
    for column in space.columns:
        wrong = np.flatnonzero(~np.isfinite(points[:, column.places]).all(axis=1))
        if len(wrong):
            values = space.numbers_of(rows, column)
            for row in wrong.tolist():
                faults.setdefault(row, OUTSIDE.format(name=column.name, value=values[row]))
    return faults


def _with_readable_values(
    space: Space, rows: Rows, which: Collection[int], unchanged: Collection[Any] = ()
) -> Rows:
    """Return rows of which some have the values of a row that can be read, but for some sources."""
    if not which:
        return rows
    at, cells = np.array(sorted(which)), {}
    for column in space.columns:
        for source in column.sources:
            if source not in unchanged:
                value = _readable_value(space, column, source)
                copies = [value] * len(at)
                cells[source] = Cells(at, np.array(copies) if column.numeric else copies)
    return space.with_cells(rows, np.arange(len(rows)), cells)


def _readable_value(space: Space, column: Column, source: Any) -> Any:
    if space.steps is not None:
        assert space.sample is not None
        (value,) = plain_values(space.user_column(space.sample, source))
        if not is_missing(value):
            return value
        known = [level for level in column.levels if not is_missing(level)]
        if known and not column.declared:
            return known[0]
    low = column.observed[0]
    return low if np.isfinite(low) else 0.0
