"""What all displays share: a picture in a figure of one's own, in a file, in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display:
    """Base of the displays; a subclass draws in `plot` and hands over its numbers in `table`."""

    def table(self) -> Any:
        """Return what is drawn as a table."""
        raise NotImplementedError

    def plot(self, ax: Any = None, theme: Any = "light") -> Axes:
        """Draw."""
        raise NotImplementedError
