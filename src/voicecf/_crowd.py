"""The compiled kernel for many clusters: points whose box does not bind, in one pass over memory.

The row of a rival j in a target's cell is a difference, e_j - e_t, of vectors that each cluster
has once. So the products of a point with all e_j are its slacks for any target, and tell its
nearest centroid, too; and where the box does not bind, the step is a sum of rows, so what it does
to all slacks is a sum of few rows of one table, e e', whatever the number of coordinates is. Once
the products of a point are taken, no coordinates of rivals are looked at but of those few that
matter.

All rivals are looked at in single precision or less, in units in which the longest e has length 1,
and whatever is close is judged in double precision, as in `_cuts`. What is accepted satisfies the
conditions of `_kernel`, box included; all else is left to it. Same problem in steps as there.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import buffered, step
from voicecf._cuts import CHOSEN, SINGLE
from voicecf._kernel import (
    ALREADY,
    CLOSED,
    DUST,
    FLAT,
    NEWTON_STEPS,
    OPTIMAL,
    PUSHES,
    TIGHT,
    UNRESOLVED,
    cholesky_solve,
    is_sound,
    need_of,
    push,
    reach_in_box,
    room_for,
    sizes_of,
)
from voicecf._open import most_violated, multipliers_of, sort_span
from voicecf.crowd import STRETCH, TICKS

# Points in flight, so that what is read of the clusters serves both: see `products_of`.
LANES = 2
# Violated rows that are added at a time, if violated by at least this share of the worst.
CUTS = 6
CUT_SHARE = 0.5
ROUNDS = 32
# Turns in which the end of a step is looked for.
TURNS = 8
# What the table counts in: short numbers, for it is read again and again, and from afar.
TICK = 1.0 / TICKS
# Points further from the centroids, in units of the longest e, may overflow in single precision.
FURTHEST = 1e15
EPS = np.finfo(np.float64).eps


@step
def enter_block(points, rows, order, first, size, middle, scale, unit, block, spans):
    """Take points into single precision, around the middle of all centroids; their lengths."""
    for q in range(LANES):
        at = rows[order[first + q if first + q < size else size - 1]]
        s = 0.0
        for i in range(scale.size):
            t = unit * scale[i] * (points[at, i] - middle[i])
            s += t * t
            block[q, i] = t
        spans[q] = np.sqrt(s)


@step
def products_of(single, x, out):
    """Set out[q, j] = x[q] . e_j; coordinates come by fours, the last ones zero."""
    p, q = out[0], out[1]
    for j in range(out.shape[1]):
        p[j], q[j] = 0.0, 0.0
    for i in range(0, single.shape[0], 4):
        a0, a1 = x[0, i], x[0, i + 1]
        a2, a3 = x[0, i + 2], x[0, i + 3]
        b0, b1 = x[1, i], x[1, i + 1]
        b2, b3 = x[1, i + 2], x[1, i + 3]
        s0, s1 = single[i], single[i + 1]
        s2, s3 = single[i + 2], single[i + 3]
        for j in range(out.shape[1]):
            e0, e1 = s0[j], s1[j]
            e2, e3 = s2[j], s3[j]
            p[j] += (a0 * e0 + a1 * e1) + (a2 * e2 + a3 * e3)
            q[j] += (b0 * e0 + b1 * e1) + (b2 * e2 + b3 * e3)


@step
def peaks_of(bits, tops):
    """Set the largest positive entry of each stretch, or 0.

    Positive numbers are ordered as their bits are, and a maximum of integers vectorises.
    """
    for s in range(tops.size):
        top, start = np.int32(0), s * STRETCH
        for j in range(start, start + STRETCH):
            top = bits[j] if bits[j] > top else top
        tops[s] = top


@step
def highest(peaks):
    """Return the largest of all peaks."""
    most = peaks[0]
    for s in range(peaks.size):
        most = peaks[s] if peaks[s] > most else most
    return most


@step
def above(r, peaks, bar, found):
    """Collect the positions of entries above a bar, stretch by stretch; their number."""
    count, bar = np.int64(0), np.float32(bar)
    for s in range(peaks.size):
        if peaks[s] > bar:
            start = s * STRETCH
            for j in range(start, start + STRETCH):
                found[count] = j
                count += r[j] > bar
    return count


@step
def peaks_above(r, peaks, bar, most, found):
    """Collect where peaks above a bar are; how many, at most so many."""
    count, bar = np.int64(0), np.float32(bar)
    for s in range(peaks.size):
        if peaks[s] > bar and count < most:
            j = s * STRETCH
            while r[j] != peaks[s]:
                j += 1
            found[count] = j
            count += 1
    return count


@step
def nearest_of(point, centers, weights, scores, halves, slop, r, bits, peaks, tops, found):
    """Distance of the nearest centroid by the direct formula, of the next, and which it is.

    A score less half a squared length is larger by half of what a squared distance is smaller.
    """
    for j in range(r.size):
        r[j] = scores[j] - halves[j]
    peaks_of(bits, tops)
    best, second, label = np.inf, np.inf, np.int64(0)
    for q in range(above(r, peaks, highest(peaks) - slop, found)):
        j = found[q]
        s = 0.0
        for i in range(point.size):
            v = point[i] - centers[j, i]
            s += weights[i] * v * v
        if s < best:
            best, second, label = s, best, j
        elif s < second:
            second = s
    return best, second, label


@step
def add_row(
    j, c, target, alpha, centers, weights, pull, lengths, growth, eps, expanded,
    x, size, far, u, gram, b, base, norms, guard, ids,
):  # fmt: skip
    """Make the row of rival j row c of the choice, in double precision; guard as in `Cell`."""
    square, spread, s = 0.0, 0.0, 0.0
    for i in range(x.size):
        t = centers[j, i] - centers[target, i]
        a = pull[i] * t
        u[c, i] = a
        square += a * a
        spread += weights[i] * t * t
        s += a * x[i]
    inverse = 1.0 / np.sqrt(square)
    for i in range(x.size):
        u[c, i] *= inverse
    for p in range(c + 1):
        dot = 0.0
        for i in range(x.size):
            dot += u[c, i] * u[p, i]
        gram[c, p] = gram[p, c] = dot
    half, mine, theirs = 0.5 * spread * inverse, lengths[target], lengths[j]
    ids[c], norms[c], base[c] = j, inverse, alpha * half - s * inverse
    guard[0, c] = (1.0 - alpha) * half
    guard[1, c] = 0.5 * growth * (mine * mine + theirs * theirs) * inverse if expanded else 0.0
    guard[2, c] = 2.0 * eps + (growth * (mine + theirs) * inverse if expanded else 0.0)
    guard[3, c], guard[4, c] = growth * inverse, 32.0 * EPS
    near = min(far, 4.0 * alpha * alpha * half * half)
    need = 2.0 * need_of(guard, c, size, max(-base[c], 0.0), near)
    b[c, 0] = base[c] - max(need - guard[0, c], 0.0)


@step
def warm_multipliers(gram, b, mu, known, act, h, rhs):
    """Find the multipliers of the choice from those that its first `known` rows had; False if lost.

    All new rows come in at once; what turns negative goes, and then the most violated comes in.
    Rows that depend on each other must come in one by one: False.
    """
    active = np.int64(0)
    for p in range(b.shape[0]):
        mu[p] = 1.0 if p >= known else mu[p]
        if mu[p] > 0.0:
            act[active] = p
            active += 1
            if active > rhs.size:
                return False
    for _ in range(NEWTON_STEPS):
        for p in range(active):
            rhs[p] = -b[act[p], 0]
            for t in range(p + 1):
                h[p, t] = gram[act[p], act[t]]
        if not cholesky_solve(h, rhs, active):
            return False
        largest, kept = 0.0, np.int64(0)
        for p in range(active):
            largest = max(largest, rhs[p])
        for p in range(active):
            positive = rhs[p] > DUST * largest
            mu[act[p]] = rhs[p] if positive else 0.0
            act[kept] = act[p]
            kept += positive
        if kept == active:
            worst = most_violated(gram, b, 0, mu, act, active)
            if worst < 0 or active == rhs.size:
                return worst < 0
            act[active] = worst
            kept += 1
        active = kept
    return False


@step
def price_all(table, levels, scores, target, ids, shares, count, lift, r):
    """Set r = U (x + y) - h of all rivals, and `lift`, where y takes `shares` of rows of `ids`."""
    own, level, last = table[target], levels[target], max(count - 1, 0)
    total, here = np.float32(0.0), np.float32(0.0)
    for p in range(count):
        total += shares[p]
        here += shares[p] * np.float32(own[ids[p]])
    here -= total * np.float32(own[target])
    here += np.float32(lift) - scores[target]
    t0, t1 = table[ids[0]], table[ids[min(1, last)]]
    t2, t3 = table[ids[min(2, last)]], table[ids[min(3, last)]]
    s0, s1 = shares[0], shares[1]
    s2, s3 = shares[2], shares[3]
    for j in range(r.size):
        held = (scores[j] - level[j]) + (here + total * np.float32(own[j]))
        taken = s0 * np.float32(t0[j]) + s1 * np.float32(t1[j])
        r[j] = held - (taken + (s2 * np.float32(t2[j]) + s3 * np.float32(t3[j])))
    for p in range(4, count, 4):
        t0, t1 = table[ids[p]], table[ids[min(p + 1, last)]]
        t2, t3 = table[ids[min(p + 2, last)]], table[ids[min(p + 3, last)]]
        s0, s1 = shares[p], shares[p + 1]
        s2, s3 = shares[p + 2], shares[p + 3]
        for j in range(r.size):
            taken = s0 * np.float32(t0[j]) + s1 * np.float32(t1[j])
            r[j] -= taken + (s2 * np.float32(t2[j]) + s3 * np.float32(t3[j]))


@step
def shares_of(mu, norms, ids, count, among, shares):
    """Collect rows with a multiplier, and what the step takes of them; how many, and their sum.

    Shares are told for a table in ticks.
    """
    kept, total = np.int64(0), 0.0
    among[0] = 0
    for p in range(count):
        if mu[p] > 0.0:
            among[kept], shares[kept] = ids[p], mu[p] * norms[p] * TICK
            total += mu[p] * norms[p]
            kept += 1
    for p in range(kept, kept + 4):
        shares[p] = 0.0
    return kept, total


@step
def settle(u, b, mu, count, y, res, terms):
    """Set the step and U y - b; whether it is clear that the conditions hold, as in `_open`."""
    d, square, gap, settled = y.size, 0.0, 0.0, True
    for i in range(d):
        y[i], terms[i] = 0.0, 0.0
    for p in range(count):
        if mu[p] > 0.0:
            for i in range(d):
                t = mu[p] * u[p, i]
                y[i] -= t
                terms[i] += abs(t)
    for i in range(d):  # what moved by rounding alone did not move
        y[i] = y[i] if abs(y[i]) > DUST * terms[i] else 0.0
        square += y[i] * y[i]
    for p in range(count):
        s, most = 0.0, b[p]
        for i in range(d):
            s += u[p, i] * y[i]
        off = s - most
        res[p] = off
        gap -= mu[p] * off
        slip = TIGHT * (abs(most) + abs(s))
        settled = settled and off <= slip and (mu[p] == 0.0 or off >= -slip)
    return settled and abs(gap) <= CLOSED * 0.5 * square


@step
def keeps_in_box(y, point, scale, lo, hi, low, high):
    """Set the box in steps; whether point and step keep to it, with room for rounding."""
    keeps = True
    for i in range(y.size):
        low[i], high[i] = scale[i] * (lo[i] - point[i]), scale[i] * (hi[i] - point[i])
        t = y[i] + DUST * y[i]
        keeps = keeps and low[i] <= min(t, 0.0) and max(t, 0.0) <= high[i]
    return keeps


@step
def has_room(c, base, guard, u, y, size, step, square):
    """Whether row c of the choice holds, and is as far off as the model's rounding needs."""
    rise, terms = 0.0, 0.0
    for i in range(y.size):
        rise += u[c, i] * y[i]
        terms += abs(u[c, i] * y[i])
    slack = base[c] - rise
    need = need_of(guard, c, size, step, square)
    return -slack <= TIGHT * (abs(base[c]) + terms) and guard[0, c] + slack >= need


