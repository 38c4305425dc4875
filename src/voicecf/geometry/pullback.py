"""A region of what the model sees, pulled back to coordinates through the steps before it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from voicecf.geometry.cell import Arithmetic
from voicecf.geometry.region import Array, Region


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


def loosened(region: Region, slop: Array) -> Region:
    """Return the region with a guard for what coordinates lose on the way to the user's units."""
    assert region.guard is not None
    guard = region.guard.copy()
    guard[1] += np.abs(region.rows) @ slop
    return Region(region.rows, region.offsets, origin=region.origin, guard=guard)


def pulled_back(
    region: Region,
    mixing: Mixing,
    origin: Array,
    seen: Array,
    metric: Array,
    arithmetic: Arithmetic,
) -> Region:
    """Return the coordinates whose mixture lies in a region.

    With x = A z + c, rows g . (x - m) <= h are rows g A . (z - o) <= h - g . (A o + c - m).

    Parameters
    ----------
    region : Region
        In what the model sees, with a guard; without a box.
    mixing : Mixing
    origin : array of shape (d,)
        Where the new rows are measured from.
    seen, metric : array of shape (p,), (d,)
        Metric that the guard measures sizes in, and the one of the coordinates.
    arithmetic : Arithmetic
        Of the model; the mixing is taken to compute as precisely.
    """
    a, c, rows = mixing.matrix, mixing.shift, region.rows
    off = mixing(origin[None])[0] - region.origin
    pulled = rows @ a
    guard = _pulled_guard(region, mixing, off, seen, metric)
    growth, scale = arithmetic.growth(len(metric)), np.sqrt(metric)
    lengths = np.linalg.norm(pulled / scale, axis=1)
    terms = np.abs(rows) @ np.abs(a)
    guard[1] += growth * (np.abs(rows) @ np.abs(c) + terms @ np.abs(origin))
    guard[2] += growth * np.linalg.norm(terms / scale, axis=1) + 2.0 * arithmetic.eps * lengths
    guard[4] = 32.0 * np.finfo(np.float64).eps * lengths
    guard[:, ~rows.any(axis=1)] = 0.0  # coinciding centroids: nothing is compared
    return Region(pulled, region.offsets - rows @ off, origin=origin, guard=guard)


def _pulled_guard(region: Region, mixing: Mixing, off: Array, seen: Array, metric: Array) -> Array:
    """Say a guard's sizes of x in sizes of z: |x| <= L |z| + |c|, |x - m| <= L |z - o| + |off|."""
    assert region.guard is not None
    root = np.sqrt(seen)
    stretch = float(np.linalg.norm(root[:, None] * mixing.matrix / np.sqrt(metric), 2))
    shift, apart = (float(np.linalg.norm(root * v)) for v in (mixing.shift, off))
    guard = region.guard.copy()
    guard[1] += guard[2] * shift + 2.0 * guard[3] * apart**2
    guard[2] *= stretch
    guard[3] *= 2.0 * stretch**2
    return guard
