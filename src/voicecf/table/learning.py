"""Learn a space from a fitted pipeline and its data: columns, levels, ranges, inverse maps.

The map of a number column is the function from its value to its coordinate. A curve is a map that
is not affine, such as a logarithm.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from voicecf.errors import ColumnError, DataError, ModelError, OptionError, known_column, listed
from voicecf.geometry.arrays import Array, Ints
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.table.column import Column
from voicecf.table.frames import (
    Cells,
    any_array,
    as_frame,
    is_missing,
    is_whole,
    plain_values,
)
from voicecf.table.pipeline import Steps, input_names
from voicecf.table.rows import Rows
from voicecf.table.space import Space
from voicecf.table.stream import Blocks, Stream

# The level of a declared block for rows that have 0 in all its columns.
NONE_ON = "(none)"
# How far beyond the observed range a curve is tried, in multiples of that range. No round numbers,
# so that none hits the end of the domain exactly, such as 0 for a logarithm.
BEYOND = 1.0123 * 2.0 ** np.arange(-6.0, 20.0)
# Columns with more digits after the point count as numbers of all digits.
MOST_DIGITS = 6
# Number of rows that are looked at first for digits.
FEW_ROWS = 64
# Number of rows of the data from which the round-trip error is learned.
SAMPLED = 20_000


def learn_space(steps: Any, X: Any, dtype: Any = np.float64, **options: Any) -> Space:
    """Learn columns from the data that a model was fitted on; see `learn_rows`.

    Examples
    --------
    >>> from voicecf.table.learning import learn_space
    >>> space = learn_space(None, [[1.0, 0, 1], [2.5, 1, 0]], categories={"job": ["x1", "x2"]})
    >>> [(column.name, column.kind) for column in space.columns]
    [('x0', 'number'), ('job', 'category')]
    >>> space.columns[1].levels
    ('x1', 'x2')
    """
    return learn_rows(steps, X, dtype, **options)[0]


def learn_rows(
    steps: Any, X: Any, dtype: Any, *, categories: Any = None, order: Any = None
) -> tuple[Space, Blocks[Rows]]:
    """Learn columns from the data that a model was fitted on; return them and the rows.

    Parameters
    ----------
    steps : Pipeline or None
        The fitted steps before the model; None for a bare model, one without a pipeline.
    X : array, frame or Stream
    dtype : numpy dtype
        The precision that the model computes with.
    categories : dict, optional
        For each category that is coded by several 0/1 columns, its name and these columns.
    order : list, optional
        The columns that a bare model was fitted on, if it knows their names.
    """
    stream = X if isinstance(X, Stream) else Stream.table(X)
    first = stream.first()
    frame = as_frame(first)
    if steps is not None:
        order = input_names(steps)
    elif frame is None:
        order = None
    if order is not None:
        names = list(order)
    elif frame is not None:
        names = list(frame.columns)
    else:
        names = [f"x{i}" for i in range(any_array(first).shape[1])]
    space = space_of_steps(steps, names, frame is not None or order is not None, dtype)
    data = Blocks(stream, space.read, cached=stream.in_memory)
    values, counts = _survey(space, data)
    if steps is not None:
        _learn_levels(space, counts)
        _learn_round_trip_error(space, data, stream.n_rows)
        _learn_curves(space, data, values)
    if categories:
        _join_blocks(space, data, categories)
    return space, data


def _with_positions(blocks: Iterable[Rows]) -> Iterator[tuple[int, Rows]]:
    """Yield blocks of rows, and the number of rows before each."""
    before = 0
    for rows in blocks:
        yield before, rows
        before += len(rows.points)


def _wider(ends: tuple[float, float] | None, values: Array) -> tuple[float, float]:
    """Return a range widened to hold some values as well; None is an empty range."""
    low, high = float(values.min()), float(values.max())
    return (low, high) if ends is None else (min(ends[0], low), max(ends[1], high))


def digits_of(values: Array, least: int | None = 0) -> int | None:
    """Return the digits after the point that numbers have, at least some; None for many.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.table.learning import digits_of
    >>> digits_of(np.array([1.5, 2.25, np.nan])), digits_of(np.array([1 / 3]))
    (2, None)
    """
    for some in (values[:FEW_ROWS], values):
        while least is not None and not _has_digits(some, least):
            least = least + 1 if least < MOST_DIGITS else None
    return least


def _has_digits(values: Array, digits: int) -> bool:
    with np.errstate(all="ignore"):
        return bool(((np.round(values, digits) == values) | np.isnan(values)).all())


def _shows_whole_numbers(space: Space, rows: Rows, column: Column) -> bool | None:
    """Tell whether a block of a column has whole numbers; None for floats that may be by chance."""
    if space.steps is None and rows.frame is None:
        return False  # an array has one type for all columns, which does not show that one is whole
    if is_whole(space.user_column(rows, column.sources[0])):
        return True
    if space.steps is None:
        return False
    values = space.numbers_of(rows, column)
    missing = np.isnan(values)
    if (values[~missing] != np.rint(values[~missing])).any():
        return False
    # Many libraries store whole numbers as floats if some are missing.
    return True if missing.any() and not missing.all() else None


def space_of_steps(pipeline: Any, names: list[Any], named: bool, dtype: Any) -> Space:
    """Return what follows from fitted steps alone; `names` are the columns of the user's table."""
    if pipeline is None:
        return Space.plain(names, named, dtype)
    steps = Steps.of(pipeline, names)
    return Space(_columns(steps, names), names, named, dtype, steps)


