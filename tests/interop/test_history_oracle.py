"""The history of a table in turns with pylance: versions, moments, restores, differences, names of manifests."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from lancelet.errors import InvalidInput, LanceletError, NotFound
from lancelet.format import operations as op
from lancelet.format.refs import parse_tag
from lancelet.format.transaction import COMMIT_MESSAGE, Transaction
from lancelet.storage import open_store
from lancelet.table.branches import (
    create_branch,
)
from lancelet.table.commit import commit
from lancelet.table.diff import diff
from lancelet.table.migrate import migrate_manifest_names
from lancelet.table.outcome import committed
from lancelet.table.references import resolve_ref
from lancelet.table.snapshot import Snapshot, open_snapshot
from lancelet.table.versions import detached_versions, list_versions, restore_transaction


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


def moment_of(version: Mapping[str, object]) -> datetime:
    moment = version["timestamp"]
    assert isinstance(moment, datetime)
    return moment


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
        for wanted in (moment - timedelta(microseconds=10), moment + timedelta(milliseconds=1)):
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


def test_both_read_what_the_other_restored(table: Path) -> None:
    latest = opened(table)
    expected = lance.dataset(table, version=2).to_table()
    committed(commit(latest, restore_transaction(latest, 2, message="as it was")))
    dataset = lance.dataset(table)
    assert dataset.version == 6
    assert dataset.to_table() == expected
    transaction = dataset.read_transaction(6)
    assert transaction is not None
    assert transaction.transaction_properties == {"__lance_commit_message": "as it was"}
    dataset.checkout_version(4).restore()  # type: ignore[no-untyped-call]
    ours = opened(table)
    assert (ours.version, ours.count_rows(), [item.name for item in ours.indexes()]) == (7, 19, ["x_idx"])
    assert not diff(opened(table, 4), ours)
    assert lance.dataset(table).to_table(filter="x = 12").num_rows == 1


def test_both_say_the_same_about_commits(table: Path) -> None:
    lance.write_dataset(rows(1), table, mode="append", commit_message="theirs")
    snapshot = opened(table)
    change = op.UpdateConfig(op.MapUpdate((("k", "v"),)))
    transaction = Transaction(snapshot.version, change, properties={COMMIT_MESSAGE: "ours"})
    committed(commit(snapshot, transaction))
    assert [item.message for item in list_versions(open_store(table))][:3] == ["ours", "theirs", None]
    theirs = lance.dataset(table).get_transactions(2)
    told = [(item.transaction_properties or {}).get(COMMIT_MESSAGE) for item in theirs if item is not None]
    assert told == ["ours", "theirs"]


def test_both_open_the_others_detached_versions(table: Path) -> None:
    snapshot = opened(table)
    fragment = lance.fragment.LanceFragment.create(table, rows(4, 200))
    theirs = lance.LanceDataset.commit(
        table, lance.LanceOperation.Append([fragment]), read_version=snapshot.version, detached=True
    )
    assert resolve_ref(snapshot, theirs.version).count_rows() == 22
    change = Transaction(snapshot.version, op.Delete((), (0,), "all"))
    ours = committed(commit(snapshot, change, detached=True))
    assert lance.dataset(table, version=ours.version).count_rows() == 9
    assert {item.version for item in detached_versions(open_store(table))} == {theirs.version, ours.version}
    assert lance.dataset(table).version == 5


@pytest.mark.parametrize("ours", [False, True])
def test_names_of_manifests_are_migrated_alike(tmp_path: Path, ours: bool) -> None:
    path = tmp_path / "t"
    for turn in range(4):
        lance.write_dataset(rows(3), path, mode="append" if turn else "create", enable_v2_manifest_paths=False)
    if ours:
        assert migrate_manifest_names(open_store(path)) == 4
    else:
        lance.dataset(path).migrate_manifest_paths_v2()  # type: ignore[no-untyped-call]
    names = {item.name for item in (path / "_versions").glob("*.manifest")}
    assert names == {f"{(1 << 64) - 1 - version:020}.manifest" for version in range(1, 5)}
    lance.write_dataset(rows(3), path, mode="append")
    assert (opened(path).version, opened(path).count_rows(), lance.dataset(path).count_rows()) == (5, 15, 15)


def test_differences_are_those_of_what_pylance_did(table: Path) -> None:
    dataset = lance.dataset(table)
    dataset.add_columns({"y": "x * 2"})
    dataset.alter_columns({"path": "x", "name": "z"})  # type: ignore[dict-item]
    dataset.drop_columns(["y"])
    dataset.update_config({"k": "v"})
    dataset.drop_index("x_idx")
    dataset = lance.write_dataset(pa.table({"z": pa.array([1], pa.int64())}), table, mode="append")
    found = diff(opened(table, 5), opened(table))
    assert [(one.name, other.name) for one, other in found.fields.changed] == [("x", "z")]
    assert (found.rows, len(found.fragments.added)) == (1, 1)
    assert [item.name for item in found.indexes.removed] == ["x_idx"]
    assert found.config.added == (("k", "v"),)
    assert diff(opened(table, 5), opened(table, 6)).fields.added[0].name == "y"
