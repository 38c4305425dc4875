"""Options and rules of ``voicecf explain``, read from the command line and from a TOML file."""

from __future__ import annotations

import argparse
import csv
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from voicecf.errors import OptionError, known_option, likely
from voicecf.rules.rules import Rules

__all__ = ["DEFAULTS", "LISTS", "number", "read_options"]

# Options that a TOML file may hold as well, and their defaults.
DEFAULTS: dict[str, Any] = {
    "k": 3, "weights": "none", "scale": "standard", "seed": 0, "missing": "stop",
    "bad_rows": "stop", "ignore": [], "category": [], "target": "nearest", "objective": "cost",
    "deepen": False, "alternatives": 0, "limit": None, "contraction": "retain", "retain": 1.0,
    "box": "data", "margin": 0.0, "delimiter": None, "decimal": "auto", "encoding": None,
    "sheet": None, "format": "parquet",
}  # fmt: skip
ALLOWED = {
    "weights": ("none", "shark"),
    "scale": ("standard", "minmax", "none"),
    "missing": ("stop", "drop", "fill"),
    "bad_rows": ("stop", "skip"),
    "objective": ("cost", "prefix", "fewest"),
    "box": ("data", "none"),
    "decimal": ("auto", ".", ","),
    "format": ("parquet", "csv"),
}
# Options of fitting, which a saved explainer does not take.
FITTING = ("k", "weights", "scale", "seed", "category", "contraction", "retain", "box", "margin")
LISTS = (
    "immutable", "mutable", "increase_only", "decrease_only", "constraints", "together", "ignore",
    "category",
)  # fmt: skip


def read_options(chosen: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options and rules; those of the command line override those of the TOML file."""
    options, rules = _read_file(chosen.rules)
    for name in DEFAULTS:
        if getattr(chosen, name) is not None:
            options[name] = getattr(chosen, name)
    for name in Rules.__dataclass_fields__:
        if getattr(chosen, name) is not None:
            rules[name] = _merged(rules.get(name), _parsed(name, getattr(chosen, name)))
    _check_model(chosen, options)
    options = DEFAULTS | options
    for name, allowed in ALLOWED.items():
        known_option(options[name], allowed, f"--{name.replace('_', '-')}")
    if not (isinstance(options["k"], int) and options["k"] >= 2):
        raise OptionError(f"--k {options['k']}: there must be 2 segments or more.")
    return options, rules


def _read_file(path: Path | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options and the rules of a TOML file."""
    options: dict[str, Any] = {}
    rules: dict[str, Any] = {}
    if path is None:
        return options, rules
    try:
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is not a valid TOML file: {error}.") from None
    known = list(Rules.__dataclass_fields__)
    for name, value in entries.items():
        name = name.replace("-", "_")
        if name not in known and name not in DEFAULTS:
            raise OptionError(
                f"{path}: unknown option {name!r}; {likely(name, [*known, *DEFAULTS])}"
            )
        (rules if name in known else options)[name] = value
    return options, rules


def _check_model(chosen: argparse.Namespace, options: dict[str, Any]) -> None:
    for name in FITTING:
        if chosen.model is not None and name in options:
            raise OptionError(
                f"--{name} is for fitting, and --model {chosen.model} is fitted already; leave out "
                "one of them."
            )


def _merged(in_file: Any, in_command: Any) -> Any:
    """Merge a rule of the file with that of the command line, which wins for the same column."""
    if isinstance(in_file, dict) and isinstance(in_command, dict):
        return {**in_file, **in_command}
    if isinstance(in_command, list) and in_file is not None:
        return [*([in_file] if isinstance(in_file, str) else in_file), *in_command]
    return in_command


def _parsed(rule: str, arguments: Any) -> Any:
    """Parse the arguments of one rule of the command line, such as ``income=0:90000``."""
    if rule in LISTS or rule in ("max_changes", "plausible"):
        return arguments
    by_column: dict[str, Any] = {}
    for text in arguments:
        name, equals, value = text.rpartition("=")
        if not equals or not name:
            raise OptionError(f"--{rule} {text}: use COLUMN=..., such as {EXAMPLES[rule]}.")
        parsed = PARSERS[rule](value, f"--{rule} {text}")
        if rule == "forbidden":
            parsed = [*by_column.get(name, []), *parsed]
        by_column[name] = parsed
    return by_column


def _bounds(text: str, where: str) -> list[Any]:
    sides = text.split(":")
    if len(sides) != 2:
        raise OptionError(f"{where}: use COLUMN=LO:HI, such as {EXAMPLES['bounds']}.")
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
    """Parse a number; a whole one becomes an int."""
    try:
        found = float(text)
    except ValueError:
        raise OptionError(f"{where}: {text!r} is not a number.") from None
    return int(found) if found.is_integer() else found


def _step(text: str, where: str) -> Any:
    return text if text == "any" else number(text, where)


def _level_list(text: str, where: str) -> list[str]:
    return next(csv.reader([text]), [])


def _transition(text: str, where: str) -> list[list[str]]:
    start, arrow, end = text.partition(">")
    if not arrow:
        raise OptionError(f"{where}: use COLUMN=FROM>TO, such as {EXAMPLES['forbidden']}.")
    return [[start.strip(), end.strip()]]


PARSERS: dict[str, Callable[[str, str], Any]] = {
    "bounds": _bounds,
    "steps": _step,
    "levels": _level_list,
    "order": _level_list,
    "forbidden": _transition,
    "costs": number,
    "least": number,
}
EXAMPLES = {
    "bounds": '--bounds income=0:90000 or --bounds "income=-10%:+500"',
    "steps": "--steps visits=1",
    "levels": "--levels job=clerk,chef",
    "order": "--order size=small,medium,large",
    "forbidden": '--forbidden "job=student>chef"',
    "costs": "--costs income=2",
    "least": "--least income=100",
}
