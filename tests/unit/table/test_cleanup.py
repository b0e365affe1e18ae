"""Cleanup without the reference: rules for each kind of file, damage, races, faults, and what it costs."""

from __future__ import annotations

import itertools
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lancelet.errors import Conflict, Corrupt, InvalidInput, LanceletError, Unsupported
from lancelet.events import subscribe
from lancelet.format import operations as op
from lancelet.format.manifest import BasePath
from lancelet.format.manifest_file import parse_manifest_file, write_manifest_file
from lancelet.format.names import manifest_path
from lancelet.format.transaction import Transaction
from lancelet.storage.counting import CountingStore
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Entry
from lancelet.table.branches import create_branch
from lancelet.table.cleanup import auto_cleanup, plan_cleanup, run_cleanup
from lancelet.table.cleanup_files import FileKind, Limits, References, judge_file
from lancelet.table.cleanup_policy import CleanupPolicy, auto_cleanup_policy, format_age, parse_age
from lancelet.table.clone import shallow_clone
from lancelet.table.commit import commit
from lancelet.table.diff import diff
from lancelet.table.outcome import committed
from lancelet.table.snapshot import open_snapshot
from lancelet.table.tags import create_tag
from lancelet.table.versions import list_versions
from lancelet.testing.faults import Fault, FaultyStore, Kind
from lancelet.testing.tables import carry_out, empty_fragment, make_table, written_deletion

NUMBERS = itertools.count()
GOLDEN = Path(__file__).resolve().parents[2] / "golden"
NOW = datetime(2026, 1, 15, tzinfo=UTC)
ALL = CleanupPolicy(older_than=timedelta(0))


@pytest.fixture
def store() -> MemoryStore:
    """Five versions; the last one replaced all rows, so that all before is old. Data files are there."""
    made = MemoryStore(f"memory://cleanup-{next(NUMBERS)}")
    snapshot = make_table(made, 2)
    committed(carry_out(made, op.Append((empty_fragment(),))))
    change = written_deletion(open_snapshot(made), 0, [1, 2])
    committed(carry_out(made, op.Delete((change,), ())))
    committed(carry_out(made, op.UpdateConfig(op.MapUpdate((("k", "v"),)))))
    committed(carry_out(made, op.Overwrite((empty_fragment(),), snapshot.schema)))
    for version in range(1, 6):
        for fragment in open_snapshot(made, version=version).manifest.fragments:
            for file in fragment.files:
                made.put(f"data/{file.path}", b"rows")
    return made


def paths(store: MemoryStore) -> set[str]:
    return {entry.path for entry in store.list_from("")}


def test_what_only_old_versions_name_goes(store: MemoryStore) -> None:
    plan = plan_cleanup(open_snapshot(store), ALL)
    assert [item.version for item in plan.versions] == [1, 2, 3, 4]
    counts = {kind: plan.count(kind) for kind in FileKind}
    assert counts == {
        FileKind.MANIFEST: 4,
        FileKind.DATA: 3,
        FileKind.DELETION: 1,
        FileKind.INDEX: 0,
        FileKind.TRANSACTION: 4,
        FileKind.TEMPORARY: 0,
    }
    before = sum(entry.size for entry in store.list_from(""))
    removed = run_cleanup(plan)
    assert (removed.old_versions, removed.data_files, removed.deletion_files) == (4, 3, 1)
    assert before - sum(entry.size for entry in store.list_from("")) == removed.bytes_removed
    assert len(paths(store)) == 4
    assert run_cleanup(plan) == removed
    assert str(plan_cleanup(open_snapshot(store), ALL)).endswith("versions that go: none")


def test_nothing_goes_of_a_young_table(store: MemoryStore) -> None:
    plan = plan_cleanup(open_snapshot(store))
    assert plan.policy.older_than == timedelta(days=14)
    assert (plan.versions, plan.files) == ((), ())
    later = plan_cleanup(open_snapshot(store), now=datetime.now(UTC) + timedelta(days=15))
    assert len(later.versions) == 4


