"""How long the app takes to answer a changed control: whole runs of its pages, without a browser.

Usage: python benchmarks/bench_app.py [rows] [columns]
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from voicecf.app.row.question import Objective
from voicecf.app.data.reading import read_table
from voicecf.app.session import Work

PAGE = """
from voicecf.app.pages import {name}
from voicecf.app.session import page
page({name}.show)()
"""
GOAL = 0.5


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


def opened(name: str, now: Work) -> AppTest:
    page = AppTest.from_string(PAGE.format(name=name), default_timeout=600)
    page.session_state["work"] = now
    return page


def changes(now: Work) -> Iterator[tuple[str, float]]:
    """Yield what was changed, and how long the page took to answer."""
    page = opened("segments", now)
    yield "Segments: first visit", timed(page.run)
    yield "Segments: number of segments", timed(page.slider[0].set_value(5).run)
    yield "Segments: back to four", timed(page.slider[0].set_value(4).run)
    yield "Segments: SHARK", timed(page.radio[0].set_value(page.radio[0].options[1]).run)
    now.method = type(now.method)("k-means")
    yield "Segments: a name", timed(page.text_input[0].set_value("Regulars").run)
    page = opened("row", now)
    yield "One row: first visit", timed(page.run)
    for row in (2, 77, 4321):
        yield f"One row: row {row}", timed(page.number_input[0].set_value(row).run)
    yield "One row: target", timed(page.selectbox[0].select_index(2).run)
    for goal in list(Objective)[::-1]:
        yield f"One row: look for {goal}", timed(page.radio[0].set_value(goal).run)
    for margin in (10, 25):
        yield f"One row: safety margin {margin}", timed(page.slider[0].set_value(margin).run)
    yield "One row: lock a column", timed(page.multiselect[0].set_value(["c1"]).run)
    yield "One row: lock two", timed(page.multiselect[0].set_value(["c1", "c2"]).run)
    yield "One row: only rise", timed(page.multiselect[1].set_value(["c3"]).run)
    yield "One row: map by columns", timed(page.selectbox[1].select_index(2).run)
    yield "Everyone: first visit", timed(opened("everyone", now).run)
    yield "Compare: first visit", timed(opened("compare", now).run)
    yield "Take away: first visit", timed(opened("takeaway", now).run)


def main(rows: int = 10_000, columns: int = 30) -> None:
    content = sample(rows, columns)
    table: list[Any] = []
    print(f"{rows:,} rows x {columns} columns, {len(content) / 2**20:.1f} MB")
    print(f"{timed(lambda: table.append(read_table(content, 'bench.csv'))):8.2f} s  Data: reading")
    now = Work(table=table[0])
    print(f"{timed(opened('data', now).run):8.2f} s  Data: first visit")
    for what, seconds in changes(now):
        mark = "" if seconds <= GOAL or "first visit" in what else "  over half a second"
        print(f"{seconds:8.2f} s  {what}{mark}", flush=True)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
