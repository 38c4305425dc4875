"""A bar on stderr: share, rows a second, time left. Nothing where there is no terminal."""

from __future__ import annotations

import shutil
import sys
from time import perf_counter
from typing import TextIO

__all__ = ["Bar"]

WIDTH = 24
# Seconds between two drawings.
PAUSE = 0.1


class Bar:
    """Tells how far a run is.

    Parameters
    ----------
    stream : text file
        Where to; stderr by default.
    quiet : bool
        Whether to say nothing, even to a terminal.
    """

    def __init__(self, stream: TextIO | None = None, quiet: bool = False) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.alive = not quiet and self.stream.isatty()
        self.total: int | None = None
        self.first = self.now = 0
        self.start = self.drawn = perf_counter()

    def begin(self, first: int, total: int | None) -> None:
        """Begin at a row, of so many if that is known."""
        self.first = self.now = first
        self.total, self.start = total, perf_counter()
        self._draw()

    def reach(self, row: int) -> None:
        """All rows before this one are done."""
        self.now = row
        if perf_counter() - self.drawn >= PAUSE:
            self._draw()

    def say(self, text: str) -> None:
        """Say what is being done, where it cannot be measured."""
        if perf_counter() - self.drawn >= PAUSE:
            self.drawn = perf_counter()
            self._write(text)

    def end(self) -> None:
        """Take the bar away."""
        self._write("")

    def line(self) -> str:
        """Return the bar as text."""
        took = max(perf_counter() - self.start, 1e-9)
        pace = (self.now - self.first) / took
        told = f"{self.now:,} rows  {pace:,.0f} rows/s"
        if not self.total:
            return told
        share = min(self.now / self.total, 1.0)
        full = round(WIDTH * share)
        bar = "#" * full + "." * (WIDTH - full)
        left = _clock((self.total - self.now) / pace) if pace else "?"
        return f"[{bar}] {share:4.0%}  {told}  {left} left"

    def _draw(self) -> None:
        self.drawn = perf_counter()
        self._write(self.line())

    def _write(self, text: str) -> None:
        if self.alive:
            width = shutil.get_terminal_size().columns - 1
            self.stream.write("\r\x1b[K" + text[:width])
            self.stream.flush()


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(max(seconds, 0.0)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
