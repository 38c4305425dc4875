"""How the members of each cluster vary, and how usual a point is among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.geometry.tolerance import EPS, LARGEST_SPREAD, LEAST_SPREAD, TOLERANCE
from voicecf.rules.plausible import MOST_COORDINATES

# Most numbers in the axes of all clusters, k * d * d (16 MiB). Beyond them, or MOST_COORDINATES,
# nothing is learned: principal directions would take longer than the rest of `fit`.
LARGEST_TABLE = 1 << 21
# Of a cluster's extremeness values, those at these many equal shares are stored, and as many again,
# ever denser, towards the most extreme member. Shares such as 0.95 and 0.99 are among them.
SHARES, TAIL = 400, 112
# Points that are compared with a limit at a time: so few stay in the cache, and in one thread.
BLOCK = 1 << 8
# Number of values that `Sorted` stores in one array.
RUN = 1 << 13
# Values that differ by no more than this, relative to the size of a column's values (or to 1 if
# they are all but 0), are the same but for rounding. It is also the least standard deviation.
LEAST_DEVIATION = 1e-10
# Least variance along an axis, relative to the overall variance of its columns. Rounding errors
# hide what is smaller, such as that of the sum of the codes of a category, which never varies.
LEAST_VARIANCE = 1e-12
# By how much a variance may be below the largest that is possible, relative to it, for two values.
TWO_VALUES = 1e-6
# Points within this share of a deviation of the mean count as equally far from it, so that members
# may all be equal.
ALIKE = 1e-3

# The points of some rows, and their clusters.
Block = tuple[Array, Ints]


@dataclass(frozen=True, eq=False)
class Members:
    """How the members of each cluster vary around their mean.

    The axes of a cluster are the principal directions v_j of its members, each divided by the
    standard deviation s_j along it. The *extremeness* of a point z is its largest distance from the
    mean along an axis, in standard deviations: max_j |v_j . (z - mean)| / s_j. Where all members
    have the same coordinate, a point with another one is infinitely extreme.

    A coordinate that codes a level is an axis by itself. A level that a share p of the members have
    is as extreme as what a share p of normally distributed numbers exceed, on both sides together.

    Attributes
    ----------
    means : array of shape (k, d)
        Of a coordinate that codes a level: from where the extremeness of its two values is counted.
    axes : array of shape (k, d, d)
        ``axes[t, j]`` is v_j / s_j of cluster t. No axis has a part in coordinates that all members
        agree on: there ``axes[t, :, i]`` is 0, and ``means[t, i]`` is what they have.
    counts : array of shape (k,)
        Number of members.
    extremes : array
        The extremeness of the members of cluster 0, ascending, then of cluster 1, and so on; of
        large clusters about 500 quantiles. See `ranks`.
    left_out : array of shape (d,)
        Coordinates that do not count; see `leaving_out`.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.learned.members import Members
    >>> points = np.array([[-2.0, 0.0], [2.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
    >>> blocks = [(points, np.zeros(4, dtype=np.int64))]
    >>> members = Members.of(np.zeros((1, 2)), lambda: blocks)
    >>> members.usual(0, [[0.0, 0.0], [2.0, 0.0], [2.1, 0.0]])
    array([1., 1., 0.])
    """

    means: Array
    axes: Array
    counts: Ints
    extremes: Array
    left_out: Mask | bool = False

    @classmethod
    def of(
        cls, centers: Array, blocks: Callable[[], Iterable[Block]], coded: Mask | bool = False
    ) -> Members | None:
        """Learn from data in two passes; None if there are too many clusters and coordinates.

        It is also None if numbers are so large that their products would overflow.

        Parameters
        ----------
        centers : array of shape (k, d)
            A point near the members of each cluster. Sums of squares are taken around it, so that
            no digits cancel for data far from zero.
        blocks : callable
            Begins a pass: returns an iterable of pairs (points, labels).
        coded : array of shape (d,), optional
            Coordinates that code levels.
        """
        k, d = centers.shape
        if k * d * d > LARGEST_TABLE or d > MOST_COORDINATES:
            return None
        counts, means, scatter, ends = _moments(centers, blocks())
        if not max(np.abs(means).max(), np.sqrt(np.abs(scatter).max())) < LARGEST_SPREAD:
            return None
        apart = np.broadcast_to(coded, d)
        scatter[:, (apart | apart[:, None]) & ~np.eye(d, dtype=np.bool_)] = 0.0
        axes = _axes(counts, means, scatter, ends)
        _rate_levels(means, axes, scatter / np.maximum(counts, 1)[:, None, None], ends, apart)
        learned = cls(means, axes, counts, np.empty(0))
        extremes = [Sorted() for _ in range(k)]
        for t, points in _by_cluster(blocks()):
            extremes[t].add(learned.extremeness(t, points))
        quantiles = [of.at(ranks(int(n))) for of, n in zip(extremes, counts, strict=True)]
        return replace(learned, extremes=np.concatenate(quantiles))

    @cached_property
    def starts(self) -> Ints:
        """Where the values of each cluster start in `extremes`, and where the last ones end."""
        return np.cumsum([0, *(len(ranks(int(n))) for n in self.counts)])

    def extremeness(self, target: int, points: Array) -> Array:
        """Return the largest distance of points from the mean along an axis, shape (n,)."""
        away, axes = np.asarray(points) - self.means[target], self.axes[target]
        along = product(away, axes[axes.any(axis=1)].T)
        extremeness = np.abs(along, out=along).max(axis=1, initial=ALIKE)
        agreed = self.agreed(target)
        if agreed.any():
            extremeness[(self._differs(away) & agreed).any(axis=1)] = np.inf
        return np.asarray(extremeness)

    def _differs(self, away: Array) -> Mask:
        """Tell which coordinates differ from a mean by more than rounding."""
        return np.asarray(np.abs(away) > LEAST_DEVIATION * _sizes(self.means))

    def leaving_out(self, locked: Mask) -> Members:
        """Return how members vary in all but some coordinates, a mask of shape (d,).

        The principal directions are those of the other coordinates; what counts as extreme, a
        number of standard deviations, stays the same. A locked value thus makes no answer extreme.
        """
        axes = np.zeros_like(self.axes)
        for full, reduced in zip(self.axes, axes, strict=True):
            varies = np.flatnonzero(full.any(axis=0) & ~locked)
            if not len(varies):
                continue
            some = full[full.any(axis=1)]
            # Rows of `full` are directions divided by deviations: these are multiplied by them.
            spread = (some / (some**2).sum(axis=1, keepdims=True))[:, varies]
            directions = np.linalg.svd(spread, full_matrices=False)[2]
            deviations = np.sqrt((product(spread, directions.T) ** 2).sum(axis=0))
            reduced[np.ix_(varies[: len(directions)], varies)] = directions / deviations[:, None]
        return replace(self, axes=axes, left_out=locked)

    def agreed(self, target: int) -> Mask:
        """Return a mask of the coordinates that all members of a cluster agree on, shape (d,)."""
        return np.asarray(~self.axes[target].any(axis=0) & ~np.asarray(self.left_out))

    def least_usual(self, target: int, point: Array) -> int:
        """Return the coordinate that contributes most to the extremeness of a point."""
        away = point - self.means[target]
        off = self.agreed(target) & self._differs(away)
        if off.any():
            return int(off.argmax())
        along = self.axes[target] * away
        return int(np.abs(along[np.abs(along.sum(axis=1)).argmax()]).argmax())

    def usual(self, target: int, points: Array) -> Array:
        """Return the share of a cluster's members that are at least as extreme as each point.

        For a large cluster it is accurate to about 1/400. NaN for a cluster without members.
        """
        n, values = int(self.counts[target]), self._values(target)
        if n == 0:
            return np.full(len(points), np.nan)
        extremeness = self.extremeness(target, points) * (1.0 - TOLERANCE.usual)
        less = np.append(ranks(n), n)[np.searchsorted(values, extremeness)]
        return np.asarray((n - less) / n)

    def limit(self, target: int, share: float) -> float:
        """Return the extremeness that at least a share of a cluster's members do not exceed.

        It is infinite for a cluster without members.
        """
        n = int(self.counts[target])
        if n == 0:
            return np.inf
        inside = max(int(np.ceil(share * n - TOLERANCE.retained)), 1)
        return float(self._values(target)[np.searchsorted(ranks(n), inside - 1)])

    def constraints(self, target: int, share: float) -> tuple[Array, Array]:
        """Return what mixes coordinates of points as usual as a share of a cluster's members.

        Returns
        -------
        normals : array of shape (m, d)
        offsets : array of shape (m,)
            ``normals @ z <= offsets``: the extremeness of z is at most `limit`, for z within
            `ranges`. A cluster without members has no constraints.
        """
        axes = self.axes[target][((self.axes[target] != 0.0).sum(axis=1) > 1) & self._known(target)]
        normals = np.vstack([axes, -axes])
        return normals, product(normals, self.means[target]) + self.limit(target, share)

    def ranges(self, target: int, share: float) -> tuple[Array, Array]:
        """Return the ends of each coordinate of points as usual as a share of the members.

        They are infinite for coordinates that axes mix, or that are left out; see `constraints`.
        """
        width = np.full(len(self.means[target]), np.inf)
        single = self.axes[target][(self.axes[target] != 0.0).sum(axis=1) == 1]
        at = single.any(axis=0)
        width[at] = self.limit(target, share) / np.abs(single).sum(axis=0)[at]
        width[self.agreed(target)] = 0.0
        if not self._known(target):
            width[:] = np.inf
        return self.means[target] - width, self.means[target] + width

    def _known(self, target: int) -> bool:
        """Whether a cluster has members."""
        return bool(self.counts[target])

    def within(self, target: int, share: float, points: Array) -> Mask:
        """Return a mask of the points that are as usual as a share of a cluster's members.

        numpy's fast product decides wherever its rounding cannot.
        """
        limit = self.limit(target, share) * (1.0 + TOLERANCE.usual)
        inside = np.empty(len(points), dtype=np.bool_)
        for start in range(0, len(points), BLOCK):
            some = slice(start, start + BLOCK)
            inside[some] = self._within(target, limit, np.asarray(points[some]))
        return inside

    def _within(self, target: int, limit: float, points: Array) -> Mask:
        axes = self.axes[target][self.axes[target].any(axis=1)]
        away = points - self.means[target]
        about = np.abs(away @ axes.T).max(axis=1, initial=ALIKE)
        terms = np.abs(axes).sum(axis=1).max(initial=0.0) * np.abs(away).max(axis=1, initial=0.0)
        error = 2.0 * EPS * (len(self.means[target]) + 1) * terms
        sure = (np.abs(about - limit) > error) & ~self.agreed(target).any()
        inside = about <= limit
        inside[~sure] = self.extremeness(target, points[~sure]) <= limit
        return np.asarray(inside)

    def _values(self, target: int) -> Array:
        return self.extremes[self.starts[target] : self.starts[target + 1]]


class Sorted:
    """Values that come in pieces, sorted, in little memory.

    Of many values only some are stored, each in place of a number of values that are not larger. So
    the value at a rank is never too small; if it is too large, its true rank is larger by less than
    a thousandth. Up to 16,383 values all are stored. How the pieces are divided has no effect.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.learned.members import Sorted
    >>> values = Sorted()
    >>> for piece in ([3.0, 1.0], [2.0]):
    ...     values.add(np.array(piece))
    >>> values.at(np.array([0, 2]))
    array([1., 3.])
    """

    def __init__(self) -> None:
        # The array at position i, if any, has RUN values, each in place of 2**i.
        self._runs: list[Array | None] = []
        self._rest: list[Array] = []

    def add(self, values: Array) -> None:
        """Add values."""
        self._rest.append(values)
        if sum(map(len, self._rest)) < RUN:
            return
        joined = np.concatenate(self._rest)
        full = len(joined) // RUN * RUN
        self._rest = [joined[full:].copy()]
        for run in joined[:full].reshape(-1, RUN):
            self._carry(np.sort(run))

    def _carry(self, run: Array) -> None:
        """Add a sorted run; two of the same weight become one of twice the weight."""
        for i, other in enumerate(self._runs):
            if other is None:
                self._runs[i] = run
                return
            run, self._runs[i] = np.sort(np.concatenate([run, other]))[1::2], None
        self._runs.append(run)

    def at(self, ranks: Ints) -> Array:
        """Return the values at ranks, counted from 0."""
        runs = [(run, 2**i) for i, run in enumerate(self._runs) if run is not None]
        parts = [*runs, *((rest, 1) for rest in self._rest)]
        values = np.concatenate([np.empty(0), *(part for part, _ in parts)])
        weights = np.repeat([w for _, w in parts], [len(part) for part, _ in parts])
        order = np.argsort(values, kind="stable")
        return values[order][np.searchsorted(np.cumsum(weights[order]), ranks, side="right")]


def ranks(n: int) -> Ints:
    """Return the positions, among n sorted values, of those that are stored; the last always is.

    Examples
    --------
    >>> from voicecf.learned.members import ranks
    >>> ranks(3), len(ranks(100_000)), ranks(100_000)[-4:]
    (array([0, 1, 2]), 470, array([99996, 99997, 99998, 99999]))
    """
    if n <= SHARES + TAIL:
        return np.arange(n)
    even = -(-np.arange(1, SHARES + 1) * n // SHARES) - 1  # share * n, rounded up, from 0 on
    tail = n - np.rint(np.geomspace(1, n / SHARES, TAIL)).astype(np.int64)
    return np.union1d(even, tail)


@np.errstate(over="ignore", invalid="ignore")
def _moments(
    centers: Array, blocks: Iterable[Block]
) -> tuple[Ints, Array, Array, tuple[Array, Array]]:
    """Return number, mean and scatter matrix (sum of outer products) of members.

    Also the least and the largest value of each coordinate, shape (k, d). Where they are the same,
    so is the mean.
    """
    k, d = centers.shape
    counts, sums, scatter = np.zeros(k, dtype=np.int64), np.zeros((k, d)), np.zeros((k, d, d))
    low, high = np.full((k, d), np.inf), np.full((k, d), -np.inf)
    for t, points in _by_cluster(blocks):
        away = points - centers[t]
        counts[t] += len(away)
        sums[t] += away.sum(axis=0)
        scatter[t] += away.T @ away
        low[t], high[t] = np.minimum(low[t], points.min(0)), np.maximum(high[t], points.max(0))
    shift = sums / np.maximum(counts, 1)[:, None]
    scatter -= sums[:, :, None] * shift[:, None, :]
    present = (counts > 0)[:, None]
    means = np.where(present, np.clip(centers + shift, low, high), centers)
    return counts, means, scatter, (low, high)


def _sizes(means: Array) -> Array:
    """Return the size of each coordinate, from the means of all clusters; 1 if it is all but 0."""
    sizes = np.abs(means).max(axis=0)
    return np.where(sizes > LEAST_SPREAD, sizes, 1.0)


def _axes(counts: Ints, means: Array, scatter: Array, ends: tuple[Array, Array]) -> Array:
    """Return the principal directions of each cluster, divided by their standard deviations."""
    present = counts > 0
    agreed = present[:, None] & (ends[1] - ends[0] <= LEAST_DEVIATION * _sizes(means))
    middle = counts @ means / counts.sum()
    within = scatter[present].diagonal(axis1=1, axis2=2).sum(axis=0)
    overall = (within + counts @ (means - middle) ** 2) / counts.sum()
    overall = np.maximum(overall, 0.0)  # a sum of differences may be negative by rounding
    sizes = np.maximum(np.abs(means).max(axis=0), np.sqrt(overall))
    least = (LEAST_DEVIATION * np.where(sizes > LEAST_SPREAD, sizes, 1.0)) ** 2
    axes = np.zeros_like(scatter)
    for t, n in enumerate(np.maximum(counts, 1).tolist()):
        varies = np.flatnonzero(~agreed[t])
        part = np.ix_(varies, varies)
        axes[t][part] = _axes_of(n, scatter[t][part] / n, overall[varies], least[varies])
    return axes


def _rate_levels(
    means: Array, axes: Array, covariance: Array, ends: tuple[Array, Array], coded: Mask
) -> None:
    """Rate levels by the share of members that have them, in means and axes.

    A variance that is as large as the ends and the mean admit is that of two values: of a share p
    of the members at one end, and the others at the other. With e and f the extremeness of the
    ends, it is counted from (f low + e high) / (e + f), in deviations of (high - low) / (e + f).
    """
    variances = covariance.diagonal(axis1=1, axis2=2)
    for t, c in np.argwhere(coded & axes.any(axis=1)):
        low, high, mean = ends[0][t, c], ends[1][t, c], means[t, c]
        if variances[t, c] < (1.0 - TWO_VALUES) * (high - mean) * (mean - low):
            continue
        share = (mean - low) / (high - low)
        e, f = ndtri(1.0 - 0.5 * np.array([1.0 - share, share]))
        means[t, c] = (f * low + e * high) / (e + f)
        axes[t][axes[t][:, c] != 0.0, c] = (e + f) / (high - low)


def _axes_of(n: int, covariance: Array, overall: Array, least: Array) -> Array:
    """Return the axes of a cluster of n members in d coordinates.

    Their covariance is shrunk towards the diagonal matrix of the overall variances by the share
    d / n^2, at most 1. It is not along directions in which more than d members do not vary, as
    with a total that is the same for all. (Of fewer members some direction never varies.)
    """
    shrinkage = min(len(overall) / n**2, 1.0)
    towards = np.diag(overall)
    if n > len(overall):
        roots = np.sqrt(np.where(overall > 0, overall, 1.0))
        variances, directions = np.linalg.eigh(covariance / roots / roots[:, None])
        directions = directions[:, variances > LEAST_VARIANCE] * roots[:, None]
        towards = directions @ directions.T
    covariance = (1.0 - shrinkage) * covariance + shrinkage * towards
    directions = np.linalg.eigh(covariance)[1].T
    # v . C v keeps its digits along columns of small variance beside large ones; eigenvalues do
    # not.
    variances = np.einsum("ji,ji->j", directions @ covariance, directions)
    variances = np.maximum(variances, directions**2 @ (LEAST_VARIANCE * overall + least))
    return np.asarray(directions / np.sqrt(variances)[:, None])


def _by_cluster(blocks: Iterable[Block]) -> Iterator[tuple[int, Array]]:
    """Yield, for each block and each cluster in it, the cluster and the points of its members."""
    for points, labels in blocks:
        # numpy sorts short integers by radix sort, which is several times faster.
        order = np.argsort(labels.astype(np.min_scalar_type(labels.max(initial=0))), kind="stable")
        members, of_cluster = np.take(points, order, axis=0), labels[order]
        starts = np.flatnonzero(np.diff(of_cluster, prepend=-1))
        for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
            yield int(of_cluster[start]), members[start:stop]
