"""A cluster's weighted Voronoi cell: its constraints, its contraction, its scores.

The only place that knows the half-space formula. With weights w, target centroid m_t and a rival
m_j, the points closer to m_t satisfy

    w (m_j - m_t) . (z - m_t)  <=  1/2 sum w (m_j - m_t)^2,

measured from the centroid. A contraction by alpha towards m_t multiplies the right side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import EPS, TOLERANCE


@dataclass(frozen=True)
class Arithmetic:
    """How a model's own predict computes distances, which bounds how far it may be off.

    Attributes
    ----------
    formula : "direct" or "expanded"
        Sum of w (x - m)^2, or |m|^2 - 2 x.m as scikit-learn's KMeans has it.
    eps : float
        Unit of rounding of the numbers it computes with.
    """

    formula: Literal["direct", "expanded"] = "direct"
    eps: float = EPS

    def growth(self, d: int) -> float:
        """Relative error of a sum of d products in any order, with a factor of safety."""
        return (d + 8) * self.eps


@dataclass(frozen=True)
class Cell:
    """The weighted Voronoi cell of one centroid.

    Parameters
    ----------
    centers : array of shape (k, d)
    weights : array of shape (d,)
        Feature weights, summing to 1.
    target : int
        Whose cell.

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

    @property
    def center(self) -> Array:
        """The centroid m_t."""
        return np.asarray(self.centers[self.target])

    @cached_property
    def rivals(self) -> NDArray[np.int64]:
        """Indices of the other clusters; constraint j of the cell belongs to rivals[j]."""
        return np.delete(np.arange(len(self.centers)), self.target)

    @cached_property
    def _shifts(self) -> Array:
        return np.asarray(self.centers[self.rivals] - self.center)

    @cached_property
    def normals(self) -> Array:
        """Normals of the half-spaces, shape (k - 1, d)."""
        return np.asarray(self.weights * self._shifts)

    @cached_property
    def offsets(self) -> Array:
        """Right-hand sides of the half-spaces, measured from the centroid, shape (k - 1,)."""
        squares = np.einsum("ij,ij,j->i", self._shifts, self._shifts, self.weights)
        return np.asarray(0.5 * squares)

    def scores(
        self, points: Any, *, box: tuple[Array, Array] | None = None, floor: float = 0.0
    ) -> Array:
        """Point-wise contraction scores alpha_{i,t}: how much of the cell each point needs, 0 to 1.

        Parameters
        ----------
        points : array of shape (n, d)
        box : pair of arrays, optional
            Lower and upper bounds that are contracted along with the cell.
        floor : float
            Rivals with an offset at most this are left out. 0 leaves out only coinciding centroids.
        """
        steps = np.asarray(points, dtype=np.float64) - self.center
        kept = self.offsets > floor
        scores = np.zeros(len(steps))
        if kept.any():
            scores = ((steps @ self.normals[kept].T) / self.offsets[kept]).max(axis=1)
        for side in box or ():
            room = side - self.center
            inner = np.isfinite(room) & (room != 0)
            if inner.any():
                scores = np.maximum(scores, (steps[:, inner] / room[inner]).max(axis=1))
        return np.asarray(np.clip(scores, 0.0, 1.0))

    def region(
        self,
        alpha: float = 1.0,
        *,
        delta: float = 0.0,
        arithmetic: Arithmetic | None = None,
    ) -> Region:
        """Return the cell, contracted by alpha, as a region without a box.

        With an `arithmetic`, answers keep the slack that the model's rounding needs (at most,
        proportional to the sizes involved), and a coinciding rival with a lower index, which wins
        every tie, makes the region empty.
        """
        offsets = alpha * self.offsets
        if arithmetic is None:
            return Region(self.normals, offsets, origin=self.center)
        apart = self.normals.any(axis=1)
        offsets[~apart] = np.where(self.rivals[~apart] < self.target, -1.0, 0.0)
        guard = self._guard(alpha, delta, arithmetic).only_where(apart)
        return Region(self.normals, offsets, origin=self.center, guard=guard)

    def _guard(self, alpha: float, delta: float, arithmetic: Arithmetic) -> Guard:
        """Return the slack that rounding in the model's `predict` asks for.

        D_j(z) - D_t(z) is twice the slack, so half the error of that difference is needed.
        """
        lengths = np.sqrt((self.normals**2 / (self.weights + delta)).sum(axis=1))
        growth = arithmetic.growth(len(self.weights))
        constant = np.zeros(len(lengths))
        of_size = 2.0 * arithmetic.eps * lengths  # the answer itself is rounded
        if arithmetic.formula == "expanded":
            sizes = np.sqrt((self.weights * self.centers**2).sum(axis=1))
            mine, theirs = sizes[self.target], sizes[self.rivals]
            constant = 0.5 * growth * (mine**2 + theirs**2)
            of_size += growth * (mine + theirs)
        return Guard(
            behind=(1.0 - alpha) * self.offsets,
            constant=constant,
            of_size=of_size,
            of_square=np.full(len(lengths), growth),
            of_move=TOLERANCE.move * lengths,
        )
