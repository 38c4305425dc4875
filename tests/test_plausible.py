"""How usual answers are, plausible answers, and what rules add to the cost."""

from __future__ import annotations

import json
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.stats import norm
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_iris, make_blobs
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import SHARK, Rules, Status, VoICE
from voicecf.cli import main
from voicecf.errors import OptionError, SavingError
from voicecf.learned.members import Members, Sorted, ranks
from voicecf.plots import ChangeCard
from voicecf.table.stream import Stream

IRIS = load_iris().data


@cache
def iris(contraction="retain") -> VoICE:
    return VoICE(KMeans(3, n_init=3, random_state=0), contraction=contraction).fit(IRIS)


@cache
def people() -> tuple[VoICE, pd.DataFrame]:
    """Whole numbers, a number and a category, in three clusters."""
    rng = np.random.default_rng(3)
    kind = rng.integers(3, size=240)
    frame = pd.DataFrame(
        {
            "age": (25 + 15 * kind + rng.normal(scale=4, size=240)).round().astype(int),
            "income": 20.0 + 10.0 * kind + rng.normal(scale=3, size=240),
            "job": np.array(["clerk", "nurse", "judge"])[(kind + (rng.random(240) < 0.1)) % 3],
        }
    )
    columns = make_column_transformer((OneHotEncoder(), ["job"]), remainder=StandardScaler())
    model = make_pipeline(columns, KMeans(3, n_init=3, random_state=0))
    return VoICE(model).fit(frame), frame


def by_hand(
    X: np.ndarray, labels: np.ndarray, target: int, d: int | None = None
) -> tuple[np.ndarray, ...]:
    """Mean, principal directions and standard deviations of a cluster, written out.

    They are those of some of `d` coordinates.
    """
    own = X[labels == target]
    shrinkage = min(1.0, (d or X.shape[1]) / len(own) ** 2)
    covariance = (1 - shrinkage) * np.cov(own.T, bias=True) + shrinkage * np.diag(X.var(axis=0))
    variances, directions = np.linalg.eigh(covariance)
    return own.mean(axis=0), directions.T, np.sqrt(variances)


def extremeness_by_hand(
    points: np.ndarray, X: np.ndarray, labels: np.ndarray, target: int, coded: tuple = ()
) -> np.ndarray:
    """Extremeness along directions of the numbers and by the share of members with each code."""
    numbers = np.setdiff1d(np.arange(X.shape[1]), coded)
    mean, directions, deviations = by_hand(X[:, numbers], labels, target, X.shape[1])
    found = np.array([
        max(1e-3, *abs(directions @ (z - mean)) / deviations) for z in points[:, numbers]
    ])  # fmt: skip
    for c in coded:
        shares = [(X[labels == target, c] == value).mean() for value in points[:, c]]
        found = np.maximum(found, norm.isf(np.array(shares) / 2))
    return found


# How usual a point is.


@pytest.mark.parametrize("shift", [0.0, 1e7])
@pytest.mark.parametrize("target", [0, 1, 2])
def test_usual_is_the_share_of_members_that_are_as_extreme(shift, target):
    X = IRIS + shift
    labels = iris().predict(IRIS)
    centers = np.array([X[labels == t].mean(axis=0) for t in range(3)])
    members = Members.of(centers, lambda: [(X[:70], labels[:70]), (X[70:], labels[70:])])
    own = extremeness_by_hand(IRIS[labels == target], IRIS, labels, target)
    asked = np.sort(extremeness_by_hand(IRIS, IRIS, labels, target))
    found = np.sort(members.extremeness(target, X))
    np.testing.assert_allclose(found, asked, rtol=1e-6 if shift else 1e-12)
    expected = [(own >= e * (1 - 1e-6)).mean() for e in asked]
    assert np.array_equal(np.sort(members.usual(target, X))[::-1], expected)


def test_far_points_are_as_usual_as_none_and_the_mean_as_all():
    members = iris().learned_.members
    assert members.usual(1, np.vstack([members.means[1], members.means[1] + 99])).tolist() == [1, 0]


def test_a_level_is_as_extreme_as_its_share_of_the_members():
    rng = np.random.default_rng(4)
    codes = np.eye(4)[rng.choice(4, p=[0.5, 0.3, 0.17, 0.03], size=3000)]
    numbers = rng.normal(size=(3000, 2)) @ [[1.0, 0.9], [0.0, 0.5]]
    X, labels = np.hstack([numbers, codes]), (rng.random(3000) < 0.4).astype(np.int64)
    coded = np.arange(6) > 1
    members = Members.of(np.zeros((2, 6)), lambda: [(X, labels)], coded)
    for target in range(2):
        found = members.extremeness(target, X)
        asked = extremeness_by_hand(X, X, labels, target, (2, 3, 4, 5))
        np.testing.assert_allclose(found, asked, rtol=1e-9)
        low, high = members.ranges(target, 0.9)
        limit = norm.sf(members.limit(target, 0.9)) * 2
        allowed = codes[labels == target].mean(axis=0) >= limit
        assert np.array_equal(high[2:] >= 1.0, allowed)
        assert np.isinf(low[:2]).all()


