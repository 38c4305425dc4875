"""How a model's own `predict` computes, which bounds its rounding errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from voicecf.geometry.tolerance import EPS


@dataclass(frozen=True)
class Arithmetic:
    """How a model's own `predict` computes; this bounds its rounding error.

    Attributes
    ----------
    formula : "direct" or "expanded"
        Of distances: "direct" sums w (x - m)^2; "expanded" computes |m|^2 - 2 x . m, as
        scikit-learn's KMeans.
    eps : float
        Machine epsilon of the floating-point type that it computes with.
    """

    formula: Literal["direct", "expanded"] = "direct"
    eps: float = EPS

    def growth(self, d: int) -> float:
        """Bound the relative error of a sum of d products, added in any order."""
        return (d + 8) * self.eps
