"""``voicecf explain``: what to type, what comes out, and what it says to a mistake."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from datetime import date
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
import xlsxwriter

import voicecf
from voicecf.cli.command import main


def people(n: int = 90) -> list[dict[str, object]]:
    rng = np.random.default_rng(5)
    group = rng.integers(3, size=n)
    return [
        {
            "id": f"c{i:03d}",
            "age": int(24 + 13 * g + rng.integers(-5, 6)),
            "income": round(float(1700 + 800 * g + rng.normal(0, 220)), 1),
            "job": str(rng.choice([["student"], ["clerk", "chef"], ["retired"]][g])),
        }
        for i, g in enumerate(group.tolist())
    ]


def written(path: Path, rows: list[dict[str, object]], **form: object) -> Path:
    with path.open("w", newline="", encoding=str(form.pop("encoding", "utf-8"))) as file:
        writer = csv.DictWriter(file, list(rows[0]), **form)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture
def table(tmp_path) -> Path:
    return written(tmp_path / "in.csv", people())


def explain(*words: object) -> int:
    return main(["explain", *map(str, words)])


def refused(capsys, *words: object) -> str:
    """Return the sentence that a mistake gets; it is no traceback, and nothing is printed."""
    assert explain(*words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback" not in err
    assert len(err.strip().splitlines()) == 1
    return err


def judged(output: Path, model: Path, names: list[str]) -> pa.Table:
    """Return answers; the saved model's own predict has to see each in its target."""
    found = pq.read_table(output) if output.suffix == ".parquet" else pacsv.read_csv(output)
    kept = found.filter(found["voicecf_feasible"])
    assert kept.num_rows
    seen = voicecf.load(model).model_.predict(kept.select(names))
    assert (seen == kept["voicecf_target"].to_numpy()).all()
    return found


def test_without_an_input_it_says_what_to_type(capsys):
    assert explain() == 2
    err = capsys.readouterr().err
    assert "INPUT is missing" in err
    assert "voicecf explain --example" in err


def test_an_input_that_an_option_swallowed_is_suspected(capsys, tmp_path):
    assert explain("-o", tmp_path / "o.csv", "--ignore", "id", "in.csv") == 2
    assert "take INPUT, too" in capsys.readouterr().err


def test_the_example_needs_nothing(capsys):
    assert explain("--example", "--objective", "prefix") == 0
    out, err = capsys.readouterr()
    assert "178 rows, 178 answers" in out
    assert "feasible: 100.0%" in out
    assert "columns that do the work:" in out
    assert "Row 0 moves from cluster" in out
    assert err.startswith("note: all weights are equal")
    assert err.count("\n") == 1


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_a_table_of_numbers_and_text_goes_in_and_valid_answers_come_out(
    table, tmp_path, capsys, suffix
):
    output, model = tmp_path / f"out{suffix}", tmp_path / "m.voicecf"
    assert explain(table, "-o", output, "--ignore", "id", "--save-model", model) == 0
    found = judged(output, model, ["age", "income", "job"])
    assert found["id"].to_pylist() == [row["id"] for row in people()]
    assert found.schema.field("age").type == pa.int64()
    out = capsys.readouterr().out
    assert "90 rows, 90 answers" in out
    assert f"answers: {output}" in out


def test_rules_of_the_command_line_are_kept(table, tmp_path):
    output, model = tmp_path / "out.parquet", tmp_path / "m.voicecf"
    assert explain(
        table, "-o", output, "--ignore", "id", "--save-model", model, "--target", 1,
        "--immutable", "job", "--bounds", "income=-30%:+900", "--steps", "age=2",
        "--max-changes", 2, "--constraint", "income >= 20 * age", "--increase-only", "age",
    ) == 0  # fmt: skip
    found = judged(output, model, ["age", "income", "job"]).to_pylist()
    for row, before in zip(found, people(), strict=True):
        if row["voicecf_status"] != "optimal":
            continue
        assert row["job"] == before["job"]
        assert before["income"] * 0.7 - 1e-6 <= row["income"] <= before["income"] + 900 + 1e-6
        assert row["age"] == before["age"] or (row["age"] % 2 == 0 and row["age"] > before["age"])
        assert row["income"] >= 20 * row["age"]
    assert {row["voicecf_target"] for row in found} == {1}


