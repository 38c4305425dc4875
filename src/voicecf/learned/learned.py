"""Everything that `fit` has learned, in one frozen record, and the regions that follow from it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

import voicecf._core as _core
from voicecf.errors import OptionError
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.partition import Partition, box_scores
from voicecf.geometry.pullback import Metrics, pulled_back, with_round_trip_guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE
from voicecf.learned.members import Members
from voicecf.rules.allowed import DefaultBounds
from voicecf.rules.columns import cached, coordinates_of
from voicecf.solver.neighbors import Neighborhood, neighborhood
from voicecf.solver.projection import UnitConstraints
from voicecf.table.extra import read_with_extra
from voicecf.table.rows import Rows
from voicecf.table.space import Space

# Most numbers in the cache of regions; a full cache is emptied.
REGION_CACHE = 1 << 25
# Decimal places of values in the user's units that are tried, fewest first.
PLACES = range(-15, 18)


@dataclass(frozen=True, eq=False)
class Learned:
    """A fitted model, its columns, and what was learned from the data.

    Attributes
    ----------
    model : estimator or None
        The explainer's own fitted copy of the model; None if there is only a partition.
    partition : Partition
        How the model divides the space of its inputs.
    space : Space
        The user's columns, and their conversion to coordinates.
    weights : array of shape (d,)
        Weights of the coordinates in the cost.
    origins : array of shape (p, d)
        For each piece of the partition, coordinates that the pipeline maps to the point inside it,
        or as close to it as possible.
    spread : array of shape (d,)
        Observed range of each coordinate.
    bounds : DefaultBounds
        The explainer's own bounds, which hold for columns without a rule.
    alpha : array of shape (k,)
        Contraction of the pieces of each cluster, before the margin.
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
    derived : dict of str to str
        Columns that are computed from two others in the data, and how; see `voicecf.VoICE`.
    """

    model: Any
    partition: Partition
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
    derived: dict[str, str] = field(default_factory=dict)

    @property
    def n_clusters(self) -> int:
        """Number of clusters, k."""
        return self.partition.n_clusters

    @property
    def has_names(self) -> bool:
        """Whether the user has named some of the clusters."""
        return any(map(self.has_name, range(len(self.names))))

    def has_name(self, cluster: int) -> bool:
        """Tell whether the user, or the model by its classes, has named a cluster."""
        return self.names[cluster] != f"cluster {cluster}"

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
        """Weight of each coordinate for the model, through the mixing if there is one."""
        mixing = self.space.mixing
        if mixing is None:
            return self.weights
        return np.asarray(self.partition.weights @ mixing.matrix**2)

    def read(
        self, X: Any, id: Any = None, errors: Literal["status", "raise"] = "raise"
    ) -> tuple[Rows, Ints]:
        """Return the user's table as rows to explain, and the cluster of each row."""
        rows = read_with_extra(self.space, X, id, errors)
        return rows, self.labels(rows)

    def labels(self, rows: Rows, *, alone: bool = True) -> Ints:
        """Assign rows as the model's own `predict` does after the steps of its pipeline.

        `alone` is that of `Partition.labels`.
        """
        return self.partition.labels(rows.seen, alone=alone)

    def seen(self, points: Array) -> Array:
        """Return what the model sees of points, in coordinates, up to rounding."""
        mixing = self.space.mixing
        return points if mixing is None else mixing(points)

    def agrees(self, target: int, points: Array) -> Mask:
        """Return a mask of the points, in coordinates, that the model assigns to a cluster."""
        return self.partition.agrees(target, self.seen(points))

    @property
    def repeatable(self) -> bool:
        """Whether the model assigns coordinates alike in any batch; a matrix product does not."""
        return self.partition.repeatable and self.space.mixing is None

    @property
    def contractions(self) -> Array:
        """Contraction of the pieces of each cluster, the margin included."""
        return np.minimum(self.alpha, 1.0 - self.margin)

    def alpha_of(self, target: int) -> float:
        """Return the contraction of a cluster's pieces, the margin included."""
        return float(self.contractions[target])

    def contracted(self, alpha: float) -> Learned:
        """Return a copy in which all pieces are contracted by alpha."""
        return replace(
            self, alpha=np.full_like(self.alpha, alpha), margin=min(self.margin, 1.0 - alpha)
        )

    def only_piece(self, target: int) -> int:
        """Return the piece of a cluster that has one, or raise."""
        pieces = self.partition.pieces_of(target)
        if len(pieces) > 1:
            raise OptionError(
                f"{self.names[target]} consists of {len(pieces)} pieces, so it is no single cell; "
                "see voice.partition_.piece(p) for p in voice.partition_.pieces_of(label)."
            )
        return int(pieces[0])

    def scores(self, target: int, rows: Rows, members: Any) -> Array:
        """Return the contraction score of each member of a cluster in its piece, between 0 and 1.

        If bounds are contracted along with the pieces, the score covers both.
        """
        which = np.flatnonzero(members)
        pieces = self.partition.pieces_at(rows.seen[which], np.full(len(which), target))
        scores = np.empty(len(which))
        for p in np.unique(pieces).tolist():
            at = np.flatnonzero(pieces == p)
            scores[at] = self.partition.piece(p).scores(rows.seen[which[at]])
            if self.contract_bounds:
                in_box = box_scores(rows.points[which[at]], self.origins[p], self.bounds.box)
                scores[at] = np.maximum(scores[at], in_box)
        return scores

    def box(self, piece: int, lo: Array, hi: Array) -> tuple[Array, Array]:
        """Return the box for answers in a piece: contracted along with it if `contract_bounds`."""
        if not self.contract_bounds:
            return lo, hi
        center, alpha = self.origins[piece], self.alpha[self.partition.label_of[piece]]
        shrunk = center + alpha * (lo - center), center + alpha * (hi - center)
        fixed = lo == hi  # an immutable coordinate keeps its value, even outside the shrunk box
        low = np.where(fixed, lo, np.maximum(lo, shrunk[0]))
        return low, np.where(fixed, hi, np.minimum(hi, shrunk[1]))

    def region(self, piece: int) -> Region:
        """Return the region of all answers in a piece: the piece, contracted, and the box."""
        return self.prepared(piece)[0]

    def prepared(self, piece: int) -> tuple[Region, UnitConstraints]:
        """Return the region of a piece and its scaled constraints, which are cached."""
        cache = self._regions
        if piece not in cache:
            if len(cache) * self.origins.size > REGION_CACHE:
                cache.clear()
            region = self._region(piece)
            cache[piece] = region, UnitConstraints.of(region, self.metric)
        return cache[piece]

    @cached_property
    def _regions(self) -> dict[int, tuple[Region, UnitConstraints]]:
        return {}

    def without_rivals(self, target: int, rivals: Collection[int]) -> Learned:
        """Return a copy that ignores the constraints of a target against some rivals."""
        return replace(self, partition=self.partition.without(target, rivals))

    def _region(self, p: int) -> Region:
        """Compute the region of a piece, in coordinates."""
        partition, space = self.partition, self.space
        piece, arithmetic = partition.piece(p), partition.arithmetic
        alpha = self.alpha_of(piece.target)
        region = piece.region(alpha, delta=self.delta, arithmetic=arithmetic)
        if space.mixing is not None:
            metrics = Metrics(partition.weights + self.delta, self.metric)
            region = pulled_back(region, space.mixing, self.origins[p], metrics, arithmetic)
        if space.steps is not None:
            region = with_round_trip_guard(region, space.round_trip_error)
        return region.within(*self.box(p, *self.bounds.box))

    @cached_property
    def cells(self) -> _core.Rows | None:
        """All pieces, contracted, in one table of the compiled core; None if there is none.

        There can be one if the coordinates are the user's columns, as double-precision numbers, and
        bounds are not contracted.
        """
        space = self.space
        plain = space.continuous and space.is_plain and space.dtype == np.float64
        if not plain or self.contract_bounds:
            return None
        return self.partition.table(self.contractions, self.delta)

    def members_of(self, fixed: Mask) -> Members:
        """Return how members vary in the columns that are not fixed, a mask of shape (C,)."""
        members, space = self.members, self.space
        assert members is not None
        if not fixed.any():
            return members
        locked = np.zeros(space.n_coordinates, dtype=np.bool_)
        for c in np.flatnonzero(fixed):
            locked[space.columns[c].places] = True
        return cached(space, "members", fixed.tobytes(), partial(members.leaving_out, locked), 4)

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
        """Return the clusters around a cell."""
        return neighborhood(self.partition.piece(self.only_piece(target)))

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
