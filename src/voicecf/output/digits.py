"""Answers rounded to few digits such that they still land in their target."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.rules.allowed import is_continuous as is_free
from voicecf.search.outcome import Outcome
from voicecf.status import Status
from voicecf.table.frames import Cells
from voicecf.table.rows import Rows, side_of
from voicecf.table.units import CENTS, has_cents

# Rounding starts BELOW decimal places after the first digit of a change, so that it alters the
# change by at most a hundredth; PLACES decimal places are tried.
BELOW, PLACES = 2, 13
# A value before a change is shown in full if it has so few digits, or no more places than cents.
FEW = 6
# Whether money has whole cents, how many more digits there are, and whether it is outward.
Way = tuple[bool, int, bool]
# Changes up to this share of a column's observed range are left out if the others suffice.
NEGLIGIBLE = 1e-3
# Digits of a value that is computed from others.
MOST_SEEN = 11


class Digits(NamedTuple):
    """Answers in few digits.

    Attributes
    ----------
    values : array of shape (n, columns)
        New values of number columns.
    touched : mask of shape (n, columns)
        The columns that still change.
    points : array of shape (n, d)
        Coordinates of the rounded answers.
    """

    values: Array
    touched: Mask
    points: Array

    @classmethod
    def exact(cls, answers: Outcome) -> Digits:
        """Return all digits of answers."""
        points = answers.points.astype(np.float64)
        return cls(_numbers(answers.values[1]), answers.changes.copy(), points)

    def put(self, at: Ints, others: Digits) -> None:
        """Overwrite the digits `at` these positions by others."""
        for own, other in zip(self, others, strict=True):
            own[at] = other

    def written(self, answers: Outcome, at: Ints) -> Outcome:
        """Return answers with the digits `at` these positions."""
        output = _typed_in(answers, np.arange(len(at)), self.values[at], self.touched[at])
        points = self.points[at].astype(answers.points.dtype, copy=False)
        return replace(answers, output=output, points=points)


def fewest_digits(answers: Outcome) -> Digits:
    """Find the fewest digits with which answers still land; see `Counterfactuals.rounded`."""
    digits = Digits.exact(answers)
    rows = np.flatnonzero(_moved(answers))
    for way, columns in _attempts(answers):
        if not len(rows):
            break
        changed = columns[rows]
        candidate = _computed(answers, rows, _candidate(answers, rows, *way), changed)
        read = _quickly_read(answers, rows, candidate, changed)
        lands = _lands(answers, rows, read)
        done, points = rows[lands], read.points[lands]
        points = _coordinates(answers, done, points, changed[lands])
        digits.put(done, Digits(candidate[lands], changed[lands], points))
        rows = rows[~lands]
    return digits


def refused(answers: Outcome) -> Ints:
    """Return the answers in few digits that do not land by the steps before the model.

    `fewest_digits` spares these where columns have own maps; theirs is the last word.
    """
    rows = np.flatnonzero(_moved(answers))
    if not len(rows) or not answers.space.has_maps:
        return rows[:0]
    output = answers.output
    assert output is not None
    output = output if len(rows) == len(output) else output.take(rows)
    return rows[~_lands(answers, rows, answers.space.read_again(output))]


def _moved(answers: Outcome) -> Mask:
    """Tell which answers change a column."""
    moved = answers.feasible & (answers.status != Status.ALREADY)
    return np.asarray(moved & answers.changes.any(axis=1))


def _attempts(answers: Outcome) -> list[tuple[Way, Mask]]:
    """Return what is tried, the fewest digits first: see `_candidate`, and which columns change.

    First, with the fewest digits, small changes are left out. Money is told to the cent if that can
    be done with any digits of the others.
    """
    money = [True, False] if any(map(has_cents, answers.space.columns)) else [False]
    ways = list(product(money, range(PLACES), (False, True)))
    large = answers.changes & ~_negligible(answers)
    some_small = (large != answers.changes).any()
    first = [(way, large) for way in ways[:2]] if some_small else []
    return first + [(way, answers.changes) for way in ways]


def _negligible(answers: Outcome) -> Mask:
    """Tell which numbers change by so little that the row's own value may do as well.

    It may not if it is out of bounds, and one change of each answer always stays.
    """
    learned, every = answers.learned, np.arange(len(answers))
    before = _numbers(answers.values[0])
    small = ~answers.space.changed(answers.moves, NEGLIGIBLE * learned.spread)
    small &= _inside(answers, every, before) == before  # False for a category, or if missing
    small[~(answers.changes & ~small).any(axis=1)] = False
    return small


def _candidate(answers: Outcome, rows: Ints, cents: bool, finer: int, outward: bool) -> Array:
    """Return rounded values of some answers, shape (rows, columns), with `finer` more digits.

    They are rounded to the nearest, or away from the row: a slightly larger change lies deeper in
    the target's cell. With `cents`, money has none but whole ones.
    """
    before, after = (_numbers([values[rows] for values in side]) for side in answers.values)
    size = np.where(np.isnan(before), np.abs(after), np.abs(after - before))
    money = np.array([cents and has_cents(column) for column in answers.space.columns])
    place = _first_place(size) - BELOW - finer
    place = np.where(money, np.maximum(place, -CENTS), place)
    values = decimal(after, place, np.sign(after - before) if outward else None)
    continuous = np.array([is_continuous(answers, c) for c in range(after.shape[1])])
    inside = _inside(answers, rows, values)
    # A bound between two cents is rounded to the one within.
    between = money & (inside != values)
    inside = np.where(between, decimal(inside, -CENTS, np.sign(inside - values)), inside)
    return np.where(continuous, inside, after)


def _computed(answers: Outcome, rows: Ints, values: Array, touched: Mask) -> Array:
    """Return values of which columns computed from others are what the others give, rounded.

    They are rounded to the digits of the data, or where it has many, to all that can be seen.
    """
    formulas = answers.allowed.formulas
    if not formulas:
        return values
    before = _numbers([values[rows] for values in answers.values[0]])
    values, typed = values.copy(), np.where(touched, values, before)
    for formula in formulas:
        c, digits = formula.made, answers.space.columns[formula.made].digits
        if not is_continuous(answers, c):
            continue
        new = formula.value({k: typed[:, k] for k in formula.sources})
        with np.errstate(divide="ignore", invalid="ignore"):
            last = np.nan_to_num(np.floor(np.log10(np.abs(new))), neginf=0.0) - MOST_SEEN
        places = last if digits is None else np.full(len(new), -digits)
        values[:, c] = decimal(new, places.astype(np.int64))
        typed[:, c] = np.where(touched[:, c], values[:, c], before[:, c])
    return values


def decimal(values: Any, places: Any, direction: Any = None) -> Any:
    """Round values to a decimal place: to the nearest, or up or down by the sign of `direction`.

    Place 0 is that of the ones, -1 that of the tenths.

    Examples
    --------
    >>> from voicecf.output.digits import decimal
    >>> decimal(949.97, 0), decimal(0.12341, -3, direction=1.0)
    (np.float64(950.0), np.float64(0.124))
    """
    places = np.asarray(places)
    down, up = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    # One of the two is 1. Dividing by a power of ten gives the double nearest to the decimal;
    # multiplying by a negative power would not.
    scaled = np.asarray(values) * up / down
    if direction is None:
        whole = np.rint(scaled)
    else:
        whole = np.where(np.asarray(direction) > 0, np.ceil(scaled), np.floor(scaled))
    return np.where(np.isfinite(scaled), whole * down / up, values)[()]


def short_before(before: Any, after: Any, cents: bool = False) -> Array:
    """Round values before a change to the digits that the change is told in.

    Values of few digits stay as they are. Others get as many decimal places as the values after,
    and as many as it takes for the change to be told to a hundredth; with `cents` at least two, and
    more only for a change of less than ten cents.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.output.digits import short_before
    >>> short_before(np.array([32.2148231, 32.2148231, 247.91]), np.array([55.8, 33.0, 470.0]))
    array([ 32.2  ,  32.215, 247.91 ])
    """
    own, after = np.asarray(before), np.asarray(after, dtype=np.float64)
    exact = own.astype(np.float64)
    place = _first_place(after - exact) - BELOW
    place = np.minimum(place + 1, -CENTS) if cents else place
    for _ in range(PLACES):
        place = np.where(decimal(after, place) == after, place, place - 1)
    shorts = [decimal(exact, at) for at in (-CENTS, _first_place(exact) + 1 - FEW)]
    same = [np.asarray(short).astype(own.dtype) == own for short in shorts]
    return np.select(same, shorts, decimal(exact, place))


def _first_place(values: Any) -> NDArray[np.int64]:
    """Return the place of the first digit of values: 0 for ones, -1 for tenths; 0 for 0 and NaN."""
    with np.errstate(divide="ignore"):
        places = np.floor(np.log10(np.abs(values)))
    return np.asarray(np.nan_to_num(places, neginf=0.0, posinf=0.0), dtype=np.int64)


def is_continuous(answers: Outcome, c: int) -> bool:
    """Tell whether a column may take any number in its bounds, so that it can be rounded."""
    return is_free(answers.space, answers.allowed, c)


def _inside(answers: Outcome, rows: Ints, values: Array) -> Array:
    """Return values clipped to the bounds of their columns."""
    at, columns = answers.row[rows], range(values.shape[1])
    sides = [
        np.column_stack([np.broadcast_to(side_of(side, at, c), len(at)) for c in columns])
        for side in answers.allowed.sides
    ]
    return np.asarray(np.fmin(np.fmax(values, sides[0]), sides[1]))


def _typed_in(answers: Outcome, rows: Ints, values: Array, touched: Mask) -> Rows:
    """Return the user's rows with new values in the touched columns."""
    space, cells = answers.space, {}
    for c, column in enumerate(space.columns):
        which = np.flatnonzero(touched[:, c])
        if column.kind == "number":
            cells[column.sources[0]] = Cells(which, values[which, c])
        else:
            cells.update(space.level_cells(c, which, answers.points[rows]))
    return space.with_cells(answers.rows, answers.row[rows], cells)


