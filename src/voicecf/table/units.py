"""Units of columns, and numbers that are written with them."""

from __future__ import annotations

from typing import Any, Protocol
from unicodedata import category

from voicecf.table.wording import exact, figure, legible

# Money by its code; signs of money are known by what Unicode says of them.
CODES = (
    "AED ARS AUD BDT BGN BHD BRL CAD CHF CLP CNY COP CRC CZK DKK DOP DZD EGP ETB EUR GBP GEL GHS "
    "HKD HUF IDR ILS INR ISK JOD JPY KES KRW KWD KZT LKR MAD MXN MYR NGN NOK NPR NZD OMR PEN PHP "
    "PKR PLN PYG QAR RON RSD RUB SAR SEK SGD THB TND TRY TWD TZS UAH UGX USD UYU UZS VND XAF XOF "
    "ZAR ZMW"
)
CENTS = 2


class Measured(Protocol):
    """What has a unit, empty if it is not known, such as a column."""

    @property
    def unit(self) -> str:
        """What its numbers are of: "€", "kg", "%"."""

    @property
    def whole(self) -> bool:
        """Whether its values are whole numbers."""


def has_sign(unit: str) -> bool:
    """Tell whether a unit is a sign of money, such as $, € or US$, which stands before numbers."""
    return bool(unit) and category(unit[-1]) == "Sc" and unit[:-1] == unit[:-1].upper()


def is_money(unit: str) -> bool:
    """Tell whether a unit is money, by its sign or its code."""
    return has_sign(unit) or unit in CODES.split()


def has_cents(of: Measured) -> bool:
    """Tell whether the numbers of a column are money with cents."""
    return not of.whole and is_money(of.unit)


def with_unit(text: str, of: Measured) -> str:
    """Write a number that stands as text with its unit; money has two decimals, or more.

    Signs of money stand before the number, every other unit after it.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from voicecf.table.column import Column
    >>> from voicecf.table.units import with_unit
    >>> basket = Column("basket", ("basket",), [0], unit="€")
    >>> with_unit("55.8", basket), with_unit("-3", basket)
    ('€55.80', '-€3.00')
    >>> [with_unit("12.5", replace(basket, unit=unit)) for unit in ("EUR", "kg", "%", "")]
    ['12.50 EUR', '12.5 kg', '12.5 %', '12.5']
    """
    if not of.unit or not text[-1].isdigit():  # missing, any
        return text
    whole, point, rest = text.partition(".")
    if is_money(of.unit) and "e" not in text and (point or not of.whole):
        text = f"{whole}.{rest:0<{CENTS}}"
    if not has_sign(of.unit):
        return f"{text} {of.unit}"
    minus = "-" * text.startswith("-")
    return f"{minus}{of.unit}{text.removeprefix('-')}"


def amount(value: Any, of: Measured) -> str:
    """Write a number of a column exactly, with its unit."""
    return with_unit(exact(value), of)


def told(value: float, of: Measured, digits: int) -> str:
    """Write a number of a column without its unit in so many digits, or to the cent."""
    cents = has_cents(of) and abs(value) >= 10.0**-CENTS
    return f"{value:,.{CENTS}f}" if cents else figure(value, digits)


def labelled(name: Any, of: Measured) -> str:
    """Return the name of a column with its unit, as an axis has it: "basket (€)"."""
    return f"{legible(name)} ({of.unit})" if of.unit else legible(name)
