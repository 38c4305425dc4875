"""Find rows by what they are called or hold."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from voicecf.app.data.preparing import Prepared

# Rows that a table of finds shows.
MOST = 100


def find_rows(prepared: Prepared, text: str, most: int = MOST) -> NDArray[np.int64]:
    """Return rows that hold a text, or have that number in the file or in a column set aside.

    Parameters
    ----------
    prepared : Prepared
    text : str
        What to look for, capitals or not; the first rows if empty.
    most : int
        Most rows to return.

    Returns
    -------
    array of int
        Positions among the prepared rows.
    """
    wanted = text.strip()
    if not wanted:
        return np.arange(min(most, len(prepared.frame)))
    found = np.zeros(len(prepared.frame), dtype=np.bool_)
    for hit in _hits(prepared, wanted):
        found |= hit
    return np.flatnonzero(found)[:most]


def _hits(prepared: Prepared, wanted: str) -> Iterator[NDArray[np.bool_]]:
    if wanted.isdecimal():
        yield np.asarray(prepared.rows == int(wanted) - 1)
    for frame in (prepared.aside, prepared.frame):
        for name in frame:
            values = frame[name]
            if types.is_numeric_dtype(values.dtype):
                if frame is prepared.aside and wanted.isdecimal():
                    yield (values == float(wanted)).to_numpy(dtype=bool, na_value=False)
            else:
                yield _holds(values, wanted)


def _holds(values: pd.Series, wanted: str) -> NDArray[np.bool_]:
    """Look among the different texts only, of which a category has few."""
    codes, texts = pd.factorize(values.astype(str), use_na_sentinel=False)
    inside = pd.Series(texts, dtype=str).str.contains(wanted, case=False, regex=False, na=False)
    return np.asarray(inside.to_numpy(dtype=bool)[codes])


def shown_rows(
    prepared: Prepared, labels: NDArray[np.int64], names: tuple[str, ...], rows: NDArray[np.int64]
) -> pd.DataFrame:
    """Return rows as a table to pick from: number in the file, segment, identity, columns."""
    made = {"Row": prepared.rows[rows] + 1, "Segment": [names[t] for t in labels[rows]]}
    table = pd.DataFrame(made)
    if prepared.identity is not None:
        named = prepared.aside[prepared.identity].iloc[rows].to_numpy()
        table[f"{prepared.identity} " * (prepared.identity in table) or prepared.identity] = named
    rest = prepared.frame.iloc[rows].reset_index(drop=True)
    rest = rest.rename(columns={name: f"{name} " for name in rest if name in table})
    return pd.concat([table, rest], axis=1)
