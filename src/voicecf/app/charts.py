"""What pictures share, drawn by altair. Names of the data are titles, never fields."""

from __future__ import annotations

from io import StringIO
from typing import Any, TypeVar

import altair as alt
from altair.utils import schemapi

from voicecf.app.style import INHERITED

# Altair would check every piece of a picture when it is made, and the whole of it once more: the
# second is enough, and a page comes sooner.
schemapi.disable_debug_mode()
# Numbers in tooltips: thousands apart, five digits.
FORMAT = ",.5~r"
BARE: dict[str, Any] = {"domain": False, "ticks": False}


Drawn = TypeVar("Drawn", alt.Chart, alt.LayerChart)


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
