"""Answers in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from voicecf.output.digits import decimal
from voicecf.output.wording import exact, joined
from voicecf.search.outcome import Outcome
from voicecf.search.solving import aim_at
from voicecf.status import Status

# How many changes a line of a printout names; `sentence` names all of them.
NAMED = 6
# Multiples of a change beyond which it may be as large as one likes.
FAR = 1e6
# Share of a multiple that is left out, so that it lands in spite of rounding.
CAREFUL = 1e-6


def sentence(outcome: Outcome, i: int) -> str:
    """Say answer i with the digits that it has."""
    row, source, target = outcome.row[i], outcome.source[i], outcome.target[i]
    status = Status(outcome.status[i])
    if status == Status.ALREADY:
        return f"Row {row} is in cluster {target} already; nothing has to change."
    if not outcome.feasible[i]:
        return f"Row {row} cannot move from cluster {source} to {target}: {status.diagnosis}"
    if outcome.n_changed[i] == 0:
        border = f"lies on the border of clusters {source} and {target}"
        return f"Row {row} {border}: the slightest change moves it."
    verb = "stays in" if source == target else f"moves from cluster {source} to"
    where = f"cluster {target}, deeper" if source == target else f"{target}"
    moved = joined([_phrase(outcome, i, c) for c in outcome.changed(i)])
    return f"Row {row} {verb} {where} if {moved}{_limit(outcome, i)}."


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield a sentence for each answer; of one with many changes, how many they are."""
    for i in range(len(outcome)):
        if outcome.feasible[i] and outcome.n_changed[i] > NAMED:
            move = f"moves from cluster {outcome.source[i]} to {outcome.target[i]}"
            yield f"Row {outcome.row[i]} {move} by {outcome.n_changed[i]} changes: see .text({i})"
        else:
            yield sentence(outcome, i)


def _phrase(outcome: Outcome, i: int, c: int) -> str:
    """Say the change of one column."""
    space = outcome.space
    name = legible(space.names[c])
    before, after = (values[c][i] for values in outcome.values)
    if space.columns[c].kind == "category":
        return f"{name} changes from {_level_text(before)} to {_level_text(after)}"
    truth = space.is_boolean(c, outcome.rows)
    if np.isnan(before):
        return f"{name}, which is missing, is {bool(after) if truth else exact(after)}"
    if truth:
        return f"{name} changes from {bool(before)} to {bool(after)}"
    verb = "rises" if after > before else "falls"
    return f"{name} {verb} from {exact(before)} to {exact(after)}"


def _limit(outcome: Outcome, i: int) -> str:
    """Say how much larger the same change may be; nothing where it has no multiples."""
    times = largest_multiple(outcome, i)
    if times is None:
        return ""
    if times > FAR:
        return f"; however much larger, the same change still lands in cluster {outcome.target[i]}"
    if times < 1.05:
        return "; it may not be larger"
    return f"; up to {times:g} times this change still lands in cluster {outcome.target[i]}"


def largest_multiple(outcome: Outcome, i: int) -> float | None:
    """Return the largest multiple of change i that stays in its region, rounded down to two digits.

    None where a change has no multiples in the user's units: categories, and numbers behind a
    curve.
    """
    question, row, target = outcome.question, int(outcome.row[i]), int(outcome.target[i])
    columns = [outcome.space.columns[c] for c in outcome.changed(i)]
    if not all(column.kind == "number" and column.affine for column in columns):
        return None
    region = aim_at(question, target).region
    lo, hi = (side if side.ndim == 1 else side[row % len(side)] for side in (region.lo, region.hi))
    start, end = question.points[[row]], outcome.points[[i]].astype(np.float64)
    rho = float(region.within(lo, hi).rho(start, end)[0]) * (1.0 - CAREFUL)
    if not 1.0 <= rho <= FAR:
        return max(rho, 1.0)
    return float(decimal(rho, np.floor(np.log10(rho)) - 1, -1.0))


def legible(name: Any) -> str:
    """Write a column's name so that it is seen to be one."""
    text = str(name)
    return text if text.strip() and text.isprintable() else repr(text)


def _level_text(level: Any) -> str:
    return "missing" if level is None or level != level else legible(level)
