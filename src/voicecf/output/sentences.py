"""Answers as sentences."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.output.calling import cluster_name, move, row_name
from voicecf.output.digits import decimal, short_before
from voicecf.output.values import changed_cells
from voicecf.search.outcome import Outcome
from voicecf.search.solving import aim_at, solve
from voicecf.status import Status
from voicecf.table.units import amount, has_cents
from voicecf.table.wording import figure, joined, legible, level, opening

# A sentence names at most this many changes, and of more only the costliest ones.
NAMED = 6
COSTLIEST = 4
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
    "price": "the change of least price",
}
# How a sentence about a row without an answer starts.
FAILURES = {
    Status.INFEASIBLE: "{row} cannot {move}",
    Status.UNRESOLVED: "it is not known whether {row} can {move}",
    Status.MISSED: "{row} does not {move}",
}


@dataclass(frozen=True, eq=False)
class Sentences:
    """Answers in words, their values with all the digits that they have in `outcome`.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.output.sentences import Sentences
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> sentences = Sentences(voice.explain([[1.0, 5.0], [3.0, 5.0]], target=1).outcome)
    >>> sentences.title(0), sentences.text(1)
    ('Row 0 moves from cluster 0 to 1', 'Row 1 is in cluster 1 already; nothing has to change.')
    """

    outcome: Outcome

    def text(self, i: int, *, all: bool = False) -> str:
        """Describe answer i, with all of its changes or at most six."""
        outcome, title, status = self.outcome, self.title(i), Status(self.outcome.status[i])
        if status == Status.ALREADY:
            return f"{title}; nothing has to change."
        if status == Status.UNREADABLE:
            return f"{title}: {outcome.rows.faults[int(outcome.row[i])]}"
        if not self._feasible[i]:
            return f"{title}. {self._too_strict(i) or status.diagnosis}"
        if outcome.n_changed[i] == 0:
            changes = f"{title} with a change that is too small to count"
            return f"{'; '.join(filter(None, (changes, self.unproven(i))))}."
        changed = self._changed[i]
        named = len(changed) if all or len(changed) <= NAMED else COSTLIEST
        smaller = [f"{len(changed) - named} smaller ones"] if named < len(changed) else []
        changes = joined([self._phrase(i, c) for c in changed[:named]] + smaller)
        notes = self.limit(i, f"in {self._target(i)}"), self.rarity(i), self.unproven(i)
        return f"{title} if {'; '.join(filter(None, (changes, self.money(i), *notes)))}."

    def title(self, i: int) -> str:
        """Say in a few words what becomes of the row of answer i."""
        outcome, learned = self.outcome, self.outcome.learned
        row, status = row_name(outcome.rows, outcome.row[i]), Status(outcome.status[i])
        if status == Status.UNREADABLE:
            return opening(f"{row} cannot be read")
        if status == Status.ALREADY:
            return opening(f"{row} is in {self._target(i)} already")
        verb = "moves" if self._feasible[i] else "move"
        moves = move(learned, outcome.source[i], outcome.target[i], verb)
        if self._feasible[i]:
            return opening(f"{row} {moves}")
        return opening(FAILURES[status].format(row=row, move=moves))

    def limit(self, i: int, where: str = "there") -> str:
        """Say how much larger change i may be; an empty text if it has no multiples."""
        times = self.multiples[i]
        if np.isnan(times):
            return ""
        if np.isinf(times):
            return f"however much larger, the same change still lands {where}"
        if times < 1.05:
            return "this change can hardly be larger"
        return f"up to {figure(min(times, FAR))} times this change still lands {where}"

    def money(self, i: int) -> str:
        """Say what answer i costs in money; an empty text if the objective is not the price."""
        price = self.outcome.price[i]
        return "" if np.isnan(price) else f"this costs {figure(price)}"

    def rarity(self, i: int) -> str:
        """Say that few members of the target are as extreme as answer i; else an empty text."""
        outcome, share = self.outcome, self.outcome.usual[i]
        if len(outcome.question.ladder) > 1:
            return self._no_usual_change(i)
        if not share < RARE:  # NaN if nothing is known of the members
            return ""
        few = f"only {figure(100 * share, 2)} %" if share > 0 else "none"
        return f"unusual: {few} of the members of {self._target(i)} are as extreme"

    def _no_usual_change(self, i: int) -> str:
        """Say that only the last step of the ladder brought answer i; else an empty text."""
        outcome, target = self.outcome, int(self.outcome.target[i])
        if outcome.step[i] < len(outcome.question.ladder) - 1:
            return ""
        members = outcome.learned.members_of(outcome.allowed.fixed)
        at = members.least_usual(target, outcome.points[i])
        columns = outcome.space.columns
        name = next(legible(column.name) for column in columns if at in column.places)
        return f"no change that is usual in {self._target(i)} was found; least usual is {name}"

    def unproven(self, i: int) -> str:
        """Say that the search for answer i reached its limit, and what it left open; or nothing."""
        outcome = self.outcome
        if outcome.status[i] != Status.STOPPED:
            return ""
        cheaper = f"{figure(100 * min(max(float(outcome.gap[i]), 0.0), 1.0), 2)} % cheaper"
        if outcome.question.objective == "fewest":
            return f"the search reached its limit: fewer changes, or up to {cheaper} ones, may do"
        return f"the search reached its limit: another change may be up to {cheaper}"

    @cached_property
    def multiples(self) -> Array:
        """Largest multiple of each change that stays in its region, rounded down to two digits.

        It is one of the change of the row itself, and of the change that the sentence prints.

        NaN if a change has no multiples in the user's units: it is one of a category, of a missing
        value, or of a number that the pipeline transforms nonlinearly; or if a rule that is not
        linear limits it.
        """
        outcome, question = self.outcome, self.outcome.question
        times, moved = np.full(len(outcome), np.nan), np.flatnonzero(self._has_multiples())
        rows, pieces = outcome.row[moved], outcome.piece[moved]
        sizes = outcome.step[moved], question.exponents(rows), question.leaves_bounds(rows)
        _, group = np.unique(np.column_stack([pieces, *sizes]), axis=0, return_inverse=True)
        for one in range(group.max(initial=-1) + 1):
            which = np.flatnonzero(group.ravel() == one)
            row, at = rows[which], moved[which]
            aim = aim_at(outcome.question_of(at[0]), int(row[0]), int(pieces[which[0]]))
            region = aim.region
            box = [s if s.ndim == 1 else s[row % len(s)] for s in (region.lo, region.hi)]
            ends, within = outcome.points[at].astype(np.float64), region.within(*box)
            starts = question.points[row], self._printed_points(at)
            times[at] = np.min([within.rho(start, ends) for start in starts], axis=0)
        times *= 1.0 - CAREFUL
        countable = (times >= 1.0) & (times <= FAR)
        places = np.floor(np.log10(times, where=countable, out=np.zeros(len(times)))) - 1
        return np.asarray(np.where(countable, decimal(times, places, -1.0), np.maximum(times, 1.0)))

    def _has_multiples(self) -> Mask:
        """Tell which answers change only numbers that can change by any multiple."""
        outcome, space, splits = self.outcome, self.outcome.space, self.outcome.allowed.splits
        limited = set() if splits is None else splits.columns(space)
        none = outcome.changes.copy()
        for c, column in enumerate(space.columns):
            if column.kind == "number" and column.affine and c not in limited:
                none[:, c] &= np.isnan(outcome.values[0][c])
        return self._feasible & ~none.any(axis=1)

    def _printed_points(self, at: Ints) -> Array:
        """Return the rows of some answers, in coordinates, as sentences print them.

        They have the values that sentences print, from which a reader computes multiples.
        """
        outcome, space = self.outcome, self.outcome.space
        points = outcome.question.points[outcome.row[at]]
        for c, column in enumerate(space.columns):
            if column.kind != "number":
                continue
            own, printed = (values[c][at] for values in (outcome.values[0], self._values[0]))
            which = np.flatnonzero(outcome.changes[at, c] & (own != printed))
            if len(which):
                points[np.ix_(which, column.places)] = space.coordinates(c, printed[which])
        return points

    @cached_property
    def _values(self) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
        """Values of all columns before and after, as they are printed."""
        columns, (before, after) = self.outcome.space.columns, self.outcome.values
        sides = zip(columns, before, after, strict=True)
        short = [
            short_before(own, new, has_cents(column)) if column.free else own
            for column, own, new in sides
        ]
        return short, after

    @cached_property
    def _changed(self) -> list[list[int]]:
        """The columns that each answer changes, the costliest first."""
        answers, columns = changed_cells(self.outcome)
        ends = np.searchsorted(answers, np.arange(1, len(self.outcome)))
        return [part.tolist() for part in np.split(columns, ends)]

    @cached_property
    def _columns(self) -> list[tuple[str, bool]]:
        """The name of each column, and whether it has truth values."""
        space, rows = self.outcome.space, self.outcome.rows
        return [(legible(name), space.is_boolean(c, rows)) for c, name in enumerate(space.names)]

    @cached_property
    def _feasible(self) -> Mask:
        return self.outcome.feasible

    def _target(self, i: int) -> str:
        return cluster_name(self.outcome.learned, self.outcome.target[i])

    def _phrase(self, i: int, c: int) -> str:
        """Describe the change of one column."""
        (name, truth), column = self._columns[c], self.outcome.space.columns[c]
        before, after = (values[c][i] for values in self._values)
        if not column.numeric:
            return f"{name} changes from {level(before)} to {level(after)}"
        if np.isnan(before):
            new = bool(after) if truth else amount(after, column)
            return f"{name}, which is missing, becomes {new}"
        if truth:
            return f"{name} changes from {bool(before)} to {bool(after)}"
        verb = "rises" if after > before else "falls"
        return f"{name} {verb} from {amount(before, column)} to {amount(after, column)}"

    def _too_strict(self, i: int) -> str:
        """Say that a row has answers, but none that a rule about the target allows; or nothing."""
        outcome, question = self.outcome, self.outcome.question_of(i)
        row, target, rules = outcome.row[[i]], outcome.target[[i]], question.allowed.rules
        asked = [rule for rule in rules.active() if rule.by_target]
        for rule in asked if outcome.status[i] == Status.INFEASIBLE else ():
            loose = replace(question.allowed, rules=replace(rules, **{rule.word: None}))
            if solve(replace(question, allowed=loose), row, target).answered[0]:
                box = question.within_reach(int(row[0]), int(target[0]))
                missed = rule.missed(outcome.learned, int(target[0]), box)
                there_is = f"without `{rule.word}` there is one, see reason(i)"
                return f"No allowed change is {missed}; {there_is}."
        return ""


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
    moved = outcome.feasible & (outcome.status != Status.ALREADY)
    where += _usual_in_words(outcome.share[moved])
    stopped = (outcome.status == Status.STOPPED).any()
    found = "; where the search was stopped, the best that it found" * bool(stopped)
    return f"{cost}; {best} that lands in {where}{found}"


def _usual_in_words(shares: Array) -> str:
    """Say how usual answers are that stay within shares of the members; NaN for no share."""
    asked = shares[~np.isnan(shares)]
    if not len(asked):
        return ""
    ends = dict.fromkeys(figure(100 * share) for share in (asked.min(), asked.max()))
    where_found = " where one was found" * (len(asked) < len(shares))
    return f", as usual there as {' to '.join(ends)} % of its members{where_found}"
