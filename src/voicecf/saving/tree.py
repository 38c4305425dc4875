"""A fitted object as a tree of plain JSON values and numeric arrays, and back, bit for bit."""

from __future__ import annotations

import json
import math
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property
from importlib import import_module
from inspect import getattr_static
from types import FunctionType, MethodType
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from voicecf.errors import SavingError
from voicecf.saving import known

# Levels of a tree: no pipeline has as many, and Python's own stack has a few times as many.
DEEPEST = 64
# Bytes that the arrays of a file with gaps in memory may take up together, gaps included.
ROOM = 1 << 28
# Kinds of numpy dtype that are plain bytes.
PLAIN_KINDS = "biufcmMSU"
DTYPE = re.compile(r"[<>|=][biufcmMSUO]\d*(\[\d*[A-Za-z]+\])?")
NAN = struct.pack(">d", math.nan).hex()
# What an object computes again when it is needed, or a file has no use for.
CACHES = ("_sklearn_version",)
# What of a class no object may replace.
COMPUTED = (FunctionType, property, cached_property, classmethod, staticmethod)
INFINITE = {"inf": math.inf, "-inf": -math.inf, "nan": np.nan}  # scikit-learn knows np.nan itself


@dataclass(frozen=True)
class Place:
    """Where in the tree we are, for words of errors and against endless nesting."""

    path: str
    depth: int = 0

    def attribute(self, name: str) -> Place:
        """Return the place of an attribute."""
        return Place(f"{self.path}.{name}", self.depth + 1)

    def item(self, key: Any) -> Place:
        """Return the place of an item."""
        return Place(f"{self.path}[{key!r:.40}]", self.depth + 1)


