"""Metadata of 0.1 files: what is written is read back, and damage is named."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.fields import Field, Schema
from lancelet.format.legacy import (
    LegacyMetadata,
    LegacyStatistics,
    parse_framed,
    parse_legacy_manifest,
    parse_legacy_metadata,
    parse_page_table,
    write_legacy_metadata,
)

SCHEMA = Schema((Field("0", "struct", children=(Field("min", "int8"),)),)).with_ids()
METADATA = LegacyMetadata((0, 10, 10, 25), 400, 90, LegacyStatistics(SCHEMA.fields, (1,), 300))


def test_metadata_is_read_back() -> None:
    assert parse_legacy_metadata(write_legacy_metadata(METADATA)) == METADATA
    assert (METADATA.num_batches, METADATA.num_rows) == (3, 25)
    assert (LegacyMetadata((), 0).num_batches, LegacyMetadata((), 0).num_rows) == (0, 0)


@pytest.mark.parametrize("offsets", [(-1, 5), (0, 5, 4)])
def test_batch_offsets_that_decrease_are_corrupt(offsets: tuple[int, ...]) -> None:
    with pytest.raises(Corrupt, match="batch_offsets"):
        parse_legacy_metadata(write_legacy_metadata(LegacyMetadata(offsets, 0)))


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_byte_gives_metadata_or_a_named_error(place: int, value: int) -> None:
    data = bytearray(write_legacy_metadata(METADATA))
    data[place % len(data)] = value
    for parse in (parse_legacy_metadata, parse_legacy_manifest):
        try:
            parse(bytes(data))
        except (Corrupt, Unsupported):
            continue


@pytest.mark.parametrize("data", [b"", b"\1\0\0", b"\5\0\0\0abcd", b"\xff\xff\xff\xff"])
def test_a_frame_that_is_cut_off_is_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt, match="manifest"):
        parse_framed(data, "manifest")


def test_a_frame_ends_where_its_length_says() -> None:
    assert parse_framed(struct.pack("<I", 3) + b"abcd", "x") == b"abc"


def test_a_page_table_has_a_place_for_each_field_and_batch() -> None:
    table = np.arange(12, dtype="<i8").reshape(3, 2, 2)
    assert parse_page_table(table.tobytes(), 2, 10).tolist() == table.tolist()


@pytest.mark.parametrize(
    ("data", "batches"),
    [(bytes(17), 1), (bytes(48), 2), (bytes(16), 0), (struct.pack("<qq", 101, 0), 1), (struct.pack("<qq", 0, -1), 1)],
)
def test_a_page_table_of_wrong_size_or_place_is_corrupt(data: bytes, batches: int) -> None:
    with pytest.raises(Corrupt):
        parse_page_table(data, batches, 100)
