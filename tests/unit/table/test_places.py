"""Where files lie: base paths, branches, and URIs that mean the same place."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest

from lancelet.errors import Corrupt, InvalidInput
from lancelet.format.fields import Schema
from lancelet.format.fragments import DataFile, DeletionFile, DeletionKind
from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import BasePath, Manifest
from lancelet.format.operations import UpdateBases
from lancelet.storage.counting import CountingStore
from lancelet.storage.folder import Folder
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.bases import add_bases_transaction, find_base
from lancelet.table.commit import commit
from lancelet.table.outcome import committed
from lancelet.table.paths import Places, branch_store, main_store, same_place, store_at
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.tables import make_table

BASES = (BasePath(0, "memory://root", is_dataset_root=True), BasePath(4, "memory://flat"))


@pytest.fixture
def places() -> Places:
    return Places(MemoryStore("memory://own"), Manifest(Schema(()), base_paths=BASES))


@pytest.mark.parametrize(
    ("base_id", "found"),
    [(None, ("memory://own", "data/f")), (0, ("memory://root", "data/f")), (4, ("memory://flat", "f"))],
)
def test_data_files_lie_below_their_base_path(places: Places, base_id: int | None, found: tuple[str, str]) -> None:
    store, path = places.data_file(DataFile("f", (0,), base_id=base_id))
    assert (store.uri, path) == found


def test_deletion_files_lie_in_tables_only(places: Places) -> None:
    file = DeletionFile(DeletionKind.BITMAP, 2, 3, base_id=0)
    assert places.deletion_file(7, file)[1] == "_deletions/7-2-3.bin"
    with pytest.raises(Corrupt, match="base path 4"):
        places.deletion_file(7, DeletionFile(DeletionKind.BITMAP, 2, 3, base_id=4))


def test_index_files_lie_in_a_folder_of_their_own(places: Places) -> None:
    index = IndexMetadata(UUID(int=1), "i", (0,), base_id=4)
    assert places.index(index)[1] == str(UUID(int=1))


def test_a_base_path_that_is_not_there_is_corrupt(places: Places) -> None:
    with pytest.raises(Corrupt, match="base path 9"):
        places.data_file(DataFile("f", (0,), base_id=9))


def test_a_store_elsewhere_is_opened_once_and_by_the_callers_own_opener() -> None:
    opened: list[str] = []

    def opener(uri: str) -> Store:
        opened.append(uri)
        return MemoryStore(uri)

    places = Places(MemoryStore("memory://own"), Manifest(Schema(()), base_paths=BASES), opener=opener)
    for _ in range(3):
        places.data_file(DataFile("f", (0,), base_id=4))
    assert opened == ["memory://flat"]


def test_places_near_a_store_are_reached_through_it() -> None:
    main = CountingStore(MemoryStore("memory://near"))
    branch = branch_store(main, "a/b")
    assert store_at("memory://near", branch) is main
    found = store_at("memory://near/tree/c", branch)
    assert isinstance(found, Folder)
    assert (found.inner, found.uri) == (main, "memory://near/tree/c")
    assert not isinstance(store_at("memory://nearby", branch), Folder)


@pytest.mark.parametrize("branch", ["a", "a/b"])
def test_the_table_of_a_branch_is_found_however_the_branch_was_opened(tmp_path: Path, branch: str) -> None:
    main = LocalStore(tmp_path / "t")
    assert main_store(branch_store(main, branch), branch) is main
    by_uri = LocalStore(tmp_path / "t/tree" / branch)
    assert main_store(by_uri, branch).uri == main.uri
    above = LocalStore(tmp_path)
    found = main_store(Folder(above, f"t/tree/{branch}"), branch)
    assert isinstance(found, Folder)
    assert (found.inner, found.uri) == (above, main.uri)
    with pytest.raises(InvalidInput, match="is not at"):
        main_store(main, branch)


@pytest.mark.parametrize(
    ("one", "other"), [("/a/b", "file:///a/b/"), ("/a//b/./c", "/a/b/c"), ("s3://x/y/", "S3://x/y"), ("a", "./a")]
)
def test_uris_of_one_place_are_told_to_be(one: str, other: str) -> None:
    assert same_place(one) == same_place(other)


def test_base_paths_are_added_with_new_ids() -> None:
    store = MemoryStore("memory://bases-added")
    snapshot = make_table(store)
    new = [BasePath(0, "memory://one", name="one"), BasePath(0, "memory://two", is_dataset_root=True)]
    transaction = add_bases_transaction(snapshot, new, message="more room")
    assert isinstance(transaction.operation, UpdateBases)
    committed(commit(snapshot, transaction))
    latest = open_snapshot(store)
    assert [(item.id, item.path, item.name) for item in latest.manifest.base_paths] == [
        (1, "memory://one", "one"),
        (2, "memory://two", None),
    ]
    made = latest.transaction()
    assert made is not None
    assert made.message == "more room"
    assert find_base(latest, "one").id == find_base(latest, "memory://one/").id == 1
    for taken in ("memory://one/", "memory://bases-added", "memory://two"):
        with pytest.raises(InvalidInput, match="already"):
            add_bases_transaction(latest, [BasePath(0, taken)])


@pytest.mark.parametrize(
    "wrong",
    [
        [],
        [BasePath(3, "memory://x")],
        [BasePath(0, "memory://x"), BasePath(0, "memory://x/")],
        [BasePath(0, "memory://x", name="n"), BasePath(0, "memory://y", name="n")],
    ],
)
def test_base_paths_that_cannot_be_told_apart_are_refused(wrong: list[BasePath]) -> None:
    with pytest.raises(InvalidInput):
        add_bases_transaction(make_table(MemoryStore(f"memory://bases-{id(wrong)}")), wrong)


def test_a_base_path_nobody_knows_is_told_with_those_there_are() -> None:
    snapshot = make_table(MemoryStore("memory://bases-unknown"))
    with pytest.raises(InvalidInput, match="which has none"):
        find_base(snapshot, "x")
