"""A plane through the coordinates, in which a model is drawn as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import ColumnError, DataError, known_column, listed
from voicecf.geometry.arrays import Array
from voicecf.learned.explainer import Explainer
from voicecf.learned.learned import Learned
from voicecf.output.calling import cluster_name, row_name
from voicecf.status import Status
from voicecf.table.frames import as_frame
from voicecf.table.rows import Rows
from voicecf.table.space import Space
from voicecf.table.wording import joined, legible

# Keeps directions apart where the model gives a coordinate no weight.
LEAST_WEIGHT = 1e-12
# What is left of a direction is taken for rounding below this share of it.
NOTHING_LEFT = 1e-9
# How many columns the name of a direction tells.
TOLD = 2


@dataclass(frozen=True)
class Axis:
    """One axis of a plane.

    Attributes
    ----------
    label : str
    column : int or None
        Position of the column whose units the axis has; None where it mixes columns.
    affine : bool
        Whether a straight line of coordinates is one in the units of the axis.
    """

    label: str
    column: int | None = None
    affine: bool = True


@dataclass(frozen=True, eq=False)
class Plane:
    """The points origin + u first + v second of the coordinates, with labelled axes.

    Make one with `of_columns`, `of_move` or `most_telling`.

    Attributes
    ----------
    space : Space
        The columns and their coordinates.
    given : Rows
        The row that the plane goes through.
    origin, first, second : array of shape (d,)
    dual : array of shape (2, d)
        ``dual @ (z - origin)`` is where a point is seen in the plane.
    axes : pair of Axis
    row : str
        What the row is called.
    note : str
        What is exact about it, in a sentence.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Plane
    >>> voice = VoICE.from_centers([[0, 0, 1], [4, 0, 2]], feature_names=["age", "visits", "cars"])
    >>> plane = Plane.of_columns(voice, [[1.0, 5.0, 2.0]], "age", "cars")
    >>> plane.coordinates([[3.0, 0.5]])
    array([[3. , 5. , 0.5]])
    >>> plane.note
    'Exact where the other columns are as in the row; dots are coloured by their whole rows.'
    """

    space: Space
    given: Rows
    origin: Array
    first: Array
    second: Array
    dual: Array
    axes: tuple[Axis, Axis]
    row: str
    note: str

    @classmethod
    def of_columns(
        cls, voice: Explainer, row: Any, x: Any, y: Any, *, name: str = "the row"
    ) -> Plane:
        """Return the plane of two number columns, the others held at a row.

        Parameters
        ----------
        voice : fitted explainer
        row : frame or array of one row
        x, y : column
            By name, or by position for arrays.
        name : str
            What to call the row.
        """
        space = voice.space_
        return cls._of_columns(space, _one_row(space, row), _pair(space, x, y), name)

    @classmethod
    def through(cls, cf: Counterfactuals, i: int, x: Any, y: Any) -> Plane:
        """Return the plane of two number columns, the others held at the row of answer i."""
        space = cf.outcome.space
        return cls._of_columns(space, _picked(cf[i]), _pair(space, x, y), _name(cf[i]))

    @classmethod
    def _of_columns(cls, space: Space, given: Rows, pair: tuple[int, int], name: str) -> Plane:
        columns = [space.columns[c] for c in pair]
        origin = given.points[0].copy()
        dual = np.zeros((2, len(origin)))
        for side, column in zip(dual, columns, strict=True):
            side[column.places[0]] = 1.0
            origin[column.places[0]] = 0.0
        axes = [Axis(legible(space.names[c]), c, space.columns[c].affine) for c in pair]
        others = len(space.columns) > 2
        held = (
            f"Exact where the other columns are as in {name}; dots are coloured by their whole "
            "rows."
        )
        return cls(
            space, given, origin, dual[0], dual[1], dual, (axes[0], axes[1]), name,
            held if others else "Exact: there are no other columns.",
        )  # fmt: skip

    @classmethod
    def of_move(cls, cf: Counterfactuals, i: int = 0, *, also: Any = None) -> Plane:
        """Return the plane through a row and its answer.

        Its second direction is the one that tells the centroids apart best, across the first, among
        the columns that may change. Lengths are those of the cost. Where there is no answer, or
        nothing changes, it goes through the centre of the target instead.

        Parameters
        ----------
        cf : Counterfactuals
        i : int
        also : array of shape (d,), optional
            Coordinates of a third point that the plane is to hold; it gives the second direction.
        """
        one, learned = cf[i], cf.outcome.learned
        given, name = _picked(one), _name(one)
        start = given.points[0]
        metric = learned.weights + LEAST_WEIGHT
        first, towards = _first_direction(one, start)
        others = [] if also is None else [np.asarray(also, dtype=np.float64)[None] - start]
        lo, hi = allowed_box(one)
        second = _second_direction(learned, metric, first, lo >= hi, others)
        size = np.sqrt(metric @ first**2)
        length = np.sqrt(metric @ second**2)
        second = second * (size / length) if length > 0 else second
        dual = np.array([metric * first, metric * second]) / (metric @ first**2)
        end = "its answer"
        if towards is not None:
            end = f"the centre of {cluster_name(learned, towards)}"
        across = _told(cf.outcome.space, second, metric)
        axes = (
            Axis(f"Along the move: 0 is {name}, 1 is {end}"),
            Axis(f"Across it, mostly {across}" if across else "Across it: nothing"),
        )
        note = (
            f"A projection: the cells are cut by the plane through {name} and {end}; "
            "other rows may lie off it."
        )
        return cls(cf.outcome.space, given, start.copy(), first, second, dual, axes, name, note)

    @classmethod
    def most_telling(cls, cf: Counterfactuals, i: int = 0) -> Plane:
        """Return a plane that holds both a row and its answer, of two columns if any does.

        Where the answer changes at most two columns, both numbers, it is theirs; one alone is
        joined by the one that tells the centroids apart best. Else it is `of_move`, also where
        there is no answer: the row's own columns might not meet the target.
        """
        one, space = cf[i], cf.outcome.space
        drawable, found = drawable_columns(space), bool(one.feasible[0])
        changed = one.outcome.changed(0).tolist() if found else []
        lost = not found and len(space.columns) > 2
        if lost or len(drawable) < 2 or len(changed) > 2 or not set(changed) <= set(drawable):
            return cls.of_move(one)
        telling = _telling(cf.outcome.learned)
        rest = sorted(set(drawable) - set(changed), key=lambda c: -telling[c])
        pair = [*changed, *rest][:2]
        return cls._of_columns(space, _picked(one), (pair[0], pair[1]), _name(one))

    @property
    def axis_labels(self) -> tuple[str, str]:
        """What the axes are called."""
        return self.axes[0].label, self.axes[1].label

    @property
    def of_two_columns(self) -> bool:
        """Whether either axis is one column in its own units."""
        return all(axis.column is not None for axis in self.axes)

    @cached_property
    def directions(self) -> Array:
        """Both directions, shape (2, d)."""
        return np.array([self.first, self.second])

    def project(self, points: Array) -> Array:
        """Return where coordinates, shape (n, d), are seen in the plane, as (u, v)."""
        return np.asarray((points - self.origin) @ self.dual.T)

    def to_units(self, seen: Array) -> Array:
        """Turn (u, v) into the units of the axes; NaN where a column's map cannot be undone."""
        made = np.array(seen, dtype=np.float64)
        for side, axis in enumerate(self.axes):
            if axis.column is not None and len(made):
                made[:, side] = self.space.values(axis.column, made[:, [side]])
        return made

    def from_units(self, points: Any) -> Array:
        """Turn the units of the axes into (u, v)."""
        made = np.array(points, dtype=np.float64)
        for side, axis in enumerate(self.axes):
            if axis.column is not None and len(made):
                made[:, side] = self.space.coordinates(axis.column, made[:, side])[:, 0]
        return made

    def coordinates(self, points: Any) -> Array:
        """Return the coordinates, shape (n, d), of points in the units of the axes."""
        return np.asarray(self.origin + self.from_units(points) @ self.directions)

    def rows(self, points: Any) -> Any:
        """Return full rows of the user's table at points in the units of the axes."""
        made = self.coordinates(points)
        if self.space.steps is None and self.given.frame is None:
            return made.astype(self.space.dtype)
        written = self.space.write(made, self.given, np.zeros(len(made), dtype=np.int64))
        return written.array if written.frame is None else written.frame.to_native()

    def limits(self) -> tuple[Array, Array]:
        """Return between which values each axis can be drawn, infinite where anywhere."""
        pairs = [(-np.inf, np.inf)] * 2
        for side, axis in enumerate(self.axes):
            if axis.column is not None:
                pairs[side] = self.space.columns[axis.column].limits
        return np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs])