def _columns(steps: Steps, names: list[Any]) -> list[Column]:
    """Return the user's columns, and after each the column that tells where it has no value."""
    places: dict[tuple[int, bool], list[int]] = {}
    for place, wire in enumerate(steps.wires):
        places.setdefault((wire.source, wire.indicator), []).append(place)
    columns = []
    for source, indicator in sorted(places):
        at, name, coding = places[source, indicator], names[source], steps.codings.get(source)
        options: dict[str, Any] = {"stays_missing": (source, True) in places}
        if indicator:
            name, options = f"{name} is missing", {"kind": "category", "indicator": True}
        elif coding is not None:
            options |= {"kind": "category", "levels": coding.levels}
            options |= {"ordered": coding.ordered, "binned": coding.binned}
        elif len(at) > 1:
            raise ModelError(
                f"column {name!r} goes into several coordinates, and one answer could not change "
                "all of them; let each column go through one transformer only, or only through "
                "scalers, PCA and feature selectors."
            )
        else:
            options["affine"] = steps.wires[at[0]].affine
        columns.append(Column(name, (names[source],), np.array(at), **options))
    return columns


def check_trace(space: Space, rows: Rows) -> None:
    """Compare the map that was read from fitted attributes with what the steps did to rows."""
    width, d = rows.points.shape[1], space.n_coordinates
    if width != d:
        raise ModelError(
            f"the steps before the model return {width} columns, but their fitted attributes say "
            f"{d}; voicecf cannot explain this pipeline. Fit it again, or use other steps."
        )
    if space.mixing is None:
        return
    expected = space.mixing(rows.points)
    size = np.abs(rows.points) @ np.abs(space.mixing.matrix).T + np.abs(space.mixing.shift)
    rounding = 1e-4 if rows.seen.dtype == np.float32 or space.dtype == np.float32 else 1e-8
    same_shape = expected.shape == rows.seen.shape
    if not same_shape or (np.abs(expected - rows.seen) > rounding * (1 + size)).any():
        raise ModelError(
            "the steps from the first one that mixes columns on (PCA, a feature selector) return "
            "something else than their fitted attributes say; voicecf cannot explain this "
            "pipeline. Fit it again, or use other steps."
        )


