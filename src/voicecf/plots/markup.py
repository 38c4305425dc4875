"""What an answer changes as HTML, for notebooks, the app and its reports.

Whatever comes from the data is escaped here. Colours are those of the text around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files

import numpy as np

from voicecf.plots.changes import HEADS, Change
from voicecf.table.wording import legible, shortened

CARD_STYLE = files(__package__).joinpath("card.css").read_text(encoding="utf-8")
# Classes of the columns of a card.
KINDS = ("v-name", "v-num", "v-num v-by", "v-where")


def changes_html(changes: Sequence[Change], color: str) -> str:
    """Write what an answer changes, a line a column; `CARD_STYLE` is the style that it needs.

    Parameters
    ----------
    changes : sequence of Change
    color : str
        That of the target.

    Examples
    --------
    >>> from voicecf.plots.changes import Change
    >>> from voicecf.plots.markup import changes_html
    >>> html = changes_html([Change("<age>", 1.0, 2.5, (0.0, 4.0))], "#1b5e9b")
    >>> "&lt;age&gt;" in html, "+1.5" in html
    (True, True)
    """
    heads = zip(HEADS, KINDS, strict=True)
    head = "".join(f'<div class="v-h {kind}">{text}</div>' for text, kind in heads)
    lines = "".join(map(_line, changes))
    return f'<div class="v-changes" style="--c:{color}">{head}{lines}</div>'


def _line(change: Change) -> str:
    before, after = (escape(shortened(text, 40)) for text in change.shown)
    where = _track(change) if change.is_number else ""
    if change.range_text:
        where += f'<div class="v-reach">{escape(change.range_text)}</div>'
    name = escape(legible(change.column, 60))
    values = f'{before} <span class="v-soft">to</span> <b>{after}</b>'
    cells = zip(KINDS, (name, values, escape(change.delta), where), strict=True)
    return "".join(f'<div class="{kind}">{cell}</div>' for kind, cell in cells)


def _track(change: Change) -> str:
    """Draw range, tolerance and both values on a line, below the shape of all rows."""
    low, high = change.observed
    marks = f"<i{_span(change, low, high)}></i>"
    if not np.isnan(change.low):
        marks += f"<q{_span(change, change.low, change.high)}></q>"
    if not np.isnan(change.before):
        way = sorted((change.before, change.after))
        marks += f"<u{_span(change, *way)}></u><s{_span(change, change.before)}></s>"
    low_text, high_text = change.observed_texts
    texts = (low_text, *(["log scale"] if change.ticks else []), high_text)
    ends = "".join(f"<span>{escape(text)}</span>" for text in texts)
    # Whatever is not empty is seen.
    bars = "".join(f'<b style="height:{max(100 * h, 4 * (h > 0)):.0f}%"></b>' for h in change.shape)
    return (
        f'<div class="v-track"><div class="v-shape"{_span(change, low, high)}>{bars}</div>'
        f'<div class="v-line">{marks}<em{_span(change, change.after)}></em></div>'
        f'<div class="v-ends">{ends}</div></div>'
    )


def _span(change: Change, low: float, high: float | None = None) -> str:
    """Return the style that puts a mark at a value, or from one to another."""
    left = 100 * change.place(low)
    width = "" if high is None else f";width:{100 * change.place(high) - left:.1f}%"
    return f' style="left:{left:.1f}%{width}"'
