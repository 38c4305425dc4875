"""The compiled kernel, second phase: Goldfarb and Idnani's dual active-set method.

It takes the points that Newton gave up: dependent rows, boxes that bind many coordinates, regions
that are flat or empty. Bounds are constraints like rows. The active rows, restricted to the free
coordinates, keep an orthogonal basis that is rebuilt, not updated, so errors do not add up. The
dual objective grows with every constraint that is enforced, so the method ends; where nothing
fits, the last direction is the vector that proves it (Farkas). Same problem in steps as in
`_kernel`.

The buffer `frame` holds the basis (rank rows) and behind it the vectors g, n, e; `tri` holds its
triangle and behind it the vectors c, s.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import compiled, part
from voicecf._kernel import (
    HUGE,
    INFEASIBLE,
    OPTIMAL,
    PUSHES,
    TIGHT,
    UNRESOLVED,
    enter,
    leave,
    push,
    reach_of,
    sizes_of,
    slack_of,
)
from voicecf.tolerance import TOLERANCE

FREE, AT_LOW, AT_HIGH, FROZEN = 0, 1, 2, 3

# `tol` has an entry a row and, behind them, one a coordinate: what rounding of the input explains.
LOOSE, DEPENDENT = TOLERANCE.loose, TOLERANCE.dependent
FIRST = 16 * np.finfo(np.float64).eps
# A step so many times as long as its answer's distance from the origin is worth another look.
NEAR = 16.0


@part
def orthogonalise(frame, size, e, c):
    """Split e into its part along the basis, c, and the rest, left in e."""
    d = e.size
    for t in range(size):
        c[t] = 0.0
    for _ in range(2):  # twice is enough for orthogonality to rounding
        for t in range(size):
            s = 0.0
            for i in range(d):
                s += frame[t, i] * e[i]
            c[t] += s
            for i in range(d):
                e[i] -= s * frame[t, i]


@part
def append_row(u, row, state, frame, tri, size):
    """Extend the basis by a row of U, restricted to the free coordinates."""
    d, rank = u.shape[1], tri.shape[1]
    e, c = frame[rank + 2], tri[rank]
    for i in range(d):
        e[i] = u[row, i] if state[i] == FREE else 0.0
    orthogonalise(frame, size, e, c)
    square = 0.0
    for i in range(d):
        square += e[i] * e[i]
    length = np.sqrt(square)
    for t in range(size):
        tri[t, size] = c[t]
    tri[size, size] = length
    for i in range(d):
        frame[size, i] = e[i] / length if length > 0.0 else 0.0


@part
def rebuild(u, work, state, frame, tri, size):
    """Make the basis anew for the active rows on the present free coordinates."""
    for p in range(size):
        append_row(u, work[p], state, frame, tri, p)


@part
def back_substitute(tri, c, size, s):
    """Solve tri s = c for the upper triangle."""
    for p in range(size - 1, -1, -1):
        value = c[p]
        for t in range(p + 1, size):
            value -= tri[p, t] * s[t]
        s[p] = value / tri[p, p] if tri[p, p] > 0.0 else 0.0


@part
def tighten_active(u, b, mu, y, work, state, frame, tri, size):
    """Set the free coordinates and the multipliers afresh from the active rows.

    The least free step that makes the rows tight comes from the basis, not from the multipliers:
    where rows are nearly opposite these are large and cancel.
    """
    d, rank = y.size, tri.shape[1]
    g, c, s = frame[rank], tri[rank], tri[rank + 1]
    for p in range(size):
        value = b[work[p]]
        for i in range(d):
            if state[i] != FREE:
                value -= u[work[p], i] * y[i]
        for t in range(p):
            value -= tri[t, p] * c[t]
        c[p] = value / tri[p, p] if tri[p, p] > 0.0 else 0.0
    back_substitute(tri, c, size, s)
    for i in range(d):
        g[i] = 0.0
        if state[i] == FREE:
            y[i] = 0.0
    for p in range(size):
        mu[work[p]] = max(-s[p], 0.0)
        for i in range(d):
            g[i] += mu[work[p]] * u[work[p], i]
            if state[i] == FREE:
                y[i] += c[p] * frame[p, i]


@part
def violation_of(u, b, low, high, y, chosen):
    """How far y is outside row or bound `chosen` (coordinate `chosen - m`), and the terms' size."""
    m, d = u.shape
    if chosen >= m:
        at = y[chosen - m]
        return max(low[chosen - m] - at, at - high[chosen - m]), abs(at)
    s, terms = -b[chosen], abs(b[chosen])
    for i in range(d):
        s += u[chosen, i] * y[i]
        terms += abs(u[chosen, i] * y[i])
    return s, terms


