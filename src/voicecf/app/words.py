"""Shares, and text that is shown as it is."""

from __future__ import annotations


def percent(share: float) -> str:
    """Write a share: '12 %', '0.3 %', 'under 0.1 %'."""
    if 0 < share < 0.001:
        return "under 0.1 %"
    if 0.999 < share < 1:
        return "over 99.9 %"
    digits = 1 if 0 < share < 0.0995 or 0.99 < share < 1 else 0
    text = f"{100 * share:.{digits}f}"
    return f"{text.removesuffix('.0')} %"


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
