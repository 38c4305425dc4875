"""The partition of a tree of cuts: each cut divides what reaches it by a hyperplane."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from voicecf.errors import ModelError
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.partition import Partition
from voicecf.geometry.polyhedron import Polyhedron, point_inside

# Most cuts of a tree: points are compared with all of them, and a file could ask for any number.
MOST_CUTS = 2048
# The arrays of a tree.
TREE = ("normals", "offsets", "sides", "label_of", "centers")


@dataclass(frozen=True, kw_only=True)
class Cuts(Partition):
    """A tree of cuts. Its pieces are the leaves; several leaves may have one label.

    Attributes
    ----------
    normals, offsets : array of shape (c, s), (c,)
        A point x goes left at a cut if ``normal @ x <= offset``, else right.
    sides : array of shape (c, 2)
        What is on the left and on the right of each cut: a later cut, or leaf i, written as
        ``-1 - i``. The tree begins at cut 0.
    label_of : array of shape (p,)
        The label of each leaf.
    centers : array of shape (p, s)
        A point inside each leaf; NaN until it is known.
    reach, sizes : array of shape (c, s), (c,)
        Size of what the model multiplies each input by in the sum of a cut, and of its constants;
        empty if they are those of the normals and offsets.
    exact : bool
        Whether the model compares its inputs as they are, so that no sum is rounded.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.geometry.cuts import Cuts
    >>> arrays = {
    ...     "normals": np.array([[1.0], [1.0]]), "offsets": np.array([0.0, 2.0]),
    ...     "sides": np.array([[-1, 1], [-2, -3]]), "label_of": np.array([0, 1, 0]),
    ...     "centers": np.array([[-1.0], [1.0], [3.0]]),
    ... }
    >>> cuts = Cuts.of_arrays(np.ones(1), arrays)
    >>> cuts.labels(np.array([[-0.5], [0.5], [2.5]]))
    array([0, 1, 0])
    """

    normals: Array
    offsets: Array
    sides: Ints
    label_of: Ints
    centers: Array
    reach: Array = field(default_factory=lambda: np.empty((0, 0)))
    sizes: Array = field(default_factory=lambda: np.empty(0))
    exact: bool = False

    rule: ClassVar[str] = "its cuts say; it cannot be explained."

    def arrays(self) -> dict[str, Any]:
        """Return the tree."""
        return {name: getattr(self, name) for name in TREE}

    @classmethod
    def of_arrays(cls, weights: Array, arrays: dict[str, Any]) -> Self:
        """Return a tree without a model."""
        tree = cls(weights=weights, **{name: arrays[name] for name in TREE})
        tree.check()
        return tree

    def check(self) -> None:
        """Raise ModelError unless the arrays make a tree with a point inside each leaf."""
        c, s, p = len(self.offsets), len(self.weights), len(self.label_of)
        if c > MOST_CUTS:
            raise ModelError(
                f"a tree of {c:,} cuts is too large: at most {MOST_CUTS:,} are allowed."
            )
        shapes = {"normals": (c, s), "offsets": (c,), "sides": (c, 2), "label_of": (p,)}
        for name, shape in {**shapes, "centers": (p, s)}.items():
            array, kind = getattr(self, name), "i" if name in ("sides", "label_of") else "f"
            if array.shape != shape or array.dtype.kind != kind:
                what = "whole numbers" if kind == "i" else "numbers"
                raise ModelError(f"{name} of a tree of cuts must be {what} of shape {shape}.")
        if sorted(self.sides.ravel().tolist()) != [*range(-p, 0), *range(1, c)]:
            raise ModelError("sides must name each leaf once, and each cut but the first once.")
        if not ((self.sides < 0) | (self.sides > np.arange(c)[:, None])).all():
            raise ModelError("sides must name cuts that come later.")
        labels = np.unique(self.label_of)
        if len(labels) < 2 or not np.array_equal(labels, np.arange(len(labels))):
            raise ModelError("label_of must have the labels 0 to k - 1, two or more.")
        if not np.array_equal(self.assign(self.centers)[0], np.arange(p)):
            raise ModelError("centers must have a point inside each leaf.")

    @cached_property
    def paths(self) -> list[tuple[Ints, Array]]:
        """For each leaf, the cuts on the way to it; and 1 where it goes left, -1 where right."""
        found: list[Any] = [None] * len(self.label_of)
        above: dict[int, list[tuple[int, float]]] = {0: []}
        for cut, sides in enumerate(self.sides.tolist()):
            for side, sign in zip(sides, (1.0, -1.0), strict=True):
                way = [*above[cut], (cut, sign)]
                if side >= 0:
                    above[side] = way
                else:
                    found[-1 - side] = np.array([c for c, _ in way]), np.array([g for _, g in way])
        return found

    @property
    def repeatable(self) -> bool:
        """Whether the model's `predict` assigns a point alike in any batch: our own sums do."""
        return self.model is None or self.exact

    def whole_piece(self, p: int) -> Polyhedron:
        """Return a leaf. A point on a cut goes left, so the right side loses ties."""
        cuts, signs = self.paths[p]
        normals, center = signs[:, None] * self.normals[cuts], self.centers[p]
        offsets, used = signs * self.offsets[cuts], product(normals, center)
        reach, sizes = self._terms
        sizes = sizes[cuts] + product(np.abs(normals), np.abs(center))
        return Polyhedron(
            target=int(self.label_of[p]),
            center=center,
            normals=normals,
            offsets=offsets - used,
            rivals=np.full(len(cuts), -1),  # behind a cut there may be several labels
            loses_ties=signs < 0,
            weights=self.weights,
            sizes=sizes,
            reach=reach[cuts],
            squares=np.empty((0, len(center))),
        )

    @cached_property
    def _terms(self) -> tuple[Array, Array]:
        """Size of the factors, and of the constants, in the sum of each cut."""
        if len(self.sizes):
            return self.reach, self.sizes
        return np.abs(self.normals), np.abs(self.offsets)

    def located(self, means: Array) -> Self:
        """Return a copy with these points inside the leaves; NaN where there is none."""
        centers = np.where(np.isnan(self.centers), means, self.centers)
        known = ~np.isnan(centers).any(axis=1)
        near = centers[known].mean(axis=0) if known.any() else np.zeros(self.n_inputs)
        for p in np.flatnonzero(~known).tolist():
            cuts, signs = self.paths[p]
            normals, offsets = signs[:, None] * self.normals[cuts], signs * self.offsets[cuts]
            centers[p] = point_inside(normals, offsets, near, 1.0)
        return replace(self, centers=centers)

    def assign(self, points: Array) -> tuple[Ints, Mask]:
        """Return the leaf of each point, and a mask of those within rounding of a cut."""
        points = np.asarray(points, dtype=np.float64)
        left_by = self.offsets - product(points, self.normals.T)
        reach, sizes = self._terms
        terms = sizes + product(np.abs(points), reach.T)
        close = np.abs(left_by) <= self.arithmetic.growth(len(self.weights)) * terms
        leaves = np.empty(len(points), dtype=np.int64)
        doubtful = np.empty(len(points), dtype=np.bool_)
        for leaf, (cuts, signs) in enumerate(self.paths):
            here = ((left_by[:, cuts] >= 0.0) == (signs > 0.0)).all(axis=1)
            leaves[here] = leaf
            doubtful[here] = close[here][:, cuts].any(axis=1)
        return leaves, doubtful
