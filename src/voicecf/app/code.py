"""The Python that gives the same answer: a script that its reader can run and change."""

from __future__ import annotations

import pprint
from typing import Any

import numpy as np

from voicecf.app.preparing import SEED, STARTS, Method, Prepared
from voicecf.app.question import LIMIT, Question
from voicecf.app.reading import Table
from voicecf.app.segments import Segments


def script(table: Table, segments: Segments, question: Question, names: tuple[str, ...]) -> str:
    """Write the script for one answer.

    Parameters
    ----------
    table : Table
        Where the rows come from.
    segments : Segments
    question : Question
    names : tuple of str
        What the segments are called.
    """
    prepared = segments.prepared
    parts = [
        '"""What would have to change for this row to be in that segment?"""',
        _imports(table, prepared, segments.method),
        _reading(table, prepared),
        _model(prepared, segments),
        _asking(prepared, segments, question),
        _naming(names),
    ]
    return "\n\n".join(parts) + "\n"


def _imports(table: Table, prepared: Prepared, method: Method) -> str:
    bundled = table.source.startswith("examples.")
    lines = [] if bundled else ["import pandas as pd"]
    if method is Method.KMEANS:
        lines.append("from sklearn.cluster import KMeans")
    lines.append("from sklearn.compose import make_column_transformer")
    if prepared.filled:
        lines.append("from sklearn.impute import SimpleImputer")
    lines.append("from sklearn.pipeline import make_pipeline")
    scalers = ["OneHotEncoder"] * bool(prepared.categories)
    scalers += ["StandardScaler"] * bool(prepared.numbers)
    lines.append(f"from sklearn.preprocessing import {', '.join(scalers)}")
    names = "SHARK, VoICE" if method is Method.SHARK else "VoICE"
    ours = ["from voicecf.app import examples"] * bundled
    return "\n".join([*lines, "", f"from voicecf import {names}", *ours])


def _reading(table: Table, prepared: Prepared) -> str:
    numbers, categories = list(prepared.numbers), list(prepared.categories)
    lines = [
        f"table = {table.source}",
        f"table.columns = {_literal(list(table.frame), 16)}",
    ]
    if numbers:
        lines.append(f"numbers = {_literal(numbers, 10)}")
    if categories:
        lines.append(f"categories = {_literal(categories, 13)}")
    used = " + ".join(["numbers"] * bool(numbers) + ["categories"] * bool(categories))
    lines.append(f"rows = table[[name for name in table if name in {used}]].copy()")
    if numbers:
        lines.append("rows[numbers] = rows[numbers].astype(float)")
        if np.isinf(table.frame[numbers].to_numpy(dtype=np.float64)).any():
            lines.append('rows = rows.replace([float("inf"), -float("inf")], float("nan"))')
    if categories:
        lines += [
            "for name in categories:",
            "    text = rows[name].astype(object).where(rows[name].notna(), None)",
            "    rows[name] = text.map(lambda v: None if v is None else str(v)).astype(object)",
        ]
    how = 'how="all"' if prepared.filled else 'how="any"'
    lines.append(f"rows = rows.dropna({how}).reset_index(drop=True)")
    whole = [name for name in prepared.whole if name not in prepared.stepped]
    if whole:
        lines.append(f"rows = rows.astype(dict.fromkeys({_literal(whole, 33)}, int))")
    return "\n".join(lines)


def _model(prepared: Prepared, segments: Segments) -> str:
    scale, encode = "StandardScaler()", "OneHotEncoder(sparse_output=False)"
    if prepared.filled:
        scale = f'make_pipeline(SimpleImputer(strategy="median"), {scale})'
        gaps = 'SimpleImputer(strategy="most_frequent", missing_values=None)'
        encode = f"make_pipeline({gaps}, {encode})"
    parts = [f"    ({scale}, numbers),"] if prepared.numbers else []
    parts += [f"    ({encode}, categories),"] if prepared.categories else []
    name = "KMeans" if segments.method is Method.KMEANS else "SHARK"
    made = f"{name}({segments.k}, n_init={STARTS}, random_state={SEED})"
    return "\n".join([
        "prepare = make_column_transformer(",
        *parts,
        ")",
        f"segments = make_pipeline(prepare, {made})",
    ])  # fmt: skip


def _asking(prepared: Prepared, segments: Segments, question: Question) -> str:
    ranking = segments.voice.ranking
    options = question.options(prepared, limit=LIMIT)
    contraction = (100 - question.margin) / 100 if question.margin else 1.0
    lines = ["voice = VoICE(", "    segments,", f"    contraction={contraction!r},"]
    if not isinstance(ranking, str):
        lines.append(f"    ranking={_literal(ranking, 12)},")
    lines += [").fit(rows)", "", "answer = voice.explain(", f"    rows.iloc[[{question.row}]],"]
    lines += [f"    {word}={_literal(value, 5 + len(word))}," for word, value in options.items()]
    return "\n".join([*lines, ")"])


def _naming(names: tuple[str, ...]) -> str:
    return "\n".join([
        f"names = {_literal(list(names), 8)}",
        "print(answer.text(0))",
        'print("From", names[answer.source[0]], "to", names[answer.target[0]])',
        "print(answer.to_frame() if answer.feasible[0] else answer.reason(0))",
    ])  # fmt: skip


def _literal(value: Any, indent: int) -> str:
    """Write a value as Python, in lines of at most a hundred characters."""
    text = pprint.pformat(value, width=96 - indent, compact=True, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent).replace("Ellipsis", "...")
