"""Answers of least price, judged by HiGHS and by duality in extended precision."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.optimize import linprog
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, StandardScaler

import judges
from problems import Problem, problems
from voicecf import Status, VoICE
from voicecf.errors import ColumnError, OptionError
from voicecf.files import explain_batches
from voicecf.geometry.region import Region
from voicecf.rules import Rules
from voicecf.rules.prices import Prices
from voicecf.solver.projection import Projection, project

SEED = 2026
Long = np.longdouble


def some_prices(rng, d: int, q) -> tuple[np.ndarray, np.ndarray]:
    """Prices of any kind: all different, equal, whole numbers, some free, some one way only."""
    up, down = rng.uniform(0.1, 3.0, (2, d))
    kind = rng.integers(5)
    if kind == 1:
        up = down = np.ones(d)
    elif kind == 2:
        up, down = up * (rng.random(d) > 0.4), down * (rng.random(d) > 0.4)
    elif kind == 3:
        up, down = np.rint(up), np.rint(down)
    elif kind == 4:
        up, down = up * np.sqrt(q), down * np.sqrt(q)
    return up, down


def cheapest(problem: Problem, prices) -> Projection:
    region = Region(problem.G, problem.h, problem.lo, problem.hi, problem.origin)
    return project(problem.points, region, problem.q, prices=prices)


def price_of(a, z, prices) -> np.ndarray:
    up, down = prices
    return np.where(z > a, up * (z - a), down * (a - z)).sum(axis=-1)


def duality(problem: Problem, i: int, z, mu, prices) -> tuple[float, float]:
    """The gap and the largest violation of a row, as shares of the terms that they are the rest of.

    In extended precision. The multipliers pull at a coordinate with g; what its best place in the
    box has in price less pull, and z has not, is part of the gap.
    """
    a, z, mu, up, down = (np.asarray(v, Long) for v in (problem.points[i], z, mu, *prices))
    G, h, origin = (np.asarray(v, Long) for v in (problem.G, problem.h, problem.origin))
    lo, hi = (np.asarray(v, Long) for v in problem.box(i))
    g, terms = -(mu @ G), mu @ abs(G)
    lost = Long(0)
    for at in range(len(a)):
        values = [price_of(a[at], z[at], (up[at], down[at])) - g[at] * z[at]]
        for end, slope in ((lo[at], down[at] + g[at]), (hi[at], up[at] - g[at])):
            if np.isinf(end):
                assert slope >= -1e-9 * terms[at]
            else:
                values.append(price_of(a[at], end, (up[at], down[at])) - g[at] * end)
        if lo[at] <= a[at] <= hi[at]:
            values.append(-g[at] * a[at])
        lost += values[0] - min(values)
    slack = h - G @ (z - origin)
    reach = np.maximum(abs(z - origin), abs(z - a)) + abs(z) + abs(a)
    size = abs(G) @ reach + abs(h)
    assert ((z >= lo) & (z <= hi)).all()
    noise = judges.TOLERANCE * price_of(a, z, (up, down)) + 1e-15 * (mu @ size)
    violation = (np.maximum(-slack, 0) / np.where(size > 0, size, 1)).max(initial=0)
    gap = abs(lost + mu @ slack)
    return float(gap / noise if noise > 0 else gap), float(violation)


def highs(a, G, h, lo, hi, prices):
    """Solve for the parts of the move up and down, with scipy's HiGHS."""
    d = len(a)
    both = np.hstack([np.eye(d), -np.eye(d)])
    up, low = np.isfinite(hi), np.isfinite(lo)
    rows = np.vstack([np.hstack([G, -G]), both[up], -both[low]])
    ends = np.concatenate([h - G @ a, (hi - a)[up], (a - lo)[low]])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    return linprog(np.concatenate(prices), rows, ends, options=tight)


