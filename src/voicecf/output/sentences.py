"""Answers as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from voicecf.output.digits import decimal
from voicecf.output.wording import exact, joined
from voicecf.search.outcome import Outcome
from voicecf.search.solving import aim_at
from voicecf.status import Status

# A line of a printout names at most this many changes; `sentence` names all of them.
NAMED = 6
# Largest multiple of a change that a sentence prints.
FAR = 1e6
# Relative amount by which a multiple is reduced, so that rounding does not move it out of the cell.
CAREFUL = 1e-6
# How a sentence about a row without an answer starts.
FAILURES = {
    Status.INFEASIBLE: "Row {row} cannot {move}.",
    Status.UNRESOLVED: "It is not known whether row {row} can {move}.",
    Status.MISSED: "Row {row} does not {move}.",
}


def sentence(outcome: Outcome, i: int) -> str:
    """Describe answer i, its values with all the digits that they have in `outcome`."""
    row, target = outcome.row[i], outcome.target[i]
    status = Status(outcome.status[i])
    if status == Status.UNREADABLE:
        return outcome.rows.faults[int(row)]
    if status == Status.ALREADY:
        return f"Row {row} is in cluster {target} already; nothing has to change."
    if not outcome.feasible[i]:
        start = FAILURES[status].format(row=row, move=_move(outcome, i, "move"))
        return f"{start} {status.diagnosis}"
    if outcome.n_changed[i] == 0:
        return f"Row {row} {_move(outcome, i)} with a change that is too small to count."
    changes = joined([_phrase(outcome, i, c) for c in outcome.changed(i)])
    larger = limit(outcome, i, f"in cluster {target}")
    return f"Row {row} {_move(outcome, i)} if {changes}{'; ' * bool(larger)}{larger}."


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield a sentence for each answer; one with many changes only counts them."""
    for i in range(len(outcome)):
        if outcome.feasible[i] and outcome.n_changed[i] > NAMED:
            move = f"Row {outcome.row[i]} {_move(outcome, i)}"
            yield f"{move} with {outcome.n_changed[i]} changes; see .text({i})"
        else:
            yield sentence(outcome, i)


def _move(outcome: Outcome, i: int, verb: str = "moves") -> str:
    """Say where the row of an answer goes."""
    source, target = outcome.source[i], outcome.target[i]
    if source == target:
        return f"{verb} deeper into cluster {target}"
    return f"{verb} from cluster {source} to {target}"


def _phrase(outcome: Outcome, i: int, c: int) -> str:
    """Describe the change of one column."""
    space = outcome.space
    name = legible(space.names[c])
    before, after = (values[c][i] for values in outcome.values)
    if not space.columns[c].numeric:
        return f"{name} changes from {_level_text(before)} to {_level_text(after)}"
    truth = space.is_boolean(c, outcome.rows)
    if np.isnan(before):
        return f"{name}, which is missing, becomes {bool(after) if truth else exact(after)}"
    if truth:
        return f"{name} changes from {bool(before)} to {bool(after)}"
    verb = "rises" if after > before else "falls"
    return f"{name} {verb} from {exact(before)} to {exact(after)}"


def limit(outcome: Outcome, i: int, where: str = "there") -> str:
    """Say how much larger change i may be; an empty text if it has no multiples."""
    times = largest_multiple(outcome, i)
    if times is None:
        return ""
    if np.isinf(times):
        return f"however much larger, the same change still lands {where}"
    if times < 1.05:
        return "this change may hardly be larger"
    return f"up to {min(times, FAR):.7g} times this change still lands {where}"


def largest_multiple(outcome: Outcome, i: int) -> float | None:
    """Return the largest multiple of change i that stays in its region, rounded down to two digits.

    None if a change has no multiples in the user's units: it is one of a category, of a missing
    value, or of a number that the pipeline transforms nonlinearly.
    """
    question, row, target = outcome.question, int(outcome.row[i]), int(outcome.target[i])
    if not all(_has_multiples(outcome, i, c) for c in outcome.changed(i)):
        return None
    region = aim_at(question, target).region
    lo, hi = (side if side.ndim == 1 else side[row % len(side)] for side in (region.lo, region.hi))
    start, end = question.points[[row]], outcome.points[[i]].astype(np.float64)
    rho = float(region.within(lo, hi).rho(start, end)[0]) * (1.0 - CAREFUL)
    if not 1.0 <= rho <= FAR:
        return max(rho, 1.0)
    return float(decimal(rho, np.floor(np.log10(rho)) - 1, -1.0))


def _has_multiples(outcome: Outcome, i: int, c: int) -> bool:
    column = outcome.space.columns[c]
    return column.kind == "number" and column.affine and not np.isnan(outcome.values[0][c][i])


def legible(name: Any) -> str:
    """Return a column's name, quoted if it is blank or has characters that do not print."""
    text = str(name)
    return text if text.strip() and text.isprintable() else repr(text)


def _level_text(level: Any) -> str:
    return "missing" if level is None or level != level else legible(level)
