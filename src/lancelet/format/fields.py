"""Fields and schemas: the tree of named, typed, numbered columns, to and from the wire's depth-first list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from itertools import count

from lancelet.errors import Corrupt, InvalidInput
from lancelet.format.protos import schema_pb2 as wire
from lancelet.format.wire import MAX_DEPTH, parse_message, write_message

__all__ = [
    "EXTENSION_METADATA",
    "EXTENSION_NAME",
    "DictionaryPlace",
    "Field",
    "FieldEncoding",
    "FileDescriptor",
    "Schema",
    "parse_fields",
    "parse_file_descriptor",
    "parse_schema",
    "write_fields",
    "write_file_descriptor",
    "write_schema",
]

EXTENSION_NAME = "ARROW:extension:name"
EXTENSION_METADATA = "ARROW:extension:metadata"

_BLOB = "lance-encoding:blob"


class FieldEncoding(IntEnum):
    """How 0.1 files store a field. Later writers fill it in as well; nobody reads it there."""

    NONE = 0
    PLAIN = 1
    VAR_BINARY = 2
    DICTIONARY = 3
    RLE = 4


@dataclass(frozen=True, slots=True)
class DictionaryPlace:
    """Where a 0.1 file keeps a field's dictionary: byte offset and number of values."""

    offset: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Field:
    """One field and the fields within it. ``id`` is -1 until assigned; mappings are not to be changed.

    >>> point = Field("p", "struct", children=(Field("x", "float"), Field("y", "float")))
    >>> [(f.name, f.id, f.parent_id) for f in Schema((point,)).with_ids().walk()]
    [('p', 0, -1), ('x', 1, 0), ('y', 2, 0)]
    """

    name: str
    logical_type: str
    nullable: bool = True
    children: tuple[Field, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    id: int = -1
    parent_id: int = -1
    encoding: FieldEncoding = FieldEncoding.NONE
    dictionary: DictionaryPlace | None = None
    primary_key: bool = False
    primary_key_position: int = 0
    clustering_key: bool = False
    clustering_key_position: int = 0

    @property
    def extension_name(self) -> str | None:
        """The Arrow extension type's name, if the field has one."""
        return self.metadata.get(EXTENSION_NAME)

    def walk(self) -> Iterator[Field]:
        """The field and all within it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Schema:
    """Top-level fields and metadata of a file or a table."""

    fields: tuple[Field, ...]
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)

    def walk(self) -> Iterator[Field]:
        """All fields, depth first: the order in which they are stored."""
        for top in self.fields:
            yield from top.walk()

    def with_ids(self, first: int = 0) -> Schema:
        """The same schema with every field numbered depth first from ``first``."""
        numbers = count(first)
        return replace(self, fields=tuple(_number(top, -1, lambda: next(numbers)) for top in self.fields))

    def by_id(self) -> dict[int, Field]:
        """Fields by their ids."""
        return {item.id: item for item in self.walk()}

    def find(self, path: str) -> Field | None:
        """The field at a dotted path such as ``"a.b"``, or None."""
        fields: Sequence[Field] = self.fields
        found: Field | None = None
        for name in path.split("."):
            found = next((item for item in fields if item.name == name), None)
            if found is None:
                return None
            fields = found.children
        return found


def _number(item: Field, parent: int, next_id: Callable[[], int]) -> Field:
    own = next_id()
    children = tuple(_number(child, own, next_id) for child in item.children)
    return replace(item, id=own, parent_id=parent, children=children)


@dataclass(frozen=True, slots=True)
class FileDescriptor:
    """Global buffer 0 of a data file: its schema and how many rows it has."""

    schema: Schema
    length: int


def parse_file_descriptor(data: bytes | bytearray | memoryview) -> FileDescriptor:
    """The descriptor in a file's first global buffer.

    >>> descriptor = FileDescriptor(Schema((Field("a", "int32"),)).with_ids(), 5)
    >>> parse_file_descriptor(write_file_descriptor(descriptor)) == descriptor
    True
    """
    message = parse_message(wire.FileDescriptor, data, "file descriptor")
    return FileDescriptor(_read_schema(message.schema), message.length)


def write_file_descriptor(descriptor: FileDescriptor) -> bytes:
    """The bytes of a ``FileDescriptor`` message."""
    message = wire.FileDescriptor(schema=_write_schema(descriptor.schema), length=descriptor.length)
    return write_message(message)


def parse_schema(data: bytes | bytearray | memoryview) -> Schema:
    """The schema that the bytes of a ``Schema`` message describe."""
    return _read_schema(parse_message(wire.Schema, data, "schema"))


def write_schema(schema: Schema) -> bytes:
    """The bytes of a ``Schema`` message."""
    return write_message(_write_schema(schema))


def _read_schema(message: wire.Schema) -> Schema:
    return Schema(parse_fields(message.fields), _read_metadata(message.metadata))


def _write_schema(schema: Schema) -> wire.Schema:
    return wire.Schema(fields=write_fields(schema.fields), metadata=_write_metadata(schema.metadata))


def parse_fields(messages: Iterable[wire.Field]) -> tuple[Field, ...]:
    """The tree that a stored list of fields describes: a child names its parent, which stands before it.

    The children of a blob's description have no ids of their own (-1): they belong to the blob field before them.
    """
    flat: list[Field] = []
    below: dict[int, list[int]] = {}
    places: dict[int, int] = {}
    depths: list[int] = []
    blob: int | None = None
    for place, message in enumerate(messages):
        item = _read_field(message)
        flat.append(item)
        parent: int | None = -1
        if item.id == -1 and item.parent_id == -1 and blob is not None:
            parent = blob
        elif item.parent_id != -1:
            parent = places.get(item.parent_id)
        if parent is None:
            raise Corrupt(f"field {item.name!r} has parent {item.parent_id}, expected the id of a field before it")
        depths.append(depths[parent] + 1 if parent >= 0 else 0)
        if depths[place] >= MAX_DEPTH:
            raise Corrupt(f"field {item.name!r} is nested more than {MAX_DEPTH} levels deep")
        below.setdefault(parent, []).append(place)
        if item.id != -1:
            if item.id in places:
                raise Corrupt(f"field {item.name!r} has id {item.id}, which another field has as well")
            places[item.id] = place
            blob = place if item.logical_type == "struct" and _BLOB in item.metadata else None
    for place in range(len(flat) - 1, -1, -1):
        if place in below:
            flat[place] = replace(flat[place], children=tuple(flat[child] for child in below[place]))
    return tuple(flat[place] for place in below.get(-1, ()))


def write_fields(fields: Iterable[Field]) -> list[wire.Field]:
    """The stored, depth-first list of a tree of fields."""
    return [_write_field(item) for top in fields for item in top.walk()]


def _read_field(message: wire.Field) -> Field:
    metadata = _read_metadata(message.metadata)
    if message.extension_name:
        metadata.setdefault(EXTENSION_NAME, message.extension_name)
    encoding = int(message.encoding)
    place = message.dictionary if message.HasField("dictionary") else None
    return Field(
        name=message.name,
        logical_type=message.logical_type,
        nullable=message.nullable,
        metadata=metadata,
        id=message.id,
        parent_id=message.parent_id,
        encoding=FieldEncoding(encoding) if 0 <= encoding <= FieldEncoding.RLE else FieldEncoding.NONE,
        dictionary=None if place is None else DictionaryPlace(place.offset, place.length),
        primary_key=message.unenforced_primary_key,
        primary_key_position=message.unenforced_primary_key_position,
        clustering_key=message.unenforced_clustering_key,
        clustering_key_position=message.unenforced_clustering_key_position,
    )


def _write_field(item: Field) -> wire.Field:
    place = item.dictionary
    try:
        return wire.Field(
            name=item.name,
            id=item.id,
            parent_id=item.parent_id,
            logical_type=item.logical_type,
            nullable=item.nullable,
            encoding=wire.FieldEncoding.ValueType(item.encoding),
            dictionary=None if place is None else wire.DictionaryPlace(offset=place.offset, length=place.length),
            extension_name=item.extension_name or "",
            metadata=_write_metadata(item.metadata),
            unenforced_primary_key=item.primary_key,
            unenforced_primary_key_position=item.primary_key_position,
            unenforced_clustering_key=item.clustering_key,
            unenforced_clustering_key_position=item.clustering_key_position,
        )
    except ValueError as error:
        raise InvalidInput(f"field {item.name!r} cannot be stored: {error}") from None


def _read_metadata(entries: Mapping[str, bytes]) -> dict[str, str]:
    # Values are text by convention only: bytes that are not UTF-8 survive as lone surrogates and are written unchanged.
    return {key: value.decode("utf-8", "surrogateescape") for key, value in entries.items()}


def _write_metadata(entries: Mapping[str, str]) -> dict[str, bytes]:
    return {key: value.encode("utf-8", "surrogateescape") for key, value in entries.items()}
