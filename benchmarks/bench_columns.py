"""Time the search over whole numbers, categories and few columns, in the user's own tables.

Run `python benchmarks/bench_columns.py`, or `make bench` for all. Every row moves to the next
cluster; times are those of `explain`, from the user's table to answers that the pipeline has
confirmed. The first call, which compiles, is left out.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import Status, VoICE, datasets
from voicecf.parallel import cores
from voicecf.search import aims

Row = tuple[str, float, float, str]
TABLES = {"student": "Student, 39 coordinates", "german_credit": "German Credit, 48 coordinates"}
OBJECTIVES = ("cost", "fewest")
GOAL = 5e-3
BATCH, SINGLE, ROUNDS = 400, 100, 3


@dataclass(frozen=True)
class Measured:
    """One table and objective: seconds a row, boxes that were looked at, how rows ended.

    `predict` is what the pipeline's own predict takes for one row: an answer needs one of them.
    """

    name: str
    batch: float
    singly: np.ndarray
    predict: float
    nodes: np.ndarray
    searched: float
    ends: Counter[str]

    @property
    def note(self) -> str:
        """Say what a table of times has no column for."""
        middle, most = np.percentile(self.nodes, [50, 99])
        ends = ", ".join(f"{n} {status}" for status, n in self.ends.items())
        return (
            f"{self.name}: {middle:.0f} nodes in the median, {most:.0f} at 99 %; "
            f"{self.searched * 1e3:.2f} ms a row of the batch in the search itself; {ends}"
        )


class Watched:
    """`branch` as it is, with its nodes and its time kept."""

    def __init__(self) -> None:
        self.plain = aims.branch
        self.nodes: list[np.ndarray] = []
        self.seconds = 0.0

    def __call__(self, *problem: Any, **options: Any) -> Any:
        """Search, and keep count."""
        start = time.perf_counter()
        nodes = np.empty(len(problem[2]), dtype=np.int64)
        found = self.plain(*problem, **options, nodes=nodes)
        self.seconds += time.perf_counter() - start
        self.nodes.append(nodes)
        return found

    def __enter__(self) -> Watched:
        aims.branch = self
        return self

    def __exit__(self, *_: object) -> None:
        aims.branch = self.plain


def fitted(name: str) -> tuple[VoICE, pd.DataFrame, np.ndarray]:
    """Cluster a table in its own columns; rows to explain, and where to."""
    data = datasets.load(name)
    frame = data.frame
    text = [c for c in frame if not pd.api.types.is_numeric_dtype(frame[c])]
    steps = [
        ("numbers", StandardScaler(), [c for c in frame if c not in text]),
        ("text", OneHotEncoder(drop="first", sparse_output=False), text),
    ]
    model = KMeans(data.k, n_init=10, random_state=42)
    pipeline = make_pipeline(ColumnTransformer(steps), model).fit(frame)
    rows = frame.sample(BATCH, random_state=0)
    return VoICE(pipeline).fit(frame), rows, (pipeline.predict(rows) + 1) % data.k


def measure(name: str, objective: str) -> Measured:
    """Answer all rows at once, some one by one, and all once more to look inside."""
    voice, rows, target = fitted(name)

    def explain(which: slice) -> Any:
        return voice.explain(rows.iloc[which], target[which], objective=objective, plausible=None)

    def timed(which: slice) -> float:
        start = time.perf_counter()
        explain(which)
        return time.perf_counter() - start

    explain(slice(0, 1))
    batch = min(timed(slice(None)) for _ in range(ROUNDS)) / BATCH
    singly = np.array([timed(slice(i, i + 1)) for i in range(SINGLE)])
    predict = np.median([_predicting(voice, rows.iloc[i : i + 1]) for i in range(SINGLE)])
    with Watched() as watched:
        cf = explain(slice(None))
    ends = Counter(Status(s).name.lower() for s in cf.status)
    return Measured(
        f"{TABLES[name]}, {objective}", batch, singly, float(predict),
        np.concatenate(watched.nodes), watched.seconds / BATCH, ends,
    )  # fmt: skip


def _predicting(voice: VoICE, row: pd.DataFrame) -> float:
    start = time.perf_counter()
    voice.model_.predict(row)
    return time.perf_counter() - start


@cache
def measured() -> list[Measured]:
    """Measure everything, once."""
    return [measure(name, objective) for name in TABLES for objective in OBJECTIVES]


def rows() -> Iterator[Row]:
    """Tell times: what, seconds, ratio to the goal, goal."""
    for one in measured():
        middle, most = np.percentile(one.singly, [50, 99])
        yield f"{one.name}: in a batch, a row", one.batch, one.batch / GOAL, "<= 5 ms: 1"
        yield f"{one.name}: alone, median", middle, middle / GOAL, "<= 5 ms: 1"
        yield f"{one.name}: alone, 99 %", most, most / GOAL, ""
        yield f"{one.name}: alone / pipeline.predict", one.predict, middle / one.predict, "<= 1.5"


def notes() -> list[str]:
    """Tell nodes and ends, a line each."""
    return [one.note for one in measured()]


if __name__ == "__main__":
    load = f"; load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{cores()} cores{load}; {BATCH} rows at once, {SINGLE} alone")
    for what, seconds, ratio, goal in rows():
        print(f"{what:<62} {seconds * 1e3:9.2f} ms {ratio:8.2f}  {goal}", flush=True)
    print("\n".join(notes()))
