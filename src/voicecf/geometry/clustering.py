"""A fitted model, as the library sees it: centroids, weights, and how its predict computes."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import voicecf._core as _core
from voicecf.errors import ModelError
from voicecf.geometry.cell import Arithmetic, Cell
from voicecf.geometry.region import Array
from voicecf.parallel import in_parallel
from voicecf.shark import SHARK
from voicecf.table.frames import table

# Beyond this a square overflows.
LARGEST = 1e150


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
        known = type(model) in (KMeans, MiniBatchKMeans, SHARK)
        formula: Any = "direct" if isinstance(model, SHARK) else "expanded"
        return cls.from_centers(
            centers,
            getattr(model, "feature_weights_", None),
            arithmetic=Arithmetic(formula, float(np.finfo(dtype.type).eps)),
            dtype=dtype,
            model=model,
            trusted=known or not hasattr(model, "predict"),
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
        """Ask the model, in the words it was fitted in: a frame if it knows column names."""
        points = points.astype(self.dtype)
        names = getattr(self.model, "feature_names_in_", None)
        if names is None:
            return np.asarray(self.model.predict(points))
        return np.asarray(self.model.predict(table(dict(zip(names, points.T, strict=True)))))

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


def _numbers(given: Any) -> Array:
    try:
        return np.ascontiguousarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.full((1,), np.nan)  # refused by whoever asked, with the shape that is wanted


def is_fitted(model: Any) -> bool:
    """Tell whether a model is fitted; raise where it is none."""
    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; pass an instance: {model.__name__}().")
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except TypeError:
        if hasattr(model, "cluster_centers_"):  # no scikit-learn estimator, but all that is needed
            return True
        raise ModelError(
            f"{type(model).__name__} is no clustering model: it needs fit or cluster_centers_."
        ) from None
    return True


def own_model(model: Any, fit: Callable[[Any], Any]) -> Any:
    """Return a fitted model that only the explainer holds; the user's object is left alone.

    Parameters
    ----------
    model : estimator
        The user's: an unfitted one is copied and fitted, a fitted one copied as it is.
    fit : callable
        Fits an unfitted copy and returns it.
    """
    if not is_fitted(model):
        return fit(deepcopy(model))
    model = deepcopy(model)
    _check_unchanged(model)
    return model


def _check_unchanged(model: Any) -> None:
    """Refuse a fitted model whose parameters were changed after it was fitted."""
    steps, last = divided(model)
    for name, step in [*(steps.steps if steps else ()), ("", last)]:
        where = f"step {name!r} ({type(step).__name__})" if name else type(step).__name__
        fault = _contradiction(step)
        if fault:
            raise ModelError(
                f"{where} {fault}: it was changed after it was fitted. Fit the model again, or "
                "pass it unfitted: sklearn.base.clone(model)."
            )


def _contradiction(step: Any) -> str:
    """Say what a fitted step's parameters contradict; nothing if they agree with what it learned.

    A stateless transformer may have learned nothing, and still be fitted.
    """
    try:
        check_is_fitted(step)
    except NotFittedError:
        return "is not fitted, though the clustering after it is"
    except TypeError:  # no estimator of scikit-learn's, but all that is needed
        pass
    centers, k = getattr(step, "cluster_centers_", None), getattr(step, "n_clusters", None)
    if centers is not None and isinstance(k, Integral) and k != len(centers):
        return f"has n_clusters={k} but learned {len(centers)} clusters"
    parts, count = getattr(step, "components_", None), getattr(step, "n_components", None)
    if parts is not None and isinstance(count, Integral) and count != len(parts):
        return f"has n_components={count} but learned {len(parts)}"
    if isinstance(step, ColumnTransformer) and not _same_columns(step):
        return "names other columns than those that it learned from"
    return ""


def _same_columns(step: Any) -> bool:
    """Tell whether a ColumnTransformer still has the parts and columns that it was fitted with."""
    learned = {name: chosen for name, _, chosen in step.transformers_}
    for name, _, chosen in step.transformers:
        if name not in learned:
            return False
        if not callable(chosen) and not _equal(chosen, learned[name]):
            return False
    return set(learned) <= {*(name for name, _, _ in step.transformers), "remainder"}


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, slice) or isinstance(other, slice):
        return bool(one == other)
    return bool(np.atleast_1d(one).tolist() == np.atleast_1d(other).tolist())


def divided(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps before the clustering, None if there are none, and the clustering."""
    steps: list[tuple[str, Any]] = []
    while isinstance(model, Pipeline):
        steps, model = [*steps, *model.steps[:-1]], model.steps[-1][1]
    real = [step for step in steps if step[1] is not None and not isinstance(step[1], str)]
    return (Pipeline(real) if real else None), model
