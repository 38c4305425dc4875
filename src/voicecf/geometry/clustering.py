"""A fitted nearest-centroid model: its centroids, its weights, and how its `predict` rounds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.pipeline import Pipeline

import voicecf._core as _core
from voicecf.errors import ModelError
from voicecf.geometry.arrays import Array
from voicecf.geometry.cell import Arithmetic, Cell
from voicecf.geometry.named import named_rows
from voicecf.geometry.tolerance import squarable
from voicecf.parallel import in_parallel

# Centroids whose distances to all others are computed at a time; it limits the memory.
BLOCK = 512
# Class attribute that names the formula of a model's predict: see `Arithmetic.formula`.
DISTANCE_FORMULA = "_distance_formula"


@dataclass(frozen=True)
class Clustering:
    """Centroids and weights of a nearest-centroid model.

    Attributes
    ----------
    centers : array of shape (k, d)
    weights : array of shape (d,)
        Feature weights, scaled to sum to 1.
    arithmetic : Arithmetic
        How the model's own `predict` rounds.
    dtype : numpy dtype
        Floating-point type that the model computes with.
    model : object or None
        The model itself; None if there are only centroids.
    trusted : bool
        True if `arithmetic` is known to describe this class of models. If False, every answer is
        checked with the model's own `predict`.
    """

    centers: Array
    weights: Array
    arithmetic: Arithmetic
    dtype: np.dtype[Any]
    model: Any = None
    trusted: bool = True

    @classmethod
    def of(cls, model: Any) -> Clustering:
        """Return the centroids and weights of a fitted model."""
        if isinstance(model, Pipeline):
            raise ModelError(
                "a Pipeline is explained by VoICE(pipeline).fit(X); here its last step is needed, "
                "pipeline[-1], and the rows that it gets, pipeline[:-1].transform(X)."
            )
        centers = getattr(model, "cluster_centers_", None)
        if centers is None:
            raise ModelError(
                f"{type(model).__name__} has no cluster_centers_; voicecf explains models that "
                "assign to the nearest centroid: KMeans, MiniBatchKMeans, SHARK, or "
                "VoICE.from_centers(centers)."
            )
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
    def from_centers(cls, centers: Any, weights: Any = None, **attributes: Any) -> Clustering:
        """Check centroids and weights, and scale the weights to sum to 1.

        `attributes` are further attributes of the clustering.
        """
        centers = _numbers(centers)
        if centers.ndim != 2 or not np.isfinite(centers).all():
            raise ModelError("centers must be a finite array of shape (k, d).")
        if centers.shape[1] == 0:
            raise ModelError("centers have no columns; a clustering needs a feature.")
        attributes.setdefault("dtype", np.dtype(np.float64))
        if fault := not_squarable(centers, attributes["dtype"]):
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
        attributes.setdefault("arithmetic", Arithmetic())
        weights = weights / weights.max()
        return cls(centers, weights / weights.sum(), **attributes)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return len(self.centers)

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        return Cell(self.centers, self.weights, target)

    @property
    def repeatable(self) -> bool:
        """Whether the model's `predict` assigns a point alike in any batch.

        A sum in a fixed order does. Matrix products, of which "expanded" is made, round differently
        in another batch, memory layout or on another processor.
        """
        return self.trusted and self.arithmetic.formula == "direct"

    def labels(self, points: Array, *, alone: bool = True) -> NDArray[np.int64]:
        """Assign points as the model's own predict does.

        The nearest centroid is computed here. The model's `predict` is called for points where
        rounding could change its decision, and for all points if its arithmetic is not known.

        Parameters
        ----------
        points : array of shape (n, d)
        alone : bool
            If True, the model is asked for one doubtful point at a time, unless it is repeatable:
            so the result does not depend on the other points.
        """
        labels, doubtful = self.nearest(points)
        if not hasattr(self.model, "predict"):
            return labels
        if not self.trusted:
            labels[:] = self._predict(points)
        if doubtful.any() and alone and not self.repeatable:
            distinct, which = np.unique(points[doubtful], axis=0, return_inverse=True)
            one_by_one = np.concatenate([self._predict(point[None]) for point in distinct])
            labels[doubtful] = one_by_one[which.reshape(-1)]
        elif doubtful.any() and self.trusted:
            labels[doubtful] = self._predict(points[doubtful])
        return labels

    def agrees(self, target: int, points: Array) -> NDArray[np.bool_]:
        """Return a mask of the points that the model, in its own dtype, assigns to a cluster."""
        points = points.astype(self.dtype).astype(np.float64)
        return np.asarray(self.labels(points, alone=False) == target)

    def _predict(self, points: Array) -> NDArray[Any]:
        """Call the model's own `predict`, with a frame if it was fitted on one."""
        points = points.astype(self.dtype)
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return np.asarray(self.model.predict(points))
        return np.asarray(self.model.predict(named_rows(points, names)))

    def nearest(self, points: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Return the nearest centroid by the direct formula, and a mask of ties up to rounding."""
        labels = np.empty(len(points), dtype=np.int64)
        doubtful = np.empty(len(points), dtype=np.bool_)
        points, compiled = np.ascontiguousarray(points), self._compiled
        in_parallel(lambda a, b: compiled.nearest(points, labels, doubtful, a, b), len(points))
        return labels, doubtful

    @cached_property
    def _compiled(self) -> _core.Rows:
        """The centroids alone, without the constraints of the cells."""
        return self.cells(None, 0.0)

    def indistinct(self) -> NDArray[np.int64]:
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

    def cells(self, alphas: Array | None, delta: float) -> _core.Rows:
        """Return the centroids in the layout of the compiled core.

        With `alphas`, one per cluster, also the constraints of all cells, contracted and scaled
        for the metric w + delta.
        """
        rounding, d = self.arithmetic, self.centers.shape[1]
        return _core.Rows.clusters(
            self.centers, self.weights, alphas, delta, rounding.growth(d), rounding.eps,
            rounding.formula == "expanded",
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are left out; they are computed again when needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def distances(self, points: Array) -> Array:
        """Return the weighted squared distances of points to all centroids, shape (n, k)."""
        scale = np.sqrt(self.weights)
        return np.asarray(cdist(points * scale, self.centers * scale, "sqeuclidean"))


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
