"""From a table and its columns to rows that can be clustered, and the pipeline for them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import SHARK
from voicecf.app.data.columns import DURATIONS, Role, TableColumn
from voicecf.errors import VoiceError
from voicecf.files import spellings as spellings_of

# Share of the rows that may be left out without being asked.
BEARABLE = 0.2
# One-hot columns and numbers together that answers still come at once for.
MOST_COORDINATES = 600
SEED = 0
# Days of a year.
YEAR = 365.25
# What durations are, once they are counted.
AS_NUMBERS = {Role.YEARS: Role.NUMBER, Role.DAYS: Role.WHOLE}


# Rows from which on a clustering is begun anew less often.
MANY = 3_000


class Missing(StrEnum):
    """What happens to rows with a missing value."""

    LEAVE_OUT = "leave out"
    FILL_IN = "fill in"


class Method(StrEnum):
    """How segments are found."""

    KMEANS = "k-means"
    SHARK = "SHARK"


class PreparingError(VoiceError):
    """There is nothing to cluster; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows that can be clustered.

    Attributes
    ----------
    frame : pandas.DataFrame
        The columns in use, a row a row.
    numbers, whole, categories : tuple of str
        Its columns by what they are; `whole` are among the numbers.
    rows : array of int
        Where each row stands in the table that was read, counted from 0.
    aside : pandas.DataFrame
        The columns that are not in use, of the same rows.
    identity : str or None
        The column set aside that names rows.
    filled : bool
        Whether missing values are filled in by the pipeline.
    left_out : int
        Rows that were left out.
    durations : dict of str to (str, Role)
        Columns that count the years or days since dates, with those of the dates.
    taken : date or None
        The day up to which they are counted.
    spellings : dict of str to dict of str to str
        By category, texts that are read as another level, since case or blanks alone differ.
    """

    frame: pd.DataFrame = field(repr=False)
    numbers: tuple[str, ...]
    whole: tuple[str, ...]
    categories: tuple[str, ...]
    rows: Any = field(repr=False)
    aside: pd.DataFrame = field(repr=False)
    identity: str | None
    filled: bool
    left_out: int
    durations: dict[str, tuple[str, Role]] = field(default_factory=dict)
    taken: date | None = None
    spellings: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """Columns in use, in the order of the table."""
        return list(self.frame)

    @cached_property
    def digest(self) -> str:
        """Tells by their content whether these are the same rows, used in the same way."""
        uses = (self.numbers, self.whole, self.categories, self.filled)
        values = pd.util.hash_pandas_object(self.frame, index=False).to_numpy()
        made = hashlib.sha256(repr((self.names, uses)).encode())
        for part in (values, np.asarray(self.rows)):
            made.update(np.ascontiguousarray(part).tobytes())
        return made.hexdigest()[:32]

    @cached_property
    def levels(self) -> dict[str, list[str]]:
        """The levels of each category, sorted."""
        return {name: sorted(self.frame[name].dropna().unique()) for name in self.categories}

    def called(self, rows: Sequence[int] | NDArray[np.int64]) -> list[str]:
        """Name rows the way that their owner does: by number in the file, and by identity."""
        numbers = [f"{row + 1:,}" for row in self.rows[rows].tolist()]
        if self.identity is None:
            return numbers
        own = self.aside[self.identity].iloc[rows]
        return [f"{number} ({name})" for number, name in zip(numbers, own, strict=True)]

    def used(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the columns in use of rows of the table, in the types in which they are used."""
        frame = with_durations(frame, self.durations, self.taken or date.today())
        kinds = dict.fromkeys(self.categories, Role.CATEGORY)
        made = pd.DataFrame(
            {name: _as_role(frame[name], kinds.get(name, Role.NUMBER)) for name in self.names}
        )
        return made.assign(**{n: made[n].replace(read) for n, read in self.spellings.items()})


def usual_missing(frame: pd.DataFrame, columns: tuple[TableColumn, ...]) -> Missing:
    """Choose what to do about missing values: leave out rows, unless that would lose many."""
    used = [column.name for column in columns if column.role is not Role.ASIDE]
    lost = frame[used].isna().any(axis=1).mean() if used else 0.0
    return Missing.FILL_IN if lost > BEARABLE else Missing.LEAVE_OUT


def rows_with_gaps(frame: pd.DataFrame, columns: tuple[TableColumn, ...]) -> int:
    """Count rows that miss a value of a column in use."""
    used = [c.name for c in columns if c.role is not Role.ASIDE and c.missing]
    return int(frame[used].isna().any(axis=1).sum()) if used else 0


