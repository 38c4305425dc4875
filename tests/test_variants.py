"""Claims about several answers for one row: alternatives, and cost against changes."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.errors import OptionError


@pytest.fixture(scope="module")
def shop():
    """A small table of whole numbers and a category, its pipeline and its explainer."""
    rng = np.random.default_rng(3)
    n = 240
    group = rng.integers(3, size=n)
    df = pd.DataFrame({
        "age": 25 + 12 * group + rng.integers(-6, 7, n),
        "visits": rng.poisson(2 + 3 * (group == 2)),
        "income": np.round(1800 + 900 * (group > 0) + rng.normal(0, 250, n), 2),
        "job": np.where(group == 0, "student", np.where(rng.random(n) < 0.5, "clerk", "chef")),
    })  # fmt: skip
    encode = make_column_transformer(
        (StandardScaler(), ["age", "visits", "income"]),
        (OneHotEncoder(sparse_output=False), ["job"]),
    )
    pipeline = make_pipeline(encode, KMeans(3, n_init=10, random_state=0)).fit(df)
    return df, pipeline, VoICE(pipeline).fit(df)


def changed(cf):
    """Sets of changed columns, read off the user's table."""
    before, after = cf.factual.iloc[cf.row], cf.to_frame()
    moved = before.to_numpy() != after.to_numpy()
    return [frozenset(before.columns[row]) for row in moved]


def others(pipeline, rows):
    return (pipeline.predict(rows) + 1) % 3


def test_alternatives_are_valid_distinct_and_best_first(shop):
    df, pipeline, voice = shop
    rows = df.head(25)
    cf = voice.explain(rows, target=others(pipeline, rows), alternatives=3)
    assert (pipeline.predict(cf.to_frame()) == cf.target).all()
    sets = changed(cf)
    assert (cf.rank > 0).any()
    for row in range(len(rows)):
        at = np.flatnonzero(cf.row == row)
        assert cf.rank[at].tolist() == list(range(len(at)))
        assert (np.diff(cf.cost[at]) >= -1e-12).all()
        for earlier, later in itertools.combinations(at, 2):
            assert not sets[earlier] <= sets[later]


def test_the_first_of_several_answers_is_the_only_one_without_alternatives(shop):
    df, pipeline, voice = shop
    rows = df.head(25)
    target = others(pipeline, rows)
    one, some = voice.explain(rows, target), voice.explain(rows, target, alternatives=2)
    np.testing.assert_array_equal(some[some.rank == 0].points, one.points)


def test_an_alternative_is_the_best_of_all_that_lock_a_column_of_each_answer_before(shop):
    df, pipeline, voice = shop
    rows = df.iloc[[3, 90, 170]]
    target = others(pipeline, rows)
    cf = voice.explain(rows, target=target, alternatives=2)
    sets = changed(cf)
    for row in range(len(rows)):
        at = np.flatnonzero(cf.row == row)
        for number in range(1, len(at)):
            ways = set(map(frozenset, itertools.product(*(sets[a] for a in at[:number]))))
            locked = [
                voice.explain(rows.iloc[[row]], target=int(target[row]), immutable=sorted(way))
                for way in ways
            ]
            best = min(other.cost[0] for other in locked if other.feasible[0])
            assert cf.cost[at[number]] == pytest.approx(best, rel=1e-9)


def test_alternatives_to_the_fewest_changes_change_as_few_columns_as_can_be(shop):
    df, pipeline, voice = shop
    rows = df.head(10)
    cf = voice.explain(rows, target=others(pipeline, rows), objective="fewest", alternatives=3)
    for row in range(len(rows)):
        at = np.flatnonzero(cf.row == row)
        assert (np.diff(cf.n_changed[at]) >= 0).all()


def test_the_trade_off_falls_to_the_least_cost_and_keeps_to_its_changes(shop):
    df, pipeline, voice = shop
    rows = df.head(20)
    target = others(pipeline, rows)
    curve, free = (
        voice.tradeoff(rows, target=target, plausible=None),
        voice.explain(rows, target=target, plausible=None),
    )
    few = voice.explain(rows, target=target, objective="fewest", plausible=None)
    assert (pipeline.predict(curve.to_frame()) == curve.target).all()
    assert (curve.n_changed <= curve.cardinality).all()
    for row in range(len(rows)):
        at = curve.row == row
        assert (np.diff(curve.cost[at]) < 0).all()
        assert curve.cardinality[at][0] == few.n_changed[row]
        assert curve.cost[at][0] == pytest.approx(few.cost[row], rel=1e-9)
        assert curve.cost[at][-1] == pytest.approx(free.cost[row], rel=1e-9)
        for changes, cost in zip(curve.cardinality[at], curve.cost[at], strict=True):
            limited = voice.explain(
                rows.iloc[[row]], target=int(target[row]), max_changes=int(changes), plausible=None
            )
            assert cost == pytest.approx(limited.cost[0], rel=1e-9)


def test_plain_arrays_have_alternatives_and_trade_offs_too():
    X = StandardScaler().fit_transform(load_wine().data)
    voice = VoICE(KMeans(3, n_init=10, random_state=0)).fit(X)
    target = (voice.predict(X[:4]) + 1) % 3
    cf = voice.explain(X[:4], target=target, alternatives=2, objective="fewest")
    assert (voice.predict(cf.points) == cf.target).all()
    curve = voice.tradeoff(X[:4], target=target)
    assert (voice.predict(curve.points) == curve.target).all()
    assert (np.diff(curve.cost[curve.row == 0]) < 0).all()


def test_a_row_that_is_there_already_or_cannot_go_has_no_alternatives(shop):
    df, pipeline, voice = shop
    rows = df.head(6)
    here = voice.explain(rows, target=pipeline.predict(rows), alternatives=2)
    assert len(here) == 6
    stuck = voice.explain(
        rows, target=others(pipeline, rows), alternatives=2, immutable=list(df.columns)
    )
    assert len(stuck) == 6
    assert not stuck.feasible.any()


@pytest.mark.parametrize("given", [-1, 1.5, "two", True])
def test_a_number_of_alternatives_is_a_whole_number(shop, given):
    df, _, voice = shop
    with pytest.raises(OptionError, match="alternatives="):
        voice.explain(df.head(1), alternatives=given)


def test_a_ranked_prefix_has_no_alternatives(shop):
    df, _, voice = shop
    with pytest.raises(OptionError, match="prefix"):
        voice.explain(df.head(1), objective="prefix", alternatives=1)
