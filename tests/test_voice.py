"""What VoICE promises of every answer: in the target, within the rules, cheapest, the same again.

The judges are the model's own predict, exact rational arithmetic, the KKT conditions and Farkas
vectors in extended precision, and DAQP. None of them knows how voicecf solves.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.preprocessing import StandardScaler

import judges
from problems import Problem
from voicecf import CFCLUST, SHARK, Counterfactuals, Status, VoICE, parallel

CLOSED = 1e-9  # how far a certificate may be from closing, relative
EPS = np.finfo(np.float64).eps

DATA = {"iris": load_iris, "wine": load_wine, "breast cancer": load_breast_cancer}
KINDS = {"KMeans": KMeans, "MiniBatchKMeans": MiniBatchKMeans, "SHARK": SHARK}


@cache
def data(name: str, scaled: bool = True) -> np.ndarray:
    X = DATA[name]().data
    return StandardScaler().fit_transform(X) if scaled else X


def model_of(kind: str, k: int, X: np.ndarray, seed: int = 0):
    return KINDS[kind](k, n_init=2, random_state=seed).fit(X)


def blobs(n: int, k: int, d: int, seed: int = 0) -> np.ndarray:
    return make_blobs(n, d, centers=k, cluster_std=2.0, random_state=seed)[0]


# Judges.


def assert_in_target(model, cf: Counterfactuals) -> None:
    """The model's own predict, without tolerance."""
    found = cf.feasible
    assert found.any()
    np.testing.assert_array_equal(model.predict(cf.points[found]), cf.target[found])


def exact_distances(x, centers, weights) -> list[Fraction]:
    """Weighted squared distances in rational arithmetic."""
    terms = [Fraction(w) for w in np.asarray(weights, float).tolist()]
    point = [Fraction(v) for v in np.asarray(x, float).tolist()]
    return [
        sum(w * (v - Fraction(c)) ** 2 for w, v, c in zip(terms, point, m, strict=True))
        for m in np.asarray(centers, float).tolist()
    ]


def exact_label(x, centers, weights) -> int:
    """Nearest centroid in rational arithmetic; a tie goes to the lower index."""
    distances = exact_distances(x, centers, weights)
    return distances.index(min(distances))


def assert_nearest(voice: VoICE, cf, centers, weights) -> None:
    """The explainer's own predict without tolerance; exact arithmetic to the rounding of a sum.

    Where a column without weight to speak of has to go very far, distances differ by less than
    they are rounded by, and what predict says is all there is.
    """
    found = np.flatnonzero(cf.feasible)
    np.testing.assert_array_equal(voice.predict(cf.points[found]), cf.target[found])
    rounding = Fraction(4 * (len(weights) + 2) * EPS)
    for i in found:
        table = exact_distances(cf.points[i], centers, weights)
        assert table[cf.target[i]] <= min(table) * (1 + rounding)


def problem_of(voice: VoICE, cf, which, X, target: int, fixed) -> Problem:
    """What answers `which` with this target solve, in the judges' words."""
    region = voice.region(target)
    a = np.asarray(X, float)[cf.row[which]]
    lo, hi = (np.broadcast_to(side, a.shape) for side in (region.lo, region.hi))
    still = np.zeros(a.shape, dtype=bool)
    still[:, list(fixed)] = True
    lo, hi = np.where(still, a, lo), np.where(still, a, hi)
    unknown = np.full((len(a), 1), np.nan)
    metric = voice.partition_.weights + voice.delta
    return Problem(
        "voice", a, region.normals, region.offsets, lo, hi, region.origin, metric,
        (None,) * len(a), unknown, unknown, 0, 0,
    )  # fmt: skip


def by_target(cf):
    for t in np.unique(cf.target):
        yield int(t), cf.target == t


def assert_certified(voice: VoICE, X, cf, fixed=(), pushed: float = 0.0) -> None:
    """Optimal answers satisfy the KKT conditions, infeasible ones have a proof.

    With `pushed`, active rows may lie that far inside their offset, in units of the rounding of
    squared distances: what the model's own predict needs to see the answer in its target.
    """
    multipliers = cf.multipliers
    assert (multipliers[np.arange(len(cf)), cf.target] == 0).all()
    for t, mine in by_target(cf):
        optimal = np.flatnonzero(mine & (cf.status == Status.OPTIMAL))
        if optimal.size:
            mu = np.delete(multipliers[optimal], t, axis=1)
            z = cf.points[optimal].astype(float)
            p = problem_of(voice, cf, optimal, X, t, fixed)
            h = np.broadcast_to(p.h, mu.shape).copy()
            if pushed:
                at = (z - p.origin) @ p.G.T
                sizes = z**2 @ p.q + ((p.q * voice.partition_.centers**2).sum(axis=1)).max()
                retreat = np.where(mu > 0, np.maximum(h - at, 0), 0)
                assert (retreat <= pushed * EPS * sizes[:, None]).all()
                h -= retreat
            object.__setattr__(p, "h", h)
            found = judges.residuals(p, range(len(z)), z, mu)
            assert found.worst.max() <= CLOSED
        stuck = np.flatnonzero(mine & (cf.status == Status.INFEASIBLE))
        if stuck.size:
            p = problem_of(voice, cf, stuck, X, t, fixed)
            for i, y in enumerate(np.delete(multipliers[stuck], t, axis=1)):
                assert judges.farkas(p, i, y) > judges.PROOF


