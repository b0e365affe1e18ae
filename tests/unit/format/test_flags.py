"""Feature flags: unknown ones refuse by name, for reading and writing apart; what is in a manifest sets its own."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from lancelet.errors import Corrupt, InvalidInput, Unsupported
from lancelet.format.fields import Schema
from lancelet.format.flags import FLAGS, check_readable, check_writable, flag_names, flags_for
from lancelet.format.fragment_list import Fragments
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind, Fragment
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath, Manifest

EMPTY = Manifest(Schema(()), version=8)


def with_fragments(*fragments: Fragment) -> Manifest:
    """A manifest of these fragments."""
    return replace(EMPTY, fragments=Fragments(fragments))


def test_flags_are_numbered_without_gaps_and_named_apart() -> None:
    assert list(FLAGS) == list(range(17))
    assert len({flag.name for flag in FLAGS.values()}) == 17


def test_an_unknown_flag_of_the_writer_lets_readers_pass() -> None:
    manifest = replace(EMPTY, writer_flags=1 << 40 | 1 << 12)
    check_readable(manifest)
    with pytest.raises(Unsupported, match=r"writing the table needs fragment tree, bit 40 \(unknown\)") as caught:
        check_writable(manifest)
    assert caught.value.version == 8


def test_an_unknown_flag_of_the_reader_refuses_writers_too() -> None:
    manifest = replace(EMPTY, reader_flags=1 << 63)
    for check in (check_readable, check_writable):
        with pytest.raises(Unsupported, match="reading the table needs bit 63"):
            check(manifest)


@pytest.mark.parametrize("bit", [8, 10, 14, 16])
@pytest.mark.parametrize("word", ["reader_flags", "writer_flags"])
def test_a_paired_flag_in_one_word_is_corrupt(bit: int, word: str) -> None:
    with pytest.raises(Corrupt, match=FLAGS[bit].name):
        check_readable(replace(EMPTY, **{word: 1 << bit}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("manifest", "good"),
    [
        (replace(EMPTY, writer_flags=1 << 15, max_allocated_field_id=3), True),
        (replace(EMPTY, writer_flags=1 << 15), False),
        (replace(EMPTY, max_allocated_field_id=0), False),
        (replace(EMPTY, reader_flags=1 << 15, writer_flags=1 << 15, max_allocated_field_id=3), False),
    ],
)
def test_unique_field_ids_need_their_flag_and_the_highest_id(manifest: Manifest, good: bool) -> None:
    if good:
        check_writable(manifest)
    else:
        with pytest.raises(Corrupt, match="field ids never used again"):
            check_readable(manifest)


FILE = DataFile("a", (0,), (0,), 2, 2)


@pytest.mark.parametrize(
    ("manifest", "names"),
    [
        (EMPTY, ([], [])),
        (with_fragments(Fragment(0, (FILE,), deletion_file=DeletionFile(DeletionKind.BITMAP, 1, 1))), ["deletion"]),
        (with_fragments(Fragment(0, inline_row_ids=b"")), ["stable row ids"]),
        (with_fragments(Fragment(0, column_row_ids=b"")), ["stable row ids", "spilled row lineage"]),
        (with_fragments(Fragment(0, (FILE, replace(FILE, file_minor_version=1)))), ["mixed"]),
        (with_fragments(Fragment(0, overlays=(b"",))), ["data overlay"]),
        (replace(EMPTY, base_paths=(BasePath(0, "/b"),)), ["base paths"]),
        (replace(EMPTY, config={"a": "1"}), ([], ["table config"])),
        (replace(EMPTY, max_allocated_field_id=1), ([], ["field ids"])),
        (replace(EMPTY, reader_flags=1 << 10 | 1 << 6, writer_flags=1 << 10 | 1 << 5), ["tagged"]),
        (replace(EMPTY, reader_flags=1 << 8, writer_flags=1 << 8), ["mixed"]),
        (replace(EMPTY, reader_flags=2, writer_flags=2), ["stable row ids"]),
    ],
)
def test_what_a_manifest_holds_sets_its_flags(
    manifest: Manifest, names: list[str] | tuple[list[str], list[str]]
) -> None:
    reader, writer = names if isinstance(names, tuple) else (names, names)
    for word, expected in zip(flags_for(manifest), (reader, writer), strict=True):
        found = flag_names(word)
        assert len(found) == len(expected)
        assert all(name.startswith(start) for name, start in zip(found, expected, strict=True))


def test_options_and_indexes_set_theirs() -> None:
    assert flags_for(EMPTY, transaction_file=False) == (0, 32)
    assert flags_for(EMPTY, stable_row_ids=True) == (2, 2)
    index = IndexMetadata(UUID(int=1), "i", (0, 1), covering_fields=(1,))
    assert flags_for(EMPTY, indexes=[index]) == (128, 128)


def test_fragments_without_row_ids_among_others_are_refused() -> None:
    for manifest in (with_fragments(Fragment(0, inline_row_ids=b""), Fragment(1)),):
        with pytest.raises(InvalidInput, match="some fragments have no row ids"):
            flags_for(manifest)
    with pytest.raises(InvalidInput, match="row ids"):
        flags_for(with_fragments(Fragment(0)), stable_row_ids=True)
