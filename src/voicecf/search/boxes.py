"""A search over boxes, for rules that no single box describes: see `voicecf.rules.splits`.

A node is a box of choices of one row. Its relaxation, without these rules, is solved exactly by
branch and bound. If the solution breaks a rule, the node is divided into parts, none of which
contains the solution: values of columns that belong together lie in one of two sets of boxes. Nodes
with the least bound come first, so the first solution that satisfies all rules is the best. Nodes
of all rows are solved together, turn by turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import numpy as np

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.rules.choices import Choices
from voicecf.rules.splits import Splits, Union
from voicecf.search.branching import SearchResult
from voicecf.search.nodes import Node
from voicecf.status import Status

# Up to this many boxes that columns may lie in become a node each; more are divided in halves.
FEW = 4
# Nodes that are divided in a turn, if there are so many: a turn has a price of its own.
TOGETHER = 16
# Plain integers, since comparing numpy's integers with those of an enumeration is slow.
INFEASIBLE, UNRESOLVED = int(Status.INFEASIBLE), int(Status.UNRESOLVED)
STOPPED = int(Status.STOPPED)
# Relative difference up to which a bound has reached an answer; the same as in the compiled core.
REACHED = 1e-9


@dataclass(frozen=True, eq=False)
class Solved:
    """Nodes with the solutions of their relaxations.

    Attributes
    ----------
    nodes : list of Node
    found : SearchResult
    """

    nodes: list[Node]
    found: SearchResult


@dataclass(frozen=True, eq=False)
class Candidate:
    """One solution of many; sorted by the number of changes, if that counts, and the energy."""

    key: tuple[float, float]
    found: SearchResult
    at: int


@dataclass
class Problem:
    """What is known of the best answer of one row.

    Attributes
    ----------
    heap : list
        Open nodes, the least bound first: key, turn, and the node's place in `Solved`.
    best : Candidate or None
    bound : float
        Lower bound for the energy of all answers in nodes that are finished.
    nodes : int
        Number of nodes of branch and bound so far.
    unsure : bool
        Whether part of the search was left out: it was cut short, or the solver failed.
    """

    heap: list[tuple[tuple[float, float], int, Solved, int]] = field(default_factory=list)
    best: Candidate | None = None
    bound: float = np.inf
    nodes: int = 0
    unsure: bool = False

    @property
    def done(self) -> bool:
        """Whether no open node can have a better answer."""
        if not self.heap:
            return True
        changes, bound = self.heap[0][0]
        if self.best is None or changes < self.best.key[0]:
            return False
        return changes > self.best.key[0] or bound >= self.best.key[1] * (1 - REACHED)

    def offer(self, answer: Candidate | None) -> None:
        """Take an answer if it is better than the best so far."""
        if answer is not None and (self.best is None or answer.key < self.best.key):
            self.best = answer


# Solves nodes.
Relax = Callable[[list[Node]], SearchResult]


@dataclass(frozen=True, eq=False)
class BoxSearch:
    """The search for all rows of one target.

    Attributes
    ----------
    splits : Splits
    choices : Choices
    rows : array of shape (n,)
        The row of each problem.
    relax : callable
        ``relax(nodes)`` solves the relaxations of nodes.
    smallest : array of shape (d,)
        Moves up to this size are rounding errors.
    fewest : bool
        Whether the number of changes comes before the cost.
    limit : int
        Largest number of nodes of branch and bound for a problem.
    """

    splits: Splits
    choices: Choices
    rows: Ints
    relax: Relax
    smallest: Array
    fewest: bool
    limit: int

    def improve(self, found: SearchResult) -> None:
        """Replace the solutions without these rules by answers that satisfy them."""
        boxes = (None,) * len(self.splits.unions)
        roots = [Node.root(p, self.choices, row, boxes) for p, row in enumerate(self.rows.tolist())]
        turns = count()
        problems = [Problem() for _ in roots]
        self._open(problems, Solved(roots, found), turns)
        open_ = list(range(len(problems)))
        while open_:
            share = max(1, TOGETHER // len(open_))
            parts = {p: self._go_on(problems[p], share) for p in open_}
            open_ = [p for p in open_ if parts[p]]
            nodes = [node for p in open_ for node in parts[p]]
            if nodes:
                self._open(problems, Solved(nodes, self.relax(nodes)), turns)
        result = [self._result(problem) for problem in problems]
        for p, (answer, status, bound) in enumerate(result):
            found.status[p], found.nodes[p] = status, problems[p].nodes
            if answer is None:
                found.points[p] = np.nan
                continue
            for name in ("points", "energy", "rho", "close", "changes"):
                getattr(found, name)[p] = getattr(answer.found, name)[answer.at]
            found.bound[p] = bound

    def _open(self, problems: list[Problem], solved: Solved, turns: Iterator[int]) -> None:
        """Put solved nodes on the heaps of their problems."""
        found = solved.found
        changes = found.changes.tolist() if self.fewest else [0] * len(found.changes)
        lists = found.nodes.tolist(), found.status.tolist(), changes, found.bound.tolist()
        for at, (nodes, status, *key) in enumerate(zip(*lists, strict=True)):
            problem = problems[solved.nodes[at].problem]
            problem.nodes += nodes
            if status != INFEASIBLE:
                heappush(problem.heap, (tuple(key), next(turns), solved, at))

    def _go_on(self, problem: Problem, most: int) -> list[Node]:
        """Divide the best open nodes of a problem; return their parts, none if it is finished."""
        found: list[Node] = []
        while most > 0 and not problem.done:
            if problem.nodes > self.limit:
                problem.unsure = True
                return []
            (_, bound), _, solved, at = heappop(problem.heap)
            status = int(solved.found.status[at])
            problem.unsure |= status in (UNRESOLVED, STOPPED)
            if status == UNRESOLVED:
                continue
            answer, parts = self._examined(solved, at)
            problem.offer(answer)
            if parts:
                found += parts
                most -= 1
            elif parts is None:
                problem.bound = min(problem.bound, bound)
                problem.unsure |= answer is None
        return found

    def _result(self, problem: Problem) -> tuple[Candidate | None, Status, float]:
        """Return the best answer of a problem, its status, and a lower bound for its energy."""
        if problem.best is None:
            return None, Status.UNRESOLVED if problem.unsure else Status.INFEASIBLE, np.inf
        changes, energy = problem.best.key
        bounds = [key[1] for key, *_ in problem.heap if key[0] <= changes]
        bound = min(problem.bound, energy, *bounds)
        return problem.best, Status.STOPPED if problem.unsure else Status.OPTIMAL, bound

    def _examined(self, solved: Solved, at: int) -> tuple[Candidate | None, list[Node] | None]:
        """Return the answer in a node, if its solution is one, or else the parts to look at."""
        node = solved.nodes[at]
        parts = self._parts(node, int(self.rows[node.problem]), solved.found.points[at])
        return (self._answer(solved.found, at), None) if parts is None else (None, parts)

    def _changes(self, found: SearchResult, at: int) -> float:
        """Return the number of changes of a solution, if that counts; else 0."""
        return float(found.changes[at]) if self.fewest else 0.0

    def _answer(self, found: SearchResult, at: int) -> Candidate:
        return Candidate((self._changes(found, at), float(found.energy[at])), found, at)

    # The parts of a node whose solution breaks a rule.

    def _parts(self, node: Node, row: int, point: Array) -> list[Node] | None:
        """Divide a node by the first rule that a point breaks; None if it breaks none."""
        for at, union in enumerate(self.splits.unions):
            if not self._in_a_box(node.boxes[at], union, row, point):
                return self._by_boxes(node, at, union, row)
        return None

    def _in_a_box(self, boxes: Ints | None, union: Union, row: int, point: Array) -> bool:
        """Tell whether a point lies in one of the boxes that are left."""
        if boxes is not None and len(boxes) == 1:
            return True  # the node was narrowed to this box
        boxes = np.arange(len(union.rule.low)) if boxes is None else boxes
        inside = np.ones(len(boxes), dtype=np.bool_)
        for j, c in enumerate(union.rule.columns):
            places = self.choices.member[self.choices.first[c] : self.choices.first[c + 1]]
            if (point[places] == self.choices.points[row, places]).all():
                inside &= self._has_own(union, j, row)[boxes]
            elif c in union.levels:
                away = ((self.choices._table(c) - point[places]) ** 2).sum(axis=1)
                away[~self.choices._allowed(c).any(axis=0)] = np.inf  # levels that nobody moves to
                inside &= union.levels[c][boxes, int(away.argmin())]
            else:
                sides, slack = union.intervals[c], self.smallest[places[0]]
                z = point[places[0]]
                inside &= (sides.lo[boxes] - slack <= z) & (z <= sides.hi[boxes] + slack)
        return bool(inside.any())

    def _has_own(self, union: Union, j: int, row: int) -> Mask:
        """Tell which boxes have the row's own value of the j-th column inside."""
        return np.asarray(union.rule.holds_in(j, union.own[j][row : row + 1])[0])

    def _by_boxes(self, node: Node, at: int, union: Union, row: int) -> list[Node]:
        """Divide the boxes that are left: one each if they are few, else in halves."""
        left = node.boxes[at]
        boxes = np.arange(len(union.rule.low)) if left is None else left
        if len(boxes) <= FEW:
            groups = [boxes[i : i + 1] for i in range(len(boxes))]
        else:
            order = boxes[np.argsort(self._widest(union, boxes), kind="stable")]
            groups = [order[: len(order) // 2], order[len(order) // 2 :]]
        return [self._within(node, at, union, row, group) for group in groups]

    def _widest(self, union: Union, boxes: Ints) -> Array:
        """Return the place of each box along the column in which boxes differ most."""
        best, spread = np.zeros(len(boxes)), 0.0
        for j, c in enumerate(union.rule.columns):
            if c in union.rule.levels:
                places = union.rule.levels[c][boxes].argmax(axis=1).astype(np.float64)
            else:
                with np.errstate(invalid="ignore"):
                    places = 0.5 * (union.rule.low[boxes, j] + union.rule.high[boxes, j])
                places = np.nan_to_num(places, posinf=np.inf, neginf=-np.inf)
            differ = len(np.unique(places)) / len(places)
            if differ > spread:
                best, spread = places, differ
        return best

    def _within(self, node: Node, at: int, union: Union, row: int, boxes: Ints) -> Node:
        """Return a node narrowed to the hull of some boxes."""
        left = (*node.boxes[:at], boxes, *node.boxes[at + 1 :])
        part = node.copy(boxes=left)
        for j, c in enumerate(union.rule.columns):
            part.stay[c] &= bool(self._has_own(union, j, row)[boxes].any())
            if c in union.levels:
                levels = union.levels[c][boxes].any(axis=0).astype(part.allowed.dtype)
                part.narrow_levels(self.choices, c, levels)
            else:
                part.narrow(self.choices, c, union.intervals[c], boxes)
        return part