def plain_problem(rng):
    """A point, rows, a box and prices of sizes about 1; half of them of whole numbers."""
    d, m, kind = int(rng.integers(1, 9)), int(rng.integers(1, 11)), rng.integers(4)
    a, G, h = 2 * rng.normal(size=d), rng.normal(size=(m, d)), rng.normal(size=m) - 0.5
    lo = np.where(rng.random(d) < 0.5, -np.inf, rng.normal(size=d) - 1.5)
    hi = np.where(rng.random(d) < 0.5, np.inf, np.maximum(lo, rng.normal(size=d) + 1.5))
    prices = some_prices(rng, d, np.ones(d))
    if kind < 2:
        a, h, lo, hi = map(np.rint, (a, h, lo, hi))
        G = rng.integers(-2, 3, size=(m, d)).astype(float)
    if kind == 2:
        G[m // 2 :] = G[: m - m // 2] * rng.uniform(0.5, 2.0)
    return a, G, h, lo, hi, prices


def test_no_answer_costs_less_money_says_highs():
    rng, answered = np.random.default_rng(SEED), 0
    for _ in range(2500):
        a, G, h, lo, hi, prices = plain_problem(rng)
        found, judge = (
            project([a], Region(G, h, lo, hi), prices=prices),
            highs(a, G, h, lo, hi, prices),
        )
        assert found.status[0] == {0: Status.OPTIMAL, 2: Status.INFEASIBLE}[judge.status]
        if judge.status == 0:
            answered += 1
            z = found.points[0]
            assert price_of(a, z, prices) == pytest.approx(judge.fun, rel=1e-7, abs=1e-7)
            assert (G @ z <= h + 1e-9).all()
            assert ((lo <= z) & (z <= hi)).all()
    assert 1000 < answered < 2000


def test_every_certificate_closes_and_every_proof_proves():
    rng, statuses = np.random.default_rng(SEED), []
    for problem in problems(SEED, 2000):
        prices = some_prices(rng, problem.points.shape[1], problem.q)
        found = cheapest(problem, prices)
        for i, status in enumerate(found.status.tolist()):
            where, mu = f"{problem.family} {problem.index}", found.multipliers[i]
            statuses.append(status)
            if status == Status.OPTIMAL:
                gap, violation = duality(problem, i, found.points[i], mu, prices)
                assert gap <= 1.0, where
                assert violation <= 1e-13, where
                assert problem.truth[i] is not False, where
            elif status == Status.INFEASIBLE:
                assert judges.farkas(problem, i, mu) > judges.PROOF, where
                assert problem.truth[i] is not True, where
            else:
                assert problem.family in ("wedge", "flat"), where  # rows nearly opposite
    counts = np.bincount(statuses)
    assert counts[Status.OPTIMAL] > 3000
    assert counts[Status.INFEASIBLE] > 500
    assert counts[Status.UNRESOLVED] < 20


def test_exact_arithmetic_agrees_on_what_has_an_answer():
    rng, judged = np.random.default_rng(SEED), 0
    for problem in problems(SEED + 1, 400):
        found = cheapest(problem, some_prices(rng, problem.points.shape[1], problem.q))
        for i in (
            np.flatnonzero(found.status != Status.UNRESOLVED) if judges.is_small(problem) else ()
        ):
            relax = 1e-12 if found.status[i] == Status.OPTIMAL else -1e-12
            feasible = judges.exact_feasible(problem, int(i), relax)
            assert feasible == (found.status[i] == Status.OPTIMAL), (
                f"{problem.family} {problem.index}"
            )
            judged += 1
    assert judged > 200


def test_among_answers_of_one_price_the_least_cost_is_taken():
    """No move towards another answer of the same price lowers the cost, says HiGHS."""
    rng, ties = np.random.default_rng(SEED), 0
    for _ in range(1500):
        a, G, h, lo, hi, prices = plain_problem(rng)
        q = 10.0 ** rng.uniform(-1, 1, len(a))
        found = project([a], Region(G, h, lo, hi), q, prices=prices)
        if found.status[0] != Status.OPTIMAL:
            continue
        z, price = found.points[0], price_of(a, found.points[0], prices)
        slope = 2 * q * (z - a)
        rows = np.vstack([np.hstack([G, -G]), np.concatenate(prices)])
        ends = np.append(h - G @ a, price * (1 + 1e-12))
        d, both = len(a), np.hstack([np.eye(len(a)), -np.eye(len(a))])
        up, low = np.isfinite(hi), np.isfinite(lo)
        rows = np.vstack([rows, both[up], -both[low]])
        ends = np.concatenate([ends, (hi - a)[up], (a - lo)[low]])
        # The slope is that of the move; a part up and a part down that cancel cost nothing here.
        best = linprog(np.concatenate([slope, -slope]), rows, ends)
        cost = (q * (z - a) ** 2).sum()
        assert best.status == 0
        assert best.fun >= slope @ (z - a) - 1e-6 * (1 + cost)
        ties += linprog(np.r_[rng.normal(size=2 * d)], rows, ends, bounds=(0, 9)).status == 0
    assert ties > 500


def test_columns_in_another_order_give_the_same_answer():
    rng = np.random.default_rng(SEED)
    for _ in range(300):
        a, G, h, lo, hi, prices = plain_problem(rng)
        order = rng.permutation(len(a))
        one = project([a], Region(G, h, lo, hi), prices=prices)
        other = project(
            [a[order]], Region(G[::-1, order], h[::-1], lo[order], hi[order]),
            prices=(prices[0][order], prices[1][order]),
        )  # fmt: skip
        assert one.status == other.status
        assert one.points[0, order] == pytest.approx(
            other.points[0], rel=1e-7, abs=1e-7, nan_ok=True
        )


def test_one_row_alone_has_the_bits_that_it_has_in_a_batch():
    rng = np.random.default_rng(SEED)
    voice = VoICE.from_centers(rng.normal(size=(8, 5)), bounds=(-2.0, 2.0), contraction=0.9)
    X = rng.uniform(-2, 2, (200, 5))
    batch = voice.explain(X, target=3, objective="price", plausible=None)
    for i in range(0, 200, 20):
        alone = voice.explain(X[[i]], target=3, objective="price", plausible=None)
        assert alone.points.tobytes() == batch.points[i].tobytes()
    threads = voice.explain(X[::-1], target=3, objective="price", n_jobs=1, plausible=None)
    assert threads.points[::-1].tobytes() == batch.points.tobytes()


def test_a_row_outside_its_box_moves_into_it_at_the_price_of_that():
    region = Region([[1.0, 1.0]], [5.0], lo=[1.0, -np.inf], hi=[2.0, np.inf])
    found = project([[0.0, 9.0]], region, prices=(np.array([3.0, 1.0]), np.array([1.0, 2.0])))
    assert found.points[0, 0] == 1.0
    assert found.points[0, 1] == pytest.approx(4.0)


def test_free_columns_move_first_and_no_farther_than_they_have_to():
    region, free = Region([[-1.0, -1.0, -1.0]], [-6.0], hi=4.0), np.array([0.0, 0.0, 1.0])
    found = project([[0.0, 0.0, 0.0]], region, prices=(free, free))
    assert found.points[0] == pytest.approx([3.0, 3.0, 0.0])
    far = Region([[-1.0, -1.0, -1.0]], [-9.0], hi=4.0)
    assert project([[0.0, 0.0, 0.0]], far, prices=(free, free)).points[0] == pytest.approx(
        [4, 4, 1]
    )


def test_a_price_of_one_direction_leaves_the_other_free():
    region = Region([[1.0, -1.0]], [-2.0])
    found = project([[0.0, 0.0]], region, prices=(np.array([1.0, 1.0]), np.array([0.0, 1.0])))
    assert found.points.tolist() == [[-2.0, 0.0]]


def test_columns_of_one_price_and_one_pull_share_the_move():
    found = project([[0.0, 0.0]], Region([[-1.0, -1.0]], [-2.0]), prices=(np.ones(2), np.ones(2)))
    assert found.points[0] == pytest.approx([1.0, 1.0])


PRICES = {"visits": (4, 2), "basket": 0.5, "age": 3}


def customers(n: int = 300) -> pd.DataFrame:
    rng = np.random.default_rng(SEED)
    return pd.DataFrame({
        "visits": rng.normal(10, 3, n),
        "basket": rng.lognormal(3, 0.5, n),
        "age": rng.normal(50, 12, n),
        "height": rng.normal(170, 9, n),
    })  # fmt: skip


PIPELINES = {
    "no pipeline": KMeans(4, n_init=2, random_state=0),
    "standard": make_pipeline(StandardScaler(), KMeans(4, n_init=2, random_state=0)),
    "minmax": make_pipeline(MinMaxScaler(), KMeans(4, n_init=2, random_state=0)),
    "weighted": make_pipeline(
        ColumnTransformer(
            [
                ("a", StandardScaler(), ["visits", "age"]),
                ("b", StandardScaler(), ["basket", "height"]),
            ],
            transformer_weights={"a": -2.0},
        ),
        KMeans(4, n_init=2, random_state=0),
    ),
    "mixed": make_pipeline(StandardScaler(), PCA(3), KMeans(4, n_init=2, random_state=0)),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_the_price_is_that_of_the_users_units(name):
    X = customers()
    voice = VoICE(PIPELINES[name], contraction=1.0, bounds=None).fit(X)
    cf = voice.explain(X, target=1, objective="price", prices=PRICES, plausible=None)
    moved = cf.feasible
    changed, delta = cf.to_frame(), cf.to_frame() - X
    assert (voice.predict(changed[moved]) == 1).all()
    assert (changed["height"] == X["height"])[moved].all()
    money = sum(
        np.where(delta[c] > 0, more * delta[c], -less * delta[c])
        for c, (more, less) in {"visits": (4, 2), "basket": (0.5, 0.5), "age": (3, 3)}.items()
    )
    assert cf.price[moved] == pytest.approx(money[moved], rel=1e-9, abs=1e-12)
    assert (cf.gap[moved] <= 1e-9).all()
    # No other answer costs less: that of least cost does not, nor one by a single priced column.
    for column in PRICES:
        other = voice.explain(X, target=1, mutable=column, plausible=None)
        shift = (other.to_frame() - X)[column]
        more, less = {"visits": (4, 2), "basket": (0.5, 0.5), "age": (3, 3)}[column]
        price = np.where(shift > 0, more * shift, -less * shift)
        both = moved & other.feasible
        assert (cf.price[both] <= price[both] * (1 + 1e-6) + 1e-9).all()
        assert not (other.feasible & ~moved).any()


def test_without_prices_each_unit_of_a_coordinate_costs_one():
    X = customers()
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(4, n_init=2, random_state=0))).fit(X)
    cf = voice.explain(X, target=2, objective="price", plausible=None)
    before = StandardScaler().fit(X).transform(X)
    assert cf.price == pytest.approx(np.abs(cf.points - before).sum(axis=1), abs=1e-12)
    least = voice.explain(X, target=2, plausible=None)
    assert (cf.price <= np.abs(least.points - before).sum(axis=1) * (1 + 1e-9)).all()
    assert (cf.cost >= least.cost * (1 - 1e-9)).all()


