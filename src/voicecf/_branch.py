"""The compiled search: the best choice of whole numbers, levels and few columns, box by box.

The best choice of a row is, in the steps of `_kernel`,

    min 1/2 |y|^2   with   U y <= b,   y_c a choice of column c,   at most so many columns moved.

Two bounds cut a node off. The projection onto the hull of its choices is one: a box, so the
kernel's. Its multipliers start the other, which knows that choices are discrete: the Lagrangian
falls apart into columns, so its least value over the true choices is a sum of least values, one a
column, of which only so many may be taken. What cannot be part of a better answer is struck out;
what remains open is divided in two, depth first, the likelier half first. See `_choices` for the
layout.
"""

from __future__ import annotations

import numpy as np

from voicecf._active_set import settle
from voicecf._choices import (
    ANY,
    CLOSED,
    COUNT,
    COUNTS,
    FIRST,
    FREEDOM,
    GRID,
    KEEPS,
    LEVEL,
    LEVELS,
    LOOSE,
    MOVES,
    NUMBER,
    OWN,
    START,
    WIDTH,
    changed,
    climb,
    close_counts,
    disproved,
    grid_near,
    hull_of,
    open_choices,
    option_step,
    survey,
    trim,
)
from voicecf._compile import compiled, part, step
from voicecf._kernel import (
    INFEASIBLE,
    OPTIMAL,
    PUSHES,
    TIGHT,
    UNRESOLVED,
    keep_off,
    newton,
    push,
    sizes_of,
    slack_of,
)

# How a search can end beyond what a projection can: with an answer, but cut short.
STOPPED = 5
# Steps of the ascent on the multipliers, at the root and below.
CLIMB, CLIMB_BELOW = 40, 10


@step
def half_square(y):
    """Half the squared length of a step."""
    s = 0.0
    for i in range(y.size):
        s += y[i] * y[i]
    return 0.5 * s


@step
def broken(u, b, low, high):
    """Tell whether some row is broken all over a box, beyond the rounding of its own terms."""
    for j in range(b.size):
        s, terms = -b[j], abs(b[j])
        for i in range(low.size):
            if u[j, i] != 0.0:
                t = u[j, i] * (low[i] if u[j, i] > 0.0 else high[i])
                s += t
                terms += abs(t)
        if s > TIGHT * terms:
            return True
    return False


@part
def relax(u, b, low, high, turns, mu, y, r, cut, act, h, rhs, free, tol, work, state, frame, tri):
    """Project onto a box of choices: Newton from the multipliers at hand, afresh, then safely."""
    if broken(u, b, low, high):
        return INFEASIBLE
    for turn in range(turns):
        if turn > 0:
            mu[:] = 0.0
        if newton(u, b, low, high, mu, cut, b.size, y, r, act, h, rhs, free):
            return OPTIMAL
    if turns < 2:
        return UNRESOLVED
    return settle(u, b, tol, low, high, mu, y, work, state, frame, tri)


@step
def box_of_picks(pick, columns, grids, options, bounds, low, high):
    """Fix every column at its picked option; only picked numbers stay free."""
    for c in range(pick.size):
        for e in range(columns[c, WIDTH]):
            i = columns[c, FIRST] + e
            if pick[c] == NUMBER:
                low[i], high[i] = bounds[0, i], bounds[1, i]
            else:
                low[i] = 0.0
                if pick[c] != OWN:
                    low[i] = option_step(c, pick[c], e, columns, grids, options)
                high[i] = low[i]


@step
def keep(y, pick, best_y, best_pick):
    """Keep an answer as the best; its energy."""
    for i in range(y.size):
        best_y[i] = y[i]
    for c in range(pick.size):
        best_pick[c] = pick[c]
    return half_square(y)


@step
def middle(low, high, y):
    """Set a step to the middle of a box, as far as it has one."""
    for i in range(y.size):
        y[i] = 0.5 * (low[i] + high[i])
        if not abs(y[i]) < np.inf:
            y[i] = 0.0


