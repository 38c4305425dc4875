"""What changes take, in spreads of the columns or in prices; and how the least of it is asked for.

An effort is the sum over the changed columns of what a unit costs times the change. Without prices
a unit costs 1 / spread (standard deviation), and a switch of a category 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from voicecf import Counterfactuals
from voicecf.app.row.question import Objective, Words, limit
from voicecf.app.segments.segments import Segments, blocks_of
from voicecf.output import figure

# What efforts are counted in until there are prices.
SPREADS = "spreads"
ABOUT_SPREADS = (
    "1 spread is a typical difference between rows in a column (its standard deviation); a switch "
    "of a category counts as 1. Efforts add up the columns that change."
)
# Prices by column, for each unit more and each unit less; both are that of a switch of a category.
Prices = dict[str, tuple[float, float]]
# Digits of factors, and the smallest beside the largest, which is 1: sums keep their digits.
DIGITS, SMALLEST = 9, 1e-9


def usual_prices(segments: Segments) -> Prices:
    """Return what a unit of each column costs without prices: so that efforts are in spreads."""
    numbers = segments.prepared.frame[list(segments.prepared.numbers)]
    spread = numbers.fillna(numbers.median()).std(ddof=0)
    each = {name: 1.0 / (float(spread.get(name, 1.0)) or 1.0) for name in segments.prepared.names}
    return {name: (price, price) for name, price in each.items()}


def question(
    segments: Segments, objective: Objective, target: Any, allowed: Words, prices: Prices
) -> dict[str, Any]:
    """Return the arguments of `VoICE.explain` besides the rows."""
    asked = {"target": target, "rules": allowed, "limit": limit(allowed)}
    if objective is not Objective.LEAST:
        return asked | {"objective": str(objective)}
    return asked | {"objective": "price", "rules": {**allowed, "prices": prices}}


def squared(segments: Segments, prices: Prices) -> dict[str, float]:
    """Return the factors of the cost under which an answer costs the sum of (price x change)^2.

    The model's own cost of a change x of a number is w (x / spread)^2, and 2 w for a switch of a
    category, whose one-hot coordinates both change by 1; hence a factor (price spread)^2 / w, or
    price^2 / 2 w. Only proportions matter, so the largest factor is 1.
    """
    usual, weights = usual_prices(segments), getattr(segments.model[-1], "feature_weights_", None)
    worth = {}
    for name, places in blocks_of(segments.prepared, segments.model).items():
        weight = 1.0 if weights is None else float(weights[places].mean()) or 1.0
        half = 0.5 if name in segments.prepared.categories else 1.0
        worth[name] = (np.mean(prices.get(name, (0, 0))) / usual[name][0]) ** 2 * half / weight
    largest = max(worth.values()) or 1.0
    return {
        name: float(f"{max(value / largest, SMALLEST):.{DIGITS}g}") for name, value in worth.items()
    }


def effort_of(segments: Segments, found: Counterfactuals, prices: Prices) -> float:
    """Return what one answer takes, in the values that it is told with.

    A missing value counts as what the model takes it for: the middle of its column.
    """
    total = 0.0
    for _, change in found.rounded().changes().iterrows():
        (rise, fall), name = prices[change["feature"]], change["feature"]
        if name in segments.prepared.categories:
            total += rise
            continue
        before = change["from"]
        by = change["to"] - (segments.prepared.frame[name].median() if pd.isna(before) else before)
        total += by * rise if by > 0 else -by * fall
    return float(total)


def effort_text(effort: float, unit: str) -> str:
    """Write an effort.

    Examples
    --------
    >>> from voicecf.app.effort import effort_text
    >>> effort_text(1.0, "spreads"), effort_text(1250.0, "€"), effort_text(float("nan"), "€")
    ('1 spread', '1,250.00 €', '–')
    """
    if np.isnan(effort):
        return "\N{EN DASH}"
    money = unit not in (SPREADS, "hours")
    text = f"{effort:,.2f}" if money else figure(effort)
    return f"{text} {unit[:-1] if text == '1' and not money else unit}"
