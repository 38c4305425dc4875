"""A cell of a table: ours, what was printed, whether they agree, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from voicecf.paper.published import (
    SHOWN_ONLY,
    Figure,
    Key,
    figures,
    names_the_same,
    released,
    written,
)

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
    """One cell: ours, and what was printed.

    Attributes
    ----------
    key : Key
        Table, dataset, mode and column.
    value : number, text or pair
        Ours, in full.
    text : str
        Ours, with the digits that the paper prints.
    figure : Figure or None
        What was printed; None if nothing was.
    agrees : bool
        Whether they are the same.
    notes : tuple of str
        Which of `NOTES` apply.
    """

    key: Key
    value: Any
    text: str
    figure: Figure | None = None
    agrees: bool = False
    notes: tuple[str, ...] = ()

    @property
    def compared(self) -> bool:
        """Whether a difference would count, if there is one."""
        return (
            self.figure is not None
            and self.key.column not in SHOWN_ONLY
            and self.key.table != "solver"
        )

    @property
    def excused(self) -> bool:
        """Whether the cell rests on a tie, so that a difference is no error."""
        return "tie" in self.notes

    @property
    def differs(self) -> bool:
        """Whether the cell is compared and not the same."""
        return self.compared and not self.agrees


def entry(
    table: str,
    title: str,
    column: str,
    value: Any,
    *,
    mode: str = "",
    notes: Iterable[str] = (),
    choices: Sequence[str] = (),
) -> Entry:
    """Make a cell and compare it; `choices` are the names that a printed name may mean."""
    key = Key(table, title, mode, column)
    text = written(table, column, value)
    figure = (released() if table == "solver" else figures()).get(key)
    agrees = False
    if figure is not None:
        agrees = (
            names_the_same(figure.text, text, choices)
            if choices
            else text == (figure.text or "nan")
        )
    return Entry(key, value, text, figure, agrees, tuple(notes))
