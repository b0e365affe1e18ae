"""Manifests, transactions, indexes, row ids and refs with damaged bytes: typed errors only, and soon."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lancelet.errors import Corrupt, InvalidInput, LanceletError, Unsupported
from lancelet.format import operations as do
from lancelet.format import row_ids
from lancelet.format.fields import Field, Schema
from lancelet.format.flags import check_writable, flags_for
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment
from lancelet.format.indexes import IndexDetails, IndexMetadata
from lancelet.format.manifest import BasePath, DataStorageFormat, Manifest, data_version
from lancelet.format.manifest_file import parse_manifest_file, write_manifest_file
from lancelet.format.refs import Branch, Tag, parse_branch, parse_tag, write_branch, write_tag
from lancelet.format.transaction import Transaction, parse_transaction, write_transaction

ARRAY = row_ids.PackedArray.of(np.array([3, 5, 70_000], np.uint64))
SEGMENTS: list[row_ids.Segment] = [
    row_ids.Range(0, 5),
    row_ids.RangeWithHoles(0, 80_000, ARRAY),
    row_ids.RangeWithBitmap(8, 24, b"ab"),
    row_ids.SortedArray(ARRAY),
    row_ids.PlainArray(ARRAY),
]
FRAGMENT = Fragment(
    id=3,
    files=(DataFile("a.lance", (0, 1), (0, 1), 2, 2, 100, 1),),
    physical_rows=5,
    deletion_file=DeletionFile(DeletionKind.BITMAP, 1, 2, 3, 1),
    inline_row_ids=row_ids.write_row_ids(SEGMENTS),
    inline_created_at_versions=row_ids.write_versions([row_ids.VersionRun(SEGMENTS[1], 3)]),
)
SCHEMA = Schema((Field("a", "int64"), Field("s", "struct", children=(Field("b", "string"),))), {"k": "v"}).with_ids()
INDEX = IndexMetadata(UUID(int=3), "i", (0, 1), 2, b"\x3a", IndexDetails("/x.Y", b"1"), 1, covering_fields=(1,))
MANIFEST = Manifest(
    schema=SCHEMA,
    fragments=Fragments([FRAGMENT, FRAGMENT]),
    timestamp=5,
    data_format=DataStorageFormat(),
    config={"a": "1"},
    base_paths=(BasePath(1, "/b", name="n"),),
    branch="b",
)
UPDATE = do.Update((1,), (FRAGMENT,), (FRAGMENT,), inserted_rows=do.KeyFilter((0,), do.BloomKeys(b"1", 8, 1, 0.5)))


def look_at_all(data: bytes) -> None:
    """Parse all that a manifest's file says, and write it again."""
    file = parse_manifest_file(data, uri="x")
    manifest, indexes, transaction = file.manifest, file.index_section(), file.transaction()
    check_writable(manifest)
    data_version(manifest)
    fragments = manifest.fragments
    fragments.deleted_rows()
    fragments.physical_rows()
    for fragment in fragments:
        if fragment.inline_row_ids is not None:
            row_ids.parse_row_ids(fragment.inline_row_ids)
        if fragment.inline_created_at_versions is not None:
            row_ids.parse_versions(fragment.inline_created_at_versions)
    flags_for(manifest, indexes=indexes.indexes)
    again = parse_manifest_file(write_manifest_file(manifest, indexes=indexes, transaction=transaction))
    assert again.manifest.fragments == fragments


CASES: dict[str, tuple[bytes, Callable[[bytes], object]]] = {
    "manifest": (
        write_manifest_file(MANIFEST, indexes=[INDEX], transaction=Transaction(3, UPDATE, uuid="u")),
        look_at_all,
    ),
    "transaction": (write_transaction(Transaction(3, UPDATE, uuid="u")), parse_transaction),
    "rewrite": (
        write_transaction(
            Transaction(
                3,
                do.Rewrite(
                    (do.RewriteGroup((FRAGMENT,), (FRAGMENT,)),), (do.RewrittenIndex(UUID(int=1), UUID(int=2)),)
                ),
                uuid="u",
            )
        ),
        parse_transaction,
    ),
    "row ids": (row_ids.write_row_ids(SEGMENTS), row_ids.parse_row_ids),
    "versions": (row_ids.write_versions([row_ids.VersionRun(item, 3) for item in SEGMENTS]), row_ids.parse_versions),
    "tag": (write_tag(Tag(3, metadata={"a": "b"})), parse_tag),
    "branch": (write_branch(Branch(3)), parse_branch),
}


def damaged(data: bytes, generator: random.Random) -> bytes:
    """The data with a few bytes changed, cut out, put in or cut off."""
    result = bytearray(data)
    for _ in range(generator.randint(1, 4)):
        place = generator.randrange(len(result) or 1)
        match generator.randrange(5):
            case 0:
                result[place : place + 1] = bytes([generator.randrange(256)])
            case 1:
                result[place : place + 1] = bytes([generator.choice((0, 1, 0x7F, 0x80, 0xFF))])
            case 2:
                del result[place : place + generator.randint(1, 9)]
            case 3:
                result[place:place] = bytes(generator.choices(range(256), k=generator.randint(1, 9)))
            case _:
                result[place:] = b"" if generator.random() < 0.2 else result[place:]
    return bytes(result)


@pytest.mark.parametrize("kind", CASES)
def test_damaged_bytes_are_read_or_refused_in_known_words(kind: str) -> None:
    data, parse = CASES[kind]
    parse(data)
    generator = random.Random(f"manifests {kind}")
    refused = 0
    tracemalloc.start()
    for _ in range(800):
        sample = damaged(data, generator)
        try:
            parse(sample)
        except (Corrupt, Unsupported, InvalidInput):
            refused += 1
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused > 100
    assert peak < 20 << 20


@given(st.binary(max_size=200))
@settings(max_examples=200)
def test_any_bytes_at_all_are_read_or_refused(data: bytes) -> None:
    frame = len(data).to_bytes(4, "little") + data + bytes(8) + b"\x00\x00\x02\x00LANC"
    for parse in (look_at_all, parse_transaction, row_ids.parse_row_ids, row_ids.parse_versions, parse_tag):
        try:
            parse(frame if parse is look_at_all else data)
        except LanceletError:
            continue


def test_a_manifest_cut_off_anywhere_is_corrupt() -> None:
    data = CASES["manifest"][0]
    for end in range(len(data)):
        with pytest.raises(Corrupt) as caught:
            parse_manifest_file(data[:end], uri="x")
        assert caught.value.uri == "x"
