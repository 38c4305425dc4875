"""What a run says: who can move, by what levers, at what effort, and how far a budget goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from voicecf.app.campaign.plan import Campaign, CampaignCounts, Run
from voicecf.app.campaign.runs import MOVING, NOT_ANSWERED
from voicecf.output import figure, joined

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


def summed_up(table: pd.DataFrame, run: Run, campaign: Campaign) -> Summary:
    """Sum up the answers of a run; efforts are counted by the prices of a campaign."""
    moves = table["result"].isin(MOVING)
    prices, changes = run.rates(campaign), {name: delta(table, name) for name in run.columns}
    total = sum((priced(changes[n], prices.get(n, (0.0, 0.0))) for n in run.columns), np.zeros(1))
    lines = table[["row", "from", "to", "result"]].assign(
        effort=np.where(moves, total, np.nan), moves=moves,
        many=sum(by.fillna(0) != 0 for by in changes.values()),
    )  # fmt: skip
    able = lines[moves].sort_values(["effort", "row"], kind="stable")
    easiest = able.drop_duplicates("row").index.to_numpy()

    def levers(some: pd.Index) -> tuple[FrequentChange, ...]:
        """Return what some answers change most often; a rise and a fall are two levers."""
        found = [one for n, by in changes.items() for one in _ways(table, n, by.loc[some])]
        return tuple(sorted(found, key=lambda lever: -lever.share))

    asked = lines[~lines["result"].isin(NOT_ANSWERED) & (lines["from"] != lines["to"])]
    pairs = [
        Pair(
            int(source), int(target), len(part), int(part["moves"].sum()),
            *_medians(part[part["moves"]]), levers(part.index[part["moves"]]),
        )
        for (source, target), part in asked[asked["to"] >= 0].groupby(["from", "to"])
    ]  # fmt: skip
    effort = lines["effort"].to_numpy()
    return Summary(
        run.counts, campaign.unit, *_medians(lines.loc[easiest]), levers(pd.Index(easiest)),
        tuple(pairs), effort, easiest, np.cumsum(effort[easiest]),
    )  # fmt: skip


def _medians(lines: pd.DataFrame) -> tuple[float, float]:
    """Return the median effort and number of columns of some answers; NaN of none."""
    return float(lines["effort"].median()), float(lines["many"].median())


def delta(table: pd.DataFrame, name: str) -> pd.Series:
    """Return how much each answer changes a number, or whether it switches a category; else NaN.

    A missing number counts as the middle of all.
    """
    before, after = table[f"before {name}"], table[f"after {name}"]
    if not types.is_numeric_dtype(before.dtype):
        return (after.notna() & (before.fillna("") != after)).astype(float)
    before, after = before.astype(float), after.astype(float)
    middle = before[~table["row"].duplicated()].median()  # a row has a line for each target
    return (after - before.fillna(middle)).where(after.notna() & (after != before))


def priced(by: pd.Series, prices: tuple[float, float]) -> NDArray[np.float64]:
    """Return what changes of a column cost."""
    rise, fall = prices
    change = by.fillna(0.0).to_numpy(dtype=np.float64)
    return np.asarray(np.where(change > 0, change * rise, -change * fall))


def _ways(table: pd.DataFrame, name: str, by: pd.Series) -> Iterator[FrequentChange]:
    """Yield how some answers change a column, with their share."""
    after = table.loc[by.index, f"after {name}"]
    if not types.is_numeric_dtype(after.dtype):
        for level, share in (after[by > 0].value_counts() / len(by)).items():
            yield FrequentChange(name, f'becomes "{level}"', float(share))
        return
    for some, sign in ((by[by > 0], "+"), (by[by < 0], "\N{MINUS SIGN}")):
        if len(some):
            how = f"{sign}{figure(abs(float(some.median())))}"
            yield FrequentChange(name, how, len(some) / len(by))


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
