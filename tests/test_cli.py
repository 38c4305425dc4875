"""The command line: what it prints, what it returns, and what it says to a typo."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import voicecf
from voicecf.cli.command import main
from voicecf.datasets.sources import DATA
from voicecf.paper import cells
from voicecf.paper.published import Figure, Key, figures

QUICK = ["reproduce", "--dataset", "iris", "--table", "parsimony"]


def test_a_reproduction_prints_ours_beside_the_printed(capsys):
    assert main([*QUICK, "--check"]) == 0
    out, err = capsys.readouterr()
    assert "1.79 = 1.79" in out
    assert "4 of 4 printed cells are the same." in out
    assert err.startswith("iris: ")


def test_a_cell_that_differs_fails_the_check_and_only_the_check(capsys, monkeypatch):
    wrong = {Key("parsimony", "Iris", "", "r_star"): Figure("1.80", "table")}
    monkeypatch.setattr(cells, "figures", lambda: figures() | wrong)
    assert main(QUICK) == 0
    assert main([*QUICK, "--check"]) == 1
    out = capsys.readouterr().out
    assert "1.79 ≠ 1.80" in out
    assert "DIFFERS: parsimony, Iris, r_star: ours 1.79, printed 1.80." in out


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["--dataset", "iirs"], "unknown dataset 'iirs'; did you mean 'iris'?"),
        (["--dataset", "germancredit"], "did you mean 'german_credit'?"),
        (["--table", "parsimoni"], "unknown table 'parsimoni'; did you mean 'parsimony'?"),
        (["--table", "zzz"], "choose from 'datasets', 'clustering', 'validity'"),
    ],
)
def test_a_typo_gets_the_likely_name(words, hint, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", *words])
    assert stopped.value.code == 2
    assert hint in capsys.readouterr().err


def test_a_dataset_may_be_called_what_the_paper_calls_it(capsys):
    assert main(["reproduce", "--dataset", "Breast Cancer", "--table", "parsimony"]) == 0
    assert "3.88 = 3.88" in capsys.readouterr().out


def test_files_are_written(tmp_path, capsys):
    words = [f"--{kind}={tmp_path / f'out.{kind}'}" for kind in ("json", "csv", "markdown")]
    assert main([*QUICK, *words]) == 0
    assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["cells"]
    assert (tmp_path / "out.csv").read_text(encoding="utf-8").startswith("table,dataset")
    assert (tmp_path / "out.markdown").read_text(encoding="utf-8").startswith("# The paper")


def test_a_folder_that_is_not_there_is_refused_before_the_work(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*QUICK, "--json", str(tmp_path / "none" / "out.json")])
    assert stopped.value.code == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "there is no folder" in err


def test_outputs_that_are_one_file_or_a_dataset_are_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "link").symlink_to(tmp_path / "out")
    for words, said in (
        (["--json", tmp_path / "out", "--csv", tmp_path / "out"], "--csv .*out would replace --js"),
        (["--json", tmp_path / "out", "--markdown", tmp_path / "link"], "--markdown .* would repl"),
        (["--csv", DATA / "new.csv"], "lies within the folder .* of the input; give another"),
        (["--csv", next(DATA.iterdir())], "lies within the folder"),
    ):
        before = {path: path.read_bytes() for path in DATA.iterdir()}
        with pytest.raises(SystemExit) as stopped:
            main([*QUICK, *map(str, words)])
        assert stopped.value.code == 2
        assert re.search(said, " ".join(capsys.readouterr().err.split()))
        assert {path: path.read_bytes() for path in DATA.iterdir()} == before
    assert not (tmp_path / "out").exists()


def test_a_check_of_nothing_is_no_success(capsys):
    # The paper prints this table for its five primary datasets only.
    unprinted = ["reproduce", "--dataset", "student", "--table", "parsimony"]
    assert main(unprinted) == 0
    assert main([*unprinted, "--check"]) == 2
    assert "nothing was checked" in capsys.readouterr().err


def test_without_a_command_it_says_what_there_is(capsys):
    assert main([]) == 0
    assert "reproduce" in capsys.readouterr().out


def test_the_help_names_tables_and_datasets(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["reproduce", "--help"])
    assert stopped.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "actionability" in text
    assert "heart_failure" in text


def test_an_interruption_is_no_traceback(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("voicecf.paper.reproduction.reproduce", interrupted)
    assert main(QUICK) == 130
    assert "interrupted" in capsys.readouterr().err


def test_python_m_is_the_command():
    source = Path(voicecf.__file__).parents[1]
    path = os.pathsep.join([str(source), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "voicecf", "reproduce", "--help"]
    done = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("usage: voicecf reproduce")
