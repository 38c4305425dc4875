"""Why a row has no answer, and the cheapest ways to make one possible."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from voicecf.output.calling import cluster_name, cluster_names, move, row_name
from voicecf.output.sentences import Sentences
from voicecf.output.short import rounded
from voicecf.reasons.case import Case
from voicecf.reasons.conflict import minimal_conflict, winning
from voicecf.reasons.relaxation import Relaxation, relaxations
from voicecf.rules.condition import Member
from voicecf.search.outcome import Outcome
from voicecf.search.solving import PAIRWISE
from voicecf.status import Status
from voicecf.table.wording import joined, opening

__all__ = ["Member", "Reason", "Relaxation", "reason_of"]


@dataclass(frozen=True)
class Reason:
    """Why a row has no answer, and what would make one possible.

    Attributes
    ----------
    row, source, target : int
    conflict : list of Member
        Rules and rivals that cannot be satisfied together; without any one of them they can. (A
        column that is unlocked still has to respect its bounds and steps.) Empty if the row is not
        infeasible.
    relaxations : list of Relaxation
        Single changes of the rules that make an answer possible, cheapest first. If none is found,
        the cheapest pair of changes.
    sentence : str
        The text if there is no conflict, else what the row cannot do.
    rivals : str
        What the clusters of the conflict are called.
    wins : str
        What they always are, such as "nearer".

    Examples
    --------
    >>> from voicecf import VoICE
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> cf = voice.explain([[1.0, 5.0]], target=1, bounds={"age": (0, 1.5)})
    >>> reason = cf.reason(0)
    >>> [(member.kind, member.column, member.cluster) for member in reason.conflict]
    [('high', 'age', None), ('cluster', None, 0)]
    >>> print(reason.relaxations[0])
    allow age up to 2.01 (cost 0.5)
    >>> reason.relaxations[0].words
    {'bounds': {'age': (0, 2.01)}}
    """

    row: int
    source: int
    target: int
    conflict: list[Member]
    relaxations: list[Relaxation]
    sentence: str = ""
    rivals: str = ""
    wins: str = ""

    @property
    def text(self) -> str:
        """The conflict and its relaxations, in sentences."""
        return f"{self._conflict_text()} {self._remedy_text()}" if self.conflict else self.sentence

    def __str__(self) -> str:
        return self.text

    @property
    def because(self) -> str:
        """The conflict in a phrase; empty without one."""
        return joined(self._phrases()) if self.conflict else ""

    def _conflict_text(self) -> str:
        return f"{self.sentence}: {self.because}."

    def _phrases(self) -> list[str]:
        """Return the texts of the members: locked columns in one phrase, clusters in another."""
        found = _locked_phrase([member for member in self.conflict if member.kind == "immutable"])
        found += [m.text for m in self.conflict if m.kind not in ("immutable", "cluster")]
        clusters = sum(member.kind == "cluster" for member in self.conflict)
        if clusters:
            one_of = "one of " * (clusters > 1)
            found.append(f"{one_of}{self.rivals} is always {self.wins}")
        return found

    def _remedy_text(self) -> str:
        if not self.relaxations:
            if all(m.kind == "cluster" for m in self.conflict):
                return (
                    f"No rule causes this: without any rules, other clusters are still {self.wins}."
                )
            return "No plausible change of one or two of these rules was found to be enough."
        ways = joined([str(relaxation) for relaxation in self.relaxations], "or")
        if len(self.relaxations[0].members) > 1:
            return f"No single change was found to be enough, but it can if you {ways}."
        return f"It can if you {ways}."

    def _repr_html_(self) -> str:
        if not self.conflict:
            return f"<p>{escape(self.text)}</p>"
        parts = [f"<p>{escape(self._conflict_text())}</p>"]
        for head, lines in (
            ("Conflict", self._phrases()),
            ("What would make it possible", [str(relaxation) for relaxation in self.relaxations]),
        ):
            items = "".join(f"<li>{escape(line)}</li>" for line in lines)
            items = items or "<li>no plausible change was found</li>"
            parts.append(f"<p><strong>{head}</strong></p><ul>{items}</ul>")
        return f"<div>{''.join(parts)}</div>"


def _locked_phrase(locked: list[Member]) -> list[str]:
    """Say which columns may not change or, if the user listed no more of them, which only may."""
    if not locked:
        return []
    mutable = locked[0].detail
    if mutable and len(mutable) <= len(locked):
        return [f"only {joined([str(name) for name in mutable])} may change"]
    return [f"{joined([str(member.column) for member in locked])} may not change"]


def reason_of(outcome: Outcome, i: int) -> Reason:
    """Find out why answer i is infeasible; see `Counterfactuals.reason`."""
    row, source, target = (int(a[i]) for a in (outcome.row, outcome.source, outcome.target))
    learned, name = outcome.learned, opening(row_name(outcome.rows, row))

    def without_conflict(text: str) -> Reason:
        return Reason(row, source, target, [], [], text)

    if outcome.status[i] != Status.INFEASIBLE:
        return without_conflict(Sentences(rounded(outcome[[i]])).text(0))
    if outcome.question.objective == PAIRWISE:
        return without_conflict("Reasons are available for answers of VoICE only, not of CFCLUST.")
    case = Case(outcome.question_of(i), row, target, outcome.question.allowed.rules)
    if not case.impossible(case.original):
        return without_conflict(
            f"{name} misses {cluster_name(learned, target)} only by rounding errors: try to loosen "
            "a rule slightly."
        )
    conflict = minimal_conflict(case, case.original)
    rivals = [member.cluster for member in conflict if member.cluster is not None]
    return Reason(
        row, source, target, conflict, relaxations(case, conflict),
        f"{name} cannot {move(learned, source, target, 'move')}", cluster_names(learned, rivals),
        winning(learned, conflict),
    )  # fmt: skip
