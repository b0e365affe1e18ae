"""Tables with an external manifest store: opened by ``s3+ddb://``, or from a store and a database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from lancelet.config import Options
from lancelet.errors import InvalidInput
from lancelet.storage import open_store
from lancelet.storage.paths import split_uri
from lancelet.storage.remote_location import parse_location
from lancelet.storage.store import Store
from lancelet.table.external.contract import ManifestStore
from lancelet.table.external.dynamodb import DynamoManifestStore
from lancelet.table.handled_store import HandledStore
from lancelet.table.handlers import ExternalHandler

__all__ = ["DDB_SCHEME", "External", "open_table_store", "with_manifest_store"]

DDB_SCHEME = "s3+ddb"
_TABLE_KEY = "ddbTableName"


@dataclass(frozen=True, slots=True)
class External:
    """Makes the handlers of a table and its branches, which the database knows by their folders."""

    manifests: ManifestStore
    base: str

    def __call__(self, store: Store, folder: str) -> ExternalHandler:
        """The handler of a folder."""
        base = f"{self.base}/{folder}".rstrip("/") if folder else self.base
        return ExternalHandler(store, self.manifests, base)


def with_manifest_store(store: Store, manifests: ManifestStore, *, base: str | None = None) -> HandledStore:
    """A table's store whose commits a database decides, which knows the table as ``base``: its URI, if not given.

    >>> from lancelet.storage.memory import MemoryStore
    >>> from lancelet.table.external.sql import SqliteManifestStore
    >>> with_manifest_store(MemoryStore("memory://t"), SqliteManifestStore("/tmp/commits.db")).uri
    'memory://t'
    """
    return HandledStore(store, External(manifests, store.uri if base is None else base))


def open_table_store(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Options | None = None,
) -> Store:
    """The store of a table at a URI: :func:`~lancelet.storage.open_store`, which ``s3+ddb://`` is known to besides.

    ``s3+ddb://bucket/path?ddbTableName=name`` has its manifests in DynamoDB, as pylance has them; the option or
    environment variable ``dynamodb_endpoint`` says where that is, if not at AWS.
    """
    scheme, rest = split_uri(uri)
    if scheme != DDB_SCHEME:
        return open_store(uri, storage_options=storage_options, options=options)
    place, table = _ddb_parts(rest)
    location = parse_location(place)
    if not location.root:
        raise InvalidInput("a table with an external manifest store lies in a folder of the bucket", uri=location.uri)
    inner = open_store(place, storage_options=storage_options, options=options)
    manifests = DynamoManifestStore.of(table, storage_options or {}, os.environ)
    return with_manifest_store(inner, manifests, base=location.root)


def _ddb_parts(rest: str) -> tuple[str, str]:
    place, _, query = rest.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if len(pairs) != 1 or pairs[0][0] != _TABLE_KEY or not pairs[0][1]:
        found = "nothing" if not query else ", ".join(repr(key) for key, _ in pairs)
        uri = f"{DDB_SCHEME}://{place}"
        raise InvalidInput(f"the query of the URI has {found}, expected {_TABLE_KEY} and a name alone", uri=uri)
    return f"s3://{place}", pairs[0][1]
