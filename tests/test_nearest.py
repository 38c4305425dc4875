"""The nearest target is the best of all targets, whichever of them the lower bounds leave out.

The judge asks for every target by itself, measures each answer anew, and takes the least.
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import Status, VoICE
from voicecf.geometry.arithmetic import Arithmetic
from voicecf.rules.allowed import NO_RULES, as_rules
from voicecf.search import solving
from voicecf.search.question import LIMIT

SAME = 1e-9  # energies that differ by less, relative, are equal
ANSWERED = (Status.OPTIMAL, Status.STOPPED)


def moved_by(voice: VoICE, cf) -> np.ndarray:
    """The move of each answer in the coordinates that the cost is measured in."""
    read = voice.space_.read
    return read(cf.to_frame()).points - read(cf.factual).points[cf.row]


def energies(voice: VoICE, X, factors=1.0, **asked) -> np.ndarray:
    """What every row pays for every target, asked for one target at a time; infinite if nothing."""
    n, k = len(X), voice.partition_.n_clusters
    metric, table = voice.weights_ * factors + voice.delta, np.full((n, k), np.inf)
    for t in range(k):
        cf = voice.explain(X, t, **asked)
        at = np.flatnonzero(np.isin(cf.status, ANSWERED))
        if at.size:
            table[at, t] = (metric * moved_by(voice, cf[at]) ** 2).sum(axis=1)
    return table


def assert_nearest_is_the_best(voice: VoICE, X, factors=1.0, **asked) -> np.ndarray:
    """Compare "nearest" with every target by itself; return what each target costs."""
    asked = {"plausible": None, **asked}  # by itself a target may have another share than in turn
    table, best = energies(voice, X, factors, **asked), voice.explain(X, "nearest", **asked)
    np.testing.assert_array_equal(best.row, np.arange(len(X)))
    least, own = table.min(axis=1), voice.predict(X)
    assert np.isfinite(least).any()
    for i, t in enumerate(best.target):
        assert t != own[i]
        assert table[i, t] <= least[i] * (1 + SAME)
        alone = voice.explain(X[i : i + 1], int(t), **asked)
        assert best.status[i] == alone.status[0]
        np.testing.assert_array_equal(best.points[i], alone.points[0])
    np.testing.assert_array_equal(best.feasible, np.isfinite(least))
    return table


def question_of(voice: VoICE, X, objective="cost", **words):
    rules = as_rules(None, **words) if words else NO_RULES
    return voice._question(*voice.learned_.read(X), rules, objective, LIMIT, False)


# Clusterings in which many targets are close to best.


def ring(k: int = 9, d: int = 3, noise: float = 1e-3):
    """Centroids around one in the middle, nearly equally far from it."""
    rng = np.random.default_rng(k)
    directions = rng.normal(size=(k - 1, d))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    centers = np.vstack([np.zeros(d), 2 * directions * (1 + noise * rng.normal(size=(k - 1, 1)))])
    return centers[rng.permutation(k)], 0.3 * rng.normal(size=(12, d))


def lattice():
    """Centroids and rows on a grid: most lower bounds are tied."""
    centers = np.array(list(itertools.product(range(3), repeat=2)), float) * 2
    rows = np.array(list(itertools.product(range(5), repeat=2)), float)[:12]
    return centers[np.random.default_rng(0).permutation(9)], rows


def twins():
    """Centroids in pairs that are a millionth and a billionth apart."""
    rng = np.random.default_rng(4)
    half = rng.normal(size=(4, 3))
    apart = np.array([[1e-6], [1e-6], [1e-9], [1e-9]]) * rng.normal(size=(4, 3))
    return np.vstack([half, half + apart]), rng.normal(size=(12, 3))


def blobs(d: int = 4, k: int = 7, seed: int = 0):
    """Clusters of very different sizes: each has a contraction of its own."""
    rng = np.random.default_rng(seed)
    spread = np.repeat(10.0 ** rng.uniform(-1, 0.3, size=k), 30)[:, None]
    X = np.repeat(3 * rng.normal(size=(k, d)), 30, axis=0) + spread * rng.normal(size=(30 * k, d))
    return X, KMeans(k, n_init=1, random_state=0).fit(X)


CENTROIDS = {"ring": ring, "lattice": lattice, "twins": twins}
OPTIONS = {
    "whole cells": {},
    "contracted": {"contraction": 0.5},
    "a margin": {"margin": 0.3},
    "a box": {"bounds": (-0.4, 2.3)},
}
WEIGHTS = {"equal": None, "weights of zero": [0.0, 2.0, 1.0], "far apart": [1e-8, 1.0, 1e-3]}


def of_centroids(name: str, options: str, weights: str):
    """An explainer of given centroids, and rows."""
    (centers, X), given, chosen = CENTROIDS[name](), OPTIONS[options], WEIGHTS[weights]
    chosen = None if chosen is None else chosen[-centers.shape[1] :]
    voice = VoICE.from_centers(centers, weights=chosen, **given)
    return voice, np.clip(X, *given.get("bounds", (-9, 9)))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", CENTROIDS)
def test_nearest_is_the_best_of_all_targets(name, options, weights):
    assert_nearest_is_the_best(*of_centroids(name, options, weights))


@pytest.mark.parametrize("options", [{}, {"retain": 0.6}, {"retain": 0.8, "margin": 0.4}])
@pytest.mark.parametrize("fixed", [(), (0, 2)])
def test_so_it_is_where_each_cell_is_contracted_as_its_members_allow(options, fixed):
    X, model = blobs()
    voice = VoICE(model, **options).fit(X)
    assert np.ptp(voice.learned_.contractions) > 0.05
    table = assert_nearest_is_the_best(voice, X[::13], immutable=fixed)
    assert fixed == () or np.isinf(table).sum() > len(table)  # not only the source is out of reach


def test_so_it_is_where_bounds_put_the_closest_targets_out_of_reach():
    centers, X = ring(k=11)
    voice = VoICE.from_centers(centers)
    table = assert_nearest_is_the_best(voice, X, bounds={0: (-0.9, 0.6), 1: (-0.2, None)})
    free = energies(voice, X)
    gone = np.isinf(table) & np.isfinite(free)
    assert gone[np.arange(len(X)), free.argmin(axis=1)].any()


@pytest.mark.parametrize("n_components", [2, 5])
@pytest.mark.parametrize("words", [{}, {"immutable": [0, 3]}, {"costs": {0: 5.0}}])
def test_so_it_is_through_steps_that_mix_columns(n_components, words):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 5)) * [1, 5, 0.2, 3, 40] + [0, 3, 100, 0, -7]
    steps = StandardScaler(), PCA(n_components), KMeans(7, n_init=1, random_state=0)
    voice = VoICE(make_pipeline(*steps), retain=0.8).fit(X)
    factors = np.array([words.get("costs", {}).get(c, 1.0) for c in range(5)])
    assert_nearest_is_the_best(voice, X[:12], factors, **words)


@pytest.mark.parametrize("factors", [(1.0, 0.001, 1.0), (0.02, 1.0, 30.0), (50.0, 1.0, 4.0)])
def test_so_it_is_where_columns_have_costs(factors):
    centers, X = ring(k=10, noise=0.05)
    voice = VoICE.from_centers(centers)
    free = energies(voice, X).argmin(axis=1)
    costs = {c: factor for c, factor in enumerate(factors) if factor != 1.0}
    table = assert_nearest_is_the_best(voice, X, np.array(factors), costs=costs)
    assert (table.argmin(axis=1) != free).any()  # the costs decide


def test_a_discount_makes_a_target_best_that_lies_much_further():
    voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [0.0, 20.0]])
    assert voice.explain([[0.0, 0.0]]).target.tolist() == [1]
    assert voice.explain([[0.0, 0.0]], costs={1: 0.001}).target.tolist() == [2]


# Ties.


WORDS = [{}, {"costs": {0: 0.5, 1: 0.5}}, {"objective": "fewest"}]


@pytest.mark.parametrize("words", WORDS)
@pytest.mark.parametrize("middle", range(5))
def test_of_targets_at_the_same_cost_nearest_is_the_lower(middle, words):
    others = [[2.0, 0.0], [-2.0, 0.0], [0.0, 2.0], [0.0, -2.0]]
    voice = VoICE.from_centers([*others[:middle], [0.0, 0.0], *others[middle:]])
    row = np.zeros((1, 2))
    each, best = voice.explain(row, "each", **words), voice.explain(row, **words)
    assert len(set(each.cost.tolist())) == 1  # a tie to the last bit
    assert best.target.tolist() == [0 if middle else 1]


# In steps of 1 the targets at -1.9 and at 1.5 both cost one step; the bound of the second is lower.
UNEVEN = {"ahead": [[0.0], [-1.9], [1.5], [9.0]], "behind": [[0.0], [1.5], [-1.9], [9.0]]}


@pytest.mark.parametrize("order", UNEVEN)
def test_so_it_is_whichever_of_them_has_the_lower_bound(order):
    voice = VoICE.from_centers(UNEVEN[order])
    best, each = (voice.explain([[0.0]], target, steps={0: 1}) for target in ("nearest", "each"))
    assert each.cost.tolist()[:2] == [1.0, 1.0]
    assert best.target.tolist() == [1]
    bound = solving._lower_bounds(question_of(voice, [[0.0]], steps={0: 1}), np.arange(1))[0]
    assert (bound[1] < bound[2]) == (order == "behind")


# Targets without an answer.


def far_twins():
    """A model that cannot tell its first two clusters apart, and others that it can.

    Cluster 0 is 1e-5 from cluster 1, a million from zero: half the difference of their squared
    distances is smaller than the model's rounding errors.
    """
    offset = 1e6
    centers = np.array([[0.0, 0.0], [1e-5, 0.0], [0.0, 40.0], [30.0, 0.0]]) + offset
    X = np.vstack([centers, centers - 1.0])
    model = KMeans(4, init=centers, n_init=1, max_iter=1).fit(X)
    model.cluster_centers_ = centers
    return VoICE(model, contraction=1.0, bounds=None), X


@pytest.mark.filterwarnings("ignore::voicecf.errors.RoundingWarning")
def test_a_first_target_that_rounding_leaves_open_does_not_hide_a_better_one():
    voice, X = far_twins()
    voice.fit(X)
    row = X[:1] + np.array([1.0, 0.0])
    own = int(voice.predict(row)[0])
    assert own in (0, 1)
    bound = solving._lower_bounds(question_of(voice, row), np.arange(1))[0]
    assert bound.argmin() == 1 - own
    assert voice.explain(row, 1 - own).status[0] == Status.UNRESOLVED
    table = assert_nearest_is_the_best(voice, row)
    assert table.argmin() == 3


@pytest.mark.filterwarnings("ignore::voicecf.errors.RoundingWarning")
def test_a_row_is_infeasible_only_if_every_target_is_proven_out_of_reach():
    voice, X = far_twins()
    voice.fit(X)
    row = X[:1] + np.array([1.0, 0.0])
    bounds = dict.fromkeys((0, 1), ("-5", "+5"))
    each, best = (voice.explain(row, target, bounds=bounds) for target in ("each", "nearest"))
    assert sorted(each.status.tolist()) == sorted(
        [Status.UNRESOLVED, Status.INFEASIBLE, Status.INFEASIBLE]
    )
    assert best.status.tolist() == [Status.UNRESOLVED]
    assert each.status[each.target == best.target[0]].tolist() == [Status.UNRESOLVED]


def test_an_answer_is_no_optimum_while_another_target_may_have_a_better_one():
    rng = np.random.default_rng(0)
    hidden = 0
    for _ in range(40):
        voice = VoICE.from_centers(rng.normal(size=(4, 6)) * 3, bounds=(-9, 9))
        rows = rng.integers(-6, 7, size=(6, 6)).astype(float)
        steps = dict.fromkeys(range(5), 1)  # and one column of any numbers
        short, whole = (voice.explain(rows, steps=steps, limit=limit) for limit in (2, 20_000))
        each = voice.explain(rows, "each", steps=steps, limit=2)
        assert (whole.status == Status.OPTIMAL).all()
        proven = short.status == Status.OPTIMAL
        np.testing.assert_allclose(short.cost[proven], whole.cost[proven], rtol=SAME)
        least = (1.0 - short.gap) * short.cost
        assert (least[short.feasible] <= whole.cost[short.feasible] * (1 + SAME)).all()
        alone = each.status.reshape(len(rows), 3)[np.arange(len(rows)), _place(short)]
        hidden += int(((alone == Status.OPTIMAL) & (short.status == Status.STOPPED)).sum())
    assert hidden  # proven for its own target, not for the others


def _place(cf) -> np.ndarray:
    """Where each answer's target stands among the targets other than its source."""
    return cf.target - (cf.target > cf.source)


