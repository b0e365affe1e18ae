"""Real databases on loopback for tests of external manifest stores: PostgreSQL from the system, DynamoDB from moto."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lancelet.errors import NotFound, Storage
from lancelet.table.external.dynamodb import DynamoManifestStore
from lancelet.testing.servers import START_UP, ServedStore

__all__ = ["dynamo_options", "dynamo_store", "postgres_server"]

# PostgreSQL refuses to run as root; Debian's package brings an account for it.
_ACCOUNT = "postgres"
# The server ends with the pipe's end, so also when whoever started it is killed.
_RUNNER = '"$@" </dev/null & cat >/dev/null; kill $!; wait $!'


@contextmanager
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server on a socket of its own, as a connection string. NotFound where none is installed."""
    tools = _postgres_tools()
    account = _ACCOUNT if os.getuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="lancelet-pg-") as folder:
        if account is not None:
            shutil.chown(folder, account)
        data = f"{folder}/data"
        made = subprocess.run(
            [tools / "initdb", "-D", data, "-U", _ACCOUNT, "--auth=trust", "--no-sync"],
            capture_output=True,
            text=True,
            check=False,
            user=account,
            cwd=folder,
        )
        if made.returncode:
            raise Storage(f"initdb failed: {made.stderr[-500:]}", uri=data)
        server = [str(tools / "postgres"), "-D", data, "-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
        with open(f"{folder}/log", "wb") as log:
            process = subprocess.Popen(
                ["/bin/sh", "-c", _RUNNER, "sh", *server],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                user=account,
                cwd=folder,
            )
            try:
                _wait(tools / "pg_isready", folder, process)
                yield f"host={folder} user={_ACCOUNT} dbname={_ACCOUNT}"
            finally:
                process.communicate(timeout=START_UP)


def _postgres_tools() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    if not found and on_path is None:
        raise NotFound("PostgreSQL is not installed", hint="apt-get install postgresql")
    return (found[-1] if found else Path(on_path or "")).parent


def _wait(probe: Path, folder: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_UP
    while time.monotonic() < deadline and process.poll() is None:
        if not subprocess.run([probe, "-q", "-h", folder], check=False).returncode:
            return
        time.sleep(0.05)
    raise Storage("PostgreSQL did not start", uri=folder)


def dynamo_options(server: ServedStore) -> dict[str, str]:
    """The storage options of a moto server that serves DynamoDB as well."""
    return {**server.storage_options, "dynamodb_endpoint": server.endpoint}


def dynamo_store(server: ServedStore, *, keys: tuple[str, str] = ("base_uri", "version")) -> DynamoManifestStore:
    """A manifest store in a new DynamoDB table of a moto server; ``keys`` name the partition and the sort key."""
    import boto3  # type: ignore[import-untyped, unused-ignore]

    store = DynamoManifestStore.of(f"t-{uuid.uuid4()}", dynamo_options(server), {})
    client = boto3.session.Session().client("dynamodb", **dict(store.settings))
    client.create_table(
        TableName=store.table,
        KeySchema=[
            {"AttributeName": keys[0], "KeyType": "HASH"},
            {"AttributeName": keys[1], "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": keys[0], "AttributeType": "S"},
            {"AttributeName": keys[1], "AttributeType": "N"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    return store
