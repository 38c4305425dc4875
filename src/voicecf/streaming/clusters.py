"""Clusterings learned from a stream: SHARK and scikit-learn's KMeans."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from voicecf.passes import Batches, Rows
from voicecf.shark import SHARK
from voicecf.streaming.distinct import DistinctStream
from voicecf.streaming.source import Stream


@dataclass(frozen=True)
class Numbers:
    """The rows of a stream as a model takes them, in batches; every row counts once."""

    model: Any
    stream: Stream
    dtype: Any = np.float64

    def __iter__(self) -> Iterator[Rows]:
        """Begin a pass, and yield its batches."""
        for block in self.stream:
            X = validate_data(self.model, block, reset=False, dtype=self.dtype, order="C")
            X = np.require(X, np.float64, ["C", "W"])
            yield Rows(X, np.ones(len(X)))


def fit_shark(shark: SHARK, stream: Stream) -> None:
    """Learn centers and feature weights; to the bit those of all rows in memory."""
    shark._check_parameters()
    validate_data(shark, stream.first(), dtype=np.float64)
    rows = Numbers(shark, stream)
    shark._check_count(stream.n_rows)
    shark._learn(Batches(rows), stream.n_rows, DistinctStream(rows))
    shark.__dict__.pop("labels_", None)