def assert_rules_kept(voice: VoICE, X, cf, fixed=()) -> None:
    """Immutable columns keep their bits, the others stay in the box; nothing is left undecided."""
    assert not (cf.status == Status.UNRESOLVED).any()
    points, given = cf.points[cf.feasible], np.asarray(X)[cf.row[cf.feasible]]
    free = [c for c in range(given.shape[1]) if c not in fixed]
    assert points[:, list(fixed)].tobytes() == given[:, list(fixed)].tobytes()
    assert (points[:, free] >= voice.lo_[free]).all()
    assert (points[:, free] <= voice.hi_[free]).all()
    assert np.isnan(cf.points[~cf.feasible]).all()


# The promises, on real data.


@pytest.mark.parametrize("scaled", [True, False], ids=["scaled", "raw"])
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_in_the_target_keep_the_rules_and_are_certified(kind, name, scaled):
    X = data(name, scaled)
    for k, options in ((3, {}), (6, {"retain": 0.9}), (2, {"contraction": 0.5, "bounds": None})):
        model = model_of(kind, k, X)
        voice = VoICE(model, **options).fit(X)
        for fixed in ((), (1, 2)):
            cf = voice.explain(X[::4], target="each", immutable=fixed, plausible=None)
            assert_in_target(model, cf)
            assert_rules_kept(voice, X[::4], cf, fixed)
            assert_certified(voice, X[::4], cf, fixed)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("kind", KINDS)
def test_without_contraction_predict_still_agrees_and_little_is_given_away_for_it(kind, name):
    X = data(name)
    model = model_of(kind, 5, X)
    voice = VoICE(model, contraction=1.0, bounds=None).fit(X)
    for fixed in ((), (0, 3)):
        cf = voice.explain(X[::4], target="each", immutable=fixed, plausible=None)
        assert_in_target(model, cf)
        assert_rules_kept(voice, X[::4], cf, fixed)
        assert_certified(voice, X[::4], cf, fixed, pushed=100 * (X.shape[1] + 8))


@pytest.mark.parametrize("kind", KINDS)
def test_the_shortest_prefix_lands_in_the_target_too(kind):
    X = data("wine")
    for options in ({}, {"contraction": 1.0, "bounds": None}):
        model = model_of(kind, 4, X)
        voice = VoICE(model, **options).fit(X)
        cf = voice.explain(X[::3], target="each", objective="prefix", immutable=[0])
        assert_in_target(model, cf)
        assert_rules_kept(voice, X[::3], cf, fixed=(0,))


@pytest.mark.parametrize("kind", ["KMeans", "MiniBatchKMeans"])
@pytest.mark.parametrize("name", DATA)
def test_single_precision_models_agree_with_answers_in_their_own_precision(kind, name):
    for scaled in (True, False):
        X = data(name, scaled).astype(np.float32)
        model = model_of(kind, 4, X)
        for options in ({}, {"contraction": 1.0, "bounds": None}):
            voice = VoICE(model, **options).fit(X)
            for fixed in ((), (0, 2)):
                cf = voice.explain(X[::3], target="each", immutable=fixed)
                assert cf.points.dtype == np.float32
                assert_in_target(model, cf)
                assert_rules_kept(voice, X[::3], cf, fixed)


def test_single_precision_answers_keep_bounds_that_single_precision_cannot_hold():
    X = data("iris", scaled=False).astype(np.float32)
    voice = VoICE(model_of("KMeans", 3, X)).fit(X)
    cf = voice.explain(X, target="each", bounds={0: (4.9, 6.1), 2: (1.3, 4.9)})
    points = cf.points[cf.feasible].astype(np.float64)
    for column, (low, high) in {0: (4.9, 6.1), 2: (1.3, 4.9)}.items():
        assert points[:, column].min() >= low
        assert points[:, column].max() <= high


def test_what_may_not_change_keeps_the_bits_that_the_model_sees():
    # A model in single precision takes and gives rows in single precision.
    X = data("iris", scaled=False)
    voice = VoICE(model_of("KMeans", 3, X.astype(np.float32))).fit(X.astype(np.float32))
    cf = voice.explain(X, target="each", immutable=[0])
    found = cf.feasible
    np.testing.assert_array_equal(cf.points[found, 0], X.astype(np.float32)[cf.row[found], 0])


# The promises, on models made to be difficult.


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6], ids="offset {:g}".format)
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12], ids="scale {:g}".format)
@pytest.mark.parametrize("kind", KINDS)
def test_data_far_from_zero_tiny_or_huge_are_answered_as_any_other(kind, scale, offset):
    for k, d in ((2, 1), (4, 3), (5, 12)):
        X = (blobs(60, k, d, seed=d) + offset) * scale
        model = model_of(kind, k, X)
        for options in ({"contraction": 0.7}, {"contraction": 1.0, "bounds": None}):
            voice = VoICE(model, **options).fit(X)
            for objective in ("cost", "prefix"):
                cf = voice.explain(X[:20], target="each", objective=objective, plausible=None)
                assert_in_target(model, cf)
                assert_rules_kept(voice, X[:20], cf)
                if objective == "cost" and kind == "SHARK":
                    assert_certified(voice, X[:20], cf, pushed=100 * (d + 8))


