"""What is asked about a row: one value, from which answer and code are both made."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from voicecf.output import counted, figure, joined

# Boxes that a search looks at: what it has not proven by then is said to be close.
LIMIT = 2_000
# The same where values have to go together: then a box takes many times as long.
LIMIT_TOGETHER = 200
# Share of a segment's rows whose values an answer stays within, if values are to go together.
TOGETHER = 0.95
# What JSON has for a side of bounds of which nothing is said, as `voicecf.Rules` reads it.
KEEP = "..."
# Words of rules that list columns, as pages and reports call them.
LISTS = {
    "immutable": ("Must stay as it is", "may not change", "locked"),
    "increase_only": ("May only rise", "may only rise", "only up"),
    "decrease_only": ("May only fall", "may only fall", "only down"),
}

# Words of rules that have something for each of some columns.
LIMITS = ("bounds", "steps", "least", "levels")

Words = dict[str, Any]


class Objective(StrEnum):
    """What makes an answer a good one."""

    LEAST = "least"
    FEWEST = "fewest"
    PREFIX = "prefix"


# What pages and reports call the objectives, and the target of whoever names none.
GOALS = {
    Objective.LEAST: "Least change overall",
    Objective.FEWEST: "Fewest columns",
    Objective.PREFIX: "Columns that matter most",
}
NEAREST = "Nearest other segment"


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
    allowed : dict
        What may change: words of `voicecf.Rules`, in types of JSON.
    """

    row: int = 0
    target: int | None = None
    objective: Objective = Objective.FEWEST
    margin: int = 0
    allowed: Words = field(default_factory=dict)


def within(words: Mapping[str, Any], names: Collection[str]) -> Words:
    """Leave out what is said of columns that are not among some, and what says nothing.

    Examples
    --------
    >>> within({"immutable": ["age", "gone"], "bounds": {"age": ["...", "..."]}}, ["age"])
    {'immutable': ['age']}
    """
    kept: Words = {}
    for word, value in words.items():
        if isinstance(value, list):
            value = [name for name in value if name in names]
        elif isinstance(value, dict):
            value = {
                name: one for name, one in value.items()
                if name in names and list(one if word == "bounds" else ()) != [KEEP, KEEP]
            }  # fmt: skip
        if value not in ([], {}, None):
            kept[word] = value
    return kept


def limit(words: Mapping[str, Any]) -> int:
    """Return how long a search under such rules may take."""
    return LIMIT_TOGETHER if "plausible" in words else LIMIT


def limited(words: Mapping[str, Any], which: Sequence[str] = LIMITS) -> list[str]:
    """Return the columns that have limits."""
    return list(dict.fromkeys(name for word in which for name in words.get(word, ())))


def in_words(words: Mapping[str, Any]) -> list[str]:
    """Say what may change, a sentence a rule."""
    lines = [f"{name} {LISTS[word][1]}." for word in LISTS for name in words.get(word, ())]
    for name in limited(words, LIMITS[:3]):
        low, high = words.get("bounds", {}).get(name, (KEEP, KEEP))
        sides = [f"at least {_side(low)}"] * (low != KEEP)
        sides += [f"at most {_side(high)}"] * (high != KEEP)
        sides += [f"in steps of {_side(words['steps'][name])}"] * (name in words.get("steps", {}))
        sides += [f"by {_side(words['least'][name])} or more"] * (name in words.get("least", {}))
        lines.append(f"{name}: {joined(sides)}.")
    lines += [
        f"{name} may become {joined(some, 'or')}." for name, some in words.get("levels", {}).items()
    ]
    if "max_changes" in words:
        lines.append(f"At most {counted(words['max_changes'], 'column')} may change.")
    return lines + ["Only values that go together in the segment."] * ("plausible" in words)


def in_short(words: Mapping[str, Any]) -> list[str]:
    """Say what may change in a few phrases."""
    parts = [f"{joined(words[word])} {LISTS[word][2]}" for word in LISTS if word in words]
    parts += [f"limits on {joined(limited(words))}"] * bool(limited(words))
    if "max_changes" in words:
        parts.append(f"at most {counted(words['max_changes'], 'column')}")
    return parts + ["values that go together"] * ("plausible" in words)


def _side(value: Any) -> str:
    return figure(float(value)) if isinstance(value, (int, float)) else str(value)
