"""Lines that bound linear rules between columns that the pipeline maps by curves.

In the user's units such a rule is a sum of terms, factor times value, that has an upper limit. In
coordinates a term of an affine column is a line. A term of a curve is not, but within the interval
that a node leaves to the column it lies between two parallel lines. With the lower lines the rule
is looser than it is, with the upper ones stricter; as intervals become narrower, both become it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.rules.choices import Choices
from voicecf.rules.columns import affine_map, column_of
from voicecf.rules.constraints import Constraint
from voicecf.rules.multiples import Listed
from voicecf.search.nodes import ANY, Node
from voicecf.table.space import Space

# Numbers of an interval at which a curve is evaluated. If its slope only rises, or only falls, from
# one to the next, it is taken to be convex, or concave, between them; else only to be monotone.
KNOTS = 17
# Rounding errors of its values, relative to the largest.
ROUNDING = 2.0**-50
# A list of more options than this is treated as an interval.
MOST_OPTIONS = 512
# The largest multiple of a move that is tried, how many are, and how often the distance is halved.
FAR, TRIED, HALVINGS = 1e6, 33, 40
# The part of an interval around the solution that becomes a node of its own.
AROUND = 1 / 16


@dataclass(frozen=True, eq=False)
class Lines:
    """Rows of n nodes, for e rules: ``normals @ z <= loose`` and ``normals @ z <= strict``.

    Attributes
    ----------
    normals : array of shape (n, e, d)
    loose, strict : array of shape (n, e)
    apart : array of shape (n, C)
        How far the two lines of each column are apart, summed over the rules.
    """

    normals: Array
    loose: Array
    strict: Array
    apart: Array


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
    """

    space: Space
    choices: Choices
    constraints: tuple[Constraint, ...]
    own: dict[int, Array]
    strict: bool = False

    def terms(self, constraint: Constraint) -> list[tuple[int, float]]:
        """Return the columns and factors of a rule."""
        names = constraint.coefficients.items()
        return [(column_of(self.space, name, constraint.text), f) for name, f in names]

    @property
    def bent(self) -> list[int]:
        """Positions of the columns that are mapped by curves."""
        columns = {c for one in self.constraints for c, _ in self.terms(one)}
        return sorted(c for c in columns if self.space.columns[c].curved)

    def broken(self, points: Array, rows: Ints) -> Mask:
        """Tell which points, in coordinates, break a rule, beyond rounding."""
        values = {c: self._values(c, points, rows) for c in self.own}
        return self._broken(values, len(points)) & ~np.isnan(points).any(axis=1)

    def _broken(self, values: dict[int, Array], n: int) -> Mask:
        broken = np.zeros(n, dtype=np.bool_)
        for one in self.constraints:
            terms = [f * values[c] for c, f in self.terms(one)]
            size = np.sum(np.abs(terms), axis=0) + abs(one.limit)
            broken |= ~(np.sum(terms, axis=0) <= one.limit + TOLERANCE.rule * size)
        return broken

    def reach(self, points: Array, rho: Array, rows: Ints) -> Array:
        """Return the largest multiple, up to rho, of the moves to points that keep all rules.

        It is bisected between the first of several multiples that breaks a rule and the one before.
        """
        own, farthest = self.choices.points[rows], np.minimum(rho, FAR)
        below, above = np.ones(len(points)), np.ones(len(points))
        limited = np.zeros(len(points), dtype=np.bool_)  # by a rule, between `below` and `above`
        for share in np.linspace(0.0, 1.0, TRIED)[1:] ** 2:
            multiple = 1.0 + share * (farthest - 1.0)
            above = np.where(limited, above, multiple)
            limited |= self._breaks(own, points, multiple, rows)
            below = np.where(limited, below, multiple)
        for _ in range(HALVINGS if limited.any() else 0):
            middle = 0.5 * (below + above)
            broken = self._breaks(own, points, middle, rows)
            above, below = np.where(broken, middle, above), np.where(broken, below, middle)
        return np.where(limited, below, rho)

    def _breaks(self, own: Array, points: Array, multiple: Array, rows: Ints) -> Mask:
        """Tell which multiples of moves break a rule."""
        further = own + multiple[:, None] * (points - own)
        return self._broken({c: self._along(c, further, rows) for c in self.own}, len(points))

    def _along(self, c: int, points: Array, rows: Ints) -> Array:
        """Return the user's values of a column at points, whether or not they are options."""
        at = self.space.columns[c].places[0]
        moved = points[:, at] != self.choices.points[rows, at]
        return np.where(moved, self.space.values(c, points[:, [at]]), self.own[c][rows])

    def _values(self, c: int, points: Array, rows: Ints) -> Array:
        """Return the user's values of a column at points."""
        at, grid = self.space.columns[c].places[0], self.choices.grids[c]
        z, own = points[:, at], self.choices.points[rows, at]
        moved = np.flatnonzero((z != own) & np.isfinite(z))
        values = self.own[c][rows].copy()
        if len(moved):
            found = self.space.values(c, z[moved, None])
            values[moved] = found if grid is None else grid.values_at(z[moved], found)
        return values

    def lines(self, nodes: Sequence[Node], rows: Ints) -> Lines:
        """Return lines that bound the rules within nodes; `rows` has the row of each."""
        d, e = self.choices.points.shape[1], len(self.constraints)
        lines = Lines(
            np.zeros((len(nodes), e, d)), np.zeros((len(nodes), e)), np.zeros((len(nodes), e)),
            np.zeros((len(nodes), len(self.space.columns))),
        )  # fmt: skip
        knots = {c: self._knots(c, nodes, rows) for c in self.bent}
        sizes = np.maximum(np.abs(self.choices.points[rows]), 1.0)
        for j, one in enumerate(self.constraints):
            size = np.full(len(nodes), abs(one.limit))
            lines.loose[:, j] = lines.strict[:, j] = one.limit
            for c, factor in self.terms(one):
                at = self.space.columns[c].places[0]
                slope, below, above = self._slopes(c, factor, knots)
                lines.normals[:, j, at] += slope
                lines.loose[:, j] -= below
                lines.strict[:, j] -= above
                lines.apart[:, c] += above - below
                size += np.abs(slope) * sizes[:, at] + np.maximum(np.abs(below), np.abs(above))
            listed = all(self.choices.freedom[c] != ANY for c, _ in self.terms(one))
            self._round(lines, j, TOLERANCE.rule * size, strict=self.strict and not listed)
        return lines

    def _round(self, lines: Lines, j: int, rounding: Array, *, strict: bool) -> None:
        """Allow for rounding: loosen both rows, or tighten them if `strict`."""
        if strict:
            error = self.space.round_trip_error
            rounding = -product(np.abs(lines.normals[:, j]), error) - rounding
        lines.loose[:, j] += rounding
        lines.strict[:, j] += rounding

    def _slopes(self, c: int, factor: float, knots: dict[int, Any]) -> tuple[Any, Any, Any]:
        """Return the slope of a term, and the constants of the lines below and above it."""
        if not self.space.columns[c].curved:
            scale, shift = affine_map(self.space, c)
            constant = -factor / scale * shift
            return factor / scale, constant, constant
        bands = [_band(z, factor * u, exact) for z, u, exact in knots[c]]
        slope, below, above = np.array(bands).T
        return slope, below, above

    def _knots(self, c: int, nodes: Sequence[Node], rows: Ints) -> list[tuple[Array, Array, bool]]:
        """Return for each node coordinates, their values, and whether there are no others."""
        choices, at = self.choices, int(self.space.columns[c].places[0])
        own = choices.points[rows, at]
        places = [self._places(c, node, z) for node, z in zip(nodes, own, strict=True)]
        # One call of the pipeline for all nodes; what is listed needs none.
        every = np.concatenate([z for z, _ in places])
        of_node = np.repeat(np.arange(len(nodes)), [len(z) for z, _ in places])
        points = np.zeros((len(every), choices.points.shape[1]))
        points[:, at] = every
        values = self._values(c, points, rows[of_node])
        ends = np.cumsum([len(z) for z, _ in places])[:-1]
        parts = np.split(values, ends)
        return [(z, u, exact) for (z, exact), u in zip(places, parts, strict=True)]

    def _places(self, c: int, node: Node, own: float) -> tuple[Array, bool]:
        """Return coordinates of the options of a column in a node, and whether these are all."""
        found, exact = np.empty(0), True
        grid, at = self.choices.grids[c], int(self.space.columns[c].places[0])
        if node.can_move(self.choices, c):
            if self.choices.freedom[c] == ANY:
                exact = bool(node.lo[at] == node.hi[at])
                low, high = node.lo[at], node.hi[at]
                if node.stay[c]:
                    low, high = min(low, own), max(high, own)
                found = np.linspace(low, high, 1 if exact else KNOTS)
            else:
                assert isinstance(grid, Listed)
                count = int(node.most[c] - node.least[c]) + 1
                exact = count <= MOST_OPTIONS
                tried = np.linspace(node.least[c], node.most[c], min(count, MOST_OPTIONS))
                found = grid.coordinates[np.rint(tried).astype(np.int64)]
        if node.stay[c]:
            found = np.append(found, own)
        return np.unique(found), exact

    def parts(self, node: Node, row: int, point: Array, apart: Array) -> list[Node] | None:
        """Divide a node at the column whose lines are furthest apart: below, around and above z.

        None if it cannot be divided.

        Parameters
        ----------
        node : Node
        row : int
            The row of the node.
        point : array of shape (d,)
            The solution of the node's relaxation, whose coordinate in that column is z.
        apart : array of shape (C,)
            How far the lines of each column are apart.
        """
        c = int(np.argmax(apart))
        if not apart[c] > 0 or not node.can_move(self.choices, c):
            return None
        at = int(self.space.columns[c].places[0])
        parts, own = [node.copy() for _ in range(3)], self.choices.points[row, at]
        divide = self._divide_numbers if self.choices.freedom[c] == ANY else self._divide_list
        cuts = divide(parts, c, float(point[at]))
        if cuts is None:
            return None
        place = int(own >= cuts[0]) + int(own > cuts[1])  # the part that has the row's own value
        for i, part in enumerate(parts):
            part.stay[c] &= i == place
        return [part for part in parts if part.stay[c] or part.can_move(self.choices, c)]

    def _divide_numbers(self, parts: list[Node], c: int, z: float) -> tuple[float, float] | None:
        """Divide an interval; return the cuts, None if it is too narrow to be divided."""
        at = int(self.space.columns[c].places[0])
        low, high = float(parts[0].lo[at]), float(parts[0].hi[at])
        width = AROUND * (high - low)
        cuts = max(z - width, low), min(z + width, high)
        if not cuts[1] - cuts[0] < high - low:
            return None
        for part, lo, hi in zip(parts, (low, *cuts), (*cuts, high), strict=True):
            part.lo[at], part.hi[at] = lo, hi
        if cuts[0] == low:
            parts[0].hi[at] = -np.inf
        if cuts[1] == high:
            parts[2].lo[at] = np.inf
        return cuts

    def _divide_list(self, parts: list[Node], c: int, z: float) -> tuple[float, float] | None:
        """Divide a range of listed options; return the coordinates of the part in the middle."""
        grid = self.choices.grids[c]
        assert isinstance(grid, Listed)
        first, last = int(parts[0].least[c]), int(parts[0].most[c])
        at = int(np.abs(grid.coordinates[first : last + 1] - z).argmin()) + first
        width = int(AROUND * (last - first))
        begin, end = max(at - width, first), min(at + width, last)
        ranges = ((first, begin - 1), (begin, end), (end + 1, last))
        for part, (least, most) in zip(parts, ranges, strict=True):
            part.least[c], part.most[c] = least, most
        return float(grid.coordinates[begin]), float(grid.coordinates[end])


