"""Deletion vectors, row ids and versions of pylance's tables say what its scans show; it reads our deletion files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest

from lancelet.format.fragments import DeletionKind, Fragment
from lancelet.format.manifest import Manifest
from lancelet.format.manifest_file import parse_manifest_file
from lancelet.format.names import deletion_path, manifest_path
from lancelet.rows.addresses import NO_ADDRESS, join
from lancelet.rows.deletion_files import read_deletions, write_deletions
from lancelet.rows.deletions import NO_DELETIONS, DeletionVector
from lancelet.rows.row_id_index import build_row_id_index
from lancelet.rows.row_sets import RowSet, parse_row_set, write_row_set
from lancelet.rows.segments import read_sequence, write_sequence
from lancelet.rows.versions import read_version_sequence, write_version_sequence

ROWS = 30_000
PER_FILE = 12_000

#: What is deleted, in one or several commits.
SHAPES = {
    "one row": ["a = 17"],
    "first and last": [f"a in (0, {PER_FILE - 1}, {PER_FILE}, {ROWS - 1})"],
    "every third": ["a % 3 = 0"],
    "a range over two files": [f"a > {PER_FILE - 6000} and a < {PER_FILE + 40}"],
    "one short of a bitmap": ["a < 4999"],
    "just a bitmap": ["a < 5000"],
    "all but one": ["a < 12000 and a != 4711"],
    "a whole file": [f"a < {PER_FILE}", "a % 1000 = 1"],
    "again and again": ["a % 7 = 0", "a % 5 = 0", "a < 4000", "a % 11 = 3"],
}


def made(path: Path, conditions: list[str], **options: object) -> lance.LanceDataset:
    """A table of pylance's with some rows deleted."""
    table = pa.table({"a": pa.array(range(ROWS)), "b": pa.array([0] * ROWS)})
    dataset = lance.write_dataset(table, path, max_rows_per_file=PER_FILE, **options)
    for condition in conditions:
        dataset.delete(condition)
    return dataset


def manifest_of(dataset: lance.LanceDataset) -> Manifest:
    """The manifest of the version that is open, read by us."""
    return parse_manifest_file((Path(dataset.uri) / manifest_path(dataset.version)).read_bytes()).manifest


def deletions_of(dataset: lance.LanceDataset, fragment: Fragment) -> DeletionVector:
    """The deletion vector of a fragment, read by us."""
    item = fragment.deletion_file
    if item is None:
        return NO_DELETIONS
    data = (Path(dataset.uri) / deletion_path(fragment.id, item)).read_bytes()
    return read_deletions(data, item.kind, physical_rows=fragment.physical_rows, num_deleted_rows=item.num_deleted_rows)


def addresses_by_scan(dataset: lance.LanceDataset) -> np.ndarray:
    """The addresses of the live rows, as pylance scans them."""
    return dataset.scanner(columns=[], with_row_address=True).to_table()["_rowaddr"].to_numpy()


