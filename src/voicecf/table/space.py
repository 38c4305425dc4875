"""The user's columns and the model's coordinates: tables in, answers in the same columns out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.errors import ColumnError, DataError, listed
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.pullback import Mixing
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.parallel import in_parallel
from voicecf.table.column import Column
from voicecf.table.frames import (
    Cells,
    Kind,
    any_array,
    as_frame,
    indexed,
    is_whole,
    number_array,
    numbers,
    series_numbers,
    table,
    typed,
    widened,
    written,
    written_array,
)
from voicecf.table.pipeline import Steps, dense
from voicecf.table.rows import Rows, side_of


class Space:
    """Columns of a table, and where they are among the model's coordinates.

    Attributes
    ----------
    columns : list of Column
    names : list
        Their names, in order.
    sources : list
        Columns of the user's table, in the order that the model was fitted on.
    named : bool
        Whether the names came with the data; x0, x1, ... if not.
    coordinate_names : list of str
    dtype : numpy dtype
        What the model computes with.
    mixing : Mixing or None
        How what the model sees is made of the coordinates; None where it is the same.
    round_trip_error : array of shape (d,)
        How far a coordinate may move on the way to the user's units and back.
    steps : Steps or None
        The fitted steps before the model.
    """

    def __init__(self, columns: list[Column], sources: list[Any], named: bool, dtype: Any) -> None:
        self.columns = columns
        self.sources = sources
        self.named = named
        self.dtype = np.dtype(dtype)
        self.names = [column.name for column in columns]
        self.coordinate_names = [str(source) for source in sources]
        self.feeds_frame = named
        self.steps: Steps | None = None
        self.mixing: Mixing | None = None
        self.round_trip_error = np.zeros(len(sources))
        self._plain = all(column.kind == "number" for column in columns)
        self._template: Rows | None = None

    @classmethod
    def plain(cls, names: list[Any], named: bool, dtype: Any = np.float64) -> Space:
        """Return a space in which every column is a number and its own coordinate."""
        columns = [Column(name, (name,), np.array([i])) for i, name in enumerate(names)]
        return cls(columns, list(names), named, dtype)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates, d."""
        return len(self.round_trip_error)

    @property
    def is_plain(self) -> bool:
        """Whether every column is a number, and the model sees it as it is."""
        return self.steps is None and self._plain

    @cached_property
    def continuous(self) -> bool:
        """Whether every column may be any number."""
        return all(column.free and not column.whole for column in self.columns)

    def read(self, X: Any) -> Rows:
        """Return rows as coordinates, checked: numbers, no gaps, the right columns."""
        if self.steps is not None:
            return self._read_table(X)
        frame = as_frame(X)
        if frame is None:
            values = number_array(X)
        else:
            frame = self._pick(frame)
            values = np.column_stack([numbers(frame, name) for name in frame.columns])
        self._check_width(values.shape[1])
        own = np.empty(values.shape, dtype=self.dtype)
        finite: list[bool] = in_parallel(lambda a, b: _copy(values, own, a, b), len(own))
        if not all(finite):
            self._check_finite(own)
        points = own if self.dtype == np.float64 else own.astype(np.float64)
        array = None
        if frame is None:
            array = np.array(values) if values.dtype.kind in "iu" else own
        return Rows(frame, points, points, Kind.of(frame), array=array)

    def _read_table(self, X: Any) -> Rows:
        """Send rows through the fitted steps."""
        frame, array = as_frame(X), None
        if frame is None:
            array = any_array(X)
            self._check_width(array.shape[1])
        else:
            frame = self._pick(frame)
        return self._sent(frame, array, Kind.of(frame))

    def _sent(self, frame: Any, array: NDArray[Any] | None, kind: Kind | None) -> Rows:
        assert self.steps is not None
        if (len(array) if frame is None else len(frame)) == 0:  # type: ignore[arg-type]
            points = np.empty((0, self.n_coordinates))
            width = self.n_coordinates if self.mixing is None else len(self.mixing.shift)
            return Rows(frame, points, np.empty((0, width)), kind, None, array)
        raw = self.steps.forward(self._fed(frame, array))
        points = dense(raw)
        self._check_finite(points)
        if self.mixing is None:
            return Rows(frame, points, points, kind, raw, array)
        raw = self.steps.onward(raw)
        return Rows(frame, points, dense(raw), kind, raw, array)

    def _fed(self, frame: Any, array: NDArray[Any] | None) -> Any:
        """Return rows as the steps take them: a frame if they know names, else an array."""
        if frame is not None:
            return frame.to_native() if self.feeds_frame else frame.to_numpy()
        if not self.feeds_frame:
            return array
        return table(dict(zip(self.sources, typed(array), strict=True)))

    def is_truth(self, c: int, given: Rows) -> bool:
        """Tell whether a number column holds true and false in the user's table."""
        column = self.columns[c]
        if column.kind != "number" or given.frame is None:
            return False
        name = self.frame_name(given.frame, column.sources[0])
        return bool(given.frame.get_column(name).dtype == nw.Boolean)

    def frame_name(self, frame: Any, source: Any) -> Any:
        """Return what a frame calls a source: its name, or what stands in its place."""
        return source if self.named else frame.columns[self.sources.index(source)]

    def _check_width(self, width: int) -> None:
        if width != len(self.sources):
            raise DataError(f"X has {width} columns; the model was fitted on {len(self.sources)}.")

    def _pick(self, frame: Any) -> Any:
        """Return this space's columns of a frame, in its own order."""
        names = list(frame.columns)
        if not names:
            raise DataError("X has no columns.")
        if not self.named:
            self._check_width(len(names))
            return frame
        needed = {source for column in self.columns for source in column.sources}
        missing = [n for n in self.sources if n in needed and n not in names]
        if missing:
            raise ColumnError(
                f"X lacks {listed(missing)}; it has {listed(names)}. The explainer needs the "
                "columns that it was fitted on."
            )
        wanted = [n for n in self.sources if n in names]
        # A copy either way: answers are to show these rows whatever becomes of the frame.
        return frame.clone() if wanted == names else frame[:, [names.index(n) for n in wanted]]

    def _check_finite(self, values: NDArray[Any]) -> None:
        with np.errstate(all="ignore"):
            if np.isfinite(values.sum()):  # a sum without gaps is quicker than a look at each
                return
        bad = ~np.isfinite(values)
        if bad.any():
            columns = [c.name for c in self.columns if bad[:, c.places].any()]
            rows = np.flatnonzero(bad.any(axis=1))
            raise DataError(
                f"X has missing (NaN) or infinite values in {len(rows)} rows (first: row "
                f"{rows[0]}), columns {listed(columns)}. Impute or drop them first."
            )

    def coordinates(self, column: int, values: Any) -> Array:
        """Return the coordinates, shape (n, width), of values of a column.

        Numbers go through the pipeline's own transform; levels are looked up.
        """
        of = self.columns[column]
        if of.kind == "category":
            return np.asarray(of.options[[_level(of, value) for value in values]])
        values = np.asarray(values, dtype=np.float64)
        if self.steps is None:
            return np.asarray(values.astype(self.dtype), dtype=np.float64)[:, None]
        changes = {of.sources[0]: Cells(np.arange(len(values)), values)}
        return np.ascontiguousarray(self._made_up(len(values), changes)[:, of.places])

    def _made_up(self, n: int, changes: Mapping[Any, Cells]) -> Array:
        """Send n made-up rows through the steps: a row of the data, some of its values replaced."""
        assert self.steps is not None
        if n == 0:
            return np.empty((0, self.n_coordinates))
        with np.errstate(all="ignore"):
            made = self.with_cells(self._row(), np.zeros(n, dtype=np.int64), changes)
            return dense(self.steps.forward(self._fed(made.frame, made.array)))

    def _row(self) -> Rows:
        """Return the row of the data that made-up ones are made of."""
        assert self._template is not None
        kept = self._template.frame
        return self._template if kept is None else replace(self._template, frame=kept.frame)

    def with_cells(self, given: Rows, rows: Ints, changes: Mapping[Any, Cells]) -> Rows:
        """Return some rows with cells changed, in the user's columns."""
        if given.frame is not None:
            changes = {self.frame_name(given.frame, s): c for s, c in changes.items()}
            frame = given.frame[rows]
            if self.steps is None and self.dtype == np.float64:
                # Single precision would not hold what the model sees in double precision.
                frame = widened(frame, [name for name, cells in changes.items() if len(cells.rows)])
            return Rows.unread(written(frame, changes), None, given.kind)
        assert given.array is not None
        at = {self.sources.index(source): cells for source, cells in changes.items()}
        return Rows.unread(None, written_array(given.array[rows], at), given.kind)

    def values(self, column: int, coordinates: Any) -> NDArray[Any]:
        """Return values of a column, shape (n,), from its coordinates.

        Numbers are floats in the user's units, NaN where there is no way back; of a category it is
        the level whose coordinates are nearest.
        """
        of, given = self.columns[column], np.asarray(coordinates, dtype=np.float64)
        given = given.reshape(len(given), -1)
        if of.kind == "number":
            if self.steps is None:
                return given[:, 0]
            assert self._template is not None
            points = np.repeat(self._template.points, len(given), axis=0)
            points[:, of.places] = given
            return self._numbers(points)[of.sources[0]]
        made = np.empty(len(given), dtype=object)
        made[:] = [of.levels[i] for i in self.nearest_level(column, given)]
        return made

    def nearest_level(self, column: int, coordinates: Array) -> Ints:
        """Return positions of the levels whose coordinates are nearest."""
        options = self.columns[column].options
        apart = ((coordinates[:, None, :] - options[None]) ** 2).sum(axis=2)
        return np.asarray(apart.argmin(axis=1))

    def _numbers(self, points: Array) -> dict[Any, Array]:
        """Return the values of all sources that are numbers, by name."""
        if self.steps is None:
            return {source: points[:, i] for i, source in enumerate(self.sources)}
        return {self.sources[i]: v for i, v in self.steps.backward(points).items()}

    def write(
        self, points: Array, given: Rows, rows: Ints, lo: Any = None, hi: Any = None,
        grids: Any = None,
    ) -> Rows:  # fmt: skip
        """Write answers into the user's columns.

        A source whose coordinates are bit for bit those of its row keeps its value, whatever it
        was, and so does a row of NaN. Types are kept where they can hold the answer.

        Parameters
        ----------
        points : array of shape (n, d)
            Answers in coordinates.
        given : Rows
        rows : array of shape (n,)
            The row of `given` that each answer belongs to.
        lo, hi : array of shape (columns,) or (rows of given, columns), optional
            What rounding may not leave, in the user's units.
        grids : sequence of Multiples, Listed or None, optional
            Values that a column keeps to.

        Returns
        -------
        Rows
            Not read yet; see `read_again`.
        """
        lost = np.asarray(np.isnan(points).any(axis=1))
        moved = (points != given.points[rows]) & ~lost[:, None]
        found = self._numbers(np.where(lost[:, None], given.points[rows], points))
        changes: dict[Any, Cells] = {}
        for c, column in enumerate(self.columns):
            which = np.flatnonzero(moved[:, column.places].any(axis=1))
            if column.kind == "number":
                v = found[column.sources[0]][which]
                if grids is not None and grids[c] is not None:
                    v = grids[c].values_at(points[which, column.places[0]], v)
                elif lo is not None:
                    v = np.clip(v, side_of(lo, rows[which], c), side_of(hi, rows[which], c))
                changes[column.sources[0]] = Cells(which, _snapped(v) if column.whole else v)
            else:
                changes.update(self.level_cells(c, which, points))
        return self.with_cells(given, rows, changes)

    def level_cells(self, c: int, which: Ints, points: Array) -> dict[Any, Cells]:
        """Return what to write into the sources of a category for some of the points."""
        column = self.columns[c]
        levels = self.nearest_level(c, points[which][:, column.places])
        if column.declared:
            return {
                source: Cells(which, (levels == j).astype(np.float64))
                for j, source in enumerate(column.sources)
            }
        return {column.sources[0]: Cells(which, [column.levels[i] for i in levels])}

    def read_again(self, rows: Rows) -> Rows:
        """Read rows that `write` wrote: what the model makes of them."""
        if self.steps is None:
            return self.read(rows.array if rows.frame is None else rows.frame)
        return self._sent(rows.frame, rows.array, rows.kind)

    def box(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Turn bounds of columns, in the user's units, into a box of coordinates.

        Categories are open: their levels are a matter of choice, not of bounds. A curve ends where
        it can no longer be undone.
        """
        if self.is_plain:
            return lo, hi
        low, high = np.full(self.n_coordinates, -np.inf), np.full(self.n_coordinates, np.inf)
        sides = {
            c: np.array([max(lo[c], column.limits[0]), min(hi[c], column.limits[1])])
            for c, column in enumerate(self.columns)
            if column.kind == "number"
        }
        made = self._corners(sides)
        for c, ends in sides.items():
            at, rising = self.columns[c].places[0], self.columns[c].rising
            ends = np.where(np.isinf(ends), ends if rising else -ends, made[:, at])
            low[at], high[at] = ends if rising else ends[::-1]
        return low, high

    def _corners(self, sides: dict[int, Array]) -> Array:
        """Return coordinates of two rows: all lower ends, all upper ends; any value if open."""
        ends = {
            c: np.where(np.isinf(side), self.columns[c].observed[0], side)
            for c, side in sides.items()
        }
        if self.steps is not None:
            cells = {self.columns[c].sources[0]: Cells(np.arange(2), v) for c, v in ends.items()}
            return self._made_up(2, cells)
        made = np.zeros((2, self.n_coordinates))
        for c, values in ends.items():
            made[:, self.columns[c].places[0]] = values
        return made

    def changed(self, moves: Array, least: Array) -> NDArray[np.bool_]:
        """Tell, shape (n, columns), which columns moves of coordinates change."""
        moved = np.abs(moves) > least
        if self.is_plain:
            return moved
        return np.column_stack([moved[:, column.places].any(axis=1) for column in self.columns])

    def user_numbers(self, given: Rows) -> dict[Any, Array]:
        """Return the number columns of rows in the user's units, by name."""
        return {c.name: user_values(self, given, c)[0] for c in self.columns if c.kind == "number"}

    def shown(self, c: int, given: Rows, rows: Ints) -> NDArray[Any]:
        """Return the values of a column as they stand in some rows of the user's table.

        Numbers are floats, of single precision where the table's are; of a category it is levels.
        """
        column = self.columns[c]
        if column.declared:
            return self.levels_at(c, given.points[rows])
        source = column.sources[0]
        if given.frame is None:
            assert given.array is not None
            values = given.array[rows, self.sources.index(source)]
            if column.kind == "category":
                return np.asarray(values, dtype=object)
            return np.asarray(values, np.float32 if values.dtype == np.float32 else np.float64)
        some = given.frame.get_column(self.frame_name(given.frame, source))[rows]
        if column.kind == "number":
            single = some.dtype == nw.Float32
            return series_numbers(some).astype(np.float32 if single else np.float64)
        made = np.empty(len(some), dtype=object)
        made[:] = some.to_list()
        return made

    def levels_at(self, c: int, points: Array) -> NDArray[Any]:
        """Return the levels of a category at coordinates; None where there are none."""
        lost = np.asarray(np.isnan(points).any(axis=1))
        levels = self.values(c, np.where(lost[:, None], 0.0, points)[:, self.columns[c].places])
        levels[lost] = None
        return levels

    def inward(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Round bounds inwards to numbers that this space can hold."""
        if self.dtype == np.float64 or self.steps is not None:
            return lo, hi
        low, high = lo.astype(self.dtype), hi.astype(self.dtype)
        low = np.where(low < lo, np.nextafter(low, np.array(np.inf, self.dtype)), low)
        high = np.where(high > hi, np.nextafter(high, np.array(-np.inf, self.dtype)), high)
        return low.astype(np.float64), high.astype(np.float64)

    def table(self, points: NDArray[Any], kind: Kind | None = None, rows: Any = None) -> Any:
        """Return points as a frame of the sources; `rows` pick from the index."""
        columns = {name: points[:, i] for i, name in enumerate(self.sources)}
        return indexed(table(columns, kind), kind, rows)


def _copy(values: NDArray[Any], own: NDArray[Any], start: int, stop: int) -> bool:
    """Copy a span of rows, and tell whether all of them are certainly finite."""
    with np.errstate(all="ignore"):
        own[start:stop] = values[start:stop]
        return bool(np.isfinite(own[start:stop].sum()))  # quicker than a look at each


def _snapped(values: Array) -> Array:
    nearest = np.rint(values)
    close = np.abs(values - nearest) <= TOLERANCE.whole * np.maximum(1.0, np.abs(nearest))
    return np.where(close, nearest, values)


def _level(column: Column, value: Any) -> int:
    for i, level in enumerate(column.levels):
        if level == value or (level != level and value != value):
            return i
    raise DataError(f"{value!r} is no level of {column.name!r}; there are {listed(column.levels)}.")


def user_values(space: Space, given: Rows, column: Column) -> tuple[Array, bool]:
    """Return the values of a source as numbers, and whether its type is whole."""
    if given.frame is not None:
        name = space.frame_name(given.frame, column.sources[0])
        return numbers(given.frame, name), is_whole(given.frame, name)
    at = space.sources.index(column.sources[0])
    if given.array is None:
        return given.points[:, at], column.whole
    values = given.array[:, at]
    whole = values.dtype.kind in "iub" or all(isinstance(v, (int, np.integer)) for v in values)
    return values.astype(np.float64), bool(whole)
