from __future__ import annotations

import gzip
import io
import pickle

import pandas as pd
import pytest

from voicecf.app.data import reading
from voicecf.app.data.reading import ReadingError, read_table
from voicecf.files import open_source


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
