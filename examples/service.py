"""An endpoint that answers: what would move these customers? Run it with `uvicorn service:app`."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import voicecf
from voicecf.errors import VoiceError

app = FastAPI(title="What would move this customer?")
explainer = voicecf.load(os.environ.get("VOICECF_MODEL", "segments.voicecf"))
# One question after the other: threads that take turns in Python only hold each other up.
one_at_a_time = Lock()


class Question(BaseModel):
    rows: list[dict[str, Any]]
    target: str | int = "nearest"
    immutable: list[str] = []


@app.post("/explain")
def explain(question: Question) -> list[dict[str, Any]]:
    rows = pd.DataFrame(question.rows)
    try:
        with one_at_a_time:
            found = explainer.explain(
                rows, question.target, objective="fewest", immutable=question.immutable, n_jobs=1
            )
            texts = found.texts()
    except VoiceError as error:  # an unknown target or column: the text is made for users
        raise HTTPException(422, str(error)) from None
    feasible = found.feasible.tolist()
    return [{"sentence": text, "feasible": yes} for text, yes in zip(texts, feasible, strict=True)]
