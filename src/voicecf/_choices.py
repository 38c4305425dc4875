"""Compiled choices: what a row's columns may still do, and the bounds that follow from it.

In the steps of `_kernel`, a column may take any number within bounds, one of a sorted grid, one of
listed levels, or keep its value (a step of 0). A *node* says for every column which of these are
left. Here is what can be said of a node column by column: its hull, the least value of the
Lagrangian 1/2 |y|^2 + mu . (U y - b) over its true choices, and which of them no better answer
contains. The search over nodes is in `_branch`.

Layout, for C columns whose coordinates stand side by side:

- `columns` (C, 6): first coordinate, width, freedom, where its options start, their count, where
  its levels start in a node;
- `grids` (C, 2): a grid with a positive pitch needs no list, its option l is base + l * pitch;
- `options`: steps of listed options, a level after another;
- `bounds` (2, d): bounds of numbers as steps;
- `node` (3 C + T,): flags, first and last option of grids, then 0 or 1 for every level.
"""

from __future__ import annotations

import numpy as np

from voicecf._compile import part, step
from voicecf.tolerance import TOLERANCE

ANY, GRID, LEVELS = 0, 1, 2
FIRST, WIDTH, FREEDOM, START, COUNT, LEVEL = 0, 1, 2, 3, 4, 5
# What a column may still do in a node; one that counts is among those that may change.
KEEPS, MOVES, COUNTS = 1, 2, 4
# No option: a column that keeps its value, and one whose number is in the step itself. Options of
# a long grid are counted from its middle, so they may be negative.
OWN, NUMBER = -(2**62), 1 - 2**62
# Of a grid's pitch: an option this close to the row's own value is that value.
SAME = 1e-6

LOOSE = TOLERANCE.loose
# Relative difference below which a bound has reached the best answer.
CLOSED = 1e-9


@step
def option_step(c, at, e, columns, grids, options):
    """Step of the e-th coordinate of column c if it takes option `at`."""
    if grids[c, 1] > 0.0:
        y = grids[c, 0] + at * grids[c, 1]
        return 0.0 if abs(y) < SAME * grids[c, 1] else y
    return options[columns[c, START] + at * columns[c, WIDTH] + e]


@step
def grid_near(c, y, least, most, columns, grids, options):
    """Option among least..most of a grid that lies next to the step y."""
    if grids[c, 1] > 0.0:
        position = min(max((y - grids[c, 0]) / grids[c, 1], float(least)), float(most))
        return np.int64(np.floor(position + 0.5))
    start, below, above = columns[c, START], least, most  # the answer is one of these, or between
    while above - below > 1:
        middle = (below + above) // 2
        if options[start + middle] <= y:
            below = middle
        else:
            above = middle
    near = abs(options[start + below] - y) <= abs(options[start + above] - y)
    return below if near else above


@part
def hull_of(columns, grids, options, bounds, node, low, high):
    """Set the smallest box around the choices that are left; False where a column has none.

    A column whose only option is what it has does not move.
    """
    many, some = columns.shape[0], True
    for c in range(many):
        still = True
        for e in range(columns[c, WIDTH]):
            i = columns[c, FIRST] + e
            least, most = np.inf, -np.inf
            if node[c] & KEEPS:
                least, most = 0.0, 0.0
            if node[c] & MOVES and columns[c, FREEDOM] == ANY:
                least, most = min(least, bounds[0, i]), max(most, bounds[1, i])
            elif node[c] & MOVES:
                levels = columns[c, FREEDOM] == LEVELS
                for k in range(columns[c, COUNT] if levels else 2):
                    if not levels or node[3 * many + columns[c, LEVEL] + k]:
                        at = k if levels else node[(k + 1) * many + c]
                        y = option_step(c, at, e, columns, grids, options)
                        least, most = min(least, y), max(most, y)
            low[i], high[i] = least, most
            some = some and least <= most
            still = still and least == 0.0 and most == 0.0
        if still:
            node[c] &= KEEPS | COUNTS
    return some


