"""Questions, and single rows of them, solved again with some of the rules and rivals left out."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from voicecf.errors import OptionError, known_option
from voicecf.geometry.arrays import Array
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import Allowed, as_rules
from voicecf.rules.condition import Situation, Variant
from voicecf.rules.rules import RULES, Rules
from voicecf.search.answering import answer
from voicecf.search.outcome import Outcome
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import OBJECTIVES, PAIRWISE, aim_at
from voicecf.status import Status

CONTRACTION = "contraction"


def with_rules(question: Question, rules: Rules) -> Question:
    """Return a question with other rules."""
    learned, searched = question.learned, question.objective == "fewest"
    allowed = Allowed.of(
        learned.space, as_rules(rules), question.rows, learned.bounds, searched=searched
    )
    return replace(question, allowed=allowed)


def cost_without(outcome: Outcome, word: str) -> Array:
    """Solve a question again without one of its rules; see `Counterfactuals.cost_without`."""
    if outcome.question.objective == PAIRWISE:
        raise OptionError("cost_without is available for answers of VoICE only, not of CFCLUST.")
    moved = (outcome.source == outcome.target) & (outcome.status != Status.ALREADY)
    cost = np.full(len(outcome), np.nan)
    for which, part in outcome.parts():
        pairs = Pairs(part.row, np.maximum(part.target, 0))  # -1 for rows that cannot be read
        found = answer(_without(part.question, word), pairs, deepen=bool(moved.any()))
        cost[which] = np.where(found.feasible, found.cost, np.nan)
    return cost


def _without(question: Question, word: str) -> Question:
    """Return a question without the contraction, or without one of its rules."""
    known_option(word, (CONTRACTION, *RULES), "word")
    if word == CONTRACTION:
        return replace(question, learned=question.learned.contracted(1.0))
    return with_rules(question, replace(question.allowed.rules, **{word: None}))


class Case(Situation):
    """One row and target of a question.

    `asked` are the user's rules, where those of the question are one step of them.
    """

    def __init__(
        self, question: Question, row: int, target: int, asked: Rules | None = None
    ) -> None:
        rows = question.rows.take(np.array([row]))
        super().__init__(question.learned, question.allowed.rules, rows, target)
        self.question, self.row = question, row
        self.asked = self.original.rules if asked is None else asked.named(self.space)
        self._alone = replace(question, rows=rows, source=question.source[[row]])
        self._learned_of: dict[Any, Learned] = {}

    def within_reach(self) -> tuple[Array, Array]:
        """Return the least and the largest coordinates that rules allow the row in its target."""
        return self.question.within_reach(self.row, self.target)

    def box(self, piece: int) -> tuple[Array, Array]:
        """Return the box of coordinates that bounds and rules allow an answer in a piece."""
        box = self.learned.box(piece, *self.question.allowed.box)
        lo, hi = (np.atleast_2d(side) for side in box)
        return lo[self.row % len(lo)], hi[self.row % len(hi)]

    def impossible(self, variant: Variant) -> bool:
        """Tell whether it is proven that no point satisfies a variant."""
        question = self._question(self._with_own_values(variant), "cost")
        for piece in question.learned.partition.pieces_of(self.target).tolist():
            aim = aim_at(question, 0, piece)
            found = OBJECTIVES["cost"](question.points, np.zeros(1, dtype=np.int64), aim)
            if found.status[0] != Status.INFEASIBLE:
                return False
        return True

    def answer(self, variant: Variant, objective: str | None = None) -> Outcome | None:
        """Solve a variant as `explain` would; None if it has no answer."""
        asked = replace(variant, rules=self._as_asked(variant.rules))
        question = self._question(asked, objective or self.question.objective)
        pairs = Pairs(np.zeros(1, dtype=np.int64), np.array([self.target]))
        found = answer(question, pairs, deepen=bool(question.source[0] == self.target))
        return found if found.feasible[0] else None

    def explain_keywords(self, variant: Variant) -> dict[str, Any]:
        """Return the rules of a variant as keywords of `VoICE.explain`."""
        words = {rule.word: rule.value for rule in self._as_asked(variant.rules).given()}
        rules = {w: list(v) if isinstance(v, tuple) else v for w, v in words.items()}
        if self.mutable and "immutable" in rules:
            locked = rules.pop("immutable")
            rules["mutable"] = [name for name in self.space.names if name not in locked]
        if self.learned.contract_bounds and "bounds" in rules:
            # contract_bounds takes numbers only: neither text nor an ellipsis.
            columns = [self.place(name) for name in rules["bounds"]]
            rules["bounds"] = {self.space.names[c]: self.bounds(c, variant) for c in columns}
        return rules

    def _as_asked(self, rules: Rules) -> Rules:
        """Return rules, those of the step that they did not change again as the user gave them."""
        step = self.original.rules
        same = {w: getattr(self.asked, w) for w in RULES if getattr(rules, w) == getattr(step, w)}
        return replace(rules, **same)

    def _question(self, variant: Variant, objective: str) -> Question:
        question = replace(self._alone, learned=self._learned(variant), objective=objective)
        return with_rules(question, variant.rules)

    def _with_own_values(self, variant: Variant) -> Variant:
        """Widen the bounds of columns that the variant unlocks, so that they hold the row's value.

        An immutable column may lie outside its bounds, and may stay there once it is unlocked.
        """
        for name in self.original.rules.immutable:
            c = self.place(name)
            if name in variant.rules.immutable or self.space.columns[c].kind == "category":
                continue
            own, (low, high) = self.own_number(c), self.bounds(c, variant)
            if own < low or own > high:
                wider = min(low, own), max(high, own)
                variant = variant.with_column_rule("bounds", name, wider)
        return variant

    def _learned(self, variant: Variant) -> Learned:
        """Return what was learned, with the contraction and the rivals of a variant."""
        key = variant.alpha, variant.ignored_rivals
        if key not in self._learned_of:
            learned = self.learned
            if variant.alpha is not None:
                learned = learned.contracted(variant.alpha)
            if variant.ignored_rivals:
                learned = learned.without_rivals(self.target, variant.ignored_rivals)
            self._learned_of[key] = learned
        return self._learned_of[key]
