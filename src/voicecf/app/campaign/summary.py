"""What a run says: who can move, by what levers, at what effort, and how far a budget goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.campaign.answers import MOVING, NOT_ANSWERED
from voicecf.app.campaign.effort import Rates, changed, deltas, efforts
from voicecf.app.campaign.plan import Campaign, CampaignCounts, Run
from voicecf.table.wording import figure, joined, level

# Levers that are named, and points of the curve of customers against budget.
NAMED, POINTS = 3, 160
# A sum that exceeds a budget by this share does so by rounding alone.
ROUNDING = 1e-9


@dataclass(frozen=True)
class FrequentChange:
    """A change that answers make.

    Attributes
    ----------
    column : str
    change : str
        The median change of those who make it, “+3”, or the level that a category becomes.
    share : float
        Of the answers.
    """

    column: str
    change: str
    share: float

    @property
    def phrase(self) -> str:
        """Say it: “visits +3”, “channel becomes "app"”."""
        return f"{self.column} {self.change}"


@dataclass(frozen=True)
class Pair:
    """Rows of one segment that are asked to be in another.

    Attributes
    ----------
    source, target : int
    asked, movable : int
        How many rows, and how many of them can move.
    effort, columns : float
        Medians of those that can move; NaN if none can.
    levers : tuple of FrequentChange
        The most frequent first.
    """

    source: int
    target: int
    asked: int
    movable: int
    effort: float
    columns: float
    levers: tuple[FrequentChange, ...]


@dataclass(frozen=True, eq=False)
class Summary:
    """What a run says, with certain prices.

    Attributes
    ----------
    counts : CampaignCounts
    unit : str
        What efforts are in.
    effort, columns : float
        Medians of the rows that can move, each by its easiest answer; NaN if none can.
    levers : tuple of FrequentChange
        Of these answers.
    pairs : tuple of Pair
    efforts : array of float
        Of each line of the answers.
    easiest : array of int
        Lines of the easiest answer of each row that can move, the least effort first.
    spent : array of float
        What these cost together, up to and with each.
    """

    counts: CampaignCounts
    unit: str
    effort: float
    columns: float
    levers: tuple[FrequentChange, ...]
    pairs: tuple[Pair, ...]
    efforts: NDArray[np.float64] = field(repr=False)
    easiest: NDArray[np.int64] = field(repr=False)
    spent: NDArray[np.float64] = field(repr=False)

    def affordable(self, budget: float | None) -> int:
        """Count rows that a budget suffices for, the easiest first; all if there is none.

        No other choice of rows is larger: any n rows cost at least as much as the n easiest.
        """
        if budget is None:
            return len(self.spent)
        return int(np.searchsorted(self.spent, budget * (1 + ROUNDING), side="right"))

    def curve(self) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return budgets, and how many rows each suffices for: enough points for a picture."""
        n = len(self.spent)
        at = (
            np.unique(np.linspace(1, n, min(n, POINTS)).astype(np.int64)) if n else np.empty(0, int)
        )
        return np.concatenate([[0.0], self.spent[at - 1]]), np.concatenate([[0], at])


def summed_up(table: pd.DataFrame, run: Run, cost: Rates) -> Summary:
    """Sum up the answers of a run.

    Parameters
    ----------
    table : pandas.DataFrame
        Its answers.
    run : Run
    cost : Rates
        What efforts are counted by: the present prices.
    """
    lines = _Lines(table, run, cost)
    best = lines.easiest()
    return Summary(
        run.counts, cost.unit, *lines.medians(best), lines.levers(best), lines.pairs(),
        lines.effort, best, np.cumsum(lines.effort[best]),
    )  # fmt: skip