@step
def best_number(low, high, slope, share):
    """Return the number of an interval with the least value of share/2 y^2 + slope y."""
    if share > 0.0:
        return min(max(-slope, low), high)
    return low if slope > 0.0 else high


@step
def option_value(c, at, g, share, columns, grids, options):
    """Value of share/2 |y|^2 + g y if column c takes option `at`."""
    value = 0.0
    for e in range(columns[c, WIDTH]):
        y = option_step(c, at, e, columns, grids, options)
        value += y * (0.5 * share * y + g[columns[c, FIRST] + e])
    return value


@step
def best_option(c, g, share, columns, grids, options, node):
    """Option with the least Lagrangian value, and that value."""
    many = columns.shape[0]
    best, chosen = np.inf, np.int64(OWN)
    begin, end = np.int64(0), columns[c, COUNT]
    if columns[c, FREEDOM] == GRID:
        slope, begin, end = g[columns[c, FIRST]], node[many + c], node[2 * many + c]
        if share > 0.0:
            begin = grid_near(c, -slope, begin, end, columns, grids, options)
        elif slope < 0.0:
            begin = end
        end = begin + 1
    for k in range(begin, end):
        if columns[c, FREEDOM] == GRID or node[3 * many + columns[c, LEVEL] + k]:
            value = option_value(c, k, g, share, columns, grids, options)
            if value < best:
                best, chosen = value, np.int64(k)
    return chosen, best


@step
def column_values(g, share, columns, grids, options, bounds, node, value, pick):
    """Set the least Lagrangian value of each column over its choices, and the choice."""
    for c in range(columns.shape[0]):
        value[c], pick[c] = np.inf, OWN
        if node[c] & MOVES:
            if columns[c, FREEDOM] == ANY:
                i = columns[c, FIRST]
                y = best_number(bounds[0, i], bounds[1, i], g[i], share)
                if share > 0.0:
                    value[c] = y * (0.5 * share * y + g[i])
                else:  # an open side is infinite then, which must not meet a 0
                    value[c] = y * g[i] if g[i] != 0.0 else 0.0
                pick[c] = NUMBER
            else:
                pick[c], value[c] = best_option(c, g, share, columns, grids, options, node)
        if node[c] & KEEPS and not value[c] < 0.0:
            value[c], pick[c] = 0.0, OWN


@step
def take_best(left, node, value, pick, taken):
    """Sum the values of the columns that count and of the best `left` others.

    Marks what is taken, and returns the sum and the least gain among the others that were, if there
    is room for no more: what is given up for one more column to move.
    """
    total, wanting, worst = 0.0, 0, 0.0
    for c in range(value.size):
        taken[c] = node[c] & COUNTS
        if taken[c]:
            total += value[c]
        elif value[c] < 0.0:
            wanting += 1
    for _ in range(min(left, wanting)):
        best = -1
        for c in range(value.size):
            if not taken[c] and value[c] < 0.0 and (best < 0 or value[c] < value[best]):
                best = c
        taken[best] = 1
        total += value[best]
        worst = value[best]
    for c in range(value.size):
        if not taken[c]:
            pick[c] = OWN
    return total, (worst if left <= wanting else 0.0)


@part
def lagrangian(u, b, mu, share, left, columns, grids, options, bounds, node, g, value, pick, taken):
    """Least Lagrangian value over the choices of a node; see `take_best` for the second number."""
    for i in range(g.size):
        g[i] = 0.0
    for j in range(mu.size):
        if mu[j] != 0.0:
            for i in range(g.size):
                g[i] += mu[j] * u[j, i]
    column_values(g, share, columns, grids, options, bounds, node, value, pick)
    total, worst = take_best(left, node, value, pick, taken)
    for j in range(b.size):
        total -= mu[j] * b[j]
    return total, worst