def prepare(
    frame: pd.DataFrame,
    columns: tuple[TableColumn, ...],
    missing: Missing = Missing.LEAVE_OUT,
    taken: date | None = None,
    *,
    merge: bool = True,
) -> Prepared:
    """Bring a table into the form that is clustered.

    Parameters
    ----------
    frame : pandas.DataFrame
    columns : tuple of TableColumn
    missing : Missing
    taken : date, optional
        The day up to which years and days since a date are counted; today if left out.
    merge : bool
        Whether levels that differ in case or blanks alone are one, named by the commonest spelling.

    Examples
    --------
    >>> import pandas as pd
    >>> from voicecf.app.data.columns import guess_columns
    >>> from voicecf.app.data.preparing import prepare
    >>> frame = pd.DataFrame({"age": [31, 45, None], "job": ["chef", "clerk", "chef"]})
    >>> prepared = prepare(frame, guess_columns(frame))
    >>> len(prepared.frame), prepared.left_out, prepared.whole
    (2, 1, ('age',))
    """
    durations = {c.label: (c.name, c.role) for c in columns if c.role in DURATIONS}
    frame = with_durations(frame, durations, taken or date.today())
    used = {c.label: AS_NUMBERS.get(c.role, c.role) for c in columns if c.role is not Role.ASIDE}
    if len(frame) < 2:
        raise PreparingError(
            "This table has one row. Segments need several: two at the very least."
        )
    if not used:
        raise PreparingError(
            "No column is left to compare rows by: all are set aside. Use at least one as a number "
            "or a category."
        )
    made = pd.DataFrame({name: _as_role(frame[name], role) for name, role in used.items()})
    texts = [name for name, role in used.items() if role is Role.CATEGORY and merge]
    found = {name: spellings_of(dict(made[name].value_counts())) for name in texts}
    spellings = {name: read for name, read in found.items() if read}
    made = made.assign(**{name: made[name].replace(read) for name, read in spellings.items()})
    whole_rows = made.notna().all(axis=1).to_numpy()
    filled = missing is Missing.FILL_IN and not whole_rows.all()
    kept = ~made.isna().all(axis=1).to_numpy() if filled else whole_rows
    made = made[kept].reset_index(drop=True)
    if len(made) < 2:
        raise PreparingError(_too_few(len(frame), len(made)))
    made = _typed(made, used)
    _check_width(made, used)
    names = {role: tuple(n for n, r in used.items() if r is role) for role in Role}
    numbers = tuple(n for n, r in used.items() if r in (Role.NUMBER, Role.WHOLE))
    return Prepared(
        made, numbers, names[Role.WHOLE], names[Role.CATEGORY], np.flatnonzero(kept),
        frame[[n for n in frame if n not in used]][kept].reset_index(drop=True),
        _identity(columns), filled, int((~kept).sum()), durations, taken, spellings,
    )  # fmt: skip


def with_durations(
    frame: pd.DataFrame, durations: Mapping[str, tuple[str, Role]], taken: date
) -> pd.DataFrame:
    """Add columns of the time since dates.

    Parameters
    ----------
    frame : pandas.DataFrame
    durations : dict of str to (str, Role)
        For each column to be added, that with the dates, and whether years or days are counted.
    taken : date
        The day up to which time is counted.
    """
    made = {}
    for label, (name, role) in durations.items():
        days = (pd.Timestamp(taken) - frame[name].dt.normalize()).dt.days
        made[label] = days if role is Role.DAYS else (days / YEAR).round(2)
    return frame.assign(**made)


def _identity(columns: tuple[TableColumn, ...]) -> str | None:
    return next((c.name for c in columns if c.identity and c.role is Role.ASIDE), None)


def _too_few(n: int, left: int) -> str:
    rows = "no row" if left == 0 else "only one row"
    return (
        f"Of {n:,} rows, {rows} has a value in every column in use. Fill in missing values, or set "
        "the columns aside that miss most."
    )


def _as_role(values: pd.Series, role: Role) -> pd.Series:
    if role is Role.CATEGORY:
        text = values.astype(object).map(str, na_action="ignore").astype(object)
        return text.where(values.notna(), None)
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    return numbers.where(np.isfinite(numbers))


def _typed(frame: pd.DataFrame, roles: Mapping[str, Role]) -> pd.DataFrame:
    """Give whole numbers a whole type where nothing is missing; text its own."""
    kinds: dict[str, Any] = {}
    for name, role in roles.items():
        if role is Role.WHOLE and frame[name].notna().all():
            kinds[name] = np.int64
    return frame.astype(kinds)


def _check_width(frame: pd.DataFrame, roles: Mapping[str, Role]) -> None:
    categories = [name for name, role in roles.items() if role is Role.CATEGORY]
    width = len(roles) - len(categories) + sum(frame[name].nunique() for name in categories)
    if width > MOST_COORDINATES:
        raise PreparingError(
            f"These {len(roles):,} columns, with a coordinate for each level of a category, make "
            f"{width:,}; the app takes up to {MOST_COORDINATES}. Set aside those that matter least."
        )


def starts(rows: int, method: Method) -> int:
    """Return how often the clustering is begun anew: seldom with many rows, for speed.

    k-means chooses its beginnings with care (k-means++), so that one is enough; SHARK draws them.
    """
    return 10 if rows <= MANY else 1 if method is Method.KMEANS else 3


def pipeline(prepared: Prepared, k: int, method: Method) -> Pipeline:
    """Build what scales, encodes and clusters the rows; not fitted yet."""
    parts: list[tuple[Any, list[str]]] = []
    if prepared.numbers:
        scale: Any = StandardScaler()
        if prepared.filled:
            scale = make_pipeline(SimpleImputer(strategy="median"), scale)
        parts.append((scale, list(prepared.numbers)))
    if prepared.categories:
        encode: Any = OneHotEncoder(sparse_output=False)
        if prepared.filled:
            filling = SimpleImputer(missing_values=None, strategy="most_frequent")
            encode = make_pipeline(filling, encode)
        parts.append((encode, list(prepared.categories)))
    model = {Method.KMEANS: KMeans, Method.SHARK: SHARK}[method]
    return make_pipeline(
        make_column_transformer(*parts),
        model(k, n_init=starts(len(prepared.frame), method), random_state=SEED),
    )
