"""Answers of least price among whole numbers, categories and limited choices.

Judges are HiGHS (`priced_questions.py`) and, on tiny tables, all answers one by one.
"""

from __future__ import annotations

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from priced_questions import Priced
from voicecf import Status, VoICE
from voicecf.errors import OptionError
from voicecf.rules import Rules
from voicecf.rules.prices import Prices

SEED = 20241


def judge(seeds: range) -> tuple[int, int]:
    """Compare answers with those of HiGHS; return how many, and how many of them are none."""
    compared = empty = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        question = Priced.random(rng)
        rows = question.X.iloc[rng.choice(len(question.X), 4, replace=False)]
        target = int(rng.integers(question.voice.learned_.n_clusters))
        cf = question.voice.explain(
            rows, target=target, objective="price", **question.words, plausible=None
        )
        changed = cf.to_frame()
        for i in np.flatnonzero(cf.status != Status.ALREADY):
            where, row, new = f"question {seed}, row {i}", rows.iloc[i], changed.iloc[i]
            best = question.judged(row, target)
            compared += 1
            if cf.status[i] == Status.INFEASIBLE:
                empty += 1
                assert best is None, where
                continue
            assert cf.status[i] == Status.OPTIMAL, where
            assert cf.gap[i] <= 1e-9, where
            assert best is not None, where
            assert np.isnan(best) or cf.price[i] <= best * (1 + 1e-7) + 1e-9, where
            assert cf.price[i] >= np.nan_to_num(best) * (1 - 1e-6) - 1e-6, where
            money = sum(question.price(row[name], new[name], name) for name in question.X)
            assert cf.price[i] == pytest.approx(money, rel=1e-9, abs=1e-9), where
            moved = sum(row[name] != new[name] for name in question.X)
            assert moved <= question.words.get("max_changes", moved), where
    return compared, empty


def test_no_solution_of_highs_is_cheaper():
    compared, empty = judge(range(20))
    assert compared > 40
    assert empty > 0


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 2800, 100))
def test_no_solution_of_highs_is_cheaper_in_thousands_of_questions(first):
    compared, _ = judge(range(first, first + 100))
    assert compared > 200


def tiny(rng: np.random.Generator, m: int = 40) -> tuple[pd.DataFrame, VoICE, dict]:
    """Return a table of few whole numbers and categories, an explainer, and round prices."""
    columns = {f"w{i}": rng.integers(0, rng.integers(2, 7), m) for i in range(rng.integers(1, 4))}
    columns |= {
        f"c{i}": rng.choice(list("abcd")[: rng.integers(2, 5)], m)
        for i in range(rng.integers(0, 3))
    }
    X = pd.DataFrame(columns)
    numbers, levels = ([c for c in X if c[0] == kind] for kind in "wc")
    encoder = OneHotEncoder(sparse_output=False) if rng.random() < 0.7 else OrdinalEncoder()
    steps = [("numbers", StandardScaler(), numbers), ("levels", encoder, levels)]
    k = int(rng.integers(2, 5))
    model = make_pipeline(ColumnTransformer(steps), KMeans(k, n_init=1, random_state=0))
    voice = VoICE(model, contraction=float(rng.choice([1.0, 0.9]))).fit(X)
    prices: dict = {}
    for name in X:
        several = name[0] == "w" and rng.random() < 0.5
        price = rng.integers(0, 3, 2 if several else None)
        prices[name] = tuple(map(float, price)) if several else float(price)
    return X, voice, prices


def every_answer(X: pd.DataFrame) -> pd.DataFrame:
    """Return all rows of whole numbers and levels within what a table has."""
    values = [
        sorted(set(X[name])) if name[0] == "c" else range(X[name].min(), X[name].max() + 1)
        for name in X
    ]
    return pd.DataFrame(list(itertools.product(*values)), columns=X.columns).astype(X.dtypes)


def money(prices: dict, row: pd.Series, others: pd.DataFrame) -> np.ndarray:
    """Return what a row pays to become each of others."""
    total = np.zeros(len(others))
    for name, price in prices.items():
        if name[0] == "c":
            total += price * (others[name] != row[name])
            continue
        more, less = price if isinstance(price, tuple) else (price, price)
        move = (others[name] - row[name]).to_numpy()
        total += np.where(move > 0, more * move, -less * move)
    return total


