"""The plainest question, answered in one pass over memory.

Numbers in, a cluster for each row, the box that was learned, the least cost: most rows of such a
question are read, assigned, answered and measured while they are at hand, by `_open`. What that
leaves open goes the way of all other questions.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from voicecf._compile import announce, in_parallel
from voicecf.clustering import Clustering
from voicecf.crowd import Crowd
from voicecf.memory import empty
from voicecf.projection import FEW_ROWS, Projection, Stack, padded, writable
from voicecf.region import Array
from voicecf.status import Status

Rows = NDArray[np.int64]
# Rows that are handed to a core at a time.
CHUNK = 8192


@dataclass(frozen=True)
class Passed:
    """What one pass tells of n rows, each with its target.

    Attributes
    ----------
    points : array of shape (n, d)
        The rows themselves, copied.
    source : array of shape (n,)
        The cluster of each; -1 where the model has to be asked.
    found : Projection
        Answers, without multipliers, unresolved where the pass leaves them open. The gap is
        relative to half the energy.
    cost, n_changed : array of shape (n,)
    """

    points: Array
    source: Rows
    found: Projection
    cost: Array
    n_changed: Rows

    def stay(self, rows: Rows) -> None:
        """Leave rows where they are: they are in their target already."""
        found = self.found
        found.points[rows], found.status[rows] = self.points[rows], Status.ALREADY
        found.gap[rows], found.reach[rows] = 0.0, np.inf
        self.cost[rows], self.n_changed[rows] = 0.0, 0


def fits(clustering: Clustering, most: int) -> bool:
    """Tell whether clusters are for a stack of all rows: few, apart, of known arithmetic.

    `most` is how many numbers the rows of all targets may have.
    """
    k = clustering.n_clusters
    few = k <= FEW_ROWS + 1 and k * clustering.centers.size <= most
    if not (few and clustering.trusted):
        return False
    return all(clustering.cell(target).rows.any(axis=1).all() for target in range(k))


def one_pass(
    values: Array,
    own: Array,
    targets: Rows,
    stack: Stack | Crowd,
    box: tuple[Array, Array],
    clustering: Clustering,
    least: Array,
) -> Passed:
    """Copy rows into `own`, assign, answer and measure them, each for its own target.

    A column that moves by no more than its entry in `least` has not changed.
    """
    (n, d), values = values.shape, writable(values)
    found = Projection.blank(n, d)
    told = Passed(own, empty(n, np.int64), found, empty(n), empty(n, np.int64))
    if isinstance(stack, Stack):
        _few(values, targets, stack, box, clustering, least, told)
    else:
        if own is not values:
            np.copyto(own, values)
        room = (least, told.source, told.cost, told.n_changed)
        stack.answer(values, np.arange(n), targets, box, found, room)
    return told


def _few(
    values: Array, targets: Rows, stack: Stack, box: tuple[Array, Array], clustering: Clustering,
    least: Array, told: Passed,
) -> None:  # fmt: skip
    from voicecf import _open

    every, found = np.arange(len(values)), told.found
    arithmetic, weights = clustering.arithmetic, clustering.weights
    sizes = -1.0
    if arithmetic.formula == "expanded":
        sizes = float(np.sqrt((weights * clustering.centers**2).sum(axis=1).max()))
    problem = (
        every, every, values, np.atleast_2d(box[0]), np.atleast_2d(box[1]), found.points,
        found.multipliers, found.gap, found.reach, found.status, targets, *stack.geometry,
        arithmetic.growth(values.shape[1]), sizes, padded(weights, 2), padded(least, 2),
        told.points, told.source, told.cost, told.n_changed,
    )  # fmt: skip
    announce(_open.__file__, _open.open_chunk)
    in_parallel(lambda a, b: _open.open_chunk(a, b, *problem), len(values), chunk=CHUNK)
