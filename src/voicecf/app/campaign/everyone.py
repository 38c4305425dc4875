"""All rows, part by part: what each would have to change, and what that says of the segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf import Counterfactuals, Status
from voicecf.app.row.question import LIMIT, Question
from voicecf.app.segments.segments import Segments
from voicecf.plots import Transitions

# Rows that are answered between two signs of progress; few enough for a quick first one.
PART = 500
# Rows that an overview is made from.
SAMPLE = 150


@dataclass(frozen=True)
class Plan:
    """What is asked of all rows.

    Attributes
    ----------
    question : Question
        What is asked of each; its row does not matter.
    each : bool
        Whether every other segment is asked for, instead of the question's target.
    """

    question: Question
    each: bool = False

    def explain(self, segments: Segments, rows: Any) -> Counterfactuals:
        """Answer some of the rows."""
        asked, prepared = self.question, segments.prepared
        options = asked.options(limit=LIMIT)
        if self.each:
            options["target"] = "each"
        return segments.firmly(asked.margin).explain(prepared.frame.iloc[rows], **options)


def overview(segments: Segments, question: Question, most: int = SAMPLE) -> Transitions:
    """Sum up what it takes from every segment to every other one, from some of the rows."""
    n = len(segments.prepared.frame)
    rows = np.unique(np.linspace(0, n - 1, min(most, n)).astype(np.int64))
    return Transitions.from_counterfactuals(Plan(question, each=True).explain(segments, rows))


@dataclass(frozen=True, eq=False)
class Part:
    """Answers of some rows, as plain tables."""

    table: pd.DataFrame = field(repr=False)
    changed: dict[str, int]

    @classmethod
    def of(
        cls, segments: Segments, names: Sequence[str], found: Counterfactuals, start: int
    ) -> Part:
        """Describe answers; `start` is where their rows begin among the prepared ones."""
        prepared, at = segments.prepared, found.row + start
        words = np.array([_STATUS[Status(int(s))] for s in found.status], dtype=object)
        told = pd.DataFrame({
            "row": prepared.rows[at] + 1,
            "from segment": _named(names, found.source),
            "to segment": _named(names, found.target),
            "result": words,
            "cost": np.where(found.feasible, found.cost, np.nan),
            "columns changed": found.n_changed,
        })  # fmt: skip
        aside = prepared.aside.iloc[at].reset_index(drop=True)
        answers = pd.DataFrame(found.to_frame()).reset_index(drop=True)
        table = pd.concat([told, _apart(aside, told), _apart(answers, told)], axis=1)
        features = found[found.feasible].changes()["feature"]
        counts = features.value_counts() if len(features) else {}
        return cls(table, {str(name): int(n) for name, n in counts.items()})


_STATUS = {
    Status.OPTIMAL: "changes",
    Status.STOPPED: "changes, search cut short",
    Status.ALREADY: "there already",
    Status.INFEASIBLE: "not possible",
    Status.UNRESOLVED: "none found",
    Status.MISSED: "missed",
    Status.UNREADABLE: "cannot be read",
}


def _named(names: Sequence[str], clusters: NDArray[np.int64]) -> NDArray[Any]:
    return np.where(clusters < 0, "", np.array(names, dtype=object)[clusters])


def _apart(frame: pd.DataFrame, others: pd.DataFrame) -> pd.DataFrame:
    """Rename columns that are called like one of ours."""
    return frame.rename(columns={name: f"{name} (table)" for name in frame if name in others})


@dataclass(frozen=True, eq=False)
class Everyone:
    """What was found so far; `done` rows of `total`."""

    plan: Plan
    names: tuple[str, ...]
    total: int
    done: int = 0
    parts: tuple[Part, ...] = ()

    @property
    def finished(self) -> bool:
        """Whether all rows were answered."""
        return self.done >= self.total

    def advanced(self, segments: Segments) -> Everyone:
        """Answer the next part."""
        end = min(self.done + PART, self.total)
        found = self.plan.explain(segments, slice(self.done, end))
        part = Part.of(segments, self.names, found, self.done)
        return replace(self, done=end, parts=(*self.parts, part))

    @cached_property
    def table(self) -> pd.DataFrame:
        """All answers, a line each."""
        return pd.concat([part.table for part in self.parts], ignore_index=True)

    @property
    def possible(self) -> NDArray[np.bool_]:
        """Which answers there are."""
        return np.asarray(self.table["result"].str.startswith("changes"))

    @property
    def often_changed(self) -> list[tuple[str, int]]:
        """Columns by how many answers change them."""
        counts: dict[str, int] = {}
        for part in self.parts:
            for name, n in part.changed.items():
                counts[name] = counts.get(name, 0) + n
        return sorted(counts.items(), key=lambda item: -item[1])

    def transitions(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Count answers from each segment to each, and their median cost; NaN where none is."""
        k = len(self.names)
        place = {name: t for t, name in enumerate(self.names)}
        count, cost = np.zeros((k, k), dtype=np.int64), np.full((k, k), np.nan)
        groups = self.table[self.possible].groupby(["from segment", "to segment"], sort=False)
        for (source, target), some in groups["cost"]:
            at = place[source], place[target]
            count[at], cost[at] = len(some), some.median()
        return count, cost

    def csv(self) -> bytes:
        """Write the table as CSV, such as spreadsheets read it."""
        text: str = self.table.to_csv(index=False)
        return text.encode("utf-8-sig")

    def parquet(self) -> bytes:
        """Write the table as Parquet."""
        file = BytesIO()
        table = self.table.copy()
        for name in table:
            if table[name].dtype == object:
                table[name] = table[name].map(lambda v: None if pd.isna(v) else str(v))
        table.to_parquet(file, index=False)
        return file.getvalue()
