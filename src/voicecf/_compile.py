"""Compilation by numba: once, cached on disk, imported only when something must run.

Importing numba costs about as much as importing scikit-learn, so no public module imports it at
its top. `_kernel` and `_lloyd` do, and they are themselves imported on the first call.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, wraps
from pathlib import Path
from threading import local
from typing import Any

# Sums may be regrouped so that they vectorise. NaN and infinity keep their meaning: boxes use them.
FAST_SUMS = {"reassoc", "contract"}
# Nothing is called from C, and there are no array expressions to rewrite: less to compile.
_LEAN = {"no_cfunc_wrapper": True, "no_rewrites": True}


def compiled(
    function: Callable[..., Any], fastmath: Any = FAST_SUMS, *, allocates: bool = True
) -> Any:
    """Compile `function` on its first call, without the GIL, and keep it on disk if possible.

    What `allocates` no array need not count references to any, and compiles faster, with all that
    it calls.
    """
    import numba

    _collect_after_compiling()
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    options |= _LEAN | {"_nrt": allocates}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write a cache: compile in every process instead
        return numba.njit(**options)(function)


def buffered(buffers: Callable[..., tuple[Any, ...]]) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function whose last arguments are what `buffers` makes of those before."""

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = compiled(function, allocates=False)

        @wraps(function)
        def run(*problem: Any) -> Any:
            return dispatcher(*problem, *buffers(*problem))

        run.stats = dispatcher.stats  # type: ignore[attr-defined]
        return run

    return decorate


@cache
def _collect_after_compiling() -> None:
    """Pause the garbage collector while a function of ours compiles.

    A compiler makes objects by the million and few cycles: looking for these would take a
    fifteenth of its time. numba tells of each compilation under its lock, so one at a time, and
    a function within another's. What is loaded from disk is not compiled, nor told of.
    """
    from numba.core import event

    class Pause(event.Listener):
        def __init__(self) -> None:
            self.depth, self.resumes = 0, False

        def on_start(self, told: Any) -> None:
            if _is_ours(told.data["dispatcher"]):
                if self.depth == 0:
                    self.resumes = gc.isenabled()
                    gc.disable()
                self.depth += 1

        def on_end(self, told: Any) -> None:
            if _is_ours(told.data["dispatcher"]):
                self.depth -= 1
                if self.depth == 0 and self.resumes:
                    gc.enable()

    event.register("numba:compile", Pause())  # type: ignore[no-untyped-call]


def _is_ours(dispatcher: Any) -> bool:
    return str(dispatcher.__module__).partition(".")[0] == __name__.partition(".")[0]


def step(function: Callable[..., Any]) -> Any:
    """Compile a named step of a loop into its callers: an array is seven arguments in a call."""
    return part(function, forceinline=True)


def part(function: Callable[..., Any], **options: Any) -> Any:
    """Compile what only compiled code calls: no way in from Python, and no file of its own.

    Both would take longer to make than the code itself, and callers hold it anyway.
    """
    import numba

    options = {"fastmath": FAST_SUMS, "error_model": "numpy", **options}
    options |= _LEAN | {"no_cpython_wrapper": True}
    return numba.njit(**options)(function)


@cache
def announce(source: str, dispatcher: Any) -> None:
    """Say once, on stderr, that `dispatcher` compiles now; silent when the disk cache has it."""
    folder = Path(getattr(dispatcher.stats, "cache_path", None) or os.devnull)
    kept = (
        folder.glob(f"{Path(source).stem}.{dispatcher.__name__}-*.nbi") if folder.is_dir() else []
    )
    if not any(file.stat().st_mtime >= Path(source).stat().st_mtime for file in kept):
        _say("voicecf: compiling for this machine, once; this takes some seconds ...")


@cache
def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(workers, thread_name_prefix="voicecf")


if hasattr(os, "register_at_fork"):  # a forked child has the pool's memory but not its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


def cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
