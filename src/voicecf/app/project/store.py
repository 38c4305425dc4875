"""The folder in which projects are kept, and one file that takes a project elsewhere."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path, PurePosixPath
from threading import Lock
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

import platformdirs

from voicecf.app.data.preparing import PreparingError
from voicecf.app.project.choices import ProjectChoices
from voicecf.app.project.project import CHOICES, MODEL, RUNS, TABLE, Project, write_whole
from voicecf.errors import VoiceError

# Projects whose tables and results are in memory.
IN_MEMORY = 2
# Bytes that a session file may hold once it is unpacked.
LARGEST = 1 << 30
NAME = re.compile(r"[a-z0-9]{10}")
INSIDE = re.compile(
    rf"{re.escape(CHOICES)}|{TABLE}\.[a-z]+|{MODEL}-[0-9a-f]+\.voicecf"
    rf"|{RUNS}/[a-z0-9]+\.[a-z]+[a-z.]*(/[a-z0-9][a-z0-9.-]*){{0,2}}"
)


class StoreError(VoiceError):
    """There is no such project, or a session file cannot be opened."""


@dataclass(frozen=True)
class Kept:
    """A project of the store: its id, the name of its table, and when it was last changed."""

    id: str
    table: str
    changed: datetime


def usual_folder() -> Path:
    """Return where programs of this system keep what belongs to a user, or VOICECF_PROJECTS."""
    named = os.environ.get("VOICECF_PROJECTS")
    return Path(named) if named else platformdirs.user_data_path("voicecf", appauthor=False)


class Store:
    r"""Projects in a folder; the last few that were used are in memory.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     project = store.create("people.csv", b"age,visits\n31,2\n45,1\n")
    ...     store.open(project.id) is project, [kept.table for kept in store.projects()]
    (True, ['people.csv'])
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: OrderedDict[str, Project] = OrderedDict()
        self._lock = Lock()

    def create(self, table: str, content: bytes | None = None, example: str = "") -> Project:
        """Begin with a table: the bytes of a file, or an example.

        Raises
        ------
        ReadingError
            If the file cannot be used; then nothing is kept.
        """
        folder = self._new_folder()
        try:
            if content is not None:
                ending = Path(table).suffix.lower() if "." in table else ".csv"
                ending = ending if re.fullmatch(r"\.[a-z]+", ending) else ".csv"
                (folder / f"{TABLE}{ending}").write_bytes(content)
            write_whole(folder / CHOICES, ProjectChoices(table, example).to_json())
            project = Project(folder)
            project.table  # noqa: B018  what cannot be read is refused here
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._remember(project)

    def open(self, id: str) -> Project:
        """Return a project; raises a StoreError if there is none of that id."""
        with self._lock:
            found = self._open.get(id)
        if found is None or not found.folder.exists():
            if not NAME.fullmatch(id) or not (self.folder / id / CHOICES).exists():
                raise StoreError(
                    "This work is not, or no longer, kept on this computer. Begin with a table, or "
                    "open a session file, on the page “Data”."
                )
            try:
                found = Project(self.folder / id)
            except ValueError:
                raise StoreError("This work was kept by another version of voicecf.") from None
        return self._remember(found)

    def projects(self) -> list[Kept]:
        """List what is kept, the last used first."""
        found = []
        for file in self.folder.glob(f"*/{CHOICES}"):
            try:
                table = ProjectChoices.from_json(file.read_bytes()).table
                changed = datetime.fromtimestamp(file.stat().st_mtime)
            except (ValueError, OSError):
                continue
            found.append(Kept(file.parent.name, table, changed))
        return sorted(found, key=lambda kept: kept.changed, reverse=True)

    def delete(self, id: str) -> None:
        """Delete a project, with its table and all results."""
        if NAME.fullmatch(id):
            with self._lock:
                self._open.pop(id, None)
            shutil.rmtree(self.folder / id, ignore_errors=True)

    def export(self, project: Project) -> bytes:
        """Write a project into one file."""
        project.save()
        with suppress(PreparingError):  # there are no segments yet
            project.keep_model()
        file = BytesIO()
        with ZipFile(file, "w", ZIP_DEFLATED) as archive:
            for path in sorted(project.folder.rglob("*")):
                name = path.relative_to(project.folder).as_posix()
                if path.is_file() and INSIDE.fullmatch(name):
                    archive.write(path, name)
        return file.getvalue()

    def take(self, content: bytes) -> Project:
        """Open a file that `export` wrote, here or elsewhere."""
        folder = self._new_folder()
        try:
            with ZipFile(BytesIO(content)) as archive:
                members = [m for m in archive.infolist() if INSIDE.fullmatch(m.filename)]
                if sum(member.file_size for member in members) > LARGEST:
                    raise StoreError("This session file is larger than the app takes.")
                for member in members:
                    place = folder / PurePosixPath(member.filename)
                    place.parent.mkdir(parents=True, exist_ok=True)
                    place.write_bytes(archive.read(member))
            project = Project(folder)
            project.table  # noqa: B018
        except (BadZipFile, ValueError, OSError, EOFError, NotImplementedError):
            shutil.rmtree(folder, ignore_errors=True)
            raise StoreError(
                "This is no session file, or a damaged one. Save it again on the page “Take away”."
            ) from None
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return self._remember(project)

    def _new_folder(self) -> Path:
        id = "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(10))
        (self.folder / id).mkdir(parents=True, mode=0o700)
        return self.folder / id

    def _remember(self, project: Project) -> Project:
        """Note that a project is in use; the results of all but the last few are let go.

        Projects themselves stay: controls of a page that is open somewhere still speak to them.
        """
        with self._lock:
            kept = self._open.setdefault(project.id, project)
            self._open.move_to_end(project.id)
            for other in list(self._open.values())[:-IN_MEMORY]:
                other.forget()
            return kept
