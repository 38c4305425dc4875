"""What an answer changes as HTML, for notebooks, the app and its reports.

Whatever comes from the data is escaped here. Colours are those of the text around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files

import numpy as np

from voicecf.output.wording import legible, shortened
from voicecf.plots.changes import Change, TrackScale

STYLE = files(__package__).joinpath("card.css").read_text(encoding="utf-8")
HEADS = {"Column": "", "From and to": "", "Change": " v-by", "Within what was seen": " v-where"}
# What ends a range, where it is no cluster.
LIMITS = {
    "data range": "none seen beyond", "bound": "as limited", "open": "without end",
    "rule": "by a rule", "step": "by a step", "": "",
}  # fmt: skip


def changes_html(
    changes: Sequence[Change], color: str, shapes: Mapping[str, Sequence[float]] | None = None
) -> str:
    """Write what an answer changes, a line a column; `STYLE` is the style that it needs.

    Parameters
    ----------
    changes : sequence of Change
    color : str
        That of the target.
    shapes : mapping, optional
        By column, how many rows there are along its observed range: heights of bars, 0 to 1.

    Examples
    --------
    >>> from voicecf.plots.changes import Change
    >>> from voicecf.plots.markup import changes_html
    >>> written = changes_html([Change("<age>", 1.0, 2.5, (0.0, 4.0))], "#1b5e9b")
    >>> "&lt;age&gt;" in written, "+1.5" in written
    (True, True)
    """
    head = "".join(f'<div class="v-h{kind}">{text}</div>' for text, kind in HEADS.items())
    lines = "".join(_line(change, (shapes or {}).get(change.column, ())) for change in changes)
    return f'<div class="v-changes" style="--c:{color}">{head}{lines}</div>'


def _line(change: Change, shape: Sequence[float]) -> str:
    before, after = (escape(shortened(text, 40)) for text in change.texts)
    where = f"{_track(change, shape) if change.is_number else ''}{_range(change)}"
    return (
        f'<div class="v-name">{escape(legible(change.column, 60))}</div>'
        f'<div class="v-num">{before} <span class="v-soft">to</span> <b>{after}</b></div>'
        f'<div class="v-num v-by">{change.delta}</div><div class="v-where">{where}</div>'
    )


def _track(change: Change, shape: Sequence[float]) -> str:
    """Draw range, tolerance and both values on a line, below the shape of all rows."""
    scale = TrackScale.of(change)
    low, high = change.observed
    marks = f"<i{_span(scale, low, high)}></i>"
    if not np.isnan(change.low):
        marks += f"<q{_span(scale, change.low, change.high)}></q>"
    if not np.isnan(change.before):
        ends = sorted((change.before, change.after))
        marks += f"<u{_span(scale, *ends)}></u><s{_span(scale, change.before)}></s>"
    # Whatever is not empty is seen.
    bars = "".join(f'<b style="height:{max(100 * h, 4 * (h > 0)):.0f}%"></b>' for h in shape)
    texts = (change.written(end, 4) if np.isfinite(end) else "open" for end in (low, high))
    return (
        f'<div class="v-track"><div class="v-shape"{_span(scale, low, high)}>{bars}</div>'
        f'<div class="v-line">{marks}<em{_span(scale, change.after)}></em></div>'
        f'<div class="v-ends">{"".join(f"<span>{text}</span>" for text in texts)}</div></div>'
    )


def _span(scale: TrackScale, low: float, high: float | None = None) -> str:
    """Return the style that puts a mark at a value, or from one to another."""
    left = 100 * scale.place(low)
    width = "" if high is None else f";width:{100 * scale.place(high) - left:.1f}%"
    return f' style="left:{left:.1f}%{width}"'


def _range(change: Change) -> str:
    """Say between which values the column may lie, or which other levels would do."""
    if not change.is_number:
        text = f"or {legible(change.other_levels)}" if change.other_levels else ""
    elif np.isnan(change.low):
        text = ""
    else:
        ends = (change.low, change.binds_low), (change.high, change.binds_high)
        sides = [f"{change.written(end)} ({_limit(binds)})" for end, binds in ends]
        text = f"may be {sides[0]} to {sides[1]}"
    return f'<div class="v-reach">{escape(text)}</div>' if text else ""


def _limit(binds: str) -> str:
    return LIMITS.get(binds, f"then “{binds}”")
