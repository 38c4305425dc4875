"""What segments are called: suggested from what sets them apart, until the user says better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from voicecf.app.segments.profiles import Contrast
from voicecf.errors import VoiceError
from voicecf.output import opening, shortened

# Letters of a suggested name, and of a user's.
SUGGESTED, LONGEST = 30, 40
# Spreads from the average from which on a trait can name a segment, alone and as the second.
NOTABLE, SECOND = 0.25, 0.4
# What all rows are called, and segments that have no such trait.
ALL_ROWS, AVERAGE, EMPTY = "All rows", "Close to average", "No rows"

# Levels that say nothing without their column, as short ones do.
VAGUE = {"true", "false", "other", "others", "none", "unknown", "missing"}


class NamingError(VoiceError):
    """A segment cannot be called that; the message says why."""


def suggested_names(found: Contrast) -> tuple[str, ...]:
    """Name every segment by the one or two traits that best tell it from the others.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.app.segments.profiles import Contrast, Feature
    >>> features = Feature("visits_per_month"), Feature("job", "retired")
    >>> means, far = np.array([[9, 3], [0.1, 0.8]]), np.array([[1.2, -0.4], [-0.5, 0.9]])
    >>> suggested_names(Contrast(features, np.array([6, 0.4]), means, far, np.array([50, 40])))
    ('High visits per month', 'Mostly retired')
    """
    names = []
    for t, size in enumerate(found.sizes):
        far = found.strengths[:, t]
        rivals = np.delete(found.strengths, t, axis=1) * np.sign(far)[:, None]
        telling = np.abs(far) - rivals.max(axis=1, initial=0.0) / 2
        below = [feature.level is not None for feature in found.features] & (far < 0)
        some = [i for i in np.argsort(-telling) if abs(far[i]) >= NOTABLE and not below[i]]
        parts = [_phrase(found, i, t) for i in some[:1]]
        if len(some) > 1 and abs(far[some[1]]) >= SECOND:
            second = _phrase(found, some[1], t)
            other = found.features[some[0]].column != found.features[some[1]].column
            parts += [second] * (other and len(parts[0]) + len(second) + 2 <= SUGGESTED)
        usual = AVERAGE if size else EMPTY
        names.append(shortened(opening(", ".join(parts)) or usual, SUGGESTED))
    return distinct(names)


def _phrase(found: Contrast, i: int, t: int) -> str:
    """Say that a segment's average of a feature is above or below that of all rows."""
    feature, share = found.features[i], found.means[i, t]
    column = " ".join(feature.column.replace("_", " ").split())
    if feature.level is None:
        return f"{'high' if found.strengths[i, t] > 0 else 'low'} {column}"
    level = " ".join(feature.level.replace("_", " ").split())
    how = "mostly" if share >= 0.5 else "often" if share >= 0.25 else "more often"
    alone = (
        len(level) > 3 and level[0].isalpha() and level.lower() not in ("true", "false", "other")
    )
    return f"{how} {level if alone else f'{column} {level}'}"


def distinct(names: Sequence[str], taken: Sequence[str] = ()) -> tuple[str, ...]:
    """Add numbers to names that occur before or are taken, in upper or lower case.

    Examples
    --------
    >>> distinct(["High income", "Retired", "high income"], ["retired"])
    ('High income', 'Retired 2', 'high income 2')
    """
    made: list[str] = []
    used = {name.casefold() for name in taken}
    for name in names:
        tried, n = name, 1
        while tried.casefold() in used:
            n += 1
            tried = f"{name} {n}"
        used.add(tried.casefold())
        made.append(tried)
    return tuple(made)


def given_names(suggested: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Return the user's names where there are some, and those suggested elsewhere."""
    wishes = [tidy(given[t]) if t < len(given) else "" for t in range(len(suggested))]
    for t, wish in enumerate(wishes):
        if wish.casefold() in [other.casefold() for other in wishes[:t]]:
            wishes[t] = ""
    left = [name for name, wish in zip(suggested, wishes, strict=True) if not wish]
    others = iter(distinct(left, [wish for wish in wishes if wish]))
    return tuple(wish or next(others) for wish in wishes)


def tidy(name: str) -> str:
    """Return a name in one line, no longer than names may be."""
    return " ".join(str(name).split())[:LONGEST].rstrip()


def check_name(names: Sequence[str], segment: int, name: str) -> None:
    """Raise a NamingError if another segment has a name already, or all rows do."""
    if name.casefold() == ALL_ROWS.casefold():
        raise NamingError(f"“{ALL_ROWS}” is what all of them together are called; choose another.")
    for t, other in enumerate(names):
        if t != segment and other.casefold() == name.casefold():
            raise NamingError(
                f"Segment {t + 1} is already called “{other}”. Names have to differ; choose "
                "another, or rename that one first."
            )
