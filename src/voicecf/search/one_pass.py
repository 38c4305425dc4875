"""Answer a question without rules in one pass over memory.

It is for tables of numbers, one target per row, least cost and the learned bounds. Each row is
copied, assigned, projected and measured while it is in the cache. The result is the same as that of
`read`, `solve` and `measure`, which take a pass each.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import Allowed
from voicecf.rules.rules import Rules
from voicecf.search.answering import outcome_of, verified
from voicecf.search.outcome import Outcome
from voicecf.search.question import Question, read_target
from voicecf.search.solving import solve
from voicecf.solver.projection import assign_and_project
from voicecf.status import Status
from voicecf.table.extra import read_with_extra
from voicecf.table.rows import Rows


def answer_in_one_pass(
    learned: Learned,
    rules: Rules,
    X: Any,
    target: Any,
    id: Any = None,
    errors: Literal["status", "raise"] = "raise",
) -> Outcome:
    """Find the cheapest answer for each row within the learned bounds; `rules` ask for no more."""
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and id is None:
        learned.space._check_width(X.shape[1])
        found = _answer(learned, rules, np.ascontiguousarray(X), None, target)
        if found is not None:
            return found
    rows = read_with_extra(learned.space, X, id, errors)
    found = _answer(learned, rules, np.ascontiguousarray(rows.points), rows, target)
    assert found is not None
    return found


def _answer(
    learned: Learned, rules: Rules, values: Array, rows: Rows | None, target: Any
) -> Outcome | None:
    """Answer rows of numbers; None if some are not finite. Without `rows` they are copied first."""
    space, cells = learned.space, learned.cells
    assert cells is not None
    targets = read_target(target, len(values), learned)
    points, source, answers, cost = assign_and_project(
        values, targets, learned.bounds.box, cells, copied=rows is None
    )
    doubtful = np.flatnonzero(source < 0)
    if doubtful.size:
        if not np.isfinite(points[doubtful]).all():
            return None
        source[doubtful] = learned.partition.labels(points[doubtful])
        stays = doubtful[source[doubtful] == targets[doubtful]]
        answers.points[stays], answers.status[stays] = points[stays], Status.ALREADY
        answers.gap[stays], answers.rho[stays], cost[stays] = 0.0, np.inf, 0.0
    rows = Rows(None, points, points, array=points) if rows is None else rows
    allowed = Allowed.of(space, rules, rows, learned.bounds)
    question = Question(learned, rows, source, allowed)
    answers.cardinality[answers.status == Status.ALREADY] = 0
    found = outcome_of(question, np.arange(len(values)), targets, answers, cost)
    left = np.flatnonzero((answers.status == Status.UNRESOLVED) | answers.close)
    if left.size:
        asked = question.at(0)
        solved = solve(asked, left, targets[left])
        found.put(left, verified(asked, left, targets[left], solved))
    return found
