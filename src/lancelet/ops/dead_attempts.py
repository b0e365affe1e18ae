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
#: Seconds for which the fate of a removed job stays, so that a job that wakes up late finds it.
_MEMORY = 7 * 86_400.0


@dataclass(frozen=True, slots=True)
class DeadAttempts:
    """A job without a sign of life, and what its attempts told that they would write."""

    job: str
    #: Seconds since the epoch, by the store's clock.
    last_sign: float
    committing: bool
    files: tuple[str, ...]


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
        signs = [entry.modified for path, entry in entries.items() if not path.endswith(".fate")]
        fate = entries.get(fate_path(job))
        if not signs and fate is not None and moment - fate.modified < _MEMORY:
            continue
        last = max(signs, default=0.0)
        promised = _lease_of(store, job, lease) if job_path(job) in entries else lease
        if moment - last <= promised:
            continue
        committing = fate is not None and read_fate(store, job) == COMMITTING
        if committing and fate is not None and moment - fate.modified <= grace:
            continue
        found.append(DeadAttempts(job, last, committing, _told(store, entries)))
    return tuple(found)


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
    return DeadAttempts(item.job, item.last_sign, fate == COMMITTING, _told(store, entries))


def _forget(store: Store, condemned: Iterable[DeadAttempts]) -> None:
    for item in condemned:
        attempts = [entry.path for entry in store.list_from(f"{ATTEMPTS}/{item.job}-")]
        store.delete([*attempts, job_path(item.job)])
        # That files were removed is remembered, for a job that wakes up; without a sign of life it is old enough.
        if item.committing or not item.last_sign:
            store.delete([fate_path(item.job)])


def _by_job(store: Store) -> Iterator[tuple[str, dict[str, Entry]]]:
    jobs: dict[str, dict[str, Entry]] = {}
    for entry in store.list_from(f"{ATTEMPTS}/"):
        name = entry.path.rpartition("/")[2]
        job = name.partition(".")[0].partition("-")[0]
        if len(job) == 32 and name.endswith((".json", ".fate")) and entry.path.count("/") == 2:
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