@part
def most_violated(u, b, tol, share, low, high, mu, y, state):
    """Constraint to enforce next: row j as j, a bound of coordinate i as m + i; -1 if none."""
    m, d = u.shape
    chosen, worst, square = -1, 0.0, 0.0
    for i in range(d):
        square += y[i] * y[i]
    length = np.sqrt(square)
    for c in range(m + d):
        if (c < m and mu[c] > 0.0) or (c >= m and state[c - m] != FREE):
            continue
        violation, terms = violation_of(u, b, low, high, y, c)
        slip = TIGHT * terms + share * tol[c]
        if c >= m:  # a coordinate takes its rounding from all the others
            slip += share * LOOSE * length
        if violation > slip and violation > worst:
            chosen, worst = c, violation
    return chosen


@part
def direction(u, chosen, sign, work, state, frame, tri, size):
    """Set the dual directions: s of active rows, n of coordinates; the curvature, 0 if dependent.

    On free coordinates -n is also the primal direction.
    """
    m, d = u.shape
    rank = tri.shape[1]
    n, e, c, s = frame[rank + 1], frame[rank + 2], tri[rank], tri[rank + 1]
    whole, part = 0.0, 0.0
    for i in range(d):
        n[i] = u[chosen, i] if chosen < m else 0.0
    if chosen >= m:
        n[chosen - m] = sign
    for i in range(d):
        e[i] = n[i] if state[i] == FREE else 0.0
        whole += e[i] * e[i]
    orthogonalise(frame, size, e, c)
    back_substitute(tri, c, size, s)
    for p in range(size):
        for i in range(d):
            n[i] -= s[p] * u[work[p], i]
    for i in range(d):
        if state[i] == FREE:
            n[i] = e[i]
        part += e[i] * e[i]
    return part if part > DEPENDENT * DEPENDENT * whole else 0.0


@part
def longest_dual_step(mu, y, work, state, frame, tri, size):
    """How far the new multiplier can grow before an old one is zero; which: p, or -2 - i."""
    rank = tri.shape[1]
    g, n, s = frame[rank], frame[rank + 1], tri[rank + 1]
    longest, blocker = np.inf, -1
    for p in range(size):
        if s[p] > 0.0:
            t = mu[work[p]] / s[p]
            if t < longest:
                longest, blocker = t, p
    for i in range(y.size):
        t = np.inf
        if state[i] == AT_LOW and n[i] < 0.0:
            t = max(y[i] + g[i], 0.0) / -n[i]
        elif state[i] == AT_HIGH and n[i] > 0.0:
            t = max(-(y[i] + g[i]), 0.0) / n[i]
        if t < longest:
            longest, blocker = t, -2 - i
    return longest, blocker


@part
def enforce(u, b, low, high, mu, y, work, state, frame, tri, size, chosen):
    """Make one violated constraint hold, dropping others as needed; the new number of active rows.

    -1 where nothing fits; mu is then the vector that proves it.
    """
    m, d = u.shape
    rank = tri.shape[1]
    g, n, s = frame[rank], frame[rank + 1], tri[rank + 1]
    sign = -1.0 if chosen >= m and low[chosen - m] > y[chosen - m] else 1.0
    grown = 0.0
    while True:
        curvature = direction(u, chosen, sign, work, state, frame, tri, size)
        longest, blocker = longest_dual_step(mu, y, work, state, frame, tri, size)
        full = np.inf
        if curvature > 0.0:
            full = max(violation_of(u, b, low, high, y, chosen)[0], 0.0) / curvature
        t = min(longest, full)
        if t == np.inf:
            largest = 1.0
            for p in range(size):
                largest = max(largest, -s[p])
            for p in range(size):  # what is rounding of zero would only blur the proof
                mu[work[p]] = -s[p] if -s[p] > DEPENDENT * largest else 0.0
            if chosen < m:
                mu[chosen] = 1.0
            return -1
        grown += t
        for p in range(size):
            mu[work[p]] = max(mu[work[p]] - t * s[p], 0.0)
        for i in range(d):
            g[i] += t * n[i]
            if state[i] == FREE and curvature > 0.0:
                y[i] -= t * n[i]
        if full <= longest:
            break
        if blocker >= 0:
            mu[work[blocker]] = 0.0
            size -= 1
            for p in range(blocker, size):
                work[p] = work[p + 1]
        else:
            state[-2 - blocker] = FREE
            g[-2 - blocker] = -y[-2 - blocker]
        rebuild(u, work, state, frame, tri, size)
    if chosen < m:
        mu[chosen] = grown
        work[size] = chosen
        append_row(u, chosen, state, frame, tri, size)
        return size + 1
    i = chosen - m
    state[i] = AT_HIGH if sign > 0.0 else AT_LOW
    y[i] = high[i] if sign > 0.0 else low[i]
    rebuild(u, work, state, frame, tri, size)
    return size


