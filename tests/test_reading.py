"""CSV files as people have them: read right, or refused with the line and a remedy."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import date, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest

from voicecf.errors import DataError
from voicecf.files import open_source
from voicecf.files.badrows import BadRowError
from voicecf.files.staging import connected


def table(path, content: bytes | str, **reading):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_source(path, **reading).table()


def columns(path, content: bytes | str, **reading) -> dict[str, list[object]]:
    found = table(path, content, **reading)
    assert not found.rejected
    return pa.concat_tables(found).to_pydict()


READ = {
    "quotes and line breaks inside": (
        b'name,age\n"Smith, J",31\n"two\nlines",45\n"say ""hi""",7\n',
        {"name": ["Smith, J", "two\nlines", 'say "hi"'], "age": [31, 45, 7]},
    ),
    "line breaks inside a header, CRLF outside": (
        b'"a\nb",c\r\n1,2\r\n3,4\r\n',
        {"a\nb": [1, 3], "c": [2, 4]},
    ),
    "a byte order mark before a quote": (
        b'\xef\xbb\xbf"age",x\n1,2\n',
        {"age": [1], "x": [2]},
    ),
    "CRLF": (b"a,b\r\n1,2\r\n3,4\r\n", {"a": [1, 3], "b": [2, 4]}),
    "old Mac lines": (b"a,b\r1,2\r3,4\r", {"a": [1, 3], "b": [2, 4]}),
    "UTF-16": ("ä,b\nö,1\n".encode("utf-16"), {"ä": ["ö"], "b": [1]}),
    "Latin-1": ("ä,b\nö,1\n".encode("latin-1"), {"ä": ["ö"], "b": [1]}),
    "the euro of Windows": ("a,b\n5 €,1\n".encode("cp1252"), {"a": [5], "b": [1]}),
    "decimal commas": (
        b"a;b;c\n1,5;2.500,25;7\n2,25;1.800,5;8\n",
        {"a": [1.5, 2.25], "b": [2500.25, 1800.5], "c": [7, 8]},
    ),
    "commas between thousands": (
        b'a,b\n"85,210",x\n"1,024,000",y\n',
        {"a": [85210, 1024000], "b": ["x", "y"]},
    ),
    "marks decided column by column": (
        b"price;code\n47.10;42,5\n3.99;A-7\n1.00;x\n",
        {"price": [47.1, 3.99, 1.0], "code": ["42,5", "A-7", "x"]},
    ),
    "points between thousands, beside decimal commas": (
        b"n;m;p\n1.100;2.5;1,00\n2.101;5;11,01\n5;1.25;3,5\n",
        {"n": [1100, 2101, 5], "m": [2.5, 5.0, 1.25], "p": [1.0, 11.01, 3.5]},
    ),
    "three decimals after a comma": (
        b"kg\tx\n0,100\t0\n0,103\t10\n",
        {"kg": [0.1, 0.103], "x": [0, 10]},
    ),
    "money": (
        'a;b;c\n$3,692.63;€ 12,50;12.50 EUR\n($45.10);€ 1.200,00;-1,000.00 EUR\n'.encode(),
        {"a": [3692.63, -45.1], "b": [12.5, 1200.0], "c": [12.5, -1000.0]},
    ),
    "money in several currencies is no number": (
        "a,b\n$5,1\n€6,2\n".encode(),
        {"a": ["$5", "€6"], "b": [1, 2]},
    ),
    "brackets around cents are a minus, around numbers they count": (
        b"a,b\n45.10,(1)\n(45.10),(2)\n",
        {"a": [45.1, -45.1], "b": ["(1)", "(2)"]},
    ),
    "per cent": (
        b"a;b;c\n83.6 %;83,6%;1\n5 %;0,5%;2\n",
        {"a": [83.6, 5.0], "b": [83.6, 0.5], "c": [1, 2]},
    ),
    "spaces and apostrophes between thousands": (
        "a;b;c\n1 234,50;1'234.50;1\u00a0234\n\u221212,5;7.25;5\n".encode(),
        {"a": [1234.5, -12.5], "b": [1234.5, 7.25], "c": [1234, 5]},
    ),
    "dates by day, month and year": (
        b"a;b;c;d\n03.04.2019;25/12/2019;12/25/2019;2019/04/03\n"
        b"4.5.2020;01/02/2020;01/02/2020;2020-4-5\n",
        {
            "a": [date(2019, 4, 3), date(2020, 5, 4)],
            "b": [date(2019, 12, 25), date(2020, 2, 1)],
            "c": [date(2019, 12, 25), date(2020, 1, 2)],
            "d": [date(2019, 4, 3), date(2020, 4, 5)],
        },
    ),
    "dates in words, and with a time": (
        b"a;b;c\n3 Apr 2019;2019-04-03T10:30:00Z;03/04/2019 2:30 PM\n"
        b"April 13, 2020;2019-04-03 11:00;03/25/2019 9:05 AM\n",
        {
            "a": [date(2019, 4, 3), date(2020, 4, 13)],
            "b": [datetime(2019, 4, 3, 10, 30), datetime(2019, 4, 3, 11)],
            "c": [datetime(2019, 3, 4, 14, 30), datetime(2019, 3, 25, 9, 5)],
        },
    ),
    "slashes that fit both ways: the day first, unless the file has dollars": (
        b"a;b\n03/04/2019;1\n05/06/2019;2\n",
        {"a": [date(2019, 4, 3), date(2019, 6, 5)], "b": [1, 2]},
    ),
    "slashes that fit both ways, in a file with dollars": (
        b"a;b\n03/04/2019;$1\n05/06/2019;$2\n",
        {"a": [date(2019, 3, 4), date(2019, 5, 6)], "b": [1, 2]},
    ),
    "what is no date": (
        b"year,month,impossible,time\n2019,2019-04,31.02.2019,10:30\n2020,2020-05,30.02.2019,9:05\n",
        {
            "year": [2019, 2020], "month": ["2019-04", "2020-05"],
            "impossible": ["31.02.2019", "30.02.2019"], "time": ["10:30", "9:05"],
        },
    ),
    "phone numbers in groups": (
        b"phone,n\n555 123 456,1\n555 123 457,2\n",
        {"phone": ["555 123 456", "555 123 457"], "n": [1, 2]},
    ),
    "titles as wide as the table, and a total": (
        b"Report of 2019;;\n;;\nMade;3.4.2019;\n\nname;n;m\nAnn;1;2\nBen;3;4\nTotal;;6\n\n",
        {"name": ["Ann", "Ben"], "n": [1, 3], "m": [2, 4]},
    ),
    "a total that is the sum": (
        b"name;n\nAnn;1.000\nBen;3.500\nTotal;4.500\n",
        {"name": ["Ann", "Ben"], "n": [1.0, 3.5]},
    ),
    "a company that is called Total": (
        b"name;n\nShell;1\nBP;3\nTotal;8\n",
        {"name": ["Shell", "BP", "Total"], "n": [1, 3, 8]},
    ),
    "dates and something else": (
        b"d,n\n" + b"2019-04-03,1\n" * 30 + b"TBD,2\n",
        {"d": ["2019-04-03"] * 30 + ["TBD"], "n": [1] * 30 + [2]},
    ),
    "spaces between values": (
        b"age  n\n31   5\n4   66\n",
        {"age": [31, 4], "n": [5, 66]},
    ),
    "two spaces or more between values": (
        b"age   city         n\n31    New York     5\n4     Ann Arbor    66\n",
        {"age": [31, 4], "city": ["New York", "Ann Arbor"], "n": [5, 66]},
    ),
    "no header above texts and numbers": (
        b"31\tchef\n45\tclerk\n",
        {"column 1": [31, 45], "column 2": ["chef", "clerk"]},
    ),
    "years as names": (
        b"land,2019,2020\nDE,5,6\nFR,7,8\n",
        {"land": ["DE", "FR"], "2019": [5, 7], "2020": [6, 8]},
    ),
    "underscores are no numbers": (
        b"a,b\n2024_1,1\n2024_2,2\n",
        {"a": ["2024_1", "2024_2"], "b": [1, 2]},
    ),
    "blanks around names": (b"a , b\n1, 2\n", {"a": [1], "b": [2]}),
    "dates with points": (b"d;n\n03.04.2019;1\n", {"d": [date(2019, 4, 3)], "n": [1]}),
    "codes, keys and phone numbers stay text": (
        b"zip,key,phone\n00713,12345678901234567890,+491701234567\n10115,2,+493012345678\n",
        {
            "zip": ["00713", "10115"],
            "key": ["12345678901234567890", "2"],
            "phone": ["+491701234567", "+493012345678"],
        },
    ),
    "gaps of numbers, words of text": (
        b"n,t\n1,NA\nNA,None\n-,\n?,x\n 4 ,-\n",
        {"n": [1, None, None, None, 4], "t": ["NA", "None", None, "x", "-"]},
    ),
    "names that are empty or there twice": (
        b"a,A,a,,b\n1,2,3,4,5\n",
        {"a": [1], "A": [2], "a (2)": [3], "column 4": [4], "b": [5]},
    ),
    "no header": (b"1,2\n3,4\n", {"column 1": [1, 3], "column 2": [2, 4]}),
    "a title above the header": (
        b"Sales of May\n\nage,income\n1,2\n3,4\n",
        {"age": [1, 3], "income": [2, 4]},
    ),
    "blank lines, and lines of delimiters": (
        b"a,b\n1,2\n\n,\n3,4\n\n",
        {"a": [1, 3], "b": [2, 4]},
    ),
    "whole numbers larger than a float holds": (
        b"a,b\n9007199254740993,1\n-9007199254740993,2\n",
        {"a": [9007199254740993, -9007199254740993], "b": [1, 2]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", READ)
def test_files_as_people_have_them_are_read_right(tmp_path, case):
    content, expected = READ[case]
    assert columns(tmp_path / "in.csv", content) == expected


REFUSED = {
    "too few values": (b"a,b,c\n1,2,3\n4,5\n", "line 3", "2 values where there are 3 columns"),
    "too many values": (b"a,b\n1,2\n3,4,5\n6,7\n", "line 3", "more values than the 2 columns"),
    "an open quote": (b'a,b\n1,2\n"3,4\n5,6\n', "line 3", "a quote is opened and never closed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_lines_that_are_no_rows_are_told_with_their_number(tmp_path, case):
    content, place, why = REFUSED[case]
    (bad,) = table(tmp_path / "in.csv", content).rejected
    assert bad.place == place
    assert why in bad.why


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "in.csv is empty"),
        (b"\n \n", "in.csv is empty"),
        (b"a,b\n1,2\n3,4\r\n5,6\n", "lines that end in different ways"),
        (b"a,b\n\x00\x00,2\n", "holds no text"),
        (b"lorem ipsum dolor sit amet " * 20, "does not look like a table"),
        (b"name    n\nAnn L.  5\nBen 6\nCem    7\n", "line 3: spaces divide it into 1 where other"),
        (b"title\n1,2\n3,4\n", "line 2: numbers, and no names of columns above"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_reason(tmp_path, content, said):
    with pytest.raises(DataError, match=said):
        table(tmp_path / "in.csv", content)


def test_what_the_user_says_goes_before_what_it_looks_like(tmp_path):
    path = tmp_path / "in.csv"
    assert columns(path, b"a,b\n1,2\n", kinds={"a": "text", "b": "double"}) == {
        "a": ["1"], "b": [2.0],
    }  # fmt: skip
    assert columns(path, b'a,b\n"1.234",2\n', decimal=",") == {"a": [1234], "b": [2]}
    assert columns(path, "a,b\né,2\n".encode("cp850"), encoding="cp850")["a"] == ["é"]


def test_a_kind_that_later_rows_contradict_is_decided_by_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("voicecf.files.staging.HEAD", 10)
    rows = [f"{i},{i},,{i}" for i in range(100)]
    rows[50], rows[60], rows[70] = "50.5,50,7,50", "60,sixty,8,60", "70,70,9,-"
    rows[80:90] = [f"{i},{i},,word" for i in range(80, 90)]
    found = table(tmp_path / "in.csv", "a,b,c,d\n" + "\n".join(rows))
    assert [str(kind) for kind in found.schema.types] == ["double", "int64", "int64", "string"]
    ((chunk),) = found.parts(1000)
    assert list(chunk.wrong) == [60]
    bad = found.places()(60, chunk.wrong[60])
    assert str(bad) == "in.csv, line 62: b is 'sixty', which is no whole number"


@pytest.mark.parametrize("name", ["in.csv", "in.csv.gz"])
def test_lines_are_counted_right_in_a_long_file(tmp_path, name):
    rows = ['"x\ny",1'] * 30_000 + ["short"] + ["z,2"] * 300_000 + ["z,2,3"]
    content = ("a,b\n" + "\n".join(rows)).encode()
    found = table(tmp_path / name, gzip.compress(content) if name.endswith("gz") else content)
    assert [bad.place for bad in found.rejected] == ["line 60002", "line 360003"]
    assert found.n_rows == 330_000
    assert found.places()(30_000, "why").place == "line 60003"


@pytest.mark.parametrize("name", ["a[1].csv", "a*b.csv", "it's {x}.csv", "ü ?.csv"])
def test_names_of_files_are_no_patterns(tmp_path, name):
    (tmp_path / "a1.csv").write_text("other\n1\n")
    (tmp_path / "aXb.csv").write_text("other\n1\n")
    assert columns(tmp_path / name, b"a,b\n1,2\n") == {"a": [1], "b": [2]}


def test_files_of_a_folder_may_be_laid_out_in_different_ways(tmp_path):
    rows = [b"a,b\n1,x\n2,y\n", b"A title\r\n\r\na;b\r\n3;z\r\n", b"\n\na,b\n4,w\n5\n"]
    (tmp_path / "in").mkdir()
    for i, content in enumerate(rows):
        (tmp_path / "in" / f"{i}.csv").write_bytes(content)
    found = open_source(tmp_path / "in").table()
    assert pa.concat_tables(found).to_pydict() == {"a": [1, 2, 3, 4], "b": ["x", "y", "z", "w"]}
    assert [found.places()(i, "").place for i in range(4)] == [
        "line 2",
        "line 3",
        "line 4",
        "line 4",
    ]
    assert [str(bad) for bad in found.rejected] == [
        "2.csv, line 5: 1 value where there are 2 columns"
    ]


def test_bad_values_are_never_hidden(tmp_path):
    content = "a,b{VALUE}\n" + "1,2\n" * 30 + "3,oops\n"
    found = table(tmp_path / "in.csv", content)
    with pytest.raises(
        BadRowError, match=r"line 32: b\{VALUE\} is 'oops', which is no whole number"
    ):
        found.to_pandas()
    assert found.to_pandas(blank=True)["b{VALUE}"].isna().sum() == 1
    with pytest.raises(BadRowError, match="line 3: 1 value"):
        table(tmp_path / "in.csv", b"a,b\n1,2\n3\n").to_pandas(blank=True)


def test_a_damaged_gzip_file_is_refused(tmp_path):
    for content in (b"a,b\n1,2\n", gzip.compress(b"a,b\n1,2\n")[:15]):
        with pytest.raises(DataError, match="is no gzip file, or damaged"):
            table(tmp_path / "in.csv.gz", content)


def test_what_cannot_be_read_leaves_no_folder_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "in.csv").write_bytes(b"a,b\n1,2\n3,4\r\n5,6\n")
    with pytest.raises(DataError):
        open_source(tmp_path / "in.csv").table()
    assert [path.name for path in tmp_path.iterdir()] == ["in.csv"]


def test_an_interrupted_query_is_ctrl_c(tmp_path):
    with pytest.raises(KeyboardInterrupt), connected(tmp_path):
        raise RuntimeError("Query interrupted")


@pytest.mark.parametrize("width", [1500, pytest.param(5000, marks=pytest.mark.slow)])
def test_thousands_of_columns_are_read(tmp_path, width):
    numbers = np.arange(3 * width).reshape(3, width)
    names = [f"a rather long name of column {i}" for i in range(width)]
    lines = [",".join(names), *(",".join(map(str, row)) for row in numbers)]
    found = columns(tmp_path / "in.csv", "\n".join(lines))
    assert list(found) == names
    assert np.array_equal(np.array(list(found.values())).T, numbers)


WORDS = [
    "a",
    "x, y",
    "l1\nl2",
    "l1\r\nl2",
    'say "hi"',
    ";",
    " pad ",
    "日本",
    "NA",
    "'q'",
    "a|b",
    "-",
]


@pytest.mark.parametrize("seed", range(25))
def test_random_files_are_read_as_they_were_written(tmp_path, seed):
    rng = np.random.default_rng(seed)
    k, n = rng.integers(2, 6), int(rng.choice([1, 2, 30, 500]))
    makers = [
        lambda: int(rng.integers(-(10**6), 10**6)),
        lambda: float(rng.normal() * 10.0 ** rng.integers(-5, 6)),
        lambda: str(rng.choice(WORDS)) + "w",
    ]
    kinds = [makers[i] for i in rng.integers(3, size=k)]
    rows = [[make() for make in kinds] for _ in range(n)]
    names = [f"{rng.choice(['a', 'b b', 'ü', 'x,y', 'n' + chr(10) + 'l'])}{i}" for i in range(k)]
    text = io.StringIO()
    form = {
        "delimiter": str(rng.choice(list(",;\t|"))),
        "lineterminator": str(rng.choice(["\n", "\r\n"])),
        "quoting": int(rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])),
    }
    csv.writer(text, **form).writerows([names, *rows])
    encoded = text.getvalue().encode(str(rng.choice(["utf-8", "utf-8-sig", "utf-16"])))
    found = columns(tmp_path / "in.csv", encoded)
    assert list(found) == names
    assert list(map(list, zip(*found.values(), strict=True))) == rows


def signed(number: float, decimal: str, thousands: str) -> str:
    """Write a number with two decimals."""
    swap = str.maketrans({",": thousands, ".": decimal})
    return f"{number:,.2f}".translate(swap)


SIGNS = [(".", ""), (",", ""), (".", ","), (",", "."), (".", " "), (",", " "), (".", "'")]
MONEY = ["$N", "N €", "EUR N", "£ N", "N CHF", "US$ N"]
DAYS = [
    "%Y-%m-%d",
    "%Y/%m/%d",
    "%d.%m.%Y",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d-%m-%Y",
    "%d %b %Y",
    "%B %d, %Y",
]


def some_column(rng, n: int) -> tuple[list[object], list[str]]:
    """Return values, and the texts that they are written as."""
    kind = rng.integers(5)
    if kind == 0:
        words = [f"{rng.choice(['x', '7 y', 'A-1', '42,5'])}{i}z" for i in range(n)]
        return list(words), words
    if kind == 1:
        whole = [int(i) for i in rng.integers(-(10**6), 10**6, n)]
        return list(whole), list(map(str, whole))
    if kind == 2:
        form = str(rng.choice(DAYS))
        days = [date(1960, 1, 25) + timedelta(days=int(i) * 31) for i in range(n)]
        return list(days), [day.strftime(form) for day in days]
    numbers = [float(x) for x in np.round(rng.normal(size=n) * 10.0 ** rng.integers(0, 7), 2)]
    numbers = [x + 0.0 if x else 0.25 for x in numbers]
    signs = SIGNS[rng.integers(len(SIGNS))]
    texts = [signed(x, *signs) for x in numbers]
    if kind == 3:
        form = str(rng.choice(["N", "N%", "N %"]))
        return list(numbers), [form.replace("N", text) for text in texts]
    form, brackets = str(rng.choice(MONEY)), rng.random() < 0.3
    texts = [form.replace("N", text) for text in texts]
    if brackets:
        texts = [f"({text.replace('-', '')})" if "-" in text else text for text in texts]
    return list(numbers), texts


@pytest.mark.parametrize("seed", range(25))
def test_every_column_may_be_written_in_its_own_way(tmp_path, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 40))
    made = [some_column(rng, n) for _ in range(rng.integers(2, 7))]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=str(rng.choice(list(",;\t|"))), lineterminator="\n")
    writer.writerow([f"name {i}" for i in range(len(made))])
    writer.writerows(zip(*(texts for _, texts in made), strict=True))
    found = columns(tmp_path / "in.csv", text.getvalue())
    assert list(found.values()) == [values for values, _ in made], text.getvalue()[:500]


def test_decimals_of_a_query_are_the_nearest_floats():
    sql = "select (range / 100)::decimal(12, 2) as money, range / 100 as nearest from range(100000)"
    found = pa.concat_tables(open_source(sql=sql).table())
    assert found["money"].type == pa.float64()
    assert found["money"].equals(found["nearest"])
