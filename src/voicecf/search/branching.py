"""Search the choices of a batch of rows: arrays laid out for the compiled core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints
from voicecf.parallel import in_parallel
from voicecf.rules.choices import Choices, Freedom
from voicecf.search.answers import is_found
from voicecf.solver.projection import UnitConstraints


@dataclass(frozen=True)
class Found:
    """Best choices of n problems.

    Attributes
    ----------
    points : array of shape (n, d)
        NaN where there is no answer.
    energy, bound : array of shape (n,)
        Half the squared move in the metric, and what no answer is below.
    rho : array of shape (n,)
        How many times as far its numbers may move, its levels held.
    status : array of shape (n,)
    changes : array of shape (n,)
        Columns that were allowed to change.
    nodes : array of shape (n,)
        Boxes that were looked at.
    """

    points: Array
    energy: Array
    bound: Array
    rho: Array
    status: NDArray[np.int8]
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
) -> Found:
    """Find the best choice of every row, proven or, after `limit` nodes, as good as it is known.

    Parameters
    ----------
    points : array of shape (n, d)
    rows : array of int
        Which points, in this order; `choices` has a row each, or one for all.
    unit : UnitInts
        The constraints that an answer has to satisfy.
    choices : Choices
    limit : int
        Most nodes to look at for a row.
    fewest : bool
        Whether as few columns as possible are to change, and only then at least cost.
    locked : array of shape (len(rows) or 1, C), optional
        Columns that a problem may not change.
    """
    order, n = choices.member, len(rows)
    found = Found(
        np.full((n, points.shape[1]), np.nan), np.full(n, np.inf), np.zeros(n), np.full(n, np.nan),
        np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64),
    )  # fmt: skip
    locks = np.zeros((1, len(choices.freedom)), dtype=np.uint8) if locked is None else locked
    answers = np.empty((n, points.shape[1]))
    side_by_side = unit.in_order(order)
    rules = _rules(choices, locks.astype(np.uint8))
    rules.limit(int(choices.changes), bool(fewest), int(limit))
    anywhere = np.zeros((1, points.shape[1]))  # the box is in the rules
    picked = np.ascontiguousarray(points[rows][:, order])
    batch = _core.Batch(picked, anywhere, anywhere, rows=np.asarray(rows, dtype=np.int64))
    out = _core.Found(
        answers, found.energy, found.bound, found.rho, found.status, found.changes, found.nodes
    )
    in_parallel(lambda a, b: side_by_side.branch(batch, rules, out, a, b), n, chunk=4)
    hit = is_found(found.status)
    found.points[np.ix_(hit, order)] = answers[hit]
    return found


def _rules(choices: Choices, locks: NDArray[np.uint8]) -> _core.Rules:
    """Lay choices out as the compiled core wants them, coordinates of a column side by side."""
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
