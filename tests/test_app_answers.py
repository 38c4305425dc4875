from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from app_tables import fitted, people, usual_names, with_gaps
from voicecf.app.data.examples import customers
from voicecf.app.data.preparing import Method, Missing
from voicecf.app.effort import usual_prices
from voicecf.app.row.answers import alternatives, answer, difference, ways_out
from voicecf.app.row.question import Objective, RowQuestion, limit, within
from voicecf.plots import ChangeCard

NAMES = ("Students", "Clerks", "Retired <b>")


def other(segments, row: int) -> int:
    return int((segments.labels[row] + 1) % 3)


@pytest.mark.parametrize("objective", list(Objective))
@pytest.mark.parametrize("method", list(Method))
def test_the_model_itself_puts_the_answer_into_the_target(objective, method) -> None:
    segments = fitted(method=method)
    for row in range(5):
        found = answer(segments, RowQuestion(row, other(segments, row), objective), NAMES)
        assert found.possible
        assert segments.model.predict(found.found.to_frame())[0] == other(segments, row)


def test_the_sentence_says_what_the_table_of_changes_says() -> None:
    segments = fitted()
    found = answer(segments, RowQuestion(0, other(segments, 0), Objective.FEWEST), NAMES)
    table = found.found.changes()
    assert [change.column for change in found.card.changes] == table["feature"].tolist()
    sentence = found.found.text(0)
    for change, delta in zip(found.card.changes, table["delta"], strict=True):
        assert f"{change.column} {change.verb} from {change.shown[0].replace(',', '')}" in sentence
        assert change.verb == ("rises" if delta > 0 else "falls" if delta < 0 else "changes")
    for t in found.ends:
        assert found.names[t] in sentence


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("gaps", [False, True])
def test_changes_are_those_of_the_library_in_its_order(method: Method, gaps: bool) -> None:
    frame = people().drop(columns="job") if method is Method.SHARK else people()
    if gaps:
        frame = with_gaps(people())[list(frame)]
    segments = fitted(frame, method=method, missing=Missing.FILL_IN)
    for row in range(12):
        found = answer(segments, RowQuestion(row, other(segments, row)), NAMES)
        for one in [found, *alternatives(found)]:
            assert [c.column for c in one.card.changes] == one.found.changes()["feature"].tolist()


def test_rules_hold() -> None:
    segments = fitted()
    frame = segments.prepared.frame
    allowed = {"immutable": ["age"], "increase_only": ["visits"], "steps": {"income": 50.0}}
    for row in range(8):
        found = answer(segments, RowQuestion(row, other(segments, row), allowed=allowed), NAMES)
        if found.possible:
            after = found.found.to_frame().iloc[0]
            assert after["age"] == frame["age"][row]
            assert after["visits"] >= frame["visits"][row]
            assert after["income"] == frame["income"][row] or after["income"] % 50 == 0


def test_a_column_changes_by_the_least_amount_or_not_at_all() -> None:
    segments = fitted()
    frame = segments.prepared.frame
    allowed = {"least": {"visits": 4.0}}
    amounts = set()
    for row in range(12):
        asked = RowQuestion(row, other(segments, row), Objective.LEAST, allowed=allowed)
        after = answer(segments, asked, NAMES).found.to_frame().iloc[0]
        amounts.add(abs(after["visits"] - frame["visits"][row]))
    assert all(amount == 0 or amount >= 4 for amount in amounts)
    assert len(amounts) > 1


def test_values_go_together_as_in_the_segment_if_that_is_asked_for() -> None:
    segments = fitted()
    usual = []
    for together in (False, True):
        words = {"plausible": 0.95} if together else {}
        asked = RowQuestion(0, other(segments, 0), Objective.LEAST, 0, words)
        usual.append(float(answer(segments, asked, NAMES).found.usual[0]))
    assert min(usual) >= 0.05, "by default, too, where there is such an answer"
    assert limit({"plausible": 0.95}) < limit({}), "many columns take long otherwise"


def test_whole_numbers_with_gaps_stay_whole() -> None:
    segments = fitted(with_gaps(people()), missing=Missing.FILL_IN)
    assert segments.prepared.whole
    for row in range(6):
        found = answer(segments, RowQuestion(row, other(segments, row)), NAMES)
        after = found.found.to_frame().iloc[0]
        for name in segments.prepared.whole:
            assert np.isnan(after[name]) or after[name] == round(after[name])


