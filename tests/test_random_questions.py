"""Random pipelines, rules and frames: answers, sentences and suggestions all hold."""

from __future__ import annotations

import pytest

from random_questions import complaints


@pytest.mark.parametrize("seed", range(5))
def test_nothing_is_wrong_with_the_answers_to_a_random_question(seed):
    assert complaints(seed) == []


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 1_000, 50))
def test_nothing_is_wrong_with_the_answers_to_a_thousand_questions(first):
    assert [text for seed in range(first, first + 50) for text in complaints(seed)] == []
