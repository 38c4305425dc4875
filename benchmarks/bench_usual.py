"""How believable answers are: the default beside the cheapest, on tables that nobody tuned for.

    python benchmarks/bench_usual.py            # prints a table in Markdown
    python benchmarks/bench_usual.py --words 0.8 0.9 --tables College Wage

Columns of numbers are scaled, others one-hot encoded; k-means with four clusters; 200 rows are
sent to the nearest other cluster. For ``plausible=None`` and ``plausible="auto"``: the rows that
have an answer; of the answers those that sentences flag as unusual, and those that are farther from
the nearest member of their target than 95 % of its members are from each other; the median of the
cost over that of the cheapest answer, and of processor time over its time.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import distribution
from time import process_time
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.datasets import load
from voicecf.status import Status

ROWS, CLUSTERS = 200, 4
HEADINGS = (
    "table", "rows, coordinates", "plausible", "answered", "stopped", "flagged", "far", "cost",
    "changes", "time", "ms a row",
)  # fmt: skip
# Below this share of the members that are as extreme, a sentence calls an answer unusual.
UNUSUAL = 0.05


@dataclass(frozen=True)
class Measures:
    """What is measured of a batch of answers."""

    has: np.ndarray
    stopped: int
    flagged: float
    far: float
    cost: np.ndarray
    changes: float
    seconds: float


def rfm(n: int = 2000) -> pd.DataFrame:
    """Return invented customers: skewed money, many without an order."""
    rng = np.random.default_rng(11)
    loyal = rng.random(n) < 0.3
    orders = rng.poisson(rng.gamma(2.0, np.where(loyal, 4.0, 0.6)))
    basket = np.round(rng.lognormal(np.where(loyal, 3.6, 3.1), 0.5), 2)
    return pd.DataFrame({
        "recency_days": np.round(rng.exponential(np.where(loyal, 20, 140))).astype(int),
        "orders": orders,
        "revenue": np.round(orders * basket, 2),
        "basket": np.where(orders > 0, basket, 0.0),
        "tenure_months": rng.integers(1, 60, n),
        "returns": rng.binomial(orders, 0.15),
        "newsletter": np.where(rng.random(n) < np.where(loyal, 0.7, 0.35), "yes", "no"),
        "channel": rng.choice(["app", "web", "shop"], n, p=[0.5, 0.3, 0.2]),
    })  # fmt: skip


def packaged(package: str, path: str) -> pd.DataFrame:
    """Read a table that a package of PyPI carries, without importing the package."""
    return pd.read_csv(distribution(package).locate_file(path))


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "customers, invented": rfm,
    "CDNOW": lambda: packaged(
        "lifetimes", "lifetimes/datasets/cdnow_customers_summary_with_transactions.csv"
    ).drop(columns="customer_id", errors="ignore"),
    "penguins": lambda: load("penguins").frame,
    "obesity": lambda: load("obesity").frame,
    "student": lambda: load("student").frame,
    "german credit": lambda: load("german_credit").frame,
    "College": lambda: packaged("ISLP", "ISLP/data/College.csv"),
    "Wage": lambda: packaged("ISLP", "ISLP/data/Wage.csv").drop(columns="region"),
    "Credit": lambda: packaged("ISLP", "ISLP/data/Credit.csv").drop(columns="ID"),
    "Carseats": lambda: packaged("ISLP", "ISLP/data/Carseats.csv"),
}


def explained(frame: pd.DataFrame) -> VoICE:
    """Fit an explainer to a table with the pipeline that most people begin with."""
    columns = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include="number")),
        (OneHotEncoder(), make_column_selector(dtype_exclude="number")),
        sparse_threshold=0,
    )
    model = make_pipeline(columns, KMeans(CLUSTERS, n_init=10, random_state=0))
    return VoICE(model).fit(frame)


def far(voice: VoICE, frame: pd.DataFrame, answers: pd.DataFrame, target: np.ndarray) -> np.ndarray:
    """Tell which answers are farther from a member than 95 % of the members from each other."""
    steps = voice.model_[:-1]
    labels, points, found = voice.predict(frame), steps.transform(frame), steps.transform(answers)
    lonely = np.zeros(len(target), dtype=bool)
    for t in np.unique(target):
        members = points[labels == t]
        near = NearestNeighbors(n_neighbors=2).fit(members)
        limit = np.quantile(near.kneighbors(members)[0][:, 1], 0.95)
        which = np.flatnonzero(target == t)
        lonely[which] = near.kneighbors(found[which], 1)[0][:, 0] > limit
    return lonely


def measured(voice: VoICE, frame: pd.DataFrame, rows: pd.DataFrame, **words: Any) -> Measures:
    """Explain rows, and measure the answers."""
    seconds = np.inf
    for _ in range(3):
        start = process_time()
        cf = voice.explain(rows, n_jobs=1, **words)
        seconds = min(seconds, process_time() - start)
    has = np.isin(cf.status, [Status.OPTIMAL, Status.STOPPED])
    answers = cf[np.flatnonzero(has)]
    lonely = far(voice, frame, answers.to_frame(), answers.target)
    return Measures(
        has, int((cf.status == Status.STOPPED).sum()), float(np.mean(answers.usual < UNUSUAL)),
        float(lonely.mean()), cf.cost, float(np.median(answers.n_changed)), seconds,
    )  # fmt: skip


def main() -> None:
    """Print a line for each table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="*", default=list(TABLES))
    parser.add_argument("--words", nargs="*", default=["auto"], help="values of plausible")
    options = parser.parse_args()
    print("| " + " | ".join(HEADINGS) + " |\n" + "|---" * len(HEADINGS) + "|", flush=True)
    for name in options.tables:
        frame = TABLES[name]().dropna().reset_index(drop=True)
        voice = explained(frame)
        rows = frame.sample(ROWS, random_state=0)
        least = measured(voice, frame, rows, plausible=None)
        for word in ["none", *options.words]:
            value = word if word in ("none", "auto") else float(word)
            one = least if word == "none" else measured(voice, frame, rows, plausible=value)
            both = one.has & least.has & (least.cost > 0)
            cells = (
                name, f"{len(frame)}, {len(voice.weights_)}", word, one.has.sum(), one.stopped,
                f"{one.flagged:.0%}", f"{one.far:.0%}",
                f"{np.median(one.cost[both] / least.cost[both]):.2f}", f"{one.changes:.0f}",
                f"{one.seconds / least.seconds:.1f}", f"{1000 * one.seconds / ROWS:.2f}",
            )  # fmt: skip
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
