"""Cleanup: old versions and the files that only they need, planned with reasons first and removed after."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from lancelet.errors import Conflict, InvalidInput, LanceletError, NotFound
from lancelet.events import span
from lancelet.format.flags import MANAGED_BLOBS, check_readable, check_writable
from lancelet.format.manifest_file import ManifestFile, parse_manifest_file
from lancelet.storage import open_store
from lancelet.storage.paths import join_uri
from lancelet.table.branches import list_branches
from lancelet.table.cleanup_files import FOLDERS, FileKind, Limits, OldFile, References, judge_file
from lancelet.table.cleanup_policy import UNVERIFIED_AGE, CleanupPolicy, auto_cleanup_policy, auto_cleanup_rate
from lancelet.table.parallel import in_order
from lancelet.table.paths import Opener, main_store
from lancelet.table.snapshot import FoundManifest, Snapshot
from lancelet.table.tags import list_tags
from lancelet.table.versions import detached_versions, newest_first, time_of

__all__ = ["CleanupPlan", "KeptVersion", "OldVersion", "Removed", "auto_cleanup", "plan_cleanup", "run_cleanup"]

_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class OldVersion:
    """A version that goes."""

    version: int
    path: str
    size: int
    made: datetime


@dataclass(frozen=True, slots=True)
class KeptVersion:
    """A version that is old by the policy and stays, because something refers to it."""

    version: int
    referred_by: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CleanupPlan:
    """What a cleanup would remove, and why: pure data, nothing is removed by making it."""

    snapshot: Snapshot
    policy: CleanupPolicy
    versions: tuple[OldVersion, ...]
    kept: tuple[KeptVersion, ...]
    files: tuple[OldFile, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes that are freed."""
        return sum(item.size for item in self.versions) + sum(item.size for item in self.files)

    def count(self, kind: FileKind) -> int:
        """How many files of a kind go."""
        return len(self.versions) if kind is FileKind.MANIFEST else sum(item.kind is kind for item in self.files)

    def __str__(self) -> str:
        def numbers(versions: Iterable[int]) -> str:
            return ", ".join(map(str, versions)) or "none"

        found = [f"cleanup of {self.snapshot.uri} as of version {self.snapshot.version}: {self.total_bytes} bytes"]
        found.append(f"  versions that go: {numbers(item.version for item in self.versions)}")
        found += [f"  version {item.version} stays: {', '.join(item.referred_by)}" for item in self.kept]
        groups = Counter((item.kind.value, item.reason) for item in self.files)
        found += [f"  {count} {kind} files: {reason}" for (kind, reason), count in sorted(groups.items())]
        return "\n".join(found)


@dataclass(frozen=True, slots=True)
class Removed:
    """What a cleanup removed."""

    bytes_removed: int = 0
    old_versions: int = 0
    data_files: int = 0
    transaction_files: int = 0
    index_files: int = 0
    deletion_files: int = 0


def plan_cleanup(
    snapshot: Snapshot, policy: CleanupPolicy | None = None, *, now: datetime | None = None, opener: Opener = open_store
) -> CleanupPlan:
    """What may go from the folder of the snapshot's branch, by a policy (None: versions older than two weeks).

    The snapshot's version and all after it stay, as do tagged versions, those that branches start from, and detached
    ones. InvalidInput where tagged versions are old and the policy takes that for an error. One read of each manifest
    and one listing of each folder; a manifest that cannot be read ends it, because what it names must not go.
    """
    chosen, moment = (policy or CleanupPolicy()).with_default(), now or datetime.now(UTC)
    check_writable(snapshot.manifest)
    store = snapshot.store
    referred = _referred(snapshot, opener)
    found = sorted(newest_first(store), key=lambda item: item.version)
    oldest_retained = chosen.oldest_retained([item.version for item in found])
    live, gone = References(), References()
    versions: list[OldVersion] = []
    kept: list[KeptVersion] = []
    oldest_kept, keep_blobs = moment, False
    for place, file in _read(snapshot, [*found, *detached_versions(store)]):
        manifest, made = file.manifest, time_of(file.manifest, place)
        newest = place.version >= snapshot.version
        old = not newest and chosen.is_old(place.version, made, now=moment, oldest_retained=oldest_retained)
        reasons = referred.get(place.version, ())
        if manifest.tag:
            # Tables of old kept a tag in the manifest itself.
            reasons = (*reasons, f"the name {manifest.tag!r} in its manifest")
        if old and reasons:
            kept.append(KeptVersion(place.version, reasons))
        stays = not old or bool(reasons)
        (live if stays else gone).add(manifest, file.index_section().indexes, store.uri)
        keep_blobs |= bool(manifest.reader_flags & MANAGED_BLOBS.value)
        if stays:
            oldest_kept = min(oldest_kept, made)
        else:
            versions.append(OldVersion(place.version, place.path, place.size, made))
    _refuse_tagged(chosen, kept, snapshot.uri)
    limits = Limits(None if chosen.delete_unverified else moment - UNVERIFIED_AGE, oldest_kept, keep_blobs)
    entries = (entry for folder in FOLDERS for entry in store.list_from(folder))
    files = tuple(judged for entry in entries if (judged := judge_file(entry, live, gone, limits)) is not None)
    return CleanupPlan(snapshot, chosen, tuple(versions), tuple(kept), files)


