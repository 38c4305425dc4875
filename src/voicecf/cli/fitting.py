"""Fit an explainer to files: choose the columns, build the pipeline, learn in passes."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
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
from voicecf.files.badrows import unusable
from voicecf.files.spelling import is_text, respelled, spellings
from voicecf.files.table import Table
from voicecf.rules.rule import number_of
from voicecf.shark import SHARK
from voicecf.streaming import fit
from voicecf.voice import VoICE

__all__ = ["Columns", "doubts", "fitted", "unfitted", "usable", "with_levels"]

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler}
# A text column with more distinct values than this in the first rows is no category, but names.
NAMES = 100
# Rows that are read at once.
AT_ONCE = 1 << 16


@dataclass(frozen=True)
class Columns:
    """The columns that are clustered, as numbers or as categories; notes say why others are not.

    `levels` are those of categories some of whose texts are spellings of others.
    """

    numbers: list[str]
    categories: list[str]
    notes: list[str]
    levels: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, options: Namespace) -> Columns:
        """Sort the columns of files by their types."""
        schema, category = table.schema, options.category
        for option in ("ignore", "category"):
            for name in getattr(options, option):
                known_column(name, schema.names, f"--{option}")
        empty = [name for name in table.empty if table.n_rows and name not in options.ignore]
        ignore = {*options.ignore, *empty}
        both = ignore & set(category)
        if both:
            raise OptionError(
                f"{listed(both)} cannot be in both --ignore and --category; drop it from one."
            )
        numbers, categories, others = [], [], []
        for one in schema:
            if one.name in ignore:
                continue
            if one.name in category or _is_category(one.type):
                categories.append(one.name)
            elif pa.types.is_integer(one.type) or pa.types.is_floating(one.type):
                numbers.append(one.name)
            else:
                others.append(f"{one.name!r} ({one.type})")
        if not numbers and not categories:
            raise DataError(
                "no column is left to cluster: segments need at least one column of numbers or "
                "text that is not in --ignore."
            )
        notes = [f"not used, as they have no values: {listed(empty)}"] if empty else []
        notes += [f"not used, as neither numbers nor text: {', '.join(others)}"] if others else []
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


def unfitted(columns: Columns, options: Namespace) -> VoICE:
    """Return an unfitted explainer of a pipeline for the given columns."""
    if options.weights == "shark":
        model: Any = SHARK(options.k, random_state=options.seed)
    else:
        model = KMeans(options.k, n_init=10, random_state=options.seed)
    steps: list[Any] = []
    if options.missing == "fill" and columns.numbers:
        steps.append(SimpleImputer(strategy="median"))
    if options.scale != "none" and columns.numbers:
        steps.append(SCALERS[options.scale]())
    if columns.categories:
        transformers: list[Any] = [("text", OneHotEncoder(), columns.categories)]
        if columns.numbers:
            transformers.insert(0, ("numbers", _one_step(steps), columns.numbers))
        steps = [ColumnTransformer(transformers, sparse_threshold=0)]
    contraction = options.contraction
    if contraction != "retain":
        contraction = number_of(contraction, "--contraction")
    return VoICE(
        make_pipeline(*steps, model) if steps else model, contraction=contraction,
        retain=options.retain, bounds="data" if options.box == "data" else None,
        margin=options.margin,
    )  # fmt: skip


def _one_step(steps: list[Any]) -> Any:
    if not steps:
        return "passthrough"
    return steps[0] if len(steps) == 1 else make_pipeline(*steps)


def usable(table: Table, columns: Columns, options: Namespace) -> Iterator[pa.Table]:
    """Read the clustered columns of a table, without unusable rows; raise if those are fatal."""
    fill = options.missing == "fill"
    for chunk in table.parts(AT_ONCE):
        rows, names = chunk.table, columns.every
        if fill:  # a number that is missing is filled in, an infinite one is not
            names = columns.numbers
            rows = pa.table({name: pc.fill_null(rows[name], 0) for name in names})
        gaps = unusable(rows, names, chunk.first)
        if options.bad_rows == "stop":
            table.refuse(chunk.wrong if options.missing == "drop" else {**gaps, **chunk.wrong})
        left, numbers = chunk.without({**gaps, **chunk.wrong})
        if len(numbers):
            yield respelled(left.select(columns.every), columns.levels)


def with_levels(columns: Columns, table: Table, options: Namespace) -> Columns:
    """Read spellings of a level that differ in case or blanks alone as one, and note which."""
    texts = [name for name in columns.categories if is_text(table.schema.field(name).type)]
    if options.spellings == "keep" or not texts:
        return columns
    counts: dict[str, Counter[str]] = {name: Counter() for name in texts}
    for rows in usable(table, columns, options):
        for name, count in counts.items():
            for one in pc.value_counts(rows[name].drop_null()).to_pylist():
                count[one["values"]] += one["counts"]
    notes, levels = list(columns.notes), {}
    for name, count in counts.items():
        if read := spellings(count):
            some = {*read.values()}
            levels[name] = [text for text in count if text not in read]
            notes.append(f"{len(read) + len(some)} spellings of {name} are read as {len(some)}")
    return replace(columns, notes=notes, levels=levels)


def fitted(table: Table, columns: Columns, options: Namespace) -> VoICE:
    """Fit an explainer to the rows of files, with a bar for each pass over them."""
    rows = partial(usable, table, columns, options)
    if next(rows(), None) is None:
        raise DataError("there are no rows to learn segments from.")
    voice = unfitted(columns, options)
    try:
        if options.missing == "fill":
            # Streaming would turn None into NaN, which OneHotEncoder treats as another level.
            return voice.fit(pa.concat_tables(rows()).combine_chunks())
        hidden = True if options.quiet else None  # None: hidden unless there is a terminal
        with tqdm(total=table.n_rows, unit=" rows", leave=False, disable=hidden) as bar:
            return fit(voice, rows, progress=partial(_drawn, bar))
    except VoiceError:
        raise
    except ValueError as error:  # raised by scikit-learn
        raise DataError(f"the segments cannot be learned: {str(error).splitlines()[0]}") from None


def _drawn(bar: Any, turn: int, n: int) -> None:
    """Draw how far a pass over the rows is."""
    bar.set_description(f"learning, pass {turn}", refresh=False)
    bar.n = n
    bar.update(0)


def doubts(table: Table, columns: Columns, category: list[str]) -> list[str]:
    """Check the first rows: refuse names as a category, return notes on numbers that count rows."""
    head = next(iter(table), None)
    if head is None or head.num_rows < 3:
        return []
    for name in columns.categories:
        count = len(head[name].unique())
        if count > NAMES and name not in category:
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
