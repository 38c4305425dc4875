"""Tables read in passes, from memory or from a source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any, Generic, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.errors import ColumnError, DataError, listed
from voicecf.table.frames import any_array, as_frame

# Rows per block: longer tables are cut.
BLOCK = 262_144

Progress = Callable[[int, int], Any]
Made = TypeVar("Made")


@dataclass
class PassCount:
    """The number of passes over a source so far, and its number of rows."""

    passes: int = 0
    n_rows: int | None = None


@dataclass(frozen=True)
class Stream:
    """Rows of one or more tables, read in any number of passes, in blocks: tables as they come.

    Attributes
    ----------
    open : callable
        Begins a pass: returns an iterator of tables.
    progress : callable or None
        Called with the number of the pass and the number of rows read in it so far.
    steps : tuple of callables
        Functions that every block is passed through, in order.
    reading : PassCount
    in_memory : bool
        Whether the source is one table in memory, which may be empty.
    place : callable or None
        Takes the steps that turn blocks into the rows of a model, and returns these rows on the
        machines that make the passes over them (Dask). None: passes are made here.
    """

    open: Callable[[], Iterator[Any]]
    progress: Progress | None = None
    steps: tuple[Callable[[Any], Any], ...] = ()
    reading: PassCount = field(default_factory=PassCount)
    in_memory: bool = False
    place: Callable[[Any], Any] | None = None

    @classmethod
    def table(cls, X: Any) -> Stream:
        """Read one table in memory: a frame, or anything that numpy turns into an array."""
        frame = as_frame(X)
        whole = any_array(X) if frame is None else frame.to_native()
        return cls(lambda: iter([whole]), in_memory=True)

    @classmethod
    def of(cls, source: Any, progress: Progress | None = None) -> Stream:
        """Read a source: a table, a collection of tables, or a function that iterates over them."""
        open_source = _opener(source)
        return cls(lambda: map(_frame_for_steps, open_source()), progress)

    def through(self, step: Callable[[Any], Any]) -> Stream:
        """Return the stream whose blocks are transformed by a step."""
        return replace(self, steps=(*self.steps, step))

    def __iter__(self) -> Iterator[Any]:
        """Begin a pass, and yield its blocks."""
        self.reading.passes += 1
        rows = 0
        for block in self._blocks():
            rows += len(block)
            if self.progress is not None:
                self.progress(self.reading.passes, rows)
            yield transformed(self.steps, block)
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
                "read only once: pass a function that opens it again."
            )

    @property
    def n_rows(self) -> int:
        """Number of rows; takes a pass if none was made yet."""
        if self.reading.n_rows is None:
            for _ in replace(self, steps=()):
                pass
        assert self.reading.n_rows is not None
        return self.reading.n_rows

    def first(self) -> Any:
        """Return the first block."""
        for block in self._blocks():
            return transformed(self.steps, block)
        raise DataError("the source has no rows; there is nothing to learn from.")

    def _blocks(self) -> Iterator[Any]:
        """Yield tables of the user's kind with the columns of the first one, in pieces if long."""
        first = None
        for table in self.open():
            whole = _checked(table, first)
            first = whole if first is None else first
            for start in range(0, max(len(whole), int(self.in_memory)), BLOCK):
                block = whole if len(whole) <= BLOCK else whole[start : start + BLOCK]
                yield block if isinstance(block, np.ndarray) else block.to_native()


class Blocks(Generic[Made]):
    """What a function makes of each block of a source, in as many passes as needed.

    Parameters
    ----------
    source : iterable
        Begins a pass whenever it is iterated over.
    make : callable
    cached : bool
        Whether results are stored in the first pass that is made to its end.
    """

    def __init__(self, source: Iterable[Any], make: Callable[[Any], Made], *, cached: bool) -> None:
        self._source, self._make, self._cached = source, make, cached
        self._results: list[Made] = []

    def __iter__(self) -> Iterator[Made]:
        """Yield the results of a pass."""
        if self._results:
            yield from self._results
            return
        results = []
        for block in self._source:
            result = self._make(block)
            if self._cached:
                results.append(result)
            yield result
        self._results = results


def transformed(steps: Iterable[Callable[[Any], Any]], block: Any) -> Any:
    """Pass a block through steps."""
    for step in steps:
        block = step(block)
    return block


def _opener(source: Any) -> Callable[[], Iterator[Any]]:
    """Return a function that begins a pass over a source."""
    if isinstance(source, np.ndarray) or as_frame(source) is not None:
        return lambda: iter([source])
    for method in ("iter_batches", "to_batches"):  # a ParquetFile, a Dataset of pyarrow
        if hasattr(source, method):
            return lambda: iter(getattr(source, method)())
    if callable(source):
        return lambda: iter(source())
    if not hasattr(source, "__iter__"):
        raise DataError(
            f"{type(source).__name__} is not a source of tables; pass a list of tables, or a "
            "function that returns an iterator of them."
        )
    if iter(source) is source:
        raise DataError(
            f"{type(source).__name__} can be read only once, and fit takes several passes; pass a "
            "function that opens it again: lambda: pandas.read_csv(path, chunksize=100_000)."
        )
    return lambda: iter(source)


def _frame_for_steps(table: Any) -> Any:
    """Turn a table of pyarrow, which scikit-learn does not accept, into one of pandas or polars."""
    if not type(table).__module__.startswith("pyarrow"):
        return table
    if type(table).__name__ == "RecordBatch":
        import pyarrow

        table = pyarrow.Table.from_batches([table])
    frame = nw.from_native(table)
    if find_spec("pandas"):
        return frame.to_pandas()
    return frame.to_polars() if find_spec("polars") else table


def _checked(table: Any, first: Any) -> Any:
    """Return a table as a narwhals frame or an array, with the columns of the first table."""
    frame = as_frame(table)
    piece = any_array(table) if frame is None else frame
    if first is None:
        return piece
    if isinstance(piece, np.ndarray) != isinstance(first, np.ndarray):
        raise DataError("the source mixes frames and arrays; pass tables of one kind.")
    if frame is None:
        if piece.shape[1] != first.shape[1]:
            raise DataError(
                f"the source's tables have {first.shape[1]} and {piece.shape[1]} columns; all must "
                "have the same columns."
            )
        return piece
    if list(frame.columns) == list(first.columns):
        return frame
    missing = [name for name in first.columns if name not in frame.columns]
    if missing:
        raise ColumnError(
            f"a table of the source lacks {listed(missing)}; the first has "
            f"{listed(first.columns)}. All must have the same columns."
        )
    return frame[:, [frame.columns.index(name) for name in first.columns]]
