"""Segments: how many, fitting, what is typical of each in the user's units, and their names."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import silhouette_score
from sklearn.pipeline import Pipeline

from voicecf import VoICE
from voicecf.app.data.preparing import SEED, Method, Prepared, PreparingError, pipeline
from voicecf.app.words import percent
from voicecf.diagnostics import WeightConcentration, weight_concentration
from voicecf.output.wording import figure
from voicecf.shark import WeightCollapseWarning

# Segments that are looked at to suggest a number, and that can be asked for.
FEWEST, SUGGESTED, MOST = 2, 8, 12
# Rows that a suggestion is made from.
SAMPLE = 1_000
# How much further apart more segments have to be to be worth it.
AS_GOOD = 0.005
# Effective share of the columns below which weights are concentrated.
CONCENTRATED = 0.35
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True)
class Suggestion:
    """How many segments to make, and why.

    Attributes
    ----------
    k : int
    scores : dict of int to float
        For each number of segments how well they are apart, -1 to 1 (silhouette).
    reason : str
    """

    k: int
    scores: dict[int, float]
    reason: str


def suggest_k(prepared: Prepared) -> Suggestion:
    """Suggest a number of segments: the fewest that are as far apart as any, on a sample."""
    X = _sample(pipeline(prepared, 2, Method.KMEANS)[:-1].fit_transform(prepared.frame))
    distinct = len(np.unique(X, axis=0))
    if distinct < FEWEST:
        raise PreparingError(
            "All rows are the same in the columns in use, so there are no segments. Use others."
        )
    scores = {}
    for k in range(FEWEST, min(SUGGESTED, distinct - 1) + 1):
        labels = KMeans(k, n_init=2, random_state=SEED).fit_predict(X)
        scores[k] = float(silhouette_score(X, labels)) if len(set(labels)) > 1 else -1.0
    if not scores:
        return Suggestion(2, {}, "There are only two different rows, so two segments.")
    best = min(k for k, score in scores.items() if score >= max(scores.values()) - AS_GOOD)
    return Suggestion(best, scores, _why(best, scores))


def _sample(X: Any) -> NDArray[np.float64]:
    rng = np.random.default_rng(SEED)
    chosen = rng.permutation(len(X))[:SAMPLE]
    return np.asarray(X[np.sort(chosen)], dtype=np.float64)


def _why(best: int, scores: dict[int, float]) -> str:
    least, most = min(scores), max(scores)
    score = scores[best]
    how = (
        "clearly apart" if score > 0.5 else "fairly well apart" if score > 0.25 else "not far apart"
    )
    if least == most:
        return f"{best} segments suit this table."
    furthest = "furthest apart" if score == max(scores.values()) else "about as far apart as any"
    text = f"Of {least} to {most} segments, {best} are {furthest}; they are {how}"
    return f"{text} ({score:.2f} of at most 1)."


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
        return profiles(self.prepared, self.labels, self.k)

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


# Profiles


@dataclass(frozen=True)
class Trait:
    """What is typical of a segment in one column.

    Attributes
    ----------
    column : str
    typical : str
        The median, or the most frequent level and its share.
    overall : str
        The median of all rows, or that level's share of them.
    strength : float
        How far the segment stands out, in units of the spread; signed for numbers.
    """

    column: str
    typical: str
    overall: str
    strength: float

    @property
    def direction(self) -> str:
        """How it stands out."""
        size = abs(self.strength)
        if size < 0.25:
            return "about average"
        how = "much " if size > 1.2 else ""
        return f"{how}higher" if self.strength > 0 else f"{how}lower"


@dataclass(frozen=True)
class Profile:
    """A segment: how many rows, and what is typical of it, what stands out most first."""

    size: int
    share: float
    traits: tuple[Trait, ...]


def profiles(prepared: Prepared, labels: NDArray[np.int64], k: int) -> tuple[Profile, ...]:
    """Describe every segment in the user's units."""
    frame = prepared.frame
    numbers = frame[list(prepared.numbers)]
    middle, spread = numbers.mean(), numbers.std(ddof=0)
    medians, all_medians = numbers.groupby(labels).median(), numbers.median()
    means = numbers.groupby(labels).mean()
    made = []
    for t in range(k):
        members = labels == t
        traits = []
        if members.any():
            for name in prepared.numbers:
                far = (means.at[t, name] - middle[name]) / (spread[name] or 1.0)
                typical, overall = (figure(v) for v in (medians.at[t, name], all_medians[name]))
                traits.append(Trait(name, typical, overall, float(far)))
            traits += [_level_trait(frame[name], name, members) for name in prepared.categories]
        traits.sort(key=lambda trait: -abs(trait.strength))
        made.append(Profile(int(members.sum()), float(members.mean()), tuple(traits)))
    return tuple(made)


def _level_trait(values: pd.Series, name: str, members: NDArray[np.bool_]) -> Trait:
    here, everywhere = (v.value_counts(normalize=True) for v in (values[members], values))
    if not len(here):
        return Trait(name, "missing", "", 0.0)
    level, share = here.index[0], float(here.iloc[0])
    usual = float(everywhere[level])
    far = (share - usual) / max(np.sqrt(usual * (1 - usual)), 1e-9)
    return Trait(name, f"{level} ({percent(share)})", percent(usual), float(far))


def profile_table(segments: Segments, names: Sequence[str]) -> pd.DataFrame:
    """Return what is typical, a line a column and a column a segment."""
    found: dict[str, Any] = {}
    for name, profile in zip(names, segments.profiles, strict=True):
        typical = {trait.column: trait.typical for trait in profile.traits}
        found[name] = [typical.get(column, "") for column in segments.prepared.names]
    overall = profiles(segments.prepared, np.zeros_like(segments.labels), 1)[0]
    typical = {trait.column: trait.typical for trait in overall.traits}
    found["All rows"] = [typical[column] for column in segments.prepared.names]
    return pd.DataFrame(found, index=pd.Index(segments.prepared.names, name="Column"))


def usual_names(k: int) -> tuple[str, ...]:
    """Name segments until the user does."""
    return tuple(f"Segment {LETTERS[t]}" for t in range(k))


def given_names(k: int, given: Sequence[str]) -> tuple[str, ...]:
    """Return the user's names, where they are names and no other segment has them."""
    names: list[str] = []
    for t, usual in enumerate(usual_names(k)):
        wish = " ".join(str(given[t]).split())[:40] if t < len(given) else ""
        names.append(wish if wish and wish not in names else usual)
    return tuple(names)
