"""Page layouts: every tree of dataclasses survives its bytes, and no bytes do worse than a named error."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.format import compressions as c
from lancelet.format.layouts import (
    BlobLayout,
    ConstantLayout,
    FullZipLayout,
    Layer,
    MiniBlockLayout,
    PageLayout,
    parse_layout,
    write_layout,
)
from lancelet.format.protos import encodings21_pb2 as wire
from lancelet.format.wire import MAX_DEPTH

U32, U64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
BUFFERS = st.builds(c.BufferCompression, st.sampled_from(c.Scheme), st.none() | st.integers(-5, 22))
LEAVES = (
    st.builds(c.Flat, U64, st.none() | BUFFERS)
    | st.builds(c.Constant, st.none() | st.binary(max_size=9))
    | st.builds(c.InlineBitpacking, U64, st.none() | BUFFERS)
)


def wider(inner: st.SearchStrategy[c.Compression]) -> st.SearchStrategy[c.Compression]:
    """Compressions that hold others."""
    fields = st.builds(c.PackedField, inner, bits_per_value=U64) | st.builds(c.PackedField, inner, bits_per_length=U64)
    return (
        st.builds(c.Variable, inner, st.none() | BUFFERS)
        | st.builds(c.OutOfLineBitpacking, U64, inner)
        | st.builds(c.Fsst, st.binary(max_size=20), inner)
        | st.builds(c.Dictionary, inner, inner, U32)
        | st.builds(c.Rle, inner, inner)
        | st.builds(c.ByteStreamSplit, inner)
        | st.builds(c.General, BUFFERS, inner)
        | st.builds(c.FixedSizeList, U64, inner, st.booleans())
        | st.builds(c.PackedStruct, st.lists(U64, max_size=4).map(tuple), inner)
        | st.builds(c.VariablePackedStruct, st.lists(fields, max_size=3).map(tuple))
    )


COMPRESSIONS: st.SearchStrategy[c.Compression] = st.recursive(LEAVES, wider, max_leaves=6)
LAYERS = st.lists(st.sampled_from(Layer), max_size=5).map(tuple)
OPTIONAL = st.none() | COMPRESSIONS
PAGES: st.SearchStrategy[PageLayout] = (
    st.builds(MiniBlockLayout, COMPRESSIONS, LAYERS, U64, U64, OPTIONAL, OPTIONAL, OPTIONAL, U64, U32, st.booleans())
    | st.builds(FullZipLayout, COMPRESSIONS, LAYERS, U32, U32, U32, U32, bits_per_value=U32)
    | st.builds(FullZipLayout, COMPRESSIONS, LAYERS, U32, U32, U32, U32, bits_per_offset=U32)
    | st.builds(ConstantLayout, LAYERS, st.none() | st.binary(max_size=40), OPTIONAL, OPTIONAL, U64, U64)
)
LAYOUTS = PAGES | st.builds(BlobLayout, PAGES, LAYERS)


@settings(max_examples=300)
@given(LAYOUTS)
def test_a_layout_is_read_back(layout: PageLayout) -> None:
    assert parse_layout(write_layout(layout)) == layout


@given(LAYOUTS, st.data())
def test_damaged_bytes_give_a_layout_or_a_named_error(layout: PageLayout, data: st.DataObject) -> None:
    damaged = bytearray(write_layout(layout))
    for _ in range(data.draw(st.integers(1, 4))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(damaged)))
    for candidate in (bytes(damaged), bytes(damaged[:cut])):
        try:
            parse_layout(candidate)
        except (Corrupt, Unsupported):
            continue


@given(st.binary(max_size=60))
def test_arbitrary_bytes_give_a_layout_or_a_named_error(data: bytes) -> None:
    try:
        parse_layout(data)
    except (Corrupt, Unsupported):
        return


def nested(depth: int) -> wire.CompressiveEncoding:
    """Fixed-size lists within fixed-size lists."""
    message = wire.CompressiveEncoding(flat=wire.Flat(bits_per_value=8))
    for _ in range(depth):
        message = wire.CompressiveEncoding(fixed_size_list=wire.FixedSizeList(items_per_value=1, values=message))
    return message


@pytest.mark.parametrize("depth", [MAX_DEPTH, 45, 2000])
def test_nesting_past_the_bound_is_corrupt(depth: int) -> None:
    # Assembled by hand: field 11 within field 2, outermost last.
    data = nested(1).SerializeToString()
    for _ in range(depth - 1):
        inner = b"\x12" + varint(len(data)) + data
        data = b"\x5a" + varint(len(inner)) + inner
    page = b"\x1a" + varint(len(data)) + data
    with pytest.raises(Corrupt):
        parse_layout(b"\x0a" + varint(len(page)) + page)


def varint(number: int) -> bytes:
    """A protobuf varint."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


FLAT = wire.CompressiveEncoding(flat=wire.Flat(bits_per_value=8))
EMPTY = wire.CompressiveEncoding()


@pytest.mark.parametrize(
    ("message", "kind", "found"),
    [
        (wire.PageLayout(), Corrupt, "page layout is empty"),
        (wire.PageLayout(mini_block_layout=wire.MiniBlockLayout()), Corrupt, "mini_block.value_compression is empty"),
        (
            wire.PageLayout(mini_block_layout=wire.MiniBlockLayout(value_compression=FLAT, rep_compression=EMPTY)),
            Corrupt,
            "mini_block.rep_compression is empty",
        ),
        (
            wire.PageLayout(full_zip_layout=wire.FullZipLayout(value_compression=FLAT)),
            Corrupt,
            "neither bits_per_value nor bits_per_offset",
        ),
        (
            wire.PageLayout(constant_layout=wire.ConstantLayout(layers=[wire.LAYER_UNSPECIFIED])),
            Corrupt,
            "constant.layers: 0",
        ),
        (wire.PageLayout(blob_layout=wire.BlobLayout()), Corrupt, "blob.inner_layout is empty"),
        (
            wire.PageLayout(
                mini_block_layout=wire.MiniBlockLayout(
                    value_compression=wire.CompressiveEncoding(general=wire.General(values=FLAT))
                )
            ),
            Corrupt,
            "general.compression has compression scheme 0",
        ),
    ],
)
def test_an_error_names_the_message_and_the_field(
    message: wire.PageLayout, kind: type[LanceletError], found: str
) -> None:
    with pytest.raises(kind, match=found):
        parse_layout(message.SerializeToString())


def test_a_compression_of_a_later_version_is_unsupported() -> None:
    # Field 14 of a compression (range) exists from 2.3 on.
    values = b"\x72\x02\x08\x01"
    page = b"\x1a" + varint(len(values)) + values
    with pytest.raises(Unsupported, match="value_compression"):
        parse_layout(b"\x0a" + varint(len(page)) + page)
