"""The compiled kernel for regions of many rows: Newton on a growing choice of violated rows.

Only few of a thousand rows matter at an answer, and finding them is the work. All rows are looked
at in single precision, which is twice as fast and good enough to say that a row is far from
violated; whatever is close is judged in double precision. Each row is looked at in its own unit,
its offset: rows that a point overshoots by the largest factor are the likeliest to matter. Same
problem in steps as in `_kernel`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from voicecf._compile import compiled, step
from voicecf._kernel import (
    FLAT,
    OPTIMAL,
    PUSHES,
    TIGHT,
    UNRESOLVED,
    enter,
    is_sound,
    leave,
    need_of,
    newton,
    price,
    push,
    reach_in_box,
    sizes_of,
    slack_of,
    snap,
)
from voicecf._open import multipliers_of

# Violated rows that are added at a time, if violated by at least this share of the worst.
CUTS = 6
CUT_SHARE = 0.8
# Entries that are skipped at once where none is above a bar.
STRETCH = 64
SINGLE = np.float32(np.finfo(np.float32).eps)
# What a row in the choice is marked with, so that scans pass over it; finite, see `largest_in`.
CHOSEN = np.float32(-3e38)


@partial(compiled, fastmath=True)
def largest_in(r, start, stop):
    """Largest entry of a stretch; no infinity or NaN in it, so that the scan vectorises."""
    quarter = (stop - start) // 4
    a = b = c = e = r[start]
    for j in range(start, start + quarter):  # four chains, for one would wait for itself
        a = max(a, r[j])
        b = max(b, r[j + quarter])
        c = max(c, r[j + 2 * quarter])
        e = max(e, r[j + 3 * quarter])
    for j in range(start + 4 * quarter, stop):
        a = max(a, r[j])
    return max(max(a, b), max(c, e))


@step
def above(r, bar, found):
    """Collect the positions of entries above a bar; their number. Hits are rare."""
    count, bar, nothing = 0, np.float32(bar), np.float32(0.0)
    whole = r.size // STRETCH * STRETCH
    for start in range(0, whole, STRETCH):
        excess = nothing
        for j in range(STRETCH):  # a sum vectorises, and is positive if any is
            excess += max(r[start + j] - bar, nothing)
        for j in range(start, start + STRETCH if excess > nothing else start):
            found[count] = j
            count += r[j] > bar
    for j in range(whole, r.size):
        found[count] = j
        count += r[j] > bar
    return count


@step
def price_all(single, level, x, y, r):
    """Set r = U (x + y) - h for all rows, each in its own unit; bound of the product's error."""
    d, m = single.shape
    size = 0.0
    for i in range(d):
        size += (x[i] + y[i]) ** 2
    for j in range(m):
        r[j] = -level[j]
    i = 0
    while i + 4 <= d:
        y0, y1 = np.float32(x[i] + y[i]), np.float32(x[i + 1] + y[i + 1])
        y2, y3 = np.float32(x[i + 2] + y[i + 2]), np.float32(x[i + 3] + y[i + 3])
        for j in range(m):
            r[j] += (
                single[i, j] * y0 + single[i + 1, j] * y1
                + single[i + 2, j] * y2 + single[i + 3, j] * y3
            )  # fmt: skip
        i += 4
    while i < d:
        y0 = np.float32(x[i] + y[i])
        for j in range(m):
            r[j] += single[i, j] * y0
        i += 1
    return (d + 8) * SINGLE * np.sqrt(size)


@step
def add_cut(u, j, offset, x, b, base, mu, cut, size, r):
    """Take row j into the choice, in double precision."""
    base[j] = slack_of(u, j, offset, x)
    b[j], mu[j] = base[j], 0.0
    cut[size] = j
    r[j] = CHOSEN


@step
def violated(u, j, offset, x, y):
    """Whether row j is violated, in double precision."""
    s, terms = -slack_of(u, j, offset, x), abs(offset[j])
    for i in range(y.size):
        s += u[j, i] * y[i]
        terms += abs(u[j, i] * y[i])
    return s > TIGHT * terms


