"""Numbered batches: the batches of a query come into a table once each, however often one of them is tried.

    _lancelet/streams/<hash of the query>.json     the last batch that is in; the one being tried, after which version

The transaction of a batch says in its properties whose it is and which. A mark is put before the first commit of a
query, and again before each: so where there is none, nothing was committed, and where it names a batch that was tried,
that one is sought in the versions since. Nothing else depends on how long versions are kept.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import TypeVar

from lancelet.errors import Corrupt, InvalidInput, LanceletError, NotFound
from lancelet.events import emit
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Store
from lancelet.table.snapshot import find_latest, newer_manifests, read_snapshot

__all__ = ["BATCH", "QUERY", "Batch", "commit_once", "is_in"]

Value = TypeVar("Value")

#: Properties of transactions: whose batch it was, and which.
QUERY, BATCH = "lancelet.query", "lancelet.batch"
_FOLDER = "_lancelet/streams"


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch of a query: numbers rise, and a batch that is tried again has the number that it had.

    >>> Batch("hourly load", 3).properties
    {'lancelet.query': 'hourly load', 'lancelet.batch': '3'}
    """

    query: str
    number: int

    def __post_init__(self) -> None:
        if not self.query or self.number < 0:
            raise InvalidInput(f"batch {self.number} of the query {self.query!r} can be told from no other")

    @property
    def properties(self) -> dict[str, str]:
        """What the transaction says."""
        return {QUERY: self.query, BATCH: str(self.number)}

    @property
    def path(self) -> str:
        """Where the query's mark is."""
        return f"{_FOLDER}/{sha256(self.query.encode()).hexdigest()[:32]}.json"


@dataclass(frozen=True, slots=True)
class _Mark:
    """What is known of a query: the last batch that is certainly in, and one of which that is not certain."""

    done: int = -1
    tried: int | None = None
    #: The newest version before it was tried.
    version: int = 0


def commit_once(store: Store, batch: Batch, commit: Callable[[], Value]) -> Value | None:
    """Commit a batch, with its properties, unless it is in already: then None, and ``commit`` is not called.

    >>> from lancelet.storage import open_store
    >>> store = open_store("memory://numbered")
    >>> commit_once(store, Batch("example", 0), lambda: "done"), commit_once(store, Batch("example", 0), lambda: "done")
    ('done', None)
    """
    if is_in(store, batch):
        return None
    newest = find_latest(store)
    mark = _read(store, batch) or _Mark()
    _put(store, batch, _Mark(mark.done, batch.number, 0 if newest is None else newest.version))
    made = commit()
    _finish(store, batch)
    return made


def is_in(store: Store, batch: Batch) -> bool:
    """Whether a batch is in the table. NotFound where nobody can tell, because versions since were cleaned up."""
    mark = _read(store, batch)
    if mark is None:
        return False
    if batch.number <= mark.done:
        return True
    if mark.tried is None or mark.tried < batch.number or not _committed(store, batch, mark):
        return False
    _finish(store, batch)
    return True


def _committed(store: Store, batch: Batch, mark: _Mark) -> bool:
    """Whether one of the versions since the mark was put is the batch's."""
    expected = mark.version + 1
    for version, path, scheme in sorted(newer_manifests(store, mark.version)):
        try:
            transaction = read_snapshot(store, path, scheme).transaction() if version == expected else None
        except NotFound:
            transaction = None
        if transaction is None:
            found = f"version {expected} is gone or left no transaction, so that nobody can tell whether batch"
            hint = "see whether its rows are in the table; then remove the mark, or begin with a new checkpoint"
            raise NotFound(
                f"{found} {batch.number} of {batch.query!r} is in the table",
                uri=join_uri(store.uri, batch.path),
                version=expected,
                hint=hint,
            )
        if (
            transaction.properties.get(QUERY) == batch.query
            and _number(transaction.properties.get(BATCH)) >= batch.number
        ):
            return True
        expected += 1
    return False


def _number(text: str | None) -> int:
    return int(text) if text is not None and text.isascii() and text.isdigit() else -1


def _read(store: Store, batch: Batch) -> _Mark | None:
    try:
        text = bytes(store.read_all(batch.path))
    except NotFound:
        return None
    try:
        found = json.loads(text)
        return _Mark(int(found["done"]), None if found["tried"] is None else int(found["tried"]), int(found["version"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        uri = join_uri(store.uri, batch.path)
        raise Corrupt(f"the mark of a query is {text[:80]!r}", uri=uri, hint="begin with a new checkpoint") from None


def _put(store: Store, batch: Batch, mark: _Mark) -> None:
    told = {"query": batch.query, "done": mark.done, "tried": mark.tried, "version": mark.version}
    store.put(batch.path, json.dumps(told).encode())


def _finish(store: Store, batch: Batch) -> None:
    """Say that a batch is in. It is, whatever fails here: then it is sought where it is tried again."""
    try:
        _put(store, batch, _Mark(batch.number))
    except LanceletError as error:
        emit("batch.mark_failed", uri=store.uri, query=batch.query, batch=batch.number, error=repr(error))
