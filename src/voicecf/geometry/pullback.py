"""Pull a region of the model's inputs back to coordinates, through the steps that mix columns.

The model sees x = A z + c, where z is the point in coordinates, in which answers are searched.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.arrays import Array, product
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE


@dataclass(frozen=True)
class Mixing:
    """The affine map of the steps from the first that mixes columns on: x = matrix z + shift.

    Attributes
    ----------
    matrix : array of shape (p, d)
    shift : array of shape (p,)
    weighted : bool
        Whether the cost of a coordinate is its share in the model's distance; else all coordinates
        have equal weights.
    """

    matrix: Array
    shift: Array
    weighted: bool = False

    def __call__(self, points: Array) -> Array:
        """Return the model's inputs x for coordinates z, up to rounding."""
        return np.asarray(points @ self.matrix.T + self.shift)


def origins(mixing: Mixing, centers: Array, middle: Array) -> Array:
    """Return coordinates, shape (p, d), whose images under the mixing are nearest to some points.

    Where several coordinates are equally good, the ones nearest to `middle`, the mean of the data.
    """
    differences = (centers - mixing(middle[None])).T
    moves, *_ = np.linalg.lstsq(mixing.matrix, differences, rcond=None)
    return np.asarray(middle + moves.T)


def with_round_trip_guard(region: Region, round_trip_error: Array) -> Region:
    """Return the region with more guard, for the error of converting to the user's units and back.

    Parameters
    ----------
    region : Region
        With a guard.
    round_trip_error : array of shape (d,)
        Largest error of each coordinate.
    """
    assert region.guard is not None
    constant = region.guard.constant + product(np.abs(region.normals), round_trip_error)
    guard = replace(region.guard, constant=constant)
    return Region(region.normals, region.offsets, origin=region.origin, guard=guard)


@dataclass(frozen=True)
class Metrics:
    """Diagonal metrics, w + delta: of the model's inputs (`seen`), and of the coordinates."""

    seen: Array
    coordinates: Array


def pulled_back(
    region: Region, mixing: Mixing, origin: Array, metrics: Metrics, arithmetic: Arithmetic
) -> Region:
    """Return the coordinates z whose image x = A z + c lies in a region.

    In coordinates relative to a new origin o, a constraint g . (x - m) <= h becomes
    g A . (z - o) <= h - g . (A o + c - m).

    Parameters
    ----------
    region : Region
        Of the model's inputs x, with a guard and without a box.
    mixing : Mixing
    origin : array of shape (d,)
        The new origin o.
    metrics : Metrics
    arithmetic : Arithmetic
        How the model rounds; the mixing is assumed to round alike.
    """
    normals = region.normals
    shifted = product(mixing.matrix, origin) + mixing.shift - region.origin  # A o + c - m
    pulled = product(normals, mixing.matrix)
    guard = _guard_in_coordinates(region, mixing, shifted, metrics)
    growth, scale = arithmetic.growth(len(origin)), np.sqrt(metrics.coordinates)
    lengths = np.linalg.norm(pulled / scale, axis=1)
    sizes = np.abs(normals)
    terms = product(sizes, np.abs(mixing.matrix))
    fixed = product(sizes, np.abs(mixing.shift)) + product(terms, np.abs(origin))
    varying = growth * np.linalg.norm(terms / scale, axis=1) + 2.0 * arithmetic.eps * lengths
    guard = replace(
        guard,
        constant=guard.constant + growth * fixed,
        of_size=guard.of_size + varying,
        of_move=TOLERANCE.move * lengths,
    ).only_where(normals.any(axis=1))  # a rival that coincides with the target needs no slack
    return Region(pulled, region.offsets - product(normals, shifted), origin=origin, guard=guard)


def _guard_in_coordinates(
    region: Region, mixing: Mixing, shifted: Array, metrics: Metrics
) -> Guard:
    """Return a guard in terms of |z| and |z - o| that is at least the one in |x| and |x - m|.

    With L = |A| the Frobenius norm, at least the operator norm, |x| <= L |z| + |c| and
    |x - m| <= L |z - o| + |A o + c - m|.
    """
    guard = region.guard
    assert guard is not None
    root = np.sqrt(metrics.seen)
    scaled = root[:, None] * mixing.matrix / np.sqrt(metrics.coordinates)
    parts = scaled, root * mixing.shift, root * shifted
    stretch, shift, apart = (float(np.sqrt((part**2).sum())) for part in parts)
    return replace(
        guard,
        share=guard.share * stretch,
        constant=guard.constant + guard.of_size * shift + 2.0 * guard.of_square * apart**2,
        of_size=guard.of_size * stretch,
        of_square=guard.of_square * 2.0 * stretch**2,
    )
