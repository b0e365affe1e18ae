"""Files of version 0.1: rows in batches, each column of a batch one page.

Nulls of anything but strings are lost in this version: they read as zeros, false, empty lists, or the first item of
a dictionary. Empty strings of a nullable field read as null. That is how every implementation reads them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.types as pat

from lancelet.encodings.legacy import Place, read_plain, read_strings
from lancelet.encodings.values import Bytes
from lancelet.errors import Corrupt, LanceletError, Unsupported
from lancelet.file.carrying_out import run_steps
from lancelet.format.arrow import schema_to_arrow
from lancelet.format.columns import Range
from lancelet.format.fields import FileDescriptor, Schema
from lancelet.format.footer import LegacyFooter
from lancelet.format.legacy import (
    LegacyMetadata,
    parse_framed,
    parse_legacy_manifest,
    parse_legacy_metadata,
    parse_page_table,
)
from lancelet.format.versions import FileVersion
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store, maps_files

__all__ = ["LegacyFile", "open_legacy"]


@dataclass(frozen=True)
class LegacyFile:
    """A file of version 0.1, open for reading; immutable."""

    store: Store
    path: str
    size: int
    metadata: LegacyMetadata
    descriptor: FileDescriptor
    #: Position and length of the page of each field (counted from ``first_field``) and batch.
    pages: np.ndarray
    first_field: int
    #: The items of dictionary columns, by field id.
    dictionaries: Mapping[int, pa.Array]
    view: Bytes | None = None

    @property
    def uri(self) -> str:
        """The file as a user would name it."""
        return join_uri(self.store.uri, self.path)

    @property
    def version(self) -> FileVersion:
        """Always 0.1."""
        return FileVersion.V0_1

    @property
    def num_rows(self) -> int:
        """Rows in the file."""
        return self.descriptor.length

    def read(self, ranges: Sequence[Range]) -> list[Bytes]:
        """The bytes of each range."""
        if self.view is not None:
            return [self.view[start : start + size] for start, size in ranges]
        return [np.frombuffer(piece, np.uint8) for piece in self.store.read(self.path, ranges)]

    def page(self, field: int, batch: int) -> Place:
        """Position and length of a page."""
        row = field - self.first_field
        if not 0 <= row < len(self.pages):
            raise Corrupt(f"the page table has no field {field}", uri=self.uri)
        position, length = self.pages[row, batch].tolist()
        return position, length


def open_legacy(
    store: Store,
    path: str,
    *,
    size: int,
    footer: LegacyFooter,
    tail: memoryview,
    schema: Schema | None = None,
    field_ids: Sequence[int] | None = None,
    dictionaries: Mapping[int, pa.Array] | None = None,
) -> LegacyFile:
    """Open a file whose end has been read.

    A table gives the ``schema`` with its field ids, the ids of all ``field_ids`` in the file as the manifest lists
    them, and the items of its dictionaries; without, the file's own are used.
    """
    uri = join_uri(store.uri, path)
    with _at(uri):
        data = _Tail(store, path, size, tail)
        metadata = parse_legacy_metadata(parse_framed(data.since(footer.metadata_position), "legacy metadata"))
        own = Schema(())
        if metadata.manifest_position is not None:
            _check_position("manifest", metadata.manifest_position, size)
            own = Schema(parse_legacy_manifest(parse_framed(data.since(metadata.manifest_position), "legacy manifest")))
        elif schema is None:
            raise Unsupported("the file does not hold its schema", hint="open it through its table")
        ids = [field.id for field in own.walk()] if field_ids is None else list(field_ids)
        first = min(ids, default=0)
        pages = _page_table(data, metadata, max(ids, default=0) - first + 1)
        view = np.frombuffer(store.view(path), np.uint8) if maps_files(store) else None
        used = own if schema is None else schema
        file = LegacyFile(store, path, size, metadata, FileDescriptor(used, metadata.num_rows), pages, first, {}, view)
        return replace(file, dictionaries={**_dictionaries(file, own), **(dictionaries or {})})


@contextmanager
def _at(uri: str) -> Iterator[None]:
    try:
        yield
    except LanceletError as error:
        raise error.where(uri=uri) from None


class _Tail:
    """The end of the file, as far as it has been read."""

    def __init__(self, store: Store, path: str, size: int, tail: memoryview) -> None:
        self._store, self._path, self._size, self._tail = store, path, size, tail

    def since(self, position: int) -> memoryview:
        """The file from ``position`` on."""
        start = self._size - len(self._tail)
        if position < start:
            self._tail = memoryview(self._store.read(self._path, [(position, self._size - position)])[0])
            start = position
        return self._tail[position - start :]


def _check_position(what: str, position: int, size: int) -> None:
    if not 0 <= position <= size:
        raise Corrupt(f"{what} at byte {position:,}, the file has {size:,}")


def _page_table(data: _Tail, metadata: LegacyMetadata, fields: int) -> np.ndarray:
    batches = metadata.num_batches
    if not batches:
        return np.zeros((fields, 0, 2), np.int64)
    position, length = metadata.page_table_position, 16 * fields * batches
    _check_position("page table", position, data._size)
    found = data.since(position)[:length]
    if len(found) < length:
        raise Corrupt(f"page table has {len(found):,} bytes, expected {length:,} for {fields} fields")
    return parse_page_table(found, batches, data._size)


def _dictionaries(file: LegacyFile, schema: Schema) -> dict[int, pa.Array]:
    """The items of the dictionaries that the file holds itself."""
    found = {}
    for field in schema.walk():
        if field.dictionary is None or not field.logical_type.startswith("dict:") or not field.dictionary.length:
            continue
        kind = schema_to_arrow(Schema((field,))).field(0).type.value_type
        place, rows = (field.dictionary.offset, field.dictionary.length), slice(0, field.dictionary.length)
        _check_position("dictionary", place[0], file.size)
        whole = file.view is not None
        if pat.is_string(kind) or pat.is_binary(kind) or pat.is_large_string(kind) or pat.is_large_binary(kind):
            steps = read_strings(kind, place, rows, file.size, whole=whole, nullable=False)
        else:
            steps = read_plain(kind, place, rows, file.size, whole=whole)
        found[field.id] = run_steps(file, steps)()
    return found
