"""How the app looks, in one place: colours, the theme, and the style of our own blocks."""

from __future__ import annotations

from pathlib import Path

from voicecf.plots.markup import STYLE as CARD

# Told apart by all eyes, on white and on near-black; neighbours in the list differ most.
COLOURS = (
    "#3b7dc4", "#e0873a", "#2a9d83", "#c4579a", "#8a8f2c", "#7a6bd0",
    "#d1495b", "#3aa6c9", "#9c6b3f", "#6a8f3f", "#b07cc6", "#7f8790",
)  # fmt: skip
QUIET = "#8b949e"
ACCENT = "#2f6fb3"

# Streamlit's own theme, for light and dark; the reader's system chooses.
THEME: dict[str, str | tuple[str, ...]] = {
    "theme.light.primaryColor": ACCENT,
    "theme.light.backgroundColor": "#ffffff",
    "theme.light.secondaryBackgroundColor": "#f5f7f9",
    "theme.light.textColor": "#1d2730",
    "theme.light.borderColor": "#dfe4e9",
    "theme.dark.primaryColor": "#3d82c9",
    "theme.dark.backgroundColor": "#12171c",
    "theme.dark.secondaryBackgroundColor": "#1b2229",
    "theme.dark.textColor": "#e6ebf0",
    "theme.dark.borderColor": "#313b45",
    "theme.baseRadius": "8px",
    "theme.showWidgetBorder": "true",
}

_HERE = Path(__file__).parent
BLOCKS = CARD + _HERE.joinpath("blocks.css").read_text(encoding="utf-8")
BLOCKS += _HERE.joinpath("segments", "segments.css").read_text(encoding="utf-8")
BLOCKS += _HERE.joinpath("row", "row.css").read_text(encoding="utf-8")
BLOCKS += _HERE.joinpath("campaign", "campaign.css").read_text(encoding="utf-8")
PAGE = _HERE.joinpath("page.css").read_text(encoding="utf-8")
REPORT = _HERE.joinpath("report.css").read_text(encoding="utf-8")


def colour(segment: int) -> str:
    """Return the colour of a segment."""
    return COLOURS[segment % len(COLOURS)]