@step
def room_of_all(size, step, far, unit, growth, eps, expanded, longest):
    """Most room that the row of any rival may need, in the units of the table: see `Cell`."""
    grown = growth * longest if expanded else 0.0
    farther = np.sqrt(far) + step
    need = room_for(
        grown * longest, 4.0 * eps / unit + 2.0 * grown, growth, 64.0 * EPS / unit,
        size + step, step, farther * farther,
    )  # fmt: skip
    return unit * unit * need


@step
def reach_of_row(centers, weights, pull, j, target, alpha, x, y, flat):
    """Largest multiple of the step that keeps to the row of rival j."""
    spread, here, rise, square = 0.0, 0.0, 0.0, 0.0
    for i in range(x.size):
        t = centers[j, i] - centers[target, i]
        a = pull[i] * t
        spread += weights[i] * t * t
        here += a * x[i]
        rise += a * y[i]
        square += a * a
    return (0.5 * alpha * spread - here) / rise if rise > flat * np.sqrt(square) else np.inf


@step
def overshoot(score, level, here, lift, error, reach, r, t):
    """Set by how much each row would be overshot so far along the step, at most."""
    slant, error = np.float32(min(reach, 1e6)), np.float32(error)
    here, above_zero = here - error, np.float32(lift) - error
    for j in range(r.size):
        rest = (score[j] - here) - level[j]
        t[j] = rest + slant * ((r[j] - above_zero) - (rest - error))


