"""The compiled loops of SHARK: nearest centre, sums and spread, over a span of rows.

Every loop follows IEEE arithmetic in the order that it is written in, on every machine. SHARK's
restarts can end so close to one another that the last bits of these sums decide which one wins.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import compiled

# Rows in flight: a block is turned so that the innermost loop runs over rows, which vectorises
# without regrouping the sum over features. 64 rows of 20 features fill a third of an L1 cache.
BLOCK = 64
# Rows between two looks at the same row, few enough to stay in an L2 cache.
STRIP = 1024


def exact(function):
    """Compile `function` with its sums in the written order: no regrouping, no fused multiply."""
    return compiled(function, fastmath=False)


@exact
def _turn(X, start, stop, block):
    """Copy rows start to stop of `X` into the columns of `block`; columns beyond keep old rows."""
    for i in range(stop - start):
        for v in range(X.shape[1]):
            block[v, i] = X[start + i, v]


@exact
def _to_center(block, center, weights, out):
    """Weighted squared distance of the columns of `block` to `center`, summed in feature order."""
    for i in range(BLOCK):
        out[i] = 0.0
    for v in range(block.shape[0]):
        m, w = center[v], weights[v]
        for i in range(BLOCK):
            t = block[v, i] - m
            out[i] += w * (t * t)


@exact
def _keep_nearer(j, distance, closest, label):
    """Note center `j` where it is strictly nearer, so that a tie stays with the lowest index."""
    for i in range(BLOCK):
        nearer = distance[i] < closest[i]
        closest[i] = distance[i] if nearer else closest[i]
        label[i] = j if nearer else label[i]


@exact
def nearest(X, centers, weights, start, stop, labels, closest):
    """Write label and distance of rows start to stop."""
    block = np.zeros((X.shape[1], BLOCK))
    distance, least = np.empty(BLOCK), np.empty(BLOCK)
    label = np.empty(BLOCK, np.int64)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _turn(X, first, last, block)
        least[:] = np.inf
        label[:] = 0
        for j in range(centers.shape[0]):
            _to_center(block, centers[j], weights, distance)
            _keep_nearer(j, distance, least, label)
        for i in range(last - first):
            labels[first + i] = label[i]
            closest[first + i] = least[i]


@exact
def distances(X, centers, weights, start, stop, out):
    """Write the weighted distance of rows start to stop to every center."""
    block = np.zeros((X.shape[1], BLOCK))
    distance = np.empty(BLOCK)
    for first in range(start, stop, BLOCK):
        last = min(first + BLOCK, stop)
        _turn(X, first, last, block)
        for j in range(centers.shape[0]):
            _to_center(block, centers[j], weights, distance)
            for i in range(last - first):
                out[first + i, j] = np.sqrt(distance[i])


@exact
def add_up(X, mass, labels, start, stop, sums, totals):
    """Add rows start to stop, times their mass, to the sums of their clusters."""
    for i in range(start, stop):
        j = np.uint64(labels[i])  # unsigned: no check for an index counted from the end
        m, x, total = mass[i], X[i], sums[j]
        totals[j] += m
        for v in range(x.size):
            total[v] += m * x[v]


@exact
def spread(X, mass, labels, start, stop, means, out):
    """Add the squared deviations of rows start to stop from their cluster's mean to `out`."""
    for i in range(start, stop):
        j = np.uint64(labels[i])
        m, x, mean, total = mass[i], X[i], means[j], out[j]
        for v in range(x.size):
            t = x[v] - mean[v]
            total[v] += m * (t * t)


@exact
def nearest_and_spread(X, mass, centers, weights, start, stop, labels, closest, out):
    """Run `nearest`, then `spread` around `centers`, while the rows are still in the cache."""
    for first in range(start, stop, STRIP):
        last = min(first + STRIP, stop)
        nearest(X, centers, weights, first, last, labels, closest)
        spread(X, mass, labels, first, last, centers, out)


@exact
def mark_varying(X, labels, sample, varies):
    """Mark the features in which a row differs from `sample`, one row for each cluster."""
    for i in range(X.shape[0]):
        j = labels[i]
        for v in range(X.shape[1]):
            varies[v] |= X[i, v] != sample[j, v]
