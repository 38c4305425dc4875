"""Explain Arrow batches, which is what files, Spark, Ray and Dask call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from voicecf.counterfactuals import Counterfactuals
from voicecf.errors import ColumnError, OptionError, listed
from voicecf.files.spelling import is_text, respelled
from voicecf.learned.explainer import Explainer
from voicecf.parallel import Running
from voicecf.rules.allowed import as_rules
from voicecf.rules.columns import column_of
from voicecf.rules.prices import PRICE
from voicecf.rules.rules import RULES, Rules
from voicecf.status import Status
from voicecf.table.column import Column

# Columns of every answer, after the user's own; in a table their names begin with `PREFIX`.
OWN = {
    "row": pa.int64(),
    "source": pa.int32(),
    "target": pa.int32(),
    "status": pa.string(),
    "feasible": pa.bool_(),
    "cost": pa.float64(),
    "n_changed": pa.int32(),
    "rho": pa.float64(),
    "tau": pa.float64(),
    "gap": pa.float64(),
}
# One more column if alternatives were asked for, or the least price.
RANK, PRICED = {"rank": pa.int32()}, {"price": pa.float64()}
# Goes before these names, so that they are the same whatever the user's columns are called.
PREFIX = "voicecf_"
# Clusters, by their numbers, or by their names if the user has given some.
CLUSTERS = ("source", "target")
# Null where a row has no answer.
BLANK = ("cost", "n_changed", "rho", "tau", "gap", "price")
STATUSES = pa.array([status.name.lower() for status in Status], pa.string())


def explain_batches(
    voice: Explainer,
    batches: Iterable[pa.RecordBatch],
    *,
    rows_from: int = 0,
    **question: Any,
) -> Iterator[pa.RecordBatch]:
    """Answer a stream of Arrow batches, one batch for each that comes.

    An answer is the changed row, in the user's columns and types, followed by `voicecf_row`,
    `voicecf_source`, and in the same way `target`, `status`, `feasible`, `cost`, `n_changed`,
    `rho`, `tau`, `gap` (and `rank` with alternatives, `price` with that objective). Columns that
    the explainer does not know are carried along. Source and target are numbers, or names if the
    explainer has names for clusters; names are null where a row cannot be read. Where a row has no
    answer, the explainer's columns are null. All batches have one schema, whatever is in them.

    Parameters
    ----------
    voice : VoICE or CFCLUST
        Fitted.
    batches : iterable of pyarrow.RecordBatch or Table
        All with the columns and types of the first one.
    rows_from : int
        Number of the first row, in the column `voicecf_row`.
    **question
        `target` (one cluster or its name, "nearest" or "each"), `objective`, `rules` and so on, as
        of `VoICE.explain`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from voicecf import VoICE
    >>> from voicecf.files import explain_batches
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> batch = pa.record_batch({"age": [1.0, 3.5], "income": [5.0, 6.0], "id": ["a", "b"]})
    >>> (answers,) = explain_batches(voice, [batch], target=1)
    >>> answers.schema.names[:6]
    ['age', 'income', 'id', 'voicecf_row', 'voicecf_source', 'voicecf_target']
    >>> answers["voicecf_status"].to_pylist()
    ['optimal', 'already']
    """
    answering, first = None, rows_from
    for batch in batches:
        if answering is None:
            answering = Answering.of(voice, batch.schema, question)
        table = answering.table(batch)
        rows = np.arange(first, first + table.num_rows)
        yield answering.batch(answering.explained(table), table, rows)
        first += table.num_rows


@dataclass(frozen=True)
class Answering:
    """A question put to an explainer, batch by batch.

    Attributes
    ----------
    voice : Explainer
    question : dict
        As of `explain`.
    incoming : pyarrow.Schema
        Of the batches that come in.
    schema : pyarrow.Schema
        Of those that go out.
    rounded : bool
        Whether values go out in few digits: see `Counterfactuals.rounded`.
    spellings : bool
        Whether texts are read as the level that differs from them in case or blanks alone. Cells
        that do not change go out as they came.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from voicecf import VoICE
    >>> from voicecf.files import Answering
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> incoming = pa.schema([("age", pa.float64()), ("income", pa.float64())])
    >>> Answering.of(voice, incoming, {"target": 1}).schema.names[:3]
    ['age', 'income', 'voicecf_row']
    """

    voice: Explainer
    question: dict[str, Any]
    incoming: pa.Schema
    schema: pa.Schema
    rounded: bool = False
    spellings: bool = False

    @classmethod
    def of(
        cls,
        voice: Explainer,
        incoming: pa.Schema,
        question: dict[str, Any],
        *,
        rounded: bool = False,
        spellings: bool = False,
    ) -> Answering:
        """Check a question against the columns of a stream, and work out what goes out."""
        _check_target(question.get("target", "nearest"), voice.learned_.names)
        _check_names(incoming.names)
        voice.explain(incoming.empty_table(), **question)  # refuses unknown columns and rules
        steps = rules_of(question).steps
        stays = {column_of(voice.space_, name, "steps"): step for name, step in steps.items()}
        fields = []
        for field, (place, column) in zip(incoming, _columns(voice, incoming), strict=True):
            kind = field.type
            if column is not None and column.numeric:
                whole = column.whole and float(stays.get(place, 1) or 0.5).is_integer()
                kind = _number_type(voice, column, whole, kind)
            fields.append(pa.field(field.name, kind))
        fields += [pa.field(PREFIX + name, kind) for name, kind in _own(voice, question).items()]
        return cls(voice, question, incoming, pa.schema(fields), rounded, spellings)

    def table(self, batch: pa.RecordBatch | pa.Table) -> pa.Table:
        """Return a batch as a table with the columns and types of the first one."""
        table = pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        if table.schema.names != self.incoming.names:
            raise ColumnError(
                f"a batch has the columns {listed(table.schema.names)} where the first one had "
                f"{listed(self.incoming.names)}; all batches need the same."
            )
        return table if table.schema.equals(self.incoming) else table.cast(self.incoming)

    def explained(self, table: pa.Table) -> Counterfactuals:
        """Answer the rows of a table."""
        with Running(progress=False):  # rows are counted over all batches
            found = self.voice.explain(self._read(table), **self.question)
            return found.rounded() if self.rounded else found  # type: ignore[no-any-return]

    def batch(
        self, answers: Counterfactuals, table: pa.Table, rows: NDArray[np.int64]
    ) -> pa.RecordBatch:
        """Write answers as one batch; `rows` number those of the table."""
        changed = self._own_spelling(answers, table)
        columns = [
            _array(changed.column(name), self.schema.field(name).type, name)
            for name in table.column_names
        ]
        columns += [_own_column(answers, name, rows) for name in _own(self.voice, self.question)]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _read(self, table: pa.Table) -> pa.Table:
        """Return rows with texts as the explainer knows them."""
        return respelled(table, self._levels())

    def _own_spelling(self, answers: Counterfactuals, table: pa.Table) -> pa.Table:
        """Return changed rows, whose texts are as they came if these do not change."""
        changed, read = answers.to_frame(), self._read(table)
        for name in self._levels():
            was, own = (rows[name].take(pa.array(answers.row)) for rows in (read, table))
            own, new = own.cast(was.type), changed[name].cast(was.type)
            made = pc.if_else(pc.equal(new, was), own, new)
            changed = changed.set_column(changed.column_names.index(name), name, made)
        return changed

    def _levels(self) -> dict[str, list[str]]:
        """Return the levels of the columns whose spelling is passed over."""
        if not self.spellings:
            return {}
        pairs = zip(self.incoming, _columns(self.voice, self.incoming), strict=True)
        return {
            field.name: [level for level in column.levels if isinstance(level, str)]
            for field, (_, column) in pairs
            if column is not None and column.kind == "category" and is_text(field.type)
        }

    def columns(self) -> list[str]:
        """Return the names of the columns that the explainer reads."""
        pairs = zip(self.incoming.names, _columns(self.voice, self.incoming), strict=True)
        return [name for name, (_, column) in pairs if column is not None]


def _columns(voice: Explainer, incoming: pa.Schema) -> list[tuple[int, Column | None]]:
    """Return the explainer's column that each column of a stream belongs to, with its position."""
    space = voice.space_
    known = {s: (at, column) for at, column in enumerate(space.columns) for s in column.sources}
    return [known.get(s, (-1, None)) for s in (incoming.names if space.named else space.sources)]


