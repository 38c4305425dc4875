"""Answers as tables: the changed rows, and a line a changed column."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Ints
from voicecf.search.outcome import Outcome
from voicecf.table.frames import emptied, indexed, table, typed

__all__ = ["cells", "changed_rows", "changes", "table"]

_FLOATS = {np.dtype(np.float64): nw.Float64, np.dtype(np.float32): nw.Float32}


def changed_rows(outcome: Outcome) -> Any:
    """Return the changed rows in the columns, and the kind of frame, that came in."""
    space, rows = outcome.space, outcome.rows
    if rows.array is rows.points and space.steps is None:
        return space.table(outcome.points)
    output = outcome.output
    if output is None:
        doubles = outcome.points.astype(np.float64, copy=False)
        output = space.write(doubles, rows, outcome.row)
    frame = None if output.frame is None else output.frame.clone()  # the user's, to be changed
    if frame is None:
        assert output.array is not None
        columns = dict(zip(space.sources, typed(output.array), strict=True))
        frame = nw.from_native(table(columns), eager_only=True)
    names = [space.frame_name(frame, s) for column in space.columns for s in column.sources]
    return indexed(emptied(frame, names, outcome.missing).to_native(), rows.kind, outcome.row)


def changes(outcome: Outcome) -> Any:
    """Return a long table, a line a changed column: row, target, feature, from, to, delta."""
    moved = [outcome.changed(i) for i in range(len(outcome))]
    answer = np.repeat(np.arange(len(outcome)), [len(m) for m in moved])
    feature = np.concatenate([*moved, np.empty(0, dtype=np.int64)]).astype(np.int64)
    names = [outcome.space.names[f] for f in feature]
    textual = all(isinstance(name, str) for name in outcome.space.names)
    columns = {
        "row": outcome.row[answer],
        "target": outcome.target[answer],
        "feature": np.array(names, dtype=str) if textual else _objects(names),
        **cells(outcome, answer, feature),
        "delta": outcome.deltas[answer, feature],
    }
    schema = {"row": nw.Int64, "target": nw.Int64, "feature": nw.String}
    for name in ("from", "to", "delta"):
        schema[name] = _FLOATS.get(columns[name].dtype, nw.String)
    return table(columns, outcome.rows.kind, schema if textual else None)


def cells(outcome: Outcome, answer: Ints, feature: Ints) -> dict[str, NDArray[Any]]:
    """Return values before and after of cells; as text if some column is a category."""
    if outcome.space.is_plain:
        before = outcome.rows.points.astype(outcome.points.dtype, copy=False)
        return {
            "from": before[outcome.row[answer], feature],
            "to": outcome.points[answer, feature],
        }
    numeric = all(column.kind == "number" for column in outcome.space.columns)
    found = {}
    for name, values in zip(("from", "to"), outcome.values, strict=True):
        picked = [values[f][a] for a, f in zip(answer, feature, strict=True)]
        written = picked if numeric else [_as_text(value) for value in picked]
        found[name] = np.array(written, dtype=np.float64 if numeric else object)
    return found


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return values as an array, each as it is; numpy would look into tuples."""
    made = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        made[i] = value
    return made


def _as_text(value: Any) -> str | None:
    """Write a value for a table of text; None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        return (
            f"{value:.0f}" if value == np.rint(value) and abs(value) < 1e15 else repr(float(value))
        )
    return str(value)