@step
def heaviest(y, columns, node, value):
    """Find the column that moves but does not count yet with the largest gain; -1 for none."""
    chosen = np.int64(-1)
    for c in range(value.size):
        undecided = node[c] & MOVES and not node[c] & COUNTS
        if undecided and changed(c, y, columns) and (chosen < 0 or value[c] < value[chosen]):
            chosen = np.int64(c)
    return chosen


@step
def first_open(columns, node):
    """Find the first column with a choice; -1 for none."""
    for c in range(columns.shape[0]):
        if open_choices(c, columns, node) > 1:
            return np.int64(c)
    return np.int64(-1)


@step
def split_grid(c, y, near, columns, grids, options, node, other):
    """Divide a grid at the step y: the likelier part stays in `node`, the rest goes to `other`."""
    many = columns.shape[0]
    least, most, flags = node[many + c], node[2 * many + c], node[c]
    last = grid_near(c, y, least, most, columns, grids, options)
    if option_step(c, last, 0, columns, grids, options) > y:
        last -= 1
    own_below = y >= 0.0
    likelier_below = own_below if near == OWN else near <= last
    for below in range(2):
        begin, end = (least, last) if below else (last + 1, most)
        mark = flags & KEEPS if own_below == (below == 1) else 0
        counts = COUNTS if flags & COUNTS or not mark else 0
        mark |= (MOVES | counts) if begin <= end else 0
        if likelier_below == (below == 1):
            node[c], node[many + c], node[2 * many + c] = mark, begin, end
        else:
            other[c], other[many + c], other[2 * many + c] = mark, begin, end


@step
def split_levels(c, near, columns, node, other):
    """Divide a block: the likelier level, or staying, in `node`; the rest in `other`."""
    begin = 3 * columns.shape[0] + columns[c, LEVEL]
    if near == OWN:
        node[c], other[c] = KEEPS, MOVES | COUNTS
        return
    some = np.int64(0)
    for k in range(columns[c, COUNT]):
        if k == near:
            other[begin + k] = 0
        else:
            node[begin + k] = 0
        some += other[begin + k]
    node[c] = MOVES | COUNTS
    if some == 0:
        other[c] &= KEEPS


@step
def divide(c, counting, y, near, columns, grids, options, node, other):
    """Divide a node in two at column c; `other` becomes its second half."""
    for t in range(node.size):
        other[t] = node[t]
    if counting:
        node[c] |= COUNTS
        other[c] = KEEPS
    elif columns[c, FREEDOM] == GRID:
        split_grid(c, y[columns[c, FIRST]], near, columns, grids, options, node, other)
    else:
        split_levels(c, near, columns, node, other)


@step
def store(at, node, mu, bound, nodes, prices):
    """Put a node on the stack."""
    for t in range(node.size):
        nodes[at, t] = node[t]
    for j in range(mu.size):
        prices[at, j] = mu[j]
    prices[at, mu.size] = bound


@step
def fetch(at, node, mu, nodes, prices):
    """Take a node from the stack; its bound."""
    for t in range(node.size):
        node[t] = nodes[at, t]
    for j in range(mu.size):
        mu[j] = prices[at, j]
    return prices[at, mu.size]


@step
def least_bound(top, best, unsure, prices):
    """Return what no answer can be below."""
    least = min(best, unsure)
    for t in range(top):
        least = min(least, prices[t, prices.shape[1] - 1])
    return least