def _quickly_read(answers: Outcome, rows: Ints, values: Array, touched: Mask) -> Rows:
    """Read the user's rows with new values in the touched columns; only as points if that will do.

    It does if all columns have own maps, and no rule is about the user's values.
    """
    space, allowed = answers.space, answers.allowed
    points = None
    if space.has_maps and not allowed.constraints and allowed.splits is None:
        points = _mapped(answers, rows, values, touched)
    if points is None:
        return space.read_quickly(_typed_in(answers, rows, values, touched))
    return Rows(None, points, space.seen(points))


def _mapped(answers: Outcome, rows: Ints, values: Array, touched: Mask) -> Array | None:
    """Return the points of rows with new values in the touched columns; None if there are none."""
    points = answers.rows.points[answers.row[rows]]
    for c, column in enumerate(answers.space.columns):
        which = np.flatnonzero(touched[:, c])
        if column.kind == "number":
            found = answers.space.own_coordinates(c, values[which, c])
        else:
            moved = answers.points[np.ix_(rows[which], column.places)]
            found = column.options[answers.space.nearest_level(c, moved)]
        if found is None:
            return None
        points[np.ix_(which, column.places)] = found
    return points


def _lands(answers: Outcome, rows: Ints, read: Rows) -> Mask:
    """Tell which rows, read again, are in their target by a safe margin and satisfy the rules."""
    learned = answers.learned
    _, doubtful = learned.partition.assign(read.seen)
    lands = (learned.labels(read, alone=False) == answers.target[rows]) & ~doubtful
    return np.asarray(lands & answers.holds(rows, read))


def _coordinates(answers: Outcome, rows: Ints, read: Array, touched: Mask) -> Array:
    """Return coordinates as read where a column was touched, bit for bit the row's elsewhere."""
    points = answers.rows.points[answers.row[rows]]
    for c, column in enumerate(answers.space.columns):
        cells = np.ix_(touched[:, c], column.places)
        points[cells] = read[cells]
    return points


def _numbers(columns: list[NDArray[Any]]) -> Array:
    """Return the values of columns as doubles, shape (n, columns); NaN for levels."""
    return np.column_stack([
        np.full(len(values), np.nan) if values.dtype == object else values.astype(np.float64)
        for values in columns
    ])  # fmt: skip
