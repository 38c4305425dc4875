"""Neighbours are the clusters whose cells share a facet, and only their rows matter."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.spatial import Delaunay, Voronoi
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from voicecf import Status, VoICE
from voicecf.errors import TargetError
from voicecf.geometry.region import Region
from voicecf.solver import neighbors
from voicecf.solver.projection import project


def joined(pairs, k: int) -> list[list[int]]:
    """Neighbours of each point from pairs of points."""
    found: list[set[int]] = [set() for _ in range(k)]
    for a, b in np.asarray(pairs).tolist():
        found[a].add(b)
        found[b].add(a)
    return [sorted(each) for each in found]


def edges(simplices) -> list[tuple[int, int]]:
    corners = range(simplices.shape[1])
    return [(s[i], s[j]) for s in simplices.tolist() for i, j in product(corners, corners) if i < j]


def by_programs(centers, weights, target: int) -> list[int]:
    """Rivals whose row the other rows do not imply: a linear program each, over all of them."""
    steps = np.sqrt(weights) * (centers - centers[target])
    half = 0.5 * (steps**2).sum(axis=1)
    found = []
    for r in np.flatnonzero(half > 0):
        rows, most = steps / half[:, None].clip(1e-300), np.ones(len(half))
        rows[target], most[r] = 0.0, 2.0
        best = linprog(-rows[r], rows, most, bounds=(None, None), method="highs")
        assert best.status == 0
        if -best.fun > 1 + 1e-7:
            found.append(int(r))
    return found


def all_neighbors(voice: VoICE) -> list[list[int]]:
    return [voice.neighbors(t).tolist() for t in range(voice.partition_.n_clusters)]


@pytest.mark.parametrize("k", [3, 4, 30, 200])
def test_in_the_plane_neighbors_are_the_ridges_of_the_voronoi_diagram(k):
    centers = np.random.default_rng(k).normal(size=(k, 2))
    ridges = Voronoi(centers).ridge_points
    assert all_neighbors(VoICE.from_centers(centers)) == joined(ridges, k)


@pytest.mark.parametrize(("d", "k"), [(2, 120), (3, 120), (4, 40)])
def test_neighbors_are_the_edges_of_the_delaunay_triangulation(d, k):
    centers = np.random.default_rng(d).normal(size=(k, d))
    wanted = joined(edges(Delaunay(centers).simplices), k)
    assert all_neighbors(VoICE.from_centers(centers)) == wanted


@pytest.mark.parametrize(("d", "k"), [(1, 12), (2, 40), (3, 25), (5, 40), (6, 40), (10, 30)])
def test_neighbors_are_those_that_linear_programs_find_with_weights(d, k):
    rng = np.random.default_rng(10 * d + k)
    centers, weights = rng.normal(size=(k, d)), rng.exponential(size=d) ** 2
    voice = VoICE.from_centers(centers, weights=weights)
    for t in range(0, k, 3):
        wanted = by_programs(centers, voice.partition_.weights, t)
        assert voice.neighbors(t).tolist() == wanted


def test_centroids_in_clumps_have_the_neighbors_that_linear_programs_find():
    rng = np.random.default_rng(5)
    clumps = rng.normal(size=(4, 3))
    centers = clumps[rng.integers(4, size=60)] + 10.0 ** -rng.integers(1, 4, (60, 1)) * rng.normal(
        size=(60, 3)
    )
    voice = VoICE.from_centers(centers)
    for t in range(0, 60, 4):
        assert voice.neighbors(t).tolist() == by_programs(centers, voice.partition_.weights, t)


def test_being_a_neighbor_is_mutual_in_many_dimensions():
    centers = np.random.default_rng(2).normal(size=(60, 12))
    found = [set(each) for each in all_neighbors(VoICE.from_centers(centers))]
    assert all((b in found[a]) == (a in found[b]) for a in range(60) for b in range(60))


def test_diagonal_cells_of_a_grid_touch_and_are_no_neighbors():
    places = np.array(list(product(range(4), repeat=3)))
    voice = VoICE.from_centers(places.astype(float) * [1.0, 0.1, 7.0] + [0.3, 1e3, -5.0])
    for t, here in enumerate(places):
        beside = np.flatnonzero(np.abs(places - here).sum(axis=1) == 1)
        assert voice.neighbors(t).tolist() == beside.tolist()


def test_centroids_on_a_circle_with_one_amid_are_all_its_neighbors():
    turn = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    ring = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    voice = VoICE.from_centers(np.vstack([ring, np.zeros((1, 2))]))
    assert voice.neighbors(12).tolist() == list(range(12))
    assert voice.neighbors(3).tolist() == [2, 4, 12]


def test_of_coinciding_centroids_only_the_first_has_neighbors_and_is_one():
    voice = VoICE.from_centers([[0.0, 0], [2, 0], [2, 0], [4, 0], [0, 0]])
    assert all_neighbors(voice) == [[1], [0, 3], [], [1], []]


def test_columns_without_weight_do_not_count():
    rng = np.random.default_rng(3)
    centers = rng.normal(size=(30, 4))
    flat = VoICE.from_centers(centers[:, [0, 2]], weights=[1, 3])
    voice = VoICE.from_centers(centers, weights=[1, 0, 3, 0])
    assert all_neighbors(voice) == all_neighbors(flat)
    same = VoICE.from_centers([[0.0, 1], [0, 2], [5, 1]], weights=[1, 0])
    assert all_neighbors(same) == [[2], [], [0]]


def test_two_clusters_are_neighbors():
    assert all_neighbors(VoICE.from_centers([[0.0, 0.0], [1.0, 1.0]])) == [[1], [0]]


def test_behind_a_pca_cells_are_those_that_the_model_sees():
    data = np.random.default_rng(4).normal(size=(600, 5)) * [3, 2, 1, 1, 1]
    pipeline = make_pipeline(StandardScaler(), PCA(2), KMeans(25, n_init=1, random_state=0))
    voice = VoICE(pipeline.fit(data)).fit(data)
    assert all_neighbors(voice) == joined(Voronoi(pipeline[-1].cluster_centers_).ridge_points, 25)


@pytest.mark.parametrize("factor", [1e-120, 1e-6, 1e9])
def test_units_do_not_matter(factor):
    centers = np.random.default_rng(6).normal(size=(40, 3))
    expected = all_neighbors(VoICE.from_centers(centers))
    assert all_neighbors(VoICE.from_centers(centers * factor)) == expected


def test_an_unknown_target_is_refused():
    with pytest.raises(TargetError):
        VoICE.from_centers([[0.0], [1.0]]).neighbors(2)


def test_what_is_returned_is_the_callers_own():
    voice = VoICE.from_centers([[0.0], [1.0], [2.0]])
    voice.neighbors(0)[:] = 7
    assert voice.neighbors(0).tolist() == [1]


def many(seed: int, d: int = 3, k: int = 600):
    rng = np.random.default_rng(seed)
    return rng.uniform(size=(k, d)), rng.uniform(-0.2, 1.2, size=(80, d))


def onto_neighbors(voice, points, target: int):
    """Project onto the rows of what surrounds a cell, and no others."""
    around = neighbors.neighborhood(voice.cell(target)).rivals
    rows = np.searchsorted(voice.cell(target).rivals, around)
    region = voice.region(target)
    few = Region(region.normals[rows], region.offsets[rows], region.lo, region.hi, region.origin)
    return project(points, few, voice.weights_ + voice.delta)


@pytest.mark.parametrize("box", [(-0.5, 1.5), (0.2, 0.6)])
@pytest.mark.parametrize("contraction", [1.0, 0.7])
def test_neighbors_alone_give_the_answers_of_all_rows(box, contraction):
    centers, points = many(1)
    voice = VoICE.from_centers(centers, contraction=contraction, bounds=box)
    for target in (0, 7):
        every, few = voice.explain(points, target=target), onto_neighbors(voice, points, target)
        away = every.status != Status.ALREADY
        assert (every.status == few.status)[away].all()
        assert set(every.status.tolist()) <= {Status.OPTIMAL, Status.INFEASIBLE, Status.ALREADY}
        np.testing.assert_allclose(every.points[away], few.points[away], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(every.rho[away], few.rho[away], rtol=1e-9)
        optimal = every.status == Status.OPTIMAL
        rivals = voice.cell(target).rivals
        others = np.setdiff1d(rivals, neighbors.neighborhood(voice.cell(target)).rivals)
        assert every.multipliers.shape == (80, 600)
        assert not every.multipliers[np.ix_(optimal, others)].any()


def test_rows_that_only_touch_a_cell_of_a_grid_are_looked_at_too():
    centers = np.array(list(product(range(9), repeat=3)), dtype=float)
    points = np.random.default_rng(7).uniform(-1, 9, size=(60, 3)).round(1)
    points[:20] = 8.0 * (points[:20] > 4)  # straight for the corners, where eight cells meet
    voice = VoICE.from_centers(centers)
    target = 4 * 81 + 4 * 9 + 4
    every, few = voice.explain(points, target=target), onto_neighbors(voice, points, target)
    assert (voice.predict(every.points) == target).all()
    np.testing.assert_allclose(few.points, every.points, atol=1e-12)


def test_answers_of_a_model_with_many_clusters_are_in_their_target():
    data = np.random.default_rng(0).normal(size=(3000, 2))
    for dtype in (np.float64, np.float32):
        model = KMeans(520, n_init=1, max_iter=5, random_state=0).fit(data.astype(dtype))
        voice = VoICE(model).fit(data)
        for target in (0, 100, 519):
            cf = voice.explain(data[:200], target=target)
            assert cf.feasible.all()
            assert (model.predict(cf.points.astype(dtype)) == target).all()


def test_answers_do_not_depend_on_the_batch():
    centers, points = many(2)
    together = VoICE.from_centers(centers).explain(points, target=np.int64(5))
    alone = VoICE.from_centers(centers)
    for i in range(0, 80, 9):
        one = alone.explain(points[i : i + 1], target=5)
        assert one.points.tobytes() == together.points[i : i + 1].tobytes()


def test_behind_a_pca_answers_are_those_of_neighbors():
    data = np.random.default_rng(8).normal(size=(2500, 4)) * [3, 2, 1, 1]
    pipeline = make_pipeline(PCA(2), KMeans(510, n_init=1, max_iter=5, random_state=0)).fit(data)
    voice = VoICE(pipeline).fit(data)
    every, few = (
        voice.explain(data[:60], target=11, plausible=None),
        onto_neighbors(voice, data[:60], 11),
    )
    assert (pipeline.predict(every.points) == 11).all()
    away = every.status != Status.ALREADY
    cost = (voice.weights_ * (few.points - data[:60]) ** 2).sum(axis=1)
    np.testing.assert_allclose(every.cost[away], cost[away], rtol=1e-9)


def test_a_cluster_that_coincides_with_an_earlier_one_stays_out_of_reach():
    centers, points = many(3)
    centers[9] = centers[4]
    voice = VoICE.from_centers(centers)
    assert (voice.explain(points, target=9).status == Status.INFEASIBLE).all()
    assert voice.explain(points, target=4).feasible.all()


def test_weights_of_very_different_size_do_not_keep_the_search_going_for_ever():
    centers = np.random.default_rng(11).normal(size=(6, 3)) * 3
    voice = VoICE.from_centers(centers, weights=[1e9, 1, 1e-9])
    # The first column all but decides alone: the neighbours along it are among them.
    order = np.argsort(centers[:, 0])
    for place, target in enumerate(order):
        beside = {int(order[p]) for p in (place - 1, place + 1) if 0 <= p < len(order)}
        assert beside <= set(voice.neighbors(int(target)).tolist())
