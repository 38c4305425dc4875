"""One row: which one is meant, what if its values were others, where a change lies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

testing = pytest.importorskip("streamlit.testing.v1")

from app_tables import begun, fitted, people, prepared, with_gaps  # noqa: E402
from test_app_pages import opened, said  # noqa: E402
from voicecf.app.data.columns import Role  # noqa: E402
from voicecf.app.data.preparing import Method, Missing  # noqa: E402
from voicecf.app.row.answers import answer  # noqa: E402
from voicecf.app.row.finding import find_rows, place_of, shown_rows, why_left_out  # noqa: E402
from voicecf.app.row.question import Objective, RowQuestion  # noqa: E402
from voicecf.app.row.trying import changed_row, levers  # noqa: E402
from voicecf.app.segments.segments import Segments  # noqa: E402

NAMES = ("Students", "Clerks", "Retired <b>")


def placed(segments: Segments, row: pd.DataFrame) -> pd.Series:
    """Return where a row stands between the cells."""
    return segments.voice.standing(row).iloc[0]


def csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def gappy() -> pd.DataFrame:
    """Return people, of whom row 7 has no age and row 9 neither age nor income."""
    frame = people().astype({"age": float})
    frame.loc[[6, 8], "age"] = np.nan
    frame.loc[8, "income"] = np.nan
    return frame


# Which row


def test_rows_are_found_by_number_id_and_text() -> None:
    frame = people()
    found = prepared(frame)
    ids = frame["person_id"]
    assert find_rows(frame, found, str(ids[40])).tolist() == [40]
    for text in ("12", " Row 12 ", "row 12"):
        assert find_rows(frame, found, text).tolist() == [11]
    assert (
        find_rows(frame, found, "STUD").tolist()
        == np.flatnonzero(frame["job"] == "student").tolist()
    )
    assert len(find_rows(frame, found, "nobody")) == 0
    assert len(find_rows(frame, found, " ")) == 0
    assert len(find_rows(frame, found, "e", most=20)) == 20


def test_a_number_that_is_also_an_id_names_both_rows() -> None:
    frame = people().assign(person_id=np.arange(150)[::-1] + 2)
    found = prepared(frame)
    (other,) = np.flatnonzero(frame["person_id"] == 12)
    assert find_rows(frame, found, "12").tolist() == sorted([11, other])


def test_rows_that_were_left_out_are_found_and_told_why() -> None:
    frame = gappy()
    found = prepared(frame)
    assert find_rows(frame, found, "7").tolist() == [6]
    assert find_rows(frame, found, str(frame["person_id"][6])).tolist() == [6]
    assert place_of(found, 6) is None
    assert place_of(found, 7) == 6
    name = frame["person_id"][6]
    assert why_left_out(frame, found, 6) == f"Row 7 ({name}) was left out: it has no value in age."
    assert "no value in age and income" in why_left_out(frame, found, 8)
    labels = np.zeros(len(found.frame), dtype=np.int64)
    told = shown_rows(frame, found, labels, NAMES, np.array([5, 6]))
    assert told["Segment"].tolist() == ["Students", "left out"]


def test_a_row_without_a_date_is_left_out_for_the_time_since_then() -> None:
    frame = people()
    frame["since"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(150) * 7, unit="D")
    frame.loc[6, "since"] = pd.NaT
    now = begun(csv(frame), "dates.csv")
    now.choose_roles({"since": Role.YEARS})
    page = opened("row", now)
    page = page.text_input[0].set_value("7").run()
    assert "it has no value in years since since" in said(page)
    page = page.text_input[0].set_value("student").run()
    assert "Tick one to ask about it" in said(page)
    assert not page.exception


def test_a_row_that_was_left_out_is_not_another_row() -> None:
    now = begun(csv(gappy()), "gaps.csv")
    page = opened("row", now)
    before = now.question.row
    page = page.text_input[0].set_value("7").run()
    assert "was left out: it has no value in age" in said(page)
    assert "moves from" not in said(page)
    assert now.question.row == before
    (fill,) = [b for b in page.button if b.label == "Fill in missing values"]
    page = fill.click().run()
    assert not page.exception
    assert now.choices.missing is Missing.FILL_IN
    assert int(now.prepared.rows[now.question.row]) == 6
    assert "Row 7 (" in said(page)
    assert "moves from" in said(page)


def test_a_text_that_names_nobody_or_many_leaves_the_answer() -> None:
    now = begun(csv(people()), "people.csv")
    page = opened("row", now)
    page = page.text_input[0].set_value("nobody").run()
    assert "No row is called or holds" in said(page)
    page = page.text_input[0].set_value("student").run()
    assert "Tick one to ask about it" in said(page)
    assert "Row 1 (" in said(page)
    page = page.text_input[0].set_value("3").run()
    assert "Row 3 (" in said(page)
    assert page.text_input[0].value == "3"


# What stays as it is


def labels_of(page: testing.AppTest) -> list[str]:
    return [button.label for button in page.button]


def test_a_guessed_lock_is_seen_and_undone_by_a_click() -> None:
    now = begun(csv(people()), "people.csv")
    page = opened("row", now)
    assert "age (guessed)" in labels_of(page)
    page = page.button(key="unlock age").click().run()
    assert now.question.allowed == {}
    assert "age (guessed)" not in labels_of(page)
    assert "As guessed" in labels_of(page)
    (again,) = [b for b in page.button if b.label == "As guessed"]
    page = again.click().run()
    assert now.question.allowed == {"immutable": ["age"]}
    (free,) = [b for b in page.button if b.label == "Allow everything"]
    free.click().run()
    assert now.question.allowed == {}


# What if


@pytest.mark.parametrize("method", list(Method))
def test_a_changed_row_is_where_the_model_puts_it(method: Method) -> None:
    segments = fitted(method=method)
    given = answer(segments, RowQuestion(0), NAMES)
    found = {lever.column: lever for lever in levers(given)}
    assert set(found) == set(segments.prepared.names)
    assert placed(segments, changed_row(given, {}))["cluster"] == segments.labels[0]
    then = changed_row(given, {name: lever.answer for name, lever in found.items()})
    assert placed(segments, then)["cluster"] == given.found.target[0]
    assert then.dtypes.equals(segments.prepared.frame.dtypes)


@pytest.mark.parametrize("method", list(Method))
def test_no_shorter_way_leads_over_the_nearest_border(method: Method) -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=(120, 3)) + 3 * np.eye(3)[np.arange(120) % 3]
    segments = fitted(pd.DataFrame(values, columns=list("abc")), method=method)
    scaled = segments.model[:-1].transform(segments.prepared.frame)
    ways = rng.normal(size=(2_000, 3))
    ways /= np.linalg.norm(ways, axis=1)[:, None]
    for row in range(0, 30, 3):
        place = placed(segments, segments.prepared.frame.iloc[[row]])
        assert place["cluster"] == segments.labels[row]
        around = segments.model[-1].predict(scaled[row] + 0.999 * place["inside"] * ways)
        assert (around == place["cluster"]).all()
        further = segments.model[-1].predict(scaled[row] + 1.03 * place["inside"] * ways)
        assert place["next"] in further


def test_a_missing_value_begins_at_what_the_model_takes_it_for() -> None:
    segments = fitted(with_gaps(people()), missing=Missing.FILL_IN)
    frame = segments.prepared.frame
    row = int(np.flatnonzero(frame["income"].isna())[0])
    given = answer(segments, RowQuestion(row), NAMES)
    found = {lever.column: lever for lever in levers(given)}
    assert found["income"].now == frame["income"].median()
    as_is, typed = (changed_row(given, some) for some in ({}, {"income": found["income"].now}))
    assert placed(segments, as_is).equals(placed(segments, typed))


def test_a_slider_reaches_an_answer_beyond_what_was_seen() -> None:
    segments = fitted()
    locked = tuple(name for name in segments.prepared.names if name != "visits")
    allowed = {"immutable": list(locked), "bounds": {"visits": [-90.0, 90.0]}}
    for row in range(12):
        given = answer(segments, RowQuestion(row, allowed=allowed), NAMES)
        if not given.possible:
            continue
        (visits, *_) = levers(given)
        assert visits.low <= visits.answer <= visits.high
        then = changed_row(given, {"visits": visits.answer})
        assert placed(segments, then)["cluster"] == given.found.target[0]


def test_sliders_tell_the_segment_at_once() -> None:
    now = begun(csv(people()), "people.csv")
    page = opened("row", now)
    place = page.get("html")
    assert any("v-place" in str(block.value) for block in place)
    (begin,) = [b for b in page.button if b.label == "Begin at the answer"]
    page = begin.click().run()
    (told,) = [str(b.value) for b in page.get("html") if "v-place" in str(b.value)]
    found = answer(now.segments, now.question, now.names)
    assert told.index("inside") < told.index(found.names[found.ends[1]]) < told.index("next to")
    (back,) = [b for b in page.button if b.label == "Back to the row"]
    page = back.click().run()
    (told,) = [str(b.value) for b in page.get("html") if "v-place" in str(b.value)]
    assert told.index("inside") < told.index(found.names[found.ends[0]]) < told.index("next to")


# Tracks


def test_a_track_shows_the_ends_and_the_shape_of_its_column() -> None:
    segments = fitted()
    frame = segments.prepared.frame
    found = answer(segments, RowQuestion(0, objective=Objective.LEAST), NAMES)
    numbers = [change for change in found.card.changes if change.column != "job"]
    assert numbers
    for change in numbers:
        column, counts = change.column, np.round(np.array(change.shape) * 1e6)
        low, high = frame[column].min(), frame[column].max()
        bars = min(24, high - low + 1) if column in segments.prepared.whole else 24
        width = (high - low) / bars
        at = np.minimum(((frame[column] - low) / width).astype(int), bars - 1)
        expected = np.bincount(at, minlength=int(bars))
        assert np.array_equal(counts, np.round(expected / expected.max() * 1e6))
    drawn = found.card.html()
    assert drawn.count("v-track") == len(numbers)
    for change in numbers:
        ends = segments.spans[change.column]
        assert "".join(f"<span>{change.text_of(end, 4)}</span>" for end in ends) in drawn
