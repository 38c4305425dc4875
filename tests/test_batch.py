"""Arrow batches in, answers out: one schema, the user's types, whatever a batch holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.errors import ColumnError, DataError, OptionError
from voicecf.files import explain_batches

OWN = [
    f"voicecf_{name}"
    for name in (
        "row", "source", "target", "status", "feasible", "cost", "n_changed", "rho", "tau", "gap",
    )
]  # fmt: skip


def customers(n: int = 240) -> pa.Table:
    """Return whole numbers, floats, texts and an identity."""
    rng = np.random.default_rng(5)
    group = rng.integers(3, size=n)
    return pa.table({
        "id": [f"c{i}" for i in range(n)],
        "age": 24 + 13 * group + rng.integers(-5, 6, n),
        "income": np.round(1_700.0 + 800 * group + rng.normal(0, 220, n), 1),
        "job": np.choose(group, ["student", rng.choice(["clerk", "chef"], n), "retired"]),
    })  # fmt: skip


@pytest.fixture(scope="module")
def mixed() -> VoICE:
    encode = make_column_transformer(
        (StandardScaler(), ["age", "income"]), (OneHotEncoder(), ["job"])
    )
    table = customers().select(["age", "income", "job"])
    return VoICE(make_pipeline(encode, KMeans(3, n_init=3, random_state=0))).fit(table)


@pytest.fixture(scope="module")
def floats() -> tuple[VoICE, pa.Table]:
    rng = np.random.default_rng(1)
    data = rng.normal(size=(400, 4)) + 3.0 * rng.integers(3, size=(400, 1))
    table = pa.table({f"c{i}": data[:, i] for i in range(4)})
    return VoICE(KMeans(3, n_init=3, random_state=0)).fit(table), table


def answered(voice, table, size=None, **question):
    """Return all answers as one table; batches of some size."""
    batches = list(explain_batches(voice, table.to_batches(size), **question))
    assert len({batch.schema for batch in batches}) == 1
    return pa.Table.from_batches(batches)


@pytest.mark.parametrize("size", [1, 7, 240])
def test_answers_do_not_depend_on_how_rows_are_batched(mixed, size):
    table = customers().slice(0, 60)
    assert answered(mixed, table, size, target=1).equals(answered(mixed, table, target=1))


def test_the_model_puts_every_answer_into_its_target(mixed):
    found = answered(mixed, customers(), 50)
    assert found.column_names == [*customers().column_names, *OWN]
    assert (
        mixed.model_.predict(found.select(["age", "income", "job"])) == found["voicecf_target"]
    ).all()


def test_clusters_are_told_by_the_names_that_the_user_has_for_them(mixed):
    named = VoICE(mixed.model_, names={0: "lapsed", 2: "loyal"}).fit(
        customers().select(["age", "income", "job"])
    )
    table = customers().slice(0, 60)
    job = table["job"].cast(pa.string()).to_pylist()
    job[3] = "astronaut"
    table = table.set_column(3, "job", pa.array(job))
    found, numbers = answered(named, table, 20), answered(mixed, table, 20)
    called = {0: "lapsed", 1: "cluster 1", 2: "loyal", -1: None}
    for name in ("voicecf_source", "voicecf_target"):
        assert found[name].to_pylist() == [called[t] for t in numbers[name].to_pylist()]
    assert found["voicecf_target"][3].as_py() is None
    assert found.drop_columns(["voicecf_source", "voicecf_target"]).equals(
        numbers.drop_columns(["voicecf_source", "voicecf_target"])
    )


def test_types_are_those_that_came_and_other_columns_are_carried(mixed):
    table = customers().slice(0, 50)
    found = answered(mixed, table, 20, target=1, immutable=["job"], bounds={"age": ("-1", "+1")})
    feasible = found["voicecf_feasible"].to_numpy()
    assert feasible.any()
    assert not feasible.all()
    assert found.schema.types[:4] == table.schema.types
    assert found["id"].equals(table["id"])
    assert found["voicecf_row"].to_pylist() == list(range(50))


def test_a_row_without_an_answer_is_null_and_has_a_status(mixed):
    rows = customers().slice(0, 50)
    found = answered(mixed, rows, target=1, immutable=["age", "income", "job"]).to_pylist()
    lost = [row for row in found if not row["voicecf_feasible"]]
    assert lost
    for row in lost:
        assert row["voicecf_status"] == "infeasible"
        told = ("age", "income", "job", *OWN[5:])
        assert [row[name] for name in told] == [None] * 8
        assert row["voicecf_target"] == 1


@pytest.mark.parametrize(
    "kind", [pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string()),
             pa.large_string()],
)  # fmt: skip
def test_texts_of_any_type_keep_it(mixed, kind):
    table = customers().slice(0, 60)
    table = table.set_column(3, "job", table["job"].cast(pa.string()).cast(kind))
    found = answered(mixed, table, 20, target=1, immutable=["age"], bounds={"income": ("-9", "+9")})
    assert found.schema.field("job").type == kind
    assert 0 < sum(found["voicecf_feasible"].to_pylist()) < 60
    kept = found.filter(found["voicecf_feasible"])
    assert (mixed.model_.predict(kept.select(["age", "income", "job"])) == 1).all()


def test_an_explainer_of_arrays_takes_columns_by_position(floats):
    _, table = floats
    data = np.column_stack(table.columns)
    voice = VoICE(KMeans(3, n_init=3, random_state=0)).fit(data)
    found = answered(voice, table, 100, target=1)
    assert found.column_names[:4] == table.column_names
    assert (voice.model_.predict(np.column_stack(found.columns[:4])) == 1).all()
    with pytest.raises(DataError, match="X has 3 columns; the model was fitted on 4"):
        answered(voice, table.drop_columns("c3"))


def test_values_are_those_of_the_explainer_bit_for_bit(floats):
    voice, table = floats
    found, expected = answered(voice, table, 64, target=2), voice.explain(table, target=2)
    for i, name in enumerate(table.column_names):
        assert found[name].to_numpy().tobytes() == expected.points[:, i].tobytes()
    for name in ("source", "target", "cost", "n_changed", "rho", "gap"):
        assert (found[f"voicecf_{name}"].to_numpy() == getattr(expected, name)).all()


def test_whole_numbers_too_large_for_a_float_are_kept():
    rng = np.random.default_rng(0)
    table = pa.table({"n": np.repeat([2**60 + 1, 2**60 + 3], 20), "x": rng.normal(size=40) * 2e18})
    voice = VoICE(KMeans(2, n_init=1, random_state=0)).fit(table)
    found = answered(voice, table, immutable="n")
    moved = found["voicecf_feasible"].to_numpy()
    assert moved.any()
    assert found["n"].filter(pa.array(moved)).equals(table["n"].filter(pa.array(moved)))


def test_steps_that_allow_fractions_make_a_column_of_floats(mixed):
    table = customers().slice(0, 5)
    found = answered(mixed, table, target=1, steps={"age": None})
    assert found.schema.field("age").type == pa.float64()
    assert answered(mixed, table, target=1, steps={"age": 2}).schema.field("age").type == pa.int64()


def test_floats_in_a_column_that_was_fitted_as_floats_stay_floats_for_whole_input(floats):
    voice, table = floats
    whole = pa.table(
        {name: table[name].to_numpy().round().astype(int) for name in table.column_names}
    )
    found = answered(voice, whole, target=1)
    assert set(found.schema.types[:4]) == {pa.float64()}
    assert (voice.model_.predict(found.select(table.column_names)) == 1).all()


def test_every_target_gives_an_answer_a_pair(floats):
    voice, table = floats
    found = answered(voice, table.slice(0, 10), 4, target="each", rows_from=100)
    assert found["voicecf_row"].to_pylist() == np.repeat(np.arange(100, 110), 2).tolist()


def test_alternatives_are_ranked(floats):
    voice, table = floats
    found = answered(voice, table.slice(0, 5), target="nearest", alternatives=1)
    assert set(found["voicecf_rank"].to_pylist()) == {0, 1}


def test_our_columns_have_the_same_names_whatever_the_users_are_called(floats):
    voice, table = floats
    taken = table.append_column("cost", pa.array(["dear"] * 400))
    found = answered(voice, taken)
    assert found.column_names == [*taken.column_names, *OWN]
    assert found["cost"].to_pylist() == ["dear"] * 400
    with pytest.raises(ColumnError, match="answers have columns called 'voicecf_cost', and so has"):
        answered(voice, table.append_column("voicecf_cost", pa.array(["dear"] * 400)))


def test_an_empty_batch_has_the_schema_and_no_stream_no_batch(floats):
    voice, table = floats
    empty = table.slice(0, 0).combine_chunks().to_batches() or [
        pa.RecordBatch.from_pylist([], schema=table.schema)
    ]
    (found,) = explain_batches(voice, empty)
    assert found.num_rows == 0
    assert found.schema.names[-10:] == OWN
    assert list(explain_batches(voice, [])) == []
    (found,) = explain_batches(voice, empty, bounds={"c0": ("-1", "+1")}, objective="fewest")
    assert found.num_rows == 0


def test_a_batch_with_other_columns_is_refused(floats):
    voice, table = floats
    batches = [*table.to_batches(), *table.rename_columns(["c0", "c1", "c2", "z"]).to_batches()]
    with pytest.raises(ColumnError, match="a batch has the columns 'c0', 'c1', 'c2', 'z'"):
        list(explain_batches(voice, batches))


def test_a_batch_with_narrower_types_is_widened(floats):
    voice, table = floats
    narrow = table.slice(0, 5).cast(pa.schema([(n, pa.float32()) for n in table.column_names]))
    batches = list(explain_batches(voice, [*table.to_batches(), *narrow.to_batches()]))
    assert batches[0].schema == batches[1].schema


@pytest.mark.parametrize("target", [[1, 2], "nearst", True])
def test_a_target_for_each_row_is_no_target_of_a_stream(floats, target):
    voice, table = floats
    with pytest.raises(OptionError, match="a stream takes one cluster"):
        list(explain_batches(voice, table.to_batches(), target=target))


def test_a_rule_is_checked_before_any_row(floats):
    voice, table = floats
    with pytest.raises(ColumnError, match="did you mean 'c1'"):
        next(explain_batches(voice, table.slice(0, 0).to_batches() or table.to_batches(),
                             immutable=["c1x"]))  # fmt: skip


@pytest.mark.parametrize(("example", "needs"), [("spark", "pyspark"), ("ray_batches", "ray")])
def test_clusters_of_others_take_the_same_entry(example, needs, tmp_path):
    pytest.importorskip(needs)
    if needs == "pyspark" and shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    path = Path(__file__).parents[1] / "examples" / f"{example}.py"
    ran = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "3000 answers from" in ran.stdout, ran.stderr
    assert "into the target: True" in ran.stdout
