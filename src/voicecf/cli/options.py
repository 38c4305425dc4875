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

__all__ = ["GROUPS", "OPTIONS", "Option", "read_options"]


@dataclass(frozen=True)
class Option:
    """An option that a TOML file may hold as well.

    Attributes
    ----------
    help : str
    default : object
    allowed : tuple of str
        What it may be; anything if empty.
    arguments : dict
        Other arguments of `add_argument`.
    """

    help: str
    default: Any = None
    allowed: tuple[str, ...] = ()
    arguments: dict[str, Any] = field(default_factory=dict)


COLUMNS, WHOLE, NUMBER = several("COLUMN"), {"type": int}, {"type": float}
# Options by the headings under which the command's help has them.
GROUPS = {
    "files": {
        "format": Option("format of the files if OUTPUT is a folder: parquet (default) or csv",
                         "parquet", ("parquet", "csv")),
        "delimiter": Option("delimiter of CSV files (default: detected)"),
        "decimal": Option('decimal mark of CSV files: "." or "," (default: detected by column)',
                          "auto", ("auto", ".", ",")),
        "encoding": Option("encoding of CSV files: utf-8, latin-1, ... (default: detected)"),
        "sheet": Option("sheet of a workbook (default: the one with the most cells)"),
        "bad_rows": Option("rows that cannot be read: stop (default), or skip and list them",
                           "stop", ("stop", "skip")),
        "missing": Option("missing values: stop (default), drop the row, or fill them in",
                          "stop", ("stop", "drop", "fill")),
        "ignore": Option("copy to the output, but do not use for the segments", [],
                         arguments=COLUMNS),
        "category": Option("treat as categories, even if they look like numbers or names", [],
                           arguments=COLUMNS),
        "spellings": Option("categories that differ in case or surrounding blanks alone: merge "
                            "(default), or keep them apart", "merge", ("merge", "keep")),
    },
    "segments": {
        "k": Option("number of segments (default 3)", 3, arguments=WHOLE),
        "weights": Option("none (default) is plain k-means; shark learns feature weights",
                          "none", ("none", "shark")),
        "scale": Option("scaling of numbers: standard (default), minmax or none",
                        "standard", ("standard", "minmax", "none")),
        "seed": Option("random seed of the clustering (default 0)", 0, arguments=WHOLE),
        "contraction": Option(
            "how far cells shrink towards their centroids, so that answers keep off the border: "
            "retain (default, by --retain), or a factor such as 0.9; 1 is not at all", "retain"),
        "retain": Option("share of its members that a contracted cell still holds (default 1)",
                         1.0, arguments=NUMBER),
        "box": Option("data (default) keeps answers within the observed range; none does not",
                      "data", ("data", "none")),
        "margin": Option("least distance of answers from a boundary, as a share of the way from "
                         "there to the centroid (default 0)", 0.0, arguments=NUMBER),
    },
    "question": {
        "target": Option("number of a segment, nearest (default: the cheapest other one) or each "
                         "(all others)", "nearest"),
        "objective": Option("cost (default: least cost), prefix (fewest columns of the ranking), "
                            "fewest (fewest changed columns) or price (least money, see --prices)",
                            "cost", ("cost", "prefix", "fewest", "price")),
        "deepen": Option("also move rows of the target itself deeper into it", False,
                         arguments={"action": "store_true"}),
        "alternatives": Option("number of further answers for each row (default 0)", 0,
                               arguments=WHOLE),
        "limit": Option("largest number of boxes that the search for one answer examines",
                        arguments=WHOLE),
    },
}  # fmt: skip
OPTIONS = {name: option for group in GROUPS.values() for name, option in group.items()}
# Options of fitting, which a saved explainer does not take.
FITTING = (*GROUPS["segments"], "category", "spellings")


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
        if chosen.model is not None and name in FITTING and name in options:
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
