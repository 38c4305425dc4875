"""Everything that `fit` has learned, in one frozen record, and the regions that follow from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.cell import Cell
from voicecf.geometry.clustering import Clustering
from voicecf.geometry.pullback import Metrics, pulled_back, with_round_trip_guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import LARGEST_SPREAD, LEAST_SPREAD, TOLERANCE
from voicecf.learned.members import Members
from voicecf.rules.allowed import DefaultBounds
from voicecf.rules.columns import coordinates_of
from voicecf.solver.neighbors import Neighborhood, neighborhood
from voicecf.solver.projection import UnitConstraints
from voicecf.table.extra import read_with_extra
from voicecf.table.rows import Rows
from voicecf.table.space import Space

# Most numbers in the cache of regions; a full cache is emptied.
REGION_CACHE = 1 << 25
# Most pairs of clusters for which the constraints of all cells are stored: two tables of 32 MiB.
PAIRS = 1 << 23
# Decimal places of values in the user's units that are tried, fewest first.
PLACES = range(-15, 18)


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted model, its columns, and what was learned from the data.

    Attributes
    ----------
    model : estimator or None
        The explainer's own fitted copy of the model; None if there are only centroids.
    clustering : Clustering
        Centroids and weights.
    space : Space
        The user's columns, and their conversion to coordinates.
    weights : array of shape (d,)
        Weights of the coordinates in the cost.
    origins : array of shape (k, d)
        Coordinates that the pipeline maps to the centroids, or as close to them as possible.
    spread : array of shape (d,)
        Observed range of each coordinate.
    bounds : DefaultBounds
        The explainer's own bounds, which hold for columns without a rule.
    alpha : array of shape (k,)
        Contraction of each cell, before the margin.
    ranking : array of shape (C,)
        Columns, the most important first.
    delta : float
        Weight added to every coordinate in the solver's metric.
    margin : float
        Every cell is contracted to at most 1 - margin.
    contract_bounds : bool
        Whether the box shrinks along with a cell.
    names : tuple of str
        What each cluster is called: the user's name for it, or "cluster 2".
    ranks_equally : bool
        Whether the ranking was to be by weight, but all columns have the same one.
    members : Members or None
        How the members of each cluster vary; None without data, or if there are too many clusters
        and coordinates.
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
    names: tuple[str, ...] = ()
    ranks_equally: bool = False
    members: Members | None = None

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.clustering.n_clusters

    @property
    def has_names(self) -> bool:
        """Whether the user has named some of the clusters."""
        return any(name != f"cluster {t}" for t, name in enumerate(self.names))

    @property
    def metric(self) -> Array:
        """Weights of the coordinates in the solver: w + delta."""
        return self.weights + self.delta

    @cached_property
    def smallest_change(self) -> Array:
        """For each coordinate, the largest move that does not tell alternatives apart."""
        return TOLERANCE.changed * self.spread

    @cached_property
    def largest(self) -> Array:
        """For each coordinate, a size that no value in the data exceeds; at least 1."""
        return np.asarray(np.maximum(np.abs(self.origins).max(axis=0) + self.spread, 1.0))

    @property
    def importance(self) -> Array:
        """Weight of each coordinate in the model's distance, through the mixing if there is one."""
        mixing = self.space.mixing
        if mixing is None:
            return self.weights
        return np.asarray(self.clustering.weights @ mixing.matrix**2)

    def read(
        self, X: Any, id: Any = None, errors: Literal["status", "raise"] = "raise"
    ) -> tuple[Rows, Ints]:
        """Return the user's table as rows to explain, and the cluster of each row."""
        rows = read_with_extra(self.space, X, id, errors)
        return rows, self.labels(rows)

    def labels(self, rows: Rows, *, alone: bool = True) -> Ints:
        """Assign rows as the model's own `predict` does after the steps of its pipeline.

        `alone` is that of `Clustering.labels`.
        """
        return self.clustering.labels(rows.seen, alone=alone)

    def agrees(self, target: int, points: Array) -> Mask:
        """Return a mask of the points, in coordinates, that the model assigns to a cluster."""
        mixing = self.space.mixing
        return self.clustering.agrees(target, points if mixing is None else mixing(points))

    @property
    def repeatable(self) -> bool:
        """Whether the model assigns coordinates alike in any batch; a matrix product does not."""
        return self.clustering.repeatable and self.space.mixing is None

    @property
    def contractions(self) -> Array:
        """Contraction of each cell, the margin included."""
        return np.minimum(self.alpha, 1.0 - self.margin)

    def alpha_of(self, target: int) -> float:
        """Return the contraction of one cell, the margin included."""
        return float(self.contractions[target])

    def contracted(self, alpha: float) -> Learned:
        """Return a copy in which all cells are contracted by alpha."""
        return replace(
            self, alpha=np.full_like(self.alpha, alpha), margin=min(self.margin, 1.0 - alpha)
        )

    def cell(self, target: int) -> Cell:
        """Return the weighted Voronoi cell of a cluster."""
        return self.clustering.cell(target)

    def scores(self, target: int, rows: Rows, members: Any) -> Array:
        """Return the contraction score of each member of a cluster, between 0 and 1.

        If bounds are contracted along with the cells, the score covers both.
        """
        scores = self.cell(target).scores(rows.seen[members])
        if not self.contract_bounds:
            return scores
        without_rivals = Cell(self.origins[[target]], self.weights, 0)
        box_scores = without_rivals.scores(rows.points[members], box=self.bounds.box)
        return np.maximum(scores, box_scores)

    def box(self, target: int, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Return the box for answers in a target: contracted with its cell if `contract_bounds`."""
        if not self.contract_bounds:
            return lo, hi
        center, alpha = self.origins[target], self.alpha[target]
        shrunk = center + alpha * (lo - center), center + alpha * (hi - center)
        fixed = lo == hi  # an immutable coordinate keeps its value, even outside the shrunk box
        low = np.where(fixed, lo, np.maximum(lo, shrunk[0]))
        return low, np.where(fixed, hi, np.minimum(hi, shrunk[1]))

    def region(self, target: int) -> Region:
        """Return the region of all answers for a target: its contracted cell and the box."""
        return self.prepared(target)[0]

    def prepared(self, target: int) -> tuple[Region, UnitConstraints]:
        """Return the region of a target and its scaled constraints, which are cached."""
        cache = self._regions
        if target not in cache:
            if len(cache) * self.clustering.centers.size > REGION_CACHE:
                cache.clear()
            region = self._region(target)
            cache[target] = region, UnitConstraints.of(region, self.metric)
        return cache[target]

    @cached_property
    def _regions(self) -> dict[int, tuple[Region, UnitConstraints]]:
        return {}

    def without_rivals(self, target: int, rivals: Collection[int]) -> Learned:
        """Return a copy that ignores the constraints of some rivals of a target."""
        other = replace(self)
        region, _ = self.prepared(target)
        remains = ~np.isin(self.cell(target).rivals, [*rivals])
        assert region.guard is not None
        # An ignored constraint becomes 0 <= 0, so that constraints still correspond to rivals.
        without = Region(
            np.where(remains[:, None], region.normals, 0.0),
            np.where(remains, region.offsets, 0.0),
            region.lo,
            region.hi,
            region.origin,
            region.guard.only_where(remains),
        )
        other._regions[target] = without, UnitConstraints.of(without, self.metric)
        vars(other)["cells"] = None  # the shared table has all constraints
        return other

    def _region(self, target: int) -> Region:
        """Compute the region of a target, in coordinates."""
        clustering, space = self.clustering, self.space
        cell, arithmetic = clustering.cell(target), clustering.arithmetic
        region = cell.region(self.alpha_of(target), delta=self.delta, arithmetic=arithmetic)
        if space.mixing is not None:
            metrics = Metrics(clustering.weights + self.delta, self.metric)
            origin = self.origins[target]
            region = pulled_back(region, space.mixing, origin, metrics, arithmetic)
        if space.steps is not None:
            region = with_round_trip_guard(region, space.round_trip_error)
        return region.within(*self.box(target, *self.bounds.box))

    @cached_property
    def cells(self) -> _core.Rows | None:
        """Constraints of all cells in one table of the compiled core; None if that is not possible.

        It is possible if the coordinates are the user's columns, as double-precision numbers, no
        two centroids coincide, bounds are not contracted and the model's arithmetic is known.
        """
        clustering, space = self.clustering, self.space
        plain = space.continuous and space.is_plain and space.dtype == np.float64
        if not plain or self.contract_bounds or not clustering.trusted:
            return None
        if not _fit_one_table(clustering.centers[:, clustering.weights > 0]):
            return None
        return clustering.cells(self.contractions, self.delta)

    @cached_property
    def warned(self) -> set[type[Warning]]:
        """Warnings that have been given, each of which is given once."""
        return set()

    @cached_property
    def agreed_values(self) -> dict[int, Array]:
        """For some number columns, values that all members of a cluster have, ascending.

        They are in the user's units: with the fewest digits that give the members' coordinate.
        """
        if self.members is None:
            return {}
        agreed = np.array([self.members.agreed(t) for t in range(self.n_clusters)])
        found = {}
        for c, column in enumerate(self.space.columns):
            at = column.places[0]
            if column.kind == "number" and agreed[:, at].any():
                coordinates = np.unique(self.members.means[agreed[:, at], at])
                found[c] = _shortest(self.space, c, coordinates)
        return found

    def neighborhood(self, target: int) -> Neighborhood:
        """Return the clusters around a cell, which are cached."""
        if target not in self._neighborhoods:
            self._neighborhoods[target] = neighborhood(self.cell(target))
        return self._neighborhoods[target]

    @cached_property
    def _neighborhoods(self) -> dict[int, Neighborhood]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are left out; they are computed again when needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def _shortest(space: Space, c: int, coordinates: Array) -> Array:
    """Return for each coordinate the value of the fewest decimal places that has it, ascending."""
    values = space.values(c, coordinates[:, None])
    places = [round(float(value), place) for value in values for place in PLACES]
    table = np.array(places).reshape(len(values), len(PLACES))
    same = coordinates_of(space, c, table.ravel()).reshape(table.shape) == coordinates[:, None]
    first = table[np.arange(len(values)), same.argmax(axis=1)]
    found = np.where(same.any(axis=1), first, values)
    return np.unique(found[np.isfinite(found)])


def _fit_one_table(centers: Array) -> bool:
    """Return True if the centroids are few enough, distinct, and of moderate size."""
    k, spread = len(centers), np.abs(centers - centers.mean(axis=0)).max()
    moderate = bool(LEAST_SPREAD < spread < LARGEST_SPREAD)
    return k * k <= PAIRS and moderate and len(np.unique(centers, axis=0)) == k
