"""Outlines: what a page's description says, in one line that people can read."""

from __future__ import annotations

from lancelet.format import arrays
from lancelet.format import compressions as c
from lancelet.format.columns import PageDescription
from lancelet.format.layouts import BlobLayout, ConstantLayout, FullZipLayout, MiniBlockLayout

__all__ = ["layout_name", "outline"]

_LAYOUTS = {MiniBlockLayout: "mini-block", FullZipLayout: "full-zip", ConstantLayout: "constant", BlobLayout: "blob"}


def layout_name(page: PageDescription) -> str:
    """The layout in a word; pages of 2.0 are arrays.

    >>> layout_name(ConstantLayout(()))
    'constant'
    """
    return next((name for kind, name in _LAYOUTS.items() if isinstance(page, kind)), "array")


def outline(page: PageDescription) -> str:
    """The layout and the tree of its encodings; numbers are bits of a value, unless said otherwise.

    >>> strings = c.General(c.BufferCompression(c.Scheme.ZSTD), c.Variable(c.Flat(32)))
    >>> outline(MiniBlockLayout(strings, (), num_buffers=1, num_items=9, definition=c.Flat(16)))
    'MiniBlock(General(zstd, Variable(32)), def=Flat(16))'
    """
    match page:
        case MiniBlockLayout():
            parts = [_compression(page.values), *_levels(page.repetition, page.definition)]
            if page.dictionary is not None:
                parts.append(f"dict={_compression(page.dictionary)}")
            return f"MiniBlock({', '.join(parts)})"
        case FullZipLayout():
            levels = [f"{name}={bits}" for name, bits in (("rep", page.bits_rep), ("def", page.bits_def)) if bits]
            return f"FullZip({', '.join([_compression(page.values), *levels])})"
        case ConstantLayout():
            held = [] if page.inline_value is None else [f"{len(page.inline_value)} bytes"]
            return f"Constant({', '.join([*held, *_levels(page.repetition, page.definition)])})"
        case BlobLayout():
            return f"Blob({outline(page.inner)})"
    return _array(page)


def _levels(repetition: c.Compression | None, definition: c.Compression | None) -> list[str]:
    named = (("rep", repetition), ("def", definition))
    return [f"{name}={_compression(one)}" for name, one in named if one is not None]


def _compression(tree: c.Compression) -> str:
    match tree:
        case c.Flat(bits, data):
            return f"Flat({bits}{_scheme(data)})"
        case c.Variable(offsets, values):
            return f"Variable({_bits(offsets)}{_scheme(values)})"
        case c.Constant(value):
            return f"Constant({'' if value is None else f'{len(value)} bytes'})"
        case c.OutOfLineBitpacking(bits, values):
            return f"Bitpacking({_bits(values)} of {bits})"
        case c.InlineBitpacking(bits, values):
            return f"InlineBitpacking({bits}{_scheme(values)})"
        case c.Fsst(_, values):
            return f"Fsst({_compression(values)})"
        case c.Dictionary(indices, items):
            return f"Dictionary({_compression(indices)}, {_compression(items)})"
        case c.Rle(values, lengths):
            return f"Rle({_bits(values)}, {_bits(lengths)})"
        case c.ByteStreamSplit(values):
            return f"ByteStreamSplit({_bits(values)})"
        case c.General(compression, values):
            return f"General({compression.scheme.name.lower()}, {_compression(values)})"
        case c.FixedSizeList(items, values, has_validity):
            return f"FixedSizeList({items}, {_compression(values)}{', validity' if has_validity else ''})"
        case c.PackedStruct(widths):
            return f"PackedStruct({'+'.join(map(str, widths))})"
        case c.VariablePackedStruct(fields):
            return f"PackedStruct({' + '.join(_compression(field.value) for field in fields)})"


def _bits(tree: c.Compression) -> str:
    """Plain integers by their width alone."""
    return str(tree.bits_per_value) if isinstance(tree, c.Flat) and tree.data is None else _compression(tree)


def _scheme(compression: c.BufferCompression | None) -> str:
    return "" if compression is None else f", {compression.scheme.name.lower()}"


def _array(tree: arrays.ArrayEncoding) -> str:
    name, parts = type(tree).__name__, list[str]()
    match tree:
        case arrays.Flat(bits, _, compression):
            parts = [str(bits), *([] if compression is None else [compression.scheme])]
        case arrays.NoNulls(values):
            return _array(values)
        case arrays.SomeNulls(validity, values):
            name, parts = "Nullable", [_array(values), f"validity={_array(validity)}"]
        case arrays.FixedSizeList(dimension, items):
            parts = [str(dimension), _array(items)]
        case arrays.List(offsets):
            parts = [_array(offsets)]
        case arrays.Binary(indices, data):
            parts = [_array(indices), _array(data)]
        case arrays.Dictionary(indices, items):
            parts = [_array(indices), _array(items)]
        case arrays.Fsst(binary):
            parts = [_array(binary)]
        case arrays.PackedStruct(inner):
            parts = [*map(_array, inner)]
        case arrays.Bitpacked(packed, bits) | arrays.BitpackedForNonNeg(packed, bits):
            name, parts = "Bitpacking", [f"{packed} of {bits}"]
        case arrays.FixedSizeBinary(data, width):
            parts = [f"{width} bytes", _array(data)]
    return f"{name}({', '.join(parts)})"