@pytest.mark.parametrize("shape", SHAPES)
def test_the_rows_left_are_those_that_a_scan_shows(tmp_path: Path, shape: str) -> None:
    dataset = made(tmp_path / "t", SHAPES[shape])
    fragments = [
        (item.id, item.physical_rows or 0, deletions_of(dataset, item)) for item in manifest_of(dataset).fragments
    ]
    live = RowSet.of_live(fragments)
    scanned = addresses_by_scan(dataset)
    assert np.array_equal(live.to_values(), scanned)
    logical = np.random.default_rng(0).permutation(len(scanned))[:500]
    taken = dataset.take(logical.tolist(), columns=["a"])["a"].to_numpy()
    # In this table a row's value is its place before anything was deleted.
    assert np.array_equal(scanned[logical], join(taken // PER_FILE, taken % PER_FILE))
    for fragment, rows, deleted in fragments:
        offsets = dataset.get_fragment(fragment).to_table(columns=["a"])["a"].to_numpy() - fragment * PER_FILE
        assert np.array_equal(deleted.to_physical(np.arange(len(offsets))), offsets)
        assert dataset.get_fragment(fragment).count_rows() == deleted.live_count(0, rows)


@pytest.mark.parametrize("shape", SHAPES)
def test_files_have_the_kind_that_pylance_chooses(tmp_path: Path, shape: str) -> None:
    dataset = made(tmp_path / "t", SHAPES[shape][:1])
    for fragment in manifest_of(dataset).fragments:
        if fragment.deletion_file is not None:
            assert write_deletions(deletions_of(dataset, fragment))[0] is fragment.deletion_file.kind


@pytest.mark.parametrize("count", [1, 300, 4999, 5000, 9000])
@pytest.mark.parametrize("shape", ["range", "scattered"])
def test_pylance_reads_our_files_in_place_of_its_own(tmp_path: Path, count: int, shape: str) -> None:
    dataset = made(tmp_path / "t", [f"a < {count}"])
    item = manifest_of(dataset).fragments[0].deletion_file
    assert item is not None
    rows = np.arange(count) + 1000 if shape == "range" else np.random.default_rng(5).permutation(PER_FILE)[:count]
    kind, data = write_deletions(DeletionVector(rows))
    assert kind is item.kind
    assert (kind is DeletionKind.BITMAP) == (count >= 5000)
    (tmp_path / "t" / deletion_path(0, item)).write_bytes(data)
    # A copy under another name, so that nothing is remembered of the file's former content.
    (tmp_path / "t").rename(tmp_path / "copy")
    dataset = lance.dataset(tmp_path / "copy")
    assert dataset.count_rows() == ROWS - count
    expected = np.setdiff1d(np.arange(ROWS), rows)
    assert np.array_equal(dataset.to_table(columns=["a"])["a"].to_numpy(), expected)
    dataset.delete("a >= 24000")
    assert np.array_equal(dataset.to_table(columns=["a"])["a"].to_numpy(), expected[expected < 24000])


def updated(dataset: lance.LanceDataset) -> None:
    """Change many rows, a few in no order, and delete some."""
    dataset.update({"b": "b + 1"}, where="a % 3 = 0")
    keys = np.random.default_rng(2).permutation(ROWS)[:700]
    source = pa.table({"a": pa.array(keys), "b": pa.array([5] * len(keys))})
    dataset.merge_insert("a").when_matched_update_all().execute(source)
    dataset.delete("a % 50 = 7")


def compacted(dataset: lance.LanceDataset) -> None:
    """The same, and then everything in one file."""
    updated(dataset)
    dataset.optimize.compact_files()


@pytest.mark.parametrize("change", [updated, compacted])
def test_row_ids_and_versions_are_those_that_a_scan_shows(
    tmp_path: Path, change: Callable[[lance.LanceDataset], None]
) -> None:
    change(made(tmp_path / "t", [], enable_stable_row_ids=True))
    dataset = lance.dataset(tmp_path / "t")
    columns = ["_rowid", "_rowaddr", "_row_created_at_version", "_row_last_updated_at_version"]
    scanned = dataset.scanner(columns=columns).to_table()
    parts = []
    ids, created, updated_at = [], [], []
    for fragment in manifest_of(dataset).fragments:
        deleted = deletions_of(dataset, fragment)
        assert fragment.inline_row_ids is not None
        assert fragment.inline_created_at_versions is not None
        assert fragment.inline_last_updated_at_versions is not None
        sequence = read_sequence(fragment.inline_row_ids, rows=fragment.physical_rows)
        assert read_sequence(write_sequence(sequence)) == sequence
        assert len(write_sequence(sequence)) <= len(fragment.inline_row_ids)
        parts.append((fragment.id, sequence, deleted))
        ids.append(sequence.without(deleted).to_ids())
        for stored, kept in (
            (fragment.inline_created_at_versions, created),
            (fragment.inline_last_updated_at_versions, updated_at),
        ):
            versions = read_version_sequence(stored, rows=fragment.physical_rows)
            assert read_version_sequence(write_version_sequence(versions)) == versions
            kept.append(versions.without(deleted).to_versions())
    for column, found in zip((columns[0], *columns[2:]), (ids, created, updated_at), strict=True):
        assert np.array_equal(np.concatenate(found), scanned[column].to_numpy()), column
    index = build_row_id_index(parts)
    assert np.array_equal(index.lookup(scanned["_rowid"].to_numpy()), scanned["_rowaddr"].to_numpy())
    gone = np.setdiff1d(np.arange(ROWS, dtype=np.uint64), scanned["_rowid"].to_numpy())
    assert len(gone) == ROWS // 50
    assert bool(np.all(index.lookup(gone) == NO_ADDRESS))


def test_bitmaps_of_a_bitmap_index_are_row_sets(tmp_path: Path) -> None:
    dataset = lance.write_dataset(
        pa.table({"a": pa.array([None if row % 10 == 9 else row % 5 for row in range(ROWS)])}),
        tmp_path / "t",
        max_rows_per_file=PER_FILE,
    )
    dataset.create_scalar_index("a", "BITMAP")
    (file,) = (tmp_path / "t" / "_indices").glob("*/bitmap_page_lookup.lance")
    stored = lance.file.LanceFileReader(str(file)).read_all().to_table()
    values = np.arange(ROWS)
    for key, data in zip(stored["keys"].to_pylist(), stored["bitmaps"].to_pylist(), strict=True):
        # A null key comes with the rows that have none.
        rows = values[values % 10 == 9] if key is None else values[(values % 10 != 9) & (values % 5 == key)]
        found = parse_row_set(data)
        assert np.array_equal(found.to_values(), join(rows // PER_FILE, rows % PER_FILE))
        assert parse_row_set(write_row_set(found)) == found
        assert len(write_row_set(found)) <= len(data)
