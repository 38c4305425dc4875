"""The smallest change of a number that is enough, and numbers that can be typed in again."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal

import numpy as np

from voicecf.table.column import Column
from voicecf.table.units import CENTS, has_cents, with_unit
from voicecf.table.wording import figure

# Relative to the distance from a bound to the value that is needed: the precision with which that
# value is found, and how much may be added to it for the sake of fewer digits.
PRECISION, READABLE = 0.01, 0.1


def least_enough(
    enough: Callable[[float], bool], bound: float, known: float, whole: bool = False
) -> float:
    """Bisect for the value nearest to a bound that is enough, or the whole number; `known` is."""
    below, above = bound, known
    while abs(above - below) > PRECISION * abs(above - bound):
        middle = below + (above - below) / 2
        middle = float(np.rint(middle)) if whole else middle
        if middle in (below, above):
            break
        below, above = (below, middle) if enough(middle) else (middle, above)
    return above


def readable(value: float, bound: float) -> float:
    """Round a value away from a bound, to the fewest digits that add little to its distance.

    Examples
    --------
    >>> from voicecf.rules.edits import readable
    >>> readable(61137.2, 60000.0), readable(-0.01234, 0.0)
    (61200.0, -0.013)
    """
    room = READABLE * abs(value - bound)
    if room == 0 or not np.isfinite(room):
        return value
    rounding = ROUND_CEILING if value > bound else ROUND_FLOOR
    place = Decimal(1).scaleb(int(np.floor(np.log10(room))))
    rounded = float((Decimal(value) / place).to_integral_value(rounding) * place)
    return rounded if abs(rounded - bound) >= abs(value - bound) else value


def number(value: float, column: Column) -> str:
    """Format a bound of a column with its unit: with six digits, enough to type it in again.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from voicecf.rules.edits import number
    >>> from voicecf.table.column import Column
    >>> paid, rate = (Column(name, (name,), [0]) for name in ("paid", "rate"))
    >>> number(61200.0, replace(paid, unit="€")), number(0.1234567, rate)
    ('€61,200.00', '0.123457')
    """
    cents = CENTS + len(f"{abs(value):.0f}") if has_cents(column) else 0
    return with_unit(figure(value, max(6, cents)), column)
