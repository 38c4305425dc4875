"""The user's estimator: checks that it is fitted and unchanged, a copy of it, and its steps."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from voicecf.errors import ModelError
from voicecf.geometry.models import check_straight, is_explained


def is_fitted(model: Any) -> bool:
    """Tell whether a model is fitted; raise if it is not a clustering model."""
    if isinstance(model, type):
        raise ModelError(f"{model.__name__} is a class; pass an instance: {model.__name__}().")
    try:
        check_is_fitted(model)
    except NotFittedError:
        return False
    except TypeError:
        if is_explained(model):  # enough, though not a scikit-learn estimator
            return True
        raise ModelError(
            f"{type(model).__name__} is not a clustering model: it needs fit or cluster_centers_."
        ) from None
    return True


def fitted_copy(model: Any, fit: Callable[[Any], Any]) -> Any:
    """Return a fitted copy of a model; the user's object is not changed.

    Parameters
    ----------
    model : estimator
        The user's model. An unfitted one is copied and fitted, a fitted one only copied.
    fit : callable
        Fits an unfitted copy and returns it.
    """
    check_straight(split_pipeline(model)[1])
    if not is_fitted(model):
        # A copy has no gaps in its arrays, as PCA's components do: a matrix product of a model
        # that was saved, or sent to another process, then has the same bits.
        return deepcopy(fit(deepcopy(model)))
    try:
        model = deepcopy(model)
    except Exception:
        # Models of other libraries may be handles to what cannot be copied; they are only read.
        if isinstance(model, BaseEstimator):
            raise
    _check_unchanged(model)
    return model


def _check_unchanged(model: Any) -> None:
    """Refuse a fitted model whose parameters were changed after it was fitted."""
    steps, last = split_pipeline(model)
    for name, step in [*(steps.steps if steps else ()), ("", last)]:
        where = f"step {name!r} ({type(step).__name__})" if name else type(step).__name__
        fault = _contradiction(step)
        if fault:
            raise ModelError(
                f"{where} {fault}: it was changed after it was fitted. Fit the model again, or "
                "pass it unfitted: sklearn.base.clone(model)."
            )


def _contradiction(step: Any) -> str:
    """Return how a step's parameters contradict its fitted attributes; empty if they agree."""
    try:
        check_is_fitted(step)
    except NotFittedError:
        return "is not fitted, though the clustering after it is"
    except TypeError:  # not a scikit-learn estimator
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
    """Tell whether a ColumnTransformer has the transformers and columns it was fitted with."""
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


def split_pipeline(model: Any) -> tuple[Pipeline | None, Any]:
    """Return the steps before the clustering model, None if there are none, and the model."""
    steps: list[tuple[str, Any]] = []
    while isinstance(model, Pipeline):
        steps, model = [*steps, *model.steps[:-1]], model.steps[-1][1]
    # None and "passthrough" do nothing.
    steps = [step for step in steps if step[1] is not None and not isinstance(step[1], str)]
    return (Pipeline(steps) if steps else None), model
