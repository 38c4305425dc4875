"""Frames and arrays come in, are matched by name, and come back as the kind they were."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from voicecf.errors import ColumnError, DataError
from voicecf.table.frames import Cells, as_frame, frame_with_cells
from voicecf.table.learning import learn_space
from voicecf.table.space import Space

COLUMNS = {"age": [31.0, 54.0, 27.0], "income": [1.5, 2.25, 3.125]}
VALUES = np.column_stack(list(COLUMNS.values()))
KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def columns_of(frame) -> dict[str, list]:
    return nw.from_native(frame, eager_only=True).to_dict(as_series=False)


def test_a_frame_is_read_and_given_back_in_its_own_kind(kind):
    frame = kind(COLUMNS)
    space = learn_space(None, frame)
    assert as_frame(frame) is not None
    assert space.names == ["age", "income"]
    rows = space.read(frame)
    np.testing.assert_array_equal(rows.points, VALUES)
    back = space.write(VALUES, rows, np.arange(len(VALUES))).native
    assert type(back) is type(frame)
    assert columns_of(back) == COLUMNS


def test_columns_are_matched_by_name_and_others_are_left_alone(kind):
    space = learn_space(None, kind(COLUMNS))
    shuffled = kind({"label": ["a", "b", "c"], "income": COLUMNS["income"], "age": COLUMNS["age"]})
    np.testing.assert_array_equal(space.read(shuffled).points, VALUES)


def test_a_missing_column_is_named_beside_those_that_are_there(kind):
    with pytest.raises(ColumnError, match=r"'income'.*'age', 'Income'"):
        learn_space(None, kind(COLUMNS)).read(kind({"age": [1.0], "Income": [2.0]}))


def test_one_kind_may_follow_another():
    space = learn_space(None, pd.DataFrame(COLUMNS))
    for make in KINDS.values():
        np.testing.assert_array_equal(space.read(make(COLUMNS)).points, VALUES)
    np.testing.assert_array_equal(space.read(VALUES).points, VALUES)


def test_an_array_takes_a_frame_by_position_if_the_width_is_right(kind):
    space = learn_space(None, VALUES)
    np.testing.assert_array_equal(space.read(kind(COLUMNS)).points, VALUES)
    with pytest.raises(DataError, match=r"3 columns.*2"):
        space.read(kind(COLUMNS | {"more": [1.0, 2.0, 3.0]}))


def test_a_missing_value_is_found_in_every_kind(kind):
    frame = kind({"age": [31.0, None, 27.0], "income": [1, 2, None]})
    with pytest.raises(DataError, match=r"2 rows \(first: row 1\), columns 'age', 'income'"):
        learn_space(None, frame).read(frame)


@pytest.mark.parametrize("dtype", ["Int64", "Float32", "boolean", "int64[pyarrow]"])
def test_nullable_columns_of_pandas_are_numbers_until_one_is_missing(dtype):
    whole = pd.DataFrame({"a": pd.array([1, 0], dtype=dtype), "b": [0.5, 1.5]})
    np.testing.assert_array_equal(
        learn_space(None, whole).read(whole).points, [[1.0, 0.5], [0.0, 1.5]]
    )
    gap = pd.DataFrame({"a": pd.array([1, None], dtype=dtype), "b": [0.5, 1.5]})
    with pytest.raises(DataError, match=r"row 1.*'a'"):
        learn_space(None, gap).read(gap)


def test_a_text_column_is_named_with_a_remedy(kind):
    frame = kind({"age": [31.0, 54.0], "city": ["Rome", "Oslo"]})
    with pytest.raises(DataError, match=r"'city'.*OneHotEncoder"):
        learn_space(None, frame).read(frame)


def test_a_column_without_any_value_is_called_missing_not_text():
    frame = pl.DataFrame({"a": [1.0, 2.0], "b": [None, None]})
    with pytest.raises(DataError, match=r"missing.*'b'"):
        learn_space(None, frame).read(frame)


def test_columns_named_twice_are_an_error_that_names_them():
    frame = pd.DataFrame(VALUES, columns=["age", "age"])
    with pytest.raises(ColumnError, match="age"):
        learn_space(None, frame)


@pytest.mark.parametrize(
    "values",
    [
        VALUES.astype(np.float32),
        VALUES.astype(np.float16),
        np.asfortranarray(VALUES),
        np.column_stack([VALUES, VALUES])[:, ::2][:, [0, 1]],
        VALUES[::-1][::-1],
        VALUES.astype(object),
        VALUES.tolist(),
    ],
    ids=["float32", "float16", "fortran", "strided", "reversed", "object", "list"],
)
def test_whatever_holds_the_numbers_they_are_read_alike(values):
    expected = np.array([[float(v) for v in row] for row in np.asarray(values).tolist()])
    read = learn_space(None, values).read(values).points
    np.testing.assert_array_equal(read, expected)
    assert read.flags.c_contiguous
    assert read.dtype == np.float64


def test_integers_and_truth_values_are_numbers():
    np.testing.assert_array_equal(learn_space(None, [[1, 2]]).read([[1, 2]]).points, [[1.0, 2.0]])
    truth = np.array([[True, False]])
    np.testing.assert_array_equal(learn_space(None, truth).read(truth).points, [[1.0, 0.0]])


def test_reading_writes_nothing():
    values = VALUES.copy()
    values.flags.writeable = False
    np.testing.assert_array_equal(learn_space(None, values).read(values).points, VALUES)


@pytest.mark.parametrize(
    "bad",
    [[np.nan, 0.0], [np.inf, 0.0], [-np.inf, 0.0], [np.inf, -np.inf]],
    ids=["nan", "inf", "minus inf", "both"],
)
def test_what_is_not_finite_is_named_by_row_and_column(bad):
    values = np.vstack([VALUES, [bad]])
    with pytest.raises(DataError, match=r"row 3.*'x0'"):
        learn_space(None, values).read(values)


def test_finite_numbers_are_accepted_however_large():
    values = np.full((3, 2), 1e308)
    np.testing.assert_array_equal(learn_space(None, values).read(values).points, values)


def test_names_need_not_be_text():
    frame = pd.DataFrame(VALUES, columns=[10, 20])
    space = learn_space(None, frame)
    assert space.names == [10, 20]
    rows = space.read(frame[[20, 10]])
    np.testing.assert_array_equal(rows.points, VALUES)
    assert rows.native.columns.tolist() == [10, 20]
    assert space.table(VALUES).columns.tolist() == [10, 20]


def test_the_model_decides_the_precision():
    single = Space.plain(["a", "b"], True, np.float32)
    np.testing.assert_array_equal(single.read(VALUES / 3).points, (VALUES / 3).astype(np.float32))


def test_a_table_for_an_array_needs_some_frame_library():
    table = learn_space(None, VALUES).table(VALUES)
    assert isinstance(table, pd.DataFrame)
    assert table.columns.tolist() == ["x0", "x1"]


def test_an_array_is_no_frame():
    for other in (VALUES, VALUES.tolist(), None, "age"):
        assert as_frame(other) is None


def test_a_table_does_not_hand_out_the_points_themselves():
    points = VALUES.copy()
    table = learn_space(None, pd.DataFrame(COLUMNS)).table(points)
    table.loc[0, "age"] = -1.0
    np.testing.assert_array_equal(points, VALUES)


# Blocks of columns that the user made of one category.

BLOCK = pd.DataFrame(
    {
        "age": [30.0, 41.5, 52.0, 23.0],
        "job_admin": [1, 0, 0, 0],
        "job_clerk": [0, 1, 0, 1],
        "vip": [0, 1, 1, 0],
    }
)
JOB = {"job": ["job_admin", "job_clerk"]}


def test_a_declared_block_is_one_category_with_its_sources_as_levels():
    space = learn_space(None, BLOCK, categories=JOB)
    assert space.names == ["age", "job", "vip"]
    job = space.columns[1]
    assert job.sources == ("job_admin", "job_clerk")
    assert job.places.tolist() == [1, 2]
    assert job.levels == ("job_admin", "job_clerk", "(none)")
    np.testing.assert_array_equal(job.options, [[1, 0], [0, 1], [0, 0]])
    assert [column.whole for column in space.columns] == [False, False, True]


def test_without_a_row_that_has_none_on_there_is_no_such_level():
    assert learn_space(None, BLOCK.drop(index=2), categories=JOB).columns[1].levels == tuple(
        JOB["job"]
    )


def test_a_declared_block_is_written_as_zeros_and_ones_of_its_own_type(kind):
    frame = kind(BLOCK.to_dict("list"))
    space = learn_space(None, frame, categories=JOB)
    given = space.read(frame)
    points = given.points.copy()
    points[0, 1:3] = [0, 1]
    points[1, 1:3] = [0, 0]
    points[2, 0] = 60.25
    written = columns_of(space.write(points, given, np.arange(4)).frame.to_native())
    assert written["job_admin"] == [0, 0, 0, 0]
    assert written["job_clerk"] == [1, 0, 0, 1]
    assert all(isinstance(v, int) for v in written["job_clerk"])
    assert written["age"] == [30.0, 41.5, 60.25, 23.0]
    assert space.levels_at(1, points).tolist() == ["job_clerk", "(none)", "(none)", "job_clerk"]


def test_two_columns_of_a_block_on_at_once_are_refused_by_row():
    crowded = BLOCK.copy()
    crowded.loc[3, "job_admin"] = 1
    with pytest.raises(DataError, match=r"'job'.*row 3.*'job_admin', 'job_clerk'"):
        learn_space(None, crowded, categories=JOB)


@pytest.mark.parametrize(
    ("categories", "error", "words"),
    [
        ({"job": ["job_admin", "job_clrk"]}, ColumnError, "'job_clrk'.*'job_clerk'"),
        ({"job": ["age", "job_clerk"]}, DataError, "row 0.*30.*'age'"),
        ({"job": ["job_admin"], "work": ["job_admin"]}, ColumnError, "'job_admin'.*twice"),
        ({"age": ["job_admin", "job_clerk"]}, ColumnError, "name of a column"),
        ({"job": "job_admin"}, ValueError, "list"),
        (["job_admin"], ValueError, "dict"),
    ],
)
def test_a_wrong_declaration_is_put_right(categories, error, words):
    with pytest.raises(error, match=words):
        learn_space(None, BLOCK, categories=categories)


def test_blocks_of_arrays_are_declared_by_position():
    space = learn_space(None, BLOCK.to_numpy(), categories={"job": [1, 2]})
    assert space.columns[1].levels == ("x1", "x2", "(none)")


# Writing.


def test_what_did_not_move_keeps_its_value_whatever_it_was():
    frame = pd.DataFrame({"a": [0.1, 0.2, 0.3], "b": [1, 2, 3]}, index=list("xyz"))
    space = learn_space(None, frame, np.float32)
    given = space.read(frame)
    points = given.points.copy()
    points[1] = [7.5, 5.0]
    written = space.write(points, given, np.arange(3)).frame.to_native()
    pd.testing.assert_frame_equal(
        written.reset_index(drop=True), pd.DataFrame({"a": [0.1, 7.5, 0.3], "b": [1, 5, 3]})
    )


def test_an_integer_column_holds_fractions_as_floats_and_a_row_of_nan_stays_as_it_was(kind):
    frame = kind({"a": [1, 2, 3], "b": [1.0, 2.0, 3.0]})
    space = learn_space(None, frame)
    given = space.read(frame)
    points = given.points.copy()
    points[0, 0], points[2] = 1.5, np.nan
    written = columns_of(space.write(points, given, np.arange(3)).frame.to_native())
    assert written["a"] == [1.5, 2.0, 3.0]


def test_a_whole_number_after_rounding_is_that_number():
    frame = pd.DataFrame({"a": [1, 2], "b": [1.0, 2.0]})
    space = learn_space(None, frame)
    given = space.read(frame)
    points = np.array([[3.0000000000004, 3.0000000000004], [2.0, 2.0]])
    written = space.write(points, given, np.arange(2)).frame.to_native()
    assert written["a"].tolist() == [3, 2]
    assert written["a"].dtype == np.int64
    assert written["b"].tolist() == [3.0000000000004, 2.0]


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "Float64", "double[pyarrow]", "int64", "int32", "Int64"]
)
def test_a_column_of_pandas_keeps_its_type_its_index_and_the_bits_of_other_rows(dtype):
    large = 2**24 if dtype == "float32" else 2**31 - 1 if dtype == "int32" else 2**53
    frame = pd.DataFrame({"a": [1, large, 3]}, index=["x", "y", "z"]).astype(dtype)
    space = learn_space(None, frame)
    rows = space.read(frame)
    written = frame_with_cells(rows.frame, {"a": Cells(np.array([2, 0]), np.array([8.0, 9.0]))})
    expected = pd.DataFrame({"a": [9, large, 8]}, index=["x", "y", "z"]).astype(dtype)
    pd.testing.assert_frame_equal(written.to_native(), expected, check_exact=True)
    assert rows.frame.to_native()["a"].tolist() == [1, large, 3]


def test_a_frame_that_changes_later_does_not_change_what_was_read():
    frame = pd.DataFrame(COLUMNS)
    space = learn_space(None, frame)
    given = space.read(frame)
    frame.loc[0, "age"] = -1.0
    assert given.frame.to_native()["age"].tolist() == COLUMNS["age"]


def test_a_number_too_large_for_its_type_is_written_into_a_larger_one(kind):
    schema = {"a": np.array([1, 2, 3], dtype=np.int8)}
    frame = kind(schema)
    space = learn_space(None, frame)
    given = space.read(frame)
    points = given.points.copy()
    points[1] = 300.0
    assert columns_of(space.write(points, given, np.arange(3)).frame.to_native())["a"] == [
        1,
        300,
        3,
    ]
