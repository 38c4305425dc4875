"""Threads: chunks of a batch on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import local
from typing import Any

# Chunks that a batch is divided into at least, where it is long enough; a power of two.
PIECES = 8


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="voicecf")


if hasattr(os, "register_at_fork"):  # a forked child has the pool's memory but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def even_chunk(n: int, least: int = 256, most: int = 8192) -> int:
    """Return a chunk that divides n problems evenly enough: hard ones may stand together."""
    return min(max(-(-n // PIECES), least), most)


def _chunks(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n)) for start in range(0, n, size))


_inside = local()


def in_parallel(work: Callable[[int, int], Any], n: int, *, chunk: int = 2048) -> list[Any]:
    """Call `work(start, stop)` over range(n) in chunks on all cores; results in order.

    Chunk borders depend on n and `chunk` alone, never on the number of cores. A single chunk runs
    in the calling thread, so that one row costs no hand-over; so does all that is called from
    within a chunk.
    """
    spans = list(_chunks(n, chunk))
    workers = min(cores(), len(spans))
    if workers <= 1 or getattr(_inside, "work", False):
        return [work(*span) for span in spans]

    def run(span: tuple[int, int]) -> Any:
        _inside.work = True
        return work(*span)

    return list(_pool(cores()).map(run, spans))
