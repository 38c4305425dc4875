"""Between which segments one moves easily, and which columns do the work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from voicecf.errors import DataError
from voicecf.frames import table
from voicecf.plots.display import Display
from voicecf.plots.plane import explainer_of
from voicecf.plots.words import legible
from voicecf.region import Array
from voicecf.space import Kind

if TYPE_CHECKING:
    from voicecf.counterfactuals import Counterfactuals


@dataclass(frozen=True, eq=False)
class Transitions(Display):
    """What it takes to move from every cluster to every other one.

    Matrices have a row a source and a column a target.

    Attributes
    ----------
    cost, changes : array of shape (k, k)
        Median cost and median number of changed columns of the answers there are; NaN if none.
    feasible : array of shape (k, k)
        Share of rows that have an answer; NaN where none was asked for.
    count : array of shape (k, k)
        Number of answers asked for.
    shares : array of shape (k, columns)
        For each target, the share of each column in the cost of all answers; NaN if none.
    columns : list of str

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from voicecf import VoICE
    >>> from voicecf.plots import Transitions
    >>> X = load_iris().data
    >>> voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
    >>> found = Transitions.from_counterfactuals(voice.explain(X, target="each"))
    >>> found.count.tolist()
    [[0, 62, 62], [50, 0, 50], [38, 38, 0]]
    """

    cost: Array
    feasible: Array
    changes: Array
    count: NDArray[np.int64]
    shares: Array
    columns: list[str]
    kind: Kind | None = None

    @classmethod
    def from_counterfactuals(cls, cf: Counterfactuals) -> Transitions:
        """Sum up answers, best made with ``voice.explain(X, target="each")``.

        Alternatives, of a `rank` above 0, are left out.
        """
        if len(cf) == 0:
            raise DataError('there are no answers to sum up; use voice.explain(X, target="each").')
        cf = cf[cf.rank == 0]
        k = explainer_of(cf).clustering_.n_clusters
        asked = _grouped(cf.source, cf.target, k)
        found = cf.feasible
        cost, changes, feasible = (np.full((k, k), np.nan) for _ in range(3))
        count = np.zeros((k, k), dtype=np.int64)
        for (source, target), which in asked.items():
            kept = which[found[which]]
            count[source, target] = len(which)
            feasible[source, target] = len(kept) / len(which)
            if len(kept):
                cost[source, target] = np.median(cf.cost[kept])
                changes[source, target] = np.median(cf.n_changed[kept])
        names = [legible(name) for name in cf.space.names]
        return cls(cost, feasible, changes, count, _shares(cf, k), names, cf.kind)

    def table(self) -> Any:
        """Return a line a pair of clusters: source, target, count, feasible, cost, changes."""
        source, target = np.nonzero(self.count)
        at = (source, target)
        return table(
            {
                "source": source, "target": target, "count": self.count[at],
                "feasible": self.feasible[at], "cost": self.cost[at], "changes": self.changes[at],
            },
            self.kind,
        )  # fmt: skip

    def column_table(self) -> Any:
        """Return a line a target and column: target, column, share of the cost."""
        target, column = np.nonzero(~np.isnan(self.shares))
        return table(
            {
                "target": target, "column": np.array(self.columns, dtype=str)[column],
                "share": self.shares[target, column],
            },
            self.kind,
        )  # fmt: skip


def _grouped(source: Any, target: Any, k: int) -> dict[tuple[int, int], NDArray[np.int64]]:
    """Return the answers of each pair of clusters."""
    pair = source * k + target
    order = np.argsort(pair, kind="stable")
    borders = np.flatnonzero(np.diff(pair[order])) + 1
    groups = np.split(order, borders)
    return {(int(source[g[0]]), int(target[g[0]])): g for g in groups}


def _shares(cf: Counterfactuals, k: int) -> Array:
    """Return, for each target, the share of each column in the cost of all answers."""
    price = np.where(cf.feasible[:, None], cf.weights * cf._moves**2, 0.0)
    total = np.zeros((k, price.shape[1]))
    np.add.at(total, cf.target, price)
    by_column = np.column_stack([total[:, c.places].sum(axis=1) for c in cf.space.columns])
    whole = by_column.sum(axis=1, keepdims=True)
    nothing = np.full_like(by_column, np.nan)
    return np.asarray(np.divide(by_column, whole, out=nothing, where=whole > 0))