@part
def dual_active_set(u, b, tol, share, low, high, mu, y, work, state, frame, tri):
    """Answer one problem; a status, with mu and y filled."""
    m, d = u.shape
    rank = tri.shape[1]
    for j in range(m):
        mu[j] = 0.0
    for i in range(d):
        frame[rank, i] = 0.0
        y[i] = min(max(0.0, low[i]), high[i])
        state[i] = FREE
        if low[i] == high[i]:
            state[i] = FROZEN
        elif y[i] != 0.0:
            state[i] = AT_LOW if y[i] > 0.0 else AT_HIGH
    size = np.int64(0)  # no literal: a callee would compile for it, too
    for _ in range(100 + 20 * (m + d)):
        chosen = most_violated(u, b, tol, share, low, high, mu, y, state)
        if chosen < 0:
            return OPTIMAL
        size = enforce(u, b, low, high, mu, y, work, state, frame, tri, size, chosen)
        if size < 0:
            return INFEASIBLE
        tighten_active(u, b, mu, y, work, state, frame, tri, size)
    return UNRESOLVED


@part
def proof_margin(u, b, tol, low, high, mu):
    """Least of mu . (U y - b) over the box, less what rounding could explain; > 0 is a proof."""
    m, d = u.shape
    margin = 0.0
    for j in range(m):
        margin -= mu[j] * (b[j] + tol[j])
    for i in range(d):
        value, size = 0.0, 0.0
        for j in range(m):
            value += mu[j] * u[j, i]
            size += abs(mu[j] * u[j, i])
        bound = low[i] if value > 0.0 else high[i]
        if abs(bound) < np.inf:
            margin += value * bound - LOOSE * size * abs(bound)
        elif abs(value) > DEPENDENT * size:
            return -np.inf
    return margin


@part
def blocked_row(u, b, tol, low, high):
    """First row that no point of the box satisfies, or -1."""
    m, d = u.shape
    for j in range(m):
        s, terms = -b[j], abs(b[j])
        for i in range(d):
            if u[j, i] != 0.0:
                t = u[j, i] * (low[i] if u[j, i] > 0.0 else high[i])
                s += t
                terms += abs(t)
        if s > tol[j] + LOOSE * terms:
            return j
    return -1


@part
def settle(u, b, tol, low, high, mu, y, work, state, frame, tri):
    """Answer one problem safely: a row that nothing satisfies, else the active-set method.

    Rows hold to rounding first. Where then nothing fits, but not so clearly that it is proven, the
    region is flat or a single point, and rows hold a little less strictly each time.
    """
    row = blocked_row(u, b, tol, low, high)
    if row >= 0:
        for j in range(b.size):
            mu[j] = 1.0 if j == row else 0.0
        return INFEASIBLE
    share = FIRST / LOOSE
    while share < 2000.0:
        status = dual_active_set(u, b, tol, share, low, high, mu, y, work, state, frame, tri)
        if status == OPTIMAL:
            return OPTIMAL
        if status == INFEASIBLE and proof_margin(u, b, tol, low, high, mu) > 0.0:
            return INFEASIBLE
        share *= 2.0
    return UNRESOLVED


@part
def drop_dust(u, b, low, high, mu, y):
    """Set multipliers to zero that are rounding, next to the largest and to their row's terms."""
    largest = 0.0
    for j in range(b.size):
        largest = max(largest, mu[j])
    for j in range(b.size):
        if mu[j] <= FIRST * min(largest, violation_of(u, b, low, high, y, j)[1]):
            mu[j] = 0.0


@part
def gap_of(u, b, low, high, mu, y, r, g, terms):
    """Clean y, set r = U y - b; the duality gap of y and mu, which need not belong together."""
    m, d = u.shape
    gap, square = 0.0, 0.0
    for i in range(d):
        square += y[i] * y[i]
    for i in range(d):
        g[i], terms[i] = 0.0, 0.0
        for j in range(m):
            g[i] += mu[j] * u[j, i]
            terms[i] += abs(mu[j] * u[j, i])
        # What moved by rounding alone did not move.
        dust = FIRST * min(terms[i], np.sqrt(square))
        y[i] = min(max(y[i] if abs(y[i]) > dust and terms[i] > 0.0 else 0.0, low[i]), high[i])
        best = min(max(-g[i], low[i]), high[i])
        gap += 0.5 * (y[i] - best) * (y[i] + best + 2.0 * g[i])
    for j in range(m):
        r[j] = -b[j]
        for i in range(d):
            r[j] += u[j, i] * y[i]
        gap -= mu[j] * r[j]
    return gap


