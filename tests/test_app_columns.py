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
