"""Answers in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from voicecf.output.wording import exact, joined
from voicecf.search.outcome import Outcome
from voicecf.status import Status

# How many changes a line of a printout names; `sentence` names all of them.
NAMED = 6
# How many times as far is as good as any distance.
FAR = 1e6


def sentence(outcome: Outcome, i: int) -> str:
    """Say answer i with the digits that it has."""
    row, source, target = outcome.row[i], outcome.source[i], outcome.target[i]
    status = Status(outcome.status[i])
    if status == Status.ALREADY:
        return f"Row {row} is in cluster {target} already; nothing has to change."
    if not outcome.feasible[i]:
        return f"Row {row} cannot move from cluster {source} to {target}: {status.diagnosis}"
    if outcome.n_changed[i] == 0:
        return f"Row {row} lies on the border of clusters {source} and {target}: a touch moves it."
    verb = "stays in" if source == target else f"moves from cluster {source} to"
    where = f"cluster {target}, deeper" if source == target else f"{target}"
    moved = joined([_phrase(outcome, i, c) for c in outcome.changed(i)])
    return f"Row {row} {verb} {where} if {moved}; {_reach(outcome.rho[i])}."


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
    truth = space.is_truth(c, outcome.rows)
    if np.isnan(before):
        return f"{name}, which is missing, is {bool(after) if truth else exact(after)}"
    if truth:
        return f"{name} changes from {bool(before)} to {bool(after)}"
    verb = "rises" if after > before else "falls"
    return f"{name} {verb} from {exact(before)} to {exact(after)}"


def _reach(rho: float) -> str:
    """Say how far the same change may go on."""
    if rho > FAR:
        return "it can go any distance that way"
    return (
        f"it can go {rho:.2g} times as far before it leaves"
        if rho >= 1.05
        else "it can go no further"
    )


def legible(name: Any) -> str:
    """Write a column's name so that it is seen to be one."""
    text = str(name)
    return text if text.strip() and text.isprintable() else repr(text)


def _level_text(level: Any) -> str:
    return "missing" if level is None or level != level else legible(level)
