"""Whole numbers stay whole and steps hold, whatever transformers stand before the model."""

from __future__ import annotations

import json
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

from voicecf import SHARK, Status, VoICE, streaming

pytestmark = pytest.mark.filterwarnings(
    "ignore::voicecf.shark.WeightCollapseWarning", "ignore::voicecf.errors.EmptyClusterWarning"
)
A_TEST = 10  # pipelines a test
# The first pipelines are for every run, the rest of them for the sweep.
PIPELINES = [
    pytest.param(first, marks=[pytest.mark.slow] if first >= 30 else [])
    for first in range(0, 300, A_TEST)
]


def curve(function, inverse, scaler):
    return make_pipeline(FunctionTransformer(function, inverse_func=inverse), scaler())


def transformer(rng, columns: pd.DataFrame):
    """Return a random nonlinear transformer that takes some columns."""
    ways = [
        PowerTransformer,
        lambda: QuantileTransformer(n_quantiles=40, output_distribution="normal"),
        lambda: make_pipeline(StandardScaler(), PowerTransformer()),
    ]
    if bool not in columns.dtypes.to_list():
        ways.append(lambda: curve(np.arcsinh, np.sinh, RobustScaler))
        if (columns.min() >= 0).all():
            ways.append(lambda: curve(np.log1p, np.expm1, StandardScaler))
            ways.append(lambda: curve(np.sqrt, np.square, MinMaxScaler))
    made = ways[rng.integers(len(ways))]()
    return (
        make_pipeline(SimpleImputer(strategy="median"), made)
        if columns.isna().any(axis=None)
        else made
    )


def random_table(rng, n: int) -> pd.DataFrame:
    every = {
        "age": rng.integers(18, 90, n),
        "cards": rng.integers(1, 8, n),
        "year": rng.integers(1990, 2024, n),
        "visits": np.where(rng.random(n) < 0.4, 0, rng.geometric(0.05, n)),
        "balance": np.exp(rng.normal(7, 1.3, n)).round().astype(int),
        "change": rng.integers(-50, 50, n),
        "rate": rng.normal(5, 2, n).round(2),
        "revenue": rng.integers(0, 3_000_000, n),
        "member": rng.random(n) < 0.4,
    }
    names = rng.permutation(list(every))[: rng.integers(3, 7)]
    frame = pd.DataFrame({name: every[name] for name in names})
    if rng.random() < 0.4 and frame[names[0]].dtype != bool:
        frame[names[0]] = frame[names[0]].astype(float).mask(rng.random(n) < 0.1)
    return frame


def random_rules(rng, frame: pd.DataFrame) -> dict:
    names = rng.permutation(list(frame)).tolist()
    fixed, free = names[: rng.integers(0, len(names))], []
    free = [name for name in names if name not in fixed]
    numbers = [name for name in free if frame[name].dtype != bool]
    rules: dict = {"immutable": fixed}
    if rng.random() < 0.4:
        rules["increase_only"] = [free[0]]
    if numbers and rng.random() < 0.5:
        relative = [("-5", "+5"), ("-10%", "+20%"), (..., "+2")][rng.integers(3)]
        rules["bounds"] = {numbers[-1]: relative}
    if numbers and rng.random() < 0.4:
        rules["steps"] = {numbers[0]: float(rng.choice([0.5, 2, 5, 10]))}
    if rng.random() < 0.3:
        rules["max_changes"] = int(rng.integers(1, 3))
    return rules


def random_case(seed: int):
    rng = np.random.default_rng(seed)
    frame = random_table(rng, int(rng.integers(80, 200)))
    half = len(frame.columns) // 2
    before = make_column_transformer(
        *[
            (transformer(rng, frame[some]), list(some))
            for some in (frame.columns[:half], frame.columns[half:])
        ]
    )
    k = int(rng.integers(2, 5))
    model = SHARK(k, n_init=2, random_state=seed) if seed % 3 == 0 else KMeans(k, random_state=seed)
    options = {"contraction": 1.0} if rng.random() < 0.3 else {}
    options |= {"bounds": None} if rng.random() < 0.25 else {}
    voice = VoICE(make_pipeline(before, model), **options).fit(frame)
    return voice, options, frame, random_rules(rng, frame)


def is_whole(column: pd.Series) -> bool:
    known = column.dropna()
    return column.dtype.kind in "ib" or (len(known) < len(column) and bool((known % 1 == 0).all()))


