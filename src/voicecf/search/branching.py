"""Branch and bound over the choices of a batch of rows, in the compiled core."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import voicecf._core as _core
from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.parallel import in_parallel
from voicecf.rules.choices import Choices, Freedom
from voicecf.rules.splits import Splits
from voicecf.rules.tariff import Tariff
from voicecf.search.curves import ROUNDS, Curves
from voicecf.solver.projection import Projection, UnitConstraints
from voicecf.status import Status

# Searches that ended without a proof.
UNSURE = (int(Status.UNRESOLVED), int(Status.STOPPED))


@dataclass(frozen=True)
class Search:
    """What a search over choices has to respect, and what it looks for.

    Attributes
    ----------
    unit : UnitConstraints
        The constraints that an answer has to satisfy.
    choices : Choices
        The options of each row, a line for each point or one for all.
    limit : int
        Largest number of nodes for a row.
    fewest : bool
        If True, change as few columns as possible, and only then at least cost.
    splits : Splits, optional
        Rules that the choices do not contain.
    curves : Curves, optional
        Those of these rules that are curved.
    tariff : Tariff, optional
        Prices, if the least price is asked for.
    factor : float
        Factor on the slack of the guard of `unit`.
    """

    unit: UnitConstraints
    choices: Choices
    limit: int
    fewest: bool = False
    splits: Splits | None = None
    curves: Curves | None = None
    tariff: Tariff | None = None
    factor: float = 1.0

    @property
    def constraints(self) -> _core.Rows:
        """The constraints in that layout, with room for what the search adds."""
        more = self.curves.count if self.curves is not None else 0
        more += self.tariff is not None
        unit = self.unit.with_room(more) if more else self.unit
        return unit.in_order(self.choices.member)

    def rules(self, locked: Mask) -> _core.Rules:
        """Return the rules in the layout of the compiled core: coordinates of a column adjacent."""
        choices, member = self.choices, self.choices.member
        listed = np.where(choices.freedom == Freedom.LEVELS, choices.count, 0)
        columns = np.column_stack([
            choices.first[:-1], np.diff(choices.first), choices.freedom, choices.start[:-1],
            choices.count, np.cumsum(listed) - listed,
        ]).astype(np.int64)  # fmt: skip
        pitches = np.column_stack([choices.base, choices.pitch])
        rules, stay = _core.Rules(columns, choices.table, pitches), choices.stay
        if self.curves is not None:
            known = self.curves.can_stay()
            stay = stay if known.all() else stay & known
        lo, hi = (np.ascontiguousarray(side[:, member]) for side in (choices.lo, choices.hi))
        rules.allow(
            stay, choices.allowed, choices.least, choices.most, lo, hi, locked.astype(np.uint8)
        )
        if self.splits is not None and self.splits.least:
            rules.leave_out(*self.splits.gaps(len(choices.points), len(columns)))
        if self.splits is not None and self.splits.boxes is not None:
            b = self.splits.boxes
            rules.join(b.places, b.ends, b.options, b.starts, b.levels, b.own)
        if self.curves is not None:
            self.curves.add_to(rules)
        if self.tariff is not None:
            up, down = (np.ascontiguousarray(side[member]) for side in self.tariff.pair)
            bent = np.zeros(len(columns), dtype=np.uint8)
            bent[[one.column for one in self.tariff.curved]] = 1
            rules.price(up, down, self.tariff.fees, bent)
        rules.limit(int(choices.changes), bool(self.fewest), int(self.limit))
        return rules


def branch(
    search: Search,
    points: Array,
    rows: Ints,
    locked: Mask | None = None,
    nodes: Ints | None = None,
) -> Projection:
    """Find the best choice for every row; after `limit` nodes, the best one found so far.

    Parameters
    ----------
    search : Search
    points : array of shape (n, d)
    rows : array of int
        Indices of the points to answer, in this order.
    locked : array of shape (len(rows) or 1, C), optional
        Columns that may not change.
    nodes : array of shape (len(rows),), optional
        Overwritten by the number of nodes of each search.

    Returns
    -------
    Projection
        The gap is that between half the squared length of the move in the metric, or its price, and
        a lower bound for it, and `cardinality` the number of columns that were allowed to change.
        `rho` is the largest multiple of the move of the numbers, with categories as in the answer,
        that is still an answer.
    """
    nodes = np.empty(len(rows), dtype=np.int64) if nodes is None else nodes
    no_locks = np.zeros((1, len(search.choices.freedom)), dtype=np.bool_)
    locked = no_locks if locked is None else locked
    curves = search.curves
    if curves is None:
        rules, constraints = search.rules(locked), search.constraints
        return _searched(search, points, rows, (constraints, rules), nodes)[0]
    constraints = search.constraints
    knots, which = curves.knots(search.choices, rows), np.arange(len(rows))
    result = Projection.unresolved(len(rows), points.shape[1])
    for _ in range(ROUNDS):
        rules = search.rules(locked if len(locked) == 1 else locked[which])
        rules.know(knots.starts, knots.z, knots.u, knots.under, knots.over)
        count = np.empty(len(which), dtype=np.int64)
        found, stuck = _searched(search, points, rows[which], (constraints, rules), count)
        result.put(which, found)
        nodes[which] = count
        open_ = ~np.isnan(stuck).all(axis=1) & np.isin(found.status, UNSURE)
        if not open_.any():
            break
        knots, which = curves.refined(knots, stuck, open_), which[open_]
    return result


def _searched(
    search: Search, points: Array, rows: Ints, problem: tuple[_core.Rows, _core.Rules], nodes: Ints
) -> tuple[Projection, Array]:
    """Search once; return also the intervals of curves that are known too coarsely."""
    (constraints, rules), order, n = problem, search.choices.member, len(rows)
    result = Projection.unresolved(n, points.shape[1])
    answers, stuck = np.empty((n, len(order))), np.empty((n, 3 * len(search.choices.freedom)))
    no_box = np.zeros((1, len(order)))  # not read: the rules contain the box
    reordered = np.ascontiguousarray(points[rows][:, order])
    rows = np.asarray(rows, dtype=np.int64)
    batch = _core.Batch(reordered, no_box, no_box, rows=rows, factor=search.factor)
    out = _core.Found(
        answers, result.gap, result.rho, result.status, result.close, result.cardinality, nodes
    )
    out.tell(stuck)
    in_parallel(lambda a, b: constraints.branch(batch, rules, out, a, b), n, chunk=4, rows=True)
    answered = result.answered
    result.points[np.ix_(answered, order)] = answers[answered]
    return result, stuck
