"""Which page layouts a file version allows: the deviations that the reference implementation refuses are Corrupt here.

Beside the grammar itself, widths and counts that decoders multiply are bounded, so that hostile ones stop here.
"""

from __future__ import annotations

from lancelet.errors import Corrupt
from lancelet.format.compressions import (
    ByteStreamSplit,
    Compression,
    Constant,
    Dictionary,
    FixedSizeList,
    Flat,
    Fsst,
    General,
    InlineBitpacking,
    OutOfLineBitpacking,
    PackedStruct,
    Rle,
    Variable,
    VariablePackedStruct,
)
from lancelet.format.layouts import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout, PageLayout
from lancelet.format.versions import FileVersion

__all__ = ["LARGEST_INLINE_VALUE", "check_grammar"]

#: Scalars of up to this many bytes lie in the layout of a constant page, larger ones in a buffer.
LARGEST_INLINE_VALUE = 32

_WORD_BITS = (8, 16, 32, 64)
_OFFSET_BITS = (32, 64)
#: No value is wider: the size of a fixed-size binary is a positive 32-bit integer of bytes.
_LARGEST_BITS = 8 * (2**31 - 1)
_LARGEST_LIST = 2**31 - 1
_LEVEL_BITS = 16
_LARGEST_BUFFERS = 64


def check_grammar(layout: PageLayout, version: FileVersion) -> None:
    """Raise Corrupt if ``layout`` may not stand in a file of ``version``.

    >>> check_grammar(ConstantLayout((), inline_value=b"1"), FileVersion.V2_2)
    >>> check_grammar(ConstantLayout((), inline_value=b"1"), FileVersion.V2_1)
    Traceback (most recent call last):
    lancelet.errors.Corrupt: constant.inline_value is set, expected an all-null page in version 2.1
    """
    match layout:
        case MiniBlockLayout():
            _check_mini_block(layout, version)
        case FullZipLayout():
            _check_full_zip(layout, version)
        case ConstantLayout():
            _check_constant(layout, version)
        case BlobLayout():
            check_grammar(layout.inner, version)


def _check_mini_block(layout: MiniBlockLayout, version: FileVersion) -> None:
    large = version >= FileVersion.V2_2
    if layout.has_large_chunk is not large:
        found = f"mini_block.has_large_chunk is {layout.has_large_chunk}"
        raise Corrupt(f"{found}, expected {large} in version {version.label}")
    if not 1 <= layout.num_buffers <= _LARGEST_BUFFERS:
        raise Corrupt(f"mini_block.num_buffers is {layout.num_buffers}, expected 1 to {_LARGEST_BUFFERS}")
    lists = sum(layer.is_list for layer in layout.layers)
    if layout.repetition_index_depth > lists:
        found = f"mini_block.repetition_index_depth is {layout.repetition_index_depth}"
        raise Corrupt(f"{found}, expected at most {lists}, the number of list layers")
    _check(layout.values, "mini_block.value_compression", version, _MINI_BLOCK)
    for name in ("repetition", "definition", "dictionary"):
        compression: Compression | None = getattr(layout, name)
        if compression is not None:
            _check(compression, f"mini_block.{name}", version, _BLOCK)


def _check_full_zip(layout: FullZipLayout, version: FileVersion) -> None:
    for name in ("bits_rep", "bits_def"):
        if getattr(layout, name) > _LEVEL_BITS:
            raise Corrupt(f"full_zip.{name} is {getattr(layout, name)}, expected at most {_LEVEL_BITS}")
    if layout.bits_per_value is not None:
        _check_width("full_zip.bits_per_value", layout.bits_per_value)
        if layout.bits_per_value % 8:
            raise Corrupt(f"full_zip.bits_per_value is {layout.bits_per_value}, expected whole bytes")
    elif layout.bits_per_offset not in _OFFSET_BITS:
        raise Corrupt(f"full_zip.bits_per_offset is {layout.bits_per_offset}, expected 32 or 64")
    _check(layout.values, "full_zip.value_compression", version, _FULL_ZIP)


def _check_constant(layout: ConstantLayout, version: FileVersion) -> None:
    if version < FileVersion.V2_2:
        for name in ("inline_value", "repetition", "definition"):
            if getattr(layout, name) is not None:
                raise Corrupt(f"constant.{name} is set, expected an all-null page in version {version.label}")
    if layout.inline_value is not None and len(layout.inline_value) > LARGEST_INLINE_VALUE:
        found = f"constant.inline_value has {len(layout.inline_value)} bytes"
        raise Corrupt(f"{found}, expected at most {LARGEST_INLINE_VALUE}")
    for name in ("repetition", "definition"):
        compression: Compression | None = getattr(layout, name)
        if compression is not None:
            _check(compression, f"constant.{name}", version, _BLOCK)


