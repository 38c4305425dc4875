"""The user's columns and the model's coordinates: reads tables, and writes answers as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.errors import ColumnError, DataError, listed
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.pullback import Mixing
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.parallel import in_parallel
from voicecf.table.column import Column
from voicecf.table.faults import with_faults
from voicecf.table.frames import (
    Cells,
    Kind,
    any_array,
    array_with_cells,
    as_frame,
    dense,
    frame_with_cells,
    is_boolean,
    is_missing,
    is_single,
    number_array,
    numbers,
    objects,
    plain_values,
    table,
    taken,
    typed,
    widened,
)
from voicecf.table.maps import Map, own_map
from voicecf.table.pipeline import Steps
from voicecf.table.rows import Rows, side_of, without_values

# Types of less than double precision.
HALVES = (np.float16, np.float32)


class Space:
    """The columns of the user's tables, and their coordinates in the model.

    Attributes
    ----------
    columns : list of Column
    names : list
        The names of `columns`.
    sources : list
        The columns of the user's table, in the order that the model was fitted on.
    named : bool
        Whether the data had column names; else they are x0, x1, ...
    dtype : numpy dtype
        The precision that the model computes with.
    mixing : Mixing or None
        The affine map from the coordinates to the model's input; None if they are the same.
    round_trip_error : array of shape (d,)
        By how much a coordinate may change when it is turned into the user's units and back.
    steps : Steps or None
        The fitted steps before the model.
    sample : Rows or None
        One row of the data that the steps were fitted on; None before `fit` has read it.
    """

    def __init__(
        self, columns: list[Column], sources: list[Any], named: bool, dtype: Any,
        steps: Steps | None = None,
    ) -> None:  # fmt: skip
        self.sources = sources
        self.named = named
        self.dtype = np.dtype(dtype)
        self.steps = steps
        self.use(columns)
        self._steps_take_frame = steps is not None and (
            steps.fitted_on_names
            or (named and not all(isinstance(source, str) for source in sources))
        )
        self.mixing: Mixing | None = None if steps is None else steps.mixing
        self.round_trip_error = np.zeros(len(sources if steps is None else steps.wires))
        self.sample: Rows | None = None

    def use(self, columns: list[Column]) -> None:
        """Replace the columns."""
        self.columns = columns
        self.names = [column.name for column in columns]
        self._plain = all(column.kind == "number" for column in columns)
        self._maps = [self._own_map(column) if column.own_map else None for column in columns]

    def _own_map(self, column: Column) -> Map | None:
        return None if self.steps is None else own_map(self.steps, column)

    def exact_maps(self, rows: Rows) -> NDArray[np.bool_]:
        """Tell which columns' own maps give the coordinates of rows bit for bit."""
        exact = np.zeros(len(self.columns), dtype=np.bool_)
        missing = [
            list(map(is_missing, plain_values(self.user_column(rows, source))))
            for column in self.columns
            for source in column.sources
        ]
        complete = rows.take(np.flatnonzero(~np.any(missing, axis=0)))
        for c, column in enumerate(self.columns) if len(complete) and not self.single else ():
            own = self._own_map(column)
            found = (
                None if own is None else own(self.user_column(complete, column.sources[0], True))
            )
            exact[c] = found is not None and np.array_equal(
                found.view(np.int64), complete.points[:, column.places].view(np.int64)
            )
        return exact

    @classmethod
    def plain(cls, names: list[Any], named: bool, dtype: Any = np.float64) -> Space:
        """Return a space of number columns whose coordinates are their values."""
        columns = [Column(name, (name,), np.array([i])) for i, name in enumerate(names)]
        return cls(columns, list(names), named, dtype)

    @property
    def n_coordinates(self) -> int:
        """Number of coordinates, d."""
        return len(self.round_trip_error)

    @property
    def coded(self) -> Mask:
        """A mask of the coordinates that code levels, or whole numbers of two neighbours."""
        coded = np.zeros(self.n_coordinates, dtype=np.bool_)
        for column in self.columns:
            low, high = column.observed
            coded[column.places] = column.kind == "category" or (column.whole and high - low <= 1)
        return coded

    @property
    def is_plain(self) -> bool:
        """Whether the coordinates are the user's columns, all of them numbers."""
        return self.steps is None and self._plain

    @cached_property
    def continuous(self) -> bool:
        """Whether every column can take any number."""
        return all(column.free and not column.whole for column in self.columns)

    def read(self, X: Any, errors: Literal["status", "raise"] | None = None) -> Rows:
        """Read a table; raise if a column is missing, not a number, or has missing values.

        With ``errors="status"`` rows that cannot be read are listed in `Rows.faults` instead.
        Rows that can be read but not explained raise or are listed only if `errors` is not None.
        """
        unread = self._unread(X)
        try:
            rows = self.read_quickly(unread)
        except DataError as error:
            if errors != "status" and self.sample is None:  # a bare model, or within `fit`
                raise
            rows = with_faults(self, unread, error)
            if errors == "status":
                return rows
            raise self._unreadable(rows) from error
        if errors is None or self.steps is None or not self.steps.filled:
            return rows
        rows = with_faults(self, rows, None)
        if rows.faults and errors == "raise":
            raise self._unreadable(rows)
        return rows

    def _unreadable(self, rows: Rows) -> DataError:
        """Return the error for the first row that cannot be read."""
        row, more = min(rows.faults), len(rows.faults) - 1
        also = f" {more} more rows cannot be read, either." if more else ""
        return DataError(f"row {row} cannot be read: {rows.faults[row]}{also}")

    def _unread(self, X: Any) -> Rows:
        """Return the rows of a table without coordinates."""
        frame, array = as_frame(X), None
        if frame is None:
            # A copy, as of a frame: answers must not change if the user changes the array later.
            # Without steps, `_copied` makes one.
            array = number_array(X) if self.steps is None else np.array(any_array(X))
            self._check_width(array.shape[1])
        else:
            frame = self._pick(frame)
        return self._as_precise_as_fit(Rows.unread(frame, array, Kind.of(frame)))

    def _as_precise_as_fit(self, rows: Rows) -> Rows:
        """Widen single precision to double where the steps were fitted on double precision.

        Steps keep the precision of their input, and would round what the model is not
        fitted to see rounded.
        """
        if self.sample is None:
            return rows
        if rows.array is not None:
            narrow = rows.array.dtype in HALVES and not self.single >= set(self.sources)
            return replace(rows, array=rows.array.astype(np.float64)) if narrow else rows
        sources = rows.columns if self.named else self.sources
        pairs = zip(rows.columns.items(), sources, strict=True)
        narrow_ones = [n for (n, of), s in pairs if is_single(of) and s not in self.single]
        return replace(rows, frame=widened(rows.frame, narrow_ones)) if narrow_ones else rows

    @cached_property
    def single(self) -> set[Any]:
        """The sources that had single precision in the data that the steps were fitted on."""
        assert self.sample is not None
        frame, array = self.sample.frame, self.sample.array
        if frame is not None:
            return {name for name, dtype in frame.schema.items() if dtype == nw.Float32}
        return set(self.sources) if array is not None and array.dtype in HALVES else set()

    def read_again(self, rows: Rows) -> Rows:
        """Return rows with their coordinates and the model's input, such as those of `write`."""
        return self._copied(rows) if self.steps is None else self._transformed(rows)

    @property
    def has_maps(self) -> bool:
        """Whether all columns have own maps, which make the model's input of the user's values."""
        return self.mixing is None and None not in self._maps

    def read_quickly(self, rows: Rows) -> Rows:
        """Read rows as `read_again` does, without the steps where columns have their own maps."""
        if not self.has_maps or not len(rows):
            return self.read_again(rows)
        points = np.empty((len(rows), self.n_coordinates))
        for c, column in enumerate(self.columns):
            found = self.own_coordinates(c, self.user_column(rows, column.sources[0], text=True))
            if found is None:
                return self.read_again(rows)
            points[:, column.places] = found
        return rows.but(points=points, seen=self.seen(points))

    def _copied(self, rows: Rows) -> Rows:
        """Return rows with their coordinates, which are the user's values."""
        values: Any = rows.array
        if rows.frame is not None:
            values = [numbers(rows.column(name), name) for name in rows.columns]
        copy = np.empty((len(rows), len(self.sources)), dtype=self.dtype)
        finite: list[bool] = in_parallel(lambda a, b: _copy(values, copy, a, b), len(copy))
        if not all(finite):
            self._check_finite(copy)
        points = copy if self.dtype == np.float64 else copy.astype(np.float64)
        array = None
        if rows.frame is None:
            array = np.array(values) if values.dtype.kind in "iu" else copy
        return Rows(rows.frame, points, points, rows.kind, array)

    def _transformed(self, rows: Rows) -> Rows:
        """Return rows with their coordinates and the model's input, computed by the steps."""
        assert self.steps is not None
        if len(rows) == 0:
            points = np.empty((0, self.n_coordinates))
            width = self.n_coordinates if self.mixing is None else len(self.mixing.shift)
            return replace(rows, points=points, seen=np.empty((0, width)))
        table = self._input_of_steps(rows)
        output = self.steps.forward(table)
        points = dense(output)
        self._check_finite(points)
        seen = points if self.mixing is None else dense(self.steps.onward(output, table))
        return rows.but(points=points, seen=self.seen(seen))

    def seen(self, values: Array) -> Array:
        """Return values in the precision of the model's centroids, with which it assigns rows."""
        return values if self.dtype == np.float64 else values.astype(self.dtype).astype(np.float64)

    def points_of(self, rows: Rows) -> Array:
        """Return the coordinates of rows by the steps, infinite or NaN where these have none."""
        assert self.steps is not None
        return dense(self.steps.forward(self._input_of_steps(rows)))

    def _input_of_steps(self, rows: Rows) -> Any:
        """Return rows as the steps expect them: a frame or an array."""
        if rows.frame is not None:
            return rows.frame.to_native() if self._steps_take_frame else rows.frame.to_numpy()
        return self.table(rows.array) if self._steps_take_frame else rows.array

    def is_boolean(self, c: int, rows: Rows) -> bool:
        """Tell whether a number column has booleans in the user's table."""
        column = self.columns[c]
        if not column.numeric or rows.frame is None:
            return False
        return is_boolean(self.user_column(rows, column.sources[0]))

    def user_column(self, rows: Rows, source: Any, text: bool = False) -> Any:
        """Return the user's values of a source: a narwhals series, or an array.

        Text and levels are an array only if `text` is True.
        """
        if rows.frame is not None:
            name = self.frame_name(rows.frame, source)
            return rows.columns[name] if text else rows.column(name)
        return (rows.points if rows.array is None else rows.array)[:, self.sources.index(source)]

    def numbers_of(self, rows: Rows, column: Column) -> Array:
        """Return the user's values of a number column, NaN where missing."""
        return numbers(self.user_column(rows, column.sources[0]), column.sources[0])

    def user_numbers(self, rows: Rows) -> dict[Any, Array]:
        """Return the user's values of all number columns, by name."""
        return {c.name: self.numbers_of(rows, c) for c in self.columns if c.kind == "number"}

    def frame_name(self, frame: Any, source: Any) -> Any:
        """Return the name of a source in a frame, by position if the data of fit had no names."""
        return source if self.named else frame.columns[self.sources.index(source)]

    def _check_width(self, width: int) -> None:
        if width != len(self.sources):
            raise DataError(f"X has {width} columns; the model was fitted on {len(self.sources)}.")

    def _pick(self, frame: Any) -> Any:
        """Return the sources of this space from a frame, in their order."""
        names = list(frame.columns)
        if not names:
            raise DataError(f"X has no columns; the model was fitted on {len(self.sources)}.")
        if not self.named:
            self._check_width(len(names))
            return frame
        if names == self.sources:
            return frame.clone()  # answers must not change if the user changes the frame later
        needed = {source for column in self.columns for source in column.sources}
        missing = [n for n in self.sources if n in needed and n not in names]
        if missing:
            raise ColumnError(
                f"X lacks {listed(missing)}; it has {listed(names)}. The explainer needs the "
                "columns that it was fitted on."
            )
        return frame[:, [names.index(n) for n in self.sources if n in names]]  # a copy, too

    def _check_finite(self, values: NDArray[Any]) -> None:
        with np.errstate(all="ignore"):
            if np.isfinite(values.sum()):  # one finite sum is quicker than a check of each value
                return
        bad = ~np.isfinite(values)
        if bad.any():
            columns = [c.name for c in self.columns if bad[:, c.places].any()]
            rows = np.flatnonzero(bad.any(axis=1))
            raise DataError(
                f"X has missing (NaN) or infinite values in {len(rows)} rows (first: row "
                f"{rows[0]}), columns {listed(columns)}. Impute or drop them first."
            )

    def coordinates(self, c: int, values: Any) -> Array:
        """Return the coordinates, shape (n, width), of values of a column.

        Numbers are transformed by the pipeline; levels are looked up.
        """
        column = self.columns[c]
        if column.kind == "category":
            return np.asarray(column.options[[_level(column, value) for value in values]])
        values = np.asarray(values, dtype=np.float64)
        if self.steps is None:
            return np.asarray(values.astype(self.dtype), dtype=np.float64)[:, None]
        return self.mapped({c: values})[c]

    def mapped(self, values: Mapping[int, Any]) -> dict[int, Array]:
        """Return the coordinates, shape (n, width), of values of several columns.

        Without own maps, all go through the steps in one call, each in a copy of a row of the data.
        """
        own = {}
        for c, of_column in values.items():
            found = self.own_coordinates(c, of_column)
            if found is not None:
                own[c] = found
        if len(own) == len(values):
            return own
        ends = np.cumsum([0, *map(len, values.values())])
        rows = {c: np.arange(*span) for c, span in zip(values, pairwise(ends), strict=True)}
        changes = {self.columns[c].sources[0]: Cells(rows[c], values[c]) for c in values}
        points = self._sample_points(int(ends[-1]), changes)
        return {c: points[np.ix_(rows[c], self.columns[c].places)] for c in values}

    def own_coordinates(self, c: int, values: Any) -> Array | None:
        """Return the coordinates of values of a column by its own map; None if it gives none."""
        own = self._maps[c]
        return own and own(objects(values) if isinstance(values, (list, tuple)) else values)

    def _sample_points(self, n: int, changes: Mapping[Any, Cells]) -> Array:
        """Return the coordinates of n copies of one row of the data with some cells changed."""
        assert self.sample is not None
        if n == 0:
            return np.empty((0, self.n_coordinates))
        with np.errstate(all="ignore"):
            rows = self.with_cells(self.sample, np.zeros(n, dtype=np.int64), changes)
            return self.points_of(rows)

    def with_cells(self, rows: Rows, which: Ints, changes: Mapping[Any, Cells]) -> Rows:
        """Return the rows `which` with some cells changed, in the user's columns.

        `changes` are by source; their row positions count the result.
        """
        if rows.frame is not None:
            changes = {self.frame_name(rows.frame, s): cells for s, cells in changes.items()}
            frame = taken(rows.frame, which)
            if self.steps is None and self.dtype == np.float64:
                # Single precision would round values that the model reads in double precision.
                frame = widened(frame, [name for name, cells in changes.items() if len(cells.rows)])
            return Rows.unread(frame_with_cells(frame, changes), None, rows.kind)
        assert rows.array is not None
        by_position = {self.sources.index(source): cells for source, cells in changes.items()}
        return Rows.unread(None, array_with_cells(taken(rows.array, which), by_position), rows.kind)

    def values(self, c: int, coordinates: Any) -> NDArray[Any]:
        """Return values of a column, shape (n,), from its coordinates.

        Numbers are floats in the user's units, NaN outside the range of the column's map. The
        value of a category is the level whose coordinates are nearest.
        """
        column, z = self.columns[c], np.asarray(coordinates, dtype=np.float64)
        z = z.reshape(len(z), len(column.places))
        if column.kind == "number":
            if self.steps is None:
                return z[:, 0]
            assert self.sample is not None
            points = np.repeat(self.sample.points, len(z), axis=0)
            points[:, column.places] = z
            return self._numbers(points)[column.sources[0]]
        return objects([column.levels[i] for i in self.nearest_level(c, z)])

    def nearest_level(self, c: int, coordinates: Array) -> Ints:
        """Return positions of the levels whose coordinates are nearest."""
        options = self.columns[c].options
        distances = ((coordinates[:, None, :] - options[None]) ** 2).sum(axis=2)
        return np.asarray(distances.argmin(axis=1))

    def _numbers(self, points: Array) -> dict[Any, Array]:
        """Return the user's values of all number columns, by source, from coordinates."""
        if self.steps is None:
            return {source: points[:, i] for i, source in enumerate(self.sources)}
        return {self.sources[i]: v for i, v in self.steps.backward(points).items()}

    def write(
        self, points: Array, rows: Rows, which: Ints, lo: Any = None, hi: Any = None,
        grids: Any = None, least: Mapping[int, float] | None = None,
        ends: Mapping[int, Array] | None = None,
    ) -> Rows:  # fmt: skip
        """Return answers in the user's columns.

        A column whose coordinates are bit for bit those of its row keeps its value, and so do all
        columns of an answer of NaN. Types stay where they can hold the answer.

        Parameters
        ----------
        points : array of shape (n, d)
            Answers in coordinates.
        rows : Rows
        which : array of shape (n,)
            Position in `rows` of the row that each answer belongs to.
        lo, hi : array of shape (columns,) or (len(rows) or 1, columns), optional
            Bounds in the user's units, to which new values are clipped.
        grids : sequence of Multiples, Listed or None, optional
            For each column the values that it is limited to.
        least : dict of int to float, optional
            The least change of some columns, which rounding must not make smaller.
        ends : dict of int to array, optional
            Ascending values of some columns, which values next to them stand for.

        Returns
        -------
        Rows
            Without coordinates; see `read_again`.
        """
        missing, own = without_values(points), taken(rows.points, which)
        filled = np.where(missing[:, None], own, points) if missing.any() else points
        moved, by_source = filled != own, self._numbers(filled)
        anywhere = moved.any(axis=0).tolist()
        changes: dict[Any, Cells] = {}
        for c, column in enumerate(self.columns):
            bent = column.kind == "number" and lo is not None and not column.affine
            if not bent and not any(anywhere[place] for place in column.places):
                continue
            left = moved[:, column.places].any(axis=1)
            if bent:
                # Values beyond the ends of a curve may have the same coordinate as the end.
                before = self.table_values(c, rows, which)
                outside = (before < side_of(lo, which, c)) | (before > side_of(hi, which, c))
                left = left | (outside & ~missing)
            at = np.flatnonzero(left)
            if column.kind == "number":
                v = by_source[column.sources[0]][at]
                if grids is not None and grids[c] is not None:
                    v = grids[c].values_at(points[at, column.places[0]], v)
                elif lo is not None:
                    low, high = (side_of(side, which[at], c) for side in (lo, hi))
                    v = np.clip(v, low, high)
                    for end in (low, high):
                        v = np.where(_is_next_to(v, end, column.observed, TOLERANCE.rule), end, v)
                if ends and c in ends:
                    v = _at_ends(v, ends[c], column.observed)
                if least and c in least:
                    v = at_least(v, self.table_values(c, rows, which[at]), least[c])
                changes[column.sources[0]] = Cells(at, _snapped(v) if column.whole else v)
            else:
                changes.update(self.level_cells(c, at, points))
        return self.with_cells(rows, which, changes)

    def level_cells(self, c: int, at: Ints, points: Array) -> dict[Any, Cells]:
        """Return the new values of the sources of a category, for the points at some positions."""
        column = self.columns[c]
        if column.indicator:
            return {}
        levels = self.nearest_level(c, points[at][:, column.places])
        if column.declared:
            return {
                source: Cells(at, (levels == j).astype(np.float64))
                for j, source in enumerate(column.sources)
            }
        values = [column.levels[i] for i in levels]
        return {column.sources[0]: Cells(at, np.array(values) if column.binned else values)}

    def box(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Turn bounds of columns, in the user's units, into a box of coordinates.

        The coordinates of categories are unbounded, since their levels are chosen from a list. A
        column whose map is not affine is bounded to where the map can be inverted.
        """
        if self.is_plain:
            return lo, hi
        low, high = np.full(self.n_coordinates, -np.inf), np.full(self.n_coordinates, np.inf)
        sides = {
            c: np.array([max(lo[c], column.limits[0]), min(hi[c], column.limits[1])])
            for c, column in enumerate(self.columns)
            if column.kind == "number"
        }
        finite = {
            c: np.where(np.isinf(ends), self.columns[c].observed[0], ends)
            for c, ends in sides.items()
        }
        if self.steps is not None:
            finite = {c: z[:, 0] for c, z in self.mapped(finite).items()}
        for c, ends in sides.items():
            at, rising = self.columns[c].places[0], self.columns[c].rising
            ends = np.where(np.isinf(ends), ends if rising else -ends, finite[c])
            low[at], high[at] = ends if rising else ends[::-1]
        return low, high

    def changed(self, moves: Array, least: Array | float) -> NDArray[np.bool_]:
        """Tell, shape (n, columns), which columns a move changes by more than `least`."""
        moved = (moves > least) | (moves < -least)
        if self.is_plain:
            return moved
        return np.column_stack([moved[:, column.places].any(axis=1) for column in self.columns])

    def table_values(self, c: int, rows: Rows, which: Ints | None = None) -> NDArray[Any]:
        """Return the values of a column in some rows of the user's table, or in all.

        Numbers are floats, of single precision if the table's are. The values of a category are
        its levels.
        """
        column = self.columns[c]
        if column.declared:
            return self.levels_at(c, taken(rows.points, which))
        values = self.user_column(rows, column.sources[0], text=not column.numeric)
        if not column.numeric:
            return objects(plain_values(taken(values, which)))
        floats = numbers(values, column.name).astype(
            np.float32 if is_single(values) else np.float64
        )
        return np.asarray(taken(floats, which))

    def levels_at(self, c: int, points: Array) -> NDArray[Any]:
        """Return the levels of a category at points; None at points of NaN."""
        missing = without_values(points)
        levels = self.values(c, np.where(missing[:, None], 0.0, points)[:, self.columns[c].places])
        levels[missing] = None
        return levels

    def inward(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Round bounds inwards to numbers of the model's precision."""
        if self.dtype == np.float64 or self.steps is not None:
            return lo, hi
        low, high = lo.astype(self.dtype), hi.astype(self.dtype)
        low = np.where(low < lo, np.nextafter(low, np.array(np.inf, self.dtype)), low)
        high = np.where(high > hi, np.nextafter(high, np.array(-np.inf, self.dtype)), high)
        return low.astype(np.float64), high.astype(np.float64)

    def table(self, values: Any) -> Any:
        """Return an array as a frame of the sources."""
        return table(dict(zip(self.sources, typed(values), strict=True)))


def _copy(values: Any, copy: NDArray[Any], start: int, stop: int) -> bool:
    """Copy a range of rows, and tell whether their sum, and so each value, is finite.

    `values` are an array, or a list of columns.
    """
    columns = isinstance(values, list)
    with np.errstate(all="ignore"):
        part = np.column_stack([v[start:stop] for v in values]) if columns else values[start:stop]
        copy[start:stop] = part
        return bool(np.isfinite(copy[start:stop].sum()))  # quicker than a check of each value


def _snapped(values: Array) -> Array:
    """Replace values by the whole number that they differ from only by rounding."""
    nearest = np.rint(values)
    close = np.abs(values - nearest) <= TOLERANCE.whole * np.maximum(1.0, np.abs(nearest))
    return np.where(close, nearest, values)


def _at_ends(values: Array, ends: Array, observed: tuple[float, float]) -> Array:
    """Replace values by the end that they differ from only by rounding."""
    after = np.searchsorted(ends, values).clip(0, len(ends) - 1)
    before = np.maximum(after - 1, 0)
    nearer = np.abs(values - ends[before]) < np.abs(values - ends[after])
    nearest = np.where(nearer, ends[before], ends[after])
    return np.where(_is_next_to(values, nearest, observed, TOLERANCE.invertible), nearest, values)


def _is_next_to(
    values: Array, ends: Any, observed: tuple[float, float], share: float
) -> NDArray[np.bool_]:
    """Tell which values differ from ends by a share of these and of the observed range at most."""
    spread = observed[1] - observed[0]
    size = np.abs(ends) + (spread if np.isfinite(spread) else 0.0)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.isfinite(ends) & (np.abs(values - ends) <= share * size))


def at_least(values: Array, own: Array, least: float) -> Array:
    """Return values that differ from the rows' own by at least an amount, despite rounding."""
    ends = np.where(values > own, own + least, own - least)
    near = (np.abs(values - own) < least * (1 + TOLERANCE.invertible)) & (values != own)
    return np.where(near, ends, values)


def _level(column: Column, value: Any) -> int:
    """Return the position of a level among a column's."""
    for i, level in enumerate(column.levels):
        if level == value or (level != level and value != value):
            return i
    raise DataError(
        f"{value!r} is not a level of {column.name!r}; there are {listed(column.levels)}."
    )
