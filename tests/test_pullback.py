"""A region seen through an affine map is the same region, and its guard is never smaller."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.cell import Cell
from voicecf.geometry.pullback import (
    Metrics,
    Mixing,
    origins,
    pulled_back,
    with_round_trip_guard,
)


def problem(seed: int, p: int, d: int):
    rng = np.random.default_rng(seed)
    mixing = Mixing(rng.normal(size=(p, d)), rng.normal(size=p))
    centers, weights = rng.normal(size=(4, p)), rng.dirichlet(np.ones(p))
    cell = Cell(centers, weights, int(rng.integers(4)))
    region = cell.region(0.9, delta=1e-9, arithmetic=Arithmetic("expanded"))
    return rng, mixing, cell, region


SHAPES = [(2, 5), (5, 5), (6, 3)]


def pull(mixing, cell, region, middle):
    d = mixing.matrix.shape[1]
    origin = origins(mixing, cell.centers, middle)[cell.target]
    metrics = Metrics(cell.weights + 1e-9, np.full(d, 1 / d) + 1e-9)
    return pulled_back(region, mixing, origin, metrics, Arithmetic("expanded"))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("p", "d"), SHAPES)
def test_a_point_is_in_the_pulled_back_region_if_its_image_is_in_the_region(seed, p, d):
    rng, mixing, cell, region = problem(seed, p, d)
    pulled = pull(mixing, cell, region, rng.normal(size=d))
    points = rng.normal(size=(500, d))
    slack = region.offsets - (mixing(points) - region.origin) @ region.normals.T
    decided = np.abs(slack).min(axis=1) > 1e-9
    assert decided.mean() > 0.9
    np.testing.assert_array_equal(
        pulled.contains(points)[decided], (slack >= 0).all(axis=1)[decided]
    )


@pytest.mark.parametrize(("p", "d"), SHAPES)
def test_the_origin_is_seen_as_close_to_the_centroid_as_the_map_allows(p, d):
    rng, mixing, cell, _ = problem(0, p, d)
    middle = rng.normal(size=d)
    seen = mixing(origins(mixing, cell.centers, middle))
    for t, center in enumerate(cell.centers):
        closest, *_ = np.linalg.lstsq(mixing.matrix, center - mixing.shift, rcond=None)
        best = np.linalg.norm(mixing(closest[None])[0] - center)
        assert np.linalg.norm(seen[t] - center) <= best + 1e-9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("p", "d"), SHAPES)
def test_the_guard_asks_for_no_less_than_the_guard_of_what_the_model_sees(seed, p, d):
    rng, mixing, cell, region = problem(seed, p, d)
    pulled = pull(mixing, cell, region, rng.normal(size=d))
    seen, metric = cell.weights + 1e-9, np.full(d, 1 / d) + 1e-9
    for z in rng.normal(size=(50, d)) * 10:
        x = mixing(z[None])[0]
        sizes = np.sqrt(seen @ x**2), np.sqrt(seen @ (x - region.origin) ** 2), 0.0
        pulled_sizes = np.sqrt(metric @ z**2), np.sqrt(metric @ (z - pulled.origin) ** 2), 0.0
        bare = replace(region.guard, behind=np.zeros(3))
        pulled_bare = replace(pulled.guard, behind=np.zeros(3))
        assert (pulled_bare.slack(*pulled_sizes) >= bare.slack(*sizes)).all()


def test_the_round_trip_guard_is_what_each_coordinate_may_lose():
    _, _, _, region = problem(0, 3, 3)
    round_trip_error = np.array([1e-9, 0.0, 1e-6])
    guarded = with_round_trip_guard(region, round_trip_error)
    np.testing.assert_allclose(
        guarded.guard.constant - region.guard.constant, np.abs(region.normals) @ round_trip_error
    )
    np.testing.assert_array_equal(guarded.offsets, region.offsets)
