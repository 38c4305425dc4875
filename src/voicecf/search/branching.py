"""Branch and bound over the choices of a batch of rows, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.parallel import in_parallel
from voicecf.rules.choices import Choices, Freedom
from voicecf.search.curves import ROUNDS, Curves
from voicecf.solver.projection import UnitConstraints, has_answer
from voicecf.status import Status

# Searches that ended without a proof.
UNSURE = (int(Status.UNRESOLVED), int(Status.STOPPED))


@dataclass(frozen=True)
class SearchResult:
    """Best choices for n problems.

    Attributes
    ----------
    points : array of shape (n, d)
        NaN where there is no answer.
    energy, bound : array of shape (n,)
        Half the squared length of the move in the metric, and a lower bound for it.
    rho : array of shape (n,)
        The largest multiple of the move of the numbers, with categories as in the answer, that is
        still an answer.
    status : array of shape (n,)
    close : array of shape (n,)
        As in `Projection`.
    changes : array of shape (n,)
        Number of columns that were allowed to change.
    nodes : array of shape (n,)
        Number of nodes of the search.
    """

    points: Array
    energy: Array
    bound: Array
    rho: Array
    status: NDArray[np.int8]
    close: Mask
    changes: Ints
    nodes: Ints


def branch(
    points: Array,
    rows: Ints,
    unit: UnitConstraints,
    choices: Choices,
    *,
    limit: int,
    fewest: bool = False,
    locked: NDArray[np.bool_] | None = None,
    gaps: tuple[Array, Ints] | None = None,
    curves: Curves | None = None,
    table_rows: Ints | None = None,
    factor: float = 1.0,
) -> SearchResult:
    """Find the best choice for every row; after `limit` nodes, the best one found so far.

    Parameters
    ----------
    points : array of shape (n, d)
    rows : array of int
        Indices of the points to answer, in this order; `choices` has a row for each point, or one
        for all.
    unit : UnitConstraints
        The constraints that an answer has to satisfy.
    choices : Choices
    limit : int
        Largest number of nodes for a row.
    fewest : bool
        If True, change as few columns as possible, and only then at least cost.
    locked : array of shape (len(rows) or 1, C), optional
        Columns that may not change.
    gaps : pair of arrays of shape (n or 1, 2 * C), optional
        Numbers and options, two of each column, between which it may not move to anything.
    curves : Curves, optional
        Rules between columns that are mapped by curves.
    table_rows : array of shape (n,), optional
        The row of each point in the table of `curves`; its own index if left out.
    factor : float
        Factor on the slack of the guard of `unit`.
    """
    if curves is None:
        locks = np.zeros((1, len(choices.freedom)), dtype=np.uint8) if locked is None else locked
        rules = _rules(choices, locks.astype(np.uint8), gaps)
        rules.limit(int(choices.changes), bool(fewest), int(limit))
        return _searched(points, rows, unit.in_order(choices.member), choices, rules, factor)[0]
    own = np.arange(len(points)) if table_rows is None else table_rows
    known = curves.can_stay(own)
    if not known.all():
        choices = replace(choices, stay=choices.stay & known)
    constraints = unit.with_room(len(curves.constraints)).in_order(choices.member)
    result: SearchResult | None = None
    knots, which = curves.knots(choices, rows), np.arange(len(rows))
    for _ in range(ROUNDS):
        locks = np.zeros((1, len(choices.freedom)), dtype=np.uint8) if locked is None else locked
        locks = locks if len(locks) == 1 else locks[which]
        rules = _rules(choices, locks.astype(np.uint8), gaps)
        rules.limit(int(choices.changes), bool(fewest), int(limit))
        curves.add_to(rules, own)
        rules.know(knots.starts, knots.z, knots.u, knots.under, knots.over)
        found, stuck = _searched(points, rows[which], constraints, choices, rules, factor)
        if result is None:
            result = found
        else:
            for name in SearchResult.__dataclass_fields__:
                getattr(result, name)[which] = getattr(found, name)
        open_ = ~np.isnan(stuck).all(axis=1) & np.isin(found.status, UNSURE)
        if not open_.any():
            break
        knots, which = curves.refined(knots, stuck, open_), which[open_]
    assert result is not None
    return result


def _searched(
    points: Array, rows: Ints, constraints: Any, choices: Choices, rules: Any, factor: float
) -> tuple[SearchResult, Array]:
    """Search once; return also the intervals of curves that are known too coarsely."""
    order, n = choices.member, len(rows)
    result = SearchResult(
        np.full((n, points.shape[1]), np.nan), np.full(n, np.inf), np.zeros(n), np.full(n, np.nan),
        np.empty(n, dtype=np.int8), np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
    )  # fmt: skip
    answers, stuck = np.empty((n, points.shape[1])), np.empty((n, 3 * len(choices.freedom)))
    no_box = np.zeros((1, points.shape[1]))  # not read: the rules contain the box
    reordered = np.ascontiguousarray(points[rows][:, order])
    rows = np.asarray(rows, dtype=np.int64)
    batch = _core.Batch(reordered, no_box, no_box, rows=rows, factor=factor)
    out = _core.Found(
        answers, result.energy, result.bound, result.rho, result.status, result.close,
        result.changes, result.nodes,
    )  # fmt: skip
    out.tell(stuck)
    in_parallel(lambda a, b: constraints.branch(batch, rules, out, a, b), n, chunk=4, rows=True)
    answered = has_answer(result.status)
    result.points[np.ix_(answered, order)] = answers[answered]
    return result, stuck


def _rules(
    choices: Choices, locks: NDArray[np.uint8], gaps: tuple[Array, Ints] | None
) -> _core.Rules:
    """Return choices in the layout of the compiled core: coordinates of a column are adjacent."""
    listed = np.where(choices.freedom == Freedom.LEVELS, choices.count, 0)
    columns = np.column_stack([
        choices.first[:-1], np.diff(choices.first), choices.freedom, choices.start[:-1],
        choices.count, np.cumsum(listed) - listed,
    ]).astype(np.int64)  # fmt: skip
    pitches = np.column_stack([choices.base, choices.pitch])
    rules = _core.Rules(columns, choices.table, pitches)
    member = choices.member
    lo, hi = (np.ascontiguousarray(side[:, member]) for side in (choices.lo, choices.hi))
    rules.allow(choices.stay, choices.allowed, choices.least, choices.most, lo, hi, locks)
    if gaps is not None:
        rules.leave_out(*gaps)
    return rules
