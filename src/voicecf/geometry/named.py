"""Frames of rows with column names, for models that were fitted on frames."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.geometry.arrays import Array


def named_rows(points: Array, names: Sequence[Any]) -> Any:
    """Return an array as a frame with these column names, of a frame library that is installed."""
    columns = dict(zip(names, map(np.ascontiguousarray, points.T), strict=True))
    return nw.from_dict(columns, backend=installed_backend()).to_native()


def installed_backend() -> Any:
    """Return the first of pandas, polars and pyarrow that is installed."""
    for backend in ("pandas", "polars", "pyarrow"):
        if find_spec(backend):
            return backend
    raise ImportError("a table needs pandas, polars or pyarrow: pip install pandas")
