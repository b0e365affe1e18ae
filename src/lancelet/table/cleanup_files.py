"""Cleanup, file by file: which objects the kept versions need, which the old ones alone did, and what is neither."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum

from lancelet.format.indexes import IndexMetadata
from lancelet.format.manifest import Manifest
from lancelet.format.names import DATA, DELETIONS, INDEXES, TRANSACTIONS, VERSIONS
from lancelet.storage.store import Entry
from lancelet.table.paths import same_place

__all__ = ["FOLDERS", "FileKind", "Limits", "OldFile", "References", "judge_file"]

#: Prefixes below which cleanup looks; everything else (branches, references, journals) it does not see.
FOLDERS = (f"{TRANSACTIONS}/", f"{DATA}/", f"{INDEXES}/", f"{DELETIONS}/", f"{VERSIONS}/.tmp")
_DELETION_KINDS = (".arrow", ".bin")


class FileKind(Enum):
    """What a file is part of."""

    MANIFEST = "manifest"
    DATA = "data"
    DELETION = "deletion"
    INDEX = "index"
    TRANSACTION = "transaction"
    TEMPORARY = "temporary manifest"


@dataclass(frozen=True, slots=True)
class OldFile:
    """A file to remove. A verified one was named by a version that goes; the others by none at all."""

    path: str
    kind: FileKind
    size: int
    verified: bool
    reason: str


@dataclass(slots=True)
class References:
    """Which of a table's own files some versions name, gathered version by version."""

    #: Below the folder of data files; the others are whole paths.
    data: set[str] = field(default_factory=set)
    deletions: set[str] = field(default_factory=set)
    transactions: set[str] = field(default_factory=set)
    #: Folders of index segments.
    indexes: set[str] = field(default_factory=set)

    def add(self, manifest: Manifest, indexes: tuple[IndexMetadata, ...], uri: str) -> None:
        """Add what a version names; files of other places are not the table's to remove, so they are passed over."""
        own = _own_bases(manifest, uri)
        # The message rather than Fragment objects: there may be 100,000 in each of a thousand versions.
        fragments = manifest.fragments.message().fragments
        if not manifest.base_paths:
            self.data.update([file.path for item in fragments for file in item.files])
        else:
            files = [file for item in fragments for file in item.files]
            self.data.update(
                _below_data(own, file.base_id if file.HasField("base_id") else None, file.path) for file in files
            )
        for base_id, name in _deletions_of(manifest):
            if base_id in own:
                self.deletions.add(f"{own[base_id][0]}{DELETIONS}/{name}")
        for index in indexes:
            if index.base_id in own:
                folder, is_root = own[index.base_id]
                self.indexes.add(f"{folder}{INDEXES}/{index.uuid}" if is_root else f"{folder}{index.uuid}")
        if manifest.transaction_file:
            self.transactions.add(f"{TRANSACTIONS}/{manifest.transaction_file}")

    def name(self, kind: FileKind, path: str) -> bool:
        """Whether a file is named, or belongs to one that is."""
        match kind:
            case FileKind.DATA:
                # Blobs lie in a folder that is named like their data file.
                name = path.removeprefix(f"{DATA}/")
                return name in self.data or f"{name.rpartition('/')[0]}.lance" in self.data
            case FileKind.DELETION:
                return path in self.deletions
            case FileKind.INDEX:
                return "/".join(path.split("/", 2)[:2]) in self.indexes
            case FileKind.TRANSACTION:
                return path in self.transactions
            case FileKind.MANIFEST | FileKind.TEMPORARY:
                return False


@dataclass(frozen=True, slots=True)
class Limits:
    """When a file that no version names may go."""

    #: Files modified before this belong to no write under way; None: no file does, so the caller says.
    abandoned_before: datetime | None
    #: When the oldest version that stays was made.
    oldest_kept: datetime
    #: Whether blobs are kept in ways this release cannot follow, so that none may go.
    keep_blobs: bool = False


def judge_file(entry: Entry, live: References, gone: References, limits: Limits) -> OldFile | None:
    """The file, with why it goes; None where it stays."""
    kind = _kind_of(entry.path)
    if kind is None or live.name(kind, entry.path) or (limits.keep_blobs and entry.path.endswith(".blob")):
        return None
    if gone.name(kind, entry.path):
        return OldFile(entry.path, kind, entry.size, True, "only versions that go name it")
    before = limits.abandoned_before
    if before is not None and entry.modified >= before.timestamp():
        return None
    if kind not in (FileKind.DATA, FileKind.INDEX) and entry.modified >= limits.oldest_kept.timestamp():
        # These are written moments before the manifest of their version: a younger one may yet get its manifest.
        return None
    reason = "no version names it" if before is None else f"no version names it, and it is older than {before:%F %T}"
    return OldFile(entry.path, kind, entry.size, False, reason)


def _kind_of(path: str) -> FileKind | None:
    """What a file is, by its name; None for what is not ours to judge."""
    folder, _, rest = path.partition("/")
    if folder == DATA:
        in_folder = rest.endswith(".blob") and "/" in rest
        return FileKind.DATA if rest.endswith(".lance") or in_folder else None
    if folder == DELETIONS:
        return FileKind.DELETION if rest.endswith(_DELETION_KINDS) else None
    if folder == TRANSACTIONS:
        return FileKind.TRANSACTION if rest.endswith(".txn") else None
    if folder == VERSIONS:
        return FileKind.TEMPORARY if rest.startswith(".tmp") else None
    return FileKind.INDEX if folder == INDEXES else None


def _below_data(own: Mapping[int | None, tuple[str, bool]], base_id: int | None, path: str) -> str:
    """A data file below the table's folder of such files; empty where it lies elsewhere."""
    if base_id not in own:
        return ""
    folder, is_root = own[base_id]
    whole = f"{folder}{DATA}/{path}" if is_root else f"{folder}{path}"
    return whole.removeprefix(f"{DATA}/") if whole.startswith(f"{DATA}/") else ""


def _deletions_of(manifest: Manifest) -> Iterator[tuple[int | None, str]]:
    for place in manifest.fragments.with_deletions():
        fragment = manifest.fragments[place]
        if (item := fragment.deletion_file) is not None:
            yield item.base_id, f"{fragment.id}-{item.read_version}-{item.id}.{item.kind.extension}"


def _own_bases(manifest: Manifest, uri: str) -> dict[int | None, tuple[str, bool]]:
    """Base paths within the table's own folder: their folder there, with a slash, and whether it is a table's root."""
    own = same_place(uri)
    found: dict[int | None, tuple[str, bool]] = {None: ("", True)}
    for base in manifest.base_paths:
        place = same_place(base.path)
        if place == own or place.startswith(f"{own}/"):
            folder = place[len(own) + 1 :]
            found[base.id] = (f"{folder}/" if folder else "", base.is_dataset_root)
    return found