def test_the_nearest_target_is_the_cheapest_by_price():
    X = customers()
    voice = VoICE(make_pipeline(StandardScaler(), KMeans(4, n_init=2, random_state=0))).fit(X)
    words = {"objective": "price", "prices": PRICES}
    best = voice.explain(X[:60], **words, plausible=None)
    each = voice.explain(X[:60], target="each", **words, plausible=None)
    least = pd.Series(np.where(each.feasible, each.price, np.inf)).groupby(each.row).min()
    assert best.price == pytest.approx(least.to_numpy(), rel=1e-12)


def test_multipliers_prove_the_price():
    """The dual bound that anyone can compute from the multipliers is the price."""
    rng = np.random.default_rng(SEED)
    voice = VoICE.from_centers(rng.normal(size=(7, 4)), bounds=(-3.0, 3.0), contraction=0.8)
    X = rng.uniform(-3, 3, (80, 4))
    cf = voice.explain(X, target=2, objective="price", plausible=None)
    region = voice.region(2)
    for i in np.flatnonzero(cf.status == Status.OPTIMAL):
        mu = np.delete(cf.multipliers[i], 2)
        pull = -mu @ region.normals
        ends = np.stack([region.lo, region.hi, X[i]])
        best = (np.abs(ends - X[i]) - pull * ends).min(axis=0).sum()
        bound = best - mu @ (region.offsets + region.normals @ region.origin)
        assert bound == pytest.approx(cf.price[i], rel=1e-9)


