"""From a question to its outcome: solve, convert to the user's units, verify, measure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.parallel import expect
from voicecf.rules.allowed import is_continuous
from voicecf.rules.parts import values_of
from voicecf.search.confirming import MORE, confirm
from voicecf.search.outcome import Outcome
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import Solver, curves_of, measure, solve, solve_nearest
from voicecf.solver.projection import Projection
from voicecf.status import Status
from voicecf.table.frames import Cells, taken
from voicecf.table.rows import Rows, side_of, without_values
from voicecf.table.space import at_least

# Nodes of a search for a step of a ladder, but for the last one. What is not proven by then is
# asked for the next step: a proven answer is worth more than a share that nobody asked for.
STEP_LIMIT = 1000


def answer(question: Question, pairs: Pairs, *, deepen: bool = False) -> Outcome:
    """Answer pairs of row and target.

    Parameters
    ----------
    question : Question
    pairs : Pairs
    deepen : bool
        If True, a row that is in its target already moves into the contracted cell.
    """
    parts, open_, last = [], np.arange(len(pairs.row)), len(question.ladder) - 1
    for step in range(last + 1):
        asked, some = question.at(step), pairs if len(open_) == len(pairs.row) else pairs[open_]
        if step < last:
            asked = replace(asked, limit=min(asked.limit, STEP_LIMIT))
        answers, targets = solve_pairs(asked, some, deepen=deepen)
        found = verified(asked, some.row, targets, answers)
        found.step[:] = step
        done = found.feasible & (found.status != Status.STOPPED)
        done |= (found.status == Status.UNREADABLE) | (step == last)
        if done.all():
            parts.append((open_, found))
            break
        parts.append((open_[done], found[done]))
        open_ = open_[~done]
    found = Outcome.joined(parts)
    found = replace(found, question=replace(question, source=found.question.source))
    unreadable = found.status == Status.UNREADABLE
    if pairs.named or not unreadable.any():
        return found
    # The target of a row that cannot be read is not known: one answer says so.
    found.target[unreadable] = -1
    first = np.append(True, np.diff(found.row) != 0)
    return found[~unreadable | first]


def solve_pairs(
    question: Question, pairs: Pairs, solver: Solver | None = None, *, deepen: bool = False
) -> tuple[Projection, Ints]:
    """Solve pairs of row and target, and return the answers and their targets.

    Rows that are in their target already do not change, unless `deepen` is True.
    """
    expect(len(pairs.row))
    if pairs.target is None:
        return solve_nearest(question, pairs.row, solver)
    solver = solve if solver is None else solver
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

    An answer that is not confirmed is solved again with another slack: one that the model assigns
    to another cluster, that violates a rule, or, where asking the model is no proof, that has less
    slack than rounding may need. What no slack confirms remains unresolved.

    Parameters
    ----------
    question : Question
    rows, targets : array of shape (n,)
    answers : Projection
    again : callable, optional
        ``again(which, factor)`` solves some of the problems again; `solve` if left out.
    """
    if again is None:

        def again(which: Ints, factor: float) -> Projection:
            return solve(question, rows[which], targets[which], factor=factor)

    checked: Checked = _checked(question, rows, targets, answers)
    factor = np.full(len(rows), question.first_factor)
    if checked.wrong.any():

        def refused() -> Mask:
            nonlocal checked
            checked = _checked(question, rows, targets, answers)
            return checked.wrong

        used = confirm(answers, refused, again, MORE)
        factor = np.where(np.isnan(used), factor, used)
        checked = _checked(question, rows, targets, answers)
    which, curves = np.flatnonzero(answers.answered), curves_of(question)
    if curves is not None:
        reach = curves.reach(answers.points[which], answers.rho[which], rows[which])
        answers.rho[which] = reach
    answers = replace(answers, points=checked.points)
    found = measured(question, rows, targets, answers, checked.output)
    return replace(found, factor=factor)


