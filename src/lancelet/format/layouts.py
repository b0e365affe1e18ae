"""Page layouts of 2.1 and 2.2: how a page arranges levels and values, as frozen dataclasses, to and from bytes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from lancelet.errors import Corrupt
from lancelet.format.compression_wire import read_compression, write_compression
from lancelet.format.compressions import Compression
from lancelet.format.protos import encodings21_pb2 as wire
from lancelet.format.wire import deeper, parse_message, unset_choice, write_message

__all__ = [
    "BlobLayout",
    "ConstantLayout",
    "FullZipLayout",
    "Layer",
    "MiniBlockLayout",
    "PageLayout",
    "parse_layout",
    "write_layout",
]


class Layer(IntEnum):
    """What one layer of structure says in the levels. Layers run from the innermost outwards."""

    ALL_VALID_ITEM = 1
    ALL_VALID_LIST = 2
    NULLABLE_ITEM = 3
    NULLABLE_LIST = 4
    EMPTYABLE_LIST = 5
    NULL_AND_EMPTY_LIST = 6

    @property
    def is_list(self) -> bool:
        """Whether the layer is a list and so has a repetition level."""
        return self not in (Layer.ALL_VALID_ITEM, Layer.NULLABLE_ITEM)

    @property
    def definition_levels(self) -> int:
        """How many definition levels the layer takes: one for null, one for empty."""
        return _DEFINITION_LEVELS[self]


_DEFINITION_LEVELS = {
    Layer.ALL_VALID_ITEM: 0,
    Layer.ALL_VALID_LIST: 0,
    Layer.NULLABLE_ITEM: 1,
    Layer.NULLABLE_LIST: 1,
    Layer.EMPTYABLE_LIST: 1,
    Layer.NULL_AND_EMPTY_LIST: 2,
}


@dataclass(frozen=True, slots=True)
class MiniBlockLayout:
    """Small values in chunks. Buffers: chunk words, chunks, dictionary if any, repetition index if any."""

    values: Compression
    layers: tuple[Layer, ...]
    num_buffers: int
    num_items: int
    repetition: Compression | None = None
    definition: Compression | None = None
    dictionary: Compression | None = None
    num_dictionary_items: int = 0
    repetition_index_depth: int = 0
    has_large_chunk: bool = False


@dataclass(frozen=True, slots=True)
class FullZipLayout:
    """Large values, each after its levels and length. Exactly one of the last two widths is set."""

    values: Compression
    layers: tuple[Layer, ...]
    bits_rep: int
    bits_def: int
    num_items: int
    num_visible_items: int
    bits_per_value: int | None = None
    bits_per_offset: int | None = None


@dataclass(frozen=True, slots=True)
class ConstantLayout:
    """One value, or null, for the whole page.

    Buffers by their number: 0 none; 1 scalar; 2 repetition and definition; 3 scalar, repetition, definition.
    """

    layers: tuple[Layer, ...]
    inline_value: bytes | None = None
    repetition: Compression | None = None
    definition: Compression | None = None
    num_rep_values: int = 0
    num_def_values: int = 0


@dataclass(frozen=True, slots=True)
class BlobLayout:
    """Values outside the page; the inner layout holds their positions and sizes."""

    inner: PageLayout
    layers: tuple[Layer, ...]


PageLayout = MiniBlockLayout | FullZipLayout | ConstantLayout | BlobLayout


def parse_layout(data: bytes | bytearray | memoryview) -> PageLayout:
    """The layout that the bytes of a ``PageLayout`` message describe.

    >>> layout = ConstantLayout(layers=(Layer.NULLABLE_ITEM,))
    >>> parse_layout(write_layout(layout)) == layout
    True
    """
    return _read_layout(parse_message(wire.PageLayout, data, "page layout"), "page layout", 0)


def _read_layout(message: wire.PageLayout, what: str, depth: int) -> PageLayout:
    depth = deeper(depth, what)
    match message.WhichOneof("layout"):
        case "mini_block_layout":
            return _read_mini_block(message.mini_block_layout)
        case "constant_layout":
            return _read_constant(message.constant_layout)
        case "full_zip_layout":
            return _read_full_zip(message.full_zip_layout)
        case "blob_layout":
            blob = message.blob_layout
            return BlobLayout(_read_layout(blob.inner_layout, "blob.inner_layout", depth), _layers(blob, "blob"))
        case _:
            raise unset_choice(message, what)


def _read_mini_block(message: wire.MiniBlockLayout) -> MiniBlockLayout:
    return MiniBlockLayout(
        values=read_compression(message.value_compression, "mini_block.value_compression"),
        layers=_layers(message, "mini_block"),
        num_buffers=message.num_buffers,
        num_items=message.num_items,
        repetition=_optional(message, "rep_compression", "mini_block"),
        definition=_optional(message, "def_compression", "mini_block"),
        dictionary=_optional(message, "dictionary", "mini_block"),
        num_dictionary_items=message.num_dictionary_items,
        repetition_index_depth=message.repetition_index_depth,
        has_large_chunk=message.has_large_chunk,
    )


def _read_full_zip(message: wire.FullZipLayout) -> FullZipLayout:
    width = message.WhichOneof("details")
    if width is None:
        raise Corrupt("full_zip has neither bits_per_value nor bits_per_offset, expected one of them")
    return FullZipLayout(
        values=read_compression(message.value_compression, "full_zip.value_compression"),
        layers=_layers(message, "full_zip"),
        bits_rep=message.bits_rep,
        bits_def=message.bits_def,
        num_items=message.num_items,
        num_visible_items=message.num_visible_items,
        bits_per_value=message.bits_per_value if width == "bits_per_value" else None,
        bits_per_offset=message.bits_per_offset if width == "bits_per_offset" else None,
    )


def _read_constant(message: wire.ConstantLayout) -> ConstantLayout:
    return ConstantLayout(
        layers=_layers(message, "constant"),
        inline_value=message.inline_value if message.HasField("inline_value") else None,
        repetition=_optional(message, "rep_compression", "constant"),
        definition=_optional(message, "def_compression", "constant"),
        num_rep_values=message.num_rep_values,
        num_def_values=message.num_def_values,
    )


def _optional(message: wire.MiniBlockLayout | wire.ConstantLayout, name: str, what: str) -> Compression | None:
    present = message.HasField(name)  # type: ignore[arg-type]
    return read_compression(getattr(message, name), f"{what}.{name}") if present else None


def _layers(
    message: wire.MiniBlockLayout | wire.FullZipLayout | wire.ConstantLayout | wire.BlobLayout, what: str
) -> tuple[Layer, ...]:
    try:
        return tuple(map(Layer, message.layers))
    except ValueError as error:
        raise Corrupt(f"{what}.layers: {error}, expected 1 to 6") from None


def write_layout(layout: PageLayout) -> bytes:
    """The bytes of the ``PageLayout`` message that describes a layout."""
    return write_message(_write_layout(layout))


def _write_layout(layout: PageLayout) -> wire.PageLayout:
    match layout:
        case MiniBlockLayout():
            return wire.PageLayout(mini_block_layout=_write_mini_block(layout))
        case FullZipLayout():
            return wire.PageLayout(full_zip_layout=_write_full_zip(layout))
        case ConstantLayout():
            return wire.PageLayout(constant_layout=_write_constant(layout))
        case BlobLayout():
            blob = wire.BlobLayout(inner_layout=_write_layout(layout.inner), layers=_wire_layers(layout.layers))
            return wire.PageLayout(blob_layout=blob)


def _write_mini_block(layout: MiniBlockLayout) -> wire.MiniBlockLayout:
    return wire.MiniBlockLayout(
        rep_compression=_write_optional(layout.repetition),
        def_compression=_write_optional(layout.definition),
        value_compression=write_compression(layout.values),
        dictionary=_write_optional(layout.dictionary),
        num_dictionary_items=layout.num_dictionary_items,
        layers=_wire_layers(layout.layers),
        num_buffers=layout.num_buffers,
        repetition_index_depth=layout.repetition_index_depth,
        num_items=layout.num_items,
        has_large_chunk=layout.has_large_chunk,
    )


def _write_full_zip(layout: FullZipLayout) -> wire.FullZipLayout:
    message = wire.FullZipLayout(
        bits_rep=layout.bits_rep,
        bits_def=layout.bits_def,
        num_items=layout.num_items,
        num_visible_items=layout.num_visible_items,
        value_compression=write_compression(layout.values),
        layers=_wire_layers(layout.layers),
    )
    if layout.bits_per_value is not None:
        message.bits_per_value = layout.bits_per_value
    if layout.bits_per_offset is not None:
        message.bits_per_offset = layout.bits_per_offset
    return message


def _write_constant(layout: ConstantLayout) -> wire.ConstantLayout:
    return wire.ConstantLayout(
        layers=_wire_layers(layout.layers),
        inline_value=layout.inline_value,
        rep_compression=_write_optional(layout.repetition),
        def_compression=_write_optional(layout.definition),
        num_rep_values=layout.num_rep_values,
        num_def_values=layout.num_def_values,
    )


def _write_optional(compression: Compression | None) -> wire.CompressiveEncoding | None:
    return None if compression is None else write_compression(compression)


def _wire_layers(layers: tuple[Layer, ...]) -> list[wire.Layer.ValueType]:
    return [wire.Layer.ValueType(layer) for layer in layers]
