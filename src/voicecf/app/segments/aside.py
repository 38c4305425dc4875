"""What the columns set aside say of the segments: labels, outcomes, numbers not compared."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
from pandas.api import types

from voicecf.app.data.columns import IDENTITY, MOST_LEVELS, Role, TableColumn
from voicecf.app.data.preparing import Prepared
from voicecf.app.segments.naming import YES
from voicecf.app.segments.profiles import Contrast, contrast
from voicecf.app.segments.segments import Segments
from voicecf.app.words import number
from voicecf.output import exact

# Levels of a column that are shown.
SHOWN = 6


class Crossed(NamedTuple):
    """A column set aside, by segment.

    Attributes
    ----------
    contrast : Contrast
        Shares of its levels, or the average of its numbers.
    shown : list of int
        The features to show: one of two levels, those of more that differ most.
    span : (float, float)
        The range of its numbers.
    """

    contrast: Contrast
    shown: list[int]
    span: tuple[float, float]

    def written(self, column: str, value: float) -> str:
        """Write an average of the column."""
        return number(value, self.span)


def crossable(prepared: Prepared, columns: tuple[TableColumn, ...]) -> list[str]:
    """List the columns set aside that segments can differ in, few levels first; no identities."""
    aside = prepared.aside
    names = [c.name for c in columns if c.role is Role.ASIDE and not c.identity and c.name in aside]
    levels = {name: _levels(aside[name]) for name in names}
    few = [name for name in names if 2 <= levels[name] <= MOST_LEVELS]
    many = [name for name in names if levels[name] > MOST_LEVELS and _is_number(aside[name])]
    return few + [name for name in many if not IDENTITY.search(name)]


def crossed(segments: Segments, name: str) -> Crossed:
    """Cross a column set aside with the segments; rows without a value do not count."""
    values = segments.prepared.aside[name]
    span = (0.0, 1.0)
    if _levels(values) > MOST_LEVELS:
        values = pd.to_numeric(values).astype("float64")
        values = values.where(np.isfinite(values))
        span = float(values.min()), float(values.max())
        found = contrast(values.to_frame(), [name], segments.labels, segments.k)
        return Crossed(found, [0], span)
    found = contrast(_texts(values).to_frame(), [], segments.labels, segments.k)
    order = np.argsort(-np.abs(found.strengths).max(axis=1), kind="stable").tolist()
    if len(order) == 2:
        order = [_outcome(found)]
    return Crossed(found, order[:SHOWN], span)


def _levels(values: pd.Series) -> int:
    try:
        return int(values.nunique())
    except TypeError:  # lists
        return 0


def _is_number(values: pd.Series) -> bool:
    return types.is_numeric_dtype(values.dtype) and not types.is_bool_dtype(values.dtype)


def _texts(values: pd.Series) -> pd.Series:
    """Return levels as people write them: 'yes', '3'."""
    if types.is_bool_dtype(values.dtype):
        texts = {True: "yes", False: "no"}
    else:
        texts = {v: exact(v) if _is_number(values) else str(v) for v in values.dropna().unique()}
    return values.map(texts, na_action="ignore").astype(object)


def _outcome(found: Contrast) -> int:
    """Choose of two levels that which a question is about: yes, or the rarer one."""
    for i, feature in enumerate(found.features):
        if str(feature.level).lower() in YES:
            return i
    return int(np.argmin(found.overall))
