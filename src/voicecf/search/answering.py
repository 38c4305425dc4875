"""From a question to its outcome: solve, convert to the user's units, verify, measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from voicecf.geometry.arrays import Array, Ints
from voicecf.parallel import expect
from voicecf.search.outcome import Outcome
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import Solver, measure, solve, solve_nearest
from voicecf.solver.projection import Projection
from voicecf.status import Status
from voicecf.table.frames import taken
from voicecf.table.rows import Rows, without_values

# Factors on the rounding guard, tried one after the other while the model assigns an answer, in the
# user's units, to another cluster than its target.
GUARD_FACTORS = (8.0, 64.0, 512.0, 4096.0)


def answer(question: Question, pairs: Pairs, *, deepen: bool = False) -> Outcome:
    """Answer pairs of row and target.

    Parameters
    ----------
    question : Question
    pairs : Pairs
    deepen : bool
        If True, a row that is in its target already moves into the contracted cell.
    """
    answers, targets = solve_pairs(question, pairs, deepen=deepen)
    found = verified(question, pairs.row, targets, answers)
    unreadable = found.status == Status.UNREADABLE
    if pairs.named or not unreadable.any():
        return found
    # The target of a row that cannot be read is not known: one answer says so.
    found.target[unreadable] = -1
    first = np.append(True, np.diff(found.row) != 0)
    return found[~unreadable | first]


def solve_pairs(
    question: Question, pairs: Pairs, solver: Solver = solve, *, deepen: bool = False
) -> tuple[Projection, Ints]:
    """Solve pairs of row and target, and return the answers and their targets.

    Rows that are in their target already do not change, unless `deepen` is True.
    """
    expect(len(pairs.row))
    if pairs.target is None:
        return solve_nearest(question, solver)
    rows, targets = pairs.row, pairs.target
    already = np.flatnonzero(question.source[rows] == targets)
    points = question.points[rows[already]]
    if deepen or already.size == 0:
        answers = solver(question, rows, targets)
    else:
        away = np.flatnonzero(question.source[rows] != targets)
        answers = Projection.unresolved(len(rows), points.shape[1])
        answers.put(away, solver(question, rows[away], targets[away]))
        answers.points[already] = points
        answers.gap[already] = 0.0
    if already.size:
        unchanged = already[(answers.points[already] == points).all(axis=1)]
        answers.status[unchanged] = Status.ALREADY
        answers.rho[unchanged] = np.inf
        answers.cardinality[unchanged] = 0
    return answers, targets


def verified(
    question: Question,
    rows: Ints,
    targets: Ints,
    answers: Projection,
    again: Callable[[Ints, float], Projection] | None = None,
) -> Outcome:
    """Convert answers to the user's columns, verify them there, and measure them.

    A wrong answer, one that the model assigns to another cluster or that violates a rule, is solved
    again with a larger rounding guard. What is wrong with the largest guard remains unresolved.

    Parameters
    ----------
    question : Question
    rows, targets : array of shape (n,)
    answers : Projection
    again : callable, optional
        ``again(which, guard_factor)`` solves some of the problems again; `solve` if left out.
    """
    space, allowed = question.learned.space, question.allowed
    if space.steps is None and allowed.choices is None and not allowed.linear:
        return measured(question, rows, targets, answers, None)
    output, points, wrong = _round_trip(question, rows, targets, answers)
    for factor in GUARD_FACTORS:
        if wrong.size == 0:
            break
        if again is None:
            others = solve(question, rows[wrong], targets[wrong], guard_factor=factor)
        else:
            others = again(wrong, factor)
        answers.put(wrong, others)
        output, points, wrong = _round_trip(question, rows, targets, answers)
    if wrong.size:
        blank = Projection.unresolved(len(wrong), points.shape[1])
        blank.cardinality[:] = answers.cardinality[wrong]
        answers.put(wrong, blank)
        points[wrong] = np.nan
        output = _in_user_columns(question, rows, answers.points)
    return measured(question, rows, targets, replace(answers, points=points), output)


def _in_user_columns(question: Question, rows: Ints, points: Array) -> Rows | None:
    """Return answers in the user's columns; None if these are the coordinates themselves."""
    space, allowed = question.learned.space, question.allowed
    if space.steps is None:
        return None
    return space.write(
        points, question.rows, rows, *allowed.sides, allowed.grids, allowed.least, question.ends
    )


