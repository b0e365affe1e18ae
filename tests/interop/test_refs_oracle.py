"""Tags and branches in turns with pylance, on disk and in a bucket."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.errors import Conflict, NotFound
from lancelet.format.names import branch_folder
from lancelet.format.refs import parse_branch
from lancelet.storage import open_store
from lancelet.table.branches import (
    check_branch_name,
    create_branch,
    delete_branch,
    get_branch,
    list_branches,
    set_branch_metadata,
)
from lancelet.table.cleanup import plan_cleanup
from lancelet.table.clone import deep_clone
from lancelet.table.paths import Places, branch_store
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.tags import check_tag_name, create_tag, delete_tag, get_tag, list_tags, move_tag, set_tag_metadata
from lancelet.testing.servers import ServedStore

NAMES = (
    *("a", "a/b", ".a", "a.", "a..b", "a.lock", "main", "1", "A-_.1", "a\\b", "x.lock.y", "_", "/a", "a/", "a//b"),
    *("q/.", "q/..", "a/b.lock", "a.lock/b", "main/x", "q/.x", "q/x.", "HEAD", "a/main", "a*b", "a%b", "a+b"),
    *("é", "é/x", "²", "", "a b", "\u0301"),
)


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


def accepted(call: object) -> bool:
    try:
        call()  # type: ignore[operator]
    except (OSError, ValueError):
        return False
    return True


def test_both_list_the_same_tags(table: Path) -> None:
    dataset, store = lance.dataset(table), open_store(table)
    dataset.tags.create("theirs", 2)
    dataset.tags.replace_metadata("theirs", {"by": "pylance"})
    create_tag(store, "ours", 3, metadata={"by": "lancelet"})
    dataset.create_branch("b", 2)
    create_tag(store, "on-branch", 2, branch="b")
    listed = list_tags(store)
    told = dataset.tags.list()
    assert set(listed) == set(told) == {"theirs", "ours", "on-branch"}
    for name, tag in listed.items():
        theirs = told[name]
        assert (tag.version, tag.branch, tag.manifest_size, tag.metadata) == tuple(
            theirs[key] for key in ("version", "branch", "manifest_size", "metadata")
        )
        assert tag.created_at is not None
        assert datetime.fromisoformat(tag.created_at[:26] + "+00:00") == theirs["created_at"]
    assert dataset.checkout_version("ours").version == resolve_ref(opened(table), "ours").version == 3


def test_both_move_and_delete_each_others_tags(table: Path) -> None:
    dataset, store = lance.dataset(table), open_store(table)
    dataset.tags.create("a", 1)
    create_tag(store, "b", 1)
    move_tag(store, "a", 2)
    dataset.tags.update("b", 2)
    assert {name: tag["version"] for name, tag in dataset.tags.list().items()} == {"a": 2, "b": 2}
    updated = get_tag(store, "a")
    assert updated.updated_at != updated.created_at
    assert set_tag_metadata(store, "b", {"k": "v"}).updated_at == get_tag(store, "b").updated_at
    assert dataset.tags.list()["b"]["metadata"] == {"k": "v"}
    delete_tag(store, "b")
    dataset.tags.delete("a")
    assert not list_tags(store)
    assert not dataset.tags.list()


def test_a_tag_file_has_the_keys_and_the_order_of_the_reference(table: Path) -> None:
    lance.dataset(table).tags.create("theirs", 2)
    create_tag(open_store(table), "ours", 2)
    ours, theirs = (json.loads((table / f"_refs/tags/{name}.json").read_text()) for name in ("ours", "theirs"))
    assert list(ours) == list(theirs)
    assert ours["manifestSize"] == theirs["manifestSize"]


@pytest.mark.parametrize("name", NAMES)
def test_names_of_tags_are_allowed_as_the_reference_allows_them(tmp_path: Path, name: str) -> None:
    dataset = lance.write_dataset(rows(1), tmp_path / "t")
    theirs = accepted(lambda: dataset.tags.create(name, 1))
    ours = accepted(lambda: check_tag_name(name))
    if name.isascii():
        assert ours == theirs
    else:
        # The reference makes such a tag and can then no longer list any: we make none.
        assert not ours


@pytest.mark.parametrize("name", NAMES)
def test_names_of_branches_are_allowed_as_the_reference_allows_them(tmp_path: Path, name: str) -> None:
    dataset = lance.write_dataset(rows(1), tmp_path / "t")
    theirs = accepted(lambda: dataset.create_branch(name, 1))
    assert accepted(lambda: check_branch_name(name)) == theirs
    if theirs:
        assert list(list_branches(open_store(tmp_path / "t"))) == [name]
        assert (tmp_path / "t" / branch_folder(name) / "_versions").is_dir()


@pytest.mark.parametrize("name", ["feature/x", "é"])
@pytest.mark.parametrize("version", [1, 3, 5])
def test_pylance_reads_and_continues_a_branch_made_here(table: Path, name: str, version: int) -> None:
    before = lance.dataset(table, version=version).to_table().sort_by("x")
    first = create_branch(opened(table, version), name, metadata={"by": "lancelet"})
    assert (first.version, first.branch) == (version, name)
    branch = lance.dataset(table).checkout_version((name, None))
    assert branch.version == version
    assert branch.to_table().sort_by("x") == before
    assert branch.to_table(filter="x = 12") == before.filter(pa.compute.equal(before["x"], 12))
    branch = lance.write_dataset(rows(5, 100), branch, mode="append")
    branch.delete("x = 101")
    assert branch.count_rows() == before.num_rows + 4
    assert lance.dataset(table).branches.list()[name]["metadata"] == {"by": "lancelet"}
    newest = resolve_ref(opened(table), (name, None))
    assert (newest.version, newest.count_rows()) == (version + 2, before.num_rows + 4)
    assert lance.dataset(table).version == 5


@pytest.mark.parametrize("version", [1, 3, 5])
def test_a_branch_is_described_and_begun_as_the_reference_does(table: Path, version: int) -> None:
    lance.dataset(table).create_branch("theirs", version)
    create_branch(opened(table, version), "ours")
    store = open_store(table)
    ours, theirs = (parse_branch(store.read_all(f"_refs/branches/{name}.json")) for name in ("ours", "theirs"))
    assert (ours.parent_branch, ours.parent_version, ours.manifest_size) == (
        theirs.parent_branch,
        theirs.parent_version,
        theirs.manifest_size,
    )
    assert [point.version for point in ours.points] == [point.version for point in theirs.points]
    mine, other = (open_snapshot(branch_store(store, name)) for name in ("ours", "theirs"))
    for name in ("schema", "fragments", "version", "reader_flags", "writer_flags", "max_fragment_id", "next_row_id",
                 "config", "base_paths", "data_format", "index_section", "tag"):  # fmt: skip
        assert getattr(mine.manifest, name) == getattr(other.manifest, name), name
    assert mine.indexes() == other.indexes()
    made, their = mine.transaction(), other.transaction()
    assert made is not None
    assert their is not None
    assert (made.read_version, str(made.operation).replace("ours", "theirs")) == (
        their.read_version,
        str(their.operation),
    )


def test_a_branch_of_a_branch_knows_its_ancestors(table: Path) -> None:
    parent = lance.dataset(table).create_branch("theirs", 2)
    lance.write_dataset(rows(3, 50), parent, mode="append")
    create_branch(resolve_ref(opened(table), ("theirs", None)), "ours")
    lance.dataset(table).create_branch("reference", ("theirs", None))
    store = open_store(table)
    mine, other = (open_snapshot(branch_store(store, name)) for name in ("ours", "reference"))
    assert {item.id: item for item in mine.manifest.base_paths} == {item.id: item for item in other.manifest.base_paths}
    assert mine.manifest.fragments == other.manifest.fragments
    ours, reference = get_branch(store, "ours"), get_branch(store, "reference")
    assert ours.points[:-1] == reference.points[:-1] == get_branch(store, "theirs").points
    assert lance.dataset(table).checkout_version(("ours", None)).count_rows() == 23


def test_a_branch_that_others_refer_to_stays(table: Path) -> None:
    store = open_store(table)
    create_branch(opened(table), "parent")
    create_branch(resolve_ref(opened(table), ("parent", None)), "child")
    create_tag(store, "t", 5, branch="child")
    for name, referring in (("parent", "'child'"), ("child", "'t'")):
        with pytest.raises(Conflict, match=referring):
            delete_branch(store, name)
        with pytest.raises(OSError, match="referenced"):
            lance.dataset(table).branches.delete(name)


def test_both_delete_each_others_branches(table: Path) -> None:
    store, dataset = open_store(table), lance.dataset(table)
    dataset.create_branch("k", 1)
    create_branch(opened(table), "k/l")
    dataset.create_branch("k/m", 2)
    delete_branch(store, "k")
    left = {str(path.relative_to(table)) for path in (table / "tree").rglob("*.manifest")}
    assert {name.split("/_versions")[0] for name in left} == {"tree/k/l", "tree/k/m"}
    assert set(dataset.branches.list()) == {"k/l", "k/m"}
    dataset.branches.delete("k/l")
    delete_branch(store, "k/m")
    assert list_branches(store) == {}
    assert not list(store.list_from("tree/"))
    with pytest.raises(NotFound):
        delete_branch(store, "k")
    assert values(table) == [x for x in range(20) if x not in (3, 14)]


def test_metadata_of_a_branch_is_replaced_for_both(table: Path) -> None:
    store, dataset = open_store(table), lance.dataset(table)
    dataset.create_branch("b", 1)
    set_branch_metadata(store, "b", {"a": "1"})
    assert dataset.branches.list()["b"]["metadata"] == {"a": "1"}
    dataset.branches.replace_metadata("b", {"b": "2"})
    assert get_branch(store, "b").metadata == {"b": "2"}


def test_references_and_branches_in_a_bucket_are_shared(s3_server: ServedStore) -> None:
    uri, options = s3_server.place(), s3_server.storage_options
    dataset = lance.write_dataset(rows(10), uri, storage_options=options)
    store = open_store(uri, storage_options=options)
    dataset.create_branch("theirs/é", 1)
    create_branch(open_snapshot(store), "ours/x.y")
    create_tag(store, "t", 1, branch="ours/x.y")
    assert set(list_branches(store)) == set(dataset.branches.list()) == {"theirs/é", "ours/x.y"}
    branch = dataset.checkout_version(("ours/x.y", None))
    branch = lance.write_dataset(rows(5, 10), branch, mode="append", storage_options=options)
    seen = resolve_ref(open_snapshot(store), ("ours/x.y", None))
    places = Places.of(seen)
    for fragment in seen.manifest.fragments:
        for file in fragment.files:
            where, path = places.data_file(file)
            assert where.size(path) == file.file_size
    assert seen.count_rows() == branch.count_rows() == 15
    assert resolve_ref(seen, ("theirs/é", 1)).count_rows() == 10
    create_branch(seen, "nested")
    assert dataset.checkout_version(("nested", None)).to_table() == branch.to_table()
    target = s3_server.place()
    deep_clone(seen, open_store(target, storage_options=options))
    assert lance.dataset(target, storage_options=options).to_table() == branch.to_table()
    delete_branch(store, "theirs/é")
    assert set(dataset.branches.list()) == {"ours/x.y", "nested"}
    assert [item.version for item in plan_cleanup(open_snapshot(store)).versions] == []