class TreeWriter:
    """Writes objects as JSON values; arrays are set apart, in `arrays`.

    An object or array that is met twice is written once, so that it is one object again.
    """

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._seen: dict[int, tuple[Any, Any]] = {}
        self._room = ROOM

    def write(self, value: Any, at: Place) -> Any:
        """Return a JSON value for any value that can be saved, or raise with its place."""
        if at.depth > DEEPEST:
            raise SavingError(
                f"{at.path:.200} is nested more than {DEEPEST} levels deep, or holds itself; "
                "flatten it."
            )
        kind = type(value)
        if value is None or kind is bool:
            return value
        if kind in _WRITERS:
            return _WRITERS[kind](self, value, at)
        if isinstance(value, (np.random.RandomState, np.random.Generator)):
            return None  # fitting has used it up; a seed is kept, as any number
        if nw.dependencies.is_pandas_index(value) or nw.dependencies.is_into_series(value):
            return self._array(np.asarray(value), at)  # as whoever reads them does
        if isinstance(value, np.generic):
            return self._scalar(value, at)
        if kind in (np.ndarray, np.memmap):
            return self._array(value, at)
        if isinstance(value, np.dtype):
            return self._dtype(value, at)
        return self._named(value, at)

    @property
    def objects(self) -> list[Any]:
        """All objects that were written."""
        return [value for value, _ in self._seen.values() if not isinstance(value, np.ndarray)]

    def _int(self, value: int, at: Place) -> Any:
        if -(2**63) <= value < 2**64:
            return value
        return {"is": "int", "hex": hex(value)}  # of any length, unlike decimal digits

    def _float(self, value: float, at: Place) -> Any:
        if math.isfinite(value):
            return value
        bits = struct.pack(">d", value).hex()
        if value == value:
            return {"is": "float", "value": "inf" if value > 0 else "-inf"}
        return {"is": "float", "value": "nan" if bits == NAN else bits}

    def _text(self, value: str, at: Place) -> Any:
        try:
            value.encode()
        except UnicodeEncodeError:  # half of a pair of surrogates; JSON would join two of them
            return {"is": "text", "hex": value.encode("utf-8", "surrogatepass").hex()}
        return value

    def _list(self, value: list[Any], at: Place) -> Any:
        return [self.write(part, at.item(i)) for i, part in enumerate(value)]

    def _tuple(self, value: tuple[Any, ...], at: Place) -> Any:
        return {"is": "tuple", "items": self._list(list(value), at)}

    def _set(self, value: Any, at: Place) -> Any:
        items = [self.write(part, at.item(part)) for part in value]
        return {"is": type(value).__name__, "items": sorted(items, key=json.dumps)}

    def _dict(self, value: dict[Any, Any], at: Place) -> Any:
        pairs = [
            [self.write(key, at.item(key)), self.write(part, at.item(key))]
            for key, part in value.items()
        ]
        return {"is": "dict", "items": pairs}

    def _slice(self, value: Any, at: Place) -> Any:
        parts = [value.start, value.stop, value.step]
        return {"is": type(value).__name__, "items": self._list(parts, at)}

    def _complex(self, value: complex, at: Place) -> Any:
        return {"is": "complex", "items": [self._float(p, at) for p in (value.real, value.imag)]}

    def _bytes(self, value: bytes, at: Place) -> Any:
        return {"is": "bytes", "hex": value.hex()}

    def _printed(self, value: Any, at: Place) -> Any:
        if getattr(value, "tzinfo", None) is not None:
            raise _refusal(value, at)
        text = str(value) if isinstance(value, Decimal) else value.isoformat()
        return {"is": type(value).__name__.lower(), "text": text}

    def _timedelta(self, value: timedelta, at: Place) -> Any:
        return {"is": "timedelta", "items": [value.days, value.seconds, value.microseconds]}

    def _scalar(self, value: np.generic, at: Place) -> Any:
        if isinstance(value, np.str_):
            whole = "".join(value)  # str() would cut zeros off its end
            return {"is": "numpy text", "value": self._text(whole, at)}
        if isinstance(value, np.bytes_):
            return {"is": "numpy bytes", "hex": bytes(value).hex()}
        if value.dtype.kind not in PLAIN_KINDS:
            raise _refusal(value, at)
        return {"is": "scalar", "dtype": value.dtype.str, "hex": value.tobytes().hex()}

    def _dtype(self, value: np.dtype[Any], at: Place) -> Any:
        if not DTYPE.fullmatch(value.str) or value.names or value.kind not in f"{PLAIN_KINDS}O":
            raise _refusal(value, at)
        return {"is": "dtype", "dtype": value.str}

    def _array(self, value: NDArray[Any], at: Place) -> Any:
        known = self._seen.get(id(value))
        if known:
            return known[1]
        if value.dtype.kind == "O":
            return self._objects(value, at)
        if value.dtype.kind not in PLAIN_KINDS:
            raise _refusal(value, at)
        node: dict[str, Any] = {"is": "array", "file": f"arrays/{len(self.arrays)}.npy"}
        if not value.flags.writeable:
            node["readonly"] = True
        if self._is_worth_its_gaps(value):
            node["strides"] = list(value.strides)
        self.arrays[node["file"]] = np.asarray(value, dtype=value.dtype.str).copy(order="K")
        self._seen[id(value)] = value, node
        return node

    def _is_worth_its_gaps(self, value: NDArray[Any]) -> bool:
        """Tell whether to keep how an array lies in memory, if it has gaps there.

        PCA cuts rows off a matrix stored by columns. Matrix products can tell, in their last bits.
        """
        if value.flags.forc or min(value.strides) <= 0:
            return False
        span = _span(value.shape, value.strides, value.itemsize)
        fits = span <= self._room
        self._room -= span * fits
        return fits

    def _objects(self, value: NDArray[Any], at: Place) -> Any:
        parts = [self.write(part, at.item(i)) for i, part in enumerate(value.ravel().tolist())]
        return {"is": "objects", "shape": list(value.shape), "items": parts}

    def _named(self, value: Any, at: Place) -> Any:
        """Write what a file may only name: our classes, scikit-learn's, types, functions."""
        if isinstance(value, type):
            name = known.type_name(value)
            node = {"is": "type", "name": name}
        elif isinstance(value, Enum):
            name = known.class_name(type(value))
            node = {"is": "enum", "class": name, "name": value.name}
        elif _is_pandas_na(value):
            return {"is": "pandas.NA"}
        elif name := known.class_name(type(value)):
            return self._object(value, name, at)
        else:
            name = known.function_name(value)
            node = {"is": "function", "name": name}
        if name is None:
            raise _refusal(value, at)
        return node

    def _object(self, value: Any, name: str, at: Place) -> Any:
        known = self._seen.get(id(value))
        if known:
            return {"is": "same", "id": known[1]}
        number = len(self._seen)
        self._seen[id(value)] = value, number
        state = {key: self.write(part, at.attribute(key)) for key, part in _state(value).items()}
        return {"is": "object", "id": number, "class": name, "state": state}


