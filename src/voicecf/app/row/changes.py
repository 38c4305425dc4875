"""What an answer changes, column by column: in words, and in its place among all rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from voicecf import Counterfactuals
from voicecf.app.segments.segments import Segments, blocks_of
from voicecf.app.words import PARTED, percent
from voicecf.output.wording import exact, figure

# Share of rows below which a new value is at the rim of what was seen.
RARE = 0.02
# Letters of a present value that are read; a longer one is rounded.
LONG = 12
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class ShownChange:
    """One column that an answer changes.

    Attributes
    ----------
    column : str
    before, after : str
        In the user's units, for reading.
    start, end : float
        The same as places in the observed range of the column, 0 to 1; NaN for a category.
    verb : str
        "rises", "falls" or "changes".
    delta : str
        How much more or less; empty for a category.
    rare : str
        Says that hardly any row has such a value; empty if it is a usual one.
    effort : float
        How much it is in spreads (standard deviations) of the column; 1 for a category.
    """

    column: str
    before: str
    after: str
    start: float
    end: float
    verb: str
    delta: str = ""
    rare: str = ""
    effort: float = 1.0

    @property
    def phrase(self) -> str:
        """Say it."""
        if self.before == "missing":
            return f"{self.column}, which is missing, becomes {self.after}"
        return f"{self.column} {self.verb} from {self.before} to {self.after}"

    @property
    def short(self) -> str:
        """Say it in as few words as possible: 'visits +3', 'job becomes clerk'."""
        return f"{self.column} {self.delta or f'becomes {self.after}'}"


def written(segments: Segments, column: str, value: float) -> str:
    """Write a value of a column exactly; thousands apart only where the column has large ones."""
    return exact(value, thousands=is_large(segments, column))


def is_large(segments: Segments, column: str) -> bool:
    """Tell whether a column of numbers has some that commas make easier to read."""
    return max(abs(end) for end in segments.spans[column]) >= PARTED


def changes_of(segments: Segments, found: Counterfactuals) -> list[tuple[ShownChange, ...]]:
    """Describe what each answer changes, the costliest first; nothing where there is none.

    The same as `Counterfactuals.changes`, with words for reading, and quick for a row or two.

    Parameters
    ----------
    segments : Segments
    found : Counterfactuals
        In few digits: `Counterfactuals.rounded`.
    """
    if not found.feasible.any():
        return [()] * len(found)
    before, after = found.factual, found.to_frame()
    order = np.argsort(-_prices(segments, found), axis=1, kind="stable")
    names, moves = segments.prepared.names, np.abs(found.outcome.moves)
    places = blocks_of(segments.prepared, segments.model)
    values = [(before[n].to_numpy()[found.row], after[n].to_numpy()) for n in names]
    made = []
    for i, ranked in enumerate(order.tolist() if len(found) else ()):
        told = []
        for c in ranked if found.feasible[i] else ():
            change = _change(segments, names[c], *(some[i] for some in values[c]))
            if change is not None and names[c] in segments.prepared.numbers:
                # Numbers are scaled to a spread of 1.
                change = replace(change, effort=float(moves[i, places[names[c]][0]]))
            told.append(change)
        made.append(tuple(change for change in told if change is not None))
    return made


def _prices(segments: Segments, found: Counterfactuals) -> NDArray[np.float64]:
    """Return what each answer's change of each column costs, shape (answers, columns)."""
    moves = found.outcome.weights * found.outcome.moves**2
    places = blocks_of(segments.prepared, segments.model)
    return np.array([moves[:, places[name]].sum(axis=1) for name in segments.prepared.names]).T


def _change(segments: Segments, name: str, before: Any, after: Any) -> ShownChange | None:
    """Describe a change; None if there is none to speak of."""
    values = segments.prepared.frame[name].to_numpy()
    if name in segments.prepared.categories:
        was, is_ = ("missing" if _gone(v) else str(v) for v in (before, after))
        if was == is_:
            return None
        return ShownChange(
            name, was, is_, np.nan, np.nan, "changes", "", _rare(name, values == is_, is_)
        )
    low, high = segments.spans[name]
    start, end = float(before), float(after)
    if _gone(end) or end == start:
        return None
    first, last = ((v - low) / ((high - low) or 1.0) for v in (start, end))
    rises = end > start
    was, is_ = (written(segments, name, v) for v in (start, end))
    if len(was) > LONG and segments.written(name, start) != is_:
        was = segments.written(name, start)  # nobody types in what is there already
    amount = figure(abs(end - start))
    amount = amount if is_large(segments, name) else amount.replace(",", "")
    delta = "" if _gone(start) else f"{'+' if rises else MINUS}{amount}"
    beyond, more = (values >= end, "more") if rises else (values <= end, "less")
    rare = "" if _gone(start) else _rare(name, beyond, f"{is_} or {more}")
    return ShownChange(name, was, is_, first, last, "rises" if rises else "falls", delta, rare)


def _rare(name: str, rows: NDArray[np.bool_], value: str) -> str:
    """Say how many rows have such a value, if hardly any has."""
    share = float(rows.mean())
    if share >= RARE:
        return ""
    few = f"only {percent(share)} of rows have" if share else "no row has"
    return f"{few} {value} in {name}"


def _gone(value: Any) -> bool:
    return value is None or value != value
