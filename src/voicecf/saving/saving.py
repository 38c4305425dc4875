"""Saving and loading fitted explainers: one plain file, read without running anything in it.

A saved file is a zip archive of `explainer.json`, the tree of objects, and of the arrays that it
names, in numpy's own format. Both can be read without this library.
"""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from io import BytesIO
from math import prod
from secrets import token_hex
from typing import IO, Any, TypeVar
from warnings import warn

import numpy as np
import sklearn
from numpy.lib import format as npy
from numpy.typing import NDArray

from voicecf.errors import OptionError, SavingError, VersionWarning
from voicecf.saving.sound import check
from voicecf.saving.tree import PLAIN_KINDS, Place, TreeReader, TreeWriter

__all__ = ["LIMIT", "load", "load_explainer", "save"]

T = TypeVar("T")
FORMAT, VERSION = "voicecf/explainer", "1.0"
TREE = "explainer.json"
# Bytes that a file may unpack to, unless the caller allows more.
LIMIT = 2 << 30
# JSON takes this many times its length in memory, at worst.
TEXT_SHARE = 32
CHUNK = 1 << 20
LAST_CHARACTER = 0x10FFFF


def save(fitted: Any, path: Any) -> None:
    """Write an explainer, or a pipeline, to a file.

    The file at `path` is replaced in one step when the new one is complete; until then it stays as
    it was. The same object gives the same bytes.

    Parameters
    ----------
    fitted : object
        An explainer; or a scikit-learn pipeline, transformer or k-means of the kinds that
        explainers read.
    path : path
        Where to write. The suffix is free; ``.voicecf`` is a good one.

    Raises
    ------
    SavingError
        If a part is of a class or a function that could not be loaded safely; it names the part.

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
    writer = TreeWriter()
    try:
        tree = writer.write(fitted, Place(type(fitted).__name__))
    except RecursionError:
        raise SavingError("the object is nested too deeply to be saved; flatten it.") from None
    check(writer.objects)  # what is not sound would not load
    text = json.dumps({**_head(), "root": tree}, allow_nan=False)
    with _replacing(os.fsdecode(path)) as file, zipfile.ZipFile(file, "w") as archive:
        with _member(archive, TREE) as member:
            member.write(text.encode("ascii"))
        for name, array in writer.arrays.items():
            with _member(archive, name) as member:
                npy.write_array(member, array, version=(1, 0), allow_pickle=False)


def load(path: Any, *, limit: int = LIMIT, expected: type[T] = object) -> T:  # type: ignore[assignment]
    """Read what `save` wrote. No code in the file is run, whoever wrote it.

    What is in it must fit together. Beyond that the file is believed: what it says of the model is
    not checked against data.

    Parameters
    ----------
    path : path
    limit : int
        Bytes that the file may unpack to. The default is 2 GiB.
    expected : type
        What the file must hold.

    Returns
    -------
    object
        It answers as the saved one did, bit for bit. Generators of random numbers are not saved,
        except for seeds.

    Raises
    ------
    SavingError
        If this is no such file, or it is damaged, too large, or of another format version.

    Warns
    -----
    VersionWarning
        If it was written under another version of scikit-learn.
    """
    if not (isinstance(limit, int) and limit > 0):
        raise OptionError(f"limit={limit!r} must be a number of bytes, such as {LIMIT}.")
    name = os.fsdecode(path)
    with open(name, "rb") as file:
        try:
            head, root = _read(file, limit)
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
    _compare_versions(name, head)
    return root


def load_explainer(path: Any, *, limit: int = LIMIT) -> Any:
    """Read an explainer of any class; raise SavingError if the file holds something else."""
    found: Any = load(path, limit=limit)
    if not hasattr(found, "explain"):
        raise SavingError(
            f"{os.fsdecode(path)!r} holds a {type(found).__name__}, no explainer; use voicecf.load."
        )
    return found


def _head() -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "voicecf": version("voicecf"),
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def _compare_versions(name: str, head: dict[str, Any]) -> None:
    if head["scikit-learn"] != sklearn.__version__:
        warn(
            f"{name!r} was saved under scikit-learn {head['scikit-learn']!s:.20}; this is "
            f"{sklearn.__version__}. Its models may answer differently: compare a few, or fit and "
            "save again.",
            VersionWarning,
            stacklevel=3,
        )


@contextmanager
def _member(archive: zipfile.ZipFile, name: str) -> Iterator[IO[bytes]]:
    info = zipfile.ZipInfo(name)  # with a fixed date: same object, same bytes
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        yield member


@contextmanager
def _replacing(path: str) -> Iterator[IO[bytes]]:
    """Open a new file that takes the place of `path` once it is complete and on the disk."""
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        raise SavingError(f"{path!r} is a folder or a device; give the path of a file.")
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".voicecf-{token_hex(8)}.part")
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if os.path.exists(target):
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync(folder)


def _sync(folder: str) -> None:
    """Have the folder written to the disk, where the system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _read(file: IO[bytes], limit: int) -> tuple[dict[str, Any], Any]:
    """Return the head of a file and the object in it."""
    if file.read(4) != b"PK\x03\x04":
        raise SavingError("it is no file of voicecf. Explainers are saved by explainer.save(path).")
    with zipfile.ZipFile(file) as archive:
        members = _checked_members(archive, limit)
        head = _parsed(_content(archive, members.pop(TREE)))
        reader = TreeReader(lambda name: _array(_content(archive, members[name])))
        root = reader.read(head.pop("root"))
    if set(members) != set(reader.arrays):
        raise SavingError("it holds members that its tree does not name. Save it again.")
    check(reader.objects)
    return head, root