def odd_models(count: int, seed: int):
    """Centroids, weights and rows: zero weights, weights over 1e15, any scale, ties, offsets."""
    for i in range(count):
        rng = np.random.default_rng([seed, i])
        k, d = int(rng.integers(2, 8)), int(rng.integers(1, 8))
        unit = 10.0 ** rng.integers(-12, 13)
        centers = 3 * rng.normal(size=(k, d)) + rng.choice([0.0, 0.0, 1.0, 1e3, 1e6])
        if i % 4 == 3:
            centers = np.round(centers)  # ties, perhaps coinciding centroids
        weights = [
            None,
            rng.exponential(size=d),
            10.0 ** rng.uniform(-15, 0, size=d),
            np.where(np.arange(d) == 0, 1.0, rng.exponential(size=d) * (rng.random(d) < 0.5)),
        ][int(rng.integers(4))]
        rows = centers[rng.integers(k, size=8)] + rng.normal(size=(8, d))
        rows[0] = (centers[0] + centers[1]) / 2  # on a border
        yield rng, centers * unit, weights, rows * unit


def test_centroids_alone_are_enough_and_exact_arithmetic_agrees():
    counts = np.zeros(5, dtype=int)
    for rng, centers, weights, X in odd_models(60, seed=11):
        d = centers.shape[1]
        reach = np.vstack([X, centers])
        bounds = None if rng.random() < 0.4 else (reach.min(axis=0), reach.max(axis=0))
        fixed = tuple(np.flatnonzero(rng.random(d) < 0.3).tolist()) if rng.random() < 0.5 else ()
        contraction = float(rng.choice([0.9, 0.01]))
        voice = VoICE.from_centers(centers, weights=weights, bounds=bounds, contraction=contraction)
        objective = "cost" if rng.random() < 0.7 else "prefix"
        cf = voice.explain(X, target="each", immutable=fixed, objective=objective)
        counts += np.bincount(cf.status, minlength=5)
        if objective == "cost" and not (cf.status == Status.UNRESOLVED).any():
            assert_rules_kept(voice, X, cf, fixed)
            assert_certified(voice, X, cf, fixed)
        shares = np.ones(d) if weights is None else weights
        for i in np.flatnonzero(cf.feasible):
            assert exact_label(cf.points[i], centers, shares) == cf.target[i]
        np.testing.assert_array_equal(voice.predict(cf.points[cf.feasible]), cf.target[cf.feasible])
    assert counts[Status.OPTIMAL] > 1000
    assert counts[Status.INFEASIBLE] > 100


def test_so_they_are_on_the_very_border_of_the_cell():
    for rng, centers, weights, X in odd_models(60, seed=12):
        d = centers.shape[1]
        fixed = tuple(np.flatnonzero(rng.random(d) < 0.2).tolist())
        voice = VoICE.from_centers(centers, weights=weights)
        cf = voice.explain(X, target="each", immutable=fixed)
        assert_nearest(voice, cf, centers, np.ones(d) if weights is None else weights)
        found = cf.feasible
        still = list(fixed)
        np.testing.assert_array_equal(cf.points[found][:, still], X[cf.row[found]][:, still])


@pytest.mark.parametrize("far", [1e2, 1e4, 1e8, 1e12], ids="{:g} away".format)
@pytest.mark.parametrize("kind", ["from_centers", "KMeans"])
def test_a_row_far_from_its_target_lands_in_it_all_the_same(kind, far):
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(5, 3))
    X = far * rng.normal(size=(40, 3))
    if kind == "KMeans":
        model = KMeans(5, init=centers, n_init=1, max_iter=1).fit(centers)
        voice = VoICE(model, contraction=1.0, bounds=None).fit(centers)
        cf = voice.explain(X, target="each")
        assert cf.feasible.all()
        assert_in_target(model, cf)
        return
    cf = VoICE.from_centers(centers).explain(X, target="each")
    assert cf.feasible.all()
    said = [exact_label(z, centers, np.ones(3)) for z in cf.points]
    np.testing.assert_array_equal(said, cf.target)


@pytest.mark.parametrize("a", [1.5, 12.0, 1234.5, 1e9])
def test_on_a_line_the_answer_is_next_to_the_midpoint(a):
    voice = VoICE.from_centers([[0.0], [1.0]])
    cf = voice.explain([[a]], target=0)
    assert cf.status.tolist() == [Status.OPTIMAL]
    assert voice.predict(cf.points).tolist() == [0]
    assert cf.points[0, 0] == pytest.approx(0.5, abs=1e-12 * a)


def one_hot(seed: int, n: int = 300) -> np.ndarray:
    """Two categories as dummies and four measurements, on which SHARK's weights collapse."""
    rng = np.random.default_rng(seed)
    dummies = [np.eye(width)[rng.integers(width, size=n)][:, 1:] for width in (4, 3)]
    return StandardScaler().fit_transform(np.hstack([*dummies, rng.normal(size=(n, 4))]))


@pytest.mark.filterwarnings("ignore::voicecf.shark.WeightCollapseWarning")
@pytest.mark.parametrize("objective", ["cost", "prefix"])
@pytest.mark.parametrize(("seed", "k"), [(0, 5), (0, 7), (1, 5), (2, 7)])
def test_weights_that_collapsed_to_a_few_columns_break_no_promise(seed, k, objective):
    X = one_hot(seed)
    model = SHARK(k, n_init=3, random_state=42).fit(X)
    assert model.feature_weights_.min() < 1e-14
    for options in ({}, {"contraction": 1.0, "bounds": None}):
        cf = VoICE(model, **options).fit(X).explain(X[:60], target="each", objective=objective)
        assert np.isfinite(cf.cost[cf.feasible]).all()
        assert_in_target(model, cf)


