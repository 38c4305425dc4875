"""A cell is the set of points that are nearest to its centroid, in the weighted metric."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from voicecf import Cell


def exact(values) -> list[Fraction]:
    return [Fraction(v) for v in np.asarray(values, float).tolist()]


def squared(x, m, w) -> Fraction:
    """Weighted squared distance without rounding."""
    return sum(
        (b * (a - c) ** 2 for a, c, b in zip(exact(x), exact(m), exact(w), strict=True)),
        Fraction(0),
    )


def grid_models(count: int, seed: int = 0):
    """Centroids, weights and points on a grid: every number of the cell is exact in floats."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k, d = int(rng.integers(2, 6)), int(rng.integers(1, 5))
        centers = rng.integers(-4, 5, size=(k, d)).astype(float)
        weights = rng.integers(0, 4, size=d) / 4.0
        yield rng, centers, weights, rng.integers(-6, 7, size=(15, d)).astype(float)


def random_models(count: int, seed: int = 1):
    rng = np.random.default_rng(seed)
    for _ in range(count):
        k, d = int(rng.integers(2, 7)), int(rng.integers(1, 7))
        centers = rng.normal(size=(k, d))
        weights = rng.exponential(size=d)
        yield rng, centers, weights / weights.sum(), 2 * rng.normal(size=(20, d))


def test_rows_hold_exactly_where_no_rival_is_nearer():
    sides = set()
    for _, centers, weights, points in grid_models(40):
        for t in range(len(centers)):
            region = Cell(centers, weights, t).region()
            for x, inside in zip(points, region.contains(points), strict=True):
                own = squared(x, centers[t], weights)
                assert inside == all(own <= squared(x, m, weights) for m in centers)
                sides.add(bool(inside))
    assert sides == {True, False}


def test_row_j_belongs_to_rival_j_and_its_slack_is_half_the_difference_of_distances():
    for _, centers, weights, points in grid_models(20):
        for t in range(len(centers)):
            cell = Cell(centers, weights, t)
            assert cell.rivals.tolist() == [j for j in range(len(centers)) if j != t]
            slacks = cell.offsets - (points - cell.center) @ cell.normals.T
            for x, slack in zip(points, slacks, strict=True):
                for j, s in zip(cell.rivals, slack, strict=True):
                    difference = squared(x, centers[j], weights) - squared(x, centers[t], weights)
                    assert Fraction(float(s)) == difference / 2


def test_the_score_is_the_least_contraction_that_still_holds_the_point():
    for _, centers, weights, points in random_models(20):
        for t in range(len(centers)):
            cell = Cell(centers, weights, t)
            for x, score in zip(points, cell.scores(points), strict=True):
                if score < 1:
                    assert cell.region(min(1.0, score + 1e-9)).contains(x, slack=1e-12)
                if score > 1e-6:
                    assert not cell.region(score * (1 - 1e-6)).contains(x)


def test_a_contracted_cell_is_the_cell_shrunk_towards_its_centroid():
    for rng, centers, weights, points in random_models(20):
        alpha = float(rng.uniform(0.05, 1.0))
        cell = Cell(centers, weights, 0)
        shrunk = cell.center + alpha * (points - cell.center)
        margin = np.abs(cell.scores(points) - 1) > 1e-9
        np.testing.assert_array_equal(
            cell.region(alpha).contains(shrunk)[margin], cell.region().contains(points)[margin]
        )


def test_scores_run_from_zero_at_the_centroid_to_one_at_the_border_and_beyond():
    for _, centers, weights, _ in random_models(10):
        cell = Cell(centers, weights, 0)
        halfway = (centers[0] + centers[1]) / 2
        scores = cell.scores([centers[0], halfway, centers[1]])
        assert scores[0] == 0
        assert scores[1] == pytest.approx(1, abs=1e-12)
        assert scores[2] == 1


def test_a_box_counts_towards_the_score():
    cell = Cell(np.array([[0.0, 0.0], [8.0, 0.0]]), np.array([0.5, 0.5]), 0)
    box = np.array([-1.0, -2.0]), np.array([np.inf, 2.0])
    points = [[1.0, 0.0], [1.0, 1.0], [-0.5, 1.5], [0.0, -2.0]]
    np.testing.assert_allclose(cell.scores(points), [0.25, 0.25, 0.0, 0.0])
    np.testing.assert_allclose(cell.scores(points, box=box), [0.25, 0.5, 0.75, 1.0])


def test_the_floor_leaves_out_rows_as_the_printed_tables_do():
    weights = np.array([1e-13, 1.0])
    cell = Cell(np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]), weights, 0)
    point = [[0.5, 0.0]]
    assert cell.scores(point)[0] == pytest.approx(0.5)
    assert cell.scores(point, floor=1e-12)[0] == 0
    assert cell.scores([[0.5, 0.25]], floor=1e-12)[0] == pytest.approx(0.25)


def test_coinciding_centroids_score_nothing():
    cell = Cell(np.zeros((2, 2)), np.array([0.5, 0.5]), 0)
    assert cell.scores([[3.0, 4.0]]).tolist() == [0.0]


def test_columns_without_weight_have_no_say():
    cell = Cell(np.array([[0.0, 0.0], [2.0, 7.0]]), np.array([1.0, 0.0]), 0)
    assert cell.region().contains([[0.5, 1e9], [1.5, 0.0]]).tolist() == [True, False]


def test_equal_weights_scale_the_rows_and_change_no_cell():
    for _, centers, _, points in random_models(10):
        d = centers.shape[1]
        one = Cell(centers, np.full(d, 1.0), 0)
        many = Cell(centers, np.full(d, 1.0 / d), 0)
        np.testing.assert_allclose(one.scores(points), many.scores(points), rtol=1e-12, atol=1e-15)
