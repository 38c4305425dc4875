"""Answers as tables: the changed rows, a line for each answer, a line for each changed column."""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Ints
from voicecf.output.calling import cluster_name
from voicecf.output.values import (
    changed_cells,
    column_types,
    typed_cells,
    typed_table,
    typed_values,
)
from voicecf.search.outcome import Outcome
from voicecf.status import Status
from voicecf.table.frames import emptied, indexed, objects, table

__all__ = ["changed_rows", "changes", "one_line_each", "summary"]

# Measures of an answer in `summary`, after its row, source and target.
MEASURES = (
    "feasible", "cost", "n_changed", "cardinality", "rho", "tau", "alpha", "gap", "usual",
    "plausible", "rank",
)  # fmt: skip

# What each status is called, by its code.
STATUSES = objects([Status(code).name.lower() for code in range(len(Status))])


def changed_rows(outcome: Outcome) -> Any:
    """Return the changed rows; see `Counterfactuals.to_frame`."""
    space, rows = outcome.space, outcome.rows
    if rows.array is rows.points and space.steps is None:
        return space.table(outcome.points)
    output = outcome.output
    if output is None:
        doubles = outcome.points.astype(np.float64, copy=False)
        output = space.write(doubles, rows, outcome.row)
    if output.frame is None:
        frame = nw.from_native(space.table(output.array), eager_only=True)
    else:
        frame = output.frame.clone()  # the user's, to be changed
    names = [space.frame_name(frame, s) for column in space.columns for s in column.sources]
    frame = emptied(frame, names, outcome.missing)
    if rows.extra is not None:
        frame = rows.extra.beside(frame, outcome.row)
    return indexed(frame.to_native(), rows.kind, outcome.row)


def summary(outcome: Outcome, measures: dict[str, NDArray[Any]]) -> Any:
    """Return a table of measures, one line for each answer; see `Counterfactuals.summary`."""
    columns = {"row": outcome.row, **{name: of for name, (of, _) in _clusters(outcome).items()}}
    if outcome.question.tariff is not None:
        measures = {**measures, "price": outcome.price}
    found = table(
        {**columns, **measures, "status": STATUSES[outcome.status].astype(str)}, outcome.rows.kind
    )
    return _with_ids(found, outcome, outcome.row)


def changes(outcome: Outcome) -> Any:
    """Return a table with one line for each changed column; see `Counterfactuals.changes`."""
    answer, feature = changed_cells(outcome)
    names = outcome.space.names
    columns = {
        "row": (outcome.row[answer], {int}),
        "target": (outcome.target[answer], {int}),
        "feature": (objects(names)[feature], set(map(type, names))),
        **typed_cells(outcome, answer, feature),
        "delta": (outcome.deltas[answer, feature], {float}),
    }
    if any(units := [column.unit for column in outcome.space.columns]):
        columns["unit"] = (objects(units)[feature], {str})
    return _with_ids(typed_table(columns, outcome.rows.kind), outcome, outcome.row[answer])


def one_line_each(outcome: Outcome) -> Any:
    """Return a table with one line for each answer; see `Counterfactuals.table`."""
    rows = outcome.rows
    columns: dict[str, Any] = {"row": (outcome.row, {int}), **_clusters(outcome)}
    if outcome.rank.any():
        columns["rank"] = (outcome.rank, {int})
    columns["status"] = (STATUSES[outcome.status], {str})
    columns["cost"] = (outcome.cost, {float})
    if outcome.question.tariff is not None:
        columns["price"] = (outcome.price, {float})
    if (outcome.status == Status.STOPPED).any():
        columns["gap"] = (outcome.gap, {float})
    columns["n_changed"] = (outcome.n_changed, {int})
    for c in np.flatnonzero(outcome.changes.any(axis=0)).tolist():
        kinds = column_types(outcome, [c])
        changed = np.flatnonzero(outcome.changes[:, c])
        for side, values in zip(("from", "to"), typed_values(outcome, c, changed), strict=True):
            cells = np.full(len(outcome), None)
            cells[changed] = values
            columns[f"{outcome.space.names[c]}: {side}"] = (cells, kinds)
    found = _with_ids(typed_table(columns, rows.kind), outcome, outcome.row)
    frame = nw.from_native(found, eager_only=True)
    return frame.drop("row").to_native() if "id" in frame.columns else found


def _clusters(outcome: Outcome) -> dict[str, tuple[NDArray[Any], set[type]]]:
    """Return source and target of each answer, by name if clusters have names, with their type."""
    learned, clusters = outcome.learned, {"source": outcome.source, "target": outcome.target}
    if not learned.has_names:
        return {side: (numbers, {int}) for side, numbers in clusters.items()}
    called = objects([*(cluster_name(learned, t) for t in range(learned.n_clusters)), None])
    return {side: (called[numbers], {str}) for side, numbers in clusters.items()}  # None for -1


def _with_ids(native: Any, outcome: Outcome, which: Ints) -> Any:
    """Return a table with the ids of the rows `which`, if they have any, in front."""
    ids = outcome.rows.ids(which)
    if ids is None:
        return native
    frame = nw.from_native(native, eager_only=True)
    return frame.with_columns(ids).select("id", *frame.columns).to_native()