def _round_trip(
    question: Question, rows: Ints, targets: Ints, answers: Projection
) -> tuple[Rows | None, Array, Ints]:
    """Convert answers to the user's columns and back to coordinates, and verify the result.

    Parameters
    ----------
    question : Question
    rows, targets : array of shape (n,)
    answers : Projection
        As the solver returned them.

    Returns
    -------
    output : Rows or None
        The answers in the user's columns; None if these are the coordinates themselves.
    points : array of shape (n, d)
        Their coordinates; NaN where there is no answer.
    wrong : array of int
        Indices of answers outside their target or against a rule.
    """
    learned = question.learned
    output = _in_user_columns(question, rows, answers.points)
    missing, own = without_values(answers.points), taken(question.points, rows)
    if output is None:
        points = _on_grids(question, rows, np.where(missing[:, None], own, answers.points))
        back = Rows(None, points, points)
    else:
        back = learned.space.read_again(output)
    wrong = (learned.labels(back, alone=False) != targets) | ~question.holds(rows, targets, back)
    points = np.where(answers.points == own, answers.points, back.points)
    points[missing] = np.nan
    return output, points, np.flatnonzero(wrong & answers.answered)


def _on_grids(question: Question, rows: Ints, points: Array) -> Array:
    """Round the changed values of columns with a grid to the values of that grid."""
    space = question.learned.space
    points = points.astype(space.dtype).astype(np.float64)
    for c, grid in enumerate(question.allowed.grids or ()):
        if grid is not None:
            at = space.columns[c].places[0]
            moved = points[:, at] != question.points[rows, at]
            points[moved, at] = grid.values_at(points[moved, at], points[moved, at])
    return points


def measured(
    question: Question, rows: Ints, targets: Ints, answers: Projection, output: Rows | None
) -> Outcome:
    """Return the outcome of answers: with cost and relative gap."""
    space = question.learned.space
    single = space.steps is None and space.dtype != np.float64
    points = answers.points.astype(space.dtype) if single else answers.points
    doubles = points.astype(np.float64, copy=False)
    cost, energy = measure(question, rows, doubles)
    answers = replace(answers, points=points, gap=relative(answers.gap, energy))
    return outcome_of(question, rows, targets, answers, cost, output)


def outcome_of(
    question: Question,
    rows: Ints,
    targets: Ints,
    answers: Projection,
    cost: Array,
    output: Rows | None = None,
) -> Outcome:
    """Return the outcome of answers whose cost has been computed."""
    found = Outcome(
        question, rows, targets, answers.points, answers.status, cost, answers.cardinality,
        answers.rho, answers.gap, np.zeros(len(rows), dtype=np.int64), output,
    )  # fmt: skip
    return _without_unreadable(found) if question.rows.faults else found


def _without_unreadable(found: Outcome) -> Outcome:
    """Return answers, none of them for a row that cannot be read."""
    unreadable = np.array(list(found.rows.faults))
    source = found.question.source.copy()
    source[unreadable] = -1
    at = np.isin(found.row, unreadable)
    for values in (found.points, found.cost, found.rho, found.gap):
        values[at] = np.nan
    found.cardinality[at] = 0
    found.status[at] = Status.UNREADABLE
    return replace(found, question=replace(found.question, source=source))


def relative(gap: Array, energy: Array) -> Array:
    """Return a duality gap relative to half the energy, or to 1/2 where that is 0."""
    return np.asarray(2.0 * gap / np.where(energy > 0, energy, 1.0))
