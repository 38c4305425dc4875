"""The compiled kernel before all else: points whose box does not bind, a block of them at a time.

Where the box does not bind, the step is y = -U' mu, and U y - b = -(U U') mu - b: the multipliers
are a problem in the Gram matrix of the rows, which a whole target shares. A point then costs a dot
product a row, a tiny problem, and one sum of rows. A block of points is turned, so that the
innermost loops run over points: they vectorise whatever the number of coordinates is, and each
point has its sums in the written order, whoever its neighbours are.

What is accepted satisfies the conditions of `_kernel`, box included; all else is left to it. Same
problem in steps.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import compiled, step
from voicecf._kernel import (
    CLOSED,
    DUST,
    FLAT,
    HUGE,
    NEWTON_STEPS,
    OPTIMAL,
    TIGHT,
    UNRESOLVED,
    cholesky_solve,
    room_for,
)

# Points in flight: blocks of 20 coordinates stay in an L1 cache, and a loop is long enough to pay
# for its check that arrays do not overlap.
LANES = 32
# Up to so many rows a step is their sum for a whole block; of more rows, few are in it.
DENSE = 4


@step
def products(a, block, out):
    """Set out = A block; columns of A come by fours, the last ones zero."""
    lanes = block.shape[1]
    for j in range(a.shape[0]):
        for k in range(lanes):
            out[j, k] = 0.0
        for i in range(0, a.shape[1], 4):
            a0, a1, a2, a3 = a[j, i], a[j, i + 1], a[j, i + 2], a[j, i + 3]
            for k in range(lanes):
                out[j, k] += (
                    (a0 * block[i, k] + a1 * block[i + 1, k])
                    + (a2 * block[i + 2, k] + a3 * block[i + 3, k])
                )  # fmt: skip


@step
def enter_block(points, rows, first, last, origin, scale, raw, x, far):
    """Turn points first to last, and more of the last, into columns: as they are, and in steps.

    `far` is their squared distance from the origin, in the metric.
    """
    lanes = far.size
    for k in range(lanes):
        at = rows[min(first + k, last - 1)]
        far[k] = 0.0
        for i in range(origin.size):
            raw[i, k] = points[at, i]
    for i in range(origin.size):
        o, s = origin[i], scale[i]
        for k in range(lanes):
            t = s * (raw[i, k] - o)
            far[k] += t * t
            x[i, k] = t


@step
def ask_block(offset, guard, out, base, b, far, step):
    """Turn products into slacks `base`, and into those asked for, as `_kernel.keep_off` does."""
    lanes = far.size
    for k in range(lanes):
        step[k] = 0.0
    for j in range(offset.size):
        h = offset[j]
        for k in range(lanes):
            base[j, k] = h - base[j, k]
            step[k] = max(step[k], -base[j, k])
    for j in range(offset.size):
        behind, g1, g2, g3, g4 = guard[0, j], guard[1, j], guard[2, j], guard[3, j], guard[4, j]
        farthest = 4.0 * offset[j] * offset[j]
        for k in range(lanes):
            size = out + np.sqrt(far[k])
            need = 2.0 * room_for(g1, g2, g3, g4, size, step[k], min(far[k], farthest))
            b[j, k] = base[j, k] - max(need - behind, 0.0)


@step
def most_violated(gram, b, k, mu, act, active):
    """Most violated row of one point at -(U U') mu - b, among those without a multiplier, or -1."""
    worst, violation = -1, 0.0
    for j in range(b.shape[0]):
        s = 0.0
        for p in range(active):
            s -= gram[act[p], j] * mu[act[p]]
        r = s - b[j, k]
        if r > violation and mu[j] == 0.0 and r > TIGHT * (abs(b[j, k]) + abs(s)):
            worst, violation = j, r
    return worst


@step
def multipliers_of(gram, b, k, mu, act, h, rhs):
    """Find the multipliers of one point without a box; how many rows are in `act`, or -1.

    Newton as in `_kernel`: the most violated row comes in, what turns negative goes.
    """
    active = np.int64(0)
    for j in range(b.shape[0]):
        mu[j] = 0.0
    for _ in range(NEWTON_STEPS):
        worst = most_violated(gram, b, k, mu, act, active)
        kept = np.int64(0)
        for p in range(active):
            act[kept] = act[p]
            kept += mu[act[p]] > 0.0
        if worst >= 0:
            if kept == rhs.size:
                return -1
            act[kept] = worst
            kept += 1
        elif kept == active:
            return active
        active = kept
        if active == 1:  # most points need no more than this
            mu[act[0]] = max(-b[act[0], k] / gram[act[0], act[0]], 0.0)
            continue
        for p in range(active):
            rhs[p] = -b[act[p], k]
            for t in range(p + 1):
                h[p, t] = gram[act[p], act[t]]
        if not cholesky_solve(h, rhs, active):
            return -1
        largest = 0.0
        for p in range(active):
            largest = max(largest, rhs[p])
        for p in range(active):
            mu[act[p]] = rhs[p] if rhs[p] > DUST * largest else 0.0
    return -1


@step
def step_of_lane(u, mu, act, count, k, y):
    """Set column k to y = -U' mu; what moved by rounding alone did not move."""
    if count == 1:
        row, weight = u[act[0]], -mu[act[0]]
        for i in range(row.size):
            y[i, k] = weight * row[i]
        return
    for i in range(u.shape[1]):
        s, terms = 0.0, 0.0
        for p in range(count):
            t = mu[act[p]] * u[act[p], i]
            s -= t
            terms += abs(t)
        y[i, k] = s if abs(s) > DUST * terms else 0.0


@step
def take_dust_back(u, weights, y):
    """Take back what moved by rounding alone, where several rows act on a point."""
    m, d = u.shape
    for k in range(y.shape[1]):
        count = 0
        for j in range(m):
            count += weights[j, k] > 0.0
        for i in range(d if count > 1 else 0):
            terms = 0.0
            for j in range(m):
                terms += abs(weights[j, k] * u[j, i])
            if abs(y[i, k]) <= DUST * terms:
                y[i, k] = 0.0


@step
def sizes_of_block(offset, base, mu, rise, far, step, square):
    """Set the lengths of steps, and the squared distance of answers from the origin.

    y = -U' mu, so |y|^2 = -mu . U y and x . y = -mu . U x.
    """
    lanes = far.size
    for k in range(lanes):
        step[k], square[k] = 0.0, far[k]
    for j in range(offset.size):
        h = offset[j]
        for k in range(lanes):
            step[k] -= mu[j, k] * rise[j, k]
            square[k] -= 2.0 * mu[j, k] * (h - base[j, k])
    for k in range(lanes):
        square[k] = max(square[k] + step[k], 0.0)
        step[k] = np.sqrt(max(step[k], 0.0))


@step
def judge_rows(guard, out, base, b, r, mu, step, square, off, gap, room, pace):
    """Turn r from U y into U y - b; gap, and the nearest end as a fraction of `room` and `pace`.

    `off` is positive where a row is not as it must be. No row's terms are smaller than their sum,
    so what is tight here is tight in `_kernel`.
    """
    lanes = off.size
    for j in range(b.shape[0]):
        behind, g1, g2, g3, g4 = guard[0, j], guard[1, j], guard[2, j], guard[3, j], guard[4, j]
        for k in range(lanes):
            rise, most = r[j, k], b[j, k]
            s = rise - most
            r[j, k] = s
            gap[k] -= mu[j, k] * s
            excess = (abs(s) if mu[j, k] > 0.0 else s) - TIGHT * (abs(most) + abs(rise))
            need = room_for(g1, g2, g3, g4, out + np.sqrt(square[k]), step[k], square[k])
            missing = need - (behind + base[j, k] - most - s) if need > 0.0 else 0.0
            off[k] = max(off[k], max(excess, missing))
            nearer = rise > FLAT * step[k] and most * pace[k] < room[k] * rise
            room[k], pace[k] = most if nearer else room[k], rise if nearer else pace[k]


@step
def judge_box(raw, y, lo, hi, scale, off, room, pace):
    """Set `off` where a step leaves the box, and the nearest end as `judge_rows` does.

    A step that ends on a bound but for its rounding is for `_kernel` to bring there.
    """
    lanes = off.size
    for i in range(lo.size):
        least, most, s = lo[i], hi[i], scale[i]
        for k in range(lanes):
            t = y[i, k]
            low, high = s * (least - raw[i, k]), s * (most - raw[i, k])
            side, t = high if t > 0.0 else -low, abs(t)
            off[k] = max(off[k], max(low, -high))
            off[k] = max(off[k], t + DUST * t - side)
            nearer = side * pace[k] < room[k] * t
            room[k], pace[k] = side if nearer else room[k], t if nearer else pace[k]


@step
def judge_own_box(k, raw, y, lo, hi, scale, off, room, pace):
    """Do as `judge_box` does for one point that has a box of its own."""
    for i in range(lo.size):
        t = y[i, k]
        low, high = scale[i] * (lo[i] - raw[i, k]), scale[i] * (hi[i] - raw[i, k])
        side, t = high if t > 0.0 else -low, abs(t)
        if low > 0.0 or high < 0.0 or t + DUST * t > side:
            off[k] = 1.0
        if side * pace[k] < room[k] * t:
            room[k], pace[k] = side, t


@step
def all_shut(lo, hi, rows, first, last):
    """Whether every point of a block has a coordinate that its box fixes: no answer is free."""
    for p in range(first, last):
        at = rows[p]
        low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
        shut = False
        for i in range(low_of.size):
            shut = shut or not low_of[i] < high_of[i]
        if not shut:
            return False
    return True


@step
def leave_block(raw, y, scale):
    """Turn steps into points, in place: unmoved coordinates keep their bits."""
    lanes = raw.shape[1]
    for i in range(scale.size):
        s = scale[i]
        for k in range(lanes):
            t = raw[i, k]
            raw[i, k] = t + y[i, k] / s if y[i, k] != 0.0 else t


@compiled
def open_chunk(
    start, stop, rows, places, points, lo, hi, offset, origin, u, scale, guard,
    out, mu_out, gap_out, reach_out, status_out, gram, across, along,
):  # fmt: skip
    """Project problems start to stop where their box does not bind; the rest is unresolved.

    `across` is U and `along` is -U', with columns of zeros up to the next multiple of four.
    """
    m, d = u.shape
    wide, tall = (across.shape[1], LANES), (m, LANES)
    raw, x, y = np.zeros(wide), np.zeros(wide), np.zeros(wide)
    b, base, r = np.empty(tall), np.empty(tall), np.empty(tall)
    weights = np.zeros((along.shape[1], LANES))
    far, step, square, off = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    gap, room, pace = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    rank = min(m, d)
    act, h, rhs, mu = np.empty(rank, np.int64), np.empty((rank, rank)), np.empty(rank), np.empty(m)
    shared, bounded, away = lo.shape[0] == 1 and hi.shape[0] == 1, False, 0.0
    for i in range(d):
        bounded = bounded or not shared or lo[0, i] > -np.inf or hi[0, i] < np.inf
        away += (scale[i] * origin[i]) ** 2
    away = np.sqrt(away)
    for first in range(start, stop, LANES):
        last = min(first + LANES, stop)
        if bounded and all_shut(lo, hi, rows, first, first + 1 if shared else last):
            for p in range(first, last):
                status_out[places[p]] = UNRESOLVED
            continue
        enter_block(points, rows, first, last, origin, scale, raw, x, far)
        products(across, x, base)
        ask_block(offset, guard, away, base, b, far, step)
        for k in range(LANES):
            count = multipliers_of(gram, b, k, mu, act, h, rhs)
            off[k], gap[k], room[k], pace[k] = 0.0 if count >= 0 else 1.0, 0.0, np.inf, 1.0
            for j in range(m):
                weights[j, k] = mu[j]
            if m > DENSE:
                step_of_lane(u, mu, act, count, k, y)
        if m <= DENSE:
            products(along, weights, y)
            take_dust_back(u, weights, y)
        products(across, y, r)
        sizes_of_block(offset, base, weights, r, far, step, square)
        judge_rows(guard, away, base, b, r, weights, step, square, off, gap, room, pace)
        if bounded and shared:
            judge_box(raw, y, lo[0], hi[0], scale, off, room, pace)
        for p in range(first, first if shared else last):
            at = rows[p]
            low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
            judge_own_box(p - first, raw, y, low_of, high_of, scale, off, room, pace)
        leave_block(raw, y, scale)
        for p in range(first, last):
            k, at, to = p - first, rows[p], places[p]
            closed = abs(gap[k]) <= CLOSED * 0.5 * step[k] * step[k]
            if not (off[k] <= 0.0 and closed and away + np.sqrt(square[k]) < HUGE):
                status_out[to] = UNRESOLVED
                continue
            status_out[to] = OPTIMAL
            gap_out[to], reach_out[to] = gap[k], max(room[k] / pace[k], 1.0)
            for j in range(mu_out.shape[1]):
                mu_out[to, j] = weights[j, k]
            low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
            for i in range(d):
                out[to, i] = min(max(raw[i, k], low_of[i]), high_of[i])
