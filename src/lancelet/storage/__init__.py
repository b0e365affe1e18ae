"""Storage: where bytes live. One contract, several places, and wrappers that add one habit each."""

from __future__ import annotations

import os
from collections.abc import Mapping

from lancelet.config import Options, default_options
from lancelet.errors import InvalidInput
from lancelet.storage.paths import LOCAL_SCHEMES, split_uri
from lancelet.storage.store import Browsable, Data, Entry, Mappable, Range, Store, Writer

__all__ = ["REMOTE_SCHEMES", "Browsable", "Data", "Entry", "Mappable", "Range", "Store", "Writer", "open_store"]

#: Schemes that obstore serves.
REMOTE_SCHEMES = frozenset({"s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "adl", "http", "https"})
_KNOWN = ["a plain path", "file://", "memory://", *(f"{scheme}://" for scheme in sorted(REMOTE_SCHEMES))]


def open_store(
    uri: str | os.PathLike[str],
    *,
    storage_options: Mapping[str, str] | None = None,
    options: Options | None = None,
) -> Store:
    """The store at a URI or path; nothing is read or made yet.

    ``storage_options`` are pylance's keys for remote stores (credentials, region, endpoint); the others need none.
    A remote store repeats failed requests as ``options.retries`` says, down to the single part of an upload.

    >>> open_store("memory://example").uri
    'memory://example'
    """
    given = options or default_options()
    scheme, _ = split_uri(uri)
    if scheme in LOCAL_SCHEMES:
        from lancelet.storage.local import LocalStore

        return LocalStore(uri, durable=given.durable)
    text = os.fspath(uri)
    if scheme == "memory":
        from lancelet.storage.memory import MemoryStore

        return MemoryStore(text)
    if scheme in REMOTE_SCHEMES:
        from lancelet.storage.remote import RemoteStore

        return RemoteStore(text, storage_options=storage_options, options=given)
    if scheme == "s3+ddb":
        hint = "open the table, not its files: the commit layer takes s3+ddb:// apart"
        raise InvalidInput("s3+ddb:// names a table with an external manifest store, not a store", uri=text, hint=hint)
    raise InvalidInput(f"unknown scheme {scheme!r}", uri=text, hint=f"known are {', '.join(_KNOWN)}")
