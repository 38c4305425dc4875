"""Campaigns: who can be moved, at what effort, what is kept of it, and what people take along."""

from __future__ import annotations

import io
import itertools
import re
import zipfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from app_tables import begun, people, with_gaps
from voicecf import VoICE
from voicecf.app import session
from voicecf.app.campaign import runs, telling
from voicecf.app.campaign.plan import Campaign, CampaignCounts, Price, Run
from voicecf.app.campaign.summary import Summary
from voicecf.app.data.columns import Role
from voicecf.app.data.preparing import Method, Missing
from voicecf.app.project import Project
from voicecf.app.row.question import Objective
from voicecf.app.takeaway import tables
from voicecf.app.takeaway.tables import TableError, as_csv, as_parquet, as_xlsx

testing = pytest.importorskip("streamlit.testing.v1")

from test_app_pages import opened, said  # noqa: E402

SCRIPT = "<script>alert(1)</script>"


def csv_of(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def project(frame: pd.DataFrame | None = None, k: int = 3, name: str = "people.csv") -> Project:
    now = begun(csv_of(people() if frame is None else frame), name)
    now.change(k=k, rules={})
    return now


def answered(now: Project, **plan: object) -> Run:
    """Answer a plan, and return the run that is kept."""
    runs.plan(now, **plan)
    for _ in runs.going(now, runs.new_run(now, runs.present(now))):
        pass
    return now.choices.runs[-1]


def summary(now: Project, run: Run) -> Summary:
    return telling.summary(now, run, runs.present(now))


def listed(now: Project, run: Run) -> pd.DataFrame:
    """Return the list to act on, read back from Parquet."""
    return pd.read_parquet(io.BytesIO(telling.list_file(now, run.id, runs.present(now), "parquet")))


# The numbers


def by_hand(frame: pd.DataFrame, **options: object) -> tuple[VoICE, pd.DataFrame, pd.DataFrame]:
    """Answer with the library alone: the explainer, a line an answer, and the changed rows."""
    numbers, categories = ["age", "income", "visits"], ["job"]
    rows = frame[["age", "job", "income", "visits"]]
    model = make_pipeline(
        make_column_transformer(
            (StandardScaler(), numbers), (OneHotEncoder(sparse_output=False), categories)
        ),
        KMeans(3, n_init=10, random_state=0),
    )
    voice = VoICE(model, contraction=1.0).fit(rows)
    found = voice.explain(rows, limit=2000, **options).rounded()
    before = rows.iloc[found.row].reset_index(drop=True)
    after = found.to_frame().reset_index(drop=True)
    effort = (before["job"] != after["job"]).to_numpy().astype(float)
    for name in numbers:
        effort += (after[name] - before[name]).abs().to_numpy() / rows[name].std(ddof=0)
    moves = found.feasible & (found.source != found.target)
    lines = pd.DataFrame({
        "row": found.row, "source": found.source, "target": found.target, "moves": moves,
        "effort": effort, "age": (after["age"] - before["age"]).to_numpy(float),
    })  # fmt: skip
    return voice, lines, after


@pytest.mark.parametrize("target", [1, None, "each"])
def test_a_run_says_what_the_library_says(target: int | str | None) -> None:
    frame = people()
    now = project(frame)
    plan = {"each": True} if target == "each" else {"target": target}
    run = answered(now, **plan)
    ours = summary(now, run)
    asked = "nearest" if target is None else target
    _, lines, _ = by_hand(frame, target=asked, objective="fewest")
    easiest = lines[lines["moves"]].groupby("row")["effort"].min()
    already = int((lines["source"] == lines["target"]).sum())
    assert run.counts == CampaignCounts(150, len(easiest), already, 150 - len(easiest) - already)
    assert ours.effort == pytest.approx(easiest.median(), rel=1e-12)
    assert ours.spent[-1] == pytest.approx(easiest.sum(), rel=1e-12)
    theirs = lines[lines["source"] != lines["target"]].groupby(["source", "target"])
    assert len(ours.pairs) == theirs.ngroups
    for pair in ours.pairs:
        some = theirs.get_group((pair.source, pair.target))
        able = some[some["moves"]]
        assert (pair.asked, pair.movable) == (len(some), len(able))
        assert pair.effort == pytest.approx(able["effort"].median(), rel=1e-12)
        older = able["age"][able["age"] > 0]
        share = [x.share for x in pair.levers if x.column == "age" and x.change.startswith("+")]
        assert share == ([pytest.approx(len(older) / len(able))] if len(older) else [])


def test_rows_that_are_there_already_do_not_count_as_moving() -> None:
    now = project()
    run = answered(now, target=1)
    there = int((now.segments.labels == 1).sum())
    assert run.counts == CampaignCounts(150, 150 - there, there, 0)
    assert "(100 %)" in said(opened("campaign", now))


def test_part_by_part_is_as_at_once_and_every_answer_lands(monkeypatch: pytest.MonkeyPatch) -> None:
    now = project(people(600))
    whole = runs.answers(now, answered(now, target=2))
    monkeypatch.setattr(runs, "PART", 101)
    parts = runs.answers(now, answered(now, target=2))
    pd.testing.assert_frame_equal(whole, parts)
    found = listed(now, now.choices.runs[-1])
    prepared = now.prepared
    after = pd.DataFrame({name: found[f"{name} after"] for name in prepared.names})
    landed = now.segments.model.predict(after.astype(prepared.frame.dtypes.to_dict()))
    assert (landed == 2).all()


def test_only_the_chosen_segments_are_asked() -> None:
    now = project()
    run = answered(now, sources=(0, 2), target=1)
    found, labels = listed(now, run), now.segments.labels
    assert len(found) == 150
    assert run.counts.asked == int((labels != 1).sum())
    assert (found["result"] == "not asked").tolist() == (labels == 1).tolist()


def test_nothing_that_is_locked_changes_and_nobody_may_be_able_to_move() -> None:
    now = project()
    now.allow(immutable=["age", "job"])
    found = listed(now, answered(now, target=0))
    assert (found["age after"] == found["age before"]).all()
    now.allow(immutable=now.prepared.names)
    run = answered(now, target=0)
    assert run.counts.movable == 0
    assert run.counts.impossible == 150 - run.counts.already
    page = opened("campaign", now)
    assert not page.exception
    assert "Nobody can move" in said(page)


# Budget


def test_no_choice_of_rows_within_a_budget_is_larger() -> None:
    rng = np.random.default_rng(2)
    now = project(people(9))
    run = answered(now, target=1)
    ours = summary(now, run)
    efforts = ours.efforts[~np.isnan(ours.efforts)]
    assert len(efforts) > 4
    for budget in [0.0, *rng.uniform(0, efforts.sum(), 30), efforts.sum()]:
        best = max(
            n
            for n in range(len(efforts) + 1)
            for some in itertools.combinations(efforts, n)
            if sum(some) <= budget * (1 + 1e-9)
        )
        assert ours.affordable(budget) == best
    assert ours.affordable(None) == len(efforts)
    runs.plan(now, budget=float(efforts.sum() / 3))
    chosen = listed(now, run).query("`within budget` == 'yes'")
    assert len(chosen) == ours.affordable(efforts.sum() / 3)
    assert chosen["effort (spreads)"].sum() <= efforts.sum() / 3
    budgets, rows = ours.curve()
    assert [ours.affordable(b) for b in budgets] == rows.tolist()


# Prices


def shops() -> pd.DataFrame:
    """Whole numbers alone, so that all answers can be tried."""
    rng = np.random.default_rng(4)
    group = np.arange(60) % 3
    return pd.DataFrame({
        "visits": np.array([2, 12, 4])[group] + rng.integers(-2, 3, 60),
        "basket": np.array([20, 24, 60])[group] + rng.integers(-5, 6, 60),
    })  # fmt: skip


@pytest.mark.parametrize("method", list(Method))
@pytest.mark.parametrize("prices", [(1.0, 30.0), (50.0, 1.0), (3.0, 2.0)])
def test_no_answer_that_is_as_usual_has_a_smaller_price(
    prices: tuple[float, float], method: Method
) -> None:
    frame = shops()
    now = project(frame)
    now.change(method=method)
    plan = (Price("visits", prices[0]), Price("basket", prices[1]))
    run = answered(now, target=1, objective=Objective.LEAST, prices=plan)
    found = listed(now, run)
    grid = pd.DataFrame(
        itertools.product(range(-1, 16), range(10, 70)), columns=["visits", "basket"]
    )
    low, high = frame.min(), frame.max()
    grid = grid[((grid >= low) & (grid <= high)).all(axis=1)]
    voice = now.segments.voice
    usual = voice.learned_.members.within(1, 0.7, voice.space_.read(grid).points)
    grid = grid[(now.segments.model.predict(grid) == 1) & usual].to_numpy()
    for _, line in found[found["result"] == "can move"].iterrows():
        before = line[["visits before", "basket before"]].to_numpy(float)
        after = line[["visits after", "basket after"]].to_numpy(float)
        every = (np.abs(grid - before) * prices).sum(axis=1)
        effort = (np.abs(after - before) * prices).sum()
        assert effort == pytest.approx(every.min())
        assert line["effort (€)"] == pytest.approx(effort)


def test_a_switch_has_its_price_and_a_fall_may_have_another() -> None:
    now = project()
    prices = (Price("job", 7.0), Price("income", 0.5, 0.25), Price("age", 100.0))
    found = listed(now, answered(now, each=True, prices=prices, currency="hours"))
    moved = found[found["result"] == "can move"]
    by = moved["income after"] - moved["income before"]
    assert (by > 0).any()
    assert (by < 0).any()
    effort = np.where(by > 0, 0.5 * by, -0.25 * by)
    effort += 7.0 * (moved["job after"] != moved["job before"]).to_numpy(bool)
    effort += 100.0 * (moved["age after"] - moved["age before"]).abs()
    assert np.allclose(moved["effort (hours)"], effort)


def test_columns_without_a_price_stay_unless_they_are_free() -> None:
    now = project()
    prices = (Price("income", 1.0), Price("age", 20.0))
    found = listed(now, answered(now, target=1, prices=prices))
    moved = found[found["result"] == "can move"]
    for name in ("job", "visits"):
        assert (moved[f"{name} after"] == moved[f"{name} before"]).all()
    free = listed(now, answered(now, target=1, prices=prices, free=True, objective=Objective.LEAST))
    moved = free[free["result"] == "can move"]
    assert (moved["job after"] != moved["job before"]).any()
    assert now.choices.runs[1].counts.movable >= now.choices.runs[0].counts.movable


def test_prices_may_differ_by_any_order_of_magnitude() -> None:
    now = project()
    run = answered(now, target=1, prices=(Price("income", 1e-7), Price("age", 1e9)))
    found = listed(now, run)
    moved = found[found["result"] == "can move"]
    assert run.counts.movable == len(moved) > 0
    income = (moved["income after"] - moved["income before"]).abs()
    age = (moved["age after"] - moved["age before"]).abs().astype(float)
    assert np.allclose(moved["effort (€)"], 1e-7 * income + 1e9 * age, atol=1e-6)


def test_prices_in_proportion_need_no_new_answers_and_others_do() -> None:
    now = project()
    now.allow(immutable=["job", "visits"])
    run = answered(now, target=1, prices=(Price("income", 1.0), Price("age", 20.0)))
    before = summary(now, run).effort
    runs.plan(now, prices=(Price("income", 3.0), Price("age", 60.0)), budget=100.0)
    assert telling.note(now, run, runs.present(now)) == ""
    assert summary(now, run).effort == pytest.approx(3 * before)
    runs.plan(now, prices=(Price("income", 3.0), Price("age", 2.0)))
    assert "Answer again" in telling.note(now, run, runs.present(now))
    assert summary(now, run).unit == "€"
    runs.plan(now, prices=(Price("visits", 3.0),))
    assert "columns without a price" in telling.note(now, run, runs.present(now))
    assert summary(now, run).effort == pytest.approx(before), "as it was found"


# What is kept


def test_a_run_that_is_stopped_loses_nothing_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = project(people(300))
    whole = runs.answers(now, answered(now, each=True))
    monkeypatch.setattr(runs, "PART", 65)
    with closing(runs.going(now, runs.new_run(now, runs.present(now)))) as parts:
        for done, _ in parts:
            if done >= 130:
                break
    run = now.choices.runs[-1]
    assert run.counts.asked == 300
    assert run.counts.waiting == 170
    assert not run.finished
    assert (listed(now, run)["result"] == "not answered yet").sum() == 170
    again = Project(now.folder)  # as after a restart
    seen = [done for done, _ in runs.going(again, again.choices.runs[-1])]
    assert seen[0] == 130
    assert again.choices.runs[-1].finished
    assert len(again.choices.runs) == 2
    pd.testing.assert_frame_equal(runs.answers(again, again.choices.runs[-1]), whole)


def test_runs_are_there_after_a_restart_and_in_a_session_file() -> None:
    now = project()
    run = answered(now, target=1, prices=(Price("age", 2.0),), budget=50.0)
    runs.rename(now, run, "  Spring   offer ")
    now.save()
    for other in (Project(now.folder), session.store().take(session.store().export(now))):
        assert other.choices.runs == now.choices.runs
        assert other.choices.runs[0].name == "Spring offer"
        pd.testing.assert_frame_equal(
            runs.answers(other, other.choices.runs[0]), runs.answers(now, run)
        )
    runs.delete(now, now.choices.runs[0])
    assert now.choices.runs == ()
    assert not list((now.folder / "runs").iterdir())


def test_a_new_name_is_put_on_and_old_segments_keep_theirs() -> None:
    now = project()
    run = answered(now, target=1)
    now.rename(1, "Regulars")
    assert runs.answers_hold(now, run, runs.present(now)), "a name changes no answer"
    assert "Regulars" in listed(now, run)["to"].to_numpy()
    now.change(k=4)
    assert "segments have changed" in telling.note(now, run, runs.present(now))
    assert runs.names_of(now, run)[1] == "Regulars"
    assert "Regulars" in listed(now, run)["to"].to_numpy()
    assert summary(now, run).counts == run.counts
    with pytest.raises(runs.RunError, match="cannot go on"):
        next(runs.going(now, run))
    page = opened("campaign", now)
    assert not page.exception
    assert "segments have changed" in said(page)


def test_a_lost_file_gets_a_sentence() -> None:
    now = project()
    run = answered(now, target=1)
    (now.folder / "runs" / f"{run.id}.parquet").write_bytes(b"PAR1 no more")
    other = Project(now.folder)
    with pytest.raises(runs.RunError, match="gone or damaged"):
        runs.answers(other, run)


# What people take along


def careless() -> pd.DataFrame:
    """A table with cells that a spreadsheet would compute, and names like ours."""
    frame = with_gaps(people()).rename(columns={"income": "row", "job": "=job"})
    frame["=job"] = frame["=job"].replace({"clerk": "=1+1"})
    frame["note"] = ["@SUM(A1)", "+49 170", "-5", "plain", "\tx"] * 30
    frame["result"] = np.arange(150) - 75.5
    return frame


def test_the_list_has_every_row_and_nothing_that_is_computed() -> None:
    frame = careless()
    now = project(frame)
    now.change(missing=Missing.LEAVE_OUT)
    now.choose_roles({"note": Role.ASIDE, "result": Role.ASIDE})
    run = answered(now, target=1)
    asked = runs.present(now)
    csv = pd.read_csv(
        io.BytesIO(telling.list_file(now, run.id, asked, "csv")), encoding="utf-8-sig"
    )
    sheet = telling.list_file(now, run.id, asked, "xlsx")
    excel = pd.read_excel(io.BytesIO(sheet), engine="calamine")
    parquet = listed(now, run)
    for found in (csv, excel, parquet):
        assert found["row"].tolist() == list(range(1, 151))
        assert found["person_id"].tolist() == frame["person_id"].tolist()
        assert found["result (table)"].tolist() == frame["result"].tolist(), "negative, as numbers"
        before = pd.to_numeric(found["row before"]).to_numpy(float)
        assert np.array_equal(before, frame["row"].to_numpy(), equal_nan=True)
        left = found["result"].str.startswith("left out")
        assert left.tolist() == frame[["age", "=job", "row", "visits"]].isna().any(axis=1).tolist()
        assert found["result"][0] == "left out: no value in age"
        assert found["effort (spreads)"][left].isna().all()
    assert parquet["age after"].dtype.kind in "iI" or parquet["age after"].dtype == "Int64"
    assert excel["note"].tolist() == frame["note"].tolist(), "texts, as they are"
    assert csv["note"].tolist()[:4] == ["'@SUM(A1)", "'+49 170", "-5", "plain"]
    assert "'=job before" in csv
    assert "'=1+1" in csv["'=job before"].to_numpy()
    text = telling.list_file(now, run.id, asked, "csv").decode("utf-8-sig")
    cells = re.findall(r'(?:^|,)"?([=+@\t\r][^,"]*)', text, re.M)
    assert cells == []


def test_a_date_counts_as_the_years_since_then() -> None:
    rng = np.random.default_rng(6)
    group = np.arange(60) % 3
    born = pd.Timestamp("2000-01-01") - pd.to_timedelta(
        group * 6000 + rng.integers(900, size=60), "D"
    )
    frame = pd.DataFrame({"born": born, "visits": 3 * group + rng.integers(3, size=60)})
    frame.loc[4, "born"] = None
    now = project(frame)
    now.choose_roles({"born": Role.YEARS})
    found = listed(now, answered(now, target=1))
    (years,) = [name for name in now.prepared.names if name != "visits"]
    assert len(found) == 60
    assert found["result"][4] == f"left out: no value in {years}"
    assert found[f"{years} before"].notna().sum() == 59
    asked = runs.present(now)
    csv = telling.list_file(now, now.choices.runs[-1].id, asked, "csv").decode("utf-8-sig")
    assert frame["born"][0].strftime("%Y-%m-%d") in csv
    assert "00:00:00" not in csv


def test_files_hold_odd_values() -> None:
    frame = pd.DataFrame({
        "mixed": [1, "=a", None], "big": [2**60, 1, 2], "yes": [True, False, True],
        "far": [np.inf, -1.5, np.nan], "when": pd.to_datetime(["2024-01-02", None, "2024-03-04"]),
        "empty": [None, None, None],
    })  # fmt: skip
    book = io.BytesIO(as_xlsx(frame, {"More": frame[["big"]]}))
    excel = pd.read_excel(book, sheet_name=None, engine="calamine")
    assert list(excel) == ["Rows", "More"]
    assert excel["Rows"]["mixed"].tolist()[:2] in ([1, "=a"], ["1", "=a"])
    assert excel["Rows"]["big"].astype(str).tolist() == [str(2**60), "1", "2"]
    assert excel["Rows"]["far"].tolist()[1] in (-1.5, "-1.5")
    assert excel["Rows"]["yes"].tolist() == [True, False, True]
    assert pd.read_csv(io.BytesIO(as_csv(frame)))["mixed"].tolist()[:2] == ["1", "'=a"]
    back = pd.read_parquet(io.BytesIO(as_parquet(frame)))
    assert back["big"].tolist() == frame["big"].tolist()
    assert back["mixed"].tolist()[:2] == ["1", "=a"]


def test_a_sheet_that_would_be_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LONGEST", 2)
    with pytest.raises(TableError, match=r"3 lines.*Take the CSV"):
        as_xlsx(pd.DataFrame({"a": [1, 2, 3]}))


PLANS = [
    ({"target": 1, "margin": 20}, Missing.LEAVE_OUT, Method.KMEANS),
    ({"each": True, "sources": (0, 2), "budget": 30.0}, Missing.FILL_IN, Method.KMEANS),
    (
        {"target": 0, "prices": (Price("income", 0.5, 0.2), Price("age", 9.0)), "budget": 2e4},
        Missing.LEAVE_OUT,
        Method.SHARK,
    ),
]


@pytest.mark.parametrize(("plan", "missing", "method"), PLANS)
def test_the_script_prints_the_same_numbers(
    plan: dict[str, object], missing: Missing, method: Method, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    frame = with_gaps(people())
    if method is Method.SHARK:
        frame = frame.drop(columns="job")  # all weight would go to one of its levels
    now = project(frame)
    now.change(missing=missing, method=method)
    run = answered(now, **plan)
    asked = runs.present(now)
    ours = summary(now, run)
    zipfile.ZipFile(io.BytesIO(telling.script_file(now, run.id, asked))).extractall(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec((tmp_path / "same.py").read_text(), {})
    printed = capsys.readouterr().out
    assert f"{run.counts.asked} rows asked\n{run.counts.movable} can move\n" in printed
    assert f"{run.counts.already} are there already" in printed
    assert f"median effort {ours.effort:.6g} {ours.unit}" in printed
    if asked.budget is not None:
        assert f"{ours.affordable(asked.budget)} for the budget" in printed


def test_a_report_holds_hostile_data_as_text() -> None:
    frame = people().rename(columns={"age": SCRIPT, "job": '"><img src=x onerror=alert(1)>'})
    frame["person_id"] = [f"{SCRIPT}{i}" for i in range(len(frame))]
    frame.iloc[:, 2] = frame.iloc[:, 2].replace({"clerk": SCRIPT})
    now = project(frame, name=f"{SCRIPT.replace('/', '')}.csv")
    now.rename(0, SCRIPT)
    now.allow(increase_only=[SCRIPT])
    run = answered(now, each=True, prices=(Price(SCRIPT, 2.0),), currency=SCRIPT, free=True)
    runs.rename(now, run, SCRIPT)
    runs.plan(now, budget=40.0)
    report = telling.report_file(now, run.id, runs.present(now)).decode()
    assert "<script" not in report
    assert "<img" not in report
    assert "default-src 'none'" in report
    named = re.sub(r'xmlns(:xlink)?="[^"]*"', "", report)  # names, which nothing is loaded from
    assert "http" not in named.replace("http-equiv", "")
    for part in ("How far a budget goes", "<svg", "The easiest to move", "The same in Python"):
        assert part in report
    page = opened("campaign", now)
    assert not page.exception
    assert "<script" not in said(page)


# The page


def test_a_campaign_from_plan_to_comparison() -> None:
    now = project()
    page = opened("campaign", now)
    page = page.selectbox(key="control campaign target").set_value(1).run()
    page = page.multiselect(key="control immutable").set_value(["age"]).run()
    (answer,) = [b for b in page.button if b.label.startswith("Answer for 150 rows")]
    page = answer.click().run()
    (run,) = now.choices.runs
    assert run.campaign.allowed["immutable"] == ["age"]
    assert run.campaign.target == 1
    page = page.number_input(key="control budget").set_value(20.0).run()
    n = summary(now, run).affordable(20.0)
    assert f"20 spreads moves {n} rows" in said(page)
    assert not [b for b in page.button if b.label.startswith("Answer")], "a budget needs no answers"
    (tried,) = [b for b in page.button if b.label == "If age may change"]
    page = tried.click().run()
    assert [one.name for one in now.choices.runs] == ["Run 1", "Run 2"]
    assert now.choices.runs[1].campaign.allowed.get("immutable", []) == []
    compared = said(page)
    assert "age locked" in compared
    assert "everything may change" in compared
    page = page.selectbox(key="control campaign target").set_value(2).run()
    assert "The plan has changed since Run 2" in said(page)
    assert not page.exception


def test_twelve_segments_have_a_line_a_pair() -> None:
    now = project(people(240), k=12)
    run = answered(now, each=True)
    assert len(summary(now, run).pairs) == 12 * 11
    page = opened("campaign", now)
    assert not page.exception
    (pairs, *_) = [one.value for one in page.dataframe if "Can move" in one.value]
    assert len(pairs) == 12 * 11


def test_what_no_longer_applies_is_left_out() -> None:
    plan = Campaign((0, 4), 5, prices=(Price("age", 1.0), Price("gone", 1.0)))
    kept = plan.within(["age"], 3)
    assert kept == replace(plan, sources=(0,), target=None, prices=(Price("age", 1.0),))


def test_only_these_are_the_easiest_sorted_by_effort() -> None:
    now = project()
    run = answered(now, target=1, sources=(0,))
    asked, said = runs.present(now), summary(now, run)
    content = telling.list_file(now, run.id, asked, "parquet", 12)
    found = pd.read_parquet(io.BytesIO(content))
    assert len(found) == 12
    efforts = found["effort (spreads)"].tolist()
    assert efforts == sorted(efforts)
    assert efforts == pytest.approx(np.sort(said.efforts[~np.isnan(said.efforts)])[:12].tolist())
    book = telling.list_file(now, run.id, asked, "xlsx")
    sheets = pd.read_excel(io.BytesIO(book), sheet_name=None, engine="calamine")
    assert list(sheets) == ["Rows", "Not asked", "About"]
    assert set(sheets["Not asked"]["result"]) == {"not asked"}
    assert "not asked" not in set(sheets["Rows"]["result"])


def test_a_list_is_in_the_dialect_of_its_source_and_keeps_its_cells() -> None:
    frame = people().rename(columns={"job": "Job"})
    frame["income"] = [f"{value:.2f}".replace(".", ",") for value in frame["income"]]
    frame["signed"] = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(len(frame))]
    frame["Job"] = [f" {job}" if i % 10 == 0 else job for i, job in enumerate(frame["Job"])]
    now = begun(frame.to_csv(index=False, sep=";").encode(), "people.csv")
    now.change(k=3, rules={})
    assert now.prepared.spellings["Job"] == {" clerk": "clerk", " retired": "retired",
                                             " student": "student"}  # fmt: skip
    run = answered(now, target=1)
    text = telling.list_file(now, run.id, runs.present(now), "csv").decode("utf-8-sig")
    found = pd.read_csv(io.StringIO(text), sep=";", decimal=",", dtype={"signed": str})
    assert found["signed"].tolist() == frame["signed"].tolist(), "dates as they came"
    assert found["income before"].dtype == float
    assert found["Job before"].tolist() == frame["Job"].tolist(), "with their own spelling"
    same = found["Job after"].str.strip() == found["Job before"].str.strip()
    assert (found["Job after"][same] == found["Job before"][same]).all()


def test_excel_has_dates_a_filter_and_a_header_that_stays() -> None:
    days = pd.to_datetime(["2024-01-02", "2024-03-04"])
    book = zipfile.ZipFile(io.BytesIO(as_xlsx(pd.DataFrame({"day": days, "text": ["a", "b"]}))))
    sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert '<autoFilter ref="A1:B3"/>' in sheet
    assert 'state="frozen"' in sheet
    assert ">45293<" in sheet, "a day is a number of days, shown as a date"


def test_moves_at_the_border_and_an_outcome_as_a_lever_are_said() -> None:
    rng = np.random.default_rng(1)
    group = np.arange(120) % 2
    frame = pd.DataFrame({
        "revenue_won": (group * 9 + rng.normal(size=120)).round(2),
        "visits": rng.integers(0, 9, 120), "calls": rng.integers(0, 9, 120),
    })  # fmt: skip
    now = project(frame, k=2, name="deals.csv")
    answered(now)
    page = opened("campaign", now)
    assert "If it is the outcome that you are after" in said(page)
    (lock,) = [b for b in page.button if b.label.startswith("Lock")]
    lock.click().run()
    assert now.choices.runs[-1].campaign.allowed["immutable"] == ["revenue_won"]


def test_a_report_opens_with_what_came_out() -> None:
    now = project()
    run = answered(now, target=1, prices=(Price("age", 2.0),), free=True)
    report = telling.report_file(now, run.id, runs.present(now)).decode()
    first = re.search(r'<p class="v-lead">(.*?)</p>', report)[1]
    assert first.startswith(f"{run.counts.movable} of the 150 rows that were asked about can move")
    assert re.search(r"it usually takes [\d.,]+ € each", first)
