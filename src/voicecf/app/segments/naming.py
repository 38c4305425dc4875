"""What segments are called: suggested from what sets them apart, until the user says better."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import NamedTuple

import numpy as np

from voicecf.app.segments.profiles import Contrast, Feature
from voicecf.app.words import number
from voicecf.errors import VoiceError
from voicecf.output import opening, shortened

# Letters of a suggested name, and of a user's.
SUGGESTED, LONGEST = 30, 40
# Spreads from the average from which on a trait can name a segment, alone and as the second.
NOTABLE, SECOND = 0.25, 0.4
# Names of segments that have no such trait.
ALL_ROWS = "All rows"
AVERAGE, EMPTY = "Close to average", "No rows"
# Traits of a segment that names are made from.
TRIED = 6
# What is said of averages above and below that of all rows, by a word of the column's name.
ADJECTIVES = {
    "year": ("late", "early"), "size": ("large", "small"), "distance": ("long", "short"),
    "duration": ("long", "short"), "tenure": ("long", "short"), "length": ("long", "short"),
}  # fmt: skip
YES, NO = {"yes", "true", "y", "1"}, {"no", "false", "n", "0"}
# Levels that say nothing without their column, and units at the end of a column's name.
VAGUE = {
    *YES, *NO, "other", "others", "none", "unknown", "missing", "never", "rarely", "sometimes",
    "often", "frequently", "always", "low", "medium", "high", "small", "large", "normal",
}  # fmt: skip
UNITS = r"mm|cm|m|km|mg|g|kg|lbs?|ml|l|eur|usd|gbp|chf|pct|percent|min|sec|hours?|days?"


class NamingError(VoiceError):
    """A segment cannot be called that; the message says why."""


class Phrase(NamedTuple):
    """A trait in a few words, how well it tells a segment from the others, and its average."""

    text: str
    column: str
    strength: float
    telling: float
    value: str


def suggested_names(
    found: Contrast, whole: Sequence[str], spans: Mapping[str, tuple[float, float]]
) -> tuple[str, ...]:
    """Name every segment by the one or two traits that best tell it from the others.

    Parameters
    ----------
    found : Contrast
    whole : sequence of str
        Columns of whole numbers.
    spans : mapping of str to (float, float)
        The observed range of each column of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from voicecf.app.segments.profiles import Contrast, Feature
    >>> features = Feature("visits_per_month"), Feature("job", "retired")
    >>> means, far = np.array([[9, 3], [0.1, 0.8]]), np.array([[1.2, -0.4], [-0.5, 0.9]])
    >>> found = Contrast(features, np.array([6, 0.4]), means, far, np.array([50, 40]))
    >>> suggested_names(found, ["visits_per_month"], {"visits_per_month": (0, 12)})
    ('Many visits', 'Mostly retired, few visits')
    """
    words = Vocabulary.of(found, whole, spans)
    traits = [_phrases(found, t, words) for t in range(len(found.sizes))]
    options = [sorted(_options(phrases), key=lambda option: -option[0]) for phrases in traits]
    names = [AVERAGE if size else EMPTY for size in found.sizes]
    taken: set[frozenset[str]] = set()
    # Segments that stand out most have the first choice.
    for t in sorted(range(len(names)), key=lambda t: -max((s for s, _ in options[t]), default=0)):
        free = [name for _, name in options[t] if frozenset(name) not in taken]
        if free:
            taken.add(frozenset(free[0]))
            names[t] = opening(", ".join(free[0]))
        elif traits[t]:
            names[t] = opening(_with_value(traits[t][0]))
    return distinct(names)


def _with_value(phrase: Phrase) -> str:
    """Say how much, where several segments have the same traits: 'many visits (9.8)'."""
    value = f" ({phrase.value})"
    return shortened(phrase.text, SUGGESTED - len(value)) + value


def _titles(found: Contrast) -> dict[str, str]:
    """Return what columns are called in names: in words, without units unless these differ."""
    columns = dict.fromkeys(feature.column for feature in found.features)
    long = {name: _words(name) for name in columns}
    units = re.compile(rf"\s+(?:per|in)\s.*|\s*[(\[].*|\s+(?:{UNITS})$", re.I)
    short = {name: units.sub("", text) for name, text in long.items()}
    count = Counter(short.values())
    return {
        name: short[name] if short[name] and count[short[name]] == 1 else long[name]
        for name in columns
    }


def _words(name: str) -> str:
    """Write a column's name in words: 'visits_per_month' and 'visitsPerMonth' alike."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])|_+", " ", str(name))
    return " ".join(word.lower() if _is_word(word) else word for word in parted.split())


def _is_word(text: str) -> bool:
    """Tell a word from a code or an abbreviation: these keep their capitals."""
    return text.isalpha() and ((text.istitle() and len(text) > 2) or len(text) > 4)