@step
def reach_of_all(
    centers, weights, pull, target, alpha, x, y, length, reach, score, level, lift, error,
    r, t, bits, peaks, tops, found,
):  # fmt: skip
    """Largest multiple of the step that keeps to all rows, at most `reach`; close calls in double.

    The row that is overshot most binds before: a few turns, and hardly any is overshot.
    """
    for _ in range(TURNS):
        overshoot(score, level, score[target], lift, error, reach, r, t)
        peaks_of(bits, tops)
        if peaks_above(t, peaks, 0.9999 * highest(peaks), 1, found) == 0:
            break
        one = reach_of_row(centers, weights, pull, found[0], target, alpha, x, y, FLAT * length)
        if not one < reach:
            break
        reach = one
    for p in range(above(t, peaks, 0.0, found)):
        one = reach_of_row(centers, weights, pull, found[p], target, alpha, x, y, FLAT * length)
        reach = min(reach, one)
    return max(reach, 1.0)


@step
def leave_point(point, y, scale, lo, hi, weights, least, out):
    """Turn a step into a point; its cost in the weights, and how many coordinates changed."""
    cost, changed = 0.0, np.int64(0)
    for i in range(y.size):
        t = point[i] + y[i] / scale[i] if y[i] != 0.0 else point[i]
        out[i] = min(max(t, lo[i]), hi[i])
    for i in range(least.size):
        t = out[i] - point[i]
        cost += weights[i] * t * t
        changed += abs(t) > least[i]
    return cost, changed


