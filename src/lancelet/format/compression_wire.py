"""Compressive encodings of 2.1 and 2.2 to and from their messages."""

from __future__ import annotations

from lancelet.errors import Corrupt
from lancelet.format.compressions import (
    BufferCompression,
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
    PackedField,
    PackedStruct,
    Rle,
    Scheme,
    Variable,
    VariablePackedStruct,
)
from lancelet.format.protos import encodings21_pb2 as wire
from lancelet.format.wire import deeper, unset_choice

__all__ = ["read_compression", "write_compression"]


def read_compression(message: wire.CompressiveEncoding, what: str, depth: int = 0) -> Compression:
    """The encoding that a message describes; ``what`` names its place in errors, such as ``mini_block.values``."""
    depth = deeper(depth, what)
    name = message.WhichOneof("compression")
    place = f"{what}.{name}"
    match name:
        case "flat":
            data = _read_buffer(message.flat.data, place) if message.flat.HasField("data") else None
            return Flat(message.flat.bits_per_value, data)
        case "variable":
            return _read_variable(message.variable, place, depth)
        case "constant":
            return Constant(message.constant.value if message.constant.HasField("value") else None)
        case "out_of_line_bitpacking":
            packed = message.out_of_line_bitpacking
            values = read_compression(packed.values, f"{place}.values", depth)
            return OutOfLineBitpacking(packed.uncompressed_bits_per_value, values)
        case "inline_bitpacking":
            inline = message.inline_bitpacking
            data = _read_buffer(inline.values, place) if inline.HasField("values") else None
            return InlineBitpacking(inline.uncompressed_bits_per_value, data)
        case "fsst":
            return Fsst(message.fsst.symbol_table, read_compression(message.fsst.values, f"{place}.values", depth))
        case "byte_stream_split":
            return ByteStreamSplit(read_compression(message.byte_stream_split.values, f"{place}.values", depth))
        case None:
            raise unset_choice(message, what)
        case _:
            return _read_composite(message, name, place, depth)


def _read_variable(message: wire.Variable, place: str, depth: int) -> Variable:
    values = _read_buffer(message.values, f"{place}.values") if message.HasField("values") else None
    return Variable(read_compression(message.offsets, f"{place}.offsets", depth), values)


def _read_composite(message: wire.CompressiveEncoding, name: str, place: str, depth: int) -> Compression:
    match name:
        case "dictionary":
            indices = read_compression(message.dictionary.indices, f"{place}.indices", depth)
            items = read_compression(message.dictionary.items, f"{place}.items", depth)
            return Dictionary(indices, items, message.dictionary.num_dictionary_items)
        case "rle":
            values = read_compression(message.rle.values, f"{place}.values", depth)
            return Rle(values, read_compression(message.rle.run_lengths, f"{place}.run_lengths", depth))
        case "general":
            compression = _read_buffer(message.general.compression, f"{place}.compression")
            return General(compression, read_compression(message.general.values, f"{place}.values", depth))
        case "fixed_size_list":
            fixed = message.fixed_size_list
            values = read_compression(fixed.values, f"{place}.values", depth)
            return FixedSizeList(fixed.items_per_value, values, fixed.has_validity)
        case "packed_struct":
            packed = message.packed_struct
            return PackedStruct(tuple(packed.bits_per_value), read_compression(packed.values, f"{place}.values", depth))
        case _:
            fields = message.variable_packed_struct.fields
            return VariablePackedStruct(tuple(_read_field(item, f"{place}.fields", depth) for item in fields))


def _read_field(message: wire.VariablePackedStruct.FieldEncoding, place: str, depth: int) -> PackedField:
    value = read_compression(message.value, f"{place}.value", depth)
    match message.WhichOneof("layout"):
        case "bits_per_value":
            return PackedField(value, bits_per_value=message.bits_per_value)
        case "bits_per_length":
            return PackedField(value, bits_per_length=message.bits_per_length)
        case _:
            raise unset_choice(message, f"{place}.layout")


def _read_buffer(message: wire.BufferCompression, place: str) -> BufferCompression:
    scheme = int(message.scheme)
    if scheme not in (1, 2):
        raise Corrupt(f"{place} has compression scheme {scheme}, expected 1 (LZ4) or 2 (zstd)")
    return BufferCompression(Scheme(scheme), message.level if message.HasField("level") else None)


def write_compression(compression: Compression) -> wire.CompressiveEncoding:
    """The message that describes an encoding."""
    message = wire.CompressiveEncoding()
    match compression:
        case Flat():
            message.flat.SetInParent()
            message.flat.bits_per_value = compression.bits_per_value
            _write_buffer(message.flat.data, compression.data)
        case Variable():
            message.variable.offsets.CopyFrom(write_compression(compression.offsets))
            _write_buffer(message.variable.values, compression.values)
        case Constant():
            message.constant.SetInParent()
            if compression.value is not None:
                message.constant.value = compression.value
        case OutOfLineBitpacking():
            message.out_of_line_bitpacking.uncompressed_bits_per_value = compression.uncompressed_bits_per_value
            message.out_of_line_bitpacking.values.CopyFrom(write_compression(compression.values))
        case InlineBitpacking():
            message.inline_bitpacking.SetInParent()
            message.inline_bitpacking.uncompressed_bits_per_value = compression.uncompressed_bits_per_value
            _write_buffer(message.inline_bitpacking.values, compression.values)
        case Fsst():
            message.fsst.symbol_table = compression.symbol_table
            message.fsst.values.CopyFrom(write_compression(compression.values))
        case ByteStreamSplit():
            message.byte_stream_split.values.CopyFrom(write_compression(compression.values))
        case _:
            _write_composite(message, compression)
    return message


def _write_composite(
    message: wire.CompressiveEncoding,
    compression: Dictionary | Rle | General | FixedSizeList | PackedStruct | VariablePackedStruct,
) -> None:
    match compression:
        case Dictionary():
            message.dictionary.indices.CopyFrom(write_compression(compression.indices))
            message.dictionary.items.CopyFrom(write_compression(compression.items))
            message.dictionary.num_dictionary_items = compression.num_dictionary_items
        case Rle():
            message.rle.values.CopyFrom(write_compression(compression.values))
            message.rle.run_lengths.CopyFrom(write_compression(compression.run_lengths))
        case General():
            _write_buffer(message.general.compression, compression.compression)
            message.general.values.CopyFrom(write_compression(compression.values))
        case FixedSizeList():
            message.fixed_size_list.items_per_value = compression.items_per_value
            message.fixed_size_list.has_validity = compression.has_validity
            message.fixed_size_list.values.CopyFrom(write_compression(compression.values))
        case PackedStruct():
            message.packed_struct.bits_per_value.extend(compression.bits_per_value)
            message.packed_struct.values.CopyFrom(write_compression(compression.values))
        case VariablePackedStruct():
            message.variable_packed_struct.SetInParent()
            for field in compression.fields:
                item = message.variable_packed_struct.fields.add()
                item.value.CopyFrom(write_compression(field.value))
                if field.bits_per_value is not None:
                    item.bits_per_value = field.bits_per_value
                if field.bits_per_length is not None:
                    item.bits_per_length = field.bits_per_length


def _write_buffer(message: wire.BufferCompression, compression: BufferCompression | None) -> None:
    if compression is None:
        return
    message.scheme = wire.Scheme.ValueType(compression.scheme)
    if compression.level is not None:
        message.level = compression.level