def _checked_members(archive: zipfile.ZipFile, limit: int) -> dict[str, zipfile.ZipInfo]:
    members = {info.filename: info for info in archive.infolist()}
    if TREE not in members or len(members) != len(archive.infolist()):
        raise SavingError("it is a zip archive, but none of voicecf's.")
    size = sum(info.file_size for info in members.values())
    worst = max(size, TEXT_SHARE * members[TREE].file_size)
    if worst > limit:
        raise SavingError(
            f"it may take {worst} bytes when unpacked, and the limit is {limit}. If you trust it, "
            f"pass limit={worst}."
        )
    for info in members.values():
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SavingError("it is packed in a way that voicecf does not use.")
    return members


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Unpack a member by chunks, so that no more than its checked size is ever made."""
    parts = []
    with archive.open(info) as member:
        while part := member.read(CHUNK):
            parts.append(part)
    content = b"".join(parts)
    if len(content) != info.file_size:
        raise SavingError("it is cut short. Copy or save it again.")
    return content


def _parsed(content: bytes) -> dict[str, Any]:
    """Read the tree, and check what format it says it is of."""
    try:
        head = json.loads(content.decode("ascii"), parse_constant=_no_constant)
    except RecursionError:
        raise SavingError("its tree is nested too deeply.") from None
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise SavingError("it is a zip archive, but none of voicecf's.")
    version, writer, _ = (str(head[key])[:20] for key in ("version", "voicecf", "scikit-learn"))
    if version != VERSION:
        raise SavingError(
            f"it is of format {version}, written by voicecf {writer}; this voicecf reads format "
            f"{VERSION}. Load it with that voicecf, or fit and save again."
        )
    return head


def _no_constant(name: str) -> Any:
    raise SavingError(f"its tree has the number {name}, which is no JSON.")


def _array(content: bytes) -> NDArray[Any]:
    """Read an array in numpy's format, having checked that it is as long as it says."""
    stream = BytesIO(content)
    if npy.read_magic(stream) != (1, 0):
        raise SavingError("it has an array in another version of numpy's format.")
    shape, by_columns, dtype = npy.read_array_header_1_0(stream)
    if dtype.kind not in PLAIN_KINDS or dtype.names or dtype.subdtype:
        raise SavingError(f"it has an array of dtype {dtype!s:.80}, which voicecf does not load.")
    start = stream.tell()
    if prod(shape) * dtype.itemsize != len(content) - start or prod(shape) > LIMIT:
        raise SavingError("it has an array that is longer or shorter than it says.")
    flat = np.ndarray(prod(shape), dtype, content, start)
    _check_bytes(flat)
    return flat.reshape(shape, order="F" if by_columns else "C").copy(order="K")


def _check_bytes(flat: NDArray[Any]) -> None:
    """Refuse bytes that are no truth value or no character: numpy trusts them."""
    if flat.dtype.kind == "b":
        highest, allowed = flat.view(np.uint8).max(initial=0), 1
    elif flat.dtype.kind == "U" and flat.dtype.itemsize:
        codes = flat.view(np.dtype(np.uint32).newbyteorder(flat.dtype.byteorder))
        highest, allowed = codes.max(initial=0), LAST_CHARACTER
    else:
        return
    if highest > allowed:
        raise SavingError("it has an array of bytes that mean nothing.")
