"""A piece with any straight borders: how far behind each an answer stays, and a point inside."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import linprog

from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.guard import Guard
from voicecf.geometry.partition import Piece
from voicecf.geometry.tolerance import TOLERANCE


@dataclass(frozen=True)
class Polyhedron(Piece):
    """A piece whose borders are where two sums of products, as the model rounds them, are equal.

    Parameters
    ----------
    target, center, normals, offsets, rivals, loses_ties, weights
        See `Piece`.
    sizes : array of shape (m,)
        Size of the terms that are constant in each constraint.
    reach : array of shape (m, s)
        Size of what each input is multiplied by in these sums; at least that of the normal.
    squares : array of shape (r, s)
        Rows q whose products with a point, squared, are terms of the sums, too.
    """

    target: int
    center: Array
    normals: Array
    offsets: Array
    rivals: Ints
    loses_ties: Mask
    weights: Array
    sizes: Array
    reach: Array
    squares: Array

    def without(self, rivals: Collection[int]) -> Polyhedron:
        """Return the piece without its constraints against some rivals."""
        stays = ~np.isin(self.rivals, list(rivals))
        names = ("normals", "offsets", "rivals", "loses_ties", "sizes", "reach")
        return replace(self, **{name: getattr(self, name)[stays] for name in names})

    def guard(self, alpha: float, delta: float, arithmetic: Arithmetic) -> Guard:
        """Return the slack that rounding in sums of products, and of their squares, requires.

        With K the square of the norm of `squares` in the metric, squares are at most K |x|^2, which
        is at most 2 K (|x - center|^2 + |center|^2).
        """
        metric = self.weights + delta
        lengths = np.sqrt((self.normals**2 / metric).sum(axis=1))
        reach = np.sqrt((self.reach**2 / metric).sum(axis=1))
        growth, square = arithmetic.growth(len(metric)), 0.0
        if len(self.squares):
            square = 2.0 * growth * SQUARED * largest_stretch(self.squares / np.sqrt(metric)) ** 2
        return Guard(
            behind=(1.0 - alpha) * np.maximum(self.offsets, 0.0),
            share=TOLERANCE.coarse * lengths,
            constant=growth * self.sizes + square * (metric * self.center**2).sum(),
            of_size=growth * reach + 2.0 * arithmetic.eps * lengths,
            of_square=np.full(len(lengths), square),
            of_move=TOLERANCE.move * lengths,
        )


# The difference of two sums of squares (q . x - q . m)^2, each of rounded products, errs by at most
# this many times the growth of rounding times |q| . |x| and |q| . |m|, squared.
SQUARED = 12.0


def largest_stretch(matrix: Array) -> float:
    """Return by how much a matrix of these sizes lengthens a vector at most."""
    return float(np.linalg.norm(np.abs(matrix), 2)) * (1.0 + 1e-9)


def point_inside(normals: Array, offsets: Array, near: Array, radius: float) -> Array:
    """Return the center of a ball in ``normals @ x <= offsets``, as large as `radius` if it fits.

    Of a piece that is empty it is the point that violates the constraints least.
    """
    s, lengths = len(near), np.linalg.norm(normals, axis=1)
    varies = lengths > 0.0
    unit = normals[varies] / lengths[varies, None]
    room = offsets[varies] / lengths[varies] - product(unit, near)
    # Moves up and down from `near`, which cost a little, and the radius, which is worth more.
    rows = np.hstack([unit, -unit, np.ones((len(unit), 1))])
    price = np.r_[np.full(2 * s, 1e-6), -1.0]
    found = linprog(price, rows, room, bounds=[(0, None)] * (2 * s) + [(None, radius)])
    return near if found.x is None else np.asarray(near + found.x[:s] - found.x[s:-1])
