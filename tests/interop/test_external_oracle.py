"""Tables in DynamoDB (moto's) that pylance and lancelet write in turn, at once, and after one of them died."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TypeVar

import lance
import pyarrow as pa
import pytest

from lancelet.format import operations as op
from lancelet.format.names import VERSIONS, manifest_path
from lancelet.format.transaction import Transaction
from lancelet.storage.local import LocalStore
from lancelet.storage.store import Store
from lancelet.table.commit import commit as commit_version
from lancelet.table.external.contract import ManifestRecord
from lancelet.table.external.dynamodb import DynamoManifestStore
from lancelet.table.external.tables import External, open_table_store, with_manifest_store
from lancelet.table.handled_store import HandledStore
from lancelet.table.outcome import Committed
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.databases import dynamo_options, dynamo_store
from lancelet.testing.faults import Fault, FaultyStore, Killed, Kind
from lancelet.testing.faulty_manifests import FaultyManifests
from lancelet.testing.servers import ServedStore
from lancelet.testing.tables import carry_out, write_fragment

Made = TypeVar("Made")


@dataclass(frozen=True)
class Shared:
    """A table that both write to."""

    uri: str
    options: dict[str, str]
    manifests: DynamoManifestStore
    base: str

    @property
    def store(self) -> HandledStore:
        """The table as lancelet opens it."""
        opened = open_table_store(self.uri, storage_options=self.options)
        assert isinstance(opened, HandledStore)
        return opened

    def pylance_append(self, value: int) -> int:
        """Commit one row by pylance; the version that it made."""
        row = pa.table({"a": [value]})
        return int(lance.write_dataset(row, self.uri, mode="append", storage_options=self.options).version)

    def pylance_rows(self) -> list[int]:
        """What pylance reads."""
        return sorted(lance.dataset(self.uri, storage_options=self.options).to_table()["a"].to_pylist())


@pytest.fixture(scope="module")
def manifests(s3_server: ServedStore) -> DynamoManifestStore:
    return dynamo_store(s3_server)


@pytest.fixture
def shared(s3_server: ServedStore, manifests: DynamoManifestStore) -> Shared:
    """A table of one row, 0, made by pylance. Its folder has a space."""
    place = f"{s3_server.place()}/a b.lance"
    uri = place.replace("s3://", "s3+ddb://") + f"?ddbTableName={manifests.table}"
    options = dynamo_options(s3_server)
    lance.write_dataset(pa.table({"a": [0]}), uri, storage_options=options)
    return Shared(uri, options, manifests, place.removeprefix(f"{s3_server.uri}/"))


def append(store: Store, value: int) -> int:
    """Commit one row by lancelet; the version that it made."""
    outcome = carry_out(store, op.Append((write_fragment(store, pa.table({"a": [value]})),)))
    assert isinstance(outcome, Committed)
    return outcome.version


def check_records(shared: Shared, versions: int) -> None:
    """Every version is recorded at its final name, and no other manifest is there."""
    inner = shared.store.inner
    for version in range(1, versions + 1):
        path = manifest_path(version)
        record = shared.manifests.get(shared.base, version)
        assert record is not None
        assert (record.path, record.size) == (f"{shared.base}/{path}", inner.size(path))
    there = [entry.path for entry in inner.list_from(f"{VERSIONS}/") if not entry.path.endswith(".json")]
    assert there == sorted(manifest_path(version) for version in range(1, versions + 1))


def test_pylance_and_lancelet_know_a_table_by_the_same_key(shared: Shared) -> None:
    assert shared.store.make == External(shared.manifests, shared.base)
    record = shared.manifests.latest(shared.base)
    assert record is not None
    assert record.path == f"{shared.base}/{manifest_path(1)}"


def test_pylance_and_lancelet_commit_in_turn(shared: Shared) -> None:
    assert append(shared.store, 1) == 2
    assert shared.pylance_append(2) == 3
    assert append(shared.store, 3) == 4
    assert shared.pylance_rows() == [0, 1, 2, 3]
    assert open_snapshot(shared.store, version=3).version == 3
    old = lance.dataset(shared.uri, version=2, storage_options=shared.options)
    assert sorted(old.to_table()["a"].to_pylist()) == [0, 1]
    check_records(shared, 4)


def dying(shared: Shared, verb: str, after: bool) -> HandledStore:
    """The table of a writer that dies at a step of its commit."""
    inner = shared.store.inner
    if verb.startswith("put_if"):
        faulty = FaultyManifests(shared.manifests, verb, Killed(verb), after)
        return with_manifest_store(inner, faulty, base=shared.base)
    fault = Fault(kind=Kind.KILL, verb=verb, path=f"{VERSIONS}/*manifest*", after=after)
    return with_manifest_store(FaultyStore(inner, [fault]), shared.manifests, base=shared.base)


@pytest.mark.parametrize("recover", ["by reading", "by reading the version", "by writing"])
@pytest.mark.parametrize(("verb", "after"), [("copy", False), ("copy", True), ("delete", False)])
def test_pylance_finishes_what_a_dead_writer_left(verb: str, after: bool, recover: str, shared: Shared) -> None:
    with pytest.raises(Killed):
        append(dying(shared, verb, after), 1)
    if recover == "by reading":
        assert shared.pylance_rows() == [0, 1]
    elif recover == "by reading the version":
        assert lance.dataset(shared.uri, version=2, storage_options=shared.options).count_rows() == 2
    else:
        assert shared.pylance_append(2) == 3
    assert append(shared.store, 3) == (4 if recover == "by writing" else 3)
    assert {0, 1, 3} <= set(shared.pylance_rows())
    if verb == "copy":
        check_records(shared, 4 if recover == "by writing" else 3)


def test_pylance_sees_nothing_of_a_writer_that_died_before_its_record(shared: Shared) -> None:
    for verb, after in (("put", True), ("put_if_absent", False)):
        with pytest.raises(Killed):
            append(dying(shared, verb, after), 1)
    assert shared.pylance_rows() == [0]
    assert shared.pylance_append(2) == 2
    assert append(shared.store, 3) == 3
    assert shared.pylance_rows() == [0, 2, 3]


def test_lancelet_finishes_what_a_dead_pylance_left(shared: Shared) -> None:
    assert shared.pylance_append(1) == 2
    # As pylance leaves it between its second step and its third: recorded with a size and an e-tag, and not copied.
    store, path = shared.store.inner, manifest_path(2)
    staged = f"{path}-3e2b6a1c-0df4-4f6c-9d7e-0f9a2a8e1b11"
    store.copy(path, staged)
    size = store.size(path)
    store.delete([path])
    shared.manifests.put_if_exists(shared.base, ManifestRecord(2, f"{shared.base}/{staged}", size, '"an e-tag"'))
    assert open_snapshot(shared.store).version == 2
    check_records(shared, 2)
    assert shared.pylance_rows() == [0, 1]


def test_of_eight_racing_writers_of_both_kinds_every_acknowledged_commit_stays(shared: Shared) -> None:
    # pylance gives up after five overtaken attempts where all are retried at once; what it acknowledges must stay.
    def commit(value: int) -> int | None:
        if value % 2:
            return append(shared.store, value)
        return _unless_refused(lambda: shared.pylance_append(value))

    with ThreadPoolExecutor(8) as pool:
        versions = dict(zip(range(1, 13), pool.map(commit, range(1, 13)), strict=True))
    acknowledged = {value for value, version in versions.items() if version is not None}
    assert {value for value in range(1, 13) if value % 2} <= acknowledged
    rows = shared.pylance_rows()
    assert len(rows) == len(set(rows))
    assert acknowledged <= set(rows)
    newest = open_snapshot(shared.store)
    assert newest.count_rows() == len(rows)
    check_records(shared, newest.version)


def test_pylance_and_lancelet_commit_under_the_same_lock(tmp_path: Path) -> None:
    uri, lock = str(tmp_path / "t.lance"), Lock()
    versions = []

    @contextmanager
    def held(version: int) -> Iterator[None]:
        with lock:
            versions.append(version)
            yield

    def commit(value: int) -> int | None:
        if value % 2:
            store = LocalStore(uri)
            snapshot, fragment = open_snapshot(store), write_fragment(store, pa.table({"a": [value]}))
            outcome = commit_version(snapshot, Transaction(snapshot.version, op.Append((fragment,))), commit_lock=held)
            assert isinstance(outcome, Committed)
            return outcome.version
        row = pa.table({"a": [value]})
        return _unless_refused(lambda: lance.write_dataset(row, uri, mode="append", commit_lock=held).version)

    lance.write_dataset(pa.table({"a": [0]}), uri, commit_lock=held)
    with ThreadPoolExecutor(4) as pool:
        made = list(pool.map(commit, range(1, 9)))
    acknowledged = {value for value, version in enumerate(made, 1) if version is not None}
    rows = lance.dataset(uri).to_table()["a"].to_pylist()
    assert acknowledged <= set(rows)
    assert len(rows) == len(set(rows))
    assert set(versions) == set(range(1, len(rows) + 1))


def _unless_refused(make: Callable[[], Made]) -> Made | None:
    try:
        return make()
    except OSError:
        return None