def run_cleanup(plan: CleanupPlan, *, rate_limit: int | None = None, opener: Opener = open_store) -> Removed:
    """Remove what a plan says, at most ``rate_limit`` files a second; once more does no harm.

    Conflict where a version that goes has been tagged, or a branch started from it, since the plan was made. Manifests
    go first: broken off in between, the cleanup leaves files that no version names, never a version without its files.
    """
    if rate_limit is not None and rate_limit < 1:
        raise InvalidInput(f"rate_limit is {rate_limit} files a second, expected at least 1")
    referred = _referred(plan.snapshot, opener)
    for item in plan.versions:
        if item.version in referred:
            found = f"version {item.version} was to go, but now {referred[item.version][0]} refers to it"
            raise Conflict(found, uri=plan.snapshot.uri, version=item.version, retryable=True, hint="plan anew")
    store = plan.snapshot.store
    paths = [item.path for item in plan.versions] + [item.path for item in plan.files]
    with span("cleanup.remove", total=len(paths), uri=store.uri) as work:
        for batch in _batches(paths, rate_limit or _AT_ONCE):
            began = time.monotonic()
            store.delete(batch)
            work.advance(len(batch))
            if rate_limit is not None and work.done < len(paths):
                time.sleep(max(0.0, 1.0 - (time.monotonic() - began)))
    return Removed(
        bytes_removed=plan.total_bytes,
        old_versions=len(plan.versions),
        data_files=plan.count(FileKind.DATA),
        transaction_files=plan.count(FileKind.TRANSACTION),
        index_files=plan.count(FileKind.INDEX),
        deletion_files=plan.count(FileKind.DELETION),
    )


def auto_cleanup(committed: Snapshot, *, now: datetime | None = None, opener: Opener = open_store) -> Removed | None:
    """Clean up as the config of a table asks after this version was committed; None where it asks for nothing now."""
    policy = auto_cleanup_policy(committed.manifest.config, committed.version)
    if policy is None:
        return None
    rate = auto_cleanup_rate(committed.manifest.config)
    return run_cleanup(plan_cleanup(committed, policy, now=now, opener=opener), rate_limit=rate, opener=opener)


def _referred(snapshot: Snapshot, opener: Opener) -> Mapping[int, tuple[str, ...]]:
    """What refers to versions of the snapshot's branch: tags, and the branches that start from them, in words."""
    main = main_store(snapshot.store, snapshot.branch, opener=opener)
    found: dict[int, tuple[str, ...]] = {}
    for name, tag in list_tags(main, options=snapshot.options).items():
        if tag.branch == snapshot.branch:
            found[tag.version] = (*found.get(tag.version, ()), f"tag {name!r}")
    for name, branch in list_branches(main, options=snapshot.options).items():
        if branch.parent_branch == snapshot.branch:
            found[branch.parent_version] = (*found.get(branch.parent_version, ()), f"branch {name!r}")
    return found


def _read(snapshot: Snapshot, places: Iterable[FoundManifest]) -> Iterator[tuple[FoundManifest, ManifestFile]]:
    store = snapshot.store

    def read(place: FoundManifest) -> tuple[FoundManifest, ManifestFile] | None:
        try:
            data = store.read_all(place.path)
        except NotFound:
            # Another cleanup took it.
            return None
        file = parse_manifest_file(data, uri=join_uri(store.uri, place.path))
        try:
            # A flag that nobody here knows may mean files that nobody here sees.
            check_readable(file.manifest)
        except LanceletError as error:
            raise error.where(uri=store.uri, version=place.version) from None
        return place, file

    for item in in_order(read, places, concurrency=snapshot.options.io_concurrency):
        if item is not None:
            yield item


def _refuse_tagged(policy: CleanupPolicy, kept: Iterable[KeptVersion], uri: str) -> None:
    tagged = [
        f"{name} (version {item.version})" for item in kept for name in item.referred_by if name.startswith("tag ")
    ]
    if policy.error_if_tagged and tagged:
        hint = "delete the tags, or let the policy pass over tagged versions (error_if_tagged=False)"
        raise InvalidInput(f"tagged versions are old: {', '.join(tagged)}", uri=uri, hint=hint)


def _batches(paths: Iterable[str], size: int) -> Iterator[list[str]]:
    remaining = iter(paths)
    while batch := list(islice(remaining, size)):
        yield batch
