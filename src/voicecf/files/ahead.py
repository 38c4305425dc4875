"""Work ahead in a thread, but not far: reading, answering and writing at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead", "in_order"]

T = TypeVar("T")
Made = TypeVar("Made")


def ahead(items: Iterator[T], depth: int) -> Generator[T, None, None]:
    """Make items in a thread of their own, at most `depth` of them ahead."""
    thread, end = ThreadPoolExecutor(1), object()
    try:
        coming = deque(thread.submit(next, items, end) for _ in range(depth))
        while (item := coming.popleft().result()) is not end:
            coming.append(thread.submit(next, items, end))
            yield item  # type: ignore[misc]
    finally:
        thread.shutdown(cancel_futures=True)


def in_order(
    make: Callable[[T], Made], items: Iterable[T], threads: int
) -> Generator[Made, None, None]:
    """Make something of each item, in several threads; yield what is made in the order of items."""
    pool, coming = ThreadPoolExecutor(threads), deque()  # type: ignore[var-annotated]
    try:
        for item in items:
            coming.append(pool.submit(make, item))
            if len(coming) > threads:
                yield coming.popleft().result()
        while coming:
            yield coming.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