@pytest.mark.parametrize("words", WORDS)
def test_a_first_target_out_of_reach_does_not_hide_one_within(words):
    voice = VoICE.from_centers([[0.0, 0.0], [1.0, 0.0], [0.0, 8.0], [9.0, 0.0]])
    rows = np.array([[0.2, 0.0], [0.4, 0.3]])
    best = voice.explain(rows, immutable=0, **words)
    assert best.target.tolist() == [2, 2]
    assert best.status.tolist() == [Status.OPTIMAL] * 2


def test_nothing_within_reach_is_infeasible():
    centers, X = ring()
    best = VoICE.from_centers(centers).explain(X, immutable=[0, 1, 2])
    assert (best.status == Status.INFEASIBLE).all()
    assert (best.target != best.source).all()


def test_rows_that_need_one_target_and_rows_that_need_many_are_answered_in_one_batch():
    voice = VoICE.from_centers([[0.0, 0.0], [1.0, 0.0], [1.5, 0.1], [2.0, 0.0], [0.0, 8.0]])
    rows = np.array([[0.2, 0.0], [0.0, 7.0], [0.1, 0.2], [1.9, 0.0]])
    for words in ({}, {"immutable": 0}, {"bounds": {0: (None, "+0.1")}}):
        together = voice.explain(rows, **words)
        for i in range(len(rows)):
            alone = voice.explain(rows[i : i + 1], **words)
            assert together.target[i] == alone.target[0]
            np.testing.assert_array_equal(together.points[i], alone.points[0])
        assert_nearest_is_the_best(voice, rows, **words)


