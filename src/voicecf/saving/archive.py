"""Objects as members of a zip archive of skops: `schema.json`, a tree of nodes, and its arrays.

Sizes are checked, and every node is compared with the list of trusted types, before a file is
written and before skops, which compares once more, makes anything of it.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator
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
from voicecf.saving.zipped import check_bytes

SCHEMA = "schema.json"
# What skops makes objects of in a second or two, whatever the nodes are.
LONGEST_SCHEMA, MOST_NODES, DEEPEST = 1 << 23, 40_000, 100
# An array takes its bytes at every place in the tree that reads it, and as much time as so many.
A_PLACE = 1 << 13
# Keys of nodes that are no part of the path to a value.
STRUCTURE = ("content", "key_types", "shape")
LAST_CHARACTER = 0x10FFFF

# The steps from the root of a tree to a node.
Place = tuple[str, ...]


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
    members = {SCHEMA: json.dumps(schema).encode("ascii")}
    members |= {names[member]: content for member, content in arrays.items()}
    check_bytes(sum(map(len, members.values())))
    checked(members, name)
    return members


def _plain(value: Any) -> Any:
    """Return a copy without random generators, and with arrays in place of pandas columns."""
    kind: Any = type(value)
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return None  # fitting has used it up; a seed is a number, which is saved
    if kind.__module__ == "sklearn.linear_model._sgd_fast":
        return None  # a loss, which fitting alone needs
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
    # A copy without gaps, in the same order in memory, which matrix products can tell: skops would
    # write a slice of a matrix that is stored by columns row by row.
    return np.array(value, order="K") if kind in (np.ndarray, np.memmap) else value


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


def loaded(members: dict[str, bytes]) -> Any:
    """Return the object in members, which are taken out of their dict."""
    from skops import io

    names = checked(members)
    # Written again, as skops does not ask how large a member is that it unpacks.
    archived = BytesIO()
    with zipfile.ZipFile(archived, "w") as archive:
        while members:
            archive.writestr(*members.popitem())
    with catch_warnings():
        simplefilter("ignore", InconsistentVersionWarning)  # voicecf has its own
        return io.load(archived, trusted=sorted(names))


def checked(members: dict[str, bytes], name: str = "it") -> set[str]:
    """Return the types that a tree names; raise SavingError if it is too large or not trusted.

    `name` is what errors call the root of the tree.
    """
    schema, n_bytes, names = members[SCHEMA], 0, set()
    n_nodes = max(schema.count(b"{"), schema.count(b"["))  # counted before anything is parsed
    if len(schema) > LONGEST_SCHEMA or n_nodes > MOST_NODES:
        raise SavingError(
            f"{name} has {n_nodes:,} parts, in {len(schema):,} characters; at most {MOST_NODES:,} "
            f"and {LONGEST_SCHEMA:,} are loaded. Use fewer columns, levels or clusters."
        )
    for node, place in _nodes(json.loads(schema), (name,)):
        names.add(_trusted_name(node, place))
        if "file" in node:
            n_bytes += len(members[node["file"]]) + A_PLACE
    check_bytes(n_bytes)
    for member, content in members.items():
        if member != SCHEMA and not member.startswith(sha256(content).hexdigest()):
            raise SavingError("one of its arrays was changed. Save it again.")
        if member.endswith(".npy"):
            _check_array(content)
    return names


def _nodes(part: Any, place: Place) -> Iterator[tuple[dict[str, Any], Place]]:
    """Yield every node and its place: the steps to it, which errors join. Some steps are long."""
    if len(place) > DEEPEST + 1:
        raise SavingError(f"{''.join(place):.80} is nested too deeply.")
    if isinstance(part, dict) and "__loader__" in part:
        yield part, place
    for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
        if not isinstance(inner, (dict, list)):
            continue
        if isinstance(part, list):
            step = f"[{_step_name(inner) or key}]"
        else:
            step = "" if key in STRUCTURE else f".{key}"
        yield from _nodes(inner, (*place, step))


def _step_name(node: Any) -> str:
    """Return the name of a step, in quotes, if a node is a pair of a name and an estimator."""
    pair = node.get("content") if isinstance(node, dict) else None
    first = pair[0].get("content") if isinstance(pair, list) and len(pair) > 1 else None
    return first if isinstance(first, str) and first.startswith('"') else ""


def _trusted_name(node: dict[str, Any], place: Place) -> str:
    """Return the type that a node names; raise SavingError if it is not trusted.

    A node with an address, by which skops would read it from several places, is not read either.
    """
    kind, name = str(node["__loader__"]), f"{node['__module__']}.{node['__class__']}"
    text = node["content"].lstrip() if kind == "JsonNode" else ""
    if name in trusted(kind) and "__id__" not in node and not text.startswith(("[", "{")):
        return name
    remedy = (
        "Use a function of numpy: FunctionTransformer(np.log1p, inverse_func=np.expm1)."
        if kind == "FunctionNode"
        else "Use the steps that VoICE explains, and numbers, text, arrays and lists. Of a model "
        "of your own the numbers are enough: VoICE.from_centers(model.cluster_centers_), or "
        "VoICE.from_scores(A, b). Trees and nearest neighbors are for pickle only."
    )
    raise SavingError(f"{''.join(place):.200} is {name!r:.80}, which is not safe to load. {remedy}")


def _check_array(content: bytes) -> None:
    """Refuse a header that is not true of the bytes after it, and bytes that are no values.

    numpy would believe both. An array without bytes may still have elements, or lengths, that take
    memory later: there are no more of them than nodes.
    """
    stream = BytesIO(content)
    version = npy.read_magic(stream)
    shape, _, dtype = npy.read_array_header_1_0(stream)
    size = len(content) - stream.tell()
    sound = version == (1, 0) and dtype.kind in "biufcmMSU"
    sound = sound and prod(shape) * dtype.itemsize == size
    sound = sound and prod(max(n, 1) for n in (*shape, dtype.itemsize)) <= max(size, MOST_NODES)
    if sound and dtype.kind in "bU" and size:
        codes = np.dtype(np.uint8 if dtype.kind == "b" else np.uint32).newbyteorder(dtype.byteorder)
        highest = 1 if dtype.kind == "b" else LAST_CHARACTER
        sound = np.frombuffer(content, codes, offset=stream.tell()).max() <= highest
    if not sound:
        raise SavingError(f"it has an array of {dtype!s:.40} that voicecf does not load.")
