"""A region of what the model sees, pulled back to coordinates through the steps before it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from voicecf.geometry.arrays import Array
from voicecf.geometry.cell import Arithmetic
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.geometry.tolerance import TOLERANCE


@dataclass(frozen=True)
class Mixing:
    """What the steps from the first mixing one on do: x = matrix z + shift.

    Attributes
    ----------
    matrix : array of shape (p, d)
    shift : array of shape (p,)
    """

    matrix: Array
    shift: Array

    def __call__(self, points: Array) -> Array:
        """Return what the model sees of coordinates, to rounding."""
        return np.asarray(points @ self.matrix.T + self.shift)


def origins(mixing: Mixing, centers: Array, middle: Array) -> Array:
    """Return, shape (k, d), coordinates that the model sees close to its centroids.

    Of all that fit best, the ones nearest to `middle`, which is amid the data.
    """
    missing = (centers - mixing(middle[None])).T
    steps, *_ = np.linalg.lstsq(mixing.matrix, missing, rcond=None)
    return np.asarray(middle + steps.T)


def loosened(region: Region, round_trip_error: Array) -> Region:
    """Return the region with a guard for what coordinates lose on the way to the user's units."""
    assert region.guard is not None
    constant = region.guard.constant + np.abs(region.normals) @ round_trip_error
    guard = replace(region.guard, constant=constant)
    return Region(region.normals, region.offsets, origin=region.origin, guard=guard)


@dataclass(frozen=True)
class Metrics:
    """Diagonal metrics, w + delta: of what the model sees, and of the coordinates."""

    seen: Array
    coordinates: Array


def pulled_back(
    region: Region, mixing: Mixing, origin: Array, metrics: Metrics, arithmetic: Arithmetic
) -> Region:
    """Return the coordinates whose mixture lies in a region.

    With x = A z + c, constraints g . (x - m) <= h are g A . (z - o) <= h - g . (A o + c - m).

    Parameters
    ----------
    region : Region
        In what the model sees, with a guard; without a box.
    mixing : Mixing
    origin : array of shape (d,)
        Where the new constraints are measured from.
    metrics : Metrics
    arithmetic : Arithmetic
        Of the model; the mixing is taken to compute as precisely.
    """
    normals = region.normals
    off = mixing(origin[None])[0] - region.origin
    pulled = normals @ mixing.matrix
    guard = _in_sizes_of_coordinates(region, mixing, off, metrics)
    growth, scale = arithmetic.growth(len(origin)), np.sqrt(metrics.coordinates)
    lengths = np.linalg.norm(pulled / scale, axis=1)
    terms = np.abs(normals) @ np.abs(mixing.matrix)
    fixed = np.abs(normals) @ np.abs(mixing.shift) + terms @ np.abs(origin)
    varying = growth * np.linalg.norm(terms / scale, axis=1) + 2.0 * arithmetic.eps * lengths
    guard = replace(
        guard,
        constant=guard.constant + growth * fixed,
        of_size=guard.of_size + varying,
        of_move=TOLERANCE.move * lengths,
    ).only_where(normals.any(axis=1))  # coinciding centroids: nothing is compared
    return Region(pulled, region.offsets - normals @ off, origin=origin, guard=guard)


def _in_sizes_of_coordinates(region: Region, mixing: Mixing, off: Array, metrics: Metrics) -> Guard:
    """Say a guard's sizes of x in sizes of z: |x| <= L |z| + |c|, |x - m| <= L |z - o| + |off|."""
    guard = region.guard
    assert guard is not None
    root = np.sqrt(metrics.seen)
    scaled = root[:, None] * mixing.matrix / np.sqrt(metrics.coordinates)
    stretch = float(np.linalg.norm(scaled, 2))
    shift, apart = (float(np.linalg.norm(root * v)) for v in (mixing.shift, off))
    return replace(
        guard,
        constant=guard.constant + guard.of_size * shift + 2.0 * guard.of_square * apart**2,
        of_size=guard.of_size * stretch,
        of_square=guard.of_square * 2.0 * stretch**2,
    )
