"""Run the chunks of a batch in threads, on all cores."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import local
from typing import Any

# Least number of chunks that `even_chunk` divides a long batch into; a power of two.
PIECES = 8


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="voicecf")


# A forked child inherits the pool but not its threads, so it needs a new pool.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def even_chunk(n: int, least: int = 256, most: int = 8192) -> int:
    """Return a chunk size that divides n problems evenly over the cores.

    Chunks are small enough that a run of hard problems does not keep one core busy alone.
    """
    return min(max(-(-n // PIECES), least), most)


def _chunks(n: int, size: int) -> Iterator[tuple[int, int]]:
    return ((start, min(start + size, n)) for start in range(0, n, size))


# `_thread.in_chunk` is set in threads that run a chunk.
_thread = local()


def in_parallel(work: Callable[[int, int], Any], n: int, *, chunk: int = 2048) -> list[Any]:
    """Call `work(start, stop)` for all chunks of range(n), on all cores; return results in order.

    Chunk borders depend on n and `chunk` only, never on the number of cores. A single chunk runs in
    the calling thread, which saves the overhead for a single row. Nested calls, from within a
    chunk, run in the calling thread too.
    """
    spans = list(_chunks(n, chunk))
    workers = min(cores(), len(spans))
    if workers <= 1 or getattr(_thread, "in_chunk", False):
        return [work(*span) for span in spans]

    def run(span: tuple[int, int]) -> Any:
        _thread.in_chunk = True
        return work(*span)

    return list(_pool(cores()).map(run, spans))
