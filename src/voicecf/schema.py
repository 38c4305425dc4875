"""Answers as strict JSON, and the schema that it keeps to."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.status import Status

if TYPE_CHECKING:
    from voicecf.counterfactuals import Counterfactuals

__all__ = ["JSON_SCHEMA", "as_json"]

FORMAT, VERSION = "voicecf/counterfactuals", 1
# Outcomes without a changed row.
NOTHING = ("infeasible", "unresolved")

_INTEGER = {"type": "integer"}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "null"], "description": "null where there is none."}
_REACH = {
    "anyOf": [{"type": ["number", "null"]}, {"const": "Infinity"}],
    "description": 'null where there is none; the string "Infinity" where nothing is in the way.',
}
_VALUE = {
    "type": ["number", "string", "boolean", "null"],
    "description": (
        "A number or a level. null is a missing value; an infinite number is the string "
        '"Infinity" or "-Infinity"; dates and other levels are text.'
    ),
}
_CHANGE = {
    "type": "object",
    "properties": {
        "column": {"type": "string"},
        "from": _VALUE,
        "to": _VALUE,
        "delta": {"type": ["number", "null"], "description": "null where no number says it."},
    },
    "required": ["column", "from", "to", "delta"],
    "additionalProperties": False,
}
_ANSWER = {
    "row": {**_COUNT, "description": "Position of the row in the input."},
    "source": {**_INTEGER, "description": "Cluster of the row."},
    "target": {**_INTEGER, "description": "Cluster of the answer."},
    "status": {"enum": [status.name.lower() for status in Status]},
    "diagnosis": {"type": "string", "description": "The status in words, with a remedy."},
    "feasible": {"type": "boolean"},
    "cost": _NUMBER,
    "n_changed": _COUNT,
    "cardinality": {**_INTEGER, "description": "Columns that were allowed to change."},
    "rho": _REACH,
    "tau": _REACH,
    "alpha": _NUMBER,
    "gap": _NUMBER,
    "text": {"type": "string", "description": "The answer in a sentence."},
    "values": {
        "anyOf": [{"type": "object", "additionalProperties": _VALUE}, {"type": "null"}],
        "description": "The changed row by column; null where there is none.",
    },
    "changes": {"type": "array", "items": _CHANGE},
}
JSON_SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": f"urn:{FORMAT.replace('/', ':')}:{VERSION}",
    "title": "Counterfactuals of voicecf",
    "type": "object",
    "properties": {
        "format": {"const": FORMAT},
        "version": {"const": VERSION},
        "columns": {
            "type": "array",
            "items": {"type": "string"},
            "uniqueItems": True,
            "description": "Columns of the rows, in order; every object of values has them all.",
        },
        "answers": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": _ANSWER,
                "required": list(_ANSWER),
                "additionalProperties": False,
            },
        },
    },
    "required": ["format", "version", "columns", "answers"],
    "additionalProperties": False,
}


def as_json(counterfactuals: Counterfactuals, *, indent: int | None = None) -> str:
    """Write answers as strict JSON, as `JSON_SCHEMA` has it.

    Parameters
    ----------
    counterfactuals : Counterfactuals
    indent : int, optional
        Spaces for each level; everything in one line if left out.

    Examples
    --------
    >>> import json
    >>> from voicecf import VoICE
    >>> from voicecf.schema import as_json
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> (answer,) = json.loads(as_json(voice.explain([[1.0, 5.0]])))["answers"]
    >>> answer["status"], answer["rho"], [change["column"] for change in answer["changes"]]
    ('optimal', 'Infinity', ['age'])
    """
    frame = nw.from_native(counterfactuals.to_frame(), eager_only=True)
    texts = _texts(list(frame.columns))
    parts = zip(counterfactuals, frame.rows(), _changes(counterfactuals, texts), strict=True)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "columns": list(texts.values()),
        "answers": [_answer(one, values, changes, texts) for one, values, changes in parts],
    }
    return json.dumps(document, indent=indent, allow_nan=False)


def _texts(names: list[Any]) -> dict[Any, str]:
    """Return a text for each column's name; a name that only looks like another tells its type."""
    texts: dict[Any, str] = {name: name for name in names if isinstance(name, str)}
    for name in names:
        text = str(name)
        while name not in texts and text in texts.values():
            text += f" ({type(name).__name__})"
        texts.setdefault(name, text)
    return {name: texts[name] for name in names}


def _answer(
    one: Counterfactuals, values: tuple[Any, ...], changes: list[Any], texts: dict[Any, str]
) -> dict[str, Any]:
    status = Status(int(one.status[0]))
    name = status.name.lower()
    row = {text: _value(value) for text, value in zip(texts.values(), values, strict=True)}
    counts = ("row", "source", "target", "n_changed", "cardinality")
    found = {
        "status": name,
        "diagnosis": status.diagnosis,
        "feasible": bool(one.feasible[0]),
        **{key: int(getattr(one, key)[0]) for key in counts},
        **{key: _number(getattr(one, key)[0]) for key in ("cost", "alpha", "gap")},
        **{key: _reach(getattr(one, key)[0]) for key in ("rho", "tau")},
        "text": one.text(0),
        "values": None if name in NOTHING else row,
        "changes": changes,
    }
    return {key: found[key] for key in _ANSWER}


def _changes(counterfactuals: Counterfactuals, texts: dict[Any, str]) -> Iterator[list[Any]]:
    """Return the changes of each answer, in order."""
    pairs = list(zip(counterfactuals.row.tolist(), counterfactuals.target.tolist(), strict=True))
    if len(set(pairs)) < len(pairs):  # a pair twice: only one at a time can be told apart
        yield from (
            _lines(one, texts).get(pair, [])
            for one, pair in zip(counterfactuals, pairs, strict=True)
        )
        return
    lines = _lines(counterfactuals, texts)
    yield from (lines.get(pair, []) for pair in pairs)


def _lines(counterfactuals: Counterfactuals, texts: dict[Any, str]) -> dict[Any, list[Any]]:
    """Return the table of changes by row and target."""
    table = nw.from_native(counterfactuals.changes(), eager_only=True)
    found = defaultdict(list)
    for line in table.rows(named=True):
        change = {
            "column": texts.get(line["feature"], str(line["feature"])),
            "from": _value(line["from"]),
            "to": _value(line["to"]),
            "delta": _number(line["delta"]),
        }
        found[int(line["row"]), int(line["target"])].append(change)
    return dict(found)


def _number(value: Any) -> float | None:
    """Return a finite number, or None."""
    finite = isinstance(value, (Real, np.number)) and math.isfinite(value)
    return float(value) if finite else None


def _reach(value: Any) -> float | str | None:
    """Return a number, which may be without limit."""
    return "Infinity" if float(value) == math.inf else _number(value)


def _value(value: Any) -> Any:
    """Return a value of a column as JSON has it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool)) or value is None:
        return value
    if _is_missing(value):
        return None
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else f"{'-' * (number < 0)}Infinity"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _is_missing(value: Any) -> bool:
    """Tell NaN and its like: what differs from itself, or (as pandas.NA) does not say."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return True
