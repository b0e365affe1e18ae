"""The history of a table in turns with pylance: tags, branches, clones, time travel, names of manifests."""

from __future__ import annotations

import contextlib
import json
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.errors import AlreadyExists, Conflict, InvalidInput, LanceletError, NotFound
from lancelet.format.names import branch_folder
from lancelet.format.refs import parse_branch, parse_tag
from lancelet.storage import open_store
from lancelet.table.branches import (
    check_branch_name,
    create_branch,
    delete_branch,
    get_branch,
    list_branches,
    set_branch_metadata,
)
from lancelet.table.clone import deep_clone, shallow_clone
from lancelet.table.paths import Places, branch_store
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.tags import check_tag_name, create_tag, delete_tag, get_tag, list_tags, move_tag, set_tag_metadata
from lancelet.table.versions import list_versions

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


def moment_of(version: Mapping[str, object]) -> datetime:
    moment = version["timestamp"]
    assert isinstance(moment, datetime)
    return moment


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


@pytest.mark.parametrize("v2_names", [True, False])
def test_versions_are_listed_as_the_reference_lists_them(tmp_path: Path, v2_names: bool) -> None:
    path = tmp_path / "t"
    for turn in range(12):
        mode = "append" if turn else "create"
        lance.write_dataset(
            rows(5, turn * 5), path, mode=mode, enable_v2_manifest_paths=v2_names, commit_message=f"{turn}"
        )
    dataset = lance.dataset(path)
    dataset.delete("x % 7 = 0")
    listed = list(list_versions(open_store(path)))[::-1]
    told = dataset.versions()
    assert [item.version for item in listed] == [item["version"] for item in told] == list(range(1, 14))
    for ours, theirs in zip(listed, told, strict=True):
        assert abs(ours.timestamp - moment_of(theirs).astimezone(UTC)) <= timedelta(microseconds=1)
        for name, value in theirs["metadata"].items():
            assert str(getattr(ours.summary, name)) == value, name
    assert [item.message for item in listed] == [*map(str, range(12)), None]


def test_moments_mean_the_same_version(table: Path) -> None:
    moments = [moment_of(item) for item in lance.dataset(table).versions()]
    snapshot = opened(table)
    for moment in moments:
        for wanted in (moment - timedelta(microseconds=1), moment + timedelta(milliseconds=1)):
            try:
                expected = lance.dataset(table, asof=wanted).version
            except ValueError:
                with pytest.raises(NotFound):
                    resolve_ref(snapshot, wanted)
            else:
                assert resolve_ref(snapshot, wanted).version == expected


def test_references_mean_what_they_mean_to_the_reference(table: Path) -> None:
    dataset = lance.dataset(table)
    branch = dataset.create_branch("b", 2)
    branch = lance.write_dataset(rows(3, 70), branch, mode="append")
    dataset.tags.create("t", ("b", 3))
    dataset.tags.create("main", 1)
    references = [
        2,
        3,
        "t",
        "main",
        ("b", None),
        ("b", 2),
        (None, None),
        (None, 1),
        ("main", 4),
        9,
        "none",
        ("none", 1),
    ]
    for seen, snapshot in ((dataset, opened(table)), (branch, resolve_ref(opened(table), ("b", None)))):
        for reference in references:
            with contextlib.suppress(OSError, ValueError):
                theirs = seen.checkout_version(reference)  # type: ignore[arg-type]
                ours = resolve_ref(snapshot, reference)  # type: ignore[arg-type]
                assert (ours.version, ours.count_rows()) == (theirs.version, theirs.count_rows()), reference
                continue
            with pytest.raises(LanceletError):
                resolve_ref(snapshot, reference)  # type: ignore[arg-type]


def test_a_branch_opened_by_its_own_folder_finds_its_table(table: Path) -> None:
    lance.dataset(table).create_branch("x/y", 2)
    snapshot = opened(table / "tree/x/y")
    assert resolve_ref(snapshot, ("main", None)).version == 5
    assert create_branch(snapshot, "z").branch == "z"
    assert parse_tag(b'{"version": 1}').branch is None


def test_a_number_is_no_branch(table: Path) -> None:
    for wrong in (True, 1.5, ("b", "c")):
        with pytest.raises(InvalidInput):
            resolve_ref(opened(table), wrong)  # type: ignore[arg-type]
