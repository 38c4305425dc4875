"""The plainest question in one pass: the same answers as by any other way, whatever comes in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans

from voicecf import Status, VoICE
from voicecf.errors import DataError


def question(k: int, d: int, n: int = 300, seed: int = 0) -> tuple[VoICE, np.ndarray, np.ndarray]:
    """Centroids, a box that binds for some rows, rows and a target for each."""
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(k, d))
    X = centers[rng.integers(k, size=n)] + rng.normal(size=(n, d))
    bounds = X.min(axis=0) + 0.3, X.max(axis=0) - 0.3
    voice = VoICE.from_centers(centers, bounds=bounds, contraction=0.9)
    return voice, np.clip(X, *bounds), rng.integers(k, size=n)


@pytest.mark.parametrize(
    ("k", "d"), [(2, 1), (2, 5), (3, 13), (10, 20), (49, 4), (50, 1), (50, 4), (130, 7)]
)
def test_answers_are_those_of_every_pair_bit_for_bit(k, d):
    voice, X, target = question(k, d, n=300 if k < 100 else 40)
    cf, each = voice.explain(X, target), voice.explain(X, target="each")
    pairs = {pair: i for i, pair in enumerate(zip(each.row, each.target, strict=True))}
    for i in np.flatnonzero(cf.status != Status.ALREADY):
        other = each[pairs[i, target[i]]]
        np.testing.assert_array_equal(cf.points[i], other.points[0])
        assert cf.status[i] == other.status[0]
        assert cf.rho[i] == other.rho[0] or np.isnan(cf.rho[i])
        assert cf.cost[i] == pytest.approx(other.cost[0], rel=1e-14, nan_ok=True)
        assert cf.n_changed[i] == other.n_changed[0]


@pytest.mark.parametrize(("k", "d"), [(2, 3), (7, 6), (60, 5), (300, 2)])
def test_rows_in_their_target_stay_and_others_land_there(k, d):
    voice, X, target = question(k, d)
    cf = voice.explain(X, target)
    squares = ((X[:, None] - voice.partition_.centers) ** 2).sum(axis=2)
    np.testing.assert_array_equal(cf.source, squares.argmin(axis=1))
    there = cf.source == target
    assert (cf.status[there] == Status.ALREADY).all()
    np.testing.assert_array_equal(cf.points[there], X[there])
    assert (cf.cost[there] == 0).all()
    assert (cf.cardinality[there] == 0).all()
    assert (cf.status[~there] != Status.ALREADY).all()
    np.testing.assert_array_equal(voice.predict(cf.points[cf.feasible]), target[cf.feasible])


@pytest.mark.parametrize(("k", "d"), [(5, 6), (70, 6)])
def test_a_row_alone_has_the_bits_that_it_has_among_others(k, d):
    voice, X, target = question(k, d)
    cf = voice.explain(X, target)
    for i in range(0, len(X), 17):
        alone = voice.explain(X[i : i + 1], target[i : i + 1])
        for name in ("points", "source", "status", "cost", "rho", "gap", "n_changed"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(cf, name)[i : i + 1])


@pytest.mark.parametrize("k", [4, 55])
@pytest.mark.parametrize("form", [np.asfortranarray, np.ndarray.tolist, lambda X: X[:, :]])
def test_it_does_not_matter_how_an_array_lies_in_memory(form, k):
    voice, X, target = question(k, 5)
    X.setflags(write=False)
    cf, other = voice.explain(X, target), voice.explain(form(X), target)
    np.testing.assert_array_equal(cf.points, other.points)
    np.testing.assert_array_equal(cf.cost, other.cost)


@pytest.mark.parametrize("k", [3, 51])
def test_answers_keep_their_rows_whatever_becomes_of_the_array(k):
    voice, X, target = question(k, 4)
    cf, before = voice.explain(X, target), X.copy()
    X[:] = 0.0
    np.testing.assert_array_equal(cf.factual, before)
    assert cf.multipliers.any()


def test_answers_of_a_large_batch_keep_their_numbers_when_the_next_one_is_answered():
    voice, X, target = question(3, 40, n=20_000)
    cf = voice.explain(X, target)
    held = [cf.points[5:9].T, cf.rho[::7]]
    before = [part.copy() for part in held]
    del cf
    for _ in range(3):
        assert voice.explain(X[::-1], target).feasible.any()
    for part, copy in zip(held, before, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.parametrize("k", [3, 51])
@pytest.mark.parametrize("hole", [np.nan, np.inf, -np.inf])
def test_a_row_with_a_hole_is_refused(hole, k):
    voice, X, target = question(k, 4)
    X[77, 2] = hole
    with pytest.raises(DataError):
        voice.explain(X, target, errors="raise")


def test_the_model_itself_tells_where_a_row_on_a_border_belongs():
    X = np.array([[0.0], [1.0], [10.0], [11.0]])
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
    middle = voice.partition_.centers.mean(axis=0, keepdims=True)
    border = middle + np.spacing(middle) * np.arange(-40, 41)[:, None]
    for target in (0, 1):
        cf = voice.explain(border, target)
        np.testing.assert_array_equal(cf.source, voice.model_.predict(border))
        np.testing.assert_array_equal(cf.status == Status.ALREADY, cf.source == target)
        np.testing.assert_array_equal(voice.model_.predict(cf.points), target)


def test_coinciding_centroids_go_the_long_way_and_agree_with_ties():
    voice = VoICE.from_centers([[0.0, 0.0], [2.0, 0.0], [2.0, 0.0]])
    cf = voice.explain([[0.0, 1.0], [0.0, 1.0]], target=[1, 2])
    assert cf.status.tolist() == [Status.OPTIMAL, Status.INFEASIBLE]
