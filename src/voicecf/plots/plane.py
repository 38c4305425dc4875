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
from voicecf.reasons.case import Case
from voicecf.status import Status
from voicecf.table.frames import as_frame
from voicecf.table.rows import Rows
from voicecf.table.space import Space
from voicecf.table.units import labelled
from voicecf.table.wording import joined, legible

# Keeps directions apart where the model gives a coordinate no weight.
LEAST_WEIGHT = 1e-12
# What is left of a direction is taken for rounding below this share of it.
NOTHING_LEFT = 1e-9
# How many columns a direction is named by.
NAMED = 2


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
    axis_labels : pair of str
        What the axes are called.
    columns : tuple of int
        Positions of the two columns whose units the axes have; empty where axes mix columns.
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
    axis_labels: tuple[str, str]
    columns: tuple[int, ...]
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
        return cls._of_columns(voice.space_, _one_row(voice.space_, row), name, (x, y))

    @classmethod
    def through(cls, cf: Counterfactuals, i: int, x: Any, y: Any) -> Plane:
        """Return the plane of two number columns, the others held at the row of answer i."""
        return cls._of_columns(cf.outcome.space, *_row_of(cf[i]), (x, y))

    @classmethod
    def _of_columns(cls, space: Space, given: Rows, name: str, pair: Sequence[Any]) -> Plane:
        columns = _positions(space, pair)
        origin = given.points[0].copy()
        directions = np.zeros((2, len(origin)))
        for side, c in zip(directions, columns, strict=True):
            side[space.columns[c].places[0]] = 1.0
            origin[space.columns[c].places[0]] = 0.0
        note = "Exact: there are no other columns."
        if len(space.columns) > 2:
            note = (
                f"Exact where the other columns are as in {name}; dots are coloured by their whole "
                "rows."
            )
        x, y = (labelled(space.names[c], space.columns[c]) for c in columns)
        first, second = directions
        return cls(space, given, origin, first, second, directions, (x, y), columns, name, note)

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
        given, name = _row_of(one)
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
        across = _made_of(cf.outcome.space, second, metric)
        labels = (
            f"Along the move: 0 is {name}, 1 is {end}",
            f"Across it, mostly {across}" if across else "Across it: nothing",
        )
        note = (
            f"A projection: the cells are cut by the plane through {name} and {end}; "
            "other rows may lie off it."
        )
        space = cf.outcome.space
        return cls(space, given, start.copy(), first, second, dual, labels, (), name, note)

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
        pair = [space.names[c] for c in [*changed, *rest][:2]]
        return cls._of_columns(space, *_row_of(one), pair)

    @property
    def of_two_columns(self) -> bool:
        """Whether either axis is one column in its own units."""
        return bool(self.columns)

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
        for side, c in enumerate(self.columns if len(made) else ()):
            made[:, side] = self.space.values(c, made[:, [side]])
        return made

    def from_units(self, points: Any) -> Array:
        """Turn the units of the axes into (u, v)."""
        made = np.array(points, dtype=np.float64)
        for side, c in enumerate(self.columns if len(made) else ()):
            made[:, side] = self.space.coordinates(c, made[:, side])[:, 0]
        return made

    def coordinates(self, points: Any) -> Array:
        """Return the coordinates, shape (n, d), of points in the units of the axes."""
        return np.asarray(self.origin + self.from_units(points) @ self.directions)

    def rows(self, points: Any) -> Any:
        """Return full rows of the user's table at points in the units of the axes."""
        made = self.coordinates(points)
        if self.space.steps is None and self.given.frame is None:
            return made.astype(self.space.dtype)
        output = self.space.write(made, self.given, np.zeros(len(made), dtype=np.int64))
        return output.array if output.frame is None else output.frame.to_native()

    def limits(self) -> tuple[Array, Array]:
        """Return between which values each axis can be drawn, infinite where anywhere."""
        limits = [self.space.columns[c].limits for c in self.columns] or [(-np.inf, np.inf)] * 2
        low, high = np.array(limits).T
        return low, high


def drawable_columns(space: Space) -> list[int]:
    """Return the columns that can be an axis: numbers whose map can be undone anywhere."""
    return [c for c, column in enumerate(space.columns) if column.free]


def allowed_box(one: Counterfactuals) -> tuple[Array, Array]:
    """Return the box of coordinates that an answer had to lie in: bounds, rules, what may not."""
    case = Case(one.outcome.question_of(0), int(one.row[0]), int(one.target[0]))
    return case.box(int(one.outcome.piece[0]))


def _positions(space: Space, pair: Sequence[Any]) -> tuple[int, ...]:
    """Return the positions of two different columns that can be axes."""
    found, drawable = [], drawable_columns(space)
    for name in pair:
        c = known_column(name, space.names, "a plane")
        if c not in drawable:
            category = space.columns[c].kind == "category"
            kind = "a category" if category else "known at some values only"
            raise ColumnError(
                f"column {space.names[c]!r} is {kind}; an axis needs a number column, one of "
                f"{listed(space.names[d] for d in drawable)}."
            )
        found.append(c)
    if found[0] == found[1]:
        raise ColumnError(f"a plane needs two columns; {pair[0]!r} was given twice.")
    return tuple(found)


def _one_row(space: Space, row: Any) -> Rows:
    if as_frame(row) is None:
        row = np.asarray(row)
        row = row[None] if row.ndim == 1 else row
    rows = space.read(row)
    if len(rows.points) != 1:
        raise DataError(f"a plane goes through one row; {len(rows.points)} were given.")
    return rows


def end_of(one: Counterfactuals) -> Array | None:
    """Return the coordinates of an answer; None where there is none or nothing has to change."""
    moved = one.feasible[0] and one.status[0] != Status.ALREADY
    return one.points[0].astype(np.float64) if moved else None


def _row_of(one: Counterfactuals) -> tuple[Rows, str]:
    """Return the row of an answer as it came, alone, and what it is called."""
    return one.outcome.rows.take(one.row), row_name(one.outcome.rows, one.row[0])


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


def _made_of(space: Space, direction: Array, metric: Array) -> str:
    """Name the columns that a direction is mostly made of."""
    share = metric * direction**2
    if not share.sum() > 0:
        return ""
    parts = np.array([share[column.places].sum() for column in space.columns]) / share.sum()
    largest = [c for c in np.argsort(-parts, kind="stable")[:NAMED] if parts[c] > 0.1]
    return joined([legible(space.names[c]) for c in largest])


def _telling(learned: Learned) -> Array:
    """Return weight times squared spread between the centers of each column."""
    telling = learned.importance * learned.origins.var(axis=0)
    return np.array([telling[column.places].sum() for column in learned.space.columns])
