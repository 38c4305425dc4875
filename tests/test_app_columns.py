from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from voicecf.app.data.columns import MOST_FEATURES, Role, RoleError, guess_columns, with_roles

TABLE = pd.DataFrame({
    "customer_id": [901, 17, 33, 4, 5, 68],
    "n": [1, 2, 3, 4, 5, 6],
    "name": ["Ann", "Ben", "Cem", "Dan", "Eva", "Fay"],
    "age": [31, 45, 38, 31, 29, 61],
    "visits": [3.0, np.nan, 1.0, 0.0, 2.0, 2.0],
    "income": [1.5, 2.5, 3.5, 4.5, 2.25, 7.0],
    "job": ["chef", "clerk", "chef", None, "clerk", "chef"],
    "member": [True, False, True, True, False, True],
    "land": ["x"] * 6,
    "nothing": [None] * 6,
    "segment": ["A", "B", "A", "B", "A", "B"],
    "since": pd.to_datetime(["2024-01-01"] * 3 + ["2024-02-01"] * 3),
})  # fmt: skip
EXPECTED = {
    "customer_id": Role.ASIDE, "n": Role.ASIDE, "name": Role.ASIDE, "age": Role.WHOLE,
    "visits": Role.WHOLE, "income": Role.NUMBER, "job": Role.CATEGORY, "member": Role.CATEGORY,
    "land": Role.ASIDE, "nothing": Role.ASIDE, "segment": Role.ASIDE, "since": Role.ASIDE,
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_roles_are_guessed_with_a_reason(name: str) -> None:
    column = {c.name: c for c in guess_columns(TABLE)}[name]
    assert column.role is EXPECTED[name]
    assert column.reason


def test_missing_values_are_counted() -> None:
    missing = {c.name: c.missing for c in guess_columns(TABLE)}
    assert missing == {name: int(TABLE[name].isna().sum()) for name in TABLE}


def test_columns_beyond_the_first_many_are_set_aside() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(20, 300)), columns=[f"c{i}" for i in range(300)])
    roles = [c.role for c in guess_columns(frame)]
    assert roles.count(Role.NUMBER) == MOST_FEATURES
    assert all(role is Role.ASIDE for role in roles[MOST_FEATURES:])


@pytest.mark.parametrize(
    ("name", "role", "said"),
    [
        ("job", Role.NUMBER, "holds text such as “chef”"),
        ("income", Role.WHOLE, "has fractions such as 1.5"),
        ("nothing", Role.CATEGORY, "has no values"),
    ],
)
def test_a_role_that_cannot_be_says_why(name: str, role: Role, said: str) -> None:
    with pytest.raises(RoleError, match=said):
        with_roles(TABLE, guess_columns(TABLE), {name: role})


def test_a_chosen_role_holds() -> None:
    chosen = with_roles(TABLE, guess_columns(TABLE), {"age": Role.CATEGORY, "n": Role.WHOLE})
    roles = {c.name: c.role for c in chosen}
    assert roles["age"] is Role.CATEGORY
    assert roles["n"] is Role.WHOLE
    assert roles["job"] is EXPECTED["job"]


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("zip", [10115, 80331, 20095, 10115]),
        ("PhoneNumber", [5551234, 5551235, 5551236, 5551237]),
        ("plz", ["00713", "10115", "10115", "00713"]),
    ],
)
def test_codes_are_set_aside_and_told_so(name: str, values: list[object]) -> None:
    (column,) = guess_columns(pd.DataFrame({name: values}))
    assert (column.role, column.reason) == (Role.ASIDE, "a code, not a quantity")


DAYS = pd.to_datetime(["1980-01-25", "1991-06-13", "2001-03-04"])
FIXED = {
    "age": [31, 45, 38], "gender": ["f", "m", "f"], "Year_Birth": [1980, 1991, 2001],
    "birth_date": DAYS, "joined": DAYS, "customer since": [2012, 2015, 2019], "tenure": [3, 5, 9],
    "year": [2001, 2002, 2001],
}  # fmt: skip
FREE = {
    "income": [31, 45, 38], "spend": [1.5, 2.5, 3.5], "visits": [3, 1, 2], "job": ["a", "b", "a"],
    "page": [1, 5, 3], "days_since_last_visit": [3, 1, 2], "average": [2.5, 1.5, 3.5],
    "per_year": [3, 1, 2],
}  # fmt: skip


@pytest.mark.parametrize("name", [*FIXED, *FREE])
def test_what_nobody_can_change_is_guessed_as_locked(name: str) -> None:
    (column,) = guess_columns(pd.DataFrame({name: {**FIXED, **FREE}[name]}))
    assert column.fixed == (name in FIXED)
    assert bool(column.why_fixed) == column.fixed


def test_dates_are_ages_or_durations_not_numbers() -> None:
    frame = pd.DataFrame({"birth_date": DAYS, "joined": DAYS, "n": [1, 5, 3]})
    born, joined, _ = guess_columns(frame)
    assert (born.role, born.label) == (Role.YEARS, "years since birth_date")
    assert (joined.role, joined.label) == (Role.ASIDE, "joined")
    with pytest.raises(RoleError, match="holds dates, so it cannot be a number"):
        with_roles(frame, guess_columns(frame), {"joined": Role.NUMBER})
    with pytest.raises(RoleError, match="holds no dates"):
        with_roles(frame, guess_columns(frame), {"n": Role.DAYS})


@pytest.mark.parametrize(
    "name", ["CustomerID", "ProductId", "userid", "kundennr", "Kundennummer", "customer_id"]
)
def test_what_names_things_is_set_aside_though_it_repeats(name: str) -> None:
    frame = pd.DataFrame({name: [7001, 7002, 7001, 7003] * 5, "visits": range(20)})
    assert guess_columns(frame)[0].role is Role.ASIDE


def test_years_do_not_count_the_rows() -> None:
    (column,) = guess_columns(pd.DataFrame({"founded": range(1990, 2010)}))
    assert column.role is Role.WHOLE
    assert column.fixed
