"""Colours, markers and sizes of all pictures: one place, light and dark.

The seven colours differ in lightness, too, so that they stay apart in grey and for colour-blind
eyes. Clusters beyond the seventh take them again with other markers: no two of the first 77 share
both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from voicecf.errors import OptionError

MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "h")


@dataclass(frozen=True)
class Theme:
    """How a picture looks; colours are ``#rrggbb``.

    Attributes
    ----------
    name : str
    paper, ink, faint, rule : str
        Background, text and lines, text of less weight, tracks and frames.
    palette : tuple of str
        Colours of the clusters.
    low, high : str
        Ends of the scale that a table of numbers is coloured with.
    accent : str
        Bars and what stands for itself.
    title, text, small : float
        Sizes of type, in points.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from voicecf.plots import LIGHT
    >>> replace(LIGHT, accent="#aa3377").accent
    '#aa3377'
    """

    name: str
    paper: str
    ink: str
    faint: str
    rule: str
    palette: tuple[str, ...]
    low: str
    high: str
    accent: str
    title: float = 11.5
    text: float = 9.5
    small: float = 8.0

    def color(self, cluster: int) -> str:
        """Return the colour of a cluster."""
        return self.palette[cluster % len(self.palette)]

    def marker(self, cluster: int) -> str:
        """Return the marker of a cluster."""
        return MARKERS[cluster % len(MARKERS)]

    def tint(self, color: str, share: float) -> str:
        """Return a colour thinned with the background."""
        return mixed(self.paper, color, share)


def mixed(first: str, second: str, share: float) -> str:
    """Return a colour between two others.

    Examples
    --------
    >>> from voicecf.plots.theme import mixed
    >>> mixed("#000000", "#ffffff", 0.5)
    '#808080'
    """
    ends = [[int(color[i : i + 2], 16) for i in (1, 3, 5)] for color in (first, second)]
    parts = (round(a + share * (b - a)) for a, b in zip(*ends, strict=True))
    return "#" + "".join(f"{part:02x}" for part in parts)


def is_dark(color: str) -> bool:
    """Tell whether light text is easier to read on a colour than dark text."""
    red, green, blue = ((int(color[i : i + 2], 16) / 255) ** 2.2 for i in (1, 3, 5))
    return bool(0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.2)


LIGHT = Theme(
    "light", "#ffffff", "#1d2329", "#5b6670", "#d5dade",
    ("#1b5e9b", "#e0980c", "#2f9e80", "#7a1e5a", "#92d2f5", "#c8553d", "#f6e491"),
    "#f1f5f9", "#134a7c", "#1b5e9b",
)  # fmt: skip
DARK = Theme(
    "dark", "#14181d", "#eceff2", "#a3adb7", "#3a434c",
    ("#3b7dc6", "#f2b134", "#35b791", "#8f4589", "#a6dffb", "#e2674c", "#faefb8"),
    "#1d252d", "#9fd0f5", "#6db1ee",
)  # fmt: skip
THEMES = {theme.name: theme for theme in (LIGHT, DARK)}


def theme_of(theme: Any) -> Theme:
    """Return a theme by its name, or itself."""
    if isinstance(theme, Theme):
        return theme
    if theme not in THEMES:
        raise OptionError(f'theme={theme!r} is not known; use "light", "dark" or a Theme.')
    return THEMES[theme]
