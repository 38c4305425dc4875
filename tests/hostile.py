"""Three hundred hostile files: small ones that ask for much, and damaged or edited ones."""

from __future__ import annotations

import json
import struct
import warnings
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from voicecf import VoICE
from voicecf.saving.trusted import trusted
from voicecf.saving.zipped import SEAL, zipped

Members = dict[str, bytes]
RNG = np.random.default_rng(5)
TABLE = pd.DataFrame(RNG.normal(size=(60, 3)), columns=list("abc")).assign(
    town=np.array(["x", "y", "z"])[np.arange(60) % 3]
)
KINDS = ("JsonNode", "ListNode", "TupleNode", "DictNode", "SliceNode", "TypeNode", "FunctionNode",
         "ObjectNode", "NdArrayNode", "DTypeNode", "BytesNode",
         "ConstructorFromReduceNode")  # fmt: skip


def explainer() -> VoICE:
    """Return the explainer whose file is made hostile."""
    columns = ColumnTransformer([
        ("n", StandardScaler(), list("abc")), ("t", OneHotEncoder(sparse_output=False), ["town"])
    ])  # fmt: skip
    return VoICE(make_pipeline(columns, KMeans(3, n_init=2, random_state=0))).fit(TABLE)


def resealed(content: bytes) -> bytes:
    """Return a file with the digest that it should end in, as a deliberate editor writes it."""
    body = content[:-SEAL]
    return body + sha256(body).hexdigest().encode()


def array(content: Any, shape: str = "(3,)", dtype: str = "'<f8'", version: int = 1) -> bytes:
    """Return an array of numpy's format with a header of any kind."""
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    length = struct.pack("<H" if version == 1 else "<L", len(header))
    return b"\x93NUMPY" + bytes([version, 0]) + length + header.encode() + content


def named(content: bytes) -> str:
    """Return the name that an array must have."""
    return f"{sha256(content).hexdigest()}.npy"


def node(kind: str, **fields: Any) -> dict[str, Any]:
    """Return a node of a kind, of a type that is trusted."""
    module, _, name = min(trusted(kind)).rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": kind, **fields}


def text(value: Any) -> dict[str, Any]:
    return node("JsonNode", content=json.dumps(value))


def nodes(*inner: Any, kind: str = "ListNode", **more: Any) -> dict[str, Any]:
    return node(kind, content=list(inner), **more)


def table(keys: list[str], values: list[Any], of: str = "str") -> dict[str, Any]:
    kinds = {**node("TypeNode"), "__class__": of, "__module__": "builtins"}
    content = dict(zip(keys, values, strict=True))
    return node("DictNode", content=content, key_types=nodes(*[kinds] * len(keys)))


def read(file: str, of: str = "numpy.ndarray") -> dict[str, Any]:
    """Return a node that reads an array."""
    module, _, name = of.rpartition(".")
    return {"__class__": name, "__module__": module, "__loader__": "NdArrayNode", "type": "numpy",
            "file": file}  # fmt: skip


