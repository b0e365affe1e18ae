"""The end of a data file: the footer and the offset tables it points to.

A 2.x file ends so (all little endian; positions are absolute)::

    column metadata of each column
    column offset table    (position u64, size u64) for each column
    global offset table    (position u64, size u64) for each global buffer
    footer, 40 bytes       u64 start of the column metadata
                           u64 start of the column offset table
                           u64 start of the global offset table
                           u32 global buffers, u32 columns
                           u16 major, u16 minor, "LANC"

A 0.1 file ends with 16 bytes: u64 position of its metadata, u16 major, u16 minor, "LANC".
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.versions import FileVersion

__all__ = [
    "FOOTER_SIZE",
    "LEGACY_FOOTER_SIZE",
    "MAGIC",
    "Footer",
    "LegacyFooter",
    "parse_footer",
    "parse_offset_table",
    "parse_version",
    "write_footer",
    "write_legacy_footer",
    "write_offset_table",
]

MAGIC = b"LANC"
FOOTER_SIZE = 40
LEGACY_FOOTER_SIZE = 16

_FOOTER = struct.Struct("<QQQIIHH4s")
_LEGACY = struct.Struct("<QHH4s")
_VERSION = struct.Struct("<HH4s")
_ENTRY = 16


@dataclass(frozen=True, slots=True)
class Footer:
    """What the last 40 bytes of a 2.x file say."""

    version: FileVersion
    column_metadata_start: int
    column_table_start: int
    global_table_start: int
    num_global_buffers: int
    num_columns: int

    @property
    def column_table(self) -> tuple[int, int]:
        """(start, length) of the column offset table."""
        return self.column_table_start, self.num_columns * _ENTRY

    @property
    def global_table(self) -> tuple[int, int]:
        """(start, length) of the global buffer offset table."""
        return self.global_table_start, self.num_global_buffers * _ENTRY


@dataclass(frozen=True, slots=True)
class LegacyFooter:
    """What the last 16 bytes of a 0.1 file say."""

    version: FileVersion
    metadata_position: int


def parse_version(tail: bytes | memoryview, *, uri: str | None = None) -> FileVersion:
    """The version in the last 8 bytes of any data file."""
    if len(tail) < _VERSION.size:
        raise Corrupt(f"file ends after {len(tail)} bytes, expected a footer of {FOOTER_SIZE}", uri=uri)
    major, minor, magic = _VERSION.unpack(tail[-_VERSION.size :])
    if magic != MAGIC:
        raise Corrupt(f"the file ends with {magic!r}, expected {MAGIC!r}", uri=uri, hint="this is not a Lance file")
    try:
        return FileVersion.from_numbers(major, minor)
    except Unsupported as error:
        raise error.where(uri=uri) from None


def parse_footer(tail: bytes | memoryview, file_size: int, *, uri: str | None = None) -> Footer | LegacyFooter:
    """The footer of a file of ``file_size`` bytes, of which ``tail`` is the end.

    Every position and count is checked against the file's size, so that what is read or allocated next is bounded.

    >>> footer = Footer(FileVersion.V2_2, 64, 80, 96, 1, 1)
    >>> parse_footer(write_footer(footer), 152) == footer
    True
    """
    version = parse_version(tail, uri=uri)
    if version is FileVersion.V0_1:
        return _parse_legacy(tail, file_size, version, uri)
    if len(tail) < FOOTER_SIZE:
        raise Corrupt(f"file ends after {len(tail)} bytes, expected a footer of {FOOTER_SIZE}", uri=uri)
    metadata, columns, buffers, num_buffers, num_columns, *_ = _FOOTER.unpack(tail[-FOOTER_SIZE:])
    footer = Footer(version, metadata, columns, buffers, num_buffers, num_columns)
    body = file_size - FOOTER_SIZE
    if metadata > body:
        raise _outside("column metadata", metadata, 0, body, file_size, uri)
    for name, (start, length) in (("column", footer.column_table), ("global buffer", footer.global_table)):
        if start > body or length > body - start:
            raise _outside(f"{name} offset table", start, length, body, file_size, uri)
    return footer


def _parse_legacy(tail: bytes | memoryview, file_size: int, version: FileVersion, uri: str | None) -> LegacyFooter:
    if len(tail) < LEGACY_FOOTER_SIZE:
        raise Corrupt(f"file ends after {len(tail)} bytes, expected a footer of {LEGACY_FOOTER_SIZE}", uri=uri)
    position, *_ = _LEGACY.unpack(tail[-LEGACY_FOOTER_SIZE:])
    body = file_size - LEGACY_FOOTER_SIZE
    if position > body:
        raise _outside("metadata", position, 0, body, file_size, uri)
    return LegacyFooter(version, position)


def _outside(what: str, start: int, length: int, body: int, file_size: int, uri: str | None) -> Corrupt:
    found = f"{what} at {start}..{start + length} lies outside the file's first {body} bytes"
    return Corrupt(found, uri=uri, byte_range=(body, file_size - body))


def write_footer(footer: Footer) -> bytes:
    """The 40 bytes that end a 2.x file."""
    return _FOOTER.pack(
        footer.column_metadata_start,
        footer.column_table_start,
        footer.global_table_start,
        footer.num_global_buffers,
        footer.num_columns,
        *footer.version.footer_numbers,
        MAGIC,
    )


def write_legacy_footer(footer: LegacyFooter) -> bytes:
    """The 16 bytes that end a 0.1 file."""
    return _LEGACY.pack(footer.metadata_position, *footer.version.footer_numbers, MAGIC)


def parse_offset_table(
    data: bytes | memoryview, limit: int, *, what: str = "column metadata", uri: str | None = None
) -> NDArray[np.int64]:
    """Rows of (start, size), each of which ends at or before byte ``limit`` of the file.

    >>> parse_offset_table(write_offset_table([(0, 10), (64, 3)]), 67).tolist()
    [[0, 10], [64, 3]]
    """
    if len(data) % _ENTRY:
        raise Corrupt(f"{what} offset table has {len(data)} bytes, expected a multiple of {_ENTRY}", uri=uri)
    table = np.frombuffer(data, dtype="<u8").reshape(-1, 2)
    start, size = table[:, 0], table[:, 1]
    wrong = (start > limit) | (size > np.uint64(limit) - np.minimum(start, np.uint64(limit)))
    if wrong.any():
        number = int(wrong.argmax())
        found = f"{what} {number} at {start[number]}, {size[number]} bytes long"
        raise Corrupt(f"{found}, ends past byte {limit}", uri=uri)
    return table.astype(np.int64)


def write_offset_table(ranges: Sequence[tuple[int, int]] | NDArray[np.int64]) -> bytes:
    """The bytes of a table of (start, size)."""
    return np.asarray(ranges, dtype="<u8").reshape(-1, 2).tobytes()
