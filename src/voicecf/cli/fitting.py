"""Fit an explainer to files: choose the columns, build the pipeline, learn in passes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, StandardScaler
from tqdm.auto import tqdm

from voicecf.errors import DataError, OptionError, VoiceError, known_column, listed
from voicecf.files.badrows import BadRowError, unusable
from voicecf.files.table import Table
from voicecf.shark import SHARK
from voicecf.streaming import fit
from voicecf.voice import VoICE

__all__ = ["Choice", "Columns", "Selected", "fitted", "unfitted"]

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler}
# A text column with more distinct values than this in the first rows is no category, but names.
NAMES = 100
# Rows that are read at once.
AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Choice:
    """Options of the clustering.

    Attributes
    ----------
    k : int
        Number of clusters.
    weights : "none" or "shark"
        Plain k-means, or with learned feature weights.
    scale : "standard", "minmax" or "none"
    missing : "stop", "drop" or "fill"
        Missing values make a bad row, drop the row, or are filled in: numbers by the median, while
        for a category missing is a level of its own.
    ignore, category : tuple of str
        Columns that are copied but not clustered; columns that are categories, whatever their type.
    seed : int
    options : dict
        Options of `VoICE`: contraction, retain, bounds, margin.
    """

    k: int = 3
    weights: str = "none"
    scale: str = "standard"
    missing: str = "stop"
    ignore: tuple[str, ...] = ()
    category: tuple[str, ...] = ()
    seed: int = 0
    options: dict[str, Any] | None = None


@dataclass(frozen=True)
class Columns:
    """The columns that are clustered, as numbers or as categories; notes say why others are not."""

    numbers: list[str]
    categories: list[str]
    notes: list[str]

    @classmethod
    def of(cls, schema: pa.Schema, choice: Choice) -> Columns:
        """Sort the columns of files by their types."""
        names = schema.names
        for option in ("ignore", "category"):
            for name in getattr(choice, option):
                known_column(name, names, f"--{option}")
        both = set(choice.ignore) & set(choice.category)
        if both:
            raise OptionError(
                f"{listed(both)} cannot be in both --ignore and --category; drop it from one."
            )
        numbers, categories, others = [], [], []
        for field in schema:
            if field.name in choice.ignore:
                continue
            if field.name in choice.category or _is_category(field.type):
                categories.append(field.name)
            elif pa.types.is_integer(field.type) or pa.types.is_floating(field.type):
                numbers.append(field.name)
            else:
                others.append(f"{field.name!r} ({field.type})")
        if not numbers and not categories:
            raise DataError(
                "no column is left to cluster: segments need at least one column of numbers or "
                "text that is not in --ignore."
            )
        notes = [f"not used, as neither numbers nor text: {', '.join(others)}"] if others else []
        return cls(numbers, categories, notes)

    @property
    def every(self) -> list[str]:
        """All columns that are clustered."""
        return [*self.numbers, *self.categories]


def _is_category(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)
    )


def unfitted(columns: Columns, choice: Choice) -> VoICE:
    """Return an unfitted explainer of a pipeline for the given columns.

    Examples
    --------
    >>> from voicecf.cli.fitting import Choice, Columns, unfitted
    >>> voice = unfitted(Columns(["age", "income"], [], []), Choice(k=4, scale="none"))
    >>> voice.model
    KMeans(n_clusters=4, n_init=10, random_state=0)
    """
    if choice.weights == "shark":
        model: Any = SHARK(choice.k, random_state=choice.seed)
    else:
        model = KMeans(choice.k, n_init=10, random_state=choice.seed)
    steps: list[Any] = []
    if choice.missing == "fill" and columns.numbers:
        steps.append(SimpleImputer(strategy="median"))
    if choice.scale != "none" and columns.numbers:
        steps.append(SCALERS[choice.scale]())
    options = choice.options or {}
    if not columns.categories:
        return VoICE(make_pipeline(*steps, model) if steps else model, **options)
    transformers: list[Any] = [("text", OneHotEncoder(), columns.categories)]
    if columns.numbers:
        transformers.insert(0, ("numbers", _one_step(steps), columns.numbers))
    columns_step = ColumnTransformer(transformers, sparse_threshold=0)
    return VoICE(make_pipeline(columns_step, model), **options)


def _one_step(steps: list[Any]) -> Any:
    if not steps:
        return "passthrough"
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


class Selected:
    """The clustered columns of a table, without unusable rows; can be iterated several times.

    Parameters
    ----------
    table : Table
    columns : Columns
    missing : "stop", "drop" or "fill"
    bad_rows : "stop" or "skip"
    """

    def __init__(self, table: Table, columns: Columns, missing: str, bad_rows: str) -> None:
        self.table, self.columns = table, columns
        self.missing, self.bad_rows = missing, bad_rows

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield tables of usable rows."""
        for chunk in self.table.parts(AT_ONCE):
            gaps = self._gaps(chunk.table)
            fatal: dict[int, str | int] = {**chunk.wrong}
            if self.missing != "drop":
                fatal = {**gaps, **fatal}
            if fatal and self.bad_rows == "stop":
                first = min(fatal)
                raise BadRowError(self.table.bad_row(chunk.first + first, fatal[first]))
            usable, rows = chunk.without({*gaps, *chunk.wrong})
            if len(rows):
                yield usable.select(self.columns.every)

    def _gaps(self, table: pa.Table) -> dict[int, str]:
        """Return the rows that lack a value, unless it is filled in, or have an infinite one."""
        if self.missing != "fill":
            return unusable(table, self.columns.every)
        filled = pa.table({n: pc.fill_null(table[n], 0) for n in self.columns.numbers})
        return unusable(filled, self.columns.numbers)


