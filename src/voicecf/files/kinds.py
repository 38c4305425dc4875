"""Which text columns of CSV files hold numbers, and how these are written, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from voicecf.files.text import quoted

__all__ = ["PLACE", "Deciding", "Kind"]

# What stands for no value in a column of numbers: nothing, or one of these.
GAP = r"\s*(#?N/A|n/a|NA|NaN|nan|NULL|null|None|-|\?)?\s*"
# Share of numbers that makes a column one of numbers with bad rows, rather than one of text.
MOSTLY = 0.95
# Where a value goes in a sentence.
PLACE = "\0"
# Digits that are no number: codes such as 00713, phone numbers, and keys too long for 64 bits.
CODE = r"[+-]?0[\dxX][^.,]*|[+-]?\d{19,}|\+\d{7,}"


@dataclass(frozen=True)
class Mark:
    """How numbers are written.

    Attributes
    ----------
    plain : str
        SQL that turns the text `{c}` into a plain number such as -1234.5.
    pattern : str
        Regular expression of the texts that are such numbers; empty if every plain number is one.
    note : str
        What to tell the user about a column written like this.
    """

    plain: str
    pattern: str = ""
    note: str = ""

    def plain_text(self, c: str) -> str:
        """Return SQL of the plain number that a text column holds."""
        return self.plain.format(c=c)

    def fits(self, c: str) -> str:
        """Return SQL that tells whether a text is written like this, for a column of numbers."""
        if self.pattern:
            return f"regexp_full_match({c}, {quoted(self.pattern)})"
        return f"not contains({c}, '_')"  # DuckDB takes 2024_1 for a number


POINT = Mark("{c}")
COMMA = Mark(
    "replace(replace({c}, '.', ''), ',', '.')",
    r"\s*[+-]?([1-9]\d{0,2}(\.\d{3})+|\d+)(,\d+)?\s*",
    "has decimal commas",
)
THOUSANDS = Mark(
    "replace({c}, ',', '')",
    r"\s*[+-]?([1-9]\d{0,2}(,\d{3})+|\d+)(\.\d*)?\s*",
    "has commas between thousands",
)


@dataclass(frozen=True)
class Kind:
    """What a text column holds: text if `mark` is None, else numbers, perhaps whole ones."""

    mark: Mark | None = None
    whole: bool = False

    def number(self, c: str) -> str:
        """Return SQL of the numbers in a column; null where there is none."""
        assert self.mark is not None
        return f"try_cast({self.mark.plain_text(c)} as {'bigint' if self.whole else 'double'})"

    def is_wrong(self, c: str, number: str) -> str:
        """Return SQL that tells values that are neither of this kind nor gaps."""
        assert self.mark is not None
        tests = [f"{number} is null and {c} is not null and not {is_gap(c)}"]
        tests.append(f"{number} is not null and not {self.mark.fits(c)}")
        if self.whole:  # DuckDB rounds 1.5 to a whole number
            tests.append(f"try_cast({self.mark.plain_text(c)} as double) != {number}")
        return " or ".join(f"({test})" for test in tests)

    def why(self, name: str) -> str:
        """Say what is wrong with a value of another kind, which goes in the place of `PLACE`."""
        return f"{name} is {PLACE}, which is no {'whole ' if self.whole else ''}number"


def is_gap(c: str) -> str:
    """Return SQL that tells whether a value of a column of numbers stands for none."""
    return f"regexp_full_match({c}, {quoted(GAP)})"


@dataclass(frozen=True)
class Counts:
    """How many values of a column there are, and what they look like."""

    values: int = 0
    numbers: int = 0
    wholes: int = 0
    codes: int = 0
    commas: int = 0

    def kind(self, mark: Mark, said: str | None) -> Kind | None:
        """Return the kind of a column with such values; None if too few are numbers."""
        if not self.values or self.numbers < MOSTLY * self.values:
            return None
        if said is None and self.codes:
            return Kind()
        return Kind(mark, self.wholes == self.numbers if said is None else said == "int64")


class Deciding:
    """Decides what the text columns c0, c1, ... of CSV files hold.

    Parameters
    ----------
    connection : duckdb connection
    said : list of str or None
        What the user says of each column: "text", "double", "int64", or None if it is to be found.
    delimiter : str
    decimal : "auto", "." or ","
        The decimal mark; "auto" finds it out for each column.
    """

    def __init__(
        self, connection: Any, said: Sequence[str | None], delimiter: str, decimal: str
    ) -> None:
        self.connection, self.said = connection, said
        self.first = COMMA if decimal == "," else POINT
        # If a semicolon separates values, a comma is a decimal mark rather than one of thousands.
        others = (COMMA, THOUSANDS) if delimiter == ";" else (THOUSANDS, COMMA)
        self.others = {"auto": others, ".": (THOUSANDS,), ",": ()}[decimal]

    def kinds(self, rows: str) -> tuple[list[Kind], bool]:
        """Decide by some rows, given as SQL; tell also whether every column has a value there."""
        counts = self._counts(rows, self.first)
        self.empty = [i for i, count in enumerate(counts) if not count.values]
        kinds = [
            Kind() if said == "text" else counts[i].kind(self.first, said)
            for i, said in enumerate(self.said)
        ]
        unclear = [i for i, kind in enumerate(kinds) if kind is None and counts[i].commas]
        others = {mark: self._counts(rows, mark) for mark in self.others if unclear}
        for i in unclear:
            found = [others[mark][i].kind(mark, self.said[i]) for mark in others]
            kinds[i] = next((kind for kind in found if kind is not None), None)
        if COMMA in others and any(kind is not None and kind.mark is COMMA for kind in kinds):
            for i, kind in enumerate(kinds):
                kinds[i] = self._with_points(kind, others[COMMA][i], self.said[i])
        known = [
            kind or (Kind() if said is None else Kind(POINT, said == "int64"))
            for kind, said in zip(kinds, self.said, strict=True)
        ]
        return known, all(self.said[i] is not None for i in self.empty)

    def _with_points(self, kind: Kind | None, counts: Counts, said: str | None) -> Kind | None:
        """Read 1.100 as 1100, in a file that has decimal commas, if all numbers can be read so."""
        fraction = kind is not None and kind.mark is POINT and not kind.whole
        if fraction and counts.numbers == counts.values == counts.wholes:
            return counts.kind(COMMA, said)
        return kind

    def _counts(self, rows: str, mark: Mark) -> list[Counts]:
        """Count the values of all columns, turned into one long column, whatever their number."""
        plain = mark.plain_text("v")
        number = f"try_cast({plain} as double) is not null and {mark.fits('v')}"
        looks_whole = f"cast(try_cast({plain} as bigint) as varchar) = {plain}"
        found = self.connection.execute(
            f"select c, count(v), count_if({number}), count_if({looks_whole}), "
            f"count_if(regexp_full_match(v, {quoted(CODE)})), count_if(contains(v, ',')) "
            f"from (select c, trim(v) as v from (unpivot {rows} on columns(*) into name c value v) "
            f"where not {is_gap('v')}) group by c"
        ).fetchall()
        counts = {c: Counts(*numbers) for c, *numbers in found}
        return [counts.get(f"c{i}", Counts()) for i in range(len(self.said))]
