"""Random pipelines, rules and frames, and what is wrong with the answers, if anything.

`python tests/random_questions.py FIRST COUNT` asks COUNT questions and prints every complaint.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from test_typed_in import phrases, typed_in
from voicecf import SHARK, Status, VoICE

NUMBERS = ("age", "visits", "money", "score", "income")
WHOLE = ("age", "visits")
TEXTS = ("town", "member", "size")
SEGMENTS = ("loyal ones", "lapsed", "new", "rich", "rest")
# What a sentence says of the price.
MONEY = re.compile(r"; this costs [\d,]+(\.\d+)?(e[+-]?\d+)?")
ANSWERED = (Status.OPTIMAL, Status.STOPPED)


def table(rng: np.random.Generator, n: int = 150) -> pd.DataFrame:
    """Return customers: zeros, tails, whole numbers, text, truth values, an ordered size."""
    visits = rng.poisson(rng.gamma(1.0, 3.0, n))
    frame = pd.DataFrame({
        "age": rng.integers(18, 80, n),
        "visits": visits,
        "money": np.where(visits > 0, rng.lognormal(3.5, 1.0, n).round(2), 0.0),
        "score": rng.normal(size=n) * 10.0 ** rng.integers(-2, 3),
        "income": rng.lognormal(10, 0.6, n).round(),
        "town": rng.choice(["Oslo", "Rome", "Lima", "Bonn"], n, p=[0.5, 0.3, 0.17, 0.03]),
        "member": rng.random(n) < 0.4,
        "size": pd.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"], ordered=True),
        "note": [f"note {i}" for i in range(n)],
    })  # fmt: skip
    frame.index = pd.Index([f"C-{1000 + i}" for i in range(n)])
    return frame


@dataclass
class Made:
    """A table with gaps, where its pipeline fills them, and the unfitted pipeline."""

    frame: pd.DataFrame
    model: Pipeline


def number_steps(rng: np.random.Generator, name: str, fill: bool) -> Any:
    """Return a transformer of one number column."""
    nonnegative = name != "score"
    steps: list[Any] = [StandardScaler(), MinMaxScaler(), RobustScaler(), PowerTransformer()]
    steps += [QuantileTransformer(n_quantiles=30, output_distribution="normal"), "passthrough"]
    steps += [KBinsDiscretizer(5, encode="ordinal"), KBinsDiscretizer(4, encode="onehot-dense")]
    if nonnegative:
        steps += [FunctionTransformer(np.log1p), FunctionTransformer(np.sqrt)]
        steps += [make_pipeline(FunctionTransformer(np.log1p), StandardScaler())] * 3
    chosen = steps[rng.integers(len(steps))]
    if not fill:
        return chosen
    filler = SimpleImputer(strategy="median")
    if rng.random() < 0.25 and not isinstance(chosen, (KBinsDiscretizer, str)):
        return make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return filler if isinstance(chosen, str) else make_pipeline(filler, chosen)


def text_steps(rng: np.random.Generator, fill: bool) -> Any:
    """Return a transformer of text columns."""
    encoders = [
        OneHotEncoder(handle_unknown="ignore"), OneHotEncoder(drop="first"),
        OneHotEncoder(min_frequency=0.05), OneHotEncoder(max_categories=3), OrdinalEncoder(),
    ]  # fmt: skip
    chosen = encoders[rng.integers(len(encoders))]
    return make_pipeline(SimpleImputer(strategy="most_frequent"), chosen) if fill else chosen


def made(rng: np.random.Generator) -> Made:
    """Return a random table and a random pipeline for it."""
    frame = table(rng)
    names = [n for n in NUMBERS if rng.random() < 0.75] or ["age", "money"]
    texts = [n for n in TEXTS if rng.random() < 0.5]
    gaps = bool(rng.random() < 0.3)
    if gaps and "income" in names:
        frame.loc[rng.random(len(frame)) < 0.1, "income"] = np.nan
    if gaps and "town" in texts:
        frame.loc[rng.random(len(frame)) < 0.1, "town"] = None
    if gaps and "member" in texts and rng.random() < 0.5:
        frame["member"] = frame["member"].astype("boolean")
    kept = frame[[*names, *texts, "note"]]
    k = int(rng.integers(2, 5))
    model: Any = KMeans(k, n_init=2, random_state=0)
    if rng.random() < 0.2 and not texts:
        model = SHARK(k, n_init=1, random_state=0)
    if not texts and rng.random() < 0.25:
        return Made(kept, _whole_table(rng, kept[names], model))
    steps = [(n, number_steps(rng, n, bool(kept[n].isna().any())), [n]) for n in names]
    steps += [(n, text_steps(rng, bool(kept[n].isna().any())), [n]) for n in texts]
    columns = ColumnTransformer(steps, sparse_threshold=0.0)
    tail: list[Any] = []
    if rng.random() < 0.3:
        tail = [StandardScaler()]
    if rng.random() < 0.2 and len(steps) > 1:
        tail += [PCA(2, whiten=bool(rng.random() < 0.5), random_state=0)]
    return Made(kept, make_pipeline(columns, *tail, model))


def _whole_table(rng: np.random.Generator, numbers: pd.DataFrame, model: Any) -> Pipeline:
    """Return a pipeline of numbers whose steps treat all columns alike."""
    first: list[Any] = [KNNImputer()] if numbers.isna().any(axis=None) else []
    union = FeatureUnion([("scaled", StandardScaler()), ("parts", PCA(1, random_state=0))])
    ways = [StandardScaler(), PowerTransformer(), union]
    return make_pipeline(*first, ways[rng.integers(len(ways))], model)


def rules(rng: np.random.Generator, frame: pd.DataFrame, numbers: list[str]) -> dict[str, Any]:
    """Return random rules about the columns of a table; `numbers` are not coded by bins."""
    words: dict[str, Any] = {}

    def some(share: float) -> bool:
        return bool(rng.random() < share)

    if some(0.3):
        words["immutable"] = [str(rng.choice([c for c in frame if c != "note"]))]
    left = [n for n in numbers if n not in words.get("immutable", [])]
    if left and some(0.3):
        words["increase_only"] = [str(rng.choice(left))]
    if left and some(0.3):
        name = str(rng.choice(left))
        words["bounds"] = {name: (None, ...) if some(0.5) else ("-40%", "+60%")}
    if left and some(0.3):
        name = str(rng.choice(left))
        words["least"] = {name: float(np.round(frame[name].std() / 4, 2)) or 1.0}
    if {"visits", "money"} <= {*frame} and some(0.6):
        words["together"] = "if visits == 0 then money == 0"
    if {"visits", "age"} <= {*numbers} and some(0.3):
        words["constraints"] = "visits <= age"
    if some(0.15):
        words["max_changes"] = int(rng.integers(1, 4))
    if some(0.15):
        words["plausible"] = 0.95
    if left and some(0.1):
        words["costs"] = {str(rng.choice(left)): float(10.0 ** rng.integers(-3, 4))}
    return words


def with_prices(rng: np.random.Generator, words: dict[str, Any], space: Any) -> dict[str, Any]:
    """Return rules with random prices of columns, or without any, in place of costs."""
    words = {word: value for word, value in words.items() if word != "costs"}
    prices: dict[str, Any] = {}
    for column in space.columns:
        if rng.random() < 0.2 or column.curved or column.declared:
            continue
        prices[column.name] = float(rng.integers(0, 5))
        levels = [level for level in column.levels if level == level and level is not None]
        if column.kind == "category" and not column.binned and rng.random() < 0.5:
            pairs = [(a, b) for a in levels for b in levels if a != b and rng.random() < 0.8]
            prices[column.name] = {pair: float(rng.integers(0, 5)) for pair in pairs} or 1.0
        elif column.kind == "number" and rng.random() < 0.5:
            prices[column.name] = tuple(rng.uniform(0, 5, 2).round(2).tolist())
    return words | ({"prices": prices} if prices and rng.random() < 0.8 else {})


def broken(words: dict[str, Any], own: pd.Series, new: pd.Series, seen: pd.DataFrame) -> list[str]:
    """Return the rules that a changed row breaks, read again in the user's units."""
    found = []
    for name in words.get("immutable", ()):
        if not (new[name] == own[name] or (pd.isna(new[name]) and pd.isna(own[name]))):
            found.append(f"immutable {name}")
    for name in words.get("increase_only", ()):
        if new[name] < own[name]:
            found.append(f"increase_only {name}")
    for name, least in words.get("least", {}).items():
        move = abs(new[name] - own[name])
        if not (pd.isna(own[name]) or move == 0 or move >= least * (1 - 1e-9)):
            found.append(f"least {name}")
    if "together" in words and new["visits"] == 0 and new["money"] != 0:
        found.append("together")
    if "constraints" in words and not new["visits"] <= new["age"]:
        found.append("constraints")
    for name, pair in words.get("bounds", {}).items():
        high = seen[name].max()
        if pair == (None, ...) and new[name] > high:
            found.append(f"bounds {name}")
        move = abs(new[name] - own[name])
        if isinstance(pair[0], str) and move > 0.6 * abs(own[name]) * (1 + 1e-9) + 1e-12:
            found.append(f"bounds {name}")
    for name in WHOLE:
        if name in seen and new[name] != round(new[name]):
            found.append(f"fraction in {name}")
    return found


