"""How a space comes about: what fitted steps, and the data that they were fitted on, tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Any

import numpy as np

from voicecf.errors import ColumnError, DataError, ModelError, OptionError, known_column, listed
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.table.column import Column
from voicecf.table.frames import Cells, any_array, as_frame, is_whole, number_array
from voicecf.table.keptrow import KeptRow, plain_row
from voicecf.table.pipeline import Steps, dense, fed_names
from voicecf.table.rows import Rows
from voicecf.table.space import Space, user_values
from voicecf.table.stream import Stream

# What no source of a declared block being on is called.
NONE_ON = "(none)"
# Multiples of the observed spread that are tried to see how far a curve can be followed; odd ones,
# so that none is just where a logarithm ends.
BEYOND = 1.0123 * 2.0 ** np.arange(-6.0, 20.0)
# Rows of the data that are sent to the user's units and back.
SAMPLED = 20_000


def learn_space(
    steps: Any, X: Any, dtype: Any = np.float64, *, categories: Any = None, order: Any = None
) -> Space:
    """Learn columns from the data that a model was fitted on.

    Parameters
    ----------
    steps : Pipeline or None
        The fitted steps before the model; None for a bare one.
    X : array, frame or Stream
    dtype : numpy dtype
        What the model computes with.
    categories : dict, optional
        Columns that code one category, by its name.
    order : list, optional
        The columns that a bare model was fitted on, where it knows their names.

    Examples
    --------
    >>> from voicecf.table.learning import learn_space
    >>> space = learn_space(None, [[1.0, 0, 1], [2.5, 1, 0]], categories={"job": ["x1", "x2"]})
    >>> [(column.name, column.kind) for column in space.columns]
    [('x0', 'number'), ('job', 'category')]
    >>> space.columns[1].levels
    ('x1', 'x2')
    """
    stream = X if isinstance(X, Stream) else Stream.table(X)
    space = bare(stream, dtype, order) if steps is None else traced(steps, stream, dtype)
    return with_categories(space, stream, categories) if categories else space


class RowBlocks:
    """Rows to learn from, as a space reads them: block by block, as often as wanted.

    Of a table in memory what was read is kept.
    """

    def __init__(self, space: Space, stream: Stream) -> None:
        self._space = space
        self._stream = stream
        self._kept: list[Rows] = []

    def __iter__(self) -> Iterator[Rows]:
        """Yield the blocks."""
        if self._kept:
            yield from self._kept
            return
        kept = []
        for block in self._stream:
            given = self._space.read(block)
            if self._stream.in_memory:
                kept.append(given)
            yield given
        self._kept = kept

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self._stream.n_rows

    def spans(self) -> Iterator[tuple[int, Rows]]:
        """Yield the blocks, and the number of rows before each."""
        before = 0
        for given in self:
            yield before, given
            before += len(given.points)


def bare(stream: Stream, dtype: Any, order: Any) -> Space:
    """Learn the columns of a bare model's data."""
    first = stream.first()
    frame = as_frame(first)
    if frame is None:
        values = number_array(first)
        space = Space.plain([f"x{i}" for i in range(values.shape[1])], False, dtype)
    else:
        space = Space.plain(list(frame.columns) if order is None else list(order), True, dtype)
    learned: list[Column] = []
    for given in RowBlocks(space, stream):
        if len(given.points):
            here = [_seen_bare(given, c, column) for c, column in enumerate(space.columns)]
            learned = _widened(learned, here)
    space.columns = learned or space.columns
    return space


def _seen_bare(given: Rows, c: int, column: Column) -> Column:
    ends = float(given.points[:, c].min()), float(given.points[:, c].max())
    # An array has one type for all its columns, so it says nothing of any of them.
    whole = given.frame is not None and is_whole(given.frame, column.name)
    return replace(column, observed=ends, whole=whole)


def _widened(columns: list[Column], others: list[Column]) -> list[Column]:
    """Join the ranges that two blocks tell of columns, and whether both are whole."""
    if not columns:
        return others
    joined = []
    for one, other in zip(columns, others, strict=True):
        low, high = zip(one.observed, other.observed, strict=True)
        whole = one.whole and other.whole
        joined.append(replace(one, observed=(min(low), max(high)), whole=whole))
    return joined


