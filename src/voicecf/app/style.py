"""How the app looks, in one place: colours, the theme, and the style of our own blocks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from voicecf.plots import CARD_STYLE, DARK, LIGHT

# Told apart by all eyes, on white and on near-black; neighbours in the list differ most.
COLOURS = (
    "#3b7dc4", "#e0873a", "#2a9d83", "#c4579a", "#8a8f2c", "#7a6bd0",
    "#d1495b", "#3aa6c9", "#9c6b3f", "#6a8f3f", "#b07cc6", "#7f8790",
)  # fmt: skip
QUIET = "#8b949e"
ACCENT = "#2f6fb3"

# What pictures are drawn with: on light pages, on dark ones, and in the reader's own colours.
DAY, NIGHT = (replace(theme, palette=COLOURS) for theme in (LIGHT, DARK))
INHERITED = replace(DAY, ink="currentColor", paper="Canvas")

# Streamlit's own theme, for light and dark; the reader's system chooses.
THEME = {
    f"theme.{theme.name}.{key}": color
    for theme, primary in ((LIGHT, ACCENT), (DARK, "#3274b8"))
    for key, color in {
        "primaryColor": primary, "backgroundColor": theme.paper, "textColor": theme.ink,
        "secondaryBackgroundColor": theme.low, "borderColor": theme.rule,
    }.items()
} | {"theme.baseRadius": "8px", "theme.showWidgetBorder": "true"}  # fmt: skip

_HERE = Path(__file__).parent
BLOCKS = CARD_STYLE + _HERE.joinpath("blocks.css").read_text(encoding="utf-8")
BLOCKS += _HERE.joinpath("segments", "segments.css").read_text(encoding="utf-8")
BLOCKS += _HERE.joinpath("row", "row.css").read_text(encoding="utf-8")
BLOCKS += _HERE.joinpath("campaign", "campaign.css").read_text(encoding="utf-8")
PAGE = _HERE.joinpath("page.css").read_text(encoding="utf-8")
REPORT = _HERE.joinpath("report.css").read_text(encoding="utf-8")


def colour(segment: int) -> str:
    """Return the colour of a segment."""
    return COLOURS[segment % len(COLOURS)]
