"""The page “Segments” in a real browser: clicks on numbers, names, labels, on a telephone too."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pandas as pd
import pytest

from app_server import Visit

pytest.importorskip("playwright.sync_api")

SCRIPT = "<script>window.hacked = 1</script>"


def clients(rows: int = 300) -> bytes:
    """Make a table in three groups, with a label that is set aside, and names that could run."""
    rng = np.random.default_rng(3)
    group = np.arange(rows) % 3
    frame = pd.DataFrame({
        "visits_per_month": rng.poisson(np.array([9, 4, 1])[group]),
        "first_year": np.array([2006, 2012, 1999])[group] + rng.integers(-3, 4, rows),
        SCRIPT: np.round(rng.gamma(9, np.array([3.0, 9.0, 5.0])[group]), 2),
        "class": np.where(rng.random(rows) < np.array([0.1, 0.3, 0.8])[group], "churned", "stays"),
    })  # fmt: skip
    return frame.to_csv(index=False).encode()


def names(visit: Visit) -> list[str]:
    visit.see("Every row with its segment")  # the end of the page
    visit.settle()
    fields = visit.page.get_by_label("Name of segment")
    fields.first.wait_for()
    return [fields.nth(i).input_value() for i in range(fields.count())]


def rename(visit: Visit, segment: int, name: str) -> None:
    visit.page.get_by_label(f"Name of segment {segment}", exact=True).fill(name)
    visit.page.keyboard.press("Enter")
    visit.settle()


def click_number(visit: Visit, k: int) -> None:
    """Click high above the bar of a number, where there is none."""
    chart = visit.page.locator('[data-testid="stVegaLiteChart"]').first
    canvas = chart.locator("canvas, svg.marks").first
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    left, right = 40, 5  # pixels of the axis and the padding
    step = (box["width"] - left - right) / 11
    canvas.click(position={"x": left + step * (k - 2 + 0.5), "y": 12})
    visit.settle()
    visit.page.wait_for_timeout(300)
    visit.settle()


def test_a_click_on_a_number_chooses_it_and_twelve_stay_readable(visit: Visit) -> None:
    visit.upload("clients.csv", clients())
    visit.open("Segments")
    visit.see("300 clients in 3 segments")
    for k in (12, 5, 12):
        click_number(visit, k)
        visit.see(f"300 clients in {k} segments")
    assert len(names(visit)) == 12
    assert visit.page.locator(".v-trait").count() >= 24
    visit.page.get_by_role("tab", name="What the columns set aside say").click()
    visit.see("This column had no part in finding the segments.")
    for width in (1400, 400):
        visit.page.set_viewport_size({"width": width, "height": 900})
        visit.shoot(f"segments-twelve-{width}")
        main = "document.querySelector('[data-testid=stMain]')"
        for over in (
            "document.documentElement.scrollWidth - innerWidth",
            f"{main}.scrollWidth - {main}.clientWidth",
        ):
            assert visit.page.evaluate(over) <= 0
    assert visit.page.evaluate("window.hacked") is None


def test_a_taken_name_is_refused_in_sight_and_an_emptied_one_is_suggested_again(
    visit: Visit,
) -> None:
    visit.upload("clients.csv", clients())
    visit.open("Segments")
    visit.see("in 3 segments")
    suggested = names(visit)
    assert len(set(suggested)) == 3
    rename(visit, 2, "Our regulars")
    assert names(visit) == [suggested[0], "Our regulars", suggested[2]]
    rename(visit, 1, "our regulars")
    visit.see("Segment 2 is already called “Our regulars”")
    assert names(visit) == [suggested[0], "Our regulars", suggested[2]]
    table = pd.read_csv(BytesIO(visit.download("Download CSV")), encoding="utf-8-sig")
    assert len(table) == 300
    assert set(table["segment"]) == set(names(visit))
    rename(visit, 2, "")
    assert names(visit) == suggested
    assert "is already called" not in visit.text()
