"""Distinct rows, sorted, to draw starting centers from: in memory, or in runs on disk."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Protocol
from weakref import finalize

import numpy as np
import numpy.typing as npt
from sklearn.cluster import kmeans_plusplus

from voicecf.solver.passes import BATCH, Batches, Floats, Rows
from voicecf.streaming.spreading import spread_out

# Bytes of distinct rows that are held in memory; beyond, they go to a temporary folder.
HELD = 1 << 29


class Distinct(Protocol):
    """The distinct rows among those to cluster, sorted; starting centers are drawn from them."""

    @property
    def count(self) -> int:
        """How many there are."""

    def take(self, positions: npt.NDArray[np.int64]) -> Floats:
        """Return some of them."""

    def spread_out(self, k: int, seeds: list[int]) -> list[Floats]:
        """Draw centers far from one another (k-means++), k for each seed."""


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows in memory."""

    rows: Rows

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.rows.X)

    def take(self, positions: npt.NDArray[np.int64]) -> Floats:
        """Return some of them."""
        return self.rows.X[positions]

    def spread_out(self, k: int, seeds: list[int]) -> list[Floats]:
        """Draw centers far from one another (k-means++), k for each seed."""
        mass = self.rows.mass
        return [
            kmeans_plusplus(self.rows.X, k, sample_weight=mass, random_state=seed)[0]
            for seed in seeds
        ]


class DistinctStream:
    """The distinct rows among batches, found when they are asked for: in one pass."""

    def __init__(self, batches: Iterable[Rows]) -> None:
        self._batches = batches

    @cached_property
    def _found(self) -> Distinct:
        return _distinct(self._batches)

    @property
    def count(self) -> int:
        """How many there are."""
        return self._found.count

    def take(self, positions: npt.NDArray[np.int64]) -> Floats:
        """Return some of them."""
        return self._found.take(positions)

    def spread_out(self, k: int, seeds: list[int]) -> list[Floats]:
        """Draw centers far from one another (k-means++), k for each seed."""
        return self._found.spread_out(k, seeds)


def _distinct(batches: Iterable[Rows]) -> Distinct:
    """Sort and deduplicate; put a run aside whenever the rows held grow too many."""
    runs: Runs | None = None
    held: list[Rows] = []
    for rows in batches:
        held.append(rows.distinct())
        if sum(part.X.nbytes for part in held) > HELD:
            held = [_union(held)]
            if held[0].X.nbytes > HELD // 2:  # they did not shrink to a handful
                runs = runs or Runs.opened()
                runs.put_aside(held.pop())
    if runs is None:
        return DistinctRows(_union(held))
    if held:
        runs.put_aside(_union(held))
    return runs


def _union(parts: list[Rows]) -> Rows:
    """Return the distinct rows of several, their masses added up."""
    X, mass = (np.concatenate([getattr(p, name) for p in parts]) for name in ("X", "mass"))
    return Rows(X, mass).distinct()


@dataclass(frozen=True)
class Runs:
    """Sorted runs of rows in a temporary folder, merged as they are read."""

    folder: Path
    files: list[Path] = field(default_factory=list)

    @classmethod
    def opened(cls) -> Runs:
        """Make a folder, which is gone when this object is."""
        runs = cls(Path(mkdtemp(prefix="voicecf-")))
        finalize(runs, rmtree, runs.folder, ignore_errors=True)
        return runs

    def put_aside(self, rows: Rows) -> None:
        """Write a run: rows, and the mass of each in a last column."""
        path = self.folder / f"{len(self.files)}.npy"
        np.save(path, np.column_stack([rows.X, rows.mass]))
        self.files.append(path)

    def __iter__(self) -> Iterator[Rows]:
        """Merge the runs: yield the distinct rows in order, in pieces of various lengths."""
        runs = [np.load(path, mmap_mode="r") for path in self.files]
        size = max(1, BATCH // len(runs))
        while runs:
            heads = [np.array(run[:size]) for run in runs]
            ends = Rows(np.array([head[-1, :-1] for head in heads]), np.ones(len(heads)))
            # Whatever comes up to the first end is in the heads.
            cuts = [_up_to(head, ends.distinct().X[0]) for head in heads]
            parts = [head[:cut] for head, cut in zip(heads, cuts, strict=True)]
            yield _union([Rows(part[:, :-1], part[:, -1]) for part in parts])
            runs = [run[cut:] for run, cut in zip(runs, cuts, strict=True)]
            runs = [run for run in runs if len(run)]

    @cached_property
    def count(self) -> int:
        """How many distinct rows there are."""
        return sum(len(rows.X) for rows in self)

    def take(self, positions: npt.NDArray[np.int64]) -> Floats:
        """Return some of them."""
        found, start = [], 0
        for rows in self:
            here = (positions >= start) & (positions < start + len(rows.X))
            found.append((np.flatnonzero(here), rows.X[positions[here] - start]))
            start += len(rows.X)
        taken = np.empty((len(positions), found[0][1].shape[1]))
        for at, values in found:
            taken[at] = values
        return taken

    def spread_out(self, k: int, seeds: list[int]) -> list[Floats]:
        """Draw centers far from one another (k-means++), k for each seed."""
        masters = [np.random.RandomState(seed) for seed in seeds]
        return spread_out(Batches(self), sum(float(rows.mass.sum()) for rows in self), k, masters)


def _up_to(head: Floats, bound: Floats) -> int:
    """Count the rows of a sorted run that do not come after `bound`."""
    before = np.zeros(len(head), np.bool_)
    same = np.ones(len(head), np.bool_)
    for v, value in enumerate(bound):
        before |= same & (head[:, v] < value)
        same &= head[:, v] == value
    return int(np.count_nonzero(before | same))
