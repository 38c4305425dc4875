"""Tables to begin with, so that nobody needs a file of their own to see what the app does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from voicecf import datasets
from voicecf.app.data.reading import ReadTable


@dataclass(frozen=True)
class Example:
    """A table that comes along.

    Attributes
    ----------
    name : str
    about : str
        A sentence or two.
    make : callable
        Makes it.
    """

    name: str
    about: str
    make: Callable[[], ReadTable]


def customers() -> ReadTable:
    """Return the invented customers."""
    return ReadTable(
        "customers.csv", datasets.customers(), (), "example:customers", "datasets.customers()"
    )


def wines() -> ReadTable:
    """Return the wines of the paper, with readable names."""
    frame = datasets.load("wine").frame.rename(columns=lambda name: name.replace("_", " "))
    source = "datasets.load('wine').frame.rename(columns=lambda name: name.replace('_', ' '))"
    return ReadTable("wine.csv", frame, (), "example:wine", source)


EXAMPLES = (
    Example(
        "Customers",
        "600 invented customers: age, visits, spending, income, job, channel.",
        customers,
    ),
    Example("Wine", "178 Italian wines, 13 chemical measurements each, as in scikit-learn.", wines),
)