@pytest.mark.parametrize("contraction", [1.0, 0.7])
def test_answers_land_whatever_the_weights(contraction):
    rng = np.random.default_rng(SEED)
    for turn in range(30):
        centers = rng.integers(-3, 4, size=(6, 4)).astype(float)  # often the same in a column
        weights = 10.0 ** rng.uniform(-9, 9, 4)
        voice = VoICE.from_centers(centers, weights=weights, contraction=contraction)
        X = rng.integers(-5, 6, size=(40, 4)).astype(float)
        prices = {c: tuple(rng.uniform(0, 2, 2) * 10.0 ** rng.integers(-9, 9)) for c in range(4)}
        cf = voice.explain(X, target=turn % 6, objective="price", prices=prices, plausible=None)
        landed = voice.predict(cf.points[cf.feasible])
        assert (landed == turn % 6).all()
        assert (cf.gap[cf.feasible] <= 1e-9).all()
        assert not (cf.status == Status.UNRESOLVED).mean() > 0.5


def test_clusters_with_one_centroid_leave_the_first_its_cell():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 4.0], [4.0, 4.0]])
    cf = voice.explain([[1.0, 1.0]], target="each", objective="price", plausible=None)
    assert cf.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
    assert cf.price[0] == pytest.approx(2.0)