def test_a_file_of_rules_says_the_same_and_the_command_line_prevails(table, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text(
        'k = 4\nignore = ["id"]\ntarget = 1\nimmutable = "job"\nmax-changes = 1\n'
        '[bounds]\nincome = ["-10%", "+500"]\nage = [20, "open"]\n'
    )
    a, b = tmp_path / "a.parquet", tmp_path / "b.parquet"
    assert explain(table, "-o", a, "--rules", rules, "--target", 2, "--bounds", "age=:60") == 0
    assert explain(
        table, "-o", b, "--k", 4, "--ignore", "id", "--target", 2, "--immutable", "job",
        "--max-changes", 1, "--bounds", "income=-10%:+500", "age=:60",
    ) == 0  # fmt: skip
    assert a.read_bytes() == b.read_bytes()


def test_all_the_other_words_are_understood(table, tmp_path):
    output = tmp_path / "out.parquet"
    assert explain(
        table, "-o", output, "--ignore", "id", "--weights", "shark", "--scale", "minmax",
        "--levels", "job=clerk,chef", "--order", "job=student,clerk,chef,retired",
        "--forbidden", "job=student>chef", "--costs", "income=2", "--decrease-only", "income",
        "--objective", "fewest", "--target", "each", "--alternatives", 1, "--limit", 500,
        "--contraction", 0.9, "--box", "none", "--seed", 3, "--quiet",
    ) == 0  # fmt: skip
    before = {row["id"]: row for row in people()}
    for row in pq.read_table(output).to_pylist():
        if row["voicecf_status"] == "optimal":
            was = before[row["id"]]
            assert row["job"] in ("clerk", "chef", was["job"])
            assert not (was["job"] == "student" and row["job"] == "chef")
            assert row["income"] <= was["income"]


def test_a_saved_model_answers_other_files(table, tmp_path):
    model, other = tmp_path / "m.voicecf", written(tmp_path / "other.csv", people(40)[10:])
    assert explain(table, "-o", tmp_path / "a.csv", "--ignore", "id", "--save-model", model) == 0
    assert explain(other, "-o", tmp_path / "b.csv", "--model", model) == 0
    assert judged(tmp_path / "b.csv", model, ["age", "income", "job"]).num_rows == 30


def test_options_of_fitting_do_not_go_with_a_saved_model(table, tmp_path, capsys):
    model = tmp_path / "m.voicecf"
    explain(table, "-o", tmp_path / "a.csv", "--ignore", "id", "--save-model", model, "--quiet")
    said = refused(capsys, table, "-o", tmp_path / "b.csv", "--model", model, "--k", 4)
    assert "--k is for fitting" in said


def test_a_second_run_finds_nothing_to_do_and_other_options_are_refused(table, tmp_path, capsys):
    output = tmp_path / "out.csv"
    assert explain(table, "-o", output, "--ignore", "id") == 0
    before = output.read_bytes()
    capsys.readouterr()
    assert explain(table, "-o", output, "--ignore", "id") == 0
    assert "is complete already" in capsys.readouterr().out
    said = refused(capsys, table, "-o", output, "--ignore", "id", "--k", 4)
    assert "k was 3, is now 4" in said
    assert "--overwrite" in said
    assert output.read_bytes() == before
    assert explain(table, "-o", output, "--ignore", "id", "--k", 4, "--overwrite") == 0
    assert output.read_bytes() != before


def test_quiet_says_nothing(table, tmp_path, capsys):
    assert explain(table, "-o", tmp_path / "o.csv", "--ignore", "id", "--quiet") == 0
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--ignore", "idd"], "unknown column 'idd' in --ignore; did you mean 'id'?"),
        (["--ignore", "id", "--immutable", "agee"], "did you mean 'age'?"),
        (["--ignore", "id", "--k", "1"], "--k 1: there must be 2 segments or more"),
        (["--ignore", "id", "--k", "500"], "should be >= n_clusters=500"),
        (["--ignore", "id", "--target", "7"], "target=7 names no cluster: this model has 0 to 2"),
        (["--ignore", "id", "--target", "near"], '--target near: use the number of a segment'),
        (["--objective", "cheap"], "--objective='cheap' is not known; use one of 'cost'"),
        (["--weights", "sharc"], "use one of 'none', 'shark'"),
        (["--bounds", "income"], "use COLUMN=..., such as --bounds income=0:90000"),
        (["--bounds", "income=5"], "use COLUMN=LO:HI"),
        (["--bounds", "income=a:b"], "'a' is not a number"),
        (["--ignore", "id", "--bounds", "income=9:5"], "is upside down"),
        (["--costs", "income=much"], "'much' is not a number"),
        (["--forbidden", "job=student"], "use COLUMN=FROM>TO"),
        (["--ignore", "id", "--levels", "job=clark"], "did you mean 'clerk'?"),
        (["--ignore", "id", "--constraint", "income >> 3"], "income >> 3"),
        (["--rules", "none.toml"], "none.toml"),
        (["--model", "none.voicecf"], "none.voicecf"),
        (["--ignore", "id", "age", "income", "job"], "no column is left to cluster"),
    ],
)  # fmt: skip
def test_a_mistake_gets_a_sentence(table, tmp_path, capsys, words, said):
    assert said in refused(capsys, table, "-o", tmp_path / "o.parquet", *words)
    assert not (tmp_path / "o.parquet").exists()