@pytest.mark.filterwarnings("ignore::voicecf.shark.WeightCollapseWarning")
@pytest.mark.parametrize(("seed", "k"), [(0, 5), (1, 5), (2, 7)])
def test_a_cluster_with_members_in_the_box_is_never_called_out_of_reach(seed, k):
    # Any member is an answer: it lies in the box, and predict puts it into the cluster.
    X = one_hot(seed)
    voice = VoICE(SHARK(k, n_init=3, random_state=42)).fit(X)
    cf = voice.explain(X[:60], target="each")
    assert not (cf.status == Status.INFEASIBLE).any(), cf.text(int((~cf.feasible).argmax()))


# Found by search and made small: centroids, weights, row, target, what may not change.
CLOSED_BY_ROUNDING = {
    "a rival that only a light column tells apart": (
        [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], [1.0, 1e-15], [2.0, 0.0], 0, [], (-1.0, 3.0),
    ),
    "light column has to go far": (
        [[2.0, 2.0], [2.0, 0.0], [-1.0, 1.0], [7.0, -3.0]], [1.0, 1e-16], [-1.0, 2.0], 1, [0], None,
    ),
    "so far that multipliers overflow": (
        [[4.0, 4.0], [-5.0, -1.0], [-6.0, -7.0], [6.0, -3.0], [4.0, 6.0]], [1.0, 1e-16],
        [-2.0, -5.0], 4, [0], None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CLOSED_BY_ROUNDING)
def test_what_rounding_closes_is_not_called_proven(case):
    centers, weights, row, target, fixed, bounds = CLOSED_BY_ROUNDING[case]
    voice = VoICE.from_centers(centers, weights=weights, bounds=bounds)
    cf = voice.explain([row], target="each", immutable=fixed)
    assert np.isfinite(cf.multipliers).all()
    i = int((cf.target == target).argmax())
    problem = problem_of(voice, cf, [i], [row], target, fixed)
    assert judges.exact_feasible(problem, 0)
    assert cf.status[i] != Status.INFEASIBLE


# Found by search: centroids, weights, row, what may not change.
ONCE_WRONG = {
    "ten units away": (
        [[-3.0, 2.0], [-2.0, 1.0], [1.0, 0.0], [-3.0, -1.0]], [1.0, 1e-7], [8.0, 3.0], [],
    ),
    "ten units away the other way": (
        [[-1.0, 1.0], [1.0, 8.0], [-2.0, 0.0], [8.0, 0.0]], [1.0, 1e-7], [9.0, -1.0], [],
    ),
    "called optimal where it stood": (
        [[2.0, 2.0], [2.0, 0.0], [-1.0, 1.0], [7.0, -3.0]], [1.0, 1e-16], [-1.0, 2.0], [0],
    ),
    "on a line": ([[0.0], [1.0]], None, [1234.5], []),
}  # fmt: skip


@pytest.mark.parametrize("case", ONCE_WRONG)
def test_an_answer_called_optimal_is_in_the_target_and_has_a_certificate(case):
    centers, weights, row, fixed = ONCE_WRONG[case]
    voice = VoICE.from_centers(centers, weights=weights)
    cf = voice.explain([row], target="each", immutable=fixed)
    for i in np.flatnonzero(cf.feasible):
        assert np.isfinite([cf.cost[i], cf.gap[i], *cf.points[i]]).all()
    assert_nearest(voice, cf, centers, np.ones(len(row)) if weights is None else weights)


def test_so_it_is_whatever_the_weights_and_whatever_is_fixed():
    for i in range(400):
        rng = np.random.default_rng([99, i])
        k, d = int(rng.integers(3, 6)), int(rng.integers(2, 4))
        centers, X = np.round(4 * rng.normal(size=(k, d))), np.round(4 * rng.normal(size=(2, d)))
        weights = np.append(1.0, np.full(d - 1, 10.0 ** rng.integers(-16, -3)))
        voice = VoICE.from_centers(centers, weights=weights, contraction=1.0 if i % 2 else 0.9)
        cf = voice.explain(X, target="each", immutable=[0] if i % 4 < 2 else [])
        found = cf.points[cf.feasible]
        assert np.isfinite(found).all()
        assert np.isfinite(cf.gap[cf.feasible]).all()
        np.testing.assert_array_equal(voice.predict(found), cf.target[cf.feasible], err_msg=str(i))


def test_no_column_moves_for_a_rival_that_is_clearly_further():
    # At (0.93, 0) predict sees centroid 0 nearer than 1 by some ninety units of rounding.
    voice = VoICE.from_centers(
        [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0]], weights=[1.0, 1e-14], contraction=0.93
    )
    assert voice.predict([[0.93, 0.0]]).tolist() == [0]
    cf = voice.explain([[2.0, 0.0]], target=0)
    np.testing.assert_allclose(cf.points, [[0.93, 0.0]], atol=1e-9)


def test_weights_of_zero_leave_their_columns_where_they_are():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 9.0]], weights=[1, 0])
    cf = voice.explain([[1.0, 2.0], [3.0, -7.0]], target="each")
    np.testing.assert_array_equal(cf.points[:, 1], [2.0, -7.0])
    np.testing.assert_allclose(cf.points[:, 0], 2.0, rtol=1e-9)


