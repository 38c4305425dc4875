"""Segments as HTML, for pages and reports. Whatever comes from the data is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from voicecf.app import blocks
from voicecf.app.segments.profiles import Profile, Trait
from voicecf.app.style import colour
from voicecf.app.words import percent
from voicecf.output import shortened

# Traits that a card tells, and how many spreads from the average one has to be.
TRAITS, NOTABLE = 4, 0.1
# Spreads that a bar has room for.
FULL = 2.0


def profile_card(profile: Profile, segment: int, full: float = FULL, things: str = "rows") -> str:
    """Write what sets a segment apart; `full` is the largest strength that a bar has to show."""
    share = f'<div class="v-share"><i style="width:{100 * profile.share:.1f}%"></i></div>'
    size = f"{profile.size:,} {things}, {percent(profile.share)}"
    shown = [t for t in profile.traits[:TRAITS] if abs(t.strength) >= NOTABLE]
    lines = "".join(_trait(trait, full) for trait in shown)
    if not shown:
        lines = blocks.paragraph("About average in every column." if profile.size else "No rows.")
    return (
        f'<div style="--c:{colour(segment)}"><span class="v-soft">{size}</span>{share}'
        f'<div class="v-traits">{lines}</div></div>'
    )


def fullest(profiles: Sequence[Profile]) -> float:
    """Return the largest strength that cards show, so that bars compare between cards."""
    shown = [abs(t.strength) for profile in profiles for t in profile.traits[:TRAITS]]
    return max(shown, default=FULL) or FULL


def _trait(trait: Trait, full: float) -> str:
    half = 50 * min(abs(trait.strength) / full, 1.0)
    left = 50 - half * (trait.strength < 0)
    side = "above" if trait.strength > 0 else "below"
    said = f"{abs(trait.strength):.1f} spreads {side} the average"
    return (
        f'<div class="v-trait"><span>{escape(shortened(trait.feature.title, 44))}</span>'
        f'<span class="v-val">{escape(trait.text)}</span>'
        f'<span class="v-off" role="img" title="{said}" aria-label="{said}">'
        f'<i style="left:{left:.1f}%;width:{half:.1f}%"></i></span></div>'
    )


def edges(k: int) -> str:
    """Write the style that gives each segment's card its colour."""
    lines = (
        f".st-key-segment-{t}{{border-left:5px solid {colour(t)}!important}}" for t in range(k)
    )
    return f"<style>{''.join(lines)}</style>"
