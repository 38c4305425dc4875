"""Random questions of least price, and HiGHS as their judge.

Each number is free or whole; each category has a table of its levels. The judge knows of a question
what its columns may become and what that costs, and solves a mixed-integer programme.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from voicecf import VoICE

LEVELS = ("a", "b", "c", "d")


@dataclass
class Priced:
    """A random table, its explainer, and prices.

    Attributes
    ----------
    X : DataFrame
    voice : VoICE
    words : dict
        The rules, prices included.
    """

    X: pd.DataFrame
    voice: VoICE
    words: dict[str, Any]

    @classmethod
    def random(cls, rng: np.random.Generator, n: int = 40) -> Priced:
        columns: dict[str, Any] = {}
        for i in range(rng.integers(1, 4)):
            columns[f"x{i}"] = np.round(rng.normal(0, 10.0 ** rng.integers(-2, 3), n), 6)
        for i in range(rng.integers(0, 4)):
            columns[f"w{i}"] = rng.integers(0, rng.integers(2, 12), n)
        for i in range(rng.integers(0, 3)):
            columns[f"c{i}"] = rng.choice(LEVELS[: rng.integers(2, 5)], n)
        X = pd.DataFrame(columns)
        numbers = [name for name in X if name[0] != "c"]
        categories = [name for name in X if name[0] == "c"]
        encoder = OneHotEncoder(sparse_output=False) if rng.random() < 0.7 else OrdinalEncoder()
        steps = [("numbers", StandardScaler(), numbers), ("levels", encoder, categories)]
        k = int(rng.integers(2, 7))
        model = make_pipeline(ColumnTransformer(steps), KMeans(k, n_init=1, random_state=0))
        voice = VoICE(model, contraction=float(rng.choice([1.0, 0.9]))).fit(X)
        prices = {name: _price(rng, X[name]) for name in X if rng.random() < 0.85}
        words: dict[str, Any] = {"prices": prices or {"x0": 1.0}}
        if rng.random() < 0.15:
            words["max_changes"] = int(rng.integers(1, X.shape[1] + 1))
        return cls(X, voice, words)

    def price(self, before: Any, after: Any, name: str) -> float:
        """Return what one change costs; infinite if it may not be taken."""
        price = self.words["prices"].get(name)
        if before == after:
            return 0.0
        if isinstance(price, dict):
            return float(price.get((before, after), np.inf))
        if price is None:
            return np.inf
        if name[0] == "c":
            return float(price)
        more, less = price if isinstance(price, tuple) else (price, price)
        return float(more * (after - before) if after > before else less * (before - after))

    def options(self, row: pd.Series, name: str) -> list[Any]:
        """Return what a column of choices may become, the row's own value included."""
        values = self.X[name]
        if name[0] == "w":
            found = list(range(int(values.min()), int(values.max()) + 1))
        else:
            found = sorted(set(values))
        return [v for v in found if self.price(row[name], v, name) < np.inf]

    def coordinates(self, row: pd.Series, **changes: Any) -> np.ndarray:
        """Return the coordinates of a row after changes."""
        one = pd.DataFrame([{**row, **changes}]).astype(self.X.dtypes)
        return np.asarray(self.voice.model_[:-1].transform(one), dtype=np.float64)[0]

    def judged(self, row: pd.Series, target: int) -> float | None:
        """Return the least price that HiGHS finds; None without any, NaN if it breaks rules."""
        base, region = self.coordinates(row), self.voice.region(target)
        part = Programme(len(base))
        for name in self.X:
            if name[0] == "x":
                self._add_number(part, row, name, base)
            else:
                options = self.options(row, name)
                at = [
                    part.add(self.coordinates(row, **{name: v}) - base,
                             self.price(row[name], v, name), 1.0, whole=True)
                    for v in options
                ]  # fmt: skip
                part.require(dict.fromkeys(at, 1.0), 1.0, 1.0)
                part.moved += [i for i, v in zip(at, options, strict=True) if v != row[name]]
        part.require(dict.fromkeys(part.moved, 1.0), 0.0, self.words.get("max_changes", np.inf))
        return part.least(region.normals, region.offsets - region.normals @ (base - region.origin))

    def _add_number(self, part: Programme, row: pd.Series, name: str, base: np.ndarray) -> None:
        """Add a number's rise and fall, and whether it changes."""
        if name not in self.words["prices"]:
            return
        slope = self.coordinates(row, **{name: row[name] + 1.0}) - base
        moved = part.add(np.zeros(len(base)), 0.0, 1.0, whole=True)
        part.moved.append(moved)
        ends = self.X[name].max() - row[name], row[name] - self.X[name].min()
        for sign, end in zip((1.0, -1.0), ends, strict=True):
            at = part.add(sign * slope, self.price(0.0, sign, name), end)
            if "max_changes" in self.words:
                part.require({at: 1.0, moved: -end}, -np.inf, 0.0)


