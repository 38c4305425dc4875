"""What a model looks like from above this package: labels, each a union of convex pieces.

A model that we explain cuts the space of its inputs by straight edges. `Partition` is all that the
rest of the package knows of it: the pieces of each label, a point inside each piece, the weights of
the cost, and how the model's own `predict` rounds. How models become partitions stands in
`geometry.models`; one that predicts the nearest centroid is `geometry.centroids.Centroids`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.guard import Guard
from voicecf.geometry.named import named_rows
from voicecf.geometry.pullback import Mixing
from voicecf.geometry.region import Region

# How our own sums round, and their type.
DOUBLE, FLOAT64 = Arithmetic(), np.dtype(np.float64)


class Piece(ABC):
    """A convex piece of a label: the points x with ``normals @ (x - center) <= offsets``."""

    if TYPE_CHECKING:  # fields or properties of a subclass

        @property
        def target(self) -> int:
            """The label."""

        @property
        def center(self) -> Array:
            """A point inside, towards which the piece is contracted, shape (s,)."""

        @property
        def normals(self) -> Array:
            """Normals of the constraints, shape (m, s)."""

        @property
        def offsets(self) -> Array:
            """Right-hand sides of the constraints, relative to the center, shape (m,)."""

        @property
        def rivals(self) -> Ints:
            """The label that each constraint is against; -1 where it is against several."""

        @property
        def loses_ties(self) -> Mask:
            """Whether a point on the border of each constraint belongs to the other side."""

        @property
        def weights(self) -> Array:
            """Weights of the inputs in the cost, summing to 1, shape (s,)."""

    @property
    def columns(self) -> Ints:
        """The column of each constraint in a table of multipliers.

        It is its rival, or its position if several constraints are against one rival.
        """
        single = len(np.unique(self.rivals)) == len(self.rivals) and (self.rivals >= 0).all()
        return self.rivals if single else np.arange(len(self.rivals))

    @abstractmethod
    def guard(self, alpha: float, delta: float, arithmetic: Arithmetic) -> Guard:
        """Return the slack that rounding requires in each constraint, contracted by alpha."""

    @abstractmethod
    def without(self, rivals: Collection[int]) -> Piece:
        """Return the piece without its constraints against some rivals."""

    def slack(self, points: Any) -> Array:
        """Return by how much points satisfy each constraint, shape (n, m)."""
        return np.asarray(self.offsets - (points - self.center) @ self.normals.T)

    def scores(
        self, points: Any, *, box: tuple[Array, Array] | None = None, floor: float = 0.0
    ) -> Array:
        """Return point-wise contraction scores alpha_{i,t}, between 0 and 1.

        The score is the smallest alpha for which the piece contracted by alpha contains the point.
        A point outside gets 1.

        Parameters
        ----------
        points : array of shape (n, d)
        box : pair of arrays, optional
            Lower and upper bounds, which are contracted along with the piece.
        floor : float
            Constraints whose offset is at most `floor` are ignored. With 0 these are, in a Voronoi
            cell, the rivals whose centroid coincides with the target's.
        """
        relative = np.asarray(points, dtype=np.float64) - self.center
        apart = self.offsets > floor
        scores = np.zeros(len(relative))
        if apart.any():
            scores = ((relative @ self.normals[apart].T) / self.offsets[apart]).max(axis=1)
        for side in box or ():
            scores = np.maximum(scores, _share_of_way(relative, side - self.center))
        return np.asarray(np.clip(scores, 0.0, 1.0))

    def region(
        self,
        alpha: float = 1.0,
        *,
        delta: float = 0.0,
        arithmetic: Arithmetic | None = None,
    ) -> Region:
        """Return the piece, contracted by alpha, as a region without a box.

        With an `arithmetic`, the region has a guard: the slack that keeps the model's rounding
        errors from changing the label of an answer. A constraint that all points meet with
        equality, and whose ties the piece loses, then makes the region empty.

        Parameters
        ----------
        alpha : float
            Contraction; 1 is the whole piece.
        delta : float
            Weight that the solver's metric adds to every coordinate.
        arithmetic : Arithmetic, optional
            How the model computes.
        """
        # A point that is not inside, of a piece that is empty, brings no border nearer.
        offsets = np.where(self.offsets > 0.0, alpha, 1.0) * self.offsets
        if arithmetic is None:
            return Region(self.normals, offsets, origin=self.center)
        apart = self.normals.any(axis=1)
        offsets[~apart] = np.where(self.loses_ties[~apart], -1.0, 0.0)
        guard = self.guard(alpha, delta, arithmetic).only_where(apart)
        return Region(self.normals, offsets, origin=self.center, guard=guard)


def box_scores(points: Array, center: Array, box: tuple[Array, Array]) -> Array:
    """Return how far a box has to be contracted towards a center to end at each point, 0 to 1."""
    relative = points - center
    scores = [_share_of_way(relative, side - center) for side in box]
    return np.asarray(np.clip(np.maximum(*scores), 0.0, 1.0))


def _share_of_way(relative: Array, room: Array) -> Array:
    """Return the largest share of the way to a side of a box that points have gone; at least 0."""
    bounded = np.isfinite(room) & (room != 0)
    return np.asarray((relative[:, bounded] / room[bounded]).max(axis=1, initial=0.0))


@dataclass(frozen=True, kw_only=True)
class Partition(ABC):
    """How a model divides the space of its inputs.

    Attributes
    ----------
    weights : array of shape (s,)
        Weights of the inputs in the cost, summing to 1.
    arithmetic : Arithmetic
        How the model's own `predict` rounds.
    dtype : numpy dtype
        Floating-point type that the model computes with.
    model : object or None
        The model itself; None if there are only numbers.
    trusted : bool
        True if `arithmetic` is known to describe this class of models. If False, every answer is
        checked with the model's own `predict`.
    ignored : (int, frozenset of int)
        A label, and the rivals whose constraints its pieces do not have; see `without`.
    classes : tuple or None
        What the model's `predict` returns for each label; None if it returns its number.
    """

    weights: Array
    arithmetic: Arithmetic = DOUBLE
    dtype: np.dtype[Any] = FLOAT64
    model: Any = None
    trusted: bool = True
    ignored: tuple[int, frozenset[int]] = (-1, frozenset())
    classes: tuple[Any, ...] | None = None

    # Which label a row is given, in the words of an error, a reason and a near miss.
    rule: ClassVar[str] = "its borders say; it cannot be explained."
    wins: ClassVar[str] = "chosen"
    almost_wins: ClassVar[str] = "too close"

    if TYPE_CHECKING:

        @property
        def centers(self) -> Array:
            """A point inside each of the p pieces, shape (p, s)."""

        @property
        def label_of(self) -> Ints:
            """The label of each piece, shape (p,)."""

    @property
    @abstractmethod
    def repeatable(self) -> bool:
        """Whether the model's `predict` assigns a point alike in any batch.

        A sum in a fixed order does. Matrix products round differently in another batch, memory
        layout or on another processor.
        """

    @abstractmethod
    def whole_piece(self, p: int) -> Piece:
        """Return a piece with all of its constraints."""

    @abstractmethod
    def assign(self, points: Array) -> tuple[Ints, Mask]:
        """Return the piece of each point, and a mask of those where rounding could decide."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """Return what `of_arrays` needs to make a partition without a model, `weights` apart."""

    @classmethod
    @abstractmethod
    def of_arrays(cls, weights: Array, arrays: dict[str, Any]) -> Self:
        """Return a partition without a model; raise ModelError if the arrays make none."""

    def table(self, alphas: Array, delta: float) -> _core.Rows | None:
        """Return all pieces, contracted, in one table of the compiled core; None without one.

        Parameters
        ----------
        alphas : array of shape (k,)
            Contraction of the pieces of each label.
        delta : float
            Weight that the solver's metric adds to every input.
        """
        return None

    def lower_bounds(
        self, seen: Array, source: Ints, alphas: Array, metric: Array, mixing: Mixing | None
    ) -> Array:
        """Return lower bounds for the energy of a move into each piece, shape (n, p).

        The pieces of a point's own label are to be left out: their bounds are infinite.

        Parameters
        ----------
        seen : array of shape (n, s)
            Points that move, as the model sees them.
        source : array of shape (n,)
            Their labels.
        alphas : array of shape (k,)
            Contraction of the pieces of each label.
        metric : array of shape (d,)
            Diagonal metric of the energy, in coordinates.
        mixing : Mixing or None
            How inputs are made of coordinates; None if they are the same.
        """
        return np.where(self.label_of == source[:, None], np.inf, 0.0)

    def located(self, means: Array) -> Self:
        """Return a copy whose pieces have a point inside where none was known, `centers` is NaN.

        Parameters
        ----------
        means : array of shape (p, s)
            The mean of some points in each piece; NaN for pieces that have none.
        """
        return self

    def log_odds(self, label: int) -> tuple[Array, float] | None:
        """Return slopes and constant of the log-odds of a label; None if they are not affine."""
        return None

    def probabilities(self, points: Array) -> Array:
        """Return what the model's own `predict_proba` says of points, shape (n, k)."""
        return np.asarray(self.model.predict_proba(self._rows(points)))

    def indistinct(self) -> Ints:
        """Return the labels with a piece whose own center rounding in `predict` could misplace."""
        _, doubtful = self.assign(self.centers)
        return np.unique(self.label_of[doubtful])

    # What follows from these.

    @property
    def n_clusters(self) -> int:
        """Number of labels, k."""
        return int(self.label_of.max()) + 1

    @property
    def n_pieces(self) -> int:
        """Number of pieces, p."""
        return len(self.label_of)

    @property
    def n_inputs(self) -> int:
        """Number of inputs of the model, s."""
        return len(self.weights)

    @cached_property
    def one_each(self) -> bool:
        """Whether each label has one piece, which has the same number."""
        return np.array_equal(self.label_of, np.arange(self.n_pieces))

    def pieces_of(self, label: int) -> Ints:
        """Return the pieces of a label."""
        return np.array([label]) if self.one_each else np.flatnonzero(self.label_of == label)

    def pieces_at(self, points: Array, labels: Ints) -> Ints:
        """Return which piece of its label each point is in; the first where that is in doubt.

        A label of -1, which is none, is the piece -1.
        """
        if self.one_each:
            return labels
        found, _ = self.assign(np.nan_to_num(points))
        first = np.array([self.pieces_of(label)[0] for label in range(self.n_clusters)])
        found = np.where(self.label_of[found] == labels, found, first[labels])
        return np.where(labels < 0, -1, found)

    def piece(self, p: int) -> Piece:
        """Return a piece."""
        piece, (label, rivals) = self.whole_piece(p), self.ignored
        return piece.without(rivals) if label == piece.target else piece

    def without(self, label: int, rivals: Collection[int]) -> Self:
        """Return a copy in which the pieces of a label have no constraints against some rivals."""
        return replace(self, ignored=(label, frozenset(rivals)))

    def labels(self, points: Array, *, alone: bool = True) -> Ints:
        """Assign points as the model's own predict does.

        The label is computed here. The model's `predict` is called for points where rounding could
        change its decision, and for all points if its arithmetic is not known.

        Parameters
        ----------
        points : array of shape (n, s)
        alone : bool
            If True, the model is asked for one doubtful point at a time, unless it is repeatable:
            so the result does not depend on the other points.
        """
        pieces, doubtful = self.assign(points)
        labels = pieces if self.one_each else self.label_of[pieces]
        if not hasattr(self.model, "predict"):
            return labels
        if not self.trusted and len(points):
            labels[:] = self._predict(points)
        if doubtful.any() and alone and not self.repeatable:
            distinct, which = np.unique(points[doubtful], axis=0, return_inverse=True)
            one_by_one = np.concatenate([self._predict(point[None]) for point in distinct])
            labels[doubtful] = one_by_one[which.reshape(-1)]
        elif doubtful.any() and self.trusted:
            labels[doubtful] = self._predict(points[doubtful])
        return labels

    def agrees(self, target: int, points: Array) -> Mask:
        """Return a mask of the points that the model, in its own dtype, assigns to a label."""
        points = points.astype(self.dtype).astype(np.float64)
        return np.asarray(self.labels(points, alone=False) == target)

    def _predict(self, points: Array) -> NDArray[Any]:
        """Call the model's own `predict`, with a frame if it was fitted on one."""
        return self._numbered(on_host(self.model.predict(self._rows(points))))

    def _rows(self, points: Array) -> Any:
        """Return points as the model reads them: as a frame if it was fitted on one."""
        points = points.astype(self.dtype)
        names = getattr(self.model, "feature_names_in_", None)
        return points if names is None else named_rows(points, names)

    def _numbered(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the numbers of labels that the model has returned."""
        if self.classes is None:
            return labels
        classes = as_labels(self.classes)
        order = np.argsort(classes)
        return np.asarray(order[np.searchsorted(classes[order], labels)])

    def called(self, labels: Ints) -> NDArray[Any]:
        """Return what the model's `predict` returns for labels; None for -1, which is none."""
        if self.classes is None:
            return labels
        classes = as_labels(self.classes)
        if (labels >= 0).all():
            return classes[labels]
        return np.array([*self.classes, None], dtype=object)[labels]

    def __getstate__(self) -> dict[str, Any]:
        # Cached properties are left out; they are computed again when needed.
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def as_labels(classes: tuple[Any, ...]) -> NDArray[Any]:
    """Return labels as an array: of objects, unless all are numbers or all are text."""
    return np.array(classes, dtype=None if len(set(map(type, classes))) == 1 else object)


def on_host(values: Any) -> NDArray[Any]:
    """Return an array, one of a graphics processor, too, as numpy's."""
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    elif hasattr(values, "__cuda_array_interface__"):
        values = values.get()
    return np.asarray(values)