# The lower bounds themselves.


def of_model(**options):
    """An explainer whose cells each have a contraction of their own, and rows."""
    X, model = blobs()
    return VoICE(model, retain=0.7, **options).fit(X), X[::17]


def mixed():
    """An explainer through a PCA, and rows."""
    X, _ = blobs()
    steps = StandardScaler(), PCA(3), KMeans(7, n_init=1, random_state=0)
    return VoICE(make_pipeline(*steps), retain=0.7).fit(X), X[::17]


EXPLAINERS = {
    ", ".join(names): partial(of_centroids, *names)
    for names in itertools.product(CENTROIDS, OPTIONS, WEIGHTS)
} | {"retained": of_model, "large delta": partial(of_model, delta=0.5), "mixed": mixed}


@pytest.mark.parametrize("name", EXPLAINERS)
def test_no_answer_costs_less_than_its_lower_bound(name):
    voice, X = EXPLAINERS[name]()
    bound = solving._lower_bounds(question_of(voice, X), np.arange(len(X)))
    table = energies(voice, X)
    own = voice.predict(X)
    others = np.arange(table.shape[1]) != own[:, None]
    assert np.isinf(bound[~others]).all()
    assert np.isfinite(bound[others]).all()
    assert (bound[others] >= 0).all()
    assert (bound <= np.where(others, table, np.inf)).all()