def fitted(voice: VoICE, rows: Selected, progress: bool = False) -> VoICE:
    """Fit an explainer to the rows of files, with a bar for each pass over them."""
    if next(iter(rows), None) is None:
        raise DataError("there are no rows to learn segments from.")
    try:
        if rows.missing == "fill":
            # Streaming would turn None into NaN, which OneHotEncoder treats as another level.
            return voice.fit(pa.concat_tables(rows).combine_chunks())
        with tqdm(
            total=rows.table.n_rows, unit=" rows", leave=False, disable=None if progress else True
        ) as bar:
            return fit(voice, rows, progress=lambda turn, n: _drawn(bar, turn, n))
    except VoiceError:
        raise
    except ValueError as error:  # raised by scikit-learn
        raise DataError(f"the segments cannot be learned: {str(error).splitlines()[0]}") from None


def _drawn(bar: Any, turn: int, n: int) -> None:
    """Draw how far a pass over the rows is."""
    bar.set_description(f"learning, pass {turn}", refresh=False)
    bar.n = n
    bar.update(0)


def doubts(table: Table, columns: Columns, choice: Choice) -> list[str]:
    """Check the first rows: refuse names as a category, return notes on numbers that count rows."""
    head = next(iter(table), None)
    if head is None or head.num_rows < 3:
        return []
    for name in columns.categories:
        count = len(head[name].unique())
        if count > NAMES and name not in choice.category:
            raise DataError(
                f"column {name!r} has {count:,} different texts in the first {head.num_rows:,} "
                "rows, as a column of names has. Leave it out of the segments with "
                f"--ignore {name!r}, or use it as a category with --category {name!r}."
            )
    counting = [name for name in columns.numbers if _counts_rows(head[name])]
    return [
        f"column {name!r} just counts the rows; unless it is a measurement, leave it out of the "
        f"segments with --ignore {name!r}"
        for name in counting
    ]


def _counts_rows(column: Any) -> bool:
    if not pa.types.is_integer(column.type) or column.null_count:
        return False
    values = np.asarray(pc.cast(column, pa.int64(), safe=False))
    return bool((np.diff(values) == 1).all())
