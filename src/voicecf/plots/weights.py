"""How much each column weighs in a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.diagnostics import weight_concentration
from voicecf.geometry.arrays import Array
from voicecf.learned.explainer import Explainer
from voicecf.plots.display import Canvas, Display
from voicecf.table.frames import table
from voicecf.table.wording import counted, figure, legible, shortened

# Bars before the rest is summed up, and letters of a name.
MOST, LONGEST = 30, 40


@dataclass(frozen=True, eq=False)
class Weights(Display):
    """Feature weights by column, the largest first.

    Attributes
    ----------
    columns : list of str
    weights : array of shape (columns,)
        They sum to 1; a category has the sum of its features'.
    effective : float
        Effective number of features, 1 / sum w^2; see `voicecf.diagnostics.weight_concentration`.
    n_features : int
        Number of features, a category counted once for each that codes it.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Weights
    >>> voice = VoICE.from_centers([[0, 0], [4, 1]], weights=[1, 3], feature_names=["age", "cars"])
    >>> found = Weights.from_voice(voice)
    >>> found.columns, found.weights.tolist(), found.effective
    (['cars', 'age'], [0.75, 0.25], 1.6)
    """

    columns: list[str]
    weights: Array
    effective: float
    n_features: int

    @classmethod
    def from_voice(cls, voice: Explainer) -> Weights:
        """Read the weights of a fitted explainer, through the mixing of columns if there is one."""
        space, importance = voice.space_, voice.learned_.importance
        importance = importance / importance.sum()
        by_column = np.array([importance[column.places].sum() for column in space.columns])
        order = np.argsort(-by_column, kind="stable")
        effective = weight_concentration(importance).effective
        names = [legible(space.names[c]) for c in order]
        return cls(names, by_column[order], effective, len(importance))

    def table(self) -> Any:
        """Return a line a column: column, weight."""
        return table({"column": np.array(self.columns, dtype=str), "weight": self.weights})

    def _shown(self) -> tuple[list[str], Array]:
        """Return names and weights of the bars: the largest, and the rest summed up."""
        if len(self.columns) <= MOST:
            return self.columns, self.weights
        rest = counted(len(self.columns) - MOST, "other column")
        return [*self.columns[:MOST], f"{rest} together"], np.append(
            self.weights[:MOST], self.weights[MOST:].sum()
        )

    def _size(self, **how: Any) -> tuple[float, float]:
        return 6.8, 1.2 + 0.25 * max(len(self._shown()[0]), 3)

    def _draw(self, canvas: Canvas, **how: Any) -> None:
        """Draw a bar a column, the largest on top."""
        ax, style = canvas.ax, canvas.style
        names, weights = self._shown()
        at = np.arange(len(names))
        colors = [style.accent] * min(len(names), MOST) + [style.rule]
        ax.barh(at, weights, height=0.66, color=colors[: len(names)])
        largest = float(weights.max())
        ax.set(xlim=(0, largest * 1.14), ylim=(len(names) - 0.4, -0.6))
        for y, weight in zip(at.tolist(), weights.tolist(), strict=True):
            canvas.write_small(weight + 0.01 * largest, y, _share(weight))
        canvas.name_lines(at, [shortened(name, LONGEST) for name in names])
        ax.set_xticks([])
        ax.spines["bottom"].set_visible(False)
        note = (
            f"Together they are worth {figure(self.effective)} equal features of {self.n_features} "
            "(the effective number, 1 / sum of squares)."
        )
        canvas.head("How much each column weighs in the model", note)


def _share(weight: float) -> str:
    return f"{weight:.1%}" if weight >= 0.001 or weight == 0 else f"{weight:.0e}"
