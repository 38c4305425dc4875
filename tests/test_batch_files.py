"""Files in and out: what a run leaves behind, however it was cut off, and what it refuses."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from sklearn.cluster import KMeans

import voicecf
from tables import files_of_at_most
from voicecf import VoICE
from voicecf.errors import ColumnError, DataError
from voicecf.files import explain_files, open_source
from voicecf.files.badrows import BadRowError
from voicecf.files.folder import BusyError, DamagedError, FullError, OutputError, locked

NAMES = ["a", "b", "c"]
ROWS, PART = 1000, 128


def numbers(n: int = ROWS, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(n, 3)) + 4.0 * rng.integers(3, size=(n, 1))
    return pa.table({**{name: data[:, i] for i, name in enumerate(NAMES)}, "id": np.arange(n)})


@pytest.fixture(scope="module")
def voice() -> VoICE:
    return VoICE(KMeans(3, n_init=3, random_state=0)).fit(numbers().select(NAMES))


@pytest.fixture
def given(tmp_path) -> Path:
    """Return a file whose row groups are no multiples of parts."""
    path = tmp_path / "in.parquet"
    pq.write_table(numbers(), path, row_group_size=300)
    return path


def read(output: Path) -> pa.Table:
    if output.is_file() and output.suffix == ".csv":
        return pacsv.read_csv(output)
    if output.is_dir() and any(output.glob("*.csv")):
        return pa.concat_tables(pacsv.read_csv(part) for part in sorted(output.iterdir()))
    return pq.read_table(output)


def left_behind(folder: Path) -> dict[str, str]:
    """Return the digest of every file in a folder, but for the input."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.startswith("in.")
    }


