"""Cleanup removes what pylance's removes from a copy of the same table, or less for a reason given here."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.blob import blob_array, blob_field
from lance.dataset import AutoCleanupConfig

from lancelet.errors import InvalidInput
from lancelet.format import operations as op
from lancelet.storage import open_store
from lancelet.table.cleanup import auto_cleanup, plan_cleanup, run_cleanup
from lancelet.table.cleanup_files import FileKind
from lancelet.table.cleanup_policy import CleanupPolicy, auto_cleanup_config, auto_cleanup_policy
from lancelet.table.outcome import committed
from lancelet.table.paths import branch_store
from lancelet.table.snapshot import open_snapshot
from lancelet.table.versions import list_versions
from lancelet.testing.tables import carry_out, write_fragment

ORPHANS = (
    *("data/orphan.lance", "data/orphan.txt", "data/orphan.blob", "data/sub/o.lance", "data/x/y.blob"),
    *("_deletions/9-9-9.arrow", "_deletions/x.txt", "_transactions/9-x.txn", "_transactions/9-x.txt"),
    *("_indices/45a7cd9f-48c6-421f-a131-523aefd029ca/page.lance", "_indices/loose.txt"),
    *("_versions/.tmp/x", "_versions/.tmp_7.manifest_1", "_versions/99.manifest-abc"),
    *("extra/o.lance", "_mem_wal/x.lance", "_attempts/x.json"),
)


def rows(count: int, start: int = 0) -> pa.Table:
    return pa.table({"x": pa.array(range(start, start + count), pa.int64())})


def plain(path: Path, *, v2_names: bool = True) -> None:
    """Six versions with appends, deletes, an index, and all of it overwritten."""
    dataset = lance.write_dataset(rows(10), path, enable_v2_manifest_paths=v2_names)
    dataset = lance.write_dataset(rows(10, 10), path, mode="append")
    dataset.delete("x = 3")
    dataset.create_scalar_index("x", "BTREE")
    dataset.delete("x = 4")
    lance.write_dataset(rows(10), path, mode="overwrite")


def with_orphans(path: Path, days: float = 0) -> None:
    plain(path)
    made = time.time() - days * 86_400
    for name in ORPHANS:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("left over")
        os.utime(path / name, (made, made))


def with_old_orphans(path: Path) -> None:
    with_orphans(path, days=8)


def with_nearly_old_orphans(path: Path) -> None:
    with_orphans(path, days=6.9)


def compacted(path: Path) -> None:
    for turn in range(5):
        lance.write_dataset(rows(5, 5 * turn), path, mode="append" if turn else "create")
    dataset = lance.dataset(path)
    dataset.delete("x = 7")
    dataset.optimize.compact_files()
    dataset.update({"x": "x + 100"}, where="x < 3")


def v1_names(path: Path) -> None:
    plain(path, v2_names=False)


def tagged(path: Path) -> None:
    plain(path)
    lance.dataset(path).tags.create("t", 2)


def tagged_orphans(path: Path) -> None:
    with_old_orphans(path)
    lance.dataset(path).tags.create("t", 2)


def branched(path: Path) -> None:
    plain(path)
    dataset = lance.dataset(path)
    dataset.create_branch("b1", 4)
    branch = lance.write_dataset(rows(3, 40), dataset.create_branch("b/2", 2), mode="append")
    branch.delete("x = 1")
    branch.create_branch("nested", ("b/2", 3))
    dataset.tags.create("on-branch", ("b/2", 3))


def blobs(path: Path) -> None:
    """Payloads beside the data files, some of versions that are old, some of none."""
    field = blob_field("b", inline_size_threshold=10, dedicated_size_threshold=1000, pack_file_size_threshold=1500)
    table = pa.table([blob_array([bytes([turn]) * 900 * turn for turn in range(4)])], schema=pa.schema([field]))
    lance.write_dataset(table, path, data_storage_version="2.2")
    lance.write_dataset(table, path, mode="overwrite")
    lance.write_dataset(table, path, mode="append")
    (path / "data/orphan").mkdir()
    (path / "data/orphan/10000000000000000000000000000000.blob").write_text("left over")


BUILDERS = [plain, with_orphans, with_old_orphans, with_nearly_old_orphans, compacted, v1_names, tagged, tagged_orphans,
            branched, blobs]  # fmt: skip
NOW = timedelta(microseconds=1)
POLICIES = [
    CleanupPolicy(older_than=NOW, error_if_tagged=False),
    CleanupPolicy(older_than=NOW, error_if_tagged=False, delete_unverified=True),
    CleanupPolicy(retain_versions=2, error_if_tagged=False),
    CleanupPolicy(retain_versions=1, error_if_tagged=False, delete_unverified=True),
    CleanupPolicy(retain_versions=100, error_if_tagged=False),
    CleanupPolicy(older_than=NOW, retain_versions=3, error_if_tagged=False),
    CleanupPolicy(older_than=timedelta(days=1), retain_versions=1, error_if_tagged=False),
    CleanupPolicy(versions=frozenset({2, 3}), error_if_tagged=False),
    CleanupPolicy(versions=frozenset({1, 4, 6}), error_if_tagged=False, delete_unverified=True),
    CleanupPolicy(error_if_tagged=False),
]


def files(path: Path) -> set[str]:
    return {str(item.relative_to(path)) for item in path.rglob("*") if item.is_file()}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tables")
    for build in BUILDERS:
        build(root / build.__name__)
    return root


@contextlib.contextmanager
def trial(table: Path, backup: Path) -> Iterator[None]:
    """Put a table back as it was afterwards, at the same place: branches name their files by absolute paths."""
    shutil.copytree(table, backup, copy_function=os.link)
    try:
        yield
    finally:
        shutil.rmtree(table)
        shutil.move(backup, table)


def at(table: Path, branch: str | None) -> lance.LanceDataset:
    dataset = lance.dataset(table)
    return dataset if branch is None else dataset.checkout_version((branch, None))


def both_clean(
    table: Path, place: Path, policy: CleanupPolicy, branch: str | None = None, branches: tuple[str, ...] = ()
) -> tuple[set[str], set[str]]:
    """What our cleanup of a table removes, and what pylance's removes; afterwards all branches read as before."""
    before, seen = files(table), [at(table, name).to_table() for name in (None, *branches)]
    with trial(table, place / "backup"):
        removed = run_cleanup(plan_cleanup(open_snapshot(branch_store(open_store(table), branch)), policy))
        ours = before - files(table)
        for name, expected in zip((None, *branches), seen, strict=True):
            assert at(table, name).to_table() == expected
    with trial(table, place / "backup"):
        told = at(table, branch).cleanup_old_versions(
            policy.older_than,
            policy.retain_versions,
            delete_unverified=policy.delete_unverified,
            error_if_tagged_old_versions=policy.error_if_tagged,
            versions=None if policy.versions is None else sorted(policy.versions),
        )
        theirs = before - files(table)
    if ours == theirs:
        expected_counts = (told.data_files_removed, told.transaction_files_removed, told.index_files_removed)
        assert (removed.data_files, removed.transaction_files, removed.index_files) == expected_counts
        assert (removed.bytes_removed, removed.old_versions) == (told.bytes_removed, told.old_versions)
        assert removed.deletion_files == told.deletion_files_removed
    return ours, theirs