def test_versions_after_the_one_cleaned_up_from_stay(store: MemoryStore) -> None:
    plan = plan_cleanup(open_snapshot(store, version=3), ALL)
    assert [item.version for item in plan.versions] == [1, 2]
    run_cleanup(plan)
    for version in (3, 4, 5):
        snapshot = open_snapshot(store, version=version)
        for fragment in snapshot.manifest.fragments:
            assert store.size(f"data/{fragment.files[0].path}") == 4


def test_a_tag_or_branch_made_since_the_plan_stops_it(store: MemoryStore) -> None:
    snapshot = open_snapshot(store)
    plan = plan_cleanup(snapshot, ALL)
    before = paths(store)
    create_tag(store, "late", 2)
    with pytest.raises(Conflict, match="tag 'late'") as caught:
        run_cleanup(plan)
    assert caught.value.retryable
    assert before <= paths(store)
    again = plan_cleanup(snapshot, replace(ALL, error_if_tagged=False))
    assert [(item.version, item.referred_by) for item in again.kept] == [(2, ("tag 'late'",))]
    create_branch(open_snapshot(store, version=1), "b")
    with pytest.raises(Conflict, match="branch 'b'"):
        run_cleanup(again)


@pytest.mark.parametrize(
    "path", ["_versions/18446744073709551613.manifest", "_refs/tags/t.json", "_refs/branches/b.json"]
)
def test_what_cannot_be_read_ends_the_cleanup(store: MemoryStore, path: str) -> None:
    snapshot = open_snapshot(store)
    store.put(path, b"damaged")
    with pytest.raises(Corrupt):
        plan_cleanup(snapshot, ALL)


@pytest.mark.parametrize(("verb", "calls"), [("read_all", 6), ("list", 10)])
def test_a_store_that_fails_ends_the_cleanup(store: MemoryStore, verb: str, calls: int) -> None:
    for at in range(1, calls + 1):
        faulty = FaultyStore(store, [Fault(kind=Kind.ERROR, verb=verb, at=at)])
        with pytest.raises(LanceletError):
            plan_cleanup(open_snapshot(faulty), ALL)


def test_a_version_with_an_unknown_flag_ends_the_cleanup(store: MemoryStore) -> None:
    path = manifest_path(2)
    file = parse_manifest_file(store.read_all(path))
    store.put(path, write_manifest_file(replace(file.manifest, reader_flags=1 << 40)))
    with pytest.raises(Unsupported, match="bit 40"):
        plan_cleanup(open_snapshot(store), ALL)


def test_a_version_tagged_in_its_own_manifest_stays(store: MemoryStore) -> None:
    path = manifest_path(2)
    file = parse_manifest_file(store.read_all(path))
    store.put(path, write_manifest_file(replace(file.manifest, tag="v1")))
    plan = plan_cleanup(open_snapshot(store), ALL)
    assert [(item.version, item.referred_by) for item in plan.kept] == [(2, ("the name 'v1' in its manifest",))]
    assert [item.version for item in plan.versions] == [1, 3, 4]


def test_manifests_go_before_the_files_they_name(store: MemoryStore) -> None:
    for at in range(1, 3):
        faulty = FaultyStore(store, [Fault(kind=Kind.ERROR, verb="delete", at=at)])
        with pytest.raises(LanceletError):
            run_cleanup(plan_cleanup(open_snapshot(faulty), ALL), rate_limit=4)
        for version in range(1, 6):
            if manifest_path(version) in paths(store):
                for fragment in open_snapshot(store, version=version).manifest.fragments:
                    assert store.size(f"data/{fragment.files[0].path}") == 4
    plan = plan_cleanup(open_snapshot(store), replace(ALL, delete_unverified=True))
    run_cleanup(plan)
    assert open_snapshot(store).version == 5


def test_a_plan_costs_a_read_for_each_version_and_a_listing_for_each_folder(store: MemoryStore) -> None:
    counting = CountingStore(store)
    snapshot = open_snapshot(counting)
    counting.reset()
    plan_cleanup(snapshot, ALL)
    # Listings: tags, branches, versions, detached versions, and the five folders.
    assert counting.snapshot().requests == {"list": 9, "read_all": 5}


