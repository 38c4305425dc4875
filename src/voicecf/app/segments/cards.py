"""Segments as HTML, for pages and reports."""

from __future__ import annotations

from html import escape

from voicecf.app.segments.segments import Profile
from voicecf.app.style import colour
from voicecf.app.words import percent
from voicecf.output.wording import counted, shortened

# Columns of which a card tells what is typical.
TRAITS = 4


def profile_card(profile: Profile, segment: int) -> str:
    """Write what is typical of a segment."""
    share = f'<div class="v-share"><i style="width:{100 * profile.share:.1f}%"></i></div>'
    size = f"{counted(profile.size, 'row')}, {percent(profile.share)}"
    lines = "".join(
        f"<span>{escape(shortened(trait.column, 34))}</span>"
        f'<span class="v-val">{escape(shortened(trait.typical, 28))}</span>'
        f'<span class="v-all">{escape(trait.direction)}; all rows: {escape(trait.overall)}</span>'
        for trait in profile.traits[:TRAITS]
    )
    return (
        f'<div style="--c:{colour(segment)}"><span class="v-soft">{size}</span>{share}'
        f'<div class="v-traits">{lines}</div></div>'
    )