class Hostile:
    """Files that are made of one good file."""

    def __init__(self, folder: Path) -> None:
        path = folder / "good.voicecf"
        explainer().save(path)
        self.good = path.read_bytes()
        with zipfile.ZipFile(path) as archive:
            self.members = {name: archive.read(name) for name in archive.namelist()}
        self.arrays = [name for name in self.members if name.endswith(".npy")]

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """Yield what each file is, and the file."""
        return self.chosen(lambda name: True)

    def chosen(self, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
        """Yield some of the files, by their names; the others are not made."""
        for family in (self._nodes, self._nests, self._texts, self._headers, self._explainers,
                       self._members, self._edited, self._damaged):  # fmt: skip
            for name, make in family():
                if wanted(name):
                    yield f"{family.__name__[1:]}: {name}", make()

    def tree(self, root: Any, *arrays: bytes) -> bytes:
        """Return a file of another tree, and of other arrays."""
        members = {"voicecf.json": self.members["voicecf.json"]}
        members["schema.json"] = json.dumps({"protocol": 2, **root}).encode()
        return zipped(members | {named(content): content for content in arrays})

    def changed(self, name: str, value: Any, *arrays: bytes) -> bytes:
        """Return the good file with another value for a name, wherever it stands in the tree."""

        def put(part: dict[str, Any]) -> dict[str, Any]:
            return {**part, name: value} if isinstance(part.get(name), dict) else part

        tree = json.loads(self.members["schema.json"], object_hook=put)
        members = {**self.members, "schema.json": json.dumps(tree).encode()}
        return zipped(members | {named(content): content for content in arrays})

    def _nodes(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        small = array(bytes(24))
        filled = {"NdArrayNode": read(named(small)), "DTypeNode": read(named(small))}
        for kind in KINDS:
            one = filled.get(kind) or node(kind, content=[])
            if kind == "DTypeNode":
                one = node(kind, content=one)
            for count in (1_000, 9_000, 39_000, 60_000):
                yield (
                    f"{count} of {kind}",
                    lambda one=one, count=count: self.tree(nodes(*[one] * count), small),
                )
        every = [{**node(k), "__module__": m, "__class__": c} for k in KINDS for t in trusted(k)
                 for m, _, c in [t.rpartition(".")]]  # fmt: skip
        for kind in ("JsonNode", "TupleNode", "NdArrayNode", "ObjectNode"):
            one = {"JsonNode": text(0), "NdArrayNode": read(named(small))}.get(kind, nodes())
            one = node(kind) if kind == "ObjectNode" else one
            known = [part for part in every if part["__loader__"] in ("FunctionNode", "TypeNode")]
            yield (
                f"many {kind} and every type",
                lambda one=one, known=known: self.tree(nodes(*known, *[one] * 39_000), small),
            )

    def _nests(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        for depth in (40, 99, 120, 900, 30_000):
            for kind in ("ListNode", "TupleNode"):
                opening = json.dumps(nodes(kind=kind))[:-2]
                yield f"{depth} deep {kind}", lambda depth=depth, opening=opening: zipped({
                    **self.members, "schema.json": (opening * depth + "]}" * depth).encode()
                })  # fmt: skip
            for pair in ("[]", "{}"):
                start = pair[0] if pair == "[]" else '{"a":'
                yield f"{depth} deep {pair}", lambda depth=depth, start=start, pair=pair: zipped({
                    **self.members, "schema.json": (start * depth + pair[1] * depth).encode()
                })  # fmt: skip
        for width in (100, 190, 300):
            wide = nodes(*[nodes(*[nodes()] * width)] * width)
            yield f"{width} x {width} lists", lambda wide=wide: self.tree(wide)
        for key, count in ((100_000, 39_000), (3_000_000, 30_000), (5_000, 1_000_000)):
            for inner in ([], {}, text(0), 0):
                yield (
                    f"key of {key} over {count} {inner!r:.9}",
                    lambda key=key, count=count, inner=inner: self.tree(
                        nodes(text(0), x={"k" * key: [inner] * count})
                    ),
                )
        for depth in (10, 60):
            laughs = {**nodes(), "__id__": 1}
            for i in range(1, depth):  # each holds the one before it twice, by its address
                laughs = nodes({"__id__": i}, {"__id__": i}, __id__=i + 1, last=laughs)
            yield f"{depth} laughs", lambda laughs=laughs: self.tree(laughs)

    def _texts(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        prime = 2**61 - 1  # whole numbers that are its multiples have one hash
        values = {
            "long text": "x" * 8_000_000, "wide text": "x" * 7_000_000 + "\U0001f600",
            "digits": 10**4_000, "too long": "x" * 70_000_000,
        }  # fmt: skip
        for name, value in values.items():
            yield name, lambda value=value: self.tree(nodes(text(value)))
        for content in ("9" * 10_000, "0." + "1" * 8_000_000, "[" * 100_000, "[[]]", " " * 10**6,
                        '"\\ud83d"', "1e999", "-" * 99, "NaN" * 2):  # fmt: skip
            yield (
                f"number {content:.9}",
                lambda content=content: self.tree(nodes(node("JsonNode", content=content))),
            )
        for count in (1_000, 10_000):
            keys = [str(i * prime) for i in range(count)]
            yield (
                f"{count} keys of one hash",
                lambda keys=keys: self.tree(table(keys, [text(0)] * len(keys), of="int")),
            )
        for digits in ("9" * 4_000_000, "1e999999999", "-1e-999999999", "sNaN"):
            number = {**node("ConstructorFromReduceNode"), "__class__": "Decimal"}
            number = {**number, "__module__": "decimal", "content": nodes(text(digits))}
            yield f"Decimal {digits:.9}", lambda number=number: self.tree(nodes(number))

    def _headers(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        shapes = ("(3,)", "(4,)", "(2,)", "(-3,)", "()", "(3, 1)", "(0,)", "(0, 1000000000)",
                  "(1000000000000,)", "(10**9,)", "(0, 10**30)", "3", "(3.0,)", "(True, 3)",
                  "(" * 90 + ")" * 90, "(3,) * 3")  # fmt: skip
        for shape in shapes:
            yield f"shape {shape:.20}", partial(self._array, array(bytes(24), shape))
        for dtype in ("<U0", "|S0", "|V0", "|O", "<U6", "<U1000000000", "<f16", "<c16", "|b1",
                      "f8,f8", "<M8[ns]", "<M8[999999Y]", "what"):  # fmt: skip
            for shape in ("(1,)", "(3,)", "(100000000,)", "(2000000000000,)"):
                made = array(b"" if dtype[2:] == "0" else bytes(24), shape, repr(dtype))
                yield f"{dtype} {shape}", partial(self._array, made)
        for version in (2, 3, 9):
            made = array(bytes(24), version=version)
            yield f"numpy's format {version}", partial(self._array, made)
        for many in (1_000, 20_000):
            for of in ("numpy.ndarray", "numpy.str_", "numpy.float64"):
                large = array(bytes(1 << 20), f"({1 << 17},)")
                yield (
                    f"{many} times 1 MB as {of}",
                    lambda many=many, large=large, of=of: self.tree(
                        nodes(*[read(named(large), of)] * many), large
                    ),
                )
        for of in ("numpy.ndarray", "numpy.str_", "numpy.float64", "numpy.datetime64"):
            for size in (60_000_000, 80_000_000):
                large = partial(array, shape=f"({size // 8},)")
                yield (
                    f"{size} bytes as {of}",
                    lambda size=size, large=large, of=of: self.tree(
                        nodes(read(named(large(bytes(size))), of)), large(bytes(size))
                    ),
                )

    def _array(self, content: bytes) -> bytes:
        return self.tree(nodes(read(named(content))), content)

    def _explainers(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield explainers whose parts ask for more than there is."""
        for count in (30_000, 14_000_000):
            for dtype, width in (("<U1", 4), ("|S1", 1), ("|b1", 1), ("<i2", 2)):
                levels = partial(array, shape=f"({count},)", dtype=repr(dtype))
                yield f"{count} levels of {dtype}", lambda levels=levels, n=count * width: (
                    self.changed("categories_", nodes(read(named(levels(bytes(n))))),
                                 levels(bytes(n)))
                )  # fmt: skip
        one_long = [text("x" * 4_000_000), *[text(i) for i in range(15_000)]]
        shape = nodes(text(len(one_long)), kind="TupleNode")
        levels = {**read(""), "type": "json", "content": one_long, "shape": shape}
        yield "one long level of many", lambda: self.changed("categories_", nodes(levels))
        whole = {"_n_features_outs": nodes(text(10**9)), "n_features_in_": text(10**12),
                 "names": nodes(*[text(str(i)) for i in range(35_000)], kind="TupleNode"),
                 "sources": nodes(*[text(str(i)) for i in range(35_000)]), "library": text("os"),
                 "n_clusters": text(10**15), "_n_threads": text(10**9), "steps": nodes(),
                 "transformers_": nodes(*[nodes()] * 9_000), "sparse_output": text("x"),
                 "columns": table([], []), "cells": table([], [])}  # fmt: skip
        for name, value in whole.items():
            yield f"{name} of another size", partial(self.changed, name, value)

    def _members(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        for count in (4_000, 5_000, 20_000):
            more = {f"{i}.bin": b"" for i in range(count)}
            yield f"{count} members", lambda more=more: zipped({**self.members, **more})
        for name in [*self.members][:12]:
            yield f"{name:.20} twice", partial(self._twice, name)
        for real in (1 << 20, 1 << 27):
            for said in (10, 1 << 20, 1 << 31):
                yield f"{real} bytes that say {said}", partial(self._lie, real, said)
        for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            yield f"packed by {method}", partial(self._packed, method)
        for name in ("../../evil.npy", "/etc/passwd", "schema.json/", "x" * 60_000):
            more = {name: b"x"}
            yield f"member {name:.20}", lambda more=more: zipped({**self.members, **more})

    def _twice(self, name: str) -> bytes:
        content = BytesIO(self.good)
        with warnings.catch_warnings(), zipfile.ZipFile(content, "a") as archive:
            warnings.simplefilter("ignore")
            archive.writestr(name, self.members[name])
        return resealed(content.getvalue())

    def _packed(self, method: int) -> bytes:
        content = BytesIO()
        with zipfile.ZipFile(content, "w", method) as archive:
            for name, member in self.members.items():
                archive.writestr(name, member)
            archive.comment = bytes(SEAL)
        return resealed(content.getvalue())

    def _lie(self, real: int, said: int) -> bytes:
        """Return a file with a member that is larger or smaller than the archive says."""
        made = zipped({**self.members, "more.bin": bytes(real)})
        return resealed(made.replace(struct.pack("<L", real), struct.pack("<L", said)))

    def _edited(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        """Yield files in which the bytes of an array were changed, with and without a new seal."""
        for i in range(30):
            name = self.arrays[i % len(self.arrays)]
            content = bytearray(self.members[name])
            content[-1 - i % 8] ^= 1 << (i % 7)
            edited = {**self.members, name: bytes(content)}
            yield f"array {i}", lambda edited=edited: zipped(edited)
            yield f"array {i}, not sealed", lambda edited=edited: zipped(edited)[:-SEAL]

    def _damaged(self) -> Iterator[tuple[str, Callable[[], bytes]]]:
        for i, at in enumerate(np.linspace(0, len(self.good) - 1, 40, dtype=int)):
            flipped = bytearray(self.good)
            flipped[at] ^= 1 << (i % 8)
            yield f"bit {at * 8 + i % 8}", lambda flipped=flipped: bytes(flipped)
            yield f"{at} bytes", lambda at=at: self.good[:at]
            if i % 3 == 0:
                more = RNG.bytes(9)
                yield (
                    f"more at {at}",
                    lambda at=at, more=more: self.good[:at] + more + self.good[at:],
                )
