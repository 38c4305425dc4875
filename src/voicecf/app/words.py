"""Shares, numbers of a column, and text that is shown as it is."""

from __future__ import annotations

import re
from math import floor, isfinite, log10

from voicecf.output import exact, figure

# From which largest value of a column on thousands are parted, and numbers have an exponent.
PARTED, LARGE = 10_000, 1e16

# Digits that a number is read by, and places after the point that are still read.
DIGITS, PLACES = 3, 8


def percent(share: float) -> str:
    """Write a share: '12 %', '0.3 %', 'under 0.1 %'."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    digits = 1 if 0 < share < 0.0995 or 0.99 < share < 1 else 0
    text = f"{100 * share:.{digits}f}"
    return f"{text.removesuffix('.0')} %"


def number(value: float, span: tuple[float, float]) -> str:
    """Write a number of a column that ranges over `span`, in the same way throughout the column.

    Whole numbers are exact. Others have three digits, unless a hundredth of the range needs fewer
    places or a quarter of it more.

    Examples
    --------
    >>> from voicecf.app.words import number
    >>> number(2006, (1990, 2020)), number(2006.4, (1990, 2020)), number(2006, (0, 50_000))
    ('2006', '2006', '2,006')
    >>> number(9.137, (0, 30)), number(0.8512, (0, 1)), number(1000.00412, (1000, 1000.01))
    ('9.1', '0.85', '1000.004')
    """
    low, high = span
    parted = max(abs(low), abs(high), abs(value)) >= PARTED
    if not isfinite(value) or abs(value) >= LARGE:
        return exact(value)
    if value == round(value):
        return exact(value, thousands=parted)
    if not 0 < high - low < LARGE:
        return figure(value) if parted else figure(value).replace(",", "")
    least, most = _places((high - low) / 4), _places((high - low) / 100)
    places = min(max(_places(value, DIGITS), least), most)
    if places > PLACES:
        return figure(value)
    text = f"{value:,.{places}f}" if parted else f"{value:.{places}f}"
    text = text.rstrip("0").rstrip(".") if places else text
    return "0" if text == "-0" else text


def in_column(text: str, largest: float) -> str:
    """Return a number without marks between thousands, unless its column reaches 10,000.

    Examples
    --------
    >>> from voicecf.app.words import in_column
    >>> in_column("2,006", 2020), in_column("2,006", 50_000)
    ('2006', '2,006')
    """
    return text if largest >= PARTED else text.replace(",", "")


def _places(value: float, digits: int = 1) -> int:
    """Return the places after the point that so many digits of a value need."""
    return max(0, digits - 1 - floor(log10(abs(value))))


def things(table: str) -> str:
    """Say what the rows of a table are: 'customers' of customers.csv, else 'rows'.

    Examples
    --------
    >>> from voicecf.app.words import things
    >>> things("customers.csv"), things("Q3 export.xlsx"), things("analysis.csv")
    ('customers', 'rows', 'rows')
    """
    stem = table.partition(".")[0].lower()
    return stem if re.fullmatch(r"[a-z]{3,20}[^\W\dsui_]s", stem) else "rows"


def literal(text: str) -> str:
    r"""Write a text so that Markdown shows it as it is: no links, no pictures, no formatting.

    Examples
    --------
    >>> from voicecf.app.words import literal
    >>> print(literal("a*b* [x]"))
    a\*b\* \[x\]
    """
    flat = " ".join(text.split())
    for linked in ("://", "www.", "@"):  # what becomes a link even without brackets
        flat = flat.replace(linked, f"{linked[0]}\u200b{linked[1:]}")
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~$:!-" else c for c in flat)
