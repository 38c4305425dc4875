"""A progress bar on stderr, with the time left; a line a dataset where there is no terminal."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import TextIO

from tqdm import tqdm

FORM = "{percentage:3.0f}%|{bar:24}| {remaining} left  {desc}"


class StudyProgress:
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

    def plan(self, work: dict[str, float]) -> None:
        """Say what is to be done: a guess of the seconds for each dataset."""
        self.work = work
        self._bar = tqdm(
            total=sum(work.values()), file=self.stream, disable=not self.alive, leave=False,
            smoothing=0, bar_format=FORM,
        )  # fmt: skip

    def enter(self, name: str) -> None:
        """Begin a dataset."""
        self.name, self.inside, self.since = name, 0.0, perf_counter()
        self.say(name)

    def leave(self, name: str) -> None:
        """End a dataset."""
        self.done, self.inside = self.done + self.work[name], 0.0
        self.draw()
        if not self.alive:
            self._tell(name)

    def _tell(self, name: str) -> None:
        took = perf_counter() - self.since
        print(f"{name}: {took:.1f} s", file=self.stream, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()

    def advance(self, work: float) -> None:
        """So much of the dataset's work is done."""
        self.inside = min(self.inside + work, self.work[self.name])
        self.draw()

    def say(self, text: str) -> None:
        """Say what is being done."""
        self.text = text
        self.draw()

    def draw(self) -> None:
        """Draw the bar over the last one."""
        self._bar.set_description_str(self.text, refresh=False)
        self._bar.n = self.done + self.inside
        self._bar.refresh()


class Silent(StudyProgress):
    """Says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.alive = False

    def _tell(self, name: str) -> None:
        pass
