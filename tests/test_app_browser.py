"""The app in a real browser, from upload to download, with nothing mocked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from app_server import PATIENCE, Visit

pytest.importorskip("playwright.sync_api") if not os.environ.get("CI") else None

SCRIPT = "<script>window.hacked = 1</script>"
IMAGE = "<img src=x onerror='window.hacked = 2'>"
PAGES = ("Data", "Segments", "One row", "Everyone", "Compare", "Paper", "Take away")


def shoppers(rows: int = 240, gaps: bool = True) -> pd.DataFrame:
    """Make a table with an id, whole numbers, numbers, a category and some missing values."""
    rng = np.random.default_rng(3)
    group = np.arange(rows) % 3
    frame = pd.DataFrame({
        "shopper_id": [f"S{i:05d}" for i in range(rows)],
        "age": np.array([24, 45, 67])[group] + rng.integers(-6, 7, rows),
        "visits": rng.poisson(np.array([9, 4, 1])[group]),
        "spend": np.round(rng.gamma(9, np.array([3.0, 9.0, 5.0])[group]), 2),
        "channel": np.array(["app", "web", "shop"])[(group + (rng.random(rows) < 0.15)) % 3],
    })  # fmt: skip
    if gaps:
        frame.loc[[5, 17], "spend"] = np.nan
    return frame


def as_csv(frame: pd.DataFrame) -> bytes:
    return frame.to_csv(index=False).encode()


def test_from_upload_to_download(visit: Visit, tmp_path: Path) -> None:
    frame = shoppers()
    visit.upload("shoppers.csv", as_csv(frame))
    visit.see("240 rows, 5 columns")
    visit.see("2 of 240 rows miss a value")

    visit.click(visit.button("Find segments"))
    visit.click(visit.button("Ask about a row"), PATIENCE)
    assert visit.clicks <= 5, "a newcomer reaches an answer with five clicks or fewer"
    sentence = visit.answer()
    assert sentence.startswith("Row 1 (S00000) moves from ")
    visit.shoot("first-answer")

    visit.open("Everyone")
    visit.click(visit.button("Answer for all 238 rows"))
    visit.button("Download CSV").wait_for(timeout=PATIENCE)
    visit.settle()
    table = pd.read_csv(io.BytesIO(visit.download("Download CSV")))
    parquet = pd.read_parquet(io.BytesIO(visit.download("Download Parquet")))
    assert len(table) == len(parquet) == 238
    assert table["row"].tolist() == [i + 1 for i in range(240) if i not in (5, 17)]
    assert (table["age"] == table["age"].round()).all()
    assert set(table["channel"]) <= {"app", "web", "shop"}

    visit.open("Take away")
    report = visit.download("Download report").decode()
    assert sentence in report.replace("&#x27;", "'")
    (visit.shots / "report.html").write_text(report)
    (tmp_path / "shoppers.csv").write_bytes(as_csv(frame))
    (tmp_path / "same.py").write_bytes(visit.download("Download script"))
    printed = subprocess.run(
        [sys.executable, "same.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    # The script's own words, the page's answer: the values of the row that it moves to.
    for name in ("age", "visits"):
        assert f"{table[name][0]:g}" in printed


def test_an_infeasible_question_is_mended_by_a_button(visit: Visit) -> None:
    visit.open("One row")
    for column in ("age", "basket", "monthly_income", "job", "channel"):
        visit.choose("Must stay as it is", column)
    visit.choose("Should be in", "Older, many newsletters read")
    assert "cannot move" in visit.answer()
    visit.page.get_by_text("In the way:").wait_for()
    visit.shoot("infeasible")
    visit.click(visit.page.get_by_role("button", name="Unlock").first)
    assert "moves from" in visit.answer()
    assert "In the way:" not in visit.text()


BROKEN = [
    ("empty.csv", b"", "This file is empty"),
    ("ragged.csv", b"a,b\n1,2\n3,4,5\n", "Line 3 of this file has more values"),
    ("pickle.csv", b"\x80\x04\x95\x00\x00", "This file holds no text"),
    ("cut.parquet", b"PAR1" + b"x" * 50, "cannot be read; it may be cut off"),
    ("headonly.csv", b"a,b,c\n", "no rows under them"),
    ("photo.csv", b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "This file is a picture"),
]


def test_a_broken_upload_gets_a_sentence(visit: Visit) -> None:
    for name, content, said in BROKEN:
        visit.upload(name, content)
        visit.see(said)
        assert "Traceback" not in visit.text()
    visit.shoot("broken-upload")
    visit.open("Segments")
    visit.see("There is no table yet")


@pytest.mark.parametrize(
    ("frame", "said"),
    [
        (pd.DataFrame({"a": [1], "b": [2]}), "This table has one row"),
        (pd.DataFrame({"a": ["x y", "z", "w"], "b": [3, 3, 3]}), "all are set aside"),
    ],
)
def test_a_table_without_segments_gets_a_sentence(
    visit: Visit, frame: pd.DataFrame, said: str
) -> None:
    visit.upload("odd.csv", as_csv(frame))
    for page in ("Segments", "One row", "Everyone", "Compare", "Take away"):
        visit.open(page)
        visit.see(said)


def test_a_hostile_table_is_only_ever_text(visit: Visit, shots: Path) -> None:
    frame = shoppers(90, gaps=False).rename(columns={"age": SCRIPT, "channel": IMAGE})
    frame[IMAGE] = frame[IMAGE].replace({"app": SCRIPT, "web": "![x](http://evil.example/x.png)"})
    frame["shopper_id"] = [f"{IMAGE}{i}" for i in range(len(frame))]
    visit.upload(f"{IMAGE.replace('/', '')}.csv", as_csv(frame))
    visit.open("Segments")
    name_segments(visit, (SCRIPT,))
    for page in PAGES:
        visit.open(page)
        if page == "Everyone":
            visit.click(visit.button("Answer for all 90 rows"))
            visit.button("Download CSV").wait_for()
        if page == "One row":
            visit.see("<img src=x")
            visit.shoot("hostile")
        if page == "Take away":
            report = visit.download("Download report")
        assert visit.page.evaluate("window.hacked") is None
    (shots / "hostile.html").write_bytes(report)
    alone = visit.page.context.new_page()
    alone.goto((shots / "hostile.html").resolve().as_uri())
    assert SCRIPT in alone.locator("body").inner_text()
    assert alone.evaluate("window.hacked") is None
    assert alone.locator("script").count() == 0


def test_a_click_on_the_map_picks_the_row(visit: Visit) -> None:
    visit.open("One row")
    before = visit.answer()
    canvas = visit.page.locator('[data-testid="stVegaLiteChart"] canvas, .vega-embed svg').first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    assert before.startswith("Row 1 ")
    canvas.click(position={"x": 0.9 * box["width"], "y": 0.3 * box["height"]})  # a cell, no row
    visit.settle()
    assert visit.answer() == before
    for share in ((0.25, 0.6), (0.28, 0.62), (0.3, 0.65), (0.8, 0.6), (0.5, 0.2), (0.78, 0.62)):
        for nudge in range(0, 12, 4):
            place = {"x": box["width"] * share[0] + nudge, "y": box["height"] * share[1]}
            canvas.click(position=place)
            visit.settle()
            if not visit.answer().startswith("Row 1 "):
                return
    pytest.fail("no click on the map picked a row")


def test_a_search_finds_a_row(visit: Visit) -> None:
    visit.open("One row")
    visit.page.get_by_role("tab", name="Find a row in the table").click()
    visit.page.get_by_role("textbox", name="Search").fill("1234")
    visit.page.keyboard.press("Enter")
    visit.settle()
    visit.see("1 row. Tick one")
    visit.shoot("search")
    line = {"x": 18, "y": 38 + 17}  # the box at the beginning of the first line
    visit.page.locator('[data-testid="stDataFrame"]').first.click(position=line)
    visit.see("Row 234 (1234) moves from")


def test_what_a_column_is_used_as_can_be_changed(visit: Visit) -> None:
    grid = visit.page.locator('[data-testid="stDataFrame"]').first
    grid.locator("canvas").first.wait_for()
    editor = visit.page.locator("#portal input")
    for _ in range(5):  # the grid takes clicks some time after it is drawn
        # The column "Use as", the line of "age".
        grid.dblclick(position={"x": 280, "y": 38 + 35 + 17})
        visit.page.wait_for_timeout(400)
        if editor.count():
            break
    visit.page.keyboard.type("Set aside")
    visit.page.locator("#portal").get_by_text("Set aside").last.wait_for()
    visit.page.keyboard.press("Enter")
    visit.settle()
    visit.page.wait_for_timeout(400)
    visit.settle()
    visit.open("Segments")
    assert "age" not in visit.page.locator(".v-traits").first.inner_text()


def test_a_run_over_all_rows_can_be_stopped_and_go_on(visit: Visit) -> None:
    visit.upload("many.csv", as_csv(shoppers(6_000, gaps=False)))
    visit.open("Everyone")
    visit.button("Answer for all 6,000 rows").click()
    stop = visit.button("Stop")
    stop.wait_for()
    visit.page.get_by_text("500 of 6,000 rows answered").wait_for(timeout=PATIENCE)
    visit.click(stop)
    visit.see("Stopped after")
    assert visit.button("Go on").is_visible()


def test_the_paper_is_recomputed(visit: Visit) -> None:
    visit.open("Paper")
    visit.see("compared cells are the same", PATIENCE)
    visit.see("1.79 = 1.79")
    visit.choose("Tables", "concentration")
    visit.click(visit.button("Recompute"), PATIENCE)
    visit.page.get_by_text("1.79 = 1.79").wait_for(state="detached", timeout=PATIENCE)
    visit.see("Weight concentration under SHARK")


def name_segments(visit: Visit, names: tuple[str, ...]) -> None:
    for t, name in enumerate(names, start=1):
        visit.page.get_by_label(f"Name of segment {t}").fill(name)
        visit.page.keyboard.press("Enter")
        visit.settle()


@pytest.mark.parametrize(
    ("visit", "suffix", "pages"),
    [
        ({}, "", PAGES),
        ({"color_scheme": "dark"}, "-dark", ("Data", "Segments", "One row", "Compare")),
        ({"viewport": {"width": 420, "height": 900}}, "-narrow", ("Data", "Segments", "One row")),
    ],
    indirect=["visit"],
)
def test_every_page_has_its_picture(
    visit: Visit, suffix: str, pages: tuple[str, ...], shots: Path
) -> None:
    for page in pages:
        visit.open(page)
        if page == "Segments":
            name_segments(visit, ("Young regulars", "Retired", "Families"))
        if page == "Everyone":
            visit.click(visit.button("Answer for all 600 rows"))
            visit.button("Download CSV").wait_for()
            visit.settle()
        name = page.lower().replace(" ", "-") + suffix
        visit.shoot(name)
        assert (shots / f"{name}.png").stat().st_size > 10_000
        overflow = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"{page} is wider than the window"
