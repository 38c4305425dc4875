"""Texts that are one level of a category: they differ in case and blanks alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

__all__ = ["is_text", "respelled", "spellings"]


def spellings(counts: Mapping[str, int]) -> dict[str, str]:
    """Return what texts are read as where case or blanks alone differ: the commonest of them.

    Parameters
    ----------
    counts : dict of str to int
        How often each text is there. Of two that are equally common the first in order counts.

    Returns
    -------
    dict of str to str
        Only texts that are read as another one.

    Examples
    --------
    >>> from voicecf.files import spellings
    >>> spellings({"App": 5, " App": 2, "APP": 1, "Web": 4})
    {' App': 'App', 'APP': 'App'}
    """
    level: dict[str, str] = {}
    common = sorted(counts, key=lambda text: (-counts[text], text))
    read = {text: level.setdefault(_plain(text), text) for text in common}
    return {text: one for text, one in read.items() if text != one}


def respelled(table: pa.Table, levels: Mapping[str, Iterable[str]]) -> pa.Table:
    """Read texts of some columns as the level that they are a spelling of; others stay."""
    for name, texts in levels.items():
        at, column = table.column_names.index(name), table[name]
        level, kind = {_plain(text): text for text in texts}, _value_type(column.type)
        read = [_respelled(chunk.cast(kind), level) for chunk in column.chunks]
        table = table.set_column(at, name, pa.chunked_array(read, kind))
    return table


def is_text(kind: Any) -> bool:
    """Tell whether a column of a type has texts."""
    kind = _value_type(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _respelled(chunk: pa.Array, level: dict[str, str]) -> pa.Array:
    encoded = chunk.dictionary_encode()
    read = [level.get(_plain(text), text) for text in encoded.dictionary.to_pylist()]
    return pa.array(read, chunk.type).take(encoded.indices)


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()
