"""Answer a question without rules in one pass over memory.

It is for tables of numbers, one target per row, least cost and the learned bounds. Each row is
copied, assigned, projected and measured while it is in the cache. The result is the same as that of
`read`, `solve` and `measure`, which take a pass each.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array, Ints
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import NO_RULES, Allowed
from voicecf.search.answering import outcome_of, relative
from voicecf.search.answers import Answers
from voicecf.search.outcome import Outcome
from voicecf.search.question import Question, read_target
from voicecf.search.solving import measure, solve
from voicecf.solver.projection import Pass
from voicecf.status import Status
from voicecf.table.extra import read_with_extra
from voicecf.table.rows import Rows


def answer_in_one_pass(
    learned: Learned,
    X: Any,
    target: Any,
    id: Any = None,
    errors: Literal["status", "raise"] = "raise",
) -> Outcome:
    """Find the cheapest answer for each row within the learned bounds."""
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and id is None:
        learned.space._check_width(X.shape[1])
        found = _answer(learned, np.ascontiguousarray(X), None, target)
        if found is not None:
            return found
    rows = read_with_extra(learned.space, X, id, errors)
    found = _answer(learned, np.ascontiguousarray(rows.points), rows, target)
    assert found is not None
    return found


def _answer(learned: Learned, values: Array, rows: Rows | None, target: Any) -> Outcome | None:
    """Answer rows of numbers; None if some are not finite. Without `rows` they are copied first."""
    space, cells = learned.space, learned.cells
    assert cells is not None
    targets = read_target(target, len(values), learned)
    box, smallest = learned.bounds.box, np.zeros(space.n_coordinates)
    done = Pass.over(values, rows is None, targets, box, cells, smallest)
    if not _ask_the_model(learned, done, targets):
        return None
    rows = Rows(None, done.points, done.points, array=done.points) if rows is None else rows
    allowed = Allowed.of(space, NO_RULES, rows, learned.bounds)
    question = Question(learned, rows, done.source, allowed)
    cardinality = np.full(len(values), space.n_coordinates)
    cardinality[done.projection.status == Status.ALREADY] = 0
    answers = Answers.of(done.projection, cardinality)
    left = np.flatnonzero(answers.status == Status.UNRESOLVED)
    if left.size:
        answers.put(left, solve(question, left, targets[left]))
        done.cost[left], energy = measure(question, left, answers.points[left])
        answers.gap[left] = relative(answers.gap[left], energy)
    every = np.arange(len(values))
    return outcome_of(question, every, targets, answers, done.cost)


def _ask_the_model(learned: Learned, done: Pass, targets: Ints) -> bool:
    """Call the model's `predict` for rows whose cluster could depend on rounding.

    Returns False if some of them are not finite.
    """
    doubtful = np.flatnonzero(done.source < 0)
    if doubtful.size == 0:
        return True
    if not np.isfinite(done.points[doubtful]).all():
        return False
    done.source[doubtful] = learned.partition.labels(done.points[doubtful])
    done.stay(doubtful[done.source[doubtful] == targets[doubtful]])
    return True
