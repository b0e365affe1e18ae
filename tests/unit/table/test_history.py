"""Versions, restores, clones and migrated names, without the reference: costs, damage and sudden death."""

from __future__ import annotations

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from lancelet.errors import AlreadyExists, Conflict, Corrupt, InvalidInput, NotFound, Storage, Unsupported
from lancelet.format import operations as op
from lancelet.format.manifest_file import parse_manifest_file, write_manifest_file
from lancelet.format.names import NamingScheme, manifest_path
from lancelet.format.transaction import Transaction
from lancelet.storage.counting import CountingStore
from lancelet.storage.folder import folder_of
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Store
from lancelet.table.clone import deep_clone, plan_deep_clone, run_copy, shallow_clone
from lancelet.table.commit import commit, create_table
from lancelet.table.migrate import migrate_manifest_names
from lancelet.table.outcome import committed
from lancelet.table.parallel import in_order
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import find_manifests, open_snapshot
from lancelet.table.versions import (
    detached_versions,
    find_version,
    list_versions,
    restore_transaction,
    version_at,
)
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.tables import TWO_COLUMNS, carry_out, empty_fragment, make_table, write_table

NUMBERS = itertools.count()


def new_store() -> MemoryStore:
    return MemoryStore(f"memory://history-{next(NUMBERS)}")


def with_versions(count: int, scheme: NamingScheme = NamingScheme.V2) -> MemoryStore:
    store = new_store()
    committed(create_table(store, Transaction(0, op.Overwrite((), TWO_COLUMNS)), scheme=scheme))
    for _ in range(count - 1):
        committed(carry_out(store, op.Append((empty_fragment(),))))
    return store


def test_the_newest_versions_cost_no_more_than_they_are() -> None:
    counting = CountingStore(with_versions(200))
    listed = list_versions(counting)
    assert next(listed).version == 200
    listed.close()  # type: ignore[attr-defined]
    assert counting.snapshot().requests == {"list": 1, "read_all": 1}


@pytest.mark.parametrize("scheme", NamingScheme)
def test_versions_come_newest_first(scheme: NamingScheme) -> None:
    store = with_versions(12, scheme)
    assert [item.version for item in list_versions(store)] == list(range(12, 0, -1))
    assert [item.summary.total_rows for item in list_versions(store)] == list(range(110, -1, -10))


def test_a_version_that_is_cleaned_up_meanwhile_is_left_out() -> None:
    store = with_versions(5)
    listed = list_versions(store)
    next(listed)
    store.delete([manifest_path(1)])
    assert 1 not in [item.version for item in listed]


def test_a_version_that_cannot_be_read_is_told_with_its_place() -> None:
    store = with_versions(3)
    store.put(manifest_path(2), b"damaged")
    with pytest.raises(Corrupt, match=r"_versions/18446744073709551613\.manifest"):
        list(list_versions(store))


def test_moments_count_by_the_writers_clocks_even_where_these_disagree() -> None:
    store = with_versions(4)
    for version, hour in ((1, 1), (2, 5), (3, 3), (4, 9)):
        path = manifest_path(version)
        file = parse_manifest_file(store.read_all(path))
        moment = int(datetime(2026, 1, 1, hour, tzinfo=UTC).timestamp()) * 10**9
        store.put(path, write_manifest_file(replace(file.manifest, timestamp=moment)))
    asked = {2: 1, 3: 3, 4: 3, 5: 3, 10: 4}
    assert {hour: version_at(store, datetime(2026, 1, 1, hour, tzinfo=UTC)) for hour in asked} == asked
    with pytest.raises(NotFound, match="earlier than the first version"):
        version_at(store, datetime(2025, 1, 1, tzinfo=UTC))
    with pytest.raises(NotFound, match="no table"):
        version_at(new_store(), datetime(2025, 1, 1, tzinfo=UTC))


def test_old_manifests_without_a_time_have_the_stores() -> None:
    store = with_versions(1)
    file = parse_manifest_file(store.read_all(manifest_path(1)))
    store.put(manifest_path(1), write_manifest_file(replace(file.manifest, timestamp=None)))
    found = next(list_versions(store))
    assert datetime.now(UTC) - found.timestamp < timedelta(minutes=5)


def test_an_earlier_version_is_restored_with_a_message() -> None:
    store = with_versions(4)
    latest = open_snapshot(store)
    committed(commit(latest, restore_transaction(latest, 2, message="back")))
    now = open_snapshot(store)
    assert (now.version, now.count_rows()) == (5, 10)
    assert next(list_versions(store)).message == "back"
    with pytest.raises(NotFound, match="version 9"):
        restore_transaction(now, 9)


def test_detached_versions_are_listed_apart_and_opened_by_number() -> None:
    store = with_versions(2)
    latest = open_snapshot(store)
    outcome = commit(latest, Transaction(2, op.Append((empty_fragment(),))), detached=True)
    found = detached_versions(store)
    assert [item.version for item in found] == [committed(outcome).version]
    assert [item.version for item in list_versions(store)] == [2, 1]
    detached = resolve_ref(latest, found[0].version)
    assert detached.count_rows() == 20
    with pytest.raises(InvalidInput, match="detached"):
        restore_transaction(latest, detached.version)
    with pytest.raises(InvalidInput, match="detached"):
        shallow_clone(detached, new_store())


def test_a_version_is_found_by_either_name() -> None:
    for scheme in NamingScheme:
        found = find_version(with_versions(3, scheme), 2)
        assert (found.version, found.scheme, found.size > 0) == (2, scheme, True)


