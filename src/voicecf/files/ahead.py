"""Work ahead in a thread, but not far: reading, answering and writing at the same time."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["ahead"]

T = TypeVar("T")


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
