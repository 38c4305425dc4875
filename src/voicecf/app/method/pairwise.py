"""What the pairwise projection (CFCLUST) misses on this table, and where it ends instead."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf import CFCLUST, Counterfactuals, Status, VoICE
from voicecf.app.segments.segments import Segments
from voicecf.diagnostics import relative_underestimation
from voicecf.plots import Transitions

# Rows that are compared, each with every other segment.
SAMPLE = 2_000


@dataclass(frozen=True, eq=False)
class MethodComparison:
    """Pairwise answers beside exact ones, for the same rows and targets.

    Attributes
    ----------
    rows : array of int
        Which prepared rows were compared.
    voice : VoICE
        Explains in the coordinates of the model, in which both are compared.
    points : array
        The rows, in coordinates.
    pairwise, exact : Counterfactuals
        Answer by answer.
    missed : array of bool
        Whether the pairwise answer lies outside its target.
    landed : array of int
        The segment that it lies in.
    """

    rows: NDArray[np.int64] = field(repr=False)
    voice: VoICE = field(repr=False)
    points: NDArray[np.float64] = field(repr=False)
    pairwise: Counterfactuals = field(repr=False)
    exact: Counterfactuals = field(repr=False)
    missed: NDArray[np.bool_] = field(repr=False)
    landed: NDArray[np.int64] = field(repr=False)

    @property
    def share(self) -> float:
        """Share of pairwise answers that miss."""
        return float(self.missed.mean()) if len(self.missed) else 0.0

    @property
    def exact_share(self) -> float:
        """Share of exact answers that the model itself puts into their target."""
        there = self.voice.predict(np.ascontiguousarray(self.exact.points)) == self.exact.target
        return float((self.exact.feasible & there).mean()) if len(there) else 0.0

    @property
    def underestimation(self) -> float:
        """Share of the true cost that answers which miss leave out, on average."""
        if not self.missed.any():
            return 0.0
        left_out = relative_underestimation(
            self.pairwise.cost[self.missed], self.exact.cost[self.missed]
        )
        return float(left_out.mean())

    def by_pair(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Share of misses and number of answers, from each segment to each; NaN where none."""
        found = Transitions.from_counterfactuals(self.pairwise)
        return 1.0 - found.feasible, found.count

    def clearest(self) -> NDArray[np.int64]:
        """Misses, those that fall furthest short first."""
        which = np.flatnonzero(self.missed)
        short = self.exact.cost[which] - self.pairwise.cost[which]
        return which[np.argsort(-short, kind="stable")]


def compare(segments: Segments, most: int = SAMPLE) -> MethodComparison:
    """Answer rows pairwise and exactly, towards every other segment.

    Both in the coordinates that the model sees, free to go anywhere: so the only difference is
    whether third segments are looked at. `segments` are those of k-means.
    """
    model: Any = segments.model[-1]
    X = np.asarray(segments.model[:-1].transform(segments.prepared.frame), dtype=np.float64)
    rows = np.unique(np.linspace(0, len(X) - 1, min(most, len(X))).astype(np.int64))
    voice = VoICE(model, contraction=1.0, bounds=None).fit(X)
    exact = voice.explain(X[rows], target="each")
    pairwise = CFCLUST(model).fit(X).explain(X[rows], target="each")
    landed = voice.predict(np.ascontiguousarray(pairwise.points))
    missed = pairwise.status == Status.MISSED
    return MethodComparison(rows, voice, X, pairwise, exact, missed, landed)
