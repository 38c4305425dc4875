"""Answers as tables: the changed rows, and one line for each changed column."""

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
    """Return the changed rows; see `Counterfactuals.to_frame`."""
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
    """Return a table with one line for each changed column; see `Counterfactuals.changes`."""
    changed = [outcome.changed(i) for i in range(len(outcome))]
    answer = np.repeat(np.arange(len(outcome)), [len(columns) for columns in changed])
    feature = np.concatenate([*changed, np.empty(0, dtype=np.int64)]).astype(np.int64)
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
    """Return the values before and after of some cells; as text if some column is a category."""
    if outcome.space.is_plain:
        before = outcome.rows.points.astype(outcome.points.dtype, copy=False)
        return {
            "from": before[outcome.row[answer], feature],
            "to": outcome.points[answer, feature],
        }
    numeric = all(column.numeric for column in outcome.space.columns)
    found = {}
    for name, values in zip(("from", "to"), outcome.values, strict=True):
        column = [values[f][a] for a, f in zip(answer, feature, strict=True)]
        if numeric:
            found[name] = np.array(column, dtype=np.float64)
        else:
            found[name] = np.array([_as_text(value) for value in column], dtype=object)
    return found


def _objects(values: list[Any]) -> NDArray[Any]:
    """Return an array of objects; np.array would split tuples into columns."""
    array = np.empty(len(values), dtype=object)
    for i, value in enumerate(values):
        array[i] = value
    return array


def _as_text(value: Any) -> str | None:
    """Return a value as text; None where it is missing."""
    if value is None or value != value:
        return None
    if isinstance(value, float):
        whole = value == np.rint(value) and abs(value) < 1e15
        return f"{value:.0f}" if whole else repr(float(value))
    return str(value)