def test_many_clusters_are_answered_like_few():
    rng = np.random.default_rng(5)
    centers = rng.normal(size=(120, 6))
    voice = VoICE.from_centers(centers, contraction=0.9, bounds=(-3.0, 3.0))
    X = rng.normal(size=(6, 6)).clip(-3, 3)
    cf = voice.explain(X, target="each")
    assert len(cf) == 6 * 119
    assert_rules_kept(voice, X, cf)
    assert_certified(voice, X, cf)
    for i in np.flatnonzero(cf.feasible)[::7]:
        assert exact_label(cf.points[i], centers, np.ones(6)) == cf.target[i]


# Optimality, by another solver.


@pytest.mark.parametrize("kind", KINDS)
def test_daqp_finds_nothing_cheaper(kind):
    pytest.importorskip("daqp")
    pytest.importorskip("highspy")
    X = data("wine")
    voice = VoICE(model_of(kind, 4, X), retain=0.95).fit(X)
    for fixed in ((), (0, 1, 2, 3, 4, 5, 6, 7)):
        cf = voice.explain(X[::20], target="each", immutable=fixed, plausible=None)
        names = np.array([Status(s).name.lower() for s in cf.status])
        for t, mine in by_target(cf):
            which = np.flatnonzero(mine)
            answer = judges.Answer(
                cf.points[which], np.delete(cf.multipliers[which], t, axis=1), cf.gap[which],
                names[which].tolist(),
            )  # fmt: skip
            p = problem_of(voice, cf, which, X[::20], t, fixed)
            for verdict in judges.verdicts(p, answer):
                assert (verdict.outcome, verdict.certified) == ("agree", True), verdict


# Targets.


@pytest.mark.parametrize("kind", KINDS)
def test_each_answers_every_other_cluster_ascending(kind):
    X = data("iris")[::10]
    model = model_of(kind, 5, data("iris"))
    cf = VoICE(model).fit(data("iris")).explain(X, target="each")
    own = model.predict(X)
    expected = [(i, t) for i in range(len(X)) for t in range(5) if t != own[i]]
    assert list(zip(cf.row.tolist(), cf.target.tolist(), strict=True)) == expected
    np.testing.assert_array_equal(cf.source, own[cf.row])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fixed", [(), (0, 2, 3)])
def test_nearest_is_the_cheapest_of_each(kind, fixed):
    X = data("iris")
    voice = VoICE(model_of(kind, 6, X), retain=0.9).fit(X)
    best = voice.explain(X, immutable=fixed, plausible=None)
    each = voice.explain(X, target="each", immutable=fixed, plausible=None)
    assert best.feasible.any()
    for i in range(len(X)):
        costs = each.cost[(each.row == i) & each.feasible]
        assert best.feasible[i] == (costs.size > 0)
        if costs.size:
            assert best.cost[i] == pytest.approx(costs.min(), rel=1e-9)
        assert best.target[i] != best.source[i]


def test_nearest_is_the_same_however_many_rows_are_bounded_at_a_time(monkeypatch):
    X = data("iris")
    voice = VoICE(model_of("KMeans", 6, X), retain=0.9).fit(X)
    at_once = voice.explain(X)
    monkeypatch.setattr("voicecf.search.solving.TABLE", 6 * 7)
    in_blocks = voice.explain(X)
    for name in ("points", "target", "status", "cost", "rho", "gap"):
        np.testing.assert_array_equal(getattr(in_blocks, name), getattr(at_once, name))
    assert voice.explain(X[:0]).points.shape == (0, 4)


def test_one_target_a_row_is_that_row_of_each():
    X = data("wine")
    voice = VoICE(model_of("KMeans", 4, X)).fit(X)
    targets = np.random.default_rng(0).integers(4, size=len(X))
    some, each = voice.explain(X, target=targets), voice.explain(X, target="each")
    for i, t in enumerate(targets):
        at = np.flatnonzero((each.row == i) & (each.target == t))
        if at.size:
            np.testing.assert_array_equal(some.points[i], each.points[at[0]])
        else:
            assert some.status[i] == Status.ALREADY


# The same answer, however it is asked for.


def assert_same_bits(one, other) -> None:
    for name in ("points", "cost", "rho", "gap", "status", "target", "cardinality", "multipliers"):
        a, b = getattr(one, name), getattr(other, name)
        assert a.tobytes() == b.tobytes(), name


@pytest.mark.parametrize("objective", ["cost", "prefix"])
@pytest.mark.parametrize("target", ["nearest", "each", 1])
def test_a_batch_is_its_rows_one_by_one_and_in_any_order(objective, target):
    X = data("wine")
    ask = {"target": target, "objective": objective, "immutable": [4]}
    voice = VoICE(model_of("SHARK", 4, X), retain=0.95).fit(X)
    whole = voice.explain(X, **ask)
    shuffled = np.random.default_rng(0).permutation(len(X))
    turned = voice.explain(X[shuffled], **ask)
    for place, i in enumerate(shuffled[:60]):
        alone = voice.explain(X[[i]], **ask)
        assert_same_bits(alone, whole[whole.row == i])
        assert_same_bits(alone, turned[turned.row == place])


def test_so_it_is_with_many_clusters_and_without_contraction():
    rng = np.random.default_rng(1)
    voice = VoICE.from_centers(rng.normal(size=(80, 5)), weights=10.0 ** rng.uniform(-3, 0, size=5))
    X = rng.normal(size=(50, 5))
    for target in ("nearest", 7):
        whole = voice.explain(X, target=target)
        for i in range(len(X)):
            assert_same_bits(voice.explain(X[[i]], target=target), whole[i])


