"""Array and column encodings of 2.0: what is written is read back, and no bytes do worse than a named error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Corrupt, Unsupported
from lancelet.format import arrays as a
from lancelet.format.array_wire import (
    parse_array_encoding,
    parse_column_encoding,
    write_array_encoding,
    write_column_encoding,
)
from lancelet.format.protos import encodings20_pb2 as wire

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
BUFFERS = st.builds(a.Buffer, U32, st.sampled_from(a.BufferHome))
LEAVES = (
    st.builds(
        a.Flat, U64, BUFFERS, st.none() | st.builds(a.Compression, st.text(max_size=5), st.none() | st.integers(0, 9))
    )
    | st.builds(a.AllNulls)
    | st.builds(a.SimpleStruct)
    | st.builds(a.Bitpacked, U64, U64, BUFFERS, st.booleans())
    | st.builds(a.BitpackedForNonNeg, U64, U64, BUFFERS)
)


def wider(inner: st.SearchStrategy[a.ArrayEncoding]) -> st.SearchStrategy[a.ArrayEncoding]:
    """Encodings that hold others."""
    return (
        st.builds(a.NoNulls, inner)
        | st.builds(a.SomeNulls, inner, inner)
        | st.builds(a.FixedSizeList, U32, inner, st.booleans())
        | st.builds(a.List, inner, U64, U64)
        | st.builds(a.Binary, inner, inner, U64)
        | st.builds(a.Dictionary, inner, inner, U32)
        | st.builds(a.Fsst, inner, st.binary(max_size=9))
        | st.builds(a.PackedStruct, st.lists(inner, max_size=3).map(tuple), BUFFERS)
        | st.builds(a.FixedSizeBinary, inner, U32)
    )


ENCODINGS: st.SearchStrategy[a.ArrayEncoding] = st.recursive(LEAVES, wider, max_leaves=6)
COLUMNS: st.SearchStrategy[a.ColumnEncoding] = st.recursive(
    st.builds(a.ValuesColumn),
    lambda inner: st.builds(a.BlobColumn, inner) | st.builds(a.ZoneIndexColumn, U32, BUFFERS, inner),
    max_leaves=3,
)


@given(ENCODINGS)
def test_an_array_encoding_is_read_back(encoding: a.ArrayEncoding) -> None:
    assert parse_array_encoding(write_array_encoding(encoding)) == encoding


@given(COLUMNS)
def test_a_column_encoding_is_read_back(encoding: a.ColumnEncoding) -> None:
    assert parse_column_encoding(write_column_encoding(encoding)) == encoding


@given(ENCODINGS, st.data())
def test_damaged_bytes_give_an_encoding_or_a_named_error(encoding: a.ArrayEncoding, data: st.DataObject) -> None:
    damaged = bytearray(write_array_encoding(encoding))
    damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    for candidate in (bytes(damaged), bytes(damaged[: data.draw(st.integers(0, len(damaged)))])):
        for parse in (parse_array_encoding, parse_column_encoding):
            try:
                parse(candidate)
            except (Corrupt, Unsupported):
                continue


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (wire.ArrayEncoding(), "array encoding is empty"),
        (wire.ArrayEncoding(nullable=wire.Nullable()), "nullable is empty"),
        (wire.ArrayEncoding(binary=wire.Binary()), "binary.indices is empty"),
        (wire.ArrayEncoding(list=wire.List()), "list.offsets is empty"),
    ],
)
def test_an_error_names_the_message_and_the_field(message: wire.ArrayEncoding, found: str) -> None:
    with pytest.raises(Corrupt, match=found):
        parse_array_encoding(message.SerializeToString())


@pytest.mark.parametrize(
    "message",
    [
        wire.ArrayEncoding(rle=wire.Rle(bits_per_value=8)),
        wire.ArrayEncoding(inline_bitpacking=wire.InlineBitpacking(uncompressed_bits_per_value=8)),
        wire.ArrayEncoding(constant=wire.Constant(value=b"1")),
    ],
)
def test_encodings_that_no_2_0_page_has_are_unsupported(message: wire.ArrayEncoding) -> None:
    with pytest.raises(Unsupported, match="does not occur in pages"):
        parse_array_encoding(message.SerializeToString())


def test_a_column_encoding_without_a_choice_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="column encoding is empty"):
        parse_column_encoding(b"")
