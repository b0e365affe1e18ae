"""Dead attempts: jobs of the journal that stopped without saying so, and the files they left, removed at once."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lancelet.errors import LanceletError, NotFound
from lancelet.events import span
from lancelet.format.flags import check_readable
from lancelet.format.manifest_file import parse_manifest_file
from lancelet.ops.journal import (
    ATTEMPTS,
    COMMITTING,
    LEASE,
    REMOVING,
    claim_fate,
    existing,
    fate_path,
    job_path,
    read_fate,
    removed_path,
    told_files,
)
from lancelet.storage.paths import join_uri
from lancelet.storage.store import Entry, Store
from lancelet.table.cleanup_files import FileKind, References
from lancelet.table.versions import detached_versions, newest_first

__all__ = ["COMMIT_GRACE", "DeadAttempts", "dead_attempts", "remove_dead"]

#: Seconds for which a commit that was begun is waited for. Bounded patience makes it minutes; a process may be
#: stopped for longer in the middle of its last request, and nothing else than time tells that from death.
COMMIT_GRACE = 3600.0
#: Seconds for which the entry of a removed job stays, so that a job that wakes up late finds that it is over, and what
#: it wrote all the same is removed after.
_MEMORY = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class DeadAttempts:
    """A job without a sign of life, and what its attempts told that they would write."""

    job: str
    #: Seconds since the epoch, by the store's clock.
    last_sign: float
    committing: bool
    files: tuple[str, ...]
    #: Whether its files were removed before, so long ago that the entry can go, too.
    again: bool = False


def dead_attempts(
    store: Store, now: float | None = None, *, grace: float = COMMIT_GRACE, lease: float = LEASE
) -> tuple[DeadAttempts, ...]:
    """The dead jobs of a table's folder; one listing where there are none. Nothing is decided or removed by this.

    A job is dead when it gave no sign of life for the time it promised (``lease`` where that is not known), or when a
    commit that it began is ``grace`` seconds old. A job that is taken for dead and is not loses its work, never more.
    """
    moment = time.time() if now is None else now
    found = []
    for job, entries in _by_job(store):
        if (judged := _judge(store, job, entries, moment, grace, lease)) is not None:
            found.append(judged)
    return tuple(found)


def _judge(
    store: Store, job: str, entries: dict[str, Entry], now: float, grace: float, usual: float
) -> DeadAttempts | None:
    verdict = entries.get(removed_path(job))
    signs = [entry.modified for path, entry in entries.items() if path.endswith(".json")]
    last = max(signs, default=0.0)
    if verdict is not None:
        old = now - verdict.modified >= _MEMORY
        return DeadAttempts(job, last, False, _told(store, entries), again=True) if old else None
    fate = entries.get(fate_path(job))
    if fate is not None and not signs and now - fate.modified < _MEMORY:
        return None
    promised = _lease_of(store, job, usual) if job_path(job) in entries else usual
    if now - last <= promised:
        return None
    committing = fate is not None and read_fate(store, job) == COMMITTING
    if committing and fate is not None and now - fate.modified <= grace:
        return None
    return DeadAttempts(job, last, committing, _told(store, entries))


def remove_dead(store: Store, dead: Iterable[DeadAttempts]) -> tuple[str, ...]:
    """Remove what dead jobs left, but for files that a version of the folder names; returns the paths removed.

    Each manifest of the folder is read once, after it was decided that the jobs do not commit any more. One that
    cannot be read ends it, because what it names must not go. Broken off, it goes on with the next call.
    """
    condemned = [job for item in dead if (job := _condemn(store, item)) is not None]
    if not any(item.files for item in condemned):
        _forget(store, condemned)
        return ()
    live = _references(store)
    with span("journal.remove", total=len(condemned), uri=store.uri) as work:
        removed: list[str] = []
        for item in condemned:
            paths = [path for path in existing(store, item.files) if not _named(live, path)]
            store.delete(paths)
            removed += paths
            work.advance(1, job=item.job, files=len(paths))
        _forget(store, condemned)
    return tuple(removed)


def _condemn(store: Store, item: DeadAttempts) -> DeadAttempts | None:
    """The job with all that it told until it was decided to remove it; None where it has begun to commit after all."""
    fate = claim_fate(store, item.job, REMOVING)
    if fate == COMMITTING and not item.committing:
        return None
    entries = {entry.path: entry for entry in store.list_from(f"{ATTEMPTS}/{item.job}-")}
    return DeadAttempts(item.job, item.last_sign, fate == COMMITTING, _told(store, entries), again=item.again)


def _forget(store: Store, condemned: Iterable[DeadAttempts]) -> None:
    for item in condemned:
        if item.committing or item.again:
            attempts = [entry.path for entry in store.list_from(f"{ATTEMPTS}/{item.job}-")]
            store.delete([*attempts, job_path(item.job)])
            store.delete([fate_path(item.job), removed_path(item.job)])
        else:
            store.put(removed_path(item.job), b"")
            store.delete([job_path(item.job)])


def _by_job(store: Store) -> Iterator[tuple[str, dict[str, Entry]]]:
    jobs: dict[str, dict[str, Entry]] = {}
    for entry in store.list_from(f"{ATTEMPTS}/"):
        name = entry.path.rpartition("/")[2]
        job = name.partition(".")[0].partition("-")[0]
        if len(job) == 32 and name.endswith((".json", ".fate", ".removed")) and entry.path.count("/") == 2:
            jobs.setdefault(job, {})[entry.path] = entry
    yield from jobs.items()


def _lease_of(store: Store, job: str, usual: float) -> float:
    try:
        content = json.loads(bytes(store.read_all(job_path(job))))
    except (NotFound, ValueError, RecursionError):
        return usual
    lease = content.get("lease") if isinstance(content, dict) else None
    return min(float(lease), _MEMORY) if isinstance(lease, int | float) and lease > 0 else usual


def _told(store: Store, entries: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for path in entries:
        if "-" in path.rpartition("/")[2]:
            try:
                found |= dict.fromkeys(told_files(store, path))
            except NotFound:
                # The job, or another remover, took it meanwhile.
                continue
    return tuple(found)


def _references(store: Store) -> References:
    """What the versions of the folder name, detached ones among them."""
    found = References()
    for place in [*newest_first(store), *detached_versions(store)]:
        try:
            data = store.read_all(place.path)
        except NotFound:
            # Cleaned up meanwhile.
            continue
        file = parse_manifest_file(data, uri=join_uri(store.uri, place.path))
        try:
            # A flag that nobody here knows may mean files that nobody here sees.
            check_readable(file.manifest)
        except LanceletError as error:
            raise error.where(uri=store.uri, version=place.version) from None
        found.add(file.manifest, file.index_section().indexes, store.uri)
    return found


def _named(live: References, path: str) -> bool:
    return any(live.name(kind, path) for kind in FileKind)
