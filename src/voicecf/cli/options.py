"""Options and rules of ``voicecf explain``, read from the command line and from a TOML file."""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from voicecf.errors import OptionError, known_option, likely
from voicecf.rules.rule import several
from voicecf.rules.rules import RULES

__all__ = ["OPTIONS", "Option", "read_options"]


@dataclass(frozen=True)
class Option:
    """An option that a TOML file may hold as well.

    Attributes
    ----------
    group : str
        The heading under which the command's help has it.
    help : str
    default : object
    allowed : tuple of str
        What it may be; anything if empty.
    fitting : bool
        Whether it is about fitting, so that a saved explainer does not take it.
    arguments : dict
        Other arguments of `add_argument`.
    """

    group: str
    help: str
    default: Any = None
    allowed: tuple[str, ...] = ()
    fitting: bool = False
    arguments: dict[str, Any] = field(default_factory=dict)


COLUMNS, WHOLE, NUMBER = several("COLUMN"), {"type": int}, {"type": float}
OPTIONS = {
    "format": Option(
        "files", "format of the files if OUTPUT is a folder: parquet (default) or csv", "parquet",
        ("parquet", "csv")),
    "delimiter": Option("files", "delimiter of CSV files (default: detected)"),
    "decimal": Option(
        "files", 'decimal mark of CSV files: "." or "," (default: detected by column)', "auto",
        ("auto", ".", ",")),
    "encoding": Option(
        "files", "encoding of CSV files: utf-8, latin-1, ... (default: detected)"),
    "sheet": Option("files", "sheet of a workbook (default: the one with the most cells)"),
    "bad_rows": Option(
        "files", "rows that cannot be read: stop (default), or skip and list them", "stop",
        ("stop", "skip")),
    "missing": Option(
        "files", "missing values: stop (default), drop the row, or fill them in", "stop",
        ("stop", "drop", "fill")),
    "ignore": Option(
        "files", "copy to the output, but do not use for the segments", [], arguments=COLUMNS),
    "category": Option(
        "files", "treat as categories, even if they look like numbers or names", [],
        fitting=True, arguments=COLUMNS),
    "k": Option("segments", "number of segments (default 3)", 3, fitting=True, arguments=WHOLE),
    "weights": Option(
        "segments", "none (default) is plain k-means; shark learns feature weights", "none",
        ("none", "shark"), fitting=True),
    "scale": Option(
        "segments", "scaling of numbers: standard (default), minmax or none", "standard",
        ("standard", "minmax", "none"), fitting=True),
    "seed": Option(
        "segments", "random seed of the clustering (default 0)", 0, fitting=True, arguments=WHOLE),
    "contraction": Option(
        "segments", "how far cells shrink towards their centroids, so that answers keep off the "
        "border: retain (default, by --retain), or a factor such as 0.9; 1 is not at all", "retain",
        fitting=True),
    "retain": Option(
        "segments", "share of its members that a contracted cell still holds (default 1)", 1.0,
        fitting=True, arguments=NUMBER),
    "box": Option(
        "segments", "data (default) keeps answers within the observed range; none does not", "data",
        ("data", "none"), fitting=True),
    "margin": Option(
        "segments", "least distance of answers from a boundary, as a share of the way from there "
        "to the centroid (default 0)", 0.0, fitting=True, arguments=NUMBER),
    "target": Option(
        "question", "number of a segment, nearest (default: the cheapest other one) or each (all "
        "others)", "nearest"),
    "objective": Option(
        "question", "cost (default: least cost), prefix (fewest columns of the ranking) or fewest "
        "(fewest changed columns)", "cost", ("cost", "prefix", "fewest")),
    "deepen": Option(
        "question", "also move rows of the target itself deeper into it", False,
        arguments={"action": "store_true"}),
    "alternatives": Option(
        "question", "number of further answers for each row (default 0)", 0, arguments=WHOLE),
    "limit": Option(
        "question", "largest number of boxes that the search for one answer examines",
        arguments=WHOLE),
}  # fmt: skip


def read_options(chosen: argparse.Namespace) -> tuple[argparse.Namespace, dict[str, Any]]:
    """Return options and rules; those of the command line override those of the TOML file."""
    options, rules = _read_file(chosen.rules)
    for name in OPTIONS:
        if getattr(chosen, name) is not None:
            options[name] = getattr(chosen, name)
    for name, rule in RULES.items():
        if getattr(chosen, name) is not None:
            rules[name] = _merged(rules.get(name), rule.parsed(getattr(chosen, name)))
    for name, option in OPTIONS.items():
        if chosen.model is not None and option.fitting and name in options:
            raise OptionError(
                f"--{name} is for fitting, and --model {chosen.model} is fitted already; leave out "
                "one of them."
            )
        options.setdefault(name, option.default)
        if option.allowed:
            known_option(options[name], option.allowed, f"--{name.replace('_', '-')}")
    if not (isinstance(options["k"], int) and options["k"] >= 2):
        raise OptionError(f"--k {options['k']}: there must be 2 segments or more.")
    return argparse.Namespace(**{**vars(chosen), **options}), rules


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
        if name not in RULES and name not in OPTIONS:
            raise OptionError(
                f"{path}: unknown option {name!r}; {likely(name, [*RULES, *OPTIONS])}"
            )
        (rules if name in RULES else options)[name] = value
    return options, rules


def _merged(in_file: Any, in_command: Any) -> Any:
    """Merge a rule of the file with that of the command line, which wins for the same column."""
    if isinstance(in_file, dict) and isinstance(in_command, dict):
        return {**in_file, **in_command}
    if isinstance(in_command, list) and in_file is not None:
        return [*([in_file] if isinstance(in_file, str) else in_file), *in_command]
    return in_command
