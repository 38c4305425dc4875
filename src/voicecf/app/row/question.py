"""What is asked about a row: one frozen value, from which the answer and the code are both made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from types import EllipsisType
from typing import Any

# Boxes that a search looks at: what it has not proven by then is said to be close.
LIMIT = 2_000
# The same where values have to go together: then a box takes many times as long.
LIMIT_TOGETHER = 200
# Further answers that are shown.
ALTERNATIVES = 3

# Share of a segment's rows whose values an answer stays within, if values are to go together.
TOGETHER = 0.95

Side = float | None


class Objective(StrEnum):
    """What makes an answer a good one; the names are those of `VoICE.explain`."""

    COST = "cost"
    FEWEST = "fewest"
    PREFIX = "prefix"


# What pages call the objectives, and the target of whoever names none.
GOALS = {
    Objective.COST: "Least change overall",
    Objective.FEWEST: "Fewest columns",
    Objective.PREFIX: "Columns that matter most",
}
NEAREST = "Nearest other segment"


@dataclass(frozen=True)
class Range:
    """How far a column may go; None where nothing is said.

    Attributes
    ----------
    column : str
    low, high : float or None
        At least, at most.
    step : float or None
        New values are multiples of it.
    least : float or None
        The column changes by this much or more, or not at all.
    """

    column: str
    low: Side = None
    high: Side = None
    step: float | None = None
    least: float | None = None


@dataclass(frozen=True)
class UserRules:
    """What may change, and how.

    Attributes
    ----------
    locked, rising, falling : tuple of str
        Columns that keep their value, that may only rise, that may only fall.
    ranges : tuple of Range
    levels : tuple of (str, tuple of str)
        Categories, and the levels that each may change to.
    most : int or None
        Most columns that may change.
    together : bool
        Whether an answer's values have to go together as those of the segment's rows do.

    Examples
    --------
    >>> from voicecf.app.row.question import UserRules, Range
    >>> allowed = UserRules(locked=("age",), ranges=(Range("income", high=60_000.0),))
    >>> allowed.words()
    {'immutable': ['age'], 'bounds': {'income': (Ellipsis, 60000.0)}}
    >>> UserRules.from_words(allowed.words()) == allowed
    True
    """

    locked: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    falling: tuple[str, ...] = ()
    ranges: tuple[Range, ...] = ()
    levels: tuple[tuple[str, tuple[str, ...]], ...] = ()
    most: int | None = None
    together: bool = False

    def words(self) -> dict[str, Any]:
        """Return the rules as `VoICE.explain` takes them; what is not said is left out."""
        bounded = [r for r in self.ranges if r.low is not None or r.high is not None]
        said = {
            "immutable": list(self.locked),
            "increase_only": list(self.rising),
            "decrease_only": list(self.falling),
            "bounds": {r.column: (_open(r.low), _open(r.high)) for r in bounded},
            "steps": {r.column: r.step for r in self.ranges if r.step is not None},
            "levels": {name: list(levels) for name, levels in self.levels},
            "least": {r.column: r.least for r in self.ranges if r.least is not None},
            "max_changes": self.most,
            "plausible": TOGETHER if self.together else None,
        }
        return {word: value for word, value in said.items() if value not in ([], {}, None)}

    @classmethod
    def from_words(cls, words: Mapping[str, Any]) -> UserRules:
        """Read rules, such as a relaxation proposes them."""
        bounds, steps, least = (words.get(word, {}) for word in ("bounds", "steps", "least"))
        ranges = []
        for name in dict.fromkeys([*bounds, *steps, *least]):
            low, high = (_said(side) for side in bounds.get(name, (..., ...)))
            said = Range(name, low, high, _number(steps.get(name)), _number(least.get(name)))
            if said != Range(name):
                ranges.append(said)
        return cls(
            tuple(words.get("immutable", ())),
            tuple(words.get("increase_only", ())),
            tuple(words.get("decrease_only", ())),
            tuple(ranges),
            tuple((name, tuple(levels)) for name, levels in words.get("levels", {}).items()),
            words.get("max_changes"),
            words.get("plausible") is not None,
        )

    def within(self, names: list[str]) -> UserRules:
        """Leave out what is said of columns that are no longer in use."""
        known = set(names)
        kept: dict[str, Any] = {
            field.name: tuple(c for c in getattr(self, field.name) if c in known)
            for field in fields(self)[:3]
        }
        ranges = tuple(r for r in self.ranges if r.column in known)
        levels = tuple((name, some) for name, some in self.levels if name in known)
        return replace(self, **kept, ranges=ranges, levels=levels)

    @property
    def count(self) -> int:
        """How many things are said."""
        parts = (self.locked, self.rising, self.falling, self.ranges, self.levels)
        return sum(map(len, parts)) + (self.most is not None) + self.together


def _open(side: Side) -> float | EllipsisType:
    """Where nothing is said the data's own range holds."""
    return ... if side is None else side


def _said(side: Any) -> Side:
    return None if isinstance(side, EllipsisType | str) or side is None else float(side)


def _number(step: Any) -> float | None:
    return float(step) if isinstance(step, (int, float)) else None


@dataclass(frozen=True)
class RowQuestion:
    """All that is asked about a row.

    Attributes
    ----------
    row : int
        Which of the prepared rows.
    target : int or None
        A segment; None for whichever is nearest.
    objective : Objective
    margin : int
        How firmly inside the target the answer is to lie: per cent of the way to its centre.
    allowed : UserRules
    """

    row: int = 0
    target: int | None = None
    objective: Objective = Objective.FEWEST
    margin: int = 0
    allowed: UserRules = UserRules()

    def options(self, **more: Any) -> dict[str, Any]:
        """Return what `VoICE.explain` is given besides the row."""
        target = "nearest" if self.target is None else self.target
        if self.allowed.together and "limit" in more:
            more["limit"] = min(more["limit"], LIMIT_TOGETHER)
        return {
            "target": target, "objective": str(self.objective), **self.allowed.words(), **more,
        }  # fmt: skip
