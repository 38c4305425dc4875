"""Segments: fitting, and what is known of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline

from voicecf import VoICE
from voicecf.app.data.preparing import Method, Prepared, PreparingError, pipeline
from voicecf.app.segments.naming import suggested_names
from voicecf.app.segments.profiles import Contrast, Profile, contrast, profiles
from voicecf.app.words import number, percent

# Explainers of other margins and names that are kept.
KEPT = 4
# Effective share of the columns below which weights are concentrated.
CONCENTRATED = 0.35
EMPTY = "There are fewer different rows than segments; some segments are empty."


@dataclass(frozen=True, eq=False)
class Segments:
    """Fitted segments.

    Attributes
    ----------
    prepared : Prepared
    method : Method
    model : Pipeline
        Fitted.
    labels : array of int
        The segment of each row.
    warnings : tuple of str
        What the user should know about them.
    """

    prepared: Prepared = field(repr=False)
    method: Method
    model: Pipeline = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    warnings: tuple[str, ...]

    @property
    def k(self) -> int:
        """How many there are."""
        return int(self.model[-1].n_clusters)

    @cached_property
    def voice(self) -> VoICE:
        """The explainer, with the whole of each cell."""
        ranking = ranking_of(self)
        return VoICE(self.model, contraction=1.0, ranking=ranking).fit(self.prepared.frame)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many rows are in each."""
        return np.bincount(self.labels, minlength=self.k)

    @cached_property
    def spans(self) -> dict[str, tuple[float, float]]:
        """The observed range of each column of numbers."""
        numbers = self.prepared.frame[list(self.prepared.numbers)]
        ends = zip(numbers.min().tolist(), numbers.max().tolist(), strict=True)
        return {
            name: (float(low), float(high)) for name, (low, high) in zip(numbers, ends, strict=True)
        }

    @cached_property
    def profiles(self) -> tuple[Profile, ...]:
        """What is typical of each."""
        return profiles(self.contrast, self.written)

    @cached_property
    def contrast(self) -> Contrast:
        """How they differ from all rows."""
        return contrast(self.prepared.frame, self.prepared.numbers, self.labels, self.k)

    @cached_property
    def suggested_names(self) -> tuple[str, ...]:
        """What they can be called, by what sets them apart."""
        return suggested_names(self.contrast)

    def written(self, column: str, value: float) -> str:
        """Write a value of a column of numbers: whole ones in full, others with telling digits.

        Thousands are parted only in columns that reach 10,000: years are not.
        """
        return number(value, self.spans[column])

    def firmly(self, margin: int, names: Sequence[str] = ()) -> VoICE:
        """Return the explainer for answers that are so firmly inside: in percent of the way in."""
        asked = margin, tuple(names)
        if asked not in self._firm:
            if len(self._firm) >= KEPT:
                self._firm.clear()
            self._firm[asked] = VoICE(
                self.model, contraction=(100 - margin) / 100, ranking=self.voice.ranking,
                names=list(names) or None,
            ).fit(self.prepared.frame)  # fmt: skip
        return self._firm[asked]

    @cached_property
    def _firm(self) -> dict[tuple[int, tuple[str, ...]], VoICE]:
        return {}


def fit_segments(
    prepared: Prepared, k: int, method: Method, model: Pipeline | None = None
) -> Segments:
    """Cluster the rows and get ready to explain them; or do so with a model that is fitted."""
    distinct = len(prepared.frame.drop_duplicates())
    if k > distinct:
        raise PreparingError(
            f"There are only {distinct} different rows in the columns in use, so there cannot be "
            f"{k} segments. Choose fewer, or use more columns."
        )
    if model is None:
        model = pipeline(prepared, k, method)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a user should know is found out below
            model.fit(prepared.frame)
    labels = model.predict(prepared.frame)
    told = [] if len(np.unique(labels)) == k else [EMPTY]
    told += [_concentration(prepared, model)] if method is Method.SHARK else []
    return Segments(prepared, method, model, labels, tuple(text for text in told if text))


def ranking_of(segments: Segments) -> Any:
    """Rank columns for answers by the most telling first.

    SHARK's own weights; k-means has none, so the share of each column's spread that lies between
    segments.
    """
    if segments.method is Method.SHARK:
        return "weights"
    prepared, model, labels = segments.prepared, segments.model, segments.labels
    X = np.asarray(model[:-1].transform(prepared.frame), dtype=np.float64)
    total, between = X.var(axis=0), np.zeros(X.shape[1])
    middle = X.mean(axis=0)
    for label in np.unique(labels):
        members = X[labels == label]
        between += len(members) / len(X) * (members.mean(axis=0) - middle) ** 2
    share = np.divide(between, total, out=np.zeros_like(total), where=total > 0)
    best = {}
    for name, places in blocks_of(prepared, model).items():
        best[name] = float(np.round(share[places].max(), 3))
    return [best[name] for name in prepared.names]


def blocks_of(prepared: Prepared, model: Pipeline) -> dict[str, list[int]]:
    """Return the coordinates of each column."""
    places: dict[str, list[int]] = {}
    at = 0
    for name in prepared.numbers:
        places[name], at = [at], at + 1
    if prepared.categories:
        encoder = model[0].transformers_[-1][1]
        encoder = encoder[-1] if isinstance(encoder, Pipeline) else encoder
        for name, levels in zip(prepared.categories, encoder.categories_, strict=True):
            places[name], at = list(range(at, at + len(levels))), at + len(levels)
    return places


def _concentration(prepared: Prepared, model: Pipeline) -> str:
    """Say so if weighted segments rest on few columns."""
    weights = model[-1].feature_weights_
    shares = {name: float(weights[i].sum()) for name, i in blocks_of(prepared, model).items()}
    effective = 1 / sum(share**2 for share in shares.values())
    name, most = max(shares.items(), key=lambda item: item[1])
    if len(shares) == 1 or (effective >= CONCENTRATED * len(shares) and most < 0.5):
        return ""
    return (
        f"The weight is concentrated: “{name}” alone carries {percent(most)}, and the segments "
        f"rest on about {max(1, round(effective))} of {len(shares)} columns. A change of the "
        f"others moves hardly anybody. If that is not what you want, set “{name}” aside, or use "
        "k-means."
    )