def _own(voice: Explainer, question: dict[str, Any]) -> dict[str, Any]:
    """Return voicecf's own columns, and their types."""
    own = OWN | (RANK if question.get("alternatives") else {})
    own |= PRICED if question.get("objective") == PRICE else {}
    return own | (dict.fromkeys(CLUSTERS, pa.string()) if voice.learned_.has_names else {})


def _check_target(target: Any, names: tuple[str, ...]) -> None:
    one = isinstance(target, Integral) and not isinstance(target, bool)
    if not one and not (isinstance(target, str) and target in ("nearest", "each", *names)):
        raise OptionError(
            f'target={target!r}: a stream takes one cluster for all rows, "nearest" or "each".'
        )


def _check_names(names: list[str]) -> None:
    twice = dict.fromkeys(name for name in names if names.count(name) > 1)
    if twice:
        raise ColumnError(f"column names must differ; named twice: {listed(twice)}.")
    ours = [name for name in names if name in {PREFIX + own for own in OWN | RANK | PRICED}]
    if ours:
        raise ColumnError(
            f"answers have columns called {listed(ours)}, and so has the table; rename them there, "
            "or leave them out."
        )


def rules_of(question: dict[str, Any]) -> Rules:
    """Return the rules of a question, however they were given."""
    words = {word: value for word, value in question.items() if word in RULES}
    return as_rules(question.get("rules"), **words)


def _number_type(voice: Explainer, column: Column, whole: bool, kind: Any) -> Any:
    """Return the type in which numbers come out; `whole` if they stay whole numbers."""
    space = voice.space_
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return kind if whole else pa.float64()
    if not pa.types.is_floating(kind):
        return kind
    # Fewer digits than the model reads could leave the target again.
    if space.steps is None:
        return pa.from_numpy_dtype(space.dtype)
    return kind if column.sources[0] in space.single else pa.float64()


def _array(column: pa.ChunkedArray, kind: Any, name: str) -> pa.Array:
    """Return a column as one array of a type."""
    values = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise ColumnError(
            f"answers do not fit the type {kind} of column {name!r}: {error}. Convert the column "
            "to float64 first."
        ) from None


def _own_column(answers: Counterfactuals, name: str, rows: NDArray[np.int64]) -> Any:
    """Return one of voicecf's own columns."""
    learned = answers.outcome.learned
    if name in CLUSTERS and learned.has_names:
        clusters = getattr(answers, name)
        return pa.array(learned.names).take(pa.array(clusters, mask=clusters < 0))
    if name == "row":
        return pa.array(rows[answers.row])
    if name == "status":
        codes = pa.array(answers.status.astype(np.int8))
        return pa.DictionaryArray.from_arrays(codes, STATUSES).cast(pa.string())
    lost = ~answers.feasible if name in BLANK else None
    return pa.array(getattr(answers, name), mask=lost).cast((OWN | RANK | PRICED)[name])
