"""Answers as strict JSON, and the schema that it keeps to."""

from __future__ import annotations

import json
import math
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.output.digits import rounded
from voicecf.output.sentences import sentence
from voicecf.output.tables import changed_rows
from voicecf.search.outcome import Outcome
from voicecf.status import Status

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
        "description": (
            "The changed row by column, in few digits, rounded so that it is in its target by the "
            "model's own predict; null where there is none. Cost, rho and gap are those of the "
            "exact answer."
        ),
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


def as_json(outcome: Outcome, *, indent: int | None = None) -> str:
    """Write answers as strict JSON, as `JSON_SCHEMA` has it, in few digits that still land.

    Parameters
    ----------
    outcome : Outcome
        ``cf.outcome``; `Counterfactuals.to_json` does the same.
    indent : int, optional
        Spaces for each level; everything in one line if left out.

    Examples
    --------
    >>> import json
    >>> from voicecf import VoICE
    >>> from voicecf.output.schema import as_json
    >>> voice = VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]], feature_names=["age", "income"])
    >>> (answer,) = json.loads(as_json(voice.explain([[1.0, 5.0]]).outcome))["answers"]
    >>> answer["status"], answer["rho"], [change["column"] for change in answer["changes"]]
    ('optimal', 'Infinity', ['age'])
    """
    short = rounded(outcome)
    frame = nw.from_native(changed_rows(short), eager_only=True)
    texts = _texts(list(frame.columns))
    rows = [dict(zip(texts.values(), map(_value, row), strict=True)) for row in frame.rows()]
    document = {
        "format": FORMAT,
        "version": VERSION,
        "columns": list(texts.values()),
        "answers": [_answer(short, i, row, texts) for i, row in enumerate(rows)],
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


def _answer(found: Outcome, i: int, row: dict[str, Any], texts: dict[Any, str]) -> dict[str, Any]:
    status = Status(int(found.status[i]))
    name = status.name.lower()
    counts = ("row", "source", "target", "n_changed", "cardinality")
    alpha = found.question.learned.alpha[found.target[i]]
    told = {
        "status": name,
        "diagnosis": status.diagnosis,
        "feasible": bool(found.feasible[i]),
        **{key: int(getattr(found, key)[i]) for key in counts},
        "cost": _number(found.cost[i]),
        "alpha": _number(alpha),
        "gap": _number(found.gap[i]),
        "rho": _reach(found.rho[i]),
        "tau": _reach(found.rho[i] - 1.0),
        "text": sentence(found, i),
        "values": None if name in NOTHING else row,
        "changes": [] if name in NOTHING else _changes(found, i, row, texts),
    }
    return {key: told[key] for key in _ANSWER}


def _changes(outcome: Outcome, i: int, row: dict[str, Any], texts: dict[Any, str]) -> list[Any]:
    """Return the changes of an answer, the costliest first; `row` has its values by column."""
    found = []
    for c in outcome.changed(i):
        column = outcome.space.columns[c]
        name = texts.get(column.name, str(column.name))
        before, after = (
            _typed(values[c][i], column.whole, row.get(name)) for values in outcome.values
        )
        delta = _number(float(f"{outcome.deltas[i, c]:.12g}"))
        found.append({"column": name, "from": before, "to": after, "delta": delta})
    return found


def _typed(value: Any, whole: bool, like: Any) -> Any:
    """Return a value as JSON has it: of a whole column no float, of truth values one of these."""
    value = _value(value)
    if whole and isinstance(value, float) and value.is_integer():
        return bool(value) if isinstance(like, bool) else int(value)
    return value


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
