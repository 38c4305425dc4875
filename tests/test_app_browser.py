"""The app in a real browser, from upload to download, with nothing mocked."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from app_server import PATIENCE, Visit

pytest.importorskip("playwright.sync_api")

SCRIPT = "<script>window.hacked = 1</script>"
IMAGE = "<img src=x onerror='window.hacked = 2'>"
PAGES = ("Data", "Segments", "One row", "Campaign", "Take away", "Method")


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

    visit.open("Take away")
    report = visit.download("Download report").decode()
    assert sentence in unescape(report)
    (visit.shots / "report.html").write_text(report)
    ZipFile(io.BytesIO(visit.download("Download script"))).extractall(tmp_path)
    printed = subprocess.run(
        [sys.executable, "same.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout
    after = re.findall(r"rises from|falls from|changes from", sentence)
    assert len(after) == len(re.findall(r"rises from|falls from|changes from", printed))
    for value in re.findall(r" to (\w+)(?:,| and|\.)", sentence.split(" if ")[1]):
        assert value in printed, "the script gives the answer of the page"


def test_an_infeasible_question_is_mended_by_a_button(visit: Visit) -> None:
    visit.example()
    visit.open("One row")
    for column in ("basket", "monthly_income", "newsletters_read", "visits_per_month", "job"):
        visit.choose("Must stay as it is", column)
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


def test_a_table_without_segments_gets_a_sentence(visit: Visit) -> None:
    """On all pages; tables that cannot be clustered for other reasons are in test_app_pages."""
    visit.upload("odd.csv", as_csv(pd.DataFrame({"a": [1], "b": [2]})))
    for page in PAGES[1:]:
        visit.open(page)
        visit.see("This table has one row")


def test_a_hostile_table_is_only_ever_text(visit: Visit, shots: Path) -> None:
    frame = shoppers(90, gaps=False).rename(columns={"age": SCRIPT, "channel": IMAGE})
    frame[IMAGE] = frame[IMAGE].replace({"app": SCRIPT, "web": "![x](http://evil.example/x.png)"})
    frame["shopper_id"] = [f"{IMAGE}{i}" for i in range(len(frame))]
    visit.upload(f"{IMAGE.replace('/', '')}.csv", as_csv(frame))
    visit.open("Segments")
    name_segments(visit, (SCRIPT,))
    for page in PAGES:
        visit.open(page)
        if page == "Campaign":
            visit.click(visit.button("Answer for 90 rows"))
            visit.see("can move")
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


def name_segments(visit: Visit, names: tuple[str, ...]) -> None:
    for t, name in enumerate(names, start=1):
        visit.page.get_by_label(f"Name of segment {t}").fill(name)
        visit.page.keyboard.press("Enter")
        visit.settle()


# The two that differ most are looked at every time, the others in the sweep.
OFTEN = ((1400, "light", 3), (400, "dark", 12))
LOOKS = [
    pytest.param(
        {"viewport": {"width": width, "height": 900}, "color_scheme": scheme},
        k,
        id=f"{width}-{scheme}-{k}",
        marks=[] if (width, scheme, k) in OFTEN else pytest.mark.slow,
    )
    for width in (1400, 400)
    for scheme in ("light", "dark")
    for k in (3, 12)
]


@pytest.mark.parametrize(("visit", "k"), LOOKS, indirect=["visit"])
def test_every_page_has_its_picture(visit: Visit, k: int, shots: Path, request: Any) -> None:
    """Set VOICECF_SCREENSHOTS to a folder, and look at them."""
    look = request.node.callspec.id
    visit.example()
    named = ["Young regulars", "Retired", "Families"] if k == 3 else []
    for page in PAGES:
        visit.open(page)
        if page == "Segments":
            move = "ArrowRight" if k > 3 else "ArrowLeft"
            slider = visit.page.get_by_role("slider").first
            slider.focus()
            while int(slider.input_value()) != k:
                visit.page.keyboard.press(move)
                visit.settle()
            name_segments(visit, tuple(named))
        if page == "Campaign":
            visit.click(visit.button("Answer for 600 customers"))
            visit.see("can move")
        name = f"{page.lower().replace(' ', '-')}-{look}"
        visit.shoot(name)
        assert (shots / f"{name}.png").stat().st_size > 10_000
        overflow = visit.page.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert overflow <= 0, f"{page} is wider than the window"
