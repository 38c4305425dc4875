"""CFCLUST is the projection onto one bisector: exact for two clusters, a miss for many."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans, MeanShift
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from voicecf import CFCLUST, SHARK, Status, VoICE
from voicecf.errors import DataError, ModelError, OptionError, TargetError

IRIS = load_iris().data
WINE = StandardScaler().fit_transform(load_wine().data)


def kmeans(X, k, seed=0) -> KMeans:
    return KMeans(k, n_init=1, random_state=seed).fit(X)


def bisector(a, own, other, epsilon=0.0):
    """Closed form: onto the plane between two centroids, moved towards `other` by epsilon."""
    n = other - own
    plane = (own + other) / 2 + epsilon * n / 2
    return a + (n @ (plane - a)) / (n @ n) * n


def distances(x, centers):
    """Exact squared distances."""
    return [
        sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x.tolist(), m.tolist(), strict=True))
        for m in centers
    ]


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_answer_is_the_projection_onto_the_bisector(epsilon):
    model = kmeans(WINE, 4)
    cf = CFCLUST(model, epsilon=epsilon).fit(WINE).explain(WINE[:20], target="each")
    assert len(cf) == 60
    for i in range(len(cf)):
        own, other = model.cluster_centers_[[cf.source[i], cf.target[i]]]
        expected = bisector(WINE[cf.row[i]], own, other, epsilon)
        np.testing.assert_allclose(cf.points[i], expected, rtol=1e-10, atol=1e-12)


def test_cost_is_the_mean_squared_move():
    cf = CFCLUST(kmeans(WINE, 4)).fit(WINE).explain(WINE[:20], target="each")
    np.testing.assert_allclose(cf.cost, ((cf.points - WINE[cf.row]) ** 2).mean(axis=1), rtol=1e-12)


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer])
def test_for_two_clusters_it_is_voice_without_box_and_contraction(load):
    X = StandardScaler().fit_transform(load().data)
    model = kmeans(X, 2)
    pair = CFCLUST(model).fit(X).explain(X)
    full = VoICE.from_centers(model.cluster_centers_).explain(X)
    assert pair.feasible.all()
    np.testing.assert_array_equal(pair.target, full.target)
    np.testing.assert_allclose(pair.points, full.points, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(pair.cost, full.cost, rtol=1e-7)


def test_an_answer_is_missed_where_a_third_centroid_is_nearer():
    model = kmeans(WINE, 5)
    cf = CFCLUST(model).fit(WINE).explain(WINE[:40], target="each")
    outcomes = set()
    for i in range(len(cf)):
        table = distances(cf.points[i], model.cluster_centers_)
        excess = float(table[cf.target[i]] - min(table))
        if abs(excess) > 1e-6 or excess == 0:
            assert cf.feasible[i] == (excess <= 0)
        assert cf.status[i] in (Status.OPTIMAL, Status.MISSED)
        outcomes.add(int(cf.status[i]))
    assert outcomes == {Status.OPTIMAL, Status.MISSED}


def test_a_miss_keeps_its_point_and_says_where_it_went_wrong():
    cf = CFCLUST(kmeans(WINE, 5)).fit(WINE).explain(WINE[:40], target="each")
    missed = cf[cf.status == Status.MISSED]
    assert np.isfinite(missed.points).all()
    assert "ends in another cluster" in missed.text(0)


def test_voice_never_costs_less_than_the_pairwise_answer():
    # The pairwise answer drops the constraints of all other clusters.
    model = kmeans(WINE, 5)
    pair = CFCLUST(model).fit(WINE).explain(WINE, target="each")
    full = (
        VoICE(model, contraction=1.0, bounds=None)
        .fit(WINE)
        .explain(WINE, target="each", plausible=None)
    )
    assert full.feasible.all()
    assert (full.cost >= pair.cost * (1 - 1e-6)).all()
    hit = pair.feasible
    np.testing.assert_allclose(full.cost[hit], pair.cost[hit], rtol=1e-6)
    assert (full.cost[~hit] > pair.cost[~hit] * (1 + 1e-12)).all()


def test_what_may_not_change_keeps_its_bits_and_the_rest_reaches_the_bisector():
    model = kmeans(WINE, 2)
    cf = CFCLUST(model).fit(WINE).explain(WINE, immutable=[0, 5])
    np.testing.assert_array_equal(cf.points[:, [0, 5]], WINE[:, [0, 5]])
    tables = ((cf.points[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
    np.testing.assert_allclose(tables[:, 0], tables[:, 1], rtol=1e-9)


def test_with_everything_immutable_it_is_infeasible():
    cf = CFCLUST(kmeans(IRIS, 3)).fit(IRIS).explain(IRIS[:3], immutable=[0, 1, 2, 3])
    assert cf.status.tolist() == [Status.INFEASIBLE] * 3
    assert "Let more columns change" in cf.text(0)


def test_the_row_that_is_there_already_stays():
    model = kmeans(IRIS, 3)
    cf = CFCLUST(model).fit(IRIS).explain(IRIS, target=model.predict(IRIS))
    assert (cf.status == Status.ALREADY).all()
    np.testing.assert_array_equal(cf.points, IRIS)


def test_nearest_is_the_cheapest_of_each_that_hits():
    model = kmeans(WINE, 4)
    explainer = CFCLUST(model).fit(WINE)
    best, each = explainer.explain(WINE), explainer.explain(WINE, target="each")
    for i in range(len(WINE)):
        mine = np.flatnonzero((each.row == i) & each.feasible)
        if mine.size:
            assert best.feasible[i]
            assert best.cost[i] == pytest.approx(each.cost[mine].min(), rel=1e-12)


def test_rho_is_how_far_the_move_may_go_inside_the_cell():
    model = kmeans(WINE, 4)
    cf = CFCLUST(model, epsilon=0.1).fit(WINE).explain(WINE[:40], target="each")
    for i in np.flatnonzero(cf.feasible & np.isfinite(cf.rho)):
        a, move = WINE[cf.row[i]], cf.points[i] - WINE[cf.row[i]]
        for factor, inside in ((1 - 1e-6, True), (1 + 1e-6, False)):
            x = a + cf.rho[i] * factor * move
            table = ((x - model.cluster_centers_) ** 2).sum(axis=1)
            if cf.rho[i] * factor > 1:
                assert (table.argmin() == cf.target[i]) == inside


def test_a_weighted_model_is_refused_with_a_way_out():
    with pytest.raises(ModelError, match="VoICE"):
        CFCLUST(SHARK(3, n_init=2, random_state=0)).fit(IRIS)


@pytest.mark.parametrize("epsilon", [-0.1, 1.1, np.nan, "much", None])
def test_epsilon_is_a_share(epsilon):
    with pytest.raises(OptionError, match=r"epsilon.*\[0, 1\]"):
        CFCLUST(kmeans(IRIS, 2), epsilon=epsilon).fit(IRIS)


def test_it_checks_its_input_like_voice():
    explainer = CFCLUST(kmeans(IRIS, 3))
    with pytest.raises(NotFittedError, match="CFCLUST"):
        explainer.explain(IRIS)
    explainer.fit(IRIS)
    with pytest.raises(TargetError, match="0 to 2"):
        explainer.explain(IRIS, target=3)
    with pytest.raises(DataError, match="row 0"):
        explainer.explain([[np.nan, 1.0, 1.0, 1.0]])
    assert len(explainer.explain(IRIS[:0])) == 0


def test_it_is_an_estimator_and_knows_frames():
    frame = pd.DataFrame(IRIS, columns=list("abcd"))
    explainer = clone(CFCLUST(KMeans(2, n_init=1, random_state=0), epsilon=0.2)).fit(frame)
    assert explainer.epsilon == 0.2
    cf = explainer.explain(frame.head(3))
    assert cf.to_frame().columns.tolist() == list("abcd")
    assert "0.2" in repr(explainer)


def test_an_answer_on_the_border_is_a_hit_whatever_kind_of_model_it_came_from():
    # On the bisector both centroids are as near; which one predict names is rounding.
    model = MeanShift(bandwidth=1.0).fit(IRIS)
    assert len(model.cluster_centers_) == 2
    cf = CFCLUST(model).fit(IRIS).explain(IRIS)
    assert (cf.status == Status.OPTIMAL).all()


def test_answers_do_not_depend_on_the_batch():
    explainer = CFCLUST(kmeans(WINE, 4)).fit(WINE)
    whole = explainer.explain(WINE, target="each")
    alone = [explainer.explain(WINE[[i]], target="each") for i in range(len(WINE))]
    np.testing.assert_array_equal(whole.points, np.concatenate([one.points for one in alone]))
