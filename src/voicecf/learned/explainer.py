"""Base class of the explainers: fitted attributes, `predict`, `save` and `load`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline

from voicecf.errors import DataError
from voicecf.geometry.arrays import Array
from voicecf.geometry.partition import Partition
from voicecf.learned.learned import Learned
from voicecf.learned.parts import learned_of, parts_of
from voicecf.saving import Saved
from voicecf.table.learning import learn_space
from voicecf.table.model import fitted_copy, split_pipeline
from voicecf.table.space import Space
from voicecf.table.stream import Stream


class Explainer(Saved, BaseEstimator):  # type: ignore[misc]
    """Base class of the explainers: `fit` sets `learned_`; other fitted attributes read from it."""

    model: Any
    learned_: Learned

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise NotFittedError for fitted attributes before `fit`."""
            kind = type(self).__name__
            if name.endswith("_") and not name.startswith("_") and "learned_" not in vars(self):
                raise NotFittedError(
                    f"this {kind} is not fitted yet; call {kind}(model).fit(X) first."
                )
            raise AttributeError(f"{kind!r} object has no attribute {name!r}")

    @property
    def model_(self) -> Any:
        """The explainer's own fitted copy of the model."""
        return self.learned_.model

    @property
    def space_(self) -> Space:
        """The user's columns, and their conversion to coordinates."""
        return self.learned_.space

    @property
    def partition_(self) -> Partition:
        """How the model divides the space of its inputs."""
        return self.learned_.partition

    @property
    def weights_(self) -> Array:
        """Weights of the coordinates in the cost."""
        return self.learned_.weights

    @property
    def alpha_(self) -> Array:
        """Contraction of each cell, before the margin."""
        return self.learned_.alpha

    @property
    def n_features_in_(self) -> int:
        """Number of columns."""
        return len(self.learned_.space.names)

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the columns."""
        return np.asarray(self.learned_.space.names, dtype=object)

    def predict(self, X: Any) -> NDArray[Any]:
        """Assign rows to clusters, as the model's own `predict` does."""
        learned = self.learned_
        return learned.partition.called(learned.labels(learned.space.read(X)))

    def _parts(self) -> dict[str, Any]:
        """Return what is saved of this explainer."""
        learned = vars(self).get("learned_")
        learned = None if learned is None else parts_of(learned)
        return {"options": self.get_params(deep=False), "learned": learned}

    @classmethod
    def _of_parts(cls, options: dict[str, Any], learned: dict[str, Any] | None) -> Self:
        """Make an explainer of what was saved of one."""
        explainer = cls(**options)
        if learned is not None:
            explainer.learned_ = learned_of(learned)
        return explainer

    def _own_model(self, X: Any, y: Any = None) -> Any:
        """Return the explainer's own copy of the model, fitted on X and y unless it came fitted."""
        if not isinstance(self.model, Pipeline):
            learn_space(None, X)  # checks X, so that errors are ours and not the model's
        if Stream.table(X).n_rows == 0:
            raise DataError("X has no rows; bounds and contraction are learned from data.")
        return fitted_copy(self.model, lambda model: fitted_on(model, X, y))


def fitted_on(model: Any, X: Any, y: Any) -> Any:
    """Fit a model on rows and, if it is a classifier, on their labels."""
    if y is None and is_classifier(model):
        raise DataError(
            f"{type(split_pipeline(model)[1]).__name__} learns from labels: VoICE(model).fit(X, y) "
            "with a label for each row, or pass the model fitted."
        )
    return model.fit(X) if y is None else model.fit(X, y)
