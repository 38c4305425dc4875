"""What a change takes: in spreads of the columns, or in the visitor's own prices.

An effort is the sum over the changed columns of what a unit costs times the change. Without prices
a unit costs 1 / spread, and a switch of a category 1: the effort is counted in spreads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.campaign.plan import Campaign, Price
from voicecf.app.data.preparing import Method
from voicecf.app.row.question import LIMIT, RowQuestion, UserRules
from voicecf.app.segments.segments import Segments, blocks_of

# What a column that is free costs in the search, beside the cheapest that is not: hardly anything.
NEXT_TO_NOTHING = 1e-3
# Digits of the factors: prices in proportion give the same ones. The smallest beside the largest,
# which is 1: what is cheaper than that is as good as free, and sums keep their digits.
DIGITS, SMALLEST = 9, 1e-9


def spreads(segments: Segments) -> dict[str, float]:
    """Return the standard deviation of each column of numbers, as the pipeline scales by it."""
    numbers = segments.prepared.frame[list(segments.prepared.numbers)]
    filled = numbers.fillna(numbers.median())
    return {str(name): float(v) or 1.0 for name, v in filled.std(ddof=0).items()}


@dataclass(frozen=True)
class Rates:
    """What each column costs for a unit that it rises or falls, or for a switch."""

    unit: str
    rise: dict[str, float]
    fall: dict[str, float]


def rates(campaign: Campaign, columns: Sequence[str], spread: dict[str, float]) -> Rates:
    """Return what counts: the prices, or else spreads.

    Examples
    --------
    >>> from voicecf.app.campaign.effort import rates
    >>> from voicecf.app.campaign.plan import Campaign, Price
    >>> rates(Campaign(), ["visits", "channel"], {"visits": 4.0}).rise
    {'visits': 0.25, 'channel': 1.0}
    >>> rates(Campaign(prices=(Price("visits", 12.0),)), ["visits", "channel"], {}).rise
    {'visits': 12.0, 'channel': 0.0}
    """
    if not campaign.prices:
        usual = {name: 1.0 / spread.get(name, 1.0) for name in columns}
        return Rates(campaign.unit, usual, usual)
    rise, fall = dict.fromkeys(columns, 0.0), dict.fromkeys(columns, 0.0)
    for price in campaign.prices:
        rise[price.column] = price.rise
        fall[price.column] = price.rise if price.fall is None else price.fall
    return Rates(campaign.unit, rise, fall)


def options(campaign: Campaign, segments: Segments) -> dict[str, Any]:
    """Return what `VoICE.explain` is given besides the rows.

    With prices, the cost of an answer is in proportion to the sum of (price x change)^2, so that
    cheap columns are preferred. Columns without a price stay as they are, unless they are free.
    """
    asked = RowQuestion(
        target=campaign.target, objective=campaign.objective, margin=campaign.margin,
        allowed=with_prices(campaign, segments.prepared.names),
    )  # fmt: skip
    made = asked.options(limit=LIMIT)
    if campaign.each:
        made["target"] = "each"
    if campaign.prices:
        made["costs"] = factors(campaign, segments)
    return made


def with_prices(campaign: Campaign, names: Sequence[str]) -> UserRules:
    """Return what may change: not what has no price, where other columns have one."""
    allowed = campaign.allowed
    if not campaign.prices or campaign.free:
        return allowed
    priced = {price.column for price in campaign.prices}
    locked = tuple(n for n in names if n in allowed.locked or n not in priced)
    moving: dict[str, Any] = {
        word: tuple(n for n in getattr(allowed, word) if n in priced)
        for word in ("rising", "falling")
    }
    return replace(
        allowed, locked=locked, **moving,
        ranges=tuple(r for r in allowed.ranges if r.column in priced),
        levels=tuple((name, some) for name, some in allowed.levels if name in priced),
    )  # fmt: skip


def factors(campaign: Campaign, segments: Segments) -> dict[str, float]:
    """Return the factors of the squared changes under which an answer costs (price x change)^2.

    The model's own cost of a change x of a number is w (x / spread)^2, and 2 w for a switch of a
    category, whose one-hot coordinates both change by 1; hence a factor (price spread)^2 / w, or
    price^2 / 2 w. Only proportions matter, so the largest factor is 1.
    """
    prices = {price.column: _one_price(price, campaign.allowed) for price in campaign.prices}
    spread, weight = spreads(segments), _weights(segments)
    worth = {
        name: prices[name] ** 2 * (spread[name] ** 2 if name in spread else 0.5) / weight[name]
        for name in segments.prepared.names
        if prices.get(name)
    }
    least = min(worth.values(), default=1.0) * NEXT_TO_NOTHING
    every = {name: worth.get(name, least) for name in segments.prepared.names}
    largest = max(every.values())
    return {
        name: float(f"{max(value / largest, SMALLEST):.{DIGITS}g}") for name, value in every.items()
    }


def _one_price(price: Price, allowed: UserRules) -> float:
    """Return the price of the only direction that is allowed, or else the middle of both."""
    fall = price.rise if price.fall is None else price.fall
    if price.column in allowed.rising:
        return price.rise
    return fall if price.column in allowed.falling else (price.rise + fall) / 2


def _weights(segments: Segments) -> dict[str, float]:
    """Return the model's weight of each column: the mean of its coordinates'."""
    places = blocks_of(segments.prepared, segments.model)
    if segments.method is Method.KMEANS:
        return dict.fromkeys(places, 1.0)
    weights = segments.model[-1].feature_weights_
    # A column of no weight moves nobody, so that any factor does.
    return {name: float(weights[at].mean()) or 1.0 for name, at in places.items()}


def changed(table: pd.DataFrame, name: str) -> NDArray[np.bool_]:
    """Tell which answers change a column."""
    before, after = table[f"before {name}"], table[f"after {name}"]
    if isinstance(before.dtype, pd.CategoricalDtype):
        old, new = before.cat.codes.to_numpy(), after.cat.codes.to_numpy()
        return np.asarray((old != new) & (new >= 0))
    old, new = before.to_numpy(), after.to_numpy()
    return np.asarray((old != new) & ~np.isnan(new))


def deltas(table: pd.DataFrame, name: str) -> NDArray[np.float64]:
    """Return how much each answer changes a number; a missing one counts as the middle of all."""
    before, after = (table[f"{side} {name}"].to_numpy() for side in ("before", "after"))
    row = table["row"].to_numpy()
    first = np.diff(row, prepend=-1) != 0  # a row has a line for each of its targets
    present = before[first & ~np.isnan(before)]
    middle = float(np.median(present)) if len(present) else 0.0
    return np.where(np.isnan(after), 0.0, after - np.where(np.isnan(before), middle, before))


def efforts(table: pd.DataFrame, columns: Sequence[str], cost: Rates) -> NDArray[np.float64]:
    """Return the effort of each answer; 0 where nothing changes."""
    total = np.zeros(len(table))
    for name in columns:
        moved = changed(table, name)
        if isinstance(table[f"before {name}"].dtype, pd.CategoricalDtype):
            total += moved * cost.rise[name]
        else:
            by = np.where(moved, deltas(table, name), 0.0)
            total += np.where(by > 0, by * cost.rise[name], -by * cost.fall[name])
    return total
