"""Footers of Parquet files, joined: row groups of several files become those of one.

A footer is a struct in Thrift's compact encoding. Here it is read into plain lists without regard
to what it means, offsets are moved, and it is written again. The numbers of fields are those of
``parquet.thrift``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["joined", "read_struct", "written_struct"]

# Types of the compact encoding.
TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)
# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData.
NUM_ROWS, ROW_GROUPS = 3, 4
COLUMNS, GROUP_OFFSET, ORDINAL = 1, 5, 7
CHUNK_OFFSETS, CHUNK_META = (2, 4, 6), 3
META_OFFSETS = (9, 10, 11, 14)
LAST_ORDINAL = (1 << 15) - 1

# A struct: its fields in order, each a list [number, type, value].
Struct = list[list[Any]]


def joined(footers: Iterable[tuple[bytes, int]]) -> bytes:
    """Return the footer of files that were put one after the other.

    Parameters
    ----------
    footers : iterable of (bytes, int)
        The footer of each file, and by how much its data moved.
    """
    whole: Struct = []
    groups: list[Struct] = []
    for footer, shift in footers:
        one = read_struct(footer)
        whole = whole or one
        for group in _field(one, ROW_GROUPS)[2][1]:
            _move(group, shift)
            _number(group, len(groups))
            groups.append(group)
    rows = sum(_field(group, 3)[2] for group in groups)
    _field(whole, NUM_ROWS)[2] = rows
    _field(whole, ROW_GROUPS)[2] = STRUCT, groups
    return written_struct(whole)


def _field(struct: Struct, number: int) -> list[Any]:
    return next(field for field in struct if field[0] == number)


def _move(group: Struct, shift: int) -> None:
    """Add to all offsets of a row group; 0 stands for none."""
    _add(group, (GROUP_OFFSET,), shift)
    for column in _field(group, COLUMNS)[2][1]:
        _add(column, CHUNK_OFFSETS, shift)
        _add(_field(column, CHUNK_META)[2], META_OFFSETS, shift)


def _add(struct: Struct, numbers: tuple[int, ...], shift: int) -> None:
    for field in struct:
        if field[0] in numbers and field[2]:
            field[2] += shift


def _number(group: Struct, ordinal: int) -> None:
    """Give a row group its place, which is optional and a short integer."""
    group[:] = [field for field in group if field[0] != ORDINAL]
    if ordinal <= LAST_ORDINAL:
        group.append([ORDINAL, I16, ordinal])


# Thrift's compact encoding.


def read_struct(data: bytes) -> Struct:
    """Read a struct."""
    return _Reader(data).struct()


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.readers: dict[int, Callable[[], Any]] = {
            BYTE: self.byte, I16: self.signed, I32: self.signed, I64: self.signed,
            DOUBLE: lambda: self.some(8), BINARY: lambda: self.some(self.varint()),
            LIST: self.list, SET: self.list, STRUCT: self.struct,
        }  # fmt: skip

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def some(self, count: int) -> bytes:
        self.at += count
        return self.data[self.at - count : self.at]

    def varint(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def signed(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def list(self) -> tuple[int, list[Any]]:
        head = self.byte()
        kind, count = head & 0x0F, head >> 4
        if count == 0x0F:
            count = self.varint()
        read = self.byte if kind in (TRUE, FALSE) else self.readers[kind]
        return kind, [read() for _ in range(count)]

    def struct(self) -> Struct:
        fields: Struct = []
        number = 0
        while head := self.byte():
            kind, step = head & 0x0F, head >> 4
            number = number + step if step else self.signed()
            value = kind == TRUE if kind in (TRUE, FALSE) else self.readers[kind]()
            fields.append([number, kind, value])
        return fields


def written_struct(struct: Struct) -> bytes:
    """Write a struct."""
    content = bytearray()
    _write_struct(content, struct)
    return bytes(content)


def _write_struct(out: bytearray, struct: Struct) -> None:
    before = 0
    for number, kind, value in struct:
        if 0 < number - before <= 15:
            out.append((number - before) << 4 | kind)
        else:
            out.append(kind)
            _write_signed(out, number)
        before = number
        if kind not in (TRUE, FALSE):
            _write(out, kind, value)
    out.append(0)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in (TRUE, FALSE, BYTE):  # truth values only within lists
        out.append(value)
    elif kind in (I16, I32, I64):
        _write_signed(out, value)
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind in (LIST, SET):
        _write_list(out, *value)
    else:
        if kind == BINARY:
            _write_varint(out, len(value))
        out += value


def _write_list(out: bytearray, kind: int, values: list[Any]) -> None:
    out.append(min(len(values), 0x0F) << 4 | kind)
    if len(values) >= 0x0F:
        _write_varint(out, len(values))
    for value in values:
        _write(out, kind, value)


def _write_signed(out: bytearray, value: int) -> None:
    _write_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
