"""What people take away: code, reports, tables; and words and blocks that they are made of."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest

from app_tables import fitted, people, usual_names, with_gaps
from voicecf.app.data import examples
from voicecf.app.data.columns import guess_columns
from voicecf.app.data.preparing import Method, Missing, prepare
from voicecf.app.data.reading import ReadTable, read_table
from voicecf.app.method.page import MethodComparison
from voicecf.app.row.answers import RowAnswer, alternatives, answer
from voicecf.app.row.question import Objective, RowQuestion
from voicecf.app.segments.segments import fit_segments
from voicecf.app.takeaway.code import archive, script
from voicecf.app.takeaway.report import html_report
from voicecf.app.words import literal, percent
from voicecf.output import figure

SCRIPT = "<script>alert(1)</script>"


def answered(table: ReadTable, question: RowQuestion, method: Method, missing: Missing):
    columns = guess_columns(table.frame)
    segments = fit_segments(prepare(table.frame, columns, missing), 3, method)
    return answer(segments, question, usual_names(3))


QUESTIONS = [
    (people(), RowQuestion(4), Method.KMEANS, Missing.LEAVE_OUT),
    (
        people().rename(columns={"income": "Ellipsis", "job": 'it\'s\n"x" {y}'}),
        RowQuestion(2, allowed={"bounds": {"Ellipsis": ["...", 2600.0]}}),
        Method.KMEANS,
        Missing.LEAVE_OUT,
    ),
    (people(), RowQuestion(4, 2, Objective.PREFIX, 20), Method.KMEANS, Missing.LEAVE_OUT),
    (
        people().drop(columns="job"),
        RowQuestion(9, 1, Objective.FEWEST),
        Method.SHARK,
        Missing.LEAVE_OUT,
    ),
    (with_gaps(people()), RowQuestion(7, margin=15), Method.KMEANS, Missing.FILL_IN),
    (
        with_gaps(people()),
        RowQuestion(
            3,
            allowed={
                "immutable": ["age"],
                "increase_only": ["visits"],
                "max_changes": 3,
                "bounds": {"income": [0.0, 5e3]},
                "steps": {"income": 10.0},
            },
        ),
        Method.KMEANS,
        Missing.LEAVE_OUT,
    ),
]


def unpacked(given: RowAnswer, folder: Path) -> None:
    """Unpack what is downloaded as the script of an answer."""
    voice = given.segments.firmly(given.question.margin, given.names)
    content = archive(script(given.segments, given.question), voice, given.segments.prepared.frame)
    ZipFile(io.BytesIO(content)).extractall(folder)


@pytest.mark.parametrize(("frame", "question", "method", "missing"), QUESTIONS)
def test_the_code_gives_the_same_answer(
    frame: pd.DataFrame, question: RowQuestion, method: Method, missing: Missing, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    table = read_table(frame.to_csv(index=False).encode(), "people.csv")
    ours = answered(table, question, method, missing)
    unpacked(ours, tmp_path)
    monkeypatch.chdir(tmp_path)
    made: dict[str, object] = {}
    exec((tmp_path / "same.py").read_text(), made)
    theirs = made["answer"]
    assert np.array_equal(theirs.points, ours.found.points, equal_nan=True)
    assert theirs.target[0] == ours.found.target[0]
    assert theirs.status[0] == ours.found.status[0]
    assert ours.names[int(ours.found.target[0])] in capsys.readouterr().out


@pytest.mark.parametrize("example", examples.EXAMPLES, ids=lambda example: example.name)
def test_the_code_of_an_example_runs_by_itself(example: examples.Example, tmp_path: Path) -> None:
    table = example.make()
    ours = answered(table, RowQuestion(0), Method.KMEANS, Missing.LEAVE_OUT)
    unpacked(ours, tmp_path)
    done = subprocess.run(
        [sys.executable, "same.py"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ours.found.text(0).partition(" moves ")[2] in done.stdout


def hostile() -> ReadTable:
    frame = people().rename(columns={"age": SCRIPT, "job": '"><img src=x onerror=alert(1)>'})
    frame[list(frame)[2]] = frame[list(frame)[2]].replace({"clerk": SCRIPT})
    frame["person_id"] = [f"{SCRIPT}{i}" for i in range(len(frame))]
    return read_table(frame.to_csv(index=False).encode(), f"{SCRIPT}.csv")


class Tags(HTMLParser):
    """Collects elements, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("locked", [False, True])
def test_a_report_holds_hostile_data_as_text(locked: bool) -> None:
    table = hostile()
    names = tuple(f"{SCRIPT}{t}" for t in range(3))
    segments = fit_segments(prepare(table.frame, guess_columns(table.frame)), 3, Method.KMEANS)
    allowed = {"immutable": segments.prepared.names} if locked else {}
    target = int((segments.labels[0] + 1) % 3)
    found = answer(segments, RowQuestion(0, target, allowed=allowed), names)
    report = html_report(
        table, found, script(segments, found.question),
        others=alternatives(found), reason=None if found.possible else found.found.reason(0),
    )  # fmt: skip
    tags = Tags()
    tags.feed(report)
    assert "script" not in tags.tags
    assert "img" not in tags.tags
    loading = {"src", "href", "xlink:href"}
    assert not {name for name in tags.attributes if name.startswith("on") or name in loading}
    assert found.found.text(0) in tags.text
    named = re.sub(r'xmlns(:xlink)?="[^"]*"', "", report)  # names, which nothing is loaded from
    assert "http" not in named.replace("http-equiv", "")


def test_pairwise_misses_are_those_that_the_model_puts_elsewhere() -> None:
    rng = np.random.default_rng(5)
    centres = np.array([[0.0, 0.0], [3.0, 0.5], [6.0, 0.0], [3.0, 4.0]])
    values = centres[np.arange(200) % 4] + rng.normal(0, 0.5, (200, 2))
    found = MethodComparison.of(fitted(pd.DataFrame(values, columns=["a", "b"]), k=4))
    landed = found.voice.model_.predict(found.pairwise.points)
    assert 0 < found.missed.sum() < len(found.missed)
    assert (landed != found.pairwise.target)[found.missed].all()
    exact = found.voice.model_.predict(np.ascontiguousarray(found.exact.points))
    assert (exact == found.exact.target).all()
    assert (found.exact.cost[found.missed] > found.pairwise.cost[found.missed]).all()


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234.5678, "1,235"), (-0.00123, "-0.00123"), (1e20, "1e+20"), (12.0, "12"),
     (float("nan"), "missing")],
)  # fmt: skip
def test_figures_are_for_reading(value: float, text: str) -> None:
    assert figure(value) == text


def test_shares_are_never_rounded_to_nothing_or_all() -> None:
    assert percent(1e-5) == "under 0.1 %"
    assert percent(0.99999) == "over 99.9 %"
    assert percent(1.0) == "100 %"


def test_markdown_in_a_name_stays_text() -> None:
    assert "http://" not in literal("http://evil.example")
    assert literal("![x](y)").startswith("\\!\\[x\\]")
