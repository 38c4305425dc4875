"""The compiled kernel, first phase: Newton on the multipliers of the rows, box implicit.

Everything here is in *steps*: for a point a, a region {G (z - o) <= h, lo <= z <= hi} and a metric
q, the step y = sqrt(q) (z - a) solves

    min 1/2 |y|^2   with   U y <= b,   low <= y <= high,

where U has unit rows (so a slack is a distance in the metric) and b is the slack of a itself. In
steps every number is relative to the move that is asked for, so an answer close to its row is as
exact as one far away.

For multipliers mu of the rows, y(mu) = clip(-U' mu, low, high) minimises the Lagrangian, and
-mu . (U y - b) is the duality gap. Newton adds the most violated row at a time and ends in a
handful of steps, or gives the point up for `_active_set`; what it accepts satisfies the KKT
conditions. Regions of many rows are solved by `_cuts`, some rows at a time, with the same steps.

Buffers are plain arguments, not a record: numba passes a record of arrays slowly.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import buffered, step
from voicecf.tolerance import TOLERANCE

OPTIMAL, INFEASIBLE, UNRESOLVED, ALREADY = 0, 1, 2, 3

TIGHT, CLOSED, SINGULAR = TOLERANCE.tight, TOLERANCE.closed, TOLERANCE.singular
LONG = TOLERANCE.long
NEWTON_STEPS = 24
# Beyond this no answer is one: its squares overflow.
HUGE = 1e150
# A row that rises by less than this share of the step is parallel to it.
FLAT = 1e-14
# Of a coordinate's terms: what moved by less moved by rounding alone.
DUST = 16 * np.finfo(np.float64).eps
# How often an answer is pushed further in before its cell is called thinner than rounding.
PUSHES = 6


@step
def step_of(u, mu, cut, size, low, high, y):
    """Set y = clip(-U' mu, low, high), the minimiser of the Lagrangian; its squared length."""
    d = y.size
    for i in range(d):
        y[i] = 0.0
    for p in range(size):
        weight = mu[cut[p]]
        if weight != 0.0:
            for i in range(d):
                y[i] -= weight * u[cut[p], i]
    square = 0.0
    for i in range(d):
        y[i] = min(max(y[i], low[i]), high[i])
        square += y[i] * y[i]
    return square


@step
def slip_of(u, j, b, y):
    """How far row j may be off: rounding of its own terms."""
    terms = abs(b[j])
    for i in range(y.size):
        terms += abs(u[j, i] * y[i])
    return TIGHT * terms


@step
def price(u, b, mu, cut, size, y, r, length):
    """Set r = U y - b; the most violated row, whether active rows are tight, the duality gap."""
    d = y.size
    worst, violation, settled, gap = -1, 0.0, True, 0.0
    for p in range(size):
        j = cut[p]
        s = 0.0
        for i in range(d):
            s += u[j, i] * y[i]
        s -= b[j]
        r[j] = s
        most = TIGHT * (abs(b[j]) + length)  # rows have length 1, so no terms are larger
        if mu[j] > 0.0:
            gap -= mu[j] * s
            least = TIGHT * (abs(b[j]) + abs(s + b[j]))  # nor are they smaller than their sum
            tight = abs(s) <= least or (abs(s) <= most and abs(s) <= slip_of(u, j, b, y))
            settled = settled and tight
        elif s > violation and (s > most or s > slip_of(u, j, b, y)):
            worst, violation = j, s
    return worst, settled, gap


@step
def cholesky_solve(h, rhs, size):
    """Solve h x = rhs in place (lower triangle); False where h is singular to working accuracy.

    h = L D L': below the diagonal L D is left, above it L', on it one over D. No square roots,
    for which each column would have to wait.
    """
    for j in range(size):
        diagonal = h[j, j]
        s = diagonal
        for t in range(j):
            below = h[j, t]
            unit = below * h[t, t]
            h[t, j] = unit
            s -= below * unit
        if not s > SINGULAR * diagonal:
            return False
        h[j, j] = 1.0 / s
        for i in range(j + 1, size):
            s = h[i, j]
            for t in range(j):
                s -= h[i, t] * h[t, j]
            h[i, j] = s
    for j in range(1, size):
        s = rhs[j]
        for t in range(j):
            s -= h[t, j] * rhs[t]
        rhs[j] = s
    for j in range(size - 1, -1, -1):
        s = rhs[j] * h[j, j]
        for t in range(j + 1, size):
            s -= h[j, t] * rhs[t]
        rhs[j] = s
    return True


@step
def newton_step(u, low, high, mu, y, r, act, size, h, rhs, free):
    """Move the multipliers of `act` so that these rows are tight on the free coordinates.

    Before the first step all multipliers are 0, and a coordinate that starts on its bound is free
    if the row takes it inwards.
    """
    d = u.shape[1]
    begins = size == 1 and mu[act[0]] == 0.0
    for p in range(size):
        j = act[p]
        rhs[p] = r[j]
        for i in range(d):  # `&` rather than `and`: no branches, so it vectorises
            inner = (low[i] < y[i]) & (y[i] < high[i])
            free[i] = u[j, i] if inner else 0.0
        for i in range(d if begins else 0):
            inwards = high[i] > 0.0 if u[j, i] < 0.0 else low[i] < 0.0
            free[i] = u[j, i] if (y[i] == 0.0) & inwards else free[i]
        for t in range(p + 1):
            s = 0.0
            for i in range(d):
                s += free[i] * u[act[t], i]
            h[p, t] = s
    if not cholesky_solve(h, rhs, size):
        return False
    for p in range(size):
        mu[act[p]] = max(mu[act[p]] + rhs[p], 0.0)
    return True


@step
def drop_dust(mu, cut, size):
    """Set multipliers to zero that are rounding next to the largest; whether there were any.

    They would move what should stay. A row that does need so little comes back.
    """
    largest, some = 0.0, False
    for p in range(size):
        largest = max(largest, mu[cut[p]])
    for p in range(size):
        if 0.0 < mu[cut[p]] <= DUST * largest:
            mu[cut[p]] = 0.0
            some = True
    return some


@step
def newton(u, b, low, high, mu, cut, size, y, r, act, h, rhs, free):
    """Newton on the rows in `cut`, from their multipliers; True where the KKT conditions hold."""
    clean = False
    for _ in range(NEWTON_STEPS):
        square = step_of(u, mu, cut, size, low, high, y)
        worst, settled, gap = price(u, b, mu, cut, size, y, r, np.sqrt(square))
        if worst < 0 and settled:
            if clean or not drop_dust(mu, cut, size):
                return abs(gap) <= CLOSED * 0.5 * square
            clean = True
            continue
        active = np.int64(0)  # no literal: a callee would compile for it, too
        for p in range(size):
            j = cut[p]
            if mu[j] > 0.0 or j == worst:
                if active == rhs.size:
                    return False
                act[active] = j
                active += 1
        if not newton_step(u, low, high, mu, y, r, act, active, h, rhs, free):
            return False
    return False


@step
def snap(u, b, low, high, mu, cut, size, y, r, terms):
    """Take back what is rounding alone: of a coordinate that stays, or that stops at its bound.

    A row of whole numbers, say of categories, would else leave them off by the last digit.
    """
    moved, close = False, 0
    for i in range(y.size):
        terms[i] = 0.0
    for p in range(size):
        weight = DUST * mu[cut[p]]
        if weight != 0.0:
            for i in range(y.size):
                terms[i] += abs(weight * u[cut[p], i])
    for i in range(y.size):
        off = min(abs(y[i]), min(abs(y[i] - low[i]), abs(y[i] - high[i])))
        close += off <= terms[i]
    for i in range(y.size if close > 0 else 0):
        for end in (0.0, low[i], high[i]):
            if y[i] != end and low[i] <= end <= high[i] and abs(y[i] - end) <= terms[i]:
                y[i] = end
                moved = True
    if moved:
        price(u, b, mu, cut, size, y, r, 0.0)


@step
def slack_of(u, j, offset, x):
    """Slack of row j at x, to the last digit that the sum allows."""
    s = 0.0
    for i in range(x.size):
        s += u[j, i] * x[i]
    return offset[j] - s


@step
def enter(point, low_of, high_of, origin, scale, x, low, high):
    """Turn a point and its box into steps; False where the box itself is empty."""
    some = True
    for i in range(x.size):
        x[i] = scale[i] * (point[i] - origin[i])
        low[i] = scale[i] * (low_of[i] - point[i])
        high[i] = scale[i] * (high_of[i] - point[i])
        some &= (low_of[i] <= high_of[i]) & (low_of[i] < np.inf) & (high_of[i] > -np.inf)
    return some


@step
def sizes_of(y, x, point, scale):
    """Sizes, in the metric, of answer and step, and the squared distance from the origin.

    A long step is off by its own rounding, however small the answer is that it leads to.
    """
    size, step, square = 0.0, 0.0, 0.0
    for i in range(y.size):
        t = scale[i] * point[i] + y[i]
        size += t * t
        step += y[i] * y[i]
        t = x[i] + y[i]
        square += t * t
    return np.sqrt(size), np.sqrt(step), square


@step
def is_sound(size, step, square):
    """Whether an answer can be squared, and is no rest of a step so long that it cancels."""
    return size < HUGE and step * step <= LONG * LONG * square


@step
def room_for(constant, of_size, of_square, of_step, size, step, square):
    """Slack that makes up for the model's rounding, from the four parts of a row's guard."""
    return constant + of_size * size + of_square * square + of_step * step


@step
def need_of(guard, j, size, step, square):
    """Slack that row j needs to its uncontracted boundary, so that the model's rounding agrees."""
    return room_for(guard[1, j], guard[2, j], guard[3, j], guard[4, j], size, step, square)


@step
def keep_off(b, base, offset, x, point, scale, guard):
    """Ask at once for the room that an answer at a row is likely to need; `push` sees to the rest.

    An answer is about as large as the point, as far from it as the worst row, and about half way
    between two centroids, an offset away from the one.
    """
    size, far, step = 0.0, 0.0, 0.0
    for i in range(x.size):
        t = scale[i] * point[i]
        size += t * t
        far += x[i] * x[i]
    for j in range(b.size):
        step = max(step, -b[j])
    for j in range(b.size):
        square = min(far, 4.0 * offset[j] * offset[j])
        need = 2.0 * need_of(guard, j, np.sqrt(size), step, square)
        if need > guard[0, j]:
            b[j] = base[j] - (need - guard[0, j])


@step
def push(b, base, r, cut, count, size, step, square, guard):
    """Ask for more room where the model's own arithmetic could still see a rival; True if it did.

    The uncontracted boundary is guard[0, j] behind the row's own slack `base`.
    """
    pushed = False
    for p in range(count):
        j = cut[p]
        need = need_of(guard, j, size, step, square)
        missing = need - (guard[0, j] + base[j] - b[j] - r[j])
        if need > 0.0 and missing > 0.0:
            b[j] -= missing + need
            pushed = True
    return pushed


@step
def reach_in_box(y, low, high):
    """Largest multiple of the step that keeps to the box."""
    reach = np.inf
    for i in range(y.size):  # a product tells whether a quotient is needed: few are
        side = high[i] if y[i] > 0.0 else -low[i]
        if side < reach * abs(y[i]):
            reach = side / abs(y[i])
    return reach


@step
def reach_of(b, r, y, low, high):
    """Largest multiple of the step that keeps to the rows and the box (rho), at least 1."""
    reach, square = reach_in_box(y, low, high), 0.0
    for i in range(y.size):
        square += y[i] * y[i]
    for j in range(b.size):
        rise = r[j] + b[j]
        if rise > FLAT * np.sqrt(square) and b[j] < reach * rise:
            reach = b[j] / rise
    return max(reach, 1.0)


@step
def leave(point, low_of, high_of, scale, y, low, high, out):
    """Turn a step into a point: unmoved coordinates keep their bits, bounds are hit exactly."""
    for i in range(y.size):
        to = point[i] + y[i] / scale[i] if y[i] != 0.0 else point[i]
        to = low_of[i] if (to < low_of[i]) | ((y[i] <= low[i]) & (y[i] != 0.0)) else to
        out[i] = high_of[i] if (to > high_of[i]) | ((y[i] >= high[i]) & (y[i] != 0.0)) else to


def buffers_of(start, stop, rows, places, points, lo, hi, offset, origin, u, *_):
    """Make room for what a point needs: numbers a coordinate, numbers a row, rows that matter."""
    m, d = u.shape
    rank = min(m, d)
    cut = np.array([np.arange(m), np.empty(m, np.int64)])
    return np.empty((5, d)), np.empty((4, m)), np.empty((rank + 1, rank)), cut


@buffered(buffers_of)
def project_chunk(
    start, stop, rows, places, points, lo, hi, offset, origin, u, scale, guard,
    out, mu_out, gap_out, reach_out, status_out, lines, columns, h, chosen,
):  # fmt: skip
    """Project problems start to stop; problem p is point rows[p], its answer is places[p]."""
    m = u.shape[0]
    x, low, high = lines[0], lines[1], lines[2]
    y, free = lines[3], lines[4]
    b, base = columns[0], columns[1]
    mu, r = columns[2], columns[3]
    cut, act, rhs = chosen[0], chosen[1], h[h.shape[1]]
    for p in range(start, stop):
        at, to = rows[p], places[p]
        low_of, high_of = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
        status_out[to] = UNRESOLVED
        if not enter(points[at], low_of, high_of, origin, scale, x, low, high):
            continue
        for j in range(m):
            base[j] = slack_of(u, j, offset, x)
            mu[j], b[j] = 0.0, base[j]
        keep_off(b, base, offset, x, points[at], scale, guard)
        for _ in range(PUSHES):
            if not newton(u, b, low, high, mu, cut, m, y, r, act, h, rhs, free):
                break
            snap(u, b, low, high, mu, cut, m, y, r, free)
            size, step, square = sizes_of(y, x, points[at], scale)
            if not push(b, base, r, cut, m, size, step, square, guard):
                status_out[to] = OPTIMAL if is_sound(size, step, square) else UNRESOLVED
                break
        if status_out[to] != OPTIMAL:
            continue
        gap = 0.0
        for j in range(m):
            gap -= mu[j] * r[j]
        for j in range(mu_out.shape[1]):
            mu_out[to, j] = mu[j]
        gap_out[to] = gap
        reach_out[to] = reach_of(b, r, y, low, high)
        leave(points[at], low_of, high_of, scale, y, low, high, out[to])