@step
def enter_point(point, center, scale, weights, x):
    """Turn a point into steps from a centroid; its sizes in weights and metric, its distance."""
    weighty, size, far = 0.0, 0.0, 0.0
    for i in range(x.size):
        t = scale[i] * point[i]
        x[i] = scale[i] * (point[i] - center[i])
        weighty += weights[i] * point[i] * point[i]
        size += t * t
        far += x[i] * x[i]
    return np.sqrt(weighty), np.sqrt(size), far


def buffers_of(
    begin, end, rows, points, targets, lo, hi, out, gap_out, reach_out, status_out,
    centers, weights, alphas, lengths, middle, pull, scale, single, *_,
):  # fmt: skip
    """Make room for a block, for rivals and stretches, a choice of rows, and a point."""
    (k, d), (wide, long) = centers.shape, single.shape
    few = min(2 * d + 16, k - 1)
    singles = np.empty((4, long + few + 4), np.float32)
    whole = np.empty((7, end - begin + k + few + d + 1), np.int64)
    whole[4, :few] = np.arange(few)
    asked = np.empty(few)
    return (
        np.zeros((LANES, wide), np.float32), np.empty((LANES, long), np.float32),
        singles, singles.view(np.int32), whole, np.empty((7, d + LANES)),
        np.empty((few + 9, few)), asked, asked.reshape(few, 1),
        np.empty((few, d)), np.empty((d, d)),
    )  # fmt: skip


