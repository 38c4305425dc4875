"""Time Dask on two workers against one: SHARK's fit and explain, on rows that lie on the workers.

Run `python benchmarks/bench_dask.py [rows]`. A worker is a process with one thread. Both clusters
are up all the time and take turns. The answers are computed in full and only their sum comes back.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster, wait
from sklearn.cluster import KMeans

from voicecf import SHARK, VoICE

N_ROWS, N_FEATURES, K = 5_000_000, 13, 5
PARTITION = 250_000
ROUNDS = 3


def data(seed: int, n: int = PARTITION) -> pd.DataFrame:
    """Make a partition of clusters that overlap."""
    centers = 2.0 * np.random.default_rng(0).normal(size=(K, N_FEATURES))
    rng = np.random.default_rng([1, seed])
    X = rng.normal(size=(n, N_FEATURES)) + centers[rng.integers(K, size=n)]
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(N_FEATURES)])


class Workers:
    """A cluster of some workers, and the rows on it."""

    def __init__(self, n_workers: int, n_rows: int) -> None:
        self.cluster = LocalCluster(
            n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address=None
        )
        self.client = Client(self.cluster)
        with self.client.as_current():
            parts = range(-(-n_rows // PARTITION))
            self.frame = dd.from_map(data, parts, meta=data(0, 1)).persist()
            wait(self.frame)

    def fit(self) -> None:
        """Fit SHARK."""
        with self.client.as_current():
            SHARK(K, n_init=4, max_iter=5, tol=0.0, random_state=0).fit(self.frame)

    def explain(self, voice: VoICE) -> None:
        """Answer every row."""
        with self.client.as_current():
            voice.explain(self.frame)["voicecf_cost"].sum().compute()

    def close(self) -> None:
        """Stop the processes."""
        self.client.close()
        self.cluster.close()


def _seconds(contestants: dict[Any, Callable[[], Any]]) -> dict[Any, list[float]]:
    """Return the seconds of each in rounds that visit all of them in turn."""
    seconds: dict[Any, list[float]] = {name: [] for name in contestants}
    for _ in range(ROUNDS + 1):
        for name, run in contestants.items():
            start = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - start)
    return {name: values[1:] for name, values in seconds.items()}  # the first connects and imports


def rows(n: int = N_ROWS) -> list[tuple[str, float, float, str]]:
    """Measure; return (what, seconds on two workers, how many times as fast as one, goal)."""
    voice = VoICE(KMeans(K, n_init=1, random_state=0)).fit(data(0))
    one, two = (Workers(n_workers, n) for n_workers in (1, 2))
    seconds = _seconds(
        {
            ("SHARK's fit", 1): one.fit,
            ("SHARK's fit", 2): two.fit,
            ("explain", 1): partial(one.explain, voice),
            ("explain", 2): partial(two.explain, voice),
        }
    )
    one.close()
    two.close()
    found = []
    for what in ("SHARK's fit", "explain"):
        for name, middle in (("median", np.median), ("least", np.min)):
            single, double = (float(middle(seconds[what, workers])) for workers in (1, 2))
            words = f"{n:,} rows, d={N_FEATURES}, k={K}: {what}, {name} of {ROUNDS}"
            found.append((words, double, single / double, ">= 1.6"))
    return found


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_ROWS
    for what, seconds, ratio, goal in rows(n):
        print(f"{what}: {seconds:.2f} s on 2 workers, {ratio:.2f} times as fast as on 1 {goal}")


if __name__ == "__main__":
    main()
