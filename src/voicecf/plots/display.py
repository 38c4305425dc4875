"""What all displays share: a canvas with literal text that fits, a file, a notebook."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from io import BytesIO
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from voicecf.plots.theme import Theme, theme_of
from voicecf.table.wording import shortened

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

# Names are the user's: a dollar sign is a dollar sign.
LITERAL: dict[str, Any] = {"parse_math": False, "usetex": False}
REMEDY = 'drawing needs matplotlib: pip install "voicecf[plot]"'
# Inches around a picture.
ROOM = {"w_pad": 0.1, "h_pad": 0.1}
# Share of the room that text may fill: it is up to a few per cent wider at another resolution.
ROUNDING = 0.95
# Letters of a line, however narrow an axes is.
FEWEST = 12
# Points from one line of small text to the next.
LEADING = 1.35


class Canvas:
    """An axes in the colours of a theme.

    Attributes
    ----------
    ax : matplotlib Axes
    style : Theme
    """

    def __init__(self, ax: Axes, style: Theme) -> None:
        self.ax, self.style = ax, style
        ax.figure.set_facecolor(style.paper)
        ax.set_facecolor(style.paper)
        ax.tick_params(colors=style.faint, labelsize=style.small, length=3, color=style.rule)
        for name, spine in ax.spines.items():
            spine.set_visible(name in ("left", "bottom"))
            spine.set_color(style.rule)

    @property
    def width(self) -> float:
        """Width of the axes in pixels."""
        return float(self.ax.get_window_extent().width)

    def lay_out(self) -> None:
        """Give the axes the room that its labels leave, where the figure does that by itself."""
        figure: Any = self.ax.figure
        figure = getattr(figure, "figure", None) or figure  # of a part of a figure the whole
        engine = figure.get_layout_engine()
        if engine is not None:
            engine.execute(figure)
        self.ax.apply_aspect()

    def write(self, x: float, y: float, text: str, **how: Any) -> Text:
        """Write text literally."""
        how = {"color": self.style.ink, "fontsize": self.style.text, "va": "center", **how}
        return self.ax.text(x, y, text, **LITERAL, **how)

    def write_small(self, x: float, y: float, text: str, **how: Any) -> Text:
        """Write small text literally, in a faint colour if no other is given."""
        how = {"color": self.style.faint, "fontsize": self.style.small, **how}
        return self.write(x, y, text, **how)

    def mark(self, x: float, y: float, cluster: int, fill: str, **how: Any) -> None:
        """Draw the marker of a cluster."""
        marker = self.style.marker(cluster)
        self.ax.plot(x, y, marker, mfc=fill, mec=self.style.ink, **how)

    def wrapped(self, text: str, size: float, weight: str = "normal") -> list[str]:
        """Break text into lines no wider than the axes."""
        probe = self.ax.text(0, 0, "", fontsize=size, fontweight=weight, **LITERAL)

        def widest(letters: int) -> float:
            return max(width_of(probe, line) for line in wrap(text, letters))

        letters = range(FEWEST, len(text) + 1)
        fitting = bisect_right(letters, self.width * ROUNDING, key=widest)
        probe.remove()
        return wrap(text, FEWEST - 1 + max(fitting, 1))

    def head(self, title: str, note: str) -> None:
        """Write a title, and a note under it, above the axes and flush with it."""
        self.lay_out()
        style = self.style
        titles, notes = self.wrapped(title, style.title, "bold"), self.wrapped(note, style.small)
        self.ax.set_title(
            "\n".join(titles), loc="left", pad=8.0 + style.small * LEADING * len(notes),
            color=style.ink, fontsize=style.title, fontweight="bold", **LITERAL,
        )  # fmt: skip
        if notes:
            self.ax.annotate(
                "\n".join(notes), (0, 1), xycoords="axes fraction", xytext=(0, 5), va="bottom",
                textcoords="offset points", fontsize=style.small, color=style.faint,
                linespacing=LEADING - 0.15, **LITERAL,
            )  # fmt: skip

    def name_axes(self, x: str, y: str = "") -> None:
        """Name both axes, shortened to their lengths."""
        box = self.ax.get_window_extent()
        for name, setter, room in (
            (x, self.ax.set_xlabel, box.width), (y, self.ax.set_ylabel, box.height),
        ):  # fmt: skip
            label = setter(name, color=self.style.ink, fontsize=self.style.text, **LITERAL)
            turned = label.get_rotation()
            label.set_rotation(0)
            fit(label, float(room))
            label.set_rotation(turned)

    def name_lines(self, places: Any, names: Sequence[str]) -> None:
        """Name the lines of a picture at its left; these names need no ticks."""
        style = self.style
        self.ax.set_yticks(places, names, fontsize=style.small, color=style.ink, **LITERAL)
        self.ax.tick_params(axis="y", length=0)


class Display:
    """Base of the displays; a subclass draws in `_draw` and hands over its numbers in `table`.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.plots import ChangeCard, Display
    >>> cf = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]]).explain([[1.0, 5.0]], target=1)
    >>> isinstance(ChangeCard.from_counterfactuals(cf, 0), Display)
    True
    """

    def table(self) -> Any:
        """Return what is drawn as a table."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None, theme: str | Theme = "light", **how: Any) -> Axes:
        """Draw on an axes, or on a new figure of pyplot's.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        theme : "light", "dark" or Theme
        **how
            What else a display takes: see `Transitions.plot`.

        Returns
        -------
        Axes
            ``ax.figure.savefig("picture.svg")`` writes it.
        """
        style = theme_of(theme)
        ax = _figure(self._size(**how), pyplot=True).subplots() if ax is None else ax
        self._draw(Canvas(ax, style), **how)
        return ax

    def _draw(self, canvas: Canvas, **how: Any) -> None:
        """Draw on a canvas; `how` is what `plot` is given besides."""
        raise NotImplementedError

    def _size(self, **how: Any) -> tuple[float, float]:
        """Return how large a figure of its own is, in inches; `how` is what `plot` is given."""
        raise NotImplementedError

    def save(self, path: Any, *, theme: str | Theme = "light", dpi: int = 150, **how: Any) -> None:
        """Write the picture to a file, PNG, SVG or PDF by its ending, without pyplot.

        Parameters
        ----------
        path : str, path or open file
        theme : "light", "dark" or Theme
        dpi : int
            Dots an inch, for PNG.
        **how
            What else `plot` takes.
        """
        figure = _figure(self._size(**how), pyplot=False)
        self.plot(figure.subplots(), theme, **how)
        figure.savefig(path, dpi=dpi)

    def _repr_png_(self) -> bytes | None:
        """Return the picture for a notebook; nothing without matplotlib."""
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            return None
        file = BytesIO()
        self.save(file, dpi=110)
        return file.getvalue()


def _figure(size: tuple[float, float], pyplot: bool) -> Any:
    """Return a new figure, known to pyplot or not."""
    try:
        from matplotlib import pyplot as plt
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError(REMEDY) from None
    figure: Any = (plt.figure if pyplot else Figure)(figsize=size, layout="constrained")
    figure.get_layout_engine().set(**ROOM)
    if not pyplot:  # measures text at once; a bare figure would draw itself each time
        FigureCanvasAgg(figure)
    return figure


def width_of(text: Text, content: str | None = None) -> float:
    """Return the width of a text in pixels, if need be with other content."""
    if content is not None:
        text.set_text(content)
    return float(text.get_window_extent().width)


def fit(text: Text, room: float) -> None:
    """Shorten a text in its middle until it is no wider than so many pixels."""
    whole, room = text.get_text(), room * ROUNDING
    if width_of(text) > room:
        letters = range(1, len(whole))
        fitting = bisect_right(letters, room, key=lambda n: width_of(text, shortened(whole, n)))
        text.set_text(shortened(whole, max(fitting, 1)))


def stroke(width: float, color: str) -> Any:
    """Return a halo, so that lines and text stand out from what is under them."""
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=width, foreground=color)
