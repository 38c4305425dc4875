"""Find rows of a table by what they are called or hold, also those that were left out."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from voicecf.app.data.preparing import Prepared, with_durations
from voicecf.table.wording import joined

# Rows that a table of finds shows.
MOST = 100
LEFT_OUT = "left out"


def find_rows(
    frame: pd.DataFrame, prepared: Prepared, text: str, most: int = MOST
) -> NDArray[np.int64]:
    """Return the rows that are called so, by number or identity, or else those that hold a text.

    Parameters
    ----------
    frame : pandas.DataFrame
        The table that was read.
    prepared : Prepared
    text : str
        What to look for, capitals or not; numbers only in columns that are set aside.
    most : int
        Most rows to return.

    Returns
    -------
    array of int
        Positions in the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from voicecf.app.data.columns import guess_columns
    >>> from voicecf.app.data.preparing import prepare
    >>> from voicecf.app.row.finding import find_rows
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "age": [31, 45, 38], "land": ["at", "be", "at"]})
    >>> prepared = prepare(frame, guess_columns(frame))
    >>> [find_rows(frame, prepared, text).tolist() for text in ("2", "9", "AT")]
    [[1], [2], [0, 2]]
    """
    wanted = text.strip()
    if not wanted:
        return np.empty(0, dtype=np.int64)
    for hits in (_called(frame, prepared, wanted), _holding(frame, prepared, wanted)):
        found = np.zeros(len(frame), dtype=np.bool_)
        for hit in hits:
            found |= hit
        if found.any():
            break
    return np.flatnonzero(found)[:most]


def _called(frame: pd.DataFrame, prepared: Prepared, wanted: str) -> Iterator[NDArray[np.bool_]]:
    """Yield the row of that number, and rows that are called so."""
    number = wanted.lower().removeprefix("row").replace(",", "").strip()
    if number.isdecimal() and not number.startswith("0"):  # 0006 is a code
        yield np.arange(len(frame)) == int(number) - 1
    if prepared.identity is not None:
        yield _equals(frame[prepared.identity], wanted)


def _holding(frame: pd.DataFrame, prepared: Prepared, wanted: str) -> Iterator[NDArray[np.bool_]]:
    for name in frame:
        if not types.is_numeric_dtype(frame[name].dtype):
            yield _holds(frame[name], wanted)
        elif name in prepared.aside:
            yield _equals(frame[name], wanted)


def _equals(values: pd.Series, wanted: str) -> NDArray[np.bool_]:
    if types.is_numeric_dtype(values.dtype):
        if not wanted.isdecimal():
            return np.zeros(len(values), dtype=np.bool_)
        equal = values == float(wanted)
    else:
        equal = values.astype(str).str.lower() == wanted.lower()
    return np.asarray(equal.to_numpy(dtype=bool, na_value=False))


def _holds(values: pd.Series, wanted: str) -> NDArray[np.bool_]:
    """Look among the different texts only, of which a category has few."""
    codes, texts = pd.factorize(values)
    inside = pd.Series(texts).astype(str).str.contains(wanted, case=False, regex=False)
    # The code of a missing value is -1, and picks what is added at the end.
    return np.asarray(np.append(inside.to_numpy(dtype=bool), False)[codes])


def place_of(prepared: Prepared, row: int) -> int | None:
    """Return which of the prepared rows a row of the table is; None if it was left out."""
    place = int(np.searchsorted(prepared.rows, row))
    there = place < len(prepared.rows) and int(prepared.rows[place]) == row
    return place if there else None


def _in_use(frame: pd.DataFrame, prepared: Prepared) -> pd.DataFrame:
    """Return the columns in use of rows of the table; dates as the time since then."""
    if prepared.durations:
        frame = with_durations(frame, prepared.durations, prepared.taken or date.today())
    return frame[prepared.names]


def missing_in(frame: pd.DataFrame, prepared: Prepared, row: int) -> list[str]:
    """Return the columns in use in which a row of the table has no value."""
    values = _in_use(frame.iloc[[row]], prepared).iloc[0]
    numbers = pd.to_numeric(values[list(prepared.numbers)], errors="coerce").astype("float64")
    gone = values.isna() | ~np.isfinite(numbers).reindex(values.index, fill_value=True)
    return [name for name in prepared.names if gone[name]]


def why_left_out(frame: pd.DataFrame, prepared: Prepared, row: int) -> str:
    """Say why a row of the table was left out."""
    missing = missing_in(frame, prepared, row)
    every = len(missing) == len(prepared.names)
    where = "any column in use" if every else joined(missing)
    called = f"Row {row + 1:,}"
    if prepared.identity is not None:
        called += f" ({frame[prepared.identity].iloc[row]})"
    return f"{called} was left out: it has no value in {where}."


def shown_rows(
    frame: pd.DataFrame,
    prepared: Prepared,
    labels: NDArray[np.int64],
    names: tuple[str, ...],
    rows: NDArray[np.int64],
) -> pd.DataFrame:
    """Return rows as a table to pick from: number in the file, segment, identity, columns."""
    places = [place_of(prepared, row) for row in rows.tolist()]
    segments = [LEFT_OUT if place is None else names[labels[place]] for place in places]
    table = pd.DataFrame({"Row": rows + 1, "Segment": segments})
    some = frame.iloc[rows].reset_index(drop=True)
    named = [] if prepared.identity is None else [prepared.identity]
    rest = pd.concat([some[named], _in_use(some, prepared)], axis=1)
    rest = rest.rename(columns={name: f"{name} " for name in rest if name in table})
    return pd.concat([table, rest], axis=1)
