"""The work folder beside an output: what is done, for what question, and by whom."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
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


class WorkFolder:
    """The folder in which a run keeps its work: OUTPUT.partial.

    Attributes
    ----------
    path : Path
    known : Path
        The manifest: for what question the work is, with the checksums of what parts are made from,
        or with a summary once the result is complete.
    parts, result, bad, explainer : Path
        The folder of answered parts, the output as far as it is written, the list of bad rows, and
        what answers.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.known, self.parts = path, path / "manifest.json", path / "parts"
        self.result, self.bad = path / "result", path / "bad.csv"
        self.explainer = path / "explainer.voicecf"

    @property
    def manifest(self) -> dict[str, Any] | None:
        """What the manifest says; None where there is none or it is not whole."""
        return read_json(self.known)

    def prepare(self, manifest: dict[str, Any], restart: bool) -> None:
        """Make the folder, or find that it is of the same question and undamaged."""
        before = self.manifest
        problem: OutputError | None = None
        if before is None:
            problem = DamagedError(self.path, "manifest.json cannot be read")
        elif others := differences(before, manifest):
            problem = OutputError(
                f"{self.path} holds the work of a run that was cut off, for another question: "
                f"{others}. Ask the same again to go on, drop that work with --restart, or give "
                "another output."
            )
        elif damage := self._damage(before):
            problem = DamagedError(self.path, damage)
        if problem is not None and self._has_parts() and not restart:
            raise problem
        if problem is not None or restart:
            self.remove()  # without parts, nothing is lost but the fit
        self.path.mkdir(exist_ok=True)

    def checksums(self) -> dict[str, str]:
        """Return the checksums of those files that parts are made from and that are there."""
        found = {}
        for path in (self.path / name for name in CHECKED):
            if path.is_file():
                with path.open("rb") as file:
                    found[path.name] = hashlib.file_digest(file, "sha256").hexdigest()
        return found

    def _damage(self, manifest: dict[str, Any]) -> str:
        """Say which of the files that a manifest vouches for are not what they were."""
        before, now = manifest.get("checksums"), self.checksums()
        if not isinstance(before, dict):
            return "manifest.json lacks checksums"
        changed = [name for name in CHECKED if now.get(name) != before.get(name)]
        return f"{listed(changed)} changed or is missing" if changed else ""

    def _has_parts(self) -> bool:
        return any(self.parts.glob("*.arrow"))

    @contextmanager
    def tidied(self, rows: Callable[[], int]) -> Iterator[None]:
        """Say what happened to a run that fails; remove its work unless a later one can go on.

        `rows` tells how many rows are answered.
        """
        try:
            yield
        except Exception as error:
            problem: OutputError | None = None
            name = os.fsdecode(getattr(error, "filename", None) or "")
            if isinstance(error, OSError) and error.errno in FULL:
                problem = FullError(self.path.parent, rows())
            elif self._has_parts() and self.path in Path(name).parents:
                problem = DamagedError(self.path, str(error))
            if not self._has_parts():
                with suppress(OutputError, OSError):
                    self.remove()
            if problem is None:
                raise
            raise problem from None

    def remove(self) -> None:
        """Remove the folder, and nothing that is none."""
        if not self.path.exists():
            return
        ours = self.path.is_dir() and all(
            found.name.split(".")[0] in OURS for found in self.path.iterdir()
        )
        if not ours:
            raise OutputError(
                f"{self.path} is in the way, and is no work of voicecf; move it elsewhere."
            )
        shutil.rmtree(self.path)
