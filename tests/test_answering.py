"""Answers are verified in the user's columns: what is wrong is asked for again, or is no answer.

The solver of these tests errs on purpose: it spoils the answers of some pairs of row and target
while the guard that it is asked for is small.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from voicecf import Status, VoICE
from voicecf.search import answering
from voicecf.search.solving import solve

CENTERS = np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 4.0], [0.0, 10.0, -4.0]])
EACH = 12  # rows a cluster
NEVER = np.inf


def rows_around_centers() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    values = np.repeat(CENTERS, EACH, axis=0) + rng.normal(0, 0.8, (3 * EACH, 3))
    return pd.DataFrame(values, columns=["a", "b", "c"])


TABLE = rows_around_centers()
WHOLE = TABLE.round().astype({"c": int})


def kmeans() -> KMeans:
    """Return an unfitted model whose clusters 0, 1 and 2 are those of CENTERS."""
    return KMeans(3, init=CENTERS, n_init=1)


def scaled() -> Any:
    scaler = StandardScaler().fit(TABLE)
    return make_pipeline(
        StandardScaler(), KMeans(3, init=scaler.transform(TABLE)[::EACH], n_init=1)
    )


def voice_of(model: Any, table: pd.DataFrame) -> VoICE:
    voice = VoICE(model, contraction=1.0, bounds=None).fit(table)
    assert voice.predict(table).tolist() == np.repeat([0, 1, 2], EACH).tolist()
    return voice


# Ways to ask whose answers are verified: by steps before the model, by choices, by linear rules.
WAYS = {
    "scaled": (scaled, TABLE, {}),
    "scaled whole numbers": (scaled, WHOLE, {}),
    "bare with whole numbers": (kmeans, WHOLE, {}),
    "bare with steps": (kmeans, TABLE, {"steps": {"a": 0.5}}),
    "bare with a linear rule": (kmeans, TABLE, {"constraints": "a + b <= 100"}),
    "bare with a limit": (kmeans, TABLE, {"max_changes": 2}),
}


@dataclass
class Erring:
    """The true solver, but the answers of some pairs are spoilt while the guard is small.

    `until` has for each spoilt pair of row and target the least factor of the guard with which its
    answer is true; `calls` has the pairs and the factor of each call.
    """

    spoilt: Callable[[Any, int, int], Any]
    until: dict[tuple[int, int], float]
    status: Status = Status.OPTIMAL
    calls: list[tuple[list[tuple[int, int]], float]] = field(default_factory=list)

    def __call__(self, question, rows, targets, *, factor: float | None = None):
        factor = question.first_factor if factor is None else factor
        pairs = list(zip(rows.tolist(), targets.tolist(), strict=True))
        self.calls.append((pairs, factor))
        answers = solve(question, rows, targets, factor=factor)
        for i, pair in enumerate(pairs):
            if factor < self.until.get(pair, 0.0):
                answers.points[i] = self.spoilt(question, *pair)
                answers.status[i] = self.status
        return answers

    @property
    def factors(self) -> list[float]:
        return [factor for _, factor in self.calls]


@pytest.fixture
def solver(monkeypatch):
    """Put a solver that errs in place of the true one, for first answers and for later ones."""
    first = answering.solve_pairs

    def use(*arguments, **options) -> Erring:
        erring = Erring(*arguments, **options)

        def solve_pairs(question, pairs, *, deepen=False):
            return first(question, pairs, erring, deepen=deepen)

        monkeypatch.setattr(answering, "solve", erring)
        monkeypatch.setattr(answering, "solve_pairs", solve_pairs)
        return erring

    return use


def at_home(question, row: int, target: int) -> Any:
    """Spoil an answer: the centroid of the cluster that the row is to leave."""
    return question.learned.partition.centers[question.source[row]]


def at_center(question, row: int, target: int) -> Any:
    """Answer with the centroid of the target, which the model puts there and a rule may forbid."""
    return question.learned.partition.centers[target]


def same_answers(found, expected, which=slice(None)) -> None:
    """Compare all that is said of some answers, bit for bit."""
    for name in ("row", "target", "points", "status", "cost", "rho", "gap", "cardinality"):
        np.testing.assert_array_equal(getattr(found, name)[which], getattr(expected, name)[which])
    frames = (some.to_frame()[which] for some in (found, expected))
    pd.testing.assert_frame_equal(*frames, check_dtype=False)  # a gap turns int64 into Int64


# An answer that the model puts elsewhere.


@pytest.mark.parametrize("way", WAYS)
def test_an_answer_that_the_model_puts_elsewhere_is_asked_for_again_with_a_larger_guard(
    way, solver
):
    model, table, rules = WAYS[way]
    voice = voice_of(model(), table)
    true = voice.explain(table[:EACH], 1, **rules, plausible=None)
    asked = solver(at_home, {(row, 1): 100.0 for row in range(EACH)})
    cf = voice.explain(table[:EACH], 1, **rules, plausible=None)
    assert asked.factors[0] == 1.0
    assert (np.diff(asked.factors) > 0).all()
    assert asked.factors[-2] < 100.0 <= asked.factors[-1], "it ends once all answers are right"
    assert all(len(pairs) == EACH for pairs, _ in asked.calls)
    assert (cf.status == Status.OPTIMAL).all()
    assert (voice.model_.predict(cf.to_frame()) == 1).all()
    np.testing.assert_allclose(cf.cost, true.cost, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_what_stays_wrong_is_unresolved_without_a_point_and_without_a_claim(way, solver):
    model, table, rules = WAYS[way]
    voice, wrong = voice_of(model(), table), np.arange(EACH) % 3 == 1
    true = voice.explain(table[:EACH], 1, **rules, plausible=None)
    asked = solver(at_home, {(row, 1): NEVER for row in np.flatnonzero(wrong)})
    cf = voice.explain(table[:EACH], 1, **rules, plausible=None)
    assert len(asked.factors) >= 3
    assert (np.diff(asked.factors) > 0).all()
    assert (cf.status[wrong] == Status.UNRESOLVED).all()
    assert not cf.feasible[wrong].any()
    for claim in (cf.points, cf.cost, cf.rho, cf.gap):
        assert np.isnan(claim[wrong]).all()
    assert cf.to_frame()[wrong].isna().all(axis=None)
    assert (cf.n_changed[wrong] == 0).all()
    assert (cf.cardinality == true.cardinality).all()
    same_answers(cf, true, ~wrong)


@pytest.mark.parametrize("way", WAYS)
def test_right_answers_are_not_asked_for_again(way, solver):
    model, table, rules = WAYS[way]
    voice, right = voice_of(model(), table), np.arange(EACH) != 4
    true = voice.explain(table[:EACH], 2, **rules, plausible=None)
    asked = solver(at_home, {(4, 2): 50.0})
    cf = voice.explain(table[:EACH], 2, **rules, plausible=None)
    assert asked.calls[0][0] == [(row, 2) for row in range(EACH)]
    assert len(asked.calls) > 1
    assert all(pairs == [(4, 2)] for pairs, _ in asked.calls[1:])
    same_answers(cf, true, right)
    assert cf.status[4] == Status.OPTIMAL


@pytest.mark.parametrize("way", WAYS)
def test_if_all_answers_are_right_the_solver_is_asked_once(way, solver):
    model, table, rules = WAYS[way]
    asked = solver(at_home, {})
    cf = voice_of(model(), table).explain(table[:EACH], "each", **rules, plausible=None)
    assert asked.factors == [1.0]
    assert (cf.status == Status.OPTIMAL).all()


@pytest.mark.parametrize("way", WAYS)
def test_each_wrong_pair_is_asked_for_again_with_its_own_row_and_target(way, solver):
    model, table, rules = WAYS[way]
    voice, rows = voice_of(model(), table), table.iloc[[30, 2, 17, 5, 14]]
    until = {(1, 2): 100.0, (0, 1): 5.0, (2, 0): 1000.0, (3, 1): 20.0, (3, 2): NEVER, (4, 2): 5.0}
    asked = solver(at_home, until)
    cf = voice.explain(rows, "each", **rules, plausible=None)
    for (_, before), (pairs, _) in zip(asked.calls, asked.calls[1:], strict=False):
        assert pairs == sorted(pair for pair in until if until[pair] > before)
    never = (cf.row == 3) & (cf.target == 2)
    assert (cf.status == np.where(never, Status.UNRESOLVED, Status.OPTIMAL)).all()
    assert (voice.model_.predict(cf[~never].to_frame()) == cf.target[~never]).all()
    # Row by row the true solver says the same.
    for i in np.flatnonzero(~never):
        alone = voice.explain(rows.iloc[[cf.row[i]]], int(cf.target[i]), **rules, plausible=None)
        np.testing.assert_allclose(cf.points[i], alone.points[0], rtol=1e-4, atol=1e-4)


def test_an_answer_of_a_search_that_was_cut_short_is_verified_too(solver):
    voice = voice_of(kmeans(), WHOLE)
    until = {(0, 1): 20.0, (1, 1): NEVER}
    asked = solver(at_home, until, status=Status.STOPPED)
    cf = voice.explain(WHOLE[:2], 1, plausible=None)
    assert asked.calls[1][0] == [(0, 1), (1, 1)]
    assert cf.status.tolist() == [Status.OPTIMAL, Status.UNRESOLVED]


@pytest.mark.parametrize("way", ["scaled", "bare with steps", "bare with a linear rule"])
def test_where_there_is_no_answer_none_is_asked_for_again(way, solver):
    model, table, rules = WAYS[way]
    voice = voice_of(model(), table)
    rules = {**rules, "bounds": {"a": (-50, "+3")}, "immutable": ["b", "c"]}
    true = voice.explain(table.iloc[[0, 25, 13, 2]], [1, 1, 0, 1], **rules, plausible=None)
    statuses = [Status.INFEASIBLE, Status.INFEASIBLE, Status.OPTIMAL, Status.INFEASIBLE]
    assert true.status.tolist() == statuses
    asked = solver(at_home, {(2, 0): 20.0})
    cf = voice.explain(table.iloc[[0, 25, 13, 2]], [1, 1, 0, 1], **rules, plausible=None)
    assert all(pairs == [(2, 0)] for pairs, _ in asked.calls[1:])
    assert cf.status.tolist() == statuses
    assert np.isnan(cf.points[[0, 1, 3]]).all()
    assert cf.to_frame().iloc[[0, 1, 3]].isna().all(axis=None)
    assert voice.model_.predict(cf[[2]].to_frame()) == [0]


# An answer that is against a rule, although the model puts it into the target.

# Rules that the centroid of cluster 1, (10, 0, 4), breaks for rows near (0, 0, 0), and what they
# mean for the values before and after.
BROKEN = {
    "linear": ({"constraints": "2*a + c <= 20"}, lambda own, new: 2 * new.a + new.c <= 20),
    "together": (
        {"together": "if a >= 8 then b >= 3"},
        lambda own, new: (new.a < 8) | (new.b >= 3),
    ),
    "least": (
        {"least": {"b": 4}},
        lambda own, new: (new.b == own.b) | ((new.b - own.b).abs() >= 4),
    ),
}


def curved() -> Any:
    """Return a pipeline whose columns are mapped by a curve."""
    steps = StandardScaler(with_mean=False), FunctionTransformer(np.arcsinh, inverse_func=np.sinh)
    starts = make_pipeline(*steps).fit_transform(TABLE)[::EACH]
    return make_pipeline(*steps, KMeans(3, init=starts, n_init=1))


MODELS = {
    "scaled": (scaled, TABLE),
    "curved": (curved, TABLE),
    "bare": (kmeans, TABLE),
    "whole": (kmeans, WHOLE),
}
# Behind a pipeline, a change that is too small is made as large as the least when it is written.
AGAINST = [
    (way, broken)
    for way in MODELS
    for broken in BROKEN
    if broken != "least" or way in ("bare", "whole")
]


@pytest.mark.parametrize(("way", "broken"), AGAINST)
def test_an_answer_against_a_rule_is_asked_for_again_although_its_label_is_right(
    way, broken, solver
):
    (model, table), (rules, meaning) = MODELS[way], BROKEN[broken]
    voice, rows = voice_of(model(), table), table[:EACH]
    true = voice.explain(rows, 1, **rules, plausible=None)
    assert (true.status == Status.OPTIMAL).all()
    asked = solver(at_center, {(row, 1): 100.0 for row in (2, 7)})
    cf = voice.explain(rows, 1, **rules, plausible=None)
    assert [pairs for pairs, _ in asked.calls[1:]] == [[(2, 1), (7, 1)]] * len(asked.calls[1:])
    assert (np.diff(asked.factors) > 0).all()
    assert asked.factors[-2] < 100.0 <= asked.factors[-1]
    assert (cf.status == Status.OPTIMAL).all()
    assert meaning(rows, cf.to_frame()).all()
    np.testing.assert_allclose(cf.cost, true.cost, rtol=1e-6)


@pytest.mark.parametrize(("way", "broken"), AGAINST)
def test_what_stays_against_a_rule_is_unresolved(way, broken, solver):
    (model, table), (rules, _) = MODELS[way], BROKEN[broken]
    voice = voice_of(model(), table)
    solver(at_center, {(row, 1): NEVER for row in (2, 7)})
    cf = voice.explain(table[:EACH], 1, **rules, plausible=None)
    wrong = np.isin(np.arange(EACH), [2, 7])
    assert (cf.status == np.where(wrong, Status.UNRESOLVED, Status.OPTIMAL)).all()
    assert (np.isnan(cf.points).any(axis=1) == wrong).all()
    assert (np.isnan(cf.points).all(axis=1) == wrong).all()


@pytest.mark.parametrize("way", MODELS)
def test_the_same_answers_are_right_without_the_rule(way, solver):
    model, table = MODELS[way]
    voice = voice_of(model(), table)
    rules = {"max_changes": 3}
    asked = solver(at_center, {(row, 1): NEVER for row in (2, 7)})
    cf = voice.explain(table[:EACH], 1, **rules, plausible=None)
    assert asked.factors == [1.0]
    assert (cf.status == Status.OPTIMAL).all()


@pytest.mark.parametrize("way", ["scaled", "bare"])
def test_an_answer_unlike_the_members_of_its_target_is_asked_for_again(way, solver):
    def far_out(question, row, target):
        center = question.learned.partition.centers
        return center[target] + 3 * (center[target] - center.mean(axis=0))

    model, table = MODELS[way]
    voice = voice_of(model(), table)
    until = {(1, 1): 20.0, (1, 2): NEVER, (3, 2): 100.0}
    asked = solver(far_out, until)
    cf = voice.explain(table[:4], "each", plausible=0.95)
    assert asked.calls[1][0] == sorted(until)
    never = (cf.row == 1) & (cf.target == 2)
    assert (cf.status == np.where(never, Status.UNRESOLVED, Status.OPTIMAL)).all()
    assert (cf.usual[~never] >= 0.049).all()


def test_a_least_change_is_verified_against_the_pairs_own_row(solver):
    # A change to b = 5 is too small for the rows whose b is 4.5, and large enough for the others.
    table = TABLE.copy()
    table.loc[[0, 3], "b"] = [-0.5, 4.5]
    voice = voice_of(kmeans(), table)
    asked = solver(lambda *_: [10.0, 5.0, 4.0], {(row, 1): 20.0 for row in range(4)})
    cf = voice.explain(table.iloc[[3, 0, 3, 0]], 1, least={"b": 2}, plausible=None)
    assert asked.calls[1][0] == [(0, 1), (2, 1)]
    assert (cf.status == Status.OPTIMAL).all()
    assert (cf.points[[1, 3]] == [10.0, 5.0, 4.0]).all()
    changes = np.abs(cf.points[[0, 2], 1] - 4.5)
    assert ((changes == 0) | (changes >= 2)).all()


def test_a_change_that_is_too_small_is_written_as_the_least_behind_a_pipeline(solver):
    voice = voice_of(scaled(), TABLE)
    own = TABLE["b"][:EACH]
    center = voice.model_[0].inverse_transform(voice.partition_.centers)[1]
    asked = solver(at_center, {(row, 1): NEVER for row in range(EACH)})
    cf = voice.explain(TABLE[:EACH], 1, least={"b": 4}, plausible=None)
    assert asked.factors == [1.0]
    changed = cf.to_frame()["b"]
    assert (changed == np.where(center[1] > own, own + 4, own - 4)).all()
    assert (voice.model_.predict(cf.to_frame()) == 1).all()


@pytest.mark.parametrize("immutable", ["a", "c"])
def test_a_wrong_answer_leaves_no_trace_in_the_types_of_the_others(immutable, solver):
    table = WHOLE.astype({"a": int})
    voice = voice_of(scaled(), table)
    solver(lambda *_: [0.123, -0.456, 0.789], {(3, 2): NEVER})
    cf = voice.explain(table[:EACH], 2, immutable=immutable, plausible=None)
    assert cf.status[3] == Status.UNRESOLVED
    assert cf.to_frame()[immutable].dtype == "Int64"
    assert (cf.to_frame()[immutable].drop(3) == table[immutable][:EACH].drop(3)).all()


def test_a_rule_holds_for_the_number_that_single_precision_makes_of_an_answer(solver):
    # The number of single precision next to 7.3 is larger than 7.3.
    voice = voice_of(kmeans(), TABLE.astype(np.float32))
    asked = solver(lambda *_: [7.3, 0.0, 4.0], {(1, 1): 20.0, (2, 1): NEVER})
    cf = voice.explain(TABLE.astype(np.float32)[:4], 1, constraints="a <= 7.3", plausible=None)
    assert asked.calls[1][0] == [(1, 1), (2, 1)]
    assert (cf.status == [Status.OPTIMAL, Status.OPTIMAL, Status.UNRESOLVED, Status.OPTIMAL]).all()
    assert (cf.points[cf.feasible, 0].astype(float) <= 7.3).all()


# Rows that are in their target already, and those that cannot be read.


@pytest.mark.parametrize("way", WAYS)
def test_rows_in_their_target_stay_and_are_not_solved(way, solver):
    model, table, rules = WAYS[way]
    voice = voice_of(model(), table)
    rows, targets = table.iloc[[1, 13, 2, 26, 14]], np.array([1, 1, 0, 2, 2])
    asked = solver(at_home, {})
    cf = voice.explain(rows, targets, **rules, plausible=None)
    assert asked.calls == [([(0, 1), (4, 2)], 1.0)]
    stays = np.array([False, True, True, True, False])
    assert (cf.status == np.where(stays, Status.ALREADY, Status.OPTIMAL)).all()
    pd.testing.assert_frame_equal(cf.to_frame()[stays], rows[stays])
    np.testing.assert_array_equal(cf.points[stays], voice.space_.read(rows).points[stays])
    assert (cf.cost[stays] == 0).all()
    assert (cf.gap[stays] == 0).all()
    assert np.isposinf(cf.rho[stays]).all()
    assert (cf.cardinality[stays] == 0).all()
    assert (cf.n_changed[stays] == 0).all()
    for i, target in enumerate(targets):
        alone = voice.explain(rows.iloc[[i]], int(target), **rules, plausible=None)
        np.testing.assert_array_equal(cf.points[i], alone.points[0])


@pytest.mark.parametrize("way", ["scaled", "bare with a linear rule"])
def test_deepened_rows_move_into_the_contracted_cell_unless_they_are_in_it(way):
    model, table, rules = WAYS[way]
    voice = VoICE(model(), contraction=0.1, bounds=None).fit(table)
    rows = table[EACH : 2 * EACH]
    points = voice.space_.read(rows).points
    center = voice.partition_.centers[1]
    # A row is in the cell contracted to a tenth if the point ten times as far out is in the cell.
    distances = np.linalg.norm(
        center + (points - center)[:, None] / 0.1 - voice.partition_.centers, axis=2
    )
    inside = distances.argmin(axis=1) == 1
    assert 0 < inside.sum() < EACH
    cf = voice.explain(rows, 1, deepen=True, **rules, plausible=None)
    assert (cf.status == np.where(inside, Status.ALREADY, Status.OPTIMAL)).all()
    assert (cf.cost[inside] == 0).all()
    assert (cf.cost[~inside] > 0).all()
    assert np.isposinf(cf.rho[inside]).all()
    assert (cf.cardinality[inside] == 0).all()
    assert (cf.cardinality[~inside] == 3).all()
    stays = voice.explain(rows, 1, **rules, plausible=None)
    assert (stays.status == Status.ALREADY).all()


def test_a_row_that_cannot_be_read_has_one_answer_unless_its_target_is_named():
    voice = voice_of(scaled(), TABLE)
    rows = TABLE.iloc[[0, 13, 1]].copy()
    rows.iloc[1, 0] = np.nan
    cf = voice.explain(rows, "each", plausible=None)
    assert cf.row.tolist() == [0, 0, 1, 2, 2]
    assert cf.target.tolist() == [1, 2, -1, 1, 2]
    assert cf.status[2] == Status.UNREADABLE
    assert cf.source.tolist() == [0, 0, -1, 0, 0]
    named = voice.explain(rows, 1, plausible=None)
    assert named.target.tolist() == [1, 1, 1]
    assert named.status.tolist() == [Status.OPTIMAL, Status.UNREADABLE, Status.OPTIMAL]
    assert np.isnan(named.points[1]).all()


# Answers that were asked for with fewer columns.


def with_a_linear_rule(ask: str, **options: Any) -> Any:
    """Ask about all rows under a rule that rounding breaks at its edge, so that they ask again."""
    voice = voice_of(scaled(), TABLE)
    cf = getattr(voice, ask)(TABLE, "each", constraints="a + b <= 7.3", **options)
    return cf[cf.feasible]


def test_an_alternative_that_is_asked_for_again_is_still_an_alternative():
    cf = with_a_linear_rule("explain", alternatives=2)
    changes, pairs = cf.to_frame().to_numpy() != TABLE.to_numpy()[cf.row], (cf.row, cf.target)
    for i in np.flatnonzero(cf.rank > 0):
        before = (pairs[0] == pairs[0][i]) & (pairs[1] == pairs[1][i]) & (cf.rank < cf.rank[i])
        assert (changes[before] & ~changes[i]).any(axis=1).all()


def test_a_tradeoff_has_one_answer_for_each_number_of_changes():
    cf = with_a_linear_rule("tradeoff")
    found = list(zip(cf.row, cf.target, cf.cardinality, strict=True))
    assert len(set(found)) == len(found)
