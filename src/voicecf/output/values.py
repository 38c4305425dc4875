"""Values before and after a change, in the types of the user's table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.geometry.arrays import Ints
from voicecf.geometry.named import installed_backend
from voicecf.search.outcome import Outcome
from voicecf.table.frames import Kind, is_missing
from voicecf.table.wording import exact

# Types of values that every frame library has.
TYPES: dict[type, Any] = {int: nw.Int64, bool: nw.Boolean, float: nw.Float64, str: nw.String}


def changed_cells(outcome: Outcome) -> tuple[Ints, Ints]:
    """Return answer and column of every change: answer by answer, the costliest first."""
    cost = outcome.weights * outcome.moves**2
    places = [column.places for column in outcome.space.columns]
    costs = np.column_stack([np.take(cost, at, axis=1).sum(axis=1) for at in places])
    answer, column = np.nonzero(outcome.changes)
    order = np.lexsort((-costs[answer, column], answer))
    return answer, column[order]


def typed_values(outcome: Outcome, c: int, at: Ints) -> Iterator[NDArray[Any]]:
    """Yield the values of a column before and after, of the answers at some positions.

    They are objects of the types of the user's table: whole numbers are int, booleans bool, other
    numbers float, categories their levels. None is a missing value.
    """
    types = column_types(outcome, [c]) if outcome.space.columns[c].kind == "number" else set()
    for side in outcome.values:
        values = side[c][at]
        typed = values.astype(object)
        if values.dtype == object:
            missing = np.array([is_missing(value) for value in values], dtype=np.bool_)
        else:
            missing = np.isnan(values)
        typed[missing] = None
        for kind in types & {int, bool}:
            whole = np.flatnonzero(np.rint(values) == values)  # NaN is not
            typed[whole] = values[whole].astype(kind)
        yield typed


def column_types(outcome: Outcome, columns: Iterable[int]) -> set[type]:
    """Return the types of the values of some columns."""
    space, found = outcome.space, set()
    for c in columns:
        column = space.columns[c]
        if column.kind == "category":
            found |= {type(level) for level in column.levels if not is_missing(level)}
        elif space.is_boolean(c, outcome.rows):
            found.add(bool)
        else:
            found.add(int if column.whole else float)
    return found


def typed_cells(outcome: Outcome, answer: Ints, feature: Ints) -> dict[str, Any]:
    """Return the values before and after of some cells, each with the types of all columns."""
    types = column_types(outcome, range(len(outcome.space.columns)))
    if outcome.space.is_plain and types == {float}:
        before = outcome.rows.points.astype(outcome.points.dtype, copy=False)
        sides = before[outcome.row[answer], feature], outcome.points[answer, feature]
    else:
        sides = np.empty(len(answer), dtype=object), np.empty(len(answer), dtype=object)
        for c in np.unique(feature).tolist():
            at = np.flatnonzero(feature == c)
            for side, values in zip(sides, typed_values(outcome, c, answer[at]), strict=True):
                side[at] = values
    return {"from": (sides[0], types), "to": (sides[1], types)}


def typed_table(columns: Mapping[str, tuple[NDArray[Any], set[type]]], kind: Kind | None) -> Any:
    """Return a table of columns, each as its values and the types that it may hold."""
    backend: Any = kind.backend if kind else installed_backend()
    series = [_series(name, values, types, backend) for name, (values, types) in columns.items()]
    return series[0].to_frame().with_columns(*series[1:]).to_native()


def _series(name: str, values: NDArray[Any], types: set[type], backend: Any) -> Any:
    """Return a narwhals series of the narrowest type that holds all values.

    Values of several types are objects where the library has such columns (pandas); elsewhere
    integers become floats, and anything else becomes text.
    """
    if values.dtype != object:
        return nw.new_series(name, values, backend=backend)
    items = values.tolist()
    types = types | {type(value) for value in items if value is not None}
    empty = nw.new_series(name, [], nw.Float64, backend=backend)
    pandas = empty.implementation.is_pandas_like()
    if not pandas and types == {int, float}:
        types = {float}
        items = [None if value is None else float(value) for value in items]
    if len(types) == 1 or not types:
        dtype = TYPES.get(*types) if types else nw.Float64
        if pandas and None in items and dtype in (nw.Int64, nw.Boolean):
            return nw.maybe_convert_dtypes(nw.new_series(name, items, nw.Object, backend=backend))
        return nw.new_series(name, items, dtype, backend=backend)
    if pandas:
        return nw.new_series(name, items, nw.Object, backend=backend)
    texts = [None if value is None else _text(value) for value in items]
    return nw.new_series(name, texts, nw.String, backend=backend)


def _text(value: Any) -> str:
    return exact(value) if isinstance(value, float) else str(value)
