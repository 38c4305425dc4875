"""A drawing of the house: its rooms, what each is for, and which rooms each knows, as SVG.

Everything in it is read from the source: the rooms and their imports, the sentence at the top of
each, and its length. A line leads down from a room to those that it imports; a line that others
already imply is left out, and one to a room further down goes by a lane at the side.
"""

from __future__ import annotations

import ast
import textwrap
from html import escape
from pathlib import Path

import house

WIDTH, HEIGHT, GAP, STEP, LANE = 300, 56, 28, 84, 12
COLOURS = ("#1b6ca8", "#c9730e", "#2e8b57", "#8e3b76", "#b03a2e", "#5d6d7e", "#7d6608", "#148f77")
STYLE = (
    "text{font:11px sans-serif;fill:#37424a}.name{font:bold 13px sans-serif;fill:#102a43}"
    ".box{fill:#f4f7fb;stroke:#4a6fa5}.line{fill:none}"
)


def rooms(package: Path) -> tuple[dict[str, set[str]], dict[str, str], dict[str, int]]:
    """Return for each room those that it imports, the sentence at its top, and its lines."""
    modules = house.read_modules(package)
    del modules[f"{package.name}.__main__"]  # which only calls the command
    imported: dict[str, set[str]] = {module.part(): set() for module in modules.values()}
    said: dict[str, str] = {}
    for name, module in modules.items():
        if name.count(".") <= 1:
            text = ast.get_docstring(module.tree) or ""
            said[module.part()] = text.partition("\n")[0].replace("`", "")
    for name, edges in house.imports(modules).items():
        imported[modules[name].part()] |= {modules[other].part() for other in edges}
    others = {room: below - {room} for room, below in imported.items()}
    return others, said, house.lines_of_parts(modules)


def without_implied(imported: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return only the imports that do not follow from others."""

    def reached(room: str) -> set[str]:
        return imported[room].union(*map(reached, imported[room]))

    return {
        room: {one for one in below if not any(one in reached(other) for other in below)}
        for room, below in imported.items()
    }


def storeys(imported: dict[str, set[str]]) -> list[list[str]]:
    """Return the rooms from the ground up, each above all that it imports."""
    found: list[list[str]] = []
    while left := sorted(imported.keys() - set().union(*map(set, found))):
        done = set().union(*map(set, found))
        found.append([room for room in left if imported[room] <= done])
    return found


def drawing(package: Path = house.ROOT / "src" / "voicecf") -> str:
    """Return the drawing."""
    imported, said, lines = rooms(package)
    floors = storeys(imported)[::-1]
    floor_of = {room: i for i, floor in enumerate(floors) for room in floor}
    across, down = max(map(len, floors)) * (WIDTH + GAP) + GAP, len(floors) * STEP + GAP
    at: dict[str, tuple[float, float]] = {}
    for i, floor in enumerate(floors):
        left = (across - len(floor) * (WIDTH + GAP) + GAP) / 2
        at |= {room: (left + j * (WIDTH + GAP), GAP + i * STEP) for j, room in enumerate(floor)}
    lanes: dict[str, int] = {}  # beside the floors, one for each room that others reach from afar
    parts = []
    for room in at:
        for other in sorted(without_implied(imported)[room]):
            ends = [(at[room][0] + WIDTH / 2, at[room][1] + HEIGHT)]
            if floor_of[other] > floor_of[room] + 1:
                lane = lanes.setdefault(other, len(lanes))
                colour, level = COLOURS[lane % len(COLOURS)], 3 + 2 * lane
                side, above = across + LANE * lane, at[other][1] - GAP + level
                ends += [(ends[0][0], ends[0][1] + level), (side, ends[0][1] + level)]
                ends += [(side, above), (at[other][0] + WIDTH / 2, above)]
            else:
                colour, middle = "#8aa0bb", (ends[0][1] + at[other][1]) / 2
                ends += [(ends[0][0], middle), (at[other][0] + WIDTH / 2, middle)]
            ends.append((at[other][0] + WIDTH / 2, at[other][1]))
            points = " ".join(f"{u:g},{v:g}" for u, v in ends)
            parts.append(f'<polyline class="line" stroke="{colour}" points="{points}"/>')
    for room, (x, y) in at.items():
        name = {"__init__": "voicecf"}.get(room, room)
        box = f'<rect class="box" x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
        parts += [box, _text(x, y + 17, f"{name}  ({lines[room]:,} lines)", "name")]
        for i, line in enumerate(textwrap.wrap(said[room], 51)[:3]):
            parts.append(_text(x, y + 33 + 12 * i, line))
    across += LANE * len(lanes) + GAP
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across} {down}">'
    paper = f'<rect width="{across}" height="{down}" fill="white"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", paper, *parts, "</svg>"])


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x + 10}" y="{y}">{escape(text)}</text>'
