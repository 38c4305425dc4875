"""Answers are the rows that the user gets: read again, these have the answers' coordinates."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    RobustScaler,
    StandardScaler,
)

from voicecf import VoICE
from voicecf.table.space import Space

NUMBERS = ["income", "share", "age"]
TOWNS = ["Bonn", "Kiel", "Ulm"]


def people(n: int = 60) -> pd.DataFrame:
    """Return people of three groups: two columns of numbers, whole numbers, and a category."""
    rng = np.random.default_rng(3)
    group = rng.permutation(n) % 3
    return pd.DataFrame(
        {
            "income": np.exp(rng.normal(7 + 0.9 * group, 0.4)),
            "share": rng.normal([0.2, 0.5, 0.35], 0.06, (n, 3))[np.arange(n), group].clip(0.01),
            "age": rng.integers(18, 40, n) + 15 * group,
            "town": np.array(TOWNS)[np.where(rng.random(n) < 0.6, group, rng.integers(0, 3, n))],
        }
    )


PEOPLE = people()


def log() -> FunctionTransformer:
    return FunctionTransformer(np.log, inverse_func=np.exp, feature_names_out="one-to-one")


def kmeans() -> KMeans:
    return KMeans(3, n_init=3, random_state=0)


def mixed(numbers: Any, encoder: Any = None) -> Any:
    encoder = OneHotEncoder(sparse_output=False) if encoder is None else encoder
    return make_column_transformer((numbers, NUMBERS), (encoder, ["town"]))


WAYS: dict[str, tuple[Callable[[], Pipeline], list[str]]] = {
    "standard": (lambda: make_pipeline(StandardScaler(), kmeans()), ["income", "share"]),
    "min max": (lambda: make_pipeline(MinMaxScaler((-3, 7)), kmeans()), ["income", "share"]),
    "robust": (lambda: make_pipeline(RobustScaler(), kmeans()), ["income", "share"]),
    "log": (
        lambda: make_pipeline(
            make_column_transformer(
                (make_pipeline(log(), StandardScaler()), ["income"]),
                (StandardScaler(), ["share"]),
            ),
            kmeans(),
        ),
        ["income", "share"],
    ),
    "power": (lambda: make_pipeline(PowerTransformer(), kmeans()), ["income", "share"]),
    "whole numbers": (lambda: make_pipeline(StandardScaler(), kmeans()), NUMBERS),
    "whole numbers behind a log": (
        lambda: make_pipeline(log(), StandardScaler(), kmeans()),
        ["income", "age"],
    ),
    "one hot": (lambda: make_pipeline(mixed(StandardScaler()), kmeans()), [*NUMBERS, "town"]),
    "ordinal": (
        lambda: make_pipeline(mixed(RobustScaler(), OrdinalEncoder()), StandardScaler(), kmeans()),
        [*NUMBERS, "town"],
    ),
    "PCA": (lambda: make_pipeline(StandardScaler(), PCA(2), kmeans()), NUMBERS),
    "PCA behind categories": (
        lambda: make_pipeline(mixed(StandardScaler()), PCA(3), kmeans()),
        [*NUMBERS, "town"],
    ),
    "log and PCA": (
        lambda: make_pipeline(log(), StandardScaler(), PCA(2), kmeans()),
        NUMBERS,
    ),
    "bare": (lambda: make_pipeline(kmeans()), ["share", "age"]),
}


@cache
def case(way: str, contraction: Any = 1.0) -> tuple[VoICE, pd.DataFrame]:
    make, columns = WAYS[way]
    table = PEOPLE[columns]
    return VoICE(make(), contraction=contraction).fit(table), table


def assert_reads_back(voice: VoICE, table: pd.DataFrame, cf) -> None:
    """The rows that the user gets have the answers' coordinates, bit for bit, and land."""
    found = np.flatnonzero(cf.feasible)
    assert found.size
    frame = cf[found].to_frame()
    back, before = voice.space_.read(frame), voice.space_.read(table)
    np.testing.assert_array_equal(back.points, cf.points[found])
    np.testing.assert_array_equal(voice.predict(frame), cf.target[found])
    np.testing.assert_array_equal(voice.model_.predict(frame), cf.target[found])
    assert np.isnan(cf.points[~cf.feasible]).all()
    own = before.points[cf.row[found]]
    for column in voice.space_.columns:
        (name,) = column.sources
        values, old = frame[name].to_numpy(), table[name].to_numpy()[cf.row[found]]
        still = values == old
        assert (cf.points[found][still][:, column.places] == own[still][:, column.places]).all()
        moved = (cf.points[found] != own)[:, column.places].any(axis=1)
        assert (moved == ~still).all(), "a coordinate moves exactly where the user's value does"
    assert (
        cf.n_changed[found] == (frame.to_numpy() != table.to_numpy()[cf.row[found]]).sum(1)
    ).all()
    # The cost is that of these coordinates.
    moves = back.points - own
    np.testing.assert_allclose(cf.cost[found], (moves**2) @ voice.weights_, rtol=1e-12)


@pytest.mark.parametrize("contraction", [1.0, "retain"])
@pytest.mark.parametrize("way", WAYS)
def test_answers_read_again_are_the_points_that_were_returned(way, contraction):
    voice, table = case(way, contraction)
    assert_reads_back(voice, table, voice.explain(table[:20], "each"))


@pytest.mark.parametrize("objective", ["fewest", "prefix"])
@pytest.mark.parametrize("way", ["log", "one hot", "PCA"])
def test_so_are_those_with_few_changes(way, objective):
    voice, table = case(way)
    cf = voice.explain(table[:12], "each", objective=objective)
    assert_reads_back(voice, table, cf)
    assert (cf.n_changed[cf.feasible] < len(table.columns)).any()


