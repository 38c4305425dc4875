"""The table with the segment of every row."""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.data.preparing import Prepared
from voicecf.app.project import Project
from voicecf.app.segments.naming import distinct
from voicecf.output import joined

COLUMN = "segment"
# Columns that are named where a row has no value.
NAMED = 3


def assigned(project: Project) -> pd.DataFrame:
    """Return every row of the table with all its columns, and the name of its segment.

    Of a row that was left out, it says why. A column of the table that is called "segment" stays;
    ours is then "segment 2".
    """
    frame, prepared = project.table.frame, project.prepared
    found = np.empty(len(frame), dtype=object)
    found[prepared.rows] = np.array(project.names, dtype=object)[project.segments.labels]
    left = np.setdiff1d(np.arange(len(frame)), prepared.rows)
    found[left] = _reasons(frame.iloc[left], prepared)
    own = distinct([COLUMN], [str(name) for name in frame])[0]
    return frame.assign(**{own: found})


def _reasons(left: pd.DataFrame, prepared: Prepared) -> list[str]:
    """Say of each row that was left out what it misses."""
    missing = {}
    for name in prepared.names:
        source = prepared.durations[name][0] if name in prepared.durations else name
        is_number = name in prepared.numbers and source == name
        missing[source] = _missing(left[source], is_number)
    reasons = []
    for i in range(len(left)):
        names = [name for name, gaps in missing.items() if gaps[i]]
        more = len(names) - NAMED
        named = names[:NAMED] + ([f"{more} more"] if more > 0 else [])
        reasons.append(f"left out: no value in {joined(named)}" if names else "left out")
    return reasons


def _missing(values: pd.Series, is_number: bool) -> NDArray[np.bool_]:
    if not is_number:
        return np.asarray(values.isna())
    numbers = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    return np.asarray(~np.isfinite(numbers))
