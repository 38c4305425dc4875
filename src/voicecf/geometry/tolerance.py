"""The tolerances of the library, in one table; those of the solver are in native/numbers.hpp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

# Unit of rounding of double precision.
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as equal. Every number is relative; nothing here has a unit.

    Attributes
    ----------
    changed : float
        Of a column's spread: a smaller move is no change.
    move : float
        Of a move's length: what the solver's own arithmetic may be off by.
    border : float
        Of a bound: data this close to it count as inside.
    rule : float
        Of the size of a rule's terms: by so much a rule between columns may be broken in
        coordinates; the user's units have the last word.
    range_end : float
        Of the size of a constraint's terms: the same, for the ends of `ranges`.
    cheaper : float
        Of a cost: by so much another target has to be cheaper by its lower bound to be left out,
        and another answer to count as better.
    invertible : float
        Of a column's spread: what the way to the user's units and back may lose and still be
        rounding.
    undone : float
        Of the way beyond the data: what a map followed there may lose on its way back.
    whole : float
        Of a number: this close to a whole one, it is that number after rounding.
    facet : float
        Of the way from a centroid to a rival's boundary: how far a cell without that rival has to
        reach beyond it, for the two to be neighbours.
    pairwise : float
        Of the squared distances between centroids: by so much a pairwise answer may be closer to
        another centroid and still count as on the boundary of its target.
    """

    changed: float = 1e-9
    move: float = 32.0 * EPS
    border: float = 8.0 * EPS
    rule: float = 16.0 * EPS
    range_end: float = 64.0 * EPS
    cheaper: float = 1e-9
    invertible: float = 1e-9
    undone: float = 1e-6
    whole: float = 1e-9
    facet: float = 1e-9
    pairwise: float = 1e-9


TOLERANCE = Tolerance()
