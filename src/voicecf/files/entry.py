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
from voicecf.learned.explainer import Explainer
from voicecf.parallel import Running
from voicecf.rules.columns import column_of
from voicecf.rules.rules import RULES, Rules
from voicecf.status import Status
from voicecf.table.column import Column
from voicecf.table.space import Space

__all__ = ["Answering", "explain_batches", "rules_of"]

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
# One more column if alternatives were asked for.
RANK = {"rank": pa.int32()}
# Goes before these names, so that they are the same whatever the user's columns are called.
PREFIX = "voicecf_"
# Clusters, by their numbers, or by their names if the user has given some.
CLUSTERS = ("source", "target")
# Null where a row has no answer.
BLANK = ("cost", "n_changed", "rho", "tau", "gap")
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
    `rho`, `tau`, `gap` (and `rank` with alternatives). Columns that the explainer does not know are
    carried along. Source and target are numbers, or names if the explainer has names for clusters;
    names are null where a row cannot be read. Where a row has no answer, the explainer's columns
    are null. All batches have one schema, whatever is in them.

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

    @classmethod
    def of(
        cls,
        voice: Explainer,
        incoming: pa.Schema,
        question: dict[str, Any],
    ) -> Answering:
        """Check a question against the columns of a stream, and work out what goes out."""
        _check_target(question.get("target", "nearest"), voice.learned_.names)
        space, names = voice.space_, incoming.names
        _check_names(names)
        if not space.named:
            space._check_width(len(names))
        rules = rules_of(question)
        rules.check(space)
        fields = [_out_field(space, rules, names, field) for field in incoming]
        own = OWN | (RANK if question.get("alternatives") else {})
        own |= dict.fromkeys(CLUSTERS, pa.string()) if voice.learned_.has_names else {}
        fields += [pa.field(PREFIX + name, kind) for name, kind in own.items()]
        return cls(voice, question, incoming, pa.schema(fields))

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
            return self.voice.explain(table, **self.question)  # type: ignore[no-any-return]

    def batch(
        self, answers: Counterfactuals, table: pa.Table, rows: NDArray[np.int64]
    ) -> pa.RecordBatch:
        """Write answers as one batch; `rows` number those of the table."""
        known = self._known(answers)
        lost = None if answers.feasible.all() else ~answers.feasible
        columns = []
        for place, field in enumerate(self.incoming):
            kind = self.schema.field(place).type
            values = known.get(self._source(place))
            if values is None:
                values = _one(table.column(place)).take(pa.array(answers.row))
            else:
                values = _typed(values, kind, lost, field.name)
            columns.append(values)
        own = list(OWN | (RANK if self.question.get("alternatives") else {}))
        columns += [_own_column(answers, name, lost, rows) for name in own]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def columns(self) -> tuple[list[str], list[str]]:
        """Return the names of the columns that the explainer reads: of numbers, and of text."""
        space = self.voice.space_
        names = dict(zip(space.sources, self.incoming.names, strict=False))
        numbers: list[str] = []
        texts: list[str] = []
        for column in space.columns:
            chosen = numbers if column.numeric or column.declared else texts
            chosen += [str(s) if space.named else names[s] for s in column.sources]
        return numbers, texts

    def _source(self, place: int) -> Any:
        """Return the explainer's name for a column of the stream."""
        space = self.voice.space_
        return self.incoming.names[place] if space.named else space.sources[place]

    def _known(self, answers: Counterfactuals) -> dict[Any, Any]:
        """Return the changed values of the explainer's columns, by name."""
        space = answers.outcome.space
        if not space.is_plain:
            # Columns that the model does not know are taken as they came in, not from here.
            table = answers.to_frame()
            known = dict(zip(_fed(space, table.column_names), table.columns, strict=True))
            return {name: column for name, column in known.items() if name in space.sources}
        columns = np.ascontiguousarray(answers.points.T)
        known = dict(zip(space.sources, columns, strict=True))
        for column in space.columns:
            if column.whole:
                known[column.name] = self._kept(answers, column, known[column.name])
        return known

    def _kept(self, answers: Counterfactuals, column: Column, values: NDArray[Any]) -> Any:
        """Return whole numbers, those that did not change bit for bit, however large."""
        name = column.name if answers.outcome.space.named else self._position(column)
        own = _one(answers.outcome.rows.frame.to_native()[name]).take(pa.array(answers.row))
        before = answers.outcome.rows.points[answers.row, column.places[0]]
        if not (pa.types.is_integer(own.type) or pa.types.is_boolean(own.type)):
            return values
        news = pa.array(np.where(np.isnan(values), 0.0, values)).cast(pa.float64())
        moved = pa.array(values != before)
        return pc.if_else(moved, _cast(news, own.type, name), own)

    def _position(self, column: Column) -> str:
        return str(self.incoming.names[self.voice.space_.sources.index(column.name)])


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
    ours = [name for name in names if name in {PREFIX + own for own in OWN | RANK}]
    if ours:
        raise ColumnError(
            f"answers have columns called {listed(ours)}, and so has the table; rename them there, "
            "or leave them out."
        )


