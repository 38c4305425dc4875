"""Invented customers: a table to try things on."""

from __future__ import annotations

from typing import Any

import numpy as np

CUSTOMERS = 600


def customers() -> Any:
    """Return a pandas DataFrame of 600 invented customers, the same every time.

    Young people who come often and buy little, families who buy much, and retired people; ages and
    visits are whole numbers, baskets and incomes amounts, jobs and channels categories.

    Examples
    --------
    >>> from voicecf.datasets import customers
    >>> customers().columns.tolist()[:4]
    ['customer_id', 'age', 'visits_per_month', 'basket']
    """
    import pandas as pd

    rng = np.random.default_rng(7)
    group = rng.choice(3, CUSTOMERS, p=[0.4, 0.35, 0.25])
    jobs = np.array([
        rng.choice(["student", "clerk", "engineer", "retired"], p=p)
        for p in np.array([[0.5, 0.3, 0.2, 0], [0.05, 0.5, 0.4, 0.05], [0, 0.1, 0.1, 0.8]])[group]
    ])  # fmt: skip
    return pd.DataFrame({
        "customer_id": np.arange(1001, 1001 + CUSTOMERS),
        "age": np.array([26, 42, 68])[group] + rng.integers(-7, 8, CUSTOMERS),
        "visits_per_month": rng.poisson(np.array([9, 4, 2])[group]),
        "basket": np.round(rng.gamma(20, np.array([0.9, 3.4, 1.6])[group]), 2),
        "monthly_income": np.round(
            np.array([1_700, 3_600, 2_300])[group] + rng.normal(0, 320, CUSTOMERS), -1
        ).astype(int),
        "newsletters_read": rng.binomial(12, np.array([0.2, 0.45, 0.8])[group]),
        "job": jobs,
        "channel": np.where(
            rng.random(CUSTOMERS) < np.array([0.85, 0.5, 0.15])[group], "app", "shop"
        ),
    })  # fmt: skip
