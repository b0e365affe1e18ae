"""Tags and branches under races, faults and odd input, without the reference."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from lancelet.errors import AlreadyExists, Conflict, Corrupt, InvalidInput, LanceletError, NotFound
from lancelet.format import operations as op
from lancelet.format.names import branch_path
from lancelet.format.refs import Tag, write_tag
from lancelet.storage.counting import CountingStore
from lancelet.storage.delegating import Delegating
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.branches import create_branch, delete_branch, get_branch, list_branches
from lancelet.table.outcome import committed
from lancelet.table.paths import branch_store
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import open_snapshot
from lancelet.table.tags import create_tag, delete_tag, get_tag, list_tags, move_tag
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.tables import carry_out, empty_fragment, make_table

NUMBERS = itertools.count()


@pytest.fixture
def store() -> MemoryStore:
    """A table of three versions."""
    made = MemoryStore(f"memory://refs-{next(NUMBERS)}")
    make_table(made)
    for _ in range(2):
        committed(carry_out(made, op.Append((empty_fragment(),))))
    return made


def succeeded(call: Callable[[int], object], count: int = 8) -> int:
    def run(number: int) -> bool:
        try:
            call(number)
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(count) as pool:
        return sum(pool.map(run, range(count)))


def test_of_many_who_make_a_tag_one_does(store: MemoryStore) -> None:
    assert succeeded(lambda number: create_tag(store, "t", number % 3 + 1)) == 1
    assert set(list_tags(store)) == {"t"}


def test_of_many_who_make_a_branch_one_does(store: MemoryStore) -> None:
    assert succeeded(lambda number: create_branch(open_snapshot(store, version=number % 3 + 1), "b")) >= 1
    found = list_branches(store)
    assert set(found) == {"b"}
    assert resolve_ref(open_snapshot(store), ("b", None)).branch == "b"


def test_a_tag_names_only_versions_there_are(store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        create_tag(store, "t", 9)
    with pytest.raises(NotFound):
        create_tag(store, "t", 1, branch="none")
    create_tag(store, "t", 1)
    with pytest.raises(NotFound, match="version 9"):
        move_tag(store, "t", 9)
    assert get_tag(store, "t").version == 1


@pytest.mark.parametrize("name", ["", "none", "..", "a/b", "é", "../../x", "\0"])
def test_a_tag_that_is_not_there_is_not_found(store: MemoryStore, name: str) -> None:
    for call in (get_tag, delete_tag):
        with pytest.raises((NotFound, InvalidInput)):
            call(store, name)


def test_a_tag_the_reference_escaped_is_found_listed_and_deleted(store: MemoryStore) -> None:
    store.put("_refs/tags/%C3%A9.json", write_tag(Tag(2)))
    assert get_tag(store, "é").version == list_tags(store)["é"].version == 2
    delete_tag(store, "é")
    assert not list_tags(store)


def test_what_is_no_tag_is_told_with_its_place(store: MemoryStore) -> None:
    store.put("_refs/tags/bad.json", b"{")
    store.put("_refs/tags/notes.txt", b"")
    store.put("_refs/tags/folder/t.json", b"")
    with pytest.raises(Corrupt, match=r"_refs/tags/bad\.json"):
        list_tags(store)


def test_tags_cost_a_listing_and_a_read_each(store: MemoryStore) -> None:
    for number in range(3):
        create_tag(store, f"t{number}", 1)
    counting = CountingStore(store)
    list_tags(counting)
    assert counting.snapshot().requests == {"list": 1, "read_all": 3}


def points(verbs: int) -> list[tuple[int, bool]]:
    return [(at, after) for at in range(1, verbs + 1) for after in (False, True)]


@pytest.mark.parametrize(("at", "after"), points(4))
def test_a_branch_whose_making_was_broken_off_is_whole_or_can_be_removed(
    store: MemoryStore, at: int, after: bool
) -> None:
    # Four writes: transaction, manifest, hint, and the branch's own file.
    dying = Dying(store, at, after)
    with pytest.raises(Killed):
        create_branch(open_snapshot(dying), "b")
    listed = "b" in list_branches(store)
    assert listed == ((at, after) == (4, True))
    if not listed:
        # Before its manifest is there nothing stands in the way of another attempt, afterwards it must be cleared away.
        if (at, after) >= (2, True):
            with pytest.raises(AlreadyExists, match="delete it with force"):
                create_branch(open_snapshot(store), "b")
            delete_branch(store, "b", force=True)
        create_branch(open_snapshot(store), "b")
    assert resolve_ref(open_snapshot(store), ("b", None)).version == 3


class Dying(Delegating):
    """A store that dies at its so-manieth write, before or after it."""

    def __init__(self, inner: Store, at: int, after: bool) -> None:
        super().__init__(inner)
        self._left, self._after = at, after

    def put(self, path: str, data: bytes | bytearray | memoryview) -> None:
        self._write(lambda: self.inner.put(path, data))

    def put_if_absent(self, path: str, data: bytes | bytearray | memoryview) -> None:
        self._write(lambda: self.inner.put_if_absent(path, data))

    def _write(self, call: Callable[[], None]) -> None:
        self._left -= 1
        if self._left == 0 and not self._after:
            raise Killed
        call()
        if self._left == 0:
            raise Killed


def test_a_branch_from_a_version_that_is_cleaned_up_meanwhile_is_not_made(store: MemoryStore) -> None:
    source = open_snapshot(store, version=1)
    store.delete([source.path])
    with pytest.raises(Conflict, match="cleaned up"):
        create_branch(source, "b")
    assert not list_branches(store)
    assert not list(store.list_from("tree/"))


def test_a_lost_answer_does_not_make_a_branch_twice(store: MemoryStore) -> None:
    faulty = FaultyStore(store, [Fault(kind=Kind.LOST_ANSWER, verb="put_if_absent", path="tree/b/_versions/*")])
    create_branch(open_snapshot(faulty), "b")
    assert get_branch(store, "b").parent_version == 3


def test_branches_go_on_by_themselves(store: MemoryStore) -> None:
    create_branch(open_snapshot(store, version=2), "b")
    branch = branch_store(store, "b")
    for _ in range(2):
        committed(carry_out(branch, op.Append((empty_fragment(),))))
    assert open_snapshot(store).version == 3
    assert (open_snapshot(branch).version, open_snapshot(branch).branch) == (4, "b")


def test_a_branch_that_is_not_listed_is_removed_by_force_only(store: MemoryStore) -> None:
    create_branch(open_snapshot(store), "b")
    store.delete([branch_path("b")])
    with pytest.raises(NotFound):
        delete_branch(store, "b")
    delete_branch(store, "b", force=True)
    assert not list(store.list_from("tree/"))


@pytest.mark.parametrize("name", ["", "main", "..", "a/..", "../data"])
def test_no_force_removes_what_is_no_branch(store: MemoryStore, name: str) -> None:
    before = [entry.path for entry in store.list_from("")]
    with pytest.raises(LanceletError):
        delete_branch(store, name, force=True)
    assert [entry.path for entry in store.list_from("")] == before


@pytest.mark.parametrize("name", ["a/data", "a/_versions", "a/b/_indices"])
def test_a_branch_does_not_lie_in_the_files_of_another(store: MemoryStore, name: str) -> None:
    with pytest.raises(InvalidInput, match="belongs to the branch above"):
        create_branch(open_snapshot(store), name)
