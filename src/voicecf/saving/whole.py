"""Writing a file so that it is there whole, or not at all."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any


def write_whole(path: Path, content: Any) -> None:
    """Write bytes to a file that is replaced in one step, once all of them are on the disk.

    Until then the file at `path` stays as it was. Links are followed, and permissions stay.
    """
    target = Path(os.path.realpath(path))
    half = target.with_name(f"{target.name}.{token_hex(4)}.half")
    try:
        with half.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            shutil.copymode(target, half)
        half.replace(target)
    except BaseException:
        with suppress(OSError):
            half.unlink()
        raise
    sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    with suppress(OSError):  # a system that has no such thing
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
