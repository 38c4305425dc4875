"""What an answer changes: values before and after, and between which a column may lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from voicecf.counterfactuals import Counterfactuals
from voicecf.geometry.arrays import Array
from voicecf.output.digits import short_before
from voicecf.reasons.ranges import short_ranges
from voicecf.search.solving import PAIRWISE
from voicecf.table.column import Column
from voicecf.table.space import Space
from voicecf.table.units import has_cents, told, with_unit
from voicecf.table.wording import PARTED, compact, exact, figure, level, shortened

# Bars of a shape.
BARS = 24
# Above the columns of a card.
HEADS = ("Column", "From and to", "Change", "Within what was seen")
# What ends a range, where it is no cluster.
LIMITS = {
    "data range": "end of the data", "bound": "your bound", "open": "no limit",
    "rule": "your rule", "plausible": "then unusual", "step": "next step",
}  # fmt: skip
# Most powers of ten that a track names.
TICKS = 5
# A map is a logarithm if it differs from one by this share of its range at most, over a column
# whose largest value is so many times its smallest.
LIKE_LOG, WIDE = 0.05, 10.0
MINUS = "\N{MINUS SIGN}"


@dataclass(frozen=True)
class Change:
    """One changed column.

    Attributes
    ----------
    column : str
        Its name.
    before, after : object
        A float in the user's units, NaN if missing, or a level; after the change in few digits
        that still land, as `Counterfactuals.rounded` has it.
    observed : pair of float
        The column's range in the data of `fit`; infinite where there was none.
    low, high : float
        Between which it may lie while the answer stays in its target, the other columns held;
        infinite where nothing binds, NaN for a category or where it is not known.
    binds_low, binds_high : str
        What is in the way there: a cluster, "bound", "rule", "plausible", "step", "data range" or
        "open".
    other_levels : str
        Of a category: levels that would do as well, in quotes.
    share : float
        Its share of the cost.
    unit : str
        What its numbers are of; empty if that is not known.
    whole : bool
        Whether it has whole numbers.
    shift : float
        If the model sees the column through a logarithm, what that adds to it: 0, or 1 for log1p;
        else NaN. Its track is logarithmic then.
    shape : tuple of float
        How many rows there are along the observed range, as heights of bars, 0 to 1; empty if
        there are no rows to count.

    Examples
    --------
    >>> from voicecf.plots import Change
    >>> change = Change("visits", 2.0, 5.0, (0.0, 9.0))
    >>> change.shown, change.verb, change.short
    (('2', '5'), 'rises', 'visits +3')
    """

    column: str
    before: Any
    after: Any
    observed: tuple[float, float]
    low: float = np.nan
    high: float = np.nan
    binds_low: str = ""
    binds_high: str = ""
    other_levels: str = ""
    share: float = np.nan
    unit: str = ""
    whole: bool = False
    shift: float = np.nan
    shape: tuple[float, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether it is a number, not a category."""
        return isinstance(self.after, float)

    @property
    def texts(self) -> tuple[str, str]:
        """Values before and after as text without units; the latter has all of its digits."""
        if not self.is_number:
            return level(self.before), level(self.after)
        return exact(self._short), exact(self.after)

    @property
    def shown(self) -> tuple[str, str]:
        """The same with units, thousands apart if the column has large numbers, unlike years."""
        if not self.is_number:
            return self.texts
        return self.text_of(self._short), self.text_of(self.after)

    @property
    def _short(self) -> float:
        return float(short_before(self.before, self.after, has_cents(self)))

    @property
    def verb(self) -> str:
        """What it does: "rises", "falls" or, if it is a category, "changes"."""
        if not self.is_number:
            return "changes"
        return "falls" if self.after < self.before else "rises"

    @property
    def delta(self) -> str:
        """How much more or less it is, as text; empty for a category and a missing value."""
        if not self.is_number or np.isnan(self.before):
            return ""
        sign = MINUS if self.after < self.before else "+"
        return f"{sign}{self.text_of(abs(self.after - self._short), 3)}"

    @property
    def short(self) -> str:
        """What becomes of the column, in as few words as possible."""
        return f"{self.column} {self.delta or f'becomes {self.shown[1]}'}"

    @property
    def observed_texts(self) -> tuple[str, str]:
        """Ends of the observed range, as text without units."""
        low, high = (
            self._parted(figure(end, 4)) if np.isfinite(end) else "open" for end in self.observed
        )
        return low, high

    @property
    def range_text(self) -> str:
        """Between which values it may lie, or which levels would do as well; empty if unknown."""
        if not self.is_number:
            return f"or {self.other_levels}" if self.other_levels else ""
        if np.isnan(self.low):
            return ""
        ends = ((self.low, self.binds_low), (self.high, self.binds_high))
        low, high = (f"{self.text_of(end)} ({_limit(binds)})" for end, binds in ends)
        return f"may be {low} to {high}"

    def place(self, value: float) -> float:
        """Return where a value is on a track of the column, 0 to 1; an end of it if infinite.

        The track holds the observed range, both values and the tolerance.
        """
        numbers = [self.before, self.after, *self.observed, self.low, self.high]
        values = np.array(numbers, dtype=np.float64)
        values = self._scaled(values[np.isfinite(values)])
        low, high = float(values.min()), float(values.max())
        if not high > low:
            low, high = low - 1.0, high + 1.0
        # An open side has room beyond, to see that it goes on.
        below, above = 0.2 * (high - low) * np.isinf(self.observed)
        low, high = low - below, high + above
        return float((np.clip(self._scaled(value), low, high) - low) / (high - low))

    def _scaled(self, values: Any) -> Any:
        """Return values on the scale of the track."""
        if np.isnan(self.shift):
            return values
        least = self.observed[0] + self.shift
        return np.log10(np.maximum(values + self.shift, least / 10))

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Powers of ten within the observed range, and what they are called, on a log scale."""
        if np.isnan(self.shift):
            return []
        low, high = self.observed
        first, last = np.log10([max(low, 1.0 if self.shift else low), high])
        powers = np.arange(np.floor(first) + (low > 0), np.ceil(last))
        powers = powers[:: max(1, -(-len(powers) // TICKS))]
        return [(float(10**power), compact(float(10**power))) for power in powers]

    def text_of(self, value: float, digits: int | None = None) -> str:
        """Write a number of the column with its unit, exactly or in so many telling digits."""
        text = exact(value, thousands=True) if digits is None else told(value, self, digits)
        return with_unit(self._parted(text), self)

    def _parted(self, text: str) -> str:
        """Part thousands only in columns that have large numbers."""
        ends = [abs(end) for end in (self.before, self.after, *self.observed) if np.isfinite(end)]
        return text if max(ends) >= PARTED else text.replace(",", "")


def _limit(binds: str) -> str:
    return LIMITS.get(binds, f"then “{shortened(binds, 24)}”")


def _shift_of(space: Space, c: int) -> float:
    """Return what a column's map adds before it takes the logarithm; NaN if it takes none."""
    column = space.columns[c]
    low, high = column.observed
    if column.kind != "number" or column.affine or not 0 <= low < high < np.inf:
        return np.nan
    for shift in (0.0, 1.0):
        if low + shift > 0 and high + shift >= WIDE * (low + shift):
            values = np.geomspace(low + shift, high + shift, 9) - shift
            seen = space.coordinates(c, np.clip(values, low, high))[:, 0]
            even = np.linspace(seen[0], seen[-1], len(seen))
            if np.abs(seen - even).max() <= LIKE_LOG * abs(seen[-1] - seen[0]):
                return shift
    return np.nan


