"""Objects as members of a zip archive of skops: `schema.json`, a tree of nodes, and its arrays.

Every node is compared with the list of trusted types, before a file is written and before skops,
which compares once more, makes anything of it.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
from hashlib import sha256
from io import BytesIO
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
# Bytes of memory that loading may take, and takes at worst for a byte of the schema, of the arrays.
MEMORY, OF_SCHEMA, OF_ARRAYS = 1 << 30, 48, 5
MOST_MEMBERS, DEEPEST, CHUNK = 1 << 14, 100, 1 << 20
# Keys of nodes that are no part of the path to a value.
STRUCTURE = ("content", "key_types", "shape")
LAST_CHARACTER = 0x10FFFF


def dumped(value: Any, name: str) -> dict[str, bytes]:
    """Return members that depend on a value alone; `name` is what errors call it."""
    from skops import io  # takes half a second

    try:
        archive = zipfile.ZipFile(BytesIO(io.dumps(_plain(value))))
    except Exception as error:  # skops has many for what it cannot store
        raise SavingError(
            f"{name} has a part that cannot be saved: {type(error).__name__}: {error!s:.200}"
        ) from error
    arrays = {member: archive.read(member) for member in archive.namelist()}
    names = {n: f"{sha256(c).hexdigest()}.{n.rpartition('.')[2]}" for n, c in arrays.items()}
    schema = json.loads(arrays.pop(SCHEMA), object_hook=lambda node: _portable(node, names))
    del schema["_skops_version"]
    set(_trusted_names(schema, name))
    members = {SCHEMA: json.dumps(schema).encode("ascii")}
    members |= {names[member]: content for member, content in arrays.items()}
    _check_size({member: len(content) for member, content in members.items()})
    return members


def _plain(value: Any) -> Any:
    """Return a copy without random generators, and with arrays in place of pandas columns."""
    kind: Any = type(value)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None  # fitting has used it up; a seed is a number, which is kept
    if nw.dependencies.is_pandas_index(value) or nw.dependencies.is_into_series(value):
        return np.asarray(value)  # as whoever reads them does
    if kind in (list, tuple):
        return kind(map(_plain, value))
    if kind is dict:
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, BaseEstimator):
        copied = kind.__new__(kind)
        vars(copied).update(_plain(vars(value)))
        return copied
    return np.array(value) if kind is np.memmap else value


def _portable(node: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Replace in a node what depends on the process: addresses, and where a function was found."""
    if isinstance(node.get("__id__"), int):
        del node["__id__"]
    if isinstance(node.get("file"), str):
        node["file"] = names[node["file"]]
    if node.get("__class__") == "NAType":  # the one object of its class, so a name is enough
        return {"__class__": "NA", "__module__": "pandas", "__loader__": "FunctionNode"}
    if node.get("__loader__") == "FunctionNode":
        found = getattr(sys.modules.get(node["__module__"]), node["__class__"], None)
        node["__module__"] = public_module(found) or node["__module__"]
    return node


def _trusted_names(part: Any, place: str, depth: int = 0) -> Iterator[str]:
    """Yield the types that nodes name; raise SavingError at the place of one that is not trusted.

    A node with an address, by which skops would read it from several places, is not read either.
    """
    if depth > DEEPEST:
        raise SavingError(f"{place:.80} is nested too deeply.")
    if isinstance(part, dict) and "__loader__" in part:
        kind, name = str(part["__loader__"]), f"{part['__module__']}.{part['__class__']}"
        text = part["content"].lstrip() if kind == "JsonNode" else ""
        if name not in trusted(kind) or "__id__" in part or text.startswith(("[", "{")):
            raise _refusal(place, kind, name)
        yield name
    if isinstance(part, dict):
        for key, inner in part.items():
            at = place if key in STRUCTURE else f"{place}.{key}"
            yield from _trusted_names(inner, at, depth + 1)
    elif isinstance(part, list):
        for i, inner in enumerate(part):
            yield from _trusted_names(inner, f"{place}[{_step_name(inner) or i}]", depth + 1)


def _step_name(node: Any) -> str:
    """Return the name of a step, in quotes, if a node is a pair of a name and an estimator."""
    pair = node.get("content") if isinstance(node, dict) else None
    first = pair[0].get("content") if isinstance(pair, list) and len(pair) > 1 else None
    return first if isinstance(first, str) and first.startswith('"') else ""


def _refusal(place: str, kind: str, name: str) -> SavingError:
    """Say what cannot be saved or loaded, and what could be in its place."""
    remedy = (
        "Use a function of numpy: FunctionTransformer(np.log1p, inverse_func=np.expm1)."
        if kind == "FunctionNode"
        else "Use the steps that VoICE explains, and numbers, text, arrays and lists. Of a model "
        "of your own, the centroids are enough: VoICE.from_centers(model.cluster_centers_)."
    )
    return SavingError(f"{place:.200} is {name!r:.80}, which is not safe to load. {remedy}")


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
        with archive.open(info) as member:
            # By chunks, so that no more than the checked size is ever unpacked.
            contents[info.filename] = b"".join(iter(lambda: member.read(CHUNK), b""))
    return contents


def loaded(members: dict[str, bytes]) -> Any:
    """Return the object in the members of an archive."""
    from skops import io

    names = set(_trusted_names(json.loads(members[SCHEMA]), "it"))
    checked = BytesIO()
    with zipfile.ZipFile(checked, "w") as archive:
        for name, content in members.items():
            if name.endswith(".npy"):
                _check_array(npy.read_array(BytesIO(content), allow_pickle=False))
            archive.writestr(name, content)
    with catch_warnings():
        simplefilter("ignore", InconsistentVersionWarning)  # voicecf has its own
        return io.load(checked, trusted=sorted(names))


def _check_size(sizes: dict[str, int]) -> None:
    memory = OF_SCHEMA * sizes[SCHEMA] + OF_ARRAYS * (sum(sizes.values()) - sizes[SCHEMA])
    if memory > MEMORY:
        raise SavingError(
            f"it would take {memory >> 20} MB of memory to load, and {MEMORY >> 20} are allowed. "
            "Fit on fewer rows if a step keeps them, as KNNImputer does."
        )


def _check_array(array: Any) -> None:
    """Refuse bytes that are no numbers, truth values or characters: numpy believes them."""
    codes, highest = np.empty(0), 0
    if array.dtype.kind == "b":
        codes, highest = array.ravel().view(np.uint8), 1
    elif array.dtype.kind == "U" and array.size and array.itemsize:
        native = np.dtype(np.uint32).newbyteorder(array.dtype.byteorder)
        codes, highest = array.ravel().view(native), LAST_CHARACTER
    if array.dtype.kind not in "biufcmMSU" or codes.max(initial=0) > highest:
        raise SavingError(f"it has an array of {array.dtype!s:.40} that voicecf does not load.")
