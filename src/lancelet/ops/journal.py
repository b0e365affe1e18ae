"""The attempt journal: the files that a job is about to write, told before, so that a dead job's can go at once.

    _lancelet/attempts/<job>.json              put again at each heartbeat: the sign of life is when that was
    _lancelet/attempts/<job>-<attempt>.json    the files that one attempt is about to write
    _lancelet/attempts/<job>.fate              put if absent: what was decided first, the commit or the removal
    _lancelet/attempts/<job>.removed           the removal is done; the entry stays for a while, for files written late

The folder is one that other implementations do not know, so that their cleanup leaves it alone. The fate settles the
race between a job thought dead and whoever removes its files: of "committing" and "removing" only one can be put. A
job that finds the other there gives up. An attempt looks for the fate after it has told its files and before it
writes them, a remover puts the fate before it reads what was told: so one of the two sees the other.
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from uuid import uuid4

from lancelet.errors import AlreadyExists, Conflict, Corrupt, InvalidInput, LanceletError, NotFound, Storage
from lancelet.events import emit
from lancelet.format.names import DATA, DELETIONS, INDEXES, TRANSACTIONS
from lancelet.storage.paths import check_path, join_uri
from lancelet.storage.store import Store

__all__ = [
    "ATTEMPTS",
    "COMMITTING",
    "LEASE",
    "REMOVING",
    "Attempt",
    "JobJournal",
    "claim_fate",
    "existing",
    "fate_path",
    "job_path",
    "read_fate",
    "removed_path",
    "told_files",
]

ATTEMPTS = "_lancelet/attempts"
#: Seconds without a sign of life after which a job may be taken for dead.
LEASE = 60.0
COMMITTING, REMOVING = b"committing", b"removing"
_FOLDERS = (DATA, DELETIONS, INDEXES, TRANSACTIONS)


@dataclass(slots=True)
class Attempt:
    """One run of one task: tells the journal what it is about to write. Pickles, and is used by one thread at a time.

    >>> from lancelet.storage.memory import MemoryStore
    >>> store = MemoryStore("memory://attempts")
    >>> with JobJournal(store, "append") as journal:
    ...     attempt = journal.attempt()
    ...     attempt.tell(["data/x.lance"])
    ...     [told_files(store, entry.path) for entry in store.list_from(f"{ATTEMPTS}/{journal.job}-")]
    [('data/x.lance',)]
    >>> list(store.list_from(ATTEMPTS))
    []
    """

    store: Store
    job: str
    id: str
    files: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where the attempt is written down."""
        return f"{ATTEMPTS}/{self.job}-{self.id}.json"

    def tell(self, files: Iterable[str]) -> None:
        """Say which files come next, before they are written; a path that ends in a slash means all below it.

        Conflict where the job is over, or was given up for dead: then nothing may be written any more. The entry
        stays, because a file told before may have been written after the removal: a later one finds it.
        """
        self.files = (*self.files, *(_check_file(self.store.uri, path) for path in files))
        self.store.put(self.path, json.dumps({"files": self.files}).encode())
        found = {entry.path for entry in self.store.list_from(f"{ATTEMPTS}/{self.job}.")}
        if found != {job_path(self.job)}:
            raise _given_up(self.store, self.job)


