"""Tables in their raw columns that several test files explain."""

from __future__ import annotations

from functools import cache

import pandas as pd
from sklearn.datasets import load_wine

from voicecf import datasets

NAMES = ["wine", "obesity", "student", "german_credit", "wholesale"]


@cache
def frame_of(name: str) -> pd.DataFrame:
    """Return the first rows of a dataset."""
    if name == "wine":
        return load_wine(as_frame=True).data
    return datasets.load(name).frame.iloc[:300]
