"""What an explainer learns from data, and what it keeps for every target: regions, neighbours."""

from __future__ import annotations

from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.errors import EmptyClusterWarning, OptionError
from voicecf.explainer import Explainer, check_target
from voicecf.geometry.cell import Cell
from voicecf.geometry.pullback import loosened, pulled_back
from voicecf.geometry.region import Array, Region
from voicecf.rules.box import check_sides
from voicecf.search.aims import Rows
from voicecf.solver.neighbors import Neighborhood, neighborhood
from voicecf.solver.projection import UnitRows
from voicecf.table.learning import Givens
from voicecf.table.space import Given

# The least share of a cell that a contraction learned from data leaves.
LEAST_ALPHA = 0.01
# Numbers that are kept or made at once: scaled rows of targets, tables of distances.
TABLE = 1 << 25
# Most pairs of clusters that are kept: two tables of 32 MiB.
PAIRS = 1 << 23


class Learned(Explainer):
    """Box, contraction and order of columns, and the region of each target that follows from them.

    The options are those of `VoICE`.
    """

    contraction: Any
    retain: float
    contract_bounds: bool
    bounds: Any
    ranking: Any
    delta: float
    margin: float

    def _set_box(self, data: Givens | None) -> None:
        """Learn bounds of columns, and of coordinates."""
        columns = self.space_.columns
        d = len(columns)
        if self.bounds is None:
            self.lo_, self.hi_ = np.full(d, -np.inf), np.full(d, np.inf)
        elif isinstance(self.bounds, str):
            observed = np.array([column.observed for column in columns])
            self.lo_, self.hi_ = observed[:, 0].copy(), observed[:, 1].copy()
        else:
            self.lo_, self.hi_ = check_sides(self.bounds, d)
        self.box_ = self.space_.box(self.lo_, self.hi_)
        if data is not None and not self.space_.is_plain:
            around = [_around(given.points, *self.box_) for given in data]
            lows, highs = zip(*around, strict=True)
            self.box_ = np.min(lows, axis=0), np.max(highs, axis=0)
        self.box_ = self.space_.inward(*self.box_)

    def _box(self, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Turn bounds of columns into a box of coordinates; most are those that were learned."""
        new = (lo != self.lo_) | (hi != self.hi_)
        if not new.any():
            return self.box_
        sides = self.space_.box(lo, hi)
        for column, other in zip(self.space_.columns, new, strict=True):
            if not other:
                for side, learned in zip(sides, self.box_, strict=True):
                    side[column.places] = learned[column.places]
        return sides

    def _set_contraction(self, data: Givens) -> None:
        k = self.clustering_.n_clusters
        self.alpha_ = np.ones(k)
        if self.contraction != "retain":
            self.alpha_[:] = self.contraction
            return
        scores: list[list[Array]] = [[] for _ in range(k)]
        for given in data:
            labels = self._labels(given)
            for t in np.unique(labels):
                found = self._scores(int(t), given, labels == t)
                scores[t].append(found if self.retain < 1 else found.max(keepdims=True))
        for t in np.flatnonzero([len(found) > 0 for found in scores]):
            found = np.sort(np.concatenate(scores[t]))
            kept = found[max(int(np.ceil(self.retain * len(found) - 1e-9)), 1) - 1]
            self.alpha_[t] = max(kept, LEAST_ALPHA)
        if empty := [t for t in range(k) if not scores[t]]:
            warn(
                f"clusters {empty} have no rows in X; their cells are not contracted.",
                EmptyClusterWarning,
                stacklevel=3,
            )

    def _scores(self, target: int, given: Given, members: NDArray[np.bool_]) -> Array:
        """How much of its cell each member of a cluster needs, 0 to 1."""
        scores = self.clustering_.cell(target).scores(given.seen[members])
        if self.contract_bounds:
            scores = np.maximum(scores, self._box_scores(target, given.points[members]))
        return scores

    def _box_scores(self, target: int, points: Array) -> Array:
        """How much of the box each point needs if it shrinks towards the origin, 0 to 1."""
        rowless = Cell(self.origins_[[target]], self.weights_, 0)
        return rowless.scores(points, box=self.box_)

    def _set_order(self) -> None:
        columns = self.space_.columns
        d = len(columns)
        if isinstance(self.ranking, str):
            share = (
                self._importance() if self.ranking == "weights" else np.zeros_like(self.weights_)
            )
            scores = np.array([share[column.places].sum() for column in columns])
        else:
            try:
                scores = np.asarray(self.ranking, dtype=np.float64)
            except (TypeError, ValueError):
                scores = np.empty(0)
            if scores.shape != (d,) or np.isnan(scores).any():
                raise OptionError(f"ranking must be {d} scores, one a column, highest first.")
        self.ranked_ = np.argsort(-scores, kind="stable")
        self.order_ = np.concatenate([columns[c].places for c in self.ranked_])

    def _importance(self) -> Array:
        """Weight that the model gives each coordinate, through the mixing if there is one."""
        if self.space_.mixing is None:
            return self.weights_
        return np.asarray(self.clustering_.weights @ self.space_.mixing.matrix**2)

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        self._fitted_space()
        return self.clustering_.cell(int(check_target(target, 1, self.clustering_.n_clusters)[0]))

    def neighbors(self, target: int) -> Rows:
        """Return the clusters whose cells share a facet with a cluster's cell, ascending.

        Cells are those of the model, in its weighted metric and in the space that it sees: behind
        a scaler, a PCA. Bounds and contraction play no part.

        A rival is a neighbour if the cell without its row would reach past it, along some ray from
        the centroid, by more than 1e-9 of the way. Cells that meet in less than a facet, as
        diagonal ones of a grid do, are no neighbours. Of clusters whose centroids coincide only the
        first has a cell, as ties go to the lowest index: the others have no neighbours and are
        nobody's.

        In few dimensions a cell has few neighbours, whatever the number of clusters: about 6 in
        two, 15 in three. In 20 dimensions nearly all clusters are neighbours, and finding them
        takes a second with 1,000 clusters, half a minute or more with 5,000.

        Examples
        --------
        >>> from voicecf import VoICE
        >>> voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [1.0, 3.0]])
        >>> voice.neighbors(0)
        array([1, 3])
        """
        return self._neighborhood(self.cell(target).target).facets.copy()

    def _neighborhood(self, target: int) -> Neighborhood:
        """Find what surrounds a cell, and keep it for later calls."""
        kept: dict[Any, Any] = self.__dict__.setdefault("_kept", {})
        around: dict[int, Neighborhood] = kept.setdefault("around", {})
        if target not in around:
            around[target] = neighborhood(self.clustering_.cell(target))
        return around[target]

    def region(self, target: int) -> Region:
        """Return what an answer has to lie in: cell, contraction and box together."""
        region, _ = self._prepared(self.cell(target).target)
        return region

    def _prepared(self, target: int) -> tuple[Region, UnitRows]:
        """Region and scaled rows of a target, kept for later calls."""
        kept: dict[Any, Any] = self.__dict__.setdefault("_kept", {})
        if target not in kept:
            if len(kept) * self.clustering_.centers.size > TABLE:
                dear = {name: kept[name] for name in ("around", "cells") if name in kept}
                kept.clear()
                kept.update(dear)
            kept[target] = self._prepare(target)
        prepared: tuple[Region, UnitRows] = kept[target]
        return prepared

    def _cells(self) -> _core.Rows | None:
        """Rows of all cells at once, for the compiled core; None where some need more than that.

        Numbers as they are, clusters apart from each other, a model whose arithmetic is known.
        """
        kept: dict[Any, Any] = self.__dict__.setdefault("_kept", {})
        if "cells" not in kept:
            kept["cells"] = self._make_cells()
        found: _core.Rows | None = kept["cells"]
        return found

    def _make_cells(self) -> _core.Rows | None:
        clustering, space = self.clustering_, self.space_
        plain = space.continuous and space.is_plain and space.dtype == np.float64
        if not plain or space.steps is not None or self.contract_bounds:
            return None
        if not clustering.trusted or not _apart(clustering.centers[:, clustering.weights > 0]):
            return None
        return clustering.cells(np.minimum(self.alpha_, 1.0 - self.margin), self.delta)

    def _prepare(self, target: int) -> tuple[Region, UnitRows]:
        alpha = min(float(self.alpha_[target]), 1.0 - self.margin)
        cell = self.clustering_.cell(target)
        region = cell.region(alpha, delta=self.delta, arithmetic=self.clustering_.arithmetic)
        metric = self.weights_ + self.delta
        if self.space_.mixing is not None:
            region = pulled_back(
                region, self.space_.mixing, self.origins_[target],
                self.clustering_.weights + self.delta, metric, self.clustering_.arithmetic,
            )  # fmt: skip
        if self.space_.steps is not None:
            region = loosened(region, self.space_.slop)
        region = region.within(*self._contract_box(target, *self.box_))
        return region, UnitRows.of(region, metric)

    def __getstate__(self) -> dict[str, Any]:
        return {name: v for name, v in super().__getstate__().items() if name != "_kept"}

    def _contract_box(self, target: int, lo: Array, hi: Array) -> tuple[Array, Array]:
        if not self.contract_bounds:
            return lo, hi
        center, alpha = self.origins_[target], self.alpha_[target]
        shrunk = center + alpha * (lo - center), center + alpha * (hi - center)
        return np.maximum(lo, shrunk[0]), np.minimum(hi, shrunk[1])


def _apart(centers: Array) -> bool:
    """Tell whether clusters are not too many, no two coincide, and their squares are numbers."""
    k, spread = len(centers), np.abs(centers - centers.mean(axis=0)).max()
    return k * k <= PAIRS and bool(1e-60 < spread < 1e60) and len(np.unique(centers, axis=0)) == k


def _around(points: Array, lo: Array, hi: Array) -> tuple[Array, Array]:
    """Widen a box by rounding, so that data on its border are inside."""
    near = 8.0 * np.finfo(np.float64).eps
    with np.errstate(invalid="ignore"):
        low = np.where(np.abs(points - lo) <= near * np.abs(lo), points, np.inf).min(axis=0)
        high = np.where(np.abs(points - hi) <= near * np.abs(hi), points, -np.inf).max(axis=0)
    return np.minimum(lo, low), np.maximum(hi, high)
