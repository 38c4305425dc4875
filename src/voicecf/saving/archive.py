"""Objects as files of skops: a zip archive of `schema.json`, a tree of nodes, and of its arrays.

Every node is compared with the list of trusted types, when a file is written and before one is
read; skops compares once more.
"""

from __future__ import annotations

import json
import sys
import zipfile
from hashlib import sha256
from io import BytesIO
from math import prod
from typing import Any
from warnings import catch_warnings, simplefilter

import narwhals.stable.v2 as nw
import numpy as np
from numpy.lib import format as npy
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from voicecf.errors import SavingError
from voicecf.saving.trusted import public_module, trusted

SCHEMA = "schema.json"
# Bytes of memory that loading a file may take, and how many it takes for a byte of its schema and
# for a byte of its arrays, at worst.
MEMORY, OF_SCHEMA, OF_ARRAYS = 1 << 30, 48, 4
MOST_MEMBERS, DEEPEST, CHUNK = 1 << 14, 200, 1 << 20
# Kinds of numpy dtype that are plain bytes.
PLAIN_KINDS = "biufcmMSU"
LAST_CHARACTER = 0x10FFFF
# Keys of nodes that are no part of the path to a value.
STRUCTURE = ("content", "key_types", "shape")


def dumped(value: Any, name: str) -> dict[str, bytes]:
    """Return the members of an archive; `name` is what errors call the value.

    They depend on what the value holds alone: arrays are named by a digest of their content.
    """
    from skops import io  # takes half a second

    try:
        archive = zipfile.ZipFile(BytesIO(io.dumps(_plain(value))))
    except RecursionError:
        raise SavingError(f"{name} is nested too deeply, or holds itself; flatten it.") from None
    except Exception as error:  # skops has many for what it cannot store
        raise SavingError(f"{name} has a part that cannot be saved: {error!s:.200}") from error
    contents = {member: archive.read(member) for member in archive.namelist()}
    names = {n: f"{sha256(c).hexdigest()}.{n.rpartition('.')[2]}" for n, c in contents.items()}
    schema = json.loads(contents.pop(SCHEMA), object_hook=lambda node: _portable(node, names))
    del schema["_skops_version"]
    check_nodes(schema, name)
    text = json.dumps(schema, sort_keys=True).encode("ascii")
    members = {SCHEMA: text, **{names[n]: content for n, content in contents.items()}}
    _check_size({member: len(content) for member, content in members.items()})
    return members


def _plain(value: Any) -> Any:
    """Return a copy without what no file holds: random generators, columns of pandas, open files.

    Seeds are kept, as any number.
    """
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None  # fitting has used it up
    if nw.dependencies.is_pandas_index(value) or nw.dependencies.is_into_series(value):
        return np.asarray(value)  # as whoever reads them does
    if type(value) is np.memmap:
        return np.array(value, subok=False)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if type(value) is dict:
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, BaseEstimator):
        copied = type(value).__new__(type(value))
        vars(copied).update(_plain(vars(value)))
        return copied
    return value


