"""Promises at extreme numbers: large offsets, tiny and huge scales, columns without spread."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import attack
from voicecf import SHARK, Status, VoICE
from voicecf.errors import ModelError, RoundingWarning
from voicecf.geometry.centroids import Centroids


def around(offset: float, k: int = 20, d: int = 8, n: int = 400) -> tuple[np.ndarray, KMeans]:
    """Return normally distributed rows around an offset, and k-means of them."""
    X = 3.0 * np.random.default_rng(0).normal(size=(n, d)) + offset
    return X, KMeans(k, n_init=1, random_state=0).fit(X)


def fitted(model, X, **options) -> VoICE:
    """Return an explainer, fitted without its warnings about rounding and empty clusters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return VoICE(model, **options).fit(X)


@pytest.mark.parametrize("offset", [1e3, 1e5, 1e7, 1e8, 1e10])
def test_answers_at_large_offsets_land_in_a_batch_and_alone(offset):
    X, model = around(offset)
    voice = fitted(model, X)
    rows, k = X[:60], model.n_clusters
    targets = (model.predict(rows) + 1) % k
    cf = voice.explain(rows, target=targets)
    optimal = np.flatnonzero(cf.status == Status.OPTIMAL)
    assert np.isin(cf.status, (Status.OPTIMAL, Status.UNRESOLVED, Status.ALREADY)).all()
    assert (len(optimal) == len(rows)) == (offset <= 1e5)
    for some in (optimal, *optimal[:, None]):
        if some.size:
            np.testing.assert_array_equal(model.predict(cf.points[some]), targets[some])


@pytest.mark.parametrize("offset", [1e5, 1e7, 1e8])
def test_rows_at_large_offsets_have_the_same_bits_alone_and_in_a_batch(offset):
    X, model = around(offset)
    voice = fitted(model, X, contraction=1.0)
    batch = voice.explain(X[:40], target=3)
    for i in range(40):
        alone = voice.explain(X[i : i + 1], target=3)
        assert alone.points.tobytes() == batch.points[i : i + 1].tobytes()
        assert (alone.source[0], alone.status[0]) == (batch.source[i], batch.status[i])


class Rounding:
    """A stand-in for k-means whose `predict` decides doubtful rows by the size of the batch."""

    cluster_centers_ = np.array([[0.0], [2.0]])

    def predict(self, X):
        """Return the nearest centroid; of a tie the last one in a batch, the first one alone."""
        nearest = (np.asarray(X)[:, 0] > 1.0).astype(np.int64)
        return np.where(np.asarray(X)[:, 0] == 1.0, int(len(X) > 1), nearest)


def test_the_cluster_of_a_row_does_not_depend_on_the_rows_beside_it():
    centroids = Centroids.of(Rounding())
    assert centroids.labels(np.array([[1.0]])).tolist() == [0]
    assert centroids.labels(np.array([[1.0], [0.5], [1.0], [1.5]])).tolist() == [0, 0, 0, 1]


@pytest.mark.parametrize("varying", [1.0, 0.0])
def test_no_answer_is_called_optimal_that_rounding_alone_has_pushed_away(varying):
    rng = np.random.default_rng(0)
    X = np.c_[1e15 + varying * np.arange(60), rng.normal(size=60)]
    voice = fitted(KMeans(3, n_init=1, random_state=0), X, contraction=1.0, bounds=None)
    cf = voice.explain(X)
    dearest = ((X - X.mean(axis=0)) ** 2).mean(axis=1).max() * 100
    assert (cf.cost[cf.status == Status.OPTIMAL] <= dearest).all()
    assert (cf.status == Status.UNRESOLVED).any()


def test_a_search_that_only_rounding_makes_empty_is_not_called_infeasible():
    X = np.c_[1e15 + np.arange(60.0), np.arange(60.0) % 7]
    voice = fitted(KMeans(3, n_init=1, random_state=0), X, contraction=1.0)
    cf = voice.explain(X[:20], objective="fewest")
    assert not (cf.status == Status.INFEASIBLE).any()


def test_fit_warns_of_clusters_that_the_model_cannot_tell_apart():
    X, model = around(1e8)
    with pytest.warns(RoundingWarning, match="rounding in KMeans.predict.*StandardScaler"):
        VoICE(model).fit(X)
    scaled = make_pipeline(StandardScaler(), KMeans(5, n_init=1, random_state=0)).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cf = VoICE(scaled).fit(X).explain(X[:20], target=0)
    assert np.isin(cf.status, (Status.OPTIMAL, Status.ALREADY)).all()
    assert (scaled.predict(cf.to_frame().to_numpy()) == 0).all()


@pytest.mark.parametrize("scale", [1e-138, 1e-100, 1.0, 1e100, 1e149])
def test_shark_is_right_at_every_scale_that_it_accepts(scale):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 4.0]) * scale
    model = SHARK(2, random_state=0).fit(X)
    cf = VoICE(model).fit(X).explain(X, target="nearest")
    assert (cf.status == Status.OPTIMAL).all()
    np.testing.assert_array_equal(model.predict(cf.points), cf.target)


@pytest.mark.parametrize("scale", [1e-165, 1e-200, 1e-300, 1e152])
def test_shark_refuses_numbers_whose_squares_are_lost(scale):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) + 4.0]) * scale
    with pytest.raises(ValueError, match=r"squared|told apart"):
        SHARK(2, random_state=0).fit(X)


@pytest.mark.parametrize("scale", [1e-14, 1e17])
def test_single_precision_has_limits_of_its_own(scale):
    rng = np.random.default_rng(0)
    centers = (scale * rng.normal(size=(3, 2))).astype(np.float32)
    with pytest.raises(ModelError, match="in float32; rescale the columns"):
        Centroids.from_centers(centers, dtype=np.dtype(np.float32))
    assert Centroids.from_centers(centers).n_clusters == 3


def test_a_model_whose_centroids_all_coincide_is_refused():
    with pytest.raises(ModelError, match="all centers coincide"):
        Centroids.from_centers(np.ones((3, 2)))


@pytest.mark.parametrize("index", range(40))
def test_generated_attacks_find_nothing(index):
    _, faults = attack.judged(1, index)
    assert not faults
