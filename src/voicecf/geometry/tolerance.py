"""All tolerances of the Python code. Those of the compiled core stand in native/numbers.hpp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

# Machine epsilon of double precision.
EPS = float(np.finfo(np.float64).eps)
# Normals whose length is not above this are scaled up before they are normalised, for the squares
# of their coordinates underflow.
SHORT_NORMAL = 1e-140
# Range in which the spread of the centroids must lie for all cells to be kept in one table: outside
# it products of squared distances could overflow or underflow.
LEAST_SPREAD, LARGEST_SPREAD = 1e-60, 1e60


def squarable(dtype: Any) -> tuple[float, float]:
    """Return limits for centroids in a floating-point type: the least distance, the largest size.

    Squared distances of centroids that are all closer together underflow, or lose digits to that;
    squares of larger coordinates overflow.
    """
    info = np.finfo(dtype)
    return float(np.sqrt(info.tiny) / info.eps), float(np.sqrt(info.max) / 1e3)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as equal. Each is relative to the quantity that its description begins with.

    Attributes
    ----------
    changed : float
        Relative to a column's spread. A move of at most this tells no alternatives apart.
    move : float
        Relative to the length of a move. Bound on the rounding error of the solver itself.
    coarse : float
        Relative to the distance of an answer from the centroid, in the model's own metric. If
        rounding needs more slack than this, the answer is not the nearest point of its cell any
        more.
    border : float
        Relative to a bound. Data this close to it count as inside.
    rule : float
        Relative to the terms of a linear rule between columns. By so much the rule may be violated
        in coordinates. Whether it holds is decided in the user's units.
    range_end : float
        Relative to the terms of a constraint. By so much it may be violated at the ends of
        `ranges`.
    cheaper : float
        Relative to a cost. Costs that differ by less are equal: a target is left out only if its
        lower bound is higher by more, and an answer is better only if its cost is lower by more.
    invertible : float
        Relative to a column's spread. A conversion to the user's units and back that changes values
        by less counts as exact.
    undone : float
        Relative to the distance from the data. A map that is followed beyond the data counts as
        invertible there if the way back errs by less.
    whole : float
        Relative to a number, or to 1 if that is larger. A number this close to a whole number
        counts as that number.
    retained : float
        In rows. If `retain` times the number of rows exceeds a whole number by less, it counts as
        that number.
    usual : float
        Relative to an extremeness. Points whose extremeness differs by less are equally usual.
    facet : float
        Relative to the distance from a centroid to a constraint of its cell. Two clusters are
        neighbours if the cell without their common constraint would extend beyond it by more.
    outside_box : float
        Relative to the same distance. A constraint is ruled out by a bounding box of the cell if
        the whole box satisfies it with more than this slack.
    standstill : float
        Relative to a point's largest coordinate, or to 1 if that is larger. An iteration has
        stopped if it moves the point by less.
    pairwise : float
        Relative to the largest squared distance between centroids. A pairwise answer on the
        boundary of its target may be closer to another centroid by so much.
    """

    changed: float = 1e-9
    move: float = 32.0 * EPS
    coarse: float = 0.01
    border: float = 8.0 * EPS
    rule: float = 16.0 * EPS
    range_end: float = 64.0 * EPS
    cheaper: float = 1e-9
    invertible: float = 1e-9
    undone: float = 1e-6
    whole: float = 1e-9
    retained: float = 1e-9
    usual: float = 1e-9
    facet: float = 1e-9
    outside_box: float = 1e-6
    standstill: float = 1e-10
    pairwise: float = 1e-9


TOLERANCE = Tolerance()
