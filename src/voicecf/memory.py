"""Large arrays that come and go with every call, in memory that is kept for the next one.

A system hands out fresh memory page by page, each set to zero first, and takes it back as soon as
answers are forgotten: for a batch of answers that can take as long as to find them. So some memory
of forgotten answers is kept.
"""

from __future__ import annotations

import os
from math import prod
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

# Bytes that are kept at most, and bytes from which on an array is worth keeping.
KEPT = 1 << 27
LEAST = 1 << 17

# Idle blocks, the longest idle first. A lease may end in the middle of anything, so in here, too.
_idle: list[NDArray[np.uint8]] = []
_turn = RLock()


class _Lease:
    """What an array of kept memory belongs to; ends when the last view of it has gone."""

    def __init__(
        self, block: NDArray[np.uint8], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> None:
        self.block = block
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (block.__array_interface__["data"][0], False),
            "version": 3,
        }

    def __del__(self) -> None:
        _keep(self.block)


def empty(shape: int | tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Return an array whose entries mean nothing yet, like `numpy.empty`.

    Examples
    --------
    >>> from voicecf.memory import empty
    >>> empty((1000, 30)).shape
    (1000, 30)
    """
    shape, kind = (shape,) if isinstance(shape, int) else shape, np.dtype(dtype)
    size = prod(shape) * kind.itemsize
    if not LEAST <= size <= KEPT:
        return np.empty(shape, kind)
    return np.asarray(_Lease(_taken(-(-size // LEAST) * LEAST), shape, kind))


def _taken(size: int) -> NDArray[np.uint8]:
    """Take an idle block of a size, the one that was used last, or make a new one."""
    with _turn:
        for at in range(len(_idle) - 1, -1, -1):
            if len(_idle[at]) == size:
                return _idle.pop(at)
    return np.empty(size, dtype=np.uint8)


def _keep(block: NDArray[np.uint8]) -> None:
    """Keep a block, and let go of those that were idle longest where it gets too much."""
    with _turn:
        _idle.append(block)
        while sum(map(len, _idle)) > KEPT:
            _idle.pop(0)


def _start_anew() -> None:
    """Forget all that is idle, and whoever held the turn: they are not in a forked child."""
    global _turn
    _turn = RLock()
    _idle.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
