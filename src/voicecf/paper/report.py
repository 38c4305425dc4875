"""The recomputed tables as aligned text, Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from textwrap import fill
from typing import Any

from voicecf.paper.cells import NOTES, Entry
from voicecf.paper.published import figures
from voicecf.paper.reproduction import Reproduction
from voicecf.paper.tables import RECOMPUTED

SAME, DIFFERENT, SHOWN = "=", "≠", "~"
MARKS = "abcdefghij"


@dataclass(frozen=True)
class Grid:
    """A table as text: a header, rows of dataset, mode and cells, and the lines under it."""

    name: str
    header: list[str]
    rows: list[list[str]]
    notes: list[str]

    @classmethod
    def of(cls, name: str, entries: Sequence[Entry]) -> Grid:
        """Lay out the cells of one table."""
        columns = list(dict.fromkeys(entry.key.column for entry in entries))
        lines: dict[tuple[str, ...], dict[str, Entry]] = {}
        has_modes = any(entry.key.mode for entry in entries)
        for entry in entries:
            lead = (entry.key.dataset, entry.key.mode)[: 1 + has_modes]
            lines.setdefault(lead, {})[entry.key.column] = entry
        used = list(dict.fromkeys(note for entry in entries for note in entry.notes))
        marks = dict(zip(used, MARKS, strict=False))
        # Notes that all cells of a column have mark its header, not the cells.
        shared = {
            column: set.intersection(*(set(e.notes) for e in entries if e.key.column == column))
            for column in columns
        }
        header = ["dataset", "mode"][: 1 + has_modes]
        return cls(
            name,
            header + [column + _marked(shared[column], marks) for column in columns],
            [
                [*lead, *(_cell(cells.get(c), marks, shared[c]) for c in columns)]
                for lead, cells in lines.items()
            ],
            [_note(note, marks[note], entries) for note in used],
        )

    @property
    def title(self) -> str:
        """What the table is about."""
        return RECOMPUTED[self.name].title


def _marked(notes: Iterable[str], marks: dict[str, str]) -> str:
    return "".join(f"[{mark}]" for note, mark in marks.items() if note in notes)


def _cell(entry: Entry | None, marks: dict[str, str], shared: set[str]) -> str:
    """Write a cell: ours, then = or ≠ and what was printed, or ~ where nothing is compared."""
    if entry is None:
        return ""
    mark = _marked(set(entry.notes) - shared, marks)
    if entry.figure is None:
        return entry.text + mark
    sign = SAME if entry.agrees else DIFFERENT
    if not entry.compared and entry.key.table != "solver":
        sign = SHOWN
    return f"{entry.text} {sign} {entry.figure.text or '-'}{mark}"


def _note(note: str, mark: str, entries: Iterable[Entry]) -> str:
    first = next(entry for entry in entries if note in entry.notes)
    return f"[{mark}] {NOTES[note].format(value=first.value) if note == 'digits' else NOTES[note]}"


def grids(result: Reproduction) -> Iterator[Grid]:
    """Lay out every table that was computed."""
    names = dict.fromkeys(entry.key.table for entry in result.entries)
    for name in names:
        yield Grid.of(name, [entry for entry in result.entries if entry.key.table == name])


def as_text(result: Reproduction) -> str:
    """Write all tables as aligned text, and the summary."""
    blocks = [_aligned(grid) for grid in grids(result)]
    legend = (
        "Each cell: ours = printed; ≠ where they differ; ~ where nothing is compared; a value "
        "alone is not in the paper."
    )
    return "\n\n".join([legend, *blocks, "\n".join(summary(result))]) + "\n"


def _aligned(grid: Grid) -> str:
    lines = [grid.header, *grid.rows]
    widths = [max(len(line[at]) for line in lines) for at in range(len(grid.header))]
    texts = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)) for line in lines
    ]
    rule = "  ".join("-" * width for width in widths)
    body = [texts[0].rstrip(), rule, *(text.rstrip() for text in texts[1:])]
    notes = [fill(note, 100, subsequent_indent="    ") for note in grid.notes]
    return "\n".join([f"{grid.title} ({grid.name})", "", *body, *([""] if notes else []), *notes])


def summary(result: Reproduction) -> list[str]:
    """Say how many cells are the same, which differ, what was not run, and how long it took."""
    lines = []
    for source, what in (
        ("table", "printed cells"),
        ("text", "figures from the text"),
        ("caption", "figures from captions"),
        ("released", "released counts"),
    ):
        there = [e for e in result.compared if e.figure and e.figure.source == source]
        if there:
            same = sum(entry.agrees for entry in there)
            lines.append(f"{same} of {len(there)} {what} are the same.")
    seen = [e for e in result.entries if e.figure and e.figure.source == "table"]
    shown = sum(not entry.compared for entry in seen)
    total = sum(figure.source == "table" for figure in figures().values())
    lines.append(f"{shown} more are shown, not compared; {len(seen)} of {total} recomputed.")
    lines += [_difference(entry) for entry in result.differing]
    lines += [f"{_difference(entry)} A tie: listed, not counted." for entry in result.excused]
    if result.comparisons and not any(entry.key.dataset == "Overall" for entry in result.entries):
        lines.append("What is said of all datasets together needs all ten; it was not computed.")
    return [*lines, *timing(result)]


def _difference(entry: Entry) -> str:
    where = ", ".join(part for part in entry.key if part)
    printed = entry.figure.text if entry.figure else ""
    return f"DIFFERS: {where}: ours {entry.text}, printed {printed}."


def timing(result: Reproduction) -> list[str]:
    """Say how long it took, and what share of the validity table is k-means itself."""
    lines = [f"{result.seconds:.0f} s in all."]
    found = result.comparisons.values()
    cpu, fitting = sum(each.cpu for each in found), sum(each.fitting for each in found)
    if cpu > 0:
        pairs = sum(each.found.comparisons for each in found)
        seconds = sum(each.seconds for each in found)
        lines.append(
            f"Validity: {pairs:,} pairs in {seconds:.0f} s and {cpu:.0f} s of processor time, "
            f"{fitting:.0f} s ({fitting / cpu:.0%}) of it for fitting k-means."
        )
    return lines


def as_records(result: Reproduction) -> Iterator[dict[str, Any]]:
    """Yield a record a cell."""
    for entry in result.entries:
        figure = entry.figure
        yield {
            **entry.key._asdict(),
            "value": _plain(entry.value),
            "ours": entry.text,
            "printed": figure.text if figure else None,
            "source": figure.source if figure else None,
            "compared": entry.compared,
            "same": entry.agrees if figure else None,
            "notes": list(entry.notes),
        }


def _plain(value: Any) -> Any:
    """Return a value that JSON knows; it has neither NaN nor infinity."""
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, str):
        return value
    number = float(value)
    if not math.isfinite(number):
        return str(number)
    return int(number) if isinstance(value, int) else number


def write_csv(result: Reproduction, path: Path) -> None:
    """Write a line a cell."""
    records = list(as_records(result))
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(records[0]) if records else ["table"])
        writer.writeheader()
        writer.writerows({**r, "notes": " ".join(r["notes"])} for r in records)


def write_json(result: Reproduction, path: Path) -> None:
    """Write the cells, the notes, the seconds and the summary."""
    content = {
        "cells": list(as_records(result)),
        "notes": NOTES,
        "seconds": result.seconds,
        "summary": summary(result),
    }
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_markdown(result: Reproduction, path: Path) -> None:
    """Write the page of the documentation: prose from a template, tables from this run."""
    page = files(__package__).joinpath("page.md").read_text(encoding="utf-8")
    there = {grid.name: _markdown(grid) for grid in grids(result)}
    page = page.replace("{summary}", "\n".join(f"- {line}" for line in summary(result)))

    def table(name: re.Match[str]) -> str:
        return there.get(name[1], f"*Not run: {name[1]}.*")

    path.write_text(re.sub(r"^\{table (\w+)\}$", table, page, flags=re.MULTILINE), encoding="utf-8")


def _markdown(grid: Grid) -> str:
    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "---|" * len(grid.header)
    notes = [f"\n{note}" for note in grid.notes]
    return "\n".join([row(grid.header), rule, *(row(cells) for cells in grid.rows), *notes])