def assert_on_grid(frame: pd.DataFrame, rules: dict, cf) -> None:
    """Every value that changed is whole, or a multiple of its step, and within what was seen."""
    new, own = cf.to_frame(), frame.iloc[cf.row]
    for name in frame:
        values = new[name].to_numpy(dtype=float, na_value=np.nan)
        moved = cf.feasible & (values != own[name].to_numpy(dtype=float)) & ~np.isnan(values)
        step = rules.get("steps", {}).get(name, 1.0 if is_whole(frame[name]) else None)
        if step is not None:
            assert (values[moved] % step == 0).all(), (name, step, values[moved])


def assert_relative_bounds_are_within_the_data(frame: pd.DataFrame, rules: dict, cf) -> None:
    new = cf.to_frame()[cf.feasible]
    for name in rules.get("bounds", {}):
        known = new[name].dropna().astype(float)
        assert known.between(frame[name].min(), frame[name].max()).all(), name


def assert_ways_out_work(voice, options, frame, rules, cf, i: int) -> None:
    """Every suggested relaxation, applied, has an answer, and none is absurd."""
    for way in cf.reason(i).relaxations:
        explainer = voice
        if way.contraction is not None:
            explainer = VoICE(voice.model_, **{**options, "contraction": way.contraction})
            explainer.fit(frame)
        words = rules if way.words is None else way.words
        again = explainer.explain(frame.iloc[[cf.row[i]]], int(cf.target[i]), limit=500, **words)
        assert again.feasible[0], way
        for name, sides in (way.words or {}).get("bounds", {}).items():
            assert_believable(way, sides, float(frame[name].min()), float(frame[name].max()))


def assert_believable(way, sides, low: float, high: float) -> None:
    """A suggested number lies within what was seen, or the sentence says that it does not."""
    for side in sides:
        if isinstance(side, float):
            assert side >= 0 or low < 0, way
            if f"to {side:,.0f}" in way.text and not low <= side <= high:
                assert "outside the observed range" in way.text, way


@pytest.mark.parametrize("first", PIPELINES)
def test_random_pipelines_of_whole_numbers(first):
    for seed in range(first, first + A_TEST):
        voice, options, frame, rules = random_case(seed)
        rows = frame.iloc[:3]
        objective = ("cost", "fewest")[seed % 2]
        cf = voice.explain(rows, target="each", objective=objective, limit=500, **rules)
        assert_on_grid(frame, rules, cf)
        if "bounds" not in options:
            assert_relative_bounds_are_within_the_data(frame, rules, cf)
        if cf.feasible.any():
            seen = voice.model_.predict(cf.to_frame()[cf.feasible])
            np.testing.assert_array_equal(seen, cf.target[cf.feasible])
        assert len(json.loads(cf.to_json())["answers"]) == len(cf)
        for status in (Status.OPTIMAL, Status.INFEASIBLE):
            for i in np.flatnonzero(cf.status == status)[:1]:
                assert cf.text(i)
                plt.close(cf.plot(i).figure)
                if status == Status.OPTIMAL:
                    assert len(cf.ranges(i)) >= 1
                else:
                    assert_ways_out_work(voice, options, frame, rules, cf, i)


def years() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({"year": rng.integers(1990, 2024, 150), "value": rng.gamma(2, 3, 150)})


@pytest.mark.parametrize("way", [PowerTransformer, QuantileTransformer])
def test_years_behind_a_curve_are_years(way):
    options = {"n_quantiles": 30} if way is QuantileTransformer else {}
    voice = VoICE(make_pipeline(way(**options), KMeans(3, random_state=0))).fit(years())
    cf = voice.explain(years(), target="each")
    new = cf.to_frame()["year"]
    assert new.dtype.kind in "iu" or not cf.feasible.all()
    assert (new[cf.feasible] % 1 == 0).all()
    texts = [cf.text(i) for i in range(0, len(cf), 7)]
    told = [end for text in texts for end in re.findall(r"year \w+ from \d+ to ([^ ,;]+)", text)]
    assert told
    assert all(end.rstrip(".").isdigit() for end in told)


def gappy() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({"cards": rng.integers(1, 8, 120), "money": rng.gamma(2, 50, 120)})
    frame["cards"] = frame["cards"].astype(float).mask(rng.random(120) < 0.1)
    return frame


def filled(k: int = 3):
    return make_pipeline(SimpleImputer(), StandardScaler(), KMeans(k, n_init=2, random_state=0))


def test_whole_numbers_that_a_gap_turned_into_floats_stay_whole():
    cf = VoICE(filled()).fit(gappy()).explain(gappy(), target="each")
    cards, own = cf.to_frame()["cards"].to_numpy(), gappy()["cards"].to_numpy()[cf.row]
    changed = ~np.isnan(cards) & (cards != own)
    assert changed.any()
    assert (cards[changed] % 1 == 0).all()