@pytest.mark.parametrize(
    "option", ["ignore", "category", "immutable", "increase-only", "decrease-only"]
)
def test_columns_with_commas_between_them_get_a_hint(table, tmp_path, capsys, option):
    words = [] if option == "ignore" else ["--ignore", "id"]
    said = refused(capsys, table, "-o", tmp_path / "o.csv", *words, f"--{option}", "age, income")
    assert "unknown column 'age, income'" in said
    assert said.endswith(f"Several columns are separated by spaces: --{option} age income.\n")


def test_a_comma_in_the_name_of_a_column_is_no_list(tmp_path):
    rows = [{"name, first": row["id"], "age": row["age"], "a,b": row["income"]} for row in people()]
    table = written(tmp_path / "in.csv", rows)
    words = ["--ignore", "name, first", "--immutable", "a,b"]
    assert explain(table, "-o", tmp_path / "o.csv", *words) == 0
    found = pacsv.read_csv(tmp_path / "o.csv")
    assert found["a,b"].to_pylist() == [row["a,b"] for row in rows]


@pytest.mark.parametrize(
    "words",
    [
        ["--target", 9],
        ["--k", 500],
        ["--immutable", "agee", "--ignore", "id"],
        ["--ignore", "id", "age", "income", "job"],
        ["--ignore", "nothing"],
        [],  # names are no category
        ["--ignore", "id", "--constraint", "income >> 3"],
        ["--ignore", "id", "--bad-rows", "stop"],  # a bad row in the middle
        ["--ignore", "id", "--bad-rows", "stop", "--delimiter", ";"],
    ],
)
def test_an_input_that_is_refused_leaves_nothing_behind(tmp_path, capsys, words):
    table = written(tmp_path / "in.csv", people(110))
    if "--bad-rows" in words:
        lines_with(table, {50: "c048,old,2000,clerk"})
    refused(capsys, table, "-o", tmp_path / "out.parquet", *words)
    assert list(tmp_path.iterdir()) == [table]


def test_after_a_mistake_the_right_words_are_taken(table, tmp_path, capsys):
    output = tmp_path / "o.csv"
    assert "names no cluster" in refused(
        capsys, table, "-o", output, "--ignore", "id", "--target", 7
    )
    assert explain(table, "-o", output, "--ignore", "id", "--target", 1, "--quiet") == 0
    assert set(pacsv.read_csv(output)["voicecf_target"].to_pylist()) == {1}


def test_files_that_are_not_there_get_a_sentence(table, tmp_path, capsys):
    assert "OUTPUT is missing; use -o" in refused(capsys, table)
    assert "there is no file" in refused(capsys, tmp_path / "no.csv", "-o", tmp_path / "o.csv")
    said = refused(capsys, table, "-o", tmp_path / "no" / "o.csv")
    assert "there is no folder" in said


def test_an_interruption_says_how_to_go_on(table, tmp_path, capsys, monkeypatch):
    from voicecf.files import Job

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Job, "done", interrupted)
    assert explain(table, "-o", tmp_path / "o.csv", "--ignore", "id") == 130
    assert "run the same command again" in capsys.readouterr().err


def test_an_unknown_option_in_a_file_of_rules_gets_the_likely_one(table, tmp_path, capsys):
    rules = tmp_path / "rules.toml"
    rules.write_text('imutable = "age"\n')
    said = refused(capsys, table, "-o", tmp_path / "o.csv", "--rules", rules)
    assert "unknown option 'imutable'; did you mean 'immutable'?" in said
    rules.write_text("k = \n")
    said = refused(capsys, table, "-o", tmp_path / "o.csv", "--rules", rules)
    assert "is not a valid TOML file" in said


def test_names_are_not_taken_for_a_category(tmp_path, capsys):
    path = written(tmp_path / "in.csv", people(150))
    said = refused(capsys, path, "-o", tmp_path / "o.csv")
    assert "column 'id' has 150 different texts" in said
    assert "--ignore 'id'" in said