def _survey(space: Space, data: Blocks[Rows]) -> tuple[dict[int, Array], dict[int, Counter[Any]]]:
    """Learn the ranges of columns; return the distinct values of some of them.

    These are the values of columns mapped by curves, and those of bins and merged levels, with
    their frequencies. The first row of the data of steps is stored in the space.
    """
    ends: dict[int, tuple[float, float]] = {}
    wholes: dict[int, set[bool | None]] = {}
    digits: dict[int, int | None] = {}
    values: dict[int, Array] = {}
    codings = {} if space.steps is None else space.steps.codings
    # The columns for which frequencies decide which level an answer names.
    counted = {space.sources[at] for at, one in codings.items() if one.merged or one.binned}
    counts = {
        c: Counter[Any]()
        for c, column in enumerate(space.columns)
        if column.name in counted and not column.indicator
    }
    for before, rows in _with_positions(data):
        if not len(rows.points):
            continue
        check_trace(space, rows)
        if space.steps is not None and before == 0:
            space.sample = _first_row(rows)
        for c, column in enumerate(space.columns):
            if column.kind == "number":
                ends[c] = _wider(ends.get(c), _imputed(space, rows, column))
                digits[c] = digits_of(space.numbers_of(rows, column), digits.get(c, 0))
            if column.numeric:
                wholes.setdefault(c, set()).add(_shows_whole_numbers(space, rows, column))
            if column.curved:
                numbers = space.numbers_of(rows, column)
                known = values.get(c, np.empty(0))
                values[c] = np.unique(np.concatenate([known, numbers[~np.isnan(numbers)]]))
            if c in counts:
                counts[c].update(_present(space, rows, column))
    for c, shown in wholes.items():
        whole = True in shown and False not in shown
        observed = ends.get(c, space.columns[c].observed)
        column = replace(space.columns[c], observed=observed, whole=whole, digits=digits.get(c))
        space.columns[c] = column
    return values, counts


def _first_row(rows: Rows) -> Rows:
    """Return a copy of the first row."""
    frame = None if rows.frame is None else rows.frame[[0]]
    array = None if rows.array is None else rows.array[:1].copy()
    return Rows(frame, rows.points[:1].copy(), rows.seen[:1].copy(), array=array)


def _learn_levels(space: Space, counts: dict[int, Counter[Any]]) -> None:
    """Learn coordinates, and which of several levels with one code an answer names."""
    for c, count in counts.items():
        if space.columns[c].binned:
            space.columns[c] = _with_typical_numbers(space, c, count)
    _learn_coordinates(space)
    for c, count in counts.items():
        if not space.columns[c].binned:
            space.columns[c] = _most_frequent_first(space.columns[c], count)


def _present(space: Space, rows: Rows, column: Column) -> list[Any]:
    """Return the values of a column that are not missing."""
    values = plain_values(space.user_column(rows, column.sources[0]))
    return [value for value in values if not is_missing(value)]


def _with_typical_numbers(space: Space, c: int, count: Counter[Any]) -> Column:
    """Return a column of bins whose levels are the median of the numbers in each bin."""
    column = space.columns[c]
    numbers = np.array(sorted(count))
    _, bins = np.unique(space.mapped({c: numbers})[c], axis=0, return_inverse=True)
    levels = []
    for b in range(int(bins.max()) + 1):
        of_bin = numbers[bins.ravel() == b]
        upto = np.cumsum([count[number] for number in of_bin.tolist()])
        levels.append(float(of_bin[np.searchsorted(upto, 0.5 * upto[-1])]))
    return replace(column, levels=tuple(sorted(levels)))


def _most_frequent_first(column: Column, count: Counter[Any]) -> Column:
    """Return a category with the levels of one code next to each other, the most frequent first."""
    _, codes = np.unique(column.options, axis=0, return_inverse=True)
    rare = [-count[level] if not is_missing(level) else np.inf for level in column.levels]
    order = np.lexsort([np.array(rare), codes.ravel()])
    levels = tuple(column.levels[i] for i in order)
    return replace(column, levels=levels, options=column.options[order])


