"""Tables that the tests of the app share."""

from __future__ import annotations

import numpy as np
import pandas as pd

from voicecf.app import session
from voicecf.app.data.columns import guess_columns
from voicecf.app.data.preparing import Method, Missing, Prepared, prepare
from voicecf.app.project import Project
from voicecf.app.segments.segments import Segments, fit_segments


def people(rows: int = 150) -> pd.DataFrame:
    """Three groups; whole numbers, numbers and a category, an id, and no gaps."""
    rng = np.random.default_rng(11)
    group = np.arange(rows) % 3
    return pd.DataFrame({
        "person_id": rng.permutation(rows) + 500,
        "age": np.array([24, 45, 67])[group] + rng.integers(-6, 7, rows),
        "job": np.array(["student", "clerk", "retired"])[(group + (rng.random(rows) < 0.2)) % 3],
        "income": np.round(np.array([900.0, 3100.0, 2000.0])[group] + rng.normal(0, 250, rows), 2),
        "visits": rng.poisson(np.array([9, 4, 1])[group]),
    })  # fmt: skip


def with_gaps(frame: pd.DataFrame) -> pd.DataFrame:
    """Take some values out of every column that is compared."""
    frame = frame.copy()
    for start, name in enumerate(("age", "job", "income", "visits")):
        frame[name] = frame[name].astype(object)
        frame.loc[start::17, name] = None
        if name != "job":
            frame[name] = frame[name].astype(float)
    return frame


def prepared(frame: pd.DataFrame | None = None, missing: Missing = Missing.LEAVE_OUT) -> Prepared:
    frame = people() if frame is None else frame
    return prepare(frame, guess_columns(frame), missing)


def fitted(
    frame: pd.DataFrame | None = None,
    k: int = 3,
    method: Method = Method.KMEANS,
    missing: Missing = Missing.LEAVE_OUT,
) -> Segments:
    return fit_segments(prepared(frame, missing), k, method)


def usual_names(k: int) -> tuple[str, ...]:
    return tuple(f"Segment {letter}" for letter in "ABCDEFGHIJKL"[:k])


def begun(content: bytes, name: str = "table.csv") -> Project:
    """Begin a project as an upload does."""
    return session.store().create(name, content)
