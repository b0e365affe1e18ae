"""Blobs written by hand: one descriptor for each, and the column in which the file writer takes them.

Such a *prepared* column is struct<kind, data, uri, blob_id, blob_size, position>: bytes that are still to be placed in
the data file are in ``data``; all others lie somewhere already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from lancelet.errors import InvalidInput
from lancelet.file.blobs import BlobKind, sidecar_path
from lancelet.format.blobs import BLOB_V2
from lancelet.format.fields import EXTENSION_NAME

__all__ = ["PREPARED", "BlobDescriptor", "BlobDescriptorArrayBuilder", "packed_array", "prepared_field"]

PREPARED = pa.struct(
    {
        "kind": pa.uint8(),
        "data": pa.large_binary(),
        "uri": pa.string(),
        "blob_id": pa.uint32(),
        "blob_size": pa.uint64(),
        "position": pa.uint64(),
    }
)
_LARGEST = 2**64 - 1


@dataclass(frozen=True, slots=True, repr=False)
class BlobDescriptor:
    """Where one written blob lies; with no kind it is null.

    >>> BlobDescriptor(BlobKind.PACKED, blob_id=1, offset=5, size=7)
    Packed { blob_id: 1, offset: 5, size: 7 }
    """

    kind: BlobKind | None = None
    blob_id: int | None = None
    offset: int | None = None
    size: int | None = None
    uri: str | None = None
    data: bytes | None = None

    def __repr__(self) -> str:
        if self.kind is None:
            return "Null"
        facts = {"blob_id": self.blob_id, "offset": self.offset, "size": self.size, "uri": self.uri, "data": self.data}
        inside = ", ".join(f"{name}: {value!r}" for name, value in facts.items() if value is not None)
        return f"{self.kind.name.capitalize()} {{ {inside} }}"

    def as_row(self) -> dict[str, object] | None:
        """The value in a prepared column."""
        if self.kind is None:
            return None
        return {
            "kind": int(self.kind),
            "data": self.data,
            "uri": self.uri,
            "blob_id": self.blob_id,
            "blob_size": self.size,
            "position": self.offset,
        }


class BlobDescriptorArrayBuilder:
    """Collects descriptors, in row order, into the column that a data file's writer takes.

    >>> builder = BlobDescriptorArrayBuilder("image")
    >>> builder.append_inline(b"abc")
    >>> builder.extend_packed(1, [0, 10], [10, 20])
    >>> builder.finish().field("blob_size").to_pylist()
    [None, 10, 20]
    """

    def __init__(self, column: str) -> None:
        self._field = prepared_field(column)
        self._pieces: list[pa.StructArray] = []
        self._rows: list[dict[str, object] | None] = []
        self._finished = False

    @property
    def field(self) -> pa.Field:
        """The column's field, for the schema of the file."""
        return self._field

    def extend_packed(self, blob_id: int, offsets: Sequence[int], sizes: Sequence[int]) -> None:
        """Blobs that lie in one packed sidecar, at these offsets."""
        _check_id(blob_id)
        if len(offsets) != len(sizes):
            raise InvalidInput(f"offsets and sizes must have the same length, got {len(offsets)} and {len(sizes)}")
        self._open()
        self._flush()
        self._pieces.append(packed_array(blob_id, _u64(offsets, "offset"), _u64(sizes, "size")))

    def append_dedicated(self, blob_id: int, size: int) -> None:
        """A blob that has a sidecar of its own."""
        _check_id(blob_id)
        self.append(BlobDescriptor(BlobKind.DEDICATED, blob_id=blob_id, size=_counted(size, "size")))

    def append_managed(self, uri: str, offset: int, size: int, *, base_id: int | None = None) -> None:
        """A blob in an object that the table manages, below one of its bases if ``base_id`` is given."""
        if not uri or ":" in uri or any(name in ("", ".", "..") for name in uri.split("/")):
            raise InvalidInput(f"managed blob URI {uri!r}, expected a relative object path")
        kind = BlobKind.MANAGED if base_id is None else BlobKind.MANAGED_IN_BASE
        offset, size = _counted(offset, "offset"), _counted(size, "size")
        self.append(BlobDescriptor(kind, blob_id=base_id, offset=offset, size=size, uri=uri))

    def append(self, value: BlobDescriptor) -> None:
        """What a sidecar's writer returned."""
        self._open()
        if not isinstance(value, BlobDescriptor):
            raise TypeError(f"expected a BlobDescriptor, got {type(value).__name__}")
        self._rows.append(value.as_row())

    def extend(self, values: Sequence[BlobDescriptor]) -> None:
        """Several of them."""
        for value in values:
            self.append(value)

    def append_inline(self, data: bytes) -> None:
        """A blob whose bytes are to lie in the data file itself."""
        self.append(BlobDescriptor(BlobKind.INLINE, data=bytes(memoryview(data))))

    def append_null(self) -> None:
        """No blob."""
        self.append(BlobDescriptor())

    def finish(self) -> pa.StructArray:
        """All of them as one array; the builder takes no more."""
        self._open()
        self._flush()
        self._finished = True
        return pa.concat_arrays(self._pieces) if self._pieces else pa.array([], PREPARED)

    def _open(self) -> None:
        if self._finished:
            raise InvalidInput("the builder of blob descriptors is already finished")

    def _flush(self) -> None:
        if self._rows:
            self._pieces.append(pa.array(self._rows, PREPARED))
            self._rows = []


def prepared_field(name: str) -> pa.Field:
    """The field of a prepared column."""
    return pa.field(name, PREPARED, metadata={EXTENSION_NAME: BLOB_V2})


def packed_array(
    blob_id: int, offsets: np.ndarray, sizes: np.ndarray, valid: np.ndarray | None = None
) -> pa.StructArray:
    """A prepared column of blobs in one packed sidecar."""
    count = len(sizes)
    everywhere = None if valid is None or valid.all() else ~valid
    children = [
        pa.array(np.full(count, BlobKind.PACKED, np.uint8), mask=everywhere),
        pa.nulls(count, pa.large_binary()),
        pa.nulls(count, pa.string()),
        pa.array(np.full(count, blob_id, np.uint32), mask=everywhere),
        pa.array(sizes, pa.uint64(), mask=everywhere),
        pa.array(offsets, pa.uint64(), mask=everywhere),
    ]
    mask = None if everywhere is None else pa.array(everywhere)
    return pa.StructArray.from_arrays(children, fields=list(PREPARED), mask=mask)


def _check_id(blob_id: int) -> None:
    sidecar_path("any.lance", blob_id)


def _counted(value: int, what: str) -> int:
    if not 0 <= value <= _LARGEST:
        raise InvalidInput(f"{what} is {value}, expected 0 to {_LARGEST:,}")
    return value


def _u64(values: Sequence[int], what: str) -> np.ndarray:
    try:
        return np.array(values, np.uint64)
    except OverflowError:
        raise InvalidInput(f"an {what} of a packed blob is negative or needs more than 64 bits") from None
