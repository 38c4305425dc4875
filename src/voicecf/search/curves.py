"""Rules between columns that are no rows of coordinates, as the compiled search knows them.

They are linear rules between columns that the pipeline maps by curves, and columns that are
computed from others.

In the user's units such a rule is a sum of terms, factor times value, that has an upper limit. In
coordinates a term of an affine column is a line. A curve is known at knots, and lies between two
parallel lines from each to the next. Where that is too coarse for a row, the search says so, and
goes on with more knots around its solution.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.rules.choices import Choices
from voicecf.rules.columns import affine_map, column_of, coordinates_of
from voicecf.rules.constraints import Constraint
from voicecf.rules.formulas import Formula, Identity
from voicecf.rules.multiples import Listed, Multiples
from voicecf.rules.parts import Freedom
from voicecf.table.space import Space

# Numbers at which a curve is evaluated: among the data, and on either side beyond them.
KNOTS, BEYOND = 65, 16
# How often more are added for a row: around a solution, at distances that become ever smaller.
ROUNDS, NEARER = 12, 4.0 ** -np.arange(10)
# Knots of a list of options; between them is what the options deviate from a line.
MOST_OPTIONS = 512
# If the slope of a curve only rises, or only falls, over so many knots before and after two knots,
# it is taken to be convex, or concave, between them; else only to be monotone.
WINDOW = 3
# Rounding errors of a curve's values, relative to the largest.
ROUNDING = 2.0**-50
# The largest multiple of a move that is tried, how many are at once, how often the interval between
# two of them is divided, and for how many rows at a time.
FAR, TRIED, TURNS, BLOCK = 1e6, 33, 9, 1024


@dataclass(frozen=True, eq=False)
class Knots:
    """Curves of columns, of all problems or of each.

    Attributes
    ----------
    starts : array of shape (C + 1,)
        The knots of column c are ``starts[c]`` to before ``starts[c + 1]``.
    z, u : array of shape (1 or n, K)
        Ascending coordinates, and the user's values there.
    under, over : array of shape (1 or n, K)
        How far a curve lies at most below and above the chord from a knot to the next.
    """

    starts: Ints
    z: Array
    u: Array
    under: Array
    over: Array

    @classmethod
    def joined(cls, parts: dict[int, tuple[Array, ...]], columns: int) -> Knots:
        """Return the knots of some columns, side by side."""
        counts = [parts[c][0].shape[1] if c in parts else 0 for c in range(columns)]
        arrays = [np.concatenate(side, axis=1) for side in zip(*parts.values(), strict=True)]
        return cls(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), *arrays)

    def of(self, c: int) -> tuple[Array, ...]:
        """Return the knots of a column."""
        part = slice(self.starts[c], self.starts[c + 1])
        return self.z[:, part], self.u[:, part], self.under[:, part], self.over[:, part]


@dataclass(frozen=True)
class _Line:
    """A rule of the search: terms that add up to at most a limit, and see `Identity` there."""

    terms: list[tuple[int, float]]
    limit: float
    parts: tuple[int, ...] = (-1, 0, -1, -1, 0, -1, -1)
    times: float = 0.0
    half: float = -1.0


@dataclass(frozen=True, eq=False)
class Curves:
    """Curved rules, and what is known of the columns in them.

    Attributes
    ----------
    space : Space
    choices : Choices
    constraints : tuple of Constraint
    own : dict of int to array of shape (rows,)
        The rows' own values of the columns of the rules, by position.
    strict : bool
        Whether answers keep away from the limits by the errors of conversions, after an answer
        broke a rule by rounding. Rules about listed values only are exact.
    priced : frozenset of int
        Columns behind curves that have a price, which has a kink at a row's own value.
    identities : tuple of (Formula, int, int, Identity)
        The equations of columns that are computed from others, and for each the union of boxes and
        the box in which it applies.
    """

    space: Space
    choices: Choices
    constraints: tuple[Constraint, ...]
    own: dict[int, Array]
    strict: bool = False
    priced: frozenset[int] = frozenset()
    identities: tuple[tuple[Formula, int, int, Identity], ...] = ()

    @property
    def count(self) -> int:
        """Number of rules: four for the planes around a product, two for another identity."""
        products = sum(identity.product is not None for *_, identity in self.identities)
        return len(self.constraints) + 2 * len(self.identities) + 2 * products

    def terms(self, constraint: Constraint) -> list[tuple[int, float]]:
        """Return the columns and factors of a rule."""
        names = constraint.coefficients.items()
        return [(column_of(self.space, name, constraint.text), f) for name, f in names]

    @property
    def bent(self) -> list[int]:
        """Positions of the columns that are mapped by curves."""
        return sorted(c for c in self.own if self.space.columns[c].curved)

    def _place(self, c: int) -> int:
        return int(self.space.columns[c].places[0])

    def add_to(self, rules: _core.Rules) -> None:
        """Add the rules to those of a search."""
        count, size = len(self.space.columns), len(self.choices.table)
        lines_of = [*self._comparisons(), *self._equations()]
        places = [(j, c, f) for j, one in enumerate(lines_of) for c, f in one.terms]
        own, lines = np.zeros((len(self.choices.points), count)), np.zeros((count, 2))
        worth = np.zeros(size)
        for c, values in self.own.items():
            own[:, c] = values
            grid = self.choices.grids[c]
            if not self.space.columns[c].curved:
                scale, shift = affine_map(self.space, c)
                lines[c] = 1.0 / scale, -shift / scale
            elif isinstance(grid, Listed):
                worth[self.choices.start[c] : self.choices.start[c + 1]] = grid.values
        listed = self.choices.freedom != Freedom.ANY
        tight = [
            self.strict and one.half < 0 and not all(listed[c] for c, _ in one.terms)
            for one in lines_of
        ]
        errors = self.space.round_trip_error[[c.places[0] for c in self.space.columns]]
        rules.bend(
            np.array([place[:2] for place in places], dtype=np.int64).reshape(-1, 2),
            np.array([place[2] for place in places], dtype=np.float64),
            np.array([one.limit for one in lines_of], dtype=np.float64),
            np.array(tight, dtype=np.uint8),
            lines, worth, own, errors,
        )  # fmt: skip
        rules.equate(
            np.array([one.parts for one in lines_of], dtype=np.int64).reshape(-1, 7),
            np.array([(one.times, one.half) for one in lines_of], dtype=np.float64).reshape(-1, 2),
        )

    def _comparisons(self) -> Iterator[_Line]:
        for one in self.constraints:
            yield _Line(self.terms(one), one.limit)

    def _equations(self) -> Iterator[_Line]:
        """Yield the two sides of each identity, with the planes below or above its product."""
        for formula, union, box, identity in self.identities:
            divisor = -1 if identity.divisor is None else identity.divisor
            x, y, times = identity.product or (-1, -1, 0.0)
            half = min(formula.half, self._half_step(formula.made))
            for sign in (1.0, -1.0):
                terms = [(c, sign * factor) for c, factor in identity.factors.items()]
                corners = (0,) if x < 0 else (1, 2) if sign * times > 0 else (0, 3)
                for corner in corners:
                    parts = (union, box, x, y, corner, formula.made, divisor)
                    limit = -sign * identity.constant
                    yield _Line(terms, limit, parts, sign * times, half)

    def _half_step(self, c: int) -> float:
        grid = self.choices.grids[c]
        return 0.5 * grid.increment if isinstance(grid, Multiples) else np.inf

    def can_stay(self) -> Mask:
        """Tell, of shape (n, C), which columns have a value of their own that rules can use."""
        known = np.ones((len(self.choices.points), len(self.space.columns)), dtype=np.bool_)
        for one in self.constraints:
            for c, _ in self.terms(one):
                known[:, c] = ~np.isnan(self.own[c])
        return known

    def knots(self, choices: Choices, rows: Ints) -> Knots:
        """Return knots for rows of choices: numbers up to the ends of a row's interval, or options.

        They do not depend on other rows, so that an answer has the same bits in any batch.
        """
        parts = {}
        for c in self.bent:
            grid, at = choices.grids[c], self._place(c)
            if isinstance(grid, Listed):
                parts[c] = _thinned(grid.coordinates, grid.values)
                continue
            own, sides = choices.points[rows, at], (choices.lo[:, at], choices.hi[:, at])
            low, high = (side[rows] if len(side) > 1 else side for side in sides)
            z = _within(self._spread(c), own, low, high)
            if c in self.priced:
                z = _with_own(z, own)
            parts[c] = (z, *self._along_knots(c, z))
        if not parts:
            nothing = np.empty((1, 0))
            starts = np.zeros(len(self.space.columns) + 1, dtype=np.int64)
            return Knots(starts, nothing, nothing, nothing, nothing)
        n = len(rows) if any(len(part[0]) > 1 for part in parts.values()) else 1
        parts = {
            c: tuple(np.broadcast_to(side, (n, side.shape[1])) for side in part)
            for c, part in parts.items()
        }
        return Knots.joined(parts, len(self.space.columns))

    def _spread(self, c: int) -> Array:
        """Return coordinates: evenly spaced among the data, and ever farther apart beyond them."""
        ends = coordinates_of(self.space, c, np.array(self.space.columns[c].observed))
        inside = np.linspace(ends.min(), ends.max(), KNOTS)
        away = (inside[1] - inside[0]) * 4.0 ** np.arange(BEYOND)
        z = np.concatenate([inside[0] - away[::-1], inside, inside[-1] + away])
        with np.errstate(all="ignore"):
            return np.asarray(z[np.isfinite(self.space.values(c, z[:, None]))])

    def refined(self, knots: Knots, stuck: Array, which: Mask) -> Knots:
        """Return more knots for some problems, around the places where their search was stuck."""
        n, stuck = len(stuck), stuck[which]
        parts = {}
        for c in self.bent:
            z, *others = (np.broadcast_to(side, (n, side.shape[1]))[which] for side in knots.of(c))
            if self.choices.freedom[c] != Freedom.ANY:
                parts[c] = (z, *others)
                continue
            low, high, at = stuck[:, 3 * c], stuck[:, 3 * c + 1], stuck[:, 3 * c + 2]
            known = ~np.isnan(at)
            low, high = np.where(known, low, z[:, 0]), np.where(known, high, z[:, -1])
            at, width = np.where(known, at, low), np.maximum(high - low, 0.0)
            around = np.concatenate([-NEARER, [0.0], NEARER])
            more = at[:, None] + 0.9 * width[:, None] * around
            even = low[:, None] + width[:, None] * (np.arange(len(around)) + 0.4) / len(around)
            more = np.where((more > low[:, None]) & (more < high[:, None]), more, even)
            # The least price may lie anywhere in the interval, not only near the solution.
            more = np.concatenate([more, even], axis=1) if c in self.priced else more
            z = np.sort(np.concatenate([z, more], axis=1), axis=1)
            parts[c] = (z, *self._along_knots(c, z))
        return Knots.joined(parts, len(self.space.columns))

    def _along_knots(self, c: int, z: Array) -> tuple[Array, Array, Array]:
        """Return a column's values at knots, and how far it deviates from chords."""
        u = np.asarray(self.space.values(c, z.reshape(-1, 1))).reshape(z.shape)
        return u, *_deviations(z, u)

    def reach(self, points: Array, rho: Array, rows: Ints) -> Array:
        """Return the largest multiple, up to rho, of the moves to points that keep all rules.

        It lies between the first of several multiples that breaks a rule and the one before, an
        interval that is divided in the same way again.
        """
        starts = range(0, len(rows), BLOCK)
        blocks = (slice(start, start + BLOCK) for start in starts)
        parts = [self._reach(points[some], rho[some], rows[some]) for some in blocks]
        return np.concatenate([np.empty(0), *parts])

    def _reach(self, points: Array, rho: Array, rows: Ints) -> Array:
        rho, limited = np.array(rho), np.arange(len(rows))
        below, above = np.ones(len(rows)), np.minimum(rho, FAR)
        shares = np.linspace(0.0, 1.0, TRIED)
        for turn in range(TURNS):
            tried = below[:, None] + (above - below)[:, None] * (shares if turn else shares**2)
            broken = self._breaks(points[limited], tried[:, 1:], rows[limited])
            broken[:, -1] |= turn > 0  # the upper end is the multiple that breaks a rule
            some = broken.any(axis=1)
            limited, tried, first = limited[some], tried[some], broken[some].argmax(axis=1)
            below, above = (tried[np.arange(len(limited)), first + side] for side in (0, 1))
        rho[limited] = below
        return rho

    def _breaks(self, points: Array, multiples: Array, rows: Ints) -> Mask:
        """Tell which multiples, shape (n, m), of the moves to points break a rule."""
        values = {c: self._along(c, points, multiples, rows) for c in self.own}
        broken = np.zeros(multiples.shape, dtype=np.bool_)
        for one in self.constraints:
            terms = [f * values[c] for c, f in self.terms(one)]
            size = np.sum(np.abs(terms), axis=0) + abs(one.limit)
            broken |= ~(np.sum(terms, axis=0) <= one.limit + TOLERANCE.rule * size)
        own = {c: self.own[c][rows][:, None] for c in self.own}
        for formula in dict.fromkeys(formula for formula, *_ in self.identities):
            still = np.all([values[c] == own[c] for c in formula.columns], axis=0)
            flat = {c: values[c].ravel() for c in formula.columns}
            broken |= ~still & ~formula.agrees(flat).reshape(multiples.shape)
        return broken

    def _along(self, c: int, points: Array, multiples: Array, rows: Ints) -> Array:
        """Return the user's values of a column, shape (n, m), whether or not they are options."""
        at = self._place(c)
        own, to = self.choices.points[rows, at][:, None], points[:, at][:, None]
        further = own + multiples * (to - own)
        values = self.space.values(c, further.reshape(-1, 1)).reshape(further.shape)
        return np.where(further != own, values, self.own[c][rows][:, None])