_WRITERS: dict[type, Callable[[Any, Any, Place], Any]] = {
    int: TreeWriter._int,
    float: TreeWriter._float,
    str: TreeWriter._text,
    list: TreeWriter._list,
    tuple: TreeWriter._tuple,
    dict: TreeWriter._dict,
    set: TreeWriter._set,
    frozenset: TreeWriter._set,
    slice: TreeWriter._slice,
    range: TreeWriter._slice,
    complex: TreeWriter._complex,
    bytes: TreeWriter._bytes,
    date: TreeWriter._printed,
    datetime: TreeWriter._printed,
    time: TreeWriter._printed,
    Decimal: TreeWriter._printed,
    timedelta: TreeWriter._timedelta,
}


def _span(shape: Any, strides: Any, itemsize: int) -> int:
    """Return how many bytes an array takes up from its first to its last."""
    gaps = ((n - 1) * step for n, step in zip(shape, strides, strict=True))
    return int(itemsize + sum(gaps))


def _state(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, without what it computes again when it is needed."""
    state = value.__getstate__()
    if isinstance(state, tuple):  # of a class with slots
        state = {**(state[0] or {}), **state[1]}
    return {key: part for key, part in (state or {}).items() if not _is_cache(value, key, part)}


def _is_cache(value: Any, name: str, part: Any) -> bool:
    cached = isinstance(getattr(type(value), name, None), cached_property)
    bound = isinstance(part, MethodType) and part.__self__ is value
    return name in CACHES or cached or bound


def _is_pandas_na(value: Any) -> bool:
    pandas = nw.dependencies.get_pandas()
    return pandas is not None and value is pandas.NA


def _refusal(value: Any, at: Place) -> SavingError:
    """Say what cannot be saved, and what could be in its place."""
    kind = type(value)
    if callable(value) and hasattr(value, "__name__") and not isinstance(value, type):
        return SavingError(
            f"{at.path} is the function {value.__name__!r}: a file of code is not safe to load. "
            "Use a function of numpy by its name, such as FunctionTransformer(np.log1p, "
            "inverse_func=np.expm1)."
        )
    if isinstance(value, np.ndarray | np.generic | np.dtype):
        return SavingError(
            f"{at.path} is a {kind.__name__} of {getattr(value, 'dtype', value)}; plain arrays of "
            "numbers, text, dates or objects are saved. Convert it with np.asarray and astype."
        )
    name = value.__name__ if isinstance(value, type) else f"{kind.__module__}.{kind.__qualname__}"
    return SavingError(
        f"{at.path} is a {name}, which is not known to be safe to load. Saved are scikit-learn's "
        "pipelines, scalers, encoders, imputers, PCA, selectors and k-means, SHARK, numbers, text, "
        "arrays and containers of these. Of a model of your own, the centroids are enough: "
        "VoICE.from_centers(model.cluster_centers_)."
    )


class TreeReader:
    """Makes objects of JSON values; `open_array` returns the array of a name."""

    def __init__(self, open_array: Callable[[str], NDArray[Any]]) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self._open_array = open_array
        self._objects: dict[int, Any] = {}
        self._room = ROOM

    def read(self, node: Any, depth: int = 0) -> Any:
        """Return the value of a node."""
        if depth > DEEPEST:
            raise SavingError(f"it is nested more than {DEEPEST} levels deep.")
        if isinstance(node, list):
            return [self.read(part, depth + 1) for part in node]
        if not isinstance(node, dict):
            return node
        kind = node["is"]
        if kind in _BUILDERS:
            return _BUILDERS[kind](*self.read(node["items"], depth))
        if kind in _PARSERS:
            return _PARSERS[kind](node)
        return _READERS[kind](self, node, depth)

    def _list(self, node: Any, depth: int) -> list[Any]:
        """Return the items of a container that is no JSON list itself."""
        return [self.read(part, depth + 1) for part in node["items"]]

    def _dict(self, node: Any, depth: int) -> dict[Any, Any]:
        pairs = [(self.read(k, depth + 1), self.read(v, depth + 1)) for k, v in node["items"]]
        return dict(pairs)

    def _array(self, node: Any, depth: int) -> NDArray[Any]:
        name = node["file"]
        if name not in self.arrays:
            array = self._open_array(name)
            self.arrays[name] = (
                self._with_gaps(array, node["strides"]) if "strides" in node else array
            )
            self.arrays[name].flags.writeable = not node.get("readonly", False)
        return self.arrays[name]

    def _with_gaps(self, array: NDArray[Any], strides: Any) -> NDArray[Any]:
        """Copy an array into memory in which it lies as the saved one did."""
        span = _span(array.shape, strides, array.itemsize)
        self._room -= span
        if min(strides) <= 0 or self._room < 0:
            raise SavingError("it has an array that takes up more memory than it fills.")
        spread: NDArray[Any] = np.ndarray(array.shape, array.dtype, bytearray(span), 0, strides)
        spread[...] = array
        return spread

    def _object_array(self, node: Any, depth: int) -> NDArray[Any]:
        items = self._list(node, depth)
        if math.prod(node["shape"]) != len(items):
            raise SavingError("an array has more or fewer items than its shape says.")
        flat = np.empty(len(items), dtype=object)
        for i, item in enumerate(items):  # one by one: numpy would look into lists
            flat[i] = item
        return flat.reshape(node["shape"])

    def _object(self, node: Any, depth: int) -> Any:
        cls = known.named_class(node["class"])
        if issubclass(cls, Enum):
            raise SavingError("it holds an enum without its name.")
        _check_names(cls, node["state"])
        made = self._objects[node["id"]] = cls.__new__(cls)
        state = {name: self.read(part, depth + 1) for name, part in node["state"].items()}
        if hasattr(made, "__dict__"):
            vars(made).update(state)  # past properties: nothing runs
        else:
            for name, part in state.items():
                object.__setattr__(made, name, part)
        return made

    def _same(self, node: Any, depth: int) -> Any:
        return self._objects[node["id"]]

    @property
    def objects(self) -> list[Any]:
        """All objects that were made."""
        return list(self._objects.values())


def _check_names(cls: type, state: dict[str, Any]) -> None:
    """Refuse attributes that would take the place of methods, or of what is computed again."""
    for name in state:
        if name in CACHES or isinstance(getattr_static(cls, name, None), COMPUTED):
            raise SavingError(f"it sets {cls.__name__}.{name:.40}, which is no value.")
    if is_dataclass(cls) and state.keys() != {field.name for field in fields(cls)}:
        raise SavingError(f"it holds a {cls.__name__} with more or fewer values than that has.")


_READERS: dict[str, Callable[[TreeReader, Any, int], Any]] = {
    "tuple": lambda reader, node, depth: tuple(reader._list(node, depth)),
    "set": lambda reader, node, depth: set(reader._list(node, depth)),
    "frozenset": lambda reader, node, depth: frozenset(reader._list(node, depth)),
    "numpy text": lambda reader, node, depth: np.str_(reader.read(node["value"], depth + 1)),
    "dict": TreeReader._dict,
    "array": TreeReader._array,
    "objects": TreeReader._object_array,
    "object": TreeReader._object,
    "same": TreeReader._same,
}
# Made of their items.
_BUILDERS: dict[str, Callable[..., Any]] = {
    "slice": slice,
    "range": range,
    "complex": complex,
    "timedelta": timedelta,
}


def _parsed_float(node: Any) -> float:
    if node["value"] in INFINITE:
        return INFINITE[node["value"]]
    return float(struct.unpack(">d", bytes.fromhex(node["value"]))[0])


def _parsed_dtype(node: Any) -> np.dtype[Any]:
    if not DTYPE.fullmatch(node["dtype"]):
        raise SavingError(f"it names the dtype {node['dtype']!r:.80}, which voicecf does not load.")
    dtype: np.dtype[Any] = np.dtype(node["dtype"])
    return dtype


def _parsed_scalar(node: Any) -> Any:
    dtype = _parsed_dtype(node)
    if dtype.kind not in PLAIN_KINDS:
        raise SavingError(f"it holds a number of dtype {dtype}.")
    (value,) = np.frombuffer(bytes.fromhex(node["hex"]), dtype)
    return value


def _parsed_enum(node: Any) -> Any:
    cls = known.named_class(node["class"])
    if not issubclass(cls, Enum):
        raise SavingError(f"{node['class']!r:.80} is no enum.")
    return cls[node["name"]]


# Made of themselves alone.
_PARSERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda node: int(node["hex"], 16),
    "float": _parsed_float,
    "text": lambda node: bytes.fromhex(node["hex"]).decode("utf-8", "surrogatepass"),
    "bytes": lambda node: bytes.fromhex(node["hex"]),
    "date": lambda node: date.fromisoformat(node["text"]),
    "datetime": lambda node: datetime.fromisoformat(node["text"]),
    "time": lambda node: time.fromisoformat(node["text"]),
    "decimal": lambda node: Decimal(node["text"]),
    "numpy bytes": lambda node: np.bytes_(bytes.fromhex(node["hex"])),
    "scalar": _parsed_scalar,
    "dtype": _parsed_dtype,
    "type": lambda node: known.named_type(node["name"]),
    "function": lambda node: known.named_function(node["name"]),
    "enum": _parsed_enum,
    "pandas.NA": lambda node: import_module("pandas").NA,
}
