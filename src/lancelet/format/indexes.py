"""Index metadata: which indexes a version has, over which fields and fragments, and in which files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from google.protobuf.any_pb2 import Any as AnyMessage

from lancelet.errors import Corrupt
from lancelet.format.preserve import put_unknown, storable, unknown_of
from lancelet.format.protos import indexes_pb2 as wire
from lancelet.format.wire import parse_message, write_message

__all__ = [
    "IndexDetails",
    "IndexFile",
    "IndexMetadata",
    "IndexSection",
    "details_message",
    "holds_addresses",
    "index_file_message",
    "index_message",
    "parse_index_section",
    "read_details",
    "read_index",
    "read_index_file",
    "read_uuid",
    "uuid_message",
    "write_index_section",
]


@dataclass(frozen=True, slots=True)
class IndexDetails:
    """What only indexes of one kind say, as a wrapped message. Kinds are told apart by the type URL."""

    type_url: str
    value: bytes = b""

    @property
    def kind(self) -> str:
        """The last word of the type URL.

        >>> IndexDetails("/lance.table.BTreeIndexDetails").kind
        'BTreeIndexDetails'
        """
        return self.type_url.rpartition("/")[2].rpartition(".")[2]


@dataclass(frozen=True, slots=True)
class IndexFile:
    """One file of an index, named relative to the index's own folder."""

    path: str
    size_bytes: int
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class IndexMetadata:
    """One segment of an index. Segments of one index share its name."""

    uuid: UUID
    name: str
    #: Ids of the fields; the last ``len(covering_fields)`` of them are only carried along.
    fields: tuple[int, ...]
    #: The version of the table that the index was built from.
    dataset_version: int = 0
    #: Ids of the fragments covered, a 32-bit Roaring bitmap; None where the writer did not say.
    fragment_bitmap: bytes | None = None
    details: IndexDetails | None = None
    index_version: int | None = None
    #: Milliseconds since the epoch.
    created_at: int | None = None
    base_id: int | None = None
    #: Empty where the writer did not say.
    files: tuple[IndexFile, ...] = ()
    covering_fields: tuple[int, ...] = ()
    #: Carried along unread.
    clustering_id: int | None = None
    metadata: tuple[bytes, ...] = ()
    unknown: bytes = b""

    @property
    def keyed_fields(self) -> tuple[int, ...]:
        """Ids of the fields that the index answers questions about."""
        return self.fields[: len(self.fields) - len(self.covering_fields)]


#: By kind the first index version whose entries are row addresses even in tables with stable row ids. All other kinds
#: have entries by stable id there.
_BY_ADDRESS = {
    "BTreeIndexDetails": 1,
    "BitmapIndexDetails": 1,
    "RTreeIndexDetails": 1,
    "LabelListIndexDetails": 2,
    "ZoneMapIndexDetails": 0,
    "BloomFilterIndexDetails": 0,
}


def holds_addresses(index: IndexMetadata) -> bool:
    """Whether an index names rows by address even where they have stable ids, so that it loses those that move.

    >>> holds_addresses(IndexMetadata(UUID(int=1), "i", (0,), details=IndexDetails("/x.ZoneMapIndexDetails")))
    True
    """
    first = None if index.details is None else _BY_ADDRESS.get(index.details.kind)
    return first is not None and (index.index_version or 0) >= first


@dataclass(frozen=True, slots=True)
class IndexSection:
    """All indexes of one version.

    >>> section = IndexSection((IndexMetadata(UUID(int=1), "a_idx", (0,), details=IndexDetails("/x")),))
    >>> parse_index_section(write_index_section(section)) == section
    True
    """

    indexes: tuple[IndexMetadata, ...] = ()
    unknown: bytes = b""


def parse_index_section(data: bytes | memoryview) -> IndexSection:
    """The indexes that the bytes of a message describe."""
    message = parse_message(wire.IndexSection, data, "index section")
    return IndexSection(tuple(read_index(item) for item in message.indices), unknown_of(message))


def write_index_section(section: IndexSection | Iterable[IndexMetadata]) -> bytes:
    """The bytes of the message that describes all indexes of a version."""
    kept = section if isinstance(section, IndexSection) else IndexSection(tuple(section))
    message = wire.IndexSection(indices=[index_message(item) for item in kept.indexes])
    put_unknown(message, kept.unknown)
    return write_message(message)


def read_index(message: wire.IndexMetadata) -> IndexMetadata:
    """The dataclass of a message. Corrupt where what is covered is not the end of the fields."""
    fields, covering = tuple(message.fields), tuple(message.covering_fields)
    if covering and fields[-len(covering) :] != covering:
        raise Corrupt(f"index {message.name!r} carries fields {covering}, expected the last of {fields}")
    return IndexMetadata(
        uuid=read_uuid(message.uuid, f"index {message.name!r}"),
        name=message.name,
        fields=fields,
        dataset_version=message.dataset_version,
        fragment_bitmap=message.fragment_bitmap or None,
        details=read_details(message.index_details) if message.HasField("index_details") else None,
        index_version=message.index_version if message.HasField("index_version") else None,
        created_at=message.created_at if message.HasField("created_at") else None,
        base_id=message.base_id if message.HasField("base_id") else None,
        files=tuple(read_index_file(item) for item in message.files),
        covering_fields=covering,
        clustering_id=message.clustering_id if message.HasField("clustering_id") else None,
        metadata=tuple(message.metadata),
        unknown=unknown_of(message),
    )


def index_message(item: IndexMetadata) -> wire.IndexMetadata:
    """The message of an index."""
    with storable(f"index {item.name!r}"):
        message = wire.IndexMetadata(
            uuid=uuid_message(item.uuid),
            fields=item.fields,
            name=item.name,
            dataset_version=item.dataset_version,
            fragment_bitmap=item.fragment_bitmap or b"",
            index_details=details_message(item.details),
            index_version=item.index_version,
            created_at=item.created_at,
            base_id=item.base_id,
            files=[index_file_message(file) for file in item.files],
            covering_fields=item.covering_fields,
            clustering_id=item.clustering_id,
            metadata=item.metadata,
        )
    put_unknown(message, item.unknown)
    return message


def read_uuid(message: wire.Uuid, what: str) -> UUID:
    """The id in a message; ``what`` it identifies is named in the error."""
    if len(message.uuid) != 16:
        raise Corrupt(f"{what} has an id of {len(message.uuid)} bytes, expected 16")
    return UUID(bytes=message.uuid)


def uuid_message(value: UUID) -> wire.Uuid:
    """The message of an id."""
    return wire.Uuid(uuid=value.bytes)


def read_details(message: AnyMessage) -> IndexDetails:
    """The dataclass of a wrapped message."""
    return IndexDetails(message.type_url, message.value)


def details_message(item: IndexDetails | None) -> AnyMessage | None:
    """The wrapped message of an index's details."""
    return None if item is None else AnyMessage(type_url=item.type_url, value=item.value)


def read_index_file(message: wire.IndexFile) -> IndexFile:
    """The dataclass of a message."""
    return IndexFile(message.path, message.size_bytes, unknown_of(message))


def index_file_message(item: IndexFile) -> wire.IndexFile:
    """The message of an index's file."""
    message = wire.IndexFile(path=item.path, size_bytes=item.size_bytes)
    put_unknown(message, item.unknown)
    return message