def test_removal_tells_how_far_it_is_and_keeps_to_its_rate(store: MemoryStore) -> None:
    seen: list[object] = []
    plan = plan_cleanup(open_snapshot(store), ALL)
    with subscribe(lambda event: seen.append(event.facts.get("done")) if event.name.endswith("progress") else None):
        run_cleanup(plan, rate_limit=10)
    assert seen == [10, 12]
    with pytest.raises(InvalidInput, match="rate_limit"):
        run_cleanup(plan, rate_limit=0)


def test_a_base_path_within_the_table_keeps_its_files(store: MemoryStore) -> None:
    snapshot = open_snapshot(store)
    inside = BasePath(0, store.uri, is_dataset_root=True)
    committed(commit(snapshot, Transaction(5, op.UpdateBases((replace(inside, id=3),)))))
    fragment = snapshot.manifest.fragments[0]
    based = replace(fragment, id=0, files=tuple(replace(file, base_id=3) for file in fragment.files))
    committed(carry_out(store, op.Overwrite((based,), snapshot.schema)))
    plan = plan_cleanup(open_snapshot(store), replace(ALL, delete_unverified=True))
    assert f"data/{fragment.files[0].path}" not in {item.path for item in plan.files}


def test_files_of_other_places_are_not_looked_at(store: MemoryStore) -> None:
    target = MemoryStore(f"memory://cleanup-{next(NUMBERS)}")
    shallow_clone(open_snapshot(store), target)
    committed(carry_out(target, op.Overwrite((empty_fragment(),), open_snapshot(store).schema)))
    before = paths(store)
    run_cleanup(plan_cleanup(open_snapshot(target), replace(ALL, delete_unverified=True)))
    assert paths(store) == before
    assert len(open_snapshot(target).manifest.fragments) == 1


def test_auto_cleanup_follows_the_config(store: MemoryStore) -> None:
    assert auto_cleanup(open_snapshot(store)) is None
    entries = (("lance.auto_cleanup.interval", "3"), ("lance.auto_cleanup.retain_versions", "2"))
    committed(carry_out(store, op.UpdateConfig(op.MapUpdate(entries))))
    removed = auto_cleanup(open_snapshot(store))
    assert removed is not None
    assert removed.old_versions == 4
    committed(carry_out(store, op.Append((empty_fragment(),))))
    assert auto_cleanup(open_snapshot(store)) is None


@pytest.mark.parametrize(
    "config",
    [
        {"interval": "0"},
        {"interval": "x"},
        {"interval": "-1"},
        {"interval": "1", "older_than": "soon"},
        {"interval": "1", "retain_versions": "0"},
        {"interval": "1", "retain_versions": "²"},
    ],
)
def test_config_that_means_nothing_is_refused(config: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        auto_cleanup_policy({f"lance.auto_cleanup.{key}": value for key, value in config.items()}, 7)


@pytest.mark.parametrize(
    "wrong", [{"retain_versions": 0}, {"older_than": timedelta(seconds=-1)}, {"retain_versions": -5}]
)
def test_a_policy_that_means_nothing_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        CleanupPolicy(**wrong)  # type: ignore[arg-type]


@given(st.timedeltas(timedelta(0), timedelta(days=100_000)))
def test_ages_are_read_as_they_are_written(age: timedelta) -> None:
    assert abs(parse_age(format_age(age)) - age) <= timedelta(microseconds=1)


@pytest.mark.parametrize("text", ["", " ", "1", "s", "1 fortnight", "-1s", "1s,", "1.5h", "٣s"])
def test_what_is_no_age_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="no age"):
        parse_age(text)


def test_an_age_without_end_is_the_longest_there_is() -> None:
    assert parse_age("9" * 18 + "years") == timedelta.max
    policy = CleanupPolicy(older_than=timedelta.max)
    assert not policy.is_old(1, NOW, now=NOW, oldest_retained=None)