@buffered(buffers_of)
def crowd_chunk(
    begin, end, rows, points, targets, lo, hi, out, gap_out, reach_out, status_out,
    centers, weights, alphas, lengths, middle, pull, scale, single, table, levels, halves, unit,
    growth, eps, expanded, least, source_out, cost_out, changed_out,
    block, scores, singles, as_bits, whole, lines, choice, b, column, u, h,
):  # fmt: skip
    """Answer problems begin to end, each a point with its target.

    Where `source_out` has room, points are also assigned and measured, and the gap is relative to
    half the energy; -1 as source says that the model has to be asked.
    """
    (k, d), long, few = centers.shape, single.shape[1], u.shape[0]
    stretches = long // STRETCH
    r, bits = singles[0, :long], as_bits[0, :long]
    t, bits_of_t = singles[1, :long], as_bits[1, :long]
    peaks, tops = singles[2, :stretches], as_bits[2, :stretches]
    shares, found, ids = singles[3], whole[0], whole[1]
    among, act, cut = whole[2], whole[3], whole[4]
    order, starts = whole[5], whole[6]
    x, y = lines[0, :d], lines[1, :d]
    low, high = lines[2, :d], lines[3, :d]
    free, rhs, spans = lines[4, :d], lines[5, :d], lines[6]
    base, mu = choice[0], choice[1]
    res, norms = choice[2], choice[3]
    guard, gram = choice[4:9], choice[9:]
    telling, longest = source_out.size > 0, 0.0
    for j in range(k):
        longest = max(longest, lengths[j])
    sort_span(begin, end, targets, k, order, starts)  # what a target needs stays near
    for first in range(0, end - begin, LANES):
        enter_block(points, rows, order, first, end - begin, middle, scale, unit, block, spans)
        products_of(single, block, scores)
        for q in range(min(LANES, end - begin - first)):
            at = order[first + q]
            target, point, score = targets[at], points[rows[at]], scores[q]
            status_out[at] = UNRESOLVED
            if telling:
                source_out[at] = -1
            if not spans[q] < FURTHEST:
                continue
            weighty, size, far = enter_point(point, centers[target], scale, weights, x)
            slop = 2.0 * (d + 8) * SINGLE * (spans[q] + 1.0)
            best, second, label = nearest_of(
                point, centers, weights, score, halves, 2.0 * slop, r, bits, peaks, tops, found
            )
            second = min(second, best + 2.0 * slop / (unit * unit))  # of those not looked at
            doubt = best + second + ((weighty + longest) ** 2 if expanded else 0.0)
            if telling and second - best > growth * doubt:
                source_out[at] = label
                if label == target:
                    status_out[at], gap_out[at], reach_out[at] = ALREADY, 0.0, np.inf
                    cost_out[at], changed_out[at] = 0.0, 0
                    for i in range(d):
                        out[at, i] = point[i]
                    continue
            # At the point itself, the row of its own cluster is the worst.
            found[0], added, checking = label, np.int64(label != target), False
            count, known, pushes = np.int64(0), np.int64(0), 0
            alpha, lift, error = alphas[target], 0.0, 0.0
            large, step, square = 0.0, 0.0, 0.0
            for _ in range(ROUNDS):
                if count + added > few:
                    break
                for p in range(added):
                    add_row(
                        found[p], count, target, alpha, centers, weights, pull, lengths, growth,
                        eps, expanded, x, size, far, u, gram, column, base, norms, guard, ids,
                    )  # fmt: skip
                    held = checking and has_room(count, base, guard, u, y, large, step, square)
                    count += not held
                if checking and count == known:
                    if not push(b, base, res, cut, count, large, step, square, guard):
                        kept_in = keeps_in_box(y, point, scale, lo, hi, low, high)
                        if kept_in and is_sound(large, step, square):
                            status_out[at] = OPTIMAL
                        break
                    pushes += 1
                    if pushes == PUSHES:
                        break
                some = column[:count]
                found_all = warm_multipliers(gram, some, mu, known, act, h, rhs)
                if not found_all and multipliers_of(gram, some, 0, mu, act, h, rhs) < 0:
                    break
                known = count
                kept, total = shares_of(mu, norms, ids, count, among, shares)
                error = slop + 4.0 * ((kept + 8) * SINGLE + TICK) * total
                step = 2.0 * total / unit
                room = room_of_all(size, step, far, unit, growth, eps, expanded, longest)
                lift = error + room
                price_all(table, levels, score, target, among, shares, kept, lift, r)
                for p in range(count):
                    r[ids[p]] = CHOSEN
                peaks_of(bits, tops)
                worst = highest(peaks) - lift
                checking = worst <= error
                if not checking:
                    added = peaks_above(r, peaks, lift + CUT_SHARE * worst, CUTS, found)
                    continue
                if not settle(u, b, mu, count, y, res, free):
                    break
                large, step, square = sizes_of(y, x, point, scale)
                added = above(r, peaks, 0.0, found)
            if status_out[at] == OPTIMAL:
                gap, reach = 0.0, reach_in_box(y, low, high)
                for p in range(count):
                    gap -= mu[p] * res[p]
                    rise = res[p] + b[p]
                    if rise > FLAT * step and base[p] < reach * rise:
                        reach = base[p] / rise
                if telling:
                    gap *= 2.0 / (step * step) if step > 0.0 else 2.0
                gap_out[at] = gap
                reach_out[at] = reach_of_all(
                    centers, weights, pull, target, alpha, x, y, step, reach, score,
                    levels[target], lift, error, r, t, bits_of_t, peaks, tops, found,
                )  # fmt: skip
                cost, changed = leave_point(point, y, scale, lo, hi, weights, least, out[at])
                if telling:
                    cost_out[at], changed_out[at] = cost, changed
