"""A progress bar, with the time left; a line a dataset where there is no terminal."""

from __future__ import annotations

from typing import TextIO

from tqdm import tqdm

FORM = "{percentage:3.0f}%|{bar:24}| {remaining} left  {desc}"


class StudyProgress:
    """Tells how far a reproduction is.

    Parameters
    ----------
    stream : text file, optional
        Where to; nowhere if left out. A bar is drawn if it is a terminal.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream
        self.total = self.done = 0.0
        self.text = ""

    def plan(self, total: float) -> None:
        """Say how much is to be done: a guess of the seconds."""
        self.total = total
        self._bar = tqdm(
            total=total, file=self.stream, disable=not (self.stream and self.stream.isatty()),
            leave=False, smoothing=0, bar_format=FORM,
        )  # fmt: skip

    def say(self, text: str) -> None:
        """Say what is being done."""
        self.text = text
        self.draw()

    def advance(self, work: float) -> None:
        """So much of the work is done."""
        self.done = min(self.done + work, self.total)
        self.draw()

    def draw(self) -> None:
        """Draw the bar over the last one."""
        self._bar.set_description_str(self.text, refresh=False)
        self._bar.n = self.done
        self._bar.refresh()

    def tell(self, name: str, seconds: float) -> None:
        """Say how long a dataset took, where there is no bar."""
        if self.stream and self._bar.disable:
            print(f"{name}: {seconds:.1f} s", file=self.stream, flush=True)

    def close(self) -> None:
        """Take the bar away."""
        self._bar.close()