def test_the_share_that_is_asked_for_is_inside():
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(40_000, 3))
    labels = (rng.random(len(X)) < 0.02).astype(np.int64)
    members = Members.of(np.zeros((2, 3)), lambda: [(X, labels)])
    for target, share in product(range(2), (0.01, 0.5, 0.95, 0.975, 0.99, 0.999)):
        own = X[labels == target]
        normals, offsets = members.constraints(target, share)
        inside = (own @ normals.T <= offsets + 1e-9).all(axis=1).mean()
        assert share <= inside <= share + 0.004
        assert members.within(target, share, own).mean() == inside


def test_columns_and_sums_that_never_vary_do_not_divide_by_zero():
    rng = np.random.default_rng(1)
    codes = np.eye(3)[rng.integers(3, size=500)]
    X = np.column_stack([codes, np.full(500, 7.5), 1e3 * rng.normal(size=500)])
    labels = rng.integers(2, size=500)
    members = Members.of(np.zeros((2, 5)), lambda: [(X, labels)])
    usual = np.concatenate([members.usual(t, X[labels == t]) for t in range(2)])
    assert (usual > 0).all()
    off = X[0] + np.array([[0, 0, 0, 0.1, 0], [0.1, 0.1, 0.1, 0, 0]])
    assert members.usual(int(labels[0]), off).tolist() == [0.0, 0.0]
    # A deviation of less than 1e-10 of the values would be lost in the rounding of a solve.
    assert np.abs(members.axes).max() < 1.01 / (1e-10 * 7.5)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e-70, 1e-30, 1e30, 1e100, 1e148])
def test_numbers_of_any_size_are_learned_or_left_out(scale):
    labels = iris().predict(IRIS)
    members = Members.of(np.zeros((3, 4)), lambda: [(scale * IRIS, labels)])
    assert (members is None) == (scale > 1e60)
    if members is not None:
        usual = members.usual(2, scale * IRIS[labels == 2])
        assert np.isfinite(members.axes).all()
        assert (usual > 0).all()


def test_a_small_column_beside_a_large_one_keeps_its_deviation():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1000, 2)) * [1e8, 1e-3]
    members = Members.of(np.zeros((1, 2)), lambda: [(X, np.zeros(1000, dtype=np.int64))])
    np.testing.assert_allclose(
        np.sort(np.abs(members.axes[0]).max(axis=0)), np.sort(1 / X.std(axis=0)), rtol=1e-2
    )


def test_a_cluster_without_members_asks_for_nothing():
    members = Members.of(np.zeros((2, 2)), lambda: [(np.eye(2), np.zeros(2, dtype=np.int64))])
    assert np.isnan(members.usual(1, np.eye(2))).all()
    assert len(members.constraints(1, 0.95)[0]) == 0
    assert members.within(1, 0.95, np.eye(2)).all()


@pytest.mark.parametrize("n", [1, 512, 513, 16_384, 300_001])
def test_a_value_at_a_rank_is_never_too_small_and_hardly_too_large(n):
    values = np.random.default_rng(n).exponential(size=n)
    pieces, whole = Sorted(), Sorted()
    whole.add(values)
    for piece in np.array_split(values, 7):
        pieces.add(piece)
    found, ascending = whole.at(ranks(n)), np.sort(values)
    assert np.array_equal(pieces.at(ranks(n)), found)
    assert (found >= ascending[ranks(n)]).all()
    assert found[-1] == values.max()
    assert (np.searchsorted(ascending, found) - ranks(n) <= 1e-3 * n).all()


def test_members_are_the_same_from_a_stream_and_in_a_file(tmp_path):
    model = KMeans(3, n_init=3, random_state=0).fit(IRIS)
    streamed = VoICE(model)._fit_stream(Stream.of([IRIS[:31], IRIS[31:]])).learned_.members
    iris().save(tmp_path / "iris.voice")
    loaded = VoICE.load(tmp_path / "iris.voice").learned_.members
    for name in ("means", "axes", "counts", "extremes"):
        expected = getattr(iris().learned_.members, name)
        assert np.array_equal(getattr(loaded, name), expected)
        np.testing.assert_allclose(getattr(streamed, name), expected, rtol=1e-9, atol=1e-9)


def test_a_file_with_members_that_do_not_fit_is_refused(tmp_path):
    voice = VoICE(KMeans(3, n_init=1, random_state=0)).fit(IRIS)
    vars(voice.learned_.members)["extremes"] = voice.learned_.members.extremes[::-1].copy()
    voice.save(tmp_path / "x")
    with pytest.raises(SavingError, match="extremes does not fit"):
        VoICE.load(tmp_path / "x")


def test_too_many_coordinates_are_not_learned():
    X = np.random.default_rng(0).normal(size=(20, 300))
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(X)
    assert voice.learned_.members is None
    assert np.isnan(voice.explain(X[:2]).usual).all()


# What answers say.


def test_answers_say_how_usual_they_are():
    cf = iris().explain(IRIS, target=2)
    labels = iris().predict(IRIS)
    own = extremeness_by_hand(IRIS[labels == 2], IRIS, labels, 2)
    asked = extremeness_by_hand(cf.points, IRIS, labels, 2)
    assert np.array_equal(cf.usual, [(own >= e * (1 - 1e-9)).mean() for e in asked])
    assert np.array_equal(cf.summary()["usual"], cf.usual)
    told = [answer["usual"] for answer in json.loads(cf[:20].to_json())["answers"]]
    assert np.abs(told - cf.usual[:20]).max() < 0.2  # of the rounded answers


