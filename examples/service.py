"""An endpoint that answers: what would move these customers? Run it with `uvicorn service:app`."""

from __future__ import annotations

import os
from typing import Any

import pandas as pd
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import voicecf
from voicecf.errors import VoiceError

app = FastAPI(title="What would move this customer?")
explainer = voicecf.load(os.environ.get("VOICECF_MODEL", "segments.voicecf"))


class Question(BaseModel):
    rows: list[dict[str, Any]]
    target: str | int = "nearest"
    immutable: list[str] = []


@app.post("/explain")
def explain(question: Question) -> list[dict[str, Any]]:
    rows = pd.DataFrame(question.rows)
    try:
        found = explainer.explain(
            rows, question.target, objective="fewest", immutable=question.immutable
        )
    except VoiceError as error:  # an unknown target or column: the text is made for users
        raise HTTPException(422, str(error)) from None
    return [{"sentence": one.text(0), "feasible": bool(one.feasible[0])} for one in found]