@pytest.mark.parametrize("name", EXPLAINERS)
def test_the_lower_bound_is_what_the_constraint_against_the_source_costs(name):
    voice, X = EXPLAINERS[name]()
    bound = solving._lower_bounds(question_of(voice, X), np.arange(len(X)))
    own = voice.predict(X)
    read, metric = voice.space_.read(X), voice.weights_ + voice.delta
    partition = voice.partition_
    apart = read.seen[:, None] - partition.centers
    distances = (partition.weights * apart**2).sum(axis=2)
    for i, t in itertools.product(range(len(X)), range(bound.shape[1])):
        if t == own[i]:
            continue
        region, row = voice.region(t), int(own[i] - (own[i] > t))
        normal, offset = region.normals[row], region.offsets[row]
        excess = max(normal @ (read.points[i] - region.origin) - offset, 0.0)
        length = (normal**2 / metric).sum()
        rounding = 1e-13 * (distances[i, t] + distances[i, own[i]] + offset)
        low, high = (max(excess + s * rounding, 0.0) ** 2 / length for s in (-1, 1))
        assert low * (1 - 3e-9) <= bound[i, t] <= high


@pytest.mark.parametrize("formula", ["direct", "expanded"])
def test_centroids_in_one_place_have_a_lower_bound_too(formula):
    centers = [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [3.0, 3.0]]
    voice = VoICE.from_centers(centers)
    object.__setattr__(voice.partition_, "arithmetic", Arithmetic(formula))
    rows = np.array([[0.0, 0.0], [0.9, 0.1], [0.4, 0.0], [3.0, 2.0]])
    bound, own = solving._lower_bounds(question_of(voice, rows), np.arange(4)), voice.predict(rows)
    assert np.isinf(bound[np.arange(4), own]).all()
    assert np.isfinite(bound).sum() == 4 * 4
    assert bound[0, 2] == bound[1, 3] == 0.0
    assert_nearest_is_the_best(voice, rows)


