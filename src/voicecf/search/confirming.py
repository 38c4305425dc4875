"""Solve again, with another slack for rounding, what is not confirmed.

A model's own `predict` rounds, so an answer keeps some slack to the border of its target. How much
is bounded from above (`geometry.guard`). Where that bound leaves nothing of the region, less may be
enough, if asking the model is proof; where the model or a rule refuses an answer, more may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from voicecf.geometry.arrays import Array, Ints, Mask
from voicecf.solver.projection import Projection

# Factors on the slack, tried one after the other.
LESS = (0.0, 0.01, 0.1, 1.0)
MORE = (8.0, 64.0, 512.0, 4096.0)


def confirm(
    answers: Projection,
    refused: Callable[[], Mask],
    again: Callable[[Ints, float], Projection],
    factors: Iterable[float],
) -> Array:
    """Solve again what is refused, until nothing is or no factor is left.

    Parameters
    ----------
    answers : Projection
        Changed in place. What is still refused in the end becomes unresolved.
    refused : callable
        Returns a mask of the answers, as they are then, that are not confirmed.
    again : callable
        ``again(which, factor)`` solves some of the problems with a factor on the slack.
    factors : iterable of float

    Returns
    -------
    array of shape (n,)
        The factor that each problem was solved with last; NaN for those that were confirmed at
        once.
    """
    used = np.full(len(answers.status), np.nan)
    open_ = refused()
    for factor in factors:
        which = np.flatnonzero(open_)
        if which.size == 0:
            return used
        answers.put(which, again(which, factor))
        used[which] = factor
        open_ = refused()
    which = np.flatnonzero(open_ & answers.answered)
    blank = Projection.unresolved(len(which), answers.points.shape[1])
    blank.cardinality[:] = answers.cardinality[which]
    answers.put(which, blank)
    return used
