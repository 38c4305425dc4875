"""Answers about one row: the answer, other ways, ways out, and a map, each computed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from voicecf import Counterfactuals, Rules, Status
from voicecf.app.effort import SPREADS, effort_of, effort_text, question, usual_prices
from voicecf.app.project import Project
from voicecf.app.row.question import Objective, RowQuestion
from voicecf.app.segments.segments import Segments
from voicecf.output import joined, opening
from voicecf.plots import ChangeCard, Plane, SegmentMap
from voicecf.reasons import Reason

# Further answers, ways out, rows on a map, and changes that a tip tells.
ALTERNATIVES, WAYS, POINTS, NAMED = 3, 4, 1_500, 3
# Share of the target's rows below which an answer is at the rim of what was seen.
RARE = 0.05


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
        One.
    """

    segments: Segments = field(repr=False)
    question: RowQuestion
    names: tuple[str, ...]
    found: Counterfactuals

    @property
    def possible(self) -> bool:
        """Whether there is a change that leads into the target."""
        return bool(self.found.feasible[0])

    @property
    def ends(self) -> tuple[int, int]:
        """The segments that the row is in, and is to be in."""
        return int(self.found.source[0]), int(self.found.target[0])

    @cached_property
    def card(self) -> ChangeCard:
        """What changes."""
        data = self.segments.prepared.frame
        return ChangeCard.from_counterfactuals(self.found, ranges=False, data=data)

    @cached_property
    def effort(self) -> float:
        """What it takes, in spreads."""
        return effort_of(self.segments, self.found, usual_prices(self.segments))

    @property
    def certainty(self) -> str:
        """What it takes, and whether anything takes less."""
        text = f"An effort of {effort_text(self.effort, SPREADS)}"
        if self.found.outcome.question.objective == "price":
            if self.found.status[0] != Status.OPTIMAL:
                return f"{text}: less may do."
            usual = "" if np.isnan(self.found.plausible[0]) else " that is as usual there"
            return f"{text}: no allowed change{usual} takes less."
        return f"{text}."

    @property
    def at_the_rim(self) -> bool:
        """Whether its sentence says that hardly any row of the target is as extreme."""
        asked = not np.isnan(self.found.plausible[0])
        return bool(self.card.changes and not asked and self.found.usual[0] < RARE)


def answered(
    segments: Segments, asked: RowQuestion, names: Sequence[str], **more: Any
) -> Counterfactuals:
    """Answer a question about one row; the row is called as its owner calls it."""
    prepared = segments.prepared
    row = prepared.frame.iloc[[asked.row]].set_axis(prepared.called([asked.row]))
    target = "nearest" if asked.target is None else asked.target
    words = question(segments, asked.objective, target, asked.allowed, usual_prices(segments))
    return segments.firmly(asked.margin, names).explain(row, **words, **more)


def answer(segments: Segments, asked: RowQuestion, names: Sequence[str]) -> RowAnswer:
    """Answer a question about one row."""
    return RowAnswer(segments, asked, tuple(names), answered(segments, asked, names))


def alternatives(first: RowAnswer) -> list[RowAnswer]:
    """Find other ways into the same target, in as few columns as possible.

    Each leaves something alone that the first answer changes, and that every other way changes.
    Where no other way is usual in the target, those that are not will do.
    """
    if not first.card.changes:
        return []
    asked = replace(first.question, target=first.ends[1], objective=Objective.FEWEST)
    unusual = replace(asked, allowed={"plausible": None, **asked.allowed})
    return _other_ways(first, asked) or _other_ways(first, unusual)


def _other_ways(first: RowAnswer, asked: RowQuestion) -> list[RowAnswer]:
    found = answered(first.segments, asked, first.names, alternatives=ALTERNATIVES)
    made, known = [], [{change.column for change in first.card.changes}]
    for one in found[found.feasible]:
        other = replace(first, question=asked, found=one)
        columns = {change.column for change in other.card.changes}
        if not any(earlier <= columns for earlier in known):
            made.append(other)
            known.append(columns)
    return made[:ALTERNATIVES]


def difference(first: RowAnswer, other: RowAnswer) -> str:
    """Say in a line what another way changes, and what it changes that instead of."""
    efforts = " instead of ".join(effort_text(one.effort, SPREADS) for one in (other, first))
    levers = (joined([change.short for change in one.card.changes]) for one in (other, first))
    return f"{' instead of '.join(levers)}: {efforts}"


# Where there is no answer


@dataclass(frozen=True)
class Way:
    """What could be allowed so that there is an answer: what to do, and what is asked then."""

    text: str
    question: RowQuestion


def ways_out(given: RowAnswer, reason: Reason) -> list[Way]:
    """Turn relaxations into questions; that their target is reached has been seen."""
    made, asked = [], given.question
    target = reason.target if asked.target is None else asked.target
    for one in reason.relaxations:
        allowed, margin, text = asked.allowed, asked.margin, one.text
        if one.words is not None:
            words = {word: v for word, v in one.words.items() if word not in ("costs", "prices")}
            allowed = Rules(**words).to_dict()
        if one.contraction is not None:
            margin = int(np.floor(100 * (1 - one.contraction) + 1e-9))
            text = f"lower the safety margin to {margin} %"
        way = Way(opening(text), replace(asked, target=target, allowed=allowed, margin=margin))
        if way.question != asked and margin <= asked.margin:
            made.append(way)
    return made[:WAYS]


# The map


def drawable(segments: Segments) -> list[str]:
    """Return the columns that an axis can show, what matters most first."""
    names = [segments.prepared.names[i] for i in segments.voice.learned_.ranking]
    return [name for name in names if name in segments.prepared.numbers]


def answer_map(given: RowAnswer, axes: Sequence[str] = ()) -> tuple[SegmentMap, pd.DataFrame]:
    """Return the map of an answer by two columns, or else the best one, and what its rows are."""
    prepared, found = given.segments.prepared, given.found
    plane = Plane.through(found, 0, *axes) if axes else Plane.most_telling(found)
    voice = given.segments.firmly(given.question.margin, given.names)
    drawn = SegmentMap.from_voice(voice, prepared.frame, plane, found, 0, POINTS)
    columns = [prepared.names[c] for c in plane.columns]
    columns += [change.column for change in given.card.changes][:NAMED]
    told = prepared.frame[list(dict.fromkeys(columns))].iloc[drawn.rows]
    segment = [given.names[t] for t in drawn.labels.tolist()]
    who = pd.DataFrame({"Row": prepared.called(drawn.rows), "Segment": segment}, told.index)
    told = told.rename(columns=lambda name: f"{name} " if name in who else name)
    return drawn, pd.concat([who, told], axis=1)


# Of a project


def of_project(now: Project) -> RowAnswer:
    """Answer the question as it stands."""
    asked, segments, names = now.question, now.segments, now.names
    return now.once("answer", _key(now), lambda: answer(segments, asked, names))


def others_of(now: Project) -> list[RowAnswer]:
    """Return other ways into the same segment."""
    return now.once("alternatives", _key(now), lambda: alternatives(of_project(now)))


def card_of(now: Project) -> ChangeCard:
    """Return what changes, with how far each column may go."""
    given = of_project(now)
    data = given.segments.prepared.frame
    return now.once(
        "ranges", _key(now), lambda: ChangeCard.from_counterfactuals(given.found, data=data)
    )


def reason_of(now: Project) -> Reason:
    """Return why there is no answer."""
    return now.once("reason", _key(now), lambda: of_project(now).found.reason(0))


def _key(now: Project) -> str:
    return f"{now.segments_key} {now.question!r} {now.names}"
