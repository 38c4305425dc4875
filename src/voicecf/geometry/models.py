"""How fitted models become partitions: the table of adapters, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sklearn.pipeline import Pipeline

from voicecf.errors import ModelError
from voicecf.geometry.centroids import Centroids
from voicecf.geometry.cuts import Cuts
from voicecf.geometry.partition import Partition

# An attribute that fitted models have, and what makes a partition of such a model.
ADAPTERS: dict[str, Callable[[Any], Partition]] = {
    "cluster_centers_": Centroids.of,
}
# Partitions by the name that a saved explainer without a model has for them.
KINDS: dict[str, type[Partition]] = {kind.__name__: kind for kind in (Centroids, Cuts)}


def partition_of(model: Any) -> Partition:
    """Return how a fitted model divides the space of its inputs.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from voicecf.geometry.models import partition_of
    >>> model = KMeans(2, n_init=1, random_state=0).fit([[0.0], [1.0], [8.0], [9.0]])
    >>> partition_of(model).n_clusters
    2
    """
    if isinstance(model, Pipeline):
        raise ModelError(
            "a Pipeline is explained by VoICE(pipeline).fit(X); here its last step is needed, "
            "pipeline[-1], and the rows that it gets, pipeline[:-1].transform(X)."
        )
    for attribute, adapter in ADAPTERS.items():
        if getattr(model, attribute, None) is not None:
            return adapter(model)
    raise ModelError(
        f"{type(model).__name__} has no cluster_centers_; voicecf explains models that assign to "
        "the nearest centroid: KMeans, MiniBatchKMeans, SHARK, or VoICE.from_centers(centers)."
    )


def is_explained(model: Any) -> bool:
    """Tell whether a model has an attribute that makes a partition of it."""
    return any(hasattr(model, attribute) for attribute in ADAPTERS)