def test_a_sentence_flags_the_rim():
    cf = iris().explain(IRIS, target=2, plausible=None)
    assert "none of the members of cluster 2 are as extreme" in cf.text(int(np.argmin(cf.usual)))
    rare = np.flatnonzero((cf.usual > 0) & (cf.usual < 0.05) & (cf.status == Status.OPTIMAL))
    for i in rare[:3]:
        assert "; unusual: " in cf.text(int(i))
    common = np.flatnonzero((cf.usual > 0.2) & (cf.status == Status.OPTIMAL))
    assert not any("unusual" in cf.text(int(i)) for i in common[:3])


def test_without_an_answer_nothing_is_usual():
    cf = iris().explain(IRIS[:3], target=2, immutable=[0, 1, 2, 3])
    assert np.isnan(cf.usual).all()
    voice = VoICE.from_centers([[0.0], [4.0]])
    assert np.isnan(voice.explain([[1.0]]).usual).all()


# Plausible answers.


@pytest.mark.parametrize("share", [0.3, 0.95])
def test_no_point_that_is_as_usual_is_cheaper(share):
    voice, members, labels = iris(), iris().learned_.members, iris().predict(IRIS)
    rows = IRIS[labels != 2][::9]
    cf = voice.explain(rows, target=2, plausible=share)
    assert (cf.status == Status.OPTIMAL).all()
    mean, directions, deviations = by_hand(IRIS, labels, 2)
    own = np.sort(extremeness_by_hand(IRIS[labels == 2], IRIS, labels, 2))
    limit = own[int(np.ceil(share * len(own))) - 1]
    assert members.limit(2, share) == pytest.approx(limit, rel=1e-9)
    region, metric = voice.region(2), voice.learned_.metric

    def constraints(z):
        along = directions @ (z - mean) / deviations
        cell = region.offsets - region.normals @ (z - region.origin)
        return np.concatenate([limit - along, limit + along, cell])

    for row, answer, cost in zip(rows, cf.points, cf.cost, strict=True):
        assert constraints(answer).min() > -1e-8
        found = minimize(
            lambda z, row=row: metric @ (z - row) ** 2, mean,
            jac=lambda z, row=row: 2 * metric * (z - row), method="SLSQP",
            bounds=list(zip(region.lo, region.hi, strict=True)),
            constraints={"type": "ineq", "fun": constraints}, options={"ftol": 1e-13},
        )  # fmt: skip
        # SLSQP stops with status 8 where it cannot improve by as little as it is asked to.
        assert found.status in (0, 8)
        assert cost == pytest.approx(found.fun, rel=1e-6)


@pytest.mark.parametrize("objective", ["cost", "prefix", "fewest"])
@pytest.mark.parametrize("share", [0.5, 0.95])
def test_every_answer_is_in_its_target_and_as_usual_as_asked(objective, share):
    voice, frame = people()
    cf = voice.explain(frame[:40], "each", objective=objective, plausible=share)
    assert cf.feasible.mean() > 0.9
    found = cf[cf.feasible]
    assert np.array_equal(voice.predict(found.to_frame()), found.target)
    assert (found.usual > 1 - share).all()
    read = voice.space_.read(found.to_frame()).points
    for t in range(3):
        assert voice.learned_.members.within(t, share, read[found.target == t]).all()
    loose = voice.explain(frame[:40], "each", objective=objective, plausible=None)[cf.feasible]
    assert (loose.usual < 1 - share).any()
    if objective == "cost":
        assert (found.cost >= loose.cost * (1 - 1e-9)).all()
    short = found.rounded()
    assert (short.usual > 1 - share).all()


def test_whole_numbers_and_categories_are_the_best_of_all_by_brute_force():
    voice, frame = people()
    share, target = 0.9, 1
    frame = frame.assign(income=frame["income"].round().astype(int))
    voice = VoICE(voice.model, contraction=1.0).fit(frame)
    labels, points = voice.predict(frame), voice.space_.read(frame).points
    rows = frame[labels != target][:4]
    ages, incomes = (np.arange(frame[c].min(), frame[c].max() + 1) for c in ("age", "income"))
    every = pd.DataFrame(
        list(product(ages, incomes, ["clerk", "nurse", "judge"])), columns=list(frame.columns)
    )
    codes = tuple(np.flatnonzero((points == 0.0).any(axis=0) & (points == 1.0).any(axis=0)))
    assert len(codes) == 3
    own = extremeness_by_hand(points[labels == target], points, labels, target, codes)
    limit = np.sort(own)[int(np.ceil(share * len(own))) - 1]
    read = voice.space_.read(every).points
    usual = extremeness_by_hand(read, points, labels, target, codes) <= limit * (1 + 1e-9)
    good = read[usual & (voice.predict(every) == target)]
    cf = voice.explain(rows, target, plausible=share)
    for point, cost in zip(voice.space_.read(rows).points, cf.cost, strict=True):
        assert cost == pytest.approx(((good - point) ** 2 @ voice.weights_).min(), rel=1e-9)


