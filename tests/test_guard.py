"""Answers keep the slack that the rounding guard asks for, whichever of its terms is large."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from voicecf.geometry.arithmetic import Arithmetic
from voicecf.geometry.cell import Cell
from voicecf.geometry.guard import Guard
from voicecf.geometry.region import Region
from voicecf.solver.projection import UnitConstraints, project
from voicecf.status import Status

DELTA = 1e-3


def guarded(seed: int, term: str):
    """Return a cell, a metric and a region in whose guard one term is large."""
    rng = np.random.default_rng(seed)
    k, d = int(rng.integers(2, 9)), int(rng.integers(1, 6))
    cell = Cell(rng.normal(size=(k, d)), rng.dirichlet(np.ones(d)), int(rng.integers(k)))
    region = cell.region(0.8, delta=DELTA, arithmetic=Arithmetic())
    lengths = np.sqrt((region.normals**2 / (cell.weights + DELTA)).sum(axis=1))
    large = rng.uniform(0.001, 0.01, size=k - 1) * lengths
    return rng, cell, replace(region, guard=replace(region.guard, **{term: large}))


@pytest.mark.parametrize("term", ["constant", "of_size", "of_square", "of_move"])
@pytest.mark.parametrize("seed", range(12))
def test_answers_keep_the_slack_that_the_guard_asks_for(seed, term):
    rng, cell, region = guarded(seed, term)
    metric, points = cell.weights + DELTA, rng.normal(size=(40, len(cell.weights))) * 3
    found = project(points, region, metric)
    hit = found.status == Status.OPTIMAL
    assert hit.any()
    for a, z in zip(points[hit], found.points[hit], strict=True):
        size, distance, move = (np.sqrt(metric @ v**2) for v in (z, z - region.origin, z - a))
        slack = region.offsets - region.normals @ (z - region.origin)
        needed = region.guard.slack(size, distance, move)
        assert (slack >= needed * (1 - 1e-9) - 1e-14).all()


def test_slack_that_a_contraction_gives_anyway_is_not_asked_for_again():
    zeros = np.zeros(2)
    guard = Guard(np.array([0.5, 2.0]), zeros + np.inf, zeros + 1.0, zeros, zeros, zeros)
    np.testing.assert_array_equal(guard.slack(3.0, 2.0, 1.0), [0.5, 0.0])


@pytest.mark.parametrize("behind", [0.0, 0.125])
@pytest.mark.parametrize("factor", [0.0, 0.125, 1.0, 8.0])
def test_a_factor_multiplies_the_slack_and_less_than_the_whole_leaves_answers_close(factor, behind):
    none, most = np.zeros(1), np.full(1, np.inf)
    guard = Guard(none + behind, most, none + 0.25, none, none, none)
    half = Region([[1.0, 0.0]], [1.0], guard=guard)
    found = project([[3.0, 5.0]], half, factor=factor)
    slack = max(2 * factor * 0.25 - behind, 0.0)
    np.testing.assert_allclose(found.points, [[1.0 - slack, 5.0]], rtol=1e-15)
    assert found.status.tolist() == [Status.OPTIMAL]
    assert found.close.tolist() == [factor < 1.0]


def test_a_region_thinner_than_its_slack_is_unresolved_and_answered_without_slack():
    none, most = np.zeros(2), np.full(2, np.inf)
    guard = Guard(none, most, none + 1e-6, none, none, none)
    strip = Region([[1.0, 0.0], [-1.0, 0.0]], [1e-7, 0.0], lo=-5.0, hi=9.0, guard=guard)
    assert project([[3.0, 5.0]], strip).status.tolist() == [Status.UNRESOLVED]
    found = project([[3.0, 5.0]], strip, factor=0.0)
    np.testing.assert_allclose(found.points, [[1e-7, 5.0]], atol=1e-15)
    assert found.status.tolist() == [Status.OPTIMAL]
    assert found.close.all()
    empty = Region([[1.0, 0.0], [-1.0, 0.0]], [-1e-3, 0.0], lo=-5.0, hi=9.0, guard=guard)
    assert project([[3.0, 5.0]], empty).status.tolist() == [Status.INFEASIBLE]


def test_scaling_constraints_scales_the_slack_that_they_need():
    _, cell, region = guarded(3, "of_size")
    unit = UnitConstraints.of(region, cell.weights + DELTA)
    sizes = 2.0, 1.0, 0.5
    np.testing.assert_allclose(
        unit.guard.slack(*sizes) * unit.lengths, region.guard.slack(*sizes), rtol=1e-12
    )


def test_parts_are_joined_and_left_out():
    guard, other = Guard(*np.ones((6, 3))), Guard(*np.full((6, 1), 2.0))
    assert guard.followed_by(other).constant.tolist() == [1, 1, 1, 2]
    assert guard.followed_by(other).of_move.tolist() == [1, 1, 1, 2]
    assert guard.only_where([True, False, True]).of_size.tolist() == [1, 0, 1]
