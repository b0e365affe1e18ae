"""Manifests and their fragments: nothing is lost on the way through them, and large ones stay cheap."""

from __future__ import annotations

import pickle
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.fields import Field, Schema
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment, parse_fragment, write_fragment
from lancelet.format.manifest import (
    BasePath,
    DataStorageFormat,
    Manifest,
    WriterVersion,
    data_version,
    parse_manifest,
    write_manifest,
)
from lancelet.format.protos import table_pb2 as wire

FILE = DataFile("a.lance", (0, 1), (0, 1), 2, 2, file_size=900, base_id=0)
FRAGMENT = Fragment(
    id=7,
    files=(FILE, DataFile("old.lance", (0, 3), file_major_version=0, file_minor_version=2)),
    physical_rows=10,
    deletion_file=DeletionFile(DeletionKind.BITMAP, read_version=3, id=99, num_deleted_rows=4, base_id=2),
    inline_row_ids=b"",
    inline_created_at_versions=b"\n\x00",
    column_row_ids=b"",
    column_last_updated_at_versions=b"",
    overlays=(b"\x18\x05",),
    clustering_id=1,
    metadata=(b"\n\x01k",),
)
SCHEMA = Schema((Field("a", "int64"), Field("s", "struct", children=(Field("b", "string"),))), {"k": "v", "e": ""})
MANIFEST = Manifest(
    schema=SCHEMA.with_ids(),
    fragments=Fragments([FRAGMENT]),
    version=12,
    timestamp=1_795_043_432_903_958_544,
    writer_version=WriterVersion("lancelet", "0.1.0", prerelease="rc.1"),
    data_format=DataStorageFormat(version="2.1"),
    reader_flags=1,
    writer_flags=1 << 63,
    max_fragment_id=0,
    next_row_id=10,
    config={"a": "1"},
    table_metadata={"b": "2"},
    base_paths=(BasePath(0, "/elsewhere", is_dataset_root=True), BasePath(2, "s3://b/p", name="")),
    branch="",
    transaction_file="0-x.txn",
    transaction_section=0,
    index_section=0,
    tag="t",
    max_allocated_field_id=0,
    fragment_tree=b"",
    clustering=(b"\x08\x01",),
    max_clustering_id=0,
)
#: A field numbered 900 that holds 5, and one numbered 901 that holds b"hi".
NEW = b"\xa0\x38\x05\xaa\x38\x02hi"


def many(count: int) -> Fragments:
    """Fragments with ids from 0, each tenth with deletions."""
    deleted = DeletionFile(DeletionKind.BITMAP, 1, 1, 10)
    return Fragments(
        Fragment(n, (DataFile("f" * 56, (0, 1), (0, 1), 2, 2, 100),), 1000, None if n % 10 else deleted)
        for n in range(count)
    )


def test_a_manifest_survives_being_written_with_all_that_is_set_and_all_that_is_not() -> None:
    for manifest in (MANIFEST, Manifest(Schema(()))):
        assert parse_manifest(write_manifest(manifest)) == manifest
        assert pickle.loads(pickle.dumps(manifest)) == manifest


def test_a_fragment_survives_being_written() -> None:
    for fragment in (FRAGMENT, Fragment(0)):
        assert parse_fragment(write_fragment(fragment)) == fragment
    assert FRAGMENT.num_rows == 6
    assert Fragment(0).num_rows is None


def test_what_newer_writers_add_anywhere_is_written_again() -> None:
    message = wire.Manifest.FromString(write_manifest(MANIFEST))
    fragment = message.fragments[0]
    places = (
        *(message, message.fields[1], message.writer_version, message.data_format, message.base_paths[0]),
        *(fragment, fragment.files[0], fragment.deletion_file),
    )
    for place in places:
        place.MergeFromString(NEW)
    data = message.SerializeToString(deterministic=True)
    assert data.count(NEW) == len(places)
    manifest = parse_manifest(data)
    assert write_manifest(manifest) == data
    # Also where the fragment was looked at and changed, and where others were added.
    changed = replace(manifest.fragments[0], physical_rows=20)
    after = write_manifest(replace(manifest, fragments=manifest.fragments.changed({7: changed}, added=[Fragment(8)])))
    assert after.count(NEW) == len(places)
    assert parse_manifest(after).fragments[0].physical_rows == 20


def test_a_transaction_is_found_where_earlier_writers_told_of_it_and_told_of_anew() -> None:
    data = wire.Manifest(deprecated_transaction_section=40).SerializeToString()
    manifest = parse_manifest(data)
    assert manifest.transaction_section == 40
    message = wire.Manifest.FromString(write_manifest(manifest))
    assert message.transaction_section == 40
    assert not message.HasField("deprecated_transaction_section")


@pytest.mark.parametrize(
    ("manifest", "label"),
    [
        (Manifest(Schema(())), "0.1"),
        (Manifest(Schema(()), writer_flags=4), "2.0"),
        (Manifest(Schema(()), fragments=Fragments([Fragment(0, (FILE,))])), "2.2"),
        (Manifest(Schema(()), fragments=Fragments([replace(FRAGMENT, files=FRAGMENT.files[1:])])), "0.1"),
        (Manifest(Schema(()), data_format=DataStorageFormat(version="legacy")), "0.1"),
    ],
)
def test_the_data_version_is_inferred_where_it_is_not_stated(manifest: Manifest, label: str) -> None:
    assert data_version(manifest).label == label


