"""The door: what can be learned from a stream, and by whom."""
from __future__ import annotations
from typing import Any
from voicecf.shark import SHARK
from voicecf.streaming.clusters import fit_shark
from voicecf.streaming.source import Stream


def fit(estimator, source, *, progress=None):
    stream = Stream.of(source, progress)
    fit_shark(estimator, stream)
    return estimator
