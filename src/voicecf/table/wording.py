"""Numbers, names and lists as sentences, tables and pictures print them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isfinite, log10
from typing import Any

import numpy as np

from voicecf.table.frames import is_missing

# Magnitudes between which a number is written without an exponent.
SMALL, LARGE = 1e-6, 1e16
# Short forms of large numbers.
THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
# The largest value of a column from which on thousands are parted: 12,500, but the year 2006.
PARTED = 10_000
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def exact(value: Any, thousands: bool = False) -> str:
    """Format a number with the fewest digits from which the same number is read again.

    Examples
    --------
    >>> from voicecf.table.wording import exact
    >>> exact(1065.0), exact(0.1), exact(1234567.5, thousands=True), exact(2.5e-9)
    ('1065', '0.1', '1,234,567.5', '2.5e-09')
    """
    value = value if isinstance(value, np.floating) else np.float64(value)
    if np.isnan(value):
        return "missing"
    if np.isinf(value):
        return "any"
    if value != 0 and not SMALL <= abs(value) < LARGE:
        return np.format_float_scientific(value, unique=True, trim="-")
    text = np.format_float_positional(value, unique=True, trim="-")
    if not thousands:
        return text
    whole, point, rest = text.lstrip("-").partition(".")
    return f"{'-' * text.startswith('-')}{int(whole):,}{point}{rest}"


def figure(value: float, digits: int = 3) -> str:
    """Format a number for reading: so many telling digits, ones never rounded, thousands apart.

    Examples
    --------
    >>> from voicecf.table.wording import figure
    >>> figure(1234567.0), figure(0.0312345), figure(12.5), figure(0.1234567, 6), figure(2.5e-9)
    ('1,234,567', '0.0312', '12.5', '0.123457', '2.5e-09')
    """
    if not isfinite(value):
        return exact(value)
    if value != 0 and not SMALL <= abs(value) < LARGE:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - floor(log10(abs(value)))) if value else 0
    text = f"{value:,.{places}f}"
    text = text.rstrip("0").rstrip(".") if places else text
    return "0" if text == "-0" else text


def compact(value: float) -> str:
    """Format a number in at most six characters or so, for a cell of a table.

    Examples
    --------
    >>> from voicecf.table.wording import compact
    >>> [compact(value) for value in (0.12345, 3.0, 1234.5, 56_789.0)]
    ['0.123', '3', '1,234', '56.8k']
    """
    for size, letter in THOUSANDS:
        if abs(value) >= max(size, 1e4):  # four digits need no letter
            return f"{figure(value / size)}{letter}"
    return figure(value)


def counted(count: int, one: str, many: str | None = None) -> str:
    """Count things.

    Examples
    --------
    >>> from voicecf.output import counted
    >>> counted(1, "column"), counted(2000, "column"), counted(3, "mouse", "mice")
    ('1 column', '2,000 columns', '3 mice')
    """
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def joined(phrases: Sequence[str], last: str = "and") -> str:
    """Join phrases into a list: a, b and c.

    Examples
    --------
    >>> from voicecf.table.wording import joined
    >>> joined(["a", "b", "c"], "or")
    'a, b or c'
    """
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} {last} {phrases[-1]}"


def opening(text: str) -> str:
    """Return a text with a capital first letter.

    Examples
    --------
    >>> from voicecf.table.wording import opening
    >>> opening("row C-1017")
    'Row C-1017'
    """
    return f"{text[:1].upper()}{text[1:]}"


def sentences(phrases: Iterable[str]) -> str:
    """Write phrases as sentences, one after the other; empty ones are left out.

    Examples
    --------
    >>> from voicecf.table.wording import sentences
    >>> sentences(["cost 2", "", "this is cheap"])
    'Cost 2. This is cheap.'
    """
    return " ".join(f"{opening(phrase)}." for phrase in phrases if phrase)


def legible(name: Any, longest: int | None = None) -> str:
    """Return a name or a value as text, quoted if it is blank or has characters that do not print.

    Examples
    --------
    >>> from voicecf.table.wording import legible
    >>> legible("age"), legible(" "), legible("a very long name", 10)
    ('age', "' '", 'a very\N{HORIZONTAL ELLIPSIS}ame')
    """
    text = str(name)
    text = text if text.strip() and text.isprintable() else repr(text)
    return text if longest is None else shortened(text, longest)


def level(value: Any) -> str:
    """Return a level of a category as text: text in quotes, numbers and truth values without.

    Examples
    --------
    >>> from voicecf.table.wording import level
    >>> print(level("basic"), level(" "), level(3), level(None), level('5"'))
    "basic" " " 3 missing '5"'
    """
    if is_missing(value):
        return "missing"
    text = str(value)
    if not isinstance(value, str) or not text.isprintable() or '"' in text:
        return repr(text) if isinstance(value, str) else legible(value)
    return f'"{text}"'


def shortened(text: str, longest: int) -> str:
    """Leave out the middle of a text that is too long: names often differ at their ends.

    Examples
    --------
    >>> from voicecf.output import shortened
    >>> shortened("visits per month in 2025", 16)
    'visits per… 2025'
    """
    if len(text) <= longest:
        return text
    tail = max((longest - 1) // 3, 0)
    return f"{text[: longest - 1 - tail]}{ELLIPSIS}{text[len(text) - tail :]}"