def test_a_column_that_counts_rows_is_doubted(tmp_path, capsys):
    rows = [{"n": i, **row} for i, row in enumerate(people())]
    path = written(tmp_path / "in.csv", rows)
    assert explain(path, "-o", tmp_path / "o.csv", "--ignore", "id") == 0
    assert "note: column 'n' just counts the rows" in capsys.readouterr().err


HOSTILE = {
    "semicolons": {"delimiter": ";"},
    "tabs": {"delimiter": "\t"},
    "a byte order mark": {"encoding": "utf-8-sig"},
    "quotes everywhere": {"quoting": csv.QUOTE_ALL},
    "unix lines": {"lineterminator": "\n"},
}


@pytest.mark.parametrize("form", HOSTILE)
def test_csv_of_many_kinds_gives_the_same_answers(table, tmp_path, form):
    other = written(tmp_path / "other.csv", people(), **HOSTILE[form])
    for path, output in ((table, "a.parquet"), (other, "b.parquet")):
        assert explain(path, "-o", tmp_path / output, "--ignore", "id", "--quiet") == 0
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()


def european() -> list[dict[str, object]]:
    return [
        {**row, "job": "Köchin" if row["job"] == "chef" else row["job"],
         "income": str(row["income"]).replace(".", ",")}
        for row in people()
    ]  # fmt: skip


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_encodings_and_decimal_commas_are_found_and_told(tmp_path, capsys, encoding):
    path = written(tmp_path / "in.csv", european(), delimiter=";", encoding=encoding)
    assert explain(path, "-o", tmp_path / "o.parquet", "--ignore", "id") == 0
    err = capsys.readouterr().err
    assert "note: read as number with decimal comma: 'income'" in err
    assert ("read as Western European" in err) == (encoding == "latin-1")
    found = pq.read_table(tmp_path / "o.parquet")
    assert found.schema.field("income").type == pa.float64()
    assert "Köchin" in found["job"].to_pylist()
    source = people()
    kept = [i for i, same in enumerate(found["voicecf_n_changed"].to_pylist()) if not same]
    assert all(found["income"][i].as_py() == source[i]["income"] for i in kept)


def test_a_wrong_encoding_is_refused_with_a_remedy(tmp_path, capsys):
    path = written(tmp_path / "in.csv", european(), delimiter=";", encoding="latin-1")
    words = ["-o", tmp_path / "o.parquet", "--ignore", "id", "--encoding"]
    assert "--encoding latin-1" in refused(capsys, path, *words, "utf-8")
    assert "--encoding klingon is not known" in refused(capsys, path, *words, "klingon")


def in_their_own_ways() -> list[dict[str, object]]:
    """Write the people with dates, money, per cent, and codes."""
    return [
        {
            "zip": f"{i:05d}", "day": f"{i % 28 + 1:02d}.{i % 12 + 1:02d}.2019", **row,
            "income": f"€ {row['income']:,.2f}".translate(str.maketrans(",.", ".,")),
            "share": f"{row['age']} %",
        }
        for i, row in enumerate(people())
    ]  # fmt: skip


def test_money_per_cent_dates_and_codes_are_read_and_told(tmp_path, capsys):
    rows = in_their_own_ways()
    path = written(tmp_path / "in.csv", rows, delimiter=";")
    output, model = tmp_path / "o.parquet", tmp_path / "m.voicecf"
    words = ["--ignore", "id", "zip", "--save-model", model]
    assert explain(path, "-o", output, *words) == 0
    err = capsys.readouterr().err
    for note in ("money in € with decimal comma: 'income'", "per cent: 'share'",
                 "date, day first: 'day'"):  # fmt: skip
        assert f"note: read as {note}" in err
    assert "not used, as neither numbers nor text: 'day'" in err
    found = pq.read_table(output)
    assert found["zip"].to_pylist() == [row["zip"] for row in rows]
    assert found["day"].to_pylist()[0] == date(2019, 1, 1)
    incomes = [row["income"] for row in people()]
    kept = [i for i, n in enumerate(found["voicecf_n_changed"].to_pylist()) if n == 0]
    assert all(found["income"][i].as_py() == incomes[i] for i in kept)
    again = tmp_path / "again.parquet"
    assert explain(path, "-o", again, "--model", model, "--quiet") == 0
    assert pq.read_table(again).equals(found)


