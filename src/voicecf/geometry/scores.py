"""The partition of a model that predicts the label of the highest of several affine scores."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np
from scipy.spatial.distance import cdist

from voicecf.errors import ModelError
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.partition import Partition
from voicecf.geometry.polyhedron import SQUARED, Polyhedron, largest_stretch, point_inside
from voicecf.geometry.pullback import Mixing
from voicecf.geometry.tolerance import TOLERANCE

# Most entries in a table of scores; it limits the memory.
TABLE = 1 << 22
# Scores that a lower bound is taken against, where labels have several.
RIVALS = 8
# The arrays of a model without a model.
SCORES = ("slopes", "constants", "label_of", "centers")


@dataclass(frozen=True, kw_only=True)
class Scores(Partition):
    """Affine scores, ``slopes @ x + constants``: a point has the label of the highest.

    The first of equal scores wins. A label may have several scores; its piece for each is where no
    score of another label is higher, so that the pieces of a label may overlap.

    Attributes
    ----------
    slopes, constants : array of shape (p, s), (p,)
    label_of : array of shape (p,)
        The label of each score.
    centers : array of shape (p, s)
        A point inside each piece; NaN until it is known.
    reach : array of shape (p, s)
        Size of what the model multiplies each input by, at least that of the slopes.
    sizes : array of shape (p,)
        Size of the constant terms of each score; at least that of the constant.
    squares : array of shape (r, s)
        Rows q whose products with a point, squared, the model adds to all scores.
    logistic : bool
        Whether the difference of two scores is the logarithm of the labels' odds.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.geometry.scores import Scores
    >>> scores = Scores.of_scores([[1.0], [-1.0]], [0.0, 4.0])
    >>> scores.labels(np.array([[1.0], [3.0]]))
    array([1, 0])
    """

    slopes: Array
    constants: Array
    label_of: Ints
    centers: Array
    reach: Array
    sizes: Array
    logistic: bool = False
    squares: Array = field(default_factory=lambda: np.empty((0, 0)))

    rule: ClassVar[str] = "the one of the highest score; it cannot be explained."

    @classmethod
    def of_scores(
        cls,
        slopes: Any,
        constants: Any,
        label_of: Any = None,
        anchors: Any = None,
        **others: Any,
    ) -> Self:
        """Check scores, and return their partition.

        `anchors` are points m, one for each score, where the model squares products with x - m.
        """
        try:
            slopes = np.ascontiguousarray(slopes, dtype=np.float64)
            constants = np.ascontiguousarray(constants, dtype=np.float64)
        except (TypeError, ValueError):
            slopes, constants = np.empty(0), np.empty(0)
        if slopes.ndim != 2 or constants.shape != slopes.shape[:1] or slopes.shape[1] == 0:
            raise ModelError("scores need numbers A of shape (k, d) and b of shape (k,).")
        if not (np.isfinite(slopes).all() and np.isfinite(constants).all()):
            raise ModelError(
                "a score is not finite: a label that the model never saw, or a probability of 0. "
                "Fit it on rows of every label, or smooth it (alpha > 0)."
            )
        p, s = slopes.shape
        label_of = np.arange(p) if label_of is None else np.asarray(label_of, dtype=np.int64)
        if p < 2 or (label_of == label_of[0]).all():
            raise ModelError("the model has one label: there is no other to move to.")
        if not slopes.any():
            raise ModelError("no column has an effect: every point has the same scores.")
        known = {
            "centers": np.full((p, s), np.nan), "reach": np.abs(slopes), "sizes": np.abs(constants),
            **others,
        }  # fmt: skip
        if anchors is not None:
            sums = (np.abs(anchors) @ np.abs(known["squares"]).T) ** 2
            known["sizes"] = known["sizes"] + SQUARED * sums.sum(axis=1)
        weights = np.full(s, 1.0 / s)
        return cls(weights=weights, slopes=slopes, constants=constants, label_of=label_of, **known)

    @classmethod
    def nearest(cls, centers: Array, label_of: Ints, **others: Any) -> Self:
        """Return the partition of a model that predicts the label of the nearest of some points."""
        centers = np.ascontiguousarray(centers, dtype=np.float64)
        half = -0.5 * (centers**2).sum(axis=1)
        known = {"centers": centers, "squares": np.eye(centers.shape[1]), **others}
        return cls.of_scores(centers, half, label_of, centers, **known)

    def arrays(self) -> dict[str, Any]:
        """Return the scores."""
        return {name: getattr(self, name) for name in SCORES}

    @classmethod
    def of_arrays(cls, weights: Array, arrays: dict[str, Any]) -> Self:
        """Return scores without a model."""
        scores = cls.of_scores(*(arrays[name] for name in SCORES[:3]), centers=arrays["centers"])
        labels = np.unique(scores.label_of)
        if not np.array_equal(labels, np.arange(len(labels))):
            raise ModelError("label_of must have the labels 0 to k - 1.")
        if scores.label_of.shape != scores.constants.shape:
            raise ModelError("label_of must have a label for each score.")
        if scores.centers.shape != scores.slopes.shape:
            raise ModelError("centers must have a point for each score.")
        return replace(scores, weights=weights)

    @property
    def repeatable(self) -> bool:
        """Whether the model's `predict` assigns a point alike in any batch: our own sums do."""
        return self.model is None

    def _rivals_of(self, p: int) -> Ints:
        """Return the scores of other labels; of those that are equal, the first."""
        return np.flatnonzero(self.label_of != self.label_of[p])

    def whole_piece(self, p: int) -> Polyhedron:
        """Return where no score of another label is higher than score p."""
        others, center = self._rivals_of(p), self.centers[p]
        normals = self.slopes[others] - self.slopes[p]
        used = np.zeros(len(others)) if np.isnan(center).any() else product(normals, center)
        sizes = self.sizes[others] + self.sizes[p] + product(np.abs(normals), np.abs(center))
        return Polyhedron(
            target=int(self.label_of[p]),
            center=center,
            normals=normals,
            offsets=self.constants[p] - self.constants[others] - used,
            rivals=self.label_of[others],
            loses_ties=others < p,
            weights=self.weights,
            sizes=sizes,
            reach=self.reach[others] + self.reach[p],
            squares=self.squares,
        )

    def located(self, means: Array) -> Self:
        """Return a copy with these points inside the pieces; NaN where there is none."""
        centers = np.where(np.isnan(self.centers), means, self.centers)
        known = ~np.isnan(centers).any(axis=1)
        near = centers[known].mean(axis=0) if known.any() else np.zeros(self.n_inputs)
        for p in np.flatnonzero(~known).tolist():
            others = self._rivals_of(p)
            normals = self.slopes[others] - self.slopes[p]
            offsets = self.constants[p] - self.constants[others]
            centers[p] = point_inside(normals, offsets, near, 1.0)
        return replace(self, centers=centers)

    def log_odds(self, label: int) -> tuple[Array, float] | None:
        """Return slopes and constant of the log-odds of one of two labels."""
        if not (self.logistic and self.n_pieces == 2):
            return None
        other = 1 - label
        slopes = self.slopes[label] - self.slopes[other]
        return slopes, float(self.constants[label] - self.constants[other])

    def _scores(self, points: Array) -> Array:
        """Return the scores of points, shape (n, p)."""
        return product(points, self.slopes.T) + self.constants

    def assign(self, points: Array) -> tuple[Ints, Mask]:
        """Return the highest score of each point, and a mask of those where rounding decides."""
        points = np.asarray(points, dtype=np.float64)
        best, doubtful = np.empty(len(points), dtype=np.int64), np.empty(len(points), dtype=bool)
        block = max(1, TABLE // self.n_pieces)
        for start in range(0, len(points), block):
            part = slice(start, start + block)
            scores = self._scores(points[part])
            best[part] = scores.argmax(axis=1)
            highest = scores.max(axis=1)
            if self.one_each:
                scores[np.arange(len(scores)), best[part]] = -np.inf
            else:
                scores[self.label_of[best[part]][:, None] == self.label_of] = -np.inf
            lead = highest - scores.max(axis=1)
            doubtful[part] = ~(lead > self._rounding(points[part]))
        return best, doubtful

    def _rounding(self, points: Array) -> Array:
        """Bound by how much the model and our sums may err in a difference of two scores."""
        growth = self.arithmetic.growth(self.n_inputs)
        bound = product(np.abs(points), self.reach.max(axis=0)) + self.sizes.max()
        if len(self.squares):
            stretch = largest_stretch(self.squares) ** 2
            bound = bound + SQUARED * stretch * (points**2).sum(axis=1)
        return np.asarray(2.0 * growth * bound)

    @np.errstate(all="ignore")
    def lower_bounds(
        self, seen: Array, source: Ints, alphas: Array, metric: Array, mixing: Mixing | None
    ) -> Array:
        """Return lower bounds for the energy of a move into each piece; infinite for the source's.

        The bound is the energy of the projection onto the constraint against one of the highest
        scores at the point, the largest of these.
        """
        scores, labels = self._scores(seen), self.label_of
        pulled = self.slopes if mixing is None else self.slopes @ mixing.matrix
        pulled = pulled / np.sqrt(metric)
        rounding = self._rounding(seen)[:, None]
        bound = np.zeros_like(scores)
        count = 1 if self.one_each else min(RIVALS, self.n_pieces)
        highest = np.argpartition(-scores, count - 1, axis=1)[:, :count]
        for rival in highest.T:
            excess = np.take_along_axis(scores, rival[:, None], axis=1) - scores - rounding
            against = np.maximum(excess, 0.0) ** 2 / cdist(pulled[rival], pulled, "sqeuclidean")
            against[~np.isfinite(against) | (labels[rival][:, None] == labels)] = 0.0
            if self.ignored[1]:  # these constraints are missing
                missing = np.isin(labels[rival], list(self.ignored[1]))
                against[np.ix_(missing, labels == self.ignored[0])] = 0.0
            np.maximum(bound, against, out=bound)
        bound *= 1 - TOLERANCE.cheaper
        bound[labels == source[:, None]] = np.inf
        return bound


def ordered(labels: Any) -> tuple[Ints, Any]:
    """Return labels as numbers from 0, and the labels in their order; None if they are these."""
    classes, label_of = np.unique(np.asarray(labels), return_inverse=True)
    plain = classes.dtype.kind in "iu" and np.array_equal(classes, np.arange(len(classes)))
    return label_of.astype(np.int64), None if plain else classes


def only_first(rows: Array) -> Ints:
    """Return the positions of rows that equal none before them, ascending."""
    return np.sort(np.unique(rows, axis=0, return_index=True)[1])
