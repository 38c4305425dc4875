"""Status of an answer, with a diagnosis and a remedy."""

from __future__ import annotations

from enum import IntEnum


class Status(IntEnum):
    """Status of one projection or one counterfactual.

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
    UNREADABLE = 6

    @property
    def diagnosis(self) -> str:
        """What the status means and what to do about it, in a sentence or two."""
        return _DIAGNOSES[self]


_DIAGNOSES = {
    Status.OPTIMAL: "The change lands in the target, and is optimal for the question asked.",
    Status.INFEASIBLE: (
        "No allowed change lies in the target's contracted cell; see reason(i). Let more columns "
        "change, widen their bounds, or contract less."
    ),
    Status.UNRESOLVED: (
        "Either the allowed part of the target is thinner than rounding in the model's own "
        "predict, or the search reached its limit before it found an answer. Scale the columns, "
        "widen bounds, contract less, or raise `limit`."
    ),
    Status.ALREADY: "The row is in its target already; nothing has to change.",
    Status.STOPPED: (
        "The search reached its limit. The change lands in the target, and `gap` tells how much "
        "better another could be. Raise `limit` to search on."
    ),
    Status.UNREADABLE: (
        "The row has a value that the model cannot use: missing, infinite, or an unknown level. "
        "See text(i) for the column and the value, and correct it."
    ),
    Status.MISSED: (
        "The pairwise projection ends in another cluster. Use VoICE, which takes all clusters into "
        "account."
    ),
}