@part
def disproved(u, b, mu, trial, left, columns, grids, options, bounds, node, g, value, pick, taken):
    """Tell whether a row, or mu . U, is too large for all choices of a node: nothing in it fits."""
    m = b.size
    for j in range(m + 1):
        for i in range(m):
            trial[i] = mu[i] if j == m else (1.0 if i == j else 0.0)
        least, _ = lagrangian(
            u, b, trial, 0.0, left, columns, grids, options, bounds, node, g, value, pick, taken
        )
        terms = 0.0
        for i in range(m):
            terms += abs(trial[i] * b[i])
        for c in range(value.size):
            terms += abs(value[c]) if taken[c] else 0.0
        if least > LOOSE * terms:
            return True
    return False


@step
def residual(u, b, mu, share, pick, columns, grids, options, bounds, g, r):
    """Set r = U y - b for the picked choices; squared length of what can be climbed along."""
    for j in range(b.size):
        r[j] = -b[j]
    for c in range(pick.size):
        for e in range(columns[c, WIDTH]):
            i = columns[c, FIRST] + e
            y = 0.0
            if pick[c] == NUMBER:
                y = best_number(bounds[0, i], bounds[1, i], g[i], share)
            elif pick[c] != OWN:
                y = option_step(c, pick[c], e, columns, grids, options)
            if y != 0.0:
                for j in range(b.size):
                    r[j] += u[j, i] * y
    square = 0.0
    for j in range(b.size):
        if r[j] > 0.0 or mu[j] > 0.0:
            square += r[j] * r[j]
    return square


@part
def climb(
    u, b, mu, trial, r, steps, best, left, columns, grids, options, bounds, node, g, value, pick,
    taken,
):  # fmt: skip
    """Raise the Lagrangian by subgradients with Polyak's step; its value and `take_best`'s second.

    Ends with the value at the best multipliers, `mu`.
    """
    bound, ease, square = -np.inf, 1.0, 1.0
    for j in range(b.size):
        trial[j] = mu[j]
    for turn in range(steps + 1):
        last = turn == steps or not square > 0.0 or bound >= best * (1.0 - CLOSED)
        for j in range(b.size):
            trial[j] = mu[j] if last else trial[j]
        here, worst = lagrangian(
            u, b, trial, 1.0, left, columns, grids, options, bounds, node, g, value, pick, taken
        )
        if last:
            break
        if here > bound:
            bound = here
            for j in range(b.size):
                mu[j] = trial[j]
        else:
            ease *= 0.7
        square = residual(u, b, trial, 1.0, pick, columns, grids, options, bounds, g, r)
        aim = best if best < np.inf else 1.5 * abs(here) + 1e-300
        for j in range(b.size):
            trial[j] = max(trial[j] + ease * (aim - here) / max(square, 1e-300) * r[j], 0.0)
    return here, worst


@step
def trim_grid(c, room, slope, columns, grids, options, node):
    """Strike out the ends of a grid whose options cost more than `room`; False if none is left."""
    many = columns.shape[0]
    least, most = node[many + c], node[2 * many + c]
    radius = np.sqrt(max(2.0 * room + slope * slope, 0.0)) * (1.0 + CLOSED)
    for end in range(2):
        y = -slope - radius if end == 0 else -slope + radius
        at = grid_near(c, y, least, most, columns, grids, options)
        beyond = option_step(c, at, 0, columns, grids, options) - y
        if end == 0:
            node[many + c] = at + 1 if beyond < 0.0 else at
        else:
            node[2 * many + c] = at - 1 if beyond > 0.0 else at
    return node[many + c] <= node[2 * many + c]


@step
def trim_levels(c, room, g, columns, grids, options, node):
    """Strike out the levels that cost more than `room`; False if none is left."""
    begin, some = 3 * columns.shape[0] + columns[c, LEVEL], False
    for k in range(columns[c, COUNT]):
        if node[begin + k]:
            if option_value(c, k, g, 1.0, columns, grids, options) > room:
                node[begin + k] = 0
            else:
                some = True
    return some


