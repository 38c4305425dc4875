"""What the columns set aside say of the segments: labels, outcomes, numbers not compared."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd
from pandas.api import types

from voicecf.app.data.columns import IDENTITY, MOST_LEVELS, Role, TableColumn
from voicecf.app.data.preparing import Prepared
from voicecf.app.segments.segments import Segments

# What all rows are called beside segments, and the average of a column.
ALL_ROWS, AVERAGE = "All rows", "Average"


def crossable(prepared: Prepared, columns: tuple[TableColumn, ...]) -> list[str]:
    """List the columns set aside that segments can differ in, few levels first; no identities."""
    aside = prepared.aside
    names = [c.name for c in columns if c.role is Role.ASIDE and not c.identity and c.name in aside]
    levels = {name: _levels(aside[name]) for name in names}
    few = [name for name in names if 2 <= levels[name] <= MOST_LEVELS]
    many = [n for n in names if levels[n] > MOST_LEVELS and types.is_numeric_dtype(aside[n].dtype)]
    return few + [name for name in many if not IDENTITY.search(name)]


def crossed(segments: Segments, name: str, names: Sequence[str]) -> pd.DataFrame:
    """Cross a column set aside with the segments: shares of its levels, or its average.

    A line a segment, and one of all rows; rows without a value do not count.
    """
    values = segments.prepared.aside[name]
    by = pd.Categorical.from_codes(segments.labels, categories=list(names))
    if _levels(values) > MOST_LEVELS:
        found = values.astype(float).groupby(by, observed=False).mean().to_frame(AVERAGE)
        found.loc[ALL_ROWS] = values.mean()
        return found
    return pd.crosstab(by, values, normalize="index", margins=True, margins_name=ALL_ROWS)


def _levels(values: pd.Series) -> int:
    try:
        return int(values.nunique())
    except TypeError:  # lists
        return 0
