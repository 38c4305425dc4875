"""Work ahead in a thread, but not far: reading, answering and writing at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Generator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

__all__ = ["ahead"]

T = TypeVar("T")


def ahead(items: Iterable[T], depth: int) -> Generator[T, None, None]:
    """Make items in a thread of their own, at most `depth` of them ahead."""
    made: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(kind: str, item: Any) -> bool:
        while not stop.is_set():
            with suppress(queue.Full):
                made.put((kind, item), timeout=0.1)
                return True
        return False

    def work() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            kind, item = made.get()
            if kind == "end":
                return
            if kind == "error":
                raise item
            yield item
    finally:
        stop.set()
        thread.join()
