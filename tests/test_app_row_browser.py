"""One row in a real browser: left-out rows, locks, sliders, other ways, the map."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from app_server import Visit
from voicecf.app.project import Project, Store

pytest.importorskip("playwright.sync_api")
PHONE = {"viewport": {"width": 400, "height": 900}}
DARK = {"color_scheme": "dark", "viewport": {"width": 1400, "height": 900}}
# The same first letters, which a narrow legend would cut.
TWELVE = tuple(f"Customers of the northern region, {t}" for t in range(1, 13))


def shoppers(rows: int = 240) -> bytes:
    """Return a table with an id, of which row 7 has no age."""
    rng = np.random.default_rng(3)
    group = np.arange(rows) % 3
    frame = pd.DataFrame({
        "shopper_id": [f"S{i:05d}" for i in range(rows)],
        "age": np.array([24.0, 45.0, 67.0])[group] + rng.integers(-6, 7, rows),
        "visits": rng.poisson(np.array([9, 4, 1])[group]),
        "spend": np.round(rng.gamma(9, np.array([3.0, 9.0, 5.0])[group]), 2),
        "channel": np.array(["app", "web", "shop"])[(group + (rng.random(rows) < 0.15)) % 3],
    })  # fmt: skip
    frame.loc[6, "age"] = np.nan
    return frame.to_csv(index=False).encode()


@pytest.fixture
def now(home: Path, visit: Visit) -> Project:
    """A project about customers; the page about one row is open."""
    made = Store(home / "projects").create("customers.csv", example="Customers")
    begin(visit, made)
    return made


# They begin with a project that is there.
AT_HOME = False


def begin(visit: Visit, now: Project) -> None:
    """Open the page about one row of a project, as it was put down."""
    now.save()
    visit.page.goto(f"{visit.address}/row?s={now.id}")
    visit.see("Look for")
    visit.settle()


def ask(visit: Visit, text: str) -> None:
    field = visit.page.get_by_role("textbox", name="Ask about a row")
    field.fill(text)
    field.press("Enter")
    visit.settle()


def tick_first(visit: Visit) -> None:
    """Tick the box at the beginning of the first row that was found."""
    visit.page.locator('[data-testid="stDataFrame"]').first.click(position={"x": 18, "y": 38 + 17})


def width_beyond(visit: Visit) -> int:
    return int(visit.page.evaluate("document.documentElement.scrollWidth - innerWidth"))


def place(visit: Visit) -> str:
    return str(visit.page.locator(".v-place").inner_text())


def test_a_left_out_row_says_so_by_number_and_by_search(visit: Visit, home: Path) -> None:
    begin(visit, Store(home / "projects").create("shoppers.csv", shoppers()))
    ask(visit, "7")
    visit.see("Row 7 (S00006) was left out: it has no value in age.")
    assert "moves from" not in visit.text()
    visit.shoot("left-out")
    visit.click(visit.button("Back to row 1 (S00000)"))
    visit.see("Row 1 (S00000) moves from")
    ask(visit, "0006")
    visit.see("Found 11 rows. Tick one to ask about it.")
    tick_first(visit)
    visit.see("Row 7 (S00006) was left out")
    visit.click(visit.button("Fill in missing values"))
    visit.see("Row 7 (S00006) moves from")


def test_a_row_is_found_by_its_id_and_by_a_search(visit: Visit, now: Project) -> None:
    ask(visit, "1234")
    visit.see("Row 234 (1234) moves from")
    ask(visit, "engineer")
    visit.see("The first 100 rows. Tick one")
    tick_first(visit)
    visit.page.get_by_text("Tick one").wait_for(state="detached")
    assert visit.answer().startswith("Row 1 (1001) moves from")


def test_a_guessed_lock_is_undone_by_one_click(visit: Visit, now: Project) -> None:
    chips = visit.page.locator(".st-key-row-chips")
    assert "Stays as it is:" in chips.inner_text()
    visit.click(chips.get_by_role("button", name="age (guessed)"))
    assert chips.get_by_role("button", name="age (guessed)").count() == 0
    visit.click(chips.get_by_role("button", name="As guessed"))
    chips.get_by_role("button", name="age (guessed)").wait_for()


def test_a_slider_changes_the_segment_and_nothing_else(visit: Visit, now: Project) -> None:
    sentence, before = visit.answer(), place(visit)
    visit.click(visit.button("Begin at the answer"))
    there = place(visit)
    assert there.split("\n")[1] in sentence.split(" to ")[1]
    assert there != before
    visit.click(visit.button("Back to the row"))
    assert place(visit) == before
    thumb = visit.page.get_by_role("slider", name="basket")
    thumb.focus()
    for _ in range(3):
        thumb.press("PageDown")
    visit.page.wait_for_function(
        "before => document.querySelector('.v-place').innerText !== before", arg=before
    )
    assert visit.answer() == sentence


def test_other_ways_use_other_columns_in_units(visit: Visit, now: Project) -> None:
    ways = visit.page.locator('[data-testid="stExpander"] summary').filter(has_text="instead of")
    ways.first.wait_for()
    said = [text.split(" instead of ")[0] for text in ways.all_inner_texts()]
    assert len(said) == len(set(said)) >= 2
    ways.first.click()
    opened = visit.page.locator('[data-testid="stExpander"] .v-changes').first
    opened.locator(".v-track").first.wait_for()


def drawn_map(visit: Visit) -> Any:
    drawn = visit.page.locator('[data-testid="stVegaLiteChart"]').first
    drawn.scroll_into_view_if_needed()
    visit.page.wait_for_timeout(300)
    return drawn


@pytest.mark.parametrize("visit", [PHONE, DARK], indirect=True)
def test_a_map_of_twelve_segments_is_told_apart(visit: Visit, home: Path) -> None:
    twelve = Store(home / "projects").create("customers.csv", example="Customers")
    twelve.change(k=12)
    for t, name in enumerate(TWELVE):
        twelve.rename(t, name)
    begin(visit, twelve)
    dots = visit.page.locator(".v-legend > span")
    dots.first.wait_for()
    assert tuple(dots.all_inner_texts()) == TWELVE
    colours = visit.page.evaluate(
        "[...document.querySelectorAll('.v-legend .v-dot')]"
        ".map(dot => getComputedStyle(dot).backgroundColor)"
    )
    assert len(set(colours)) == 12
    assert width_beyond(visit) <= 0
    assert visit.page.evaluate(
        "[...document.querySelectorAll('.v-legend > span')]"
        ".every(one => one.getBoundingClientRect().right <= innerWidth)"
    )
    visit.shoot("twelve-segments")


def test_a_dot_of_the_map_tells_who_it_is_and_is_asked_about_by_a_click(
    visit: Visit, now: Project
) -> None:
    drawn = drawn_map(visit)
    box = drawn.bounding_box()
    tip = visit.page.locator("#vg-tooltip-element.visible")
    for share in np.linspace(0.15, 0.95, 60):
        for height in (0.35, 0.4, 0.45, 0.7, 0.75):
            at = {"x": float(share * box["width"]), "y": float(height * box["height"])}
            drawn.hover(position=at)
            if tip.count() and "Row" in (said := tip.inner_text()):
                assert "Segment" in said
                assert "monthly_income" in said
                number = re.search(r"Row\s+([\d,]+) \(", said)[1]
                drawn.click(position=at)
                visit.settle()
                visit.see(f"Row {number} (")
                return
    pytest.fail("no dot of the map was hit")