class Wholeness(IntEnum):
    """What the values of a column say of whether it counts in whole numbers."""

    FRACTIONS = -1
    WHOLE_FLOATS = 0
    WHOLE_WITH_GAPS = 1  # floats, as many libraries store whole numbers beside a gap
    WHOLE_TYPE = 2

    @classmethod
    def of(cls, values: Array, by_type: bool) -> Wholeness:
        """Look at one block of a column, NaN where a value is missing."""
        missing = np.isnan(values)
        if by_type:
            return cls.WHOLE_TYPE
        if (values[~missing] != np.rint(values[~missing])).any():
            return cls.FRACTIONS
        return cls.WHOLE_WITH_GAPS if missing.any() and not missing.all() else cls.WHOLE_FLOATS

    def joined(self, other: Wholeness) -> Wholeness:
        """Return what two blocks say together."""
        return min(self, other) if min(self, other) == Wholeness.FRACTIONS else max(self, other)


def traced(pipeline: Any, stream: Stream, dtype: Any) -> Space:
    """Learn the columns of a pipeline's data from its fitted steps."""
    first = stream.first()
    frame, known = as_frame(first), fed_names(pipeline)
    if known is not None:
        names = list(known)
    elif frame is not None:
        names = list(frame.columns)
    else:
        names = [f"x{i}" for i in range(any_array(first).shape[1])]
    steps = Steps.of(pipeline, names)
    positions = sorted({wire.source for wire in steps.wires})
    columns = [
        Column(
            names[i], (names[i],), np.array([p for p, w in enumerate(steps.wires) if w.source == i])
        )
        for i in positions
    ]
    space = Space(columns, names, frame is not None or known is not None, dtype)
    space.steps, space.mixing = steps, steps.mixing
    textual = all(isinstance(name, str) for name in names)
    space.feeds_frame = known is not None or (frame is not None and not textual)
    space.coordinate_names = [wire.label for wire in steps.wires]
    space.round_trip_error = np.zeros(len(steps.wires))
    _learn(space, RowBlocks(space, stream), positions)
    return space


def _check_trace(space: Space, given: Rows) -> None:
    """Compare what was traced with what the steps did to the data."""
    made, d = given.points.shape[1], space.n_coordinates
    if made != d:
        raise ModelError(
            f"the steps before the model make {made} coordinates of the data where their fitted "
            f"attributes tell of {d}; voicecf cannot follow them."
        )
    if space.mixing is None:
        return
    told = space.mixing(given.points)
    size = np.abs(given.points) @ np.abs(space.mixing.matrix).T + np.abs(space.mixing.shift)
    rounding = 1e-4 if given.seen.dtype == np.float32 or space.dtype == np.float32 else 1e-8
    if told.shape != given.seen.shape or (np.abs(told - given.seen) > rounding * (1 + size)).any():
        raise ModelError(
            "the steps after the first mixing one do something else than their fitted attributes "
            "tell; voicecf cannot follow them."
        )


def _learn(space: Space, data: RowBlocks, sources: list[int]) -> None:
    """Fill in what only the data tell: kinds, levels, ranges, where maps can be undone."""
    learned: list[Column] = []
    values: dict[int, Array] = {}
    wholeness: dict[int, Wholeness] = {}
    for before, given in data.spans():
        if len(given.points) == 0:
            raise DataError("X has no rows; bounds and contraction are learned from data.")
        _check_trace(space, given)
        if before == 0:
            space._template = _kept_row(space, given, sources)
        learned = _widened(learned, [_described(space, given, c) for c in range(len(sources))])
        values = _distinct_values(space, given, learned, values)
        for c, column in enumerate(learned):
            if column.kind == "number":
                here = Wholeness.of(*user_values(space, given, column))
                wholeness[c] = wholeness.get(c, here).joined(here)
    for c, found in wholeness.items():
        learned[c] = replace(learned[c], whole=found > Wholeness.WHOLE_FLOATS)
    space.columns = learned
    _learn_options(space)
    sides = {c: np.array(o.observed) for c, o in enumerate(space.columns) if o.kind == "number"}
    ends = space._corners(sides)
    for c in sides:
        at = space.columns[c].places[0]
        space.columns[c] = replace(space.columns[c], rising=bool(ends[1, at] >= ends[0, at]))
    _learn_round_trip_error(space, data)
    _learn_curves(space, data, values)