_Kinds = tuple[type[Compression], ...]
#: What may stand in each place, at any depth below General and FixedSizeList.
_MINI_BLOCK: _Kinds = (
    Flat,
    Variable,
    InlineBitpacking,
    Fsst,
    Rle,
    ByteStreamSplit,
    General,
    FixedSizeList,
    PackedStruct,
)
_FULL_ZIP: _Kinds = (Flat, Variable, Constant, Fsst, General, FixedSizeList, PackedStruct, VariablePackedStruct)
_BLOCK: _Kinds = (Flat, Variable, Constant, OutOfLineBitpacking, InlineBitpacking, Rle, General, FixedSizeList)


def _check(compression: Compression, place: str, version: FileVersion, allowed: _Kinds) -> None:
    kind = type(compression).__name__
    if isinstance(compression, VariablePackedStruct) and version < FileVersion.V2_2:
        raise Corrupt(f"{place} is VariablePackedStruct, expected no such encoding in version {version.label}")
    if not isinstance(compression, allowed):
        names = ", ".join(item.__name__ for item in allowed)
        raise Corrupt(f"{place} is {kind}, expected one of {names}")
    inner = f"{place}.{kind}"
    match compression:
        case Flat():
            _check_flat(compression, inner, leaf_compression=allowed is not _MINI_BLOCK)
        case InlineBitpacking(bits, data):
            _check_choice(f"{inner}.uncompressed_bits_per_value", bits, _WORD_BITS)
            if data is not None:
                raise Corrupt(f"{inner} compresses its values, expected them plain")
        case General(_, values):
            _check(values, f"{inner}.values", version, allowed)
        case FixedSizeList(items, values, _):
            if not 1 <= items <= _LARGEST_LIST:
                raise Corrupt(f"{inner}.items_per_value is {items}, expected 1 to {_LARGEST_LIST}")
            _check(values, f"{inner}.values", version, allowed)
        case VariablePackedStruct(fields):
            for field in fields:
                _check(field.value, f"{inner}.fields", version, _FULL_ZIP)
                if field.bits_per_value is not None:
                    _check_width(f"{inner}.fields.bits_per_value", field.bits_per_value)
                if field.bits_per_length is not None:
                    _check_choice(f"{inner}.fields.bits_per_length", field.bits_per_length, _OFFSET_BITS)
        case _:
            _check_fixed_form(compression, inner)


def _check_fixed_form(compression: Compression, place: str) -> None:
    """Encodings whose children may have one form only."""
    match compression:
        case Variable(offsets):
            _check_choice(f"{place}.offsets", _plain(offsets, f"{place}.offsets").bits_per_value, _OFFSET_BITS)
        case Fsst(symbols, values):
            if not symbols:
                raise Corrupt(f"{place}.symbol_table is empty, expected a symbol table")
            if not isinstance(values, Variable):
                raise Corrupt(f"{place}.values is {type(values).__name__}, expected Variable")
            _check_fixed_form(values, f"{place}.values")
        case Rle(values, lengths):
            _check_choice(f"{place}.values", _plain(values, f"{place}.values").bits_per_value, _WORD_BITS)
            _check_choice(f"{place}.run_lengths", _plain(lengths, f"{place}.run_lengths").bits_per_value, (8,))
        case OutOfLineBitpacking(bits, values):
            _check_choice(f"{place}.uncompressed_bits_per_value", bits, _WORD_BITS)
            packed = _plain(values, f"{place}.values").bits_per_value
            if packed > bits:
                raise Corrupt(f"{place}.values has {packed} bits a value, expected at most {bits}")
        case ByteStreamSplit(values):
            _check_choice(f"{place}.values", _plain(values, f"{place}.values").bits_per_value, (32, 64))
        case PackedStruct(widths, values):
            for width in widths:
                _check_width(f"{place}.bits_per_value", width)
            _check_flat(_flat(values, f"{place}.values"), f"{place}.values", leaf_compression=False)
        case Constant() | Dictionary():
            return


def _flat(compression: Compression, place: str) -> Flat:
    if not isinstance(compression, Flat):
        raise Corrupt(f"{place} is {type(compression).__name__}, expected Flat")
    return compression


def _plain(compression: Compression, place: str) -> Flat:
    flat = _flat(compression, place)
    _check_flat(flat, place, leaf_compression=False)
    return flat


def _check_flat(flat: Flat, place: str, *, leaf_compression: bool) -> None:
    _check_width(f"{place}.bits_per_value", flat.bits_per_value)
    if flat.data is not None and not leaf_compression:
        raise Corrupt(f"{place} compresses its buffer, expected it plain")


def _check_width(place: str, bits: int) -> None:
    if not 1 <= bits <= _LARGEST_BITS:
        raise Corrupt(f"{place} is {bits}, expected 1 to {_LARGEST_BITS}")


def _check_choice(place: str, found: int, allowed: tuple[int, ...]) -> None:
    if found not in allowed:
        raise Corrupt(f"{place} has {found} bits, expected one of {', '.join(map(str, allowed))}")
