from __future__ import annotations

import gzip
import io
import pickle
from decimal import Decimal

import msgspec
import pandas as pd
import pytest

from analysts_files import FILES, File, workbook
from voicecf.app.data import reading
from voicecf.app.data.reading import ReadingError, read_table
from voicecf.files import open_source
from voicecf.files.staging import Reading
from voicecf.files.understood import Understood


def read(text: str, name: str = "table.csv") -> pd.DataFrame:
    return read_table(text.encode(), name).frame


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(delimiter: str) -> None:
    frame = read(delimiter.join(["age", "job"]) + "\n" + delimiter.join(["31", "chef"]) + "\n")
    assert list(frame) == ["age", "job"]
    assert frame["age"].tolist() == [31]


def test_decimal_commas_are_numbers() -> None:
    frame = read("height;weight\n1,82;81,5\n1,65;1.060,25\n")
    assert frame["weight"].tolist() == [81.5, 1060.25]


def test_quoted_delimiters_are_text() -> None:
    frame = read('name,age\n"Doe, Jane",31\n"Roe, Richard",45\n')
    assert frame["name"].tolist() == ["Doe, Jane", "Roe, Richard"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_the_encoding_is_found(encoding: str) -> None:
    table = read_table("größe,ort\n1.5,Köln\n2.5,Zürich\n".encode(encoding), "orte.csv")
    assert list(table.frame) == ["größe", "ort"]
    assert table.frame["ort"].tolist() == ["Köln", "Zürich"]


def test_parquet_comes_back_as_it_was() -> None:
    frame = pd.DataFrame({"age": [31, 45], "job": ["chef", None], "income": [1.5, None]})
    file = io.BytesIO()
    frame.to_parquet(file)
    found = read_table(file.getvalue(), "people.parquet").frame
    pd.testing.assert_frame_equal(found, frame, check_dtype=False)


def test_same_names_are_told_apart() -> None:
    table = read_table(b"a,a,a\n1,2,3\n", "twice.csv")
    assert len(set(table.frame)) == 3
    assert "they got a number" in " ".join(table.notes)


def test_names_that_are_missing_are_numbered_and_empty_columns_go() -> None:
    table = read_table(b",b,\n1,2,\n3,4,\n", "blank.csv")
    assert list(table.frame) == ["column 1", "b"]


def test_a_file_without_names_keeps_its_first_row() -> None:
    table = read_table(b"1,2\n3,4\n5,6\n", "bare.csv")
    assert len(table.frame) == 3
    assert "numbered" in " ".join(table.notes)


class Bomb:
    """Goes off when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('unpickled')",)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n \n", "is empty"),
        (b"a,b\n", "no rows under them"),
        (b"a,b\n1,2\n3,4,5\n", "Line 3 of this file has more values than the 2 columns"),
        (b'a,b\n"1,2\n3,4\n', "quote"),
        (b"\x89PNG\r\n\x1a\n....", "a picture"),
        (b"PK\x03\x04....", "no workbook, or a damaged one"),
        (b"%PDF-1.7 ....", "a PDF"),
        (gzip.compress(b"a,b\n1,2\n", mtime=0), "gzip"),
        (pickle.dumps(Bomb()), "no text"),
        (bytes(range(256)) * 4, "no text"),
        (b"PAR1" + b"\x00" * 40, "cut off"),
        (b"PAR1", "cut off"),
        (b"lorem ipsum dolor sit amet " * 20, "does not look like a table"),
    ],
)
def test_what_is_no_table_gets_a_sentence(content: bytes, said: str) -> None:
    with pytest.raises(ReadingError, match=said) as caught:
        read_table(content, "file.csv")
    assert str(caught.value).endswith(".")


def test_a_file_that_is_too_large_says_how_large_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LARGEST_MB", 0)
    with pytest.raises(ReadingError, match="takes up to 0 MB"):
        read_table(b"a,b\n1,2\n", "large.csv")


def test_too_many_values_are_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_VALUES", 3)
    with pytest.raises(ReadingError, match="Take a sample of its rows"):
        read_table(b"a,b\n1,2\n3,4\n", "large.csv")


@pytest.mark.parametrize(
    "content",
    [
        b"age,job\n31,chef\n45,clerk\n",
        b"age;job\n31,5;chef\n45,1;clerk\n",
        b"1,2\n3,4\n",
        b",b,\n1,2,\n3,4,\n",
        "größe,ort\n1.5,Köln\n".encode("cp1252"),
    ],
)
def test_the_source_reads_the_same_table(content: bytes, tmp_path, monkeypatch) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    table = read_table(content, "table.csv")
    found = eval(table.source, {"open_source": open_source})
    pd.testing.assert_frame_equal(found, table.frame)


def plain(values: pd.Series) -> list[object]:
    """Return values as Python has them; days as dates."""
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        return [None if pd.isna(value) else value for value in values.tolist()]
    days = (values == values.dt.normalize()).all()
    return [value.date() if days else value.to_pydatetime() for value in values]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_files_of_analysts_are_read_right_and_told_so(file: File) -> None:
    table = read_table(file.content, file.name)
    assert {name: plain(table.frame[name]) for name in table.frame} == file.columns
    assert tuple(one.kind for one in table.understood) == file.kinds
    for one in table.understood:
        assert len(one.texts) == len(one.values) > 0
        assert one.unread == 0
    packed = msgspec.json.encode(table.understood)
    assert msgspec.json.decode(packed, type=tuple[Understood, ...]) == table.understood


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_source_of_a_file_reads_the_same(file: File, tmp_path, monkeypatch) -> None:
    name = file.name if "." in file.name else f"{file.name}.csv"
    (tmp_path / name).write_bytes(file.content)
    monkeypatch.chdir(tmp_path)
    table = read_table(file.content, file.name)
    found = eval(table.source, {"open_source": open_source})
    pd.testing.assert_frame_equal(found, table.frame)


def test_what_fits_as_well_is_offered_and_taken_if_chosen(tmp_path, monkeypatch) -> None:
    content = b"day;weight\n03/04/2019;1,234\n05/06/2019;2,345\n"
    day, weight = read_table(content, "t.csv").understood
    assert (day.kind, day.others) == ("date, day first", ("date, month first", "text"))
    assert (day.texts[0], day.values[0]) == ("03/04/2019", "2019-04-03")
    assert weight.kind == "number with decimal comma"
    assert weight.others == ("number with thousands commas", "text")
    chosen = Reading(kinds={"day": "date, month first", "weight": "number with thousands commas"})
    table = read_table(content, "t.csv", chosen)
    assert table.frame["day"].dt.strftime("%Y-%m-%d").tolist() == ["2019-03-04", "2019-05-06"]
    assert table.frame["weight"].tolist() == [1234, 2345]
    assert table.understood[0].others == ("date, day first", "text")
    (tmp_path / "t.csv").write_bytes(content)
    monkeypatch.chdir(tmp_path)
    found = eval(table.source, {"open_source": open_source})
    pd.testing.assert_frame_equal(found, table.frame)
    with pytest.raises(ReadingError, match="'dates' is no way to read a column"):
        read_table(content, "t.csv", Reading(kinds={"day": "dates"}))


def test_what_may_stand_for_no_value_is_offered_never_taken() -> None:
    lines = [f"{2000 + i if i % 9 else -999},{i if i % 5 else 'unknown'},{i}" for i in range(1, 46)]
    content = ("income,visits,n\n" + "\n".join(lines)).encode()
    table = read_table(content, "t.csv")
    assert (table.frame["income"] == -999).sum() == 5
    assert table.frame["visits"].tolist()[4] == "unknown"
    assert [one.doubtful for one in table.understood] == [(("-999", 5),), (("unknown", 9),), ()]
    chosen = Reading(gaps={"income": ["-999"], "visits": ["unknown"]})
    table = read_table(content, "t.csv", chosen)
    assert table.frame.isna().sum().tolist() == [5, 9, 0]
    assert table.frame["visits"].sum() == sum(i for i in range(1, 46) if i % 5)
    assert [one.doubtful for one in table.understood] == [(), (), ()]


def test_numbers_like_the_others_are_not_offered_as_gaps() -> None:
    lines = [f"{i % 100},{-i if i % 2 else 99}" for i in range(1, 300)]
    table = read_table(("age,x\n" + "\n".join(lines)).encode(), "t.csv")
    assert [one.doubtful for one in table.understood] == [(), ()]


def test_values_that_cannot_be_read_are_counted() -> None:
    content = "a,b\n" + "1,2\n" * 30 + "3,oops\n"
    table = read_table(content.encode(), "t.csv")
    assert [one.unread for one in table.understood] == [0, 1]
    assert "1 row has a value of another kind" in " ".join(table.notes)


def test_a_sheet_can_be_chosen_and_the_title_is_told() -> None:
    table = read_table(workbook(), "book.xlsx")
    notes = " ".join(table.notes)
    assert "The sheet 'Customers' was read, of 2 sheets." in notes
    assert "2 lines above the header left out." in notes
    assert "'Total 1281.7 22' below the table left out." in notes
    with pytest.raises(ReadingError, match="no rows under them"):
        read_table(workbook(), "book.xlsx", Reading(sheet="Cover"))
    with pytest.raises(ReadingError, match="has no sheet 'Custmers'; did you mean 'Customers'"):
        read_table(workbook(), "book.xlsx", Reading(sheet="Custmers"))


def test_workbooks_that_cannot_be_read_get_a_sentence() -> None:
    locked = b"\xd0\xcf\x11\xe0" + bytes(600) + "EncryptedPackage".encode("utf-16-le")
    with pytest.raises(ReadingError, match="is locked with a password"):
        read_table(locked, "locked.xlsx")
    with pytest.raises(ReadingError, match="damaged"):
        read_table(workbook()[:900], "cut.xlsx")


def test_decimals_of_parquet_are_numbers() -> None:
    frame = pd.DataFrame({"a": [Decimal("1.25"), None, Decimal("3.50")], "b": [1, 2, 3]})
    file = io.BytesIO()
    frame.to_parquet(file)
    table = read_table(file.getvalue(), "d.parquet")
    assert plain(table.frame["a"]) == [1.25, None, 3.5]
    assert [one.kind for one in table.understood] == ["number", "number"]


@pytest.mark.parametrize("value", ["12345678901234567890", "1e300", "inf"])
def test_numbers_beyond_all_bounds_do_not_break_the_reader(value: str) -> None:
    content = f"id,v\n{value},1\n{value},2\n{value},3\n".encode()
    assert read_table(content, "large.csv").frame["v"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"a": [1, 2]}', "This file is JSON"),
        (b"<html><table><tr><td>1</td></tr></table></html>", "a web page"),
        (b"a,b\n1,2\n3,4\nSource: our office\n", "delete it if it is a note"),
    ],
)
def test_what_is_no_table_is_refused_with_its_own_remedy(content: bytes, said: str) -> None:
    with pytest.raises(ReadingError, match=said):
        read_table(content, "odd.csv")


def test_years_may_be_the_names_of_columns() -> None:
    frame = read_table(b"2021,2022,2023\n5,6,7\n8,9,10\n", "years.csv").frame
    assert list(frame) == ["2021", "2022", "2023"]
    assert len(frame) == 2


def test_one_odd_value_is_no_end_to_a_column_of_numbers() -> None:
    values = "\n".join(["income", *map(str, range(100, 109)), "k.A."])
    table = read_table(values.encode(), "income.csv")
    assert "number" in table.understood[0].others
