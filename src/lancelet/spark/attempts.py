"""Attempts at tasks: a store that tells the journal of each file before it is written, for tasks that may die."""

from __future__ import annotations

from uuid import uuid4

from lancelet.format.names import DATA, DELETIONS, INDEXES, TRANSACTIONS
from lancelet.ops.journal import Attempt
from lancelet.storage.delegating import Delegating
from lancelet.storage.store import Data, Mappable, Store, Writer

__all__ = ["TellingStore", "telling_store"]

_FOLDERS = (DATA, DELETIONS, INDEXES, TRANSACTIONS)


class TellingStore(Delegating):
    """A table's store as one attempt at a task sees it: what it is about to write there is told before.

    >>> from lancelet.ops.journal import JobJournal, told_files
    >>> from lancelet.storage.memory import MemoryStore
    >>> inner = MemoryStore("memory://told")
    >>> journal = JobJournal(inner, "example")
    >>> journal.beat()
    >>> store = telling_store(inner, journal.job)
    >>> store.put("data/a.lance", b"1")
    >>> told_files(inner, store.attempt.path)
    ('data/a.lance', 'data/a/')
    """

    def __init__(self, inner: Store, attempt: Attempt) -> None:
        super().__init__(inner)
        self.attempt = attempt
        self._told: set[str] = set()

    def put(self, path: str, data: Data) -> None:
        """As the inner store."""
        self._tell(path)
        self.inner.put(path, data)

    def put_if_absent(self, path: str, data: Data) -> None:
        """As the inner store."""
        self._tell(path)
        self.inner.put_if_absent(path, data)

    def writer(self, path: str) -> Writer:
        """As the inner store."""
        self._tell(path)
        return self.inner.writer(path)

    def copy(self, source: str, target: str) -> None:
        """As the inner store."""
        self._tell(target)
        self.inner.copy(source, target)

    def _tell(self, path: str) -> None:
        folder, _, name = path.partition("/")
        if folder not in _FOLDERS or path in self._told or any(path.startswith(known) for known in self._folders()):
            return
        files = [path]
        if folder == DATA and name.endswith(".lance"):
            # Blobs beside a data file lie in a folder of its name.
            files.append(f"{path.removesuffix('.lance')}/")
        elif folder == INDEXES:
            # The files of an index segment are all in one folder.
            files = [f"{folder}/{name.partition('/')[0]}/"]
        self.attempt.tell(files)
        self._told.update(files)

    def _folders(self) -> list[str]:
        return [path for path in self._told if path.endswith("/")]


class _MappedTellingStore(TellingStore):
    """The same around a store that shows objects without reading them."""

    def __init__(self, inner: Store, attempt: Attempt, mapped: Mappable) -> None:
        super().__init__(inner, attempt)
        self._mapped = mapped

    def view(self, path: str) -> memoryview:
        """As the inner store."""
        return self._mapped.view(path)


def telling_store(store: Store, job: str) -> TellingStore:
    """A table's store for a new attempt at a task of a job."""
    attempt = Attempt(store, job, uuid4().hex)
    mapped: object = store
    return _MappedTellingStore(store, attempt, mapped) if isinstance(mapped, Mappable) else TellingStore(store, attempt)
