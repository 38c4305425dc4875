"""Find rows of a table by what they are called or hold, also those that were left out."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from voicecf.app.data.preparing import Prepared
from voicecf.output import joined

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
    wanted = text.strip().lower()
    found = np.zeros(len(frame), dtype=np.bool_)
    if not wanted:
        return np.flatnonzero(found)
    number = re.fullmatch(r"(?:row\s*)?([1-9][\d,]*)", wanted)  # 0006 is a code
    if number:
        found |= np.arange(len(frame)) == int(number[1].replace(",", "")) - 1
    if prepared.identity is not None:
        found |= _texts(frame[prepared.identity]) == wanted
    if not found.any():
        for name in frame:
            if not types.is_numeric_dtype(frame[name].dtype):
                found |= _texts(frame[name]).str.contains(wanted, regex=False).to_numpy(bool)
            elif name in prepared.aside:
                found |= _texts(frame[name]) == wanted
    return np.flatnonzero(found)[:most]


def _texts(values: pd.Series) -> pd.Series:
    return values.astype("string").fillna("").str.lower()


def place_of(prepared: Prepared, row: int) -> int | None:
    """Return which of the prepared rows a row of the table is; None if it was left out."""
    place = int(np.searchsorted(prepared.rows, row))
    there = place < len(prepared.rows) and int(prepared.rows[place]) == row
    return place if there else None


def missing_in(frame: pd.DataFrame, prepared: Prepared, row: int) -> list[str]:
    """Return the columns in use in which a row of the table has no value."""
    gone = prepared.used(frame.iloc[[row]]).isna().iloc[0]
    return [name for name in prepared.names if gone[name]]


def why_left_out(frame: pd.DataFrame, prepared: Prepared, row: int) -> str:
    """Say why a row of the table was left out."""
    missing = missing_in(frame, prepared, row)
    where = "any column in use" if len(missing) == len(prepared.names) else joined(missing)
    called = f"Row {row + 1:,}"
    if prepared.identity is not None:
        called += f" ({frame[prepared.identity].iloc[row]})"
    return f"{called} was left out: it has no value in {where}."


def shown_rows(
    frame: pd.DataFrame, prepared: Prepared, labels: NDArray[np.int64], names: tuple[str, ...],
    rows: NDArray[np.int64],
) -> pd.DataFrame:  # fmt: skip
    """Return rows as a table to pick from: number in the file, segment, identity, columns."""
    places = [place_of(prepared, row) for row in rows.tolist()]
    segments = [LEFT_OUT if place is None else names[labels[place]] for place in places]
    some = frame.iloc[rows].reset_index(drop=True)
    named = [] if prepared.identity is None else [prepared.identity]
    rest = pd.concat([some[named], prepared.used(some)], axis=1)
    table = pd.DataFrame({"Row": rows + 1, "Segment": segments})
    return pd.concat([table, rest.rename(columns=lambda n: f"{n} " if n in table else n)], axis=1)
