"""A progress bar on stderr, with the time left; a line a dataset where there is no terminal."""

from __future__ import annotations

import shutil
import sys
from time import perf_counter
from typing import TextIO

BAR = 24
# Seconds of work that the plan is trusted as much as the clock.
TRUST = 5.0


class Progress:
    """Tells how far a reproduction is.

    Parameters
    ----------
    stream : text file
        Where to; stderr by default. A bar is drawn if it is a terminal.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.alive = self.stream.isatty()
        self.work: dict[str, float] = {}
        self.done = self.inside = 0.0
        self.text = ""
        self.start = self.since = perf_counter()

    def plan(self, work: dict[str, float]) -> None:
        """Say what is to be done: a guess of the seconds for each dataset."""
        self.work = work

    def enter(self, name: str) -> None:
        """Begin a dataset."""
        self.name, self.inside, self.since = name, 0.0, perf_counter()
        self.say(name)

    def leave(self, name: str) -> None:
        """End a dataset."""
        self.done += self.work[name]
        self.inside = 0.0
        self._clear()
        if not self.alive:
            took = perf_counter() - self.since
            print(f"{name}: {took:.1f} s", file=self.stream, flush=True)

    def advance(self, work: float) -> None:
        """So much of the dataset's work is done."""
        self.inside = min(self.inside + work, self.work[self.name])
        self.draw()

    def say(self, text: str) -> None:
        """Say what is being done."""
        self.text = text
        self.draw()

    def left(self) -> float:
        """Guess the seconds left: the plan's, corrected by how it kept to the clock so far."""
        done, total = self.done + self.inside, sum(self.work.values())
        pace = (perf_counter() - self.start + TRUST) / (done + TRUST)
        return pace * (total - done)

    def draw(self) -> None:
        """Draw the bar over the last one."""
        if not self.alive:
            return
        share = (self.done + self.inside) / (sum(self.work.values()) or 1.0)
        full = round(BAR * share)
        bar = "#" * full + "." * (BAR - full)
        line = f"[{bar}] {share:4.0%} {_clock(self.left())} left  {self.text}"
        width = shutil.get_terminal_size().columns - 1
        self.stream.write("\r\x1b[K" + line[:width])
        self.stream.flush()

    def _clear(self) -> None:
        if self.alive:
            self.stream.write("\r\x1b[K")
            self.stream.flush()


class Silent(Progress):
    """Says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = False

    def leave(self, name: str) -> None:
        """End a dataset, without a word."""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"