class _Lines:
    """The answers of a run as arrays, by line."""

    def __init__(self, table: pd.DataFrame, run: Run, cost: Rates) -> None:
        self.table, self.columns = table, run.columns
        self.row, result = table["row"].to_numpy(), table["result"].to_numpy()
        self.source, self.target = table["from"].to_numpy(), table["to"].to_numpy()
        self.moves = np.isin(result, MOVING)
        self.answered = ~np.isin(result, NOT_ANSWERED)
        self.effort = np.where(self.moves, efforts(table, run.columns, cost), np.nan)
        changes = {name: changed(table, name) & self.moves for name in run.columns}
        self.changes, self.many = changes, np.sum(list(changes.values()), axis=0)
        self.by = {name: deltas(table, name) for name in run.spreads}

    def easiest(self) -> NDArray[np.int64]:
        """Return the easiest answer of each row, the least effort first."""
        lines = np.flatnonzero(self.moves)
        lines = lines[np.lexsort((lines, self.effort[lines]))]
        _, first = np.unique(self.row[lines], return_index=True)
        return np.asarray(lines[np.sort(first)])

    def medians(self, lines: NDArray[np.int64]) -> tuple[float, float]:
        """Return the median effort and number of columns of some answers."""
        if not len(lines):
            return float("nan"), float("nan")
        return float(np.median(self.effort[lines])), float(np.median(self.many[lines]))

    def pairs(self) -> tuple[Pair, ...]:
        """Sum up each pair of segments; rows that are there already are in none."""
        some = np.flatnonzero(self.answered & (self.source != self.target) & (self.target >= 0))
        k = int(max(self.target.max(initial=0), self.source.max(initial=0))) + 1
        code = self.source[some].astype(np.int64) * k + self.target[some]
        order = np.argsort(code, kind="stable")
        kinds, starts = np.unique(code[order], return_index=True)
        made = []
        for kind, lines in zip(kinds, np.split(some[order], starts[1:]), strict=False):
            can = lines[self.moves[lines]]
            source, target = divmod(int(kind), k)
            made.append(
                Pair(source, target, len(lines), len(can), *self.medians(can), self.levers(can))
            )
        return tuple(made)

    def levers(self, lines: NDArray[np.int64]) -> tuple[FrequentChange, ...]:
        """Return what some answers change most often; a rise and a fall are two levers."""
        found: list[FrequentChange] = []
        for name in self.columns:
            some = lines[self.changes[name][lines]]
            if len(some):
                found += [
                    FrequentChange(name, how, many / len(lines))
                    for how, many in self._ways(name, some)
                ]
        return tuple(sorted(found, key=lambda lever: -lever.share))

    def _ways(self, name: str, lines: NDArray[np.int64]) -> list[tuple[str, int]]:
        after = self.table[f"after {name}"].iloc[lines]
        if isinstance(after.dtype, pd.CategoricalDtype):
            counts = np.bincount(after.cat.codes, minlength=len(after.cat.categories))
            return [
                (f"becomes {level(value)}", int(many))
                for value, many in zip(after.cat.categories, counts, strict=True)
                if many
            ]
        by = self.by[name][lines]
        made = []
        for some, sign in ((by[by > 0], "+"), (by[by <= 0], "\N{MINUS SIGN}")):
            if len(some):
                made.append((f"{sign}{figure(abs(float(np.median(some))))}", len(some)))
        return made


def effort_text(effort: float, unit: str) -> str:
    """Write an effort: “12.5 €”, “1.3 spreads”, “1 spread”.

    Examples
    --------
    >>> from voicecf.app.campaign.summary import effort_text
    >>> effort_text(1.0, "spreads"), effort_text(1250.0, "€"), effort_text(float("nan"), "€")
    ('1 spread', '1,250 €', '–')
    """
    if np.isnan(effort):
        return "\N{EN DASH}"
    text = figure(effort)
    one = unit[:-1] if text == "1" and unit in ("spreads", "hours") else unit
    return f"{text} {one}"


def asked_in_words(campaign: Campaign, names: Sequence[str]) -> str:
    """Say whom a campaign is to move where.

    Examples
    --------
    >>> from voicecf.app.campaign.plan import Campaign
    >>> from voicecf.app.campaign.summary import asked_in_words
    >>> asked_in_words(Campaign((0,), 1), ["Rarely here", "Regulars"])
    'Rarely here to Regulars'
    """
    whom = joined([names[t] for t in campaign.sources]) if campaign.sources else "Everyone"
    if campaign.each:
        return f"{whom} to every other segment"
    where = "the nearest other segment" if campaign.target is None else names[campaign.target]
    return f"{whom} to {where}"
