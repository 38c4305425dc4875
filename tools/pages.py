"""Pages of the documentation: their code is run, and what it prints and draws is put below it.

The site is built with these pages (`mkdocs.yml` names this file as a hook), and the tests run them.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# A block of code: what it is written in, and its lines.
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
# A formula in a line of its own, as LaTeX has it.
FORMULA = re.compile(r"^\$\$(.*?)\$\$$", re.MULTILINE | re.DOTALL)
WIDTH = "118"


@dataclass
class Output:
    """What a block printed, and the pictures that it drew, as PNG."""

    text: str = ""
    pictures: list[bytes] = field(default_factory=list)


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
    import matplotlib.pyplot as plt

    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, place, "exec"), names)
    except BaseException as error:
        error.add_note(f"in {place}:\n{code}")
        raise
    pictures = []
    for number in plt.get_fignums():
        file = io.BytesIO()
        plt.figure(number).savefig(file, dpi=110, bbox_inches="tight")
        pictures.append(file.getvalue())
    plt.close("all")
    return Output(printed.getvalue(), pictures)


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
        if output.text.strip():
            text += f'```text title="prints"\n{output.text.rstrip()}\n```\n'
        for picture in output.pictures:
            name = f"{stem}-{len(pictures) + 1}.png"
            pictures[name] = picture
            text += f"\n![What this draws]({name})\n"
        return text

    return BLOCK.sub(shown, markdown), pictures


# What mkdocs calls.


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Run a page while the site is built."""
    from latex2mathml.converter import convert
    from mkdocs.structure.files import File

    markdown = FORMULA.sub(
        lambda found: (
            f'<div style="overflow-x:auto">{convert(found[1].strip(), display="block")}</div>'
        ),
        markdown,
    )
    if not BLOCK.search(markdown):
        return markdown
    place = Path(page.file.src_uri)
    made, pictures = with_outputs(markdown, outputs(markdown, str(place)), place.stem)
    for name, content in pictures.items():
        file = File.generated(config, (place.parent / name).as_posix(), content=content)
        files.append(file)
    return made