def test_a_model_of_text_keeps_reading_text(tmp_path):
    rows = [{**row, "day": f"2019-04-0{i % 3 + 1}"} for i, row in enumerate(people())]
    path, model = written(tmp_path / "in.csv", rows), tmp_path / "m.voicecf"
    words = ["--ignore", "id", "--quiet"]
    given = ["--category", "day", "--save-model", model]
    assert explain(path, "-o", tmp_path / "a.parquet", *words, *given) == 0
    assert explain(path, "-o", tmp_path / "b.parquet", "--model", model, "--quiet") == 0
    found = pq.read_table(tmp_path / "b.parquet")
    assert found.schema.field("day").type == pa.string()
    assert found.equals(pq.read_table(tmp_path / "a.parquet"))


def test_a_sheet_of_a_workbook_is_explained(tmp_path, capsys):
    path, rows = tmp_path / "in.xlsx", people()
    book = xlsxwriter.Workbook(path)
    for name, shown in (("few", rows[:2]), ("all", rows)):
        sheet = book.add_worksheet(name)
        for at, row in enumerate([{name: name for name in rows[0]}, *shown]):
            sheet.write_row(at, 0, row.values())
    book.close()
    assert explain(path, "-o", tmp_path / "x.parquet", "--ignore", "id") == 0
    assert "note: the sheet 'all' was read, of 2 sheets" in capsys.readouterr().err
    csv_path = written(tmp_path / "in.csv", rows)
    assert explain(csv_path, "-o", tmp_path / "c.parquet", "--ignore", "id", "--quiet") == 0
    assert pq.read_table(tmp_path / "x.parquet").equals(pq.read_table(tmp_path / "c.parquet"))
    told = refused(capsys, path, "-o", tmp_path / "y.parquet", "--sheet", "al")
    assert "has no sheet 'al'; did you mean 'all'?" in told


def test_ids_keep_their_type_and_all_columns_come_out(tmp_path):
    rows = [
        {"ID": 10**17 + i, "zip": f"{i:05d}", "phone": f"+4930{i:06d}", "when": "2020-01-02", **row}
        for i, row in enumerate(people())
    ]
    aside = ["ID", "zip", "phone", "when", "id"]
    path, output, model = (tmp_path / name for name in ("in.csv", "o.parquet", "m.voicecf"))
    written(path, rows)
    assert explain(path, "-o", output, "--ignore", *aside, "--save-model", model, "--quiet") == 0
    again = tmp_path / "again.parquet"
    assert explain(path, "-o", again, "--model", model, "--quiet") == 0
    for found in (pq.read_table(output), pq.read_table(again)):
        assert found.column_names[:8] == list(rows[0])
        assert found.schema.field("ID").type == pa.int64()
        for name in aside:
            assert list(map(str, found[name].to_pylist())) == [str(row[name]) for row in rows]


