"""A region is rows and a box, and says exactly which points it holds."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from fractions import Fraction

import numpy as np
import pytest

from voicecf import Region, Status, project
from voicecf.geometry.arrays import product

inf, nan = np.inf, np.nan


def holds_exactly(region: Region, x: np.ndarray) -> bool:
    """Decide in rational arithmetic whether x satisfies the rows and the box."""
    step = [
        Fraction(v) - Fraction(o) for v, o in zip(x.tolist(), region.origin.tolist(), strict=True)
    ]
    rows = [
        sum(Fraction(g) * s for g, s in zip(row, step, strict=True)) <= Fraction(h)
        for row, h in zip(region.normals.tolist(), region.offsets.tolist(), strict=True)
    ]
    return all(rows) and bool((region.lo <= x).all() and (x <= region.hi).all())


def test_it_contains_what_exact_arithmetic_says_it_contains():
    rng = np.random.default_rng(0)
    said = []
    for _ in range(40):
        d, m = rng.integers(1, 5, size=2)
        # Integers: floating point makes no error, so the answer must be exact, borders included.
        region = Region(
            rng.integers(-3, 4, size=(m, d)),
            rng.integers(-2, 5, size=m),
            lo=-3.0,
            hi=3.0,
            origin=rng.integers(-2, 3, size=d),
        )
        points = rng.integers(-4, 5, size=(12, d)).astype(float)
        expected = [holds_exactly(region, x) for x in points]
        np.testing.assert_array_equal(region.contains(points), expected)
        said += expected
    assert 0 < sum(said) < len(said)


def test_the_border_belongs_to_it_and_slack_loosens_the_rows_alone():
    region = Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0)
    points = [[0.5, 0.0], [0.5, 1.0], [0.6, 0.5], [0.5, 1.1]]
    assert region.contains(points).tolist() == [True, True, False, False]
    assert region.contains(points, slack=0.2).tolist() == [True, True, True, False]


def test_a_single_point_is_a_batch_of_one():
    assert Region([[1.0, 0.0]], [0.5]).contains([0.2, 9.0]).tolist() == [True]


def test_without_a_box_nothing_but_the_rows_counts():
    assert Region([[1.0, 0.0]], [0.5]).contains([[-1e300, 1e300], [0.6, 0.0]]).tolist() == [
        True,
        False,
    ]


def test_without_rows_nothing_but_the_box_counts():
    region = Region(np.zeros((0, 2)), np.zeros(0), lo=0.0, hi=[1.0, 2.0])
    assert region.contains([[1.0, 2.0], [1.5, 0.0]]).tolist() == [True, False]
    np.testing.assert_array_equal(project([[7.0, -7.0]], region).points, [[1.0, 0.0]])


def test_rows_are_measured_from_the_origin():
    far = 2.0**40
    region = Region([[1.0]], [0.5], origin=[far])
    assert region.contains([[far + 0.5], [far + 0.75]]).tolist() == [True, False]


def test_within_changes_the_box_and_nothing_else():
    region = Region([[1.0, 2.0]], [3.0], lo=0.0, hi=1.0, origin=[5.0, 6.0])
    other = region.within([-1.0, -2.0], inf)
    for name in ("normals", "offsets", "origin"):
        np.testing.assert_array_equal(getattr(other, name), getattr(region, name))
    assert (other.lo.tolist(), other.hi.tolist()) == ([-1.0, -2.0], [inf, inf])
    assert (region.lo.tolist(), region.hi.tolist()) == ([0.0, 0.0], [1.0, 1.0])


def test_a_box_a_point_is_matched_point_by_point():
    region = Region([[1.0]], [9.0], lo=[[0.0], [5.0]], hi=[[1.0], [6.0]])
    assert region.contains([[0.5], [0.5]]).tolist() == [True, False]
    np.testing.assert_array_equal(project([[7.0], [7.0]], region).points, [[1.0], [6.0]])


def test_an_empty_box_and_an_impossible_row_are_infeasible_not_errors():
    upside_down = Region([[1.0]], [0.5], lo=1.0, hi=0.0)
    impossible = Region([[0.0]], [-1.0])
    for region in (upside_down, impossible):
        assert project([[0.0]], region).status.tolist() == [Status.INFEASIBLE]
        assert not region.contains([[0.5]]).any()


def test_it_is_a_value():
    region = Region([[1.0]], [0.5])
    assert region.n_features == 1
    with pytest.raises(FrozenInstanceError):
        region.offsets = np.zeros(1)


@pytest.mark.parametrize("part", ["normals", "offsets", "lo", "hi", "origin"])
def test_nan_is_refused_by_name(part):
    given = {"normals": [[1.0, 2.0]], "offsets": [0.0]} | {
        part: [[nan, 0.0]] if part == "normals" else nan
    }
    with pytest.raises(ValueError, match=part):
        Region(**given)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"offsets": [1.0, 2.0]}, "offsets"),
        ({"lo": [0.0, 0.0, 0.0]}, "lo"),
        ({"hi": np.zeros((4, 3))}, "hi"),
        ({"origin": [0.0, 0.0, 0.0]}, "origin"),
        ({"normals": [["a", "b"]]}, "normals"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused_by_name(given, words):
    with pytest.raises(ValueError, match=rf"\b{words}\b"):
        Region(**{"normals": [[1.0, 2.0]], "offsets": [0.0]} | given)


def test_an_offset_of_minus_infinity_holds_no_point():
    assert project([[2.0]], Region([[1.0]], [-inf])).status[0] != Status.OPTIMAL


def test_a_bound_at_infinity_holds_no_point():
    region = Region([[1.0]], [0.5], lo=inf, hi=inf)
    assert project([[2.0]], region).status[0] != Status.OPTIMAL


@pytest.mark.parametrize("bad", [nan, inf])
def test_a_point_that_is_no_number_is_refused_or_unanswered(bad):
    try:
        found = project([[bad, 0.0]], Region([[1.0, 0.0]], [0.5], lo=0.0, hi=1.0))
    except ValueError:
        return
    assert found.status[0] != Status.OPTIMAL


def test_as_many_boxes_as_points_or_one():
    region = Region([[1.0, 0.0]], [0.5]).within(np.zeros((3, 2)), np.ones((3, 2)))
    with pytest.raises(ValueError, match="3"):
        project(np.full((5, 2), 2.0), region)


def test_a_row_number_beyond_the_points_is_refused():
    with pytest.raises((IndexError, ValueError)):
        project([[2.0, 0.5]], Region([[1.0, 0.0]], [0.5]), rows=np.array([1]))


@pytest.mark.parametrize("metric", [0.0, -1.0, nan, inf, [1.0, 0.0], [1.0, 2.0, 3.0]])
def test_a_metric_that_is_not_positive_is_refused(metric):
    with pytest.raises(ValueError, match="metric"):
        project([[2.0, 0.5]], Region([[1.0, 0.0]], [0.5]), metric)


def test_points_of_another_width_are_refused_with_both_widths():
    with pytest.raises(ValueError, match=r"3 .* 2"):
        project([[1.0, 2.0, 3.0]], Region([[1.0, 0.0]], [0.5]))


@pytest.mark.parametrize("d", [1, 3, 17, 130])
def test_a_product_has_the_same_bits_for_any_batch_and_layout(d):
    rng = np.random.default_rng(d)
    a, b = rng.normal(size=(1500, d)), rng.normal(size=(d, 5))
    whole = product(a, b)
    np.testing.assert_allclose(whole, a @ b, rtol=0, atol=1e-12)
    assert np.array_equal(product(np.asfortranarray(a), np.asfortranarray(b)), whole)
    assert np.array_equal(np.concatenate([product(a[[i]], b) for i in range(1500)]), whole)
    assert np.array_equal(np.column_stack([product(a, column) for column in b.T]), whole)
    assert np.array_equal(product(a.reshape(3, 500, d), b[:, 0]).ravel(), whole[:, 0])
