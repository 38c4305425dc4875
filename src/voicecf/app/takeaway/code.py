"""The Python that gives the same answer: a script that its reader can run and change."""

from __future__ import annotations

import pprint
from typing import Any

import numpy as np
import pandas as pd

from voicecf.app.data.columns import Role
from voicecf.app.data.preparing import SEED, YEAR, Method, Prepared, starts, with_durations
from voicecf.app.data.reading import PASTED, ReadTable
from voicecf.app.effort import question as asked_of
from voicecf.app.effort import usual_prices
from voicecf.app.row.question import RowQuestion
from voicecf.app.segments.segments import Segments


def script(
    table: ReadTable, segments: Segments, question: RowQuestion, names: tuple[str, ...]
) -> str:
    """Write the script for one answer.

    Parameters
    ----------
    table : ReadTable
        Where the rows come from.
    segments : Segments
    question : RowQuestion
    names : tuple of str
        What the segments are called.
    """
    parts = [
        '"""What would have to change for this row to be in that segment?"""',
        *opening(table, segments),
        f"{explainer(segments, question.margin, names)}\n\n{_asking(segments, question)}",
        "print(answer.text(0))",
        "print(answer.to_frame() if answer.feasible[0] else answer.reason(0))",
    ]
    return "\n\n".join(parts) + "\n"


def opening(table: ReadTable, segments: Segments) -> list[str]:
    """Write how every script begins: imports, the rows, and the pipeline, which is not fitted."""
    prepared = segments.prepared
    reading = _reading(table, prepared)
    imports = _imports(table, reading, prepared, segments.method)
    return [imports, reading, _model(prepared, segments)]


def explainer(segments: Segments, margin: int, names: tuple[str, ...] = ()) -> str:
    """Write how the explainer is made and fitted."""
    ranking = segments.voice.ranking
    contraction = (100 - margin) / 100 if margin else 1.0
    lines = ["voice = VoICE(", "    segments,", f"    contraction={contraction!r},"]
    if not isinstance(ranking, str):
        lines.append(f"    ranking={literal(ranking, 12)},")
    lines += [f"    names={literal(list(names), 10)},"] * bool(names)
    return "\n".join([*lines, ").fit(rows)"])


def asked(rows: str, options: dict[str, Any]) -> str:
    """Write the call that answers some rows."""
    lines = ["voice.explain(", f"    {rows},"]
    lines += [f"    {word}={literal(value, 5 + len(word))}," for word, value in options.items()]
    return "\n".join([*lines, ")"])


def _imports(table: ReadTable, reading: str, prepared: Prepared, method: Method) -> str:
    bundled = table.source.startswith("datasets.")
    lines = ["import pandas as pd"] * ("pd." in reading)
    if method is Method.KMEANS:
        lines.append("from sklearn.cluster import KMeans")
    lines.append("from sklearn.compose import make_column_transformer")
    if prepared.filled:
        lines.append("from sklearn.impute import SimpleImputer")
    lines.append("from sklearn.pipeline import make_pipeline")
    scalers = ["OneHotEncoder"] * bool(prepared.categories)
    scalers += ["StandardScaler"] * bool(prepared.numbers)
    lines.append(f"from sklearn.preprocessing import {', '.join(scalers)}")
    names = ["SHARK"] * (method is Method.SHARK) + ["VoICE"] + ["datasets"] * bundled
    lines += ["", f"from voicecf import {', '.join(names)}"]
    lines += [] if bundled else ["from voicecf.files import open_source"]
    return "\n".join(lines)


