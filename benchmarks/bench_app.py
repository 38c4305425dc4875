"""How long the app takes to answer a changed control: whole runs of its pages, without a browser.

Usage: python benchmarks/bench_app.py [rows] [columns]
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from voicecf.app.campaign import runs
from voicecf.app.project import Project
from voicecf.app.row.question import Objective
from voicecf.app.session import store

PAGE = """
from voicecf.app.main import PAGES
from voicecf.app.session import page
(shown,) = [one for one in PAGES if one.path == "{name}"]
page(shown.show, shown.title, shown.without)()
"""
# Seconds within which a changed control is to be answered: of a table, and of a large one.
GOAL, LARGE_GOAL = 0.3, 1.0


def sample(rows: int, columns: int) -> bytes:
    """Make a CSV with whole numbers, numbers and categories, in four groups."""
    rng = np.random.default_rng(0)
    group = rng.integers(4, size=rows)
    centres = rng.normal(0, 2, (4, columns))
    values = centres[group] + rng.normal(size=(rows, columns))
    frame = pd.DataFrame(values.round(3), columns=[f"c{i}" for i in range(columns)])
    for i in range(columns // 3):
        frame[f"c{i}"] = (10 * frame[f"c{i}"]).round().astype(int)
    for i in range(columns // 3, columns // 3 + columns // 10):
        frame[f"c{i}"] = pd.cut(frame[f"c{i}"], 4, labels=list("abcd")).astype(str)
    return frame.to_csv(index=False).encode()


def timed(work: Callable[[], Any]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def opened(name: str, now: Project) -> AppTest:
    page = AppTest.from_string(PAGE.format(name=name), default_timeout=600)
    page.query_params["s"] = now.id
    return page


def changes(now: Project) -> Iterator[tuple[str, float]]:
    """Yield what was changed, and how long the page took to answer."""
    page = opened("segments", now)
    yield "Segments: first visit", timed(page.run)
    yield "Segments: number of segments", timed(page.slider[0].set_value(5).run)
    yield "Segments: back to four", timed(page.slider[0].set_value(4).run)
    yield "Segments: SHARK", timed(page.radio[0].set_value(page.radio[0].options[1]).run)
    now.change(method=type(now.choices.method)("k-means"))
    yield "Segments: a name", timed(page.text_input[0].set_value("Regulars").run)
    yield from row_changes(now)
    for name in ("campaign", "method", "takeaway"):
        yield f"{name}: first visit", timed(opened(name, now).run)


def row_changes(now: Project) -> Iterator[tuple[str, float]]:
    page = opened("row", now)
    yield "One row: first visit", timed(page.run)
    for row in (2, 77, 4321):
        now.ask(row=row)
        yield f"One row: row {row}", timed(page.run)
    target = page.selectbox(key="control target")
    yield "One row: target", timed(target.select_index(2).run)
    for goal in list(Objective)[::-1]:
        chosen = page.radio(key="control goal").set_value(goal)
        yield f"One row: look for {goal}", timed(chosen.run)
    for margin in (10, 25):
        chosen = page.slider(key="control margin").set_value(margin)
        yield f"One row: safety margin {margin}", timed(chosen.run)
    for columns in (["c1"], ["c1", "c2"]):
        now.allow(locked=tuple(columns))
        yield f"One row: lock {', '.join(columns)}", timed(page.run)
    now.allow(rising=("c3",))
    yield "One row: only rise", timed(page.run)


def report(rows: int, columns: int, goal: float, asked: Any) -> None:
    """Print how long each change took."""
    content = sample(rows, columns)
    made: list[Project] = []
    print(f"{rows:,} rows x {columns} columns, {len(content) / 2**20:.1f} MB")
    reading = timed(lambda: made.append(store().create("bench.csv", content)))
    print(f"{reading:8.2f} s  Data: reading")
    (now,) = made
    print(f"{timed(opened('data', now).run):8.2f} s  Data: first visit")
    for what, seconds in asked(now):
        late = seconds > goal and "first visit" not in what
        print(f"{seconds:8.2f} s  {what}{f'  over {goal} s' if late else ''}", flush=True)
    run = runs.new_run(now, runs.present(now))
    seconds = timed(lambda: list(runs.going(now, run)))
    print(f"{seconds:8.2f} s  Campaign: everyone, {rows / seconds:,.0f} rows a second")


def main(rows: int = 10_000, columns: int = 30) -> None:
    with TemporaryDirectory() as folder:
        os.environ["VOICECF_PROJECTS"] = folder
        report(rows, columns, GOAL, changes)
        report(200_000, 8, LARGE_GOAL, row_changes)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
