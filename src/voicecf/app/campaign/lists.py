"""The list to act on: every row of the table with its result, its effort, and what changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.campaign.answers import MOVING, Result
from voicecf.app.campaign.effort import changed
from voicecf.app.campaign.plan import Run
from voicecf.app.campaign.summary import Summary
from voicecf.output.wording import figure, joined

WORDS = {
    Result.MOVES: "can move",
    Result.STOPPED: "can move; a smaller change may exist",
    Result.ALREADY: "there already",
    Result.IMPOSSIBLE: "not possible",
    Result.UNRESOLVED: "none found",
    Result.MISSED: "none found",
    Result.UNREADABLE: "cannot be read",
    Result.NOT_ASKED: "not asked",
    Result.WAITING: "not answered yet",
    Result.LEFT_OUT: "left out",
}


def to_act_on(
    table: pd.DataFrame, run: Run, names: Sequence[str], said: Summary, frame: pd.DataFrame
) -> pd.DataFrame:
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
    """
    row, moves = table["row"].to_numpy(), np.isin(table["result"], MOVING)
    made: dict[str, Any] = {"row": row + 1}
    if run.identity is not None and run.identity in frame:
        made[run.identity] = frame[run.identity].iloc[row].reset_index(drop=True)
    made["from"], made["to"] = (_named(names, table[side].to_numpy()) for side in ("from", "to"))
    made["result"] = results(table, run.columns)
    made[f"effort ({said.unit})"] = np.where(moves, np.round(said.efforts, 6), np.nan)
    many = np.sum([changed(table, name) & moves for name in run.columns], axis=0)
    made["columns changed"] = pd.Series(many, dtype="Int64").where(pd.Series(moves))
    for name in run.columns:
        for side in ("before", "after"):
            values = table[f"{side} {name}"]
            whole = name in run.whole and _is_whole(values.to_numpy())
            made[f"{name} {side}"] = values.astype("Int64") if whole else values
    aside = [n for n in frame if n not in run.columns and n != run.identity]
    for name in aside:
        free = name if name not in made else f"{name} (table)"
        made[free] = frame[name].iloc[row].reset_index(drop=True)
    return pd.DataFrame(made)


def results(table: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Say what came of each line; of rows that were left out, which columns have no value."""
    result = table["result"]
    words = result.map({int(code): text for code, text in WORDS.items()}).astype(object)
    for line in np.flatnonzero(result == Result.LEFT_OUT):
        empty = [name for name in columns if pd.isna(table.at[line, f"before {name}"])]
        words.iloc[line] = f"left out: no value in {joined(empty)}" if empty else "left out"
    return words


def _named(names: Sequence[str], segments: NDArray[Any]) -> pd.Categorical:
    """Return segments by name; empty where there is none."""
    return pd.Categorical.from_codes(segments, categories=list(names))


def _is_whole(values: NDArray[np.float64]) -> bool:
    present = values[~np.isnan(values)]
    return bool((present == np.rint(present)).all() and (np.abs(present) < 2**53).all())


def easiest_first(
    table: pd.DataFrame, run: Run, names: Sequence[str], said: Summary, most: int
) -> pd.DataFrame:
    """Return the rows that can be moved most easily, and what changes, in words."""
    lines = said.easiest[:most]
    some = table.iloc[lines]
    made: dict[str, Any] = {"Row": some["row"].to_numpy() + 1}
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
        lines = np.flatnonzero(changed(table, name))
        sides = (table[f"{side} {name}"].iloc[lines].tolist() for side in ("before", "after"))
        for line, before, after in zip(lines, *sides, strict=True):
            phrases[line].append(f"{name} {_value(before)} \N{RIGHTWARDS ARROW} {_value(after)}")
    return [", ".join(some) for some in phrases]


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "missing" if pd.isna(value) else figure(float(value), 6)
