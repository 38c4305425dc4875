"""Numbers and lists as people write them."""

from __future__ import annotations

from math import floor, isfinite, log10


def figure(value: float, whole: bool = False) -> str:
    """Write a number for reading: thousands apart, three or four telling digits.

    Examples
    --------
    >>> from voicecf.app.words import figure
    >>> figure(1234567.0), figure(0.0312345), figure(12.5), figure(3.0, whole=True)
    ('1,234,567', '0.0312', '12.5', '3')
    """
    if not isfinite(value):
        return "missing" if value != value else "any"
    if whole and value == round(value):
        return f"{value:,.0f}"
    return _written(value, max(0, 2 - _size(value)))


def _size(value: float) -> int:
    return floor(log10(abs(value))) if value else 0


def _written(value: float, digits: int) -> str:
    if abs(value) >= 1e15 or (0 < abs(value) < 1e-6):
        return f"{value:.3g}"
    text = f"{value:,.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def percent(share: float) -> str:
    """Write a share: '12 %', '0.3 %', 'under 0.1 %'."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    digits = 1 if 0 < share < 0.0995 or 0.99 < share < 1 else 0
    text = f"{100 * share:.{digits}f}"
    return f"{text.removesuffix('.0')} %"


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number of things: '1 row', '2,000 rows'."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


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
