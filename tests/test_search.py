"""The shortest ranked prefix: DAQP walks r = 1, 2, ... and must stop where voicecf does."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from judges import daqp_solution, farkas
from problems import Problem
from voicecf import SHARK, Status, VoICE

pytest.importorskip("daqp")
pytest.importorskip("highspy")

DATA = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}


def data(name: str) -> np.ndarray:
    return StandardScaler().fit_transform(DATA[name]().data)


def ranked(voice: VoICE, scores: np.ndarray, immutable=()) -> list[int]:
    """Highest score first, ties by column: the order a reader expects."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    return [i for i in order if i not in set(immutable)]


def walled_in(voice: VoICE, a: np.ndarray, target: int, free) -> Problem:
    """The projection of a onto the target's region where only `free` columns may move."""
    region = voice.region(target)
    lo, hi = a.copy(), a.copy()
    lo[list(free)], hi[list(free)] = region.lo[list(free)], region.hi[list(free)]
    metric = voice.partition_.weights + voice.delta
    return Problem(
        "prefix", a[None], region.normals, region.offsets, lo, hi, region.origin, metric,
        (None,), np.full((1, len(a)), np.nan), np.full((1, len(region.offsets)), np.nan), 0, 0,
    )  # fmt: skip


def walk(voice: VoICE, a: np.ndarray, target: int, order: list[int]):
    """Length and cost of the first prefix that DAQP finds feasible; (None, inf) if none is.

    What is in the order may change, so what is outside its bounds there has to.
    """
    region = voice.region(target)
    astray = [p for p, c in enumerate(order) if not region.lo[c] <= a[c] <= region.hi[c]]
    for r in range(1 + max(astray, default=0), len(order) + 1):
        found = daqp_solution(walled_in(voice, a, target, order[:r]), 0)
        if found.claim == "optimal":
            return r, found.value.cost
    return None, np.inf


def assert_prefixes_are_shortest(voice, X, rows, scores, immutable=()):
    """Compare every answer with the walk; return the lengths."""
    order = ranked(voice, scores, immutable)
    cf = voice.explain(
        X[rows], target="each", objective="prefix", immutable=list(immutable), plausible=None
    )
    metric = voice.partition_.weights + voice.delta
    lengths = []
    for i in range(len(cf)):
        a = X[rows][cf.row[i]]
        r, cost = walk(voice, a, int(cf.target[i]), order)
        assert cf.feasible[i] == (r is not None), cf.text(i)
        if r is None:
            continue
        assert cf.cardinality[i] == r, cf.text(i)
        assert 0.5 * metric @ (cf.points[i] - a) ** 2 == pytest.approx(cost, rel=1e-8)
        still = [c for c in range(len(a)) if c not in order[:r]]
        np.testing.assert_array_equal(cf.points[i, still], a[still])
        lengths.append(r)
    return lengths


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("make", [KMeans, SHARK])
def test_the_prefix_is_the_shortest_that_daqp_finds(name, make):
    X = data(name)
    voice = VoICE(make(3, n_init=2, random_state=0)).fit(X)
    rows = np.random.default_rng(0).choice(len(X), size=8, replace=False)
    lengths = assert_prefixes_are_shortest(voice, X, rows, voice.partition_.weights)
    assert len(set(lengths)) > 1


def test_so_it_is_by_any_ranking_and_with_columns_that_may_not_change():
    X = data("wine")
    model = KMeans(4, n_init=2, random_state=0).fit(X)
    rows = np.arange(0, 178, 30)
    scores = np.random.default_rng(1).permutation(13) // 2  # with ties
    voice = VoICE(model, ranking=scores).fit(X)
    assert_prefixes_are_shortest(voice, X, rows, scores)
    assert_prefixes_are_shortest(voice, X, rows, scores, immutable=(0, 3, 6, 12))
    columns = VoICE(model, ranking="columns").fit(X)
    assert_prefixes_are_shortest(columns, X, rows, np.zeros(13), immutable=(1, 12))


