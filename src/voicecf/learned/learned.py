"""What an explainer has learned: one value, and the regions that follow from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.cell import Cell
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.pullback import Metrics, loosened, pulled_back
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.rules.allowed import DefaultBounds
from voicecf.solver.neighbors import Neighborhood, neighborhood
from voicecf.solver.projection import UnitConstraints
from voicecf.table.rows import Rows
from voicecf.table.space import Space

# Numbers in the regions that are kept at once.
KEPT = 1 << 25
# Most pairs of clusters whose constraints are kept: two tables of 32 MiB.
PAIRS = 1 << 23


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted model, its columns, and what the data tell.

    Attributes
    ----------
    model : estimator or None
        The explainer's own fitted copy; None where only centroids were given.
    clustering : Clustering
        Centroids and weights.
    space : Space
        The user's columns, and the coordinates.
    weights : array of shape (d,)
        Weights of the coordinates in the cost.
    origins : array of shape (k, d)
        Coordinates that the model sees at, or close to, its centroids.
    spread : array of shape (d,)
        Observed range of each coordinate.
    bounds : DefaultBounds
    alpha : array of shape (k,)
        Contraction of each cell.
    ranking : array of shape (C,)
        Columns, the most important first.
    delta : float
        Weight added to every coordinate in the solver's metric.
    margin : float
        Least contraction: 1 - alpha.
    contract_bounds : bool
        Whether the box shrinks along with a cell.
    """

    model: Any
    clustering: Clustering
    space: Space
    weights: Array
    origins: Array
    spread: Array
    bounds: DefaultBounds
    alpha: Array
    ranking: Ints
    delta: float = 0.0
    margin: float = 0.0
    contract_bounds: bool = False

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.clustering.n_clusters

    @property
    def metric(self) -> Array:
        """Weights of the coordinates in the solver: w + delta."""
        return self.weights + self.delta

    @cached_property
    def smallest_change(self) -> Array:
        """Moves of a coordinate up to this count as none."""
        return TOLERANCE.changed * self.spread

    @property
    def importance(self) -> Array:
        """Weight that the model gives each coordinate, through the mixing if there is one."""
        mixing = self.space.mixing
        if mixing is None:
            return self.weights
        return np.asarray(self.clustering.weights @ mixing.matrix**2)

    def read(self, X: Any) -> tuple[Rows, Ints]:
        """Read rows, and tell which cluster each is in."""
        rows = self.space.read(X)
        source = self.labels(rows)
        # What the steps made has been seen, and may be large.
        return (rows if rows.raw is None else replace(rows, raw=None)), source

    def labels(self, rows: Rows) -> Ints:
        """Assign rows as the model's own predict does, of what its own steps hand to it."""
        model = self.clustering.model
        if rows.raw is None or not hasattr(model, "predict"):
            return self.clustering.labels(rows.seen)
        return np.asarray(model.predict(rows.raw), dtype=np.int64)

    def agrees(self, target: int, points: Array) -> Mask:
        """Tell which coordinates the model puts into a cluster."""
        mixing = self.space.mixing
        return self.clustering.agrees(target, points if mixing is None else mixing(points))

    def alpha_of(self, target: int) -> float:
        """Return the contraction of a cell, the margin included."""
        return min(float(self.alpha[target]), 1.0 - self.margin)

    def contracted(self, alpha: float) -> Learned:
        """Return the same with another contraction of all cells."""
        return replace(
            self, alpha=np.full_like(self.alpha, alpha), margin=min(self.margin, 1.0 - alpha)
        )

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        return self.clustering.cell(target)

    def scores(self, target: int, rows: Rows, members: Any) -> Array:
        """Return how much of its cell each member of a cluster needs, 0 to 1."""
        scores = self.cell(target).scores(rows.seen[members])
        if not self.contract_bounds:
            return scores
        without_rivals = Cell(self.origins[[target]], self.weights, 0)
        of_box = without_rivals.scores(rows.points[members], box=self.bounds.box)
        return np.maximum(scores, of_box)

    def box(self, target: int, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Return a box as it holds for a target: contracted along with the cell, if asked for."""
        if not self.contract_bounds:
            return lo, hi
        center, alpha = self.origins[target], self.alpha[target]
        shrunk = center + alpha * (lo - center), center + alpha * (hi - center)
        fixed = lo == hi  # what may not change keeps its value, wherever that is
        low = np.where(fixed, lo, np.maximum(lo, shrunk[0]))
        return low, np.where(fixed, hi, np.minimum(hi, shrunk[1]))

    def region(self, target: int) -> Region:
        """Return what an answer has to lie in: cell, contraction and box together."""
        return self.prepared(target)[0]

    def prepared(self, target: int) -> tuple[Region, UnitConstraints]:
        """Return the region of a target and its scaled constraints, kept for later calls."""
        known = self._regions
        if target not in known:
            if len(known) * self.clustering.centers.size > KEPT:
                known.clear()
            region = self._region(target)
            known[target] = region, UnitConstraints.of(region, self.metric)
        return known[target]

    @cached_property
    def _regions(self) -> dict[int, tuple[Region, UnitConstraints]]:
        return {}

    def without_rivals(self, target: int, rivals: Collection[int]) -> Learned:
        """Return the same where some rivals of a target stand in nobody's way."""
        other = replace(self)
        region, _ = self.prepared(target)
        kept = ~np.isin(self.cell(target).rivals, [*rivals])
        assert region.guard is not None
        freed = Region(
            np.where(kept[:, None], region.normals, 0.0),
            np.where(kept, region.offsets, 0.0),
            region.lo,
            region.hi,
            region.origin,
            region.guard.only_where(kept),
        )
        other._regions[target] = freed, UnitConstraints.of(freed, self.metric)
        vars(other)["cells"] = None
        return other

    def _region(self, target: int) -> Region:
        clustering, space = self.clustering, self.space
        cell, arithmetic = clustering.cell(target), clustering.arithmetic
        region = cell.region(self.alpha_of(target), delta=self.delta, arithmetic=arithmetic)
        if space.mixing is not None:
            metrics = Metrics(clustering.weights + self.delta, self.metric)
            origin = self.origins[target]
            region = pulled_back(region, space.mixing, origin, metrics, arithmetic)
        if space.steps is not None:
            region = loosened(region, space.round_trip_error)
        return region.within(*self.box(target, *self.bounds.box))

    @cached_property
    def cells(self) -> _core.Rows | None:
        """Constraints of all cells for the compiled core; None where some need more than that.

        Numbers as they are, clusters apart from each other, a model whose arithmetic is known.
        """
        clustering, space = self.clustering, self.space
        plain = space.continuous and space.is_plain and space.dtype == np.float64
        if not plain or self.contract_bounds or not clustering.trusted:
            return None
        if not _apart(clustering.centers[:, clustering.weights > 0]):
            return None
        return clustering.cells(np.minimum(self.alpha, 1.0 - self.margin), self.delta)

    def neighborhood(self, target: int) -> Neighborhood:
        """Return what surrounds a cell, kept for later calls."""
        if target not in self._neighborhoods:
            self._neighborhoods[target] = neighborhood(self.cell(target))
        return self._neighborhoods[target]

    @cached_property
    def _neighborhoods(self) -> dict[int, Neighborhood]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _apart(centers: Array) -> bool:
    """Tell whether clusters are not too many, no two coincide, and their squares are numbers."""
    k, spread = len(centers), np.abs(centers - centers.mean(axis=0)).max()
    return k * k <= PAIRS and bool(1e-60 < spread < 1e60) and len(np.unique(centers, axis=0)) == k