THOROUGH = (with_orphans, branched)
CASES = [(build, policy) for build in BUILDERS for policy in (POLICIES if build in THOROUGH else POLICIES[:3])]


@pytest.mark.parametrize(("build", "policy"), CASES)
def test_the_same_files_go(tables: Path, tmp_path: Path, build: Callable[[Path], None], policy: CleanupPolicy) -> None:
    table = tables / build.__name__
    kept = {item.version for item in plan_cleanup(open_snapshot(open_store(table)), policy).kept}
    names = {item.version: item.manifest.transaction_file for item in list_versions(open_store(table))}
    branches = ("b1", "b/2", "nested") if build is branched else ()
    ours, theirs = both_clean(table, tmp_path, policy, branches=branches)
    # pylance removes the transactions of versions that it keeps for the branches that start from them.
    spared = {f"_transactions/{names[version]}" for version in kept}
    if policy.versions:
        # Asked for certain versions, pylance also removes files that no version names and that are younger than one
        # that stays: they may be a writer's that has not committed yet, so they stay here until they are old.
        spared |= {name for name in ORPHANS if name.startswith(("_deletions", "_transactions", "_versions"))}
    assert sorted(ours) == sorted(name for name in theirs if name in ours or name not in spared)


@pytest.mark.parametrize("policy", POLICIES[:4])
@pytest.mark.parametrize("branch", ["b1", "b/2"])
def test_the_same_files_of_a_branch_go(tables: Path, tmp_path: Path, branch: str, policy: CleanupPolicy) -> None:
    ours, theirs = both_clean(tables / "branched", tmp_path, policy, branch, ("b1", "b/2", "nested"))
    assert sorted(ours) == sorted(theirs)