def rules_of(question: dict[str, Any]) -> Rules:
    """Return the rules of a question, however they were given."""
    rules = question.get("rules")
    if isinstance(rules, Rules):
        return rules
    if rules is not None:
        return Rules.from_dict(rules)
    return Rules.from_dict({word: value for word, value in question.items() if word in RULES})


def _fed(space: Space, names: list[str]) -> list[Any]:
    """Return the sources that columns of a table are."""
    return names if space.named else list(space.sources[: len(names)])


def _out_field(space: Space, rules: Rules, names: list[str], field: pa.Field) -> pa.Field:
    """Return the type in which a column comes out; it can always be null."""
    source = field.name if space.named else space.sources[names.index(field.name)]
    column = next((c for c in space.columns if source in c.sources), None)
    kind = field.type
    if column is not None and column.numeric:
        kind = _number_type(space, rules, column, kind)
    return pa.field(field.name, kind)


def _number_type(space: Space, rules: Rules, column: Column, kind: Any) -> Any:
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return kind if column.whole and _stays_whole(space, rules, column) else pa.float64()
    if not pa.types.is_floating(kind):
        return kind
    # Fewer digits than the model reads could leave the target again.
    if space.steps is None:
        return pa.from_numpy_dtype(space.dtype)
    return kind if column.sources[0] in space.single else pa.float64()


def _stays_whole(space: Space, rules: Rules, column: Column) -> bool:
    for name, step in rules.steps.items():
        if space.columns[column_of(space, name, "steps")] is column:
            return step is not None and float(step).is_integer()
    return True


def _one(column: Any) -> Any:
    """Return a column as one array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _typed(values: Any, kind: Any, lost: Any, name: str) -> Any:
    """Return values as an array of a type, null where there is no answer."""
    if isinstance(values, np.ndarray):
        return _cast(pa.array(values, mask=lost), kind, name)
    values = _one(values)
    if lost is not None:
        values = pc.if_else(pa.array(lost), pa.scalar(None, values.type), values)
    return _cast(values, kind, name)


def _cast(values: Any, kind: Any, name: str) -> Any:
    if values.type == kind:
        return values
    try:
        return values.cast(kind)
    except pa.ArrowInvalid as error:
        raise ColumnError(
            f"answers do not fit the type {kind} of column {name!r}: {error}. Convert the column "
            "to float64 first."
        ) from None


def _own_column(answers: Counterfactuals, name: str, lost: Any, rows: NDArray[np.int64]) -> Any:
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
    values = getattr(answers, name)
    if name not in BLANK:
        return pa.array(values).cast((OWN | RANK)[name])
    return pa.array(values, mask=lost).cast(OWN[name])
