"""Options and rules of ``voicecf explain``, read from the command line and from a TOML file."""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path
from typing import Any

from voicecf.errors import OptionError, known_option, likely
from voicecf.rules.rules import RULES

__all__ = ["DEFAULTS", "read_options"]

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


def read_options(chosen: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return options and rules; those of the command line override those of the TOML file."""
    options, rules = _read_file(chosen.rules)
    for name in DEFAULTS:
        if getattr(chosen, name) is not None:
            options[name] = getattr(chosen, name)
    for name, rule in RULES.items():
        if getattr(chosen, name) is not None:
            rules[name] = _merged(rules.get(name), rule.parsed(getattr(chosen, name)))
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
    for name, value in entries.items():
        name = name.replace("-", "_")
        if name not in RULES and name not in DEFAULTS:
            raise OptionError(
                f"{path}: unknown option {name!r}; {likely(name, [*RULES, *DEFAULTS])}"
            )
        (rules if name in RULES else options)[name] = value
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
