"""Time questions with rules that need a search: curved rules, least changes, many whole numbers.

Run `python benchmarks/bench_rules.py`, or `make bench` for all. Times are processor time of
`explain`, of all cores together, from the user's table to answers that the pipeline has confirmed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from voicecf import Status, VoICE

Row = tuple[str, float, float, str]
THREE = {
    "immutable": "age", "increase_only": "visits", "bounds": {"revenue": ("-50%", "+200%")},
    "plausible": None,
}  # fmt: skip
CURVED = {**THREE, "constraints": "revenue >= 12*orders"}


@cache
def customers() -> pd.DataFrame:
    """Return 10,000 customers: money and counts with long tails, whole numbers, categories."""
    rng = np.random.default_rng(0)
    n = 10_000
    orders = 1 + rng.poisson(rng.gamma(1.0, 4.0, n))
    return pd.DataFrame({
        "revenue": (orders * rng.lognormal(2.2, 0.8, n)).round(2) + 1.0,
        "orders": orders,
        "visits": orders + rng.poisson(6.0, n),
        "age": rng.integers(18, 80, n),
        "town": rng.choice(["Oslo", "Rome", "Lima", "Bonn"], n),
        "channel": rng.choice(["web", "shop", "phone"], n),
    })  # fmt: skip


@cache
def customer_voice() -> VoICE:
    """Cluster the customers, three of their columns as logarithms."""
    logarithm = FunctionTransformer(np.log1p, inverse_func=np.expm1, feature_names_out="one-to-one")
    steps = [
        ("tails", make_pipeline(logarithm, StandardScaler()), ["revenue", "orders", "visits"]),
        ("age", StandardScaler(), ["age"]),
        ("text", OneHotEncoder(sparse_output=False), ["town", "channel"]),
    ]
    model = make_pipeline(ColumnTransformer(steps), KMeans(5, n_init=3, random_state=0))
    return VoICE(model).fit(customers())


@cache
def whole_voice(columns: int, clusters: int) -> tuple[VoICE, pd.DataFrame]:
    """Cluster a table of whole numbers that are correlated."""
    rng = np.random.default_rng(1)
    kinds = rng.normal(size=(clusters, columns)) * 2.0
    mixed = rng.normal(size=(columns, columns)) / np.sqrt(columns) + np.eye(columns)
    values = kinds[rng.integers(clusters, size=2000)] + rng.normal(size=(2000, columns)) @ mixed
    table = pd.DataFrame(np.rint(20 + 6 * values).astype(int)).add_prefix("w")
    model = make_pipeline(StandardScaler(), KMeans(clusters, n_init=2, random_state=0))
    return VoICE(model).fit(table), table


@cache
def number_voice() -> tuple[VoICE, pd.DataFrame]:
    """Cluster a table of eight columns of numbers."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(5, 8))[rng.integers(5, size=20_000)] * 2 + rng.normal(
        size=(20_000, 8)
    )
    table = pd.DataFrame(values).add_prefix("x")
    model = make_pipeline(StandardScaler(), KMeans(5, n_init=2, random_state=0))
    return VoICE(model).fit(table), table


def three_rules() -> Any:
    """Answer customers with three plain rules."""
    return customer_voice().explain(customers(), "nearest", **THREE)


def curved_rule() -> Any:
    """Answer customers with a linear rule between columns behind logarithms besides."""
    return customer_voice().explain(customers(), "nearest", **CURVED)


def alternatives() -> Any:
    """Find three alternatives for 40 customers under the curved rule."""
    return customer_voice().explain(customers().head(40), "nearest", alternatives=3, **CURVED)


def plausible() -> Any:
    """Answer rows of 17 whole-numbered columns, like those of the target."""
    voice, table = whole_voice(17, 6)
    return voice.explain(table.head(25), "nearest", plausible=0.9)


def many_columns() -> Any:
    """Answer a row of 500 whole-numbered columns."""
    voice, table = whole_voice(500, 6)
    return voice.explain(table.head(1), "nearest", plausible=None)


def least() -> Any:
    """Answer 20,000 rows whose columns change by at least an amount, or not at all."""
    voice, table = number_voice()
    return voice.explain(table, "nearest", least=dict.fromkeys(table, 0.5), plausible=None)


def reason() -> Any:
    """Say why a customer has no answer under a curved rule."""
    few = {**CURVED, "immutable": ["age", "town", "channel"], "bounds": {"revenue": ("-5%", "+5%")}}
    cf = customer_voice().explain(customers().head(60), "each", **few)
    stuck = np.flatnonzero(cf.status == Status.INFEASIBLE)
    start = time.process_time()
    cf.reason(int(stuck[0]))
    cf.seconds = time.process_time() - start
    return cf


CASES: tuple[tuple[Callable[[], Any], str, float], ...] = (
    (three_rules, "10,000 customers, three rules", 0.75),
    (curved_rule, "10,000 customers, a curved rule besides", 3.0),
    (alternatives, "40 customers, three alternatives, curved rule", 1.0),
    (plausible, "25 rows of 17 whole numbers, plausible=0.9", 1.0),
    (many_columns, "one row of 500 whole numbers", 0.1),
    (least, "20,000 rows, least in 8 columns", 1.0),
    (reason, "a reason under a curved rule", 0.3),
)


def measure(ask: Callable[[], Any]) -> tuple[float, Any]:
    """Return processor time of a question, and its answers; without that of fitting."""
    customer_voice(), whole_voice(17, 6), whole_voice(500, 6), number_voice()
    start = time.process_time()
    cf = ask()
    return getattr(cf, "seconds", None) or time.process_time() - start, cf


def rows(chosen: tuple[str, ...] = ()) -> Iterator[Row]:
    """Tell times: what, with the number of answers that were cut short, seconds, ratio, goal."""
    for ask, what, goal in CASES:
        if chosen and ask.__name__ not in chosen:
            continue
        seconds, cf = measure(ask)
        stopped = int((cf.status == Status.STOPPED).sum())
        what += f" ({stopped} stopped)" if stopped else ""
        yield what, seconds, seconds / goal, f"<= {goal:g} s: 1"


if __name__ == "__main__":
    for what, seconds, ratio, goal in rows(tuple(sys.argv[1:])):
        print(f"{what:<62} {seconds:9.3f} s {ratio:8.2f}  {goal}", flush=True)
