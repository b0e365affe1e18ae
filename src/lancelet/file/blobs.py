"""Blob descriptors: where each blob of a column lies, as Arrow structs and as columns of numbers, and sidecar names.

A data file keeps one descriptor for each row: kind u8, position u64, size u64, blob_id u32, blob_uri string. Blob v1
knows position and size alone: its values lie in the data file.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pat

from lancelet.errors import Corrupt, InvalidInput, Unsupported

__all__ = ["DESCRIPTOR", "BlobKind", "Descriptors", "parse_descriptors", "sidecar_path"]

Numbers: TypeAlias = npt.NDArray[np.uint64]
Flags: TypeAlias = npt.NDArray[np.bool_]

_SUFFIX = ".lance"
_LARGEST_ID = 2**32 - 1


class BlobKind(IntEnum):
    """Where a blob's bytes are."""

    #: In the data file; ``position`` counts from its start.
    INLINE = 0
    #: In a sidecar, together with others.
    PACKED = 1
    #: In a sidecar of its own.
    DEDICATED = 2
    #: Behind a URI: absolute if ``blob_id`` is 0, else relative to the table's base of that id. Size 0 is all of it.
    EXTERNAL = 3
    #: In an object that the table manages.
    MANAGED = 4
    #: The same, below the base ``blob_id``.
    MANAGED_IN_BASE = 5


#: What a data file holds for each blob v2.
DESCRIPTOR = pa.struct(
    [
        pa.field("kind", pa.uint8(), nullable=False),
        pa.field("position", pa.uint64(), nullable=False),
        pa.field("size", pa.uint64(), nullable=False),
        pa.field("blob_id", pa.uint32(), nullable=False),
        pa.field("blob_uri", pa.string(), nullable=False),
    ]
)
_V1_NAMES = ("position", "size")
_V2_NAMES = tuple(field.name for field in DESCRIPTOR)


@dataclass(frozen=True, slots=True)
class Descriptors:
    """Descriptors of some rows, column by column. Null rows are zero everywhere."""

    valid: Flags
    kind: npt.NDArray[np.uint8]
    position: Numbers
    size: Numbers
    blob_id: npt.NDArray[np.uint32]
    #: One string for each row.
    uri: pa.StringArray

    def __len__(self) -> int:
        return len(self.valid)

    def to_arrow(self) -> pa.StructArray:
        """The struct array that a data file stores."""
        children = [pa.array(column) for column in (self.kind, self.position, self.size, self.blob_id)]
        mask = None if self.valid.all() else pa.array(~self.valid)
        return pa.StructArray.from_arrays([*children, self.uri], fields=list(DESCRIPTOR), mask=mask)


def parse_descriptors(array: pa.Array | pa.ChunkedArray) -> Descriptors:
    """Descriptors of either kind of blob, as a reader of a data file or of a table hands them out.

    >>> parse_descriptors(pa.array([{"position": 64, "size": 5}, {"position": 1, "size": 0}])).valid.tolist()
    [True, False]
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    names = tuple(field.name for field in array.type) if pat.is_struct(array.type) else ()
    if names not in (_V1_NAMES, _V2_NAMES):
        raise InvalidInput(f"a column of type {array.type} holds no blob descriptors")
    valid = np.asarray(array.is_valid())
    columns = dict(zip(names, array.flatten(), strict=True))
    position, size = (_numbers(columns[name], name, valid, np.uint64) for name in _V1_NAMES)
    if names == _V1_NAMES:
        # A null of blob v1 is a place without bytes that is not the start of the file.
        valid = valid & ((size > 0) | (position == 0))
        nothing = np.zeros(len(array), np.uint32)
        uri = pa.repeat(pa.scalar("", pa.string()), len(array))
        return Descriptors(valid, nothing.astype(np.uint8), np.where(valid, position, np.uint64(0)), size, nothing, uri)
    kind = _numbers(columns["kind"], "kind", valid, np.uint8)
    blob_id = _numbers(columns["blob_id"], "blob_id", valid, np.uint32)
    uri = columns["blob_uri"]
    if not pat.is_string(uri.type):
        raise InvalidInput(f"blob_uri of a blob descriptor has type {uri.type}, expected string")
    found = Descriptors(valid, kind, position, size, blob_id, uri.fill_null("") if uri.null_count else uri)
    _check(found)
    return found


def _numbers(column: pa.Array, name: str, valid: Flags, dtype: npt.DTypeLike) -> npt.NDArray:  # type: ignore[type-arg]
    if not pat.is_integer(column.type):
        raise InvalidInput(f"{name} of a blob descriptor has type {column.type}, expected an integer")
    if column.null_count:
        if np.any(np.asarray(column.is_null()) & valid):
            raise Corrupt(f"{name} of a blob descriptor is null where the blob is not")
        column = column.fill_null(0)
    try:
        values = np.asarray(column.cast(pa.from_numpy_dtype(np.dtype(dtype))))
    except pa.ArrowInvalid as error:
        raise Corrupt(f"{name} of a blob descriptor does not fit: {error}") from None
    return values if valid.all() else np.where(valid, values, values.dtype.type(0))


def _check(found: Descriptors) -> None:
    """Corrupt or Unsupported for descriptors that lead nowhere."""
    unknown = found.kind > BlobKind.EXTERNAL
    if unknown.any():
        row = int(np.argmax(unknown))
        kind = int(found.kind[row])
        raise Unsupported(
            f"row {row:,} holds a blob of kind {kind}"
            + (" (managed by its table)" if kind in (BlobKind.MANAGED, BlobKind.MANAGED_IN_BASE) else "")
            + ", expected 0 (inline), 1 (packed), 2 (dedicated) or 3 (external)"
        )
    aside = (found.kind == BlobKind.PACKED) | (found.kind == BlobKind.DEDICATED)
    nameless = aside & (found.blob_id == 0)
    if nameless.any():
        raise Corrupt(f"the blob of row {int(np.argmax(nameless)):,} lies in sidecar 0, which cannot exist")
    unplaced = found.valid & (found.kind == BlobKind.EXTERNAL) & np.asarray(pc.equal(pc.binary_length(found.uri), 0))
    if unplaced.any():
        raise Corrupt(f"the blob of row {int(np.argmax(unplaced)):,} is external but has no URI")


def sidecar_path(data_path: str, blob_id: int) -> str:
    """Where the blobs of a data file lie that are not in it: the id's 32 bits, lowest first, spread over the names.

    >>> sidecar_path("data/a.lance", 6)
    'data/a/01100000000000000000000000000000.blob'
    """
    if not data_path.endswith(_SUFFIX) or data_path.endswith("/" + _SUFFIX) or data_path == _SUFFIX:
        raise InvalidInput(f"data file path {data_path!r} must be a name that ends with {_SUFFIX!r}")
    if not 0 < blob_id <= _LARGEST_ID:
        raise InvalidInput(f"blob id is {blob_id}, expected 1 to {_LARGEST_ID:,}; 0 is reserved")
    return f"{data_path.removesuffix(_SUFFIX)}/{format(blob_id, '032b')[::-1]}.blob"
