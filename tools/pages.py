"""Pages of the documentation: their code is run, and what it prints and draws is put below it.

The site is built with these pages (`mkdocs.yml` names this file as a hook), and the tests run them.
Some are notebooks, too: `make pictures` writes these, and the pictures that the project keeps.
"""

from __future__ import annotations

import ast
import contextlib
import io
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drawing import drawing
from house import ROOT

# A line that stands for a file of the project.
INCLUDED = re.compile(r'^--8<-- "(.*)"$', re.MULTILINE)
# A block of code: what it is written in, and its lines.
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# A formula in a line of its own, as LaTeX has it.
FORMULA = re.compile(r"^\$\$(.*?)\$\$$", re.MULTILINE | re.DOTALL)
WIDTH = "100"
# Notebooks, and the pages that they are made from.
NOTEBOOKS = {"tutorial.ipynb": "tutorial.md", "gallery.ipynb": "how-to/plots.md"}
# Pictures that the build draws, besides those of code.
DRAWN = {"rooms.svg": drawing}


@dataclass
class Output:
    """What a block printed, the table that it ends with, as HTML, and its pictures, as PNG."""

    text: str = ""
    table: str = ""
    pictures: list[bytes] = field(default_factory=list)


def read(page: Path) -> str:
    """Return the text of a page, with the files that it includes."""
    return INCLUDED.sub(lambda found: (ROOT / found[1]).read_text().rstrip(), page.read_text())


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def outputs(markdown: str, name: str) -> list[Output]:
    """Run all code of a page, from its top to its end, in an empty folder.

    Parameters
    ----------
    markdown : str
    name : str
        The page, for messages.

    Returns
    -------
    list of Output
        One a block.
    """
    names: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, _inside(Path(folder)):
        found = []
        for i, match in enumerate(BLOCK.finditer(markdown), start=1):
            kind, code = match.groups()
            place = f"{name}, block {i}"
            found.append(
                _console(code, place) if kind == "console" else _python(code, names, place)
            )
    return found


def _python(code: str, names: dict[str, Any], place: str) -> Output:
    """Run a block as a notebook does: what its last line is, is shown."""
    import matplotlib.pyplot as plt

    body = ast.parse(code).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    printed = io.StringIO()
    shown: Any = None
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(ast.Module(body, []), place, "exec"), names)
            if isinstance(last, ast.Expr):
                shown = eval(compile(ast.Expression(last.value), place, "eval"), names)
    except BaseException as error:
        error.add_note(f"in {place}:\n{code}")
        raise
    output = Output(printed.getvalue())
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, dpi=110, bbox_inches="tight")
        output.pictures.append(file.getvalue())
    plt.close("all")
    if hasattr(shown, "_repr_html_"):
        # Without pandas' own looks, so that it has those of the site.
        looks = r'<style.*?</style>|\n\s*| border="1" class="dataframe"| style="[^"]*"'
        output.table = re.sub(looks, "", shown._repr_html_(), flags=re.DOTALL)
    elif shown is not None and not output.pictures:
        output.text += f"{shown!r}\n"
    return output


def _console(code: str, place: str) -> Output:
    """Run the lines that begin with a dollar sign, as a shell does."""
    here = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "COLUMNS": WIDTH, "PATH": here}
    printed = []
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)", code, re.MULTILINE):
        ran = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
        if ran.returncode:
            raise RuntimeError(f"in {place}: {command}\n{ran.stdout}{ran.stderr}")
        printed.append(ran.stdout)
    return Output("".join(printed))


def with_outputs(markdown: str, found: list[Output], stem: str) -> tuple[str, dict[str, bytes]]:
    """Put what was printed and drawn below the code; return also the pictures by their names."""
    pictures: dict[str, bytes] = {}
    left = iter(found)

    def shown(match: re.Match[str]) -> str:
        output, text = next(left), match.group(0)
        made = [f"```text\n{output.text.rstrip()}\n```"] if output.text.strip() else []
        made += [output.table] if output.table else []
        if made:
            inside = "\n\n".join(made)
            looks = "output sentences" if match[1] == "python" else "output"
            text += f'\n<div class="{looks}" data-search-exclude markdown>\n{inside}\n</div>\n\n'
        for picture in output.pictures:
            name = f"{stem}-{len(pictures) + 1}.png"
            pictures[name] = picture
            text += f"\n![What this draws]({name})\n"
        return text

    return BLOCK.sub(shown, markdown), pictures


def notebook(page: Path) -> Any:
    """Return a page as a notebook that has not run: a cell a block, a cell the text between."""
    from nbformat import v4

    folder = ("../docs" / page.parent.relative_to(ROOT / "docs")).as_posix()
    text = re.sub(r"\]\((?!\w+://|#)([^)]+)\)", rf"]({folder}/\1)", read(page))
    text = re.sub(r"</?details.*>|</?summary>", "", text)
    text = re.sub(r"^(.*\.plot\(.*\))$", r"\1;", text, flags=re.MULTILINE)  # the picture alone
    parts = [part.strip() for part in re.split(r"^```python\n(.*?)^```\n", text, flags=re.M | re.S)]
    kinds = v4.new_markdown_cell, v4.new_code_cell
    cells = [kinds[i % 2](part, id=f"cell-{i}") for i, part in enumerate(parts) if part]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


# What mkdocs calls.


# The pages with what their code prints and draws, by name.
MADE: dict[str, str] = {}


def on_files(files: Any, config: Any) -> None:
    """Run all pages, two or more at a time, before the site is built."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT / "tools"))
    import pages  # this file, by a name that other processes find it by

    texts = {page.src_uri: read(Path(page.abs_src_path)) for page in files.documentation_pages()}
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        found = list(pool.map(pages.outputs, texts.values(), texts))
    for name, draw in DRAWN.items():
        files.append(File.generated(config, name, content=draw()))
    for (name, text), own in zip(texts.items(), found, strict=True):
        place = Path(name)
        MADE[name], pictures = with_outputs(text, own, place.stem)
        for picture, content in pictures.items():
            path = (place.parent / picture).as_posix()
            files.append(File.generated(config, path, content=content))


def on_page_read_source(page: Any, config: Any) -> str:
    """Give a page with the outputs of its code, and with its formulas."""
    from latex2mathml.converter import convert

    return FORMULA.sub(
        lambda found: f'<div class="formula">{convert(found[1].strip(), display="block")}</div>',
        MADE[page.file.src_uri],
    )


def main(shots: Path) -> None:
    """Write the notebooks, as they ran, and the pictures of the README and of the app."""
    import nbformat
    from nbclient import NotebookClient
    from PIL import Image

    docs = ROOT / "docs"
    for name, page in NOTEBOOKS.items():
        book = notebook(docs / page)
        with tempfile.TemporaryDirectory() as folder:
            NotebookClient(book, resources={"metadata": {"path": folder}}).execute()
        for cell in book.cells:
            cell.metadata = {}  # without the times at which it ran
        nbformat.write(book, ROOT / "examples" / name)
    pictures = [p for one in outputs(read(docs / "index.md"), "index.md") for p in one.pictures]
    (docs / "map.png").write_bytes(pictures[0])
    for shown in docs.glob("app-*.png"):
        with Image.open(shots / f"{shown.stem.removeprefix('app-')}-1400-light-3.png") as shot:
            shot.resize((1000, 1000 * shot.height // shot.width)).save(shown, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