@pytest.mark.parametrize("stated", [DataStorageFormat(version="9.9"), DataStorageFormat("parquet", "2.2")])
def test_an_unknown_data_format_is_refused(stated: DataStorageFormat) -> None:
    with pytest.raises(Unsupported, match="data files"):
        data_version(replace(MANIFEST, data_format=stated))


def test_base_paths_are_found_by_id() -> None:
    assert MANIFEST.base_path(2).path == "s3://b/p"
    with pytest.raises(Corrupt, match="base path 1, but the manifest's base paths are 0, 2"):
        MANIFEST.base_path(1)


@pytest.mark.parametrize(
    ("message", "why"),
    [
        (wire.Fragment(files=[wire.DataFile(fields=[1, 2], column_indices=[0])]), "2 fields in 1 columns"),
        (wire.Fragment(physical_rows=2, deletion_file=wire.DeletionFile(num_deleted_rows=3)), "3 of 2 rows"),
    ],
)
def test_a_fragment_that_contradicts_itself_is_corrupt(message: wire.Fragment, why: str) -> None:
    with pytest.raises(Corrupt, match=why):
        parse_fragment(message.SerializeToString())


def test_a_deletion_file_of_unknown_kind_is_unsupported() -> None:
    with pytest.raises(Unsupported, match="kind 2"):
        parse_fragment(b"\x1a\x02\x08\x02")


@pytest.mark.parametrize(
    "manifest",
    [
        Manifest(Schema(()), version=-1),
        Manifest(Schema(()), max_fragment_id=1 << 32),
        Manifest(Schema(()), config={"a": "\udcff"}),
        Manifest(Schema(()), config={"a": 1}),  # type: ignore[dict-item]
    ],
)
def test_values_that_cannot_be_stored_are_refused(manifest: Manifest) -> None:
    with pytest.raises(InvalidInput, match="cannot be stored"):
        write_manifest(manifest)


def test_a_fragment_that_cannot_be_stored_is_refused() -> None:
    with pytest.raises(InvalidInput, match="fragment -1"):
        Fragments([Fragment(-1)])


def test_the_list_of_fragments_is_a_sequence_that_counts_all_at_once() -> None:
    fragments = many(25)
    assert [item.id for item in fragments] == fragments.ids().tolist() == list(range(25))
    assert fragments[-1].id == 24
    assert fragments[3:5].ids().tolist() == [3, 4]
    assert fragments.physical_rows().sum() == 25_000
    assert fragments.deleted_rows().tolist()[:2] == [10, 0]
    assert fragments.with_deletions() == [0, 10, 20]
    assert fragments.without_counts() == []
    assert fragments.versions() == {(2, 2)}
    assert fragments.place_of(7) == 7
    assert fragments.place_of(70) is None
    assert fragments.row_ids_known() == (False, False)
    assert Fragments().row_ids_known() == (False, True)
    assert Fragments([Fragment(1), Fragment(2, physical_rows=3, deletion_file=None)]).without_counts() == [0]
    assert fragments != many(24)
    assert hash(fragments) == hash(many(25))
    with pytest.raises(IndexError):
        fragments[25]


def test_fragments_are_replaced_left_out_and_added_without_touching_the_list_they_came_from() -> None:
    before = many(5)
    after = before.changed({1: None, 3: Fragment(3, physical_rows=1), 4: None, 77: None}, added=[Fragment(9)])
    assert after.ids().tolist() == [0, 2, 3, 9]
    assert after.physical_rows().tolist() == [1000, 1000, 1, 0]
    assert before == many(5)


def test_counts_beyond_what_rows_can_be_addressed_are_corrupt() -> None:
    with pytest.raises(Corrupt, match="counts"):
        Fragments([Fragment(0, physical_rows=1 << 40)]).physical_rows()


def test_fragments_are_looked_at_once_for_all_their_counts() -> None:
    fragments, looks = many(20), list[object]()
    sys.setprofile(lambda _, event, what: looks.append(what.__name__) if event == "c_call" else None)
    try:
        fragments.physical_rows(), fragments.deleted_rows(), fragments.without_counts(), fragments.with_deletions()
    finally:
        sys.setprofile(None)
    assert looks.count("HasField") == len(fragments)


def test_fragments_whose_deletion_file_does_not_say_how_many_rows_it_has_are_without_counts() -> None:
    silent = DeletionFile(DeletionKind.BITMAP, 1, 1, None)
    fragments = Fragments([*many(2), Fragment(2, physical_rows=5, deletion_file=silent)])
    assert (fragments.without_counts(), fragments.with_deletions()) == ([2], [0, 2])
    assert fragments.deleted_rows().tolist() == [10, 0, 0]


def test_the_bytes_of_a_manifest_are_those_of_one_message_with_its_fields_in_order() -> None:
    for manifest in (MANIFEST, Manifest(Schema(()), fragments=many(3)), Manifest(Schema(()))):
        data = write_manifest(manifest)
        assert wire.Manifest.FromString(data).SerializeToString(deterministic=True) == data


@pytest.mark.timing
def test_a_manifest_of_a_hundred_thousand_fragments_opens_in_a_second_and_makes_no_object_for_each() -> None:
    data = write_manifest(replace(MANIFEST, fragments=many(100_000)))
    began = time.perf_counter()
    manifest = parse_manifest(data)
    assert len(manifest.fragments) == 100_000
    assert time.perf_counter() - began < 1
    assert int(np.sum(manifest.fragments.physical_rows())) == 100_000_000
