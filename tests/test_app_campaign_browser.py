"""A campaign in a real browser: run, stop, go on, compare, download, with nothing mocked."""

from __future__ import annotations

import io
import os
from html import unescape
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from app_server import PATIENCE, Visit

pytest.importorskip("playwright.sync_api") if not os.environ.get("CI") else None


def regulars(rows: int) -> bytes:
    """Make a table with an id, whole numbers, numbers, a category and two gaps."""
    rng = np.random.default_rng(8)
    group = np.arange(rows) % 3
    frame = pd.DataFrame({
        "customer_id": [f"C{i:06d}" for i in range(rows)],
        "visits": rng.poisson(np.array([9, 4, 1])[group]),
        "basket": np.round(rng.gamma(9, np.array([3.0, 9.0, 5.0])[group]), 2),
        "recency": rng.integers(0, 60, rows) + np.array([0, 30, 90])[group],
        "channel": np.array(["app", "web", "shop"])[(group + (rng.random(rows) < 0.15)) % 3],
    })  # fmt: skip
    frame.loc[[5, 17], "basket"] = np.nan
    return frame.to_csv(index=False).encode()


def fits(visit: Visit) -> bool:
    """Whether nothing is wider than the window."""
    return bool(visit.page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def first_segment(visit: Visit) -> str:
    """Return what the first segment is called, after the nearest and every other."""
    visit.page.get_by_role("combobox", name="To").first.click()
    name = str(visit.page.get_by_role("option").nth(2).inner_text())
    visit.page.keyboard.press("Escape")
    return name


def tab(visit: Visit, name: str) -> None:
    visit.page.get_by_role("tab", name=name).click()
    visit.settle()


def test_a_campaign_from_plan_to_files(visit: Visit, browser: Any) -> None:
    visit.upload("regulars.csv", regulars(300))
    visit.open("Campaign")
    target = first_segment(visit)
    visit.choose("To", target)
    visit.click(visit.button("Answer for 298 regulars"))
    visit.see("can move")
    tab(visit, "Take along")
    csv = pd.read_csv(io.BytesIO(visit.download("Download CSV")), encoding="utf-8-sig")
    excel = pd.read_excel(io.BytesIO(visit.download("Download Excel")), engine="calamine")
    parquet = pd.read_parquet(io.BytesIO(visit.download("Download Parquet")))
    for found in (csv, excel, parquet):
        assert len(found) == 300
        assert found["customer_id"][299] == "C000299"
        assert found["result"][5] == "left out: no value in basket"
    report = unescape(visit.download("Download report").decode())
    assert f"Campaign: Everyone to {target}" in report
    script = ZipFile(io.BytesIO(visit.download("Download script"))).read("same.py").decode()
    assert "voice.explain(" in script

    tab(visit, "What if")
    visit.click(visit.page.get_by_role("button", name="Without ").first)
    visit.page.locator(".v-compared").wait_for()
    head = visit.page.locator(".v-compared th").all_inner_texts()
    assert head == ["", "Run 1", "Run 2"]

    other = Visit(visit.page.context.new_page(), visit.page.url, visit.shots)
    other.see("can move")
    tab(other, "What if")
    assert other.page.locator(".v-compared th").all_inner_texts() == head


def test_a_run_is_stopped_and_goes_on(visit: Visit) -> None:
    visit.upload("many.csv", regulars(90_000))
    visit.open("Campaign")
    visit.button("Answer for 89,998 rows").click()
    visit.page.get_by_text("of 89,998 rows answered").wait_for(timeout=PATIENCE)
    visit.click(visit.button("Stop"))
    visit.see("stopped after")
    visit.see("not answered yet")
    visit.click(visit.button("Go on"))
    visit.page.get_by_text("not answered yet").wait_for(state="detached", timeout=PATIENCE)
    assert "89,998" in visit.text()
    assert "stopped after" not in visit.text()


@pytest.mark.parametrize(
    ("visit", "name"),
    [
        pytest.param(
            {"viewport": {"width": 1400, "height": 900}}, "campaign", marks=pytest.mark.slow
        ),
        ({"viewport": {"width": 400, "height": 900}, "color_scheme": "dark"}, "campaign-narrow"),
    ],
    indirect=["visit"],
)
def test_nothing_is_wider_than_the_window(visit: Visit, name: str) -> None:
    visit.example()
    visit.open("Campaign")
    visit.choose("To", "Every other segment")
    visit.page.get_by_text("Prices and budget").first.click()
    visit.page.wait_for_timeout(400)  # it opens slowly
    visit.choose("Columns whose change costs something", "basket")
    visit.page.get_by_label("Budget (€)").fill("900")
    visit.page.keyboard.press("Enter")
    visit.settle()
    visit.click(visit.button("Answer for 600 customers"))
    visit.see("can move")
    for at, part in enumerate(("From where", "Budget and rows", "What if", "Take along")):
        tab(visit, part)
        assert fits(visit), part
        visit.shoot(f"{name}-{at}")
