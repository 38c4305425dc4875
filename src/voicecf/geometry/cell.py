"""A cluster's weighted Voronoi cell.

The half-space formula stands here and nowhere else in Python. With weights w, target centroid m_t
and rival centroid m_j, the points z that are closer to m_t than to m_j satisfy

    w (m_j - m_t) . (z - m_t)  <=  1/2 sum w (m_j - m_t)^2.

A contraction of the cell towards m_t multiplies the right-hand side by alpha.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.geometry.guard import Guard
from voicecf.geometry.partition import Piece
from voicecf.geometry.tolerance import TOLERANCE


@dataclass(frozen=True)
class Cell(Piece):
    """The weighted Voronoi cell of one centroid.

    Parameters
    ----------
    centers : array of shape (k, d)
    weights : array of shape (d,)
        Feature weights, summing to 1.
    target : int
        Index of the cluster whose cell it is.
    ignored : frozenset of int
        Rivals that have no constraint.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.geometry.cell import Cell
    >>> cell = Cell(np.array([[0.0, 0.0], [2.0, 0.0]]), np.array([0.5, 0.5]), target=0)
    >>> cell.scores([[0.5, 3.0], [1.0, 0.0]])
    array([0.5, 1. ])
    """

    centers: Array
    weights: Array
    target: int
    ignored: frozenset[int] = frozenset()

    @property
    def center(self) -> Array:
        """The centroid m_t."""
        return np.asarray(self.centers[self.target])

    @cached_property
    def rivals(self) -> Ints:
        """Indices of the other clusters; constraint j of the cell belongs to rivals[j]."""
        return np.delete(np.arange(len(self.centers)), [self.target, *self.ignored])

    @cached_property
    def _shifts(self) -> Array:
        """Differences m_j - m_t of the rivals' centroids to the target's, shape (k - 1, d)."""
        return np.asarray(self.centers[self.rivals] - self.center)

    @cached_property
    def normals(self) -> Array:
        """Normals of the half-spaces, shape (k - 1, d)."""
        return np.asarray(self.weights * self._shifts)

    @cached_property
    def offsets(self) -> Array:
        """Right-hand sides of the half-spaces, relative to the centroid, shape (k - 1,)."""
        squares = np.einsum("ij,ij,j->i", self._shifts, self._shifts, self.weights)
        return np.asarray(0.5 * squares)

    @property
    def loses_ties(self) -> Mask:
        """Mask of the rivals with a lower index, which win all ties."""
        return np.asarray(self.rivals < self.target)

    def without(self, rivals: Collection[int]) -> Cell:
        """Return the cell without its constraints against some rivals."""
        return replace(self, ignored=self.ignored | {*rivals})

    def guard(self, alpha: float, delta: float, arithmetic: Arithmetic) -> Guard:
        """Return the slack that rounding in the model's `predict` requires.

        The difference of squared distances D_j(z) - D_t(z) is twice the slack of z, so the slack
        must be at least half the rounding error of that difference.
        """
        lengths = np.sqrt((self.normals**2 / (self.weights + delta)).sum(axis=1))
        apart = np.sqrt(((self.weights + delta) * self._shifts**2).sum(axis=1))
        growth = arithmetic.growth(len(self.weights))
        constant = np.zeros(len(lengths))
        of_size = 2.0 * arithmetic.eps * lengths  # coordinates of the answer are rounded, too
        if arithmetic.formula == "expanded":
            sizes = np.sqrt((self.weights * self.centers**2).sum(axis=1))
            target, rivals = sizes[self.target], sizes[self.rivals]
            constant = 0.5 * growth * (target**2 + rivals**2)
            of_size += growth * (target + rivals)
        return Guard(
            behind=(1.0 - alpha) * self.offsets,
            share=TOLERANCE.coarse * 2.0 * self.offsets / np.where(apart > 0.0, apart, 1.0),
            constant=constant,
            of_size=of_size,
            of_square=np.full(len(lengths), growth),
            of_move=TOLERANCE.move * lengths,
        )
