"""The user's estimator: whether it is fitted and unchanged, its steps, and the explainer's copy."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from voicecf.errors import ModelError


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
