"""Answers as strict JSON, and the schema of that JSON."""

from __future__ import annotations

import json
import math
from numbers import Integral, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.learned.learned import Learned
from voicecf.output.calling import cluster_name
from voicecf.output.sentences import Sentences
from voicecf.output.short import rounded
from voicecf.output.tables import changed_rows
from voicecf.output.values import typed_values
from voicecf.search.outcome import Outcome
from voicecf.status import Status
from voicecf.table.frames import is_missing

__all__ = ["JSON_SCHEMA", "as_json"]

FORMAT, VERSION = "voicecf/counterfactuals", 1
# Statuses without a changed row.
WITHOUT_ROW = (Status.INFEASIBLE, Status.UNRESOLVED, Status.UNREADABLE)

_INTEGER = {"type": "integer"}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "null"], "description": "null if there is no such number."}
_NUMBER_OR_INFINITY = {
    "anyOf": [{"type": ["number", "null"]}, {"const": "Infinity"}],
    "description": 'null if there is no answer; the string "Infinity" if there is no limit.',
}
_COST = {
    **_NUMBER,
    "description": (
        "Weighted mean of the squared changes, in the units of the columns after the scalers and "
        "encoders of the model: the weights are the model's and sum to 1, times the factors of "
        "the rule costs. An optimal answer is the cheapest in the target's cell contracted by "
        "alpha; with alpha 1 it is the cheapest that lands. null if there is no answer."
    ),
}
_VALUE = {
    "type": ["number", "string", "boolean", "null"],
    "description": (
        "A number or a level. null is a missing value; an infinite number is the string "
        '"Infinity" or "-Infinity"; dates and other levels are text.'
    ),
}
_NAME = {"type": ["string", "null"]}
_CHANGE = {
    "type": "object",
    "properties": {
        "column": {"type": "string"},
        "from": _VALUE,
        "to": _VALUE,
        "delta": {"type": ["number", "null"], "description": "null for a category."},
    },
    "required": ["column", "from", "to", "delta"],
    "additionalProperties": False,
}
_ANSWER = {
    "row": {**_COUNT, "description": "Position of the row in the input."},
    "id": {**_VALUE, "description": "Id of the row in the user's table; null if it has none."},
    "source": {**_INTEGER, "description": "Cluster of the row; -1 if it cannot be read."},
    "target": {**_INTEGER, "description": "Cluster of the answer."},
    "source_name": {**_NAME, "description": 'What the source is called: "cluster 2".'},
    "target_name": {**_NAME, "description": 'What the target is called: "cluster 2".'},
    "rank": {
        **_COUNT,
        "description": "0 for the best answer of a row and target, 1, 2, ... for alternatives.",
    },
    "status": {"enum": [status.name.lower() for status in Status]},
    "diagnosis": {
        "type": "string",
        "description": "What the status means, and what to do about it.",
    },
    "feasible": {"type": "boolean"},
    "cost": _COST,
    "n_changed": {**_COUNT, "description": "Number of columns in changes."},
    "cardinality": {**_INTEGER, "description": "Number of columns that were allowed to change."},
    "rho": _NUMBER_OR_INFINITY,
    "tau": _NUMBER_OR_INFINITY,
    "alpha": {**_NUMBER, "description": "Contraction of the target's cell; 1 is none."},
    "gap": _NUMBER,
    "usual": {
        "type": ["number", "null"],
        "description": "Share of the target's members that are as extreme; null if not known.",
    },
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
    """Return answers as strict JSON that follows `JSON_SCHEMA`, rounded to few digits.

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
    return json_of(rounded(outcome), indent)


def json_of(short: Outcome, indent: int | None = None) -> str:
    """Return answers in few digits as JSON; see `as_json`."""
    frame = nw.from_native(changed_rows(short), eager_only=True)
    texts = _texts(list(frame.columns))
    rows = [dict(zip(texts.values(), map(_value, row), strict=True)) for row in frame.rows()]
    changes, sentences = _changes(short, texts), Sentences(short)
    series = short.rows.ids(short.row)
    ids = [None] * len(short) if series is None else series.to_list()
    document = {
        "format": FORMAT,
        "version": VERSION,
        "columns": list(texts.values()),
        "answers": [
            _answer(sentences, i, row, change, own_id)
            for i, (row, change, own_id) in enumerate(zip(rows, changes, ids, strict=True))
        ],
    }
    return json.dumps(document, indent=indent, allow_nan=False)


def _texts(names: list[Any]) -> dict[Any, str]:
    """Return a distinct text for each column name: ``1`` beside ``"1"`` becomes ``"1 (int)"``."""
    texts: dict[Any, str] = {name: name for name in names if isinstance(name, str)}
    for name in names:
        text = str(name)
        while name not in texts and text in texts.values():
            text += f" ({type(name).__name__})"
        texts.setdefault(name, text)
    return {name: texts[name] for name in names}


def _answer(
    sentences: Sentences, i: int, row: dict[str, Any], changes: list[Any], own_id: Any
) -> dict[str, Any]:
    """Return answer i; `row` has its values by column."""
    found = sentences.outcome
    status = Status(int(found.status[i]))
    has_row = status not in WITHOUT_ROW
    counts = ("row", "source", "target", "rank", "n_changed", "cardinality")
    learned = found.learned
    alpha = learned.alpha[found.target[i]] if found.target[i] >= 0 else None
    answer = {
        "id": _value(own_id),
        "source_name": _cluster_name(learned, found.source[i]),
        "target_name": _cluster_name(learned, found.target[i]),
        "status": status.name.lower(),
        "diagnosis": status.diagnosis,
        "feasible": bool(found.feasible[i]),
        **{key: int(getattr(found, key)[i]) for key in counts},
        "cost": _number(found.cost[i]),
        "alpha": _number(alpha),
        "gap": _number(found.gap[i]),
        "usual": _number(found.usual[i]),
        "rho": _number_or_infinity(found.rho[i]),
        "tau": _number_or_infinity(found.rho[i] - 1.0),
        "text": sentences.text(i),
        "values": row if has_row else None,
        "changes": changes if has_row else [],
    }
    return {key: answer[key] for key in _ANSWER}


def _changes(outcome: Outcome, texts: dict[Any, str]) -> list[list[Any]]:
    """Return the changes of each answer, the costliest first; `texts` has the columns' names."""
    typed = [typed_values(outcome, c) for c in range(len(outcome.space.columns))]
    found: list[list[Any]] = [[] for _ in range(len(outcome))]
    for i, changes in enumerate(found):
        for c in outcome.changed(i):
            name = outcome.space.names[c]
            before, after = (_value(values[i]) for values in typed[c])
            delta = _number(float(f"{outcome.deltas[i, c]:.12g}"))
            text = texts.get(name, str(name))
            changes.append({"column": text, "from": before, "to": after, "delta": delta})
    return found


def _cluster_name(learned: Learned, cluster: int) -> str | None:
    """Return what a cluster is called; None for the one of a row that cannot be read."""
    return cluster_name(learned, cluster) if cluster >= 0 else None


def _number(value: Any) -> float | None:
    """Return a finite number, or None."""
    finite = isinstance(value, (Real, np.number)) and math.isfinite(value)
    return float(value) if finite else None


def _number_or_infinity(value: Any) -> float | str | None:
    """Return a finite number, the text "Infinity", or None."""
    return "Infinity" if float(value) == math.inf else _number(value)


def _value(value: Any) -> Any:
    """Return a value of a column as a JSON value."""
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, (str, bool)):
        return value
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        return number if math.isfinite(number) else f"{'-' * (number < 0)}Infinity"
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