@step
def add_cuts(u, offset, x, y, r, slop, wary, b, base, mu, cut, size, found):
    """Add the most violated rows, each in its own unit, to the choice; the new size, and others.

    Where none is clearly violated, `found` holds those within `wary` of it: how many.
    """
    worst = largest_in(r, 0, r.size)
    if worst <= -wary:
        return size, 0
    close = worst <= 8 * slop  # then single precision cannot tell
    most = min(cut.size, size + CUTS)
    count = above(r, -wary if close else CUT_SHARE * worst, found)
    for p in range(count):
        if size < most and (not close or violated(u, found[p], offset, x, y)):
            add_cut(u, found[p], offset, x, b, base, mu, cut, size, r)
            size += 1
    return size, count


@step
def warm_start(u, b, mu, cut, known, count, gram, column, own, act, h, rhs):
    """Start Newton at the multipliers that the choice has without a box, which seldom binds.

    `gram` holds the products of the first `known` rows of the choice already.
    """
    for p in range(known, count):
        for q in range(p + 1):
            s = 0.0
            for i in range(u.shape[1]):
                s += u[cut[p], i] * u[cut[q], i]
            gram[p, q] = gram[q, p] = s
    for p in range(count):
        column[p, 0] = b[cut[p]]
    if multipliers_of(gram, column[:count], 0, own, act, h, rhs) >= 0:
        for p in range(count):
            mu[cut[p]] = own[p]


@step
def largest_guard(guard, unit):
    """Largest entry of each row of the guard, in the units of the rows: the most any needs."""
    largest = np.zeros(guard.shape[0])
    for t in range(guard.shape[0]):
        for j in range(guard.shape[1]):
            largest[t] = max(largest[t], guard[t, j] * unit[j])
    return largest.reshape(-1, 1)


@step
def add_close(u, offset, unit, x, r, slop, sizes, guard, b, base, mu, cut, count, found, near):
    """Add rows that the answer may be too close to for the model's rounding; the new size."""
    for p in range(near):
        j = found[p]
        need = need_of(guard, j, sizes[0], sizes[1], sizes[2])
        if count < cut.size and unit[j] * (guard[0, j] - 2.0 * need) - r[j] < slop:
            add_cut(u, j, offset, x, b, base, mu, cut, count, r)
            count += 1
    return count


@step
def reach_along(u, j, offset, x, y, flat):
    """Largest multiple of the step that keeps to row j."""
    rise = 0.0
    for i in range(y.size):
        rise += u[j, i] * y[i]
    return slack_of(u, j, offset, x) / rise if rise > flat else np.inf


@step
def reach_of_all(u, offset, x, y, r0, r, t, slop, low, high, cut, count, found):
    """Largest multiple of the step that keeps to rows and box; close calls in double precision.

    A row of slack s that rises by v binds where s < reach v.
    """
    reach, square = reach_in_box(y, low, high), 0.0
    for i in range(y.size):
        square += y[i] * y[i]
    flat = FLAT * np.sqrt(square)
    for p in range(count):
        reach = min(reach, reach_along(u, cut[p], offset, x, y, flat))
        r[cut[p]] = r0[cut[p]]
    error, bound = np.float32(slop), np.float32(min(reach, 1e6))
    for j in range(r.size):
        t[j] = (r0[j] + error) + bound * (r[j] - r0[j] + error)
    for p in range(above(t, 0.0, found)):
        j = found[p]
        if -r0[j] - error < reach * (r[j] - r0[j] + error):
            reach = min(reach, reach_along(u, j, offset, x, y, flat))
    return max(reach, 1.0)