@dataclass(frozen=True)
class Vocabulary:
    """The words for what is above and below average in a table.

    Attributes
    ----------
    titles : mapping of str to str
        What columns are called in names.
    whole : sequence of str
        Columns of whole numbers.
    spans : mapping of str to (float, float)
        The range of each column of numbers.
    yes_no : set of str
        Categories that say yes or no.
    vague : set of str
        Levels, in lower case, that do not say which column they are of.
    """

    titles: Mapping[str, str]
    whole: Sequence[str]
    spans: Mapping[str, tuple[float, float]]
    yes_no: set[str]
    vague: set[str]

    @classmethod
    def of(
        cls, found: Contrast, whole: Sequence[str], spans: Mapping[str, tuple[float, float]]
    ) -> Vocabulary:
        """Gather the words of a table."""
        features = [feature for feature in found.features if feature.level is not None]
        levels: dict[str, set[str]] = {}
        for feature in features:
            levels.setdefault(feature.column, set()).add(str(feature.level).lower())
        columns = Counter(str(feature.level).lower() for feature in features)
        return cls(
            _titles(found), whole, spans,
            {name for name, some in levels.items() if some <= YES | NO and not some <= YES},
            VAGUE | {level for level, count in columns.items() if count > 1},
        )  # fmt: skip

    def phrase(self, feature: Feature, mean: float, above: bool) -> str:
        """Say that a segment's average is above or below that of all rows."""
        title = self.titles[feature.column]
        if feature.level is not None:
            return self._level_phrase(feature.column, feature.level, mean)
        whole, span = feature.column in self.whole, self.spans[feature.column]
        if whole and span == (0, 1):
            return f"{_how_often(mean) if above else _how_rarely(mean)} {title}"
        if title.lower() == "age" or re.search(r"\bsince (date of )?birth\b", title.lower()):
            return "older" if above else "younger"
        if since := re.match(r"(?:years|days) since (.+)", title):
            return f"{'long since' if above else 'recent'} {since[1]}"
        more, less = _adjectives(title.lower().split(), whole)
        return f"{more if above else less} {title}"

    def _level_phrase(self, column: str, level: str, share: float) -> str:
        title, text = self.titles[column], " ".join(level.replace("_", " ").split())
        if column in self.yes_no and text.lower() in YES:
            return f"{_how_often(share)} {title}"
        if column in self.yes_no and text.lower() in NO:
            return f"{_how_rarely(1 - share)} {title}"
        alone = len(text) > 2 and text[0].isalpha() and level.lower() not in self.vague
        return f"{_how_often(share)} {text if alone else f'{title} {text}'}"

    def value(self, feature: Feature, mean: float) -> str:
        """Write the average."""
        return feature.written(mean, lambda column, value: number(value, self.spans[column]))


def _adjectives(words: Sequence[str], whole: bool) -> tuple[str, str]:
    """Return what is said of more and of less of a column of numbers, by the words of its name."""
    known = [ADJECTIVES[word] for word in words if word in ADJECTIVES]
    if known:
        return known[0]
    plural = any(re.search(r"[^sui]s$|children$", word) for word in (*words[:1], *words[-1:]))
    return ("many", "few") if whole and plural else ("high", "low")


def _how_often(share: float) -> str:
    """Say that a share is above average."""
    return "mostly" if share >= 0.5 else "often" if share >= 0.25 else "more often"


def _how_rarely(share: float) -> str:
    """Say that a share is below average."""
    return "rarely" if share <= 0.2 else "less often"


def _phrases(found: Contrast, t: int, words: Vocabulary) -> list[Phrase]:
    """Return what can be said of a segment, what tells it best from the others first."""
    made = []
    others = np.arange(len(found.sizes)) != t
    for i, feature in enumerate(found.features):
        far, mean = found.strengths[i], float(found.means[i, t])
        if abs(far[t]) < NOTABLE or (far[t] < 0 and feature.level is not None):
            continue
        rival = (np.sign(far[t]) * far[others]).max(initial=0.0)
        text = words.phrase(feature, mean, far[t] > 0)
        telling = abs(far[t]) - rival / 2
        made.append(Phrase(text, feature.column, abs(far[t]), telling, words.value(feature, mean)))
    return sorted(made, key=lambda phrase: -phrase.telling)[:TRIED]


def _options(phrases: Sequence[Phrase]) -> Iterator[tuple[float, tuple[str, ...]]]:
    """Yield names of one or two phrases, with how well each tells the segment from others."""
    for one in phrases:
        # What does not fit in full is hard to read, so that something else is tried first.
        readable = 1.0 if len(one.text) <= SUGGESTED else 0.5
        yield one.telling * readable, (shortened(one.text, SUGGESTED),)
    for one, two in combinations(phrases, 2):
        short = len(one.text) + len(two.text) + 2 <= SUGGESTED
        if short and one.column != two.column and two.strength >= SECOND:
            yield one.telling + two.telling / 2, (one.text, two.text)


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
