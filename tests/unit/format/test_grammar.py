"""The grammar of each version: the deviations that the reference implementation refuses are Corrupt."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lancelet.errors import Corrupt
from lancelet.format import compressions as c
from lancelet.format.grammar import check_grammar
from lancelet.format.layouts import BlobLayout, ConstantLayout, FullZipLayout, Layer, MiniBlockLayout, PageLayout
from lancelet.format.versions import FileVersion

V1, V2 = FileVersion.V2_1, FileVersion.V2_2
ITEM = (Layer.ALL_VALID_ITEM,)
LZ4 = c.BufferCompression(c.Scheme.LZ4)
OFFSETS = c.Flat(32)
PACKED = c.VariablePackedStruct((c.PackedField(c.Flat(8), bits_per_value=8),))


def mini(values: c.Compression, *, large: bool = True) -> MiniBlockLayout:
    """A mini-block page of 2.2."""
    return MiniBlockLayout(values, ITEM, 1, 10, has_large_chunk=large)


def changed(layout: MiniBlockLayout, name: str, value: object) -> MiniBlockLayout:
    """A copy with one field changed."""
    return replace(layout, **{name: value})  # type: ignore[arg-type]


def zipped(values: c.Compression, bits: int = 64) -> FullZipLayout:
    """A full-zip page of fixed width."""
    return FullZipLayout(values, ITEM, 0, 0, 10, 10, bits_per_value=bits)


@pytest.mark.parametrize(
    "values",
    [
        c.Flat(1),
        c.Flat(4096),
        c.Variable(OFFSETS),
        c.Variable(c.Flat(64)),
        c.InlineBitpacking(16),
        c.Fsst(b"x", c.Variable(OFFSETS)),
        c.Rle(c.Flat(64), c.Flat(8)),
        c.ByteStreamSplit(c.Flat(32)),
        c.General(LZ4, c.ByteStreamSplit(c.Flat(64))),
        c.General(LZ4, c.Rle(c.Flat(32), c.Flat(8))),
        c.FixedSizeList(3, c.FixedSizeList(2, c.Flat(1), has_validity=True)),
        c.PackedStruct((32, 64), c.Flat(96)),
    ],
)
def test_mini_blocks_hold_these_encodings(values: c.Compression) -> None:
    check_grammar(mini(values), V2)
    check_grammar(mini(values, large=False), V1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (c.Constant(b"1"), "is Constant"),
        (PACKED, "is VariablePackedStruct"),
        (c.Dictionary(c.Flat(32), c.Flat(32), 1), "is Dictionary"),
        (c.OutOfLineBitpacking(16, c.Flat(3)), "is OutOfLineBitpacking"),
        (c.Flat(0), "bits_per_value is 0"),
        (c.Flat(2**40), "bits_per_value is"),
        (c.Flat(8, LZ4), "compresses its buffer"),
        (c.InlineBitpacking(12), "has 12 bits"),
        (c.InlineBitpacking(16, LZ4), "compresses its values"),
        (c.Variable(c.Flat(16)), "offsets has 16 bits"),
        (c.Variable(c.InlineBitpacking(32)), "offsets is InlineBitpacking, expected Flat"),
        (c.Fsst(b"", c.Variable(OFFSETS)), "symbol_table is empty"),
        (c.Fsst(b"x", c.Flat(8)), "values is Flat, expected Variable"),
        (c.Rle(c.InlineBitpacking(32), c.Flat(8)), "expected Flat"),
        (c.Rle(c.Flat(32), c.Flat(16)), "run_lengths has 16 bits"),
        (c.ByteStreamSplit(c.Flat(16)), "has 16 bits"),
        (c.PackedStruct((8,), c.Variable(OFFSETS)), "expected Flat"),
        (c.FixedSizeList(0, c.Flat(8)), "items_per_value is 0"),
        (c.General(LZ4, c.Constant(b"1")), "is Constant"),
    ],
)
def test_mini_blocks_refuse_these_encodings(values: c.Compression, message: str) -> None:
    with pytest.raises(Corrupt, match=message):
        check_grammar(mini(values), V2)


@pytest.mark.parametrize("version", [V1, V2])
def test_the_chunk_width_belongs_to_the_version(version: FileVersion) -> None:
    wrong = mini(c.Flat(8), large=version is V1)
    with pytest.raises(Corrupt, match=f"has_large_chunk.*version {version.label}"):
        check_grammar(wrong, version)


@pytest.mark.parametrize("name", ["repetition", "definition", "dictionary"])
def test_levels_and_dictionaries_hold_block_encodings(name: str) -> None:
    for allowed in (c.Flat(16), c.OutOfLineBitpacking(16, c.Flat(2)), c.Rle(c.Flat(16), c.Flat(8))):
        check_grammar(changed(mini(c.Flat(8)), name, allowed), V2)
    for refused in (PACKED, c.Fsst(b"x", c.Variable(OFFSETS)), c.OutOfLineBitpacking(16, c.Flat(17))):
        with pytest.raises(Corrupt, match=f"mini_block.{name}"):
            check_grammar(changed(mini(c.Flat(8)), name, refused), V2)


@pytest.mark.parametrize(
    ("layout", "version", "message"),
    [
        (ConstantLayout(ITEM, b"1"), V1, "constant.inline_value"),
        (ConstantLayout(ITEM, repetition=c.Flat(16)), V1, "constant.repetition"),
        (ConstantLayout(ITEM, definition=c.Flat(16)), V1, "constant.definition"),
        (ConstantLayout(ITEM, bytes(33)), V2, "33 bytes"),
        (ConstantLayout(ITEM, definition=PACKED), V2, "constant.definition is VariablePackedStruct"),
        (zipped(PACKED), V1, "no such encoding in version 2.1"),
        (zipped(c.Flat(64), bits=12), V2, "whole bytes"),
        (zipped(c.Flat(64), bits=0), V2, "bits_per_value is 0"),
        (FullZipLayout(c.Variable(OFFSETS), ITEM, 0, 0, 1, 1, bits_per_offset=16), V2, "bits_per_offset is 16"),
        (FullZipLayout(c.Flat(64), ITEM, 17, 0, 1, 1, bits_per_value=64), V2, "bits_rep is 17"),
        (zipped(c.Rle(c.Flat(64), c.Flat(8))), V2, "is Rle"),
        (BlobLayout(mini(c.Flat(8)), ITEM), V1, "has_large_chunk"),
        (MiniBlockLayout(c.Flat(8), ITEM, 0, 1, has_large_chunk=True), V2, "num_buffers is 0"),
        (MiniBlockLayout(c.Flat(8), ITEM, 2**40, 1, has_large_chunk=True), V2, "num_buffers is"),
        (changed(mini(c.Flat(8)), "repetition_index_depth", 1), V2, "repetition_index_depth is 1"),
    ],
)
def test_what_a_version_does_not_allow_is_corrupt(layout: PageLayout, version: FileVersion, message: str) -> None:
    with pytest.raises(Corrupt, match=message):
        check_grammar(layout, version)


def test_full_zip_pages_of_2_2_hold_variable_packed_structs() -> None:
    fields = (c.PackedField(c.Flat(8), bits_per_value=8), c.PackedField(c.Variable(OFFSETS), bits_per_length=32))
    layout = FullZipLayout(c.VariablePackedStruct(fields), ITEM, 0, 1, 5, 5, bits_per_offset=32)
    check_grammar(layout, V2)
