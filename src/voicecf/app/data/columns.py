"""What each column is good for: a number, a category, or to be set aside, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from pandas.api import types

from voicecf.errors import VoiceError
from voicecf.output.wording import exact, shortened

# Levels of a category that a table can still show, and that one-hot columns are bearable for.
MOST_LEVELS = 20
# Columns of numbers that are looked at together, without being told otherwise.
MOST_FEATURES = 60
IDENTITY = re.compile(
    r"(^|[_\s.-])(id|ids|key|uuid|guid|nr|no|number|index|rowid)($|[_\s.-])", re.I
)
LABEL = re.compile(
    r"^(label|labels|class|classes|target|y|segment|cluster|outcome|species|diagnosis)$", re.I
)


class Role(StrEnum):
    """What a column is used as."""

    NUMBER = "Number"
    WHOLE = "Whole number"
    CATEGORY = "Category"
    ASIDE = "Set aside"


class RoleError(VoiceError):
    """A column cannot be used as was asked."""


@dataclass(frozen=True)
class Column:
    """A column, what it is used as, and why.

    Attributes
    ----------
    name : str
    role : Role
    reason : str
        In a few words.
    missing : int
        Rows without a value.
    examples : str
        Some of its values.
    identity : bool
        Whether it names rows, so that people may look for them by it.
    fixed : bool
        Whether it is nothing that anybody can change, such as an age.
    """

    name: str
    role: Role
    reason: str
    missing: int
    examples: str
    identity: bool = False
    fixed: bool = False


def guess_columns(frame: pd.DataFrame) -> tuple[Column, ...]:
    """Guess what every column of a table is good for.

    Examples
    --------
    >>> import pandas as pd
    >>> from voicecf.app.data.columns import guess_columns
    >>> frame = pd.DataFrame({"id": [7, 8, 9], "age": [31, 45, 38], "land": ["a", "b", "a"]})
    >>> [str(column.role) for column in guess_columns(frame)]
    ['Set aside', 'Whole number', 'Category']
    """
    return tuple(_spared(_guess(name, frame[name]) for name in frame))


def _spared(columns: Iterator[Column]) -> Iterator[Column]:
    """Set aside what would be too many columns to look at; the user may take them back."""
    used = 0
    for column in columns:
        used += column.role is not Role.ASIDE
        if used > MOST_FEATURES and column.role is not Role.ASIDE:
            reason = f"beyond the first {MOST_FEATURES} columns; take it in if it matters"
            column = Column(column.name, Role.ASIDE, reason, column.missing, column.examples)
        yield column


def _guess(name: str, values: pd.Series) -> Column:
    present = _present(values)
    missing = len(values) - len(present)
    role, reason, identity = _role(name, present)
    return Column(name, role, reason, missing, _examples(present), identity)


def _present(values: pd.Series) -> pd.Series:
    present = values.dropna()
    if types.is_float_dtype(present.dtype):
        present = present[np.isfinite(present.to_numpy(dtype=np.float64))]
    return present


def _role(name: str, present: pd.Series) -> tuple[Role, str, bool]:
    try:
        distinct = present.nunique()
    except TypeError:
        return Role.ASIDE, "lists or records, which have no distance", False
    if distinct == 0:
        return Role.ASIDE, "no values at all", False
    if distinct == 1:
        return Role.ASIDE, "the same value in every row", False
    if LABEL.match(name) and distinct <= MOST_LEVELS:
        return Role.ASIDE, "its name says that it is a label", False
    if types.is_bool_dtype(present.dtype):
        return Role.CATEGORY, "yes or no", False
    if types.is_numeric_dtype(present.dtype):
        return _number_role(name, present, distinct)
    if not (types.is_string_dtype(present.dtype) or isinstance(present.dtype, pd.CategoricalDtype)):
        return Role.ASIDE, "dates or times, which are not compared", False
    return _text_role(name, present, distinct)


def _number_role(name: str, present: pd.Series, distinct: int) -> tuple[Role, str, bool]:
    numbers = present.to_numpy(dtype=np.float64)
    if not (numbers == np.rint(numbers)).all() or np.abs(numbers).max() > 2**53:
        return Role.NUMBER, "numbers with fractions", False
    unique = distinct == len(present) and len(present) > 2
    if unique and IDENTITY.search(name):
        return Role.ASIDE, "it names rows: a different number in each", True
    if unique and (np.diff(numbers) == 1).all():
        return Role.ASIDE, "it counts the rows", True
    return Role.WHOLE, "whole numbers", False


def _text_role(name: str, present: pd.Series, distinct: int) -> tuple[Role, str, bool]:
    if distinct == len(present) and len(present) > 2:
        return Role.ASIDE, "a different text in each row", True
    if distinct <= min(MOST_LEVELS, max(2, len(present) // 2)):
        return Role.CATEGORY, f"{distinct} different texts", False
    identity = bool(IDENTITY.search(name)) or name.lower() == "name"
    return Role.ASIDE, f"{distinct:,} different texts, too many to compare", identity


def _examples(present: pd.Series) -> str:
    shown = []
    for value in present.head(50):
        text = shortened(str(value), 24)
        if text not in shown:
            shown.append(text)
    return ", ".join(shown[:3])


def with_roles(
    frame: pd.DataFrame, columns: tuple[Column, ...], chosen: Mapping[str, Role]
) -> tuple[Column, ...]:
    """Return columns with the roles that the user chose for some of them.

    Raises
    ------
    RoleError
        Where a column cannot be that, with a sentence that says why.
    """
    made = []
    for column in columns:
        role = chosen.get(column.name, column.role)
        if role is not column.role:
            _check_role(column.name, _present(frame[column.name]), role)
            column = Column(
                column.name, role, "your choice", column.missing, column.examples, column.identity
            )
        made.append(column)
    return tuple(made)


def _check_role(name: str, present: pd.Series, role: Role) -> None:
    shown = f"“{shortened(name, 40)}”"
    if role is Role.ASIDE:
        return
    if len(present) == 0:
        raise RoleError(f"Column {shown} has no values; it has to stay set aside.")
    if role is Role.CATEGORY:
        if (levels := present.astype(str).nunique()) > 10 * MOST_LEVELS:
            raise RoleError(
                f"Column {shown} has {levels:,} different values, too many for a category."
            )
        return
    if not types.is_numeric_dtype(present.dtype):
        raise RoleError(
            f"Column {shown} holds text such as “{shortened(str(present.iloc[0]), 24)}”, so it "
            "cannot be a number. Use it as a category, or set it aside."
        )
    numbers = present.to_numpy(dtype=np.float64)
    if role is Role.WHOLE and (numbers != np.rint(numbers)).any():
        broken = numbers[numbers != np.rint(numbers)][0]
        raise RoleError(
            f"Column {shown} has fractions such as {exact(broken)}; use it as a number."
        )