def random_rules(rng: np.random.Generator, X: pd.DataFrame) -> tuple[dict, list]:
    """Return rules, and functions of a row and others that tell which of these keep them."""
    words: dict = {}
    keeps: list = []
    whole = str(rng.choice([name for name in X if name[0] == "w"]))
    if rng.random() < 0.3:
        most = int(rng.integers(1, len(X.columns) + 1))
        words["max_changes"] = most
        keeps.append(lambda row, all_: sum(all_[c] != row[c] for c in X) <= most)
    if rng.random() < 0.3:
        words["least"] = {whole: 2}
        keeps.append(
            lambda row, all_: (all_[whole] == row[whole]) | (abs(all_[whole] - row[whole]) >= 2)
        )
    if "w1" in X and rng.random() < 0.3:
        words["constraints"] = "w0 + w1 <= 5"
        keeps.append(lambda row, all_: all_["w0"] + all_["w1"] <= 5)
    if "w1" in X and rng.random() < 0.3:
        words["together"] = "if w0 == 0 then w1 <= 1"
        keeps.append(lambda row, all_: (all_["w0"] != 0) | (all_["w1"] <= 1))
    if "c0" in X and rng.random() < 0.3:
        words["forbidden"] = {"c0": [("a", "b")]}
        keeps.append(lambda row, all_: (row["c0"] != "a") | (all_["c0"] != "b"))
    if "c1" in X and rng.random() < 0.3:
        words["levels"] = {"c1": ["a"]}
        keeps.append(lambda row, all_: (all_["c1"] == row["c1"]) | (all_["c1"] == "a"))
    if rng.random() < 0.2:
        words["increase_only"] = whole
        keeps.append(lambda row, all_: all_[whole] >= row[whole])
    return words, keeps


def brute_force(seed: int) -> int:
    """Compare answers with all that there are; return how many have several of the least price."""
    rng, ties = np.random.default_rng(seed), 0
    X, voice, prices = tiny(rng)
    words, keeps = random_rules(rng, X)
    rows = X.iloc[rng.choice(len(X), 3, replace=False)]
    target = int(rng.integers(voice.learned_.n_clusters))
    cf = voice.explain(
        rows, target=target, objective="price", prices=prices, **words, plausible=None
    )
    every, region = every_answer(X), voice.region(target)
    points, own = (np.asarray(voice.model_[:-1].transform(part)) for part in (every, rows))
    inside = (region.normals @ (points - region.origin).T <= region.offsets[:, None] + 1e-12).all(0)
    for i in np.flatnonzero(cf.status != Status.ALREADY):
        if cf.status[i] == Status.UNRESOLVED:  # a flat cell, in which no cost has a proof, either
            assert (
                voice.explain(rows, target=target, **words, plausible=None).status[i]
                == Status.UNRESOLVED
            ), seed
            continue
        row = rows.iloc[i]
        good = inside & np.all([inside, *(keep(row, every) for keep in keeps)], axis=0)
        if not good.any():
            assert cf.status[i] == Status.INFEASIBLE, seed
            continue
        price = money(prices, row, every)
        cost = ((points - own[i]) ** 2 * voice.learned_.weights).sum(axis=1)
        best = good & (price <= price[good].min() + 1e-12)
        ties += best.sum() > 1
        assert cf.status[i] == Status.OPTIMAL, seed
        assert cf.price[i] == pytest.approx(price[best].min(), abs=1e-9), seed
        assert cf.cost[i] == pytest.approx(cost[best].min(), rel=1e-9, abs=1e-12), seed
    return ties


def test_of_all_answers_of_the_least_price_that_of_least_cost_is_found():
    assert sum(brute_force(seed) for seed in range(60)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 250))
def test_of_all_answers_of_thousands_of_questions_the_cheapest_is_found(first):
    assert sum(brute_force(seed) for seed in range(first, first + 250)) > 150


def test_columns_in_another_order_give_the_same_answer():
    for seed in range(25):
        rng = np.random.default_rng(SEED + seed)
        question = Priced.random(rng)
        X, words = question.X, question.words | {"max_changes": None}
        words["prices"] = {name: 1.0 for name in X if name != "x2"}  # many ties
        other = X[list(rng.permutation(X.columns))]
        model = question.voice.model
        answers = [
            VoICE(model)
            .fit(part)
            .explain(part[:6], target=0, objective="price", **words, plausible=None)
            for part in (X, other)
        ]
        first, second = (cf.to_frame() for cf in answers)
        assert (answers[0].status == answers[1].status).all()
        assert answers[0].price == pytest.approx(answers[1].price, rel=1e-9, nan_ok=True)
        for name in X:
            if name[0] == "c":
                assert list(first[name]) == list(second[name]), seed
            else:
                assert first[name].to_numpy() == pytest.approx(
                    second[name].to_numpy(), rel=1e-6, abs=1e-6, nan_ok=True
                ), seed


