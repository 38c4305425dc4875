"""Segments against all rows, column by column, in the user's units."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from voicecf.app.words import percent

Written = Callable[[str, float], str]


class Feature(NamedTuple):
    """What segments are compared by: a column of numbers, or a level of a category."""

    column: str
    level: str | None = None

    @property
    def title(self) -> str:
        """How it is called: 'visits', 'channel: app'."""
        return self.column if self.level is None else f"{self.column}: {self.level}"

    def written(self, value: float, written: Written) -> str:
        """Write an average of it: a number as `written` does, the share of a level in percent."""
        if np.isnan(value):
            return "no value"
        return written(self.column, value) if self.level is None else percent(value)


@dataclass(frozen=True, eq=False)
class Contrast:
    """How segments differ from all rows.

    Attributes
    ----------
    features : tuple of Feature
        In the order of the table.
    overall : array of shape (features,)
        The average of all rows; for a level, the share of rows that have it.
    means : array of shape (features, segments)
        The same of each segment; NaN where it has no value at all.
    strengths : array of shape (features, segments)
        How far a segment's average is above that of all rows, in spreads (standard deviations).
    sizes : array of int, of shape (segments,)
    """

    features: tuple[Feature, ...]
    overall: NDArray[np.float64] = field(repr=False)
    means: NDArray[np.float64] = field(repr=False)
    strengths: NDArray[np.float64] = field(repr=False)
    sizes: NDArray[np.int64]

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of all rows that each segment has."""
        return np.asarray(self.sizes / self.sizes.sum())

    def of(self, column: str) -> list[int]:
        """Return where the features of a column are."""
        return [i for i, feature in enumerate(self.features) if feature.column == column]


def contrast(
    frame: pd.DataFrame, numbers: Collection[str], labels: NDArray[np.int64], k: int
) -> Contrast:
    """Compare segments with all rows, by averages of `numbers` and levels of all other columns.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from voicecf.app.segments.profiles import contrast
    >>> frame = pd.DataFrame({"age": [20, 22, 60, 62], "job": ["chef", "chef", "clerk", "chef"]})
    >>> found = contrast(frame, ["age"], np.array([0, 0, 1, 1]), 2)
    >>> [feature.title for feature in found.features]
    ['age', 'job: chef', 'job: clerk']
    >>> found.means.tolist(), found.overall.tolist()
    ([[21.0, 61.0], [1.0, 0.5], [0.0, 0.5]], [41.0, 0.75, 0.25])
    """
    of_numbers = frame[[name for name in frame if name in numbers]]
    by_segment = of_numbers.groupby(labels).mean().reindex(range(k))
    middles, spreads = of_numbers.mean(), of_numbers.std(ddof=0)
    features: list[Feature] = []
    overall, means, spread = [], [], []
    for name in frame:
        if name in numbers:
            features.append(Feature(name))
            overall.append(middles[[name]].to_numpy(dtype=np.float64))
            means.append(by_segment[[name]].to_numpy(dtype=np.float64).T)
            spread.append(spreads[[name]].to_numpy(dtype=np.float64))
        else:
            levels, usual, shares = _shares(frame[name], labels, k)
            features += [Feature(name, str(level)) for level in levels]
            overall.append(usual)
            means.append(shares)
            spread.append(np.sqrt(usual * (1 - usual)))
    middle, far = np.concatenate(overall), np.concatenate(spread)[:, None]
    mean = np.vstack(means)
    off = np.nan_to_num(mean - middle[:, None])
    strengths = np.divide(off, far, out=np.zeros_like(off), where=far > 0)
    return Contrast(tuple(features), middle, mean, strengths, np.bincount(labels, minlength=k))


def _shares(
    values: pd.Series, labels: NDArray[np.int64], k: int
) -> tuple[list[str], NDArray[np.float64], NDArray[np.float64]]:
    """Return levels, the share of rows that have each, and that share by segment."""
    codes, levels = pd.factorize(values, sort=True)
    has = codes >= 0
    cells = codes[has] * k + labels[has]
    counts = np.bincount(cells, minlength=len(levels) * k).reshape(len(levels), k)
    here = counts.sum(axis=0)
    shares = np.divide(counts, here, out=np.full(counts.shape, np.nan), where=here > 0)
    return list(levels), counts.sum(axis=1) / max(1, counts.sum()), shares


@dataclass(frozen=True)
class Trait:
    """What is typical of a segment in one column.

    Attributes
    ----------
    feature : Feature
        Of a category, the level that is most overrepresented.
    typical : str
        The segment's average or share.
    overall : str
        That of all rows.
    strength : float
        How far the segment is above all rows, in spreads.
    """

    feature: Feature
    typical: str
    overall: str
    strength: float

    @property
    def column(self) -> str:
        """The column that it is about."""
        return self.feature.column

    @property
    def text(self) -> str:
        """The segment against all rows: '9 (all: 4)', 'for 85 % (all: 52 %)'."""
        share = "" if self.feature.level is None else "for "
        return f"{share}{self.typical} (all: {self.overall})"


@dataclass(frozen=True)
class Profile:
    """A segment: how many rows, and what is typical of it, what stands out most first."""

    size: int
    share: float
    traits: tuple[Trait, ...]


def profiles(found: Contrast, written: Written) -> tuple[Profile, ...]:
    """Describe every segment, one trait a column; `written` writes numbers of a column."""
    columns = dict.fromkeys(feature.column for feature in found.features)
    places = [np.array(found.of(column)) for column in columns]
    made = []
    for t, size in enumerate(found.sizes.tolist()):
        far = found.strengths[:, t]
        strongest = [int(some[np.argmax(far[some])]) for some in places] if size else []
        strongest.sort(key=lambda i: -abs(far[i]))
        traits = [_trait(found, i, t, written) for i in strongest]
        made.append(Profile(size, float(found.shares[t]), tuple(traits)))
    return tuple(made)


def _trait(found: Contrast, i: int, t: int, written: Written) -> Trait:
    feature = found.features[i]
    typical = feature.written(found.means[i, t], written)
    overall = feature.written(found.overall[i], written)
    return Trait(feature, typical, overall, float(found.strengths[i, t]))


def profile_table(found: Contrast, names: Sequence[str], written: Written) -> pd.DataFrame:
    """Return averages and most frequent levels, a line a column and a column a segment."""
    columns = list(dict.fromkeys(feature.column for feature in found.features))
    values = np.column_stack([found.means, found.overall])
    table = {
        name: [_typical(found, found.of(column), values[:, t], written) for column in columns]
        for t, name in enumerate([*names, "All rows"])
    }
    return pd.DataFrame(table, index=pd.Index(columns, name="Column"))


def _typical(
    found: Contrast, places: list[int], values: NDArray[np.float64], written: Written
) -> str:
    if np.isnan(values[places]).all():
        return ""
    most = places[int(np.nanargmax(values[places]))]
    feature = found.features[most]
    text = feature.written(values[most], written)
    return text if feature.level is None else f"{feature.level} ({text})"