@pytest.mark.parametrize("objective", ["cost", "prefix"])
def test_the_number_of_cores_changes_nothing(monkeypatch, objective):
    rng = np.random.default_rng(0)
    X = data("iris")
    rows = np.repeat(X, 60, axis=0) + 0.1 * rng.normal(size=(9000, 4))
    rows = rows.clip(X.min(axis=0), X.max(axis=0))
    voice = VoICE(model_of("KMeans", 4, X)).fit(X)
    answers = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(parallel, "n_threads", lambda _, n=cores: n)
        answers.append(voice.explain(rows, objective=objective, immutable=[1]))
        assert len(answers[-1].multipliers) == 9000
    for other in answers[1:]:
        assert_same_bits(answers[0], other)


def test_asking_twice_gives_the_same_bits_and_asking_something_else_between_changes_nothing():
    X = data("wine")
    voice = VoICE(model_of("KMeans", 4, X)).fit(X)
    first = voice.explain(X, target="each")
    voice.explain(X, immutable=[0, 1], bounds={2: (-1, 1)}, objective="prefix")
    assert_same_bits(first, voice.explain(X, target="each"))


def test_many_targets_at_once_do_not_disturb_each_other(monkeypatch):
    # Little room for what is kept between calls, so that it is thrown away all the time.
    monkeypatch.setattr("voicecf.learned.learned.REGION_CACHE", 2_000)
    monkeypatch.setattr(parallel, "n_threads", lambda _: 8)
    rng = np.random.default_rng(2)
    centers = rng.normal(size=(60, 3))
    X = rng.normal(size=(4, 3))
    for _ in range(10):
        cf = VoICE.from_centers(centers, contraction=0.9).explain(X, target="each")
        assert cf.feasible.all()


# Equivalences.


def test_permuting_features_permutes_the_answer():
    rng = np.random.default_rng(0)
    for weights in (None, rng.exponential(size=5)):
        centers, X = rng.normal(size=(4, 5)), rng.normal(size=(15, 5))
        order = rng.permutation(5)
        share = None if weights is None else weights[order]
        straight = VoICE.from_centers(centers, weights=weights, bounds=(-2.0, 2.0), contraction=0.9)
        turned = VoICE.from_centers(
            centers[:, order], weights=share, bounds=(-2.0, 2.0), contraction=0.9
        )
        one, other = straight.explain(X, target="each"), turned.explain(X[:, order], target="each")
        np.testing.assert_array_equal(one.status, other.status)
        np.testing.assert_allclose(one.points[:, order], other.points, rtol=1e-9, atol=1e-12)


def test_permuting_clusters_permutes_the_targets():
    rng = np.random.default_rng(1)
    centers, X = rng.normal(size=(5, 3)), rng.normal(size=(15, 3))
    order = rng.permutation(5)
    straight = VoICE.from_centers(centers, contraction=0.9)
    turned = VoICE.from_centers(centers[order], contraction=0.9)
    for t in range(5):
        one = straight.explain(X, target=int(order[t]))
        other = turned.explain(X, target=t)
        np.testing.assert_allclose(one.points, other.points, rtol=1e-9, atol=1e-12)