@compiled
def cuts_chunk(
    start, stop, rows, places, points, lo, hi, offset, origin, u, scale, guard,
    out, mu_out, gap_out, reach_out, status_out, single, unit,
):  # fmt: skip
    """Project problems start to stop onto a region of many rows."""
    m, d = u.shape
    few = min(m, 3 * d + 64)
    x, low, high, y, free = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    b, base, mu, res = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    r0, r, t = np.empty(m, np.float32), np.empty(m, np.float32), np.empty(m, np.float32)
    cut, found = np.empty(few, np.int64), np.empty(m + 1, np.int64)
    level = np.empty(m, np.float32)
    act, h, rhs = np.empty(d, np.int64), np.empty((d, d)), np.empty(d)
    gram, column, own = np.empty((few, few)), np.empty((few, 1)), np.empty(few)
    widest, finest, largest = 0.0, 0.0, largest_guard(guard, unit)
    for j in range(m):
        level[j] = offset[j] * unit[j]
        widest = max(widest, 8 * SINGLE * abs(level[j]))
        finest = max(finest, unit[j])
    for p in range(start, stop):
        at, to = rows[p], places[p]
        low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
        status_out[to] = UNRESOLVED
        if not enter(points[at], low_of, high_of, origin, scale, x, low, high):
            continue
        moved = False
        for i in range(d):
            y[i] = min(max(0.0, low[i]), high[i])
            free[i] = 0.0
            moved = moved or y[i] != 0.0
        slop = widest + finest * price_all(single, level, x, free, r0)
        if moved:
            slop = max(slop, widest + finest * price_all(single, level, x, y, r))
        else:
            for j in range(m):
                r[j] = r0[j]
        count, known, pushes, solved = np.int64(0), np.int64(0), 0, True
        while solved:
            size, step, square = sizes = sizes_of(y, x, points[at], scale)
            wary = 2.0 * need_of(largest, 0, size, step, square) + slop
            grown, near = add_cuts(u, offset, x, y, r, slop, wary, b, base, mu, cut, count, found)
            if grown == count:
                count = add_close(
                    u, offset, unit, x, r, slop, sizes, guard,
                    b, base, mu, cut, count, found, near,
                )  # fmt: skip
                price(u, b, mu, cut, count, y, res, 0.0)
                pushes += 1
                if not push(b, base, res, cut, count, size, step, square, guard):
                    sound = count < few and is_sound(size, step, square)
                    status_out[to] = OPTIMAL if sound else UNRESOLVED
                    break
                if pushes == PUSHES:
                    break
            else:
                count = grown
            warm_start(u, b, mu, cut, known, count, gram, column, own, act, h, rhs)
            known = count
            solved = newton(u, b, low, high, mu, cut, count, y, res, act, h, rhs, free)
            snap(u, b, low, high, mu, cut, count, y, res, free)
            slop = max(slop, widest + finest * price_all(single, level, x, y, r))
            for q in range(count):
                r[cut[q]] = CHOSEN
        if status_out[to] == OPTIMAL:
            gap = 0.0
            for q in range(count):
                gap -= mu[cut[q]] * res[cut[q]]
                if mu_out.shape[1] > 0:
                    mu_out[to, cut[q]] = mu[cut[q]]
            gap_out[to] = gap
            reach_out[to] = reach_of_all(
                u, offset, x, y, r0, r, t, slop, low, high, cut, count, found
            )
            leave(points[at], low_of, high_of, scale, y, low, high, out[to])


@compiled
def assign_chunk(
    start, stop, points, centers, weights, middle, single, halves, sizes, growth, expanded,
    labels, doubtful,
):  # fmt: skip
    """Nearest of many centroids, as in `_cells.assign_chunk`; far ones go by single precision.

    `single` holds sqrt(w) (m - middle) transposed, `halves` half their squared lengths: the nearest
    centroid has the largest product less half.
    """
    k, d = centers.shape
    x, zero, r = np.empty(d), np.zeros(d), np.empty(k, np.float32)
    found = np.empty(k + 1, np.int64)
    widest = 0.0
    for j in range(k):
        widest = max(widest, halves[j])
    for p in range(start, stop):
        size = 0.0
        for i in range(d):
            x[i] = np.sqrt(weights[i]) * (points[p, i] - middle[i])
            size += weights[i] * points[p, i] * points[p, i]
        slop = price_all(single, halves, x, zero, r) * np.sqrt(2.0 * widest) + 8 * SINGLE * widest
        best, second, label = np.inf, np.inf, 0
        for q in range(above(r, largest_in(r, 0, k) - 4 * slop, found)):
            j = found[q]
            s = 0.0
            for i in range(d):
                t = points[p, i] - centers[j, i]
                s += weights[i] * t * t
            if s < best:
                best, second, label = s, best, j
            elif s < second:
                second = s
        if second == np.inf:  # all others are further by more than single precision could hide
            second = best + 4 * slop
        error = best + second + ((np.sqrt(size) + sizes) ** 2 if expanded else 0.0)
        labels[p] = label
        doubtful[p] = second - best <= growth * error
