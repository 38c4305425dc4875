"""What was understood of the columns of a table, beside what stood in the file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from glob import escape
from pathlib import Path
from typing import Any

import pyarrow as pa

from voicecf.files.kinds import MOSTLY, POINT, TEXT, Deciding, Fitting, Notation, is_gap
from voicecf.files.source import Source
from voicecf.files.staging import HEAD, connected, rows_of
from voicecf.files.table import Table
from voicecf.files.text import quoted

# Texts that are shown of a column, and rows that they are looked for in.
SHOWN, LOOKED_AT = 3, 500
# Numbers that people write for no value; offered as such where they stand far from all others.
MARKS = r"-(1|9+)([.,]0+)?|9{2,}([.,]0+)?"
# Words among numbers that are offered, and the share of numbers from which on a word is one.
WORDS, NUMBERS = 3, 0.5
# What columns of Parquet files and databases are called.
TYPES = (
    (pa.types.is_boolean, "yes or no"),
    (pa.types.is_integer, "number"),
    (pa.types.is_floating, "number"),
    (pa.types.is_temporal, "date"),
)

# A text, and how often it is there.
Count = tuple[str, int]


@dataclass(frozen=True)
class Understood:
    """What a column was read as.

    Attributes
    ----------
    name : str
        Of the column.
    kind : str
        What it was read as: "number with decimal comma", "date, day first", "text" and so on.
    texts, values : tuple of str
        Some texts as they stand in the file, and the values that they became.
    others : tuple of str
        Other kinds that fit as well.
    doubtful : tuple of (str, int)
        Texts that may stand for no value, and how often they are there.
    unread : int
        Values that are not of that kind.

    Examples
    --------
    >>> from voicecf.files import Understood
    >>> Understood("income", "number", ("1.200",), ("1200",)).kind
    'number'
    """

    name: str
    kind: str
    texts: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    doubtful: tuple[tuple[str, int], ...] = ()
    unread: int = 0


def understood(source: Source, table: Table, folder: Path) -> tuple[Understood, ...]:
    r"""Tell what was understood of a table, by its first rows.

    Parameters
    ----------
    source : Source
    table : Table
        Of that source.
    folder : Path
        Where the table was brought to.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from voicecf.files import open_source, understood
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("age;income\n31;2.500,50\n45;1.800,00\n")
    ...     source = open_source(file)
    ...     found = understood(source, source.table(file.parent), file.parent)
    >>> [(one.name, one.kind) for one in found]
    [('age', 'number'), ('income', 'number with decimal comma')]
    """
    if not source.is_text:
        return tuple(Understood(column.name, _word(column.type)) for column in table.schema)
    with connected(folder) as connection:
        csv = source.csv(folder, table.encoding)
        rows = rows_of(csv, source.reading)
        connection.execute(f"create temp table head as from {rows} limit {HEAD}")
        deciding = Deciding(connection, csv.names, {}, csv.first.delimiter, "auto")
        deciding.kinds("head")
        unread, marks = _unread(connection, table), _marks(connection)
        return tuple(
            _column(connection, i, table, deciding.tried[i], unread.get(i, 0), marks[f"c{i}"])
            for i in range(len(csv.names))
        )


def _word(kind: pa.DataType) -> str:
    return next((word for fits, word in TYPES if fits(kind)), "text")


def _column(
    connection: Any, i: int, table: Table, tried: Fitting, unread: int, marks: Sequence[Count]
) -> Understood:
    """Look at one column of the first rows; `marks` are numbers such as -999 that are there."""
    c, kind = f"c{i}", table.notation(i)
    others, rows = _others(connection, c, kind, tried)
    # Texts that tell the other readings apart say more than those that do not.
    rows.sort(key=lambda row: len(set(row[1:])) == 1)
    shown = list(dict.fromkeys(row[:2] for row in rows))[:SHOWN]
    doubtful = _odd_numbers(connection, c, kind, marks) if kind.is_number and marks else ()
    if unread or (kind.is_text and NUMBERS <= tried[POINT].share < 1):
        doubtful += _odd_words(connection, c, kind)
    return Understood(
        table.names[i], kind.word, tuple(text for text, _ in shown),
        tuple(value or "" for _, value in shown), others, doubtful, unread,
    )  # fmt: skip


def _others(
    connection: Any, c: str, kind: Notation, tried: Fitting
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the kinds that fit a column as well and make other values of its texts.

    Returned as well: the first texts, with the values that they become by each of these kinds.
    """
    enough = NUMBERS if kind.is_text else MOSTLY
    fitting = [w for w, counts in tried.items() if counts.share >= enough and w.word != kind.word]
    every = [kind, *(replace(w, narrow=kind.narrow) for w in fitting)]
    values = ", ".join(f"cast({w.value(c)} as varchar)" for w in every)
    rows = connection.execute(
        f"select {c}, {values} from (select {c} from head limit {LOOKED_AT}) where not {is_gap(c)}"
    ).fetchall()
    texts, *readings = zip(*rows, strict=True) if rows else [()]
    words: dict[tuple[str, ...], str] = {}
    for notation, became in zip(every, readings, strict=False):
        words.setdefault(became, notation.word)
    text = () if kind.is_text else (TEXT.word,)
    return (*list(words.values())[1:], *text), list(zip(texts, *words, strict=True))


def _odd_numbers(
    connection: Any, c: str, kind: Notation, marks: Sequence[Count]
) -> tuple[Count, ...]:
    """Return those of numbers such as -999 that are the only negative, or far from all others."""
    texts = ", ".join(f"({quoted(text)})" for text, _ in marks)
    values = connection.execute(f"select {kind.value('v')} from (values {texts}) t(v)").fetchall()
    known = [value for (value,) in values if value is not None]
    low, high, negative = connection.execute(
        f"select min(n), max(n), count_if(n < 0) from (select {kind.value(c)} as n from head) "
        f"where not list_contains({known}, n)"
    ).fetchone()
    return tuple(
        mark
        for mark, (value,) in zip(marks, values, strict=True)
        if not (low is None or value is None)
        and ((value < 0 and not negative) or max(low - value, value - high) >= max(high - low, 1))
    )


def _odd_words(connection: Any, c: str, kind: Notation) -> tuple[Count, ...]:
    """Return words that stand among numbers, if they are few and there several times."""
    number = f"try_cast(trim({c}) as double)" if kind.is_text else kind.value(c)
    words = connection.execute(
        f"select trim({c}) as v, count(*) from head where {number} is null and not {is_gap(c)} "
        f"group by v order by count(*) desc, v limit {WORDS + 1}"
    ).fetchall()
    few = len(words) <= WORDS and all(count > 1 for _, count in words)
    return tuple(words) if few else ()


def _marks(connection: Any) -> defaultdict[str, list[Count]]:
    """Return, by column, numbers such as -999 that are there several times, and how often."""
    found = connection.execute(
        "select c, trim(v) as v, count(*) from (unpivot head on columns(*) into name c value v) "
        f"where regexp_full_match(trim(v), {quoted(MARKS)}) group by all having count(*) > 1"
    ).fetchall()
    marks = defaultdict(list)
    for c, *mark in sorted(found):
        marks[c].append(tuple(mark))
    return marks


def _unread(connection: Any, table: Table) -> dict[int, int]:
    """Count the values that could not be read, by column."""
    (file,) = table.files
    return dict(
        connection.execute(
            "select cast(split_part(fault, ' ', 1) as integer) as c, count(*) "
            f"from read_parquet({quoted(escape(str(file)))}) where fault is not null group by c"
        ).fetchall()
    )