class JobJournal:
    """A job's entry in the journal: opened before the first file is written, kept alive by a thread, closed at the end.

    As a context manager it removes what was written when the block raises before :meth:`committing`; after that it
    cannot know how the commit ended, so it leaves the entry to :func:`~lancelet.ops.dead_attempts.remove_dead`, which
    looks. One journal is for one commit.

    Where the process that commits is not the one that began, ``job`` names the entry that the first made by
    :meth:`beat`, under a lease that outlasts the job.
    """

    def __init__(self, store: Store, operation: str, *, lease: float = LEASE, job: str | None = None) -> None:
        if not lease > 0:
            raise InvalidInput(f"the lease is {lease} seconds, expected more than 0")
        self.store, self.job = store, job or uuid4().hex
        self._entry = json.dumps(
            {"operation": operation, "lease": lease, "host": socket.gethostname(), "process": os.getpid()}
        ).encode()
        self._lease = lease
        self._over = threading.Event()
        self._decided = self._closed = False
        self._beating: threading.Thread | None = None

    def attempt(self) -> Attempt:
        """A new attempt at one of the job's tasks."""
        return Attempt(self.store, self.job, uuid4().hex)

    def open(self) -> None:
        """Write the entry down and keep it alive."""
        self.store.put(job_path(self.job), self._entry)
        self._beating = threading.Thread(target=self._keep_alive, name="lancelet-heartbeat", daemon=True)
        self._beating.start()

    def beat(self) -> None:
        """Give a sign of life. Conflict where the job was given up for dead."""
        self.store.put(job_path(self.job), self._entry)
        if read_fate(self.store, self.job) == REMOVING:
            self.store.delete([job_path(self.job)])
            raise _given_up(self.store, self.job)

    def committing(self) -> None:
        """Say that the commit comes next. Conflict where the files are being removed, so that it must not."""
        if claim_fate(self.store, self.job, COMMITTING) != COMMITTING:
            raise _given_up(self.store, self.job)
        self._decided = True

    def close(self, *, used: Collection[str] | None = None) -> None:
        """Say that the commit is in: what attempts told is forgotten. Once more does nothing more.

        ``used`` are the ids of the attempts whose files the commit names. What the others told is removed; their
        entries stay, since they may be writing yet, and a later removal looks again.
        """
        found = self._end()
        needed = found if used is None else [path for path in found if _attempt_of(path) in used]
        self._remove(set(found) - set(needed), needed)
        self.store.delete([*needed, *_verdicts(self.job)])

    def abandon(self) -> None:
        """Remove all that attempts told: for whoever knows that no version names it and that no attempt is at work."""
        found = self._end()
        self._remove(found, ())
        self.store.delete([*found, *_verdicts(self.job)])

    def _end(self) -> list[str]:
        """Stop to give signs of life; the entries of attempts, none the second time."""
        self._stop()
        if self._closed:
            return []
        self._closed = True
        # The entry goes first: an attempt that tells its files from now on finds that the job is over.
        self.store.delete([job_path(self.job)])
        return [entry.path for entry in self.store.list_from(f"{ATTEMPTS}/{self.job}-")]

    def _remove(self, entries: Collection[str], needed: Iterable[str]) -> None:
        if entries:
            kept = {item for path in needed for item in told_files(self.store, path)}
            told = {item for path in entries for item in told_files(self.store, path)}
            self.store.delete(list(existing(self.store, told - kept)))

    def _keep_alive(self) -> None:
        while not self._over.wait(self._lease / 3):
            try:
                self.beat()
            except Conflict:
                return
            except LanceletError as error:
                # The next beat may succeed; if none does, the fate decides.
                emit("journal.beat_failed", uri=self.store.uri, job=self.job, error=repr(error))

    def _stop(self) -> None:
        self._over.set()
        if self._beating is not None:
            self._beating.join()
            self._beating = None

    def __enter__(self) -> JobJournal:
        self.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()
        if kind is None:
            self.close()
        elif not self._decided:
            # What ended the block is what the caller must see; whatever stays is removed as a dead job's.
            with suppress(LanceletError):
                if claim_fate(self.store, self.job, REMOVING) == REMOVING:
                    self.abandon()


def job_path(job: str) -> str:
    """Where a job's sign of life is."""
    return f"{ATTEMPTS}/{job}.json"


def fate_path(job: str) -> str:
    """Where it is written what was decided about a job."""
    return f"{ATTEMPTS}/{job}.fate"


def removed_path(job: str) -> str:
    """What is there once the files of a job were removed."""
    return f"{ATTEMPTS}/{job}.removed"


def _verdicts(job: str) -> tuple[str, str]:
    return fate_path(job), removed_path(job)


def _attempt_of(path: str) -> str:
    return path.rpartition("-")[2].removesuffix(".json")


def read_fate(store: Store, job: str) -> bytes | None:
    """What was decided about a job; None if nothing was."""
    try:
        found = bytes(store.read_all(fate_path(job)))
    except NotFound:
        return None
    if found not in (COMMITTING, REMOVING):
        raise Corrupt(
            f"the fate of a job is {found[:20]!r}, expected {COMMITTING!r} or {REMOVING!r}",
            uri=join_uri(store.uri, fate_path(job)),
        )
    return found


def claim_fate(store: Store, job: str, fate: bytes) -> bytes:
    """Decide about a job; what was decided first counts, and is returned."""
    try:
        store.put_if_absent(fate_path(job), fate)
    except AlreadyExists:
        return read_fate(store, job) or fate
    except Storage:
        # The answer may have been lost: the store knows.
        found = read_fate(store, job)
        if found is None:
            raise
        return found
    return fate


def told_files(store: Store, path: str) -> tuple[str, ...]:
    """The files that an attempt told. Corrupt where its entry names what no attempt writes: that is never touched."""
    uri = join_uri(store.uri, path)
    try:
        content = json.loads(bytes(store.read_all(path)))
        files = content["files"]
        return tuple(_check_file(store.uri, item) for item in files)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        if isinstance(error, LanceletError) and not isinstance(error, InvalidInput):
            raise
        raise Corrupt(f"the journal entry of an attempt cannot be read: {error}", uri=uri) from None


def existing(store: Store, files: Iterable[str]) -> Iterator[str]:
    """The paths that told files stand for: those below a folder, and all others whether there or not."""
    for item in files:
        if item.endswith("/"):
            yield from (entry.path for entry in store.list_from(item))
        else:
            yield item


def _check_file(uri: str, path: str) -> str:
    if not isinstance(path, str):
        raise InvalidInput(f"{path!r} is not a path")
    check_path(uri, path.removesuffix("/"))
    folder, _, name = path.partition("/")
    if folder not in _FOLDERS or not name:
        raise InvalidInput(f"{path!r} is no file that an attempt writes", hint=f"expected one in {', '.join(_FOLDERS)}")
    return path


def _given_up(store: Store, job: str) -> Conflict:
    hint = "start the job anew"
    return Conflict(f"job {job} is over or was given up for dead", uri=store.uri, retryable=True, hint=hint)
