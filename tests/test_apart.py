"""No output of a run is an input, holds one or replaces one, by whatever name it is called."""

from __future__ import annotations

import os
import shlex
import shutil
from contextlib import chdir
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from sklearn.cluster import KMeans

from voicecf import VoICE
from voicecf.cli.command import main
from voicecf.files import explain_files, open_source
from voicecf.saving.apart import OutputError, Paths


def rows(seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    data = rng.normal(size=(40, 2)) + 4.0 * rng.integers(3, size=(40, 1))
    return pa.table({"a": data[:, 0], "b": data[:, 1]})


@pytest.fixture(scope="module")
def template(tmp_path_factory) -> Path:
    """Return a folder of inputs of every kind."""
    folder = tmp_path_factory.mktemp("template")
    for sub in ("dir", "p", "h/y=1", "h/y=2", "o.csv.partial"):
        (folder / sub).mkdir(parents=True)
    for i, name in enumerate(
        ("in.csv", "second.csv", "dir/1.csv", "dir/2.csv", "o.csv.bad.csv", "o.csv.lock")
    ):
        pacsv.write_csv(rows(i), folder / name)
    for i, name in enumerate(
        ("in.parquet", "second.parquet", "p/1.parquet", "p/2.parquet", "h/y=1/p.parquet",
         "h/y=2/p.parquet", "o.csv.partial/input.parquet")
    ):  # fmt: skip
        pq.write_table(rows(i), folder / name)
    rows(0).to_pandas().to_json(folder / "in.json", orient="records")
    shutil.copy(folder / "in.json", folder / "o.csv.manifest.json")
    with chdir(folder), duckdb.connect("d.duckdb") as connection:
        connection.execute("create table t as from 'in.csv'")
    with chdir(folder), duckdb.connect("v.duckdb") as connection:
        connection.execute("create view v as from 'in.csv'")
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(rows(0))
    voice.save(folder / "m.voicecf")
    (folder / "rules.toml").write_text("k = 3\n")
    return folder


@pytest.fixture
def world(template, tmp_path, monkeypatch) -> Path:
    """Return a copy of the folder in which the command runs, with links of every kind."""
    world = tmp_path / "world"
    shutil.copytree(template, world)
    monkeypatch.chdir(world)
    os.link("in.csv", "hard.csv")
    for link, target in (
        ("link.csv", "in.csv"), ("linkdir", "dir"), ("up", "."), ("later.csv", "o.csv"),
        ("dir/out.csv", "../in.csv"), ("far", "../world/dir"),
    ):  # fmt: skip
        Path(link).symlink_to(target)
    os.mkfifo("fifo.csv")
    return world


def contents(folder: Path) -> dict[str, object]:
    """Return the bytes of every file in a folder, and where its links lead."""
    return {
        str(path.relative_to(folder)): os.readlink(path)
        if path.is_symlink()
        else path.read_bytes()
        if path.is_file()
        else path.is_dir()
        for path in folder.rglob("*")
    }


ANSWERS = """
in.csv -o in.csv
in.csv -o ./in.csv
in.csv -o dir/../in.csv
in.csv -o linkdir/../in.csv
in.csv -o {world}/in.csv
in.csv -o {world}/dir/../../world/in.csv
in.csv -o link.csv
in.csv -o dir/out.csv
link.csv -o in.csv
link.csv -o link.csv
in.csv -o hard.csv
hard.csv -o in.csv
link.csv -o hard.csv
in.csv -o up/in.csv
in.csv -o up/up/link.csv
up/in.csv -o in.csv
dir/1.csv -o linkdir/1.csv
linkdir/1.csv -o dir/1.csv
far/1.csv -o linkdir/1.csv
dir/1.csv -o dir
dir/1.csv -o dir/../dir
dir/1.csv -o linkdir
linkdir/1.csv -o linkdir
linkdir/1.csv -o dir
far/1.csv -o dir
dir/out.csv -o ../world
in.csv -o .
in.csv -o ..
in.csv -o {world}
in.csv -o up
in.csv -o ''
in.parquet -o in.parquet
in.parquet -o dir/../in.parquet
in.json -o in.json
d.duckdb -o d.duckdb
d.duckdb -o d.duckdb.wal
in.csv -o fifo.csv
fifo.csv -o o2.csv
--sql "from read_csv('fifo.csv')" -o o2.csv
"""
FOLDERS = """
dir -o dir
dir -o dir/1.csv
dir -o dir/new.csv
dir -o linkdir/new.csv
dir -o dir/sub
dir -o up/dir
linkdir -o dir/new.csv
far -o linkdir/new
h -o h/y=2/p.parquet
h -o h/y=3
'dir/[12].csv' -o dir/1.csv
'dir/[12].csv' -o dir
'*/1.csv' -o dir/1.csv
'**/[12].csv' -o linkdir/2.csv
'p/*.parquet' -o p
"""
BESIDE = """
o.csv.bad.csv -o o.csv
o.csv.bad.csv -o dir/../o.csv
o.csv.manifest.json -o o.csv
o.csv.partial/input.parquet -o o.csv
o.csv.partial -o o.csv
o.csv.partial/input.parquet -o later.csv --save-model o.csv.partial/input.parquet
--sql "from read_csv('o.csv.lock')" -o o.csv
--sql "from 'o.csv.partial/input.parquet'" -o o.csv
--sql "from read_csv('o.csv.bad' || '.csv')" -o o.csv
"""
QUERIES = """
--sql "select * from 'in.csv'" -o in.csv
--sql "select * from 'in.csv'" -o dir/../in.csv
--sql "select * from 'in.csv'" -o hard.csv
--sql "select * from 'link.csv'" -o in.csv
--sql 'select * from "in.csv"' -o in.csv
--sql "from read_csv('in.csv')" -o in.csv
--sql "from read_csv('in' || '.csv')" -o in.csv
--sql "from read_csv('{world}/dir/../in.csv')" -o in.csv
--sql "from 'file://{world}/in.csv'" -o in.csv
--sql "from read_parquet(['in.parquet', 'second.parquet'])" -o second.parquet
--sql "from read_parquet([x || '.parquet' for x in ['in', 'second']])" -o second.parquet
--sql "from 'p/*.parquet'" -o p/2.parquet
--sql "from 'p/*.parquet'" -o p
--sql "from 'dir/1.csv'" -o dir/../dir
--sql "from 'in.csv' where a > (select avg(a) from 'second.csv')" -o second.csv
--sql "with x as (from 'in.csv') from x -- a comment" -o in.csv
--sql "from 'second.csv' union all from 'in.csv' where 1 = 0" -o in.csv
--sql "from read_json_auto('in.json')" -o in.json
--sql "from read_parquet('h/**/*.parquet') where y = 1" -o h/y=2/p.parquet
--sql "from query('from ''in.csv''')" -o in.csv
--sql "from 'd.duckdb'" -o d.duckdb
--sql "select 1 as a); copy (select 1 as a) to 'in.csv'; from (select 3 as a" -o o2.csv
--sql "copy (select 1 as a) to 'in.csv'" -o o2.csv
--sql "select 1 as a; copy (select 1 as a) to 'in.csv'" -o o2.csv
d.duckdb --sql "from 'in.csv'" -o in.csv
d.duckdb --sql "from t, read_csv('in' || '.csv')" -o in.csv
v.duckdb -o in.csv
v.duckdb --sql "select a, b from v" -o hard.csv
"""
MODELS = """
in.csv -o o2.csv --save-model in.csv
in.csv -o o2.csv --save-model dir/../in.csv
in.csv -o o2.csv --save-model link.csv
in.csv -o o2.csv --save-model hard.csv
in.csv -o o2.csv --save-model o2.csv
in.csv -o o2.csv --save-model up/o2.csv
in.csv -o o.csv --save-model later.csv --restart
in.csv -o o2.csv --save-model o2.csv.manifest.json
in.csv -o o2.csv --save-model o2.csv.bad.csv
in.csv -o o2.csv --save-model o2.csv.partial
in.csv -o o2.csv --save-model o2.csv.lock
in.csv -o p --save-model p/m.voicecf
in.csv -o o2.csv --save-model dir
in.csv -o o2.csv --save-model fifo.csv
in.csv -o o2.csv --model m.voicecf --save-model m.voicecf
in.csv -o o2.csv --model m.voicecf --save-model up/m.voicecf
in.csv -o m.voicecf --model m.voicecf
in.csv -o o2.csv --rules rules.toml --save-model rules.toml
in.csv -o rules.toml --rules rules.toml
dir -o o2.csv --save-model dir/m.voicecf
dir -o o2.csv --save-model linkdir/2.csv
--sql "from 'in.csv'" -o o2.csv --save-model in.csv
--sql "from read_csv('in' || '.csv')" -o o2.csv --save-model up/in.csv
v.duckdb -o o2.csv --save-model in.csv
d.duckdb -o o2.csv --save-model d.duckdb
"""
WAYS = [
    way for ways in (ANSWERS, FOLDERS, BESIDE, QUERIES, MODELS) for way in ways.split("\n")[1:-1]
]


@pytest.mark.parametrize("way", WAYS)
def test_an_output_that_is_an_input_is_refused_and_nothing_is_written(world, capsys, way):
    before = contents(world.parent)
    for more in ("", "--overwrite", "--overwrite --restart"):
        assert main(["explain", *shlex.split(f"{way} {more}".format(world=world))]) == 2
        assert contents(world.parent) == before
        out, err = capsys.readouterr()
        assert out == ""
        assert len(err.strip().splitlines()) == 1


def test_python_refuses_what_the_command_refuses(world):
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(rows(0))
    before = contents(world)
    for given, output in (
        ("in.csv", "hard.csv"),
        ("dir", "linkdir/new.csv"),
        ("o.csv.bad.csv", "o.csv"),
        (open_source(sql="from read_csv('in' || '.csv')"), "up/in.csv"),
    ):
        with pytest.raises(OutputError, match=r"give another\."):
            explain_files(voice, given, output, overwrite=True, restart=True)
    assert contents(world) == before


def test_outputs_beside_inputs_are_written_and_inputs_stay(world, capsys):
    before = contents(world)
    for words in (
        "in.csv -o new.csv --save-model new.voicecf",
        "dir -o dir-answers.csv",
        "'dir/*.csv' -o dir/answers.parquet",
        "dir/1.csv -o linkdir/answers",
        "--sql \"from 'in.csv'\" -o up/query.csv",
        "v.duckdb -o view.csv",
    ):
        assert main(["explain", *shlex.split(words), "--quiet"]) == 0, capsys.readouterr().err
    after = contents(world)
    assert {name: after[name] for name in before} == before
    assert len(after) == len(before) + 6 * 2 + 1 + 1  # manifests, a model, a part in a folder


def test_a_model_is_replaced_only_if_told_so(world, capsys):
    words = ["explain", "in.csv", "-o", "new.csv", "--save-model"]
    before = contents(world)
    assert main([*words, "second.csv"]) == 2
    assert "second.csv is there already; give --save-model another" in capsys.readouterr().err
    assert contents(world) == before
    assert main([*words, "new.voicecf"]) == 0
    saved = Path("new.voicecf").read_bytes()
    assert main([*words, "new.voicecf"]) == 0  # the very same: there is nothing to do
    assert main([*words, "m.voicecf"]) == 2  # another one
    assert Path("new.voicecf").read_bytes() == saved
    assert Path("m.voicecf").read_bytes() == before["m.voicecf"]
    assert main([*words, "second.csv", "--overwrite"]) == 0
    assert Path("second.csv").read_bytes()[:2] == b"PK"


def test_the_current_folder_is_never_replaced(world, monkeypatch, capsys):
    monkeypatch.chdir("p")
    before = contents(world)
    assert main(["explain", "../in.csv", "-o", "../p", "--overwrite"]) == 2
    assert "holds the current folder" in capsys.readouterr().err
    assert contents(world) == before


def test_a_query_tells_the_files_that_it_opens(world):
    odd = Path('od\'d "name", ä.csv')
    shutil.copy("in.csv", odd)
    look = open_source(sql="from read_csv(['od' || chr(39) || '*.csv', 'second' || '.csv'])").look()
    assert {odd, Path("second.csv")} <= set(look.files)
    assert look.prints[0]["rows"] == 80


@pytest.mark.parametrize("text", ["x" * 5000, "/" * 300, "~", "%", "[", "**", "a\n../b", "''"])
def test_a_text_in_a_query_need_not_name_a_file(world, text):
    look = open_source(sql=f"select a, '{text}' as b from 'in.csv'").look()
    assert Path("in.csv") in look.files


def test_two_outputs_in_one_file_are_refused():
    with pytest.raises(OutputError, match=r"--csv a/../x would replace --json x, or lie in it"):
        Paths({"--json": Path("x"), "--csv": Path("a/../x")}).check()
