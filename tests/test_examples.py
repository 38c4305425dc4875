"""What the README and the examples show is what happens."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import voicecf
import voicecf.datasets

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


SERVED = ROOT / "examples" / "service.py"
SCRIPTS = sorted(set((ROOT / "examples").glob("*.py")) - {SERVED})


@pytest.mark.parametrize("example", SCRIPTS, ids=lambda path: path.stem)
def test_every_example_runs(example, tmp_path):
    assert ran([str(example)], tmp_path)


@pytest.fixture
def service(tmp_path):
    """Yield the address of the example's service, which uvicorn runs."""
    frame = voicecf.datasets.customers()
    scaled = make_column_transformer((StandardScaler(), ["age", "visits_per_month", "basket"]))
    model = make_pipeline(scaled, KMeans(3, n_init=3, random_state=0))
    voicecf.VoICE(model, names=["a", "b", "c"]).fit(frame).save(tmp_path / "segments.voicecf")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "uvicorn", "service:app", "--port", str(port)]
    command += ["--app-dir", str(ROOT / "examples")]
    server = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    while "running" not in (line := server.stderr.readline()):
        assert line, "the server ended"
    yield f"http://127.0.0.1:{port}/explain"
    server.terminate()
    server.communicate()


def posted(address, question):
    """Return the status and the content of an answer."""
    body = json.dumps(question).encode()
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def test_the_service_answers_over_http(service):
    rows = voicecf.datasets.customers().head(2).to_dict("records")
    status, answers = posted(service, {"rows": rows, "immutable": ["age"]})
    assert status == 200
    assert [one["feasible"] for one in answers] == [True, True]
    assert all(" moves from " in one["sentence"] for one in answers)
    assert all(" age " not in one["sentence"] for one in answers)
    gap = posted(service, {"rows": [{**rows[0], "age": None}]})
    assert gap == (200, [{"sentence": gap[1][0]["sentence"], "feasible": False}])
    assert "age has no value" in gap[1][0]["sentence"]
    for wrong, said in (
        ({"rows": rows, "target": "d"}, "target='d' is not known"),
        ({"rows": rows, "immutable": ["agee"]}, "unknown column 'agee'"),
        ({"rows": [{"age": 3}]}, "X lacks"),
        ({"rows": []}, "X has no columns"),
    ):
        status, told = posted(service, wrong)
        assert status == 422
        assert said in told["detail"]
