"""All cells at once: the answers of each cell by itself, judged by the conditions and the model."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from voicecf import SHARK, Status, VoICE
from voicecf.solver.projection import Projection, project, project_into_cells


def crowded(k: int, d: int, seed: int = 0, scale: float = 1.0, **options):
    """Many centroids, a box that binds for some rows, rows from all over, a target for each."""
    rng = np.random.default_rng(seed)
    centers = scale * rng.normal(size=(k, d))
    X = centers[rng.integers(k, size=400)] + 0.7 * scale * rng.normal(size=(400, d))
    weights = options.pop("weights", None)
    bounds = options.pop("bounds", (X.min(axis=0) + 0.2 * scale, X.max(axis=0) - 0.2 * scale))
    voice = VoICE.from_centers(centers, weights=weights, bounds=bounds, **options)
    X = X if bounds is None else np.clip(X, *bounds)
    return voice, X, rng.integers(k, size=400)


def all_at_once(voice: VoICE, X: np.ndarray, targets: np.ndarray) -> Projection:
    """Project all rows in one call, rows in their target, too."""
    return project_into_cells(
        X, np.arange(len(X)), targets, voice.learned_.bounds.box, voice.learned_.cells
    )


def cell_by_cell(voice: VoICE, X: np.ndarray, targets: np.ndarray) -> Projection:
    """Each row by itself, on the rows of its own cell."""
    found = Projection.empty(*X.shape)
    for t in np.unique(targets):
        rows = np.flatnonzero(targets == t)
        region, unit = voice.learned_.prepared(int(t))
        found.put(rows, project(X, region, rows=rows, unit=unit, certify=False))
    return found


CASES = {
    "few dimensions": {"k": 60, "d": 2},
    "one dimension": {"k": 50, "d": 1},
    "many dimensions": {"k": 90, "d": 120},
    "contracted": {"k": 200, "d": 6, "contraction": 0.8},
    "a grain": {"k": 64, "d": 5, "scale": 1e-12},
    "a galaxy": {"k": 65, "d": 5, "scale": 1e12},
    "no box": {"k": 128, "d": 9, "bounds": None},
    "weights far apart": {"k": 80, "d": 6, "weights": 10.0 ** -np.arange(0, 18, 3), "bounds": None},
    "weights of zero": {"k": 80, "d": 6, "weights": np.array([1, 0, 2, 0, 1, 0])},
}


@pytest.mark.parametrize("name", CASES)
def test_all_cells_at_once_are_answered_as_each_by_itself(name):
    voice, X, targets = crowded(**CASES[name])
    found, judge = all_at_once(voice, X, targets), cell_by_cell(voice, X, targets)
    sure = found.status == Status.OPTIMAL
    assert sure.mean() > 0.3
    assert (judge.status[sure] == Status.OPTIMAL).all()
    metric, ours, theirs = voice.weights_ + voice.delta, found.points[sure], judge.points[sure]
    far = np.sqrt((metric * (theirs - X[sure]) ** 2).sum(axis=1))
    apart = np.sqrt((metric * (ours - theirs) ** 2).sum(axis=1))
    size = np.sqrt((metric * theirs**2).sum(axis=1))
    assert (apart <= 1e-9 * far + 1e-12 * size).all()
    np.testing.assert_allclose(found.rho[sure], judge.rho[sure], rtol=1e-7)
    assert (np.abs(found.gap[sure]) <= 1e-9 * far**2 / 2).all()


@pytest.mark.parametrize("name", CASES)
def test_all_answers_land_where_they_are_meant_to_and_are_certified(name):
    voice, X, targets = crowded(**CASES[name])
    cf = voice.explain(X, targets)
    np.testing.assert_array_equal(voice.predict(cf.points[cf.feasible]), targets[cf.feasible])
    np.testing.assert_array_equal(cf.source, voice.predict(X))
    np.testing.assert_array_equal(cf.status == Status.ALREADY, cf.source == targets)
    away = cf.feasible & (cf.status != Status.ALREADY)
    assert (np.abs(cf.gap[away]) <= 1e-9).all()
    assert away.mean() > 0.3


@pytest.mark.parametrize("model", [KMeans(80, n_init=1, random_state=0), SHARK(60, random_state=0)])
def test_fitted_models_agree_with_every_answer(model):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1500, 4)) * [1.0, 10.0, 0.1, 3.0] + 1000.0
    voice = VoICE(model).fit(X)
    targets = rng.integers(model.n_clusters, size=len(X))
    cf = voice.explain(X, targets)
    assert cf.feasible.all()
    np.testing.assert_array_equal(voice.model_.predict(cf.points), targets)
    np.testing.assert_array_equal(cf.source, voice.model_.predict(X))


def test_the_cheapest_target_is_the_cheapest_of_all_pairs():
    voice, X, _ = crowded(55, 3)
    near, each = voice.explain(X[:60]), voice.explain(X[:60], target="each")
    energy = ((each.points - X[each.row]) ** 2).sum(axis=1)
    for i in range(60):
        costs = np.where(each.feasible & (each.row == i), energy, np.inf)
        best = ((near.points[i] - X[i]) ** 2).sum()
        assert best == pytest.approx(costs.min(), rel=1e-12)


def test_rows_in_their_target_go_deeper_if_asked_to():
    voice, X, _ = crowded(60, 4, contraction=0.5)
    own = voice.predict(X)
    cf = voice.explain(X, own, deepen=True)
    moved = cf.feasible & (cf.points != X).any(axis=1)
    assert moved.any()
    for t in np.unique(own[moved]):
        inside = voice.cell(int(t)).scores(cf.points[moved & (own == t)])
        assert (inside <= 0.5 + 1e-9).all()


def test_clusters_in_one_place_are_answered_each_by_itself():
    rng = np.random.default_rng(0)
    centers = rng.normal(size=(60, 3))
    assert VoICE.from_centers(centers).learned_.cells is not None
    assert VoICE.from_centers(centers[:2]).learned_.cells is not None
    centers[7] = centers[31]
    voice = VoICE.from_centers(centers)
    assert voice.learned_.cells is None
    cf = voice.explain(centers[[3, 3]], target=[7, 31])
    assert cf.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
    flat = rng.normal(size=(60, 3)) * [1.0, 1.0, 0.0]
    assert VoICE.from_centers(flat, weights=[0.0, 0.0, 1.0]).learned_.cells is None


def test_points_out_of_reach_of_single_precision_are_answered_all_the_same():
    rng = np.random.default_rng(0)
    voice = VoICE.from_centers(rng.normal(size=(70, 3)))
    X = 1e16 * rng.normal(size=(20, 3))
    cf = voice.explain(X, np.arange(20))
    np.testing.assert_array_equal(voice.predict(cf.points[cf.feasible]), cf.target[cf.feasible])
