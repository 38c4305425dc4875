"""Errors about the user's input. A message says what was passed, what is allowed, what to do."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any


class VoiceError(ValueError):
    """Base class of this library's errors; ``except ValueError`` catches it, too."""


class ModelError(VoiceError):
    """The model cannot be explained: not fitted, no centroids, or only one cluster."""


class DataError(VoiceError):
    """The data cannot be used: missing or infinite values, text, too few columns, no rows."""


class ColumnError(VoiceError):
    """A column is unknown, misspelt, missing or named twice."""


class TargetError(VoiceError):
    """A target names no cluster of the model."""


class BoundsError(VoiceError):
    """A lower bound is above its upper bound, or bounds have the wrong shape or are no numbers."""


class OptionError(VoiceError):
    """An option has a value that is not allowed."""


class SavingError(VoiceError):
    """An object cannot be saved, or a file cannot be loaded: unknown class, damaged, too large."""


class EmptyClusterWarning(UserWarning):
    """A cluster has no rows in the data, so its cell cannot be contracted to them."""


class RankingWarning(UserWarning):
    """A ranking by weight does not rank: all weights are equal."""


class RoundingWarning(UserWarning):
    """Clusters are as close together as the model's own `predict` rounds distances."""


class VersionWarning(UserWarning):
    """A file was saved under another version of scikit-learn."""


def known_column(name: Any, names: list[Any], where: str) -> int:
    """Return the position of a column given by name or position, or raise with the likely name.

    Text stands for a name that is no text (files of rules have nothing else).
    """
    if name in names:
        return names.index(name)
    if isinstance(name, int) and not any(isinstance(n, int) for n in names):
        if -len(names) <= name < len(names):
            return name % len(names)
        raise ColumnError(
            f"there is no column {name} in {where}: positions go from 0 to {len(names) - 1}."
        )
    spelt = [at for at, known in enumerate(names) if str(known) == name]
    if len(spelt) == 1:
        return spelt[0]
    raise ColumnError(f"unknown column {name!r} in {where}; {likely(name, names)}")


def likely(name: Any, known: Iterable[Any], most: int = 8) -> str:
    """Suggest the known name that is closest; list the known names if none is close.

    Capitals, blanks and hyphens do not matter.

    Examples
    --------
    >>> from voicecf.errors import likely
    >>> likely("Bank marketing", ["iris", "bank_marketing"]), likely("x", ["iris", "wine"])
    ("did you mean 'bank_marketing'?", "choose from 'iris', 'wine'.")
    """
    known = list(known)
    spelt = {_spelt(one): str(one) for one in reversed(known)}
    wish = _spelt(name) if isinstance(name, str) else ""
    close = get_close_matches(wish, list(spelt), 1, cutoff=0.6)
    return f"did you mean {spelt[close[0]]!r}?" if close else f"choose from {listed(known, most)}."


def _spelt(name: Any) -> str:
    return "_".join(str(name).lower().replace("-", " ").split())


def known_option(value: Any, allowed: Iterable[str], where: str) -> None:
    """Raise unless `value` is one of the allowed texts."""
    allowed = list(allowed)
    if not (isinstance(value, str) and value in allowed):
        raise OptionError(f"{where}={value!r} is not known; use one of {listed(allowed)}.")


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Write the first few of a list: 'a', 'b' and 3 more."""
    names = list(names)
    shown = ", ".join(repr(n) for n in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
