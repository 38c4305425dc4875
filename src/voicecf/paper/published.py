"""What the paper prints, how many digits it prints it with, and what counts as the same."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

# The tables of the paper, in its order; validity_text is what the text says of validity.
TABLES = (
    "datasets",
    "clustering",
    "validity",
    "validity_text",
    "least_cost",
    "parsimony",
    "actionability",
    "contraction",
    "concentration",
)
# Printed, but nothing to compare: another machine's milliseconds, and a judgement in words.
SHOWN_ONLY = ("runtime_ms", "degeneracy_risk")


class Key(NamedTuple):
    """Where a number stands: table, dataset, mode (often empty) and column."""

    table: str
    dataset: str
    mode: str
    column: str


@dataclass(frozen=True)
class Figure:
    """A number as somebody else printed it.

    Attributes
    ----------
    text : str
        To the digit.
    source : "table", "text", "caption" or "released"
        A table of the paper, its text, a caption, or the result files that its authors released.
    """

    text: str
    source: str


@cache
def figures() -> dict[Key, Figure]:
    """Return every printed figure, and what text, captions and released files add."""
    printed = {key: Figure(text, "table") for key, text, _ in _read("published.csv")}
    return printed | {key: Figure(text, source) for key, text, source in _read("quoted.csv")}


@cache
def released() -> dict[Key, Figure]:
    """Return what the published solver found for the diagnostic datasets, as it was released.

    From github.com/rickfawley/VoICE at commit 9c5c77a, results/summary: feasible answers of 50 with
    contraction, and the means of cost and r* with nothing fixed. No table of the paper prints them.
    """
    return {key: Figure(text, "released") for key, text, _ in _read("released.csv")}


def _read(name: str) -> Iterable[tuple[Key, str, str]]:
    text = files(__package__).joinpath(name).read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        key = Key(row["table"], row["dataset"], row["mode"], row["column"])
        yield key, row["value"], row.get("source") or ""


def titles(table: str) -> list[str]:
    """Name the datasets that a table was printed, or released, with, in its order."""
    printed = released() if table == "solver" else figures()
    named = dict.fromkeys(key.dataset for key in printed if key.table == table)
    return [title for title in named if title != "Overall"]


def inertia(value: float) -> str:
    """Write an inertia as the paper does: two decimals of seven digits; tiny ones as 1.90e-11.

    Examples
    --------
    >>> from voicecf.paper.published import inertia
    >>> inertia(11595.5266), inertia(4221626.0355), inertia(1.9e-11)
    ('11595.53', '4221626.00', '1.90e-11')
    """
    return f"{float(f'{value:.7g}'):.2f}" if abs(value) >= 0.005 else f"{value:.2e}"


def alpha_range(ends: tuple[float, float]) -> str:
    """Write a range of contraction factors; one that is 0.000 at both ends is printed once.

    Examples
    --------
    >>> from voicecf.paper.published import alpha_range
    >>> alpha_range((0.3051, 0.9279)), alpha_range((0.0, 1e-13))
    ('0.305--0.928', '0.000')
    """
    low, high = (f"{end:.3f}" for end in ends)
    return low if low == high == "0.000" else f"{low}--{high}"


# How the paper prints numbers, by column. z: what rounds to zero has no sign.
WHOLE, TWO_DIGITS = "{:.0f}".format, "{:z.2f}".format
FORMS: dict[str, Callable[..., str]] = {
    **dict.fromkeys(("n", "d", "k", "comparisons", "valid", "invalid"), WHOLE),
    **dict.fromkeys(("kmeans_inertia", "shark_inertia"), inertia),
    **dict.fromkeys(("dominant", "degeneracy_risk"), str),
    **dict.fromkeys(("alpha_range", "alpha_range_scale_free", "alpha_range_box"), alpha_range),
    **dict.fromkeys(("r_star", "d_eff", "pooled_validity_pct", "macro_validity_pct"), TWO_DIGITS),
    **dict.fromkeys(("relative_underestimation_pct", "failure_rate_pct"), TWO_DIGITS),
}


def as_printed(column: str, value: Any) -> str:
    """Return a value with as many digits as the paper prints in that column."""
    if column in FORMS:
        return FORMS[column](value)
    if column.startswith(("least_cost_", "prefix_")):
        return WHOLE(value)
    percent = column.endswith("_pct") or column.startswith("fixed_")
    return f"{value:z.1f}" if percent else f"{value:z.3f}"


def names_the_same(printed: str, ours: str, choices: Iterable[str]) -> bool:
    """Tell whether a printed name means ours, of all the names that there are.

    The paper shortens and rearranges column names, so a printed name means the only one that has
    all of its words.

    Examples
    --------
    >>> from voicecf.paper.published import names_the_same
    >>> columns = ["mean concave points", "worst concave points"]
    >>> names_the_same("concave points mean", "mean concave points", columns)
    True
    >>> names_the_same("concave points", "mean concave points", columns)
    False
    """
    meant = [choice for choice in choices if _words(printed) <= _words(choice)]
    return meant == [ours]


def _words(name: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", name.lower()))