def _described(space: Space, given: Rows, c: int) -> Column:
    """Return what the steps, and a block of the data, tell of a column."""
    assert space.steps is not None
    column = space.columns[c]
    coding = space.steps.codings.get(space.sources.index(column.name))
    if coding is None:
        return _number(space, given, column)
    return replace(column, kind="category", levels=coding.levels, ordered=coding.ordered)


def _distinct_values(
    space: Space, given: Rows, columns: list[Column], known: dict[int, Array]
) -> dict[int, Array]:
    """Add the distinct values of columns whose maps are not affine to those that are known."""
    for c, column in enumerate(columns):
        if column.kind == "number" and not column.affine:
            values = user_values(space, given, column)[0]
            held = known.get(c, np.empty(0))
            known[c] = np.unique(np.concatenate([held, values[~np.isnan(values)]]))
    return known


def _kept_row(space: Space, given: Rows, needed: list[int]) -> Rows:
    """Keep the first row of the data, its frame as plain values, so that it can be saved."""
    frame = array = None
    if given.frame is not None:
        names = space.sources if space.named else list(given.frame.columns)
        frame = KeptRow.of(given.frame[[0]], {names[i] for i in needed})
    if given.array is not None:
        array = plain_row(given.array, needed)
    return Rows(frame, given.points[:1].copy(), given.seen[:1].copy(), array=array)


def _learn_options(space: Space) -> None:
    """Learn the coordinates of every level, of all categories at once."""
    changes, n = {}, 0
    for column in space.columns:
        if column.kind == "category":
            changes[column.sources[0]] = Cells(np.arange(n, n + len(column.levels)), column.levels)
            n += len(column.levels)
    made = space._made_up(n, changes)
    for c, column in enumerate(space.columns):
        if column.kind == "category":
            rows = changes[column.sources[0]].rows
            space.columns[c] = replace(column, options=made[np.ix_(rows, column.places)])


def _learn_round_trip_error(space: Space, data: RowBlocks) -> None:
    """Send the data to the user's units and back, and see how far coordinates move."""
    affine = [c for c in space.columns if c.kind == "number" and c.affine]
    places = np.array([c.places[0] for c in affine], dtype=np.int64)
    sampled = np.unique(np.linspace(0, data.n_rows - 1, SAMPLED).astype(np.int64))
    for before, given in data.spans():
        here = (sampled >= before) & (sampled < before + len(given.points))
        if here.any():
            moved = _moved(space, given, sampled[here] - before, affine)[:, places]
            space.round_trip_error[places] = np.maximum(
                space.round_trip_error[places], 2.0 * moved.max(axis=0)
            )


def _moved(space: Space, given: Rows, rows: Ints, affine: list[Column]) -> Array:
    """Return how far coordinates of some rows move on the way to the user's units and back."""
    found, every = space._numbers(given.points[rows]), np.arange(len(rows))
    cells = {c.sources[0]: Cells(every, found[c.sources[0]]) for c in affine}
    made = space.with_cells(given, rows, cells)
    assert space.steps is not None
    again = dense(space.steps.forward(space._fed(made.frame, made.array)))
    return np.asarray(np.abs(again - given.points[rows]))


def _number(space: Space, given: Rows, column: Column) -> Column:
    """Learn the range of a column of numbers."""
    assert space.steps is not None
    if len(column.places) != 1:
        raise ModelError(
            f"column {column.name!r} goes into several coordinates, which one answer could not "
            "change alike; let each column go through one transformer."
        )
    values, _ = user_values(space, given, column)
    missing = np.isnan(values)
    if missing.any():  # is read as what the imputer fills in
        filled = space.steps.backward(given.points)[space.sources.index(column.name)]
        values = np.where(missing, filled, values)
    ends = float(values.min()), float(values.max())
    affine = space.steps.wires[column.places[0]].affine
    return replace(column, observed=ends, affine=affine)


