"""The Python that gives the same answer, in an archive with the model and the rows it reads."""

from __future__ import annotations

import pprint
import tempfile
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pandas as pd

from voicecf import VoICE
from voicecf.app.effort import question, usual_prices
from voicecf.app.row.question import RowQuestion
from voicecf.app.segments.segments import Segments

# How every script begins, and the files of the archive.
OPENING = """import numpy as np
import pandas as pd

from voicecf import load

voice = load("model.voicecf")
rows = pd.read_parquet("rows.parquet")
texts = list(rows.select_dtypes(exclude="number"))
rows[texts] = rows[texts].astype(object).where(rows[texts].notna(), None)"""
SCRIPT, MODEL, ROWS = "same.py", "model.voicecf", "rows.parquet"


def script(segments: Segments, asked: RowQuestion) -> str:
    """Write the script for one answer."""
    target = "nearest" if asked.target is None else asked.target
    prices = usual_prices(segments)
    words = question(segments, asked.objective, target, asked.allowed, prices)
    return "\n\n".join([
        '"""What would have to change for this row to be in that segment?"""',
        OPENING.replace("import numpy as np\n", ""),
        f"answer = {call(f'rows.iloc[[{asked.row}]]', words)}",
        "print(answer.text(0))\n"
        "print(answer.to_frame() if answer.feasible[0] else answer.reason(0))\n",
    ])  # fmt: skip


def call(rows: str, words: dict[str, Any]) -> str:
    """Write the call that answers some rows."""
    lines = ["voice.explain(", f"    {rows},"]
    lines += [f"    {word}={literal(value, 5 + len(word))}," for word, value in words.items()]
    return "\n".join([*lines, ")"])


def literal(value: Any, indent: int) -> str:
    """Write a value as Python, in lines of at most a hundred characters."""
    text = pprint.pformat(value, width=96 - indent, compact=True, sort_dicts=False)
    return text.replace("\n", "\n" + " " * indent)


def saved(voice: VoICE) -> bytes:
    """Return an explainer as the bytes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        voice.save(Path(folder) / MODEL)
        return (Path(folder) / MODEL).read_bytes()


def archive(text: str, voice: VoICE, rows: pd.DataFrame) -> bytes:
    """Return a script with what it reads as a zip archive."""
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as made:
        made.writestr(SCRIPT, text)
        made.writestr(MODEL, saved(voice))
        made.writestr(ROWS, rows.to_parquet(index=False))
    return file.getvalue()