@pytest.mark.parametrize(
    "model",
    [
        make_pipeline(StandardScaler(), PCA(2), KMeans(3, n_init=3, random_state=0)),
        SHARK(3, random_state=0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_plausible_holds_for_pipelines_weights_and_single_precision(model, dtype):
    X = IRIS.astype(dtype)
    voice = VoICE(model).fit(X)
    cf = voice.explain(X[::5], "each", plausible=0.6)
    assert cf.feasible.all()
    moved = cf[cf.source != cf.target]
    assert np.array_equal(voice.predict(moved.to_frame()), moved.target)
    assert (moved.usual > 0.4).all()


def test_rules_between_columns_hold_in_single_precision():
    X = IRIS.astype(np.float32)
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(X)
    cf = voice.explain(X, target=2, constraints="x0 + x1 <= 9.9")
    moved = cf.points[cf.status != Status.ALREADY].astype(np.float64)
    assert cf.feasible.all()
    assert (moved[:, 0] + moved[:, 1] <= 9.9).all()


def test_rows_in_their_target_are_left_alone():
    cf = iris().explain(IRIS, target=2, plausible=0.1)
    stays = iris().predict(IRIS) == 2
    assert (cf.status[stays] == Status.ALREADY).all()
    assert np.array_equal(cf.points[stays], IRIS[stays])


def test_the_tradeoff_and_alternatives_are_plausible():
    voice, frame = people()
    for cf in (
        voice.tradeoff(frame[:6], plausible=0.8),
        voice.explain(frame[:6], plausible=0.8, alternatives=2),
    ):
        assert cf.feasible.any()
        assert (cf.usual[cf.feasible] > 0.2).all()


def test_ranges_end_where_the_answer_is_no_longer_plausible():
    cf = iris().explain(IRIS[:5], target=2, plausible=0.9)
    members = iris().learned_.members
    for i in range(len(cf)):
        table = cf.ranges(i)
        for name, low, high in zip(table["column"], table["low"], table["high"], strict=True):
            for end in (low, high):
                moved = cf.points[[i]].copy()
                moved[0, int(name[1:])] = end
                assert members.within(2, 0.9, moved).all()
    assert "plausible" in {*table["binds_low"], *table["binds_high"]}
    assert "rule" not in {*table["binds_low"], *table["binds_high"]}
    texts = [change.range_text for change in ChangeCard.from_counterfactuals(cf, i).changes]
    assert any("(then unusual)" in text for text in texts)


def test_explainers_without_members_say_what_plausible_needs():
    voice = VoICE.from_centers([[0.0], [4.0]])
    with pytest.raises(OptionError, match=r"plausible=0\.95 needs .* fit the explainer"):
        voice.explain([[1.0]], plausible=0.95)


@pytest.mark.parametrize("share", [0, 1, 1.5, -1, True, "much", np.nan])
def test_a_share_lies_between_0_and_1(share):
    with pytest.raises(OptionError, match="must be a share above 0 and below 1"):
        iris().explain(IRIS[:1], plausible=share)


# One row alone has the bits that it has in a batch, of any order and memory layout.


def assert_same_bits(one, other) -> None:
    for name in ("points", "status", "cost", "gap", "rho", "usual", "multipliers"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    texts = [[cf.text(i).split(maxsplit=2)[2] for i in (0, 1)] for cf in (one, other)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "rules",
    [
        {"plausible": 0.9},
        {"plausible": 0.5, "objective": "prefix"},
        {"constraints": "x0 + x1 <= 9.9"},
        {"plausible": 0.9, "costs": {0: 0.01, 1: 20}},
        {"plausible": 0.9, "steps": {0: 0.1}, "bounds": {0: ("-3", "+3")}},
    ],
)
@pytest.mark.parametrize(
    "steps", [(), (StandardScaler(),), (StandardScaler(), PCA(3))], ids=["plain", "scaled", "pca"]
)
def test_plausible_answers_do_not_depend_on_the_other_rows(rules, steps):
    voice = VoICE(make_pipeline(*steps, KMeans(3, n_init=3, random_state=0))).fit(IRIS)
    # Rows of very different sizes: one far outside the data must not loosen the rules of others.
    X = np.concatenate([IRIS[::11], IRIS[:4] * [[1], [10], [1e3], [1e6]]])
    batch = voice.explain(X, target=2, **rules)
    order = np.random.default_rng(0).permutation(len(X))
    shuffled = voice.explain(np.asfortranarray(X[order]), target=2, **rules)
    back = np.argsort(order)
    assert_same_bits(batch, shuffled[back])
    alone = [voice.explain(X[[i]], target=2, **rules) for i in range(len(X))]
    for name in ("points", "status", "cost", "gap", "rho", "usual"):
        found = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_array_equal(found, getattr(batch, name), name)


def test_bounds_relative_to_a_row_do_not_move_the_grid_of_others():
    voice, frame = people()
    words = {"target": 1, "bounds": {"age": ("-10", "+10")}, "costs": {"age": 3.0}}
    batch = voice.explain(frame[:40], **words)
    for i in range(40):
        alone = voice.explain(frame[i : i + 1], **words)
        for name in ("points", "cost", "gap", "rho"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(batch, name)[i], name)


# Reasons.


def infeasible_row() -> tuple[VoICE, np.ndarray]:
    """Two long clusters side by side, and a row at the end of one that may not move along it."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=400), np.repeat([0.0, 9.0], 200)])
    X[:, 1] += rng.normal(scale=0.5, size=400)
    return VoICE(KMeans(2, n_init=1, random_state=0), bounds=None).fit(X), X


@pytest.mark.parametrize(("quantile", "remedy"), [(0.96, 0.975), (0.98, 0.99), (1.0, None)])
def test_a_conflict_with_plausible_names_the_smallest_share_that_suffices(quantile, remedy):
    voice, X = infeasible_row()
    labels = voice.predict(X)
    target = int(labels[-1])
    own = X[labels == target]
    edge = np.quantile(np.abs(own[:, 0] - own[:, 0].mean()), quantile) + (quantile == 1.0)
    row = np.array([[own[:, 0].mean() + edge, 0.0]])
    held = {0: (row[0, 0], row[0, 0])}
    cf = voice.explain(row, target, bounds=held, plausible=0.9)
    assert cf.status[0] == Status.INFEASIBLE
    reason = cf.reason(0)
    (member,) = [m for m in reason.conflict if m.kind == "plausible"]
    assert member.text == f"the answer must be as usual as 90 % of the members of cluster {target}"
    (relaxation,) = [r for r in reason.relaxations if r.members == (member,)]
    assert relaxation.words.get("plausible") == remedy
    for share in (0.975, 0.99, 0.999):
        feasible = voice.explain(row, target, bounds=held, plausible=share).feasible[0]
        assert feasible == (remedy is not None and share >= remedy)
    for one in reason.relaxations:
        again = voice.explain(row, target, **one.words)
        assert again.feasible[0]
        assert again.cost[0] == pytest.approx(one.cost)


# What rules cost.


def test_the_cost_without_a_rule_is_that_of_the_question_without_it():
    voice, frame = people()
    words = {"immutable": "job", "bounds": {"age": ("-10", "+10")}, "plausible": 0.8}
    cf = voice.explain(frame[:30], 1, **{"plausible": None, **words})
    for word in words:
        others = {name: value for name, value in words.items() if name != word}
        expected = voice.explain(frame[:30], 1, **{"plausible": None, **others})
        np.testing.assert_array_equal(cf.cost_without(word), expected.cost)
    unchanged = np.where(cf.feasible, cf.cost, np.nan)
    np.testing.assert_array_equal(cf.cost_without("max_changes"), unchanged)


@pytest.mark.parametrize("objective", ["cost", "prefix", "fewest"])
@pytest.mark.parametrize("deepen", [False, True])
def test_robustness_costs_what_an_explainer_without_contraction_saves(objective, deepen):
    X = make_blobs(90, 3, centers=3, random_state=0)[0]
    model = KMeans(3, n_init=1, random_state=0).fit(X)
    voice, plain = (VoICE(model, contraction=c).fit(X) for c in (0.6, 1.0))
    cf = voice.explain(X, 1, objective=objective, deepen=deepen, plausible=None)
    expected = (
        cf.cost - plain.explain(X, 1, objective=objective, deepen=deepen, plausible=None).cost
    )
    np.testing.assert_allclose(cf.robustness_cost, expected, rtol=1e-12, atol=1e-12)
    assert (cf.robustness_cost[cf.status == Status.ALREADY] == 0).all()
    assert (cf.robustness_cost[cf.source != 1] > 0).all()
    assert (cf.robustness_cost[cf.source == 1] > 0).any() == deepen


def test_an_unknown_rule_has_no_cost():
    cf = iris().explain(IRIS[:2], target=2)
    with pytest.raises(OptionError, match="word='colour' is not known"):
        cf.cost_without("colour")


def test_members_that_are_all_equal_can_be_joined():
    table = pd.DataFrame({"f": [0, 0, 0, 0, 5, 6, 7, 8], "m": [0.0, 0, 0, 0, 50, 70, 65, 80]})
    model = make_pipeline(StandardScaler(), KMeans(2, n_init=2, random_state=0))
    voice = VoICE(model).fit(table)
    target = int(voice.predict(table)[0])
    cf = voice.explain(table.tail(2), target, plausible=0.95)
    assert cf.feasible.all()
    assert (cf.usual == 1.0).all()
    assert (cf.to_frame() == 0).all(axis=None)


# Where all members agree, so do answers.


def asleep(n: int = 60) -> pd.DataFrame:
    """Customers asleep, all alike in some columns, and customers awake."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "revenue": np.append(np.zeros(n), rng.normal(50, 8, n)),
            "rate": np.append(np.full(n, 0.3), rng.normal(0.7, 0.1, n)),
            "visits": np.append(rng.normal(2, 0.5, n), rng.normal(9, 1, n)),
            "age": rng.normal(40, 8, 2 * n),
            "calls": np.append(np.ones(n, dtype=int), rng.integers(2, 6, n)),
            "plan": np.repeat(["basic", "pro"], n),
        }
    )


@cache
def sleepers(scaled: bool = True) -> tuple[VoICE, pd.DataFrame, int]:
    """An explainer of them, the customers awake, and the cluster of those asleep."""
    frame = asleep() if scaled else asleep().drop(columns="plan")
    kmeans = KMeans(2, n_init=2, random_state=0)
    columns = make_column_transformer((OneHotEncoder(), ["plan"]), remainder=StandardScaler())
    model = make_pipeline(columns, kmeans) if scaled else kmeans
    voice = VoICE(model, contraction=1.0).fit(frame)
    return voice, frame.tail(40), int(voice.predict(frame)[0])


@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize(
    "rules",
    [
        {},
        {"objective": "fewest"},
        {"objective": "prefix"},
        {"steps": {"age": 1}},
        {"bounds": {"age": ("-30", "+30")}},
        {"constraints": "visits + age <= 70"},
        {"immutable": "age", "alternatives": 1},
    ],
)
def test_what_all_members_agree_on_every_answer_has_exactly(scaled, rules):
    voice, rows, target = sleepers(scaled)
    cf = voice.explain(rows, target, plausible=0.9, **rules)
    assert cf.feasible.mean() > 0.9
    for found in (cf[cf.feasible], cf[cf.feasible].rounded()):
        answers = found.to_frame()
        assert (answers["revenue"] == 0).all()
        assert (answers["rate"] == 0.3).all()
        assert (answers["calls"] == 1).all()
        assert "plan" not in answers or (answers["plan"] == "basic").all()
        assert (found.usual > 0.1).all()
        assert (voice.predict(answers) == target).all()
    ranges = cf.ranges(0).set_index("column")
    assert (ranges.loc[["revenue", "rate"], "low"] == ranges.loc[["revenue", "rate"], "to"]).all()
    assert (ranges.loc[["revenue", "rate"], "high"] == ranges.loc[["revenue", "rate"], "to"]).all()


@pytest.mark.parametrize(
    ("column", "value", "agreed"),
    [("revenue", 1e-3, "revenue 0"), ("calls", 2, "calls 1"), ("plan", "pro", 'plan "basic"')],
)
def test_a_row_held_at_another_value_than_all_members_have_is_told_so(column, value, agreed):
    voice, rows, target = sleepers()
    row = rows.head(1).assign(**{column: value})
    held = {"levels": {column: [value]}} if column == "plan" else {"bounds": {column: (value,) * 2}}
    cf = voice.explain(row, target, plausible=0.9, **held)
    assert cf.status[0] == Status.INFEASIBLE
    assert voice.explain(row, target, **held).feasible[0]
    usual = f"as usual as 90 % of the members of cluster {target}, which all have {agreed}"
    assert cf.text(0).endswith(
        f" No allowed change is {usual}; without `plausible` there is one, see reason(i)."
    )
    reason = cf.reason(0)
    kinds = {member.kind for member in reason.conflict}
    assert "plausible" in kinds
    assert kinds <= {"plausible", "low", "levels"}
    assert f"the answer must be {usual}" in reason.text
    for relaxation in reason.relaxations:
        assert voice.explain(row, target, **relaxation.words).feasible[0]


def test_a_sentence_names_plausible_only_where_it_stands_in_the_way():
    voice, X = infeasible_row()
    target = int(voice.predict(X)[-1])
    row = np.array([[9.0, 0.0]])
    cf = voice.explain(row, target, bounds={0: (9, 9)}, plausible=0.9)
    assert "as usual as 90 % of the members" in cf.text(0)
    cf = voice.explain(row, target, immutable=[0, 1], plausible=0.9)
    assert "usual" not in cf.text(0)


def test_a_total_that_all_members_have_answers_have():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3)) * [5, 5, 1] + np.repeat([[20, 20, 0], [90, 90, 9]], 40, axis=0)
    X[:40, 1] = 40.0 - X[:40, 0]
    voice = VoICE(KMeans(2, n_init=2, random_state=0)).fit(X)
    target = int(voice.predict(X)[0])
    cf = voice.explain(X[40:], target, plausible=0.9)
    assert cf.feasible.all()
    # Within a millionth of the overall deviation, in which a spread of 0 cannot be told apart.
    assert np.abs(cf.points[:, :2].sum(axis=1) - 40.0).max() < 1e-5 * X.std()


