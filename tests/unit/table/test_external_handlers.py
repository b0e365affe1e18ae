"""Commit handlers: locks of callers, stores that decide by themselves, and the URIs of tables in DynamoDB."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock

import pytest

from lancelet.errors import Conflict, InvalidInput
from lancelet.format import operations as op
from lancelet.format.transaction import Transaction
from lancelet.storage.memory import MemoryStore
from lancelet.storage.remote import RemoteStore
from lancelet.storage.store import Store
from lancelet.table.commit import commit
from lancelet.table.external.tables import open_table_store
from lancelet.table.handled_store import HandledStore
from lancelet.table.handlers import CommitHandler, LockHandler, Lost, Published, PutIfAbsentHandler
from lancelet.table.outcome import Committed
from lancelet.table.snapshot import open_snapshot
from lancelet.testing.tables import empty_fragment, make_table


@pytest.fixture
def plain() -> MemoryStore:
    return MemoryStore(f"memory://{uuid.uuid4()}")


class Diary:
    """A lock that tells how it was used."""

    def __init__(self, *, refuse: bool = False, fail_at_the_end: bool = False) -> None:
        self.lines: list[str] = []
        self._lock = Lock()
        self._refuse, self._fail_at_the_end = refuse, fail_at_the_end

    @contextmanager
    def __call__(self, version: int) -> Iterator[None]:
        if self._refuse:
            raise Conflict("the catalog has another version", version=version)
        with self._lock:
            self.lines.append(f"lock {version}")
            try:
                yield
            except Conflict:
                self.lines.append("overtaken")
                raise
            self.lines.append("free")
            if self._fail_at_the_end:
                raise Conflict("the lease ran out", version=version)


def test_a_lock_is_held_while_a_version_is_published_and_told_when_it_was_overtaken(plain: MemoryStore) -> None:
    diary = Diary()
    handler: CommitHandler = LockHandler(PutIfAbsentHandler(plain), diary)
    assert isinstance(handler, CommitHandler)
    assert isinstance(handler.publish(1, b"ours"), Published)
    assert handler.publish(1, b"theirs") == Lost(1)
    assert diary.lines == ["lock 1", "free", "lock 1", "overtaken"]
    found = handler.latest()
    assert found is not None
    assert bytes(plain.read_all(found.path)) == b"ours"
    assert handler.resolve(1).path == found.path


def test_a_lock_that_refuses_says_that_the_version_is_taken(plain: MemoryStore) -> None:
    handler = LockHandler(PutIfAbsentHandler(plain), Diary(refuse=True))
    assert handler.publish(1, b"ours") == Lost(1)
    assert handler.latest() is None


def test_what_was_published_stays_so_though_the_lock_fails_afterwards(plain: MemoryStore) -> None:
    handler = LockHandler(PutIfAbsentHandler(plain), Diary(fail_at_the_end=True))
    assert isinstance(handler.publish(1, b"ours"), Published)


def test_other_errors_of_a_lock_are_the_callers(plain: MemoryStore) -> None:
    @contextmanager
    def broken(version: int) -> Iterator[None]:
        raise TimeoutError("no lock server")
        yield

    with pytest.raises(TimeoutError):
        LockHandler(PutIfAbsentHandler(plain), broken).publish(1, b"ours")


def test_eight_writers_under_one_lock_commit_one_after_another(plain: MemoryStore) -> None:
    diary = Diary()

    make_table(plain)

    def append(_: int) -> int:
        snapshot = open_snapshot(plain)
        transaction = Transaction(snapshot.version, op.Append((empty_fragment(),)))
        outcome = commit(snapshot, transaction, commit_lock=diary)
        assert isinstance(outcome, Committed)
        return outcome.version

    with ThreadPoolExecutor(8) as pool:
        assert sorted(pool.map(append, range(16))) == list(range(2, 18))
    assert open_snapshot(plain).version == 17
    assert diary.lines.count("free") == 16


def test_what_is_no_manifest_passes_by_the_handler(plain: MemoryStore) -> None:
    def none(store: Store, folder: str) -> CommitHandler:
        raise AssertionError("nobody asked for a manifest")

    table = HandledStore(plain, none)
    for path in ("data/1.manifest", "x_versions/1.manifest", "_versions/hint.json", "_versions/a/1.manifest"):
        table.put_if_absent(path, b"1")
        assert bytes(table.read_all(path)) == b"1"
    assert len(list(table.list_from(""))) == 4


@pytest.mark.parametrize("query", ["", "?", "?ddbTableName=", "?table=t", "?ddbTableName=t&x=1", "?ddbTableName"])
def test_a_uri_in_dynamodb_names_one_table_of_it(query: str) -> None:
    with pytest.raises(InvalidInput, match="ddbTableName"):
        open_table_store(f"s3+ddb://bucket/a/t.lance{query}")


def test_a_uri_in_dynamodb_names_a_folder_of_a_bucket() -> None:
    with pytest.raises(InvalidInput, match="folder"):
        open_table_store("s3+ddb://bucket?ddbTableName=t")
    store = open_table_store("s3+ddb://bucket/a%20b/t.lance/?ddbTableName=t", storage_options={"region": "eu-west-1"})
    assert isinstance(store, HandledStore)
    assert isinstance(store.inner, RemoteStore)
    assert store.uri == "s3://bucket/a b/t.lance"
    assert repr(store.make) == "External(manifests=DynamoManifestStore(table='t'), base='a b/t.lance')"


def test_other_uris_are_opened_as_ever() -> None:
    assert isinstance(open_table_store("memory://plain"), MemoryStore)
