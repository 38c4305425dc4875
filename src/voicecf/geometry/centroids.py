"""The partition of a nearest-centroid model: k-means, plain or weighted."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, MiniBatchKMeans

import voicecf._core as _core
from voicecf.errors import ModelError
from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.cell import Cell
from voicecf.geometry.partition import FLOAT64, Partition, on_host
from voicecf.geometry.pullback import Mixing
from voicecf.geometry.tolerance import LARGEST_SPREAD, LEAST_SPREAD, TOLERANCE, squarable
from voicecf.parallel import in_parallel

# Centroids whose distances to all others are computed at a time; it limits the memory.
BLOCK = 512
# Most pairs of clusters for which the constraints of all cells are stored: two tables of 32 MiB.
PAIRS = 1 << 23
# Class attribute that names the formula of a model's predict: see `Arithmetic.formula`.
DISTANCE_FORMULA = "_distance_formula"


@dataclass(frozen=True, kw_only=True)
class Centroids(Partition):
    """Centroids and weights of a nearest-centroid model; its pieces are weighted Voronoi cells.

    Attributes
    ----------
    centers : array of shape (k, d)
    """

    centers: Array

    rule: ClassVar[str] = (
        "that of the nearest centroid; only nearest-centroid models have Voronoi cells. Use KMeans "
        "or SHARK."
    )
    wins: ClassVar[str] = "nearer"
    almost_wins: ClassVar[str] = "too near"

    @classmethod
    def of(cls, model: Any) -> Self:
        """Return the centroids and weights of a fitted model."""
        return cls.at(model.cluster_centers_, model)

    @classmethod
    def at(cls, centers: Any, model: Any) -> Self:
        """Return these centroids of a fitted model, with its weights."""
        centers = on_host(centers)
        dtype = np.dtype(np.float32 if np.asarray(centers).dtype == np.float32 else np.float64)
        formula: Any = getattr(type(model), DISTANCE_FORMULA, "expanded")
        return cls.from_centers(
            centers,
            getattr(model, "feature_weights_", None),
            arithmetic=Arithmetic(formula, float(np.finfo(dtype.type).eps)),
            dtype=dtype,
            model=model,
            trusted=_is_known(type(model)) or not hasattr(model, "predict"),
        )

    @classmethod
    def from_centers(cls, centers: Any, weights: Any = None, **attributes: Any) -> Self:
        """Check centroids and weights, and scale the weights to sum to 1.

        `attributes` are further attributes of the partition.
        """
        centers = _numbers(centers)
        if centers.ndim != 2 or not np.isfinite(centers).all():
            raise ModelError("centers must be a finite array of shape (k, d).")
        if centers.shape[1] == 0:
            raise ModelError("centers have no columns; a clustering needs a feature.")
        if fault := not_squarable(centers, attributes.get("dtype", FLOAT64)):
            raise ModelError(fault)
        if len(centers) < 2:
            raise ModelError("the model has one cluster: there is no other to move to. Use k >= 2.")
        if (centers == centers[0]).all():
            raise ModelError(
                "all centers coincide: there is no other cluster to move to. Use rows that differ."
            )
        d = centers.shape[1]
        weights = np.full(d, 1.0) if weights is None else _numbers(weights)
        if weights.shape != (d,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ModelError(f"weights must be {d} finite numbers, none negative: one per feature.")
        if not weights.any():
            raise ModelError("all weights are zero: every point is equally close to all centroids.")
        weights = weights / weights.max()
        return cls(centers=centers, weights=weights / weights.sum(), **attributes)

    def arrays(self) -> dict[str, Any]:
        """Return the centroids."""
        return {"centers": self.centers}

    @classmethod
    def of_arrays(cls, weights: Array, arrays: dict[str, Any]) -> Self:
        """Return centroids without a model; their weights are scaled already."""
        return cls(centers=cls.from_centers(arrays["centers"], weights).centers, weights=weights)

    @cached_property
    def label_of(self) -> Ints:
        """The label of each piece: its own number."""
        return np.arange(len(self.centers))

    @property
    def repeatable(self) -> bool:
        """Whether the model's `predict` assigns a point alike in any batch.

        The formula "expanded" is made of matrix products, which do not.
        """
        return self.trusted and self.arithmetic.formula == "direct"

    def whole_piece(self, p: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        return Cell(self.centers, self.weights, p)

    def assign(self, points: Array) -> tuple[Ints, Mask]:
        """Return the nearest centroid by the direct formula, and a mask of ties up to rounding."""
        labels = np.empty(len(points), dtype=np.int64)
        doubtful = np.empty(len(points), dtype=np.bool_)
        points, compiled = np.ascontiguousarray(points), self._compiled
        in_parallel(lambda a, b: compiled.nearest(points, labels, doubtful, a, b), len(points))
        return labels, doubtful

    @cached_property
    def _compiled(self) -> _core.Rows:
        """The centroids alone, without the constraints of the cells."""
        return self._table(None, 0.0)

    def table(self, alphas: Array, delta: float) -> _core.Rows | None:
        """Return the constraints of all cells in one table of the compiled core.

        None if two centroids coincide, if there are too many, or if they are so large or so close
        that products of squared distances could overflow or underflow; and for a model whose
        arithmetic is not known.
        """
        centers, (_, ignored) = self.centers[:, self.weights > 0], self.ignored
        k, spread = len(centers), np.abs(centers - centers.mean(axis=0)).max()
        fits = k * k <= PAIRS and bool(LEAST_SPREAD < spread < LARGEST_SPREAD)
        if ignored or not (self.trusted and fits) or len(np.unique(centers, axis=0)) < k:
            return None
        return self._table(alphas, delta)

    def _table(self, alphas: Array | None, delta: float) -> _core.Rows:
        """Return the centroids and, with `alphas`, the constraints of all cells, compiled."""
        rounding, d = self.arithmetic, self.centers.shape[1]
        return _core.Rows.clusters(
            self.centers, self.weights, alphas, delta, rounding.growth(d), rounding.eps,
            rounding.formula == "expanded",
        )  # fmt: skip

    def indistinct(self) -> Ints:
        """Return the clusters whose own centroid rounding in `predict` could put elsewhere.

        Rivals whose centroid coincides with that of a cluster are left out: there the first of them
        gets all points, however the model rounds.
        """
        sizes = np.sqrt((self.weights * self.centers**2).sum(axis=1))
        nearest = np.concatenate([self._nearest_rivals(a) for a in range(0, len(sizes), BLOCK)])
        rounding, d = self.arithmetic, self.centers.shape[1]
        error = 4.0 * rounding.eps * sizes * np.sqrt(nearest)  # of a point's own coordinates
        if rounding.formula == "expanded":
            error += rounding.growth(d) * (sizes + sizes.max()) ** 2
        return np.flatnonzero(nearest <= error)

    def _nearest_rivals(self, start: int) -> Array:
        """Return squared distances of some centroids to the nearest other one, of those apart."""
        distances = self.distances(self.centers[start : start + BLOCK])
        return np.asarray(np.where(distances > 0.0, distances, np.inf).min(axis=1))

    def distances(self, points: Array) -> Array:
        """Return the weighted squared distances of points to all centroids, shape (n, k)."""
        scale = np.sqrt(self.weights)
        return np.asarray(cdist(points * scale, self.centers * scale, "sqeuclidean"))

    @np.errstate(all="ignore")
    def lower_bounds(
        self, seen: Array, source: Ints, alphas: Array, metric: Array, mixing: Mixing | None
    ) -> Array:
        """Return lower bounds for the energy of a move into each cell; infinite for the source's.

        The bound of a target is the energy of the projection onto its constraint against the
        source: half the difference of the squared distances to the two centroids, and, in a
        contracted cell, the share 1 - alpha of half that between them.
        """
        k, growth = self.n_clusters, self.arithmetic.growth(seen.shape[1])
        sources = np.flatnonzero(np.bincount(source, minlength=k))
        place = np.empty(k, dtype=np.int64)
        place[sources] = np.arange(len(sources))
        between = self.distances(self.centers[sources])
        between *= 0.5 * (1.0 - alphas) - growth
        lengths = self._pair_lengths(sources, metric, mixing)
        bound = np.empty((len(seen), k))

        def fill(a: int, b: int) -> None:
            own, at, part = np.arange(b - a), place[source[a:b]], bound[a:b]
            distances = self.distances(seen[a:b])
            to_source = distances[own, source[a:b]][:, None]
            with np.errstate(all="ignore"):  # each thread has its own
                # By how much rows violate the constraint of target against source, less rounding.
                # `take` is several times faster here than an index.
                excess = (0.5 - growth) * distances - (0.5 + growth) * to_source
                excess = np.maximum(excess + between.take(at, axis=0), 0.0)
                part[:] = excess**2 / lengths.take(at, axis=0) * (1 - TOLERANCE.cheaper)
            part[~np.isfinite(part)] = 0.0
            part[own, source[a:b]] = np.inf

        in_parallel(fill, len(seen))
        return bound

    def _pair_lengths(self, sources: Ints, metric: Array, mixing: Mixing | None) -> Array:
        """Return the squared lengths, in a metric, of the normals of all cells against sources."""
        pulled = self.weights * self.centers
        if mixing is not None:
            pulled = pulled @ mixing.matrix
        pulled = pulled / np.sqrt(metric)
        return np.asarray(cdist(pulled[sources], pulled, "sqeuclidean"))


def not_squarable(centers: Array, dtype: Any) -> str:
    """Return why distances of these centroids cannot be squared in a type; empty if they can."""
    least, largest = squarable(dtype)
    remedy = "; rescale the columns, for example with StandardScaler."
    if np.abs(centers).max(initial=0.0) > largest:
        return f"centers beyond {largest:.0e} cannot be squared in {dtype}{remedy}"
    if 0.0 < np.ptp(centers, axis=0).max(initial=0.0) < least:
        return f"centers less than {least:.0e} apart cannot be told apart in {dtype}{remedy}"
    return ""


def _is_known(kind: type) -> bool:
    """Return True if it is known how models of exactly this class compute distances.

    A subclass may have another predict, so an inherited attribute does not count.
    """
    return kind in (KMeans, MiniBatchKMeans) or DISTANCE_FORMULA in vars(kind)


def _numbers(values: Any) -> Array:
    """Return values as floats; a NaN, which the caller refuses, if they are not numbers."""
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full((1,), np.nan)