@pytest.mark.parametrize("count", [1, 2, 30])
def test_names_are_migrated_once(count: int) -> None:
    store = with_versions(count, NamingScheme.V1)
    before = [item.manifest for item in list_versions(store)]
    assert migrate_manifest_names(store) == count
    assert migrate_manifest_names(store) == 0
    assert [item.manifest for item in list_versions(store)] == before
    assert open_snapshot(store).scheme is NamingScheme.V2
    committed(carry_out(store, op.Append((empty_fragment(),))))
    assert open_snapshot(store).version == count + 1


@pytest.mark.parametrize("verb", ["copy", "delete"])
@pytest.mark.parametrize("at", [1, 3])
@pytest.mark.parametrize("after", [False, True])
def test_a_migration_that_was_broken_off_goes_on(verb: str, at: int, after: bool) -> None:
    store = with_versions(5, NamingScheme.V1)
    faulty = FaultyStore(store, [Fault(kind=Kind.KILL, verb=verb, at=at if verb == "copy" else 1, after=after)])
    with pytest.raises(Killed):
        migrate_manifest_names(faulty)
    kinds = {item.scheme for item in find_manifests(store)}
    if len(kinds) == 2:
        with pytest.raises(Unsupported, match="both schemes"):
            open_snapshot(store)
    migrate_manifest_names(store)
    assert [item.version for item in list_versions(store)] == [5, 4, 3, 2, 1]


def test_a_version_made_twice_stops_the_migration() -> None:
    store = with_versions(3, NamingScheme.V1)
    store.put(manifest_path(2), bytes(store.read_all(manifest_path(3, NamingScheme.V1))))
    with pytest.raises(Conflict, match="made twice"):
        migrate_manifest_names(store)
    assert len(list(store.list_from("_versions/"))) >= 4


def rows(count: int) -> pa.Table:
    return pa.table({"a": range(count)})


@pytest.fixture
def places(tmp_path: Path) -> tuple[Store, Store, Store]:
    """A table with files, and two empty stores: one that can copy from it itself, and one that cannot."""
    above = LocalStore(tmp_path)
    source = folder_of(above, "source")
    write_table(source, rows(100), rows(3))
    return source, folder_of(above, "near"), MemoryStore(f"memory://history-{next(NUMBERS)}")


def test_a_deep_clone_has_every_byte(places: tuple[Store, Store, Store]) -> None:
    source = open_snapshot(places[0])
    for target in places[1:]:
        counting = CountingStore(target)
        cloned = deep_clone(source, counting)
        assert cloned.manifest.fragments == source.manifest.fragments
        for fragment in source.manifest.fragments:
            path = f"data/{fragment.files[0].path}"
            assert bytes(target.read_all(path)) == bytes(places[0].read_all(path))
    plan = plan_deep_clone(source)
    assert plan.total_bytes == sum(file.file_size or 0 for item in source.manifest.fragments for file in item.files)
    assert "2 files" in str(plan)


def test_copies_can_be_made_by_anybody_and_again(places: tuple[Store, Store, Store]) -> None:
    source, _, target = places
    plan = plan_deep_clone(open_snapshot(source))
    for copy in (*plan.copies, *plan.copies):
        run_copy(plan, copy, target)
    assert len(list(target.list_from("data/"))) == 2


def test_a_version_with_a_file_missing_is_not_cloned_deep(places: tuple[Store, Store, Store]) -> None:
    source, target, _ = places
    snapshot = open_snapshot(source)
    missing = f"data/{snapshot.manifest.fragments[1].files[0].path}"
    source.delete([missing])
    with pytest.raises(Corrupt, match="missing"):
        deep_clone(snapshot, target)
    assert not list(target.list_from(""))


@pytest.mark.parametrize("deep", [False, True])
def test_a_clone_that_fails_half_way_is_no_table(places: tuple[Store, Store, Store], deep: bool) -> None:
    source, _, target = places
    snapshot = open_snapshot(source)
    clone = deep_clone if deep else shallow_clone
    faults = [Fault(kind=Kind.ERROR, verb="put_if_absent", path="_versions/*", times=None)]
    with pytest.raises(Storage):
        clone(snapshot, FaultyStore(target, faults))
    with pytest.raises(NotFound):
        open_snapshot(target)
    assert clone(snapshot, target).version == 1
    with pytest.raises(AlreadyExists):
        clone(snapshot, target)


def test_a_clone_may_begin_at_any_version_and_goes_on_from_there() -> None:
    store, target = with_versions(7), new_store()
    shallow_clone(open_snapshot(store, version=5), target)
    committed(carry_out(target, op.Append((empty_fragment(),))))
    assert [item.version for item in list_versions(target)] == [6, 5]
    assert open_snapshot(target).count_rows() == 50


def test_answers_come_in_order_and_no_more_are_asked_for_than_are_under_way() -> None:
    asked: list[int] = []

    def call(number: int) -> int:
        asked.append(number)
        return number

    answers = in_order(call, range(1000), concurrency=4)
    assert [next(answers) for _ in range(3)] == [0, 1, 2]
    answers.close()  # type: ignore[attr-defined]
    assert len(asked) <= 3 + 4


def test_the_first_failure_ends_the_calls() -> None:
    def call(number: int) -> int:
        if number == 5:
            raise NotFound("gone")
        return number

    answers = in_order(call, range(1000), concurrency=4)
    with pytest.raises(NotFound):
        list(answers)


def test_a_table_without_fragments_can_be_cloned() -> None:
    store = new_store()
    make_table(store, 0)
    for clone in (shallow_clone, deep_clone):
        assert clone(open_snapshot(store), new_store()).count_rows() == 0
