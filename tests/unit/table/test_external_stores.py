"""Manifest stores keep one contract, in SQLite, PostgreSQL and DynamoDB alike."""

from __future__ import annotations

import pickle
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from lancelet.errors import AlreadyExists, Corrupt, InvalidInput, NotFound, Storage
from lancelet.format.names import DETACHED
from lancelet.table.external.contract import ManifestRecord, ManifestStore
from lancelet.table.external.dynamodb import DynamoManifestStore
from lancelet.table.external.sql import PostgresManifestStore, SqliteManifestStore
from lancelet.testing.databases import dynamo_store, postgres_server
from lancelet.testing.servers import ServedStore


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A PostgreSQL server. Skips where none is installed."""
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'lancelet[postgres]'")
    server = postgres_server()
    try:
        connection = server.__enter__()
    except NotFound as error:
        pytest.skip(str(error))
    yield connection
    server.__exit__(None, None, None)


@pytest.fixture(params=["sqlite", "postgres", "dynamodb"])
def manifests(request: pytest.FixtureRequest, tmp_path: Path) -> ManifestStore:
    """Each kind of manifest store in turn, empty or with other tables in it."""
    if request.param == "sqlite":
        return SqliteManifestStore(str(tmp_path / "commits.db"))
    if request.param == "postgres":
        return PostgresManifestStore(request.getfixturevalue("postgres"))
    return dynamo_store(request.getfixturevalue("s3_server"))


@pytest.fixture
def base() -> str:
    return f"tables/{uuid.uuid4()}"


def staged(base: str, version: int, by: str = "x") -> ManifestRecord:
    return ManifestRecord(version, f"{base}/_versions/{version}.manifest-{by}", 10 + version, None)


def test_a_table_that_was_never_written_has_no_records(manifests: ManifestStore, base: str) -> None:
    assert isinstance(manifests, ManifestStore)
    assert manifests.get(base, 1) is None
    assert manifests.latest(base) is None
    manifests.delete(base)
    with pytest.raises(NotFound):
        manifests.put_if_exists(base, staged(base, 1))


def test_a_version_is_put_once_and_replaced_only_when_it_is_there(manifests: ManifestStore, base: str) -> None:
    manifests.put_if_absent(base, staged(base, 1))
    with pytest.raises(AlreadyExists) as caught:
        manifests.put_if_absent(base, staged(base, 1, "y"))
    assert caught.value.version == 1
    assert manifests.get(base, 1) == staged(base, 1)
    final = ManifestRecord(1, f"{base}/_versions/1.manifest", None, "an e-tag")
    manifests.put_if_exists(base, final)
    assert manifests.get(base, 1) == manifests.latest(base) == final
    with pytest.raises(NotFound):
        manifests.put_if_exists(base, staged(base, 2))
    assert manifests.get(base, 2) is None


def test_the_latest_version_is_the_highest_number_but_no_detached_one(manifests: ManifestStore, base: str) -> None:
    for version in (9, 10, 2, 100):
        manifests.put_if_absent(base, staged(base, version))
    manifests.put_if_absent(f"{base}x", staged(f"{base}x", 1000))
    assert manifests.latest(base) == staged(base, 100)
    if isinstance(manifests, DynamoManifestStore):
        manifests.put_if_absent(base, staged(base, DETACHED + 5))
        assert manifests.latest(base) == staged(base, 100)


def test_a_table_that_is_deleted_is_forgotten_and_its_neighbours_are_not(manifests: ManifestStore, base: str) -> None:
    for version in range(1, 6):
        manifests.put_if_absent(base, staged(base, version))
    manifests.put_if_absent(f"{base}/tree/b", staged(f"{base}/tree/b", 1))
    manifests.delete(base)
    assert manifests.latest(base) is None
    assert manifests.latest(f"{base}/tree/b") is not None


def test_a_store_pickles_and_does_not_show_its_secrets(manifests: ManifestStore, base: str) -> None:
    copy: ManifestStore = pickle.loads(pickle.dumps(manifests))
    assert copy == manifests
    copy.put_if_absent(base, staged(base, 1))
    assert manifests.latest(base) == staged(base, 1)
    assert "test-secret" not in repr(manifests)
    assert "host=" not in repr(manifests)


def test_of_eight_racing_writers_one_succeeds(manifests: ManifestStore, base: str) -> None:
    start = Barrier(8)

    def race(writer: int) -> list[int]:
        won = []
        for version in range(1, 6):
            start.wait()
            try:
                manifests.put_if_absent(base, staged(base, version, str(writer)))
            except AlreadyExists:
                continue
            won.append(version)
        return won

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(race, range(8)))
    assert sorted(version for each in won for version in each) == [1, 2, 3, 4, 5]
    for writer, versions in enumerate(won):
        assert all(manifests.get(base, version) == staged(base, version, str(writer)) for version in versions)


def test_a_missing_dynamodb_table_or_one_of_other_keys_is_refused(s3_server: ServedStore) -> None:
    good = dynamo_store(s3_server)
    missing = DynamoManifestStore("missing", good.settings)
    with pytest.raises(InvalidInput, match="no such DynamoDB table"):
        missing.latest("t")
    with pytest.raises(InvalidInput, match="expected"):
        dynamo_store(s3_server, keys=("base", "version")).latest("t")


def test_items_of_another_shape_are_corrupt(s3_server: ServedStore) -> None:
    import boto3  # type: ignore[import-untyped, unused-ignore]

    store = dynamo_store(s3_server)
    client = boto3.session.Session().client("dynamodb", **dict(store.settings))
    client.put_item(TableName=store.table, Item={"base_uri": {"S": "t"}, "version": {"N": "1"}, "path": {"N": "5"}})
    with pytest.raises(Corrupt, match="lacks"):
        store.get("t", 1)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_database_that_is_not_there_is_a_storage_error(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'lancelet[postgres]'")
    store: ManifestStore = SqliteManifestStore(str(tmp_path / "missing" / "commits.db"))
    if kind == "postgres":
        store = PostgresManifestStore(f"host={tmp_path} dbname=x user=x")
    with pytest.raises(Storage):
        store.latest("t")


def test_options_name_dynamodb_as_pylance_has_them() -> None:
    options = {"AWS_Region": "eu-west-1", "access_key_id": "k", "DynamoDB_Endpoint": "http://here"}
    around = {"AWS_REGION": "elsewhere", "DYNAMODB_ENDPOINT": "http://there", "AWS_SECRET_ACCESS_KEY": "s"}
    found = dict(DynamoManifestStore.of("t", options, around).settings)
    assert found == {"endpoint_url": "http://here", "region_name": "eu-west-1", "aws_access_key_id": "k"}
    found = dict(DynamoManifestStore.of("t", {}, around).settings)
    assert found == {"endpoint_url": "http://there", "region_name": "elsewhere"}
