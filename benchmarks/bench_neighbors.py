"""Time explain with many clusters: with the rows of neighbours only, and with all rows.

Run `python benchmarks/bench_neighbors.py`. Centroids are uniform in a cube, or in clumps as those
of real data; every point moves to the same target. "finding" is what the neighbours of one target
take, once; "pays from" is the number of points from which on that is worth it. Where the library
does not look for neighbours of its own accord, it is made to, for the comparison.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf import VoICE, neighbors
from voicecf.parallel import cores

Row = tuple[str, float, float, str]
DIMENSIONS, CLUSTERS = (3, 20), (10, 100, 1_000, 5_000)
POINTS, TARGETS, ROUNDS = 2_000, 3, 3


@dataclass(frozen=True)
class Measured:
    """One set of centroids: seconds of the search, and a point without and with neighbours."""

    shape: str
    d: int
    k: int
    count: float
    finding: float
    without: float
    with_: float

    @property
    def pays_from(self) -> float:
        """Points from which on finding neighbours first is sooner."""
        saved = self.without - self.with_
        return self.finding / saved if saved > 0 else np.inf


def centroids(shape: str, k: int, d: int) -> np.ndarray:
    """Uniform in a cube, or spread about a tenth as many places."""
    rng = np.random.default_rng(k + d)
    if shape == "uniform":
        return rng.uniform(size=(k, d))
    places = rng.normal(size=(max(2, k // 10), d))
    return places[rng.integers(len(places), size=k)] + 0.2 * rng.normal(size=(k, d))


class Deciding:
    """Decide for the library whether it looks for neighbours."""

    def __init__(self, wanted: bool) -> None:
        self.limits = (1_000, 0) if wanted else (0, 0)

    def __enter__(self) -> None:
        self.kept = neighbors.LOCAL, neighbors.MANY
        neighbors.LOCAL, neighbors.MANY = self.limits

    def __exit__(self, *_: Any) -> None:
        neighbors.LOCAL, neighbors.MANY = self.kept


def a_point(centers: np.ndarray, points: np.ndarray, wanted: bool) -> float:
    """Seconds a point, the best of some rounds, when all that is kept for the target is there."""
    voice, best = VoICE.from_centers(centers), np.inf
    with Deciding(wanted):
        voice.explain(points[:100], target=0, bounds={})
        for _ in range(ROUNDS):
            start = time.perf_counter()
            voice.explain(points, target=0, bounds={})
            best = min(best, time.perf_counter() - start)
    return best / len(points)


def measure(shape: str, k: int, d: int) -> Measured:
    """Time one set of centroids."""
    centers = centroids(shape, k, d)
    around = np.random.default_rng(1).integers(k, size=POINTS)
    points = centers[around] + 0.05 * np.random.default_rng(2).normal(size=(POINTS, d))
    voice, taken, counts = VoICE.from_centers(centers), [], []
    voice.neighbors(k - 1)  # compiles
    for target in range(TARGETS):
        start = time.perf_counter()
        counts.append(len(voice.neighbors(target)))
        taken.append(time.perf_counter() - start)
    both = [a_point(centers, points, wanted) for wanted in (False, True)]
    return Measured(shape, d, k, float(np.mean(counts)), float(np.median(taken)), *both)


def measured() -> Iterator[Measured]:
    """Measure all."""
    for d in DIMENSIONS:
        for shape in ("uniform", "clumps"):
            for k in CLUSTERS:
                yield measure(shape, k, d)


def rows() -> Iterator[Row]:
    """Lines of the common table: a point with neighbours, and how many times longer without."""
    for each in measured():
        what = f"neighbours: {each.shape}, d={each.d}, k={each.k:,}, {each.count:.0f} neighbours"
        goal = "> 1 for d=3, k >= 500" if each.d == 3 and each.k >= 500 else ""
        yield what, each.with_, each.without / each.with_, goal


def main() -> None:
    """Print the table."""
    print(f"{cores()} cores, numpy {np.__version__}, Python {sys.version.split()[0]}")
    print("| centroids | d | k | neighbours | finding | all rows | neighbours only | pays from |")
    print("|---|---|---|---|---|---|---|---|")
    for m in measured():
        pays = f"{m.pays_from:,.0f} points" if np.isfinite(m.pays_from) else "never"
        print(
            f"| {m.shape} | {m.d} | {m.k:,} | {m.count:.0f} | {m.finding * 1e3:.1f} ms "
            f"| {m.without * 1e6:.1f} us | {m.with_ * 1e6:.1f} us | {pays} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
