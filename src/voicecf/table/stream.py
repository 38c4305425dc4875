"""Tables read pass after pass in blocks of a fixed number of rows, whatever they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.errors import ColumnError, DataError, listed
from voicecf.solver.passes import BATCH
from voicecf.table.frames import any_array, as_frame

Progress = Callable[[int, int], Any]


@dataclass
class Reading:
    """How often a source was read, and how many rows it has."""

    passes: int = 0
    n_rows: int | None = None


@dataclass(frozen=True)
class Stream:
    """Tables that can be passed over as often as wanted, in blocks of the same number of rows.

    However the source divides its rows, blocks end at the same ones. What is summed block by block
    is therefore the same for every division, and the same as of one table.

    Attributes
    ----------
    open : callable
        Begins a pass: returns an iterator of tables.
    progress : callable or None
        Told the number of the pass and of its rows so far.
    steps : tuple of callables
        What a block goes through before anyone sees it.
    reading : Reading
    in_memory : bool
        Whether the source is one table; that may be empty.
    place : callable or None
        Returns the rows where many passes over them are made, if that is not here.
    """

    open: Callable[[], Iterator[Any]]
    progress: Progress | None = None
    steps: tuple[Callable[[Any], Any], ...] = ()
    reading: Reading = field(default_factory=Reading)
    in_memory: bool = False
    place: Callable[[Any], Any] | None = None

    @classmethod
    def table(cls, X: Any) -> Stream:
        """Read a table that is in memory, and may be anything that is taken for one."""
        whole = X if as_frame(X) is not None else any_array(X)
        return cls(lambda: iter([whole]), in_memory=True)

    @classmethod
    def of(cls, source: Any, progress: Progress | None = None) -> Stream:
        """Read a source: a table, tables that can be iterated again, or what opens them."""
        begin = _opener(source)
        return cls(lambda: map(_taken_by_steps, begin()), progress)

    def through(self, step: Callable[[Any], Any]) -> Stream:
        """Return the stream of what a step makes of every block."""
        return replace(self, steps=(*self.steps, step))

    def __iter__(self) -> Iterator[Any]:
        """Begin a pass, and yield its blocks."""
        self.reading.passes += 1
        rows = 0
        for block, length in self._blocks():
            rows += length
            if self.progress is not None:
                self.progress(self.reading.passes, rows)
            for step in self.steps:
                block = step(block)
            yield block
        self._check_rows(rows)

    def _check_rows(self, rows: int) -> None:
        if rows == 0 and not self.in_memory:
            raise DataError("the source has no rows; there is nothing to learn from.")
        if self.reading.n_rows is None:
            self.reading.n_rows = rows
        elif self.reading.n_rows != rows:
            raise DataError(
                f"the source gave {self.reading.n_rows} rows in the first pass and {rows} in pass "
                f"{self.reading.passes}; every pass must see the same rows. A generator can be "
                "read once: pass a function that opens it anew."
            )

    @property
    def n_rows(self) -> int:
        """Number of rows; takes a pass if there was none yet."""
        if self.reading.n_rows is None:
            for _ in replace(self, steps=()):
                pass
        assert self.reading.n_rows is not None
        return self.reading.n_rows

    def first(self) -> Any:
        """Return the first block."""
        for block, _ in self._blocks():
            for step in self.steps:
                block = step(block)
            return block
        raise DataError("the source has no rows; there is nothing to learn from.")

    def _blocks(self) -> Iterator[tuple[Any, int]]:
        if self.in_memory:
            (whole,) = self.open()
            if len(whole) <= BATCH:
                return iter([(whole, len(whole))])
        return _regrouped(self.open(), BATCH)


def _opener(source: Any) -> Callable[[], Iterator[Any]]:
    """Return what begins a pass over a source."""
    if isinstance(source, np.ndarray) or as_frame(source) is not None:
        return lambda: iter([source])
    for method in ("iter_batches", "to_batches"):  # a ParquetFile, a Dataset of pyarrow
        if hasattr(source, method):
            return lambda: iter(getattr(source, method)())
    if callable(source):
        return lambda: iter(source())
    if not hasattr(source, "__iter__"):
        raise DataError(
            f"{type(source).__name__} is no source of tables; pass a list of tables, or a function "
            "that returns an iterator of them."
        )
    if iter(source) is source:
        raise DataError(
            f"{type(source).__name__} can be read once only, and learning takes several passes; "
            "pass a function that opens it anew: lambda: pandas.read_csv(path, chunksize=100_000)."
        )
    return lambda: iter(source)


def _taken_by_steps(table: Any) -> Any:
    """Turn what pyarrow holds, and scikit-learn's steps do not take, into a frame that they do."""
    if not type(table).__module__.startswith("pyarrow"):
        return table
    if type(table).__name__ == "RecordBatch":
        import pyarrow

        table = pyarrow.Table.from_batches([table])
    frame = nw.from_native(table)
    if find_spec("pandas"):
        return frame.to_pandas()
    return frame.to_polars() if find_spec("polars") else table


def _regrouped(tables: Iterator[Any], size: int) -> Iterator[tuple[Any, int]]:
    """Yield the rows of tables in blocks of `size`, and the number of their rows."""
    held: list[Any] = []
    ready, like = 0, None
    for table in tables:
        piece = _piece(table, like)
        like = piece if like is None else like
        while ready + len(piece) >= size:
            held.append(piece[: size - ready])
            yield joined(held), size
            piece, held, ready = piece[size - ready :], [], 0
        if len(piece):
            held.append(piece)
            ready += len(piece)
    if held:
        yield joined(held), ready


def _piece(table: Any, like: Any) -> Any:
    """Return a table as a narwhals frame or an array, with the columns of those before it."""
    frame = as_frame(table)
    piece = any_array(table) if frame is None else frame
    if like is None:
        return piece
    if isinstance(piece, np.ndarray) != isinstance(like, np.ndarray):
        raise DataError("the source mixes frames and arrays; let all its tables be of one kind.")
    if frame is None:
        if piece.shape[1] != like.shape[1]:
            raise DataError(
                f"the source's tables have {like.shape[1]} and {piece.shape[1]} columns; let all "
                "have the same."
            )
        return piece
    if list(frame.columns) == list(like.columns):
        return frame
    lacks = [name for name in like.columns if name not in frame.columns]
    if lacks:
        raise ColumnError(
            f"a table of the source lacks {listed(lacks)}; the first has {listed(like.columns)}."
        )
    return frame[:, [frame.columns.index(name) for name in like.columns]]


def joined(pieces: list[Any]) -> Any:
    """Return arrays or narwhals frames as one table of the user's kind."""
    if isinstance(pieces[0], np.ndarray):
        return np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
    try:
        whole = nw.concat(_alike(pieces), how="vertical") if len(pieces) > 1 else pieces[0]
        return whole.to_native()
    except Exception as error:  # each library has errors of its own
        raise DataError(
            f"the source's tables cannot be joined: {error} Let their columns have the same types."
        ) from error


def _alike(pieces: list[Any]) -> list[Any]:
    """Let columns of numbers that differ in type be floats, as a gap makes them."""
    schemas = [piece.schema for piece in pieces]
    apart = [
        name
        for name, dtype in schemas[0].items()
        if any(schema[name] != dtype for schema in schemas)
        and all(schema[name].is_numeric() for schema in schemas)
    ]
    if not apart:
        return pieces
    return [piece.with_columns(nw.col(*apart).cast(nw.Float64)) for piece in pieces]
