"""The partition of a tree of cuts: each cut divides what reaches it by a hyperplane."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from voicecf.errors import ModelError
from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.guard import Guard
from voicecf.geometry.partition import Partition, Piece
from voicecf.geometry.tolerance import TOLERANCE

# Most cuts of a tree: points are compared with all of them, and a file could ask for any number.
MOST_CUTS = 2048
# The arrays of a tree.
TREE = ("normals", "offsets", "sides", "label_of", "centers")


@dataclass(frozen=True)
class Leaf(Piece):
    """A leaf of a tree of cuts: the points that take its side of every cut on the way to it.

    Attributes
    ----------
    target, center, normals, offsets, loses_ties
        See `Piece`. A point on a cut goes left, so the right side loses ties.
    weights : array of shape (s,)
        Weights of the inputs in the cost.
    sizes : array of shape (m,)
        Size of the terms that are constant in each constraint.
    """

    target: int
    center: Array
    normals: Array
    offsets: Array
    loses_ties: Mask
    weights: Array
    sizes: Array

    @property
    def rivals(self) -> Ints:
        """-1 for each constraint: behind a cut there may be several labels."""
        return np.full(len(self.offsets), -1)

    def without(self, rivals: Collection[int]) -> Leaf:
        """Return the leaf itself, or one without constraints if the rival is -1, all of them."""
        if -1 not in rivals:
            return self
        none = self.offsets[:0]
        return replace(
            self, normals=self.normals[:0], offsets=none, loses_ties=self.loses_ties[:0], sizes=none
        )

    def guard(self, alpha: float, delta: float, arithmetic: Arithmetic) -> Guard:
        """Return the slack that rounding requires: a cut is a sum of products and a constant."""
        lengths = np.sqrt((self.normals**2 / (self.weights + delta)).sum(axis=1))
        growth, none = arithmetic.growth(len(self.weights)), np.zeros(len(lengths))
        return Guard(
            behind=(1.0 - alpha) * self.offsets,
            share=TOLERANCE.coarse * lengths,
            constant=growth * self.sizes,
            of_size=(growth + 2.0 * arithmetic.eps) * lengths,
            of_square=none,
            of_move=TOLERANCE.move * lengths,
        )


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
        A point inside each leaf.

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
        return self.model is None

    def whole_piece(self, p: int) -> Leaf:
        """Return a leaf."""
        cuts, signs = self.paths[p]
        normals, center = signs[:, None] * self.normals[cuts], self.centers[p]
        offsets, used = signs * self.offsets[cuts], product(normals, center)
        sizes = np.abs(offsets) + product(np.abs(normals), np.abs(center))
        target = int(self.label_of[p])
        return Leaf(target, center, normals, offsets - used, signs < 0, self.weights, sizes)

    def assign(self, points: Array) -> tuple[Ints, Mask]:
        """Return the leaf of each point, and a mask of those within rounding of a cut."""
        points = np.asarray(points, dtype=np.float64)
        left_by = self.offsets - product(points, self.normals.T)
        terms = np.abs(self.offsets) + product(np.abs(points), np.abs(self.normals).T)
        close = np.abs(left_by) <= self.arithmetic.growth(len(self.weights)) * terms
        leaves = np.empty(len(points), dtype=np.int64)
        doubtful = np.empty(len(points), dtype=np.bool_)
        for leaf, (cuts, signs) in enumerate(self.paths):
            here = ((left_by[:, cuts] >= 0.0) == (signs > 0.0)).all(axis=1)
            leaves[here] = leaf
            doubtful[here] = close[here][:, cuts].any(axis=1)
        return leaves, doubtful
