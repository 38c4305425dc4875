from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from app_tables import people, prepared, with_gaps
from voicecf.app.data.columns import Role, guess_columns, with_roles
from voicecf.app.data.preparing import (
    Method,
    Missing,
    PreparingError,
    pipeline,
    prepare,
    rows_with_gaps,
    usual_missing,
)


def test_rows_with_gaps_are_left_out_and_the_rest_keep_their_numbers() -> None:
    frame = with_gaps(people())
    whole = frame.drop(columns="person_id").notna().all(axis=1).to_numpy()
    found = prepared(frame)
    assert found.left_out == (~whole).sum() == rows_with_gaps(frame, guess_columns(frame))
    assert found.rows.tolist() == np.flatnonzero(whole).tolist()
    assert found.frame["income"].tolist() == frame["income"][whole].tolist()


def test_gaps_are_filled_by_the_pipeline_not_in_the_table() -> None:
    frame = with_gaps(people())
    found = prepared(frame, Missing.FILL_IN)
    assert found.left_out == 0
    assert found.frame["age"].isna().sum() == frame["age"].isna().sum()
    seen = pipeline(found, 3, Method.KMEANS)[:-1].fit_transform(found.frame)
    assert np.isfinite(seen).all()


def test_whole_numbers_with_gaps_are_told_to_stay_whole() -> None:
    assert prepared(with_gaps(people()), Missing.FILL_IN).whole == ("age", "visits")


def test_few_gaps_are_left_out_and_many_filled_in() -> None:
    few = people()
    few.loc[[3, 4], "income"] = np.nan
    assert usual_missing(few, guess_columns(few)) is Missing.LEAVE_OUT
    many = with_gaps(people())
    assert usual_missing(many, guess_columns(many)) is Missing.FILL_IN


def test_a_row_is_called_by_its_place_in_the_file_and_its_id() -> None:
    frame = people()
    frame.loc[0, "income"] = np.nan
    found = prepared(frame)
    assert found.called([0]) == [f"2 ({frame['person_id'][1]})"]


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"a": [1.5], "b": [2.5]}), "one row"),
        (pd.DataFrame({"a": ["u", "v", "w"]}), "all are set aside"),
        (pd.DataFrame({"a": [1.5, np.nan, 2.5], "b": [np.nan, 3.5, 4.5]}), "only one row has"),
    ],
)
def test_what_cannot_be_clustered_gets_a_sentence(frame: pd.DataFrame, said: str) -> None:
    with pytest.raises(PreparingError, match=said):
        prepare(frame, guess_columns(frame))


def test_too_many_levels_together_get_a_sentence() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"c{i}": rng.permutation(190).astype(str) for i in range(4)})
    columns = with_roles(frame, guess_columns(frame), dict.fromkeys(frame, Role.CATEGORY))
    with pytest.raises(PreparingError, match="Set aside those that matter least"):
        prepare(frame, columns)


def test_infinite_numbers_are_missing() -> None:
    frame = people()
    frame.loc[7, "income"] = np.inf
    assert prepared(frame).left_out == 1


def test_dates_become_years_and_days_up_to_the_day_of_the_table() -> None:
    days = [date(1980, 1, 25), date(1991, 6, 13), date(2001, 3, 4), date(2020, 2, 29)]
    frame = pd.DataFrame({"born": pd.to_datetime(days), "joined": pd.to_datetime(days)})
    columns = with_roles(frame, guess_columns(frame), {"joined": Role.DAYS})
    taken = date(2024, 2, 29)
    found = prepare(frame, columns, taken=taken)
    assert found.names == ["years since born", "days since joined"]
    since = [(taken - day).days for day in days]
    assert found.frame["days since joined"].tolist() == since
    assert found.frame["years since born"].tolist() == [round(n / 365.25, 2) for n in since]
    assert found.whole == ("days since joined",)
    assert list(found.aside) == ["born", "joined"]


def test_spellings_of_a_level_are_read_as_the_commonest_and_can_be_kept_apart() -> None:
    texts = ["App"] * 5 + [" App"] * 2 + ["APP", "app", "Web", "Web", "web ", None]
    frame = pd.DataFrame({"channel": texts * 4, "x": np.arange(52.0)})
    found = prepare(frame, guess_columns(frame))
    assert sorted(found.frame["channel"].unique()) == ["App", "Web"]
    assert found.spellings == {
        "channel": {" App": "App", "APP": "App", "app": "App", "web ": "Web"}
    }
    assert found.used(frame)["channel"].dropna().tolist() == found.frame["channel"].tolist()
    apart = prepare(frame, guess_columns(frame), merge=False)
    assert apart.frame["channel"].nunique() == 6
    assert apart.spellings == {}
