"""The answers of a run: one table, filled part by part, with a line for each row and target.

Its columns are row (where the row stands in the visitor's table, counted from 0), from and to
(segments by number, -1 for none), result (a `Result`), and for each column in use its values
“before NAME” and “after NAME”. Every row of the visitor's table has a line, whether it was asked
about or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from enum import IntEnum
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf import Status
from voicecf.app.campaign.effort import options
from voicecf.app.campaign.plan import Campaign, CampaignCounts
from voicecf.app.data.preparing import Prepared, with_durations
from voicecf.app.segments.segments import Segments

# Rows that are answered between two signs of progress.
PART = 2_000


class Result(IntEnum):
    """What came of a row: how an answer ended, as `Status` says it, or why there is none."""

    MOVES = Status.OPTIMAL
    IMPOSSIBLE = Status.INFEASIBLE
    UNRESOLVED = Status.UNRESOLVED
    ALREADY = Status.ALREADY
    MISSED = Status.MISSED
    STOPPED = Status.STOPPED
    UNREADABLE = Status.UNREADABLE
    NOT_ASKED = -1
    LEFT_OUT = -2
    WAITING = -3


MOVING = (Result.MOVES, Result.STOPPED)
NOT_ANSWERED = (Result.NOT_ASKED, Result.LEFT_OUT, Result.WAITING)


class CampaignJob:
    """Answers that are being found: a part has a line for each row and target.

    Iterated over, it yields the parts; `done` and `total` count rows meanwhile.

    Parameters
    ----------
    segments : Segments
    campaign : Campaign
    frame : pandas.DataFrame
        The visitor's table, for the rows that are left out of the segments.
    begun : pandas.DataFrame, optional
        What was found before, by `table`, if this goes on.
    """

    def __init__(
        self,
        segments: Segments,
        campaign: Campaign,
        frame: pd.DataFrame,
        begun: pd.DataFrame | None = None,
    ) -> None:
        prepared = segments.prepared
        self.segments, self.campaign = segments, campaign
        self.frame = with_durations(frame, prepared.durations, prepared.taken or date.today())
        self._options = options(campaign, segments)
        self._asked = _asked(segments, campaign)
        self._parts: list[pd.DataFrame] = []
        self.done, self.total = 0, len(self._asked)
        if begun is not None:
            some = begun[~begun["result"].isin(NOT_ANSWERED)]
            after = [name for name in some if name.startswith("after ")]
            self._parts.append(some[["row", "from", "to", "result", *after]])
            self.done = some["row"].nunique()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        """Answer the rows that are left, and yield the parts in their order."""
        while self.done < self.total:
            part = self._answer(self._asked[self.done : self.done + PART])
            self.done = min(self.done + PART, self.total)
            yield part

    def _answer(self, rows: NDArray[np.int64]) -> pd.DataFrame:
        """Answer some of the rows that are asked about; numbers are as short as they can be."""
        prepared = self.segments.prepared
        voice = self.segments.firmly(self.campaign.margin)
        found = voice.explain(prepared.frame.iloc[rows], progress=False, **self._options).rounded()
        after = _coded(prepared, found.to_frame())
        made = _without(prepared.rows[rows[found.row]], found.source, Result.MOVES)
        made["to"], made["result"] = found.target.astype(np.int16), found.status.astype(np.int8)
        made = pd.concat([made, after.add_prefix("after ").reset_index(drop=True)], axis=1)
        self._parts.append(made)
        return made

    def table(self) -> pd.DataFrame:
        """Return all rows with what is known of them, by row and target."""
        prepared, labels = self.segments.prepared, self.segments.labels
        waiting = self._asked[self.done :]
        others = np.flatnonzero(~_holds(self._asked, len(prepared.frame)))
        left_out = np.flatnonzero(~_holds(prepared.rows, len(self.frame)))
        parts = [
            *self._parts,
            _without(prepared.rows[waiting], labels[waiting], Result.WAITING),
            _without(prepared.rows[others], labels[others], Result.NOT_ASKED),
            _without(left_out, -1, Result.LEFT_OUT),
        ]
        found = pd.concat([part for part in parts if len(part)], ignore_index=True)
        found = found.sort_values(["row", "to"], kind="stable", ignore_index=True)
        before = self._before(left_out).loc[found["row"]].reset_index(drop=True)
        for name, values in before.items():
            found[f"before {name}"] = values
            after = found.get(f"after {name}", pd.Series(np.nan, found.index))
            found[f"after {name}"] = after.astype(values.dtype)
        return found

    def _before(self, left_out: NDArray[np.int64]) -> pd.DataFrame:
        """Return the values of all rows of the visitor's table, in the columns in use."""
        prepared, lost = self.segments.prepared, self.frame.iloc[left_out]
        coded = _coded(prepared, prepared.frame).set_axis(prepared.rows)
        if not len(lost):
            return coded
        values: dict[str, Any] = {}
        for name in prepared.names:
            if name in prepared.categories:
                values[name] = pd.Categorical(_levelled(lost[name]), dtype=coded[name].dtype)
            else:
                numbers = pd.to_numeric(lost[name], errors="coerce").to_numpy(
                    float, na_value=np.nan
                )
                values[name] = np.where(np.isfinite(numbers), numbers, np.nan)
        return pd.concat([coded, pd.DataFrame(values, left_out)])


def _asked(segments: Segments, campaign: Campaign) -> NDArray[np.int64]:
    """Return which of the prepared rows are asked about."""
    if not campaign.sources:
        return np.arange(len(segments.labels))
    return np.flatnonzero(np.isin(segments.labels, campaign.sources))


def _without(rows: Any, source: Any, result: Result) -> pd.DataFrame:
    return pd.DataFrame({
        "row": np.asarray(rows, dtype=np.int64), "from": np.asarray(source, dtype=np.int16),
        "to": np.int16(-1), "result": np.int8(result),
    })  # fmt: skip


def _coded(prepared: Prepared, frame: pd.DataFrame) -> pd.DataFrame:
    """Return the columns in use as plain numbers, and categories as codes of the same levels."""
    made: dict[str, Any] = {}
    for name in prepared.names:
        values = frame[name]
        if name in prepared.categories:
            made[name] = pd.Categorical(values, categories=prepared.levels[name])
        else:
            made[name] = values.to_numpy(dtype=np.float64, na_value=np.nan)
    return pd.DataFrame(made)


def _levelled(values: pd.Series) -> list[Any]:
    return [None if gap else str(v) for v, gap in zip(values, values.isna(), strict=True)]


def counts(table: pd.DataFrame) -> CampaignCounts:
    """Count rows, each once, whatever number of targets it was asked about."""
    result, row = table["result"].to_numpy(), table["row"].to_numpy()
    n = int(row.max(initial=-1)) + 1
    movable = _holds(row[np.isin(result, MOVING)], n)
    already = _holds(row[result == Result.ALREADY], n) & ~movable
    waiting = _holds(row[result == Result.WAITING], n)
    asked = _holds(row[~np.isin(result, (Result.NOT_ASKED, Result.LEFT_OUT))], n)
    impossible = asked & ~(movable | already | waiting)
    return CampaignCounts(
        *(int(some.sum()) for some in (asked, movable, already, impossible, waiting))
    )


def _holds(some: NDArray[np.int64], n: int) -> NDArray[np.bool_]:
    """Tell which of n rows are among some."""
    found = np.zeros(n, dtype=np.bool_)
    found[some] = True
    return found