def shop(n: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(SEED)
    return pd.DataFrame({
        "visits": rng.poisson(8, n), "basket": rng.normal(40, 12, n).round(2),
        "plan": rng.choice(["basic", "plus", "pro"], n), "town": rng.choice(["Oslo", "Rome"], n),
    })  # fmt: skip


def explainer(X: pd.DataFrame) -> VoICE:
    steps = [
        ("numbers", StandardScaler(), ["visits", "basket"]),
        ("levels", OneHotEncoder(sparse_output=False), ["plan", "town"]),
    ]
    return VoICE(make_pipeline(ColumnTransformer(steps), KMeans(4, n_init=2, random_state=0))).fit(
        X
    )


PRICES = {"visits": (4, 2), "basket": 0.5, "plan": {("basic", "plus"): 2, ("basic", "pro"): 3}}


def test_one_row_alone_has_the_bits_that_it_has_in_a_batch():
    X = shop(60)
    voice = explainer(X)
    batch = voice.explain(X, target=2, objective="price", prices=PRICES, plausible=None)
    for i in range(0, 60, 7):
        alone = voice.explain(
            X.iloc[[i]], target=2, objective="price", prices=PRICES, plausible=None
        )
        assert alone.points.tobytes() == batch.points[[i]].tobytes()
    other = voice.explain(
        X[::-1], target=2, objective="price", prices=PRICES, n_jobs=1, plausible=None
    )
    assert other.points[::-1].tobytes() == batch.points.tobytes()


def test_changes_of_level_that_prices_do_not_name_are_not_taken():
    X = shop()
    cf = explainer(X).explain(X, target="each", objective="price", prices=PRICES, plausible=None)
    before, after = X["plan"].to_numpy()[cf.row], cf.to_frame()["plan"].to_numpy()
    moved = cf.feasible & (before != after)
    assert moved.any()
    assert (before[moved] == "basic").all()
    assert (cf.to_frame()["town"].to_numpy() == X["town"].to_numpy()[cf.row])[cf.feasible].all()


def test_the_price_of_a_level_is_in_the_price():
    X = shop()
    cf = explainer(X).explain(X, target="each", objective="price", prices=PRICES, plausible=None)
    own, new = X.iloc[cf.row].reset_index(drop=True), cf.to_frame().reset_index(drop=True)
    visits, basket = new["visits"] - own["visits"], new["basket"] - own["basket"]
    plan = np.where(new["plan"] == own["plan"], 0, np.where(new["plan"] == "plus", 2, 3))
    paid = np.where(visits > 0, 4 * visits, -2 * visits) + 0.5 * basket.abs() + plan
    assert cf.price[cf.feasible] == pytest.approx(paid[cf.feasible], rel=1e-9, abs=1e-9)
    assert np.isnan(cf.price[~cf.feasible]).all()
    i = int(np.flatnonzero(cf.feasible & (plan > 0))[0])
    assert "this costs " in cf.text(i)
    assert json.loads(cf[[i]].to_json())["answers"][0]["price"] == pytest.approx(
        cf[[i]].table()["price"].to_numpy()[0]
    )


def test_without_prices_a_level_costs_what_its_coordinates_do():
    X = shop()
    voice = explainer(X)
    cf = voice.explain(X, target=1, objective="price", plausible=None)
    before = np.asarray(voice.model_[:-1].transform(X))
    assert cf.price == pytest.approx(np.abs(cf.points - before).sum(axis=1), abs=1e-12)
    least = voice.explain(X, target=1, plausible=None)
    assert (cf.price <= np.abs(least.points - before).sum(axis=1) * (1 + 1e-9)).all()
    assert (cf.gap <= 1e-9).all()


def test_alternatives_are_dearer_one_after_the_other():
    X = shop(60)
    words = {"objective": "price", "prices": {"visits": 1, "basket": 0.5, "plan": 4, "town": 3}}
    voice = explainer(X)
    cf = voice.explain(X, target=3, alternatives=3, **words, plausible=None)
    assert (cf.rank > 0).any()
    for row in range(60):
        which = np.flatnonzero((cf.row == row) & cf.feasible)
        assert (np.diff(cf.price[which]) >= -1e-9).all()
    first = voice.explain(X, target=3, **words, plausible=None)
    assert cf.price[cf.rank == 0] == pytest.approx(first.price, nan_ok=True)


def test_a_tradeoff_with_prices_is_one_of_money():
    X = shop(40)
    prices = {"visits": 1, "basket": 0.5, "plan": 4, "town": 3}
    voice = explainer(X)
    cf = voice.tradeoff(X, target=3, prices=prices, plausible=None)
    best = voice.explain(X, target=3, objective="price", prices=prices, plausible=None)
    for row in range(40):
        which = np.flatnonzero((cf.row == row) & cf.feasible)
        if not len(which):
            continue
        assert (np.diff(cf.price[which]) < 0).all()
        assert cf.price[which[-1]] == pytest.approx(best.price[row], rel=1e-9)
        for i in which:
            few = voice.explain(
                X.iloc[[row]], target=3, objective="price", prices=prices,
                max_changes=int(cf.cardinality[i]), plausible=None,
            )  # fmt: skip
            assert cf.price[i] == pytest.approx(few.price[0], rel=1e-9)


def test_the_nearest_target_is_the_cheapest_by_price():
    X = shop(60)
    voice = explainer(X)
    best = voice.explain(X, objective="price", prices=PRICES, plausible=None)
    each = voice.explain(X, target="each", objective="price", prices=PRICES, plausible=None)
    least = pd.Series(np.where(each.feasible, each.price, np.inf)).groupby(each.row).min()
    found = np.where(best.feasible, best.price, np.inf)
    assert found == pytest.approx(least.to_numpy(), rel=1e-12)


def test_a_search_that_stops_tells_its_gap():
    rng = np.random.default_rng(SEED)
    X = pd.DataFrame(rng.integers(0, 60, (300, 12)), columns=[f"w{i}" for i in range(12)])
    model = make_pipeline(StandardScaler(), KMeans(12, n_init=1, random_state=0))
    voice = VoICE(model, contraction=0.9).fit(X)
    prices = {name: tuple(rng.uniform(1, 2, 2)) for name in X}
    words = {"target": 3, "objective": "price", "prices": prices, "max_changes": 4}
    few, all_ = (
        voice.explain(X[:30], limit=limit, **words, plausible=None) for limit in (3, 20_000)
    )
    stopped = np.flatnonzero(few.status == Status.STOPPED)
    assert len(stopped) > 0
    for i in stopped:
        assert all_.status[i] in (Status.OPTIMAL, Status.STOPPED)
        assert few.gap[i] > 0
        assert few.price[i] * (1 - few.gap[i]) <= all_.price[i] * (1 + 1e-9)
        assert "reached its limit" in few.text(int(i))


def test_the_reason_names_changes_of_level_without_a_price():
    X = pd.DataFrame({"plan": ["basic"] * 20 + ["pro"] * 20 + ["plus"] * 20})
    model = make_pipeline(
        ColumnTransformer([("levels", OneHotEncoder(sparse_output=False), ["plan"])]),
        KMeans(3, n_init=1, random_state=0),
    )
    voice = VoICE(model).fit(X)
    target = int(voice.predict(X[20:21])[0])
    words = {"objective": "price", "prices": {"plan": {("basic", "plus"): 10}}}
    cf = voice.explain(X[:1], target=target, **words, plausible=None)
    assert cf.status[0] == Status.INFEASIBLE
    reason = cf.reason(0)
    assert "other changes of plan than prices names have no price" in [
        member.text for member in reason.conflict
    ]
    again = voice.explain(X[:1], target=target, objective="price", **reason.relaxations[0].words)
    assert again.feasible.all()


def test_prices_of_levels_are_compared_in_one_form():
    pairs = {("basic", "pro"): 25, ("basic", "plus"): 10}
    rules = Rules(prices={"plan": pairs, "town": 3})
    plain = rules.to_dict()
    assert plain == {
        "prices": {"plan": [["basic", "pro", 25.0], ["basic", "plus", 10.0]], "town": [3.0, 3.0]}
    }
    assert Rules.from_dict(json.loads(json.dumps(plain))) == rules


def test_the_command_reads_prices_of_levels():
    found = Prices.parsed(["plan=basic>pro:25", "plan=basic>plus:10", "town=3", "visits=4,2"])
    assert Rules(prices=found) == Rules(
        prices={"plan": {("basic", "pro"): 25, ("basic", "plus"): 10}, "town": 3, "visits": (4, 2)}
    )
    with pytest.raises(OptionError, match="use COLUMN=FROM>TO:PRICE"):
        Prices.parsed(["plan=basic>pro"])


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({("basic", "pro"): -1}, "give a price, 0 or above"),
        ({"basic": 3}, "give a price, 0 or above"),
        ([["basic", "pro", 1], ["basic", "pro", 2]], "twice"),
        ({}, "it must be a number"),
    ],
)
def test_prices_of_levels_that_are_none_are_refused(value, fault):
    with pytest.raises(OptionError, match=fault):
        Rules(prices={"plan": value})


def test_prices_that_do_not_fit_a_column_are_refused():
    X = shop(60)
    voice = explainer(X)
    with pytest.raises(OptionError, match="no units more or less"):
        voice.explain(X, objective="price", prices={"plan": (4, 2)}, plausible=None)
    with pytest.raises(OptionError, match="are for categories"):
        voice.explain(X, objective="price", prices={"visits": {(1, 2): 3}}, plausible=None)
    with pytest.raises(OptionError, match="unknown level 'gold'"):
        voice.explain(X, objective="price", prices={"plan": {("basic", "gold"): 3}}, plausible=None)