@pytest.mark.parametrize("kind", ["json", "jsonl", "duckdb", "query", "pattern", "partitioned"])
def test_whatever_duckdb_reads_gives_the_same_answers(table, tmp_path, kind):
    data = pa.Table.from_pylist(people())
    words: list[object] = [tmp_path / f"other.{kind}"]
    if kind == "json":
        words[0].write_text(json.dumps(data.to_pylist()))
    elif kind == "jsonl":
        words[0].write_text("\n".join(map(json.dumps, data.to_pylist())))
    elif kind == "duckdb":
        with duckdb.connect(str(words[0])) as connection:
            connection.execute("create table people as select * from data")
    elif kind == "query":
        words = ["--sql", f"select * from '{table}' where age > 0 -- all of them"]
    elif kind == "pattern":
        for i in range(3):
            written(tmp_path / f"part-{i}.csv", people()[30 * i : 30 * (i + 1)])
        words = [tmp_path / "part-*.csv"]
    else:
        for i in range(3):
            (tmp_path / "parts" / f"year={i}").mkdir(parents=True)
            path = tmp_path / "parts" / f"year={i}" / "x.parquet"
            pq.write_table(data.slice(30 * i, 30), path)
        words = [tmp_path / "parts"]
    aside = ["id", "year"] if kind == "partitioned" else ["id"]
    assert explain(table, "-o", tmp_path / "a.parquet", "--ignore", "id", "--quiet") == 0
    assert explain(*words, "-o", tmp_path / "b.parquet", "--ignore", *aside, "--quiet") == 0
    expected, found = (pq.read_table(tmp_path / name) for name in ("a.parquet", "b.parquet"))
    assert found.select(expected.column_names).equals(expected)
    if kind == "partitioned":
        assert found["year"].to_pylist() == [i // 30 for i in range(90)]


def test_inputs_that_are_not_clear_get_a_sentence(table, tmp_path, capsys):
    words = ["-o", tmp_path / "o.parquet"]
    said = refused(capsys, table, "--sql", "select 1", *words)
    assert "are two inputs; name the file in the query" in said
    assert "DuckDB cannot read the input" in refused(capsys, "--sql", "selct 1", *words)
    with duckdb.connect(str(tmp_path / "two.duckdb")) as connection:
        connection.execute("create table a (x int); create table b (x int)")
    said = refused(capsys, tmp_path / "two.duckdb", *words)
    assert "two.duckdb holds 2 tables: a, b. Choose one with --sql" in said
    assert "there is no file or folder" in refused(capsys, tmp_path / "*.json", *words)


def test_many_levels_and_empty_columns_are_no_trouble(tmp_path, capsys):
    lines = [f"{i},c{i % 8},," for i in range(60)]
    (tmp_path / "in.csv").write_text("age,city,note,\n" + "\n".join(lines))
    assert explain(tmp_path / "in.csv", "-o", tmp_path / "o.parquet", "--k", 2) == 0
    assert "not used, as they have no values: 'note', 'column 4'" in capsys.readouterr().err
    found = pq.read_table(tmp_path / "o.parquet")
    assert found.column_names[:4] == ["age", "city", "note", "column 4"]


def test_outputs_that_cannot_be_written_are_refused_at_once(table, tmp_path, capsys):
    said = refused(capsys, table, "-o", tmp_path / "o.xlsx")
    assert "answers are written as .parquet, .csv or .tsv" in said
    nested = pa.table({"a": [1.0, 2.0, 3.0], "b": [[1], [2], [3]]})
    pq.write_table(nested, tmp_path / "in.parquet")
    said = refused(capsys, tmp_path / "in.parquet", "-o", tmp_path / "o.csv", "--k", 2)
    assert "'b' holds lists or records, which CSV cannot" in said


def test_a_query_whose_rows_changed_is_another_input(table, tmp_path, capsys):
    words = ["--sql", f"select * from '{table}';", "-o", tmp_path / "o.csv", "--ignore", "id"]
    assert explain(*words) == 0
    assert explain(*words) == 0
    assert "is complete already" in capsys.readouterr().out
    lines_with(table, {3: "c001,50,2000,clerk"})
    assert "the input is another one, or was changed" in refused(capsys, *words)


def test_hostile_names_and_values_come_back_as_they_were(tmp_path):
    names = ['the "age"', "in,come = é", "row", "; DROP", "line\nbreak"]
    rows = [
        {names[0]: row["age"], names[1]: row["income"], names[2]: f'"{row["id"]}"',
         names[3]: "=1+1, or\nnot", names[4]: ""}
        for row in people()
    ]  # fmt: skip
    path, output = written(tmp_path / "in.csv", rows), tmp_path / "out.csv"
    assert explain(path, "-o", output, "--ignore", *names[2:], "--quiet",
                   "--bounds", "in,come = é=0:9000") == 0  # fmt: skip
    with output.open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    assert list(found[0])[:6] == [*names, "voicecf_row"]
    for name in names[2:]:
        assert [row[name] for row in found] == [row[name] for row in rows]


def lines_with(table: Path, changes: dict[int, str]) -> None:
    """Replace lines, counted from 1."""
    lines = table.read_text().splitlines()
    for number, text in changes.items():
        lines[number - 1] = text
    table.write_text("\n".join(lines) + "\n")


BAD = {
    5: "c003,many,2000,clerk",
    7: "c005,40,2000",
    9: '"c\n007",40,2000,clerk,more',
    12: "c010,,2000,clerk",
    20: "",
    30: '"c\n028",35,inf,clerk',
}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (5, "in.csv, line 5: age is 'many', which is no whole number"),
        (7, "in.csv, line 7: 3 values where there are 4 columns"),
        (12, "in.csv, line 12: age has no value"),
        (30, "in.csv, line 30: income is not a finite number"),
    ],
)
def test_a_bad_row_stops_with_its_line(table, tmp_path, capsys, line, said):
    lines_with(table, {line: BAD[line], 20: ""})
    told = refused(capsys, table, "-o", tmp_path / "o.csv", "--ignore", "id")
    assert said in told
    assert "--bad-rows skip" in told