OUTPUTS = ["out.parquet", "out.csv", "out"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_answers_in_a_file_are_in_their_targets(voice, given, tmp_path, output):
    tally = explain_files(voice, given, tmp_path / output, part_rows=PART)
    found = read(tmp_path / output)
    assert found["voicecf_row"].to_pylist() == list(range(ROWS))
    assert found["id"].to_pylist() == list(range(ROWS))
    assert (voice.model_.predict(found.select(NAMES)) == found["voicecf_target"].to_numpy()).all()
    expected = voice.explain(numbers())
    assert (found["voicecf_cost"].to_numpy() == expected.cost).all()
    for i, name in enumerate(NAMES):
        assert (found[name].to_numpy() == expected.points[:, i]).all()
    assert tally.rows == ROWS
    assert not (tmp_path / f"{output}.partial").exists()
    assert not (tmp_path / f"{output}.lock").exists()


def test_a_joined_parquet_file_is_as_any_other(voice, given, tmp_path):
    explain_files(voice, given, tmp_path / "out.parquet", part_rows=PART)
    explain_files(voice, given, tmp_path / "out", part_rows=PART)
    facts = pq.read_metadata(tmp_path / "out.parquet")
    assert facts.num_rows == ROWS
    assert facts.num_row_groups == -(-ROWS // PART)
    assert pq.read_table(tmp_path / "out.parquet").equals(pq.read_table(tmp_path / "out"))
    one = pq.ParquetFile(tmp_path / "out.parquet").read_row_group(
        3, columns=["voicecf_row", "voicecf_status"]
    )
    assert one["voicecf_row"].to_pylist() == list(range(3 * PART, 4 * PART))


@pytest.mark.parametrize("output", OUTPUTS)
def test_bytes_do_not_depend_on_how_the_input_was_cut(voice, tmp_path, output):
    for name, size in (("x", 1000), ("y", 77)):
        (tmp_path / name).mkdir()
        table = numbers()
        for i, start in enumerate(range(0, ROWS, size)):
            path = tmp_path / name / f"in-{i:03d}.parquet"
            pq.write_table(table.slice(start, size), path, row_group_size=50)
        explain_files(voice, tmp_path / name, tmp_path / f"{name}-{output}", part_rows=PART)
    files = [tmp_path / f"{name}-{output}" for name in ("x", "y")]
    if files[0].is_dir():
        assert left_behind(files[0]) == left_behind(files[1])
    else:
        assert files[0].read_bytes() == files[1].read_bytes()


class Killed(BaseException):
    """Stands for SIGKILL: nothing but `finally` runs after it."""


class Death:
    """Kills the process at the n-th time that it asks the system for something lasting.

    Of what was written and is not on the disk yet, a third is then lost.
    """

    def __init__(self, monkeypatch, at: int) -> None:
        self.left = at
        self.lasting: dict[int, int] = {}
        for name in ("fsync", "replace", "truncate", "rename"):
            monkeypatch.setattr(os, name, self.watched(getattr(os, name), name))

    def watched(self, call, name):
        def watch(first, *rest, **options):
            self.left -= 1
            if self.left == 0 and name == "fsync":
                self.lose(first)
            if self.left <= 0:
                raise Killed
            done = call(first, *rest, **options)
            if name == "fsync":
                self.lasting[os.fstat(first).st_ino] = os.fstat(first).st_size
            return done

        return watch

    def lose(self, opened: int) -> None:
        facts = os.fstat(opened)
        if stat.S_ISREG(facts.st_mode):
            safe = self.lasting.get(facts.st_ino, 0)
            os.ftruncate(opened, safe + (facts.st_size - safe) * 2 // 3)


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_run_that_dies_anywhere_ends_with_the_same_bytes(voice, tmp_path, output, monkeypatch):
    table = numbers()
    bad = table.set_column(
        0, "a", pa.array(np.where(np.arange(ROWS) % 333 == 5, np.inf, table["a"]))
    )
    pq.write_table(bad, tmp_path / "in.parquet")
    options = {"part_rows": 400, "bad_rows": "skip"}
    undisturbed, cut = tmp_path / "undisturbed", tmp_path / "cut"
    undisturbed.mkdir()
    explain_files(voice, tmp_path / "in.parquet", undisturbed / output, **options)
    expected, deaths = left_behind(undisturbed), 0
    for at in range(1, 200):
        cut.mkdir()
        with monkeypatch.context() as patch:
            Death(patch, at)
            try:
                explain_files(voice, tmp_path / "in.parquet", cut / output, **options)
                break
            except Killed:
                deaths += 1
        assert (left_behind(cut) == expected) or not _looks_whole(cut / output, expected)
        explain_files(voice, tmp_path / "in.parquet", cut / output, **options)
        assert left_behind(cut) == expected
        for path in sorted(cut.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        cut.rmdir()
    assert deaths > 10


def _looks_whole(output: Path, expected: dict[str, str]) -> bool:
    """Tell whether there is an output that is not the right one."""
    if output.is_dir():
        return left_behind(output) != {
            name.removeprefix("out/"): d for name, d in expected.items() if name.startswith("out/")
        }
    return output.exists() and (
        hashlib.sha256(output.read_bytes()).hexdigest() != expected[output.name]
    )


RUN = """
import sys
import voicecf
from voicecf.files import explain_files
from voicecf.files.parts import AnsweredPart

def put(self, folder, number, whole=AnsweredPart.put):
    whole(self, folder, number)
    print("part", flush=True)

AnsweredPart.put = put
explain_files(voicecf.load(sys.argv[1]), sys.argv[2], sys.argv[3], part_rows=256)
"""


def started(*arguments: Path) -> subprocess.Popen[str]:
    source = Path(voicecf.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, "-c", RUN, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("parts", [1, 9])
def test_a_killed_process_is_gone_on_with_to_the_same_bytes(voice, tmp_path, parts):
    pq.write_table(numbers(6_000), tmp_path / "in.parquet")
    voice.save(tmp_path / "in.voicecf")
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    explain_files(voice, tmp_path / "in.parquet", undisturbed / "out.parquet", part_rows=256)
    expected = left_behind(undisturbed)
    cut = tmp_path / "cut"
    cut.mkdir()
    process = started(tmp_path / "in.voicecf", tmp_path / "in.parquet", cut / "out.parquet")
    for _ in range(parts):
        assert process.stdout.readline() == "part\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    explain_files(voice, tmp_path / "in.parquet", cut / "out.parquet", part_rows=256)
    assert left_behind(cut) == expected


def cut_off(voice, given: Path, output: Path, parts: int, **options) -> None:
    """Run until so many parts are on the disk."""
    from voicecf.files.parts import AnsweredPart

    def put(self, folder, number, whole=AnsweredPart.put):
        if number >= parts:
            raise Killed
        return whole(self, folder, number)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AnsweredPart, "put", put)
        with pytest.raises(Killed):
            explain_files(voice, given, output, **{"part_rows": PART, **options})


def test_a_run_goes_on_where_it_was(voice, given, tmp_path, monkeypatch):
    output = tmp_path / "out.parquet"
    cut_off(voice, given, output, 5)
    assert not output.exists()
    asked = []
    explain = VoICE.explain
    monkeypatch.setattr(
        VoICE, "explain", lambda *a, **k: asked.append(len(a[1])) or explain(*a, **k)
    )
    explain_files(voice, given, output, part_rows=PART)
    assert sum(asked) == ROWS - 5 * PART


def test_other_options_on_a_cut_off_output_are_refused(voice, given, tmp_path):
    output = tmp_path / "out.parquet"
    cut_off(voice, given, output, 2)
    before = left_behind(tmp_path)
    with pytest.raises(OutputError, match=r"question was .*is now .*--restart"):
        explain_files(voice, given, output, part_rows=PART, target=1)
    assert left_behind(tmp_path) == before
    explain_files(voice, given, output, part_rows=PART, target=1, restart=True)
    assert set(read(output)["voicecf_target"].to_pylist()) == {1}


def test_a_changed_input_is_refused(voice, given, tmp_path):
    output = tmp_path / "out.parquet"
    cut_off(voice, given, output, 2)
    pq.write_table(numbers(seed=1), given, row_group_size=300)
    with pytest.raises(OutputError, match="the input is another one, or was changed"):
        explain_files(voice, given, output, part_rows=PART)


def test_another_way_of_reading_is_refused(voice, tmp_path):
    given, output = tmp_path / "in.csv", tmp_path / "out.parquet"
    pacsv.write_csv(numbers(), given)
    cut_off(voice, given, output, 2)
    with pytest.raises(OutputError, match=r'decimal was "auto", is now "."'):
        explain_files(voice, open_source(given, decimal="."), output, part_rows=PART)


def test_another_explainer_is_refused(voice, given, tmp_path):
    output = tmp_path / "out.parquet"
    cut_off(voice, given, output, 2)
    other = VoICE(KMeans(3, n_init=1, random_state=3)).fit(numbers(seed=2).select(NAMES))
    with pytest.raises(OutputError, match="model was"):
        explain_files(other, given, output, part_rows=PART)


def test_another_version_is_refused(voice, given, tmp_path, monkeypatch):
    output = tmp_path / "out.parquet"
    cut_off(voice, given, output, 2)
    monkeypatch.setattr("voicecf.files.run.version", lambda name: "99.0")
    with pytest.raises(OutputError, match=r'voicecf was ".*", is now "99.0"'):
        explain_files(voice, given, output, part_rows=PART)


def test_an_input_that_changes_while_it_is_read_is_told(voice, given, tmp_path, monkeypatch):
    from voicecf.files.parts import AnsweredPart

    def put(self, folder, number, whole=AnsweredPart.put):
        os.utime(given, (1, 1))
        return whole(self, folder, number)

    monkeypatch.setattr(AnsweredPart, "put", put)
    with pytest.raises(DataError, match="was changed while it was being read"):
        explain_files(voice, given, tmp_path / "out.parquet", part_rows=PART)
    assert not (tmp_path / "out.parquet").exists()


def test_a_complete_output_is_left_alone(voice, given, tmp_path, monkeypatch):
    output = tmp_path / "out.parquet"
    first = explain_files(voice, given, output, part_rows=PART)
    before = left_behind(tmp_path)
    monkeypatch.setattr(VoICE, "explain", None)
    assert explain_files(voice, given, output, part_rows=PART) == first
    assert left_behind(tmp_path) == before
    with pytest.raises(OutputError, match="is there already, for another question: question was"):
        explain_files(voice, given, output, part_rows=PART, target=2)


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_file_of_others_is_replaced_only_if_told_so(voice, given, tmp_path, output):
    path = tmp_path / output
    precious = path if path.suffix else path / "precious.txt"
    precious.parent.mkdir(exist_ok=True)
    precious.write_text("precious")
    with pytest.raises(OutputError, match="voicecf did not write it"):
        explain_files(voice, given, path, part_rows=PART)
    assert precious.read_text() == "precious"
    explain_files(voice, given, path, part_rows=PART, overwrite=True)
    assert read(path).num_rows == ROWS


def test_a_folder_of_others_with_the_name_of_the_work_is_never_removed(voice, given, tmp_path):
    (tmp_path / "out.parquet.partial").mkdir()
    (tmp_path / "out.parquet.partial" / "thesis.tex").write_text("precious")
    with pytest.raises(OutputError, match="is no work of voicecf; move it elsewhere"):
        explain_files(voice, given, tmp_path / "out.parquet")
    assert (tmp_path / "out.parquet.partial" / "thesis.tex").read_text() == "precious"


def test_a_second_process_is_sent_away_and_harms_nothing(voice, given, tmp_path):
    output = tmp_path / "out.parquet"
    cut_off(voice, given, output, 2)
    with locked(tmp_path / "out.parquet.lock"):
        before = left_behind(tmp_path)
        with pytest.raises(BusyError, match="another process is writing"):
            explain_files(voice, given, output, part_rows=PART)
        assert left_behind(tmp_path) == before
    explain_files(voice, given, output, part_rows=PART)
    assert read(output).num_rows == ROWS


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_full_disk_is_a_sentence_and_a_later_run_goes_on(
    voice, given, tmp_path, output, monkeypatch
):
    explain_files(voice, given, tmp_path / f"whole-{output}", part_rows=PART)
    from voicecf.files.parts import AnsweredPart

    def full(self, path, whole=AnsweredPart.write):
        whole(self, path)
        if self.batch["voicecf_row"][0].as_py() >= 4 * PART:
            path.write_bytes(path.read_bytes()[:1000])
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(AnsweredPart, "write", full)
        with pytest.raises(FullError, match=r"the disk is full: .* bytes .*goes on at row 512\."):
            explain_files(voice, given, tmp_path / output, part_rows=PART)
    assert not (tmp_path / output).exists()
    assert not list(tmp_path.rglob("*.half"))
    explain_files(voice, given, tmp_path / output, part_rows=PART)
    assert read(tmp_path / output).equals(read(tmp_path / f"whole-{output}"))


def test_a_limit_on_the_size_of_files_is_a_full_disk(voice, given, tmp_path):
    with files_of_at_most(60_000), pytest.raises(FullError, match="the disk is full"):
        explain_files(voice, given, tmp_path / "out.csv", part_rows=256)
    assert not (tmp_path / "out.csv").exists()
    explain_files(voice, given, tmp_path / "out.csv", part_rows=256)
    assert read(tmp_path / "out.csv").num_rows == ROWS


def test_a_part_that_is_not_whole_is_answered_again(voice, given, tmp_path):
    explain_files(voice, given, tmp_path / "whole", part_rows=PART)
    cut_off(voice, given, tmp_path / "out", 3)
    (tmp_path / "out.partial" / "parts" / "part-00001.arrow").write_bytes(b"short")
    explain_files(voice, given, tmp_path / "out", part_rows=PART)
    assert left_behind(tmp_path / "out") == left_behind(tmp_path / "whole")


@pytest.mark.parametrize("place", [0, 40, 0.3, 0.6, 0.9, -1])
def test_a_flipped_byte_in_a_kept_part_never_reaches_the_result(
    voice, given, tmp_path, place, monkeypatch
):
    explain_files(voice, given, tmp_path / "whole", part_rows=PART)
    cut_off(voice, given, tmp_path / "out", 3)
    damage(tmp_path / "out.partial" / "parts" / "part-00001.arrow", place)
    asked, explain = [], VoICE.explain
    monkeypatch.setattr(
        VoICE, "explain", lambda *a, **k: asked.append(len(a[1])) or explain(*a, **k)
    )
    explain_files(voice, given, tmp_path / "out", part_rows=PART)
    assert left_behind(tmp_path / "out") == left_behind(tmp_path / "whole")
    assert sum(asked) == ROWS - 2 * PART


def damage(path: Path, place: float) -> None:
    """Flip the bits of one byte of a file: at a position, or after a share of it."""
    content = bytearray(path.read_bytes())
    content[place if isinstance(place, int) else int(place * len(content))] ^= 0xFF
    path.write_bytes(content)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def removed(path: Path) -> None:
    path.unlink()


def of_others(path: Path) -> None:
    path.write_text("[1, 2]")


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def flipped(path: Path) -> None:
    damage(path, 0.5)


DAMAGES = [
    *((name, how) for name in ("manifest.json", "input.json", "input.parquet", "explainer.voicecf")
      for how in (emptied, removed, of_others, a_folder)),
    *((name, flipped) for name in ("input.json", "input.parquet", "explainer.voicecf")),
    ("parts/part-00001.arrow", a_folder),
]  # fmt: skip


@pytest.fixture(scope="module")
def halfway(voice, tmp_path_factory) -> Path:
    """Return a folder with a table, its whole output, and another run that was cut off."""
    folder = tmp_path_factory.mktemp("halfway")
    pacsv.write_csv(numbers(), folder / "in.csv")
    explain_files(voice, folder / "in.csv", folder / "whole", part_rows=PART)
    cut_off(voice, folder / "in.csv", folder / "out", 3)
    return folder


def test_a_work_folder_without_damage_is_gone_on_with_where_it_was_copied(voice, halfway, tmp_path):
    shutil.copytree(halfway, tmp_path, dirs_exist_ok=True)
    explain_files(voice, tmp_path / "in.csv", tmp_path / "out", part_rows=PART)
    assert left_behind(tmp_path / "out") == left_behind(halfway / "whole")


@pytest.mark.parametrize(("name", "how"), DAMAGES)
def test_a_damaged_work_folder_says_restart_and_is_not_gone_on_with(
    voice, halfway, tmp_path, name, how
):
    shutil.copytree(halfway, tmp_path, dirs_exist_ok=True)
    how(tmp_path / "out.partial" / name)
    before = left_behind(tmp_path)
    with pytest.raises(DamagedError, match=r"is damaged: .* with --restart, or give another"):
        explain_files(voice, tmp_path / "in.csv", tmp_path / "out", part_rows=PART)
    kept = [part for part in before if "/result/" not in part and "/bad.csv" not in part]
    assert {part: left_behind(tmp_path)[part] for part in kept} == {p: before[p] for p in kept}
    explain_files(voice, tmp_path / "in.csv", tmp_path / "out", part_rows=PART, restart=True)
    assert left_behind(tmp_path / "out") == left_behind(tmp_path / "whole")


def test_a_finished_run_whose_result_was_removed_says_restart(voice, given, tmp_path, monkeypatch):
    output = tmp_path / "out.parquet"
    with monkeypatch.context() as patch:
        patch.setattr("voicecf.files.run.Job._hand_over", killed)
        with pytest.raises(Killed):
            explain_files(voice, given, output, part_rows=PART)
    (tmp_path / "out.parquet.partial" / "result").unlink()
    with pytest.raises(DamagedError, match=r"it lacks its result\. .*--restart"):
        explain_files(voice, given, output, part_rows=PART)
    explain_files(voice, given, output, part_rows=PART, restart=True)
    assert read(output).num_rows == ROWS


def killed(*_) -> None:
    raise Killed


def test_the_manifest_says_input_options_and_versions(voice, given, tmp_path):
    explain_files(voice, given, tmp_path / "out.csv", part_rows=PART, target=1)
    told = json.loads((tmp_path / "out.csv.manifest.json").read_text())
    assert told["input"][0]["file"] == "in.parquet"
    assert told["input"][0]["bytes"] == given.stat().st_size
    assert told["options"]["question"]["target"] == 1
    assert told["made with"]["voicecf"] == voicecf.__version__
    assert told["summary"]["rows"] == ROWS


def test_bad_rows_stop_with_their_place(voice, tmp_path):
    table = numbers()
    values = table["b"].to_numpy().copy()
    values[700] = np.nan
    pq.write_table(table.set_column(1, "b", pa.array(values)), tmp_path / "in.parquet")
    with pytest.raises(BadRowError, match=r"in.parquet, row 700: b has no value"):
        explain_files(voice, tmp_path / "in.parquet", tmp_path / "out.parquet", part_rows=PART)
    assert not (tmp_path / "out.parquet").exists()


def test_a_run_that_is_refused_at_its_first_part_leaves_nothing(voice, tmp_path):
    table = numbers()
    values = table["b"].to_numpy().copy()
    values[3] = np.nan
    pq.write_table(table.set_column(1, "b", pa.array(values)), tmp_path / "in.parquet")
    with pytest.raises(BadRowError, match="row 3"):
        explain_files(voice, tmp_path / "in.parquet", tmp_path / "out.parquet", part_rows=PART)
    assert [path.name for path in tmp_path.iterdir()] == ["in.parquet"]


def test_after_a_bad_row_the_same_run_may_go_on_without_it(voice, tmp_path):
    table = numbers()
    values = table["b"].to_numpy().copy()
    values[[700, 801]] = np.nan, -np.inf
    pq.write_table(table.set_column(1, "b", pa.array(values)), tmp_path / "in.parquet")
    output = tmp_path / "out.parquet"
    with pytest.raises(BadRowError):
        explain_files(voice, tmp_path / "in.parquet", output, part_rows=PART)
    tally = explain_files(voice, tmp_path / "in.parquet", output, part_rows=PART, bad_rows="skip")
    assert tally.bad == 2
    assert set(range(ROWS)) - set(read(output)["voicecf_row"].to_pylist()) == {700, 801}
    listed = pacsv.read_csv(tmp_path / "out.parquet.bad.csv").to_pylist()
    assert [(bad["row"], bad["place"]) for bad in listed] == [(700, "row 700"), (801, "row 801")]
    assert "b is -inf, which is not a finite number" in listed[1]["why"]


def test_one_row_and_no_row(voice, tmp_path):
    for n in (0, 1):
        pq.write_table(numbers(1).slice(0, n), tmp_path / f"in{n}.parquet")
        for output in (f"out{n}.parquet", f"out{n}.csv", f"out{n}"):
            tally = explain_files(voice, tmp_path / f"in{n}.parquet", tmp_path / output)
            assert tally.rows == n
            assert read(tmp_path / output).num_rows == n
            assert read(tmp_path / output).column_names[:5] == [*NAMES, "id", "voicecf_row"]


def test_files_that_do_not_fit_together_are_refused(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    pq.write_table(numbers(), folder / "1.parquet")
    pq.write_table(numbers().rename_columns([*NAMES, "key"]), folder / "2.parquet")
    with pytest.raises(ColumnError, match=r"2.parquet lacks 'id'"):
        open_source(folder).table()
    whole = numbers().set_column(0, "a", pa.array([1] * ROWS))
    pq.write_table(whole, folder / "2.parquet")
    with pytest.raises(ColumnError, match=r"column 'a' is of type int64, in .*1.parquet it is dou"):
        open_source(folder).table()
    (folder / "2.parquet").write_bytes(b"PAR1 nonsense PAR1")
    with pytest.raises(DataError, match=r"2.parquet is no Parquet file, or damaged"):
        open_source(folder).table()
    (folder / "2.parquet").rename(folder / "2.csv")
    with pytest.raises(DataError, match="files of several kinds"):
        open_source(folder).table()


def test_an_output_that_is_the_input_or_in_it_is_refused(voice, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(2):
        pq.write_table(numbers(seed=i), folder / f"{i}.parquet")
    for output in (folder, folder / "1.parquet", folder / "more.parquet", folder / "out"):
        with pytest.raises(OutputError, match=r"give another\."):
            explain_files(voice, folder, output, overwrite=True)
    assert sorted(path.name for path in folder.iterdir()) == ["0.parquet", "1.parquet"]


def test_what_is_no_table_is_refused(tmp_path):
    with pytest.raises(DataError, match="there is no file or folder"):
        open_source(tmp_path / "none.csv")
    (tmp_path / "a.docx").write_bytes(b"")
    with pytest.raises(DataError, match="is no CSV, Excel, Parquet, JSON or DuckDB file by its"):
        open_source(tmp_path / "a.docx")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no CSV, Excel, Parquet or JSON file in the folder"):
        open_source(tmp_path / "empty")


def test_summaries_are_of_all_parts(voice, given, tmp_path):
    tally = explain_files(voice, given, tmp_path / "out.parquet", part_rows=PART)
    expected = voice.explain(numbers())
    assert tally.feasible == expected.feasible.sum()
    assert tally.median_cost == pytest.approx(np.median(expected.cost), rel=0.01)
    moves = expected.outcome.moves**2 * expected.outcome.weights
    share = moves.sum(axis=0) / moves.sum()
    total = sum(tally.share.values())
    assert [tally.share[name] / total for name in NAMES] == pytest.approx(share.tolist())
    assert "columns that do the work:" in tally.text()
