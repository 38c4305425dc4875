"""Names and numbers as a picture writes them: short, legible, literal."""

from __future__ import annotations

from typing import Any

import numpy as np

# The longest name that a label shows.
LONGEST = 80
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
ARROW = "\N{RIGHTWARDS ARROW}"
# Short forms of large numbers.
THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def legible(name: Any, longest: int = LONGEST) -> str:
    """Write a name in one line, shortened in its middle, with nothing that cannot be seen.

    Examples
    --------
    >>> from voicecf.plots.words import legible
    >>> legible("a very long name", 10)
    'a very\N{HORIZONTAL ELLIPSIS}ame'
    """
    text = "".join(c if c.isprintable() else " " for c in str(name)).strip()
    text = " ".join(text.split()) or repr(str(name))
    return shortened(text, longest)


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is too long: names often differ at their ends."""
    if len(text) <= longest:
        return text
    tail = max((longest - 1) // 3, 0)
    return f"{text[: longest - 1 - tail]}{ELLIPSIS}{text[len(text) - tail :]}"


def level(value: Any) -> str:
    """Write a level of a category."""
    return "missing" if value is None or value != value else legible(value)


def number(value: float, digits: int = 4) -> str:
    """Write a number with so many digits, without an exponent if it can be."""
    if np.isnan(value):
        return "missing"
    if np.isinf(value):
        return "any"
    text = f"{value:.{digits}g}"
    return f"{value:.0f}" if "e" in text and 1e-4 <= abs(value) < 1e10 else text


def compact(value: float) -> str:
    """Write a number in at most six characters or so, for a cell of a table.

    Examples
    --------
    >>> from voicecf.plots.words import compact
    >>> [compact(value) for value in (0.12345, 3.0, 1234.5, 56_789.0)]
    ['0.123', '3', '1234', '56.8k']
    """
    for size, letter in THOUSANDS:
        if abs(value) >= max(size, 1e4):  # four digits need no letter
            return f"{value / size:.3g}{letter}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def counted(count: int, noun: str) -> str:
    """Count things: 1 column, 2 columns."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
