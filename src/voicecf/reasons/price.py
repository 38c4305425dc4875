"""What a rule, or the contraction, adds to the cost of answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from voicecf.errors import OptionError, known_option
from voicecf.geometry.arrays import Array
from voicecf.reasons.case import with_rules
from voicecf.rules.rules import RULES
from voicecf.search.answering import answer
from voicecf.search.outcome import Outcome
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status

CONTRACTION = "contraction"


def cost_without(outcome: Outcome, word: str) -> Array:
    """Solve a question again without one of its rules; see `Counterfactuals.cost_without`."""
    if outcome.question.objective == PAIRWISE:
        raise OptionError("cost_without is available for answers of VoICE only, not of CFCLUST.")
    question = _without(outcome.question, word)
    moved = (outcome.source == outcome.target) & (outcome.status != Status.ALREADY)
    pairs = Pairs(outcome.row, np.maximum(outcome.target, 0))  # -1 for rows that cannot be read
    found = answer(question, pairs, deepen=bool(moved.any()))
    return np.where(found.feasible, found.cost, np.nan)


def _without(question: Question, word: str) -> Question:
    """Return a question without the contraction, or without one of its rules."""
    known_option(word, (CONTRACTION, *RULES), "word")
    if word == CONTRACTION:
        return replace(question, learned=question.learned.contracted(1.0))
    return with_rules(question, replace(question.allowed.rules, **{word: None}))
