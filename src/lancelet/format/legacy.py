"""Metadata of 0.1 data files: batches, page tables, and statistics.

At the position that the footer names lies a message preceded by its length (u32, little endian). The page table is an
array of int64 pairs (position, length): one run for each field id from the least to the greatest, in it one pair for
each batch. Fields without data of their own have (0, 0).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lancelet.errors import Corrupt
from lancelet.format.fields import Field, parse_fields, write_fields
from lancelet.format.protos import legacy_pb2 as wire
from lancelet.format.wire import parse_message, write_message

__all__ = [
    "LegacyMetadata",
    "LegacyStatistics",
    "parse_framed",
    "parse_legacy_manifest",
    "parse_legacy_metadata",
    "parse_page_table",
    "write_legacy_metadata",
]

_LENGTH = struct.Struct("<I")


@dataclass(frozen=True, slots=True)
class LegacyStatistics:
    """Statistics of each page of some fields, stored as one more batch of columns."""

    schema: tuple[Field, ...]
    fields: tuple[int, ...]
    page_table_position: int


@dataclass(frozen=True, slots=True)
class LegacyMetadata:
    """What the metadata of a 0.1 file says. Batch ``i`` ends before row ``batch_offsets[i + 1]``."""

    batch_offsets: tuple[int, ...]
    page_table_position: int
    manifest_position: int | None = None
    statistics: LegacyStatistics | None = None

    @property
    def num_batches(self) -> int:
        """Batches in the file."""
        return max(len(self.batch_offsets) - 1, 0)

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return self.batch_offsets[-1] if self.batch_offsets else 0


def parse_framed(data: bytes | memoryview, what: str) -> bytes:
    """The message at the start of ``data``, which its length precedes; bytes after it are not looked at."""
    if len(data) < _LENGTH.size:
        raise Corrupt(f"{what} has {len(data)} bytes, expected its length in {_LENGTH.size}")
    (length,) = _LENGTH.unpack(data[: _LENGTH.size])
    if length > len(data) - _LENGTH.size:
        raise Corrupt(f"{what} is {length} bytes long, but only {len(data) - _LENGTH.size} follow")
    return bytes(data[_LENGTH.size : _LENGTH.size + length])


def parse_legacy_metadata(data: bytes | memoryview) -> LegacyMetadata:
    """The metadata that ``data``, a message without its length, describes.

    >>> metadata = LegacyMetadata((0, 10, 15), page_table_position=400, manifest_position=90)
    >>> parse_legacy_metadata(write_legacy_metadata(metadata)) == metadata
    True
    """
    message = parse_message(wire.Metadata, data, "legacy metadata")
    offsets = tuple(message.batch_offsets)
    if any(end < start for start, end in zip((0, *offsets), offsets, strict=False)):
        raise Corrupt("legacy metadata: batch_offsets decrease or are negative, expected running row counts")
    statistics = None
    if message.HasField("statistics"):
        found = message.statistics
        statistics = LegacyStatistics(parse_fields(found.schema), tuple(found.fields), found.page_table_position)
    return LegacyMetadata(offsets, message.page_table_position, message.manifest_position or None, statistics)


def write_legacy_metadata(metadata: LegacyMetadata) -> bytes:
    """The message, without its length, that describes ``metadata``."""
    message = wire.Metadata(
        manifest_position=metadata.manifest_position or 0,
        batch_offsets=metadata.batch_offsets,
        page_table_position=metadata.page_table_position,
    )
    if metadata.statistics is not None:
        message.statistics.schema.extend(write_fields(metadata.statistics.schema))
        message.statistics.fields.extend(metadata.statistics.fields)
        message.statistics.page_table_position = metadata.statistics.page_table_position
    return write_message(message)


def parse_legacy_manifest(data: bytes | memoryview) -> tuple[Field, ...]:
    """The fields in the manifest that lies within a 0.1 file, as a tree."""
    return parse_fields(parse_message(wire.FileManifest, data, "legacy manifest").fields)


def parse_page_table(data: bytes | memoryview, num_batches: int, limit: int) -> NDArray[np.int64]:
    """An array of (fields, batches, 2): position and length of each page, none past byte ``limit`` of the file.

    Lengths count values, not bytes: how many bytes a page has depends on its type.
    """
    if num_batches < 1 or len(data) % (16 * num_batches):
        raise Corrupt(f"page table has {len(data)} bytes, expected a multiple of {16 * max(num_batches, 1)}")
    table = np.frombuffer(data, dtype="<i8").reshape(-1, num_batches, 2).astype(np.int64)
    if ((table < 0) | (table > [limit, np.iinfo(np.int64).max])).any():
        raise Corrupt(f"page table names a page outside the file's first {limit} bytes")
    return table