@pytest.mark.parametrize("objective", list(Objective))
def test_other_ways_use_other_columns(objective: Objective) -> None:
    segments = fitted(people()[["age", "income", "visits", "job"]])
    most = 0
    for row in range(6):
        first = answer(segments, RowQuestion(row, other(segments, row), objective), NAMES)
        others = alternatives(first)
        sets = [{c.column for c in one.card.changes} for one in [first, *others]]
        for i, some in enumerate(sets):
            assert all(not earlier <= some for earlier in sets[:i])
        for one in others:
            assert segments.model.predict(one.found.to_frame())[0] == other(segments, row)
        if objective is Objective.FEWEST:  # the first may take more, to be usual
            assert [len(some) for some in sets[1:]] == sorted(len(some) for some in sets[1:])
        most = max(most, len(others))
    assert most >= 2


def test_another_way_says_what_it_does_instead_of_what_in_units() -> None:
    segments = fitted()
    first = answer(segments, RowQuestion(0, other(segments, 0)), NAMES)
    others = alternatives(first)
    assert others
    for one in others:
        new, old = difference(first, one).split(" instead of ", 1)
        for said, told in ((new, one), (old, first)):
            assert all(change.short in said for change in told.card.changes)
        assert "cost" not in new + old
        assert "spreads" in old


@pytest.mark.parametrize("method", list(Method))
def test_the_effort_adds_up_changes_in_standard_deviations(method: Method) -> None:
    segments = fitted(method=method)
    frame = segments.prepared.frame
    spread = frame[["age", "income", "visits"]].std(ddof=0)
    for row in range(6):
        for objective in (Objective.LEAST, Objective.FEWEST):
            found = answer(segments, RowQuestion(row, other(segments, row), objective), NAMES)
            before, after = frame.iloc[row], found.found.rounded().to_frame().iloc[0]
            numbers = sum(abs(after[name] - before[name]) / spread[name] for name in spread.index)
            assert found.effort == pytest.approx(numbers + (after["job"] != before["job"]))


def test_an_answer_at_the_rim_of_its_segment_is_said_to_be() -> None:
    segments, told = fitted(customers().frame), set()
    for row, words in product(range(12), ({}, {"plausible": None})):
        found = answer(segments, RowQuestion(row, allowed=words), NAMES)
        if found.card.changes:
            told.add(found.at_the_rim)
            text = found.found.text(0)
            assert found.at_the_rim == ("unusual: " in text or "no change that is usual" in text)
    assert told == {True, False}


def test_answers_stay_within_what_was_seen_unless_more_is_allowed() -> None:
    segments = fitted()
    low, high = segments.spans["visits"]
    locked = tuple(name for name in segments.prepared.names if name != "visits")
    further = {"immutable": list(locked), "bounds": {"visits": [-90.0, 90.0]}}
    reached = []
    for row in range(12):
        asked = RowQuestion(row, other(segments, row))
        after = answer(segments, asked, NAMES).found.to_frame().iloc[0]
        for name, (least, most) in segments.spans.items():
            assert least <= after[name] <= most
        found = answer(segments, replace(asked, allowed=further), NAMES)
        if found.possible:
            reached.append(found.found.to_frame()["visits"].iloc[0])
    assert any(not low <= value <= high for value in reached)


def test_years_have_no_commas_and_large_numbers_do() -> None:
    rng = np.random.default_rng(2)
    group = np.arange(90) % 3
    frame = pd.DataFrame({
        "joined": 1990 + 12 * group + rng.integers(0, 5, 90),
        "turnover": 20_000 * (1 + group) + rng.integers(0, 5_000, 90),
    })  # fmt: skip
    segments = fitted(frame)
    for locked, column in (("turnover", "joined"), ("joined", "turnover")):
        asked = RowQuestion(0, other(segments, 0), allowed={"immutable": [locked]})
        (change,) = answer(segments, asked, NAMES).card.changes
        assert change.column == column
        assert tuple("," in text for text in change.shown) == (column == "turnover",) * 2
        typed = segments.prepared.frame.iloc[[0]].copy()
        typed[column] = int(change.shown[1].replace(",", ""))
        assert segments.model.predict(typed)[0] == other(segments, 0)


