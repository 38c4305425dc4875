"""What the text columns of CSV files hold: how values are written, decided column by column."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from voicecf.errors import OptionError
from voicecf.files.text import quoted

# What stands for no value in a column of numbers or dates: nothing, or one of these.
GAP = r"\s*(#?N/A|n/a|NA|NaN|nan|NULL|null|None|-|\?)?\s*"
# How much of a wrong value is shown.
SHOWN = 60
# Spaces and apostrophes as they stand between thousands.
SPACES, APOSTROPHES = " \u00a0\u202f", "'\u2019"
MINUS = "\u2212"
# Signs of currencies, longer ones first: "US$" is not "$".
CURRENCIES = (
    "US$", "A$", "C$", "R$", "SFr.", "Fr.", "kr", "zł", "Kč", "Ft", "lei", *"$€£¥₹₩₺₽₫₪฿₴₦",
    "USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "AUD", "CAD", "NZD", "SEK", "NOK", "DKK",
    "PLN", "CZK", "HUF", "RON", "TRY", "RUB", "BRL", "MXN", "ZAR", "KRW", "SGD", "HKD", "THB",
)  # fmt: skip
CURRENCY = "|".join(re.escape(sign) for sign in CURRENCIES)
PER_CENT = "%"
DOLLARS = ("$", "US$", "USD")
MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:tember)?|"
    "oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
CLOCK = r"\d{1,2}:\d{2}(?::\d{2})?"
# Times of day as DuckDB has them, after a date.
TIMES = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
# Decimal sign and thousands sign, and what to call numbers with these.
SIGNS = {
    (".", ","): "thousands commas",
    (",", "."): "decimal comma",
    (".", " "): "thousands spaces",
    (",", " "): "thousands spaces and decimal comma",
    (".", "'"): "thousands apostrophes",
}
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


def is_gap(c: str) -> str:
    """Return SQL that tells whether a value of a column of numbers or dates stands for none."""
    return f"regexp_full_match({c}, {quoted(GAP)})"


@dataclass(frozen=True)
class Notation:
    """How the values of a text column are written.

    Attributes
    ----------
    word : str
        What it is called, by users as well.
    plain : str
        SQL that turns the text `{c}` into what DuckDB reads as such a value: -1234.5, 2019-04-03.
    pattern : str
        Regular expression of the texts that are such values; empty if DuckDB reads no others.
    types : tuple of str
        Types of SQL: one for all such values, and one for whole numbers, or days without a time.
    noun : str
        What a value is.
    decimal : "", "." or ","
    unit : str
        "%", or the sign of a currency.
    narrow : bool
        Whether all values of a column fit the narrow type.
    """

    word: str
    plain: str = "{c}"
    pattern: str = ""
    types: tuple[str, str] = ("double", "bigint")
    noun: str = "number"
    decimal: str = ""
    unit: str = ""
    narrow: bool = False

    @property
    def is_text(self) -> bool:
        """True if the texts stay what they are."""
        return self.word == "text"

    @property
    def is_number(self) -> bool:
        """True of numbers, with a unit or without."""
        return self.types[0] == "double"

    @property
    def is_date(self) -> bool:
        """True of dates, with a time of day or without."""
        return self.types[0] == "timestamp"

    def value(self, c: str, kind: str = "") -> str:
        """Return SQL of the values in a column, in their type or another; null where none is."""
        return f"try_cast({self.plain.format(c=c)} as {kind or self.types[self.narrow]})"

    def fits(self, c: str) -> str:
        """Return SQL that tells whether a text is written like this."""
        if self.pattern:
            return f"regexp_full_match({c}, {quoted(self.pattern)})"
        return f"not contains({c}, '_')"  # DuckDB takes 2024_1 for a number

    def is_narrow(self, c: str) -> str:
        """Return SQL that tells whether a text fits the narrow type: whole, or without a time."""
        if self.is_date:
            return f"not contains({c}, ':')"
        return f"cast({self.value(c, 'bigint')} as varchar) = {self.plain.format(c=c)}"

    def is_wrong(self, c: str, value: str) -> str:
        """Return SQL that tells values that are neither of this kind nor gaps."""
        tests = [f"{value} is null and {c} is not null and not {is_gap(c)}"]
        tests.append(f"{value} is not null and not {self.fits(c)}")
        if self.narrow:  # DuckDB rounds 1.5 to a whole number, and a time to a day
            tests.append(f"{self.value(c, self.types[0])} != {value}")
        return " or ".join(f"({test})" for test in tests)

    def why(self, name: str, text: str) -> str:
        """Say what is wrong with a text of another kind in a column."""
        whole = "whole " if self.narrow and self.is_number else ""
        return f"{name} is {text[:SHOWN]!r}, which is no {whole}{self.noun}"


TEXT = Notation("text", types=("varchar", "varchar"), noun="text")
POINT = Notation("number", decimal=".")


def _number(decimal: str, thousands: str, unit: str = "") -> Notation:
    """Return how numbers with such signs are written."""
    group = {" ": f"[{SPACES}]", "'": f"[{APOSTROPHES}]"}.get(thousands, re.escape(thousands))
    mark = re.escape(decimal)
    whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)"
    digits = rf"(?:{whole}(?:{mark}\d*)?(?:[eE][+-]?\d+)?|{mark}\d+)"
    space, plus, sign = f"[{SPACES}]*", f"[+{MINUS}-]?", re.escape(unit)
    name = SIGNS[decimal, thousands]
    rest = f" with {name}" if (decimal, thousands) != (".", ",") else ""
    if unit == PER_CENT:
        word, noun, pattern = f"per cent{rest}", "per cent", f"{plus}{digits}{space}%"
    elif unit:
        word, noun = f"money in {unit}{rest}", "amount of money"
        amount = f"(?:{sign})?{space}{plus}{digits}{space}(?:{sign})?"
        pattern = rf"{plus}{space}{amount}|\({amount}\)"
    else:
        word, noun = f"number with {name}", "number"
        # In brackets, (45.10) is a negative amount, but (1) may count something.
        pattern = rf"{plus}{digits}|\({whole}{mark}\d\d\)"
    gone = f"){SPACES}{thousands}" + APOSTROPHES * (thousands == "'") + unit * (len(unit) == 1)
    moved, to = (f"({MINUS},", "--.") if decimal == "," else (f"({MINUS}", "--")
    text = f"replace({{c}}, {quoted(unit)}, '')" if len(unit) > 1 else "{c}"
    plain = f"translate({text}, {quoted(moved + gone)}, {quoted(to)})"
    return Notation(
        word, plain, f"{space}(?:{pattern}){space}", noun=noun, decimal=decimal, unit=unit
    )


DECIMAL_COMMA = _number(",", ".")


def number_notations(units: Iterable[str], comma_first: bool) -> list[Notation]:
    """Return how numbers may be written besides as plain ones, the likeliest first.

    Parameters
    ----------
    units : iterable of str
        Besides none: per cent, or signs of currencies.
    comma_first : bool
        Whether 1,234 is rather 1.234 than 1234.
    """
    signs = sorted(SIGNS, key=lambda pair: (pair[0] == ",") != comma_first)
    return [_number(*pair, unit) for unit in ("", *units) for pair in signs]


def _date(word: str, pattern: str, text: str, formats: Iterable[str]) -> Notation:
    """Return dates in formats of DuckDB, each with all times of day."""
    every = [quoted(day + time) for day in formats for time in TIMES]
    time = rf"(?:,?\s+{CLOCK}(?: ?[AaPp][Mm])?)?"
    return Notation(
        word, f"try_strptime({text}, [{', '.join(every)}])", rf"\s*(?:{pattern}){time}\s*",
        ("timestamp", "date"), "date",
    )  # fmt: skip


ISO = Notation(
    "date",
    "(translate(trim({c})[:10], './', '--') || trim({c})[11:])",
    r"\s*\d{4}(?:-\d{1,2}-|/\d{1,2}/|\.\d{1,2}\.)\d{1,2}"
    rf"(?:[T ]{CLOCK}(?:\.\d+)?(?: ?Z| ?UTC|[+-]\d{{2}}:?\d{{2}})?)?\s*",
    ("timestamp", "date"),
    "date",
)
DASHED = "translate(trim({c}), './,', '--')"
DAY_FIRST = _date(
    "date, day first",
    r"\d{1,2}(?:\.\d{1,2}\.|/\d{1,2}/|-\d{1,2}-)\d{4}",
    DASHED,
    ["%d-%m-%Y"],
)
MONTH_FIRST = _date(
    "date, month first", r"\d{1,2}(?:/\d{1,2}/|-\d{1,2}-)\d{4}", DASHED, ["%m-%d-%Y"]
)
IN_WORDS = _date(
    "date, month in words",
    rf"(?i:\d{{1,2}}\.?[ -](?:{MONTHS})\.?[ -]\d{{4}}|(?:{MONTHS})\.? \d{{1,2}},? \d{{4}})",
    r"regexp_replace(trim({c}), '[.,\s-]+', ' ', 'g')",
    ["%d %b %Y", "%d %B %Y", "%b %d %Y", "%B %d %Y"],
)
DATES = (ISO, DAY_FIRST, MONTH_FIRST, IN_WORDS)


def notation_of(word: str) -> Notation:
    """Return the notation that is called so.

    Examples
    --------
    >>> from voicecf.files.kinds import notation_of
    >>> notation_of("money in € with decimal comma").unit
    '€'
    """
    money = re.fullmatch(r"money in (\S+)( with .*)?", word)
    units = [PER_CENT, *([money[1]] if money and money[1] in CURRENCIES else [])]
    known = {one.word: one for one in (TEXT, POINT, *number_notations(units, False), *DATES)}
    if word not in known:
        raise OptionError(
            f"kinds: {word!r} is no way to read a column; use one of {', '.join(map(repr, known))} "
            "or 'money in $', or 'int64' or 'double' for numbers however written."
        )
    return known[word]


def names_codes(name: str) -> bool:
    """Return True if a column of this name holds codes, such as ``zip`` or ``PhoneNumber``.

    Examples
    --------
    >>> from voicecf.files import names_codes
    >>> names_codes("PhoneNumber"), names_codes("visits")
    (True, False)
    """
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
        self.tried = {i: dict(counts) for i, counts in plain.items()}
        for notations, columns in self._candidates(rows, plain).items():
            for i, counts in self._counts(rows, columns, notations).items():
                self.tried[i] |= counts
        best = [_best(self._fit(i, counts)) for i, counts in self.tried.items()]
        # What the columns that can be read in one way only say about the others.
        sure = [{w.decimal for w in found} for found in best if not _is_whole(found)]
        marks = {decimal for decimals in sure if len(decimals) == 1 for decimal in decimals}
        dates = [set(found) & {DAY_FIRST, MONTH_FIRST} for found in best]
        dollars = any(w.unit in DOLLARS for found in best for w in found)
        month_first = {DAY_FIRST} not in dates and ({MONTH_FIRST} in dates or dollars)
        kinds = []
        for found, stated in zip(best, self.stated, strict=True):
            notation = _chosen(found, marks, month_first)
            narrow = notation in found and found[notation].narrow == found[notation].fits
            if not found and stated in ANY_NUMBER:
                notation = POINT
            narrow = ANY_NUMBER.get(stated or "", narrow and not notation.is_text)
            kinds.append(replace(notation, narrow=narrow))
        return kinds, all(self.stated[i] is not None for i in self.empty)

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


def _chosen(best: Fitting, marks: set[str], month_first: bool) -> Notation:
    """Choose one of the notations that fit a column best, by what other columns have.

    `marks` are their decimal marks; `month_first` if dates are written so. Without any it is text.
    """
    if _is_whole(best):
        return POINT
    if month_first and MONTH_FIRST in best:
        return MONTH_FIRST
    no_mark = all(counts.narrow == counts.fits for counts in best.values())
    wanted = "." if no_mark else next((mark for mark in (",", ".") if mark in marks), None)
    return next((w for w in best if w.decimal == wanted), next(iter(best), TEXT))


def _best(found: Fitting) -> Fitting:
    """Return the notations that fit the most values."""
    most = max((counts.fits for counts in found.values()), default=0)
    return {notation: counts for notation, counts in found.items() if counts.fits == most}


def _is_whole(found: Fitting) -> bool:
    """Return True for whole numbers without any signs."""
    return POINT in found and found[POINT].narrow == found[POINT].fits