def _learn_coordinates(space: Space) -> None:
    """Learn the coordinates of every level, and which maps rise, in one call of the steps."""
    values: dict[int, Any] = {}
    for c, column in enumerate(space.columns):
        if column.indicator:
            options = _with_a_gap(space, column.sources[0])[:, column.places]
            space.columns[c] = replace(column, levels=(False, True), options=options)
        else:
            is_number = column.kind == "number"
            values[c] = np.array(column.observed) if is_number else column.levels
    for c, z in space.mapped(values).items():
        column = space.columns[c]
        if column.kind == "number":
            space.columns[c] = replace(column, rising=bool(z[1, 0] >= z[0, 0]))
        else:
            space.columns[c] = replace(column, options=z)


def _with_a_gap(space: Space, source: Any) -> Array:
    """Return the coordinates of a row of the data, and of the same row with a missing value.

    It is NaN where the steps do not know None: among objects, imputers tell them apart.
    """
    at = np.array([1])
    try:
        return space._sample_points(2, {source: Cells(at, [None])})
    except DataError:
        return space._sample_points(2, {source: Cells(at, [np.nan])})


def _learn_round_trip_error(space: Space, data: Blocks[Rows], n_rows: int) -> None:
    """Learn by how much coordinates change when turned into the user's units and back.

    It learns as well which columns' own maps give the bits of the steps.
    """
    affine = [c for c in space.columns if c.kind == "number" and c.affine]
    places = np.array([c.places[0] for c in affine], dtype=np.int64)
    sampled = np.unique(np.linspace(0, n_rows - 1, SAMPLED).astype(np.int64))
    exact = np.ones(len(space.columns), dtype=np.bool_)
    for before, rows in _with_positions(data):
        in_block = (sampled >= before) & (sampled < before + len(rows.points))
        if in_block.any():
            exact &= space.exact_maps(rows.take(sampled[in_block] - before))
            errors = _round_trip_errors(space, rows, sampled[in_block] - before, affine)[:, places]
            # Twice the largest error measured, to allow for points that were not measured.
            space.round_trip_error[places] = np.maximum(
                space.round_trip_error[places], 2.0 * errors.max(axis=0)
            )
    space.use([replace(c, own_map=bool(own)) for c, own in zip(space.columns, exact, strict=True)])


def _round_trip_errors(space: Space, rows: Rows, which: Ints, affine: list[Column]) -> Array:
    """Return by how much coordinates of some rows change in the user's units and back."""
    values, every = space._numbers(rows.points[which]), np.arange(len(which))
    cells = {c.sources[0]: Cells(every, values[c.sources[0]]) for c in affine}
    again = space.points_of(space.with_cells(rows, which, cells))
    return np.asarray(np.abs(again - rows.points[which]))


def _imputed(space: Space, rows: Rows, column: Column) -> Array:
    """Return the user's values of a column of numbers, as an imputer fills them in."""
    if space.steps is None:
        return rows.points[:, column.places[0]]
    values = space.numbers_of(rows, column)
    missing = np.isnan(values)
    if missing.any():
        filled = space.steps.backward(rows.points)[space.sources.index(column.name)]
        values = np.where(missing, filled, values)
    return values


def _learn_curves(space: Space, data: Blocks[Rows], values: dict[int, Array]) -> None:
    """Learn which curves can be inverted, how precisely, and how far beyond the data.

    A curve is inverted at the coordinates of the observed values and halfway between them.
    """
    observed = _coordinates_of(space, values)
    tried = {c: np.concatenate([z, 0.5 * (z[1:] + z[:-1])]) for c, z in observed.items()}
    inverse = {c: space.values(c, z) for c, z in tried.items()}
    again = _coordinates_of(
        space, {c: np.where(np.isfinite(v), v, values[c][0]) for c, v in inverse.items()}
    )
    for rows in data if values else ():
        for c in values:
            _check_alone(space, rows, c, values[c], observed[c])
    for c in values:
        error = np.where(np.isfinite(inverse[c]), np.abs(again[c] - tried[c]), np.inf)
        inexact = (error > _largest_error(observed[c])).any()
        rises_or_falls = _monotone(observed[c])
        if inexact or not rises_or_falls or _elsewhere(values[c], inverse[c]):
            _check_own(space, c, rises_or_falls)
            space.columns[c] = replace(space.columns[c], listed=tuple(values[c].tolist()))
        else:
            space.round_trip_error[space.columns[c].places] = 2.0 * error.max()
    for c, limits in _limits(space, [c for c in values if space.columns[c].free]).items():
        space.columns[c] = replace(space.columns[c], limits=limits)


