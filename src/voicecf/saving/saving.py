"""Saving and loading fitted explainers: one plain file, read without running anything in it."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Self, TypeVar
from warnings import warn

import sklearn
from sklearn.base import BaseEstimator

from voicecf.errors import SavingError, VersionWarning
from voicecf.saving.archive import SCHEMA, dumped, loaded
from voicecf.saving.sound import check_estimators, need
from voicecf.saving.trusted import EXPLAINERS
from voicecf.saving.whole import write_whole
from voicecf.saving.zipped import MOST_BYTES, opened, unzipped, zipped

T = TypeVar("T")
FORMAT, VERSION = "voicecf/explainer", 5
HEAD, LONGEST_HEAD = "voicecf.json", 1 << 12


class Saved:
    """Methods `save` and `load`."""

    def save(self, path: Any) -> None:
        """Write this to one plain file, without pickle; see `voicecf.saving.save`."""
        save(self, path)

    @classmethod
    def load(cls, path: Any) -> Self:
        """Load what `save` wrote; no code in the file is run. See `voicecf.load`."""
        return load(path, expected=cls)


def save(fitted: Any, path: Any) -> None:
    """Write an explainer, or a pipeline, to a file, which is replaced in one step.

    Parameters
    ----------
    fitted : estimator
        An explainer; or a scikit-learn pipeline, transformer or k-means of the kinds that
        explainers read.
    path : path
        Where to write. The suffix is free; ``.voicecf`` is a good one.

    Raises
    ------
    SavingError
        If a part could not be loaded safely, such as a function; it names the part.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.preprocessing import StandardScaler
    >>> from voicecf.saving import load, save
    >>> scaler = StandardScaler().fit([[1.0], [3.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(scaler, f"{folder}/scaler.voicecf")
    ...     load(f"{folder}/scaler.voicecf").mean_
    array([2.])
    """
    target = Path(os.fsdecode(path))
    if target.exists() and not target.is_file():
        raise SavingError(f"{str(target)!r} is a folder or a device; give the path of a file.")
    if not target.absolute().parent.is_dir():
        raise SavingError(f"there is no folder {str(target.parent)!r}; create it first.")
    versions = {"voicecf": version("voicecf"), "scikit-learn": sklearn.__version__}
    head = {"format": FORMAT, "version": VERSION, **versions}
    write_whole(target, zipped({HEAD: json.dumps(head).encode(), **_members(fitted)}))


def digest(fitted: Any) -> str:
    """Return a digest of what `save` would write, the same in every process.

    Examples
    --------
    >>> from voicecf import VoICE
    >>> from voicecf.saving import digest
    >>> one, other = (VoICE.from_centers([[0.0], [x]]) for x in (1.0, 2.0))
    >>> digest(one) == digest(one), digest(one) == digest(other)
    (True, False)
    """
    # The number of threads is that of the machine.
    content = json.loads(
        _members(fitted)[SCHEMA],
        object_hook=lambda node: {key: node[key] for key in node if key != "_n_threads"},
    )
    return sha256(json.dumps(content).encode("ascii")).hexdigest()


def _members(fitted: Any) -> dict[str, bytes]:
    """Return the members of a file but its head."""
    name = type(fitted).__name__
    if not isinstance(fitted, BaseEstimator):
        raise SavingError(f"a {name} cannot be saved; give an explainer or an estimator.")
    if not hasattr(fitted, "_parts"):
        return dumped(fitted, name)
    if type(fitted).__module__ != EXPLAINERS.get(name):
        raise SavingError(f"{name} is a class of your own; save a VoICE or a CFCLUST.")
    return dumped({"explainer": name, **fitted._parts()}, name)


def load(path: Any, *, expected: type[T] = object) -> T:  # type: ignore[assignment]
    """Read what `save` wrote. No code in the file is run, whoever wrote it.

    What is in it must fit together. Beyond that the file is believed: what it says of the model is
    not checked against data.

    Parameters
    ----------
    path : path
    expected : type
        What the file must hold.

    Returns
    -------
    object
        An explainer answers as the saved one did, bit for bit; a bare pipeline as a deep copy of it
        does, since matrix products can tell a slice of a larger matrix from a copy. Random
        generators are not saved; seeds are.

    Raises
    ------
    SavingError
        If this is no such file, or it is damaged, too large, or of another format version. Another
        version of scikit-learn gives a VersionWarning.

    Examples
    --------
    >>> import tempfile
    >>> import voicecf
    >>> voice = voicecf.VoICE.from_centers([[0.0, 0.0], [4.0, 0.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     voice.save(f"{folder}/two.voicecf")
    ...     again = voicecf.load(f"{folder}/two.voicecf")
    >>> again.predict([[1.0, 5.0]])
    array([0])
    """
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        try:
            saved_with, root = _read(file)
        except ImportError:  # there is no library of frames: the message names them
            raise
        except SavingError as error:
            raise SavingError(f"cannot load {name!r}: {error}") from None
        except Exception as error:  # a damaged file can fail in any way that its readers can
            raise SavingError(
                f"cannot load {name!r}: it is damaged, or was not written by voicecf "
                f"({type(error).__name__}: {error!s:.200}). Copy or save it again."
            ) from error
    if not isinstance(root, expected):
        raise SavingError(
            f"{name!r} holds a {type(root).__name__}, no {expected.__name__}; use voicecf.load."
        )
    if saved_with != sklearn.__version__:
        warn(
            f"{name!r} was saved under scikit-learn {saved_with:.20}; this is "
            f"{sklearn.__version__}. Its models may answer differently: compare a few, or fit and "
            "save again.",
            VersionWarning,
            stacklevel=2,
        )
    return root


def load_explainer(path: Any) -> Any:
    """Read an explainer of any class; raise SavingError if the file holds something else."""
    found: Any = load(path)
    if not hasattr(found, "explain"):
        raise SavingError(
            f"{os.fsdecode(path)!r} holds a {type(found).__name__}, no explainer; use voicecf.load."
        )
    return found


def _read(file: IO[bytes]) -> tuple[str, Any]:
    """Return the version of scikit-learn that a file was saved with, and the object in it."""
    head, members = _unpacked(file.read(MOST_BYTES + 1))
    root = loaded(members)
    check_estimators(root)
    if isinstance(root, dict):
        name = root.pop("explainer")
        root = getattr(import_module(EXPLAINERS[name]), name)._of_parts(**root)
    need(isinstance(root, BaseEstimator), f"content, a {type(root).__name__},")
    return str(head["scikit-learn"]), root


def _unpacked(content: bytes) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the head of a file and its other members."""
    if not content.startswith(b"PK\x03\x04"):
        raise SavingError("it is no file of voicecf. Explainers are saved by explainer.save(path).")
    with opened(content) as archive:
        head: Any = {}
        if {HEAD, SCHEMA} <= {*archive.namelist()}:
            with archive.open(HEAD) as member:
                head = json.loads(member.read(LONGEST_HEAD))
        if head.get("format") != FORMAT:
            raise SavingError("it is a zip archive, but none of voicecf's.")
        if head["version"] != VERSION:
            raise SavingError(
                f"it is of format {head['version']!s:.20}, written by voicecf "
                f"{head['voicecf']!s:.20}; this voicecf reads format {VERSION}. Load it with that "
                "voicecf, or fit and save again."
            )
        members = unzipped(content, archive)
    del members[HEAD]
    return head, members