@pytest.mark.parametrize("way", ["log", "one hot", "PCA"])
def test_so_are_alternatives_and_tradeoffs(way):
    voice, table = case(way)
    cf = voice.explain(table[:8], "each", alternatives=2)
    assert (cf.rank > 0).any()
    assert_reads_back(voice, table, cf)
    assert_reads_back(voice, table, voice.tradeoff(table[:8], "each"))


# Rules, and what they mean for the values before and after.
RULES = {
    "linear": (
        {"constraints": "income <= 12000 - 8000*share"},
        lambda own, new: new.income + 8000 * new.share <= 12000,
    ),
    "bounds": (
        {"bounds": {"income": ("-2500", "+2500"), "share": (0.1, 0.41)}},
        lambda own, new: (
            new.share.between(0.1, 0.41) & new.income.between(own.income - 2500, own.income + 2500)
        ),
    ),
    "least": (
        {"least": {"share": 0.07}},
        lambda own, new: (
            (new.share == own.share)
            | (new.share >= own.share + 0.07)
            | (new.share <= own.share - 0.07)
        ),
    ),
    "together": (
        {"together": "if share >= 0.4 then income >= 4000"},
        lambda own, new: (new.share < 0.4) | (new.income >= 4000),
    ),
    "steps": (
        {"steps": {"share": 0.125, "income": 250}},
        lambda own, new: (
            ((new.share == own.share) | (new.share % 0.125 == 0))
            & ((new.income == own.income) | (new.income % 250 == 0))
        ),
    ),
    "plausible": ({"plausible": 0.9}, None),
    "immutable": ({"immutable": "share"}, lambda own, new: new.share == own.share),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", ["standard", "log", "one hot", "PCA"])
def test_so_are_answers_under_rules_and_these_hold(way, rule):
    (voice, table), (rules, meaning) = case(way), RULES[rule]
    cf = voice.explain(table[:20], "each", **rules)
    assert_reads_back(voice, table, cf)
    if meaning is not None:
        own, new = table.iloc[cf.row[cf.feasible]], cf[cf.feasible].to_frame()
        assert meaning(own.reset_index(drop=True), new.reset_index(drop=True)).all()


@pytest.mark.parametrize("way", ["log", "one hot", "PCA"])
def test_coordinates_of_unchanged_values_keep_their_bits_however_they_are_read_again(
    way, monkeypatch
):
    """A pipeline may round differently in another batch: here by one unit in the last place."""
    voice, table = case(way)
    read_again = Space.read_again

    def read_differently(space, rows):
        back = read_again(space, rows)
        return replace(back, points=np.nextafter(back.points, np.inf))

    monkeypatch.setattr(Space, "read_again", read_differently)
    cf = voice.explain(table[:20], "each", objective="fewest")
    own, found = voice.space_.read(table).points[cf.row], cf.feasible
    for c, column in enumerate(voice.space_.columns):
        still = found & ~cf.outcome.changes[:, c]
        assert still.any()
        assert (cf.points[still][:, column.places] == own[still][:, column.places]).all()


@pytest.mark.parametrize("way", ["log", "whole numbers", "one hot"])
def test_rows_without_an_answer_do_not_disturb_the_others(way):
    voice, table = case(way)
    cf = voice.explain(table[:20], "each", mutable="income")
    assert 0 < cf.feasible.sum() < len(cf)
    assert_reads_back(voice, table, cf)
    assert cf.to_frame()[~cf.feasible].isna().all(axis=None)


@pytest.mark.parametrize("way", ["power", "whole numbers", "one hot", "PCA"])
def test_answers_in_a_polars_frame_read_again_are_the_points_that_were_returned(way):
    voice, table = case(way)
    cf, same = (voice.explain(rows[:10], "each") for rows in (pl.DataFrame(table), table))
    found = cf.feasible
    frame = cf[found].to_frame()
    assert isinstance(frame, pl.DataFrame)
    np.testing.assert_array_equal(voice.space_.read(frame).points, cf.points[found])
    np.testing.assert_array_equal(cf.points, same.points)
    np.testing.assert_array_equal(voice.predict(frame), cf.target[found])


@pytest.mark.parametrize("steps", [[StandardScaler()], [log(), RobustScaler()], []])
def test_answers_to_an_array_read_again_are_the_points_that_were_returned(steps):
    table = PEOPLE[["income", "age"]].to_numpy(dtype=float)
    voice = VoICE(make_pipeline(*steps, kmeans()), contraction=1.0).fit(table)
    cf = voice.explain(table[:15], "each", steps={1: 1})
    assert cf.feasible.all()
    answers = cf.to_frame().to_numpy()
    np.testing.assert_array_equal(voice.space_.read(answers).points, cf.points)
    np.testing.assert_array_equal(voice.model_.predict(answers), cf.target)
    np.testing.assert_array_equal(answers[:, 1] % 1, 0.0)


def test_the_order_of_rows_and_targets_does_not_matter():
    voice, table = case("one hot")
    rng = np.random.default_rng(0)
    which = rng.integers(0, len(table), 40)
    targets = (voice.predict(table)[which] + rng.integers(1, 3, 40)) % 3
    cf = voice.explain(table.iloc[which], targets)
    assert_reads_back(voice, table.iloc[which], cf)
    each = voice.explain(table, "each")
    at = {(row, t): i for i, (row, t) in enumerate(zip(each.row, each.target, strict=True))}
    same = [at[pair] for pair in zip(which.tolist(), targets.tolist(), strict=True)]
    np.testing.assert_array_equal(cf.points, each.points[same])
