"""The work folder beside an output: what is done, for what question, and by whom."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from voicecf.errors import listed
from voicecf.saving.apart import OutputError

# What parts are made from, once it is there.
CHECKED = ("explainer.voicecf", "input.json", "input.parquet")
# What a work folder holds, up to the first point of a name.
OURS = (
    "manifest", "explainer", "input", "spill", "parts", "result", "bad", "replaced", "",
)  # fmt: skip
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class BusyError(OutputError):
    """Another process writes the same output."""


class FullError(OutputError):
    """The disk is full."""

    def __init__(self, folder: Path, rows: int) -> None:
        goes_on = f"it goes on at row {rows:,}" if rows else "it starts again"
        super().__init__(
            f"the disk is full: {shutil.disk_usage(folder).free:,} bytes are free in {folder}. "
            f"Make room and run the same command again: {goes_on}."
        )


class DamagedError(OutputError):
    """The work of an earlier run is not what that run left."""

    def __init__(self, folder: Path, what: str) -> None:
        super().__init__(
            f"{folder} holds the work of a run that was cut off, and is damaged: {what}. Drop that "
            "work with --restart, or give another output."
        )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep all other processes from an output; a process that dies lets go of it.

    The file OUTPUT.lock at `path` is there as long as the output is locked.
    """
    while True:
        try:
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:
            raise OutputError(f"there is no folder {path.parent}; create it first.") from None
        except PermissionError:
            raise OutputError(f"{path.parent} cannot be written to; give another output.") from None
        try:
            if not _alone(lock):
                raise BusyError(
                    f"another process is writing {path.with_suffix('')} right now. Wait for it, or "
                    "give another output."
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
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is(opened: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(opened), path.stat())
    except FileNotFoundError:
        return False


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object that a JSON file holds, None where there is none or it is not whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def checksums(folder: Path) -> dict[str, str]:
    """Return the checksums of those files that parts are made from and that are there."""
    found = {}
    for path in (folder / name for name in CHECKED):
        if path.is_file():
            with path.open("rb") as file:
                found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def damage_of(folder: Path, manifest: dict[str, Any]) -> str:
    """Say which of the files that a manifest vouches for are not what they were."""
    before, now = manifest.get("checksums"), checksums(folder)
    if not isinstance(before, dict):
        return "manifest.json lacks checksums"
    changed = [name for name in CHECKED if now.get(name) != before.get(name)]
    return f"{listed(changed)} changed or is missing" if changed else ""


def differences(earlier: dict[str, Any], manifest: dict[str, Any]) -> str:
    """Describe what a manifest has otherwise than an earlier one; nothing if that has it all."""
    found = []
    for key, now in manifest.items():
        before = earlier.get(key)
        if before == now:
            continue
        if key == "input":
            found.append("the input is another one, or was changed")
        elif isinstance(before, dict) and isinstance(now, dict):
            found += _changed_words(before, now)
        else:
            found.append(f"{key} was {before}, is now {now}")
    return "; ".join(found)


def _changed_words(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    words = [word for word in {**before, **now} if before.get(word) != now.get(word)]
    return [
        f"{word} was {_short(before.get(word))}, is now {_short(now.get(word))}" for word in words
    ]


def _short(value: Any) -> str:
    text = "not given" if value is None else json.dumps(value)
    return text if len(text) <= 60 else text[:57] + "..."


def any_part(folder: Path) -> bool:
    """Tell whether a part is on the disk."""
    return any((folder / "parts").glob("*.arrow"))


def remove(folder: Path) -> None:
    """Remove a work folder, and nothing that is none."""
    if not folder.exists():
        return
    ours = folder.is_dir() and all(p.name.split(".")[0] in OURS for p in folder.iterdir())
    if not ours:
        raise OutputError(f"{folder} is in the way, and is no work of voicecf; move it elsewhere.")
    shutil.rmtree(folder)