def test_few_members_do_not_agree_by_chance():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(3, 6)), 9.0 + rng.normal(size=(40, 6))])
    members = Members.of(np.zeros((2, 6)), lambda: [(X, (np.arange(43) > 2).astype(np.int64))])
    assert not members.agreed(0).any()
    # Three members lie in a plane; other directions have the spread that all data have.
    assert np.linalg.norm(members.axes[0], axis=1).max() < 10


# Columns that may not change do not count.


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_columns_that_may_not_change_are_left_out_of_the_directions(share):
    voice, labels = iris(1.0), iris(1.0).predict(IRIS)
    target, free = int(labels[-1]), [0, 2, 3]
    rows = IRIS[labels != target][:20].copy()
    rows[:, 1] = 5.5  # far from all members
    cf = voice.explain(rows, target, immutable=1, plausible=share)
    assert cf.feasible.all()
    # By hand: as many deviations as that share of members stay within, judged on all columns, along
    # the principal directions of the others.
    own = extremeness_by_hand(IRIS[labels == target], IRIS, labels, target)
    limit = np.sort(own)[int(np.ceil(share * len(own))) - 1]
    mean, directions, deviations = by_hand(IRIS, labels, target)
    covariance = (directions.T * deviations**2) @ directions
    variances, directions = np.linalg.eigh(covariance[np.ix_(free, free)])
    along = (cf.points[:, free] - mean[free]) @ directions
    some = (np.abs(along) / np.sqrt(variances)).max(axis=1)
    assert (some <= limit * (1 + 1e-6)).all()
    assert some.max() > limit * (1 - 1e-6)
    np.testing.assert_array_equal(cf.points[:, 1], 5.5)
    assert (cf.usual >= 1 - share).all()
    assert (voice.explain(rows, target, bounds={1: (5.5, 5.5)}, plausible=share).status == 1).all()


