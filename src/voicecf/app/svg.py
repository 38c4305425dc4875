"""The map as plain SVG, for reports: no script, no font, nothing to load."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from voicecf.app.columns import short
from voicecf.app.style import colour
from voicecf.app.words import figure
from voicecf.plots import SegmentMap

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 78, 14, 34, 48
# How many ticks an axis has, at most.
TICKS = 6


def map_svg(found: SegmentMap, names: Sequence[str]) -> str:
    """Draw the map."""
    paper = _Paper(found)
    title = escape(f"Map of the segments: {found.title}")
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'width="{WIDTH}" height="{HEIGHT}" font-size="13"><title>{title}</title>',
        *(paper.cell(corners, colour(t)) for t, corners in found.cells),
        *(paper.dot(p, colour(t)) for p, t in zip(found.points, found.labels, strict=True)),
        paper.move(),
        paper.axes(),
        _legend(names, sorted({int(t) for t in found.labels} | {t for t, _ in found.cells})),
        "</svg>",
    ]
    return "".join(parts)


class _Paper:
    """Turns the units of the axes into places on paper."""

    def __init__(self, found: SegmentMap) -> None:
        self.found = found
        self.low, high = found.viewport
        self.size = np.where(high > self.low, high - self.low, 1.0)

    def at(self, point: Any) -> tuple[float, float]:
        u, v = (np.asarray(point, dtype=np.float64) - self.low) / self.size
        x = LEFT + u * (WIDTH - LEFT - RIGHT)
        return round(float(x), 1), round(float(HEIGHT - BOTTOM - v * (HEIGHT - TOP - BOTTOM)), 1)

    def cell(self, corners: Any, tint: str) -> str:
        places = " ".join(f"{x},{y}" for x, y in map(self.at, corners))
        return (
            f'<polygon points="{places}" fill="{tint}" fill-opacity="0.14" stroke="{tint}" '
            'stroke-opacity="0.5"/>'
        )

    def dot(self, point: Any, tint: str) -> str:
        if not np.isfinite(point).all():
            return ""
        x, y = self.at(point)
        return f'<circle cx="{x}" cy="{y}" r="2.6" fill="{tint}" fill-opacity="0.6"/>'

    def move(self) -> str:
        found, parts = self.found, []
        if found.start is None:
            return ""
        x, y = self.at(found.start)
        if found.end is not None:
            a, b = self.at(found.end)
            parts.append(
                f'<line x1="{x}" y1="{y}" x2="{a}" y2="{b}" stroke="currentColor" '
                'stroke-width="2.2"/>'
            )
            parts.append(self._named(a, b, "answer", "currentColor"))
        parts.append(self._named(x, y, "now", "#fff"))
        return "".join(parts)

    def _named(self, x: float, y: float, name: str, fill: str) -> str:
        left = x > WIDTH - 90
        place = f'x="{x - 11 if left else x + 11}" y="{y - 9}"'
        anchor = "end" if left else "start"
        return (
            f'<circle cx="{x}" cy="{y}" r="6" fill="{fill}" stroke="currentColor" '
            f'stroke-width="2"/><text {place} text-anchor="{anchor}" font-weight="600" '
            f'fill="currentColor">{name}</text>'
        )

    def axes(self) -> str:
        parts = []
        for value in ticks(self.low[0], self.low[0] + self.size[0]):
            x, _ = self.at([value, self.low[1]])
            parts.append(_text(x, HEIGHT - BOTTOM + 18, figure(value), "middle"))
        for value in ticks(self.low[1], self.low[1] + self.size[1]):
            _, y = self.at([self.low[0], value])
            parts.append(_text(LEFT - 8, y + 4, figure(value), "end"))
        first, second = (short(label, 80) for label in self.found.axis_labels)
        middle = (LEFT + WIDTH - RIGHT) / 2
        parts.append(_text(middle, HEIGHT - 8, first, "middle", 1.0))
        height = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(
            f'<text transform="translate(14 {height}) rotate(-90)" text-anchor="middle" '
            f'fill="currentColor">{escape(second)}</text>'
        )
        return "".join(parts)


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers within a range, a few.

    Examples
    --------
    >>> from voicecf.app.svg import ticks
    >>> ticks(-0.74, 3.03)
    [0.0, 1.0, 2.0, 3.0]
    """
    rough = (high - low) / TICKS
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next(factor for factor in (1, 2, 5, 10) if factor * power >= rough)
    first, last = np.ceil(low / step), np.floor(high / step)
    return [float(k * step) + 0.0 for k in np.arange(first, last + 1)]


def _text(x: float, y: float, text: str, anchor: str, opacity: float = 0.7) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" fill="currentColor" '
        f'fill-opacity="{opacity}">{escape(text)}</text>'
    )


def _legend(names: Sequence[str], shown: Sequence[int]) -> str:
    parts, x = [], float(LEFT)
    for t in shown:
        name = short(names[t], 26)
        parts.append(f'<circle cx="{x + 6}" cy="14" r="5" fill="{colour(t)}"/>')
        parts.append(_text(x + 17, 18, name, "start", 1.0))
        x += 34 + 7.2 * len(name)
    return "".join(parts)
