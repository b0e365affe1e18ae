"""Column metadata: pages are read back, descriptions lazily, and buffers outside the file are refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.format.arrays import BlobColumn, Buffer, Flat, NoNulls, ValuesColumn
from lancelet.format.columns import Column, Deferred, Page, describe_page, parse_column, parse_description, write_column
from lancelet.format.compressions import InlineBitpacking
from lancelet.format.layouts import ConstantLayout, Layer, MiniBlockLayout
from lancelet.format.protos import container_pb2 as wire
from lancelet.format.versions import FileVersion
from lancelet.format.wire import wrap

V0, V1, V2 = FileVersion.V2_0, FileVersion.V2_1, FileVersion.V2_2
LAYOUT = MiniBlockLayout(InlineBitpacking(64), (Layer.NULLABLE_ITEM,), 1, 100, has_large_chunk=True)
PAGE = describe_page(LAYOUT, buffers=[(0, 10), (64, 100), (128, 0)], length=100, priority=7)


def test_a_column_is_read_back_with_its_pages() -> None:
    deferred = Page(((192, 5),), 3, 107, Deferred((200, 9)))
    column = Column((PAGE, deferred), ((1, 2), (3, 4)), BlobColumn(ValuesColumn()))
    found = parse_column(write_column(column), V2, 300)
    assert found == column
    assert found.length == 103
    assert found.pages[0].describe(V2) == LAYOUT


def test_a_page_of_2_0_is_described_by_an_array_encoding() -> None:
    encoding = NoNulls(Flat(64, Buffer(0)))
    page = describe_page(encoding, buffers=[(3, 8)], length=1, priority=0)
    assert parse_column(write_column(Column((page,))), V0, 11).pages[0].describe(V0) == encoding


def test_equal_descriptions_are_parsed_once() -> None:
    assert isinstance(PAGE.description, bytes)
    assert parse_description(PAGE.description, V2) is parse_description(bytes(PAGE.description), V2)


def test_equal_encodings_of_columns_are_parsed_once() -> None:
    data = write_column(Column((PAGE,), encoding=BlobColumn(ValuesColumn())))
    assert parse_column(data, V2, 300).encoding is parse_column(data, V2, 300).encoding


@pytest.mark.parametrize(
    ("page", "message", "byte_range"),
    [
        (Page(((64, 0), (64, 237)), 1, 0, b""), "buffer 1 ends at byte 301", (64, 237)),
        (Page(((2**64 - 64, 2**64 - 1),), 1, 0, b""), "expected at or before 300", (2**64 - 64, 2**64 - 1)),
        (Page(((65, 1),), 1, 0, b""), "starts at byte 65, expected a multiple of 64", (65, 1)),
        (Page((), 1, 0, Deferred((299, 2))), "ends at byte 301", (299, 2)),
    ],
)
def test_a_buffer_outside_the_file_or_askew_is_corrupt(page: Page, message: str, byte_range: tuple[int, int]) -> None:
    data = write_column(Column((Page((), 1, 0, b""), page)))
    with pytest.raises(Corrupt, match=message) as caught:
        parse_column(data, V1, 300, column="a", uri="f.lance")
    error = caught.value
    assert (error.column, error.uri, error.page, error.byte_range) == ("a", "f.lance", 1, byte_range)


def test_buffers_of_2_0_may_start_anywhere() -> None:
    column = Column((Page(((65, 1),), 1, 0, b""),))
    assert parse_column(write_column(column), V0, 300) == column


def test_offsets_and_sizes_must_be_as_many() -> None:
    column = wire.ColumnMetadata()
    column.ParseFromString(write_column(Column((PAGE,))))
    column.pages[0].buffer_sizes.append(1)
    with pytest.raises(Corrupt, match="3 buffer offsets and 4 buffer sizes"):
        parse_column(column.SerializeToString(), V2, 300)


def test_pages_with_more_rows_than_can_be_counted_are_corrupt() -> None:
    column = Column((Page((), 2**63, 0, b""), Page((), 2**63, 0, b"")))
    with pytest.raises(Corrupt, match="rows together"):
        parse_column(write_column(column), V2, 300)


@pytest.mark.parametrize(
    ("data", "version", "kind", "message"),
    [
        (PAGE.description, V0, Corrupt, "expected '/lance.encodings.ArrayEncoding' in version 2.0"),
        (PAGE.description, V1, Corrupt, "has_large_chunk"),
        (wrap("lance.encodings21.PageLayout", b""), V2, Corrupt, "has type 'lance.encodings21.PageLayout'"),
        (wrap("/lance.encodings21.PageLayout", b""), V2, Corrupt, "page layout is empty"),
        (wrap("/lance.encodings23.PlanarLayout", b""), FileVersion.V2_3, Unsupported, "2.3 cannot be read"),
        (b"", V2, Corrupt, "names no type"),
        (b"\xff", V2, Corrupt, "page description is not a valid message"),
    ],
)
def test_a_description_that_the_version_does_not_have_is_refused(
    data: bytes, version: FileVersion, kind: type[LanceletError], message: str
) -> None:
    with pytest.raises(kind, match=message):
        parse_description(data, version)


def test_a_deferred_description_cannot_be_had_from_the_metadata() -> None:
    with pytest.raises(Unsupported) as caught:
        Page((), 1, 0, Deferred((5, 6))).describe(V2)
    assert caught.value.byte_range == (5, 6)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_give_a_column_or_a_named_error(data: bytes) -> None:
    try:
        parse_column(data, V2, 1000)
    except (Corrupt, Unsupported):
        return


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_byte_gives_a_column_or_a_named_error(place: int, value: int) -> None:
    data = bytearray(write_column(Column((PAGE, PAGE))))
    data[place % len(data)] = value
    try:
        for page in parse_column(bytes(data), V2, 300).pages:
            page.describe(V2)
    except (Corrupt, Unsupported):
        return


@pytest.mark.timing
def test_a_thousand_pages_are_parsed_in_milliseconds() -> None:
    data = write_column(
        Column(
            tuple(describe_page(ConstantLayout(()), buffers=[(0, 8)] * 3, length=1, priority=0) for _ in range(1000))
        )
    )
    best = min(_seconds(data) for _ in range(5))
    assert best < 0.02


def _seconds(data: bytes) -> float:
    began = time.perf_counter()
    for page in parse_column(data, V2, 100).pages:
        page.describe(V2)
    return time.perf_counter() - began