def test_a_column_may_go_to_either_end_of_its_reach_and_no_step_further() -> None:
    segments = fitted()
    found = answer(segments, RowQuestion(0, other(segments, 0)), NAMES)
    told = {
        change.column: change for change in ChangeCard.from_counterfactuals(found.found).changes
    }
    assert list(told) == [change.column for change in found.card.changes]
    for name in set(told) & set(segments.prepared.whole):
        reach = told[name]
        low, high = int(reach.low), int(reach.high)
        moved = found.found.to_frame()
        for value, stays in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
            moved[name] = value
            inside = segments.model.predict(moved)[0] == other(segments, 0)
            side = reach.binds_low if value < high else reach.binds_high
            assert inside == stays or (inside and side in ("data range", "plausible"))
        assert {reach.binds_low, reach.binds_high} & {"data range", "plausible", *NAMES}


def impossible(segments):
    """Lock all but one column until there is no answer."""
    for row in range(len(segments.labels)):
        names = segments.prepared.names
        for free in names:
            locked = tuple(name for name in names if name != free)
            asked = RowQuestion(row, other(segments, row), allowed={"immutable": list(locked)})
            found = answer(segments, asked, NAMES)
            if not found.possible:
                return found
    raise AssertionError("everything is possible")


def test_every_way_out_has_an_answer() -> None:
    found = impossible(fitted())
    why = found.found.reason(0)
    ways = ways_out(found, why)
    assert why.because
    assert ways
    for way in ways:
        assert way.question != found.question
        assert answer(found.segments, way.question, NAMES).possible


def test_a_margin_that_is_too_wide_is_lowered_by_its_way_out() -> None:
    segments = fitted()
    names = segments.prepared.names
    for row in range(60):
        for free in names:
            locked = tuple(name for name in names if name != free)
            asked = RowQuestion(row, other(segments, row), allowed={"immutable": list(locked)})
            if not answer(segments, asked, NAMES).possible:
                continue
            firm = replace(asked, margin=90)
            stuck = answer(segments, firm, NAMES)
            if stuck.possible:
                continue
            ways = ways_out(stuck, stuck.found.reason(0))
            ways = [way for way in ways if way.question.margin < 90]
            assert ways
            assert "safety margin" in ways[0].text
            assert all(answer(segments, way.question, NAMES).possible for way in ways)
            return
    raise AssertionError("no such row")


def test_the_reason_names_segments_as_the_user_does() -> None:
    found = impossible(fitted())
    said = found.found.reason(0).because
    assert "cluster" not in said
    assert any(name in said for name in NAMES)


def test_rules_of_columns_that_are_gone_are_left_out() -> None:
    said = {
        "immutable": ["a", "x"], "increase_only": ["x"], "bounds": {"x": [1.0, "..."]},
        "levels": {"x": ["u"]}, "max_changes": 3,
    }  # fmt: skip
    assert within(said, ["a"]) == {"immutable": ["a"], "max_changes": 3}


def test_the_number_that_is_shown_is_the_number_that_is_least() -> None:
    rng = np.random.default_rng(3)
    group = np.arange(120) % 3
    frame = pd.DataFrame(rng.normal(size=(120, 3)) + 3 * np.eye(3)[group], columns=list("abc"))
    segments = fitted(frame)
    prices = [price for price, _ in usual_prices(segments).values()]
    for row in range(0, 30, 5):
        target = other(segments, row)
        found = answer(segments, RowQuestion(row, target, Objective.LEAST), NAMES)
        assert "no allowed change that is as usual there takes less" in found.certainty
        places = rng.uniform(frame.min(), frame.max(), size=(20_000, 3))
        table = pd.DataFrame(places, columns=list("abc"))
        points = segments.voice.space_.read(table).points
        usual = segments.voice.learned_.members.within(target, found.found.plausible[0], points)
        there = places[(segments.model.predict(table) == target) & usual]
        assert len(there) > 100
        efforts = np.abs(there - frame.iloc[row].to_numpy()) @ prices
        assert found.found.price[0] == pytest.approx(found.effort, rel=0.02), "in few digits"
        assert found.found.price[0] <= efforts.min() + 1e-9


def test_a_nearest_question_names_the_segment_it_found() -> None:
    segments = fitted()
    found = answer(segments, RowQuestion(3), usual_names(3)).found
    others = [
        answer(segments, RowQuestion(3, t), usual_names(3)).found
        for t in range(3)
        if t != segments.labels[3]
    ]
    best = min((one.n_changed[0], one.cost[0]) for one in others)
    assert (found.n_changed[0], found.cost[0]) == best
