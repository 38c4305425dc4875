"""What each column is good for: a number, a category, or to be set aside, and why."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
import pandas as pd
from pandas.api import types

from voicecf.errors import VoiceError
from voicecf.files import names_codes
from voicecf.output import exact, shortened

# Levels of a category that a table can still show, and that one-hot columns are bearable for.
MOST_LEVELS = 20
# Columns of numbers that are looked at together, without being told otherwise.
MOST_FEATURES = 60
# Where a capital letter begins another word: customerId.
CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
# Names of what tells rows apart if every row has its own, and of what does so in any case.
IDENTITY = re.compile(
    r"(^|[_\s.-])(id|ids|key|uuid|guid|nr|no|number|index|rowid)($|[_\s.-])", re.I
)
ID = re.compile(
    r"(^|[_\s.-])(id|ids|uuid|guid)$|^(user|customer|client|member|product|order|item)_?id$"
    r"|(kunden|bestell|auftrags|artikel|mitglieds|rechnungs)_?(nr|nummer|id)$",
    re.I,
)
BIRTH = re.compile(r"(^|[\W_])(birth\w*|born|dob|geburt\w*|geboren)($|[\W_])", re.I)
# Columns that are what they are, and those that only time changes.
INBORN = re.compile(
    r"(^|[\W_])(age|alter|gender|sex|geschlecht|race|ethnicity|nationality|yob)($|[\W_])", re.I
)
TENURE = re.compile(r"(^|[\W_])(tenure|seniority)($|[\W_])|(^|[\W_])since$", re.I)
YEAR = re.compile(r"(^|[\W_])(year|yr|jahr|baujahr|founded|established|built)($|[\W_])", re.I)
LABEL = re.compile(
    r"^(label|labels|class|classes|target|y|segment|cluster|outcome|species|diagnosis"
    r"|churn|churned|attrition|converted|conversion|response|responded|defaulted|fraud|survived)$",
    re.I,
)


class Role(StrEnum):
    """What a column is used as."""

    NUMBER = "Number"
    WHOLE = "Whole number"
    CATEGORY = "Category"
    YEARS = "Years since"
    DAYS = "Days since"
    ASIDE = "Set aside"


# What dates are used as: the time between them and the day on which the table was taken.
DURATIONS = (Role.YEARS, Role.DAYS)


class RoleError(VoiceError):
    """A column cannot be used as was asked."""


@dataclass(frozen=True)
class TableColumn:
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
    why_fixed : str
        Why nobody can change it, as of an age; empty if it can be changed, as far as one knows.
    """

    name: str
    role: Role
    reason: str
    missing: int
    examples: str
    identity: bool = False
    why_fixed: str = ""

    @property
    def fixed(self) -> bool:
        """Whether it is nothing that anybody can change, such as an age."""
        return bool(self.why_fixed)

    @property
    def label(self) -> str:
        """What it is called where it is used: a date becomes the years or days since then."""
        return f"{self.role.lower()} {self.name}" if self.role in DURATIONS else self.name


def guess_columns(frame: pd.DataFrame) -> tuple[TableColumn, ...]:
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


def _spared(columns: Iterator[TableColumn]) -> Iterator[TableColumn]:
    """Set aside what would be too many columns to look at; the user may take them back."""
    used = 0
    for column in columns:
        used += column.role is not Role.ASIDE
        if used > MOST_FEATURES and column.role is not Role.ASIDE:
            reason = f"beyond the first {MOST_FEATURES} columns; take it in if it matters"
            column = replace(column, role=Role.ASIDE, reason=reason)
        yield column


def _guess(name: str, values: pd.Series) -> TableColumn:
    present = _present(values)
    missing = len(values) - len(present)
    role, reason, identity = _role(name, present)
    why = _why_fixed(name, present)
    return TableColumn(name, role, reason, missing, _examples(present), identity, why)


def _why_fixed(name: str, present: pd.Series) -> str:
    """Say why nobody can change a column; empty unless its name or its dates tell."""
    words = CAMEL.sub("_", name)
    if types.is_datetime64_any_dtype(present.dtype) or TENURE.search(words):
        return "only time changes it"
    if INBORN.search(words) or BIRTH.search(words):
        return "nobody can change it"
    if YEAR.search(words) and types.is_numeric_dtype(present.dtype) and len(present):
        years = present.between(1900, 2100) & (present % 1 == 0)
        return "a year, which stays what it is" if years.all() else ""
    return ""


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
    if names_codes(name):
        return Role.ASIDE, "a code, not a quantity", distinct == len(present)
    if types.is_numeric_dtype(present.dtype):
        return _number_role(name, present, distinct)
    if types.is_datetime64_any_dtype(present.dtype):
        if BIRTH.search(name):
            return Role.YEARS, "a date of birth is an age", False
        return Role.ASIDE, "dates; use them as days or years since then", False
    if not (types.is_string_dtype(present.dtype) or isinstance(present.dtype, pd.CategoricalDtype)):
        return Role.ASIDE, "times, which are not compared", False
    return _text_role(name, present, distinct)


def _number_role(name: str, present: pd.Series, distinct: int) -> tuple[Role, str, bool]:
    numbers = present.to_numpy(dtype=np.float64)
    if not (numbers == np.rint(numbers)).all() or np.abs(numbers).max() > 2**53:
        return Role.NUMBER, "numbers with fractions", False
    unique = distinct == len(present) and len(present) > 2
    words = CAMEL.sub("_", name)
    if unique and IDENTITY.search(words):
        return Role.ASIDE, "it names rows: a different number in each", True
    if ID.search(words):
        return Role.ASIDE, "it names things, and measures nothing", False
    if unique and numbers[0] in (0, 1) and (np.diff(numbers) == 1).all():
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
        text = shortened(str(value).removesuffix(" 00:00:00"), 24)
        if text not in shown:
            shown.append(text)
    return ", ".join(shown[:3])


def with_roles(
    frame: pd.DataFrame, columns: tuple[TableColumn, ...], chosen: Mapping[str, Role]
) -> tuple[TableColumn, ...]:
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
            column = replace(column, role=role, reason="your choice")
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
    dates = types.is_datetime64_any_dtype(present.dtype)
    if role in DURATIONS and not dates:
        raise RoleError(f"Column {shown} holds no dates. Read it as dates first, if it does.")
    if role in DURATIONS:
        return
    if dates:
        raise RoleError(
            f"Column {shown} holds dates, so it cannot be a number. Use it as days or years since "
            "then, as a category, or set it aside."
        )
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