@part
def search(
    u, b, tol, best, changes, limit, columns, grids, options, bounds, root, best_y,
    best_pick,
):  # fmt: skip
    """Search a row's choices; status, the best energy, what none is below, number of nodes."""
    (m, d), many = u.shape, columns.shape[0]
    rank = min(m, d)
    low, high, y, guess, g = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty(d)
    free, mu, trial, r, cut = np.empty(d), np.empty(m), np.empty(m), np.empty(m), np.arange(m)
    act, h, rhs = np.empty(rank, np.int64), np.empty((rank, rank)), np.empty(rank)
    work, state = np.empty(rank, np.int64), np.empty(d, np.int8)
    frame, tri = np.empty((rank + 3, d)), np.empty((rank + 2, rank))
    value, pick, taken = np.empty(many), np.empty(many, np.int64), np.empty(many, np.int64)
    near, node, other = np.empty(many, np.int64), np.empty_like(root), np.empty_like(root)
    nodes, prices = np.empty((64, root.size), np.int64), np.zeros((64, m + 1))
    store(0, root, prices[0, :m], 0.0, nodes, prices)
    top, count, found, unsure = 1, 0, False, np.inf
    while top > 0 and count < limit:
        top -= 1
        if prices[top, m] >= best * (1.0 - CLOSED):
            continue
        count += 1
        bound = fetch(top, node, mu, nodes, prices)
        left = close_counts(changes, columns, node)
        if left < 0 or not hull_of(columns, grids, options, bounds, node, low, high):
            continue
        # One call for the hull and for two guesses, so that it is compiled once.
        status, moved, total, worst, done = OPTIMAL, np.int64(0), 0.0, 0.0, False
        for turn in range(3):
            if turn == 1 and (status != OPTIMAL or moved > changes):
                continue
            if turn > 0:
                for c in range(many):
                    near[c] = pick[c] if turn == 2 else near[c]
                box_of_picks(near, columns, grids, options, bounds, low, high)
                trial[:] = 0.0
            ended = relax(
                u, b, low, high, 1 if turn else 2, trial if turn else mu, guess, r, cut, act, h,
                rhs, free, tol, work, state, frame, tri,
            )  # fmt: skip
            if turn > 0:
                if ended == OPTIMAL and half_square(guess) < best:
                    best, found = keep(guess, near, best_y, best_pick), True
                continue
            status, y[:] = ended, guess
            if status == OPTIMAL:
                bound = max(bound, half_square(y))
                furthest, moved = survey(y, columns, grids, options, node, near)
                if bound < best and furthest < 0 and moved <= changes:
                    best, found = keep(y, near, best_y, best_pick), True
            else:
                middle(low, high, y)
                mu[:] = 0.0
            done = status == INFEASIBLE or bound >= best * (1.0 - CLOSED)
            done = done or disproved(
                u, b, mu, trial, left, columns, grids, options, bounds, node, g, value, pick, taken
            )
            if done:
                break
            total, worst = climb(
                u, b, mu, trial, r, CLIMB if count == 1 else CLIMB_BELOW, best, left, columns,
                grids, options, bounds, node, g, value, pick, taken,
            )  # fmt: skip
            bound = max(bound, total)
            if bound >= best * (1.0 - CLOSED):
                break
        if done or bound >= best * (1.0 - CLOSED):
            continue
        if best < np.inf and not trim(
            total, worst, best, columns, grids, options, node, g, value, taken
        ):
            continue
        furthest, moved = survey(y, columns, grids, options, node, near)
        counting = moved > changes
        c = heaviest(y, columns, node, value) if counting else furthest
        if status != OPTIMAL:
            counting, c = False, first_open(columns, node)
            if c < 0:
                unsure = min(unsure, bound)
                continue
        if top + 2 > nodes.shape[0]:
            nodes, prices = np.concatenate((nodes, nodes)), np.concatenate((prices, prices))
        # What was struck out may have decided the column: the node is then looked at once more.
        if c >= 0 and (counting or open_choices(c, columns, node) > 1):
            divide(c, counting, y, near[c], columns, grids, options, node, other)
            store(top, other, mu, bound, nodes, prices)
            top += 1
        store(top, node, mu, bound, nodes, prices)
        top += 1
    stopped = top > 0 or unsure < best
    status = (STOPPED if stopped else OPTIMAL) if found else (UNRESOLVED if stopped else INFEASIBLE)
    return status, best, least_bound(top, best, unsure, prices), count