def column_costs(cf: Counterfactuals) -> Array:
    """Return what the change of each column costs in each answer, shape (n, columns)."""
    costs = cf.outcome.weights * cf.outcome.moves**2
    columns = cf.outcome.space.columns
    return np.column_stack([costs[:, column.places].sum(axis=1) for column in columns])


def changes_of(
    cf: Counterfactuals, i: int = 0, *, ranges: bool = True, data: Any = None
) -> list[Change]:
    """Return what answer `i` changes, the costliest first.

    Parameters
    ----------
    cf : Counterfactuals
        In few digits: `Counterfactuals.rounded`.
    i : int
    ranges : bool
        Whether to solve for how far each column may go; else that is not known.
    data : frame, optional
        Rows whose shape along each column is told.
    """
    if not cf.feasible[i]:
        return []
    costs = column_costs(cf[i])[0]
    # CFCLUST's answers have no ranges.
    known = ranges and cf.outcome.question.objective != PAIRWISE
    limits = short_ranges(cf.outcome, i) if known else []
    found = []
    for at, c in enumerate(cf.outcome.changed(i).tolist()):
        column = cf.outcome.space.columns[c]
        before, after = (values[c][i] for values in cf.outcome.values)
        if cf.outcome.space.is_boolean(c, cf.outcome.rows):
            before, after = None if np.isnan(before) else bool(before), bool(after)
        elif column.kind == "number":
            before, after = float(before), float(after)
        share = costs[c] / costs.sum() if costs.sum() > 0 else np.nan
        facts = limits[at] if known else {"column": str(column.name)}
        observed = (float(column.observed[0]), float(column.observed[1]))
        shape = () if data is None or column.kind != "number" else _shape(data[column.name], column)
        found.append(
            Change(
                before=before,
                after=after,
                observed=observed,
                share=float(share),
                unit=column.unit,
                whole=column.whole,
                shift=_shift_of(cf.outcome.space, c),
                shape=shape,
                **facts,
            )
        )
    return found


def _shape(values: Any, column: Column) -> tuple[float, ...]:
    """Count rows along the observed range of a column; the highest bar is 1."""
    numbers = np.asarray(values, dtype=np.float64)
    low, high = (float(end) for end in column.observed)
    if not (np.isfinite(low) and np.isfinite(high) and low < high):
        return ()
    # A bar for each whole number, where these are few: bars between them would be empty.
    bars = min(BARS, round(high - low) + 1) if column.whole else BARS
    counts, _ = np.histogram(numbers[np.isfinite(numbers)], bars, (low, high))
    return tuple((counts / max(counts.max(), 1)).tolist())
