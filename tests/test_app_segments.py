from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from app_tables import begun, fitted, people, prepared, usual_names, with_gaps
from voicecf import SHARK
from voicecf.app.data.columns import Role, guess_columns
from voicecf.app.data.preparing import Method, Missing, PreparingError, prepare
from voicecf.app.segments.aside import crossable, crossed
from voicecf.app.segments.assigned import assigned
from voicecf.app.segments.cards import profile_card
from voicecf.app.segments.naming import NamingError, given_names
from voicecf.app.segments.page import in_short
from voicecf.app.segments.profiles import profile_table
from voicecf.app.segments.segments import blocks_of, fit_segments
from voicecf.app.segments.suggesting import suggest_k
from voicecf.app.words import number


def as_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def noisy() -> pd.DataFrame:
    """Three tight groups in two columns, among eight columns of noise."""
    rng = np.random.default_rng(2)
    group = np.arange(240) % 3
    places = np.array([[0.0, 0.0], [4.5, 9.0], [9.0, 4.5]])[group]
    frame = pd.DataFrame(places + rng.normal(0, 0.3, (240, 2)), columns=["a", "b"])
    return frame.assign(**{f"noise {i}": rng.normal(size=240) for i in range(8)})


def test_three_groups_are_suggested_as_three() -> None:
    found = suggest_k(prepared())
    assert found.k == 3
    assert "3 are about as far apart as any" in found.reason


def test_two_different_rows_make_two_segments() -> None:
    frame = pd.DataFrame({"a": [1.5, 1.5, 9.5, 9.5]})
    assert suggest_k(prepared(frame)).k == 2


def test_more_segments_than_rows_get_a_sentence() -> None:
    with pytest.raises(PreparingError, match="only 2 different rows"):
        fitted(pd.DataFrame({"a": [1.5, 1.5, 9.5, 9.5]}), k=3)


def test_shark_suggests_by_its_own_distances() -> None:
    rows = prepared(noisy())
    found, plain = suggest_k(rows, Method.SHARK), suggest_k(rows, Method.KMEANS)
    assert found.k == 3
    assert "clearly apart" in found.reason
    assert found.scores[3] > plain.scores[3]
    X = ((noisy() - noisy().mean()) / noisy().std(ddof=0)).to_numpy()
    model = SHARK(3, n_init=3, random_state=0).fit(X)
    gaps = np.sqrt((model.feature_weights_ * (X[:, None] - X[None]) ** 2).sum(axis=2))
    scores = []
    for i, own in enumerate(model.labels_):  # the silhouette by its definition
        means = [gaps[i, model.labels_ == t].mean() for t in range(3)]
        means[own] *= (model.labels_ == own).sum() / ((model.labels_ == own).sum() - 1)
        other = min(mean for t, mean in enumerate(means) if t != own)
        scores.append((other - means[own]) / max(other, means[own]))
    assert found.scores[3] == pytest.approx(np.mean(scores), abs=1e-9)


def test_the_suggestion_follows_the_method() -> None:
    project = begun(as_csv(noisy()))
    plain = project.suggestion.scores
    project.change(method=Method.SHARK)
    assert project.suggestion.scores != plain
    assert project.k == project.segments.k == project.suggestion.k


@pytest.mark.parametrize("gaps", [False, True])
def test_profiles_are_averages_and_shares_against_all_rows(gaps: bool) -> None:
    frame = with_gaps(people()) if gaps else people()
    segments = fitted(frame, missing=Missing.FILL_IN)
    rows = segments.prepared.frame
    for t, profile in enumerate(segments.profiles):
        members = rows[segments.labels == t]
        assert profile.size == len(members)
        assert profile.share == pytest.approx(len(members) / len(rows))
        assert {trait.column for trait in profile.traits} == {"age", "job", "income", "visits"}
        far = [abs(trait.strength) for trait in profile.traits]
        assert far == sorted(far, reverse=True)
        for trait in profile.traits:
            here, everywhere = members[trait.column], rows[trait.column]
            if trait.column == "job":
                shares = [v.value_counts(normalize=True) for v in (here, everywhere)]
                more = shares[0].sub(shares[1], fill_value=0)
                assert more[trait.feature.level] > 0
                usual = shares[1][trait.feature.level]
                off = more[trait.feature.level] / np.sqrt(usual * (1 - usual))
                assert trait.text.startswith("for ")
            else:
                off = (here.mean() - everywhere.mean()) / everywhere.std(ddof=0)
                near = (everywhere.max() - everywhere.min()) / 200
                assert float(trait.typical) == pytest.approx(here.mean(), abs=near)
                assert float(trait.overall) == pytest.approx(everywhere.mean(), abs=near)
            assert trait.strength == pytest.approx(off)


def test_all_columns_are_told_by_averages_and_most_frequent_levels() -> None:
    segments, frame = fitted(), people()
    table = profile_table(segments.contrast, usual_names(3), segments.written)
    groups = {name: frame[segments.labels == t] for t, name in enumerate(usual_names(3))}
    for name, members in {**groups, "All rows": frame}.items():
        assert float(table.loc["age", name]) == pytest.approx(members["age"].mean(), abs=0.06)
        assert table.loc["job", name].startswith(members["job"].mode()[0])


