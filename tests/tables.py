"""Tables in their raw columns that several test files explain."""

from __future__ import annotations

from functools import cache

import pandas as pd
import pytest
from sklearn.datasets import load_wine

from voicecf import datasets

NAMES = ["wine", "obesity", "student", "german_credit", "wholesale"]


@cache
def frame_of(name: str) -> pd.DataFrame:
    """Return the first rows of a dataset, or skip the test where it is not here."""
    if name == "wine":
        return load_wine(as_frame=True).data
    try:
        return datasets.load(name).frame.iloc[:300]
    except datasets.DatasetError as error:
        pytest.skip(str(error))