def _learn_curves(space: Space, data: RowBlocks, values: dict[int, Array]) -> None:
    """Learn how well maps that are not affine can be undone, and how far they can be followed."""
    made = _coordinates_of(space, values)
    between = {c: np.concatenate([m, 0.5 * (m[1:] + m[:-1])]) for c, m in made.items()}
    back = {c: space.values(c, z) for c, z in between.items()}
    again = _coordinates_of(
        space, {c: np.where(np.isfinite(v), v, values[c][0]) for c, v in back.items()}
    )
    for given in data if values else ():
        for c in values:
            _check_alone(space, given, c, values[c], made[c])
    for c in values:
        lost = np.where(np.isfinite(back[c]), np.abs(again[c] - between[c]), np.inf)
        if not _strict(made[c]) or (lost > TOLERANCE.invertible * _size(made[c])).any():
            space.columns[c] = replace(space.columns[c], listed=tuple(values[c].tolist()))
        else:
            space.round_trip_error[space.columns[c].places] = 2.0 * lost.max()
    for c, limits in _limits(space, [c for c in values if space.columns[c].free]).items():
        space.columns[c] = replace(space.columns[c], limits=limits)


def _coordinates_of(space: Space, asked: dict[int, Array]) -> dict[int, Array]:
    """Return coordinates of values of several columns, all sent through the steps at once."""
    changes, n = {}, 0
    for c, values in asked.items():
        changes[space.columns[c].sources[0]] = Cells(np.arange(n, n + len(values)), values)
        n += len(values)
    made = space._made_up(n, changes)
    return {
        c: made[changes[space.columns[c].sources[0]].rows, space.columns[c].places[0]]
        for c in asked
    }


def _strict(made: Array) -> bool:
    """Tell whether coordinates of ascending values rise all along, or fall all along."""
    steps = np.diff(made)
    return bool((steps > 0).all() or (steps < 0).all())


def _size(made: Array) -> float:
    """Return what a loss of coordinates is compared with."""
    return float(np.ptp(made)) + 1e-3 * float(np.abs(made).max())


def _check_alone(space: Space, given: Rows, c: int, values: Array, made: Array) -> None:
    """Refuse a map whose coordinate depends on more than its own column."""
    data = user_values(space, given, space.columns[c])[0]
    known = np.flatnonzero(~np.isnan(data))
    seen = given.points[known, space.columns[c].places[0]]
    expected = made[np.searchsorted(values, data[known])]
    if (np.abs(seen - expected) > TOLERANCE.invertible * _size(made)).any():
        raise ModelError(
            f"the coordinate of column {space.columns[c].name!r} depends on other columns too; a "
            "FunctionTransformer must treat each column by itself."
        )


def _limits(space: Space, curves: list[int]) -> dict[int, tuple[float, float]]:
    """Find how far beyond the observed range curves can be followed and undone."""
    ends: dict[int, list[float]] = {c: [] for c in curves}
    for side, way in ((0, -1.0), (1, 1.0)):
        tried = {}
        for c in curves:
            low, high = observed = space.columns[c].observed
            spread = high - low or max(abs(low), 1.0)
            tried[c] = observed[side] + way * spread * np.concatenate([[0.0], BEYOND])
        for c, made in _followed(space, tried).items():
            ends[c].append(float(tried[c][_steady(space, c, tried[c], made)]))
    return {c: (low, high) for c, (low, high) in ends.items()}


def _steady(space: Space, c: int, tried: Array, made: Array) -> int:
    """Return the position up to which a map goes on as it starts and can be undone."""
    with np.errstate(all="ignore"):
        back, steps = space.values(c, made)[1:], np.diff(made)
        held = np.isfinite(steps) & np.isfinite(back) & (steps != 0)
        held &= np.sign(steps) == np.sign(steps[0])
        held &= np.abs(back - tried[1:]) <= TOLERANCE.undone * np.abs(tried[1:] - tried[0])
    return int(np.argmin(np.append(held, False)))


def _followed(space: Space, asked: dict[int, Array]) -> dict[int, Array]:
    """Return coordinates of values; NaN from the first one on that the steps refuse."""
    try:
        return _coordinates_of(space, asked)
    except DataError:  # a logarithm of zero, say; one of them spoils all
        return {c: _followed_alone(space, c, values) for c, values in asked.items()}