def test_cards_say_nothing_of_high_or_low_for_a_category_and_escape_what_they_show() -> None:
    frame = people().rename(columns={"job": "<b>job"})[["person_id", "<b>job", "age"]]
    segments = fitted(frame)
    said = profile_card(segments.profiles[0], 0)
    assert "&lt;b&gt;job: " in said
    assert "<b>job" not in said
    assert "high" not in said.lower()


@pytest.mark.parametrize(
    ("value", "span", "text"),
    [
        (2006, (1990, 2020), "2006"),
        (2006.43, (1990, 2020), "2006"),
        (9_999, (0, 9_999), "9999"),
        (2006, (0, 10_000), "2,006"),
        (-12_500, (-12_500, 3), "-12,500"),
        (123_456_789, (0, 2e8), "123,456,789"),
        (41_109.2, (0, 90_000), "41,109"),
        (0.0, (0, 1), "0"),
        (-0.0004, (-1, 1), "0"),
        (3.0, (0.5, 9.5), "3"),
        (0.123456, (0, 1), "0.12"),
        (2.5e-9, (0, 9e-9), "2.5e-09"),
        (float("nan"), (0, 1), "missing"),
        (0.5, (0.5, 0.5), "0.5"),
    ],
)
def test_numbers_of_a_column(value: float, span: tuple[float, float], text: str) -> None:
    assert number(value, span) == text


def test_years_are_never_parted_and_incomes_are() -> None:
    frame = pd.DataFrame({"year": [1999, 2006, 2010] * 9, "income": [500, 12_000, 2_500] * 9})
    segments = fitted(frame)
    assert segments.written("year", 2006) == "2006"
    assert segments.written("income", 2_500) == "2,500"
    table = profile_table(segments.contrast, usual_names(3), segments.written)
    assert set(table.loc["year"]) == {"1999", "2006", "2010", "2005"}


def test_blocks_are_the_coordinates_of_each_column() -> None:
    segments = fitted()
    width = segments.model[-1].cluster_centers_.shape[1]
    places = [p for some in blocks_of(segments.prepared, segments.model).values() for p in some]
    assert sorted(places) == list(range(width))
    names = segments.model[0].get_feature_names_out()
    for name, some in blocks_of(segments.prepared, segments.model).items():
        assert all(f"__{name}" in names[p] for p in some)


def test_concentrated_weights_are_warned_about() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"tight": np.repeat([0.0, 50.0], 60) + rng.normal(0, 0.01, 120)})
    for i in range(5):
        frame[f"noise {i}"] = rng.normal(size=120)
    told = " ".join(fitted(frame, k=2, method=Method.SHARK).warnings)
    assert "“tight” alone carries" in told
    assert fitted(frame, k=2).warnings == ()


def test_names_are_the_users_unless_empty_or_taken() -> None:
    suggested = ("Older", "Few visits", "Mostly retired")
    assert given_names(suggested, ["Young", "", "young"]) == (
        "Young", "Few visits", "Mostly retired"
    )  # fmt: skip
    assert given_names(suggested[:2], ["  a \n b  "]) == ("a b", "Few visits")
    assert given_names(suggested[:2], ["", "older"]) == ("Older 2", "older")


def test_names_say_what_sets_a_segment_apart() -> None:
    segments, frame = fitted(), people()
    for t, name in enumerate(segments.suggested_names):
        members = frame[segments.labels == t]
        for phrase in name.lower().split(", "):
            kind, _, rest = phrase.removeprefix("more ").partition(" ")
            if kind in ("mostly", "often"):
                here, usual = ((rows["job"] == rest).mean() for rows in (members, frame))
                assert here > usual
                assert (here >= 0.5) == (kind == "mostly")
            else:
                above = members[rest].mean() > frame[rest].mean()
                assert above == (kind == "high")


@pytest.mark.parametrize("k", [2, 5, 12])
@pytest.mark.parametrize("seed", range(4))
def test_suggested_names_are_short_and_differ(k: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(200, 2 + seed)).round(3)
    frame = pd.DataFrame(
        numbers, columns=[f"a rather long name of a column {i}" for i in range(2 + seed)]
    )
    frame["vip"] = rng.choice(["yes", "no"], 200)
    names = fitted(frame, k=k).suggested_names
    assert len({name.casefold() for name in names}) == k
    assert max(map(len, names)) <= 33


@pytest.mark.parametrize(
    ("column", "values", "names"),
    [
        ("visits_per month", [1, 8], {"Low visits per month", "High visits per month"}),
        ("BMI", [20.5, 31.5], {"Low BMI", "High BMI"}),
        ("device", ["iPhone", "other"], {"Mostly iPhone", "Mostly device other"}),
        ("size", ["S", "XL"], {"Mostly size S", "Mostly size XL"}),
        ("is_member", [True, False], {"Mostly is member True", "Mostly is member False"}),
    ],
)
def test_names_keep_the_capitals_of_columns_and_levels(
    column: str, values: list, names: set[str]
) -> None:
    frame = pd.DataFrame({column: values * 20})
    assert set(fitted(frame, k=2).suggested_names) == names


