"""Short names for the array types that signatures use, and products with reproducible bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

# Rows that `product` multiplies at a time: so few stay in the cache of a processor.
AT_A_TIME = 512


def product(a: Any, b: Any) -> Array:
    """Return ``a @ b``, each entry of it summed one term after the other.

    numpy's own product rounds differently for another number of rows, another memory layout, or
    another processor. Here the bits of an entry depend on its own terms only.

    Parameters
    ----------
    a : array of shape (..., d)
    b : array of shape (d,) or (d, m)

    Examples
    --------
    >>> from voicecf.geometry.arrays import product
    >>> product([[1.0, 2.0], [0.0, 1.0]], [3.0, 4.0])
    array([11.,  4.])
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if a.ndim > 1 and len(a) > AT_A_TIME:
        starts = range(0, len(a), AT_A_TIME)
        return np.concatenate([product(a[i : i + AT_A_TIME], b) for i in starts])
    columns = np.moveaxis(a, -1, 0)
    columns = columns if b.ndim == 1 else columns[..., None]
    total = np.zeros(a.shape[:-1] + b.shape[1:])
    for column, row in zip(columns, b, strict=True):
        total += column * row
    return total