def test_prices_are_compared_in_one_form():
    assert Rules(prices={"visits": 2}) == Rules(prices={"visits": [2.0, 2.0]})
    plain = Rules(prices={"visits": (4, 2)}).to_dict()
    assert plain == {"prices": {"visits": [4.0, 2.0]}}
    assert Rules.from_dict(plain) == Rules(prices={"visits": (4, 2)})


@pytest.mark.parametrize("value", [-1, "much", None, (1, 2, 3), (1, -2), np.inf, (1, None), True])
def test_a_price_that_is_none_is_refused(value):
    with pytest.raises(OptionError, match="prices of 'visits' is"):
        Rules(prices={"visits": value})


def test_what_does_not_go_with_prices_is_refused():
    X = customers(60)
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
    with pytest.raises(OptionError, match='for objective="price"'):
        voice.explain(X, prices=PRICES, plausible=None)
    with pytest.raises(OptionError, match="give prices instead"):
        voice.explain(X, objective="price", costs={"age": 2}, plausible=None)
    with pytest.raises(OptionError, match="give prices instead"):
        voice.explain(X, objective="price", prices=PRICES, costs={"age": 2}, plausible=None)
    with pytest.raises(ColumnError, match="did you mean 'visits'"):
        voice.explain(X, objective="price", prices={"visit": 1}, plausible=None)


