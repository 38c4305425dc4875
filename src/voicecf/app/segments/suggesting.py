"""How many segments to make: how far apart they are, by their number, on a sample."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from voicecf import SHARK
from voicecf.app.data.preparing import SEED, Method, Prepared, PreparingError, pipeline

# Segments that can be asked for, and suggested: more are hard to remember.
FEWEST, MOST = 2, 12
# Rows that a suggestion is made from.
SAMPLE = 1_000
# How much further apart more segments have to be to be worth it.
AS_GOOD = 0.005
# How often a clustering of the sample is begun anew.
STARTS = {Method.KMEANS: 2, Method.SHARK: 3}


@dataclass(frozen=True)
class Suggestion:
    """How many segments to make, and why.

    Attributes
    ----------
    k : int
    scores : dict of int to float
        For each number of segments how far apart they are: about 0 where they overlap, at most 1
        (silhouette; of SHARK's segments in its own weighted distances).
    reason : str
    """

    k: int
    scores: dict[int, float]
    reason: str


def suggest_k(prepared: Prepared, method: Method = Method.KMEANS) -> Suggestion:
    """Suggest a number of segments: the fewest that are as far apart as any, on a sample."""
    X = _sample(pipeline(prepared, FEWEST, method)[:-1].fit_transform(prepared.frame))
    distinct = len(np.unique(X, axis=0))
    if distinct < FEWEST:
        raise PreparingError(
            "All rows are the same in the columns in use, so there are no segments. Use others."
        )
    # A sample is too small for several threads: on a busy computer they wait for each other.
    with threadpool_limits(1):
        scores = {k: _apart(X, k, method) for k in range(FEWEST, min(MOST, distinct - 1) + 1)}
    if not scores:
        return Suggestion(2, {}, "There are only two different rows, so two segments.")
    best = min(k for k, score in scores.items() if score >= max(scores.values()) - AS_GOOD)
    return Suggestion(best, scores, _why(best, scores))


def _sample(X: Any) -> NDArray[np.float64]:
    rng = np.random.default_rng(SEED)
    chosen = rng.permutation(len(X))[:SAMPLE]
    return np.asarray(X[np.sort(chosen)], dtype=np.float64)


def _apart(X: NDArray[np.float64], k: int, method: Method) -> float:
    """Measure how far apart k segments are, in the distances that they were found with."""
    model = {Method.KMEANS: KMeans, Method.SHARK: SHARK}[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # segments in use say what is wrong with them
        found: Any = model(k, n_init=STARTS[method], random_state=SEED).fit(X)
    if len(set(found.labels_)) < FEWEST:
        return 0.0
    weights = found.feature_weights_ if method is Method.SHARK else np.ones(X.shape[1])
    return float(silhouette_score(X * np.sqrt(weights), found.labels_))


def _why(best: int, scores: dict[int, float]) -> str:
    least, most = min(scores), max(scores)
    score = scores[best]
    how = "clearly apart" if score > 0.5 else "somewhat apart" if score > 0.25 else "hardly apart"
    if least == most:
        return f"{best} segments suit this table."
    furthest = "furthest apart" if score == max(scores.values()) else "about as far apart as any"
    return f"Of {least} to {most} segments, {best} are {furthest}; they are {how} ({score:.2f})."
