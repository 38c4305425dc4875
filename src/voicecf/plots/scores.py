"""How centrally the members of each cluster lie: their contraction scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voicecf.frames import table
from voicecf.plots.display import Display
from voicecf.region import Array

if TYPE_CHECKING:
    from voicecf.voice import VoICE


@dataclass(frozen=True, eq=False)
class ContractionScores(Display):
    """How much of its cell each row needs: 0 at the centroid, 1 at the border.

    Attributes
    ----------
    scores : array of shape (n,)
        The paper's alpha_{i,t}, of each row in its own cluster.
    labels : array of shape (n,)
        The clusters.
    alpha : array of shape (k,)
        Contraction of each cell: answers keep to scores up to it.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from voicecf import VoICE
    >>> from voicecf.plots import ContractionScores
    >>> X = [[0.0], [1.0], [8.0], [9.0]]
    >>> voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
    >>> ContractionScores.from_voice(voice, X).scores.round(3).tolist()
    [0.0, 0.125, 0.125, 0.0]
    """

    scores: Array
    labels: NDArray[np.int64]
    alpha: Array

    @classmethod
    def from_voice(cls, voice: VoICE, X: Any) -> ContractionScores:
        """Score the rows of X, each in the cluster that the model puts it into."""
        given = voice._fitted_space().read(X)
        labels = voice._labels(given)
        scores = np.zeros(len(labels))
        for t in np.unique(labels).tolist():
            members = labels == t
            scores[members] = voice.clustering_.cell(t).scores(given.seen[members])
            if getattr(voice, "contract_bounds", False):
                boxed = voice._box_scores(t, given.points[members])
                scores[members] = np.maximum(scores[members], boxed)
        return cls(scores, labels, voice.alpha_)

    def table(self) -> Any:
        """Return a line a row: cluster, score, and the contraction of the cluster's cell."""
        return table(
            {"cluster": self.labels, "score": self.scores, "alpha": self.alpha[self.labels]}
        )
