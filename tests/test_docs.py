"""The documentation: its code runs, and it has a place for every public name."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path

import pytest

import voicecf

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

import pages  # noqa: E402

WITH_CODE = [p for p in sorted(DOCS.rglob("*.md")) if pages.BLOCK.search(p.read_text())]
ROOMS = ("plots", "diagnostics", "files", "streaming", "datasets")


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(DOCS)))
@pytest.mark.filterwarnings("default")
def test_the_code_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    pages.outputs(page.read_text(), page.name)


def public_names() -> list[str]:
    """Return every public name: of the package, and of the rooms that users import from."""
    names = [f"voicecf.{name}" for name in voicecf.__all__]
    for room in ROOMS:
        module = importlib.import_module(f"voicecf.{room}")
        names += [f"voicecf.{room}.{name}" for name in module.__all__]
    return names


def object_of(name: str) -> object:
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_has_its_place_in_the_reference(name: str) -> None:
    reference = "".join(page.read_text() for page in (DOCS / "reference").glob("*.md"))
    last = name.rpartition(".")[2]
    assert re.search(rf"^::: voicecf[\w.]*\.{last}$|`{last}`", reference, re.MULTILINE)


@pytest.mark.parametrize("name", public_names())
def test_a_public_name_has_a_docstring_with_an_example(name: str) -> None:
    found = object_of(name)
    if not (inspect.isclass(found) or inspect.isfunction(found)):
        return  # a constant, which the page about it explains
    assert found.__doc__, "no docstring"
    methods = [m.__doc__ or "" for _, m in inspect.getmembers(found, callable)]
    assert any(">>>" in text for text in (found.__doc__, *methods)), "no example"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    there = {p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md")}
    assert there == listed


def test_links_lead_to_files_that_are_there() -> None:
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"