def _band(z: Array, terms: Array, exact: bool) -> tuple[float, float, float]:
    """Return the slope of two parallel lines below and above a curve, and their constants.

    The curve is known at ascending places z. If these are not all places that matter, it is bounded
    between them by what is known of it: see `_least_between`. Without any place the node has no
    solution.
    """
    if not len(z):
        return 0.0, 0.0, 0.0
    slope = (terms[-1] - terms[0]) / (z[-1] - z[0]) if len(z) > 1 else 0.0
    above = terms - slope * z
    if exact or len(z) == 1:
        return slope, float(above.min()), float(above.max())
    noise = ROUNDING * float(np.abs(terms).max() + np.abs(slope * z).max())
    bends = np.diff(np.diff(above) / np.diff(z)) * np.minimum(np.diff(z)[1:], np.diff(z)[:-1])
    if (bends >= -noise).all():
        return slope, _least_between(z, above) - noise, float(above.max()) + noise
    if (bends <= noise).all():
        return slope, float(above.min()) - noise, noise - _least_between(z, -above)
    # Only monotone: at a place between two others, a term lies between theirs.
    jump = np.abs(np.diff(terms)).max() + np.abs(slope * np.diff(z)).max()
    return slope, float(above.min() - jump), float(above.max() + jump)


def _least_between(z: Array, values: Array) -> float:
    """Return a lower bound of a convex function from its values at some places.

    Between two places it lies above the lines through the two before and the two after them.
    """
    slopes, left, right = np.diff(values) / np.diff(z), values[:-1], values[1:]
    before = np.concatenate([[-np.inf], slopes[:-1]])  # slopes of the lines
    after = np.concatenate([slopes[1:], [np.inf]])
    width = np.diff(z)
    with np.errstate(all="ignore"):
        meet = (right - left - after * width) / (before - after)  # distance from the left place
        least = left + before * np.clip(np.nan_to_num(meet), 0.0, width)
        least = np.where(np.isinf(before), right - after * width, least)
        least = np.where(np.isinf(after), left + before * width, least)
    least = np.where(before < after, least, np.minimum(left, right))
    return float(min(least.min(), values.min()))
