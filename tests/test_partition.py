"""A partition that is no k-means, a tree of cuts with two leaves a label, is explained as well.

The judges: a `predict` written by hand, and DAQP, which projects onto each leaf by itself.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import daqp
import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import voicecf
from test_plots import clusters_drawn, random_points
from voicecf import CFCLUST, Status, VoICE
from voicecf.errors import ModelError, OptionError
from voicecf.geometry.centroids import Centroids
from voicecf.geometry.cuts import Cuts
from voicecf.geometry.models import ADAPTERS, partition_of
from voicecf.learned.fitting import learn_from_partition
from voicecf.output.sentences import Sentences
from voicecf.plots import Plane, SegmentMap

NAMES = ["age", "visits", "money"]
WEIGHTS = np.array([0.5, 0.3, 0.2])
DELTA = 1e-9
TREE = {
    "normals": np.array([[1.0, 0, 0], [0, 1, 0.5], [-1, 1, 0], [0, 0, 1]]),
    "offsets": np.array([0.0, 1.0, 0.0, 2.0]),
    "sides": np.array([[1, 2], [-1, -2], [-3, 3], [-4, -5]]),
    "label_of": np.array([0, 1, 1, 0, 2]),
    "centers": np.array([[-2.0, -1, 0], [-2, 3, 1], [2, -1, 1], [1, 4, 0], [1, 4, 5]]),
}
LEAVES = [[(0, 1), (1, 1)], [(0, 1), (1, -1)], [(0, -1), (2, 1)], [(0, -1), (2, -1), (3, 1)],
          [(0, -1), (2, -1), (3, -1)]]  # fmt: skip


def by_hand(X):
    """Follow the tree for each row, in plain Python."""
    found = []
    for x, y, z in np.asarray(X, dtype=float).tolist():
        if x <= 0:
            found.append(0 if y + 0.5 * z <= 1 else 1)
        elif y - x <= 0:
            found.append(1)
        else:
            found.append(0 if z <= 2 else 2)
    return np.array(found)


def cuts() -> Cuts:
    return Cuts.of_arrays(WEIGHTS, TREE)


def explainer(**options) -> VoICE:
    """Return an explainer of the tree alone, without data and model."""
    voice = VoICE(None, **{"bounds": (-6.0, 6.0), "contraction": 1.0, **options})
    voice.learned_ = learn_from_partition(cuts(), NAMES, voice._options())
    return voice


def rows(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-5, 5, size=(n, 3))


def cheapest(x, target, *, alpha=1.0, lo=-6.0, hi=6.0):
    """Return the least energy of a move into any leaf of a label, by DAQP; infinite if none."""
    metric, best = WEIGHTS + DELTA, np.inf
    lo, hi = (np.broadcast_to(np.asarray(side, dtype=float), 3) for side in (lo, hi))
    for leaf, center in enumerate(TREE["centers"]):
        if TREE["label_of"][leaf] != target:
            continue
        which, signs = (np.array(part) for part in zip(*LEAVES[leaf], strict=True))
        G = signs[:, None] * TREE["normals"][which]
        h = G @ center + alpha * (signs * TREE["offsets"][which] - G @ center)
        upper, lower = np.r_[hi, h], np.r_[lo, np.full(len(h), -1e30)]
        z, _, flag, _ = daqp.solve(
            2 * np.diag(metric), -2 * metric * x, G, upper, lower, np.zeros(len(upper), np.int32),
            primal_tol=1e-10, dual_tol=1e-12,
        )  # fmt: skip
        if flag == 1:
            best = min(best, metric @ (np.asarray(z) - x) ** 2)
    return best


def assert_cheapest(cf, X, **box):
    """Compare every answer with the leaves, one by one, and ask the judge where it is."""
    least = np.array([cheapest(X[i], t, **box) for i, t in zip(cf.row, cf.target, strict=True)])
    moved = cf.status != Status.ALREADY
    np.testing.assert_array_equal(cf.feasible[moved], np.isfinite(least)[moved])
    np.testing.assert_allclose(cf.cost[moved & cf.feasible], least[moved & cf.feasible], rtol=1e-6)
    assert (by_hand(cf.points[cf.feasible]) == cf.target[cf.feasible]).all()


def test_rows_are_assigned_as_the_tree_says():
    X = rows(2000)
    np.testing.assert_array_equal(explainer().predict(X), by_hand(X))
    np.testing.assert_array_equal(cuts().label_of[cuts().assign(X)[0]], by_hand(X))


@pytest.mark.parametrize("alpha", [1.0, 0.6])
@pytest.mark.parametrize("target", [0, 1, 2])
def test_an_answer_is_the_cheapest_point_of_the_best_leaf(target, alpha):
    X = rows(60)
    cf = explainer(contraction=alpha).explain(X, target=target)
    assert len(set(cf.outcome.piece[cf.feasible].tolist())) == (1 if target == 2 else 2)
    assert_cheapest(cf, X, alpha=alpha)


def test_locked_columns_keep_their_bits_and_leave_the_cheapest_leaf_that_they_can():
    X = rows(60, seed=1)
    cf = explainer().explain(X, target=2, immutable="age")
    assert not cf.feasible.all()
    np.testing.assert_array_equal(cf.points[cf.feasible, 0], X[cf.row[cf.feasible], 0])
    for i in range(len(cf)):
        low, high = np.full(3, -6.0), np.full(3, 6.0)
        low[0] = high[0] = X[i, 0]
        least = cheapest(X[i], 2, lo=low, hi=high)
        assert cf.feasible[i] == np.isfinite(least) or cf.status[i] == Status.ALREADY
        if cf.status[i] == Status.OPTIMAL:
            assert cf.cost[i] == pytest.approx(least, rel=1e-6)


def test_the_nearest_target_is_the_best_of_all_others():
    X = rows(80, seed=2)
    voice = explainer()
    near, every = voice.explain(X), voice.explain(X, "each")
    assert_cheapest(near, X)
    best = np.array([every.cost[every.row == i].min() for i in range(len(X))])
    np.testing.assert_allclose(near.cost, best, rtol=1e-12)
    assert (near.target != near.source).all()


def test_no_rows_have_no_answers():
    for question in ({"target": 1}, {}, {"target": "each"}, {"target": 0, "objective": "fewest"}):
        assert len(explainer().explain(rows(0), **question)) == 0


def test_one_row_alone_has_the_bits_of_a_batch():
    X = rows(30, seed=3)
    voice = explainer()
    for question in ({"target": 0}, {"target": "nearest"}, {"target": 1, "objective": "fewest"}):
        whole = voice.explain(X, **question)
        for i in range(len(X)):
            np.testing.assert_array_equal(
                whole.points[i], voice.explain(X[[i]], **question).points[0]
            )


def test_costs_and_linear_rules_choose_among_the_leaves():
    X = rows(40, seed=4)
    cf = explainer().explain(X, target=0, constraints="age + visits <= 1", costs={"money": 3.0})
    assert cf.feasible.all()
    moved = cf.status != Status.ALREADY
    assert (cf.points[moved, :2].sum(axis=1) <= 1 + 1e-12).all()
    assert (by_hand(cf.points) == 0).all()
    grid = np.array(np.meshgrid(*[np.linspace(-6, 6, 49)] * 3)).reshape(3, -1).T
    grid = grid[(by_hand(grid) == 0) & (grid[:, 0] + grid[:, 1] <= 1)]
    for i in np.flatnonzero(moved):
        factors = WEIGHTS * [1, 1, 3]
        assert cf.cost[i] <= (((grid - X[i]) ** 2) @ factors).min() * (1 + 1e-9)


def changed_alone(voice, x, target, columns):
    locked = [name for c, name in enumerate(NAMES) if c not in columns]
    found = voice.explain(x[None], target, immutable=locked)
    return found.cost[0] if found.feasible[0] else np.inf


@pytest.mark.parametrize("target", [0, 1, 2])
def test_fewest_changes_prefixes_and_trade_offs_see_all_leaves(target):
    X, voice = rows(25, seed=5), explainer()
    X = X[by_hand(X) != target]
    fewest, prefix = (voice.explain(X, target, objective=name) for name in ("fewest", "prefix"))
    trade = voice.tradeoff(X, target)
    order = voice.learned_.ranking.tolist()
    for i, x in enumerate(X):
        sets = {n: [changed_alone(voice, x, target, c) for c in combinations(range(3), n)]
                for n in (1, 2, 3)}  # fmt: skip
        least = next(n for n in sets if np.isfinite(sets[n]).any())
        assert fewest.n_changed[i] == least
        assert fewest.cost[i] == pytest.approx(min(sets[least]), rel=1e-9)
        lengths = [changed_alone(voice, x, target, order[:n]) for n in (1, 2, 3)]
        shortest = int(np.flatnonzero(np.isfinite(lengths))[0])
        assert prefix.cardinality[i] == shortest + 1
        assert prefix.cost[i] == pytest.approx(lengths[shortest], rel=1e-9)
        for n, cost in zip(
            trade.cardinality[trade.row == i], trade.cost[trade.row == i], strict=True
        ):
            assert cost == pytest.approx(min(min(sets[m]) for m in range(1, n + 1)), rel=1e-9)


@pytest.mark.parametrize("target", [0, 1, 2])
def test_alternatives_differ_in_their_columns_and_land(target):
    X = rows(10, seed=6)
    cf = explainer().explain(X[by_hand(X) != target], target, alternatives=2)
    assert (cf.rank > 0).any()
    assert (by_hand(cf.points) == target).all()
    for i in range(1, len(cf)):
        if cf.rank[i]:
            assert cf.cost[i] >= cf.cost[i - 1] * (1 - 1e-9)
            before, now = (set(np.flatnonzero(cf.outcome.changes[j])) for j in (i - 1, i))
            assert not before <= now


def test_whole_numbers_are_searched_in_every_leaf():
    X = np.round(rows(30, seed=7))
    cf = explainer().explain(X, 1, steps=dict.fromkeys(NAMES, 1))
    grid = np.array(np.meshgrid(*[np.arange(-6.0, 7)] * 3)).reshape(3, -1).T
    grid = grid[by_hand(grid) == 1]
    for i in np.flatnonzero(cf.status == Status.OPTIMAL):
        assert (cf.points[i] == np.round(cf.points[i])).all()
        assert cf.cost[i] == pytest.approx((((grid - X[i]) ** 2) @ WEIGHTS).min(), rel=1e-9)


def test_a_leaf_that_was_not_searched_to_the_end_leaves_a_gap():
    X = np.round(rows(30, seed=7))
    words = {"steps": dict.fromkeys(NAMES, 1), "constraints": "2*age + 3*visits - money <= 1.5"}
    words["max_changes"] = 2
    grid = np.array(np.meshgrid(*[np.arange(-6.0, 7)] * 3)).reshape(3, -1).T
    inside = (by_hand(grid) == 1) & (grid @ [2, 3, -1] <= 1.5)
    seen = set()
    for limit in (1, 2, 3, 5, 20_000):
        cf = explainer().explain(X, 1, limit=limit, **words)
        seen |= set(cf.status.tolist())
        for i in np.flatnonzero(cf.feasible & (cf.status != Status.ALREADY)):
            few = inside & ((grid != X[i]).sum(axis=1) <= 2)
            least = (((grid[few] - X[i]) ** 2) @ WEIGHTS).min()
            assert cf.cost[i] * (1 - cf.gap[i]) <= least * (1 + 1e-6)
            if cf.status[i] == Status.OPTIMAL:
                assert cf.cost[i] == pytest.approx(least, rel=1e-9)
    assert {Status.STOPPED, Status.OPTIMAL} <= seen


def test_multipliers_prove_that_no_point_of_the_leaf_is_cheaper():
    X, voice = rows(40, seed=8), explainer(bounds=None)
    cf = voice.explain(X, 1)
    for i in np.flatnonzero(cf.status == Status.OPTIMAL):
        piece = voice.partition_.piece(int(cf.outcome.piece[i]))
        mu, slack = cf.multipliers[i][piece.columns], piece.slack(cf.points[i])
        assert (mu >= 0).all()
        assert np.abs(mu * slack).max() < 1e-9
        pull = (WEIGHTS + DELTA) * (cf.points[i] - X[i])
        np.testing.assert_allclose(pull, -piece.normals.T @ mu, atol=1e-9)


def test_a_reason_says_what_stands_in_the_way_and_how_to_go_on():
    x = np.array([[-1.0, -3.0, 0.0]])
    words = {"immutable": ["age", "money"], "bounds": {"visits": (-5, 0.5)}}
    cf = explainer().explain(x, 1, **words)
    assert cf.status[0] == Status.INFEASIBLE
    reason = cf.reason(0)
    assert "another cluster is always chosen" in reason.text
    assert {member.kind for member in reason.conflict} >= {"cluster"}
    assert len(reason.relaxations) > 0
    for relaxation in reason.relaxations:
        again = explainer().explain(x, 1, **{**words, **relaxation.words})
        assert again.feasible[0]
        assert by_hand(again.points)[0] == 1
    without = explainer().explain(x, 1)
    assert without.feasible[0]


def test_a_contracted_leaf_is_too_close_to_its_border():
    x = np.array([[-1.0, -3.0, 0.0]])
    words = {"immutable": ["age", "money"], "bounds": {"visits": (-5, 1.2)}}
    assert explainer().explain(x, 1, **words).feasible[0]
    reason = explainer(contraction=0.5).explain(x, 1, **words).reason(0)
    assert "another cluster is always too close" in reason.text


def test_a_sentence_says_how_far_a_change_can_go_in_its_own_leaf():
    X = rows(60)
    short = explainer().explain(X, target=1).rounded()
    said = Sentences(short.outcome).multiples
    moved = np.flatnonzero((short.status == Status.OPTIMAL) & (said > 1.2) & np.isfinite(said))
    assert len(set(short.outcome.piece[moved].tolist())) == 2
    start, move = X[short.row[moved]], short.points[moved] - X[short.row[moved]]
    inside = start + said[moved, None] * move
    assert (by_hand(inside) == 1).all()
    beyond = start + 1.12 * said[moved, None] * move  # two digits, rounded down
    assert ((by_hand(beyond) != 1) | (np.abs(beyond) > 6.0).any(axis=1)).all()


def test_the_ends_of_ranges_are_where_the_label_changes():
    X, voice = rows(30, seed=9), explainer()
    cf = voice.explain(X, 1)
    binds = set()
    for i in np.flatnonzero(cf.status == Status.OPTIMAL):
        table = pd.DataFrame(cf.ranges(i))
        for line in table.itertuples():
            c = NAMES.index(line.column)
            for end, name, outward in (
                (line.low, line.binds_low, -1),
                (line.high, line.binds_high, 1),
            ):
                point = cf.points[i].copy()
                point[c] = end
                assert by_hand(point[None])[0] == 1
                point[c] = end + outward * 1e-6
                binds.add(name)
                if name == "another cluster":
                    # It leaves the leaf; what is behind the cut may have the same label.
                    assert voice.partition_.assign(point[None])[0][0] != cf.outcome.piece[i]
    assert {"another cluster", "data range"} & binds


@pytest.mark.parametrize("pair", [("age", "visits"), ("visits", "money")])
def test_a_map_shows_both_leaves_of_a_label(pair):
    X, voice = rows(30, seed=10), explainer()
    cf = voice.explain(X, 1)
    i = int(np.flatnonzero(cf.status == Status.OPTIMAL)[0])
    plane = Plane.through(cf, i, *pair)
    found = SegmentMap.from_voice(voice, X, plane, cf, i)
    points = random_points(found)
    drawn = clusters_drawn(found, points, 1e-6)
    np.testing.assert_array_equal(drawn[drawn >= 0], by_hand(plane.coordinates(points))[drawn >= 0])
    drawn_labels = [label for label, _ in found.cells]
    if pair == ("age", "visits"):
        assert drawn_labels.count(1) == 2
    cf.plot(i, kind="map", plane=plane, data=X)
    cf.plot(i)


def test_it_is_saved_and_loaded(tmp_path):
    X, voice = rows(50, seed=11), explainer(contraction=0.8, names=["low", "middle", "high"])
    voice.save(tmp_path / "tree.voicecf")
    loaded = voicecf.load(tmp_path / "tree.voicecf")
    for question in ({"target": "middle"}, {}, {"target": 0, "objective": "fewest"}):
        before, after = voice.explain(X, **question), loaded.explain(X, **question)
        np.testing.assert_array_equal(before.points, after.points)
        assert before.text(0) == after.text(0)
        assert before.to_json() == after.to_json()
    np.testing.assert_array_equal(loaded.predict(X), by_hand(X))


class Tree(BaseEstimator):
    """A model with a `predict` of its own, which is asked for every answer."""

    asked = 0

    def fit(self, X, y=None):
        self.cuts_ = cuts()
        return self

    def predict(self, X):
        type(self).asked += 1
        return by_hand(X)


@pytest.fixture
def adapter(monkeypatch):
    """Let models with an attribute `cuts_` be explained: one line in the table of adapters."""
    own = {"cuts_": lambda model: replace(model.cuts_, model=model, trusted=False)}
    for attribute, make in own.items():
        monkeypatch.setitem(ADAPTERS, attribute, make)


def test_a_model_is_explained_from_data_with_what_its_members_show(adapter):
    X = rows(400, seed=12)
    voice = VoICE(Tree(), names=["low", "middle", "high"]).fit(X)
    members = by_hand(X)
    np.testing.assert_array_equal(voice.predict(X), members)
    # A label's contraction is the least that holds all of its members, each in its own leaf.
    pieces = voice.partition_.assign(X)[0]
    for t in range(3):
        scores = [voice.partition_.piece(int(p)).scores(x[None])[0]
                  for p, x in zip(pieces[members == t], X[members == t], strict=True)]  # fmt: skip
        assert voice.alpha_[t] == pytest.approx(max(scores))
    before = Tree.asked
    cf = voice.explain(X[:60], "middle")
    assert Tree.asked > before
    assert (by_hand(cf.points[cf.feasible]) == 1).all()
    usual = voice.explain(X[:60], "middle", plausible=0.9)
    assert (usual.usual[usual.status == Status.OPTIMAL] >= 0.1 - 1e-9).all()


def test_it_is_explained_behind_a_pipeline(adapter):
    frame = pd.DataFrame(rows(300, seed=13) * [10, 1, 100] + [50, 3, 1000], columns=NAMES)
    scaler = StandardScaler().fit(frame)
    model = make_pipeline(scaler, Tree().fit(None))
    cf = VoICE(model, contraction=1.0).fit(frame).explain(frame[:50], 1)
    assert cf.feasible.all()
    assert (by_hand(scaler.transform(cf.to_frame())) == 1).all()


def test_it_is_explained_behind_steps_that_mix_columns(adapter):
    frame = pd.DataFrame(rows(300, seed=14), columns=NAMES)
    steps = make_pipeline(StandardScaler(), PCA(3, random_state=0)).fit(frame)
    model = make_pipeline(*[step for _, step in steps.steps], Tree().fit(None))
    cf = VoICE(model, contraction=1.0).fit(frame).explain(frame[:50], 1)
    found = cf.to_frame()
    assert cf.feasible.any()
    assert (by_hand(steps.transform(found[cf.feasible])) == 1).all()


def test_a_model_that_disagrees_with_its_tree_is_refused(adapter):
    class Other(Tree):
        def predict(self, X):
            return (by_hand(X) + 1) % 3

    with pytest.raises(ModelError, match=r"Other\.predict assigns 200 of 200 rows"):
        VoICE(Other()).fit(rows(200))


def test_a_label_of_two_leaves_has_no_single_cell():
    with pytest.raises(OptionError, match="2 pieces"):
        explainer().cell(0)
    with pytest.raises(OptionError, match="2 pieces"):
        explainer().region(1)
    with pytest.raises(OptionError, match="2 pieces"):
        explainer().neighbors(1)
    with pytest.raises(OptionError, match="two clusters"):
        explainer().neighbors(2)
    assert explainer().cell(2).target == 2


WRONG = {
    "shape": {"offsets": np.zeros(3)},
    "kind": {"label_of": np.zeros(5)},
    "leaf twice": {"sides": np.array([[1, 2], [-1, -1], [-3, 3], [-4, -5]])},
    "cut twice": {"sides": np.array([[1, 1], [-1, -2], [-3, 3], [-4, -5]])},
    "loop": {"sides": np.array([[1, 3], [-1, -2], [-3, 2], [-4, -5]])},
    "labels": {"label_of": np.array([0, 1, 1, 0, 3])},
    "center outside": {"centers": -TREE["centers"]},
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_tree_is_refused(what):
    with pytest.raises(ModelError):
        Cuts.of_arrays(WEIGHTS, {**TREE, **WRONG[what]})


def test_a_tree_of_too_many_cuts_is_refused_before_anything_is_made_of_it():
    c = 100_000
    chain = np.column_stack([-1 - np.arange(c), np.append(np.arange(1, c), -1 - c)])
    arrays = {
        "normals": np.ones((c, 1)), "offsets": np.arange(c) + 0.5, "sides": chain,
        "label_of": np.arange(c + 1) % 2, "centers": np.arange(c + 1.0)[:, None],
    }  # fmt: skip
    with pytest.raises(ModelError, match="100,000 cuts is too large"):
        Cuts.of_arrays(np.ones(1), arrays)
    few = 50
    small = {
        name: array[: few + (name in ("label_of", "centers"))] for name, array in arrays.items()
    }
    small["sides"] = small["sides"].copy()
    small["sides"][-1, 1] = -1 - few
    assert Cuts.of_arrays(np.ones(1), small).assign(small["centers"])[0].tolist() == [
        *range(few + 1)
    ]


def test_a_tree_is_no_model_for_pairwise_projections(adapter):
    with pytest.raises(ModelError, match="needs a model with centroids"):
        CFCLUST(Tree()).fit(rows(200))


def test_doubtful_points_are_those_within_rounding_of_a_cut_on_their_way():
    points = np.array([[0.0, -3, 0], [1e-20, -3, 0], [1.0, 1, 0], [-1.0, 1, 0], [-1, 0.99, 0]])
    _, doubtful = cuts().assign(points)
    assert doubtful.tolist() == [True, False, True, True, False]


def test_centroids_are_a_partition_with_a_piece_a_label():
    X = np.random.default_rng(0).normal(size=(60, 2))
    partition = partition_of(KMeans(4, n_init=1, random_state=0).fit(X))
    assert isinstance(partition, Centroids)
    assert partition.one_each
    assert partition.n_clusters == partition.n_pieces == 4
    assert [partition.pieces_of(t).tolist() for t in range(4)] == [[0], [1], [2], [3]]
    less = partition.without(2, [0, 3])
    assert less.piece(2).rivals.tolist() == [1]
    assert less.piece(1).rivals.tolist() == [0, 2, 3]
    assert less.table(np.ones(4), DELTA) is None
