"""The compiled kernel before all else: points whose box does not bind, in one pass over memory.

Where the box does not bind, the step is y = -U' mu, and U y - b = -(U U') mu - b: the multipliers
are a problem in the Gram matrix of the rows, which a whole target shares. A point then costs a dot
product a row, a tiny problem, and one sum of rows. Points of a span are sorted by target, and a
block of one target is turned, so that the innermost loops run over points: they vectorise whatever
the number of coordinates is, and each point has its sums in the written order, whoever its
neighbours are. While a block is at hand, its points are assigned to their own clusters, copied and
measured, too, if that is asked for: reading them again would take longer.

What is accepted satisfies the conditions of `_kernel`, box included; all else is left to it. Same
problem as there, with coordinates as they are: `across` holds the rows for these, and `along` what
a multiplier does to them.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import buffered, step
from voicecf._kernel import (
    ALREADY,
    CLOSED,
    DUST,
    FLAT,
    NEWTON_STEPS,
    OPTIMAL,
    TIGHT,
    UNRESOLVED,
    cholesky_solve,
    is_sound,
    room_for,
)

# What compiles slowly, and is not here: assignments of four values, which make a tuple; allocation;
# steps within steps, for each is compiled anew in all that it is part of.

# Points in flight: blocks of 20 coordinates stay in an L1 cache, and a loop is long enough to pay
# for its check that arrays do not overlap.
LANES = 32
# Points that are sorted by target at a time, at least, and for each target: they and their answers
# stay in an L2 cache where targets are few, and blocks are full.
SPAN = 512
SPREAD = 256


@step
def sort_span(start, stop, targets, count, order, starts):
    """Sort problems start to stop by target, keeping their order; where each target starts."""
    for t in range(count + 1):
        starts[t] = 0
    if targets.size == 0:
        for p in range(start, stop):
            order[p - start] = p
        starts[count] = stop - start
        return
    for p in range(start, stop):
        starts[targets[p] + 1] += 1
    for t in range(count):
        starts[t + 1] += starts[t]
    for p in range(start, stop):
        t = targets[p]
        order[starts[t]] = p
        starts[t] += 1
    for t in range(count, 0, -1):
        starts[t] = starts[t - 1]
    starts[0] = 0


@step
def enter_block(points, rows, order, first, last, origin, metric, raw, x, far):
    """Turn points first to last, and more of the last, into columns: as they are, and from origin.

    `far` is their squared distance from the origin, in the metric.
    """
    for k in range(LANES):
        at = rows[order[first + k if first + k < last else last - 1]]
        far[k] = 0.0
        for i in range(origin.size):
            raw[i, k] = points[at, i]
    for i in range(origin.size):
        o, q = origin[i], metric[i]
        for k in range(LANES):
            t = raw[i, k] - o
            far[k] += q * t * t
            x[i, k] = t


@step
def products(a, block, out):
    """Set out = A block; rows of A come by twos, columns by fours, the last ones zero."""
    for j in range(0, a.shape[0], 2):
        for k in range(LANES):
            out[j, k], out[j + 1, k] = 0.0, 0.0
        for i in range(0, a.shape[1], 4):
            a0, a1 = a[j, i], a[j, i + 1]
            a2, a3 = a[j, i + 2], a[j, i + 3]
            b0, b1 = a[j + 1, i], a[j + 1, i + 1]
            b2, b3 = a[j + 1, i + 2], a[j + 1, i + 3]
            for k in range(LANES):
                x0, x1 = block[i, k], block[i + 1, k]
                x2, x3 = block[i + 2, k], block[i + 3, k]
                out[j, k] += (a0 * x0 + a1 * x1) + (a2 * x2 + a3 * x3)
                out[j + 1, k] += (b0 * x0 + b1 * x1) + (b2 * x2 + b3 * x3)


@step
def ask_block(offset, guard, away, base, b, far, step, size, own):
    """Turn products into slacks `base`, and into those asked for, as `_kernel.keep_off` does."""
    for k in range(LANES):
        step[k], own[k] = 0.0, -1.0
        size[k] = away + np.sqrt(far[k])
    for j in range(offset.size):
        h = offset[j]
        for k in range(LANES):
            slack = h - base[j, k]
            base[j, k] = slack
            step[k] = max(step[k], -slack)
    for j in range(offset.size):
        behind, g1, g2 = guard[0, j], guard[1, j], guard[2, j]
        g3, g4 = guard[3, j], guard[4, j]
        farthest = 4.0 * offset[j] * offset[j]
        for k in range(LANES):
            need = 2.0 * room_for(g1, g2, g3, g4, size[k], step[k], min(far[k], farthest))
            b[j, k] = base[j, k] - max(need - behind, 0.0)


@step
def assign_block(target, norms, guard, base, far, reach, growth, own, nearest, second):
    """Nearest centroid of each point; -1 where the model's rounding may see another.

    Twice the slack to the boundary with a rival is by how much the rival is further. The terms
    of a slack are no larger than 2 D_j + 2.5 D_t, which bounds its rounding. `reach` is how far
    centroids and origin are from zero, if that adds to the model's own rounding, else negative.
    """
    for k in range(LANES):
        nearest[k], second[k], own[k] = 0.0, np.inf, target
    for j in range(norms.size):
        norm, behind = 2.0 * norms[j], guard[0, j]
        rival = float(j if j < target else j + 1)
        for k in range(LANES):
            t, best = norm * (base[j, k] + behind), nearest[k]
            nearer = t < best
            second[k] = best if nearer else min(second[k], t)
            nearest[k] = t if nearer else best
            own[k] = rival if nearer else own[k]
    for k in range(LANES):
        best, next_best, square = nearest[k], second[k], far[k]
        error = 5.0 * (best + next_best) + 20.0 * square
        spread = reach + np.sqrt(square) if reach >= 0.0 else 0.0
        error += spread * spread
        own[k] = own[k] if next_best - best - growth * error > 0.0 else -1.0


@step
def one_row_block(gram, b, pick, mu, more, r):
    """Find the multiplier that the most violated row alone asks for, and U y of its step.

    `pick` is that row; `more` is positive where another row is then violated.
    """
    for k in range(LANES):
        mu[k], pick[k], more[k] = 0.0, 0, 0.0
    for j in range(gram.shape[0]):
        for k in range(LANES):
            lack, most = -b[j, k], mu[k]
            mu[k] = lack if lack > most else most
            pick[k] = j if lack > most else pick[k]
    for k in range(LANES):
        mu[k] /= gram[pick[k], pick[k]]
    for j in range(gram.shape[0]):
        for k in range(LANES):
            most, row = b[j, k], pick[k]
            rise = -gram[j, row] * mu[k]
            r[j, k] = rise
            unmet = rise - most - TIGHT * (abs(most) + abs(rise))
            more[k] = max(more[k], 0.0 if row == j else unmet)


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
            weight = -b[act[0], k] / gram[act[0], act[0]]
            mu[act[0]] = weight if weight > 0.0 else 0.0
            continue
        for p in range(active):
            rhs[p] = -b[act[p], k]
            for t in range(p + 1):
                h[p, t] = gram[act[p], act[t]]
        if not cholesky_solve(h, rhs, active):
            return -1
        largest = 0.0
        for p in range(active):
            largest = rhs[p] if rhs[p] > largest else largest
        for p in range(active):
            mu[act[p]] = rhs[p] if rhs[p] > DUST * largest else 0.0
    return -1


@step
def move_lane(across, along, mu, act, count, k, y, r):
    """Set column k to the step of several rows; what moved by rounding alone did not move."""
    m, d = along.shape
    for j in range(m):
        r[j, k] = 0.0
    for i in range(d):
        s, terms = 0.0, 0.0
        for p in range(count):
            t = mu[act[p]] * along[act[p], i]
            s += t
            terms += abs(t)
        s = s if abs(s) > DUST * terms else 0.0
        y[i, k] = s
        for j in range(m):
            r[j, k] += across[j, i] * s


@step
def weigh_lane(offset, base, b, r, mu, act, count, k, gap, step, square, off, kept, weights):
    """Set duality gap and energy of a step, what it takes off |x|^2, and `kept` rows of weights.

    `off` is positive where no multipliers were found, or where their rows are not tight.
    y = -U' mu, so |y|^2 = -mu . U y and x . y = -mu . U x.
    """
    for j in range(kept):
        weights[j, k] = 0.0
    lost, moved, beyond = 0.0, 0.0, square[k]
    bad = 1.0 if count < 0 else 0.0
    for p in range(count):
        j = act[p]
        weight, rise, most = mu[j], r[j, k], b[j, k]
        weights[j, k] = weight
        lost -= weight * (rise - most)
        moved -= weight * rise
        beyond -= 2.0 * weight * (offset[j] - base[j, k])
        if weight > 0.0:
            bad = max(bad, abs(rise - most) - TIGHT * (abs(most) + abs(rise)))
    gap[k], step[k] = lost, moved
    square[k], off[k] = beyond, bad


@step
def judge_steps(away, gap, step, square, size, off):
    """Turn energies into lengths and sizes; `off` where the gap is open, or the step too long."""
    for k in range(LANES):
        energy = step[k]
        beyond, length = max(square[k] + energy, 0.0), np.sqrt(max(energy, 0.0))
        square[k], step[k], size[k] = beyond, length, away + np.sqrt(beyond)
        sound = abs(gap[k]) <= CLOSED * 0.5 * energy and is_sound(size[k], length, beyond)
        off[k] = off[k] if sound else 1.0


@step
def judge_rows(guard, base, b, r, step, square, size, off, room, pace):
    """Judge r = U y, and set the nearest end as a fraction of `room` and `pace`.

    `off` is positive where a row is not as it must be. No row's terms are smaller than their sum,
    so what holds here holds in `_kernel`.
    """
    for k in range(LANES):
        room[k], pace[k] = np.inf, 1.0
    for j in range(guard.shape[1]):
        behind, g1, g2 = guard[0, j], guard[1, j], guard[2, j]
        g3, g4 = guard[3, j], guard[4, j]
        guarded = g1 + g2 + g3 + g4 > 0.0
        for k in range(LANES):
            rise, most = r[j, k], b[j, k]
            off[k] = max(off[k], rise - most - TIGHT * (abs(most) + abs(rise)))
            nearer = rise > FLAT * step[k] and most * pace[k] < room[k] * rise
            room[k], pace[k] = most if nearer else room[k], rise if nearer else pace[k]
        for k in range(LANES if guarded else 0):
            need = room_for(g1, g2, g3, g4, size[k], step[k], square[k])
            off[k] = max(off[k], need - (behind + base[j, k] - r[j, k]))


@step
def box_of_block(lo, hi, rows, order, first, last, low, high):
    """Turn the boxes of points first to last into columns; whether all fix some coordinate."""
    all_shut = True
    own_lo, own_hi = 1 if lo.shape[0] > 1 else 0, 1 if hi.shape[0] > 1 else 0
    for k in range(LANES):
        at, shut = rows[order[first + k if first + k < last else last - 1]], False
        for i in range(lo.shape[1]):
            least, most = lo[own_lo * at, i], hi[own_hi * at, i]
            low[i, k], high[i, k] = least, most
            shut = shut or not least < most
        all_shut = all_shut and shut
    return all_shut


@step
def judge_box(d, raw, y, low, high, off, room, pace):
    """Set `off` where a step leaves the box, and the nearest end as `judge_rows` does.

    A step that ends on a bound but for its rounding is for `_kernel` to bring there.
    """
    for i in range(d):
        for k in range(LANES):
            p, t = raw[i, k], y[i, k]
            below, above = p - low[i, k], high[i, k] - p
            beyond = t + DUST * t
            off[k] = max(off[k], -min(min(below, above), min(above - beyond, below + beyond)))
            side, t = above if t > 0.0 else below, abs(t)
            nearer = side * pace[k] < room[k] * t
            room[k], pace[k] = side if nearer else room[k], t if nearer else pace[k]


@step
def leave_block(d, points, y, weights, least, cost, changed):
    """Turn steps into answers, in place: unmoved coordinates keep their bits.

    Where there are weights: cost in these, and number of changed coordinates.
    """
    for i in range(d):
        for k in range(LANES):
            p, t = points[i, k], y[i, k]
            y[i, k] = p + t if t != 0.0 else p
    for k in range(LANES):
        cost[k], changed[k] = 0.0, 0.0
    for i in range(0, weights.size, 2):
        w0, w1 = weights[i], weights[i + 1]
        least0, least1 = least[i], least[i + 1]
        for k in range(LANES):
            t0, t1 = y[i, k] - points[i, k], y[i + 1, k] - points[i + 1, k]
            cost[k] += w0 * t0 * t0 + w1 * t1 * t1
            changed[k] += (1.0 if abs(t0) > least0 else 0.0) + (1.0 if abs(t1) > least1 else 0.0)


@step
def copy_span(start, stop, points, own_out):
    """Copy points in their order, which also brings them near."""
    for p in range(start, stop):
        for i in range(points.shape[1]):
            own_out[p, i] = points[p, i]


@step
def keep_block(order, first, last, start, d, y, pool):
    """Turn the answers of a block back into rows of `pool`."""
    for p in range(first, last):
        k, row = p - first, order[p] - start
        for i in range(d):
            pool[row, i] = y[i, k]


@step
def leave_span(start, stop, places, pool, out):
    """Write answers in their order: memory takes them faster than one here and one there."""
    for p in range(start, stop):
        row, to = p - start, places[p]
        for i in range(pool.shape[1]):
            out[to, i] = pool[row, i]


def buffers_of(begin, end, *problem):
    """Columns of a block, answers of a span, what a point of several rows needs, and numbers."""
    across, along = problem[15:17]  # as `open_chunk` names them
    (count, m, d), (_, tall, wide) = along.shape, across.shape
    span, rank = min(max(SPREAD * count, SPAN), end - begin), min(m, d)
    blocks = np.empty((9, 10 + tall + wide, LANES))
    whole = np.empty((4, span + count + m + LANES), np.int64)
    return blocks, np.empty((span, d)), np.empty((rank + 2, m)), whole


@buffered(buffers_of)
def open_chunk(
    begin, end, rows, places, points, lo, hi, out, mu_out, gap_out, reach_out, status_out,
    targets, offsets, origins, guards, grams, across, along, metric, aways,
    norms, growth, sizes, weights_of, least, own_out, source_out, cost_out, changed_out,
    blocks, pool, h, whole,
):  # fmt: skip
    """Project problems begin to end where their box does not bind; the rest is unresolved.

    Geometry has an entry a target; `targets` has one a problem, or none at all. Where `source_out`
    has room, problem p is point p, and points are also assigned, copied and measured: the gap is
    relative to half the energy, and -1 as source says that the model has to be asked.
    """
    (count, m, d), wide = along.shape, across.shape[2]
    span, rank = pool.shape[0], m if m < d else d
    raw, y = blocks[0], blocks[1]
    low, high = blocks[2], blocks[3]
    base, b, r = blocks[4], blocks[5, :m], blocks[6]
    weights, lanes = blocks[7], blocks[8]
    far, step, size = lanes[0], lanes[1], lanes[2]
    off, gap = lanes[3], lanes[4]
    room, pace = lanes[5], lanes[6]
    own, one, more = lanes[7], lanes[8], lanes[9]
    rhs, mu = h[rank, :rank], h[rank + 1]
    order, starts = whole[0], whole[1]
    pick, act = whole[2], whole[3]
    shared, bounded, telling = lo.shape[0] == 1 and hi.shape[0] == 1, False, source_out.size > 0
    for i in range(d):
        bounded = bounded or not shared or lo[0, i] > -np.inf or hi[0, i] < np.inf
    for i in range(d, wide):
        for k in range(LANES):
            raw[i, k], y[i, k] = 0.0, 0.0
    shut, boxed, kept = False, False, mu_out.shape[1]
    for start in range(begin, end, span):
        stop = start + span if start + span < end else end
        sort_span(start, stop, targets, count, order, starts)
        if telling:
            copy_span(start, stop, points, own_out)
        for t in range(count):
            offset, guard = offsets[t], guards[t]
            gram, away = grams[t], aways[t]
            rows_of, moves_of = across[t], along[t]
            for first in range(starts[t], starts[t + 1], LANES):
                last = first + LANES if first + LANES < starts[t + 1] else starts[t + 1]
                if bounded and not boxed:
                    shut = box_of_block(lo, hi, rows, order, first, last, low, high)
                    boxed = shared
                if shut and not telling:  # no answer is free
                    for p in range(first, last):
                        status_out[places[order[p]]] = UNRESOLVED
                    continue
                enter_block(points, rows, order, first, last, origins[t], metric, raw, y, far)
                products(rows_of, y, base)
                ask_block(offset, guard, away, base, b, far, step, size, own)
                if telling:
                    reach = sizes + away if sizes >= 0.0 else -1.0
                    assign_block(t, norms[t], guard, base, far, reach, growth, own, room, pace)
                one_row_block(gram, b, pick, one, more, r)
                for k in range(LANES):
                    row, active, weight = pick[k], 1, 0.0 if own[k] == t else one[k]
                    act[0], mu[row] = row, weight
                    if weight == 0.0 or more[k] <= 0.0:  # most points need no more than one row
                        for i in range(d):
                            y[i, k] = weight * moves_of[row, i]
                    else:
                        active = multipliers_of(gram, b, k, mu, act, h, rhs)
                        move_lane(rows_of, moves_of, mu, act, active, k, y, r)
                    weigh_lane(
                        offset, base, b, r, mu, act, active, k, gap, step, far, off, kept, weights
                    )
                judge_steps(away, gap, step, far, size, off)
                judge_rows(guard, base, b, r, step, far, size, off, room, pace)
                if bounded:
                    judge_box(d, raw, y, low, high, off, room, pace)
                leave_block(d, raw, y, weights_of, least, far, size)
                keep_block(order, first, last, start, d, y, pool)
                for p in range(first, last):
                    k, to = p - first, places[order[p]]
                    status, reach = OPTIMAL if off[k] <= 0.0 else UNRESOLVED, room[k] / pace[k]
                    loss, length = gap[k], step[k]
                    for j in range(kept):
                        mu_out[to, j] = weights[j, k]
                    if telling:
                        loss *= 2.0 / (length * length) if length > 0.0 else 2.0
                        cost_out[to], changed_out[to] = far[k], np.int64(size[k])
                        source_out[to] = np.int64(own[k])
                        if own[k] == t:
                            status, reach = ALREADY, np.inf
                    reach = reach if reach > 1.0 else 1.0
                    status_out[to], gap_out[to], reach_out[to] = status, loss, reach
        leave_span(start, stop, places, pool, out)
