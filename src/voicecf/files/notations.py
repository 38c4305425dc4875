"""How texts become values: numbers with their signs, money, per cent, dates."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

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
    >>> from voicecf.files.notations import notation_of
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
