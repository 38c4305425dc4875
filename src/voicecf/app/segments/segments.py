"""Segments: fitting, and what is known of them."""

from __future__ import annotations

import warnings
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import Pipeline

from voicecf import VoICE
from voicecf.app.data.preparing import Method, Prepared, PreparingError, pipeline
from voicecf.app.segments.naming import suggested_names
from voicecf.app.segments.profiles import Contrast, Profile, contrast, profiles
from voicecf.app.words import number, percent
from voicecf.diagnostics import WeightConcentration, weight_concentration
from voicecf.shark import WeightCollapseWarning

# Effective share of the columns below which weights are concentrated.
CONCENTRATED = 0.35


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
        ranking = ranking_of(self.prepared, self.model, self.method)
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
        return suggested_names(self.contrast, self.prepared.whole, self.spans)

    def written(self, column: str, value: float) -> str:
        """Write a value of a column of numbers: whole ones in full, others with telling digits.

        Thousands are parted only in columns that reach 10,000: years are not.
        """
        return number(value, self.spans[column])

    def firmly(self, margin: int) -> VoICE:
        """Return the explainer for answers that keep a share of the way to the centre, in percent.

        It is what ``VoICE(model, contraction=1 - margin / 100).fit(frame)`` is, without reading
        the rows again.
        """
        if margin == 0:
            return self.voice
        firm = self._firm.get(margin)
        if firm is None:
            firm = copy(self.voice)
            firm.contraction = (100 - margin) / 100
            firm.learned_ = self.voice.learned_.contracted(firm.contraction)
            self._firm.clear()  # the visitor looks at one margin at a time
            self._firm[margin] = firm
        return firm

    @cached_property
    def _firm(self) -> dict[int, VoICE]:
        return {}


def fit_segments(prepared: Prepared, k: int, method: Method) -> Segments:
    """Cluster the rows and get ready to explain them."""
    distinct = len(prepared.frame.drop_duplicates())
    if k > distinct:
        raise PreparingError(
            f"There are only {distinct} different rows in the columns in use, so there cannot be "
            f"{k} segments. Choose fewer, or use more columns."
        )
    model = pipeline(prepared, k, method)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(prepared.frame)
        labels = model.predict(prepared.frame)
    told = [_warning(w) for w in caught]
    told += [_concentration(prepared, model)] if method is Method.SHARK else []
    return Segments(prepared, method, model, labels, tuple(dict.fromkeys(t for t in told if t)))


def ranking_of(prepared: Prepared, model: Pipeline, method: Method) -> Any:
    """Rank columns for answers by the most telling first.

    SHARK's own weights; k-means has none, so the share of each column's spread that lies between
    segments.
    """
    if method is Method.SHARK:
        return "weights"
    X = np.asarray(model[:-1].transform(prepared.frame), dtype=np.float64)
    labels = model[-1].labels_
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


def _warning(caught: warnings.WarningMessage) -> str:
    if issubclass(caught.category, WeightCollapseWarning):
        return (
            "Some columns do not vary at all within the segments and have taken all the weight; "
            "the others no longer matter. Set these columns aside, or use k-means."
        )
    if issubclass(caught.category, ConvergenceWarning):
        return "There are fewer different rows than segments; some segments are empty."
    return ""


def _concentration(prepared: Prepared, model: Pipeline) -> str:
    blocks = blocks_of(prepared, model)
    found = concentration_of(prepared, model)
    share = sum(model[-1].feature_weights_[i] for i in blocks[found.dominant])
    if found.effective >= CONCENTRATED * len(model[-1].feature_weights_) and share < 0.5:
        return ""
    return (
        f"The weight is concentrated: “{found.dominant}” alone carries {percent(share)}, and the "
        f"segments rest on about {max(1, round(found.effective))} of "
        f"{len(prepared.names)} columns. "
        "A change of the others moves hardly anybody."
    )


def concentration_of(prepared: Prepared, model: Pipeline) -> WeightConcentration:
    """Measure how few columns weighted segments rest on."""
    blocks = blocks_of(prepared, model)
    names = [name for name, places in blocks.items() for _ in places]
    many = {name: places for name, places in blocks.items() if name in prepared.categories}
    return weight_concentration(model[-1].feature_weights_, names, many)
