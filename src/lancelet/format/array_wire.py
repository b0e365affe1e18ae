"""Array and column encodings of 2.0 to and from the bytes of their messages."""

from __future__ import annotations

from lancelet.errors import Corrupt, Unsupported
from lancelet.format.arrays import (
    AllNulls,
    ArrayEncoding,
    Binary,
    Bitpacked,
    BitpackedForNonNeg,
    BlobColumn,
    Buffer,
    BufferHome,
    ColumnEncoding,
    Compression,
    Dictionary,
    FixedSizeBinary,
    FixedSizeList,
    Flat,
    Fsst,
    List,
    NoNulls,
    PackedStruct,
    SimpleStruct,
    SomeNulls,
    ValuesColumn,
    ZoneIndexColumn,
)
from lancelet.format.protos import encodings20_pb2 as wire
from lancelet.format.wire import deeper, parse_message, unset_choice, write_message

__all__ = ["parse_array_encoding", "parse_column_encoding", "write_array_encoding", "write_column_encoding"]


def parse_array_encoding(data: bytes | bytearray | memoryview) -> ArrayEncoding:
    """The encoding that the bytes of an ``ArrayEncoding`` message describe.

    >>> encoding = NoNulls(Flat(64, Buffer(0)))
    >>> parse_array_encoding(write_array_encoding(encoding)) == encoding
    True
    """
    return _read(parse_message(wire.ArrayEncoding, data, "array encoding"), "array encoding", 0)


def _read(message: wire.ArrayEncoding, what: str, depth: int) -> ArrayEncoding:
    depth = deeper(depth, what)
    name = message.WhichOneof("array_encoding")
    place = f"{what}.{name}"
    match name:
        case "flat":
            compression = _read_compression(message.flat.compression) if message.flat.HasField("compression") else None
            return Flat(message.flat.bits_per_value, _read_buffer(message.flat.buffer, place), compression)
        case "nullable":
            return _read_nullable(message.nullable, place, depth)
        case "fixed_size_list":
            fixed = message.fixed_size_list
            return FixedSizeList(fixed.dimension, _read(fixed.items, f"{place}.items", depth), fixed.has_validity)
        case "list":
            offsets = _read(message.list.offsets, f"{place}.offsets", depth)
            return List(offsets, message.list.null_offset_adjustment, message.list.num_items)
        case "struct":
            return SimpleStruct()
        case "bitpacked":
            return _read_bitpacked(message.bitpacked, place)
        case "bitpacked_for_non_neg":
            packed = message.bitpacked_for_non_neg
            buffer = _read_buffer(packed.buffer, place)
            return BitpackedForNonNeg(packed.compressed_bits_per_value, packed.uncompressed_bits_per_value, buffer)
        case None:
            raise unset_choice(message, what)
        case _:
            return _read_variable(message, name, place, depth)


def _read_variable(message: wire.ArrayEncoding, name: str, place: str, depth: int) -> ArrayEncoding:
    match name:
        case "binary":
            indices = _read(message.binary.indices, f"{place}.indices", depth)
            data = _read(message.binary.bytes, f"{place}.bytes", depth)
            return Binary(indices, data, message.binary.null_adjustment)
        case "dictionary":
            indices = _read(message.dictionary.indices, f"{place}.indices", depth)
            items = _read(message.dictionary.items, f"{place}.items", depth)
            return Dictionary(indices, items, message.dictionary.num_dictionary_items)
        case "fsst":
            return Fsst(_read(message.fsst.binary, f"{place}.binary", depth), message.fsst.symbol_table)
        case "packed_struct":
            inner = tuple(_read(item, f"{place}.inner", depth) for item in message.packed_struct.inner)
            return PackedStruct(inner, _read_buffer(message.packed_struct.buffer, place))
        case "fixed_size_binary":
            fixed = message.fixed_size_binary
            return FixedSizeBinary(_read(fixed.bytes, f"{place}.bytes", depth), fixed.byte_width)
        case _:
            raise Unsupported(f"{place} does not occur in pages of version 2.0")


def _read_nullable(message: wire.Nullable, place: str, depth: int) -> ArrayEncoding:
    match message.WhichOneof("nullability"):
        case "no_nulls":
            return NoNulls(_read(message.no_nulls.values, f"{place}.no_nulls", depth))
        case "some_nulls":
            validity = _read(message.some_nulls.validity, f"{place}.validity", depth)
            return SomeNulls(validity, _read(message.some_nulls.values, f"{place}.some_nulls", depth))
        case "all_nulls":
            return AllNulls()
        case _:
            raise unset_choice(message, place)


def _read_bitpacked(message: wire.Bitpacked, place: str) -> Bitpacked:
    return Bitpacked(
        compressed_bits_per_value=message.compressed_bits_per_value,
        uncompressed_bits_per_value=message.uncompressed_bits_per_value,
        buffer=_read_buffer(message.buffer, place),
        signed=message.signed,
    )


def _read_buffer(message: wire.Buffer, place: str) -> Buffer:
    if not 0 <= message.buffer_type <= BufferHome.FILE:
        raise Corrupt(f"{place} has a buffer of type {message.buffer_type}, expected 0 to 2")
    return Buffer(message.buffer_index, BufferHome(message.buffer_type))


def _read_compression(message: wire.Compression) -> Compression:
    return Compression(message.scheme, message.level if message.HasField("level") else None)


def write_array_encoding(encoding: ArrayEncoding) -> bytes:
    """The bytes of the ``ArrayEncoding`` message that describes an encoding."""
    return write_message(_write(encoding))


