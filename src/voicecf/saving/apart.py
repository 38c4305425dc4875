"""All files that a run reads and writes: no output may be, hold or replace an input."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from pathlib import Path

from voicecf.errors import VoiceError

__all__ = ["OutputError", "Paths"]

# What tells a file from others, by whatever name it is called: a path, or device and inode.
Key = str | tuple[int, int]


class OutputError(VoiceError):
    """The output cannot be written there, or not with these options."""


@dataclass(frozen=True)
class Paths:
    """All files that a run reads and writes.

    Files are compared by their real paths and by their inodes: a link, a hard link, ``..`` and
    another spelling of a name on a system that ignores case are the file that they lead to.

    Attributes
    ----------
    outputs : dict of str to Path
        Files and folders to write, by what they are.
    inputs : list of Path
        Files that are read.
    folders : list of Path
        Folders that are read as a whole, with all that will be in them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from voicecf.saving.apart import Paths
    >>> Paths({"the output": Path("answers.csv")}, [Path("rows.csv")]).check()
    >>> Paths({"the output": Path("src/../rows.csv")}, [Path("rows.csv")]).check()
    Traceback (most recent call last):
    ...
    voicecf.saving.apart.OutputError: the output src/../rows.csv would replace the input rows.csv; \
give another.
    """

    outputs: Mapping[str, Path]
    inputs: Iterable[Path] = ()
    folders: Iterable[Path] = ()

    def check(self) -> None:
        """Raise if an output is, holds or replaces an input, another output, or this folder."""
        around = cache(_around)  # many files lie in the same folders

        def held(path: Path) -> set[Key]:
            """Return the keys of a path, and of all folders that it lies in."""
            return _keys(path).union(*map(around, _parents(path)))

        here, folders = around(Path.cwd()), list(self.folders)
        needed = {path: held(path) for path in (*self.inputs, *folders)}
        for what, path in self.outputs.items():
            if path.name in ("", ".."):
                raise OutputError(f"{what} {path} is a folder without a name of its own; name one.")
            own = _keys(path)
            for file, keys in needed.items():
                if own & keys:
                    raise OutputError(
                        f"{what} {path} would replace the input {file}; give another."
                    )
            if own & here:
                raise OutputError(f"{what} {path} holds the current folder; give another.")
            for folder in folders:
                if _keys(folder) & held(path):
                    raise OutputError(
                        f"{what} {path} lies within the folder {folder} of the input; give another."
                    )
        for (what, path), (other, second) in combinations(self.outputs.items(), 2):
            if _keys(path) & held(second) or _keys(second) & held(path):
                raise OutputError(
                    f"{other} {second} would replace {what} {path}, or lie in it; give another."
                )


def _keys(path: Path) -> set[Key]:
    """Return the real path, that of a link itself, and device and inode of what is there."""
    path = _plain(path)
    found: set[Key] = {os.path.realpath(path)}
    found.add(os.path.join(os.path.realpath(path.parent), path.name))
    with suppress(OSError):  # it is not there, or a link that leads nowhere
        facts = path.stat()
        found.add((facts.st_dev, facts.st_ino))
    return found


def _plain(path: Path) -> Path:
    """Return an absolute path without "..", in which only folders before one are resolved."""
    parts = path.absolute().parts
    up = max((at for at, part in enumerate(parts, 1) if part == ".."), default=1)
    return Path(os.path.realpath(Path(*parts[:up])), *parts[up:])


def _parents(path: Path) -> tuple[Path, Path]:
    """Return the folder that a file is in by its name, and the one that it is really in."""
    return _plain(path).parent, Path(os.path.realpath(path)).parent


def _around(folder: Path) -> set[Key]:
    """Return the keys of a folder and of all folders around it."""
    real = Path(os.path.realpath(folder))
    return set[Key]().union(*map(_keys, (folder, *folder.parents, real, *real.parents)))
