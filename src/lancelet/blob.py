"""Blobs as users write them: a column type whose values are bytes, or say where the bytes are to be found."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.file import (
    BlobDescriptor,
    BlobDescriptorArrayBuilder,
    BlobFile,
    DedicatedBlobWriter,
    PackedBlobWriter,
)
from lancelet.file.blob_file import DEFAULT_BLOB_BUFFER_SIZE
from lancelet.format.blobs import BLOB_V2

__all__ = [
    "DEFAULT_BLOB_BUFFER_SIZE",
    "Blob",
    "BlobArray",
    "BlobColumn",
    "BlobDescriptor",
    "BlobDescriptorArrayBuilder",
    "BlobFile",
    "BlobIterator",
    "BlobType",
    "DedicatedBlobWriter",
    "PackedBlobWriter",
    "blob_array",
    "blob_field",
]

_STORAGE = pa.struct({"data": pa.large_binary(), "uri": pa.string(), "position": pa.uint64(), "size": pa.uint64()})
_THRESHOLD = "lance-encoding:blob-{}-size-threshold"
_LARGEST = 2**64 - 1


@dataclass(frozen=True)
class Blob:
    """One blob to be written: its bytes, or the URI of an object, or a part of one.

    >>> Blob.from_bytes(b"abc"), Blob.from_uri("s3://bucket/a.bin", position=10, size=5).size
    (Blob(data=b'abc', uri=None, position=None, size=None), 5)
    """

    data: bytes | None = None
    uri: str | None = None
    position: int | None = None
    size: int | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.uri is None):
            found = "neither" if self.data is None else "both"
            raise InvalidInput(f"a blob has data or a uri, {found} given", hint="a null blob is None")
        if self.uri == "":
            raise InvalidInput("the uri of a blob is empty")
        if (self.position is None) != (self.size is None):
            raise InvalidInput("a part of an object has a position and a size, one of them is missing")
        if self.position is not None and self.uri is None:
            raise InvalidInput("a position is given for a blob whose bytes are given, too")
        if self.size is not None and (self.size < 1 or (self.position or 0) < 0):
            raise InvalidInput(f"a part of an object starts at {self.position} and has {self.size} bytes")

    @staticmethod
    def from_bytes(data: bytes | bytearray | memoryview) -> Blob:
        """A blob of some bytes."""
        return Blob(data=bytes(data))

    @staticmethod
    def from_uri(uri: str, position: int | None = None, size: int | None = None) -> Blob:
        """A blob that is an object, or a part of it, and stays where it is."""
        return Blob(uri=uri, position=position, size=size)

    @staticmethod
    def empty() -> Blob:
        """A blob without bytes, which is not null."""
        return Blob(data=b"")


class BlobType(pa.ExtensionType):  # type: ignore[misc]
    """The type of a column of blobs as it is written.

    >>> BlobType().storage_type.field(0)
    pyarrow.Field<data: large_binary>
    """

    def __init__(self) -> None:
        super().__init__(_STORAGE, BLOB_V2)

    @classmethod
    def _of(cls, storage: pa.DataType) -> Self:
        """The type over a storage type that others chose: the last two fields may be missing."""
        fields = list(storage) if pa.types.is_struct(storage) else []
        expected = [(item.name, item.type) for item in _STORAGE]
        if len(fields) not in (2, 4) or [(item.name, item.type) for item in fields] != expected[: len(fields)]:
            raise TypeError(f"blobs are stored as {_STORAGE}, not as {storage}")
        made = cls.__new__(cls)
        pa.ExtensionType.__init__(made, storage, BLOB_V2)
        return made

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Self:
        return cls._of(storage_type)

    def __arrow_ext_class__(self) -> type[BlobArray]:
        return BlobArray

    def __reduce__(self) -> tuple[object, ...]:
        return type(self)._of, (self.storage_type,)


class BlobArray(pa.ExtensionArray):  # type: ignore[misc]
    """A column of blobs to be written."""

    @classmethod
    def from_pylist(cls, values: Iterable[Blob | bytes | bytearray | memoryview | str | None]) -> BlobArray:
        """From bytes, URIs (text), :class:`Blob` objects, and None for nulls."""
        blobs = [_blob(value) for value in values]
        columns = [
            pa.array([None if item is None else getattr(item, field.name) for item in blobs], field.type)
            for field in _STORAGE
        ]
        missing = pa.array([item is None for item in blobs], pa.bool_())
        storage = pa.StructArray.from_arrays(columns, fields=list(_STORAGE), mask=missing)
        made: BlobArray = pa.ExtensionArray.from_storage(BlobType(), storage)
        return made


def _blob(value: object) -> Blob | None:
    if value is None or isinstance(value, Blob):
        return value
    if isinstance(value, str):
        return Blob.from_uri(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return Blob.from_bytes(value)
    raise TypeError(f"a blob is bytes, a URI as text, a Blob or None; got {type(value)}")


def blob_array(values: Sequence[Blob | bytes | bytearray | memoryview | str | None]) -> BlobArray:
    """A column of blobs to be written: bytes, URIs as text, :class:`Blob` objects, None.

    >>> len(blob_array([b"hello", "s3://bucket/video.mp4", None]))
    3
    """
    return BlobArray.from_pylist(values)


def blob_field(
    name: str,
    *,
    nullable: bool = True,
    inline_size_threshold: int | None = None,
    dedicated_size_threshold: int | None = None,
    pack_file_size_threshold: int | None = None,
) -> pa.Field:
    """A field whose values are blobs, each stored where its size says.

    Up to ``inline_size_threshold`` bytes a blob lies in the data file, above ``dedicated_size_threshold`` in a file of
    its own, between them in files shared with others that grow to ``pack_file_size_threshold``.

    >>> blob_field("video", inline_size_threshold=0).metadata
    {b'lance-encoding:blob-inline-size-threshold': b'0'}
    """
    thresholds = {
        "inline": _threshold("inline_size_threshold", inline_size_threshold, 0),
        "dedicated": _threshold("dedicated_size_threshold", dedicated_size_threshold, 1),
        "pack-file": _threshold("pack_file_size_threshold", pack_file_size_threshold, 1),
    }
    metadata = {_THRESHOLD.format(kind): str(size) for kind, size in thresholds.items() if size is not None}
    return pa.field(name, BlobType(), nullable, metadata=metadata or None)


def _threshold(name: str, value: int | None, least: int) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int, got {type(value).__name__}")
    if value < least:
        raise InvalidInput(f"{name} is {value}, expected at least {least}")
    if value > _LARGEST:
        raise OverflowError(f"{name} is {value}, expected at most {_LARGEST}")
    return value


class BlobIterator:
    """The values of a binary column as files in memory, None for nulls."""

    def __init__(self, binary_iter: Iterator[pa.BinaryScalar]) -> None:
        self._values = binary_iter

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> io.BytesIO | None:
        value = next(self._values)
        return io.BytesIO(value.as_py()) if value.is_valid else None


class BlobColumn:
    """A binary column whose values are gone through as files in memory.

    >>> [file and file.read() for file in BlobColumn(pa.array([b"abc", None]))]
    [b'abc', None]
    """

    def __init__(self, blob_column: pa.Array | pa.ChunkedArray) -> None:
        if not isinstance(blob_column, pa.Array | pa.ChunkedArray):
            raise InvalidInput(f"a column is an Arrow array, not {type(blob_column).__name__}")
        if not (pa.types.is_binary(blob_column.type) or pa.types.is_large_binary(blob_column.type)):
            raise InvalidInput(f"the column has type {blob_column.type}, expected binary")
        self.blob_column = blob_column

    def __iter__(self) -> BlobIterator:
        return BlobIterator(iter(self.blob_column))


# Another library in the process may have registered a type of the name before: columns then have that one.
with suppress(pa.ArrowKeyError):
    pa.register_extension_type(BlobType())
