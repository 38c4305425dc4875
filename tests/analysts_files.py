"""Files as analysts upload them, with the values that they hold and what these are called."""

from __future__ import annotations

import io
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import xlsxwriter


@dataclass(frozen=True)
class File:
    """A file, its columns worked out by hand, and what each should be said to be."""

    name: str
    content: bytes
    columns: dict[str, list[Any]]
    kinds: tuple[str, ...]


def of(name: str, text: str, columns: dict[str, list[Any]], *kinds: str) -> File:
    return File(name, text.encode(), columns, kinds)


def workbook() -> bytes:
    """Write a workbook with a cover, and a table under a title and over a total."""
    file = io.BytesIO()
    book = xlsxwriter.Workbook(file)
    book.add_worksheet("Cover").write(0, 0, "Nothing here")
    sheet = book.add_worksheet("Customers")
    rows: list[list[Any]] = [
        ["Customers of 2019"],
        [],
        ["zip", "joined", "spend", "visits", "member"],
        ["00713", date(2019, 4, 3), 47.1, 3, True],
        ["10115", date(2020, 12, 25), 1234.5, 12, False],
        ["80331", date(2018, 1, 2), 0.1, 7, True],
        ["Total", None, 1281.7, 22, None],
    ]
    day = book.add_format({"num_format": "dd.mm.yyyy"})
    for at, row in enumerate(rows):
        for place, value in enumerate(row):
            if isinstance(value, date):
                sheet.write_datetime(at, place, datetime(value.year, value.month, value.day), day)
            else:
                sheet.write(at, place, value)
    book.close()
    return file.getvalue()


FILES = (
    of(
        "german.csv",
        "tag;umsatz;stück\n03.04.2019;47,10;1.100\n25.12.2020;1.234,50;12.000\n01.02.2021;3,99;5\n",
        {
            "tag": [date(2019, 4, 3), date(2020, 12, 25), date(2021, 2, 1)],
            "umsatz": [47.1, 1234.5, 3.99],
            "stück": [1100, 12000, 5],
        },
        "date, day first", "number with decimal comma", "number with decimal comma",
    ),
    of(
        "american.csv",
        'day,amount,people\n04/25/2019,"$3,692.63","85,210"\n01/02/2020,$12.50,"1,024,000"\n',
        {
            "day": [date(2019, 4, 25), date(2020, 1, 2)],
            "amount": [3692.63, 12.5],
            "people": [85210, 1024000],
        },
        "date, month first", "money in $", "number with thousands commas",
    ),
    of(
        "shares.csv",
        "share;rate\n83.6 %;0,5%\n5 %;12,25%\n",
        {"share": [83.6, 5.0], "rate": [0.5, 12.25]},
        "per cent", "per cent with decimal comma",
    ),
    of(
        "codes.csv",
        "zip,phone,key,n\n00713,+491701234567,007,1\n10115,+493012345678,118,2\n",
        {
            "zip": ["00713", "10115"], "phone": ["+491701234567", "+493012345678"],
            "key": ["007", "118"], "n": [1, 2],
        },
        "text", "text", "text", "number",
    ),
    of(
        "prices.csv",
        "price;article\n47.10;42,5\n3.99;A-7\n1.00;x\n",
        {"price": [47.1, 3.99, 1.0], "article": ["42,5", "A-7", "x"]},
        "number", "text",
    ),
    of(
        "swiss.csv",
        "balance;fee\n1'234'567.50;12.50 CHF\n-99.25;1'000.00 CHF\n",
        {"balance": [1234567.5, -99.25], "fee": [12.5, 1000.0]},
        "number with thousands apostrophes", "money in CHF with thousands apostrophes",
    ),
    of(
        "french.csv",
        "jour;prix;perte\n25/12/2019;1\u00a0234,50 €;(45,10)\n01/02/2020;12,00 €;3,00\n",
        {
            "jour": [date(2019, 12, 25), date(2020, 2, 1)],
            "prix": [1234.5, 12.0],
            "perte": [-45.1, 3.0],
        },
        "date, day first", "money in € with thousands spaces and decimal comma",
        "number with decimal comma",
    ),
    of(
        "times.csv",
        "seen,born,year\n2019-04-03T10:30:00,3 Apr 1980,2006\n2019-04-04 11:00,Oct 13 1991,2019\n",
        {
            "seen": [datetime(2019, 4, 3, 10, 30), datetime(2019, 4, 4, 11)],
            "born": [date(1980, 4, 3), date(1991, 10, 13)],
            "year": [2006, 2019],
        },
        "date", "date, month in words", "number",
    ),
    of(
        "gaps.csv",
        "a,b,c\n1,?,-\n2,3,NA\n4,5,\n6,7,8\n",
        {"a": [1, 2, 4, 6], "b": [None, 3, 5, 7], "c": [None, None, None, 8]},
        "number", "number", "number",
    ),
    of(
        "report.csv",
        "Report of 2019;;\nMade;3.4.2019;\n\nname;n;m\nAnn;1;2,5\nBen;3;4\nCem;5;6\nTotal;;12,5\n",
        {"name": ["Ann", "Ben", "Cem"], "n": [1, 3, 5], "m": [2.5, 4.0, 6.0]},
        "text", "number", "number with decimal comma",
    ),
    of(
        "printed.txt",
        "age   city         spend\n31    New York     5.5\n4     Ann Arbor    66\n",
        {"age": [31, 4], "city": ["New York", "Ann Arbor"], "spend": [5.5, 66.0]},
        "number", "text", "number",
    ),
    of(
        "pasted table",
        "31\tchef\t1,5\n45\tclerk\t2,25\n",
        {"column 1": [31, 45], "column 2": ["chef", "clerk"], "column 3": [1.5, 2.25]},
        "number", "text", "number with decimal comma",
    ),
    File(
        "book.xlsx",
        workbook(),
        {
            "zip": ["00713", "10115", "80331"],
            "joined": [date(2019, 4, 3), date(2020, 12, 25), date(2018, 1, 2)],
            "spend": [47.1, 1234.5, 0.1],
            "visits": [3, 12, 7],
            "member": ["true", "false", "true"],
        },
        ("text", "date", "number", "number", "text"),
    ),
)  # fmt: skip
