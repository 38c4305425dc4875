"""Run the chunks of a batch in threads; count what is done, and end at Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextvars import ContextVar, Token, copy_context
from functools import cache
from itertools import count
from numbers import Integral
from threading import Lock
from time import perf_counter
from typing import Any, Self, TypeVar

import voicecf._core as _core
from voicecf.errors import OptionError

# Least number of chunks that `even_chunk` divides a long batch into, a power of two, and the
# largest size of a chunk.
PIECES = 8
LARGEST_CHUNK = 8192
# Seconds before a bar appears by itself, and between two looks at how far the threads are.
PATIENCE = 2.0
PAUSE = 0.1

Item = TypeVar("Item")

# Held while a thread adds to what is done.
_adding = Lock()


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="voicecf")


# A forked child inherits the pool but not its threads, so it needs a new pool.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def n_threads(n_jobs: int | None) -> int:
    """Return the number of threads: `n_jobs`, by default ``OMP_NUM_THREADS`` or all cores.

    As in scikit-learn, -1 is all cores, -2 all but one.

    Examples
    --------
    >>> from voicecf.parallel import n_threads
    >>> n_threads(3)
    3
    """
    if n_jobs is None:
        # OpenMP allows a list, with a number for each level of nested loops.
        chosen = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
        return int(chosen) if chosen.isdecimal() and int(chosen) > 0 else cores()
    return int(n_jobs) if n_jobs > 0 else max(cores() + 1 + int(n_jobs), 1)


class Progress:
    """Count the rows that are done, and draw them as a bar.

    Parameters
    ----------
    shown : bool, optional
        True draws a bar, False none. None draws one on a terminal or in a notebook, if the call
        takes longer than `PATIENCE` seconds.
    """

    def __init__(self, shown: bool | None) -> None:
        self.shown = shown
        self.done = self.total = 0
        self.muted = False
        self._start = perf_counter()
        self._bar: Any = None

    def expect(self, rows: int) -> None:
        """Announce rows. If they were announced before, as a part of more rows, nothing changes."""
        if not self.muted:
            self.total = max(self.total, self.done + rows)

    def add(self, rows: int) -> None:
        """Count rows that are done."""
        if not self.muted:
            with _adding:
                self.done += rows

    def draw(self) -> None:
        """Draw the bar, if it is time; only in the thread that made the call."""
        if self._bar is None and self._is_due():
            from tqdm.auto import tqdm

            self._bar = tqdm(total=self.total, unit=" rows", miniters=1, smoothing=0)
            self._bar.start_t -= perf_counter() - self._start
        if self._bar is not None:
            self._bar.total = self.total = max(self.total, self.done)
            self._bar.update(self.done - self._bar.n)

    def close(self, failed: bool = False) -> None:
        """Draw the bar for the last time: full, unless the call failed."""
        if not failed and (self.shown or self._bar is not None):
            self.done = max(self.done, self.total)
            self.draw()
        if self._bar is not None:
            self._bar.close()

    def _is_due(self) -> bool:
        if self.shown is not None:
            return self.shown
        late = perf_counter() - self._start > PATIENCE
        return late and (sys.stderr.isatty() or "ipykernel" in sys.modules)


class Running:
    """How a call runs: with how many threads, and with what progress.

    It holds for all calls of `in_parallel` within a ``with`` block. What is None is as in the block
    around it.

    Parameters
    ----------
    n_jobs : int, optional
        See `n_threads`.
    progress : bool, optional
        See `Progress`.

    Examples
    --------
    >>> from voicecf.parallel import Running, in_parallel
    >>> with Running(n_jobs=2):
    ...     in_parallel(lambda start, stop: stop - start, 10, chunk=4)
    [4, 4, 2]
    """

    def __init__(self, n_jobs: Any = None, progress: Any = None) -> None:
        number = isinstance(n_jobs, Integral) and not isinstance(n_jobs, bool) and n_jobs != 0
        if n_jobs is not None and not number:
            raise OptionError(
                f"n_jobs={n_jobs!r} is not allowed; use a number of threads, -1 for all cores, or "
                f"None."
            )
        if not (progress is None or isinstance(progress, bool)):
            raise OptionError(f"progress={progress!r} is not allowed; use True, False or None.")
        around = _running.get()
        if around is not None:
            n_jobs = around.n_jobs if n_jobs is None else n_jobs
            progress = around.progress.shown if progress is None else progress
        self.n_jobs: int | None = n_jobs
        self.progress: Progress = Progress(progress)

    def __enter__(self) -> Self:
        self._before: Token[Running | None] = _running.set(self)
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        _running.reset(self._before)
        self.progress.close(failed=failure is not None)


def _current() -> Running:
    """Return how the current call runs: outside of all blocks, without a bar."""
    return _running.get() or Running(progress=False)


_running: ContextVar[Running | None] = ContextVar("_running", default=None)
# True in threads that run a chunk.
_in_chunk = ContextVar("_in_chunk", default=False)


def expect(rows: int) -> None:
    """Announce the number of rows of a call, if they are solved in several batches."""
    _current().progress.expect(rows)


def counted(items: Sequence[Item]) -> Iterator[Item]:
    """Yield the items of a long loop, and count each as a row; nothing within is counted."""
    progress = _current().progress
    progress.expect(len(items))
    for item in items:
        progress.muted = True
        try:
            yield item
        finally:
            progress.muted = False
        progress.add(1)
        progress.draw()


def even_chunk(n: int, least: int = 256) -> int:
    """Return a chunk size that divides n problems evenly over the cores.

    Chunks are small enough that a run of hard problems does not keep one core busy alone.
    """
    return min(max(-(-n // PIECES), least), LARGEST_CHUNK)


def in_parallel(
    work: Callable[[int, int], Any], n: int, *, chunk: int = 2048, rows: bool = False
) -> list[Any]:
    """Call `work(start, stop)` for all chunks of range(n), in threads; return results in order.

    Chunk borders depend on n and `chunk` only, never on the number of threads. A single chunk runs
    in the calling thread, which saves the overhead for a single row. Nested calls, from within a
    chunk, run in the calling thread too.

    An exception in a chunk, or Ctrl-C in the thread that waits for them, ends the loops of all
    chunks of this call, and is raised when no chunk runs any longer.

    Parameters
    ----------
    work : callable
    n : int
    chunk : int
        Size of a chunk.
    rows : bool
        Whether range(n) are rows that the progress of the call counts.
    """
    spans = [(start, min(start + chunk, n)) for start in range(0, n, chunk)]
    running = _current()
    progress = running.progress
    if rows:
        progress.expect(n)

    def counted_work(span: tuple[int, int]) -> Any:
        result = work(*span)
        if rows:
            progress.add(span[1] - span[0])
        return result

    nested = _in_chunk.get()
    threads = 1 if nested or len(spans) <= 1 else n_threads(running.n_jobs)
    if threads > 1:
        return _in_threads(counted_work, spans, threads, progress)
    results = []
    for span in spans:
        results.append(counted_work(span))
        if not nested:
            progress.draw()
    return results


def _in_threads(
    work: Callable[[Any], Any], items: Sequence[Any], n: int, progress: Progress
) -> list[Any]:
    """Call `work` for all items in up to n threads; draw the progress meanwhile."""
    results: list[Any] = [None] * len(items)
    turns, stop = count(), _core.Stop()

    def take_turns() -> None:
        _in_chunk.set(True)
        with stop:
            while not stop.is_set() and (turn := next(turns)) < len(items):
                results[turn] = work(items[turn])

    threads: list[Future[None]] = []
    try:
        for _ in range(min(n, len(items))):
            threads.append(_pool(n).submit(copy_context().run, take_turns))
        while not _ended(threads, PAUSE):
            progress.draw()
    finally:
        stop.set()
        # A thread that has not begun need not: all items are done, or of no use.
        wait([thread for thread in threads if not thread.cancel()])
    return results


def _ended(threads: Iterable[Future[None]], seconds: float) -> bool:
    """Wait for threads; return whether all have ended, or raise the exception of one."""
    ended, running = wait(threads, seconds, FIRST_EXCEPTION)
    for thread in ended:
        thread.result()
    return not running