def complaints(seed: int) -> list[str]:
    """Ask one random question; return everything that is wrong with its answers."""
    rng = np.random.default_rng(seed)
    case = made(rng)
    objective = str(rng.choice(["cost", "fewest", "prefix"]))
    priced = np.random.default_rng([seed, 1])  # further questions leave those before as they are
    objective = "price" if priced.random() < 0.25 else objective
    features = case.frame.drop(columns="note")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = case.model.fit(features)
        names = list(SEGMENTS[: model[-1].n_clusters]) if rng.random() < 0.5 else None
        contraction = "retain" if rng.random() < 0.5 else 1.0
        voice = VoICE(model, names=names, contraction=contraction).fit(features)
        columns = {column.name: column for column in voice.space_.columns}
        numbers = [n for n in NUMBERS if n in columns and columns[n].kind == "number"]
        words = rules(rng, case.frame, numbers)
        if objective == "price":
            words = with_prices(priced, words, voice.space_)
        rows = case.frame.sample(6, random_state=seed)
        if rng.random() < 0.2:  # a level or a number that may not be readable
            rows = rows.astype({"town": object}) if "town" in rows else rows
            name = str(rng.choice([n for n in ("town", "score", "money") if n in rows] or ["note"]))
            rows.loc[rows.index[2], name] = "Mars" if name in ("town", "note") else np.nan
        given: Any = rows
        kind = rng.random()
        if kind < 0.15:
            given = [dict(row) for _, row in rows.iterrows()]
        elif kind < 0.35:
            given = pl.from_pandas(rows)
        elif kind < 0.45:
            arrow = pa.Table.from_pandas(rows, preserve_index=False)
            given = arrow if _accepts(model, arrow.drop_columns(["note"])) else rows
        cf = voice.explain(given, "each", objective=objective, **words)
        return [f"{seed}: {text}" for text in _faults(cf, case, words, rows, model, rng)]


