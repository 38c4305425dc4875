"""Branch and bound over the choices of a batch of rows, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask, product
from voicecf.parallel import in_parallel
from voicecf.rules.choices import Choices, Freedom
from voicecf.solver.projection import UnitConstraints, has_answer


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
    own: tuple[Array, Array] | None = None,
    gaps: tuple[Array, Ints] | None = None,
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
    own : pair of arrays of shape (len(rows), e, d) and (len(rows), e), optional
        Further constraints of each problem, ``normals @ z <= offsets``.
    gaps : pair of arrays of shape (n or 1, 2 * C), optional
        Numbers and options, two of each column, between which it may not move to anything.
    factor : float
        Factor on the slack of the guard of `unit`.
    """
    order, n = choices.member, len(rows)
    result = SearchResult(
        np.full((n, points.shape[1]), np.nan), np.full(n, np.inf), np.zeros(n), np.full(n, np.nan),
        np.empty(n, dtype=np.int8), np.empty(n, dtype=np.bool_), np.empty(n, dtype=np.int64),
        np.empty(n, dtype=np.int64),
    )  # fmt: skip
    locks = np.zeros((1, len(choices.freedom)), dtype=np.uint8) if locked is None else locked
    answers = np.empty((n, points.shape[1]))
    rules = _rules(choices, locks.astype(np.uint8))
    if gaps is not None:
        rules.leave_out(*gaps)
    if own is not None:
        rules.own_rows(_unit_rows(unit, *own, order))
        unit = unit.with_room(own[1].shape[1])
    constraints = unit.in_order(order)
    rules.limit(int(choices.changes), bool(fewest), int(limit))
    no_box = np.zeros((1, points.shape[1]))  # not read: the rules contain the box
    reordered = np.ascontiguousarray(points[rows][:, order])
    rows = np.asarray(rows, dtype=np.int64)
    batch = _core.Batch(reordered, no_box, no_box, rows=rows, factor=factor)
    out = _core.Found(
        answers, result.energy, result.bound, result.rho, result.status, result.close,
        result.changes, result.nodes,
    )  # fmt: skip
    in_parallel(lambda a, b: constraints.branch(batch, rules, out, a, b), n, chunk=4, rows=True)
    answered = has_answer(result.status)
    result.points[np.ix_(answered, order)] = answers[answered]
    return result


def _rules(choices: Choices, locks: NDArray[np.uint8]) -> _core.Rules:
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
    return rules


def _unit_rows(unit: UnitConstraints, normals: Array, offsets: Array, order: Ints) -> Array:
    """Return constraints in the layout of the core: unit normals in order, then the offset."""
    offsets = offsets - product(normals, unit.origin)
    scaled = normals / unit.scale
    lengths = np.linalg.norm(scaled, axis=2)
    lengths[lengths == 0.0] = 1.0
    rows = np.concatenate([scaled[:, :, order], offsets[:, :, None]], axis=2)
    return np.ascontiguousarray(rows / lengths[:, :, None])
