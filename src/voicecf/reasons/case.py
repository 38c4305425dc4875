"""One row that has no answer, taken apart: the rules and rivals that can be left out one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np

from voicecf.geometry.arrays import Array, Mask
from voicecf.learned.learned import Learned
from voicecf.rules.allowed import Allowed
from voicecf.rules.columns import column_of, columns_of
from voicecf.rules.multiples import Multiples
from voicecf.rules.parts import ColumnRows, Limits
from voicecf.rules.rules import ColumnRule, Rules, is_missing
from voicecf.search.answering import answer
from voicecf.search.outcome import Outcome
from voicecf.search.question import Pairs, Question
from voicecf.search.solving import OBJECTIVES, aim_at
from voicecf.status import Status
from voicecf.table.space import Space

LISTS = ("immutable", "increase_only", "decrease_only")
BY_COLUMN = ("bounds", "steps", "levels", "order", "forbidden", "costs")
Kind = Literal[
    "contraction", "range", "step", "cluster", "low", "high", "direction", "levels", "forbidden",
    "max_changes", "constraint", "immutable",
]  # fmt: skip
# What a conflict is rid of first: what the user did not say, then clusters, then the user's rules.
ORDER: tuple[tuple[Kind, ...], ...] = (
    ("contraction",), ("range",), ("cluster",), ("step",),
    ("low", "high", "direction", "levels", "forbidden", "max_changes", "constraint"),
    ("immutable",),
)  # fmt: skip


@dataclass(frozen=True)
class Member:
    """One rule, bound or rival that an answer has to respect.

    Attributes
    ----------
    text : str
        In the user's words.
    kind : str
        "immutable", "direction", "low" and "high" (the user's bounds), "range" (the explainer's
        own), "step", "levels", "forbidden", "max_changes", "constraint", "contraction", or
        "cluster": a rival that is always nearer.
    column : object
        The column that it is about, where it is about one.
    cluster : int or None
        The rival.
    """

    text: str
    kind: Kind
    column: Any = None
    cluster: int | None = None
    detail: Any = field(default=None, repr=False)


@dataclass(frozen=True)
class Draft:
    """What is asked of a row: words of rules, rivals that are left out, another contraction."""

    words: Mapping[str, Any]
    left_out: frozenset[int] = frozenset()
    alpha: float | None = None

    def saying(self, **words: Any) -> Draft:
        """Return the draft with other words in place of some."""
        return replace(self, words={**self.words, **words})

    def of_column(self, word: str, name: Any, said: Any) -> Draft:
        """Return the draft with one word about one column replaced; None takes it back."""
        by_column = {n: v for n, v in self.words[word].items() if n != name}
        return self.saying(**{word: by_column if said is None else {**by_column, name: said}})

    def sides(self, name: Any) -> tuple[Any, Any]:
        """Return what is said of the bounds of a column; an ellipsis for the explainer's own."""
        low, high = self.words["bounds"].get(name, (..., ...))
        return low, high