def test_bad_rows_are_left_out_and_listed_with_their_lines(table, tmp_path, capsys):
    lines_with(table, BAD)
    output = tmp_path / "o.csv"
    assert explain(table, "-o", output, "--ignore", "id", "--bad-rows", "skip") == 0
    with (tmp_path / "o.csv.bad.csv").open(newline="", encoding="utf-8") as file:
        listed = list(csv.DictReader(file))
    # Line 9 is two lines long, so all that follows comes a line later.
    assert {bad["place"]: bad["why"].split()[0] for bad in listed} == {
        "line 5": "age", "line 7": "3", "line 9": "more", "line 13": "age", "line 31": "income",
    }  # fmt: skip
    assert (
        pacsv.read_csv(output, parse_options=pacsv.ParseOptions(newlines_in_values=True)).num_rows
        == 84
    )
    assert "5 rows were left out" in capsys.readouterr().out


def test_missing_values_are_dropped_or_filled_in(table, tmp_path, capsys):
    lines_with(table, {12: "c010,,2000,clerk", 14: "c012,40,2000,"})
    model = tmp_path / "m.voicecf"
    words = ["--ignore", "id", "--save-model", model]
    assert explain(table, "-o", tmp_path / "a.csv", "--missing", "drop", *words) == 0
    assert judged(tmp_path / "a.csv", model, ["age", "income", "job"]).num_rows == 88
    words += ["--overwrite"]
    assert explain(table, "-o", tmp_path / "b.parquet", "--missing", "fill", *words) == 0
    assert judged(tmp_path / "b.parquet", model, ["age", "income", "job"]).num_rows == 90


def test_a_level_that_the_model_does_not_know_is_a_bad_row(table, tmp_path, capsys):
    model, other = tmp_path / "m.voicecf", written(tmp_path / "new.csv", people(20))
    explain(table, "-o", tmp_path / "a.csv", "--ignore", "id", "--save-model", model, "--quiet")
    lines_with(other, {4: "c002,40,2000,astronaut"})
    said = refused(capsys, other, "-o", tmp_path / "b.csv", "--model", model)
    assert "new.csv, line 4: job has the level 'astronaut', which is not known" in said
    words = ["-o", tmp_path / "b.csv", "--model", model, "--bad-rows", "skip", "--quiet"]
    assert explain(other, *words) == 0
    assert pacsv.read_csv(tmp_path / "b.csv").num_rows == 19


def misspelled(job: str, i: int) -> str:
    """Write a job in one of several ways, mostly as it is."""
    return [job, job, job, f" {job}", job.upper(), f"{job.title()}  "][i % 6]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_spellings_of_a_level_are_read_as_the_commonest_and_cells_keep_theirs(
    tmp_path, capsys, ending
):  # fmt: skip
    plain = people(180)
    rows = [{**row, "job": misspelled(str(row["job"]), i)} for i, row in enumerate(plain)]
    path, clean = tmp_path / f"in.{ending}", tmp_path / f"clean.{ending}"
    for file, table in ((path, rows), (clean, plain)):
        if ending == "csv":
            written(file, table)
        else:
            made = pa.Table.from_pylist(table)
            pq.write_table(
                made.set_column(3, "job", made["job"].dictionary_encode()), file, row_group_size=50
            )
    words, outputs = (
        ["--ignore", "id", "--target", 0, "-o"],
        [tmp_path / f"{n}.parquet" for n in "abcd"],
    )
    assert explain(path, *words, outputs[0]) == 0
    found = pq.read_table(outputs[0])
    spelled, jobs = {row["job"] for row in rows}, {row["job"] for row in plain}
    said = f"note: {len(spelled)} spellings of job are read as {len(jobs)}\n"
    assert said in capsys.readouterr().err
    assert explain(clean, *words, outputs[1]) == 0
    assert "spellings" not in capsys.readouterr().err
    same = pq.read_table(outputs[1])
    assert found.drop("job").equals(same.drop("job"))  # answers, and numbers
    moved = 0
    for own, before, got, after in zip(
        rows, plain, found["job"].to_pylist(), same["job"].to_pylist(), strict=True
    ):
        assert got == (own["job"] if after == before["job"] else after)
        moved += got != own["job"]
    assert 0 < moved < len(rows)
    assert explain(path, *words, outputs[2], "--spellings", "keep") == 0
    assert "spellings" not in capsys.readouterr().err
    assert not pq.read_table(outputs[2]).drop("job").equals(same.drop("job"))
    assert explain(path, *words, outputs[3], "--missing", "fill", "--quiet") == 0
    assert pq.read_table(outputs[3])["job"].equals(found["job"])


