"""The page Data in a real browser: what was understood of files, and how it is set right."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from analysts_files import FILES, File, workbook
from app_server import Visit

pytest.importorskip("playwright.sync_api") if not os.environ.get("CI") else None

GRID = '[data-testid="stDataFrame"]'
# The columns of the table "What was understood".
COLUMN, IN_FILE, KIND, BECAME, USE, LOCKED, MISSING, WHY = range(8)
AMBIGUOUS = b"day;income\n" + b"".join(
    b"%02d/%02d/2019;%d\n" % (i % 12 + 1, i % 7 + 1, -999 if i % 9 == 0 else 2000 + 37 * i)
    for i in range(60)
)


def understood(visit: Visit) -> dict[str, list[str]]:
    """Return the lines of the table, by column."""
    grid = visit.page.locator(GRID).first
    grid.locator("canvas tbody tr").first.wait_for(state="attached")
    visit.page.wait_for_timeout(200)
    lines = grid.locator("canvas tbody tr").all()
    cells = [line.locator("td").all_text_contents() for line in lines]
    return {line[COLUMN]: line for line in cells}


# What is understood of every file, test_app_reading asks; here, whether the page shows it.
@pytest.mark.parametrize(
    "files",
    [FILES[:3], pytest.param(FILES[3:12], marks=pytest.mark.slow)],
    ids=["some", "the rest"],
)
def test_every_file_shows_what_was_understood(visit: Visit, files: tuple[File, ...]) -> None:
    for file in files:
        name = file.name if "." in file.name else f"{file.name}.txt"
        visit.upload(name, file.content)
        visit.page.locator("h2").get_by_text(name, exact=True).wait_for()
        visit.settle()
        visit.see(f"{len(next(iter(file.columns.values())))} rows, {len(file.columns)} columns")
        lines = understood(visit)
        assert list(lines) == list(file.columns), file.name
        assert tuple(line[KIND] for line in lines.values()) == file.kinds
        for line in lines.values():
            texts = line[IN_FILE].split("  ·  ")
            assert all(text in file.content.decode() for text in texts)


def test_another_reading_and_a_missing_mark_are_one_click_away(visit: Visit) -> None:
    visit.upload("ambiguous.csv", AMBIGUOUS)
    line = understood(visit)["day"]
    assert line[KIND] == "date, day first"
    assert line[BECAME].startswith("2019-01-08  ·  2019-02-09")
    visit.click(visit.button("Read as date, month first"))
    visit.see("was read as date, month first")
    assert understood(visit)["day"][KIND] == "date, month first"
    visit.click(visit.button("-999 is no value"))
    visit.see("7 of 60 rows miss a value")
    assert understood(visit)["income"][MISSING] == "7"
    visit.page.reload()
    visit.settle()
    assert understood(visit)["day"][KIND] == "date, month first", "choices are kept"
    visit.click(visit.button("-999 is a value"))
    visit.button("-999 is no value").wait_for()
    assert understood(visit)["income"][MISSING] == "0"


def test_cells_can_be_pasted(visit: Visit) -> None:
    visit.page.get_by_text("Or paste cells from a spreadsheet").click()
    box = visit.page.get_by_placeholder("Copy cells")
    rows = "".join(f"{20 + i * i}\t{1000 + i},5\t{'ab'[i % 2]}\n" for i in range(9))
    box.fill("age\tincome\tjob\n" + rows)
    box.press("Control+Enter")
    visit.settle()
    visit.click(visit.button("Use these cells"))
    visit.see("9 rows, 3 columns")
    lines = understood(visit)
    assert [line[KIND] for line in lines.values()] == [
        "number",
        "number with decimal comma",
        "text",
    ]
    assert lines["age"][LOCKED] == "true"
    assert lines["income"][LOCKED] == "false"


def test_a_workbook_is_read_and_a_broken_one_leaves_everything_as_it_was(
    visit: Visit, shots: Path
) -> None:
    visit.upload("book.xlsx", workbook())
    visit.see("The sheet 'Customers' was read, of 2 sheets.")
    lines = understood(visit)
    assert lines["zip"][USE] == "Set aside"
    assert lines["zip"][WHY] == "a code, not a quantity"
    assert lines["joined"][IN_FILE].startswith("2019-04-03")
    visit.page.get_by_role("combobox", name="Sheet").click()
    visit.click(visit.page.get_by_role("option", name="Cover"))
    visit.see("no rows under them")
    assert understood(visit) == lines
    visit.page.get_by_text("Another table").click()
    visit.page.locator('input[type="file"]').set_input_files(
        {"name": "cut.xlsx", "mimeType": "", "buffer": workbook()[:900]}
    )
    visit.see("This file is no workbook, or a damaged one")
    assert understood(visit) == lines
    visit.shoot("data-workbook")


def choose(visit: Visit, line: int, column: int, text: str) -> None:
    """Go to a cell of the table by the keyboard, and choose or, without a text, toggle it."""
    grid = visit.page.locator(GRID).first
    grid.scroll_into_view_if_needed()
    editor = visit.page.locator("#portal input")
    before = cell(visit, line, column)
    for _ in range(5):  # the grid takes keys some time after it is drawn
        visit.page.keyboard.press("Escape")  # an editor that keys which got lost have opened
        grid.click(position={"x": 20, "y": 38 + 17})
        for key in ["ArrowRight"] * column + ["ArrowDown"] * line:
            visit.page.keyboard.press(key)
        visit.page.keyboard.press("Enter")
        visit.page.wait_for_timeout(300)
        if editor.count() if text else changes(visit, line, column, before):
            break
    if text:
        visit.page.keyboard.type(text)
        visit.page.locator("#portal").get_by_text(text).last.wait_for()
        visit.page.keyboard.press("Enter")
    visit.page.wait_for_timeout(300)
    visit.settle()


def cell(visit: Visit, line: int, column: int) -> str:
    return list(understood(visit).values())[line][column]


def changes(visit: Visit, line: int, column: int, before: str) -> bool:
    """Wait until a cell is another than before; False if it stays as it was."""
    for _ in range(20):
        visit.settle()
        if cell(visit, line, column) != before:
            return True
        visit.page.wait_for_timeout(300)
    return False


def test_a_column_is_used_locked_and_read_as_the_visitor_says(visit: Visit) -> None:
    visit.upload("ambiguous.csv", AMBIGUOUS)
    assert understood(visit)["day"][USE] == "Set aside"
    choose(visit, 0, USE, "Days since")
    visit.see("Years and days since a date are counted up to")
    line = understood(visit)["day"]
    assert (line[USE], line[LOCKED]) == ("Days since", "true")
    choose(visit, 1, LOCKED, "")
    assert understood(visit)["income"][LOCKED] == "true"
    choose(visit, 1, KIND, "date, day first")
    visit.see("Column “income” cannot be read as date, day first")
    assert understood(visit)["income"][KIND] == "number"
    choose(visit, 0, KIND, "text")
    assert understood(visit)["day"][KIND] == "text"
