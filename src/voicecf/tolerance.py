"""The tolerances of the library, all of them, in one place."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What counts as equal. Every number is relative; nothing here has a unit.

    Attributes
    ----------
    tight : float
        Of a row's terms in the step: a row this close to its offset is tight, and one that is
        violated by as little holds.
    loose : float
        Of the size of a row's terms: a violation this small is rounding of the input, which is
        what makes a flat or single-point region non-empty.
    dependent : float
        A row whose part outside the span of others is smaller than this depends on them.
    singular : float
        A pivot below this share of its diagonal sends a point to the safe phase.
    closed : float
        Of the cost: a duality gap this small is closed.
    long : float
        A step so many times as long as its answer's distance from the origin is off by rounding
        that matters there.
    changed : float
        Of a column's spread: a smaller move is no change.
    """

    tight: float = 4e-15
    loose: float = 1e-12
    dependent: float = 1e-14
    singular: float = 1e-4
    closed: float = 1e-10
    long: float = 1e4
    changed: float = 1e-9


TOLERANCE = Tolerance()
