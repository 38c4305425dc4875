"""Many clusters at once: what the rows of all their cells have in common.

A cell of a thousand clusters has a thousand rows, and there are a thousand cells. But a row is a
difference of what two clusters have each, so products of these, one a pair of clusters, say all
that is needed of a million rows: see `_crowd`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf._compile import announce, in_parallel
from voicecf.clustering import Clustering
from voicecf.projection import FEW_ROWS, Projection, padded, writable
from voicecf.region import Array

Rows = NDArray[np.int64]
Single = NDArray[np.float32]
# Most pairs of clusters that are kept: tables of 32 and 16 MiB.
PAIRS = 1 << 23
# How finely products of two clusters are told, of 1.
TICKS = 32767
# Tables are as wide as a multiple of this, and an odd one: rows that are a power of two apart get
# into each other's way in a cache.
STRETCH = 64
# What no row reaches: the target itself, and what fills the tables.
NOWHERE = 1e38
# More than half a squared length, so that the largest score is positive. Around their middle
# centroids sum to zero, and so do their products with a point.
LIFT = 0.51
# Problems that are handed to a core at a time, and sorted by target.
CHUNK = 8192


@dataclass(frozen=True)
class Crowd:
    """Clusters and all pairs of them, as `_crowd` reads them.

    Lengths in single precision are in units of the longest centroid, seen from the middle.
    """

    centers: Array
    weights: Array
    alphas: Array
    lengths: Array
    middle: Array
    pull: Array
    scale: Array
    single: Single
    table: NDArray[np.int16]
    levels: Single
    halves: Single
    unit: float
    growth: float
    eps: float
    expanded: bool

    @classmethod
    def of(cls, clustering: Clustering, alphas: Array, delta: float) -> Crowd:
        """Prepare all pairs of clusters, each cell contracted by its alpha."""
        centers, weights, arithmetic = clustering.centers, clustering.weights, clustering.arithmetic
        middle, scale = centers.mean(axis=0), np.sqrt(weights + delta)
        around, pull = centers - middle, weights / scale
        products = (around * weights) @ around.T
        squares = np.diag(products)
        unit = 1.0 / np.sqrt(squares.max())
        own = unit * pull * around
        alpha = alphas[:, None]
        levels = 0.5 * alpha * squares + (1.0 - alpha) * products
        levels -= (1.0 - 0.5 * alpha) * squares[:, None]
        np.fill_diagonal(levels, NOWHERE / unit**2)
        return cls(
            centers=centers,
            weights=weights,
            alphas=alphas,
            lengths=np.sqrt((weights * centers**2).sum(axis=1)),
            middle=middle,
            pull=pull,
            scale=scale,
            single=_widened(padded(own.T, 4, 1)),
            table=np.rint(_widened(own @ own.T) * TICKS).astype(np.int16),
            levels=_widened(unit**2 * levels, NOWHERE),
            halves=_widened(0.5 * unit**2 * squares[None] - LIFT, NOWHERE)[0],
            unit=float(unit),
            growth=arithmetic.growth(centers.shape[1]),
            eps=arithmetic.eps,
            expanded=arithmetic.formula == "expanded",
        )

    def answer(
        self,
        points: Array,
        rows: Rows,
        targets: Rows,
        box: tuple[Array, Array],
        found: Projection,
        told: tuple[NDArray[Any], ...] = (),
    ) -> None:
        """Answer points `rows`, each for its target, into `found`; unresolved where left open.

        Where `told` is given, as least change of a coordinate and room for sources, costs and
        numbers of changes: assign and measure, too, and leave alone what is in its target.
        """
        from voicecf import _crowd

        none, nowhere = np.empty(0), np.empty(0, dtype=np.int64)
        least, source, cost, changed = told or (none, nowhere, none, nowhere)
        problem = (
            rows, writable(points), targets, *box,
            found.points, found.gap, found.reach, found.status,
            *(getattr(self, name) for name in self.__dataclass_fields__),
            least, source, cost, changed,
        )  # fmt: skip
        announce(_crowd.__file__, _crowd.crowd_chunk)
        in_parallel(lambda a, b: _crowd.crowd_chunk(a, b, *problem), len(rows), chunk=CHUNK)


def fits(clustering: Clustering) -> bool:
    """Tell whether clusters are a crowd: many, no two in one place, of known arithmetic."""
    k = clustering.n_clusters
    if not (k > FEW_ROWS + 1 and k * k <= PAIRS and clustering.trusted):
        return False
    seen = clustering.centers[:, clustering.weights > 0]
    spread = np.abs(seen - seen.mean(axis=0)).max()
    return bool(1e-60 < spread < 1e60) and len(np.unique(seen, axis=0)) == k


def _widened(table: Array, filling: float = 0.0) -> Single:
    """Turn a table into single precision, its rows filled up to an odd number of stretches."""
    stretches = -(-table.shape[1] // STRETCH)
    wide = np.full((len(table), (stretches | 1) * STRETCH), filling, dtype=np.float32)
    wide[:, : table.shape[1]] = table
    return wide
