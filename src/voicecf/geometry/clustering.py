"""A fitted model, as the library sees it: centroids, weights, and how its predict computes."""

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
from voicecf.parallel import in_parallel

# Beyond this a square overflows.
LARGEST = 1e150
# Class attribute by which a model tells how its predict computes distances, as of `Arithmetic`.
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
        How the model's own predict rounds.
    dtype : numpy dtype
        What the model computes with.
    model : object or None
        The model itself; None where only centroids were given.
    trusted : bool
        Whether `arithmetic` is known for this kind of model. If not, every answer is put to the
        model's own predict.
    """

    centers: Array
    weights: Array
    arithmetic: Arithmetic
    dtype: np.dtype[Any]
    model: Any = None
    trusted: bool = True

    @classmethod
    def of(cls, model: Any) -> Clustering:
        """Read a fitted model."""
        if isinstance(model, Pipeline):
            raise ModelError(
                "a Pipeline is explained by VoICE(pipeline).fit(X); here its last step is needed, "
                "pipeline[-1], and rows as that sees them, pipeline[:-1].transform(X)."
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
        """Check centroids and weights, and scale the weights to sum to 1."""
        centers = _numbers(centers)
        if centers.ndim != 2 or not np.isfinite(centers).all():
            raise ModelError("centers must be a finite array of shape (k, d).")
        if centers.shape[1] == 0:
            raise ModelError("centers have no columns; a clustering needs a feature.")
        if centers.size and np.abs(centers).max() > LARGEST:
            raise ModelError(f"centers beyond {LARGEST:g} cannot be squared; rescale the columns.")
        if len(centers) < 2:
            raise ModelError("the model has one cluster: there is no other to move to. Use k >= 2.")
        d = centers.shape[1]
        weights = np.full(d, 1.0) if weights is None else _numbers(weights)
        if weights.shape != (d,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ModelError(f"weights must be {d} finite numbers, none negative: one a feature.")
        if not weights.any():
            raise ModelError("all weights are zero: every point is as close to every centroid.")
        attributes.setdefault("arithmetic", Arithmetic())
        attributes.setdefault("dtype", np.dtype(np.float64))
        weights = weights / weights.max()
        return cls(centers, weights / weights.sum(), **attributes)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return len(self.centers)

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        return Cell(self.centers, self.weights, target)

    def labels(self, points: Array) -> NDArray[np.int64]:
        """Assign points as the model's own predict does.

        The nearest centroid is computed here; the model is asked where its rounding could decide
        otherwise, or always, where its arithmetic is not known.
        """
        labels, doubtful = self.nearest(points)
        if not hasattr(self.model, "predict"):
            return labels
        ask = np.flatnonzero(doubtful) if self.trusted else np.arange(len(points))
        if ask.size:
            labels[ask] = self._predict(points[ask])
        return labels

    def agrees(self, target: int, points: Array) -> NDArray[np.bool_]:
        """Tell, by the model's own word where there is any doubt, which points are in a cluster."""
        return np.asarray(self.labels(points.astype(self.dtype).astype(np.float64)) == target)

    def _predict(self, points: Array) -> NDArray[Any]:
        """Ask the model itself, with a frame if it was fitted on one."""
        points = points.astype(self.dtype)
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return np.asarray(self.model.predict(points))
        return np.asarray(self.model.predict(named_rows(points, names)))

    def nearest(self, points: Array) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Nearest centroid by the direct formula, and where rounding leaves it in doubt."""
        labels = np.empty(len(points), dtype=np.int64)
        doubtful = np.empty(len(points), dtype=np.bool_)
        points, compiled = np.ascontiguousarray(points), self._compiled
        in_parallel(lambda a, b: compiled.nearest(points, labels, doubtful, a, b), len(points))
        return labels, doubtful

    @cached_property
    def _compiled(self) -> _core.Rows:
        return self.cells(None, 0.0)

    def cells(self, alphas: Array | None, delta: float) -> _core.Rows:
        """Return the centroids as the compiled core reads them.

        With `alphas`, one a cluster, also the rows of all cells, contracted, in metric w + delta.
        """
        rounding, d = self.arithmetic, self.centers.shape[1]
        return _core.Rows.clusters(
            self.centers, self.weights, alphas, delta, rounding.growth(d), rounding.eps,
            rounding.formula == "expanded",
        )  # fmt: skip

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}

    def distances(self, points: Array) -> Array:
        """Weighted squared distances, shape (n, k)."""
        scale = np.sqrt(self.weights)
        return np.asarray(cdist(points * scale, self.centers * scale, "sqeuclidean"))


def _is_known(kind: type) -> bool:
    """Return True if it is known how models of exactly this class compute distances.

    A subclass may have another predict, so an inherited attribute does not count.
    """
    return kind in (KMeans, MiniBatchKMeans) or DISTANCE_FORMULA in vars(kind)


def _numbers(given: Any) -> Array:
    try:
        return np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full((1,), np.nan)  # refused by whoever asked, with the shape that is wanted
