"""Compiled loops over points: assignment to centroids, the size of a change, prefixes."""

from __future__ import annotations

from functools import partial

import numpy as np

from voicecf._compile import buffered, compiled, part

# Points in flight: a block is turned so that the innermost loops run over points and vectorise.
LANES = 64


@part
def distances_to(block, center, weights, out):
    """Weighted squared distances of the columns of `block` to a centroid, features by twos."""
    d = center.size
    for k in range(LANES):
        out[k] = 0.0
    for i in range(0, d - 1, 2):
        c0, c1 = center[i], center[i + 1]
        w0, w1 = weights[i], weights[i + 1]
        for k in range(LANES):
            s, t = block[i, k] - c0, block[i + 1, k] - c1
            out[k] += w0 * s * s + w1 * t * t
    if d % 2:
        c0, w0 = center[d - 1], weights[d - 1]
        for k in range(LANES):
            s = block[d - 1, k] - c0
            out[k] += w0 * s * s


@part
def keep_nearest(j, distance, best, second, label):
    """Note centroid j where it is nearer than all before, and the second best distance."""
    for k in range(LANES):
        t, nearest, next_best = distance[k], best[k], second[k]
        nearer = t < nearest
        next_best = t if t < next_best else next_best
        second[k] = nearest if nearer else next_best
        best[k] = t if nearer else nearest
        label[k] = j if nearer else label[k]


def buffers_of(start, stop, points, centers, *_):
    """Return the origin, and columns for the points of a block and for what they need."""
    d = centers.shape[1]
    return np.zeros(d), np.empty((d + 4, LANES))


@buffered(buffers_of)
def assign_chunk(
    start, stop, points, centers, weights, sizes, growth, expanded, labels, doubtful, zero, work
):
    """Nearest centroid of each point; doubtful where the model's rounding could see another."""
    k, d = centers.shape
    distance, best, second = work[d], work[d + 1], work[d + 2]
    label = work[d + 3]  # a number like the others, so that they vectorise together
    for first in range(start, stop, LANES):
        for q in range(LANES):
            at = first + q if first + q < stop else stop - 1
            best[q], second[q], label[q] = np.inf, np.inf, 0.0
            for i in range(d):
                work[i, q] = points[at, i]
        for j in range(k):
            distances_to(work, centers[j], weights, distance)
            keep_nearest(float(j), distance, best, second, label)
        if expanded:
            distances_to(work, zero, weights, distance)
        for q in range(LANES if first + LANES < stop else stop - first):
            p = first + q
            error = best[q] + second[q]
            if expanded:
                size = np.sqrt(distance[q]) + sizes
                error += size * size
            labels[p] = np.int64(label[q])
            doubtful[p] = second[q] - best[q] <= growth * error


@partial(compiled, allocates=False)
def measure_chunk(
    start, stop, rows, points, answers, weights, metric, least, cost, energy, changed
):
    """Cost in the weights, energy in the metric, and number of changed coordinates of answers."""
    d = points.shape[1]
    for p in range(start, stop):
        s, e, count = 0.0, 0.0, 0
        for i in range(d):
            t = answers[p, i] - points[rows[p], i]
            s += weights[i] * t * t
            e += metric[i] * t * t
            count += abs(t) > least[i]
        cost[p], energy[p], changed[p] = s, e, count


@compiled
def prefix_floor_chunk(start, stop, rows, points, lo, hi, order, origin, u, offset, scale, out):
    """Least number of ranked features without which some single row cannot hold; d + 1 if never.

    Row by row, so a lower bound of r*, and r* itself where one row decides. A feature outside its
    own bounds has to be among them, for it cannot stay where it is.
    """
    m, d = u.shape
    excess = np.empty(m)
    for p in range(start, stop):
        at = rows[p]
        low_of = lo[at if lo.shape[0] > 1 else 0]
        high_of = hi[at if hi.shape[0] > 1 else 0]
        for j in range(m):
            s, terms = 0.0, abs(offset[j])
            for i in range(d):
                t = u[j, i] * scale[i] * (points[at, i] - origin[i])
                s += t
                terms += abs(t)
            excess[j] = s - offset[j] - 1e-12 * terms
        least = 1
        for r in range(order.size):
            i = order[r]
            if points[at, i] < low_of[i] or points[at, i] > high_of[i]:
                least = r + 1
        r, held = 0, False
        while r < order.size and not (held and r >= least):
            i = order[r]
            low = scale[i] * (low_of[i] - points[at, i])
            high = scale[i] * (high_of[i] - points[at, i])
            held = True
            for j in range(m):
                if u[j, i] > 0.0:
                    excess[j] += u[j, i] * low
                elif u[j, i] < 0.0:
                    excess[j] += u[j, i] * high
                held = held and excess[j] <= 0.0
            r += 1
        out[p] = max(r, least) if held else d + 1


@partial(compiled, allocates=False)
def prefix_box_chunk(start, stop, points, lo, hi, order, counts, lo_out, hi_out):
    """Boxes in which only the first counts[p] features of the order may move."""
    d = points.shape[1]
    for p in range(start, stop):
        low_of = lo[p if lo.shape[0] > 1 else 0]
        high_of = hi[p if hi.shape[0] > 1 else 0]
        for i in range(d):
            lo_out[p, i] = points[p, i]
            hi_out[p, i] = points[p, i]
        for r in range(counts[p]):
            i = order[r]
            lo_out[p, i] = low_of[i]
            hi_out[p, i] = high_of[i]