def test_so_they_do_in_a_stream_whose_first_chunk_has_no_gap():
    frame = gappy().sort_values("cards", ignore_index=True)  # gaps last
    voice = streaming.fit(VoICE(filled()), [frame[:60], frame[60:]])
    assert voice.space_.columns[0].whole


def test_floats_without_gaps_may_be_any_number():
    frame = gappy().dropna().reset_index(drop=True)
    cf = VoICE(filled()).fit(frame).explain(frame, target="each")
    assert (cf.to_frame()["cards"] % 1 != 0).any()


def test_an_array_of_integers_before_a_pipeline_is_answered_in_integers():
    X = np.random.default_rng(0).integers(0, 40, (200, 4))
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))).fit(X)
    cf = voice.explain(X, 1)
    assert cf.feasible.all()
    assert (cf.to_frame().dtypes == np.int64).all()
    np.testing.assert_array_equal(voice.model_.predict(cf.to_frame().to_numpy()), 1)


LARGE = 2**53 + 1


def with_ids(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame({
        "id": LARGE + 2 * rng.integers(0, 2**50, n), "cards": rng.integers(1, 9, n),
        "visits": rng.integers(0, 90, n),
    })  # fmt: skip


FRAMES = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table.from_pandas}


@pytest.mark.parametrize("library", list(FRAMES))
def test_an_infeasible_row_leaves_the_integers_of_others_alone(library):
    frame = with_ids()
    frame.loc[0, "visits"] = 5
    own = FRAMES[library](frame)
    model = make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))
    voice = VoICE(model).fit(own)
    cf = voice.explain(own, target="each", immutable=["id"], bounds={"visits": ("-40", "+40")})
    assert 0 < cf.feasible.sum() < len(cf)
    found = cf.to_frame()
    ids = found["id"].to_pylist() if library == "pyarrow" else list(found["id"])
    for i, value in enumerate(ids):
        if cf.feasible[i]:
            assert int(value) == frame["id"][cf.row[i]]
        else:
            assert value is None or value is pd.NA
    if library == "pandas":
        assert (found.dtypes.astype(str) == "Int64").all()


def test_immutable_ids_of_an_array_keep_their_digits():
    values = with_ids().to_numpy()
    assert (values[:, 0].astype(float).astype(int) != values[:, 0]).any()
    for model in (KMeans(2, n_init=2, random_state=0), make_pipeline(StandardScaler(), KMeans(2))):
        cf = VoICE(model).fit(values).explain(values, target=1, immutable=[0])
        assert cf.feasible.any()
        ids = cf.to_frame().iloc[:, 0]
        for i in np.flatnonzero(cf.feasible):
            assert int(ids.iloc[i]) == values[cf.row[i], 0]


def test_very_many_whole_numbers_behind_a_curve_are_multiples_of_ten():
    rng = np.random.default_rng(6)
    frame = pd.DataFrame({
        "revenue": np.exp(rng.normal(14, 2, 200)).astype(int), "staff": rng.integers(1, 90, 200),
    })  # fmt: skip
    model = make_pipeline(curve(np.log1p, np.expm1, StandardScaler), KMeans(3, random_state=0))
    for bounds in ("data", None):
        cf = VoICE(model, bounds=bounds).fit(frame).explain(frame, target="each")
        assert cf.feasible.all()
        new = cf.to_frame()
        assert (new.dtypes == np.int64).all()
        moved = new["revenue"].to_numpy() != frame["revenue"].to_numpy()[cf.row]
        assert (new["revenue"][moved] % 10 == 0).all()


def test_relative_bounds_do_not_leave_what_was_seen():
    rng = np.random.default_rng(7)
    frame = pd.DataFrame({"cards": rng.integers(1, 8, 90), "balance": rng.integers(0, 4000, 90)})
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(3, n_init=2, random_state=0))).fit(frame)
    cf = voice.explain(
        frame, target="each", bounds={"balance": ("-500", "+500"), "cards": ("-5", "+5")}
    )
    new = cf.to_frame()[cf.feasible]
    assert cf.feasible.any()
    assert new["balance"].between(frame["balance"].min(), frame["balance"].max()).all()
    assert new["cards"].between(1, 7).all()
    apart = (new["balance"] - frame["balance"].to_numpy()[cf.row[cf.feasible]]).abs()
    assert apart.max() <= 500