@pytest.mark.parametrize("seed", range(6))
def test_so_it_is_for_models_with_odd_weights_and_rows_outside_the_box(seed):
    rng = np.random.default_rng([7, seed])
    k, d = int(rng.integers(2, 7)), int(rng.integers(2, 9))
    centers = rng.normal(size=(k, d))
    weights = [None, rng.exponential(size=d), 10.0 ** rng.uniform(-6, 0, size=d)][seed % 3]
    X = centers[rng.integers(k, size=10)] + rng.normal(size=(10, d))
    sides = np.quantile(X, 0.1, axis=0), np.quantile(X, 0.9, axis=0)  # some rows start outside
    voice = VoICE.from_centers(centers, weights=weights, bounds=sides, contraction=0.9)
    scores = np.ones(d) if weights is None else weights
    assert_prefixes_are_shortest(voice, X, np.arange(10), scores, immutable=(0,) * (seed % 2))


def test_a_prefix_costs_at_least_the_least_cost_and_as_much_once_it_is_everything():
    X = data("iris")
    voice = VoICE(KMeans(3, n_init=2, random_state=0), contraction=0.05).fit(X)
    short = voice.explain(X, target="each", objective="prefix", plausible=None)
    cheap = voice.explain(X, target="each", plausible=None)
    assert short.feasible.all()
    assert (short.cost >= cheap.cost * (1 - 1e-9)).all()
    whole = short.cardinality == 4
    assert whole.any()
    np.testing.assert_array_equal(short.points[whole], cheap.points[whole])
    assert (short.n_changed <= short.cardinality).all()


def test_nearest_takes_the_shortest_prefix_then_the_least_cost():
    X = data("wine")[::6]
    voice = VoICE(KMeans(4, n_init=2, random_state=0)).fit(data("wine"))
    best = voice.explain(X, objective="prefix", plausible=None)
    each = voice.explain(X, target="each", objective="prefix", plausible=None)
    for i in range(len(X)):
        mine = np.flatnonzero((each.row == i) & each.feasible)
        length = each.cardinality[mine].min()
        assert best.cardinality[i] == length
        cost = each.cost[mine][each.cardinality[mine] == length].min()
        assert best.cost[i] == pytest.approx(cost, rel=1e-9)


def test_where_no_prefix_fits_the_farkas_vector_of_the_whole_order_proves_it():
    X = data("iris")
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(X)
    cf = voice.explain(X, target="each", objective="prefix", immutable=[2, 3], plausible=None)
    stuck = np.flatnonzero(cf.status == Status.INFEASIBLE)
    assert 0 < len(stuck) < len(cf)
    for i in stuck:
        t = int(cf.target[i])
        problem = walled_in(voice, X[cf.row[i]], t, [0, 1])
        assert farkas(problem, 0, np.delete(cf.multipliers[i], t)) > 1e-12


def test_a_column_outside_its_bounds_belongs_to_every_prefix():
    # Column 1 ranks last but has to come back into its bounds.
    voice = VoICE.from_centers(
        [[0.0, 0.0, 0.0], [4.0, 0.0, 0.0]], weights=[3, 1, 2], bounds=(-5.0, 5.0)
    )
    cf = voice.explain([[0.0, 9.0, 0.0]], target=1, objective="prefix", plausible=None)
    assert cf.cardinality.tolist() == [3]
    assert cf.points[0, 1] == 5.0
    inside = voice.explain([[0.0, 4.0, 0.0]], target=1, objective="prefix", plausible=None)
    assert inside.cardinality.tolist() == [1]


def test_with_everything_immutable_there_is_no_prefix():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]])
    cf = voice.explain([[0.0, 0.0]], target=1, objective="prefix", immutable=[0, 1], plausible=None)
    assert cf.status.tolist() == [Status.INFEASIBLE]


def test_a_batch_whose_rows_share_one_side_of_their_bounds_is_answered_row_by_row():
    X = np.random.default_rng(0).normal(size=(60, 3))
    voice = VoICE(KMeans(3, n_init=2, random_state=0)).fit(X)
    words = {"max_changes": 2, "increase_only": [0]}
    batch = voice.explain(X, target="each", **words, plausible=None)
    for i in range(len(batch)):
        row = X[[batch.row[i]]]
        alone = voice.explain(row, target=int(batch.target[i]), **words, plausible=None)
        np.testing.assert_array_equal(batch.points[i], alone.points[0])
        assert batch.status[i] == alone.status[0]