def test_equal_weights_are_k_means():
    X = data("wine")
    model = model_of("KMeans", 4, X)
    plain = VoICE(model, contraction=0.8).fit(X)
    weighted = VoICE.from_centers(
        model.cluster_centers_, weights=np.full(13, 7.0), contraction=0.8,
        bounds=(X.min(axis=0), X.max(axis=0)),
    )  # fmt: skip
    one, other = (
        plain.explain(X, target="each", plausible=None),
        weighted.explain(X, target="each", plausible=None),
    )
    np.testing.assert_allclose(one.points, other.points, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(one.cost, other.cost, rtol=1e-9)


@pytest.mark.parametrize("factor", [2.0**-20, 0.5, 1024.0])
def test_a_column_in_other_units_with_its_weight_to_match_gives_the_answer_in_those_units(factor):
    rng = np.random.default_rng(2)
    centers, X, weights = (
        rng.normal(size=(4, 3)),
        rng.normal(size=(20, 3)),
        np.array([0.5, 0.3, 0.2]),
    )
    units = np.array([1.0, factor, 1.0])
    # delta counts in every unit alike, so it has to be out of the way.
    ask = {"delta": 1e-30, "contraction": 0.9}
    one = VoICE.from_centers(centers, weights=weights, bounds=(-2.0, 2.0), **ask)
    other = VoICE.from_centers(
        centers * units, weights=weights / units**2, bounds=(-2.0 * units, 2.0 * units), **ask
    )
    a, b = one.explain(X, target="each"), other.explain(X * units, target="each")
    np.testing.assert_array_equal(a.status, b.status)
    np.testing.assert_allclose(a.points * units, b.points, rtol=1e-8, atol=1e-10 * factor)


@pytest.mark.parametrize("factor", [2.0**-30, 2.0**30])
def test_everything_in_other_units_is_the_answer_in_those_units(factor):
    X = data("wine")
    model = model_of("KMeans", 4, X)
    ask = {"contraction": 0.9, "bounds": None}
    one = VoICE.from_centers(model.cluster_centers_, **ask).explain(X, target="each")
    other = VoICE.from_centers(model.cluster_centers_ * factor, **ask).explain(
        X * factor, target="each"
    )
    np.testing.assert_array_equal(one.points * factor, other.points)
    np.testing.assert_array_equal(one.rho, other.rho)


@pytest.mark.parametrize("shift", [1e3, 1e6])
def test_a_shift_of_everything_shifts_the_answer(shift):
    rng = np.random.default_rng(4)
    centers, X = rng.normal(size=(4, 3)), rng.normal(size=(20, 3))
    ask = {"contraction": 0.9}
    one = VoICE.from_centers(centers, **ask).explain(X, target="each")
    other = VoICE.from_centers(centers + shift, **ask).explain(X + shift, target="each")
    np.testing.assert_allclose(one.points, other.points - shift, atol=1e-14 * shift + 1e-12)


def test_two_clusters_without_box_are_the_projection_onto_the_bisector_and_cfclust():
    for name in ("iris", "breast cancer"):
        X = data(name)
        model = model_of("KMeans", 2, X)
        cf = VoICE.from_centers(model.cluster_centers_).explain(X)
        own, other = model.cluster_centers_[cf.source], model.cluster_centers_[cf.target]
        n = other - own
        share = ((own + other) / 2 - X) * n
        closed = X + (share.sum(axis=1) / (n * n).sum(axis=1))[:, None] * n
        np.testing.assert_allclose(cf.points, closed, rtol=1e-7, atol=1e-9)
        pairs = CFCLUST(model).fit(X).explain(X)
        np.testing.assert_allclose(cf.points, pairs.points, rtol=1e-7, atol=1e-9)


def test_weighted_clusters_in_pairs_are_the_weighted_projection_onto_the_bisector():
    rng = np.random.default_rng(6)
    weights = np.array([0.6, 0.3, 0.1])
    centers, X = rng.normal(size=(2, 3)), rng.normal(size=(30, 3))
    cf = VoICE.from_centers(centers, weights=weights).explain(X)
    own, other = centers[cf.source], centers[cf.target]
    n = other - own  # in the metric w the normal of the bisector is the difference itself
    share = (weights * ((own + other) / 2 - X) * n).sum(axis=1) / (weights * n * n).sum(axis=1)
    np.testing.assert_allclose(cf.points, X + share[:, None] * n, rtol=1e-6, atol=1e-8)


# Contraction.


@pytest.mark.parametrize("alpha", [0.01, 0.5, 0.99, 1.0])
def test_answers_need_no_more_than_alpha_of_the_cell(alpha):
    X = data("iris")
    for kind in KINDS:
        voice = VoICE(model_of(kind, 4, X), contraction=alpha, bounds=None).fit(X)
        cf = voice.explain(X, target="each")
        assert cf.feasible.all()
        assert (cf.alpha == alpha).all()
        for t, mine in by_target(cf):
            assert (voice.cell(t).scores(cf.points[mine]) <= alpha + 1e-9).all()


@pytest.mark.parametrize("retain", [0.5, 0.9, 1.0])
@pytest.mark.parametrize("contract_bounds", [False, True])
def test_a_contracted_cell_retains_its_share_of_the_members_and_no_smaller_one_does(
    retain, contract_bounds
):
    X = data("wine")
    model = model_of("KMeans", 4, X)
    voice = VoICE(model, retain=retain, contract_bounds=contract_bounds).fit(X)
    labels = model.predict(X)
    for t in range(4):
        members = X[labels == t]
        region = voice.region(t)
        kept = region.contains(members, slack=1e-12) | _touches(region, members)
        assert kept.mean() >= retain
        scores = _scores(model, members, t, voice if contract_bounds else None)
        assert (scores < voice.alpha_[t] - 1e-9).mean() < retain


def _touches(region, points, by: float = 1e-12):
    """Within rows and box up to rounding."""
    inside = ((points >= region.lo - by) & (points <= region.hi + by)).all(axis=1)
    return inside & ((points - region.origin) @ region.normals.T <= region.offsets + by).all(axis=1)


def _scores(model, points, t, voice):
    """How much of the cell (and box) each point needs, from squared distances alone."""
    m = model.cluster_centers_
    own = ((points - m[t]) ** 2).sum(axis=1)
    shares = [np.zeros(len(points))]
    for j in range(len(m)):
        if j != t:
            apart = ((m[j] - m[t]) ** 2).sum()
            shares.append(1 - (((points - m[j]) ** 2).sum(axis=1) - own) / apart)
    for side in () if voice is None else (voice.lo_, voice.hi_):
        shares += list(((points - m[t]) / (side - m[t])).T)
    return np.max(shares, axis=0)


def test_less_contraction_never_costs_more():
    X = data("wine")
    model = model_of("SHARK", 4, X)
    costs = [
        VoICE(model, contraction=alpha).fit(X).explain(X[::5], target="each").cost
        for alpha in (0.3, 0.6, 0.9)
    ]
    assert (costs[0] >= costs[1] * (1 - 1e-9)).all()
    assert (costs[1] >= costs[2] * (1 - 1e-9)).all()


def test_a_margin_keeps_its_distance_from_every_rival():
    X = data("iris")
    voice = VoICE(model_of("KMeans", 4, X), contraction=1.0, margin=0.2, bounds=None).fit(X)
    cf = voice.explain(X, target="each")
    for t, mine in by_target(cf):
        assert (voice.cell(t).scores(cf.points[mine]) <= 0.8 + 1e-9).all()


# Box and rules.


def test_bounds_given_for_a_column_replace_those_of_the_data_and_are_kept_exactly():
    X = data("iris", scaled=False)
    model = model_of("KMeans", 3, X)
    voice = VoICE(model, contraction=0.9).fit(X)
    given = {0: (4.7, 5.9), 2: (None, 4.1), 3: (0.3, None)}
    cf = voice.explain(X, target="each", bounds=given)
    assert_in_target(model, cf)
    points = cf.points[cf.feasible]
    assert points[:, 0].min() >= 4.7
    assert points[:, 0].max() <= 5.9
    assert points[:, 2].max() <= 4.1
    assert points[:, 3].min() >= 0.3
    assert points[:, 1].min() >= X[:, 1].min()


@pytest.mark.parametrize("bounds", [(-1.0, 1.5), (np.linspace(-2, -1, 4), np.linspace(1, 2, 4))])
def test_bounds_for_all_columns_are_kept_exactly(bounds):
    X = data("iris")
    voice = VoICE(model_of("KMeans", 3, X), bounds=bounds).fit(X)
    cf = voice.explain(X, target="each")
    points = cf.points[cf.feasible]
    assert (points >= bounds[0]).all()
    assert (points <= bounds[1]).all()
    assert (points == bounds[0]).any() or (points == bounds[1]).any()


def test_contracted_bounds_are_never_wider_than_the_bounds():
    # The centroid lies outside the user's bounds: shrinking towards it must not leave them.
    ask = {"contraction": 0.5, "contract_bounds": True}
    voice = VoICE.from_centers([[0.0, 0.0], [20.0, 0.0]], bounds=([6, -9], [30, 9]), **ask)
    cf = voice.explain([[19.0, 1.0]], target=0)
    assert not cf.feasible[0] or cf.points[0, 0] >= 6
    open_voice = VoICE.from_centers([[0.0, 0.0], [20.0, 0.0]], **ask)
    cf = open_voice.explain([[19.0, 1.0]], target=0, bounds={0: (6, 30)})
    assert not cf.feasible[0] or cf.points[0, 0] >= 6


def test_an_immutable_column_outside_the_bounds_is_a_fact_and_stays():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], bounds=(-5.0, 5.0))
    cf = voice.explain([[0.0, 77.0]], target=1, immutable=[1])
    assert cf.feasible[0]
    assert cf.points[0, 1] == 77


