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

    Until then the file at `path` stays as it was. Links are followed, and permissions stay. The
    names of other files that were replaced in the same folder are on the disk afterwards, too.
    """
    target = Path(os.path.realpath(path))
    half = target.with_name(f"{target.name}.{token_hex(4)}.half")
    try:
        half.touch(exist_ok=False)
        half.write_bytes(content)
        flush(half)
        if target.exists():
            shutil.copymode(target, half)
        half.replace(target)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # a system that has no such thing
        flush(target.parent, os.O_RDONLY)


def flush(path: Path, how: int = os.O_RDWR) -> None:
    """Put a file on the disk, or the names in a folder."""
    opened = os.open(path, how)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