@step
def root_of(
    at,
    a,
    scale,
    stay,
    least,
    most,
    allowed,
    lo,
    hi,
    columns,
    listed,
    pitches,
    grids,
    options,
    bounds,
    root,
):
    """Set what one row may choose, in steps."""
    many = columns.shape[0]
    for t in range(allowed.shape[1]):
        root[3 * many + t] = allowed[at if allowed.shape[0] > 1 else 0, t]
    for c in range(many):
        first, width, start = columns[c, FIRST], columns[c, WIDTH], columns[c, START]
        low, high = lo[at if lo.shape[0] > 1 else 0], hi[at if hi.shape[0] > 1 else 0]
        some = False
        for i in range(first, first + width):
            bounds[0, i], bounds[1, i] = scale[i] * (low[i] - a[i]), scale[i] * (high[i] - a[i])
        root[many + c] = least[at if least.shape[0] > 1 else 0, c]
        root[2 * many + c] = most[at if most.shape[0] > 1 else 0, c]
        grids[c, 0], grids[c, 1] = (
            scale[first] * (pitches[c, 0] - a[first]),
            scale[first] * pitches[c, 1],
        )
        if columns[c, FREEDOM] == ANY:
            some = low[first] <= high[first] and not (low[first] == high[first] == a[first])
        elif columns[c, FREEDOM] == GRID:
            some = root[many + c] <= root[2 * many + c]
        for k in range(columns[c, COUNT] if not pitches[c, 1] > 0.0 else 0):
            moves = False  # a level that the row has is no change
            for e in range(width):
                step_to = scale[first + e] * (listed[start + k * width + e] - a[first + e])
                options[start + k * width + e] = step_to
                moves = moves or step_to != 0.0
            if columns[c, FREEDOM] == LEVELS:
                root[3 * many + columns[c, LEVEL] + k] &= moves
                some = some or root[3 * many + columns[c, LEVEL] + k] > 0
        keeps = KEEPS if stay[at if stay.shape[0] > 1 else 0, c] else 0
        root[c] = keeps | (MOVES if some else 0) | (COUNTS if not keeps else 0)


@step
def finish(y, pick, a, scale, low, high, bounds, columns, listed, pitches, out):
    """Write an answer as a point: what keeps its value keeps its bits, options are hit exactly."""
    for c in range(pick.size):
        width = columns[c, WIDTH]
        for e in range(width):
            i = columns[c, FIRST] + e
            if pick[c] == OWN or y[i] == 0.0:
                out[i] = a[i]
            elif pick[c] == NUMBER:
                out[i] = min(max(a[i] + y[i] / scale[i], low[i]), high[i])
                out[i] = low[i] if y[i] <= bounds[0, i] else out[i]
                out[i] = high[i] if y[i] >= bounds[1, i] else out[i]
            else:
                out[i] = option_step(c, pick[c], e, columns, pitches, listed)


@step
def reach_of_numbers(u, r, y, columns, low, high):
    """How many times as far the numbers of an answer may move, its levels held; at least 1."""
    reach, moved = np.inf, False
    for c in range(columns.shape[0]):
        i = columns[c, FIRST]
        if columns[c, FREEDOM] != LEVELS and y[i] != 0.0:
            moved = True
            reach = min(reach, (high[i] if y[i] > 0.0 else -low[i]) / abs(y[i]))
    for j in range(r.size):
        rise = 0.0
        for c in range(columns.shape[0]):
            if columns[c, FREEDOM] != LEVELS:
                rise += u[j, columns[c, FIRST]] * y[columns[c, FIRST]]
        if rise > 0.0:
            reach = min(reach, 1.0 - r[j] / rise)
    return max(reach, 1.0) if moved else 1.0