def _reading(table: ReadTable, prepared: Prepared) -> str:
    """Read the rows; only what this table needs is said."""
    frame, numbers, categories = table.frame, list(prepared.numbers), list(prepared.categories)
    lines = [f"table = {table.source}"]
    if table.name == PASTED:
        lines.insert(0, f"# Save the cells that were pasted as “{PASTED}.csv” beside this script.")
    if prepared.durations and prepared.taken:
        frame = with_durations(frame, prepared.durations, prepared.taken)
        lines += _durations(prepared)
    lines += [f"numbers = {literal(numbers, 10)}"] if numbers else []
    lines += [f"categories = {literal(categories, 13)}"] if categories else []
    if prepared.names == numbers or prepared.names == categories:
        used = "numbers" if numbers else "categories"
    elif prepared.names == numbers + categories:
        used = "numbers + categories"
    else:
        used = literal(prepared.names, 13)
    lines.append(f"rows = table[{used}]")
    lines += _retyped(frame, prepared)
    if prepared.left_out:
        how = "all" if prepared.filled else "any"
        lines.append(f'rows = rows.dropna(how="{how}").reset_index(drop=True)')
    whole = [name for name in prepared.whole if prepared.frame[name].dtype.kind != "f"]
    if any(frame[name].dtype != np.int64 for name in whole):
        lines.append(f"rows = rows.astype(dict.fromkeys({literal(whole, 33)}, int))")
    return "\n".join(lines)


def _durations(prepared: Prepared) -> list[str]:
    """Count the time since dates."""
    lines = [f'taken = pd.Timestamp("{prepared.taken}")']
    for label, (name, role) in prepared.durations.items():
        days = f"(taken - table[{name!r}].dt.normalize()).dt.days"
        value = days if role is Role.DAYS else f"({days} / {YEAR}).round(2)"
        lines.append(f"table[{label!r}] = {value}")
    return lines


def _retyped(frame: pd.DataFrame, prepared: Prepared) -> list[str]:
    """Bring columns to the types that they are used as, where they are not."""
    lines = []
    fraction = [name for name in prepared.numbers if name not in prepared.whole]
    odd = [name for name in fraction if frame[name].dtype != np.float64]
    if odd:
        lines.append(f"rows = rows.astype(dict.fromkeys({literal(odd, 33)}, float))")
    values = [frame[name].to_numpy(dtype=np.float64) for name in prepared.numbers]
    if any(np.isinf(column).any() for column in values):
        lines.append('rows = rows.replace([float("inf"), -float("inf")], float("nan"))')
    odd = [name for name in prepared.categories if not _is_text(frame[name], prepared)]
    if odd:
        lines.append(
            "rows = rows.assign(**{\n"
            "    name: rows[name].map(str, na_action='ignore').astype(object)"
            ".where(rows[name].notna(), None)\n"
            f"    for name in {literal(odd, 16)}\n"
            "})"
        )
    return lines


def _is_text(values: pd.Series, prepared: Prepared) -> bool:
    """Whether a category needs no change: texts, of which none is missing or all such rows go."""
    texts = all(isinstance(value, str) for value in values.dropna().unique())
    return texts and not (prepared.filled and values.isna().any())


def _model(prepared: Prepared, segments: Segments) -> str:
    scale, encode = "StandardScaler()", "OneHotEncoder(sparse_output=False)"
    if prepared.filled:
        scale = f'make_pipeline(SimpleImputer(strategy="median"), {scale})'
        filling = 'SimpleImputer(missing_values=None, strategy="most_frequent")'
        encode = f"make_pipeline({filling}, {encode})"
    parts = [f"    ({scale}, numbers),"] if prepared.numbers else []
    parts += [f"    ({encode}, categories),"] if prepared.categories else []
    often = starts(len(prepared.frame), segments.method)
    name = "KMeans" if segments.method is Method.KMEANS else "SHARK"
    made = f"{name}({segments.k}, n_init={often}, random_state={SEED})"
    return "\n".join([
        "prepare = make_column_transformer(",
        *parts,
        ")",
        f"segments = make_pipeline(prepare, {made})",
    ])  # fmt: skip


def _asking(segments: Segments, question: RowQuestion) -> str:
    target = "nearest" if question.target is None else question.target
    words = asked_of(segments, question.objective, target, question.allowed, usual_prices(segments))
    return f"answer = {asked(f'rows.iloc[[{question.row}]]', words)}"


def literal(value: Any, indent: int) -> str:
    """Write a value as Python, in lines of at most a hundred characters."""
    text = pprint.pformat(value, width=96 - indent, compact=True, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent)
