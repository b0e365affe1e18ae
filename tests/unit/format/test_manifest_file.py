"""The frame of a manifest's file: sections are found where the manifest says, or the file is corrupt."""

from __future__ import annotations

import struct
from dataclasses import replace
from uuid import UUID

import pytest

from lancelet.errors import Corrupt
from lancelet.format.fields import Schema
from lancelet.format.indexes import IndexDetails, IndexFile, IndexMetadata, IndexSection, parse_index_section
from lancelet.format.indexes import write_index_section as write_section
from lancelet.format.manifest import Manifest, write_aux_data, write_manifest
from lancelet.format.manifest_file import TRAILER_SIZE, parse_manifest_file, write_manifest_file
from lancelet.format.operations import Restore
from lancelet.format.protos import indexes_pb2
from lancelet.format.transaction import Transaction

INDEX = IndexMetadata(
    uuid=UUID(int=5),
    name="a_idx",
    fields=(0, 3),
    dataset_version=2,
    fragment_bitmap=b"\x3a\x30",
    details=IndexDetails("/lance.table.BTreeIndexDetails", b"x"),
    index_version=0,
    created_at=0,
    base_id=0,
    files=(IndexFile("page_data.lance", 9),),
    covering_fields=(3,),
    clustering_id=0,
    metadata=(b"\n\x01a",),
)
MANIFEST = Manifest(Schema(()), version=4, version_aux_data=77)
TRANSACTION = Transaction(3, Restore(1))


def test_a_file_holds_indexes_transaction_and_manifest_in_this_order() -> None:
    data = write_manifest_file(MANIFEST, indexes=[INDEX], transaction=TRANSACTION)
    file = parse_manifest_file(data)
    assert file.manifest.index_section == 0
    assert file.manifest.transaction_section == 4 + len(write_section([INDEX]))
    assert file.index_section() == IndexSection((INDEX,))
    assert file.transaction() == TRANSACTION
    assert file.aux_data() == {}
    assert data.endswith(b"\x00\x00\x02\x00LANC")


def test_a_file_without_indexes_or_transaction_says_so() -> None:
    file = parse_manifest_file(write_manifest_file(replace(MANIFEST, index_section=3, transaction_section=9)))
    assert (file.manifest.index_section, file.manifest.transaction_section) == (None, None)
    assert file.index_section() == IndexSection()
    assert file.transaction() is None


def test_auxiliary_data_of_old_tables_is_read() -> None:
    aux = write_aux_data({"k": b"v"})
    manifest = write_manifest(replace(MANIFEST, version_aux_data=2))
    pieces = [b"..", struct.pack("<I", len(aux)), aux, struct.pack("<I", len(manifest)), manifest]
    data = b"".join(pieces) + struct.pack("<QHH4s", 6 + len(aux), 0, 2, b"LANC")
    assert parse_manifest_file(data).aux_data() == {"k": b"v"}


def test_what_newer_writers_say_of_an_index_is_kept() -> None:
    new = b"\xa0\x38\x05"
    message = indexes_pb2.IndexSection.FromString(write_section([INDEX]))
    for place in (message, message.indices[0], message.indices[0].files[0]):
        place.MergeFromString(new)
    data = message.SerializeToString()
    assert write_section(parse_index_section(data)) == data
    assert data.count(new) == 3


def test_keyed_fields_are_those_that_are_not_only_carried() -> None:
    assert INDEX.keyed_fields == (0,)
    assert replace(INDEX, covering_fields=()).keyed_fields == (0, 3)


@pytest.mark.parametrize(
    ("index", "why"),
    [
        (indexes_pb2.IndexMetadata(name="i", uuid=indexes_pb2.Uuid(uuid=b"123")), "id of 3 bytes"),
        (indexes_pb2.IndexMetadata(name="i", fields=[1, 2], covering_fields=[1]), "expected the last"),
    ],
)
def test_an_index_that_makes_no_sense_is_corrupt(index: indexes_pb2.IndexMetadata, why: str) -> None:
    with pytest.raises(Corrupt, match=why):
        parse_index_section(indexes_pb2.IndexSection(indices=[index]).SerializeToString())


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "0 bytes"),
        (b"LANC", "4 bytes"),
        (b"\x00" * 40, "ends in"),
        (struct.pack("<QHH4s", 0, 0, 2, b"LANC"), "starts at byte 0"),
        (struct.pack("<QHH4s", 1 << 63, 0, 2, b"LANC"), "starts at byte"),
        (struct.pack("<IQHH4s", 1, 0, 0, 2, b"LANC"), "1 bytes long"),
        (struct.pack("<IQHH4s", 0xFFFFFFFF, 0, 0, 2, b"LANC"), "4294967295 bytes long"),
    ],
)
def test_a_broken_frame_is_corrupt_and_names_the_file(data: bytes, why: str) -> None:
    with pytest.raises(Corrupt, match=why) as caught:
        parse_manifest_file(data, uri="memory://t/1.manifest")
    assert caught.value.uri == "memory://t/1.manifest"


def test_a_section_outside_the_file_is_corrupt_and_names_the_version() -> None:
    body = write_manifest(replace(MANIFEST, transaction_section=1 << 40, index_section=0))
    data = struct.pack("<I", len(body)) + body + struct.pack("<QHH4s", 0, 0, 2, b"LANC")
    file = parse_manifest_file(data, uri="a")
    with pytest.raises(Corrupt, match="transaction starts at") as caught:
        file.transaction()
    assert (caught.value.version, caught.value.uri) == (4, "a")
    assert TRAILER_SIZE == 16
