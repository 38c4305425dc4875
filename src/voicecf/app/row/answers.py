"""Answers about one row: found, put into words, and taken apart where there is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from voicecf import Counterfactuals, Status
from voicecf.app.campaign.plan import SPREADS
from voicecf.app.campaign.summary import effort_text
from voicecf.app.row.changes import RARE, ShownChange, changes_of
from voicecf.app.row.question import ALTERNATIVES, LIMIT, Objective, RowQuestion, UserRules
from voicecf.app.segments.segments import Segments
from voicecf.app.words import percent
from voicecf.output.sentences import Sentences
from voicecf.reasons.reasons import Member, Reason, Relaxation
from voicecf.table.wording import counted, joined, opening, sentences

# Changes that a sentence names before it counts the rest.
NAMED = 5


@dataclass(frozen=True, eq=False)
class RowAnswer:
    """The answer to a question about one row.

    Attributes
    ----------
    segments : Segments
    question : RowQuestion
    names : tuple of str
        Of the segments.
    found : Counterfactuals
        One, with all digits.
    rounded : Counterfactuals
        The same in few digits, as it is told.
    changes : tuple of ShownChange
        What changes, the costliest first.
    """

    segments: Segments = field(repr=False)
    question: RowQuestion
    names: tuple[str, ...]
    found: Counterfactuals
    rounded: Counterfactuals
    changes: tuple[ShownChange, ...] = ()

    @property
    def possible(self) -> bool:
        """Whether there is a change that leads into the target."""
        return bool(self.found.feasible[0])

    @property
    def status(self) -> Status:
        """How the search ended."""
        return Status(int(self.found.status[0]))

    @property
    def source(self) -> str:
        """The segment that the row is in."""
        return self.names[int(self.found.source[0])]

    @property
    def target(self) -> str:
        """The segment that it is to be in."""
        return self.names[int(self.found.target[0])]

    @property
    def called(self) -> str:
        """What the row is called."""
        return self.segments.prepared.called(self.question.row)

    @property
    def sentence(self) -> str:
        """The answer in a sentence."""
        if self.status is Status.ALREADY:
            return f"{self.called} is in “{self.target}” already; nothing has to change."
        if not self.possible:
            return self._impossible
        if not self.changes:
            return f"{self.called} lies on the border of “{self.source}” and “{self.target}”."
        phrases = [change.phrase for change in self.changes[:NAMED]]
        if len(self.changes) > NAMED:
            more = len(self.changes) - NAMED
            phrases.append(f"{counted(more, 'more column')} as listed below")
        way = f"from “{self.source}” to “{self.target}”"
        return f"{self.called} moves {way} if {joined(phrases)}."

    @property
    def _impossible(self) -> str:
        if self.status is Status.UNREADABLE:
            return self.found.text(0)
        if self.status is Status.UNRESOLVED:
            return (
                f"No way for {self.called} into “{self.target}” was found in the time that an "
                "answer may take. Allow more, or ask for the least change."
            )
        where = "any other segment" if self.question.target is None else f"“{self.target}”"
        return f"{self.called} cannot move from “{self.source}” to {where} by what may change."

    @property
    def remark(self) -> str:
        """How sure it is, and how far it can be overdone."""
        if not self.possible or self.status is Status.ALREADY:
            return ""
        certainty = f"no allowed change is {self._better}"
        if self.status is Status.STOPPED:
            gap = percent(min(max(float(self.found.gap[0]), 0.0), 1.0))
            certainty = f"the search reached its limit: another answer may be up to {gap} cheaper"
        larger = Sentences(self.rounded.outcome).limit(0, "there, within what was seen")
        if "hardly" in larger:
            larger += ": it would leave the segment, or what was seen"
        return sentences([certainty, larger])

    @property
    def effort(self) -> float:
        """How much changes: the sum over columns, in spreads (standard deviations)."""
        return sum(change.effort for change in self.changes)

    @property
    def rim(self) -> str:
        """Says that an answer is at the rim of what was seen; empty if it is not."""
        rare = [change.rare for change in self.changes if change.rare]
        usual = float(self.found.usual[0])
        if not rare and self.changes and usual < RARE:
            few = f"only {percent(usual)} of rows combine" if usual else "no row combines"
            rare = [f"in “{self.target}”, {few} values as unusual as these"]
        return sentences(rare)

    @property
    def _better(self) -> str:
        better = {
            Objective.COST: "smaller overall",
            Objective.FEWEST: "in fewer columns",
            Objective.PREFIX: "in fewer of the columns that matter most",
        }
        return better[self.question.objective]


def answer(segments: Segments, question: RowQuestion, names: Sequence[str]) -> RowAnswer:
    """Answer a question about one row."""
    found = _explained(segments, question, names)
    rounded = found.rounded()
    changes = changes_of(segments, rounded)
    return RowAnswer(segments, question, tuple(names), found, rounded, changes)


def alternatives(first: RowAnswer) -> list[RowAnswer]:
    """Find other ways into the same target, in as few columns as possible.

    Each leaves something alone that the first answer changes, and that every other way changes.
    """
    if not first.possible or first.status is Status.ALREADY:
        return []
    asked = replace(first.question, target=int(first.found.target[0]), objective=Objective.FEWEST)
    found = _explained(first.segments, asked, first.names, alternatives=ALTERNATIVES)
    rounded = found.rounded()
    made, known = [], [_columns(first.changes)]
    for i in range(len(found)):
        changes = changes_of(first.segments, rounded, i)
        columns = _columns(changes)
        if not any(earlier <= columns for earlier in known):
            one = replace(first, question=asked, found=found[i], rounded=rounded[i])
            made.append(replace(one, changes=changes))
            known.append(columns)
    return made[:ALTERNATIVES]


def difference(first: RowAnswer, other: RowAnswer) -> str:
    """Say in a line what another way changes, and what it changes that instead of."""
    efforts = " instead of ".join(effort_text(one.effort, SPREADS) for one in (other, first))
    return f"{_levers(other)} instead of {_levers(first)}: {efforts}"


def _levers(given: RowAnswer) -> str:
    """Say what an answer changes, or how many columns if these are many."""
    if len(given.changes) > NAMED:
        return f"a change of {counted(len(given.changes), 'column')}"
    return joined([change.short for change in given.changes])


def _columns(changes: Sequence[ShownChange]) -> set[str]:
    return {change.column for change in changes}


def _explained(
    segments: Segments, question: RowQuestion, names: Sequence[str], **more: Any
) -> Counterfactuals:
    prepared = segments.prepared
    voice = segments.firmly(question.margin, names)
    row = prepared.frame.iloc[[question.row]]
    row.index = prepared.rows[[question.row]] + 1  # rows are called by their number in the file
    return voice.explain(row, **question.options(limit=LIMIT, **more))


def with_ranges(given: RowAnswer) -> RowAnswer:
    """Find out how far each column that an answer changes may go while the others stay."""
    changes = changes_of(given.segments, given.rounded, ranges=True)
    return replace(given, changes=changes)


# Where there is no answer


@dataclass(frozen=True)
class Way:
    """What could be allowed so that there is an answer.

    Attributes
    ----------
    text : str
        What to do, for a button.
    question : RowQuestion
        What is asked then; it has an answer.
    """

    text: str
    question: RowQuestion


@dataclass(frozen=True)
class Obstacle:
    """Why there is no answer, in words, and the ways out."""

    because: tuple[str, ...]
    ways: tuple[Way, ...]

    @property
    def sentence(self) -> str:
        """The reason in a sentence."""
        return f"In the way: {joined(self.because)}."


def obstacle(given: RowAnswer) -> Obstacle:
    """Find out why an answer is impossible, and what would make it possible."""
    reason = given.found.reason(0)
    ways = [way for one in reason.relaxations if (way := _way(given, reason, one)) is not None]
    because = _phrases(reason, given) or [reason.sentence]
    return Obstacle(tuple(because), tuple(ways[:4]))


def _phrases(reason: Reason, given: RowAnswer) -> list[str]:
    conflict = reason.conflict
    still = [str(m.column) for m in conflict if m.kind == "immutable"]
    close = [f"“{given.names[m.cluster]}”" for m in conflict if m.cluster is not None]
    said = []
    if still:
        shown = still[:NAMED] + ([f"{len(still) - NAMED} more"] if len(still) > NAMED else [])
        said.append(f"{joined(shown)} may not change")
    said += [_text(m, given) for m in conflict if m.kind not in ("immutable", "cluster")]
    if close:
        which = "one of " if len(close) > 1 else ""
        said.append(f"{which}{joined(close)} is always {reason.wins}")
    return said


def _text(member: Member, given: RowAnswer) -> str:
    if member.kind == "contraction":
        return f"the safety margin is {given.question.margin} %"
    return member.text


def _way(given: RowAnswer, reason: Reason, one: Relaxation) -> Way | None:
    """Turn a relaxation into a question; that its target is reached has been seen."""
    asked, text = given.question, one.text
    target = asked.target if asked.target is not None else reason.target
    allowed, margin = asked.allowed, asked.margin
    if one.words is not None:
        allowed = UserRules.from_words(one.words)
    if one.contraction is not None:
        margin = int(np.floor(100 * (1 - one.contraction) + 1e-9))
        text = f"lower the safety margin to {margin} %"
        if margin >= asked.margin:
            return None
    changed = replace(asked, target=target, allowed=allowed, margin=margin)
    return None if changed == asked else Way(opening(text), changed)