@part
def polish(u, offset, origin, scale, asked, mu, y, low_of, high_of, z, work, state, frame, tri):
    """Bring active rows to what is asked of them at z itself, by a step so short that it is exact.

    A long step is off by its own rounding, and where it ends close to the origin that is seen. The
    multipliers go along.
    """
    m, d = u.shape
    rank, size = tri.shape[1], np.int64(0)
    e, c = frame[rank + 2], tri[rank]
    for j in range(m):
        if mu[j] > 0.0 and size < rank:
            work[size] = j
            size += 1
    for i in range(d):
        state[i] = FREE if y[i] != 0.0 and low_of[i] < z[i] < high_of[i] else FROZEN
    rebuild(u, work, state, frame, tri, size)
    for i in range(d):
        e[i] = scale[i] * (z[i] - origin[i])
    for p in range(size):
        value = slack_of(u, work[p], offset, e) - asked[work[p]]
        for t in range(p):
            value -= tri[t, p] * c[t]
        c[p] = value / tri[p, p] if tri[p, p] > DEPENDENT else 0.0
    for p in range(size):
        for i in range(d):
            z[i] += c[p] * frame[p, i] / scale[i]
    for p in range(size - 1, -1, -1):  # the same step, as a sum of rows
        for t in range(p + 1, size):
            c[p] -= tri[p, t] * c[t]
        c[p] = c[p] / tri[p, p] if tri[p, p] > DEPENDENT else 0.0
        mu[work[p]] = max(mu[work[p]] - c[p], 0.0)
    for i in range(d):
        z[i] = min(max(z[i], low_of[i]), high_of[i])


@compiled
def settle_chunk(
    start, stop, hard, rows, places, points, lo, hi, offset, origin, u, scale, guard,
    out, mu_out, gap_out, reach_out, status_out,
):  # fmt: skip
    """Answer the problems hard[start:stop] that Newton gave up."""
    m, d = u.shape
    rank = min(m, d)
    x, low, high, y = np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    b, base, mu, r = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    tol, every = np.empty(m + d), np.arange(m)
    frame, tri = np.empty((rank + 3, d)), np.empty((rank + 2, rank))
    work, state = np.empty(rank, np.int64), np.empty(d, np.int8)
    for k in range(start, stop):
        p = hard[k]
        at, to = rows[p], places[p]
        low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
        status, gap, step, square = INFEASIBLE, 0.0, 0.0, 0.0
        some = enter(points[at], low_of, high_of, origin, scale, x, low, high)
        for i in range(d):
            tol[m + i] = LOOSE * (abs(x[i]) + abs(scale[i] * points[at, i]))
        for j in range(m):
            base[j] = slack_of(u, j, offset, x)
            mu[j], b[j], tol[j] = 0.0, base[j], LOOSE * abs(offset[j])
            for i in range(d):
                tol[j] += LOOSE * abs(u[j, i] * x[i])
        for turn in range(PUSHES if some else 0):
            status = settle(u, b, tol, low, high, mu, y, work, state, frame, tri)
            if status != OPTIMAL:
                if turn > 0:  # only what the guard left is empty
                    status = UNRESOLVED
                break
            drop_dust(u, b, low, high, mu, y)
            gap = gap_of(u, b, low, high, mu, y, r, frame[rank], frame[rank + 1])
            size, step, square = sizes_of(y, x, points[at], scale)
            pushed = push(b, base, r, every, m, size, step, square, guard)
            if pushed or not (size < HUGE and abs(gap) < np.inf):
                status = UNRESOLVED
            if not pushed:
                break
        status_out[to] = status
        if status == OPTIMAL:
            gap_out[to] = gap
            reach_out[to] = reach_of(b, r, y, low, high)
            leave(points[at], low_of, high_of, scale, y, low, high, out[to])
            if step > NEAR * np.sqrt(square):
                for j in range(m):
                    tol[j] = base[j] - b[j]
                polish(
                    u, offset, origin, scale, tol, mu, y, low_of, high_of, out[to],
                    work, state, frame, tri,
                )  # fmt: skip
        for j in range(mu_out.shape[1]):
            mu_out[to, j] = mu[j]