class Checked(NamedTuple):
    """Answers in the user's columns, their coordinates, and which of them are not confirmed.

    `output` is None if coordinates are the user's columns; `points` are NaN where there is no
    answer.
    """

    output: Rows | None
    points: Array
    wrong: Mask


def _checked(question: Question, rows: Ints, targets: Ints, answers: Projection) -> Checked:
    """Check answers as the user will have them.

    Where coordinates are the user's columns, the solver has asked the model already. Where asking
    it is no proof, answers need all of the slack.
    """
    allowed = question.allowed
    if question.learned.space.steps is None and allowed.choices is None and not allowed.linear:
        checked = Checked(None, answers.points, np.zeros(len(rows), dtype=np.bool_))
    else:
        checked = _round_trip(question, rows, targets, answers)
    if not question.learned.repeatable:
        checked.wrong[answers.answered & answers.close] = True
    return checked


def _in_user_columns(question: Question, rows: Ints, points: Array) -> Rows | None:
    """Return answers in the user's columns; None if these are the coordinates themselves."""
    space, allowed = question.learned.space, question.allowed
    if space.steps is None:
        return None
    written = space.write(
        points, question.rows, rows, *allowed.sides, allowed.grids, allowed.least, question.ends
    )
    return _computed(question, rows, points, written)


def _computed(question: Question, rows: Ints, points: Array, written: Rows) -> Rows:
    """Return answers whose columns that are computed from others are what their formulas give."""
    space, allowed = question.learned.space, question.allowed
    for formula in allowed.formulas:
        c = formula.made
        column = space.columns[c]
        if not is_continuous(space, allowed, c):
            continue
        at = np.flatnonzero(points[:, column.places[0]] != question.points[rows, column.places[0]])
        at = at[~without_values(points[at])]
        values = {k: values_of(space, k, written)[at] for k in formula.sources}
        low, high = (side_of(side, rows[at], c) for side in allowed.sides)
        new = np.clip(formula.value(values), low, high)
        if c in allowed.least:
            new = at_least(new, values_of(space, c, question.rows)[rows[at]], allowed.least[c])
        every = np.arange(len(written))
        written = space.with_cells(written, every, {column.sources[0]: Cells(at, new)})
    return written


def _round_trip(question: Question, rows: Ints, targets: Ints, answers: Projection) -> Checked:
    """Convert answers to the user's columns and back to coordinates, and verify the result."""
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
    return Checked(output, points, wrong & answers.answered)


def _on_grids(question: Question, rows: Ints, points: Array) -> Array:
    """Round the changed values of columns with a grid to the values of that grid."""
    space = question.learned.space
    points = points.astype(space.dtype).astype(np.float64)
    for c, grid in enumerate(question.allowed.grids or ()):
        if grid is not None:
            at = space.columns[c].places[0]
            moved = points[:, at] != question.points[rows, at]
            points[moved, at] = grid.values_at(points[moved, at], points[moved, at])
    for formula in question.allowed.formulas:
        c = formula.made
        if is_continuous(space, question.allowed, c):
            at = space.columns[c].places[0]
            moved = points[:, at] != question.points[rows, at]
            places = {k: space.columns[k].places[0] for k in formula.sources}
            new = formula.value({k: points[moved, place] for k, place in places.items()})
            low, high = (side_of(side, rows[moved], c) for side in question.allowed.sides)
            new = np.clip(new, low, high)
            if c in question.allowed.least:
                new = at_least(new, question.points[rows[moved], at], question.allowed.least[c])
            points[moved, at] = new.astype(space.dtype)
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
    least = energy
    if question.tariff is not None:
        least = 2.0 * question.price(rows, doubles)
    answers = replace(answers, points=points, gap=relative(answers.gap, least))
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
        answers.rho, answers.gap, np.zeros(len(rows), dtype=np.int64),
        np.full(len(rows), question.first_factor), np.zeros(len(rows), dtype=np.int8), output,
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
