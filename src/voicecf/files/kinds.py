"""What the text columns of CSV files hold, decided column by column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from voicecf.files.notations import (
    CURRENCY,
    DATES,
    DAY_FIRST,
    DECIMAL_COMMA,
    DOLLARS,
    MONTH_FIRST,
    PER_CENT,
    POINT,
    TEXT,
    Notation,
    is_gap,
    notation_of,
    number_notations,
)
from voicecf.files.text import quoted

# Share of numbers or dates from which on a column holds those, with bad rows, rather than text.
MOSTLY = 0.95
# Digits that are no number: codes such as 00713, phone numbers, and keys too long for 64 bits.
CODE = r"[+-]?0[\dxX][^.,]*|[+-]?\d{19,}|\+\d{7,}"
CODE_NAME = re.compile(
    r"(^|[\W_])(zip|zip_?code|plz|post_?code|postal|postal_?code|postleitzahl|phone|telephone|tel|mobile|"
    r"fax|ean|gtin|upc|isbn|issn|sku|iban|bic|swift|ssn|(account|konto|phone|card|customer|order|article|item|"
    r"invoice)_?(no|nr|num|number|nummer))($|[\W_])|^(account|konto)$",
    re.I,
)
# Numbers as users may name them, however they are written: whole, or with fractions.
ANY_NUMBER = {"int64": True, "double": False}
# Rows that are enough to see how a column is not written.
SAMPLE = 300
# Share of a sample that a notation has to fit to be looked at any further.
WORTH = 0.5


def names_codes(name: str) -> bool:
    """Return True if a column of this name holds codes, such as ``zip`` or ``PhoneNumber``."""
    return bool(CODE_NAME.search(re.sub(r"(?<=[a-z])(?=[A-Z])|\s+", "_", name)))


@dataclass(frozen=True)
class NotationCounts:
    """How many values of a column there are, and how many a notation fits."""

    values: int = 0
    codes: int = 0
    fits: int = 0
    narrow: int = 0

    @property
    def share(self) -> float:
        """Share of the values that the notation fits."""
        return self.fits / self.values if self.values else 0.0


# For each notation that fits a column, how many of its values.
Fitting = dict[Notation, NotationCounts]


class Deciding:
    """Decides what the text columns c0, c1, ... of CSV files hold.

    Parameters
    ----------
    connection : duckdb connection
    names : list of str
        The user's names of the columns.
    stated : dict of str to str
        What the user says of columns: the word of a notation, or "int64" or "double". Of the others
        it is to be found.
    delimiter : str
    decimal : "auto", "." or ","
        The decimal mark; "auto" finds it out for each column.
    """

    def __init__(
        self, connection: Any, names: Sequence[str], stated: dict[str, str], delimiter: str,
        decimal: str,
    ) -> None:  # fmt: skip
        self.connection, self.names = connection, names
        self.stated = [stated.get(name) for name in names]
        # If a semicolon separates values, a comma is a decimal mark rather than one of thousands.
        self.comma_first = decimal == "," or (decimal == "auto" and delimiter == ";")
        self.decimals = ("", ".", ",") if decimal == "auto" else ("", decimal)

    def kinds(self, rows: str) -> tuple[list[Notation], bool]:
        """Decide by some rows, given as SQL; tell also whether every column has a value there."""
        plain = self._counts(rows, range(len(self.names)), [POINT])
        self.empty = [i for i, counts in plain.items() if not counts[POINT].values]
        self.found = self._fitting(rows, plain)
        evidence = Evidence(self.found.values())
        kinds = [self._kind(i, evidence) for i in plain]
        return kinds, all(self.stated[i] is not None for i in self.empty)

    def _kind(self, i: int, evidence: Evidence) -> Notation:
        """Choose one of the notations that fit a column."""
        found, stated = self.found[i], self.stated[i]
        if not found:
            return replace(POINT, narrow=ANY_NUMBER[stated]) if stated in ANY_NUMBER else TEXT
        notation = evidence.chosen(found)
        narrow = found[notation].narrow == found[notation].fits and not notation.is_text
        return replace(notation, narrow=ANY_NUMBER.get(stated or "", narrow))

    def _fitting(self, rows: str, plain: dict[int, Fitting]) -> dict[int, Fitting]:
        """Return the notations that fit each column."""
        self.tried = {i: dict(counts) for i, counts in plain.items()}
        for notations, columns in self._candidates(rows, plain).items():
            for i, counts in self._counts(rows, columns, notations).items():
                self.tried[i] |= counts
        return {i: self._fit(i, counts) for i, counts in self.tried.items()}

    def _candidates(
        self, rows: str, plain: dict[int, Fitting]
    ) -> dict[tuple[Notation, ...], list[int]]:
        """Return the columns to be looked at again, by the notations that they may have."""
        groups: dict[tuple[Notation, ...], list[int]] = {}
        unclear: list[int] = []
        fractions: list[int] = []
        for i, counts in plain.items():
            stated, point = self.stated[i], counts[POINT]
            if stated is not None and stated not in ANY_NUMBER:
                groups.setdefault((notation_of(stated),), []).append(i)
            elif point.fits < point.values:
                if stated is not None or not names_codes(self.names[i]):
                    unclear.append(i)
            elif point.narrow < point.values:  # 1.100 may be 1100
                fractions.append(i)
        tried = [*self._worth(rows, fractions, [DECIMAL_COMMA]).items()]
        digits, signs = self._looked_at(rows, unclear)
        every = [*number_notations([PER_CENT, *signs], self.comma_first), *DATES]
        for i, notations in (*tried, *self._worth(rows, digits, every).items()):
            groups.setdefault(notations, []).append(i)
        return groups

    def _worth(
        self, rows: str, columns: list[int], notations: Sequence[Notation]
    ) -> dict[int, tuple[Notation, ...]]:
        """Return those notations that fit much of a sample, column by column."""
        found = self._counts(_sample(rows, columns), columns, notations)
        return {
            i: tuple(w for w, n in found[i].items() if n.share >= WORTH or not n.values)
            for i in columns
        }

    def _looked_at(self, rows: str, columns: list[int]) -> tuple[list[int], list[str]]:
        """Return the columns with digits in much of a sample, and signs of currencies there."""
        if not columns:
            return [], []
        found = self.connection.execute(
            f"select c, count_if(regexp_matches(v, '[0-9]')) < {WORTH} * count(v), "
            f"list(distinct regexp_extract(v, {quoted(CURRENCY)})) "
            f"from {self._long(_sample(rows, columns))} group by c"
        ).fetchall()
        words = {c for c, without_digits, _ in found if without_digits}
        signs = {sign for c, _, some in found if c not in words for sign in some if sign}
        return [i for i in columns if f"c{i}" not in words], sorted(signs)

    def _fit(self, i: int, tried: Fitting) -> Fitting:
        """Return the notations that fit most of a column, or else the one that the user says."""
        stated, point = self.stated[i], tried[POINT]
        if stated is not None and stated not in ANY_NUMBER:
            notation = notation_of(stated)
            return {notation: tried[notation]}
        # A single value that is no date keeps a column text: dates that are set aside are no fault.
        found = {w: n for w, n in tried.items() if n.share >= (1 if w.is_date else MOSTLY)}
        if stated is None and point.codes:
            found = {w: counts for w, counts in found.items() if not w.is_number}
        if stated is not None:
            found = {w: counts for w, counts in found.items() if w.is_number}
        if point.share == 1 and found.get(DECIMAL_COMMA, point).narrow < point.values:
            found.pop(DECIMAL_COMMA, None)
        whole = point.narrow == point.fits
        return {
            w: n for w, n in found.items() if w.decimal in self.decimals or (whole and w == POINT)
        }

    def _counts(
        self, rows: str, columns: Iterable[int], notations: Sequence[Notation]
    ) -> dict[int, Fitting]:
        """Count the values of columns, turned into one long column, whatever their number."""
        columns = list(columns)
        if not columns or not notations:
            return {i: {} for i in columns}
        tests = []
        for notation in notations:
            fits = f"({notation.fits('v')} and {notation.value('v')} is not null)"
            tests.append(f"count_if({fits}), count_if({fits} and {notation.is_narrow('v')})")
        some = f"(select {', '.join(f'c{i}' for i in columns)} from {rows})"
        found = self.connection.execute(
            f"select c, count(v), count_if(regexp_full_match(v, {quoted(CODE)})), "
            f"{', '.join(tests)} from {self._long(some)} group by c"
        ).fetchall()
        counts = {c: numbers for c, *numbers in found}
        return {i: _by_notation(notations, counts.get(f"c{i}", ())) for i in columns}

    @staticmethod
    def _long(rows: str) -> str:
        """Return SQL of all values that are no gaps, in one column v with their columns in c."""
        return (
            f"(select c, trim(v) as v from (unpivot {rows} on columns(*) into name c value v) "
            f"where not {is_gap('v')})"
        )


def _sample(rows: str, columns: Sequence[int]) -> str:
    """Return SQL of some columns of the first rows."""
    return f"(select {', '.join(f'c{i}' for i in columns)} from {rows} limit {SAMPLE})"


def _by_notation(notations: Sequence[Notation], counts: Sequence[int]) -> Fitting:
    # DuckDB counts null where no value of a column is one of the notation.
    values, codes, *pairs = [n or 0 for n in counts or (0, 0, *(0, 0) * len(notations))]
    return {
        notation: NotationCounts(values, codes, *pairs[2 * at : 2 * at + 2])
        for at, notation in enumerate(notations)
    }


class Evidence:
    """What the columns that can be read in one way only say about the others.

    Parameters
    ----------
    columns : iterable of Fitting
        The notations that fit each column.
    """

    def __init__(self, columns: Iterable[Fitting]) -> None:
        best = [_best(found) for found in columns]
        sure = [{w.decimal for w in found} for found in best if not _is_whole(found)]
        self.decimals = {decimal for marks in sure if len(marks) == 1 for decimal in marks}
        dates = [set(found) & {DAY_FIRST, MONTH_FIRST} for found in best]
        dollars = any(w.unit in DOLLARS for found in best for w in found)
        self.month_first = {DAY_FIRST} not in dates and ({MONTH_FIRST} in dates or dollars)

    def chosen(self, found: Fitting) -> Notation:
        """Choose one of the notations that fit a column."""
        best = _best(found)
        if _is_whole(best):
            return POINT
        if self.month_first and MONTH_FIRST in best:
            return MONTH_FIRST
        if all(counts.narrow == counts.fits for counts in best.values()):  # no decimal mark
            return next((w for w in best if w.decimal == "."), next(iter(best)))
        for decimal in (",", "."):
            if decimal in self.decimals:
                return next((w for w in best if w.decimal == decimal), next(iter(best)))
        return next(iter(best))


def _best(found: Fitting) -> Fitting:
    """Return the notations that fit the most values."""
    most = max((counts.fits for counts in found.values()), default=0)
    return {notation: counts for notation, counts in found.items() if counts.fits == most}


def _is_whole(found: Fitting) -> bool:
    """Return True for whole numbers without any signs."""
    return POINT in found and found[POINT].narrow == found[POINT].fits
