"""Manifests: all that one version of a table consists of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from google.protobuf.timestamp_pb2 import Timestamp

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.fields import Schema, parse_fields, write_fields
from lancelet.format.fragment_list import Fragments
from lancelet.format.preserve import bytes_of_texts, put_unknown, storable, texts_of_bytes, unknown_of
from lancelet.format.protos import table_pb2 as wire
from lancelet.format.versions import DEFAULT_VERSION, FileVersion
from lancelet.format.wire import parse_message, write_message

__all__ = [
    "BasePath",
    "DataStorageFormat",
    "Manifest",
    "WriterVersion",
    "base_path_message",
    "data_version",
    "parse_aux_data",
    "parse_manifest",
    "read_base_path",
    "write_aux_data",
    "write_manifest",
]

_NANOSECONDS = 10**9
_DEAD_V2_FLAG = 4


@dataclass(frozen=True, slots=True)
class WriterVersion:
    """Who wrote a manifest. ``version`` is the three numbers; what follows them stands apart."""

    library: str
    version: str
    prerelease: str | None = None
    build_metadata: str | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class DataStorageFormat:
    """The format, and the version of it, in which a table's data files are written."""

    file_format: str = "lance"
    version: str = DEFAULT_VERSION.label
    unknown: bytes = b""


@dataclass(frozen=True, slots=True)
class BasePath:
    """A place besides the table's own where files of it lie. Look up by ``id``: the order says nothing."""

    id: int
    path: str
    #: Whether files lie in ``data``, ``_deletions`` and so on below the path, as in a table, or directly in it.
    is_dataset_root: bool = False
    name: str | None = None
    unknown: bytes = b""


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Manifest:
    """One version of a table. Fields and mappings are not to be changed; ``dataclasses.replace`` makes the next one.

    >>> manifest = Manifest(Schema(()), version=3, config={"a": "1"})
    >>> parse_manifest(write_manifest(manifest)) == manifest
    True
    """

    schema: Schema
    fragments: Fragments = field(default_factory=Fragments)
    version: int = 1
    #: Nanoseconds since the epoch; None where the writer did not say.
    timestamp: int | None = None
    writer_version: WriterVersion | None = None
    data_format: DataStorageFormat | None = None
    reader_flags: int = 0
    writer_flags: int = 0
    #: The highest id ever given to a fragment; None as long as none was.
    max_fragment_id: int | None = None
    next_row_id: int = 0
    config: Mapping[str, str] = field(default_factory=dict, hash=False)
    table_metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    base_paths: tuple[BasePath, ...] = ()
    #: None on the main branch.
    branch: str | None = None
    #: Name of the transaction's file; empty where there is none.
    transaction_file: str = ""
    #: Positions in the manifest's own file, set when it is written.
    transaction_section: int | None = None
    index_section: int | None = None
    version_aux_data: int = 0
    #: Old tables carry their tag in the manifest.
    tag: str = ""
    #: The highest id ever given to a field, where ids are never used again.
    max_allocated_field_id: int | None = None
    #: Carried along unread.
    fragment_tree: bytes | None = None
    clustering: tuple[bytes, ...] = ()
    max_clustering_id: int | None = None
    unknown: bytes = b""
    #: What newer writers said about fields of the schema, by their ids.
    unknown_of_fields: Mapping[int, bytes] = field(default_factory=dict, hash=False)

    def base_path(self, base_id: int) -> BasePath:
        """The base path with an id; Corrupt if there is none, because a file named it."""
        for item in self.base_paths:
            if item.id == base_id:
                return item
        known = ", ".join(str(item.id) for item in self.base_paths) or "none"
        raise Corrupt(f"a file lies below base path {base_id}, but the manifest's base paths are {known}")


def data_version(manifest: Manifest) -> FileVersion:
    """The version in which data files of the table are written; inferred where an old manifest does not say.

    >>> data_version(Manifest(Schema(()), data_format=DataStorageFormat(version="2.1"))).label
    '2.1'
    """
    stated = manifest.data_format
    if stated is None:
        found = {FileVersion.from_numbers(*numbers) for numbers in manifest.fragments.versions()}
        if found:
            return max(found)
        return FileVersion.V2_0 if manifest.writer_flags & _DEAD_V2_FLAG else FileVersion.V0_1
    if stated.file_format != "lance":
        raise Unsupported(f"the table's data files are of format {stated.file_format!r}, expected 'lance'")
    try:
        return FileVersion.parse(stated.version)
    except InvalidInput as error:
        raise Unsupported(f"the table's data files: {error.message}") from None


