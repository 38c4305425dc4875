"""The compiled kernel for regions of many rows: Newton on a growing choice of violated rows.

Only few of a thousand rows matter at an answer, and finding them is the work. All rows are looked
at in single precision, which is twice as fast and good enough to say that a row is far from
violated; whatever is close is judged in double precision. Same problem in steps as in `_kernel`.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import compiled
from voicecf._kernel import (
    FLAT,
    OPTIMAL,
    PUSHES,
    TIGHT,
    UNRESOLVED,
    enter,
    leave,
    newton,
    price,
    push,
    reach_in_box,
    sizes_of,
    slack_of,
)

# Violated rows that are added at a time, if violated by at least this share of the worst.
CUTS = 12
CUT_SHARE = 0.5
SINGLE = np.float32(np.finfo(np.float32).eps)


@compiled
def price_all(single, offset, x, y, r):
    """Set r = U (x + y) - offset for all rows in single precision; bound of its error."""
    d, m = single.shape
    size = 0.0
    for i in range(d):
        size += (x[i] + y[i]) ** 2
    for j in range(m):
        r[j] = -offset[j]
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


@compiled
def add_cut(u, j, offset, x, b, base, mu, cut, size, place):
    """Take row j into the choice, in double precision."""
    base[j] = slack_of(u, j, offset, x)
    b[j], mu[j] = base[j], 0.0
    cut[size] = j
    place[j] = size


@compiled
def add_cuts(u, offset, x, y, r, slop, b, base, mu, cut, size, place):
    """Add the most violated rows to the choice; the new size."""
    m = r.size
    worst = np.float32(0.0)
    for j in range(m):
        if r[j] > worst and place[j] < 0:
            worst = r[j]
    bar = max(CUT_SHARE * worst, slop) if worst > 8 * slop else -slop
    most = min(cut.size, size + CUTS)
    for j in range(m):
        if r[j] > bar and place[j] < 0 and size < most:
            if bar < 0.0:  # as close as this, single precision cannot tell
                s, terms = -slack_of(u, j, offset, x), abs(offset[j])
                for i in range(y.size):
                    s += u[j, i] * y[i]
                    terms += abs(u[j, i] * y[i])
                if s <= TIGHT * terms:
                    continue
            add_cut(u, j, offset, x, b, base, mu, cut, size, place)
            size += 1
    return size


@compiled
def reach_of_all(u, offset, x, y, r0, r, error, low, high):
    """Largest multiple of the step that keeps to rows and box; close calls in double precision."""
    d = y.size
    reach, square = reach_in_box(y, low, high), 0.0
    for i in range(d):
        square += y[i] * y[i]
    flat = FLAT * np.sqrt(square)
    for j in range(r.size):
        rise = r[j] - r0[j] + error
        if rise > 0.0 and -r0[j] - error < reach * rise:
            s = 0.0
            for i in range(d):
                s += u[j, i] * y[i]
            if s > flat:
                reach = min(reach, slack_of(u, j, offset, x) / s)
    return max(reach, 1.0)


@compiled
def largest_of(guard):
    """Largest entry of each row of the guard, shape (4, 1): what no row needs more than."""
    largest = np.zeros((4, 1))
    for t in range(4):
        for j in range(guard.shape[1]):
            largest[t, 0] = max(largest[t, 0], guard[t, j])
    return largest


@compiled
def add_close(u, offset, x, r, slop, size, square, guard, largest, b, base, mu, cut, count, place):
    """Add rows that the answer may be too close to for the model's rounding; the new size."""
    most = largest[1, 0] + largest[2, 0] * size + largest[3, 0] * square
    for j in range(r.size):
        if r[j] > -2.0 * most - slop and place[j] < 0 and count < cut.size:
            need = guard[1, j] + guard[2, j] * size + guard[3, j] * square
            if guard[0, j] - r[j] < 2.0 * need + slop:
                add_cut(u, j, offset, x, b, base, mu, cut, count, place)
                count += 1
    return count


@compiled
def cuts_chunk(
    start, stop, rows, points, lo, hi, offset, origin, u, scale, guard,
    out, mu_out, gap_out, reach_out, status_out, single,
):  # fmt: skip
    """Project problems start to stop onto a region of many rows."""
    m, d = u.shape
    few = min(m, 3 * d + 64)
    x, low, high, y, free = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    b, base, mu, res = np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    r0, r = np.empty(m, np.float32), np.empty(m, np.float32)
    cut, place = np.empty(few, np.int64), np.full(m, -1)
    act, h, rhs = np.empty(d, np.int64), np.empty((d, d)), np.empty(d)
    widest, largest = 0.0, largest_of(guard)
    for j in range(m):
        widest = max(widest, 8 * SINGLE * abs(offset[j]))
    for p in range(start, stop):
        at = rows[p]
        low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
        status_out[p] = UNRESOLVED
        if not enter(points[at], low_of, high_of, origin, scale, x, low, high):
            continue
        moved = False
        for i in range(d):
            y[i] = min(max(0.0, low[i]), high[i])
            free[i] = 0.0
            moved = moved or y[i] != 0.0
        slop = widest + price_all(single, offset, x, free, r0)
        if moved:
            slop = max(slop, widest + price_all(single, offset, x, y, r))
        else:
            for j in range(m):
                r[j] = r0[j]
        count, pushes, solved = 0, 0, True
        while solved:
            grown = add_cuts(u, offset, x, y, r, slop, b, base, mu, cut, count, place)
            if grown == count:
                size, square = sizes_of(y, x, points[at], scale)
                count = add_close(
                    u, offset, x, r, slop, size, square, guard, largest, b, base, mu, cut, count, place
                )
                price(u, b, mu, cut, count, y, res)
                pushes += 1
                if not push(b, base, mu, res, cut, count, size, square, guard):
                    status_out[p] = OPTIMAL if count < few else UNRESOLVED
                    break
                if pushes == PUSHES:
                    break
            else:
                count = grown
            solved = newton(u, b, low, high, mu, cut, count, y, res, act, h, rhs, free)
            slop = max(slop, widest + price_all(single, offset, x, y, r))
        if status_out[p] == OPTIMAL:
            gap = 0.0
            for q in range(count):
                gap -= mu[cut[q]] * res[cut[q]]
                if mu_out.shape[1] > 0:
                    mu_out[p, cut[q]] = mu[cut[q]]
            gap_out[p] = gap
            reach_out[p] = reach_of_all(u, offset, x, y, r0, r, slop, low, high)
            leave(points[at], low_of, high_of, scale, y, low, high, out[p])
        for q in range(count):
            place[cut[q]] = -1
