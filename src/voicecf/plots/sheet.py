"""The drawing of a card: columns of text and a track a line, measured so that nothing overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.output.wording import counted, legible
from voicecf.plots.changes import Change, TrackScale
from voicecf.plots.display import fit, lay_out, width_of, wrapped, write
from voicecf.plots.theme import Theme, mixed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voicecf.plots.card import ChangeCard

# Inches: of a whole card, of what is above and below its lines, of a line.
WIDTH, HEADER, FOOTER, ROW = 9.6, 1.3, 0.35, 0.44
# Where the columns of a card start and end, as shares of its width.
NAME, TRACK, CHANGE, RANGE = (0.02, 0.235), (0.305, 0.53), (0.61, 0.792), (0.805, 0.985)
# How wide the numbers at the ends of a track may be, and how far from it.
END, GAP = 0.058, 0.012
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
        """Draw everything."""
        y = self._heading()
        if not self.card.changes:
            self._paragraph(self.card.reason, y)
            return
        room = int((self.height - y - FOOTER - 0.2) / ROW)
        changes = self.card.changes
        shown = changes if len(changes) <= room else changes[: max(room - 1, 1)]
        self._captions(y + 0.1)
        for at, change in enumerate(shown):
            self._line(change, y + 0.25 + ROW * (at + 0.5), at)
        rest = len(changes) - len(shown)
        if rest:
            below = y + 0.25 + ROW * (len(shown) + 0.3)
            self._write(NAME, below, f"and {counted(rest, 'smaller change')}", faint=True)
        self._key()

    def _write(self, span: tuple[float, float], y: float, text: str, **how: Any) -> Any:
        """Write text into a column, shortened if need be."""
        faint, smallest = how.pop("faint", False), how.pop("smallest", 0.0)
        if faint:
            how = {"color": self.style.faint, "fontsize": self.style.small, **how}
        x = span[1] if how.get("ha") == "right" else span[0]
        made = write(self.ax, x, y, text, self.style, **how)
        room = (span[1] - span[0]) * self.width
        if smallest and width_of(made) > room:  # a number in part would be another number
            size = float(made.get_fontsize())
            made.set_fontsize(max(smallest, 0.98 * size * room / width_of(made)))
        return fit(made, room)

    def _heading(self) -> float:
        style, room = self.style, 0.96 * self.width
        y = 0.2
        for line in wrapped(self.ax, self.card.title, style.title, room, "bold"):
            write(self.ax, 0.02, y, line, style, fontsize=style.title, fontweight="bold")
            y += style.title * 1.4 / 72
        if self.card.subtitle:
            self._write((0.02, 0.985), y, self.card.subtitle, faint=True)
            y += 0.2
        return y

    def _paragraph(self, text: str, y: float) -> None:
        for line in wrapped(self.ax, text, self.style.text, 0.97 * self.width):
            write(self.ax, 0.02, y, line, self.style, color=self.style.faint)
            y += self.style.text * 1.5 / 72

    def _captions(self, y: float) -> None:
        track = (TRACK[0] - END, TRACK[1] + END)
        for span, text in (
            (NAME, "column"), (track, "within its observed range"), (CHANGE, "change"),
            (RANGE, f"stays in {self.card.target_name} from, to"),
        ):  # fmt: skip
            self._write(span, y, text, faint=True)
        self.ax.plot([0.02, 0.985], [y + 0.13] * 2, color=self.style.rule, lw=0.8)

    def _line(self, change: Change, y: float, at: int) -> None:
        style = self.style
        self._write(NAME, y, legible(change.column))
        before, after = change.texts
        if change.is_number:
            self._track(change, y)
            self._range(change, y)
        else:
            levels = change.other_levels
            self._write((TRACK[0] - END, TRACK[1] + END), y, "a category", faint=True)
            others = f"or {legible(levels)}" if levels else "no other level would do"
            self._write(RANGE, y, others, faint=True)
        self._write(CHANGE, y, f"{before} {ARROW} {after}", fontweight="bold", smallest=6.0)
        if at:
            self.ax.plot(
                [0.02, 0.985], [y - ROW / 2] * 2, color=style.tint(style.rule, 0.45), lw=0.6
            )

    def _range(self, change: Change, y: float) -> None:
        """Write between what a column may lie, and what binds there."""
        if np.isnan(change.low):
            return
        low, high = change.written(change.low), change.written(change.high)
        half = (RANGE[0] + RANGE[1]) / 2
        for span, value, end, binds in (
            ((RANGE[0], half - 0.005), low, change.low, change.binds_low),
            ((half, RANGE[1]), high, change.high, change.binds_high),
        ):
            open_ = np.isinf(end)
            self._write(span, y - 0.075, "any" if open_ else value, smallest=6.0)
            self._write(span, y + 0.09, "open" if open_ else binds, faint=True, fontsize=7.0)

    def _track(self, change: Change, y: float) -> None:
        """Draw range, tolerance and both values on a line of their own scale."""
        style, color = self.style, self.style.color(self.card.target)
        scale = TrackScale.of(change)
        seen = [_across(scale, value) for value in change.observed]
        self.ax.plot(seen, [y, y], color=style.rule, lw=2.2, solid_capstyle="round", zorder=1)
        self._band(change, scale, y)
        end = _across(scale, change.after)
        if not np.isnan(change.before):
            start = _across(scale, change.before)
            self.ax.plot([start, end], [y, y], color=style.ink, lw=1.3, zorder=4)
            self._mark(start, y, self.card.source, style.paper)
        self._mark(end, y, self.card.target, color)
        left, right = TRACK[0] - GAP, TRACK[1] + GAP
        for span, value, side in (
            ((left - END, left), change.observed[0], "right"),
            ((right, right + END), change.observed[1], "left"),
        ):
            text = change.written(value, 4) if np.isfinite(value) else "open"
            self._write(span, y, text, faint=True, ha=side, smallest=5.5)

    def _band(self, change: Change, scale: TrackScale, y: float) -> None:
        """Draw where the column may lie, closed where something binds."""
        if np.isnan(change.low):
            return
        style, color = self.style, self.style.color(self.card.target)
        ends = [_across(scale, value) for value in (change.low, change.high)]
        tone, edge = style.tint(color, 0.42), mixed(color, style.ink, 0.3)
        self.ax.plot(ends, [y, y], color=tone, lw=8, solid_capstyle="butt", zorder=2)
        for end, value in zip(ends, (change.low, change.high), strict=True):
            if np.isfinite(value):
                self.ax.plot([end, end], [y - 0.075, y + 0.075], color=edge, lw=1.4, zorder=3)

    def _mark(self, x: float, y: float, cluster: int, fill: str) -> None:
        mark, ink = self.style.marker(cluster), self.style.ink
        self.ax.plot(x, y, mark, ms=7, mfc=fill, mec=ink, mew=1.2, zorder=5)

    def _key(self) -> None:
        """Explain the marks, once, below."""
        if not any(change.is_number for change in self.card.changes):
            return
        y, style, x = self.height - 0.2, self.style, 0.02
        source, target = self.card.source, self.card.target
        color = style.color(target)
        held = f"may lie here and stay in {self.card.target_name}, the other columns held"
        for marker, fill, edge, text in (
            (style.marker(source), style.paper, style.ink, "before"),
            (style.marker(target), color, style.ink, "after"),
            ("s", style.tint(color, 0.42), "none", held),
        ):
            self.ax.plot(x + 0.006, y, marker, ms=6.5, mew=1.2, mfc=fill, mec=edge)
            made = self._write((x + 0.018, 0.985), y, text, faint=True)
            x += 0.018 + width_of(made) / self.width + 0.022


def _across(scale: TrackScale, value: float) -> float:
    """Return where a value is on the sheet, as a share of its width."""
    return TRACK[0] + scale.place(value) * (TRACK[1] - TRACK[0])