def test_where_all_columns_but_one_may_not_change_that_one_is_judged():
    voice, frame = people()
    cf = voice.explain(frame, 1, mutable="income", plausible=0.9)
    own = frame["income"][voice.predict(frame) == 1]
    away = np.abs(cf.to_frame()["income"][cf.feasible & (cf.source != 1)] - own.mean()) / own.std()
    assert len(away) > 0
    assert away.max() < 3.5


# The first share that has an answer.

SHARES = (0.7, 0.9, 0.99, None)


def first_share(voice, X, target, **words):
    """The answers with each share, and for each row the first that has one."""
    each = [voice.explain(X, target, plausible=share, **words) for share in SHARES]
    feasible = np.array([cf.feasible for cf in each])
    return each, np.where(feasible.any(axis=0), feasible.argmax(axis=0), len(SHARES) - 1)


def awkward() -> dict:
    """Rules under which some rows have no usual answer, and some none at all."""
    return {"bounds": {"age": ("-9", "+9"), "income": ("-9", "+8")}}


@pytest.mark.parametrize("target", [1, "nearest", "each"])
@pytest.mark.parametrize("objective", ["cost", "fewest"])
def test_auto_takes_the_first_share_that_has_an_answer(target, objective):
    voice, frame = people()
    words = {"objective": objective, **awkward()}
    each, first = first_share(voice, frame[::4], target, **words)
    cf = voice.explain(frame[::4], target, plausible="auto", **words)
    assert len(np.unique(first)) > 2
    for name in ("points", "cost", "status", "target", "rho", "gap", "usual"):
        expected = np.choose(
            first if name != "points" else first[:, None], [getattr(one, name) for one in each]
        )
        np.testing.assert_array_equal(getattr(cf, name), expected, name)
    moved = cf.feasible & (cf.status != Status.ALREADY)
    expected = np.array(SHARES, dtype=float)[first]
    np.testing.assert_array_equal(cf.plausible, np.where(moved, expected, np.nan))
    for text, step, one in zip(cf.texts(), first, moved, strict=True):
        assert "; unusual" not in text
        assert ("no change that is usual in cluster" in text) == (one and step == 3)


