"""Projections, judged by their certificates, by DAQP and HiGHS, and by exact arithmetic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import judges
import sweep
from problems import problem
from voicecf._core import FEW_ROWS
from voicecf.geometry.cell import Cell
from voicecf.geometry.region import Region
from voicecf.solver.projection import Prefixes, Status, project

SEED = 2026


def test_no_answer_is_refuted_by_its_certificate_or_by_other_solvers():
    report = sweep.sweep(range(1500), SEED, solver=sweep.kernel)
    assert not report.failures, "\n".join(map(sweep.described, report.failures))


# Shrunk from failures: family, seed, index.
ONCE_WRONG = {
    "opposite rows and a third that only blurs the proof": (0, 88031),
    "on a vertex of the box": (0, 80452),
    "a single point": (1, 6139),
    "a vertex at the origin": (0, 63312),
    "nearly opposite rows": (0, 491),
    "a flat region": (0, 533),
    "columns that cost next to nothing": (0, 698),
    "nearly opposite rows on a cheap column": (21, 31126),
    "a fixed point outside its box, on one row and beyond another": (11, 13747),
    "a multiplier that is rounding": (31, 14887),
    "a multiplier that is rounding, far below the others": (5, 34819),
    "a coordinate that stays, but for the last digit": (11, 87919),
    "a coordinate that stays, with duplicate rows": (11, 94269),
    "multipliers of a polished answer, with a column that costs next to nothing": (61, 28891),
    "multipliers of a polished vertex": (61, 64269),
    "multipliers of a polished answer, coinciding centroids": (61, 73332),
    "multipliers of a polished answer, far from its origin": (61, 76653),
    "multipliers of a polished answer, weights far apart": (61, 82292),
    "rows that leave a small coordinate of a long step no choice": (71, 53371),
    "a wedge that is empty by less than a flat region may be off": (2026, 7878),
    "a wedge as thin as 1e-12, nearest at its tip": (4001, 764),
    "one row, beyond the box by 2e-13 of its terms": (7002, 14033),
    "a small coordinate of a long step, on a flat region": (4003, 29026),
    "opposite rows through the origin, beside a third": (5001, 183402),
    "a point exactly on two rows, in columns of different weight": (2026, 246),
    "a point exactly on a row, at zero": (2026, 594),
    "a point exactly on a vertex, in other units": (2026, 1371),
}


@pytest.mark.parametrize("case", ONCE_WRONG)
def test_what_was_once_wrong_is_right(case):
    seed, index = ONCE_WRONG[case]
    report = sweep.sweep([index], seed, solver=sweep.kernel)
    assert not report.failures, "\n".join(map(sweep.described, report.failures))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 3), st.integers(1, 4))
def test_small_integer_problems_agree_with_exact_arithmetic(seed, d, m):
    rng = np.random.default_rng(seed)
    rows, offsets = rng.integers(-3, 4, (m, d)), rng.integers(-3, 4, m)
    lo = rng.integers(-3, 1, d)
    hi = lo + rng.integers(0, 4, d)
    point = rng.integers(-5, 6, (1, d)).astype(float)
    found = project(point, Region(rows, offsets, lo=lo, hi=hi))
    task = judges_problem(rows, offsets, lo, hi, point)
    exact = judges.exact_feasible(task, 0)
    assert (found.status[0] == Status.OPTIMAL) == exact
    if exact:
        best = np.array(judges.brute_force_projection(task, 0)[0], dtype=float)
        np.testing.assert_allclose(found.points[0], best, atol=1e-12)


def judges_problem(rows, offsets, lo, hi, point):
    """Make a problem of the judges' own kind out of integers."""
    example = problem(SEED, 0)
    return type(example)(
        **{
            **{name: getattr(example, name) for name in example.__dataclass_fields__},
            "points": point,
            "G": rows.astype(float),
            "h": offsets.astype(float),
            "lo": lo.astype(float),
            "hi": hi.astype(float),
            "origin": np.zeros(rows.shape[1]),
            "q": np.ones(rows.shape[1]),
        }
    )


@pytest.mark.parametrize("m", [FEW_ROWS, FEW_ROWS + 1, 400])
def test_few_rows_and_many_rows_are_answered_alike(m):
    # Rows that hold everywhere change the way a problem is solved, not its answer.
    rng = np.random.default_rng(m)
    rows, offsets = rng.normal(size=(12, 8)), rng.uniform(0.1, 1.0, 12)
    points = 3 * rng.normal(size=(200, 8))
    idle = rng.normal(size=(m - 12, 8))
    few = project(points, Region(rows, offsets, lo=-2.0, hi=2.0))
    many = project(
        points,
        Region(np.vstack([rows, idle]), np.append(offsets, np.full(m - 12, 1e3)), lo=-2.0, hi=2.0),
    )
    np.testing.assert_array_equal(few.status, many.status)
    found = few.status == Status.OPTIMAL
    assert found.any()
    np.testing.assert_allclose(many.points[found], few.points[found], atol=1e-12)
    np.testing.assert_allclose(many.rho[found], few.rho[found], rtol=1e-9)


