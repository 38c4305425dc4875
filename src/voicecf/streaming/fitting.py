"""Entry point of fitting on a stream: which estimators can, and which code fits each."""

from __future__ import annotations

from typing import Any, TypeVar

from sklearn.cluster import KMeans
from sklearn.pipeline import Pipeline

from voicecf.errors import ModelError
from voicecf.streaming.clusters import fit_kmeans
from voicecf.streaming.steps import learn_steps
from voicecf.table.stream import Progress, Stream

Estimator = TypeVar("Estimator")


def fit(estimator: Estimator, source: Any, *, progress: Progress | None = None) -> Estimator:
    """Fit a model, or an explainer of one, on tables that come one after the other.

    What is learned is what `estimator.fit` would learn of all rows in memory, up to the rounding of
    sums (about 1e-12), however the source divides them.

    Parameters
    ----------
    estimator : SHARK, KMeans, a Pipeline that ends in one, or a VoICE around one
        Fitted in place, but for the model of a VoICE, which is copied first. The steps of a
        pipeline may be StandardScaler, MinMaxScaler, MaxAbsScaler,
        OneHotEncoder, OrdinalEncoder, SimpleImputer, FunctionTransformer, a ColumnTransformer of
        these, or pipelines of them; other steps that are fitted already are used as they are.
        A VoICE fits its copy of the model unless that is fitted.
    source : iterable of tables, or callable that returns one
        Read several times: a list of frames or arrays, a pyarrow Dataset, or
        ``lambda: pandas.read_csv(path, chunksize=100_000)``. Tables are frames of pandas, polars
        or pyarrow, record batches or arrays.
    progress : callable, optional
        Called as ``progress(pass, rows)``: the number of the pass, from 1, and of its rows so far.

    Returns
    -------
    estimator
        Fitted. `labels_` is left out, for it grows with the rows: `predict` tells, table by table.

    Notes
    -----
    Memory holds a table of the source, and besides: up to 262,144 rows that starting centers are
    drawn from; levels of categories; distinct values of columns whose gaps are filled with a median
    or the most frequent one; the columns of an encoder with min_frequency or max_categories; and 8
    bytes a row for VoICE with retain < 1.

    All restarts of a model go on in the same passes. Up to 262,144 rows KMeans starts where
    scikit-learn would start with the same `random_state`; beyond, it draws its starts from a random
    sample of that many rows, as SHARK does, in memory too. KMeans stops by scikit-learn's rule;
    `algorithm` is taken as "lloyd". A ColumnTransformer decides by the first table whether its
    output is sparse.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf import SHARK, streaming
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)) + np.repeat([[0], [5]], 500, axis=0)
    >>> whole = SHARK(2, random_state=0).fit(X)
    >>> parts = streaming.fit(SHARK(2, random_state=0), np.array_split(X, 7))
    >>> bool(abs(parts.cluster_centers_ - whole.cluster_centers_).max() < 1e-12)
    True
    """
    return fit_model(estimator, Stream.of(source, progress))


def fit_model(model: Estimator, stream: Stream) -> Estimator:
    """Fit a clustering, a pipeline that ends in one, or an explainer of one, and return it.

    Estimators of this library have a method `_fit_stream`; those of scikit-learn are fitted here.
    """
    if hasattr(model, "_fit_stream"):
        model._fit_stream(stream)
    elif isinstance(model, Pipeline):
        stream = learn_steps(model.steps[:-1], stream)
        fit_model(model.steps[-1][1], stream)
    elif isinstance(model, KMeans):
        fit_kmeans(model, stream)
    else:
        raise ModelError(
            f"{type(model).__name__} cannot be learned from a stream; SHARK and KMeans can, by "
            "themselves or last in a Pipeline, and VoICE around them."
        )
    return model
