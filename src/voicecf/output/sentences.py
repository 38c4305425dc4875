"""Answers as sentences."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from voicecf.output.calling import cluster_name, move, row_name
from voicecf.output.digits import decimal
from voicecf.search.outcome import Outcome
from voicecf.search.solving import aim_at, solve
from voicecf.status import Status
from voicecf.table.wording import exact, figure, joined, legible, level, opening

# A line of a printout names at most this many changes; `sentence` names all of them.
NAMED = 6
# Largest multiple of a change that a sentence prints.
FAR = 1e6
# Relative amount by which a multiple is reduced, so that rounding does not move it out of the cell.
CAREFUL = 1e-6
# A sentence says so if less than this share of the target's members are as extreme as the answer.
RARE = 0.05
# What an answer is the best of, for each objective.
BEST = {
    "cost": "the cheapest change",
    "prefix": "the cheapest change of the first columns of the ranking",
    "fewest": "the fewest changes, then the cheapest,",
}
# How a sentence about a row without an answer starts.
FAILURES = {
    Status.INFEASIBLE: "{row} cannot {move}",
    Status.UNRESOLVED: "it is not known whether {row} can {move}",
    Status.MISSED: "{row} does not {move}",
}


def sentence(outcome: Outcome, i: int) -> str:
    """Describe answer i, its values with all the digits that they have in `outcome`."""
    title, status = short_title(outcome, i), Status(outcome.status[i])
    if status == Status.ALREADY:
        return f"{title}; nothing has to change."
    if status == Status.UNREADABLE:
        return f"{title}: {outcome.rows.faults[int(outcome.row[i])]}"
    if not outcome.feasible[i]:
        return f"{title}. {_too_strict(outcome, i) or status.diagnosis}"
    if outcome.n_changed[i] == 0:
        changes = f"{title} with a change that is too small to count"
        return f"{'; '.join(filter(None, (changes, unproven(outcome, i))))}."
    changes = joined([_phrase(outcome, i, c) for c in outcome.changed(i)])
    target = cluster_name(outcome.learned, outcome.target[i])
    notes = limit(outcome, i, f"in {target}"), rarity(outcome, i), unproven(outcome, i)
    return f"{title} if {'; '.join(filter(None, (changes, *notes)))}."


def short_title(outcome: Outcome, i: int) -> str:
    """Say in a few words what becomes of the row of answer i."""
    row, learned = row_name(outcome.rows, outcome.row[i]), outcome.learned
    source, target = outcome.source[i], outcome.target[i]
    status = Status(outcome.status[i])
    if status == Status.UNREADABLE:
        return opening(f"{row} cannot be read")
    if status == Status.ALREADY:
        return opening(f"{row} is in {cluster_name(learned, target)} already")
    if outcome.feasible[i]:
        return opening(f"{row} {move(learned, source, target)}")
    return opening(FAILURES[status].format(row=row, move=move(learned, source, target, "move")))


def cost_in_words(outcome: Outcome) -> str:
    """Say what the cost measures, and which region the answers are the cheapest of."""
    objective = outcome.question.objective
    columns = "columns" if outcome.space.steps is None else "scaled columns"
    factors = ", times the given costs" * bool((outcome.allowed.factors != 1.0).any())
    cost = f"cost: weighted mean squared change, in units of the model's {columns}{factors}"
    if objective not in BEST:
        return cost
    best = BEST[objective]
    alpha = outcome.learned.contractions[outcome.target[outcome.feasible]]
    where = "the target"
    if not (alpha == 1.0).all():
        ends = dict.fromkeys([figure(alpha.min()), figure(alpha.max())])
        where += f", contracted to {' to '.join(ends)} of its size"
    stopped = (outcome.status == Status.STOPPED).any()
    found = "; where the search was stopped, the best that it found" * bool(stopped)
    return f"{cost}; {best} that lands in {where}{found}"


def lines(outcome: Outcome) -> Iterator[str]:
    """Yield a sentence for each answer; one with many changes only counts them."""
    for i in range(len(outcome)):
        if outcome.feasible[i] and outcome.n_changed[i] > NAMED:
            title = short_title(outcome, i)
            notes = unproven(outcome, i), f"see .text({i})"
            yield "; ".join([f"{title} with {outcome.n_changed[i]} changes", *filter(None, notes)])
        else:
            yield sentence(outcome, i)


def _phrase(outcome: Outcome, i: int, c: int) -> str:
    """Describe the change of one column."""
    space = outcome.space
    name = legible(space.names[c])
    before, after = (values[c][i] for values in outcome.values)
    if not space.columns[c].numeric:
        return f"{name} changes from {level(before)} to {level(after)}"
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
    return f"up to {figure(min(times, FAR))} times this change still lands {where}"


def rarity(outcome: Outcome, i: int) -> str:
    """Say that few members of the target are as extreme as answer i; else an empty text."""
    share = outcome.usual[i]
    if not share < RARE:  # NaN if nothing is known of the members
        return ""
    few = f"only {figure(100 * share, 2)} %" if share > 0 else "none"
    target = cluster_name(outcome.learned, outcome.target[i])
    return f"unusual: {few} of the members of {target} are as extreme"


def unproven(outcome: Outcome, i: int) -> str:
    """Say that the search for answer i reached its limit, and what it left open; else nothing."""
    if outcome.status[i] != Status.STOPPED:
        return ""
    cheaper = f"{figure(100 * min(max(float(outcome.gap[i]), 0.0), 1.0), 2)} % cheaper"
    if outcome.question.objective == "fewest":
        return f"the search reached its limit: fewer changes, or up to {cheaper} ones, may do"
    return f"the search reached its limit: another change may be up to {cheaper}"


def _too_strict(outcome: Outcome, i: int) -> str:
    """Say that a row has answers, but none that a rule about the target allows; else nothing."""
    question, row, target = outcome.question, outcome.row[[i]], outcome.target[[i]]
    rules = question.allowed.rules
    asked = [rule for rule in rules.said() if rule.by_target]
    for rule in asked if outcome.status[i] == Status.INFEASIBLE else ():
        loose = replace(question.allowed, rules=replace(rules, **{rule.word: None}))
        if solve(replace(question, allowed=loose), row, target).answered[0]:
            box = question.within_reach(int(row[0]), int(target[0]))
            missed = rule.missed(outcome.learned, int(target[0]), box)
            there_is = f"without `{rule.word}` there is one, see reason(i)"
            return f"No allowed change is {missed}; {there_is}."
    return ""


def largest_multiple(outcome: Outcome, i: int) -> float | None:
    """Return the largest multiple of change i that stays in its region, rounded down to two digits.

    None if a change has no multiples in the user's units: it is one of a category, of a missing
    value, or of a number that the pipeline transforms nonlinearly; or if a rule that is not linear
    limits it.
    """
    question, row, target = outcome.question, int(outcome.row[i]), int(outcome.target[i])
    if not all(_has_multiples(outcome, i, c) for c in outcome.changed(i)):
        return None
    region = aim_at(question, row, target).region
    lo, hi = (side if side.ndim == 1 else side[row % len(side)] for side in (region.lo, region.hi))
    start, end = question.points[[row]], outcome.points[[i]].astype(np.float64)
    rho = float(region.within(lo, hi).rho(start, end)[0]) * (1.0 - CAREFUL)
    if not 1.0 <= rho <= FAR:
        return max(rho, 1.0)
    return float(decimal(rho, np.floor(np.log10(rho)) - 1, -1.0))


def _has_multiples(outcome: Outcome, i: int, c: int) -> bool:
    column, splits = outcome.space.columns[c], outcome.allowed.splits
    if splits is not None and c in splits.columns(outcome.space):
        return False
    return column.kind == "number" and column.affine and not np.isnan(outcome.values[0][c][i])