def _write(encoding: ArrayEncoding) -> wire.ArrayEncoding:
    match encoding:
        case Flat(bits, buffer, compression):
            flat = wire.Flat(bits_per_value=bits, buffer=_write_buffer(buffer))
            if compression is not None:
                flat.compression.CopyFrom(wire.Compression(scheme=compression.scheme, level=compression.level))
            return wire.ArrayEncoding(flat=flat)
        case NoNulls() | SomeNulls() | AllNulls():
            return wire.ArrayEncoding(nullable=_write_nullable(encoding))
        case FixedSizeList(dimension, items, has_validity):
            fixed = wire.FixedSizeList(dimension=dimension, items=_write(items), has_validity=has_validity)
            return wire.ArrayEncoding(fixed_size_list=fixed)
        case List(offsets, adjustment, num_items):
            ends = wire.List(offsets=_write(offsets), null_offset_adjustment=adjustment, num_items=num_items)
            return wire.ArrayEncoding(list=ends)
        case SimpleStruct():
            return wire.ArrayEncoding(struct=wire.SimpleStruct())
        case Bitpacked(packed, unpacked, buffer, signed):
            cut = wire.Bitpacked(
                compressed_bits_per_value=packed,
                uncompressed_bits_per_value=unpacked,
                buffer=_write_buffer(buffer),
                signed=signed,
            )
            return wire.ArrayEncoding(bitpacked=cut)
        case BitpackedForNonNeg(packed, unpacked, buffer):
            blocks = wire.BitpackedForNonNeg(
                compressed_bits_per_value=packed, uncompressed_bits_per_value=unpacked, buffer=_write_buffer(buffer)
            )
            return wire.ArrayEncoding(bitpacked_for_non_neg=blocks)
        case _:
            return _write_variable(encoding)


def _write_variable(encoding: Binary | Dictionary | Fsst | PackedStruct | FixedSizeBinary) -> wire.ArrayEncoding:
    match encoding:
        case Binary(indices, data, adjustment):
            binary = wire.Binary(indices=_write(indices), bytes=_write(data), null_adjustment=adjustment)
            return wire.ArrayEncoding(binary=binary)
        case Dictionary(indices, items, number):
            words = wire.Dictionary(indices=_write(indices), items=_write(items), num_dictionary_items=number)
            return wire.ArrayEncoding(dictionary=words)
        case Fsst(binary, symbols):
            return wire.ArrayEncoding(fsst=wire.Fsst(binary=_write(binary), symbol_table=symbols))
        case PackedStruct(inner, buffer):
            rows = wire.PackedStruct(inner=map(_write, inner), buffer=_write_buffer(buffer))
            return wire.ArrayEncoding(packed_struct=rows)
        case FixedSizeBinary(data, width):
            return wire.ArrayEncoding(fixed_size_binary=wire.FixedSizeBinary(bytes=_write(data), byte_width=width))


def _write_nullable(encoding: NoNulls | SomeNulls | AllNulls) -> wire.Nullable:
    match encoding:
        case NoNulls(values):
            return wire.Nullable(no_nulls=wire.Nullable.NoNulls(values=_write(values)))
        case SomeNulls(validity, values):
            some = wire.Nullable.SomeNulls(validity=_write(validity), values=_write(values))
            return wire.Nullable(some_nulls=some)
        case AllNulls():
            return wire.Nullable(all_nulls=wire.Nullable.AllNulls())


def _write_buffer(buffer: Buffer) -> wire.Buffer:
    return wire.Buffer(buffer_index=buffer.index, buffer_type=wire.Buffer.Home.ValueType(buffer.home))


def parse_column_encoding(data: bytes | bytearray | memoryview) -> ColumnEncoding:
    """The encoding that the bytes of a ``ColumnEncoding`` message describe.

    >>> parse_column_encoding(write_column_encoding(BlobColumn(ValuesColumn())))
    BlobColumn(inner=ValuesColumn())
    """
    return _read_column(parse_message(wire.ColumnEncoding, data, "column encoding"), "column encoding", 0)


def _read_column(message: wire.ColumnEncoding, what: str, depth: int) -> ColumnEncoding:
    depth = deeper(depth, what)
    match message.WhichOneof("column_encoding"):
        case "values":
            return ValuesColumn()
        case "blob":
            return BlobColumn(_read_column(message.blob.inner, f"{what}.blob", depth))
        case "zone_index":
            zones = message.zone_index
            inner = _read_column(zones.inner, f"{what}.zone_index", depth)
            return ZoneIndexColumn(zones.rows_per_zone, _read_buffer(zones.zone_map_buffer, what), inner)
        case _:
            raise unset_choice(message, what)


def write_column_encoding(encoding: ColumnEncoding) -> bytes:
    """The bytes of the ``ColumnEncoding`` message that describes an encoding."""
    return write_message(_write_column(encoding))


def _write_column(encoding: ColumnEncoding) -> wire.ColumnEncoding:
    message = wire.ColumnEncoding()
    match encoding:
        case ValuesColumn():
            message.values.SetInParent()
        case BlobColumn(inner):
            message.blob.inner.CopyFrom(_write_column(inner))
        case ZoneIndexColumn(rows, zone_map, inner):
            message.zone_index.rows_per_zone = rows
            message.zone_index.zone_map_buffer.CopyFrom(_write_buffer(zone_map))
            message.zone_index.inner.CopyFrom(_write_column(inner))
    return message
