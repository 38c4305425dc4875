"""Numbers and lists as sentences print them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Magnitudes between which a number is written without an exponent.
SMALL, LARGE = 1e-6, 1e16


def exact(value: Any, thousands: bool = False) -> str:
    """Format a number with the fewest digits from which the same number is read again.

    Examples
    --------
    >>> from voicecf.output.wording import exact
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


def joined(phrases: Sequence[str], last: str = "and") -> str:
    """Join phrases into a list: a, b and c.

    Examples
    --------
    >>> from voicecf.output.wording import joined
    >>> joined(["a", "b", "c"], "or")
    'a, b or c'
    """
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} {last} {phrases[-1]}"


def legible(name: Any) -> str:
    """Return a name or a value as text, quoted if it is blank or has characters that do not print.

    Examples
    --------
    >>> from voicecf.output.wording import legible
    >>> legible("age"), legible(" ")
    ('age', "' '")
    """
    text = str(name)
    return text if text.strip() and text.isprintable() else repr(text)