def test_an_emptied_name_is_the_suggested_one_and_a_taken_one_is_refused() -> None:
    project = begun(as_csv(people()))
    suggested = project.names
    project.rename(1, "  Our\nregulars ")
    assert project.names == (suggested[0], "Our regulars", suggested[2])
    for taken in ("our regulars", suggested[2].upper()):
        with pytest.raises(NamingError, match="is already called"):
            project.rename(0, taken)
    assert project.names == (suggested[0], "Our regulars", suggested[2])
    project.rename(1, " ")
    assert project.names == suggested
    project.rename(1, suggested[1])
    project.rename(1, "Others")
    project.rename(0, suggested[1])
    project.rename(1, "")
    assert project.names == (suggested[1], f"{suggested[1]} 2", suggested[2])


# Columns set aside


def labelled() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    frame = people()
    frame["class"] = rng.choice(list("abc"), len(frame))
    frame["outcome"] = np.where(frame["age"] > 50, rng.random(len(frame)) < 0.6, False)
    frame["y"] = np.where(rng.random(len(frame)) < 0.1, np.nan, np.arange(len(frame)) % 2)
    frame["note"] = [f"text {i % 40}" for i in range(len(frame))]
    frame["score"] = frame["income"] / 7 + rng.normal(0, 1, len(frame))
    frame["customer_no"] = rng.integers(100, 160, len(frame))
    frame["stars"] = [["*"] * (i % 3) for i in range(len(frame))]
    return frame


def aside_of(frame: pd.DataFrame) -> tuple:
    columns = tuple(
        replace(c, role=Role.ASIDE) if c.name in ("score", "customer_no") else c
        for c in guess_columns(frame)
    )
    return fit_segments(prepare(frame, columns), 3, Method.KMEANS), columns


def test_labels_are_shares_by_segment_of_the_rows_that_have_one() -> None:
    frame = labelled()
    segments, columns = aside_of(frame)
    assert crossable(segments.prepared, columns) == ["class", "outcome", "y", "score"]
    for name, level in (("class", "b"), ("outcome", True), ("y", 1.0)):
        found = crossed(segments, name, usual_names(3))
        has = frame[frame[name].notna()]
        by = (has[name] == level).groupby(segments.labels[frame[name].notna()]).mean()
        assert found[level].tolist() == pytest.approx([*by.tolist(), (has[name] == level).mean()])


def test_numbers_set_aside_are_averages_by_segment() -> None:
    frame = labelled()
    segments, _ = aside_of(frame)
    found = crossed(segments, "score", usual_names(3))["Average"].tolist()
    by = frame["score"].groupby(segments.labels).mean().tolist()
    assert found == pytest.approx([*by, frame["score"].mean()])


# Every row with its segment


def test_every_row_has_its_segment_or_the_reason_why_not() -> None:
    frame = people()
    frame["segment"] = "theirs"
    frame.loc[[3, 40], "age"] = np.nan
    frame.loc[40, ["job", "income", "visits"]] = None
    project = begun(as_csv(frame))
    table = assigned(project)
    assert table.columns.tolist() == [*frame, "segment 2"]
    pd.testing.assert_frame_equal(table[[*frame]], project.table.frame)
    assert table["segment 2"][3] == "left out: no value in age"
    assert table["segment 2"][40] == "left out: no value in age, job, income and 1 more"
    kept = project.table.frame.drop(index=[3, 40])[project.prepared.names]
    kept = kept.astype(project.prepared.frame.dtypes)
    told = [project.names[t] for t in project.segments.model.predict(kept)]
    assert table["segment 2"].drop(index=[3, 40]).tolist() == told


def test_a_row_without_a_date_is_left_out_for_that() -> None:
    days = pd.Timestamp("2026-01-31") - pd.to_timedelta(np.arange(60) * 40, unit="D")
    frame = pd.DataFrame({"signup": days.strftime("%Y-%m-%d"), "visits": np.arange(60) % 7})
    frame.loc[5, "signup"] = None
    project = begun(as_csv(frame))
    project.choose_roles({"signup": Role.DAYS})
    table = assigned(project)
    assert table.columns.tolist() == ["signup", "visits", "segment"]
    assert table["segment"][5] == "left out: no value in signup"
    assert set(table["segment"].drop(index=5)) == set(project.names)


def test_the_page_says_in_short_what_there_is() -> None:
    equal = in_short(fitted(with_gaps(people())), ("A", "B", "C"), "people")
    assert equal.startswith("114 people in 3 segments; all are of the same size.")
    segments = fitted(with_gaps(people(140)))
    sizes = np.bincount(segments.labels)
    said = in_short(segments, ("A", "B", "C"), "people")
    assert said.startswith(
        f"{sizes.sum()} people in 3 segments; the largest, “{'ABC'[sizes.argmax()]}”"
    )
    assert f"{140 - sizes.sum()} miss a value and are left out." in said