def test_the_price_of_a_curved_column_is_that_of_the_users_units():
    X = customers(100)[["visits", "basket"]].abs() + 1.0
    steps = FunctionTransformer(np.log, np.exp), KMeans(3, n_init=1, random_state=0)
    voice = VoICE(make_pipeline(*steps), contraction=1.0).fit(X)
    cf = voice.explain(
        X[:8], target=1, objective="price", prices={"basket": (2, 1)}, plausible=None
    )
    moves = (cf.to_frame() - X[:8])["basket"]
    paid = np.where(moves > 0, 2 * moves, -moves)
    assert cf.price[cf.feasible] == pytest.approx(paid[cf.feasible], rel=1e-9, abs=1e-9)
    # One column alone moves: to the border, as in the answer of least cost.
    least = voice.explain(X[:8], target=1, mutable="basket", plausible=None)
    assert (cf.feasible == least.feasible).all()
    assert cf.points[cf.feasible] == pytest.approx(least.points[cf.feasible], rel=1e-6)
    assert (cf.gap[cf.feasible] <= 1e-9).all()


def test_no_point_of_a_grid_is_cheaper_behind_curves():
    X = customers(100)[["visits", "basket"]].abs() + 1.0
    steps = FunctionTransformer(np.log, np.exp), KMeans(3, n_init=1, random_state=0)
    voice = VoICE(make_pipeline(*steps), contraction=1.0).fit(X)
    cf = voice.explain(
        X[:6], target=0, objective="price", prices={"basket": (2, 1), "visits": 3}, plausible=None
    )
    ends = [np.linspace(X[name].min(), X[name].max(), 300) for name in X]
    grid = pd.DataFrame(np.stack(np.meshgrid(*ends), axis=-1).reshape(-1, 2), columns=X.columns)
    inside = grid[voice.predict(grid) == 0]
    for i in np.flatnonzero(cf.feasible):
        moves = inside - X.iloc[i]
        price = moves["basket"].map(lambda t: 2 * t if t > 0 else -t) + 3 * moves["visits"].abs()
        assert cf.price[i] <= price.min() * (1 + 1e-9) + 1e-9
        assert cf.price[i] * (1 - cf.gap[i]) >= 0.8 * price.min() - 1.0
        assert cf.gap[i] <= 1e-2  # not always closed


def test_the_reason_names_columns_without_a_price():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    cf = voice.explain(
        [[1.0, 5.0]], target=1, objective="price", prices={"income": 1}, plausible=None
    )
    assert cf.status[0] == Status.INFEASIBLE
    assert np.isnan(cf.price[0])
    reason = cf.reason(0)
    assert [member.text for member in reason.conflict] == [
        "age has no price",
        "cluster 0 is always nearer",
    ]
    assert reason.relaxations[0].text == "give age a price"


def test_the_price_is_in_sentences_tables_and_json():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    cf = voice.explain([[1.0, 5.0]], target=1, objective="price", prices={"age": 3}, plausible=None)
    assert "; this costs 3.03; " in cf.text(0)  # age rises to 2.01
    assert cf.table()["price"].tolist() == [pytest.approx(3.03)]
    assert cf.summary()["price"].tolist() == [pytest.approx(3.0)]
    assert json.loads(cf.to_json())["answers"][0]["price"] == pytest.approx(3.03)


def test_files_have_a_column_of_prices():
    X = customers(50)
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(X)
    asked = {"target": 1, "objective": "price", "prices": PRICES}
    (batch,) = explain_batches(voice, pa.Table.from_pandas(X).to_batches(), **asked)
    price = voice.explain(X, **asked).price
    assert batch["voicecf_price"].to_numpy(zero_copy_only=False) == pytest.approx(
        price, nan_ok=True
    )


def test_the_command_reads_prices():
    said = Prices.parsed(["basket=0.5", "visits=4,2"])
    assert Rules(prices=said) == Rules(prices={"basket": 0.5, "visits": (4, 2)})
    with pytest.raises(OptionError, match="'x' is not a number"):
        Prices.parsed(["visits=4,x"])


def test_other_objectives_have_no_price():
    voice = VoICE.from_centers([[0.0], [4.0]])
    assert np.isnan(voice.explain([[1.0]], target=1, plausible=None).price).all()
