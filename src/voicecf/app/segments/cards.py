"""Segments as HTML, for pages and reports. Whatever comes from the data is escaped here."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from voicecf.app import blocks
from voicecf.app.segments.profiles import Contrast, Profile, Trait, Written
from voicecf.app.style import ACCENT, colour
from voicecf.app.words import percent
from voicecf.output import counted, shortened

# Traits that a card tells, and how many spreads from the average one has to be.
TRAITS, NOTABLE = 4, 0.1
# Spreads that a bar has room for, and that a cell of the overview is darkest at.
FULL = 2.0
# Lines of the overview.
LINES = 18
BELOW = "#d08a2e"


def profile_card(profile: Profile, segment: int, full: float = FULL) -> str:
    """Write what sets a segment apart; `full` is the largest strength that a bar has to show."""
    share = f'<div class="v-share"><i style="width:{100 * profile.share:.1f}%"></i></div>'
    size = f"{counted(profile.size, 'row')}, {percent(profile.share)}"
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


def overview(found: Contrast, names: Sequence[str], written: Written) -> str:
    """Draw all segments at once: a line a column or level, shaded by how far from the average."""
    order = np.argsort(-np.abs(found.strengths).max(axis=1), kind="stable")[:LINES]
    head = "".join(f"<th>{blocks.named(name, t)}</th>" for t, name in enumerate(names))
    lines = "".join(_line(found, i, written) for i in sorted(order.tolist()))
    left = len(found.features) - len(order)
    more = f" The {LINES} that differ most; all are under “All columns”." if left > 0 else ""
    return (
        f'<div class="v-heat"><h3>All segments at a glance</h3><div class="v-scroll"><table>'
        f"<tr><th></th>{head}<th>All rows</th></tr>{lines}</table></div>"
        + blocks.paragraph(
            "Averages, and shares of rows. Blue is above the average of all rows, orange below; "
            f"the stronger, the further.{more}"
        )
        + "</div>"
    )


def _line(found: Contrast, i: int, written: Written) -> str:
    feature = found.features[i]
    cells = "".join(
        _cell(far, feature.written(mean, written))
        for far, mean in zip(found.strengths[i], found.means[i], strict=True)
    )
    title = escape(shortened(feature.title, 40))
    return f"<tr><th>{title}</th>{cells}<td>{feature.written(found.overall[i], written)}</td></tr>"


def _cell(strength: float, text: str) -> str:
    tint = ACCENT if strength > 0 else BELOW
    return blocks.shaded_cell(escape(text), 62 * min(abs(strength) / FULL, 1.0), tint)


def by_segment(found: Contrast, i: int, names: Sequence[str], written: Written) -> str:
    """Draw one feature of the columns set aside: a bar a segment, a mark at all rows."""
    feature, overall = found.features[i], float(found.overall[i])
    values = [*np.nan_to_num(found.means[i]).tolist(), overall, 0.0]
    low, high = min(values), max(values)
    span = (high - low) or 1.0
    lines = []
    for t, (name, mean) in enumerate(zip(names, found.means[i].tolist(), strict=True)):
        value = 0.0 if np.isnan(mean) else mean
        left, right = (100 * (end - low) / span for end in (min(value, 0.0), max(value, 0.0)))
        lines.append(
            f"<span>{blocks.named(name, t)}</span>"
            f'<span class="v-bar" style="--c:{colour(t)}">'
            f'<i style="margin-left:{left:.1f}%;width:{right - left:.1f}%"></i>'
            f'<u style="left:{100 * (overall - low) / span:.1f}%"></u></span>'
            f'<span class="v-val">{escape(feature.written(mean, written))}</span>'
        )
    said = f"{'average, ' if feature.level is None else ''}all rows: "
    return (
        f'<div class="v-aside"><b>{escape(shortened(feature.title, 60))}</b> '
        f'<span class="v-soft">{said}{escape(feature.written(overall, written))}</span>'
        f'<div class="v-bars">{"".join(lines)}</div></div>'
    )
