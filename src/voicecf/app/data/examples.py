"""Tables to begin with, so that nobody needs a file of their own to see what the app does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.datasets import load_wine

from voicecf.app.data.reading import Table

CUSTOMERS = 600
GROUPS = ("young regulars", "families", "retired")


@dataclass(frozen=True)
class Example:
    """A table that comes along.

    Attributes
    ----------
    name : str
    about : str
        A sentence or two.
    make : callable
        Makes it.
    """

    name: str
    about: str
    make: Callable[[], Table]


def customers() -> Table:
    """Make a table of customers: invented, but with groups that one would expect."""
    rng = np.random.default_rng(7)
    group = rng.choice(3, CUSTOMERS, p=[0.4, 0.35, 0.25])
    jobs = np.array([
        rng.choice(["student", "clerk", "engineer", "retired"], p=p)
        for p in np.array([[0.5, 0.3, 0.2, 0], [0.05, 0.5, 0.4, 0.05], [0, 0.1, 0.1, 0.8]])[group]
    ])  # fmt: skip
    frame = pd.DataFrame({
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
    return Table("customers.csv", frame, (), "example:customers", "examples.customers().frame")


def wines() -> Table:
    """Return the wines of scikit-learn, with readable names."""
    frame = load_wine(as_frame=True).data
    frame.columns = [name.replace("_", " ").replace("/", " / ") for name in frame]
    return Table("wine.csv", frame, (), "example:wine", "examples.wines().frame")


EXAMPLES = (
    Example(
        "Customers",
        f"{CUSTOMERS} invented customers: age, visits, spending, income, job, channel.",
        customers,
    ),
    Example("Wine", "178 Italian wines, 13 chemical measurements each, as in scikit-learn.", wines),
)