def test_a_batch_equals_its_rows_bit_for_bit_with_many_rivals():
    rng = np.random.default_rng(5)
    region = Region(rng.normal(size=(300, 10)), rng.uniform(0.5, 2.0, 300), lo=-3.0, hi=3.0)
    points = 2 * rng.normal(size=(60, 10))
    whole = project(points, region)
    for i, point in enumerate(points):
        alone = project(point[None], region)
        np.testing.assert_array_equal(alone.points[0], whole.points[i])
        np.testing.assert_array_equal(alone.rho[0], whole.rho[i])


def test_a_row_that_a_fixed_point_just_meets_is_no_proof():
    # The point is far outside its box, and the box is one point on the row: feasible.
    found = project(
        [[0.0, -48.0, 0.0]],
        Region([[-0.125, 0.0, 2.0]], [0.0], lo=[-48, -16, -3], hi=[-48, -16, -3]),
        [0.0039, 0.0008, 2.17],
    )
    assert found.status[0] == Status.OPTIMAL
    np.testing.assert_array_equal(found.points, [[-48, -16, -3]])


@pytest.mark.parametrize(
    ("seed", "index"), [(51, 3165), (51, 29957), (51, 60593), (51, 53326), (3, 928)]
)
def test_a_long_step_to_a_single_point_or_vertex_ends_on_it(seed, index):
    task = problem(seed, index)
    region = Region(normals=task.G, offsets=task.h, lo=task.lo, hi=task.hi, origin=task.origin)
    found = project(task.points, region, metric=task.q)
    for i in range(len(task.points)):
        kkt = judges.optimality(task, i, found.points[i], found.multipliers[i])
        assert kkt <= 1e-10


# Only some coordinates may change.


def limited(seed: int, collapsed: bool):
    """A cell in a box, points in it and around it, and how many coordinates each may change."""
    rng = np.random.default_rng(seed)
    d, k, n = int(rng.integers(2, 12)), int(rng.integers(2, 16)), 40
    centers, weights = rng.normal(size=(k, d)), rng.dirichlet(np.ones(d))
    if collapsed:
        weights = np.r_[1.0, np.full(d - 1, 1e-9)]
    cell, side = Cell(centers, weights / weights.sum(), 0), np.full(d, 1.5)
    region = cell.region(0.9).within(-side, side)
    points, ranks = rng.normal(size=(n, d)), rng.permutation(d)
    return region, weights + 1e-9, points, Prefixes(ranks, rng.integers(0, d + 1, size=n))


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_a_coordinate_that_may_not_change_is_as_one_whose_box_is_its_value(seed, collapsed):
    region, metric, points, prefixes = limited(seed, collapsed)
    found = project(points, region, metric, prefixes=prefixes)
    keeps = prefixes.ranks >= prefixes.counts[:, None]
    boxes = (np.where(keeps, points, side) for side in (region.lo, region.hi))
    fixed = region.within(*boxes)
    task = judges_problem(fixed.normals, fixed.offsets, fixed.lo, fixed.hi, points)
    task = replace(task, q=metric, origin=fixed.origin)
    answer = judges.Answer(
        found.points, found.multipliers, found.gap, [Status(s).name.lower() for s in found.status]
    )
    task = replace(task, truth=(None,) * len(points))
    for verdict in judges.verdicts(task, answer, ("daqp", "highs")):
        assert verdict.outcome == "agree", verdict
    keeps &= (found.status == Status.OPTIMAL)[:, None]
    np.testing.assert_array_equal(found.points[keeps], points[keeps])


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_limited_points_have_the_same_bits_alone_and_in_another_order(seed, collapsed):
    region, metric, points, prefixes = limited(seed, collapsed)
    together = project(points, region, metric, prefixes=prefixes)
    order = np.random.default_rng(seed).permutation(len(points))
    shuffled = project(points, region, metric, rows=order, prefixes=prefixes.of(order))
    np.testing.assert_array_equal(shuffled.points, together.points[order])
    for i in range(len(points)):
        one = np.array([i])
        alone = project(points, region, metric, rows=one, prefixes=prefixes.of(one))
        for name in ("points", "status", "gap", "rho", "multipliers"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(together, name)[i])
