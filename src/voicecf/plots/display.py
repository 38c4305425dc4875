"""What all displays share: an axes to draw on, literal text that fits, a file, a notebook."""

from __future__ import annotations

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
# Points from one line of small text to the next.
LEADING = 1.35


class Display:
    """Base of the displays; a subclass draws in `plot` and hands over its numbers in `table`.

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

    def plot(self, ax: Axes | None = None, theme: str | Theme = "light") -> Axes:
        """Draw on an axes, or on a new figure of pyplot's.

        Parameters
        ----------
        ax : matplotlib Axes, optional
        theme : "light", "dark" or Theme

        Returns
        -------
        Axes
            ``ax.figure.savefig("picture.svg")`` writes it.
        """
        raise NotImplementedError

    def _size(self, **how: Any) -> tuple[float, float]:
        """Return how large a figure of its own is, in inches; `how` is what `plot` is given."""
        return 7.0, 4.5

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


def canvas(display: Display, ax: Axes | None, theme: str | Theme, **how: Any) -> tuple[Axes, Theme]:
    """Return an axes to draw a display on, in the colours of a theme, and the theme."""
    style = theme_of(theme)
    if ax is None:
        ax = _figure(display._size(**how), pyplot=True).subplots()
    ax.figure.set_facecolor(style.paper)
    ax.set_facecolor(style.paper)
    ax.tick_params(colors=style.faint, labelsize=style.small, length=3, color=style.rule)
    for name, spine in ax.spines.items():
        spine.set_visible(name in ("left", "bottom"))
        spine.set_color(style.rule)
    return ax, style


def write(ax: Axes, x: float, y: float, text: str, style: Theme, **how: Any) -> Text:
    """Write text literally."""
    how = {"color": style.ink, "fontsize": style.text, "va": "center", **how}
    return ax.text(x, y, text, **LITERAL, **how)


def width_of(text: Text) -> float:
    """Return the width of a text in pixels."""
    return float(text.get_window_extent().width)


def fit(text: Text, room: float) -> Text:
    """Shorten a text in its middle until it is no wider than so many pixels."""
    whole, room = text.get_text(), room * ROUNDING
    if width_of(text) <= room:
        return text
    least, most = 1, len(whole)
    while least < most:  # the longest that fits
        tried = (least + most + 1) // 2
        text.set_text(shortened(whole, tried))
        least, most = (tried, most) if width_of(text) <= room else (least, tried - 1)
    text.set_text(shortened(whole, least))
    return text


def wrapped(ax: Axes, text: str, size: float, width: float, weight: str = "normal") -> list[str]:
    """Break text into lines no wider than so many pixels."""
    width *= ROUNDING
    probe = ax.text(0, 0, text, fontsize=size, fontweight=weight, **LITERAL)
    letters = len(text)
    lines = [text]
    while True:
        over = 1.0
        for line in lines:
            probe.set_text(line)
            over = max(over, width_of(probe) / width)
        if over <= 1 or letters <= 12:
            break
        letters = max(min(letters - 1, int(letters / over**0.5)), 12)
        lines = wrap(text, letters)
    probe.remove()
    return lines


def head(ax: Axes, title: str, note: str, style: Theme) -> None:
    """Write a title, and a note under it, above an axes and flush with it."""
    lay_out(ax)
    width = float(ax.get_window_extent().width)
    titles = wrapped(ax, title, style.title, width, "bold")
    notes = wrapped(ax, note, style.small, width) if note else []
    pad = 8.0 + style.small * LEADING * len(notes)
    ax.set_title(
        "\n".join(titles), loc="left", pad=pad, color=style.ink, fontsize=style.title,
        fontweight="bold", **LITERAL,
    )  # fmt: skip
    if notes:
        ax.annotate(
            "\n".join(notes), (0, 1), xycoords="axes fraction", xytext=(0, 5), va="bottom",
            textcoords="offset points", fontsize=style.small, color=style.faint,
            linespacing=LEADING - 0.15, **LITERAL,
        )  # fmt: skip


def lay_out(ax: Axes) -> None:
    """Give the axes the room that its labels leave, where the figure does that by itself."""
    figure: Any = ax.figure
    figure = getattr(figure, "figure", None) or figure  # of a part of a figure the whole
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    ax.apply_aspect()


def axis_names(ax: Axes, names: tuple[str, str], style: Theme) -> None:
    """Name both axes, shortened to their lengths."""
    box = ax.get_window_extent()
    for name, setter, room in (
        (names[0], ax.set_xlabel, box.width), (names[1], ax.set_ylabel, box.height),
    ):  # fmt: skip
        label = setter(name, color=style.ink, fontsize=style.text, **LITERAL)
        turned = label.get_rotation()
        label.set_rotation(0)
        fit(label, float(room))
        label.set_rotation(turned)


def name_lines(ax: Axes, places: Any, names: Sequence[str], style: Theme) -> None:
    """Name the lines of a picture at its left; these names need no ticks."""
    ax.set_yticks(places, names, fontsize=style.small, color=style.ink, **LITERAL)
    ax.tick_params(axis="y", length=0)


def stroke(width: float, color: str) -> Any:
    """Return a halo, so that lines and text stand out from what is under them."""
    from matplotlib.patheffects import withStroke

    return withStroke(linewidth=width, foreground=color)
