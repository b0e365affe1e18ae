"""Manifest files: a manifest with the indexes and the transaction of its version, in one file.

    values of dictionaries       of tables of 0.1 that have such columns
    [u32 length, IndexSection]   where there are indexes
    [u32 length, Transaction]    where the writer puts it inline
    [u32 length, Manifest]
    u64 position of the manifest's length | u16 0 | u16 2 | "LANC"

Integers are little endian. The manifest says where the two sections start; either may start at 0. The schema says where
in the file the values of a dictionary are, so that they stay at the front from version to version.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from lancelet.errors import Corrupt, InvalidInput, LanceletError
from lancelet.format.indexes import IndexMetadata, IndexSection, parse_index_section, write_index_section
from lancelet.format.manifest import Manifest, parse_aux_data, parse_manifest, write_manifest
from lancelet.format.transaction import Transaction, parse_transaction, write_transaction

__all__ = ["TRAILER_SIZE", "ManifestFile", "parse_manifest_file", "write_manifest_file"]

_LENGTH = struct.Struct("<I")
_TRAILER = struct.Struct("<QHH4s")
_NUMBERS = (0, 2)
_MAGIC = b"LANC"

#: Bytes at the end of the file that say where the manifest is.
TRAILER_SIZE = _TRAILER.size

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A manifest and the bytes of its file; what else the file holds is parsed when it is asked for."""

    manifest: Manifest
    data: memoryview
    uri: str | None = None

    def index_section(self) -> IndexSection:
        """The indexes of the version."""
        place = self.manifest.index_section
        return IndexSection() if place is None else self._parsed(place, "index section", parse_index_section)

    def transaction(self) -> Transaction | None:
        """The transaction that made the version; None if the file does not hold it."""
        place = self.manifest.transaction_section
        return None if place is None else self._parsed(place, "transaction", parse_transaction)

    def aux_data(self) -> dict[str, bytes]:
        """Metadata of the version that old writers kept apart."""
        place = self.manifest.version_aux_data
        return {} if place == 0 else self._parsed(place, "auxiliary data", parse_aux_data)

    def dictionary_values(self) -> bytes:
        """What stands before all sections: the values of dictionary columns, in the manifests of tables of 0.1."""
        if not any(item.dictionary is not None and item.dictionary.length for item in self.manifest.schema.walk()):
            return b""
        manifest = self.manifest
        places = [manifest.index_section, manifest.transaction_section, manifest.version_aux_data or None]
        first = min(place for place in (*places, _position(self.data)) if place is not None)
        return self.data[:first].tobytes()

    def _parsed(self, place: int, what: str, parse: Callable[[memoryview], _T]) -> _T:
        try:
            return parse(_section(self.data, place, what))
        except LanceletError as error:
            raise error.where(uri=self.uri, version=self.manifest.version) from None


def parse_manifest_file(data: bytes | memoryview, *, uri: str | None = None) -> ManifestFile:
    """The manifest in a whole file; ``uri`` names the file in errors.

    >>> from lancelet.format.fields import Schema
    >>> file = parse_manifest_file(write_manifest_file(Manifest(Schema(()), version=4)))
    >>> file.manifest.version, file.index_section().indexes, file.transaction()
    (4, (), None)
    """
    view = memoryview(data).cast("B") if len(data) else memoryview(b"")
    try:
        return ManifestFile(parse_manifest(_section(view, _position(view), "manifest")), view, uri)
    except LanceletError as error:
        raise error.where(uri=uri) from None


def write_manifest_file(
    manifest: Manifest,
    *,
    indexes: IndexSection | Iterable[IndexMetadata] = (),
    transaction: Transaction | bytes | None = None,
    dictionary_values: bytes = b"",
) -> bytes:
    """The bytes of a file with a manifest, the indexes of its version, and the transaction that made it, or its bytes.

    ``dictionary_values`` come first, where the schema says they are. Positions in ``manifest`` are set to where the
    sections come to lie; auxiliary data is not carried over.
    """
    section = indexes if isinstance(indexes, IndexSection) else IndexSection(tuple(indexes))
    pieces = [dictionary_values]
    index_place = _put(pieces, write_index_section(section)) if section.indexes or section.unknown else None
    told = write_transaction(transaction) if isinstance(transaction, Transaction) else transaction
    transaction_place = None if told is None else _put(pieces, told)
    placed = replace(manifest, index_section=index_place, transaction_section=transaction_place, version_aux_data=0)
    position = _put(pieces, write_manifest(placed))
    return b"".join([*pieces, _TRAILER.pack(position, *_NUMBERS, _MAGIC)])


def _put(pieces: list[bytes], message: bytes) -> int:
    if len(message) >= 1 << 32:
        raise InvalidInput(f"a section of a manifest's file has {len(message)} bytes, expected fewer than {1 << 32}")
    place = sum(map(len, pieces))
    pieces += [_LENGTH.pack(len(message)), message]
    return place


def _position(data: memoryview) -> int:
    if len(data) < TRAILER_SIZE:
        raise Corrupt(f"manifest file has {len(data)} bytes, expected at least {TRAILER_SIZE}")
    # The numbers are those of the file's frame, which no writer has ever changed; flags tell of what is new.
    position, _, _, magic = _TRAILER.unpack(data[-TRAILER_SIZE:])
    if magic != _MAGIC:
        raise Corrupt(f"manifest file ends in {magic!r}, expected {_MAGIC!r}", byte_range=(len(data) - 4, 4))
    return int(position)


def _section(data: memoryview, place: int, what: str) -> memoryview:
    limit = len(data) - TRAILER_SIZE
    if place + _LENGTH.size > limit:
        raise Corrupt(f"{what} starts at byte {place}, expected its length before byte {limit}")
    (length,) = _LENGTH.unpack(data[place : place + _LENGTH.size])
    start = place + _LENGTH.size
    if length > limit - start:
        found = f"{what} at byte {start} is {length} bytes long, but the file's sections end at {limit}"
        raise Corrupt(found, byte_range=(place, _LENGTH.size))
    return data[start : start + length]
