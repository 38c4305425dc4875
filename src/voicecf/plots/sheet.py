"""The drawing of a card: columns of text and a track a line, measured so that nothing overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.plots.changes import HEADS, Change, TrackScale
from voicecf.plots.display import ROUNDING, fit, lay_out, width_of, wrapped, write
from voicecf.plots.theme import Theme, mixed
from voicecf.table.wording import counted, legible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voicecf.plots.card import ChangeCard

# Inches: of a whole card, of what is above and below its lines, of a line.
WIDTH, HEADER, FOOTER, ROW = 9.6, 1.25, 0.15, 0.5
# Where the columns of a card start and end, as shares of its width: name, values, change, track.
SPANS = (0.0, 0.235), (0.25, 0.46), (0.47, 0.57), (0.58, 1.0)
# Where tracks start and end, how wide the numbers at their ends may be, and how far from them.
TRACK, END, GAP = (0.65, 0.93), 0.058, 0.012
ARROW = "\N{RIGHTWARDS ARROW}"


class Sheet:
    """An axes measured in shares of its width and in inches of its height, from the top."""

    def __init__(self, card: ChangeCard, ax: Axes, style: Theme) -> None:
        self.card, self.ax, self.style = card, ax, style
        lay_out(ax)
        box = ax.get_window_extent()
        self.width = float(box.width)
        self.height = float(box.height / ax.figure.dpi)
        ax.set(xlim=(0, 1), ylim=(self.height, 0))

    def draw(self) -> None:
        """Draw title, note and changes: as many as there is room for, the costliest first."""
        style, card = self.style, self.card
        y = self._paragraph(card.title, 0.2, fontsize=style.title, fontweight="bold")
        y = self._paragraph(card.subtitle, y, color=style.faint, fontsize=style.small)
        y = self._paragraph(card.reason, y, color=style.faint, fontsize=style.text)
        if not card.changes:
            return
        for head, span in zip(HEADS, SPANS, strict=True):
            self._write(span, y + 0.1, head, faint=True)
        self._rule(y + 0.23, style.rule)
        y += 0.25
        room = int((self.height - y - FOOTER) / ROW)
        shown = card.changes if len(card.changes) <= room else card.changes[: max(room - 1, 1)]
        for at, change in enumerate(shown):
            self._line(change, y + ROW * (at + 0.5))
            self._rule(y + ROW * (at + 1), style.tint(style.rule, 0.45))
        rest = len(card.changes) - len(shown)
        if rest:
            below = y + ROW * (len(shown) + 0.3)
            self._write(SPANS[0], below, f"and {counted(rest, 'smaller change')}", faint=True)

    def _write(self, span: tuple[float, float], y: float, text: str, **how: Any) -> None:
        """Write text into a column, shortened if need be."""
        faint, smallest = how.pop("faint", False), how.pop("smallest", 0.0)
        if faint:
            how = {"color": self.style.faint, "fontsize": self.style.small, **how}
        x = span[1] if how.get("ha") == "right" else span[0]
        made = write(self.ax, x, y, text, self.style, **how)
        room = (span[1] - span[0]) * self.width
        # A number in part would be another number: it is written smaller instead.
        if smallest and width_of(made) > ROUNDING * room:
            size = float(made.get_fontsize())
            made.set_fontsize(max(smallest, ROUNDING**2 * size * room / width_of(made)))
        fit(made, room)

    def _paragraph(self, text: str, y: float, fontsize: float, **how: Any) -> float:
        """Write text over the whole width, and return where the next line goes."""
        weight = how.get("fontweight", "normal")
        for line in wrapped(self.ax, text, fontsize, self.width, weight) if text else ():
            write(self.ax, 0, y, line, self.style, fontsize=fontsize, **how)
            y += fontsize * 1.5 / 72
        return y

    def _rule(self, y: float, color: str) -> None:
        self.ax.plot([0, 1], [y, y], color=color, lw=0.7)

    def _line(self, change: Change, y: float) -> None:
        name, values, delta, where = SPANS
        before, after = change.shown
        self._write(name, y, legible(change.column))
        self._write(values, y, f"{before} {ARROW} {after}", fontweight="bold", smallest=6.0)
        self._write(delta, y, change.delta, smallest=6.0)
        if change.is_number:
            self._track(change, y - 0.09)
        below = 0.12 if change.is_number else 0.0
        self._write(where, y + below, change.range_text, faint=True, smallest=6.0)

    def _track(self, change: Change, y: float) -> None:
        """Draw range, tolerance and both values on a line of their own scale."""
        style, color = self.style, self.style.color(self.card.target)
        scale = TrackScale.of(change)

        def bar(ends: tuple[float, float], **how: Any) -> None:
            self.ax.plot([_across(scale, end) for end in ends], [y, y], **how)

        def mark(value: float, cluster: int, fill: str) -> None:
            how: dict[str, Any] = {"ms": 7, "mfc": fill, "mec": style.ink, "mew": 1.2, "zorder": 5}
            self.ax.plot(_across(scale, value), y, style.marker(cluster), **how)

        bar(change.observed, color=style.rule, lw=2.2, solid_capstyle="round", zorder=1)
        if not np.isnan(change.low):  # closed where something binds
            tone, edge = style.tint(color, 0.42), mixed(color, style.ink, 0.3)
            bar((change.low, change.high), color=tone, lw=8, solid_capstyle="butt", zorder=2)
            for end in filter(np.isfinite, (change.low, change.high)):
                at = _across(scale, end)
                self.ax.plot([at, at], [y - 0.075, y + 0.075], color=edge, lw=1.4, zorder=3)
        if not np.isnan(change.before):
            bar((change.before, change.after), color=style.ink, lw=1.3, zorder=4)
            mark(change.before, self.card.source, style.paper)
        mark(change.after, self.card.target, color)
        left, right = TRACK[0] - GAP, TRACK[1] + GAP
        spans = ((left - END, left), "right"), ((right, right + END), "left")
        for (span, side), text in zip(spans, change.observed_texts, strict=True):
            self._write(span, y, text, faint=True, ha=side, smallest=5.5)


def _across(scale: TrackScale, value: float) -> float:
    """Return where a value is on the sheet, as a share of its width."""
    return TRACK[0] + scale.place(value) * (TRACK[1] - TRACK[0])