LIVE = References({"live.lance"}, {"_deletions/0-1-1.bin"}, {"_transactions/live.txn"}, {"_indices/live"})
GONE = References({"gone.lance"}, {"_deletions/0-1-2.bin"}, {"_transactions/gone.txn"}, {"_indices/gone"})
AGED = Limits(NOW - timedelta(days=7), oldest_kept=NOW - timedelta(days=1))
TRUSTED = Limits(None, oldest_kept=NOW - timedelta(days=1))


@pytest.mark.parametrize(
    ("path", "days", "aged", "trusted"),
    [
        ("data/live.lance", 99, None, None),
        ("data/live/x.blob", 99, None, None),
        ("data/gone.lance", 0, True, True),
        ("data/gone/x.blob", 0, True, True),
        ("data/new.lance", 0, None, False),
        ("data/new.lance", 6.9, None, False),
        ("data/new.lance", 7.1, False, False),
        ("data/new/x.blob", 7.1, False, False),
        ("data/x.blob", 99, None, None),
        ("data/x.txt", 99, None, None),
        ("_deletions/0-1-1.bin", 99, None, None),
        ("_deletions/0-1-2.bin", 0, True, True),
        ("_deletions/0-1-3.bin", 0.9, None, None),
        ("_deletions/0-1-3.bin", 1.1, None, False),
        ("_deletions/0-1-3.bin", 7.1, False, False),
        ("_transactions/live.txn", 99, None, None),
        ("_transactions/gone.txn", 0, True, True),
        ("_transactions/gone.txt", 99, None, None),
        ("_indices/live/a/b", 99, None, None),
        ("_indices/gone/a", 0, True, True),
        ("_indices/new/a", 0, None, False),
        ("_versions/.tmp/x", 99, False, False),
        ("_versions/1.manifest", 99, None, None),
        ("_refs/tags/t.json", 99, None, None),
        ("tree/b/data/x.lance", 99, None, None),
        ("other/x.lance", 99, None, None),
    ],
)
def test_each_kind_of_file_has_its_rule(path: str, days: float, aged: bool | None, trusted: bool | None) -> None:
    """Whether the file goes, and then whether it is verified: by age, and where the caller trusts nobody writes."""
    entry = Entry(path, 1, (NOW - timedelta(days=days)).timestamp())
    for limits, expected in ((AGED, aged), (TRUSTED, trusted)):
        found = judge_file(entry, LIVE, GONE, limits)
        assert (None if found is None else found.verified) == expected


def test_blobs_stay_where_they_cannot_be_followed() -> None:
    entry = Entry("data/gone/x.blob", 1, 0.0)
    assert judge_file(entry, LIVE, GONE, replace(TRUSTED, keep_blobs=True)) is None


@given(st.lists(st.integers(1, 50), min_size=1, unique=True).map(sorted), st.integers(1, 60))
def test_so_many_versions_are_retained_as_asked_for(numbers: list[int], retained: int) -> None:
    policy = CleanupPolicy(retain_versions=retained)
    oldest = policy.oldest_retained(numbers)
    kept = [item for item in numbers if not policy.is_old(item, NOW, now=NOW, oldest_retained=oldest)]
    assert kept == numbers[-retained:]


@pytest.mark.parametrize(
    "table", sorted(path for path in GOLDEN.iterdir() if path.is_dir()), ids=lambda path: path.name
)
def test_old_tables_are_listed_compared_and_cleaned_up(tmp_path: Path, table: Path) -> None:
    shutil.copytree(table, tmp_path / "t")
    store = LocalStore(tmp_path / "t")
    listed = list(list_versions(store))
    latest = open_snapshot(store)
    assert listed[0].version == latest.version
    assert str(diff(open_snapshot(store, version=listed[-1].version), latest)).startswith("version ")
    plan = plan_cleanup(latest, CleanupPolicy(older_than=timedelta(0), delete_unverified=True))
    named = {f"data/{file.path}" for item in latest.manifest.fragments for file in item.files}
    assert not named & {item.path for item in plan.files}
    run_cleanup(plan)
    assert [item.version for item in list_versions(store)] == [latest.version]
    for name in named:
        assert store.size(name)
