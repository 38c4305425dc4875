"""Answers in few digits, and the sentences about them: each is rounded once."""

from __future__ import annotations

import numpy as np

from voicecf.geometry.arrays import Ints
from voicecf.output.digits import Digits, fewest_digits
from voicecf.output.sentences import Sentences
from voicecf.search.outcome import Outcome

# Whoever asks for one sentence gets the answers next to it rounded as well: so many take hardly
# longer than one, and most ask for the next sentence next.
BLOCK = 256


class Short:
    """The answers of a batch in few digits; each is rounded when it is first asked for.

    All parts of a batch, such as ``cf[3]`` and ``cf[cf.feasible]``, share one.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf import VoICE
    >>> from voicecf.output.short import Short
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> short = Short(voice.explain([[1.0, 5.0], [1.5, 5.0]], target=1).outcome)
    >>> short[np.array([1])].points
    array([[2.001, 5.   ]])
    """

    def __init__(self, answers: Outcome) -> None:
        self._answers = answers
        self._digits = Digits.empty(answers)
        self._open = np.ones(len(answers), dtype=np.bool_)
        self._blocks: dict[int, Sentences] = {}

    def __getitem__(self, at: Ints) -> Outcome:
        """Return the answers at some positions of the batch."""
        left = at[self._open[at]]
        if len(left):
            self._digits.put(left, fewest_digits(self._answers[left]))
            self._open[left] = False
        some = self._answers[at]
        return self._digits.written(some, at) if len(at) else some

    def text(self, at: int) -> str:
        """Describe the answer at a position of the batch in a sentence."""
        block, i = divmod(int(at), BLOCK)
        if block not in self._blocks:
            last = min((block + 1) * BLOCK, len(self._answers))
            self._blocks[block] = Sentences(self[np.arange(block * BLOCK, last)])
        return self._blocks[block].text(i)


def rounded(answers: Outcome) -> Outcome:
    """Return the answers in as few digits as still land; see `Counterfactuals.rounded`."""
    return Short(answers)[np.arange(len(answers))]
