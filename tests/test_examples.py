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


TABLE = """
import numpy as np, pandas as pd
from voicecf import VoICE
rng = np.random.default_rng(7)
group = rng.permutation(np.arange(60) % 3)
df = pd.DataFrame({
    "age": 24 + 13 * group + rng.integers(-5, 6, 60),
    "visits": rng.poisson(np.array([6, 3, 1])[group]),
    "income": np.round(2700 + 300 * group + rng.normal(0, 220, 60), -1),
    "job": np.choose(group, ["student", rng.choice(["clerk", "chef"], 60), "retired"]),
})
"""
# What the lines of "What you can ask" talk about, besides a table of three rows.
MODEL = """
voice = VoICE(KMeans(3, n_init=10, random_state=0), ranking="columns")
voice = voice.fit(df[["age", "income"]].astype(float))
df = df[["age", "income"]].astype(float).head(3).assign(customer=["C-1", "C-2", "C-3"])
model, scores = voice.model_, [2.0, 1.0]
centers, w = voice.model_.cluster_centers_, [0.5, 0.5]
"""


def test_every_line_of_the_readme_runs(tmp_path):
    first, asked, own, told, chunked = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    ran(["-c", TABLE + own + told + chunked + "print(1)"], tmp_path)
    ran(["-c", TABLE + first.replace("print", "") + MODEL + asked + "print(1)"], tmp_path)


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.stem)
def test_every_example_runs(example, tmp_path):
    assert ran([str(example)], tmp_path)
