"""The question of a run as a manifest on disk, so that a later run can tell if it is the same."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sklearn

from voicecf.files.entry import rules_of
from voicecf.files.source import Look, Source

__all__ = ["Request", "differences", "plain_question", "same"]

FORMAT, VERSION = "voicecf/explain", 1


@dataclass(frozen=True)
class Request:
    """What is to be done.

    Attributes
    ----------
    source : Source
    output : Path
    options : dict
        All that the answers depend on besides the input, in types of JSON.
    question : dict
        As of `explain`.
    bad_rows : "stop" or "skip"
    part_rows : int or None
    drop_gaps : bool
        Whether rows with missing values are left out even if other bad rows are fatal.
    """

    source: Source
    output: Path
    options: dict[str, Any]
    question: dict[str, Any]
    bad_rows: str = "stop"
    part_rows: int | None = None
    drop_gaps: bool = False

    def manifest(self, look: Look) -> dict[str, Any]:
        """Return what has to be the same for a run to go on, with an input as it is now."""
        versions = {
            "voicecf": version("voicecf"),
            "pyarrow": pa.__version__,
            "duckdb": duckdb.__version__,
            "numpy": np.__version__,
            "scikit-learn": sklearn.__version__,
        }
        return {
            "format": FORMAT,
            "version": VERSION,
            "made with": versions,
            "input": look.prints,
            "reading": {"sql": self.source.sql, **asdict(self.source.reading)},
            "options": {**self.options, "part_rows": self.part_rows},
        }


def plain_question(question: dict[str, Any]) -> dict[str, Any]:
    """Return a question in types of JSON."""
    rules = rules_of(question)
    rest = {w: value for w, value in question.items() if w not in {"rules", *rules.to_dict()}}
    return json.loads(json.dumps({**rest, "rules": rules.to_dict()}, default=str))  # type: ignore[no-any-return]


def same(earlier: dict[str, Any], manifest: dict[str, Any]) -> bool:
    """Return True if an earlier manifest has all that this one has."""
    return all(earlier.get(key) == value for key, value in manifest.items())


def differences(earlier: dict[str, Any], manifest: dict[str, Any]) -> str:
    """Describe in what two manifests differ."""
    found = []
    for key, now in manifest.items():
        before = earlier.get(key)
        if before == now:
            continue
        if key == "input":
            found.append("the input is another one, or was changed")
        elif isinstance(before, dict) and isinstance(now, dict):
            found += _changed_words(before, now)
        else:
            found.append(f"{key} was {before}, is now {now}")
    return "; ".join(found)


def _changed_words(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    words = [word for word in {**before, **now} if before.get(word) != now.get(word)]
    return [
        f"{word} was {_short(before.get(word))}, is now {_short(now.get(word))}" for word in words
    ]


def _short(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."
