"""Pieces of pages and reports as HTML. Whatever comes from the data is escaped here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from voicecf.app.style import ACCENT, colour
from voicecf.output import shortened


def named(name: str, segment: int) -> str:
    """Write a segment's name after a dot of its colour."""
    return f'<span class="v-dot" style="--c:{colour(segment)}"></span>{escape(name)}'


def chip(name: str, segment: int) -> str:
    """Write a segment's name with its colour, in a frame."""
    return f'<span class="v-chip">{named(name, segment)}</span>'


def legend(names: Sequence[str]) -> str:
    """Write which colour a segment has, by its number; lines wrap, however many there are."""
    made = "".join(f"<span>{named(name, t)}</span>" for t, name in enumerate(names))
    return f'<div class="v-legend">{made}</div>'


def facts(items: Iterable[tuple[str, str]]) -> str:
    """Write a few figures side by side: value and label."""
    made = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(label)}</span></div>" for value, label in items
    )
    return f'<div class="v-facts">{made}</div>'


def bars(items: Sequence[tuple[str, float, str]], tint: str = ACCENT) -> str:
    """Draw bars with names and values; the longest fills its place."""
    longest = max((value for _, value, _ in items), default=0.0) or 1.0
    lines = "".join(
        f"<span>{escape(shortened(name, 40))}</span>"
        f'<span class="v-bar"><i style="width:{100 * value / longest:.1f}%"></i></span>'
        f'<span class="v-val">{escape(text)}</span>'
        for name, value, text in items
    )
    return f'<div class="v-bars" style="--c:{tint}">{lines}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], differs: str = "") -> str:
    """Write a plain table; cells that hold `differs` stand out."""
    head = "".join(f"<th>{escape(text)}</th>" for text in header)
    body = "".join(f"<tr>{''.join(_cell(text, differs) for text in row)}</tr>" for row in rows)
    return f'<div class="v-scroll"><table class="v-table"><tr>{head}</tr>{body}</table></div>'


def _cell(text: str, differs: str) -> str:
    mark = ' class="v-differs"' if differs and differs in text else ""
    return f"<td{mark}>{escape(text)}</td>"


def paragraph(text: str) -> str:
    """Write a quiet line of text."""
    return f'<p class="v-remark">{escape(text)}</p>'


def lead(text: str) -> str:
    """Write what a page says first."""
    return f'<p class="v-lead">{escape(text)}</p>'


def notice(text: str) -> str:
    """Write something that the user should know before going on."""
    return f'<div class="v-card v-no" role="status"><p class="v-lead">{escape(text)}</p></div>'


def heading(text: str, below: str = "") -> str:
    """Write a heading that comes from the data, and a line under it."""
    return f"<h2>{escape(text)}</h2>{paragraph(below) if below else ''}"


def about_table(name: str) -> str:
    """Write which table a page is about."""
    return f'<p class="v-table-name">{escape(name)}</p>'