def parse_manifest(data: bytes | memoryview) -> Manifest:
    """The manifest that the bytes of a message describe; its fragments are not looked at one by one."""
    message = parse_message(wire.Manifest, data, "manifest")
    time, writer, stored = message.timestamp, message.writer_version, message.data_format
    schema = Schema(parse_fields(message.fields), texts_of_bytes(message.schema_metadata))
    transaction_section = message.transaction_section if message.HasField("transaction_section") else None
    if transaction_section is None and message.HasField("deprecated_transaction_section"):
        transaction_section = message.deprecated_transaction_section
    return Manifest(
        schema=schema,
        version=message.version,
        timestamp=time.seconds * _NANOSECONDS + time.nanos if message.HasField("timestamp") else None,
        writer_version=_read_writer_version(writer) if message.HasField("writer_version") else None,
        data_format=_read_data_format(stored) if message.HasField("data_format") else None,
        reader_flags=message.reader_feature_flags,
        writer_flags=message.writer_feature_flags,
        max_fragment_id=message.max_fragment_id if message.HasField("max_fragment_id") else None,
        next_row_id=message.next_row_id,
        config=dict(message.config),
        table_metadata=dict(message.table_metadata),
        base_paths=tuple(read_base_path(item) for item in message.base_paths),
        branch=message.branch if message.HasField("branch") else None,
        transaction_file=message.transaction_file,
        transaction_section=transaction_section,
        index_section=message.index_section if message.HasField("index_section") else None,
        version_aux_data=message.version_aux_data,
        tag=message.tag,
        max_allocated_field_id=message.max_allocated_field_id if message.HasField("max_allocated_field_id") else None,
        fragment_tree=message.fragment_tree if message.HasField("fragment_tree") else None,
        clustering=tuple(message.clustering),
        max_clustering_id=message.max_clustering_id if message.HasField("max_clustering_id") else None,
        unknown=unknown_of(message),
        unknown_of_fields={item.id: more for item in message.fields if (more := unknown_of(item))},
        # The last of all: it empties the message of everything else.
        fragments=Fragments.of_message(message),
    )


def write_manifest(manifest: Manifest) -> bytes:
    """The bytes of the message that describes a manifest; a transaction's place is told in today's field only."""
    with storable(f"manifest of version {manifest.version}"):
        fields = write_fields(manifest.schema.fields)
        for item in fields:
            put_unknown(item, manifest.unknown_of_fields.get(item.id, b""))
        front = wire.Manifest(fields=fields)
        rest = wire.Manifest(
            version=manifest.version,
            version_aux_data=manifest.version_aux_data,
            schema_metadata=bytes_of_texts(manifest.schema.metadata),
            index_section=manifest.index_section,
            timestamp=_timestamp_message(manifest.timestamp),
            tag=manifest.tag,
            reader_feature_flags=manifest.reader_flags,
            writer_feature_flags=manifest.writer_flags,
            max_fragment_id=manifest.max_fragment_id,
            transaction_file=manifest.transaction_file,
            writer_version=_writer_version_message(manifest.writer_version),
            next_row_id=manifest.next_row_id,
            data_format=_data_format_message(manifest.data_format),
            config=manifest.config,
            base_paths=[base_path_message(item) for item in manifest.base_paths],
            table_metadata=manifest.table_metadata,
            branch=manifest.branch,
            fragment_tree=manifest.fragment_tree,
            transaction_section=manifest.transaction_section,
            max_allocated_field_id=manifest.max_allocated_field_id,
            clustering=manifest.clustering,
            max_clustering_id=manifest.max_clustering_id,
        )
    put_unknown(rest, manifest.unknown)
    # Messages one behind another are read as one; in the order of their fields' numbers they are that one's bytes.
    return b"".join((write_message(front), manifest.fragments.serialized(), write_message(rest)))


def parse_aux_data(data: bytes | memoryview) -> dict[str, bytes]:
    """The metadata of a version that old writers kept apart from its manifest."""
    return dict(parse_message(wire.VersionAuxData, data, "auxiliary data of a version").metadata)


def write_aux_data(metadata: Mapping[str, bytes]) -> bytes:
    """The bytes of a version's auxiliary metadata.

    >>> parse_aux_data(write_aux_data({"a": b"1"}))
    {'a': b'1'}
    """
    with storable("auxiliary data of a version"):
        return write_message(wire.VersionAuxData(metadata=metadata))


def read_base_path(message: wire.BasePath) -> BasePath:
    """The dataclass of a message."""
    name = message.name if message.HasField("name") else None
    return BasePath(message.id, message.path, message.is_dataset_root, name, unknown_of(message))


def base_path_message(item: BasePath) -> wire.BasePath:
    """The message of a base path."""
    with storable(f"base path {item.id}"):
        message = wire.BasePath(id=item.id, name=item.name, is_dataset_root=item.is_dataset_root, path=item.path)
    put_unknown(message, item.unknown)
    return message


def _timestamp_message(time: int | None) -> Timestamp | None:
    if time is None:
        return None
    seconds, nanoseconds = divmod(time, _NANOSECONDS)
    return Timestamp(seconds=seconds, nanos=nanoseconds)


def _read_writer_version(message: wire.WriterVersion) -> WriterVersion:
    return WriterVersion(
        library=message.library,
        version=message.version,
        prerelease=message.prerelease if message.HasField("prerelease") else None,
        build_metadata=message.build_metadata if message.HasField("build_metadata") else None,
        unknown=unknown_of(message),
    )


def _writer_version_message(item: WriterVersion | None) -> wire.WriterVersion | None:
    if item is None:
        return None
    message = wire.WriterVersion(
        library=item.library, version=item.version, prerelease=item.prerelease, build_metadata=item.build_metadata
    )
    put_unknown(message, item.unknown)
    return message


def _read_data_format(message: wire.DataStorageFormat) -> DataStorageFormat:
    return DataStorageFormat(message.file_format, message.version, unknown_of(message))


def _data_format_message(item: DataStorageFormat | None) -> wire.DataStorageFormat | None:
    if item is None:
        return None
    message = wire.DataStorageFormat(file_format=item.file_format, version=item.version)
    put_unknown(message, item.unknown)
    return message
