"""Small spaces of simple maps, for tests of rules: affine, logarithm, falling, one-hot, block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import polars as pl

import voicecf.table.space
from voicecf.rules.rules import Rules
from voicecf.table.column import Column
from voicecf.table.rows import Rows


def rows_of(frame: Any, points: np.ndarray, **parts: Any) -> Rows:
    """Rows whose coordinates the model sees as they are."""
    return Rows(frame, points, points, **parts)


class Space:
    """Columns and, for each, a map from values to coordinates."""

    def __init__(self, *, named: bool = True) -> None:
        self.columns: list[Column] = []
        self.sources: list[Any] = []
        self.named = named
        self.maps: list[Callable[[Any], np.ndarray]] = []

    steps = "maps of their own"
    user_column = voicecf.table.space.Space.user_column
    numbers_of = voicecf.table.space.Space.numbers_of

    @property
    def names(self) -> list[Any]:
        return [c.name for c in self.columns]

    def frame_name(self, frame: Any, source: Any) -> Any:
        return source if self.named else frame.columns[self.sources.index(source)]

    def inward(self, lo: Any, hi: Any) -> Any:
        return lo, hi

    def coordinates(self, column: int, values: Any) -> np.ndarray:
        return self.maps[column](values)

    def number(self, name, forward=lambda u: u, observed=(0.0, 10.0), **facts) -> Space:
        """Add a number column whose coordinate is forward(value)."""

        def one(values):
            return forward(np.asarray(values, dtype=np.float64))[:, None]

        with np.errstate(all="ignore"):
            low, high = one(observed)[:, 0]
        facts = {"rising": bool(high >= low), **facts}
        return self._add(name, (name,), 1, one, kind="number", observed=observed, **facts)

    def category(self, name, levels, sources=None, forward=None, **facts) -> Space:
        """Add a one-hot category; with `forward`, an encoded one of a single coordinate."""
        levels = tuple(levels)

        def one_hot(values):
            return np.array([[float(v == level) for level in levels] for v in values])

        def single(values):
            return np.array([[forward(levels.index(v))] for v in values], dtype=np.float64)

        width = len(levels) if forward is None else 1
        encode = one_hot if forward is None else single
        sources = (name,) if sources is None else tuple(sources)
        facts = {"levels": levels, "options": encode(levels), **facts}
        return self._add(name, sources, width, encode, kind="category", **facts)

    def _add(self, name, sources, width, encode, **facts) -> Space:
        first = sum(len(c.places) for c in self.columns)
        self.sources += sources
        self.columns.append(Column(name, sources, np.arange(first, first + width), **facts))
        self.maps.append(encode)
        return self

    def given(self, table: dict[Any, Any], points: Any = None) -> Rows:
        """Read a table of the user's values; a block is given by its name, and hidden."""
        parts = [self.coordinates(i, table[c.name]) for i, c in enumerate(self.columns)]
        plain = {c.name: table[c.name] for c in self.columns if len(c.sources) == 1}
        frame = nw.from_native(pl.DataFrame(plain, strict=False), eager_only=True)
        return rows_of(frame, np.hstack(parts) if points is None else points)

    def open(self) -> tuple[np.ndarray, np.ndarray]:
        """No bounds of the explainer's own."""
        number = np.array([c.kind == "number" for c in self.columns])
        return np.where(number, -np.inf, np.nan), np.where(number, np.inf, np.nan)


def read(space: Any, **words: Any) -> Rules:
    """Read rules, and check them against the columns of a space."""
    rules = Rules.from_dict(words)
    rules.check(space)
    return rules
