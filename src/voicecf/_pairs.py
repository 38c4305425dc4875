"""Compiled loops over pairs of row and target: the pairwise point, its validity, its repair.

Centroids are measured from an origin amid them, so that data far from zero keep their digits. For
a row a of cluster s and a target t, the pairwise point lies on the bisector of their centroids,

    z = a + c (m_t - m_s),   c = ((|m_t|^2 - |m_s|^2) / 2 - a . (m_t - m_s)) / |m_t - m_s|^2,

so that the dot products of a with the centroids say all about it; z itself is never written.
"""

# mypy: disallow-untyped-decorators=False, disallow-untyped-defs=False, disallow-untyped-calls=False
# mypy: check-untyped-defs=False

from __future__ import annotations

import numpy as np

from voicecf._compile import compiled


@compiled
def dots(x, origin, centers, out):
    """Dot products of a row with every centroid."""
    k, d = centers.shape
    for j in range(k):
        total = 0.0
        for i in range(d):
            total += (x[i] - origin[i]) * centers[j, i]
        out[j] = total


@compiled
def bisector_step(dot, gram, s, t):
    """Multiple of m_t - m_s that takes a row to the bisector; 0 where the centroids coincide."""
    square = gram[t, t] - 2.0 * gram[s, t] + gram[s, s]
    if square <= 0.0:
        return 0.0
    return (0.5 * (gram[t, t] - gram[s, s]) - dot[t] + dot[s]) / square


@compiled
def misses(dot, gram, s, t, slack):
    """Tell whether a third centroid is closer to the pairwise point, by more than the slack."""
    step = bisector_step(dot, gram, s, t)
    own = gram[t, t] - 2.0 * (dot[t] + step * (gram[t, t] - gram[s, t]))
    for j in range(gram.shape[0]):
        if j != s and j != t:
            other = gram[j, j] - 2.0 * (dot[j] + step * (gram[t, j] - gram[s, j]))
            if own > other + slack:
                return True
    return False


@compiled
def misses_chunk(start, stop, first, X, labels, origin, centers, gram, slack, out):
    """Mark in out[row - first, target] the pairs whose pairwise point misses the target's cell."""
    k = centers.shape[0]
    dot = np.empty(k)
    for p in range(start, stop):
        row = first + p
        dots(X[row], origin, centers, dot)
        s = labels[row]
        for t in range(k):
            out[p, t] = t != s and misses(dot, gram, s, t, slack)


@compiled
def repair_chunk(start, stop, rows, t, X, labels, origin, centers, gram, answers, slack, out):
    """Write repair cost, relative underestimation and validity of the answers for a target."""
    k, d = centers.shape
    dot = np.empty(k)
    for p in range(start, stop):
        row = rows[p]
        s = labels[row]
        dots(X[row], origin, centers, dot)
        step = bisector_step(dot, gram, s, t)
        repair, pairwise, full = 0.0, 0.0, 0.0
        for i in range(d):
            move = step * (centers[t, i] - centers[s, i])
            whole = answers[p, i] - X[row, i]
            repair += (whole - move) ** 2
            pairwise += move * move
            full += whole * whole
        out[0, p] = repair
        out[1, p] = (full - pairwise) / full
        dots(answers[p], origin, centers, dot)
        out[2, p] = 1.0
        for j in range(k):
            if gram[t, t] - 2.0 * dot[t] > gram[j, j] - 2.0 * dot[j] + slack:
                out[2, p] = 0.0
