"""Opening tables: the newest version whatever names and hints say, old tables, and what it costs."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from lancelet.errors import Corrupt, NotFound, Unsupported
from lancelet.format import operations as op
from lancelet.format.manifest import data_version
from lancelet.format.manifest_file import write_manifest_file
from lancelet.format.names import HINT, NamingScheme, manifest_path
from lancelet.format.transaction import Transaction
from lancelet.format.versions import FileVersion
from lancelet.storage import open_store
from lancelet.storage.counting import CountingStore
from lancelet.storage.folder import folder_of
from lancelet.storage.local import LocalStore
from lancelet.storage.memory import MemoryStore
from lancelet.storage.store import Browsable, Store
from lancelet.table.commit import commit, create_table
from lancelet.table.outcome import Committed
from lancelet.table.snapshot import Snapshot, newer_manifests, open_snapshot
from lancelet.testing.tables import TWO_COLUMNS, carry_out, empty_fragment, make_table

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture(params=["listed", "named"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that lists manifests, and one that tells their names."""
    return MemoryStore(f"memory://{request.node.name}") if request.param == "listed" else LocalStore(tmp_path)


def put_version(store: Store, snapshot: Snapshot, version: int, scheme: NamingScheme) -> None:
    """A version that nobody committed."""
    data = write_manifest_file(replace(snapshot.manifest, version=version))
    store.put(manifest_path(version, scheme), data)


def test_opening_a_table_of_a_thousand_fragments_costs_one_listing_and_one_read(store: Store) -> None:
    make_table(store, 1000)
    counting = CountingStore(store)
    snapshot = open_snapshot(counting)
    assert len(snapshot.manifest.fragments) == 1000
    assert snapshot.indexes() == ()
    assert isinstance(snapshot.transaction(), Transaction)
    assert snapshot.count_rows() == 10_000
    assert counting.snapshot().requests == {"list": 1, "read_all": 1}


def test_opening_a_given_version_costs_one_read(store: Store) -> None:
    make_table(store)
    counting = CountingStore(store)
    assert open_snapshot(counting, version=1).version == 1
    assert counting.snapshot().requests == {"read_all": 1}


def test_by_v1_names_the_newest_version_is_the_greatest_number(store: Store) -> None:
    create_table(store, Transaction(0, op.Overwrite((), TWO_COLUMNS)), scheme=NamingScheme.V1)
    first = open_snapshot(store)
    for version in (2, 9, 10):
        put_version(store, first, version, NamingScheme.V1)
    assert (open_snapshot(store).version, open_snapshot(store).scheme) == (10, NamingScheme.V1)
    assert open_snapshot(store, version=9).version == 9


def test_names_of_both_schemes_are_refused(store: Store) -> None:
    first = make_table(store)
    for version in (1, 2, 9):
        put_version(store, first, version, NamingScheme.V1)
    with pytest.raises(Unsupported, match="both schemes"):
        open_snapshot(store)


@pytest.mark.parametrize("hint", [b"", b"{", b'{"version":99}', b'{"version":0}', b'{"version":"1"}', b"\xff" * 9])
def test_a_hint_may_say_anything(store: Store, hint: bytes) -> None:
    make_table(store)
    store.put(HINT, hint)
    assert open_snapshot(store).version == 1
    carry_out(store, op.Append((empty_fragment(),)))
    assert bytes(store.read_all(HINT)) == b'{"version":2}'


def test_other_files_and_detached_versions_are_not_the_newest(store: Store) -> None:
    first = make_table(store)
    store.put("_versions/.DS_Store", b"")
    store.put("_versions/1.manifest-5f1c", b"staged")
    made = commit(first, Transaction(1, op.Append((empty_fragment(),))), detached=True)
    assert isinstance(made, Committed)
    assert open_snapshot(store).version == 1
    assert len(open_snapshot(store, version=made.version).manifest.fragments) == 4


def test_what_is_not_there_is_not_found(store: Store) -> None:
    with pytest.raises(NotFound, match="no table"):
        open_snapshot(store)
    make_table(store)
    with pytest.raises(NotFound, match="no version 7"):
        open_snapshot(store, version=7)


def test_commits_of_others_are_found_in_a_long_history(store: Store) -> None:
    read = make_table(store)
    for version in range(2, 1200):
        put_version(store, read, version, NamingScheme.V2)
    assert open_snapshot(store).version == 1199
    assert sorted(version for version, _, _ in newer_manifests(store, 1196)) == [1197, 1198, 1199]
    assert newer_manifests(store, 1199) == []


def test_branches_tell_names_as_their_tables_do(tmp_path: Path) -> None:
    for inner in (MemoryStore("memory://named"), LocalStore(tmp_path)):
        branch = folder_of(inner, "tree/b")
        assert isinstance(branch, Browsable)
        assert branch.names("_versions") == []
        make_table(branch)
        branch.put("_versions/x/y", b"")
        assert branch.names("_versions") == ["18446744073709551614.manifest", "latest_version_hint.json", "x"]
        assert open_snapshot(branch).version == 1


def test_a_manifest_under_another_versions_name_is_corrupt(store: Store) -> None:
    make_table(store)
    store.copy(manifest_path(1), manifest_path(5))
    with pytest.raises(Corrupt, match="says version 1, its name 5"):
        open_snapshot(store)


def test_a_flag_for_readers_that_nobody_knows_refuses_the_table(store: Store) -> None:
    first = make_table(store)
    data = write_manifest_file(replace(first.manifest, version=2, reader_flags=1 << 40))
    store.put(manifest_path(2), data)
    with pytest.raises(Unsupported, match="bit 40"):
        open_snapshot(store)


def test_a_flag_for_writers_that_nobody_knows_refuses_commits_alone(store: Store) -> None:
    first = make_table(store)
    data = write_manifest_file(replace(first.manifest, version=2, writer_flags=1 << 40))
    store.put(manifest_path(2), data)
    assert open_snapshot(store).version == 2
    with pytest.raises(Unsupported, match="bit 40"):
        carry_out(store, op.Append((empty_fragment(),)))


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.iterdir() if path.is_dir()))
def test_old_tables_open_and_are_repaired_when_they_are_written(name: str, tmp_path: Path) -> None:
    root = Path(shutil.copytree(GOLDEN / name, tmp_path / name))
    store = open_store(root)
    before = open_snapshot(store)
    assert before.version == 1
    version = data_version(before.manifest)
    outcome = carry_out(store, op.UpdateConfig(op.MapUpdate((("written", "again"),))))
    assert isinstance(outcome, Committed)
    after = open_snapshot(store)
    if version is FileVersion.V0_1 and any(item.dictionary is not None for item in before.schema.walk()):
        assert after.file.dictionary_values() == before.file.dictionary_values() != b""
        with pytest.raises(Unsupported, match="are to be in the manifest"):
            carry_out(store, op.Overwrite((), before.schema))
    assert after.count_rows() is not None
    assert after.manifest.data_format is not None
    assert after.manifest.data_format.version == version.label
    assert after.scheme is before.scheme