def test_auto_answers_do_not_depend_on_the_batch():
    voice, frame = people()
    rows = frame[:60]
    cf = voice.explain(rows, 1, plausible="auto", **awkward())
    for i in range(60):
        alone = voice.explain(rows[i : i + 1], 1, plausible="auto", **awkward())
        np.testing.assert_array_equal(alone.points[0], cf.points[i])
        assert alone.text(0).split(" moves")[1:] == cf.text(i).split(" moves")[1:]


def test_every_view_of_an_auto_answer_is_that_of_its_share():
    voice, frame = people()
    rows = frame[:40]
    each, first = first_share(voice, rows, 1, **awkward())
    cf = voice.explain(rows, 1, plausible="auto", **awkward())
    assert {0, 1, 3} <= set(first)
    without = [one.cost_without("bounds") for one in each]
    np.testing.assert_array_equal(cf.cost_without("bounds"), np.choose(first, without))
    certificates = np.choose(first[:, None], [one.multipliers for one in each])
    np.testing.assert_array_equal(cf.multipliers, certificates)
    short = cf[cf.feasible].rounded()
    assert (voice.predict(short.to_frame()) == 1).all()
    numbers = ["age", "income"]
    moves = short.to_frame()[numbers] - rows[numbers].loc[short.to_frame().index]
    assert (np.abs(moves.to_numpy()) <= 9 + 1e-9).all()
    # A share that was not asked for costs no digits.
    exact = [one[cf.feasible].rounded().texts() for one in each]
    longer = [len(exact[step][i]) for i, step in enumerate(first[cf.feasible])]
    assert (np.array([len(text) for text in short.texts()]) <= longer).mean() > 0.9
    document = json.loads(cf.to_json())["answers"]
    for i, step in enumerate(first.tolist()):
        one = each[step]
        if one.feasible[i] and one.n_changed[i]:
            pd.testing.assert_frame_equal(cf.ranges(i), one.ranges(i))
        if not one.feasible[i]:
            assert cf.reason(i).text == one.reason(i).text
        assert document[i]["plausible"] == (SHARES[step] if cf.plausible[i] > 0 else None)
    assert cf[cf.feasible].rounded().texts() == [cf.text(i) for i in np.flatnonzero(cf.feasible)]


