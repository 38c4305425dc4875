"""Time explain and the search for neighbours with many clusters.

Run `python benchmarks/bench_neighbors.py`. Centroids are uniform in a cube, or in clumps as those
of real data; every point moves to the same target. "finding" is what the neighbours of one target
take, once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from voicecf import VoICE
from voicecf.parallel import cores

Row = tuple[str, float, float, str]
DIMENSIONS, CLUSTERS = (3, 20), (10, 100, 1_000, 5_000)
POINTS, TARGETS, ROUNDS = 2_000, 3, 3


@dataclass(frozen=True)
class Measured:
    """One set of centroids: how many neighbours, seconds of their search, seconds a point."""

    shape: str
    d: int
    k: int
    count: float
    finding: float
    point: float


def centroids(shape: str, k: int, d: int) -> np.ndarray:
    """Uniform in a cube, or spread about a tenth as many places."""
    rng = np.random.default_rng(k + d)
    if shape == "uniform":
        return rng.uniform(size=(k, d))
    places = rng.normal(size=(max(2, k // 10), d))
    return places[rng.integers(len(places), size=k)] + 0.2 * rng.normal(size=(k, d))


def a_point(voice: VoICE, points: np.ndarray) -> float:
    """Seconds a point, the best of some rounds, when all that is kept for the target is there."""
    best = np.inf
    voice.explain(points[:100], target=0, plausible=None)
    for _ in range(ROUNDS):
        start = time.perf_counter()
        voice.explain(points, target=0, plausible=None)
        best = min(best, time.perf_counter() - start)
    return best / len(points)


def measure(shape: str, k: int, d: int) -> Measured:
    """Time one set of centroids."""
    centers = centroids(shape, k, d)
    around = np.random.default_rng(1).integers(k, size=POINTS)
    points = centers[around] + 0.05 * np.random.default_rng(2).normal(size=(POINTS, d))
    voice, taken, counts = VoICE.from_centers(centers), [], []
    for target in range(TARGETS):
        start = time.perf_counter()
        counts.append(len(voice.neighbors(target)))
        taken.append(time.perf_counter() - start)
    found = float(np.mean(counts)), float(np.median(taken))
    return Measured(shape, d, k, *found, a_point(voice, points))


def measured() -> Iterator[Measured]:
    """Measure all."""
    for d in DIMENSIONS:
        for shape in ("uniform", "clumps"):
            for k in CLUSTERS:
                yield measure(shape, k, d)


def rows() -> Iterator[Row]:
    """Lines of the common table: a point, and how many of them finding the neighbours takes."""
    for each in measured():
        what = f"neighbours: {each.shape}, d={each.d}, k={each.k:,}, {each.count:.0f} neighbours"
        yield what, each.point, each.finding / each.point, ""


def main() -> None:
    """Print the table."""
    print(f"{cores()} cores, numpy {np.__version__}, Python {sys.version.split()[0]}\n")
    print("| centroids | d | k | neighbours | finding | explain, a point |")
    print("|---|---|---|---|---|---|")
    for m in measured():
        print(
            f"| {m.shape} | {m.d} | {m.k:,} | {m.count:.0f} | {m.finding * 1e3:.1f} ms "
            f"| {m.point * 1e6:.1f} us |",
            flush=True,
        )


if __name__ == "__main__":
    main()