class Case:
    """One row and target, to be solved with some of its rules and rivals left out."""

    def __init__(self, question: Question, row: int, target: int) -> None:
        self.learned, self.target = question.learned, target
        self.space: Space = question.learned.space
        self.rows = question.rows.take(np.array([row]))
        self.source = question.source[[row]]
        self.question = question
        self.draft = Draft(_spelt_out(question.allowed.rules, self.space))
        self._learned_without: dict[Any, Learned] = {}

    @cached_property
    def rules(self) -> list[ColumnRule]:
        """What the user said of each column."""
        return Rules.from_dict(self.draft.words).of_columns(self.space)

    @property
    def alpha(self) -> float:
        """Contraction of the target's cell."""
        return self.learned.alpha_of(self.target)

    def own(self, c: int) -> float:
        """Return the row's value of a number column, NaN where it is missing."""
        return float(ColumnRows(self.space, self.rows, c).values[0])

    def level(self, c: int) -> Any:
        """Return the row's level of a category."""
        return self.space.table_values(c, self.rows, np.zeros(1, dtype=np.int64))[0]

    def multiples(self, c: int) -> Multiples | None:
        """Return the multiples that a column keeps to."""
        step, column = self.rules[c].increment, self.space.columns[c]
        step = (1.0 if column.whole and not column.listed else "any") if step is None else step
        return None if step == "any" else Multiples(float(step))

    def bounds(self, c: int, draft: Draft) -> tuple[float, float]:
        """Return the bounds of a column in the user's units, without its direction."""
        rule = Rules(bounds=draft.words["bounds"]).of_columns(self.space)[c]
        rows = ColumnRows(self.space, self.rows, c)
        bounds = self.learned.bounds
        limits = Limits.of(rows, rule, bounds.lo[c], bounds.hi[c])
        return float(limits.low[0]), float(limits.high[0])

    def _widest(self, c: int) -> tuple[float | None, float | None]:
        """Return the widest bounds that are worth suggesting; None where nothing was seen.

        The observed range, widened on either side by its own width, but not past zero.
        """
        low, high = self.space.columns[c].observed
        if not np.isfinite(high - low):
            return None, None
        spread = high - low or max(abs(low), 1.0)
        least = max(low - spread, 0.0) if low >= 0 else low - spread
        most = min(high + spread, 0.0) if high <= 0 else high + spread
        own = self.own(c)
        return float(np.fmin(least, own)), float(np.fmax(most, own))

    # Solving.

    def impossible(self, draft: Draft) -> bool:
        """Tell whether it is proven that nothing satisfies a draft."""
        asked = self._asked(self._with_own_values(draft), self._learned(draft), "cost")
        aim = replace(aim_at(asked, self.target), agrees=_always, verify_all=False)
        found = OBJECTIVES["cost"](asked.points, np.zeros(1, dtype=np.int64), aim)
        return bool(found.status[0] == Status.INFEASIBLE)

    def _asked(self, draft: Draft, learned: Learned, objective: str) -> Question:
        """Return the question that a draft stands for."""
        rules, searched = Rules.from_dict(draft.words), objective == "fewest"
        allowed = Allowed.of(self.space, rules, self.rows, learned.bounds, searched=searched)
        return Question(learned, self.rows, self.source, allowed, objective, self.question.limit)

    def _with_own_values(self, draft: Draft) -> Draft:
        """Let a column that was locked keep its value although that is out of its bounds."""
        for name in self.draft.words["immutable"]:
            if name in draft.words["immutable"]:
                continue
            c = self.space.names.index(name)
            if self.space.columns[c].kind == "category":
                continue
            own, (low, high) = self.own(c), self.bounds(c, draft)
            if own < low or own > high:
                draft = draft.of_column("bounds", name, (min(low, own), max(high, own)))
        return draft

    def _learned(self, draft: Draft) -> Learned:
        """Return what was learned, with a draft's contraction, without the rivals it leaves out."""
        key = draft.alpha, draft.left_out
        if key not in self._learned_without:
            learned = self.learned if draft.alpha is None else self.learned.contracted(draft.alpha)
            if draft.left_out:
                learned = learned.without_rivals(self.target, draft.left_out)
            self._learned_without[key] = learned
        return self._learned_without[key]

    def answer(self, draft: Draft, objective: str | None = None) -> Outcome | None:
        """Ask the question that a draft stands for; None where it has no answer."""
        objective = self.question.objective if objective is None else objective
        asked = self._asked(draft, self._learned(draft), objective)
        pairs = Pairs(np.zeros(1, dtype=np.int64), np.array([self.target]))
        deepen = int(self.source[0]) == self.target
        found = answer(asked, pairs, deepen=deepen)
        return found if found.feasible[0] else None

    def told(self, draft: Draft) -> dict[str, Any]:
        """Return the words of a draft as the user would write them."""
        words = {word: said for word, said in draft.words.items() if said not in ([], {}, None)}
        if self.learned.contract_bounds and "bounds" in words:  # which takes numbers only
            columns = [self.space.names.index(name) for name in words["bounds"]]
            words["bounds"] = {self.space.names[c]: self.bounds(c, draft) for c in columns}
        return words

    # Leaving out.

    def without(self, draft: Draft, member: Member) -> Draft:
        """Return the draft without one of its members."""
        name = member.column
        match member.kind:
            case "cluster":
                assert member.cluster is not None
                return replace(draft, left_out=draft.left_out | {member.cluster})
            case "contraction":
                return replace(draft, alpha=1.0)
            case "immutable":
                return _unlisted(draft, "immutable", name)
            case "direction":
                return _unlisted(_unlisted(draft, "increase_only", name), "decrease_only", name)
            case "range":
                return self._without_range(draft, name)
            case "low":
                return self._without_side(draft, name, 0)
            case "high":
                return self._without_side(draft, name, 1)
            case "step":
                return draft.saying(steps={**draft.words["steps"], name: None})
            case "levels":
                return draft.of_column("levels", name, None)
            case "forbidden":
                pairs = draft.words["forbidden"].get(name, ())
                left = tuple(pair for pair in pairs if pair != member.detail)
                return draft.of_column("forbidden", name, left or None)
            case "max_changes":
                return draft.saying(max_changes=None)
            case "constraint":
                texts = draft.words["constraints"]
                return draft.saying(constraints=[t for t in texts if t != member.detail])

    def _without_side(self, draft: Draft, name: Any, at: int) -> Draft:
        """Leave out one side of the user's bounds; the range stays if it held beside it."""
        sides = list(draft.sides(name))
        sides[at] = ... if isinstance(sides[at], str) else None
        return draft.of_column("bounds", name, tuple(sides))

    def _without_range(self, draft: Draft, name: Any) -> Draft:
        """Leave out the explainer's own range; bounds relative to the row become numbers."""
        c = self.space.names.index(name)
        rule = Rules(bounds=draft.words["bounds"]).of_columns(self.space)[c]
        own, sides = np.array([self.own(c)]), list(draft.sides(name))
        for at, side in enumerate(rule.sides):
            if side is None:
                sides[at] = None
            elif side.relative and np.isfinite(own[0]):
                sides[at] = float(side.at(own)[0])
        return draft.of_column("bounds", name, tuple(sides))

    def relaxed(self, draft: Draft, member: Member) -> Draft:
        """Return the draft without a member, bounds no wider than is worth suggesting."""
        less = self.without(draft, member)
        if member.kind not in ("range", "low", "high"):
            return less
        c = self.space.names.index(member.column)
        sides, after = list(less.sides(member.column)), self.bounds(c, less)
        for at, before in enumerate(self.bounds(c, draft)):
            if np.isinf(after[at]) and np.isfinite(before):
                sides[at] = self._wider(c, at, before)
        return less.of_column("bounds", member.column, tuple(sides))

    def _wider(self, c: int, at: int, bound: float) -> float | None:
        """Return the widest side that is worth suggesting, or the bound if that is wider."""
        widest = self._widest(c)[at]
        if widest is None or np.isinf(bound):
            return None
        return max(widest, bound) if at else min(widest, bound)

    def minimal(self, draft: Draft) -> list[Member]:
        """Find members that together cannot be satisfied, though without any one of them they can.

        A group that can be left out goes at once; one that cannot is halved.
        """
        kept: list[Member] = []
        waiting = self._groups(draft)
        while waiting:
            group = waiting.pop(0)
            less = reduce(self.without, group, draft)
            if self.impossible(less):
                draft = less
            elif len(group) == 1:
                kept += group
            else:
                half = len(group) // 2
                waiting[:0] = [group[:half], group[half:]]
        # Rules first, what else there is after them.
        return [m for kinds in ORDER[::-1] for m in kept if m.kind in kinds]

    def _groups(self, draft: Draft) -> list[list[Member]]:
        """Return members in the order in which they are left out; none that are out already."""
        members = [m for m in self.members if self.without(draft, m) != draft]
        groups = [[m for m in members if m.kind in kinds] for kinds in ORDER]
        return [group for group in groups if group]

    @cached_property
    def members(self) -> list[Member]:
        """All that an answer has to respect."""
        found = [m for c in range(len(self.space.columns)) for m in self._of_column(c)]
        words = self.draft.words
        if words["max_changes"] is not None:
            most = words["max_changes"]
            columns = "column" if most == 1 else "columns"
            found.append(Member(f"at most {most} {columns} may change", "max_changes"))
        for text in dict.fromkeys(words["constraints"]):
            found.append(Member(text.strip(), "constraint", detail=text))
        if self.alpha < 1.0:
            share = f"{self.alpha:.3g}"
            text = f"the cell of cluster {self.target} is contracted to {share} (robustness)"
            found.append(Member(text, "contraction"))
        for rival in self.learned.cell(self.target).rivals.tolist():
            found.append(Member(f"cluster {rival} is always nearer", "cluster", cluster=rival))
        return found

    def _of_column(self, c: int) -> Iterator[Member]:
        rule, name = self.rules[c], self.space.names[c]
        if rule.fixed:
            # Its other rules go on holding when it is unlocked, so that unlocking means what it
            # does in `explain`.
            yield Member(f"{name} may not change", "immutable", name)
            return
        if rule.direction:
            way = "rise" if rule.direction > 0 else "fall"
            yield Member(f"{name} may only {way}", "direction", name)
        if self.space.columns[c].kind == "category":
            yield from self._of_category(c)
        else:
            yield from self._of_number(c)

    def _of_number(self, c: int) -> Iterator[Member]:
        name, sides, values = self.space.names[c], self.rules[c].sides, self.bounds(c, self.draft)
        bounds = self.learned.bounds
        learned = float(bounds.lo[c]), float(bounds.hi[c])
        kinds: tuple[Kind, Kind] = ("low", "high")
        for kind, phrase, side, value in zip(
            kinds, ("at least", "at most"), sides, values, strict=True
        ):
            if side is None or np.isinf(value) or np.isnan(value):
                continue
            if side.relative and value == learned[kind == "high"]:
                continue  # the range is tighter
            said = self.draft.sides(name)[kind == "high"]
            relative = f" ({said})" if isinstance(said, str) else ""
            yield Member(f"{name} is {phrase} {number(value)}{relative}", kind, name)
        text = self._range_text(c, learned, sides)
        if text:
            yield Member(f"{name} is {text}", "range", name)
        multiples = self.multiples(c)
        if multiples is not None:
            whole = multiples.increment == 1
            text = "in whole numbers" if whole else f"in steps of {number(multiples.increment)}"
            yield Member(f"{name} is {text}", "step", name)

    def _range_text(self, c: int, values: tuple[float, float], sides: Any) -> str:
        """Say the explainer's own bounds, as far as they hold; nothing where there are none."""
        whose = "the data" if values == self.space.columns[c].observed else "the explainer"
        told = [
            number(value) if (side is None or side.relative) and np.isfinite(value) else ""
            for side, value in zip(sides, values, strict=True)
        ]
        if all(told):
            return f"between {told[0]} and {told[1]} (the range of {whose})"
        if told[0]:
            return f"at least {told[0]} (the least of {whose})"
        return f"at most {told[1]} (the most of {whose})" if told[1] else ""

    def _of_category(self, c: int) -> Iterator[Member]:
        rule, column = self.rules[c], self.space.columns[c]
        if rule.levels is not None:
            only = " or ".join(str(column.levels[i]) for i in rule.levels)
            yield Member(f"{column.name} may only become {only}", "levels", column.name)
        own = self.level(c)
        said = self.draft.words["forbidden"].get(column.name, ())
        for pair, (start, end) in zip(said, rule.forbidden, strict=True):
            begin = column.levels[start]
            if begin == own or (is_missing(begin) and is_missing(own)):
                names = "missing" if is_missing(begin) else begin, column.levels[end]
                text = f"{column.name} may not go from {names[0]} to {names[1]}"
                yield Member(text, "forbidden", column.name, detail=pair)


def number(value: float) -> str:
    """Write a number so that it is read at a glance: no more than six digits unless it is whole."""
    if value == np.rint(value) and abs(value) < 1e15:
        return f"{value:,.0f}"
    short = float(f"{value:.6g}")
    return f"{short:,.12g}" if 1e-4 <= abs(short) < 1e12 else f"{short:g}"


def _spelt_out(rules: Rules, space: Space) -> dict[str, Any]:
    """Return all words of rules, each column by its own name."""
    words: dict[str, Any] = {
        word: [space.names[c] for c in columns_of(space, getattr(rules, word), word)]
        for word in LISTS
    }
    for word in BY_COLUMN:
        said = getattr(rules, word).items()
        words[word] = {space.names[column_of(space, name, word)]: value for name, value in said}
    return {**words, "max_changes": rules.max_changes, "constraints": list(rules.constraints)}


def _unlisted(draft: Draft, word: str, name: Any) -> Draft:
    return draft.saying(**{word: [listed for listed in draft.words[word] if listed != name]})


def _always(points: Array) -> Mask:
    """Agree: the model has no say in a cell without some of its rivals."""
    return np.ones(len(points), dtype=np.bool_)