def test_tagged_versions_are_an_error_where_they_should_be(tables: Path) -> None:
    snapshot = open_snapshot(open_store(tables / "tagged"))
    with pytest.raises(InvalidInput, match=r"'t' \(version 2\)"):
        plan_cleanup(snapshot, CleanupPolicy(older_than=NOW))
    with pytest.raises(OSError, match="tagged"):
        lance.dataset(tables / "tagged").cleanup_old_versions(NOW)
    assert plan_cleanup(snapshot, CleanupPolicy(versions=frozenset({1}))).kept == ()


def test_a_plan_says_what_goes_and_why_and_removes_nothing(tables: Path) -> None:
    table = tables / "tagged_orphans"
    before = files(table)
    plan = plan_cleanup(open_snapshot(open_store(table)), POLICIES[0])
    told = lance.dataset(table).explain_cleanup_old_versions(NOW, error_if_tagged_old_versions=False)
    assert (plan.total_bytes, plan.count(FileKind.MANIFEST)) == (told.stats.bytes_removed, told.stats.old_versions)
    text = str(plan)
    for line in ("versions that go: 1, 3, 4, 5", "version 2 stays: tag 't'", "no version names it", "only versions"):
        assert line in text
    assert files(table) == before


def test_files_of_detached_versions_stay(tmp_path: Path) -> None:
    path = tmp_path / "t"
    plain(path)
    fragment = lance.fragment.LanceFragment.create(path, rows(5))
    operation = lance.LanceOperation.Append([fragment])
    detached = lance.LanceDataset.commit(path, operation, read_version=6, detached=True)
    # pylance removes the data file of the detached version here; it is named by a version that can still be opened.
    policy = CleanupPolicy(older_than=NOW, delete_unverified=True)
    run_cleanup(plan_cleanup(open_snapshot(open_store(path)), policy))
    assert lance.dataset(path, version=detached.version).count_rows() == 15
    snapshot = open_snapshot(open_store(path), version=detached.version)
    assert snapshot.count_rows() == 15


@pytest.mark.parametrize("age", [timedelta(seconds=100), timedelta(days=14), timedelta(days=400, hours=3)])
def test_config_for_cleanup_after_commits_means_the_same_to_both(tmp_path: Path, age: timedelta) -> None:
    options: AutoCleanupConfig = {"interval": 3, "older_than_seconds": int(age.total_seconds())}
    lance.write_dataset(rows(1), tmp_path / "t", auto_cleanup_options=options)
    config = open_snapshot(open_store(tmp_path / "t")).manifest.config
    assert config == auto_cleanup_config(3, older_than=age)
    policy = auto_cleanup_policy(config, 6)
    assert policy is not None
    assert policy.older_than == age


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"interval": "3", "retain_versions": "2"}, [2, 3, 4, 2, 3, 4, 2]),
        ({"interval": "2", "retain_versions": "1"}, [3, 2, 3, 2, 3, 2, 3]),
        ({"interval": "1", "older_than": "0s"}, [2, 2, 2, 2, 2, 2, 2]),
        ({"interval": "1", "older_than": "1day"}, [3, 4, 5, 6, 7, 8, 9]),
        ({"interval": "4", "older_than": "0s", "retain_versions": "3"}, [3, 3, 4, 5, 6, 3, 4]),
    ],
)
def test_versions_go_after_the_commits_that_the_config_names(
    tmp_path: Path, config: dict[str, str], expected: list[int]
) -> None:
    entries: dict[str, str | None] = {f"lance.auto_cleanup.{key}": value for key, value in config.items()}
    for name in ("ours", "theirs"):
        lance.write_dataset(rows(1), tmp_path / name).update_config(entries)
    left = []
    for _ in range(7):
        lance.write_dataset(rows(1), tmp_path / "theirs", mode="append")
        store = open_store(tmp_path / "ours")
        committed(carry_out(store, op.Append((write_fragment(store, rows(1)),))))
        auto_cleanup(open_snapshot(store))
        ours, theirs = (
            [item["version"] for item in lance.dataset(tmp_path / name).versions()] for name in ("ours", "theirs")
        )
        assert ours == theirs
        left.append(len(ours))
    assert left == expected
