"""Numbers as sentences print them: every digit that counts, and none that does not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

# Sizes between which a number is written without an exponent.
SMALL, LARGE = 1e-6, 1e16


def exact(value: Any, thousands: bool = False) -> str:
    """Write a number with all of its digits and no more: typed in, it is the same number.

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
    """Write phrases as one: a, b and c."""
    if len(phrases) < 2:
        return "".join(phrases)
    return f"{', '.join(phrases[:-1])} {last} {phrases[-1]}"
