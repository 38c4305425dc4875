"""The words of a command line and of a file of rules: options with their defaults, and rules."""

from __future__ import annotations

import argparse
import csv
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voicecf.errors import OptionError, known_option, likely
from voicecf.rules.rules import Rules

__all__ = ["DEFAULTS", "number", "read_words"]

# Options that may also stand in a file of rules, and what they are if nobody says.
DEFAULTS: dict[str, Any] = {
    "k": 3, "weights": "none", "scale": "standard", "seed": 0, "missing": "stop",
    "bad_rows": "stop", "ignore": [], "category": [], "target": "nearest", "objective": "cost",
    "deepen": False, "alternatives": 0, "limit": None, "contraction": "retain", "retain": 1.0,
    "box": "data", "margin": 0.0, "delimiter": None, "decimal": ".", "encoding": "utf-8",
    "format": "parquet",
}  # fmt: skip
ALLOWED = {
    "weights": ("none", "shark"),
    "scale": ("standard", "minmax", "none"),
    "missing": ("stop", "drop", "fill"),
    "bad_rows": ("stop", "skip"),
    "objective": ("cost", "prefix", "fewest"),
    "box": ("data", "none"),
    "decimal": (".", ","),
    "format": ("parquet", "csv"),
}
# Of how the explainer is made; a saved one has them decided.
FITTING = ("k", "weights", "scale", "seed", "category", "contraction", "retain", "box", "margin")
LISTS = ("immutable", "increase_only", "decrease_only", "constraints", "ignore", "category")


def read_words(chosen: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and the rules, of the command line and of a file; the former prevail."""
    words: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    known = list(Rules.__dataclass_fields__)
    for word, said in _file_of_rules(chosen.rules).items():
        word = word.replace("-", "_")
        if word not in known and word not in DEFAULTS:
            raise OptionError(
                f"{chosen.rules}: unknown word {word!r}; {likely(word, [*known, *DEFAULTS])}"
            )
        (rules if word in known else words)[word] = said
    for word in DEFAULTS:
        if getattr(chosen, word) is not None:
            words[word] = getattr(chosen, word)
    for word in known:
        if getattr(chosen, word) is not None:
            rules[word] = _joined(rules.get(word), _said(word, getattr(chosen, word)))
    _check_model(chosen, words)
    words = DEFAULTS | words
    for word, allowed in ALLOWED.items():
        known_option(words[word], allowed, f"--{word.replace('_', '-')}")
    if not (isinstance(words["k"], int) and words["k"] >= 2):
        raise OptionError(f"--k {words['k']}: there must be 2 segments or more.")
    return words, rules


def _check_model(chosen: argparse.Namespace, words: dict[str, Any]) -> None:
    for word in FITTING:
        if chosen.model is not None and word in words:
            raise OptionError(
                f"--{word} is for fitting, and --model {chosen.model} is fitted; leave out one."
            )


def _file_of_rules(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is no TOML file: {error}.") from None


def _joined(before: Any, now: Any) -> Any:
    """Return what a file and the command line say; of one column, what the latter says."""
    if isinstance(before, dict) and isinstance(now, dict):
        return {**before, **now}
    if isinstance(now, list) and before is not None:
        return [*([before] if isinstance(before, str) else before), *now]
    return now


def _said(word: str, given: Any) -> Any:
    """Read the words of one rule of the command line."""
    if word in LISTS or word == "max_changes":
        return given
    said: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise OptionError(f"--{word} {text}: say COLUMN=..., such as {EXAMPLES[word]}.")
        read = READERS[word](value, f"--{word} {text}")
        said[name] = [*said.get(name, []), *read] if word == "forbidden" else read
    return said


def _bounds(text: str, where: str) -> list[Any]:
    sides = text.split(":")
    if len(sides) != 2:
        raise OptionError(f"{where}: give LO:HI, such as {EXAMPLES['bounds']}.")
    return [_side(side.strip(), where) for side in sides]


def _side(text: str, where: str) -> Any:
    if text in ("", "open"):
        return "open"
    if text == "..." or text.startswith("+") or text.endswith("%"):
        return text
    if text.startswith("row"):
        return text.removeprefix("row").strip() or "+0"
    return number(text, where)


def number(text: Any, where: str) -> float:
    """Read a number, a whole one as such."""
    try:
        found = float(text)
    except ValueError:
        raise OptionError(f"{where}: {text!r} is no number.") from None
    return int(found) if found.is_integer() else found


def _step(text: str, where: str) -> Any:
    return text if text == "any" else number(text, where)


def _level_list(text: str, where: str) -> list[str]:
    return next(csv.reader([text]), [])


def _transition(text: str, where: str) -> list[list[str]]:
    start, arrow, end = text.partition(">")
    if not arrow:
        raise OptionError(f"{where}: say FROM>TO, such as {EXAMPLES['forbidden']}.")
    return [[start.strip(), end.strip()]]


READERS: dict[str, Callable[[str, str], Any]] = {
    "bounds": _bounds,
    "steps": _step,
    "levels": _level_list,
    "order": _level_list,
    "forbidden": _transition,
    "costs": number,
}
EXAMPLES = {
    "bounds": '--bounds income=0:90000 or --bounds "income=-10%:+500"',
    "steps": "--steps visits=1",
    "levels": "--levels job=clerk,chef",
    "order": "--order size=small,medium,large",
    "forbidden": '--forbidden "job=student>chef"',
    "costs": "--costs income=2",
}
