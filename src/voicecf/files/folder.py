"""The work folder beside an output: what is done, for what question, and by whom."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voicecf.errors import VoiceError
from voicecf.saving.whole import sync_folder, write_whole

__all__ = ["BusyError", "FullError", "Journal", "OutputError", "locked", "sync_folder",
           "write_whole"]  # fmt: skip

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutputError(VoiceError):
    """The output cannot be written there, or not with these options."""


class BusyError(OutputError):
    """Another process writes the same output."""


class FullError(OutputError):
    """The disk is full."""


@contextmanager
def locked(output: Path) -> Iterator[None]:
    """Keep all other processes from an output; a process that dies lets go of it."""
    path = output.with_name(output.name + ".lock")
    while True:
        with _said_in_words(path):
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not _alone(lock):
                raise BusyError(
                    f"another process is writing {output} right now. Wait for it, or give another "
                    "output."
                )
            if _is(lock, path):  # not one that its owner removed in the meantime
                try:
                    yield
                finally:
                    with suppress(OSError):
                        path.unlink()
                return
        finally:
            os.close(lock)


def _alone(lock: int) -> bool:
    """Lock a file, or tell that somebody else has."""
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt

        attempt: Any = lambda: msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]  # noqa: E731
    else:
        attempt = lambda: fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # noqa: E731
    try:
        attempt()
    except OSError:
        return False
    return True


def _is(opened: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except FileNotFoundError:
        return False


@contextmanager
def _said_in_words(path: Path) -> Iterator[None]:
    """Turn what the system says of a file that cannot be written into a sentence."""
    try:
        yield
    except FileNotFoundError:
        raise OutputError(f"there is no folder {path.parent}; create it first.") from None
    except PermissionError:
        raise OutputError(f"{path.parent} cannot be written to; give another output.") from None


@contextmanager
def room_for(folder: Path, needed: int, goes_on: str) -> Iterator[None]:
    """Turn a full disk into a sentence; `goes_on` tells what a second run will do."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        free = shutil.disk_usage(folder).free
        raise FullError(
            f"the disk is full: the next part needs {needed:,} bytes in {folder}, and {free:,} are "
            f"free. Make room and run the same command again: {goes_on}."
        ) from None


def read_json(path: Path) -> Any:
    """Return what a JSON file holds, None where there is none or it is not whole."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return None


@dataclass
class Appended:
    """A file that grows at its end, and is cut back to what was known to be whole."""

    path: Path
    length: int = 0

    def cut(self, length: int) -> None:
        """Keep so many bytes."""
        self.length = length
        if not self.path.exists():
            if length:
                raise OutputError(f"{self.path} is gone; start again with --restart.")
            return
        if self.path.stat().st_size < length:
            raise OutputError(f"{self.path} was cut short; start again with --restart.")
        os.truncate(self.path, length)

    def add(self, content: Any) -> None:
        """Put bytes at the end, on the disk; if that fails, the file is as it was."""
        created = not self.path.exists()
        try:
            with self.path.open("ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                os.truncate(self.path, self.length)
            raise
        if created:
            sync_folder(self.path.parent)
        self.length += len(content)


class Journal:
    """What is done: a line of JSON for each part, added when the part is on the disk.

    A line that is not whole, because a process died while writing it, does not count.

    Attributes
    ----------
    count : int
        Number of parts.
    """

    def __init__(self, path: Path) -> None:
        self.file = Appended(path)
        self.count = 0

    def resume(self) -> Iterator[dict[str, Any]]:
        """Read all entries, one after the other, and go on behind the last one."""
        length = 0
        if self.file.path.exists():
            with self.file.path.open("rb") as lines:
                for line in lines:
                    entry = _entry(line)
                    if entry is None:
                        break
                    length += len(line)
                    self.count += 1
                    yield entry
        self.file.cut(length)

    def add(self, entry: dict[str, Any]) -> None:
        """Put down that something is done."""
        self.file.add(json.dumps(entry, sort_keys=True).encode("ascii") + b"\n")
        self.count += 1


def _entry(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line) if line.endswith(b"\n") else None
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