def _check_own(space: Space, c: int, monotone: bool) -> None:
    """Raise if a curve that cannot be inverted is that of the user's own transformer."""
    assert space.steps is not None
    own = space.steps.wires[space.columns[c].places[0]].own
    if not own:
        return
    name = space.columns[c].name
    if not monotone:
        raise ModelError(
            f"{own} neither rises nor falls all along the values of column {name!r}, so that what "
            "it returns does not tell the value; use one that does, or prepare the column before "
            "the pipeline."
        )
    raise ModelError(
        f"{own}: inverse_transform does not lead back from what transform returns for column "
        f"{name!r}; correct it, so that inverse_transform(transform(X)) is X, also between the "
        "values in the data."
    )


def _coordinates_of(space: Space, values: dict[int, Array]) -> dict[int, Array]:
    """Return the coordinate of each value of several number columns."""
    return {c: coordinates[:, 0] for c, coordinates in space.mapped(values).items()}


def _monotone(coordinates: Array) -> bool:
    """Tell whether the coordinates of ascending values strictly rise, or strictly fall."""
    differences = np.diff(coordinates)
    return bool((differences > 0).all() or (differences < 0).all())


def _elsewhere(values: Array, inverse: Array) -> bool:
    """Tell whether an inverse leads away from the data: sqrt, for the square of negative numbers.

    `inverse` begins with the values that the inverse returns for the coordinates of `values`.
    """
    return bool(
        (np.abs(inverse[: len(values)] - values) > np.ptp(values)).any() and len(values) > 1
    )


def _largest_error(coordinates: Array) -> float:
    """Return the error up to which coordinates count as equal, from the observed ones."""
    size = float(np.ptp(coordinates)) + 1e-3 * float(np.abs(coordinates).max())
    return TOLERANCE.invertible * size


def _check_alone(space: Space, rows: Rows, c: int, values: Array, coordinates: Array) -> None:
    """Raise if the coordinate of a column depends on other columns too.

    `coordinates` are those of the distinct values of the column, all from copies of one row.
    """
    of_rows = space.numbers_of(rows, space.columns[c])
    known = np.flatnonzero(~np.isnan(of_rows))
    actual = rows.points[known, space.columns[c].places[0]]
    expected = coordinates[np.searchsorted(values, of_rows[known])]
    if (np.abs(actual - expected) > _largest_error(coordinates)).any():
        raise ModelError(
            f"the coordinate of column {space.columns[c].name!r} depends on other columns too; a "
            "FunctionTransformer, or a transformer of your own, must treat each column by itself."
        )


def _limits(space: Space, curves: list[int]) -> dict[int, tuple[float, float]]:
    """Return the range within which each curve can be inverted, beyond the observed range."""
    ends: dict[int, list[float]] = {c: [] for c in curves}
    for side, sign in ((0, -1.0), (1, 1.0)):
        tried = {}
        for c in curves:
            low, high = observed = space.columns[c].observed
            spread = high - low or max(abs(low), 1.0)
            tried[c] = observed[side] + sign * spread * np.concatenate([[0.0], BEYOND])
        for c, coordinates in _coordinates_in_domain(space, tried).items():
            last = _last_invertible(space, c, tried[c], coordinates)
            ends[c].append(float(tried[c][last]))
    return {c: (low, high) for c, (low, high) in ends.items()}


def _last_invertible(space: Space, c: int, values: Array, coordinates: Array) -> int:
    """Return the position of the last value up to which a curve is monotone and invertible."""
    with np.errstate(all="ignore"):
        inverse, differences = space.values(c, coordinates)[1:], np.diff(coordinates)
        good = np.isfinite(differences) & np.isfinite(inverse) & (differences != 0)
        good &= np.sign(differences) == np.sign(differences[0])
        good &= np.abs(inverse - values[1:]) <= TOLERANCE.undone * np.abs(values[1:] - values[0])
    return int(np.argmin(np.append(good, False)))


