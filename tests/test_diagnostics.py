"""Measures of answers and models, against plain numpy, brute force and equivalences."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris, make_blobs

from voicecf import CFCLUST, VoICE
from voicecf.diagnostics import (
    Evaluation,
    PairwiseComparison,
    adjusted_rand_index,
    changed_features,
    compare_pairwise,
    contraction_summary,
    evaluate,
    intervention_cost,
    relative_underestimation,
    repair_cost,
    validity,
    weight_concentration,
)
from voicecf.errors import DataError


def clusters(seed, n=60, d=2, k=4):
    X, _ = make_blobs(n, d, centers=k, cluster_std=4.0, random_state=seed)
    return KMeans(k, n_init=1, random_state=seed).fit(X), X


def model_of(centers, weights=None):
    found = SimpleNamespace(cluster_centers_=np.asarray(centers, dtype=float))
    if weights is not None:
        found.feature_weights_ = np.asarray(weights, dtype=float)
    return found


def pairwise_point(a, source, target):
    normal = target - source
    return a + normal * (normal @ ((source + target) / 2 - a)) / (normal @ normal)


def into_cell(a, centers, t):
    """Project onto a cell by trying every set of active rows."""
    rows = np.array([m - centers[t] for j, m in enumerate(centers) if j != t])
    right = np.array([(m @ m - centers[t] @ centers[t]) / 2 for m in np.delete(centers, t, 0)])
    best = None
    for size in range(min(len(rows), len(a)) + 1):
        for active in map(list, combinations(range(len(rows)), size)):
            G, h = rows[active], right[active]
            z = a - G.T @ np.linalg.lstsq(G @ G.T, G @ a - h, rcond=None)[0]
            inside = (rows @ z <= right + 1e-9).all()
            if inside and (best is None or np.sum((z - a) ** 2) < np.sum((best - a) ** 2)):
                best = z
    return best


def by_hand(model, X, slack=1e-8):
    """Count and price every pair one by one."""
    centers = model.cluster_centers_
    valid, repair, under = 0, [], []
    for a, s in zip(X, model.labels_, strict=True):
        for t in range(len(centers)):
            if t == s:
                continue
            z = pairwise_point(a, centers[s], centers[t])
            distances = ((centers - z) ** 2).sum(axis=1)
            if (distances[t] <= distances + slack).all():
                valid += 1
                continue
            full = into_cell(a, centers, t)
            repair.append(np.sum((full - z) ** 2))
            under.append(1 - np.sum((z - a) ** 2) / np.sum((full - a) ** 2))
    return valid, repair, under


@pytest.mark.parametrize("seed", range(5))
def test_pairs_are_counted_and_priced_as_one_by_one(seed):
    model, X = clusters(seed, d=2 + seed % 2)
    valid, repair, under = by_hand(model, X)
    found = compare_pairwise(model, X)
    assert 0 < found.invalid == len(repair)
    assert found.valid == valid
    assert found.comparisons == len(X) * 3
    assert found.exact_validity == 1
    assert_allclose(found.repair_cost, np.mean(repair), rtol=1e-9)
    assert_allclose(found.relative_underestimation, np.mean(under), rtol=1e-9)


def test_pairs_agree_with_the_baseline_that_explains_them():
    model, X = clusters(7)
    found = compare_pairwise(model, X)
    cf = CFCLUST(model).fit(X).explain(X, target="each")
    full = (
        VoICE(model, contraction=1.0, bounds=None).fit(X).explain(X, target="each", plausible=None)
    )
    missed = ~cf.feasible
    assert found.invalid == missed.sum()
    costs = repair_cost(cf.points[missed], full.points[missed])
    assert_allclose(found.repair_cost, costs.mean(), rtol=1e-6)
    under = relative_underestimation(cf.cost[missed], full.cost[missed])
    assert_allclose(found.relative_underestimation, under.mean(), rtol=1e-6)


def test_the_size_of_a_block_changes_no_count():
    model, X = clusters(3, n=500)
    whole, pieces = compare_pairwise(model, X), compare_pairwise(model, X, block=7)
    assert (whole.valid, whole.repaired) == (pieces.valid, pieces.repaired)
    assert_allclose(whole.repair, pieces.repair, rtol=1e-12)


def test_data_far_from_zero_give_the_same_counts():
    model, X = clusters(4, n=300)
    far = model_of(model.cluster_centers_ + 1e7)
    found = compare_pairwise(far, X + 1e7, labels=model.labels_)
    assert found.valid == compare_pairwise(model, X).valid


def test_renumbering_the_clusters_changes_nothing():
    model, X = clusters(5, n=300)
    order = np.array([2, 0, 3, 1])
    other = compare_pairwise(model_of(model.cluster_centers_[order]), X)
    found = compare_pairwise(model, X)
    assert other.valid == found.valid
    assert_allclose(other.repair, found.repair, rtol=1e-9)


def test_two_clusters_are_never_missed():
    model, X = clusters(6, k=2)
    found = compare_pairwise(model, X)
    assert found.validity == 1
    assert found.repair_cost == found.relative_underestimation == 0


def test_coinciding_centroids_are_no_division_by_zero():
    found = compare_pairwise(model_of([[0.0], [0.0], [5.0]]), [[0.5], [4.0]])
    assert found.comparisons == 4
    assert np.isfinite(found.repair)


def test_comparisons_pool_by_pairs_and_not_by_datasets():
    pooled = PairwiseComparison(10, 9, 1, 2.0, 0.1) + PairwiseComparison(90, 87, 3, 2.0, 0.9)
    assert pooled.validity == 0.96
    assert pooled.repair_cost == 1.0
    assert pooled.relative_underestimation == 0.25
    assert pooled.exact_validity == 1.0


def test_no_pairs_have_no_validity():
    assert np.isnan(PairwiseComparison().validity)
    assert np.isnan(PairwiseComparison().exact_validity)


def test_validity_is_what_the_model_says():
    model, X = clusters(0)
    assert validity(X, model, model.labels_) == 1
    assert validity(X, model, 0) == (model.labels_ == 0).mean()


def test_no_answer_is_not_valid():
    model, X = clusters(0)
    points = X.copy()
    points[:30] = np.nan
    assert validity(points, model, model.labels_) == 0.5
    assert np.isnan(validity(np.empty((0, 2)), model, 0))


def test_costs_use_weights_that_sum_to_one():
    a, z = np.zeros((3, 2)), np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    assert_allclose(intervention_cost(a, z), [0.5, 2.0, 12.5])
    assert_allclose(intervention_cost(a, z, [1, 3]), intervention_cost(a, z, [10, 30]))


def test_a_move_within_the_tolerance_is_no_change():
    assert changed_features([[0.0, 0.0]], [[1e-9, 2e-9]]).tolist() == [1]
    assert changed_features([[0.0, 0.0]], [[0.5, 0.5]], [0.1, 1.0]).tolist() == [1]


def test_an_evaluation_is_the_mean_over_what_was_found():
    factual = np.zeros((4, 2))
    points = np.array([[1.0, 0.0], [2.0, 2.0], [np.nan, np.nan], [9.0, 9.0]])
    found = evaluate(
        factual,
        points,
        feasible=[True, True, True, False],
        cardinality=[1, 2, 2, 1],
        tau=[0.5, 1.5, np.nan, 7.0],
    )
    assert (found.n, found.n_feasible, found.feasibility) == (4, 2, 0.5)
    assert (found.cost, found.changed, found.changed_share) == (2.25, 1.5, 0.75)
    assert (found.r_star, found.r_star_over_d, found.single_feature) == (1.5, 0.75, 0.25)
    assert found.tau == 1.0


def test_nothing_found_has_no_mean():
    found = evaluate([[0.0]], [[np.nan]], tau=[np.nan])
    assert found.feasibility == 0
    assert np.isnan([found.cost, found.changed, found.r_star, found.tau]).all()


def test_an_explainers_answers_evaluate_to_its_own_columns():
    X = load_iris().data
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(X)
    cf = voice.explain(X, target="each", objective="prefix", immutable=[2, 3])
    found = Evaluation.of(cf)
    assert found.n == len(cf) == 300
    assert found.n_feasible == cf.feasible.sum() < 300
    assert_allclose(found.cost, cf.cost[cf.feasible].mean())
    assert_allclose(found.r_star, cf.cardinality[cf.feasible].mean())
    assert_allclose(found.tau, cf.tau[cf.feasible].mean())


def test_contracted_by_alpha_a_cell_keeps_its_members_and_by_less_it_does_not():
    model, X = clusters(1, n=200)
    found = contraction_summary(model, X)
    for t, alpha in enumerate(found.alpha):
        member, center = X[model.labels_ == t], model.cluster_centers_[t]
        for share, all_stay in ((alpha, True), (0.999 * alpha, False)):
            # x is in the contracted cell exactly if m + (x - m) / share is in the whole one.
            blown = center + (member - center) / share
            distances = ((blown[:, None] - model.cluster_centers_) ** 2).sum(axis=2)
            stays = distances[:, t] <= distances.min(axis=1) + 1e-9
            assert stays.all() == all_stay


def test_contraction_does_not_depend_on_the_scale_of_weights_or_data():
    model, X = clusters(2)
    found = contraction_summary(model_of(model.cluster_centers_, [2.0, 1.0]), X)
    tiny = contraction_summary(model_of(model.cluster_centers_ * 1e-9, [2.0, 1.0]), X * 1e-9)
    assert_allclose(tiny.alpha, found.alpha, rtol=1e-9)
    floored = contraction_summary(
        model_of(model.cluster_centers_ * 1e-9, [2.0, 1.0]), X * 1e-9, floor=1e-12
    )
    assert (floored.alpha == 0).all()


def test_with_the_observed_box_a_member_sits_on_its_face():
    model, X = clusters(3)
    found = contraction_summary(model, X, bounds=(X.min(axis=0), X.max(axis=0)))
    assert found.maximum == 1
    assert (found.alpha >= contraction_summary(model, X).alpha).all()


def test_a_cluster_without_members_is_left_out_of_the_summary():
    found = contraction_summary(model_of([[0.0], [4.0], [99.0]]), [[0.0], [1.0], [4.0]])
    assert np.isnan(found.alpha[2])
    assert (found.minimum, found.median, found.maximum) == (0.0, 0.25, 0.5)
    assert found.score == 0.125


def test_equal_weights_use_all_features_and_one_weight_uses_one():
    equal = weight_concentration(np.ones(7))
    assert_allclose([equal.effective, equal.max_weight, equal.top2_mass], [7, 1 / 7, 2 / 7])
    single = weight_concentration([0, 0, 3.0], ["a", "b", "c"])
    assert (single.effective, single.max_weight, single.label) == (1, 1, "c")


@pytest.mark.parametrize(
    ("weights", "label"),
    [([9, 1, 1, 1], "age"), ([2, 9, 0, 0], "job dummy"), ([3, 2, 2, 2], "job block")],
)
def test_a_block_weighs_what_its_features_weigh_together(weights, label):
    names = ["age", "job_a", "job_b", "job_c"]
    assert weight_concentration(weights, names, {"job": [1, 2, 3]}).label == label


@pytest.mark.parametrize("weights", [[-1.0, 2.0], [0.0, 0.0], [[1.0]]])
def test_weights_must_weigh_something(weights):
    with pytest.raises(DataError, match="none negative"):
        weight_concentration(weights)


def test_agreement_does_not_depend_on_names():
    known = np.repeat(["a", "b", "c"], 5)
    assert adjusted_rand_index(np.repeat([2, 0, 1], 5), known) == 1
    assert adjusted_rand_index(np.zeros(15), known) == 0


def test_a_table_of_texts_is_refused_with_a_remedy():
    model = KMeans(2, n_init=3, random_state=0).fit(np.eye(4))
    with pytest.raises(DataError, match="text or objects, not numbers; encode them first"):
        compare_pairwise(model, [["a", "b", "c", "d"]])
