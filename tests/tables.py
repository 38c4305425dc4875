"""Tables in their raw columns that several test files explain, and a disk that is full."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pandas as pd
import pytest
from sklearn.datasets import load_wine

from voicecf import datasets

NAMES = ["wine", "obesity", "student", "german_credit", "wholesale"]


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    """Let the system refuse to write beyond so many bytes of a file, as a full disk does."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@cache
def frame_of(name: str) -> pd.DataFrame:
    """Return the first rows of a dataset."""
    if name == "wine":
        return load_wine(as_frame=True).data
    return datasets.load(name).frame.iloc[:300]
