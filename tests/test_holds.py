"""Rules between columns and least changes are told apart row by row, to the last bit."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.rules.allowed import Allowed, as_rules

TOWNS = ["Bonn", "Kiel", "Ulm"]


def customers(n: int = 40) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "visits": rng.integers(0, 9, n),
            "money": rng.integers(0, 320, n) / 4,
            "hours": rng.integers(0, 160, n) / 4,
            "town": rng.choice(TOWNS, n),
        }
    )


@cache
def voice_of(way: str) -> VoICE:
    """Fit to the customers: scaled, behind a curve, with gaps filled in, or two numbers bare."""
    model, table = KMeans(2, n_init=1, random_state=0), customers()
    if way == "bare":
        return VoICE(model).fit(table[["money", "hours"]])
    numbers = {
        "scaled": StandardScaler(),
        "curved": FunctionTransformer(np.log1p, inverse_func=np.expm1),
        "imputed": make_pipeline(SimpleImputer(), StandardScaler()),
    }[way]
    towns = OneHotEncoder(sparse_output=False, handle_unknown="ignore")
    before = make_column_transformer((numbers, ["visits", "money", "hours"]), (towns, ["town"]))
    return VoICE(make_pipeline(before, model)).fit(table)


def held(way: str, before: pd.DataFrame, which: list[int], after: pd.DataFrame, **rules) -> list:
    """Tell for each changed row whether it may stand in place of the row `which` of `before`."""
    voice = voice_of(way)
    space, rows = voice.space_, voice.space_.read(before)
    allowed = Allowed.of(space, as_rules(None, **rules), rows, voice.learned_.bounds)
    found = allowed.holds(space, rows, np.array(which, dtype=np.int64), space.read(after))
    assert found.dtype == np.bool_
    return found.tolist()


def numbers(*rows: tuple[float, float]) -> pd.DataFrame:
    """Return customers with this money and these hours."""
    table = pd.DataFrame(rows, columns=["money", "hours"], dtype=float)
    return table.assign(visits=1, town="Bonn")[["visits", "money", "hours", "town"]]


WAYS = ["scaled", "curved", "bare"]


@pytest.mark.parametrize("way", WAYS)
def test_without_rules_every_row_holds(way):
    table = customers()
    assert held(way, table, [3, 0, 3], table.iloc[[5, 6, 7]]) == [True] * 3
    assert held(way, table, [], table.iloc[:0]) == []


@pytest.mark.parametrize("way", WAYS)
def test_a_rule_about_one_column_does_not_make_rows_fail(way):
    table = customers()
    rules = {"immutable": "hours", "bounds": {"money": (0, 1)}}
    assert held(way, table, [1, 2], table.iloc[[8, 9]], **rules) == [True, True]


ABOVE, BELOW = np.nextafter(4.0, np.inf), np.nextafter(4.0, -np.inf)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("text", "after", "expected"),
    [
        ("money + 2*hours <= 10", [(2, BELOW), (2, 4), (2, ABOVE)], [True, True, False]),
        ("money >= hours", [(4, BELOW), (4, 4), (4, ABOVE)], [True, True, False]),
        ("hours <= 4", [(0, BELOW), (0, 4), (0, ABOVE)], [True, True, False]),
        ("2 <= hours <= 4", [(0, 1.75), (0, 2), (0, 3), (0, ABOVE)], [False, True, True, False]),
    ],
)
def test_a_linear_rule_ends_at_the_last_bit_in_the_users_units(way, text, after, expected):
    which = list(range(len(after)))
    assert held(way, customers(), which, numbers(*after), constraints=text) == expected


@pytest.mark.parametrize("way", ["scaled", "bare"])
def test_an_equality_fails_on_both_sides(way):
    after = numbers((8, BELOW), (8, 4), (8, ABOVE))
    expected = [False, True, False]
    assert held(way, customers(), [0, 1, 2], after, constraints="money == 2*hours") == expected


@pytest.mark.parametrize("way", WAYS)
def test_each_of_two_linear_rules_can_fail_alone(way):
    after = numbers((9, 1), (1, 9), (1, 1), (9, 9))
    rules = ["money <= 5", "hours <= 5"]
    expected = [False, False, True, False]
    assert held(way, customers(), [0, 0, 0, 0], after, constraints=rules) == expected
    for rule, alone in zip(rules, ([False, True], [True, False]), strict=True):
        assert held(way, customers(), [0, 0], after[:2], constraints=rule) == alone


@pytest.mark.parametrize("way", WAYS)
def test_boxes_of_columns_that_belong_together_include_their_edges(way):
    boxes = [{"money": 0, "hours": 0}, {"money": (4, None), "hours": (2, 8)}]
    after = [
        (0, 0),
        (0, 1),
        (1, 0),
        (4, 2),
        (4, 8),
        (BELOW, 2),
        (4, np.nextafter(8.0, 9.0)),
        (9, 0),
    ]
    expected = [True, False, False, True, True, False, False, False]
    assert held(way, customers(), [0] * len(after), numbers(*after), together=boxes) == expected


@pytest.mark.parametrize("way", WAYS)
def test_each_of_two_rules_about_columns_together_can_fail_alone(way):
    rules = ["if money <= 5 then hours <= 5", "if hours <= 1 then money <= 20"]
    after = numbers((1, 9), (30, 1), (1, 1), (30, 9))
    assert held(way, customers(), [0] * 4, after, together=rules) == [False, False, True, True]


def test_a_category_belongs_to_the_numbers_that_the_rule_names():
    table = pd.DataFrame(
        {"visits": [0, 0, 1, 2, 2], "money": 5.0, "hours": 5.0}
        | {"town": ["Bonn", "Ulm", "Bonn", "Ulm", "Kiel"]}
    )
    rule = "if town == 'Bonn' then visits == 0"
    expected = [True, True, False, True, True]
    assert held("scaled", customers(), [0] * 5, table, together=rule) == expected
    pairs = pd.DataFrame({"visits": [0, 2], "town": ["Bonn", "Ulm"]})
    expected = [True, False, False, True, False]
    assert held("scaled", customers(), [0] * 5, table, together=pairs) == expected


@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_a_level_that_was_never_seen_is_in_no_box():
    after = numbers((5, 5), (5, 5)).assign(town=["Bonn", "Rome"])
    for boxes in ([{"town": "Bonn"}], [{"town": "Bonn"}, {"town": ["Kiel", "Ulm"]}]):
        assert held("scaled", customers(), [0, 0], after, together=boxes) == [True, False]


@pytest.mark.parametrize("way", WAYS)
def test_a_least_change_is_reached_at_its_edge_on_either_side_or_not_begun(way):
    before = numbers((8, 1))
    inner = (np.nextafter(4.0, 9.0), np.nextafter(12.0, 9.0))
    values = [8, 4, 12, 0, 40, *inner, np.nextafter(8.0, 9.0), 6, 10]
    expected = [True] * 5 + [False] * 5
    after = numbers(*((value, 1) for value in values))
    assert held(way, before, [0] * 10, after, least={"money": 4}) == expected


@pytest.mark.parametrize("way", WAYS)
def test_each_of_two_least_changes_can_fail_alone(way):
    before = numbers((8, 8))
    after = numbers((9, 8), (8, 9), (8, 8), (12, 12), (9, 12))
    expected = [False, False, True, True, False]
    assert held(way, before, [0] * 5, after, least={"money": 4, "hours": 4}) == expected


@pytest.mark.parametrize("way", WAYS)
def test_a_least_change_counts_from_the_row_that_was_changed(way):
    before = numbers((0, 0), (10, 0), (20, 0))
    after = numbers((20, 0), (1, 0), (12, 0), (20, 0), (1, 0))
    expected = [True, True, False, True, False]
    assert held(way, before, [2, 1, 1, 0, 0], after, least={"money": 4}) == expected


def test_a_value_that_was_missing_has_no_least_change():
    before = numbers((np.nan, 0), (8, 0))
    after = numbers((np.nan, 0), (1, 0), (9, 0), (12, 0))
    expected = [True, True, False, True]
    assert held("imputed", before, [0, 0, 1, 1], after, least={"money": 4}) == expected


def test_a_least_change_of_an_immutable_column_is_no_rule():
    before, after = numbers((8, 8)), numbers((9, 12))
    rules = {"least": {"money": 4, "hours": 4}, "immutable": "money"}
    assert held("scaled", before, [0], after, **rules) == [True]


# Every rule at once, and beside each the same in plain Python, of the row's own and new values.
RULES = {
    "constraints": ["money + 2*hours <= 90", "hours >= visits"],
    "together": [
        "if visits == 0 then money <= 20",
        [{"town": "Bonn"}, {"town": ["Kiel", "Ulm"], "visits": (2, None)}],
    ],
    "least": {"money": 5, "hours": 1.5},
}
JUDGES = [
    lambda own, new: new["money"] + 2 * new["hours"] <= 90,
    lambda own, new: new["hours"] >= new["visits"],
    lambda own, new: new["visits"] > 0 or new["money"] <= 20,
    lambda own, new: new["town"] == "Bonn" or new["visits"] >= 2,
    lambda own, new: own["money"] == new["money"] or abs(own["money"] - new["money"]) >= 5,
    lambda own, new: own["hours"] == new["hours"] or abs(own["hours"] - new["hours"]) >= 1.5,
]


@pytest.mark.parametrize("way", ["scaled", "curved"])
def test_rows_hold_exactly_if_every_rule_does(way):
    before, rng = customers(), np.random.default_rng(1)
    which = rng.integers(0, len(before), 600)
    after = before.iloc[which].reset_index(drop=True)
    for name in ("money", "hours"):
        moves = rng.integers(-40, 41, len(after)) / 4 * (rng.random(len(after)) < 0.6)
        after[name] = (after[name] + moves).clip(lower=0)
    swapped = rng.random(len(after)) < 0.3
    after.loc[swapped, ["visits", "town"]] = after[["visits", "town"]].to_numpy()[::-1][swapped]
    after["visits"] = after["visits"].astype(int)

    pairs = zip(before.iloc[which].to_dict("records"), after.to_dict("records"), strict=True)
    verdicts = np.array([[judge(own, new) for judge in JUDGES] for own, new in pairs])
    only = ~verdicts & (verdicts.sum(axis=1) == len(JUDGES) - 1)[:, None]
    assert only.any(axis=0).all(), "each rule is to be the only one that fails somewhere"
    assert held(way, before, which.tolist(), after, **RULES) == verdicts.all(axis=1).tolist()
