"""What the README and the examples show is what happens."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def ran(code: list[str], folder: Path) -> str:
    """Return what a fresh process prints."""
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    run = subprocess.run(
        [sys.executable, "-W", "error", *code],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_readme_shows_what_its_first_lines_print(tmp_path):
    code, shown = re.findall(r"```(?:python)?\n(.*?)```", README, re.DOTALL)[:2]
    assert ran(["-c", code], tmp_path).split() == shown.split()


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_every_example_runs(example, tmp_path):
    assert ran([str(example)], tmp_path)
