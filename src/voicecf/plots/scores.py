"""How centrally the members of each cluster lie: their contraction scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.geometry.arrays import Array, Ints
from voicecf.plots.display import Canvas, Display, stroke
from voicecf.plots.theme import mixed
from voicecf.table.frames import table
from voicecf.table.wording import legible
from voicecf.voice import VoICE

# Most steps of a ridge.
BINS = 40


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
    names : list of str
        What the clusters are called.

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
    labels: Ints
    alpha: Array
    names: list[str]

    @classmethod
    def from_voice(cls, voice: VoICE, X: Any) -> ContractionScores:
        """Score the rows of X, each in the cluster that the model puts it into."""
        learned = voice.learned_
        rows, labels = learned.read(X)
        scores = np.zeros(len(labels))
        for t in np.unique(labels).tolist():
            members = labels == t
            scores[members] = learned.scores(t, rows, members)
        return cls(scores, labels, learned.alpha, [legible(name, 30) for name in learned.names])

    def table(self) -> Any:
        """Return a line a row: cluster, score, and the contraction of the cluster's cell."""
        return table(
            {"cluster": self.labels, "score": self.scores, "alpha": self.alpha[self.labels]}
        )

    def _size(self, **how: Any) -> tuple[float, float]:
        return 6.8, 1.3 + 0.5 * max(len(self.alpha), 2)

    def _draw(self, canvas: Canvas, **how: Any) -> None:
        """Draw a ridge a cluster, its median, and alpha."""
        ax, style = canvas.ax, canvas.style
        k, most = len(self.alpha), int(np.bincount(self.labels, minlength=1).max())
        bins = np.linspace(0, 1, int(np.clip(2 * np.sqrt(most), 10, BINS)) + 1)
        ax.set(xlim=(0, 1.13), ylim=(k - 0.75, -0.98))
        for t, alpha in enumerate(self.alpha.tolist()):
            self._draw_ridge(canvas, t, bins)
            edge = mixed(style.color(t), style.ink, 0.35)
            ax.plot([alpha, alpha], [t, t - 0.82], color=edge, lw=1.8, ls=(0, (4, 1.5)), zorder=4)
            canvas.write_small(1.02, t - 0.2, f"{alpha:.2f}", color=style.ink, fontweight="bold")
        names = [f"{self.names[t]}\n{(self.labels == t).sum():,} rows" for t in range(k)]
        canvas.name_lines(np.arange(k) - 0.25, names)
        ax.set_xticks(np.linspace(0, 1, 6))
        ax.spines["left"].set_visible(False)
        ax.spines["bottom"].set_bounds(0, 1)
        canvas.name_axes("contraction score: 0 at the centroid, 1 at the border")
        note = "Dashed and in figures: alpha, the contraction of the cell. Tick: the median."
        canvas.head("How much of its cell each row needs", note)

    def _draw_ridge(self, canvas: Canvas, t: int, bins: Array) -> None:
        ax, style, scores = canvas.ax, canvas.style, self.scores[self.labels == t]
        ax.plot([0, 1], [t, t], color=style.rule, lw=0.8, zorder=1)
        if not len(scores):
            return
        counts, _ = np.histogram(scores, bins)
        tops = t - 0.78 * counts / counts.max()
        ax.stairs(tops, bins, baseline=t, fill=True, color=style.color(t), lw=0, zorder=2)
        ax.stairs(tops, bins, baseline=t, color=style.ink, lw=0.5, zorder=3)
        median, halo = float(np.median(scores)), [stroke(3.6, style.ink)]
        line: dict[str, Any] = {"color": style.paper, "lw": 2.2, "zorder": 5, "path_effects": halo}
        ax.plot([median, median], [t, t - 0.3], **line)