def test_the_rows_of_a_later_block_have_the_bounds_that_they_have_alone():
    X, model = blobs()
    voice = VoICE(model, retain=0.7).fit(X)
    question = question_of(voice, X[::9])
    whole = solving._lower_bounds(question, np.arange(20))
    np.testing.assert_array_equal(solving._lower_bounds(question, np.arange(7, 13)), whole[7:13])


def test_two_clusters_need_no_bounds():
    X, model = blobs(k=2)
    assert_nearest_is_the_best(VoICE(model).fit(X), X[::11])


@pytest.mark.parametrize("objective", ["fewest", "prefix"])
def test_with_another_objective_nearest_is_the_best_by_that(objective):
    X, model = blobs(d=3, k=9, seed=1)
    voice = VoICE(model, contraction=0.9, ranking="columns").fit(X)
    rows = X[::15]
    each, best = (voice.explain(rows, t, objective=objective) for t in ("each", "nearest"))
    metric, changes = voice.weights_ + voice.delta, each.cardinality
    energy = (metric * (each.points - rows[each.row]) ** 2).sum(axis=1)
    by_cost = 0
    for i in range(len(rows)):
        at = np.flatnonzero((each.row == i) & each.feasible)
        first = min(at, key=lambda j: (changes[j], energy[j], each.target[j]))
        assert best.target[i] == each.target[first]
        np.testing.assert_array_equal(best.points[i], each.points[first])
        by_cost += first != min(at, key=lambda j: energy[j])
    assert by_cost  # the number of changes decides


# How little is solved.


def solved_pairs(monkeypatch, voice: VoICE, X, **words) -> int:
    """Number of pairs of row and piece that are solved for the nearest targets."""
    counts = []
    solve_pieces = solving._solve_pieces

    def counting(question, rows, pieces, **options):
        counts.append(len(rows))
        return solve_pieces(question, rows, pieces, **options)

    monkeypatch.setattr(solving, "_solve_pieces", counting)
    voice.explain(X, **words)
    return sum(counts)


def test_targets_that_are_clearly_further_are_not_solved(monkeypatch):
    centers = np.array([[0.0, 0.0], [2.0, 0.0], [9.0, 9.0], [-9.0, 9.0], [0.0, -30.0], [50.0, 0.0]])
    rows = np.array([[0.5, 0.0], [1.8, 0.1], [0.2, -0.1]])
    assert solved_pairs(monkeypatch, VoICE.from_centers(centers, contraction=0.9), rows) == 3


def test_blocks_of_rows_are_answered_as_all_rows_at_once(monkeypatch):
    X, model = blobs()
    voice = VoICE(model, retain=0.7).fit(X)
    monkeypatch.setattr(solving, "TABLE", 7 * 4)
    assert_nearest_is_the_best(voice, X[::13], immutable=0)
