"""Clones beside those of pylance, and read by it: shallow, deep, of branches, of other clones, over base paths."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field

from lancelet.errors import AlreadyExists
from lancelet.storage import open_store
from lancelet.table.branches import (
    create_branch,
)
from lancelet.table.clone import deep_clone, shallow_clone
from lancelet.table.paths import Places
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import Snapshot, open_snapshot


def rows(count: int, start: int = 0) -> pa.Table:
    return pa.table({"x": pa.array(range(start, start + count), pa.int64())})


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Five versions: two appends, a delete, an index, one more delete."""
    path = tmp_path / "t.lance"
    lance.write_dataset(rows(10), path)
    dataset = lance.write_dataset(rows(10, 10), path, mode="append")
    dataset.delete("x = 3")
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("x = 14")
    return path


def opened(path: Path | str, version: int | None = None) -> Snapshot:
    return open_snapshot(open_store(str(path)), version=version)


def values(path: Path | str) -> list[int]:
    found: list[int] = lance.dataset(str(path)).to_table()["x"].to_pylist()
    return sorted(found)


@pytest.mark.parametrize("version", [1, 3, 5])
@pytest.mark.parametrize("deep", [False, True])
def test_clones_are_those_of_the_reference(table: Path, tmp_path: Path, version: int, deep: bool) -> None:
    dataset = lance.dataset(table)
    make = dataset.deep_clone if deep else dataset.shallow_clone
    make(tmp_path / "theirs", version)
    clone = deep_clone if deep else shallow_clone
    made = clone(opened(table, version), open_store(tmp_path / "ours"))
    other = opened(tmp_path / "theirs")
    assert made.version == other.version == version
    for name in ("schema", "fragments", "reader_flags", "writer_flags", "base_paths", "max_fragment_id", "branch"):
        assert getattr(made.manifest, name) == getattr(other.manifest, name), name
    assert [item.base_id for item in made.indexes()] == [item.base_id for item in other.indexes()]
    files = [
        sorted(
            str(path.relative_to(root))
            for path in root.rglob("*")
            if path.suffix not in (".txn", "") and path.is_file()
        )
        for root in (tmp_path / "ours", tmp_path / "theirs")
    ]
    assert files[0] == files[1]
    if deep:
        shutil.rmtree(table)
    assert values(tmp_path / "ours") == values(tmp_path / "theirs")
    assert lance.dataset(tmp_path / "ours").to_table(filter="x = 12").num_rows == (version > 1)
    lance.write_dataset(rows(2, 500), tmp_path / "ours", mode="append")
    assert 501 in values(tmp_path / "ours")


def test_clones_of_clones_and_of_branches_find_all_files(table: Path, tmp_path: Path) -> None:
    branch = lance.dataset(table).create_branch("b/c", 3)
    branch = lance.write_dataset(rows(5, 100), branch, mode="append")
    branch.delete("x = 102")
    expected = sorted(branch.to_table()["x"].to_pylist())
    first = shallow_clone(resolve_ref(opened(table), ("b/c", None)), open_store(tmp_path / "one"))
    lance.write_dataset(rows(1, 900), tmp_path / "one", mode="append")
    second = shallow_clone(opened(tmp_path / "one"), open_store(tmp_path / "two"))
    assert first.branch is None
    assert values(tmp_path / "two") == [*expected, 900]
    places = Places.of(second)
    for fragment in second.manifest.fragments:
        for file in fragment.files:
            store, path = places.data_file(file)
            assert store.size(path) == file.file_size
    deep_clone(second, open_store(tmp_path / "three"))
    for folder in (table, tmp_path / "one", tmp_path / "two"):
        shutil.rmtree(folder)
    assert values(tmp_path / "three") == [*expected, 900]


def test_deep_clones_bring_files_of_every_base_path(tmp_path: Path) -> None:
    bases = [
        lance.DatasetBasePath(str(tmp_path / "flat"), name="flat", is_dataset_root=False),
        lance.DatasetBasePath(str(tmp_path / "root"), name="root", is_dataset_root=True),
    ]
    path = tmp_path / "t"
    lance.write_dataset(rows(3), path, initial_bases=bases, target_bases=["flat"], mode="create")
    lance.write_dataset(rows(3, 3), path, target_bases=["root"], mode="append")
    lance.write_dataset(rows(3, 6), path, mode="append")
    deep_clone(opened(path), open_store(tmp_path / "copy"))
    for folder in ("t", "flat", "root"):
        shutil.rmtree(tmp_path / folder)
    assert values(tmp_path / "copy") == list(range(9))


def test_a_clone_does_not_replace_a_table(table: Path, tmp_path: Path) -> None:
    lance.write_dataset(rows(1), tmp_path / "there")
    for clone in (shallow_clone, deep_clone):
        with pytest.raises(AlreadyExists):
            clone(opened(table), open_store(tmp_path / "there"))
    with pytest.raises(AlreadyExists):
        create_branch(create_branch(opened(table), "b"), "b")


def test_deep_clones_bring_the_payloads_beside_data_files(tmp_path: Path) -> None:
    field = blob_field("b", inline_size_threshold=10, dedicated_size_threshold=1000, pack_file_size_threshold=1500)
    payloads = [bytes([turn]) * 900 * turn for turn in range(4)]
    table = pa.table([blob_array(payloads)], schema=pa.schema([field]))
    lance.write_dataset(table, tmp_path / "t", data_storage_version="2.2").deep_clone(tmp_path / "theirs", 1)
    deep_clone(opened(tmp_path / "t"), open_store(tmp_path / "ours"))
    ours, theirs = (sorted(path.name for path in (tmp_path / name).rglob("*.blob")) for name in ("ours", "theirs"))
    assert ours == theirs
    assert ours
    shutil.rmtree(tmp_path / "t")
    found = lance.dataset(tmp_path / "ours").take_blobs("b", indices=[0, 1, 2, 3])
    assert [item.readall() for item in found if item is not None] == payloads