def test_alternatives_and_the_tradeoff_have_the_share_of_their_row():
    voice, frame = people()
    rows = frame[:30]
    _, first = first_share(voice, rows, 1, **awkward())
    cf = voice.explain(rows, 1, plausible="auto", alternatives=2, **awkward())
    curve = voice.tradeoff(rows, 1, plausible="auto", **awkward())
    for step in set(first.tolist()):
        words = {"plausible": SHARES[step], **awkward()}
        others = voice.explain(rows, 1, alternatives=2, **words)
        mine, theirs = (np.isin(one.row, np.flatnonzero(first == step)) for one in (cf, others))
        np.testing.assert_array_equal(cf.points[mine], others.points[theirs])
        np.testing.assert_array_equal(cf.rank[mine], others.rank[theirs])
        others = voice.tradeoff(rows, 1, **words)
        mine, theirs = (np.isin(one.row, np.flatnonzero(first == step)) for one in (curve, others))
        np.testing.assert_array_equal(curve.cost[mine], others.cost[theirs])
        np.testing.assert_array_equal(curve.cardinality[mine], others.cardinality[theirs])
    assert (np.diff(cf.row) >= 0).all()
    assert (np.diff(curve.row) >= 0).all()


def test_auto_asks_for_nothing_of_columns_that_are_taken_in_turn():
    voice, frame = people()
    objective = "prefix"
    cf, other = (
        voice.explain(frame[:20], objective=objective, plausible=p) for p in ("auto", None)
    )
    np.testing.assert_array_equal(cf.points, other.points)
    assert cf.texts() == other.texts()
    assert np.isnan(cf.plausible).all()


def test_auto_asks_for_nothing_where_members_are_not_known():
    bare = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]])
    contracted = VoICE(KMeans(3, n_init=1, random_state=0), contract_bounds=True).fit(IRIS)
    for voice, row in ((bare, np.array([[1.0, 5.0]])), (contracted, IRIS[:1])):
        cf, plain = voice.explain(row, 1, plausible="auto"), voice.explain(row, 1)
        np.testing.assert_array_equal(cf.points, plain.points)
        assert np.isnan(cf.plausible).all()
        assert cf.text(0) == plain.text(0)


def test_auto_with_rows_that_cannot_be_read():
    voice, frame = people()
    rows = frame[:12].astype({"age": float})
    rows.loc[5, "age"] = np.nan
    for target in (1, "nearest", "each"):
        cf = voice.explain(rows, target, plausible="auto", **awkward())
        unreadable = cf.row == 5
        assert (cf.status[unreadable] == Status.UNREADABLE).all()
        assert unreadable.sum() == 1
        others = voice.explain(rows.drop(index=5), target, plausible="auto", **awkward())
        np.testing.assert_array_equal(cf.cost[~unreadable], others.cost)


def test_rows_without_any_answer_and_no_rows_under_auto():
    voice, frame = people()
    cf = voice.explain(frame[:8], 1, plausible="auto", bounds={"age": (0, 1), "income": (0, 1)})
    assert (cf.status[cf.source != 1] == Status.INFEASIBLE).all()
    assert np.isnan(cf.plausible).all()
    assert len(voice.explain(frame[:0], 1, plausible="auto")) == 0


@pytest.mark.parametrize("value", ["automatic", "", 0, 1, True, [0.9]])
def test_other_words_than_auto_are_refused(value):
    with pytest.raises(OptionError, match=r"such as 0\.95, .auto., or None"):
        people()[0].explain(people()[1][:1], 1, plausible=value)


def test_auto_in_rules_and_in_the_command(tmp_path, capsys):
    rules = Rules(plausible="auto")
    assert Rules.from_dict(rules.to_dict()) == rules
    table = tmp_path / "iris.csv"
    pd.DataFrame(IRIS, columns=list("abcd")).to_csv(table, index=False)
    out = tmp_path / "out.csv"
    words = ["--k", "3", "--target", "1", "--plausible", "auto", "--output", str(out)]
    assert main(["explain", str(table), *words]) == 0
    assert len(pd.read_csv(out)) == len(IRIS)
    assert main(["explain", str(table), *words, "--plausible", "automatic"]) == 2
    assert "'automatic' is not a number" in capsys.readouterr().err


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 1e6), (1e-50, 0.0), (1e50, 0.0)])
def test_auto_takes_no_answer_away_at_extreme_numbers(scale, offset):
    X = scale * IRIS + offset
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(X)
    cf, none = voice.explain(X, "each"), voice.explain(X, "each", plausible=None)
    np.testing.assert_array_equal(cf.feasible, none.feasible)
    assert cf.feasible.sum() > 100
    assert (voice.model_.predict(cf.points[cf.feasible]) == cf.target[cf.feasible]).all()
    for i in range(0, 150, 50):
        alone = voice.explain(X[i : i + 1], "each")
        np.testing.assert_array_equal(alone.points, cf.points[cf.row == i])
