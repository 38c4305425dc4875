"""What axe-core finds on every page; it runs where VOICECF_AXE names axe.min.js."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app_server import Visit

pytest.importorskip("playwright.sync_api")
AXE = os.environ.get("VOICECF_AXE", "")
if not AXE:
    pytest.skip("VOICECF_AXE names no axe.min.js", allow_module_level=True)
RULES = ["color-contrast", "heading-order", "page-has-heading-one", "image-alt", "label"]
FOUND = """async rules => (
    await axe.run('[data-testid=stMain]', {runOnly: rules})).violations.flatMap(one =>
    one.nodes.map(node => one.id + ': ' + node.html.slice(0, 160)))"""


@pytest.mark.parametrize(
    "visit", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True
)
def test_axe_finds_nothing_on_any_page(visit: Visit) -> None:
    visit.example()
    found = []
    for page in ("Data", "Segments", "One row", "Campaign", "Take away", "Method"):
        visit.open(page)
        if page == "Campaign":
            visit.click(visit.button("Answer for 600 customers"))
            visit.see("can move")
        visit.page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        found += [f"{page}: {one}" for one in visit.page.evaluate(FOUND, RULES)]
    assert found == [], "\n".join(found)