class Programme:
    """A mixed-integer programme, built variable by variable; all are 0 or more."""

    def __init__(self, d: int) -> None:
        self.steps: list[np.ndarray] = [np.zeros(d)]
        self.costs, self.ends, self.whole = [0.0], [0.0], [0]
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.moved: list[int] = []

    def add(self, step: np.ndarray, cost: float, end: float, *, whole: bool = False) -> int:
        """Add a variable; return its position."""
        for values, value in zip(
            (self.steps, self.costs, self.ends, self.whole), (step, cost, end, int(whole)),
            strict=True,
        ):  # fmt: skip
            values.append(value)
        return len(self.costs) - 1

    def require(self, factors: dict[int, float], low: float, high: float) -> None:
        """Add a constraint."""
        self.rows.append((factors, low, high))

    def least(self, normals: np.ndarray, room: np.ndarray) -> float | None:
        """Return the least cost; None if there is no solution, NaN if that found is none."""
        U = np.array(self.steps).T
        A = np.zeros((len(self.rows), len(self.costs)))
        for t, (factors, _, _) in enumerate(self.rows):
            A[t, list(factors)] = list(factors.values())
        lows, highs = (np.array([row[side] for row in self.rows]) for side in (1, 2))
        A, low = np.vstack([normals @ U, A]), np.append(np.full(len(room), -np.inf), lows)
        high, costs, ends = np.append(room, highs), np.array(self.costs), np.array(self.ends)
        whole = np.array(self.whole) == 1
        found = milp(
            costs, integrality=whole, bounds=Bounds(0.0, ends),
            constraints=LinearConstraint(A, low, high), options={"mip_rel_gap": 1e-10},
        )  # fmt: skip
        if found.status != 0:
            return None
        # Whole variables are so to 1e-6 only: with them rounded, the others are found once more.
        fixed = np.round(found.x)
        bounds = np.column_stack([np.where(whole, fixed, 0.0), np.where(whole, fixed, ends)])
        up, down = np.isfinite(high), np.isfinite(low)
        again = linprog(
            costs, np.vstack([A[up], -A[down]]), np.append(high[up], -low[down]), bounds=bounds,
            options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
        )  # fmt: skip
        return float(again.fun) if again.status == 0 else np.nan


def _price(rng: np.random.Generator, values: pd.Series) -> Any:
    """Return random prices of a column: often round, sometimes 0, so that there are ties."""

    def some(size: Any = None) -> Any:
        plain = rng.integers(0 if rng.random() < 0.1 else 1, 6, size).astype(float)
        return plain if rng.random() < 0.5 else np.round(rng.uniform(0.1, 5, size), 3)

    if values.name[0] == "c":
        if rng.random() < 0.5:
            return float(some())
        levels = sorted(set(values))
        return {
            (a, b): float(some()) for a in levels for b in levels if a != b and rng.random() < 0.8
        } or 1.0
    return float(some()) if rng.random() < 0.4 else tuple(some(2).tolist())