def test_immutable_wins_over_bounds_for_the_same_column():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], bounds=(-5.0, 5.0))
    cf = voice.explain([[0.0, 1.0]], target=1, immutable=[1], bounds={1: (2.0, 3.0)})
    assert cf.points[0, 1] == 1


# How far it can be overdone.


@pytest.mark.parametrize("options", [{}, {"bounds": None}, {"contraction": 0.5}])
@pytest.mark.parametrize("kind", KINDS)
def test_rho_times_the_move_is_inside_and_a_little_more_is_not(kind, options):
    X = data("wine")[::4]
    voice = VoICE(model_of(kind, 4, data("wine")), **options).fit(data("wine"))
    cf = voice.explain(X, target="each", plausible=None)
    assert (cf.rho >= 1).all()
    np.testing.assert_array_equal(cf.tau, cf.rho - 1)
    for i in range(len(cf)):
        a, move = X[cf.row[i]], cf.points[i] - X[cf.row[i]]
        region = voice.region(int(cf.target[i]))
        if np.isinf(cf.rho[i]):
            assert _touches(region, (a + 1e6 * move)[None], by=1e-3)
        else:
            assert _touches(region, (a + cf.rho[i] * move)[None], by=1e-10)
            assert not _touches(region, (a + (1 + 1e-6) * cf.rho[i] * move)[None], by=1e-10)


def test_a_move_that_nothing_stops_may_go_on_for_ever():
    voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]])
    cf = voice.explain([[1.0, 5.0]], target=1)
    assert np.isinf(cf.rho[0])
    assert np.isinf(cf.tau[0])
    stopped = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], bounds=(-9.0, 9.0))
    assert stopped.explain([[1.0, 5.0]], target=1).rho[0] == pytest.approx(8.0)


def test_a_third_cluster_stops_the_move_halfway_to_it():
    voice = VoICE.from_centers([[0.0], [4.0], [8.0]])
    cf = voice.explain([[0.0]], target=1)
    assert cf.rho[0] == pytest.approx(3.0)  # from 0 to 2, and on to 6


# The estimator.


def test_the_learned_box_is_the_observed_range():
    X = data("wine", scaled=False)
    voice = VoICE(model_of("KMeans", 3, X)).fit(X)
    np.testing.assert_array_equal(voice.lo_, X.min(axis=0))
    np.testing.assert_array_equal(voice.hi_, X.max(axis=0))
    assert voice.n_features_in_ == 13


def test_predict_is_the_models_own():
    for kind in KINDS:
        X = data("wine", scaled=False)
        model = model_of(kind, 5, X)
        np.testing.assert_array_equal(VoICE(model).fit(X).predict(X), model.predict(X))


def test_predict_of_centroids_alone_is_the_nearest_ties_to_the_lower():
    voice = VoICE.from_centers([[0.0], [4.0], [4.0]])
    assert voice.predict([[1.0], [2.0], [3.0]]).tolist() == [0, 0, 1]


def test_the_region_holds_what_explain_answers():
    X = data("iris")
    voice = VoICE(model_of("SHARK", 3, X)).fit(X)
    cf = voice.explain(X, target="each")
    for t, mine in by_target(cf):
        assert _touches(voice.region(t), cf.points[mine]).all()
