"""The drawing of a card: columns of text and a track a line, measured so that nothing overlaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.plots.display import fit, wrapped, write
from voicecf.plots.theme import Theme, mixed
from voicecf.plots.words import ARROW, counted, legible, number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from voicecf.plots.card import Change, ChangeCard

# Inches: of a whole card, of what is above and below its lines, of a line.
WIDTH, HEADER, FOOTER, ROW = 9.6, 1.1, 0.35, 0.44
# Where the columns of a card start and end, as shares of its width.
NAME, TRACK, CHANGE, RANGE = (0.02, 0.235), (0.305, 0.56), (0.645, 0.79), (0.805, 0.985)
# How wide the numbers at the ends of a track may be.
END = 0.058


class Sheet:
    """An axes measured in shares of its width and in inches of its height, from the top."""

    def __init__(self, card: ChangeCard, ax: Axes, style: Theme) -> None:
        self.card, self.ax, self.style = card, ax, style
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
        faint = how.pop("faint", False)
        if faint:
            how = {"color": self.style.faint, "fontsize": self.style.small, **how}
        x = span[1] if how.get("ha") == "right" else span[0]
        made = write(self.ax, x, y, text, self.style, **how)
        return fit(made, (span[1] - span[0]) * self.width)

    def _heading(self) -> float:
        style, room = self.style, 0.96 * self.width
        y = 0.3
        for line in wrapped(self.ax, self.card.title, style.title * 1.08, room):
            write(self.ax, 0.02, y, line, style, fontsize=style.title, fontweight="bold")
            y += style.title * 1.4 / 72
        if self.card.subtitle:
            self._write((0.02, 0.985), y, self.card.subtitle, faint=True)
            y += 0.2
        return y

    def _paragraph(self, text: str, y: float) -> None:
        for line in wrapped(self.ax, text, self.style.text, 0.96 * self.width):
            write(self.ax, 0.02, y, line, self.style, color=self.style.faint)
            y += self.style.text * 1.5 / 72

    def _captions(self, y: float) -> None:
        track = (TRACK[0] - END, TRACK[1] + END)
        for span, text in (
            (NAME, "column"), (track, "within its observed range"), (CHANGE, "change"),
            (RANGE, "holds in the target from, to"),
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
            told = f"or {legible(levels)}" if levels else "no other level would do"
            self._write(RANGE, y, told, faint=True)
        self._write(CHANGE, y, f"{before} {ARROW} {after}", fontweight="bold")
        if at:
            self.ax.plot(
                [0.02, 0.985], [y - ROW / 2] * 2, color=style.tint(style.rule, 0.45), lw=0.6
            )

    def _range(self, change: Change, y: float) -> None:
        """Write between what a column may lie, and what binds there."""
        if np.isnan(change.low):
            return
        digits = _digits(change.low, change.high)
        low, high = number(change.low, digits), number(change.high, digits)
        half = (RANGE[0] + RANGE[1]) / 2
        for span, value, end, binds in (
            ((RANGE[0], half - 0.005), low, change.low, change.binds_low),
            ((half, RANGE[1]), high, change.high, change.binds_high),
        ):
            open_ = np.isinf(end)
            self._write(span, y - 0.075, "any" if open_ else value)
            self._write(span, y + 0.09, "open" if open_ else binds, faint=True, fontsize=7.0)

    def _track(self, change: Change, y: float) -> None:
        """Draw range, tolerance and both values on a line of their own scale."""
        style, ax = self.style, self.ax
        low, high = track_ends(change)
        known = np.isfinite(change.observed)

        def place(value: float) -> float:
            share = (np.clip(value, low, high) - low) / (high - low)
            return float(TRACK[0] + share * (TRACK[1] - TRACK[0]))

        ax.plot(TRACK, [y, y], color=style.rule, lw=2.2, solid_capstyle="round", zorder=1)
        color = style.color(self.card.target)
        if not np.isnan(change.low):
            band = [place(change.low), place(change.high)]
            tone = style.tint(color, 0.42)
            ax.plot(band, [y, y], color=tone, lw=8, solid_capstyle="butt", zorder=2)
            edges = zip(band, (change.low, change.high), strict=True)
            for end in (end for end, value in edges if np.isfinite(value)):
                ax.plot(
                    [end, end],
                    [y - 0.075, y + 0.075],
                    color=mixed(color, style.ink, 0.3),
                    lw=1.4,
                    zorder=3,
                )
        start, end = (
            place(change.before) if change.before == change.before else None,
            place(change.after),
        )
        if start is not None:
            ax.plot([start, end], [y, y], color=style.ink, lw=1.3, zorder=4)
            mark = style.marker(self.card.source)
            ax.plot(start, y, mark, ms=6.5, mfc=style.paper, mec=style.ink, mew=1.3, zorder=5)
        mark = style.marker(self.card.target)
        ax.plot(end, y, mark, ms=7.5, mfc=color, mec=style.ink, mew=1.2, zorder=6)
        for side, value, exists in zip((-1, 1), (low, high), known, strict=True):
            at = TRACK[0] - 0.012 if side < 0 else TRACK[1] + 0.012
            span = (at - END, at) if side < 0 else (at, at + END)
            text = number(value, 4) if exists else "open"
            self._write(span, y, text, faint=True, ha="right" if side < 0 else "left")

    def _key(self) -> None:
        """Explain the marks, once, below."""
        y, style, x = self.height - 0.2, self.style, 0.02
        card = self.card
        items: list[tuple[dict[str, Any], str]] = [
            ({"marker": style.marker(card.source), "mfc": style.paper, "mec": style.ink}, "before"),
            (
                {
                    "marker": style.marker(card.target),
                    "mfc": style.color(card.target),
                    "mec": style.ink,
                },
                "after",
            ),
            (
                {"marker": "s", "mfc": style.tint(style.color(card.target), 0.42), "mec": "none"},
                f"may lie here and stay in cluster {card.target}, the other columns held",
            ),
        ]
        if not any(change.is_number for change in card.changes):
            return
        for how, text in items:
            self.ax.plot(x + 0.006, y, ms=6.5, mew=1.2, ls="none", **how)
            made = self._write((x + 0.018, 0.985), y, text, faint=True)
            x += 0.018 + made.get_window_extent().width / self.width + 0.022


def _digits(low: float, high: float) -> int:
    """Return how many digits tell two numbers apart: four, or up to six."""
    size, apart = max(abs(low), abs(high)), abs(high - low)
    if not (np.isfinite(size) and apart > 1e-6 * size):
        return 4
    return max(4, min(6, 2 + int(np.ceil(np.log10(size / apart)))))


def track_ends(change: Change) -> tuple[float, float]:
    """Return the ends of a track: the observed range, widened where a value lies outside."""
    values = np.array([change.before, change.after, *change.observed], dtype=np.float64)
    if not np.isfinite(change.observed).all():
        values = np.append(values, [change.low, change.high])
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if not np.isfinite(change.observed).any():  # open on both sides: leave room to see that
        low, high = low - 0.2 * (high - low), high + 0.2 * (high - low)
    return (low, high) if high > low else (low - 1.0, high + 1.0)
