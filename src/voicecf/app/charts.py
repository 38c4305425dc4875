"""What all pictures share, drawn by altair. Names of the data are titles, never fields."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from io import StringIO
from typing import Any, NamedTuple, TypeVar

import altair as alt
import numpy as np
import pandas as pd
from altair.utils import schemapi
from numpy.typing import NDArray

from voicecf.app.style import colour
from voicecf.plots import LIGHT
from voicecf.table.wording import shortened

# Altair would check every piece of a picture when it is made, and the whole of it once more: the
# second is enough, and a page comes sooner.
schemapi.disable_debug_mode()
# Letters of an axis' title.
TITLE = 70
# Numbers in tooltips: thousands apart, five digits.
FORMAT = ",.5~r"
# The same for columns whose numbers may be years.
UNGROUPED = ".5~r"
Drawn = TypeVar("Drawn", alt.Chart, alt.LayerChart)
BARE: dict[str, Any] = {"domain": False, "ticks": False}


# The reader's own colours, whichever they are.
INHERITED = replace(LIGHT, ink="currentColor", paper="Canvas")
# A miss: red on light and on dark.
MISS = "#d9482b"


def plain(drawn: Drawn, height: int) -> Drawn:
    """Draw no frame and no grid."""
    bare: Drawn = drawn.properties(height=height).configure_view(stroke=None)
    return bare.configure_axis(grid=False)  # type: ignore[no-any-return]


def svg(drawn: alt.LayerChart, width: int, height: int) -> str:
    """Draw an image in the colours of the text around it: nothing is loaded or run."""
    labels = {"labelColor": INHERITED.ink, "labelFontSize": 12}
    titles = {"titleColor": INHERITED.ink, "titleFontSize": 13, "titleFontWeight": 500}
    file = StringIO()
    drawn.properties(width=width, height=height).configure(
        background="transparent", aria=False, view={"stroke": None},
        axis={"grid": False, **labels, **titles},
    ).save(file, format="svg")  # fmt: skip
    return file.getvalue()


def sides(
    names: Sequence[str], scales: Sequence[alt.Scale], formats: Sequence[str] = (FORMAT, FORMAT)
) -> list[Any]:
    """Return both axes, with their titles and how their numbers are written."""
    axes = [alt.Axis(tickCount=6, labelPadding=6, format=how, **BARE) for how in formats]
    return [
        side(f"{field}:Q", title=shortened(name, TITLE), scale=scale, axis=axis)
        for side, field, name, scale, axis in zip(
            (alt.X, alt.Y), "xy", names, scales, axes, strict=True
        )
    ]


class Tip(NamedTuple):
    """A line of what is told about a row: its title, the values of all rows, and their format."""

    title: str
    values: Sequence[Any]
    format: str = ""


def dots(
    places: NDArray[Any], labels: NDArray[np.int64], k: int, tips: Sequence[Tip], **more: Any
) -> alt.Chart:
    """Draw rows in the colours of their segments; tooltips tell `tips`."""
    told = {f"t{i}": tip.values for i, tip in enumerate(tips)}
    data = placed(places, segment=labels, **more, **told)
    lines = [
        alt.Tooltip(f"t{i}:Q", title=shortened(tip.title, TITLE), format=tip.format)
        if tip.format
        else alt.Tooltip(f"t{i}:N", title=shortened(tip.title, TITLE))
        for i, tip in enumerate(tips)
    ]
    # By number, so that segments differ whatever they are called.
    scale = alt.Scale(domain=list(range(k)), range=[colour(t) for t in range(k)])
    drawn: alt.Chart = alt.Chart(data, name="rows").mark_circle(size=34)
    return drawn.encode(color=alt.Color("segment:N", scale=scale, legend=None), tooltip=lines)


def line(places: NDArray[Any], **how: Any) -> alt.Chart:
    """Draw a line through points in their order, interrupted where one is missing."""
    data = placed(places, at=range(len(places)))
    drawn: alt.Chart = alt.Chart(data).mark_line(clip=True, **{"strokeWidth": 2.2, **how})
    return drawn.encode(order="at:Q")


def placed(places: NDArray[Any], **more: Any) -> pd.DataFrame:
    """Return points as a table with columns x and y, and more columns."""
    return pd.DataFrame({"x": places[:, 0], "y": places[:, 1], **more})
