"""How much each column weighs in a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from voicecf.diagnostics import weight_concentration
from voicecf.frames import table
from voicecf.plots.display import Display
from voicecf.plots.words import legible
from voicecf.region import Array

if TYPE_CHECKING:
    from voicecf.explainer import Explainer


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
        space = voice._fitted_space()
        importance = getattr(voice, "_importance", lambda: voice.weights_)()
        importance = importance / importance.sum()
        by_column = np.array([importance[column.places].sum() for column in space.columns])
        order = np.argsort(-by_column, kind="stable")
        effective = weight_concentration(importance).effective
        names = [legible(space.names[c]) for c in order]
        return cls(names, by_column[order], effective, len(importance))

    def table(self) -> Any:
        """Return a line a column: column, weight."""
        return table({"column": np.array(self.columns, dtype=str), "weight": self.weights})