def drawable_columns(space: Space) -> list[int]:
    """Return the columns that can be an axis: numbers whose map can be undone anywhere."""
    return [c for c, column in enumerate(space.columns) if column.free]


def allowed_box(one: Counterfactuals) -> tuple[Array, Array]:
    """Return the box of coordinates that an answer had to lie in: bounds, rules, what may not."""
    question, row = one.outcome.question, int(one.row[0])
    box = question.learned.box(int(one.outcome.piece[0]), *question.allowed.box)
    sides = [side if side.ndim == 1 else side[row if len(side) > 1 else 0] for side in box]
    return sides[0], sides[1]


def _pair(space: Space, x: Any, y: Any) -> tuple[int, int]:
    """Return the positions of two different columns that can be axes."""
    found = [known_column(column, space.names, "a plane") for column in (x, y)]
    for c in found:
        _check_drawable(space, c)
    if found[0] == found[1]:
        raise ColumnError(f"a plane needs two columns; {x!r} was given twice.")
    return found[0], found[1]


def _check_drawable(space: Space, c: int) -> None:
    drawable = drawable_columns(space)
    if c not in drawable:
        kind = "a category" if space.columns[c].kind == "category" else "known at some values only"
        raise ColumnError(
            f"column {space.names[c]!r} is {kind}; an axis needs a number column, one of "
            f"{listed(space.names[d] for d in drawable)}."
        )


