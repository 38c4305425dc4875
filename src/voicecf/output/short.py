"""Answers in few digits, and the sentences about them: each is rounded once."""

from __future__ import annotations

import numpy as np

from voicecf.geometry.arrays import Ints
from voicecf.output.digits import Digits, fewest_digits, refused
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
        (n, d), columns = answers.points.shape, len(answers.space.columns)
        touched, self._open = np.empty((n, columns), dtype=np.bool_), np.ones(n, dtype=np.bool_)
        self._digits = Digits(np.empty((n, columns)), touched, np.empty((n, d)))
        self._blocks: dict[int, Sentences] = {}

    def __getitem__(self, at: Ints) -> Outcome:
        """Return the answers at some positions of the batch."""
        some, left = self._answers[at], np.flatnonzero(self._open[at])
        if len(left):
            new = some if len(left) == len(at) else some[left]
            self._digits.put(at[left], fewest_digits(new))
        found = self._digits.written(some, at) if len(at) else some
        wrong = refused(found) if len(left) else left
        if len(wrong):
            self._digits.put(at[wrong], Digits.exact(some[wrong]))
            found = self._digits.written(some, at)
        self._open[at] = False
        return found

    def text(self, at: int, *, all: bool = False) -> str:
        """Describe the answer at a position of the batch in a sentence."""
        block, i = divmod(int(at), BLOCK)
        if block not in self._blocks:
            last = min((block + 1) * BLOCK, len(self._answers))
            self._blocks[block] = Sentences(self[np.arange(block * BLOCK, last)])
        return self._blocks[block].text(i, all=all)


def rounded(answers: Outcome) -> Outcome:
    """Return the answers in as few digits as still land; see `Counterfactuals.rounded`."""
    return Short(answers)[np.arange(len(answers))]
