"""From a question to its outcome: solve, write in the user's units, ask `predict`, measure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from voicecf.geometry.arrays import Array, Ints
from voicecf.search.answers import Answers
from voicecf.search.outcome import Outcome
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import Solver, measure, solve, solve_nearest
from voicecf.status import Status
from voicecf.table.rows import Rows

# By how much the guard grows, turn by turn, where the model sees an answer outside its target.
CAUTION = (8.0, 64.0, 512.0, 4096.0)


def answer(question: Question, pairs: Pairs, *, deepen: bool = False) -> Outcome:
    """Answer pairs of row and target.

    Parameters
    ----------
    question : Question
    pairs : Pairs
    deepen : bool
        Whether a row that is in its target already moves on into the contracted cell.
    """
    answers, targets = solve_pairs(question, pairs, deepen=deepen)
    return verified(question, pairs.row, targets, answers)


def solve_pairs(
    question: Question, pairs: Pairs, solver: Solver = solve, *, deepen: bool = False
) -> tuple[Answers, Ints]:
    """Solve pairs of row and target, and return the answers and their targets.

    Rows that are in their target already stay where they are, unless they are to go deeper.
    """
    if pairs.target is None:
        return solve_nearest(question, solver)
    rows, targets = pairs.row, pairs.target
    points, there = question.points[rows], question.source[rows] == targets
    if deepen or not there.any():
        answers = solver(question, rows, targets)
    else:
        away = np.flatnonzero(~there)
        answers = Answers.blank(*points.shape)
        answers.put(away, solver(question, rows[away], targets[away]))
        answers.points[there] = points[there]
        answers.gap[there] = 0.0
    if there.any():
        still = there & (answers.points == points).all(axis=1)
        answers.status[still] = Status.ALREADY
        answers.rho[still] = np.inf
        answers.cardinality[still] = 0
    return answers, targets


def verified(question: Question, rows: Ints, targets: Ints, answers: Answers) -> Outcome:
    """Write answers in the user's columns, take the model's word for them, and measure them.

    What the model sees outside its target is answered again, with more slack.
    """
    space, allowed = question.learned.space, question.allowed
    if space.steps is None and allowed.choices is None and not allowed.constraints:
        return measured(question, rows, targets, answers, None)
    wanted = answers.points.copy()
    for caution in CAUTION:
        output, lost = _astray(question, rows, targets, wanted, answers)
        if lost.size == 0:
            return measured(question, rows, targets, answers, output)
        again = solve(question, rows[lost], targets[lost], caution=caution)
        answers.put(lost, again)
        wanted[lost] = again.points
    output, lost = _astray(question, rows, targets, wanted, answers)
    if lost.size:
        blank = Answers.blank(len(lost), wanted.shape[1])
        blank.cardinality[:] = answers.cardinality[lost]
        answers.put(lost, blank)
        wanted[lost] = np.nan
        output = _written(question, rows, wanted)
    return measured(question, rows, targets, answers, output)


def _written(question: Question, rows: Ints, points: Array) -> Rows | None:
    """Write answers in the user's columns; None where these are the coordinates themselves."""
    space, allowed = question.learned.space, question.allowed
    if space.steps is None:
        return None
    return space.write(points, question.rows, rows, *allowed.sides, allowed.grids)


def _astray(
    question: Question, rows: Ints, targets: Ints, wanted: Array, answers: Answers
) -> tuple[Rows | None, Ints]:
    """Write answers, read them again; keep what was read, and tell which went astray."""
    learned = question.learned
    output = _written(question, rows, wanted)
    found = np.flatnonzero(~np.isnan(wanted).any(axis=1))
    if output is None:
        points = _on_grids(question, rows[found], wanted[found])
        again = Rows(None, points, points)
    else:
        again = learned.space.read_again(output.take(found))
    still = wanted[found] == question.points[rows[found]]
    answers.points[found] = np.where(still, wanted[found], again.points)
    astray = learned.labels(again) != targets[found]
    for constraint in question.allowed.constraints:
        astray |= ~constraint.holds(learned.space.user_numbers(again))
    return output, found[astray & answers.found[found]]


def _on_grids(question: Question, rows: Ints, points: Array) -> Array:
    """Put columns that keep to a grid, and moved, on its values, as the user writes them."""
    space = question.learned.space
    points = points.astype(space.dtype).astype(np.float64)
    for c, grid in enumerate(question.allowed.grids or ()):
        if grid is not None:
            at = space.columns[c].places[0]
            moved = points[:, at] != question.points[rows, at]
            points[moved, at] = grid.values_at(points[moved, at], points[moved, at])
    return points


def measured(
    question: Question, rows: Ints, targets: Ints, answers: Answers, output: Rows | None
) -> Outcome:
    """Return answers with their cost, relative gap and number of changes."""
    space = question.learned.space
    single = space.steps is None and space.dtype != np.float64
    points = answers.points.astype(space.dtype) if single else answers.points
    doubles = points.astype(np.float64, copy=False)
    cost, energy, changed = measure(question, rows, doubles)
    if not space.is_plain:
        moves = doubles - question.points[rows]
        changed = space.changed(moves, question.learned.smallest_change).sum(axis=1)
    answers = replace(answers, points=points, gap=relative(answers.gap, energy))
    return outcome_of(question, rows, targets, answers, (cost, changed), output)


def outcome_of(
    question: Question,
    rows: Ints,
    targets: Ints,
    answers: Answers,
    measures: tuple[Array, Ints],
    output: Rows | None = None,
) -> Outcome:
    """Return an outcome whose cost and number of changes are known."""
    cost, changed = measures
    return Outcome(
        question, rows, targets, answers.points, answers.status, cost, changed,
        answers.cardinality, answers.rho, answers.gap, np.zeros(len(rows), dtype=np.int64), output,
    )  # fmt: skip


def relative(gap: Array, energy: Array) -> Array:
    """Return a duality gap relative to half the energy, where there is any."""
    return np.asarray(2.0 * gap / np.where(energy > 0, energy, 1.0))
