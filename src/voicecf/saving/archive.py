"""Objects as members of a zip archive of skops: `schema.json`, a tree of nodes, and its arrays.

Sizes are checked, and every node is compared with the list of trusted types, before a file is
written and before skops, which compares once more, makes anything of it.
"""

from __future__ import annotations

import json
import sys
import zipfile
from hashlib import sha256
from io import BytesIO
from typing import Any
from warnings import catch_warnings, simplefilter

import narwhals.stable.v2 as nw
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from voicecf.errors import SavingError
from voicecf.saving.nodes import SCHEMA, checked
from voicecf.saving.trusted import public_module
from voicecf.saving.zipped import check_bytes


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
