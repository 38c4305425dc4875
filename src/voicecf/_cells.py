"""Compiled loops over points: assignment to centroids, the size of a change, prefixes."""

from __future__ import annotations

import numpy as np

from voicecf._compile import compiled


@compiled
def assign_chunk(start, stop, points, centers, weights, sizes, growth, expanded, labels, doubtful):
    """Nearest centroid of each point; doubtful where the model's rounding could see another."""
    k, d = centers.shape
    for p in range(start, stop):
        best, second, label = np.inf, np.inf, 0
        for j in range(k):
            s = 0.0
            for i in range(d):
                t = points[p, i] - centers[j, i]
                s += weights[i] * t * t
            if s < best:
                best, second, label = s, best, j
            elif s < second:
                second = s
        error = best + second
        if expanded:
            size = 0.0
            for i in range(d):
                size += weights[i] * points[p, i] * points[p, i]
            size = np.sqrt(size) + sizes
            error += size * size
        labels[p] = label
        doubtful[p] = second - best <= growth * error


@compiled
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
            if abs(t) > least[i]:
                count += 1
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


@compiled
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