def _followed_alone(space: Space, c: int, values: Array) -> Array:
    made = np.full(len(values), np.nan)
    taken, refused = 0, len(values) + 1
    while refused - taken > 1:
        count = refused - 1 if refused > len(values) else (taken + refused) // 2
        try:
            made[:count] = space.coordinates(c, values[:count])[:, 0]
            taken = count
        except DataError:
            refused = count
    return made


def with_categories(space: Space, stream: Stream, categories: Any) -> Space:
    """Join columns that the user declares to code one category."""
    if not isinstance(categories, Mapping):
        raise OptionError('categories must be a dict such as {"job": ["job_admin", "job_other"]}.')
    block_of: dict[int, Any] = {}
    members: dict[Any, list[Column]] = {}
    for name, declared in categories.items():
        where = f"categories[{name!r}]"
        found = [known_column(member, space.names, where) for member in _several(declared, where)]
        for at in found:
            if at in block_of or found.count(at) > 1:
                raise ColumnError(f"column {space.names[at]!r} is declared twice in categories.")
        if name in space.names:
            raise ColumnError(f"{where} has the name of a column; give the block another name.")
        block_of.update(dict.fromkeys(found, name))
        members[name] = [space.columns[at] for at in found]
    none_on = _check_blocks(RowBlocks(space, stream), space, members)
    blocks = {name: _block(space, name, some, name in none_on) for name, some in members.items()}
    columns = [
        blocks[block_of[c]] if c in block_of else column for c, column in enumerate(space.columns)
    ]
    space.columns = list(dict.fromkeys(columns))
    space.names = [column.name for column in space.columns]
    space._plain = False
    return space


def _check_blocks(data: RowBlocks, space: Space, blocks: dict[Any, list[Column]]) -> set[Any]:
    """Check the values of declared blocks; return those that some row has no column of on."""
    none_on = set()
    for name, members in blocks.items():
        for member in members:
            if member.kind != "number":
                raise ColumnError(
                    f"column {member.name!r} of categories[{name!r}] is no 0/1 column."
                )
    for before, given in data.spans():
        for name, members in blocks.items():
            values = np.column_stack([user_values(space, given, m)[0] for m in members])
            _check_block(name, tuple(member.sources[0] for member in members), values, before)
            if (values.sum(axis=1) == 0).any():
                none_on.add(name)
    return none_on


def _several(members: Any, where: str) -> list[Any]:
    if isinstance(members, str) or not hasattr(members, "__iter__"):
        raise OptionError(f"{where} must be a list of the columns that code it.")
    return list(members)


def _block(space: Space, name: Any, members: list[Column], none_on: bool) -> Column:
    """Return the category that columns of zeros and ones code."""
    sources = tuple(member.sources[0] for member in members)
    codes, levels = np.eye(len(sources)), sources
    if none_on:
        codes, levels = np.vstack([codes, np.zeros(len(sources))]), (*sources, NONE_ON)
    places = np.concatenate([member.places for member in members])
    order = np.argsort(places)
    if space.steps is None:
        options = codes[:, order]
    else:
        every = np.arange(len(codes))
        cells = {source: Cells(every, codes[:, j]) for j, source in enumerate(sources)}
        options = space._made_up(len(codes), cells)[:, places[order]]
    space.round_trip_error[places] = 0.0
    return Column(name, sources, places[order], "category", levels, options=options)


def _check_block(name: Any, sources: tuple[Any, ...], values: Array, before: int) -> None:
    odd = ~np.isin(values, (0.0, 1.0))
    if odd.any():
        row, at = np.argwhere(odd)[0]
        raise DataError(
            f"categories[{name!r}]: row {before + row} has {values[row, at]:g} in {sources[at]!r}; "
            "a column of a block holds 0 or 1."
        )
    crowded = np.flatnonzero(values.sum(axis=1) > 1)
    if crowded.size:
        on = [source for source, v in zip(sources, values[crowded[0]], strict=True) if v]
        raise DataError(
            f"categories[{name!r}]: row {before + crowded[0]} has {listed(on)} on; in a block one "
            "column at most is 1."
        )