@part
def trim(bound, worst, best, columns, grids, options, node, g, value, taken):
    """Strike out the choices that no better answer contains; False if a column has none left.

    Taking another choice than the Lagrangian's raises its value by the difference; where no more
    columns may move, one more has to replace the least gain, `worst`.
    """
    spare = best - bound + CLOSED * best
    following = 0.0  # what another column gains if one of those taken stays
    for c in range(value.size):
        if not taken[c]:
            following = min(following, value[c])
    for c in range(value.size):
        if not node[c] & MOVES:
            continue
        room = spare + (value[c] if taken[c] else worst)
        if columns[c, FREEDOM] == ANY:
            some = taken[c] > 0 or value[c] <= room
        elif columns[c, FREEDOM] == GRID:
            some = trim_grid(c, room, g[columns[c, FIRST]], columns, grids, options, node)
        else:
            some = trim_levels(c, room, g, columns, grids, options, node)
        if node[c] & KEEPS and taken[c] and following - value[c] > spare:
            node[c] = MOVES | COUNTS
        if not some:
            if not node[c] & KEEPS:
                return False
            node[c] = KEEPS
    return True


@step
def nearest_choice(c, y, columns, grids, options, node):
    """Find the choice of a column next to a step, and its squared distance from it."""
    many, first, width = columns.shape[0], columns[c, FIRST], columns[c, WIDTH]
    best, chosen = np.inf, np.int64(OWN)
    if node[c] & KEEPS:
        best = 0.0
        for e in range(width):
            best += y[first + e] * y[first + e]
    if not node[c] & MOVES:
        return chosen, best
    if columns[c, FREEDOM] == ANY:
        moved = y[first] != 0.0 or not node[c] & KEEPS
        return np.int64(NUMBER if moved else OWN), 0.0
    begin, end = np.int64(0), columns[c, COUNT]
    if columns[c, FREEDOM] == GRID:
        begin = grid_near(c, y[first], node[many + c], node[2 * many + c], columns, grids, options)
        end = begin + 1
    for k in range(begin, end):
        if columns[c, FREEDOM] == GRID or node[3 * many + columns[c, LEVEL] + k]:
            off = 0.0
            for e in range(width):
                t = option_step(c, k, e, columns, grids, options) - y[first + e]
                off += t * t
            if off < best:
                best, chosen = off, np.int64(k)
    return chosen, best


@step
def changed(c, y, columns):
    """Tell whether a step moves a column."""
    moved = False
    for e in range(columns[c, WIDTH]):
        moved = moved or y[columns[c, FIRST] + e] != 0.0
    return moved


@part
def survey(y, columns, grids, options, node, pick):
    """Pick the choices next to a step: the column that is furthest from one, and the changes."""
    furthest, far, changes = np.int64(-1), 0.0, np.int64(0)
    for c in range(pick.size):
        pick[c], off = nearest_choice(c, y, columns, grids, options, node)
        if off > far:
            furthest, far = np.int64(c), off
        if changed(c, y, columns):
            changes += 1
    return furthest, changes


@step
def open_choices(c, columns, node):
    """Count the choices that a column still has; numbers in bounds are one."""
    many, some = columns.shape[0], node[c] & KEEPS
    if node[c] & MOVES:
        if columns[c, FREEDOM] == ANY:
            return np.int64(1)
        if columns[c, FREEDOM] == GRID:
            return some + node[2 * many + c] - node[many + c] + 1
        for k in range(columns[c, COUNT]):
            some += node[3 * many + columns[c, LEVEL] + k]
    return some


@step
def close_counts(changes, columns, node):
    """How many more columns may change, -1 if too many do; where none may, the others stay."""
    left = changes
    for c in range(columns.shape[0]):
        if node[c] & COUNTS:
            left -= 1
    if left == 0:
        for c in range(columns.shape[0]):
            if not node[c] & COUNTS:
                node[c] &= KEEPS
    return left
