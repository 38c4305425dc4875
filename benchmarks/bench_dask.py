"""Time Dask on two workers against the same question in one process.

Run `python benchmarks/bench_dask.py [rows]`. The rows lie in memory either way: in one frame here,
in partitions on the workers there. Both sides end with a table of answers in the user's columns
and voicecf's own; "gathered" also brings the workers' table here.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from distributed import Client, LocalCluster, wait
from sklearn.cluster import KMeans

from voicecf import SHARK, VoICE
from voicecf.files import explain_batches

N_ROWS, N_FEATURES, K = 1_000_000, 13, 5
PARTITION = 125_000
ROUNDS = 3


def data(n: int) -> pd.DataFrame:
    """Make clusters that overlap."""
    rng = np.random.default_rng(0)
    centers = 2.0 * rng.normal(size=(K, N_FEATURES))
    X = rng.normal(size=(n, N_FEATURES)) + centers[rng.integers(K, size=n)]
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(N_FEATURES)])


def in_process(voice: VoICE, frame: pd.DataFrame) -> pd.DataFrame:
    """Answer here, batch by batch, into one table."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    batches = table.to_batches(max_chunksize=PARTITION)
    return pa.Table.from_batches(explain_batches(voice, batches)).to_pandas()


def on_workers(voice: VoICE, frame: dd.DataFrame) -> Any:
    """Answer where the partitions lie, and leave the answers there."""
    answers = voice.explain(frame).persist()
    wait(answers)
    return answers


def _medians(contestants: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of each: the median of rounds that visit all of them in turn."""
    for run in contestants.values():  # compile, connect
        run()
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: float(np.median(values)) for name, values in seconds.items()}


def rows(n: int = N_ROWS) -> list[tuple[str, float, float, str]]:
    """Measure; return (what, seconds, ratio to the run in one process, goal for the ratio)."""
    frame = data(n)
    voice = VoICE(KMeans(K, n_init=1, random_state=0)).fit(frame.head(100_000))
    shark = SHARK(K, init=frame.to_numpy()[:K], max_iter=3, tol=0.0)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        lazy = client.persist(dd.from_pandas(frame, chunksize=PARTITION))
        wait(lazy)
        seconds = _medians(
            {
                "here": lambda: in_process(voice, frame),
                "there": lambda: on_workers(voice, lazy),
                "gathered": lambda: on_workers(voice, lazy).compute(),
                "fit here": lambda: shark.fit(frame),
                "fit there": lambda: shark.fit(lazy),
            }
        )
    what, one, fit = f"{n:,} rows, d={N_FEATURES}, k={K}", seconds["here"], seconds["fit here"]
    return [
        (f"{what}: explain in one process", one, 1.0, ""),
        (f"{what}: explain, Dask on 2 workers", seconds["there"], seconds["there"] / one, "<= 1.5"),
        (f"{what}: the same, gathered", seconds["gathered"], seconds["gathered"] / one, ""),
        (f"{what}: SHARK in one process", fit, 1.0, ""),
        (f"{what}: SHARK, Dask on 2 workers", seconds["fit there"], seconds["fit there"] / fit, ""),
    ]


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    for what, seconds, ratio, goal in rows(n):
        print(f"{what}: {seconds:.2f} s, ratio {ratio:.2f} {goal}")


if __name__ == "__main__":
    main()
