"""The list to act on: every row of the table with its result, its effort, and what changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from voicecf.app.campaign.plan import Run
from voicecf.app.campaign.runs import LEFT_OUT, MOVING, NOT_ASKED, WAITING
from voicecf.app.campaign.summary import Summary, delta
from voicecf.app.words import in_column
from voicecf.output import figure, joined

WORDS = {
    "optimal": "can move",
    "stopped": "can move; a smaller change may exist",
    "already": "there already",
    "infeasible": "not possible",
    "unresolved": "none found",
    "missed": "none found",
    "unreadable": "cannot be read",
    NOT_ASKED: "not asked",
    WAITING: "not answered yet",
    LEFT_OUT: "left out",
}


def to_act_on(
    table: pd.DataFrame, run: Run, names: Sequence[str], said: Summary, frame: pd.DataFrame,
    *, budget: float | None = None, only: int | None = None,
) -> pd.DataFrame:  # fmt: skip
    """Return a line for each row and target: result, effort, and all values before and after.

    Parameters
    ----------
    table : pandas.DataFrame
        The answers of a run.
    run : Run
    names : sequence of str
        Of the segments.
    said : Summary
        For the efforts.
    frame : pandas.DataFrame
        The visitor's table, whose other columns are added.
    budget : float, optional
        Adds which answers it suffices for, the easiest first.
    only : int, optional
        Return so many of the easiest alone, sorted by effort.
    """
    moves = np.isin(table["result"], MOVING)
    row = table["row"].to_numpy()
    many = np.sum([delta(table, name).fillna(0) != 0 for name in run.columns], axis=0)
    made: dict[str, Any] = {"row": row + 1}
    made["from"], made["to"] = (_named(names, table[side].to_numpy()) for side in ("from", "to"))
    made["result"] = results(table, run.columns)
    made[f"effort ({said.unit})"] = np.where(moves, np.round(said.efforts, 6), np.nan)
    if budget is not None:
        chosen = np.isin(np.arange(len(table)), said.easiest[: said.affordable(budget)])
        made["within budget"] = np.where(chosen, "yes", "no")
    made["columns changed"] = pd.Series(many, dtype="Int64").where(pd.Series(moves))
    for name in run.columns:
        before, after = table[f"before {name}"], table[f"after {name}"]
        if name in frame and not types.is_numeric_dtype(before.dtype):  # keeps its own spelling
            own = frame[name].iloc[row].reset_index(drop=True)
            before, after = own, own.where(after.notna() & (after == before), after)
        for side, values in (("before", before), ("after", after)):
            made[f"{name} {side}"] = values.astype("Int64") if _is_whole(values, run) else values
    aside = {}
    for name in [n for n in frame if n not in run.columns]:
        called = name if name not in made else f"{name} (table)"
        aside[called] = frame[name].iloc[row].reset_index(drop=True)
    who = [called for called in aside if called.removesuffix(" (table)") == run.identity]
    listed = pd.DataFrame({**made, **aside})
    if only is not None:
        listed = listed.iloc[said.easiest[:only]].reset_index(drop=True)
    return listed[["row", *who, *(n for n in listed if n != "row" and n not in who)]]


def results(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Say what came of each line; of rows that were left out, which columns have no value."""
    result = table["result"]
    words = result.map(WORDS).astype(object)
    lost = np.flatnonzero(result == LEFT_OUT)
    gaps = np.column_stack([table[f"before {name}"].iloc[lost].isna() for name in columns])
    kinds, of = np.unique(gaps, axis=0, return_inverse=True)
    why = []
    for kind in kinds:
        empty = [name for name, gap in zip(columns, kind, strict=True) if gap]
        why.append(f"left out: no value in {joined(empty)}")
    words.iloc[lost] = np.array(why, dtype=object)[of.ravel()]
    return words


def _named(names: Sequence[str], segments: NDArray[Any]) -> pd.Categorical:
    """Return segments by name; empty where there is none."""
    return pd.Categorical.from_codes(segments, categories=list(names))


def _is_whole(values: pd.Series, run: Run) -> bool:
    if str(values.name).partition(" ")[2] not in run.whole:
        return False
    present = values.dropna().to_numpy()
    return bool((present == np.rint(present)).all() and (np.abs(present) < 2**53).all())


def easiest_first(
    table: pd.DataFrame, run: Run, names: Sequence[str], said: Summary, frame: pd.DataFrame,
    *, most: int,
) -> pd.DataFrame:  # fmt: skip
    """Return the rows that can be moved most easily, and what changes, in words."""
    lines = said.easiest[:most]
    some = table.iloc[lines]
    row = some["row"].to_numpy()
    made: dict[str, Any] = {"Row": row + 1}
    if run.identity in frame:
        made[str(run.identity)] = frame[run.identity].iloc[row].astype(str).to_numpy()
    made["From"] = np.array(names, dtype=object)[some["from"].to_numpy()]
    made["To"] = np.array(names, dtype=object)[some["to"].to_numpy()]
    made[f"Effort ({said.unit})"] = said.efforts[lines]
    made["All so far"] = said.spent[: len(lines)]
    made["What changes"] = in_words(some.reset_index(drop=True), run.columns)
    return pd.DataFrame(made)


def in_words(table: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Say what each answer changes: “visits 2 → 5, basket 20 → 35”."""
    phrases: list[list[str]] = [[] for _ in range(len(table))]
    for name in columns:
        lines = np.flatnonzero(delta(table, name).fillna(0) != 0)
        largest = _largest(table, name)
        sides = (table[f"{side} {name}"].iloc[lines].tolist() for side in ("before", "after"))
        for line, before, after in zip(lines, *sides, strict=True):
            phrases[line].append(
                f"{name} {_value(before, largest)} \N{RIGHTWARDS ARROW} {_value(after, largest)}"
            )
    return [", ".join(some) for some in phrases]


def _largest(table: pd.DataFrame, name: str) -> float:
    """Return the largest number of a column, by which it is decided how all are written."""
    values = table[f"before {name}"]
    return float(values.abs().max()) if types.is_numeric_dtype(values.dtype) else 0.0


def _value(value: Any, largest: float) -> str:
    if isinstance(value, str):
        return value
    if pd.isna(value):
        return "missing"
    return in_column(figure(float(value), 6), largest)
