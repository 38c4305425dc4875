"""Time one pass of SHARK against scikit-learn's KMeans and a plain numpy version.

Run `python benchmarks/bench_shark.py`. The data are Diabetes: 253,680 rows, 20 standardised
columns, k = 3.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from voicecf import datasets
from voicecf.parallel import cores
from voicecf.shark import FLOOR, restart
from voicecf.solver.passes import MassRows, together

K = 3
ROUNDS = 7
# The time of a pass is a difference between two runs, which leaves set-up and last assignment out.
FEW, MANY = 2, 8


def broadcast_pass(X: np.ndarray, centers: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """One pass as one would write it in numpy, with an n x k x d temporary."""
    distance = ((X[:, None, :] - centers) ** 2 * weights).sum(axis=2)
    labels = distance.argmin(axis=1)
    phi = np.zeros(X.shape[1])
    for j in range(len(centers)):
        members = X[labels == j]
        phi += ((members - members.mean(axis=0)) ** 2).sum(axis=0)
    weights = 1 / np.maximum(phi, FLOOR)
    return weights / weights.sum()


def _timed(run: Callable[[], int]) -> tuple[float, int]:
    start = time.perf_counter()
    passes = run()
    return time.perf_counter() - start, passes


def _per_pass(run: Callable[[int], int]) -> float:
    few, passes_of_few = _timed(lambda: run(FEW))
    many, passes_of_many = _timed(lambda: run(MANY))
    return (many - few) / (passes_of_many - passes_of_few)


def measure(X: np.ndarray) -> dict[str, float]:
    """Seconds a pass: the median of rounds that visit each contestant in turn."""
    rows = MassRows(X, np.ones(len(X)))
    centers = X[np.random.default_rng(1).choice(len(X), size=K, replace=False)]
    equal = np.full(X.shape[1], 1 / X.shape[1])

    def kmeans(passes: int) -> int:
        model = KMeans(K, init=centers, n_init=1, algorithm="lloyd", tol=0, max_iter=passes)
        return int(model.fit(X).n_iter_)

    def shark(passes: int) -> int:
        return together([restart(centers, passes, 0.0)], rows)[0].n_iter

    contestants: dict[str, Callable[[], float]] = {
        "SHARK": lambda: _per_pass(shark),
        "KMeans": lambda: _per_pass(kmeans),
        "numpy": lambda: _timed(lambda: len(broadcast_pass(X, centers, equal)))[0],
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for one in contestants.values():  # compile, and fill caches
            one()
        for _ in range(ROUNDS):
            for name, one in contestants.items():
                seconds[name].append(one())
    return {name: float(np.median(values)) for name, values in seconds.items()}


def rows() -> list[tuple[str, float, float, str]]:
    """Measure; return (what, seconds a pass, ratio, goal for the ratio)."""
    seconds = measure(datasets.load("diabetes").standardised())
    shark = seconds["SHARK"]
    return [
        ("SHARK, a pass", shark, 1.0, ""),
        (
            "KMeans, a pass; SHARK takes ratio times that",
            seconds["KMeans"],
            shark / seconds["KMeans"],
            "<= 1.2",
        ),
        (
            "numpy, a pass; SHARK is ratio times as fast",
            seconds["numpy"],
            seconds["numpy"] / shark,
            ">= 10",
        ),
    ]


if __name__ == "__main__":
    print(f"Diabetes; {cores()} cores; median of {ROUNDS} rounds")
    for what, measured, ratio, goal in rows():
        print(f"{what:<48} {measured * 1e3:9.2f} ms  {ratio:6.2f}  {goal}")
