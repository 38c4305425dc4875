"""The documentation: its code runs, and it has a place for every public name."""

from __future__ import annotations

import importlib
import inspect
import os
import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import nbformat
import pytest
from nbclient import NotebookClient

import voicecf
from voicecf.cli.command import main

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
sys.path.insert(0, str(ROOT / "tools"))

import drawing  # noqa: E402
import pages  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"

WITH_CODE = [p for p in sorted(DOCS.rglob("*.md")) if pages.BLOCK.search(p.read_text())]
READ = [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
ROOMS = ("plots", "diagnostics", "files", "output", "streaming", "datasets")


def in_this_process(command: str, **_: object) -> subprocess.CompletedProcess[str]:
    """Run a command of a page without a shell and a process of its own."""
    name, *words = shlex.split(command)
    assert name == "voicecf"
    try:
        code = main(words)
    except SystemExit as end:  # --help ends so
        code = end.code
    return subprocess.CompletedProcess(command, code, "", "")


def test_the_command_is_installed_under_its_name() -> None:
    (script,) = entry_points(group="console_scripts", name="voicecf")
    assert script.load() is main


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: str(page.relative_to(DOCS)))
@pytest.mark.filterwarnings("default")
def test_the_code_of_a_page_runs(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(pages, "subprocess", SimpleNamespace(run=in_this_process))
    pages.outputs(pages.read(page), page.name)


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


def headings(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site makes them."""
    found = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[\s-]+", "-", re.sub(r"[^\w\s-]", "", one).strip().lower()) for one in found}


def test_links_lead_to_files_and_headings_that_are_there() -> None:
    for page in READ:
        links = re.findall(r"\]\((?!\w+://)([^)#\s]*)(?:#([^)]*))?\)", page.read_text())
        for link, anchor in links:
            there = page.parent / link if link else page
            assert there.exists() or there.name in pages.DRAWN, f"{page.name}: {link}"
            assert not anchor or anchor in headings(there), f"{page.name}: {link}#{anchor}"


def test_the_readme_can_be_read_in_one_sitting() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


@pytest.mark.parametrize("name", pages.NOTEBOOKS)
def test_a_notebook_is_its_page_and_runs(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = nbformat.read(ROOT / "examples" / name, as_version=4)
    book = pages.notebook(DOCS / pages.NOTEBOOKS[name])
    sources = [[cell.source for cell in one.cells] for one in (kept, book)]
    assert sources[0] == sources[1], "run `make pictures`"
    monkeypatch.delenv("MPLBACKEND", raising=False)
    NotebookClient(
        book, resources={"metadata": {"path": tmp_path}}, kernel_name="python3"
    ).execute()
    kinds = {output["output_type"] for cell in book.cells for output in cell.get("outputs", [])}
    assert "display_data" in kinds  # pictures
    assert "error" not in kinds


def test_the_drawing_shows_every_room_and_no_line_upwards() -> None:
    svg = ElementTree.fromstring(drawing.drawing())
    names = {text.text.split()[0] for text in svg.iter(f"{SVG}text") if text.get("class")}
    rooms = {name.removesuffix(".py") for name in os.listdir(Path(voicecf.__file__).parent)}
    hidden = {"__init__", "__main__", "__pycache__", "py.typed"}
    assert names == {r for r in rooms - hidden if not r.startswith("_")} | {"voicecf"}
    for line in svg.iter(f"{SVG}polyline"):
        heights = [float(point.split(",")[1]) for point in line.attrib["points"].split()]
        assert heights == sorted(heights)