def _portable(node: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Replace in a node what depends on the process: addresses, and modules that import others."""
    if isinstance(node.get("__id__"), int):
        del node["__id__"]
    if isinstance(node.get("file"), str):
        node["file"] = names[node["file"]]
    if node.get("__loader__") == "FunctionNode":
        found = getattr(sys.modules.get(node["__module__"]), node["__class__"], None)
        node["__module__"] = public_module(found) or node["__module__"]
    return node


def check_nodes(part: Any, place: str, depth: int = 0) -> None:
    """Raise SavingError, with its place, for a node that is not of a trusted type."""
    if depth > DEEPEST:
        raise SavingError(f"{place:.200} is nested too deeply, or holds itself; flatten it.")
    if isinstance(part, dict) and "__loader__" in part:
        kind, name = str(part["__loader__"]), f"{part['__module__']}.{part['__class__']}"
        if name not in trusted().get(kind, ()):
            raise _refusal(place, kind, name)
        text = part["content"].lstrip() if kind == "JsonNode" else ""
        if "__id__" in part or text.startswith(("[", "{")):
            raise SavingError(f"{place:.200} is written in a way that voicecf does not use.")
    if isinstance(part, dict):
        for key, inner in part.items():
            check_nodes(inner, place if key in STRUCTURE else f"{place}.{key}", depth + 1)
    elif isinstance(part, list):
        for i, inner in enumerate(part):
            check_nodes(inner, f"{place}[{_step_name(inner) or i}]", depth + 1)


def _step_name(node: Any) -> str:
    """Return the name of a step, in quotes, if a node is a pair of a name and an estimator."""
    pair = node.get("content") if isinstance(node, dict) else None
    named = isinstance(pair, list) and len(pair) > 1 and pair[0].get("__loader__") == "JsonNode"
    return pair[0]["content"] if named and pair[0]["content"].startswith('"') else ""


def _refusal(place: str, kind: str, name: str) -> SavingError:
    """Say what cannot be saved or loaded, and what could be in its place."""
    if kind == "FunctionNode":
        return SavingError(
            f"{place:.200} is the function {name!r:.80}: a file of code is not safe to load. Use a "
            "function of numpy by its name, such as FunctionTransformer(np.log1p, "
            "inverse_func=np.expm1)."
        )
    return SavingError(
        f"{place:.200} is a {name:.80}, which is not known to be safe to load. Saved are "
        "scikit-learn's pipelines, scalers, encoders, imputers, PCA, selectors and k-means, SHARK, "
        "numbers, text, arrays and lists of these. Of a model of your own, the centroids are "
        "enough: VoICE.from_centers(model.cluster_centers_)."
    )


def read_members(archive: zipfile.ZipFile) -> dict[str, bytes]:
    """Return the members of an archive, after a check of how many and how large they are."""
    infos = archive.infolist()
    sizes = {info.filename: info.file_size for info in infos}
    if SCHEMA not in sizes or len(sizes) != len(infos) or len(sizes) > MOST_MEMBERS:
        raise SavingError("it is a zip archive, but none of voicecf's.")
    _check_size(sizes)
    contents = {}
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise SavingError("it is packed in a way that voicecf does not use.")
        # By chunks, so that no more than the checked size is ever unpacked.
        with archive.open(info) as member:
            contents[info.filename] = b"".join(iter(lambda: member.read(CHUNK), b""))
        if len(contents[info.filename]) != info.file_size:
            raise SavingError("it is cut short. Copy or save it again.")
    return contents


def loaded(members: dict[str, bytes]) -> Any:
    """Return the object in the members of an archive."""
    from skops import io

    try:
        schema = json.loads(members[SCHEMA])
        check_nodes(schema, "it")
        for name, content in members.items():
            if name.endswith(".npy"):
                _check_array(content)
        checked = BytesIO()
        with zipfile.ZipFile(checked, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        with catch_warnings():
            simplefilter("ignore", InconsistentVersionWarning)  # voicecf has its own
            return io.load(checked, trusted=sorted(set().union(*trusted().values())))
    except RecursionError:
        raise SavingError("it is nested too deeply.") from None


def _check_size(sizes: dict[str, int]) -> None:
    memory = OF_SCHEMA * sizes[SCHEMA] + OF_ARRAYS * (sum(sizes.values()) - sizes[SCHEMA])
    if memory > MEMORY:
        raise SavingError(
            f"it would take {memory >> 20} MB of memory to load, and {MEMORY >> 20} are allowed. "
            "Fit on fewer rows if a step keeps them, as KNNImputer does."
        )


def _check_array(content: bytes) -> None:
    """Refuse an array that is not as long as it says, or whose bytes mean nothing."""
    stream = BytesIO(content)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    shape, _, dtype = read[npy.read_magic(stream)](stream)
    if dtype.kind not in PLAIN_KINDS or dtype.names or dtype.subdtype:
        raise SavingError(f"it has an array of dtype {dtype!s:.80}, which voicecf does not load.")
    if prod(shape) * dtype.itemsize != len(content) - stream.tell() or prod(shape) > MEMORY:
        raise SavingError("it has an array that is longer or shorter than it says.")
    flat: Any = np.ndarray(prod(shape), dtype, content, stream.tell())
    # numpy trusts the bytes of truth values and of characters.
    if dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise SavingError("it has an array of truth values that are neither true nor false.")
    if dtype.kind == "U" and dtype.itemsize:
        codes = flat.view(np.dtype(np.uint32).newbyteorder(dtype.byteorder))
        if codes.max(initial=0) > LAST_CHARACTER:
            raise SavingError("it has an array of text with bytes that are no characters.")