def _one_row(space: Space, row: Any) -> Rows:
    if as_frame(row) is None:
        row = np.asarray(row)
        row = row[None] if row.ndim == 1 else row
    given = space.read(row)
    if len(given.points) != 1:
        raise DataError(f"a plane goes through one row; {len(given.points)} were given.")
    return given


def end_of(one: Counterfactuals) -> Array | None:
    """Return the coordinates of an answer; None where there is none or nothing has to change."""
    moved = one.feasible[0] and one.status[0] != Status.ALREADY
    return one.points[0].astype(np.float64) if moved else None


def _name(one: Counterfactuals) -> str:
    """Return what the row of an answer is called."""
    return row_name(one.outcome.rows, one.row[0])


def _picked(one: Counterfactuals) -> Rows:
    """Return the row of an answer as it came, alone."""
    return one.outcome.rows.take(one.row)


def _first_direction(one: Counterfactuals, start: Array) -> tuple[Array, int | None]:
    """Return the move; where there is none the way to the target's centre, and that cluster."""
    learned, end = one.outcome.learned, end_of(one)
    if end is not None and (end != start).any():
        return end - start, None
    way = learned.origins[one.outcome.piece[0]] - start
    if not way.any():  # the row is the center itself: any direction will do
        way = np.zeros_like(start)
        way[np.argmax(learned.weights)] = 1.0
    return way, int(one.target[0])


def _second_direction(
    learned: Learned, metric: Array, first: Array, frozen: Any, others: Sequence[Array] = ()
) -> Array:
    """Return what tells the clusters apart best, across the first direction; zero in one column.

    Their centers less what the first direction tells of them: their largest singular vector.
    Differences given as `others` come before the centers.
    """
    every = learned.origins - learned.origins.mean(axis=0)
    spread = np.diag(np.maximum(learned.spread, NOTHING_LEFT))
    unlocked = np.where(frozen, 0.0, 1.0)
    for candidates in (*others, every * unlocked, spread[~frozen], spread):
        if not len(candidates):
            continue
        along = candidates @ (metric * first) / (metric @ first**2)
        left = candidates - along[:, None] * first
        u, s, _ = np.linalg.svd(left * np.sqrt(metric), full_matrices=False)
        whole = np.sqrt((candidates**2 @ metric).max())
        if s[0] > NOTHING_LEFT * whole:
            found = left.T @ u[:, 0] / s[0]
            # A singular vector has no sign of its own: its largest part is positive.
            return np.asarray(found * np.sign(found[np.argmax(metric * found**2)]))
    return np.zeros_like(first)


def _told(space: Space, direction: Array, metric: Array) -> str:
    """Name the columns that a direction is mostly made of."""
    share = metric * direction**2
    if not share.sum() > 0:
        return ""
    parts = np.array([share[column.places].sum() for column in space.columns]) / share.sum()
    largest = [c for c in np.argsort(-parts, kind="stable")[:TOLD] if parts[c] > 0.1]
    return joined([legible(space.names[c]) for c in largest])


def _telling(learned: Learned) -> Array:
    """Return weight times squared spread between the centers of each column."""
    telling = learned.importance * learned.origins.var(axis=0)
    return np.array([telling[column.places].sum() for column in learned.space.columns])