def _coordinates_in_domain(space: Space, values: dict[int, Array]) -> dict[int, Array]:
    """Return the coordinates of values; NaN from the first value on that the steps refuse."""
    try:
        return _coordinates_of(space, values)
    except DataError:  # one value outside a domain, such as log(0), makes the whole call fail
        return {c: _longest_accepted(space, c, of_column) for c, of_column in values.items()}


def _longest_accepted(space: Space, c: int, values: Array) -> Array:
    """Return the coordinates of the first values, as many as the steps accept; NaN for the rest.

    Their number is found by bisection, after a try with all of them.
    """

    def refused(count: int) -> bool:
        try:
            space.coordinates(c, values[:count])
        except DataError:
            return True
        return False

    n = len(values)
    count = bisect_left(range(1, n + 1), True, key=refused) if refused(n) else n
    accepted = space.coordinates(c, values[:count])[:, 0]
    return np.concatenate([accepted, np.full(n - count, np.nan)])


def _join_blocks(space: Space, data: Blocks[Rows], categories: Any) -> None:
    """Join each block of 0/1 columns that the user declares to code one category."""
    if not isinstance(categories, Mapping):
        raise OptionError(
            'categories must be a dict such as {"job": ["job_admin", "job_other"]}; '
            f"got {categories!r}."
        )
    block_of: dict[int, Any] = {}
    for name, declared in categories.items():
        where = f"categories[{name!r}]"
        for c in [known_column(member, space.names, where) for member in _several(declared, where)]:
            column = space.columns[c]
            if c in block_of:
                raise ColumnError(
                    f"column {column.name!r} is declared twice in categories; declare it once."
                )
            if column.kind != "number":
                raise ColumnError(
                    f"column {column.name!r} of {where} is a category; a block consists of columns "
                    "of 0 and 1."
                )
            block_of[c] = name
        if name in space.names:
            raise ColumnError(f"{where} has the name of a column; give the block another name.")
    members: dict[Any, list[Column]] = {}
    for c, name in block_of.items():
        members.setdefault(name, []).append(space.columns[c])
    none_on = set()
    for before, rows in _with_positions(data):
        for name, block in members.items():
            values = np.column_stack([space.numbers_of(rows, member) for member in block])
            _check_block(name, tuple(member.sources[0] for member in block), values, before)
            if (values.sum(axis=1) == 0).any():
                none_on.add(name)
    blocks = {name: _block(space, name, block, name in none_on) for name, block in members.items()}
    columns = [
        blocks[block_of[c]] if c in block_of else column for c, column in enumerate(space.columns)
    ]
    space.use(list(dict.fromkeys(columns)))


def _several(members: Any, where: str) -> list[Any]:
    if isinstance(members, str) or not hasattr(members, "__iter__"):
        raise OptionError(f"{where} is {members!r}; it must be a list of columns.")
    return list(members)


def _block(space: Space, name: Any, members: list[Column], none_on: bool) -> Column:
    """Return the category that a block of 0/1 columns codes."""
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
        options = space._sample_points(len(codes), cells)[:, places[order]]
    space.round_trip_error[places] = 0.0
    return Column(name, sources, places[order], "category", levels, options=options)


def _check_block(name: Any, sources: tuple[Any, ...], values: Array, before: int) -> None:
    """Raise if a row has another value than 0 or 1, or more than one 1."""
    wrong = ~np.isin(values, (0.0, 1.0))
    if wrong.any():
        row, at = np.argwhere(wrong)[0]
        raise DataError(
            f"categories[{name!r}]: row {before + row} has {values[row, at]:g} in {sources[at]!r}; "
            "the columns of a block must be 0 or 1."
        )
    several = np.flatnonzero(values.sum(axis=1) > 1)
    if several.size:
        on = [source for source, v in zip(sources, values[several[0]], strict=True) if v]
        raise DataError(
            f"categories[{name!r}]: row {before + several[0]} has 1 in {listed(on)}; at most one "
            "column of a block may be 1."
        )