def test_a_model_that_is_given_reads_texts_as_they_are(table, tmp_path, capsys):
    model, other = tmp_path / "m.voicecf", written(tmp_path / "new.csv", people(20))
    explain(table, "-o", tmp_path / "a.csv", "--ignore", "id", "--save-model", model, "--quiet")
    lines_with(other, {4: "c002,40,2000, clerk"})
    said = refused(capsys, other, "-o", tmp_path / "b.csv", "--model", model)
    assert "job has the level ' clerk', which is not known" in said
    words = ["-o", tmp_path / "b.csv", "--model", model, "--spellings", "merge"]
    assert "--spellings is for fitting" in refused(capsys, other, *words)


def test_codes_are_text_and_numbers_may_be_declared_so(tmp_path):
    rows = [{**row, "post": f"{i % 3:05d}", "area": i % 3} for i, row in enumerate(people())]
    path, output = written(tmp_path / "in.csv", rows), tmp_path / "o.parquet"
    assert explain(path, "-o", output, "--ignore", "id", "--category", "area", "--quiet") == 0
    found = pq.read_table(output)
    assert set(found["post"].to_pylist()) <= {"00000", "00001", "00002"}
    assert set(found["area"].to_pylist()) <= {"0", "1", "2"}


def test_a_fraction_far_down_makes_a_column_of_fractions(tmp_path):
    rows = people(80)
    rows[-1] = {**rows[-1], "age": 40.5}
    path, output = written(tmp_path / "in.csv", rows), tmp_path / "o.parquet"
    assert explain(path, "-o", output, "--ignore", "id", "--quiet") == 0
    assert pq.read_table(output).schema.field("age").type == pa.float64()


def test_a_file_without_rows_or_columns_gets_a_sentence(tmp_path, capsys):
    (tmp_path / "nothing.csv").write_text("")
    said = refused(capsys, tmp_path / "nothing.csv", "-o", tmp_path / "o.csv")
    assert "is empty; its first line must name the columns" in said
    (tmp_path / "head.csv").write_text("a,b\n")
    said = refused(capsys, tmp_path / "head.csv", "-o", tmp_path / "o.csv")
    assert "there are no rows" in said


def test_a_folder_of_csv_goes_into_a_folder_of_csv(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for i in range(3):
        written(folder / f"{i}.csv", people()[30 * i : 30 * (i + 1)])
    output, model = tmp_path / "out", tmp_path / "m.voicecf"
    words = ["--ignore", "id", "--format", "csv", "--save-model", model, "--quiet"]
    assert explain(folder, "-o", output, *words) == 0
    assert [path.name for path in output.iterdir()] == ["part-00000.csv"]
    found = judged(output / "part-00000.csv", model, ["age", "income", "job"])
    assert found["id"].to_pylist() == [row["id"] for row in people()]


def test_dates_are_set_aside_and_carried(tmp_path, capsys):
    rows = pa.Table.from_pylist(people())
    dates = pa.array(np.arange(90).astype("datetime64[D]"))
    flags = pa.array([i % 2 == 0 for i in range(90)])
    pq.write_table(rows.append_column("since", dates).append_column("flag", flags),
                   tmp_path / "in.parquet")  # fmt: skip
    output = tmp_path / "o.parquet"
    assert explain(tmp_path / "in.parquet", "-o", output, "--ignore", "id") == 0
    assert "not used, as neither numbers nor text: 'since'" in capsys.readouterr().err
    found = pq.read_table(output)
    assert found["since"].combine_chunks().equals(dates)
    assert found.schema.field("flag").type == pa.bool_()


def test_the_core_does_not_need_pyarrow_and_the_command_says_what_to_install(table):
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from voicecf.cli.command import main\n"
        f"sys.exit(main(['explain', {str(table)!r}, '-o', 'o.csv']))"
    )
    source = str(Path(voicecf.__file__).parents[1])
    ran = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": source, "PATH": ""},
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 2
    assert "pip install 'voicecf[files]'" in ran.stderr
    assert "Traceback" not in ran.stderr


def test_the_manifest_has_what_was_asked(table, tmp_path):
    output = tmp_path / "o.csv"
    assert explain(table, "-o", output, "--ignore", "id", "--costs", "age=2", "--quiet") == 0
    told = json.loads((tmp_path / "o.csv.manifest.json").read_text())
    assert told["options"]["rules"] == {"costs": {"age": 2.0}}
    assert told["options"]["k"] == 3
