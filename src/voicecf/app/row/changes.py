"""What an answer changes, column by column: in words, and how usual it is among all rows."""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from voicecf import Counterfactuals
from voicecf.app.segments.segments import Segments
from voicecf.app.words import percent
from voicecf.plots import changes as library
from voicecf.plots.changes import Change

# Share of rows below which a new value is at the rim of what was seen.
RARE = 0.02
# Bars of a shape.
BARS = 24
# Heights of all rows' shapes, 0 to 1, by column: counted once for each clustering.
_SHAPES: WeakKeyDictionary[Segments, dict[str, tuple[float, ...]]] = WeakKeyDictionary()


@dataclass(frozen=True)
class ShownChange(Change):
    """One column that an answer changes, and what is said of it beside all rows.

    Attributes
    ----------
    rare : str
        Says that hardly any row has such a value; empty if it is a usual one.
    effort : float
        How much it is in spreads (standard deviations) of the column; 1 for a category.
    """

    rare: str = ""
    effort: float = 1.0

    @property
    def phrase(self) -> str:
        """Say it."""
        before, after = self.shown
        if before == "missing":
            return f"{self.column}, which is missing, becomes {after}"
        return f"{self.column} {self.verb} from {before} to {after}"

    @property
    def short(self) -> str:
        """Say it in as few words as possible: 'visits +3', 'job becomes "clerk"'."""
        return f"{self.column} {self.delta or f'becomes {self.shown[1]}'}"


def changes_of(
    segments: Segments, found: Counterfactuals, i: int = 0, *, ranges: bool = False
) -> tuple[ShownChange, ...]:
    """Describe what answer i changes, the costliest first; see `voicecf.plots.changes.changes_of`.

    Parameters
    ----------
    segments : Segments
    found : Counterfactuals
        In few digits: `Counterfactuals.rounded`.
    i : int
    ranges : bool
        Whether to find out how far each may go, which takes a while.
    """
    places = {str(column.name): column.places for column in found.outcome.space.columns}
    moves = np.abs(found.outcome.moves[i])
    made = []
    for change in library.changes_of(found, i, ranges=ranges):
        # Numbers are scaled to a spread of 1.
        effort = float(moves[places[change.column][0]]) if change.is_number else 1.0
        rare = _rare(change, segments.prepared.frame[change.column].to_numpy())
        made.append(ShownChange(**vars(change), rare=rare, effort=effort))
    return tuple(made)


def _rare(change: Change, values: NDArray[np.generic]) -> str:
    """Say how many rows have such a value, if hardly any has."""
    text = change.shown[1]
    if not change.is_number:
        rows = values == change.after
    elif np.isnan(change.before):
        return ""
    elif change.verb == "rises":
        rows, text = values >= change.after, f"{text} or more"
    else:
        rows, text = values <= change.after, f"{text} or less"
    share = float(rows.mean())
    if share >= RARE:
        return ""
    few = f"only {percent(share)} of rows have" if share else "no row has"
    return f"{few} {text} in {change.column}"


def shape(segments: Segments, column: str) -> tuple[float, ...]:
    """Return how many rows there are along the range of a column, the highest bar being 1."""
    known = _SHAPES.setdefault(segments, {})
    if column not in known:
        low, high = segments.spans[column]
        values = segments.prepared.frame[column].dropna().to_numpy(dtype=np.float64)
        # A bar for each whole number, where these are few: bars between them would be empty.
        whole = column in segments.prepared.whole
        bars = min(BARS, round(high - low) + 1) if whole else BARS
        counts, _ = np.histogram(values, bars, (low, high) if high > low else None)
        known[column] = tuple((counts / counts.max()).tolist())
    return known[column]