def _accepts(model: Any, frame: Any) -> bool:
    """Tell whether the user's own pipeline takes a frame: scikit-learn takes few of pyarrow's."""
    try:
        model.predict(frame)
    except Exception:
        return False
    return True


def _faults(cf: Any, case: Made, words: Any, rows: pd.DataFrame, model: Any, rng: Any) -> Any:
    new = cf.to_frame()
    new = new if isinstance(new, pd.DataFrame) else new.to_pandas()
    answered = np.flatnonzero(np.isin(cf.status, ANSWERED))
    if len(answered):
        frame = new.iloc[answered][[c for c in case.frame if c != "note"]]
        frame = frame.astype(case.frame[list(frame)].dtypes.to_dict())
        for at in answered[model.predict(frame) != cf.target[answered]]:
            yield f"answer {at} is in another cluster"
    for i in answered:
        own, changed = rows.iloc[cf.row[i]], new.iloc[i]
        for fault in broken(words, own, changed, case.frame):
            yield f"answer {i} breaks {fault}: {own.to_dict()} -> {changed.to_dict()}"
        if "note" in new and changed["note"] != own["note"]:
            yield f"answer {i} has another note"
    yield from _typed(cf, rows, model, answered, words, case)
    json.loads(cf.to_json())
    cf.summary(), cf.changes(), cf.table(), repr(cf)
    for i in rng.choice(len(cf), 2):
        cf.text(i)
        if cf.feasible[i]:
            cf.ranges(i)
            cf.plot(i)
            _close()
        reason = cf.reason(i)
        for relaxation in reason.relaxations:
            if relaxation.words is None:
                continue
            again = VoICE.explain(
                _voice_of(cf, relaxation), rows.iloc[[cf.row[i]]], int(cf.target[i]),
                objective=cf.outcome.question.objective, **relaxation.words,
            )  # fmt: skip
            if relaxation.contraction is None and not again.feasible.all():
                yield f"relaxation of answer {i} does not work: {relaxation}"


def _voice_of(cf: Any, relaxation: Any) -> Any:
    voice = VoICE(None)
    voice.learned_ = cf.outcome.learned
    return voice


def _close() -> None:
    import matplotlib.pyplot as plt

    plt.close("all")


def _typed(cf: Any, rows: pd.DataFrame, model: Any, answered: Any, words: Any, case: Made) -> Any:
    """Type sentences in."""
    moved = [i for i in answered if cf.n_changed[i] > 0]
    names = [c for c in rows if c != "note"]
    typed = []
    for i in moved:
        text = MONEY.sub("", cf.text(i, all=True))
        read = phrases(text, names)
        typed.append([(n, after == "True" if n == "member" else after) for n, _, after in read])
        if not typed[-1]:
            yield f"no change could be read from {text!r}"
    if not moved:
        return
    before = rows.iloc[cf.row[moved]]
    after = typed_in(before, *typed)[names].astype(case.frame[names].dtypes.to_dict())
    wrong = np.flatnonzero(model.predict(after) != cf.target[moved])
    for at in wrong:
        yield f"typed in, it lands elsewhere: {cf.text(moved[at], all=True)}"
    for at in range(len(after)):
        for fault in broken(words, before.iloc[at], after.iloc[at], case.frame):
            yield f"typed in, it breaks {fault}: {cf.text(moved[at], all=True)}"
    complaints.sentences += len(moved)  # type: ignore[attr-defined]


complaints.sentences = 0  # type: ignore[attr-defined]


def main(first: int, count: int) -> None:
    """Ask many questions; print complaints and crashes."""
    bad = 0
    for seed in range(first, first + count):
        try:
            found = complaints(seed)
        except Exception as error:
            found = [f"{seed}: {type(error).__name__}: {error}"]
        bad += bool(found)
        for text in found[:3]:
            print(text[:600], flush=True)
    print(f"{count} questions, {complaints.sentences} sentences, {bad} with complaints")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
