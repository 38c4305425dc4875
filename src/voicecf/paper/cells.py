"""A cell of a table: ours, what was printed, whether they agree, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from voicecf.paper.published import (
    SHOWN_ONLY,
    Figure,
    Key,
    as_printed,
    figures,
    names_the_same,
    released,
)

# The cells of one dataset in a table: a row a mode, by column.
Rows = Mapping[str, Mapping[str, Any]]

# Lines under a table, for cells that rest on a tie or on a rule that we think wrong.
NOTES = {
    "tie": (
        "German Credit under SHARK is a tie: ten restarts end within 1e-25 of one another in "
        "inertia, on different features, and the last bit of a sum decides which one wins. Listed, "
        "but not counted as a difference."
    ),
    "digits": (
        "the paper prints inertia with seven significant digits and pads with zeros; with two "
        "decimals it is {value:.2f}, as in the authors' own result file."
    ),
    "floor": (
        "the printed rule leaves out rows of the cell whose offset is at most 1e-12. Where weights "
        "are near 1e-13 these are the rows that matter, and what is left says 0.000. We think the "
        "rule wrong; the scale-free value, which leaves out nothing, stands beside it."
    ),
    "box": (
        "the paper's text contracts the bounded cell, box and all; its numbers contract the "
        "Voronoi rows only. With the box included some member nearly always sits on a face of it, "
        "and alpha* is 1: those values stand beside the printed ones."
    ),
    "runtime": "milliseconds on this machine, on all its cores, in one batch of 50; not compared.",
    "risk": (
        "the paper's judgement in words, not compared. Ours says whether the SHARK weights "
        "collapse: two features or fewer carry all of it to three digits."
    ),
    "counts": "counts of valid pairwise points are the authors' released ones.",
    "confirmed": (
        "the answers are exact for the region. `confirmed` is the share of them that the model's "
        "own predict puts into the target, and `voice` the share of rows that `VoICE` answers, "
        "which asks for a distance from the boundary at which rounding cannot matter. Where "
        "weights collapse a cell is thinner than that distance."
    ),
    "solver": (
        "answers of 50: ours is exact, with the printed contraction; beside it what the authors "
        "released for the same questions. Fewer there: answers that exist and were missed; with "
        "nothing fixed the target's centroid always is one. More there: points accepted as answers "
        "that are not in the region, because 1e-6 was allowed where a row's terms are near 1e-13."
    ),
}


@dataclass(frozen=True)
class Entry:
    """One cell.

    Attributes
    ----------
    key : Key
        Table, dataset, mode and column.
    value : number, text or pair
        Ours, in full.
    notes : tuple of str
        Which of `NOTES` apply.
    names : sequence of str
        All names that a printed name of a feature may mean.
    """

    key: Key
    value: Any
    notes: tuple[str, ...] = ()
    names: Sequence[str] = ()

    @property
    def text(self) -> str:
        """Ours, with the digits that the paper prints."""
        return as_printed(self.key.column, self.value)

    @property
    def figure(self) -> Figure | None:
        """What was printed; None if nothing was."""
        return (released() if self.key.table == "solver" else figures()).get(self.key)

    @property
    def agrees(self) -> bool:
        """Whether ours and the printed one are the same."""
        if self.figure is None:
            return False
        if self.key.column == "dominant":
            return names_the_same(self.figure.text, self.text, self.names)
        return self.text == (self.figure.text or "nan")

    @property
    def compared(self) -> bool:
        """Whether a difference would count, if there is one."""
        shown_only = self.key.column in SHOWN_ONLY or self.key.table == "solver"
        return self.figure is not None and not shown_only


def entries(table: str, title: str, rows: Rows, names: Sequence[str] = ()) -> list[Entry]:
    """Return the cells of a dataset in a table; `names` are those that a dominant feature has."""
    return [
        Entry(key, value, _notes(key, value, rows), names)
        for mode, row in rows.items()
        for key, value in ((Key(table, title, mode, column), row[column]) for column in row)
    ]


def _notes(key: Key, value: Any, rows: Rows) -> tuple[str, ...]:
    """Return which of `NOTES` apply to a cell, given all rows of its dataset."""
    _, dataset, mode, column = key
    text = as_printed(column, value)
    exact = {**rows[mode], **rows.get(f"{mode}, scale-free", {})}
    scale_free = exact.get(f"{column}_scale_free", exact[column])
    applies = {
        "tie": dataset == "German Credit" and column in ("shark_ari", "dominant"),
        "digits": column.endswith("inertia") and text not in (f"{value:.2f}", f"{value:.2e}"),
        "floor": text != as_printed(column, scale_free),
        "box": mode.endswith("box included") or column == "alpha_range_box",
        "runtime": column == "runtime_ms",
        "risk": column == "degeneracy_risk",
        "counts": key.table == "validity" and column == "valid",
        "confirmed": column in ("confirmed_pct", "voice_pct"),
        "solver": column.startswith(("least_cost_", "prefix_")),
    }  # fmt: skip
    return tuple(note for note, holds in applies.items() if holds)
