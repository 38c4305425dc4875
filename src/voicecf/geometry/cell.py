"""A cluster's weighted Voronoi cell: its constraints, its contraction, its scores.

The half-space formula stands here and nowhere else. With weights w, target centroid m_t and rival
centroid m_j, the points z that are closer to m_t than to m_j satisfy

    w (m_j - m_t) . (z - m_t)  <=  1/2 sum w (m_j - m_t)^2.

A contraction of the cell towards m_t multiplies the right-hand side by alpha.
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
    """How a model's own `predict` computes distances; this bounds its rounding error.

    Attributes
    ----------
    formula : "direct" or "expanded"
        "direct" sums w (x - m)^2; "expanded" computes |m|^2 - 2 x . m, as scikit-learn's KMeans.
    eps : float
        Machine epsilon of the floating-point type that it computes with.
    """

    formula: Literal["direct", "expanded"] = "direct"
    eps: float = EPS

    def growth(self, d: int) -> float:
        """Bound the relative error of a sum of d products, added in any order."""
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
        Index of the cluster whose cell it is.

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

    def scores(
        self, points: Any, *, box: tuple[Array, Array] | None = None, floor: float = 0.0
    ) -> Array:
        """Return point-wise contraction scores alpha_{i,t}, between 0 and 1.

        The score is the smallest alpha for which the cell contracted by alpha contains the point.
        A point outside the cell gets 1.

        Parameters
        ----------
        points : array of shape (n, d)
        box : pair of arrays, optional
            Lower and upper bounds, which are contracted along with the cell.
        floor : float
            Rivals whose offset is at most `floor` are ignored. With 0 these are the rivals whose
            centroid coincides with the target's.
        """
        relative = np.asarray(points, dtype=np.float64) - self.center
        apart = self.offsets > floor
        scores = np.zeros(len(relative))
        if apart.any():
            scores = ((relative @ self.normals[apart].T) / self.offsets[apart]).max(axis=1)
        for side in box or ():
            room = side - self.center
            bounded = np.isfinite(room) & (room != 0)
            if bounded.any():
                scores = np.maximum(scores, (relative[:, bounded] / room[bounded]).max(axis=1))
        return np.asarray(np.clip(scores, 0.0, 1.0))

    def region(
        self,
        alpha: float = 1.0,
        *,
        delta: float = 0.0,
        arithmetic: Arithmetic | None = None,
    ) -> Region:
        """Return the cell, contracted by alpha, as a region without a box.

        With an `arithmetic`, the region has a guard: the slack that keeps the model's rounding
        errors from changing the cluster of an answer. If the centroid of a rival with a lower index
        coincides with the target's, that rival wins every tie, so the region is empty.

        Parameters
        ----------
        alpha : float
            Contraction; 1 is the whole cell.
        delta : float
            Weight that the solver's metric adds to every coordinate.
        arithmetic : Arithmetic, optional
            How the model computes distances.
        """
        offsets = alpha * self.offsets
        if arithmetic is None:
            return Region(self.normals, offsets, origin=self.center)
        apart = self.normals.any(axis=1)
        offsets[~apart] = np.where(self.rivals[~apart] < self.target, -1.0, 0.0)
        guard = self._guard(alpha, delta, arithmetic).only_where(apart)
        return Region(self.normals, offsets, origin=self.center, guard=guard)

    def _guard(self, alpha: float, delta: float, arithmetic: Arithmetic) -> Guard:
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
