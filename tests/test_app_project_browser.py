"""Work is kept: refresh, back, a second tab, a restarted server, a deep link, a session file."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app_server import SIZE, Visit, running_app
from voicecf.app.project import Store

pytest.importorskip("playwright.sync_api")


def shoppers() -> bytes:
    rng = np.random.default_rng(3)
    group = np.arange(120) % 3
    frame = pd.DataFrame({
        "visits": rng.poisson(np.array([9, 4, 1])[group]),
        "spend": np.round(rng.gamma(9, np.array([3.0, 9.0, 5.0])[group]), 2),
    })  # fmt: skip
    return frame.to_csv(index=False).encode()


def named_segment(visit: Visit) -> str:
    """Choose four segments and name the first; return the address."""
    visit.open("Segments")
    visit.page.get_by_label("Name of segment 1").fill("Regulars of ours")
    visit.page.keyboard.press("Enter")
    visit.settle()
    return str(visit.page.url)


def name_of_first(page: Any) -> str:
    field = page.get_by_label("Name of segment 1")
    field.wait_for()
    return str(field.input_value())


def test_nothing_is_invented_until_it_is_chosen(visit: Visit) -> None:
    assert visit.page.locator(".v-table-name").count() == 0
    visit.open("Segments")
    visit.see("There is no table yet")
    visit.open("Data")
    visit.example()
    assert visit.page.locator(".v-table-name").inner_text() == "customers.csv"


def test_refresh_back_a_second_tab_and_a_deep_link_keep_the_work(visit: Visit) -> None:
    visit.upload("shoppers.csv", shoppers())
    place = named_segment(visit)
    for title in ("One row", "Campaign", "Take away", "Method", "Data"):
        visit.open(title)
        assert visit.page.locator(".v-table-name").inner_text() == "shoppers.csv"
    visit.open("One row")
    visit.page.go_back()
    visit.page.go_back()
    visit.settle()
    visit.page.reload()
    visit.settle()
    assert visit.page.locator(".v-table-name").inner_text() == "shoppers.csv"

    second = visit.page.context.new_page()
    second.goto(place)
    assert name_of_first(second) == "Regulars of ours"
    second.goto(place.replace("/segments", "/row"))
    second.get_by_text("Regulars of ours").first.wait_for()


def test_a_failed_upload_leaves_everything_as_it_was(visit: Visit, home: Path) -> None:
    now = Store(home / "projects").create("shoppers.csv", shoppers())
    now.rename(0, "Regulars of ours")
    now.save()
    place = f"{visit.address}/segments?s={now.id}"
    visit.page.goto(f"{visit.address}/?s={now.id}")
    visit.settle()
    visit.click(visit.page.get_by_text("Another table"))
    visit.upload("ragged.csv", b"a,b\n1,2\n3,4,5\n")
    visit.see("more values than the 2 columns")
    assert visit.page.locator(".v-table-name").inner_text() == "shoppers.csv"
    visit.page.goto(place)
    assert name_of_first(visit.page) == "Regulars of ours"


def test_a_session_file_is_opened_and_earlier_work_deleted(visit: Visit, home: Path) -> None:
    visit.upload("ours.csv", shoppers())
    place = named_segment(visit)
    visit.open("Take away")
    saved = visit.download("Save session file")
    visit.page.goto(visit.address)
    visit.settle()
    visit.upload("ours session.zip", saved)
    assert visit.page.url != place
    visit.open("Segments")
    assert name_of_first(visit.page) == "Regulars of ours"

    visit.page.goto(visit.address)
    visit.settle()
    projects = home / "projects"
    before = len(list(projects.iterdir()))
    visit.click(visit.page.get_by_text("Earlier work").first)
    visit.click(visit.page.get_by_role("button", name="Delete", exact=True).first)
    visit.click(visit.button("Yes, delete it"))
    assert len(list(projects.iterdir())) == before - 1
    (gone,) = re.findall(r"s=(\w+)", place)
    visit.page.goto(place)
    visit.settle()
    if not (projects / gone).exists():
        visit.see("no longer, kept on this computer")


def test_a_server_that_is_started_again_goes_on(browser: Any, visit: Visit, home: Path) -> None:
    """The first one is not asked to end, so it has nothing left to put down."""
    visit.upload("shoppers.csv", shoppers())
    place = named_segment(visit)
    visit.open("One row")
    sentence = visit.answer()
    context = browser.new_context(viewport=SIZE)
    with running_app(home) as again:
        page = context.new_page()
        page.goto(place.replace(visit.address, again))
        assert name_of_first(page) == "Regulars of ours"
        page.goto(place.replace(visit.address, again).replace("/segments", "/row"))
        page.locator(".v-lead").first.wait_for()
        assert page.locator(".v-lead").first.inner_text() == sentence
    context.close()
