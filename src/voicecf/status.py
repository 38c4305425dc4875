"""How an answer ended: data, with a diagnosis and a remedy."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Outcome of one projection or one counterfactual.

    Examples
    --------
    >>> from voicecf import Status
    >>> print(Status.ALREADY.diagnosis)
    The row is in its target already; nothing has to change.
    """

    OPTIMAL = 0
    INFEASIBLE = 1
    UNRESOLVED = 2
    ALREADY = 3
    MISSED = 4
    STOPPED = 5

    @property
    def diagnosis(self) -> str:
        """What happened, and what to do about it, in a sentence or two."""
        return _DIAGNOSES[self]


_DIAGNOSES = {
    Status.OPTIMAL: "The cheapest change that lands in the target was found and certified.",
    Status.INFEASIBLE: (
        "No allowed change lands in the target; `reason(i)` tells what stands in the way. Unlock a "
        "column, widen its bounds, or contract less."
    ),
    Status.UNRESOLVED: (
        "The allowed part of the target is thinner than rounding can tell from empty, or the "
        "search was cut short before it found anything. Rescale the columns, widen bounds, "
        "contract less, or allow a larger limit."
    ),
    Status.ALREADY: "The row is in its target already; nothing has to change.",
    Status.STOPPED: (
        "The search was cut short: the answer is valid, and its gap says how much cheaper another "
        "could be. Allow a larger limit."
    ),
    Status.MISSED: "The pairwise answer lies outside the target's cell. VoICE finds one inside.",
}