@step
def price_rows(u, b, y, r):
    """Set r = U y - b."""
    for j in range(b.size):
        r[j] = -b[j]
        for i in range(y.size):
            r[j] += u[j, i] * y[i]


@step
def most_energy(low, high):
    """Half the squared length that no step in a box exceeds; more than nothing."""
    s = 0.0
    for i in range(low.size):
        side = max(abs(low[i]), abs(high[i]))
        s += side * side
    return max(0.5 * s * (1.0 + 1e-6), 1e-300)


@step
def read_row(a, offset, origin, u, scale, x, b, base, tol):
    """Set a row's place, its slacks, and what rounding of its numbers explains."""
    m, d = u.shape
    for i in range(d):
        x[i] = scale[i] * (a[i] - origin[i])
        tol[m + i] = LOOSE * (abs(x[i]) + abs(scale[i] * a[i]))
    for j in range(m):
        base[j] = slack_of(u, j, offset, x)
        b[j], tol[j] = base[j], LOOSE * abs(offset[j])
        for i in range(d):
            tol[j] += LOOSE * abs(u[j, i] * x[i])


@compiled
def branch_chunk(
    start, stop, rows, points, offset, origin, u, scale, guard, columns, listed, pitches,
    stay, least, most, allowed, lo, hi, locked, changes, fewest, limit,
    out, energy_out, bound_out, reach_out, status_out, changes_out, nodes_out,
):  # fmt: skip
    """Find the best choices of problems start to stop; choices[rows[p]] are those of points[p]."""
    (m, d), many = u.shape, columns.shape[0]
    x, low, high, y, bounds = np.empty(d), np.empty(d), np.empty(d), np.empty(d), np.empty((2, d))
    b, base, r, tol, every = np.empty(m), np.empty(m), np.empty(m), np.empty(m + d), np.arange(m)
    grids, options = np.empty_like(pitches), np.empty_like(listed)
    root, pick = np.empty(3 * many + allowed.shape[1], np.int64), np.empty(many, np.int64)
    for p in range(start, stop):
        at, a = rows[p], points[p]
        read_row(a, offset, origin, u, scale, x, b, base, tol)
        keep_off(b, base, offset, x, a, scale, guard)
        root_of(
            at, a, scale, stay, least, most, allowed, lo, hi, columns, listed, pitches, grids,
            options, bounds, root,
        )  # fmt: skip
        for c in range(many):
            if locked[p if locked.shape[0] > 1 else 0, c]:
                root[c] &= KEEPS
        status, nodes, turn, proven = INFEASIBLE, 0, 0, True
        few = 1 if fewest else changes
        again = hull_of(columns, grids, options, bounds, root, low, high)
        while again and turn < PUSHES:
            again = False
            status, energy_out[p], bound_out[p], more = search(
                u, b, tol, most_energy(low, high), few, limit - nodes, columns, grids, options,
                bounds, root, y, pick,
            )  # fmt: skip
            nodes += more
            if status in (OPTIMAL, STOPPED):
                size, length, square = sizes_of(y, x, a, scale)
                price_rows(u, b, y, r)
                if push(b, base, r, every, m, size, length, square, guard):
                    again, status, turn = True, UNRESOLVED, turn + 1
            elif few < changes:
                proven = proven and status == INFEASIBLE
                again, few, status = nodes < limit, few + 1, UNRESOLVED
            elif turn > 0:  # only what the guard left is empty
                status = UNRESOLVED
        if status == OPTIMAL and not proven:
            status = STOPPED
        status_out[p], nodes_out[p], changes_out[p] = status, nodes, few
        if status in (OPTIMAL, STOPPED):
            reach_out[p] = reach_of_numbers(u, r, y, columns, low, high)
            one, other = at if lo.shape[0] > 1 else 0, at if hi.shape[0] > 1 else 0
            finish(y, pick, a, scale, lo[one], hi[other], bounds, columns, listed, pitches, out[p])
