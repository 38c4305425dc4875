"""What each further change saves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voicecf.errors import DataError, OptionError
from voicecf.frames import table
from voicecf.plots.display import Display
from voicecf.plots.words import legible
from voicecf.region import Array
from voicecf.space import Kind

if TYPE_CHECKING:
    from voicecf.counterfactuals import Counterfactuals


@dataclass(frozen=True, eq=False)
class Tradeoff(Display):
    """The least cost of a row's move with 1, 2, 3, ... changed columns.

    Attributes
    ----------
    allowed : array of shape (n,)
        Number of columns that may change, and
    changes : array of shape (n,)
        that do.
    cost : array of shape (n,)
        The least cost then.
    columns : list of list of str
        What is changed, the costliest first.
    row, source, target : int

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Tradeoff
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 1.0]], feature_names=["age", "cars"])
    >>> found = Tradeoff.from_counterfactuals(voice.tradeoff([[0.0, 0.0]], target=1))
    >>> found.cost.round(3).tolist(), found.columns
    ([2.258, 2.125], [['age'], ['age', 'cars']])
    """

    allowed: NDArray[np.int64]
    changes: NDArray[np.int64]
    cost: Array
    columns: list[list[str]]
    row: int
    source: int
    target: int
    kind: Kind | None = None

    @classmethod
    def from_counterfactuals(cls, cf: Counterfactuals) -> Tradeoff:
        """Read the answers of ``voice.tradeoff(one_row)``."""
        if len(cf) == 0:
            raise DataError("there are no answers: a row that is in its target has no tradeoff.")
        pairs = {(int(r), int(t)) for r, t in zip(cf.row, cf.target, strict=True)}
        if len(pairs) > 1:
            raise OptionError(
                f"a tradeoff is of one row and target; here are {len(pairs)}. Pick one: "
                f"cf[(cf.row == {cf.row[0]}) & (cf.target == {cf.target[0]})]."
            )
        row, source, target = int(cf.row[0]), int(cf.source[0]), int(cf.target[0])
        found = cf[cf.feasible]
        found = found[np.argsort(found.cardinality, kind="stable")]
        names = [
            [legible(found.space.names[c]) for c in found._changed(i)] for i in range(len(found))
        ]
        return cls(
            found.cardinality, found.n_changed, found.cost, names, row, source, target, cf.kind
        )

    def table(self) -> Any:
        """Return a line a step: allowed, changes, cost, columns."""
        names = np.array([", ".join(names) for names in self.columns], dtype=str)
        return table(
            {
                "allowed": self.allowed, "changes": self.changes, "cost": self.cost,
                "columns": names,
            },
            self.kind,
        )  # fmt: skip
