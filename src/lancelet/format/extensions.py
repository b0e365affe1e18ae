"""Arrow extension types: how pyarrow's own are taken apart into plain fields with metadata, and put together again."""

from __future__ import annotations

import ctypes
import struct

import pyarrow as pa

from lancelet.errors import Unsupported

__all__ = ["resolved", "stored_field"]


class _ArrowSchema(ctypes.Structure):
    # The first members of the C data interface's struct; only the metadata is looked at.
    _fields_ = (("format", ctypes.c_void_p), ("name", ctypes.c_void_p), ("metadata", ctypes.c_void_p))


_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]


def stored_field(field: pa.Field) -> pa.Field:
    """The same field with its storage type, and the extension's name and parameters in its metadata.

    >>> stored_field(pa.field("id", pa.uuid())).type
    FixedSizeBinaryType(fixed_size_binary[16])
    """
    if not isinstance(field.type, pa.BaseExtensionType):
        return field
    return pa.field(field.name, field.type.storage_type, field.nullable, metadata=_exported_metadata(field))


def _exported_metadata(field: pa.Field) -> dict[bytes, bytes]:
    # pyarrow tells how an extension type is serialized through the C data interface only: i32 number of pairs, then
    # each key and value preceded by its i32 length, in the machine's byte order.
    capsule = field.__arrow_c_schema__()
    address = _ArrowSchema.from_address(_pointer_of(capsule, b"arrow_schema")).metadata
    if address is None:
        return {}
    place = address + 4
    words = []
    for _ in range(2 * _int32(address)):
        length = _int32(place)
        words.append(ctypes.string_at(place + 4, length))
        place += 4 + length
    return dict(zip(words[::2], words[1::2], strict=True))


def _int32(address: int) -> int:
    return int(struct.unpack("=i", ctypes.string_at(address, 4))[0])


class _Exported:
    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def __arrow_c_schema__(self) -> object:
        return self._schema.__arrow_c_schema__()


def resolved(schema: pa.Schema) -> pa.Schema:
    """The schema as pyarrow takes it from any other library: fields named after a registered extension have its type.

    >>> metadata = {"ARROW:extension:name": "arrow.uuid", "ARROW:extension:metadata": ""}
    >>> resolved(pa.schema([pa.field("id", pa.binary(16), metadata=metadata)])).field("id").type
    UuidType(extension<arrow.uuid>)
    """
    try:
        return pa.schema(_Exported(schema))
    except pa.ArrowException as error:
        raise Unsupported(f"pyarrow cannot make an extension type that the schema names: {error}") from None