def _within(spread: Array, own: Array, low: Array, high: Array) -> Array:
    """Return knots, (n, K), from one end to the other of intervals with a row's own coordinate."""
    some = low <= high  # an empty interval has no other
    low = np.minimum(own, np.where(some, low, np.inf))[:, None]
    high = np.maximum(own, np.where(some, high, -np.inf))[:, None]
    first = np.where(np.isfinite(low), low, spread[0])
    last = np.where(np.isfinite(high), high, spread[-1])
    return np.hstack([first, np.clip(spread, low, high), last])


def _with_own(z: Array, own: Array) -> Array:
    """Add a row's own coordinate to its knots, and others ever closer to it."""
    width = (z[:, -1:] - z[:, :1]) / KNOTS
    around = own[:, None] + width * np.concatenate([-NEARER, [0.0], NEARER])
    around = np.clip(around, z[:, :1], z[:, -1:])
    return np.sort(np.concatenate([z, around], axis=1), axis=1)


def _thinned(z: Array, u: Array) -> tuple[Array, ...]:
    """Return knots of a list of options, and how far those between them deviate from a line."""
    if len(z) < 2:  # nothing lies between options, but there are two knots at least
        z, u = z.sum() + np.array([0.0, 1.0]), u.sum() + np.zeros(2)
    every = -(-len(z) // MOST_OPTIONS)
    at = np.unique(np.append(np.arange(0, len(z), every), len(z) - 1))
    away = u - np.interp(z, z[at], u[at])
    under = np.append(np.maximum(-np.minimum.reduceat(away, at[:-1]), 0.0), 0.0)
    over = np.append(np.maximum(np.maximum.reduceat(away, at[:-1]), 0.0), 0.0)
    return z[at][None], u[at][None], under[None], over[None]


def _deviations(z: Array, u: Array) -> tuple[Array, Array]:
    """Return how far curves lie at most below and above the chords between knots, (n, K).

    A convex curve lies below the chord, and above the lines through the knots before and after.
    """
    width, rise = np.diff(z), np.diff(u)
    noise = ROUNDING * (np.abs(u[:, :-1]) + np.abs(u[:, 1:]))
    slopes = np.divide(rise, width, out=np.full_like(rise, np.nan), where=width > 0)
    slack = noise / np.where(width > 0, width, 1.0)
    before, after = _filled(slopes, 1), _filled(slopes, -1)
    here = np.where(width > 0, slopes, before)
    wide = np.maximum(slack, np.maximum(_filled(slack, 1, 0.0), _filled(slack, -1, 0.0)))
    rising = (
        np.where(np.isnan(before), 0.0, here - before),
        np.where(np.isnan(after), 0.0, after - here),
    )
    convex = _around((rising[0] >= -wide) & (rising[1] >= -wide))
    concave = _around((rising[0] <= wide) & (rising[1] <= wide))
    first, second = (
        np.abs(np.where(np.isnan(side), np.inf, side - here)) for side in (before, after)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        depth = width / (1.0 / first + 1.0 / second)
    depth, jump = np.where(width > 0, np.nan_to_num(depth, nan=0.0), 0.0), np.abs(rise)
    depth = np.minimum(depth, jump)  # the curve is monotone in any case
    under = noise + np.where(convex, depth, np.where(concave, 0.0, jump))
    over = noise + np.where(concave, depth, np.where(convex, 0.0, jump))
    last = np.zeros((len(z), 1))
    return np.hstack([under, last]), np.hstack([over, last])


def _filled(slopes: Array, direction: int, none: float = np.nan) -> Array:
    """Return the slope before each, or after it (direction -1), between different knots."""
    slopes = slopes[:, ::direction]
    places = np.where(np.isnan(slopes), -1, np.arange(slopes.shape[1]))
    places = np.maximum.accumulate(places, axis=1)[:, :-1]
    found = np.where(places < 0, none, np.take_along_axis(slopes, np.maximum(places, 0), axis=1))
    return np.asarray(np.hstack([np.full((len(slopes), 1), none), found])[:, ::direction])


def _around(holds: Mask) -> Mask:
    """Tell where something holds between all knots of a window."""
    padded = np.pad(holds, ((0, 0), (WINDOW, WINDOW)), constant_values=True)
    windows = np.lib.stride_tricks.sliding_window_view(padded, 2 * WINDOW + 1, axis=1)
    return np.asarray(windows.all(axis=2))
