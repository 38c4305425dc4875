"""Answers as strict JSON, and the schema of that JSON."""

from __future__ import annotations

import json
import math
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from voicecf.learned.learned import Learned
from voicecf.output.calling import cluster_name
from voicecf.output.sentences import Sentences
from voicecf.output.short import rounded
from voicecf.output.tables import changed_rows
from voicecf.output.values import changed_cells, typed_values
from voicecf.search.outcome import Outcome
from voicecf.status import Status
from voicecf.table.frames import is_missing

__all__ = ["JSON_SCHEMA", "as_json"]

JSON_SCHEMA: dict[str, Any] = json.loads(
    Path(__file__).with_name("counterfactuals.schema.json").read_text("utf-8")
)
# The values of `format` and `version`, and the keys of an answer in their order.
FORMAT, VERSION = (JSON_SCHEMA["properties"][key]["const"] for key in ("format", "version"))
KEYS: list[str] = JSON_SCHEMA["properties"]["answers"]["items"]["required"]
# Statuses without a changed row.
WITHOUT_ROW = (Status.INFEASIBLE, Status.UNRESOLVED, Status.UNREADABLE)


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
        "units": _units(short, texts),
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
        "price": _number(found.price[i]),
        "alpha": _number(alpha),
        "gap": _number(found.gap[i]),
        "usual": _number(found.usual[i]),
        "plausible": _number(found.share[i]),
        "rho": _number_or_infinity(found.rho[i]),
        "tau": _number_or_infinity(found.rho[i] - 1.0),
        "text": sentences.text(i, all=True),
        "values": row if has_row else None,
        "changes": changes if has_row else [],
    }
    return {key: answer[key] for key in KEYS}


def _changes(outcome: Outcome, texts: dict[Any, str]) -> list[list[Any]]:
    """Return the changes of each answer, the costliest first; `texts` has the columns' names."""
    answers, columns = changed_cells(outcome)
    names = [texts.get(name, str(name)) for name in outcome.space.names]
    every = np.arange(len(outcome))
    typed = [[*typed_values(outcome, c, every)] for c in range(len(names))]
    found: list[list[Any]] = [[] for _ in every]
    for i, c in zip(answers.tolist(), columns.tolist(), strict=True):
        before, after = (_value(values[i]) for values in typed[c])
        delta = _number(float(f"{outcome.deltas[i, c]:.12g}"))
        found[i].append({"column": names[c], "from": before, "to": after, "delta": delta})
    return found


def _units(outcome: Outcome, texts: dict[Any, str]) -> dict[str, str]:
    """Return the unit of each column that has one."""
    units = ((texts.get(c.name, str(c.name)), c.unit) for c in outcome.space.columns)
    return {name: unit for name, unit in units if unit}


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
